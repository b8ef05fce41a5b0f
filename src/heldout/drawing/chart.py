"""A chart as plain data: layers of marks on two axes.

    roc = Chart([Layer("line", records, x="fpr", y="tpr")], x=Numbers("False positive rate"), ...)
    roc.svg(says="True against false positive rate.")
    roc.plot(ax=None)       # on matplotlib's axes where it is installed
    roc.altair()            # to change it further, or to show it with its own tools

The picture is drawn by `svg.py`, in milliseconds; Vega-Lite and matplotlib are for those who want
the chart itself.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from heldout.errors import MissingDependency

if TYPE_CHECKING:
    from altair import LayerChart

# The colours of every picture; house.css says what becomes of them in a dark room.
INK: Final = "#22303c"
MUTED: Final = "#6b7785"
GRID: Final = "#e6eaee"
SHADE: Final = "#dfe4e8"
HEAT: Final = "#00659e"  # behind text, so it is the same in a dark room
PALETTE: Final = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # green
    "#cc79a7",  # pink
    "#e69f00",  # orange
    "#56b4e9",  # sky
    "#7a5195",  # purple
    "#8c8c00",  # olive
)
"""Eight colours that most colour-blind readers can tell apart; use them in this order."""

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

SENTENCE: Final = re.compile(r"(?<=[.])\s+(?=[A-Z])")
"""Where one sentence of a caption ends and the next begins."""
Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A picture with what is written under it."""

    svg: str
    caption: str


def captions(drawn: Sequence[Figure]) -> tuple[list[str], str]:
    """Return what is written under each picture, and once for all of them.

    A sentence that several captions share is written once.

    >>> captions([Figure("", f"This is {name}. Bars are noise.") for name in "AB"])
    (['This is A.', 'This is B.'], 'Bars are noise.')
    """
    sentences = [SENTENCE.split(figure.caption) for figure in drawn]
    seen = Counter(sentence for caption in sentences for sentence in dict.fromkeys(caption))
    shared = [sentence for sentence, times in seen.items() if times > 1]
    own = [[part for part in caption if part not in shared] for caption in sentences]
    return [" ".join(caption) for caption in own], " ".join(shared)


@dataclass(frozen=True)
class Field:
    """The name of a field of the records, where a constant could stand as well."""

    name: str


@dataclass(frozen=True)
class Numbers:
    """An axis of numbers from `low` to `high`; `form` is a number format of Python and of d3."""

    title: str = ""
    low: float = 0.0
    high: float = 1.0
    ticks: int = 5
    form: str = ""


