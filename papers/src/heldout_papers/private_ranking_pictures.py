"""Pictures of private AUC and average precision: sensitivities, errors, histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from heldout.drawing.chart import INK, MUTED, PALETTE
from heldout_papers.altair_svg import rows
from heldout_papers.private_ranking import OURS, THEIRS

__all__ = [
    "FLOOR",
    "error_by_delta",
    "error_by_size",
    "histogram_rows",
    "histograms",
    "noise_lines",
    "sensitivity_lines",
]

Records = Sequence[dict[str, Any]]
_LABELS = [method.label for method in (*THEIRS, OURS)]
_COLOURS = [PALETTE[4], PALETTE[3], PALETTE[2], PALETTE[1], PALETTE[0]]
_LEAST, _MOST = 7e-4, 0.8
FLOOR = "local sensitivity (not private)"


def error_by_delta(table: Records, error: str, *, estimation: bool) -> Any:
    """The papers' own layout, with one column more for ours: a line for each size."""
    import altair as alt

    sizes = [f"{size:,}" for size in dict.fromkeys(row["n"] for row in table)]
    datas = list(dict.fromkeys(row["data"] for row in table))
    metric = table[0]["metric"]

    def panel(data: str, label: str, title: str) -> Any:
        here = [r for r in table if r["data"] == data and r["method"] == label]
        first, last = label == _LABELS[0], data == datas[-1]
        y = _error_axis(
            error, title=[data, f"{_short(error)} of {metric}"] if first else None, labels=first
        )
        colour = alt.Color("n:N", title="n = m", sort=sizes)
        lines = (
            alt.Chart(rows(_drawn(here, error)))
            .mark_line(clip=True, strokeWidth=1.8)
            .encode(x=_epsilon_axis(titled=last), y=y, color=colour)
        )
        layers = [lines]
        if estimation:
            held = [{"n": f"{r['n']:,}", "e": r["estimation error"]} for r in here]
            unique = [dict(pair) for pair in {tuple(r.items()) for r in held}]
            layers.append(
                alt.Chart(rows(unique))
                .mark_rule(strokeDash=[4, 3], strokeWidth=1.2)
                .encode(y=alt.Y("e:Q"), color=colour)
            )
        heading = title if data == datas[0] else ""
        return alt.layer(*layers).properties(width=135, height=150, title=heading)

    titles = {label: label.replace(" 2015", "") for label in _LABELS}
    return alt.vconcat(
        *(alt.hconcat(*(panel(data, label, titles[label]) for label in _LABELS)) for data in datas)
    ).configure_title(fontSize=12, anchor="middle", offset=6)


def error_by_size(table: Records, error: str, *, estimation: bool) -> Any:
    """The same numbers the other way: a panel for each size, a line for each method."""
    import altair as alt

    sizes = list(dict.fromkeys(row["n"] for row in table))
    datas = list(dict.fromkeys(row["data"] for row in table))
    metric = table[0]["metric"]
    colour = alt.Color(
        "method:N",
        title=None,
        scale=alt.Scale(domain=_LABELS, range=_COLOURS),
        legend=alt.Legend(labelLimit=220),
    )

    def panel(data: str, size: int) -> Any:
        here = [r for r in table if r["data"] == data and r["n"] == size]
        first, last = size == sizes[0], data == datas[-1]
        y = _error_axis(
            error, title=[data, f"{_short(error)} of {metric}"] if first else None, labels=first
        )
        lines = (
            alt.Chart(rows(_drawn(here, error)))
            .mark_line(clip=True)
            .encode(x=_epsilon_axis(titled=last), y=y, color=colour)
        )
        layers = [lines]
        if estimation:
            layers.append(
                alt.Chart(rows([{"e": here[0]["estimation error"]}]))
                .mark_rule(strokeDash=[4, 3], color=INK, strokeWidth=1.2)
                .encode(y=alt.Y("e:Q"))
            )
        heading = f"n = m = {size:,}" if data == datas[0] else ""
        return alt.layer(*layers).properties(width=165, height=170, title=heading)

    return alt.vconcat(
        *(alt.hconcat(*(panel(data, size) for size in sizes)) for data in datas)
    ).configure_title(fontSize=12, anchor="middle", offset=6)


def _drawn(table: Records, error: str) -> list[dict[str, Any]]:
    return [
        {"n": f"{r['n']:,}", "method": r["method"], "epsilon": r["epsilon"], "error": r[error]}
        for r in table
    ]


