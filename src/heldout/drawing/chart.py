"""A chart as plain data: layers of marks on two axes.

    roc = Chart([Layer("line", records, x="fpr", y="tpr")], x=Numbers("False positive rate"), ...)
    roc.svg(says="True against false positive rate.")
    roc.plot(ax=None)       # on matplotlib's axes where it is installed
    roc.altair()            # to change it further, or to show it with its own tools

The picture is drawn by `svg.py`, in milliseconds; Vega-Lite and matplotlib are for those who want
the chart itself.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from heldout.arguments import visible
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


# From a chart to an SVG picture: no script, no font file, nothing from elsewhere, and quickly.
LETTER: Final = 0.6  # of the size of a font: the width of a letter, in a wide font
SMALL, MIDDLE, LARGE = 11, 12, 14
LONG_NAME: Final = 16  # letters; longer names take two lines
SQUARE: Final = 1.5  # half the space between two bands


def drawn(chart: Chart, *, says: str) -> str:
    """The picture as text that stands alone or inside a page."""
    label = f"{chart.title}. {says}" if chart.title else says
    return _picture(*_panel(chart), title=chart.title or says, label=label, says=says)


def side_by_side(charts: Sequence[Chart], *, across: int, title: str, says: str) -> str:
    """Charts as one picture, so many in a row."""
    panels = [_panel(chart) for chart in charts]
    width, height = max(wide for wide, _, _ in panels), max(high for _, high, _ in panels)
    across = min(across, len(panels))
    places = [(width * (k % across), height * (k // across)) for k in range(len(panels))]
    body = "".join(
        f'<g transform="translate({_short(x)},{_short(y)})">{inner}</g>'
        for (x, y), (_, _, inner) in zip(places, panels, strict=True)
    )
    size = width * across, height * math.ceil(len(panels) / across)
    return _picture(*size, body, title=title, label=f"{title}. {says}", says=says)


def _panel(chart: Chart) -> tuple[float, float, str]:
    """Return how wide and how high a chart is, and what it is made of."""
    frame = _Frame(chart)
    body = "".join([*frame.grid(), *(frame.layer(layer) for layer in chart.layers), *frame.words()])
    placed = f'<g transform="translate({_short(frame.left)},{_short(frame.top)})">{body}</g>'
    return frame.width, frame.height, placed


def _picture(width: float, height: float, body: str, *, title: str, label: str, says: str) -> str:
    # A name may hold characters that XML does not; they are written as escapes.
    return visible(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(label)}" '
        f'font-family="{FONT}" font-size="{SMALL}">'
        f"<title>{escape(title)}</title><desc>{escape(says)}</desc>"
        f'<rect width="100%" height="100%" fill="white"/>{body}</svg>'
    )


class _Scale:
    """From values to pixels along one axis, and what is written beside it."""

    def __init__(self, axis: Numbers | Names, length: float, *, flipped: bool) -> None:
        self.axis, self.length, self._flipped = axis, length, flipped
        if isinstance(axis, Names):
            self._place: dict[str, int] = {name: k for k, name in enumerate(axis.values)}
            self.band = length / max(len(axis.values), 1)
            self.labels = [(self.at(name), name) for name in axis.values]
        else:
            self._span = (axis.high - axis.low) or 1.0
            self.band = 0.0
            ticks, label = _ticks(axis, None if flipped else length)
            self.labels = [(self.at(tick), label(tick)) for tick in ticks]

    def at(self, value: Any) -> float:
        """Where a value lies; one beyond the axis lies at its end."""
        if isinstance(self.axis, Names):
            return (self._place[value] + 0.5) * self.band
        share: float = min(max((value - self.axis.low) / self._span, 0.0), 1.0)
        return self.length * (1 - share if self._flipped else share)

    def along(self, values: Iterable[Any]) -> list[float]:
        """Where all of these lie."""
        if isinstance(self.axis, Names):
            return [self.at(value) for value in values]
        low, span, length = self.axis.low, self._span, self.length
        shares = [min(max((value - low) / span, 0.0), 1.0) for value in values]
        return [length * (1 - share if self._flipped else share) for share in shares]

    def extent(self, record: Mapping[str, Any], first: str, second: str) -> tuple[float, float]:
        """From where to where: two fields, or the band of a name."""
        if second:
            ends = self.at(record[first]), self.at(record[second])
            return min(ends), max(ends)
        half = max(self.band / 2 - SQUARE, 0.0)
        return self.at(record[first]) - half, self.at(record[first]) + half


def _ticks(axis: Numbers, room: float | None) -> tuple[list[float], Callable[[float], str]]:
    """Round numbers, so many that their labels have room beside each other."""
    span = (axis.high - axis.low) or 1.0
    exponent = math.floor(math.log10(span / axis.ticks)) if span > 0 else 0
    apart: tuple[list[float], Callable[[float], str]] = [axis.low], _label(axis.form, span)
    for k in range(12):
        step = (1, 2, 5)[k % 3] * 10.0 ** (exponent + k // 3)
        first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
        ticks = [step * place for place in range(first, last + 1)]
        label = _label(axis.form, step)
        texts = [label(tick) for tick in ticks]
        if len(set(texts)) > 1:
            apart = [ticks[0], ticks[-1]], label  # what is left where no more have room
        room_for = room is None or max(map(_width, texts), default=0) + 8 <= room * step / span
        if len(ticks) <= 1.6 * axis.ticks and len(set(texts)) == len(texts) and room_for:
            break
    return (ticks, label) if len(ticks) > 1 else apart


def _label(form: str, step: float) -> Callable[[float], str]:
    if form:
        return lambda value: format(value + 0.0, form)
    if not 1e-6 < step < 1e12:
        return lambda value: f"{value:.3g}"
    if step >= 1e6:
        return lambda value: f"{value / 1e6:,.0f}M"
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return lambda value: f"{round(value, places) + 0.0:,.{places}f}"


class _Frame:
    """Where the panel stands, and everything on and around it."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.x = _Scale(chart.x, chart.width, flipped=False)
        self.y = _Scale(chart.y, chart.height, flipped=True)
        beside = max(
            (_width(line) for _, name in self.y.labels for line in _lines(name)), default=0
        )
        self._label_room = beside + 8
        self.left = self._label_room + (24 if chart.y.title else 2)
        above = isinstance(chart.x, Names)
        self.top = 8.0 + (22 if chart.title else 0) + (20 if chart.colours else 0)
        self.top += 18 if above else 0
        below = (0 if above else 18) + (20 if chart.x.title else 0)
        texts = [e for e in chart.layers if e.mark == "text" and e.style.get("align") == "left"]
        beside = max((len(str(row[e.text])) for e in texts for row in e.records), default=0)
        last = max((_width(name) / 2 for _, name in self.x.labels[-1:]), default=0)
        room = max(60, 16 + _width("0" * beside, MIDDLE)) if texts else 6
        self.width = self.left + chart.width + max(last, room)
        self.height = self.top + chart.height + below + 6

    def grid(self) -> Iterator[str]:
        """Lines at the ticks, the axes and their labels."""
        wide, high = self.chart.width, self.chart.height
        lines = {True: "", False: ""}
        if not isinstance(self.chart.x, Names):
            lines[True] += "".join(f"M{_short(x)},0V{high}" for x, _ in self.x.labels)
        if not isinstance(self.chart.y, Names):
            lines[True] += "".join(f"M0,{_short(y)}H{wide}" for y, _ in self.y.labels)
            lines[False] += f"M0,0V{high}"
        if not isinstance(self.chart.x, Names):
            lines[False] += f"M0,{high}H{wide}"
        for grid, path in lines.items():
            if path:
                yield f'<path d="{path}" stroke="{GRID if grid else MUTED}" fill="none"/>'

    def words(self) -> Iterator[str]:
        """Labels, titles and the legend."""
        chart, wide, high = self.chart, self.chart.width, self.chart.height
        above = isinstance(chart.x, Names)
        for x, label in self.x.labels:
            yield _text(x, -8 if above else high + 16, label, anchor="middle")
        for y, label in self.y.labels:
            parts = _lines(label)
            for k, part in enumerate(parts):
                yield _text(-8, y + 4 + 12 * (k - (len(parts) - 1) / 2), part, anchor="end")
        if chart.x.title:
            yield _text(wide / 2, high + 35, chart.x.title, size=MIDDLE, anchor="middle")
        if chart.y.title:
            x, y = -self._label_room - 10, high / 2
            turned = f' transform="rotate(-90 {_short(x)} {_short(y)})"'
            yield _text(x, y, chart.y.title, size=MIDDLE, anchor="middle", more=turned)
        if chart.title:
            yield _text(0, 16 - self.top, chart.title, size=LARGE, weight=600)
        place = 0.0
        for name, colour in chart.colours.items():
            yield f'<rect x="{_short(place)}" y="-18" width="10" height="10" fill="{colour}"/>'
            yield _text(place + 15, -9, name)
            place += 30 + _width(name)

    def layer(self, layer: Layer) -> str:
        """All marks of a layer; lines and areas are one mark for each colour."""
        if layer.mark in ("line", "area"):
            return "".join(
                self._stroke(layer, rows, colour) for colour, rows in self._by_colour(layer)
            )
        return "".join(self._mark(layer, record) for record in layer.records)

    def _by_colour(self, layer: Layer) -> list[tuple[str, list[Mapping[str, Any]]]]:
        if not isinstance(layer.color, Field) and layer.records:
            return [(self._colour(layer, layer.records[0]), list(layer.records))]
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for record in layer.records:
            groups.setdefault(self._colour(layer, record), []).append(record)
        return list(groups.items())

    def _colour(self, layer: Layer, record: Mapping[str, Any]) -> str:
        value = str(_value(layer.color, record))
        return self.chart.colours.get(value, value)

    def _stroke(self, layer: Layer, rows: Sequence[Mapping[str, Any]], colour: str) -> str:
        steps = layer.style.get("interpolate") == "step-after"
        xs = self.x.along(row[layer.x] for row in rows)
        line = _path(xs, self.y.along(row[layer.y] for row in rows), steps=steps)
        if layer.mark == "line":
            return f'<path d="M{line}" fill="none"{_pen(layer, colour)}/>'
        foot = self.y.along(row[layer.y2] if layer.y2 else 0 for row in rows)
        back = _path(xs, foot, steps=steps, backwards=True)
        return f'<path d="M{line}L{back}Z" fill="{colour}" fill-opacity="{layer.opacity}"/>'

    def _mark(self, layer: Layer, record: Mapping[str, Any]) -> str:
        colour, opacity = self._colour(layer, record), float(_value(layer.opacity, record))
        faint = "" if opacity == 1 else f' fill-opacity="{opacity:.3g}"'
        x, y = self.x.at(record[layer.x]), self.y.at(record[layer.y])
        if layer.mark == "text":
            style = layer.style
            x, y = x + style.get("dx", 0), y + style.get("dy", 0) + 4
            anchor = {"left": "start", "right": "end"}.get(style.get("align", ""), "middle")
            return _text(
                x,
                y,
                str(record[layer.text]),
                size=style.get("fontSize", SMALL),
                weight=style.get("fontWeight", 400),
                anchor=anchor,
                colour=colour,
            )
        if layer.mark == "point":
            radius = math.sqrt(float(_value(layer.size, record)) / math.pi)
            place = f'cx="{_short(x)}" cy="{_short(y)}" r="{_short(radius)}"'
            return f'<circle {place} fill="{colour}"{faint}/>'
        if layer.mark == "rule":
            left, right = self.x.extent(record, layer.x, layer.x2) if layer.x2 else (x, x)
            high, low = self.y.extent(record, layer.y, layer.y2) if layer.y2 else (y, y)
            path = f"M{_short(left)},{_short(high)}L{_short(right)},{_short(low)}"
            return f'<path d="{path}"{_pen(layer, colour, opacity)}/>'
        (left, right), (high, low) = (
            self.x.extent(record, layer.x, layer.x2),
            self.y.extent(record, layer.y, layer.y2),
        )
        if opacity <= 0 or right <= left or low <= high:
            return ""
        place = f'x="{_short(left)}" y="{_short(high)}"'
        size = f'width="{_short(right - left)}" height="{_short(low - high)}"'
        round_ = f' rx="{layer.style["cornerRadius"]}"' if "cornerRadius" in layer.style else ""
        return f'<rect {place} {size}{round_} fill="{colour}"{faint}/>'