@dataclass(frozen=True)
class Names:
    """An axis of names, in this order; for x they stand above the picture."""

    values: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Layer:
    """Marks of one kind; x, y, x2 and y2 are fields of the records.

    `style` is named as Vega-Lite names it: strokeWidth, strokeDash, interpolate, align, dx, dy,
    fontSize, fontWeight.
    """

    mark: Literal["area", "line", "point", "rect", "rule", "text"]
    records: Records
    x: str = "x"
    y: str = "y"
    x2: str = ""
    y2: str = ""
    color: str | Field = PALETTE[0]
    opacity: float | Field = 1.0
    size: float | Field = 42.0
    text: str = ""
    style: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """Layers, the first at the back. `colours` are those of a field's values, with a legend."""

    layers: Sequence[Layer]
    x: Numbers | Names
    y: Numbers | Names
    title: str = ""
    width: int = 340
    height: int = 300
    colours: Mapping[str, str] = field(default_factory=dict)

    def svg(self, *, says: str) -> str:
        """Return the picture; `says` is for screen readers, after the title."""
        from heldout.drawing.svg import drawn

        return drawn(self, says=says)

    def altair(self) -> "LayerChart":
        """Return the same as an Altair chart."""
        try:
            import altair as alt
        except ImportError:
            raise MissingDependency(
                "A chart to change further requires matplotlib or Altair. Install one with: "
                "pip install 'heldout[plots]'. Pages and .svg files need neither."
            ) from None
        return alt.LayerChart.from_dict(self.vega_lite())

    def plot(self, ax: Any = None) -> "Display | LayerChart":
        """Draw it by matplotlib where it is installed (on `ax`, or new axes), else by Altair."""
        return Display(self).plot(ax) if ax is not None or installed() else self.altair()

    def vega_lite(self) -> dict[str, Any]:
        """Return the same as a Vega-Lite specification."""
        return {
            **({"title": self.title} if self.title else {}),
            "width": self.width,
            "height": self.height,
            "layer": [self._layer(layer) for layer in self.layers],
        }

    def _layer(self, layer: Layer) -> dict[str, Any]:
        channels: dict[str, Any] = {
            "x": {"field": layer.x, **_axis(self.x, top=True)},
            "y": {"field": layer.y, **_axis(self.y)},
        }
        for name, other in (("x2", layer.x2), ("y2", layer.y2), ("text", layer.text)):
            if other:
                channels[name] = {"field": other}
        mark: dict[str, Any] = {"type": layer.mark, **layer.style}
        for name, value in (
            ("color", layer.color), ("opacity", layer.opacity), ("size", layer.size)
        ):  # fmt: skip
            if isinstance(value, Field):
                kind = "nominal" if name == "color" else "quantitative"
                channels[name] = {"field": value.name, "type": kind, "scale": None, "legend": None}
            elif name != "size" or layer.mark == "point":
                mark[name] = value
        if self.colours and isinstance(layer.color, Field):
            scale = {"domain": list(self.colours), "range": list(self.colours.values())}
            channels["color"] |= {"scale": scale, "legend": {"orient": "top", "title": None}}
        if layer.mark == "line":
            channels["order"] = {"field": "order", "type": "quantitative"}
        if layer.mark == "point":
            mark["filled"] = True
        records = [{"order": k, **record} for k, record in enumerate(layer.records)]
        return {"data": {"values": records}, "mark": mark, "encoding": channels}


def _axis(axis: Numbers | Names, *, top: bool = False) -> dict[str, Any]:
    title = axis.title or None
    if isinstance(axis, Names):
        place = {"axis": {"orient": "top", "labelAngle": 0}} if top else {}
        return {"type": "nominal", "title": title, "sort": list(axis.values), **place}
    shown = {"tickCount": axis.ticks, **({"format": axis.form} if axis.form else {})}
    scale = {"domain": [axis.low, axis.high], "nice": False}
    return {"type": "quantitative", "title": title, "scale": scale, "axis": shown}


def records(**columns: Any) -> list[dict[str, Any]]:
    """Return columns as the records of a chart; numpy's numbers become Python's.

    >>> records(x=[0.5, 1.0], name=["a", "b"])
    [{'x': 0.5, 'name': 'a'}, {'x': 1.0, 'name': 'b'}]
    """
    listed = [
        column.tolist() if hasattr(column, "tolist") else column for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]


# --- on matplotlib's axes, for those who have it installed ---

_STEPS = {"step-after": "post", "step-before": "pre", "step": "mid"}
_AREA_OF_POINT = 0.6  # Vega-Lite's square pixels in matplotlib's square points


class Display:
    """A picture on matplotlib: `ax_` and `figure_`, as scikit-learn's displays have them.

    What an Altair chart can do it can as well: `.save("roc.html")`, `.to_dict()`.
    """

    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        self.ax_: Any = None
        self.figure_: Any = None

    def plot(self, ax: Any = None) -> "Display":
        """Draw on these axes, or on new ones."""
        if ax is None:
            if not installed():
                raise MissingDependency(
                    "A plot on axes requires matplotlib: pip install matplotlib."
                )
            from matplotlib import pyplot

            size = self._chart.width / 72, self._chart.height / 72
            ax = pyplot.subplots(figsize=size)[1]
        _draw_chart(ax, self._chart)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._chart.altair(), name)


