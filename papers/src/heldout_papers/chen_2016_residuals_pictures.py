"""Panels of residual plots and of similarities, for the figures of Chen et al., 2016."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heldout.drawing.chart import INK, PALETTE
from heldout_papers.altair_svg import rows
from heldout_papers.colours import scale

__all__ = ["histograms", "panel", "panels", "separations"]

SHOWN = 1_200
SIDE = {"width": 210, "height": 170}


def panel(
    title: str,
    predicted: Any,
    residuals: Any,
    *,
    span: tuple[Any, Any] | None = None,
    colour: str = PALETTE[0],
) -> Any:
    """One scatter; at most 1,200 points of it, evenly taken."""
    import altair as alt

    predicted, residuals = np.asarray(predicted, float), np.asarray(residuals, float)
    step = max(1, -(-predicted.size // SHOWN))
    records = [
        {"x": round(float(x), 4), "y": round(float(y), 4)}
        for x, y in zip(predicted[::step], residuals[::step], strict=True)
    ]
    scales = (
        [alt.Undefined, alt.Undefined]
        if span is None
        else [alt.Scale(domain=list(each), nice=False) for each in span]
    )
    x = alt.X("x:Q", title="Predicted value", scale=scales[0], axis=alt.Axis(tickCount=5))
    y = alt.Y("y:Q", title="Residual", scale=scales[1], axis=alt.Axis(tickCount=5))
    dots = (
        alt.Chart(rows(records))
        .mark_circle(size=7, opacity=0.5, color=colour, clip=True)
        .encode(x=x, y=y)
    )
    zero = (
        alt.Chart(rows([{"y": 0.0}]))
        .mark_rule(color=INK, strokeDash=[4, 3], strokeWidth=1, clip=True)
        .encode(y=y)
    )
    return alt.layer(dots, zero).properties(title=title, **SIDE)


def panels(drawn: Sequence[Any], *, columns: int = 3) -> Any:
    """Panels side by side, each with its own axes."""
    import altair as alt

    return alt.concat(*drawn, columns=columns).resolve_scale(x="independent", y="independent")


def histograms(found: Sequence[dict[str, Any]], *, groups: Sequence[str]) -> Any:
    """Similarities by kind of data: one panel a group, one curve a kind."""
    import altair as alt

    bins = 50
    drawn = []
    for group in groups:
        here = [row for row in found if row["group"] == group]
        records = []
        for kind in dict.fromkeys(row["kind"] for row in here):
            sample = next(row["similarities"] for row in here if row["kind"] == kind)
            heights, edges = np.histogram(sample, bins=bins, range=(0, 1))
            held = np.flatnonzero(heights)
            records += [
                {"similarity": float(edges[i]), "share": float(heights[i]) / len(sample),
                 "data": kind}
                for i in range(max(held[0] - 1, 0), min(held[-1] + 2, bins))
            ]  # fmt: skip
        drawn.append(
            alt.Chart(rows(records), title=group)
            .mark_area(opacity=0.45, interpolate="step-after", line=True)
            .encode(
                x=alt.X(
                    "similarity:Q",
                    title="Distance from the real ideal plot",
                    scale=alt.Scale(domain=[0, 1]),
                ),
                y=alt.Y("share:Q", title="Share of plots", stack=None),
                color=alt.Color("data:N", title=None, sort=["ideal"]),
            )
            .properties(**SIDE)
        )
    return alt.concat(*drawn, columns=2)


def separations(table: Sequence[dict[str, Any]], *, limit: float = 0.95) -> Any:
    """How far apart ideal and faulty data are, by rows times epsilon."""
    import altair as alt

    base = alt.Chart(rows(table))
    y = alt.Y("total variation:Q", title="Total variation", scale=alt.Scale(domain=[0, 1]))
    places = sorted({row["n epsilon"] for row in table})
    x = alt.X(
        "n epsilon:Q",
        title="Rows times epsilon",
        scale=alt.Scale(type="log", domain=[places[0], places[-1]], nice=False),
        axis=alt.Axis(values=places),
    )
    lines = base.mark_line(point=True).encode(
        x=x,
        y=y,
        color=alt.Color("method:N", title=None, scale=scale(row["method"] for row in table)),
        strokeDash=alt.StrokeDash("data:N", title=None, legend=alt.Legend(symbolType="stroke")),
    )
    mark = (
        alt.Chart(rows([{"limit": limit}]))
        .mark_rule(strokeDash=[4, 3])
        .encode(y=alt.Y("limit:Q", title="Total variation"))
    )
    return alt.layer(mark, lines).properties(width=320, height=220)
