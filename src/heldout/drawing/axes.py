"""The same charts on matplotlib's axes, for those who have it installed."""

from typing import TYPE_CHECKING, Any

from heldout.errors import MissingDependency

if TYPE_CHECKING:
    from heldout.drawing.chart import Chart, Layer

__all__ = ["Display", "drawn", "installed"]

_STEPS = {"step-after": "post", "step-before": "pre", "step": "mid"}
_AREA_OF_POINT = 0.6  # Vega-Lite's square pixels in matplotlib's square points


class Display:
    """A picture on matplotlib: `ax_` and `figure_`, as scikit-learn's displays have them.

    What an Altair chart can do it can as well: `.save("roc.html")`, `.to_dict()`.
    """

    def __init__(self, chart: "Chart") -> None:
        self._chart = chart
        self.ax_: Any = None
        self.figure_: Any = None

    def plot(self, ax: Any = None) -> "Display":
        """Draw on these axes, or on new ones."""
        self.ax_ = drawn(self._chart, ax)
        self.figure_ = self.ax_.figure
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._chart.altair(), name)


def installed() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def drawn(chart: "Chart", ax: Any = None) -> Any:
    """The axes with the chart's layers on them."""
    from heldout.drawing.chart import Field, Names

    if ax is None:
        if not installed():
            raise MissingDependency("A plot on axes requires matplotlib: pip install matplotlib.")
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(chart.width / 72, chart.height / 72))[1]
    for layer in chart.layers:
        _draw(ax, layer)
    for name, axis in (("x", chart.x), ("y", chart.y)):
        if isinstance(axis, Names):
            getattr(ax, f"set_{name}ticks")(range(len(axis.values)), axis.values)
        else:
            getattr(ax, f"set_{name}lim")(axis.low, axis.high)
        getattr(ax, f"set_{name}label")(axis.title)
    if isinstance(chart.y, Names):
        ax.invert_yaxis()
    ax.set_title(chart.title)
    if chart.colours and any(isinstance(each.color, Field) for each in chart.layers):
        for name, colour in chart.colours.items():
            ax.plot([], [], color=colour, label=name)
        ax.legend()
    return ax


def _draw(ax: Any, layer: "Layer") -> None:
    from heldout.drawing.chart import Field

    def column(name: str) -> list[Any]:
        return [each[name] for each in layer.records]

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
        area = [_AREA_OF_POINT * each for each in size] if isinstance(size, list) else size
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


def _rectangles(ax: Any, layer: "Layer", colour: Any, alpha: Any) -> None:
    """Between two fields, or a cell around each name."""
    from matplotlib.patches import Rectangle

    ax.scatter(*([each[name] for each in layer.records] for name in (layer.x, layer.y)), s=0)
    for at, each in enumerate(layer.records):
        (left, width), (low, height) = (
            (each[name], each[other] - each[name])
            if other
            else (_number(axis, each[name]) - 0.5, 1)
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