def _value(given: str | float | Field, record: Mapping[str, Any]) -> str | float:
    value: str | float = record[given.name] if isinstance(given, Field) else given
    return value


def _pen(layer: Layer, colour: str, opacity: float = 1.0) -> str:
    dash = layer.style.get("strokeDash")
    dashed = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
    faint = f' stroke-opacity="{opacity:.3g}"' if opacity != 1 else ""
    return f' stroke="{colour}" stroke-width="{layer.style.get("strokeWidth", 2)}"{dashed}{faint}'


def _path(xs: Sequence[float], ys: Sequence[float], *, steps: bool, backwards: bool = False) -> str:
    points = list(zip(xs, ys, strict=True))
    if steps:  # level until the next x
        corners = [(x, points[k][1]) for k, (x, _) in enumerate(points[1:])]
        points = [
            point for pair in zip(points, [*corners, points[-1]], strict=True) for point in pair
        ]
    ordered = points[::-1] if backwards else points
    return "L".join(f"{_short(x)},{_short(y)}" for x, y in ordered)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: float = SMALL,
    weight: int = 400,
    anchor: str = "start",
    colour: str = INK,
    more: str = "",
) -> str:
    style = "" if size == SMALL else f' font-size="{size}"'
    style += "" if weight == 400 else f' font-weight="{weight}"'
    style += "" if anchor == "start" else f' text-anchor="{anchor}"'
    place = f'x="{_short(x)}" y="{_short(y)}"'
    return f'<text {place} fill="{colour}"{style}{more}>{escape(text)}</text>'


def _lines(name: str) -> list[str]:
    """
    >>> _lines("negative predictive value"), _lines("recall")
    (['negative', 'predictive value'], ['recall'])
    """
    return name.split(" ", 1) if len(name) > LONG_NAME and " " in name else [name]


def _width(text: str, size: float = SMALL) -> float:
    return len(text) * size * LETTER


def _short(number: float) -> str:
    """
    >>> _short(12.04), _short(-0.01), _short(3.25)
    ('12', '0', '3.2')
    """
    text = f"{number:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")
