"""From an Altair chart to an SVG picture in the house style: no network, no script, no font file.

    from heldout_papers.altair_svg import to_svg
    svg = to_svg(chart, title="ROC curve", description="True against false positive rate.")

Altair and vl-convert are imported when a picture is drawn. The picture carries its title and
description for screen readers, its text stays text, and fonts are those of the reader's system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape, unescape
from textwrap import wrap
from typing import Any

from heldout.arguments import visible
from heldout.drawing.chart import FONT, GRID, INK, MUTED, PALETTE

_SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')
_LEGEND_LABEL = re.compile(
    r'role-legend-label"[^>]*><text[^>]*font-size="([0-9.]+)px"[^>]*>([^<]*)<'
)
_PANEL_TITLE = re.compile(
    r'role-(?:title|legend-title)-?[a-z]*"[^>]*><text[^>]*font-size="([0-9.]+)px"[^>]*>([^<]*)<'
)
_LETTER = 0.55  # of the size of a font: the mean width of a letter
_WIDER = 1 / 6
_TITLE = 15
_TICKS = 5
_ROWS = ("data", "datasets")


def house_theme() -> dict[str, Any]:
    """The Vega-Lite `config` of every picture."""
    text = {"font": FONT, "color": INK}
    labels = {"labelFont": FONT, "titleFont": FONT, "labelColor": INK, "titleColor": INK}
    return {
        "background": "white",
        "font": FONT,
        "view": {"continuousWidth": 360, "continuousHeight": 260, "stroke": None},
        "title": {**text, "fontSize": 12, "fontWeight": 600, "anchor": "start", "offset": 8},
        "axis": {
            **labels,
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 9,  # some fonts are wider than the one that labels are measured in
            "labelFlush": False,
            "gridColor": GRID,
            "domainColor": MUTED,
            "tickColor": MUTED,
        },
        "legend": {**labels, "labelFontSize": 11, "titleFontSize": 11, "symbolStrokeWidth": 2},
        "header": {**labels, "labelFontSize": 12, "titleFontSize": 12, "labelFontWeight": 600},
        "line": {"strokeWidth": 2, "color": PALETTE[0]},
        "point": {"size": 42, "filled": True, "color": PALETTE[0]},
        "rule": {"color": MUTED},
        "area": {"color": PALETTE[0]},
        "bar": {"color": PALETTE[0]},
        # The first colour is heldout's own: other series have it only where a scale says so.
        "range": {"category": [*PALETTE[1:], MUTED]},
    }


def specification(chart: Any) -> dict[str, Any]:
    """A chart (Altair object or Vega-Lite mapping) as a Vega-Lite mapping in the house style."""
    spec: dict[str, Any] = _visible(chart if isinstance(chart, Mapping) else chart.to_dict())
    spec = _few_ticks(spec)
    return {**spec, "config": _merge(house_theme(), _own_config(spec))}


def to_svg(chart: Any, *, title: str, description: str = "") -> str:
    """The picture as an SVG text that stands alone or inside a page.

    A screen reader says `title` and `description`. The title is drawn too, unless the chart has
    its own, in as many lines as the picture is wide.
    """
    spec = specification(chart)
    svg = _with_room(_drawn(spec))
    size = _SIZE.search(svg)
    width = float(size[1]) if size else 0.0
    own = spec.get("title", title)
    words = visible(own if isinstance(own, str) else " ".join(_lines(own)), allowed="\n")
    if words:
        lines = wrap(words, max(20, int(width / (_TITLE * _LETTER * (1 + _WIDER)))))
        spec["title"] = {"text": lines, "fontSize": _TITLE, "offset": 14, "anchor": "start"}
        svg = _with_room(_drawn(spec))
    return _with_aria(svg, title, description)


def _drawn(spec: dict[str, Any]) -> str:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec, vl_version=_vegalite_version(), allowed_base_urls=[])
    # Vega reads an escape in a label as the character that it stands for, and draws that.
    return visible(svg, allowed="\n\t")


def _lines(title: Mapping[str, Any]) -> list[str]:
    said = title.get("text", "")
    return [said] if isinstance(said, str) else list(said)


def to_png(chart: Any, *, scale: float = 2.0) -> bytes:
    """The picture as PNG, for places that cannot show SVG."""
    import vl_convert

    png: bytes = vl_convert.vegalite_to_png(
        specification(chart),
        vl_version=_vegalite_version(),
        allowed_base_urls=[],
        scale=scale,
    )
    return png


def rows(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Records as chart data, without a data frame library: `alt.Chart(rows(...))`.

    A plain mapping: Altair checks every record of its own data class against a schema, slowly.
    """
    return {"values": [dict(record) for record in records]}