def _short(error: str) -> str:
    return {"mean absolute error": "MAE", "root mean square error": "RMSE"}[error]


def _epsilon_axis(*, titled: bool) -> Any:
    import altair as alt

    return alt.X(
        "epsilon:Q",
        title="Epsilon" if titled else None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(values=[0, 0.5, 1], labels=titled, labelFlush=True),
    )


def _error_axis(error: str, *, title: list[str] | None, labels: bool) -> Any:
    import altair as alt

    return alt.Y(
        "error:Q",
        title=title,
        scale=alt.Scale(type="log", domain=[_LEAST, _MOST], nice=False),
        axis=alt.Axis(values=[0.001, 0.01, 0.1], format="~g", labels=labels),
    )


def histogram_rows(
    drawn: Any, *, low: float, high: float, bins: int, **named: Any
) -> list[dict[str, Any]]:
    """Shares of the draws by bin; what lies beyond the ends is left out."""
    counts, edges = np.histogram(drawn, bins=bins, range=(low, high))
    return [
        {**named, "from": float(a), "to": float(b), "share": float(count / len(drawn))}
        for count, a, b in zip(counts, edges, edges[1:], strict=False)
    ]


def histograms(table: Records, truths: dict[str, float], *, columns: int, title: str) -> Any:
    """One panel a test set and metric: their draws and ours, and the value without noise."""
    import altair as alt

    labels = list(dict.fromkeys(row["method"] for row in table))
    panels = []
    for name, truth in truths.items():
        here = [row for row in table if row["panel"] == name and row["share"] > 0]
        low = min(row["from"] for row in table if row["panel"] == name)
        high = max(row["to"] for row in table if row["panel"] == name)
        x = alt.X(
            "from:Q",
            title=title,
            scale=alt.Scale(domain=[low, high], nice=False),
            axis=alt.Axis(tickCount=5),
        )
        bars = (
            alt.Chart(rows(here))
            .mark_bar(opacity=0.6, binSpacing=0)
            .encode(
                x=x,
                x2="to:Q",
                y=alt.Y("share:Q", title="Share of releases", stack=None),
                y2=alt.Y2Datum(0),
                color=alt.Color(
                    "method:N",
                    title=None,
                    scale=alt.Scale(domain=labels, range=[PALETTE[1], PALETTE[0]]),
                    legend=alt.Legend(labelLimit=220),
                ),
            )
        )
        rule = (
            alt.Chart(rows([{"truth": truth}]))
            .mark_rule(color=INK, strokeDash=[4, 3], strokeWidth=1.3)
            .encode(x=alt.X("truth:Q"))
        )
        panels.append(alt.layer(bars, rule).properties(width=290, height=150, title=name))
    return (
        alt.concat(*panels, columns=columns)
        .resolve_scale(x="independent", y="independent")
        .configure_title(fontSize=12)
    )


def sensitivity_lines(table: Records, *, x: str, curves: Sequence[str]) -> Any:
    """Smooth sensitivities by prevalence or number of positives, a line for each smoothing."""
    scale = {"domain": list(curves), "range": list(PALETTE[1 : len(curves) + 1])}
    return _lines(
        table, x, scale, title="Smooth sensitivity of AUC", y={"domain": [0, 1]}, values=None
    )


def noise_lines(table: Records, *, x: str) -> Any:
    """The median size of the noise of their two mechanisms, of ours, and the floor."""
    scale = {
        "domain": [_LABELS[0], _LABELS[3], _LABELS[4], FLOOR],
        "range": [_COLOURS[0], _COLOURS[3], _COLOURS[4], MUTED],
    }
    least = math.floor(math.log10(min(row["value"] for row in table)))
    values = [10.0**power for power in range(least, 1)]
    y = {"type": "log", "domain": [values[0], 1], "nice": False}
    return _lines(table, x, scale, title="Median size of the noise", y=y, values=values)


def _lines(
    table: Records, x: str, scale: Any, *, title: str, y: dict[str, Any], values: Any
) -> Any:
    import altair as alt

    return (
        alt.Chart(rows(table))
        .mark_line(strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X(f"{x}:Q", title=x.capitalize(), axis=alt.Axis(tickCount=5)),
            y=alt.Y(
                "value:Q",
                title=title,
                scale=alt.Scale(**y),
                axis=alt.Axis(values=values, format="~g") if values else alt.Axis(),
            ),
            color=alt.Color(
                "curve:N",
                title=None,
                scale=alt.Scale(**scale),
                legend=alt.Legend(labelLimit=240),
            ),
        )
    )
