"""A chart as plain data: layers of marks on two axes.

    roc = Chart([Layer("line", records, x="fpr", y="tpr")], x=Numbers("False positive rate"), ...)
    roc.figure(caption, says="True against false positive rate.").svg
    roc.plot(ax=None)       # on matplotlib's axes where it is installed
    roc.altair()            # to change it further, or to show it with its own tools

The picture is drawn by `svg.py`, in milliseconds; Vega-Lite is for those who want the chart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heldout.drawing.colours import PALETTE

__all__ = ["Chart", "Field", "Figure", "Layer", "Names", "Numbers", "records"]

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A picture with what is written under it."""

    svg: str
    caption: str


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
        """The picture; `says` is for screen readers, after the title."""
        from heldout.drawing.svg import drawn

        return drawn(self, says=says)

    def altair(self) -> Any:
        """The same as an Altair chart."""
        import altair as alt

        return alt.LayerChart.from_dict(self.vega_lite())

    def plot(self, ax: Any = None) -> Any:
        """Drawn by matplotlib where it is installed (on `ax`, or new axes), else by Altair."""
        from heldout.drawing.axes import Display, installed

        return Display(self).plot(ax) if ax is not None or installed() else self.altair()

    def vega_lite(self) -> dict[str, Any]:
        """The same as a Vega-Lite specification."""
        return {
            **({"title": self.title} if self.title else {}),
            "width": self.width,
            "height": self.height,
            "layer": [self._layer(each) for each in self.layers],
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
        records = [{"order": k, **each} for k, each in enumerate(layer.records)]
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
    """Columns as the records of a chart; numpy's numbers become Python's.

    >>> records(x=[0.5, 1.0], name=["a", "b"])
    [{'x': 0.5, 'name': 'a'}, {'x': 1.0, 'name': 'b'}]
    """
    listed = [each.tolist() if hasattr(each, "tolist") else each for each in columns.values()]
    return [dict(zip(columns, each, strict=True)) for each in zip(*listed, strict=True)]