@cache
def _vegalite_version() -> str:
    """The newest Vega-Lite that vl-convert holds and that is not newer than Altair's."""
    import altair as alt
    import vl_convert

    def order(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.lstrip("v").split(".")[:2])

    known = sorted(vl_convert.get_vegalite_versions(), key=order)
    usable = [version for version in known if order(version) <= order(alt.SCHEMA_VERSION)]
    return str((usable or known)[-1])


def _visible(part: Any) -> Any:
    """With every text as people can see it; some characters end the library's process."""
    if isinstance(part, str):
        return visible(part, allowed="\n")
    if isinstance(part, Mapping):
        return {_visible(key): _visible(value) for key, value in part.items()}
    return [_visible(each) for each in part] if isinstance(part, list | tuple) else part


def _few_ticks(part: Any) -> Any:
    """About five ticks on each axis of numbers that says nothing else, the last at its end.

    With a tick at the end of every axis the titles of panels stand at one height.
    """
    if isinstance(part, list):
        return [_few_ticks(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    found = {key: value if key in _ROWS else _few_ticks(value) for key, value in part.items()}
    for name in ("x", "y"):
        channel = dict((found.get("encoding") or {}).get(name) or {})
        if channel.get("type") == "quantitative" and channel.get("axis", {}) is not None:
            scale = dict(channel.get("scale") or {})
            if scale.get("type", "linear") == "linear":
                if "domain" not in scale and scale.get("nice") is not False:
                    scale["nice"] = _TICKS
                channel["axis"] = {"tickCount": _TICKS, **channel.get("axis", {})}
                channel["scale"] = scale
                found["encoding"] = {**found["encoding"], name: channel}
    return found


def _own_config(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the chart itself configured, without the defaults that Altair writes into a chart."""
    own = dict(spec.get("config", {}))
    if own.get("view") == {"continuousWidth": 300, "continuousHeight": 300}:
        del own["view"]
    return own


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = (
            _merge(below, value)
            if isinstance(below, dict) and isinstance(value, Mapping)
            else value
        )
    return merged


def _with_room(svg: str) -> str:
    """Room at the right for a legend in a reader's font, which may be wider than the one measured.

    Wide fonts (DejaVu Sans, Verdana) take up to a seventh more, and the end of a label would be
    cut off where the picture stands alone.
    """
    labels = _LEGEND_LABEL.findall(svg) + _PANEL_TITLE.findall(svg)
    size = _SIZE.search(svg)
    if not labels or size is None:
        return svg
    more = max(len(unescape(text)) * float(font) for font, text in labels) * _LETTER * _WIDER
    wide, high = (int(float(each)) for each in size.groups())
    before = f'width="{size[1]}" height="{size[2]}"'
    after = f'width="{wide + round(more)}" height="{high}"'
    return svg.replace(before, after, 2).replace(
        f'viewBox="0 0 {size[1]} {size[2]}"', f'viewBox="0 0 {wide + round(more)} {high}"', 1
    )


def _with_aria(svg: str, title: str, description: str) -> str:
    head, body = svg.split(">", 1)
    title, description = visible(title), visible(description)
    label = f"{title}. {description}" if description else title
    said = f"<title>{escape(title)}</title>"
    if description:
        said += f"<desc>{escape(description)}</desc>"
    return f'{head} role="img" aria-label="{escape(label, quote=True)}">{said}{body}'
