"""From a chart to an SVG picture: no script, no font file, nothing from elsewhere, and quickly.

A browser's renderer takes half a second of processor time before its first picture; these
pictures are simple enough to be written down. Text stays text, in a font of the reader's system.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from heldout.arguments import visible
from heldout.drawing.chart import FONT, GRID, INK, MUTED, Chart, Field, Layer, Names, Numbers

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
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for record in layer.records:
            groups.setdefault(self._colour(layer, record), []).append(record)
        return list(groups.items())

    def _colour(self, layer: Layer, record: Mapping[str, Any]) -> str:
        value = str(_value(layer.color, record))
        return self.chart.colours.get(value, value)

    def _stroke(self, layer: Layer, rows: Sequence[Mapping[str, Any]], colour: str) -> str:
        steps = layer.style.get("interpolate") == "step-after"
        xs = [self.x.at(row[layer.x]) for row in rows]
        line = _path(xs, [self.y.at(row[layer.y]) for row in rows], steps=steps)
        if layer.mark == "line":
            return f'<path d="M{line}" fill="none"{_pen(layer, colour)}/>'
        foot = [self.y.at(row[layer.y2]) for row in rows] if layer.y2 else [self.y.at(0)] * len(xs)
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