def installed() -> bool:
    """Return whether matplotlib is there."""
    return find_spec("matplotlib") is not None


def _draw_chart(ax: Any, chart: Chart) -> None:
    """Put the chart's layers on the axes."""
    for layer in chart.layers:
        _draw_layer(ax, layer)
    for name, axis in (("x", chart.x), ("y", chart.y)):
        if isinstance(axis, Names):
            getattr(ax, f"set_{name}ticks")(range(len(axis.values)), axis.values)
        else:
            getattr(ax, f"set_{name}lim")(axis.low, axis.high)
        getattr(ax, f"set_{name}label")(axis.title)
    if isinstance(chart.y, Names):
        ax.invert_yaxis()
    ax.set_title(chart.title)
    if chart.colours and any(isinstance(layer.color, Field) for layer in chart.layers):
        for name, colour in chart.colours.items():
            ax.plot([], [], color=colour, label=name)
        ax.legend()


def _draw_layer(ax: Any, layer: Layer) -> None:
    def column(name: str) -> list[Any]:
        return [record[name] for record in layer.records]

    x, y = column(layer.x), column(layer.y)
    colour = column(layer.color.name) if isinstance(layer.color, Field) else layer.color
    alpha = column(layer.opacity.name) if isinstance(layer.opacity, Field) else layer.opacity
    width = layer.style.get("strokeWidth", 2)
    if layer.mark == "area":
        step = _STEPS.get(layer.style.get("interpolate", ""))
        ends = column(layer.y2) if layer.y2 else 0
        ax.fill_between(x, y, ends, color=colour, alpha=alpha, step=step, linewidth=0)
    elif layer.mark == "line":
        style = "--" if "strokeDash" in layer.style else "-"
        ax.plot(x, y, style, color=colour, alpha=alpha, linewidth=width)
    elif layer.mark == "point":
        size = column(layer.size.name) if isinstance(layer.size, Field) else layer.size
        area = [_AREA_OF_POINT * number for number in size] if isinstance(size, list) else size
        ax.scatter(x, y, s=area, c=colour, alpha=alpha, zorder=3)
    elif layer.mark == "text":
        place = {"textcoords": "offset points", "ha": layer.style.get("align", "center")}
        inks = colour if isinstance(colour, list) else [colour] * len(x)
        offset = layer.style.get("dx", 0), -layer.style.get("dy", 0)
        for text, at, ink in zip(column(layer.text), zip(x, y, strict=True), inks, strict=True):
            size = 0.8 * layer.style.get("fontSize", 11)
            ax.annotate(text, at, xytext=offset, color=ink, fontsize=size, va="center", **place)
    elif layer.mark == "rect":
        _rectangles(ax, layer, colour, alpha)
    elif layer.x2:
        ax.hlines(y, x, column(layer.x2), colors=colour, alpha=alpha, linewidth=width)
    else:
        ends = column(layer.y2) if layer.y2 else y
        ax.vlines(x, y, ends, colors=colour, alpha=alpha, linewidth=width)


def _rectangles(ax: Any, layer: Layer, colour: Any, alpha: Any) -> None:
    """Draw them between two fields, or as a cell around each name."""
    from matplotlib.patches import Rectangle

    ax.scatter(*([record[name] for record in layer.records] for name in (layer.x, layer.y)), s=0)
    for at, record in enumerate(layer.records):
        (left, width), (low, height) = (
            (record[name], record[other] - record[name])
            if other
            else (_number(axis, record[name]) - 0.5, 1)
            for axis, name, other in (
                (ax.xaxis, layer.x, layer.x2),
                (ax.yaxis, layer.y, layer.y2),
            )
        )
        paint = colour[at] if isinstance(colour, list) else colour
        seen = alpha[at] if isinstance(alpha, list) else alpha
        ax.add_patch(Rectangle((left, low), width, height, color=paint, alpha=seen, linewidth=0))


def _number(axis: Any, name: Any) -> float:
    return float(axis.convert_units(name))
