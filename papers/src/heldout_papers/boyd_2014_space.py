"""Boyd, 2014, figures 3.1 to 3.4: the unachievable region, its area, and F scores over it."""

from __future__ import annotations

from typing import Any

import numpy as np

from heldout.drawing.chart import PALETTE
from heldout.precision_recall import f_score_contour, minimum_auc, minimum_precision
from heldout.precision_recall.estimators import NormalScores
from heldout.precision_recall.estimators import precision as binormal_precision
from heldout_papers.altair_svg import rows
from heldout_papers.pr_space import axis, space, words
from heldout_papers.registry import Claim, Context, Reproduction, figure

_PAPER = "boyd-2014"
_PREVALENCE = 0.33
_GRID = np.linspace(0.0, 1.0, 101)
_SIDE = {"width": 380, "height": 320}


@figure(paper=_PAPER, number="3.1", title="A curve, guessing, and the minimum curve")
def sample_curve(_: Context) -> Reproduction:
    """A good classifier, guessing and the worst ranking at prevalence 0.33."""
    import altair as alt

    inner = np.linspace(0.001, 0.999, 200)
    heights = binormal_precision(NormalScores(1.5, 1.0), _PREVALENCE, inner)
    table = [
        {
            "recall": float(r),
            "curve": float(p),
            "guessing": _PREVALENCE,
            "minimum": minimum_precision(recall=float(r), prevalence=_PREVALENCE),
        }
        for r, p in zip(inner, heights, strict=True)
    ]
    line = (
        alt.Chart(rows(table))
        .mark_line(color=PALETTE[0])
        .encode(x=axis("recall", "Recall"), y=axis("curve", "Precision"))
    )
    said = [(0.42, 0.86, "a classifier"), (0.12, 0.37, "guessing"), (0.62, 0.09, "unachievable")]
    chart = (space(_PREVALENCE) + line + words(said)).properties(
        title="The minimum curve, prevalence 0.33", **_SIDE
    )
    free = minimum_auc(prevalence=_PREVALENCE)
    return Reproduction(
        title="A precision-recall curve, guessing, and the minimum curve",
        table=table,
        charts=[chart],
        description="Precision over recall at prevalence 0.33, with the unachievable region.",
        notes=[f"At prevalence 0.33 an area of {free:.3f} comes for free."],
    )


@figure(paper=_PAPER, number="3.2", title="Minimum curves by prevalence")
def minimum_curves(_: Context) -> Reproduction:
    """The minimum curve at several prevalences."""
    import altair as alt

    table = [
        {
            "recall": float(r),
            "precision": float(p),
            "prevalence": f"{pi:g}",
        }
        for pi in (0.9, 0.75, 0.5, 0.25, 0.1, 0.05)
        for r, p in zip(
            _GRID, np.asarray(minimum_precision(recall=_GRID, prevalence=pi)), strict=True
        )
    ]
    chart = (
        alt.Chart(rows(table))
        .mark_line()
        .encode(
            x=axis("recall", "Recall"),
            y=axis("precision", "Precision"),
            color=alt.Color("prevalence:N", title="Prevalence", sort="descending"),
        )
        .properties(title="The more positives, the more comes for free", **_SIDE)
    )
    return Reproduction(
        title="Minimum precision-recall curves",
        table=table,
        charts=[chart],
        description="The lowest achievable precision at each recall, for six prevalences.",
    )


@figure(paper=_PAPER, number="3.3", title="Minimum area by prevalence and recall range")
def minimum_areas(_: Context) -> Reproduction:
    """The minimum area over [0, 1], [0.5, 1] and [0.8, 1], as it is and as a share."""
    import altair as alt

    ranges = ((0.0, 1.0), (0.5, 1.0), (0.8, 1.0))
    table = [
        {
            "prevalence": float(pi),
            "recall": f"{low:g} to {high:g}",
            "minimum_auc": (area := minimum_auc(prevalence=float(pi), recall=(low, high))),
            "share_of_maximum": area / (high - low),
        }
        for low, high in ranges
        for pi in _GRID
    ]

    def panel(field: str, title: str) -> Any:
        return (
            alt.Chart(rows(table))
            .mark_line()
            .encode(
                x=alt.X("prevalence:Q", title="Prevalence"),
                y=alt.Y(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("recall:N", title="Recall"),
            )
            .properties(width=300, height=260)
        )

    chart = alt.hconcat(
        panel("minimum_auc", "Minimum area"),
        panel("share_of_maximum", "Minimum area / maximum area"),
        title="The higher the recall, the more of the area is free",
    )
    return Reproduction(
        title="Minimum area under the precision-recall curve",
        table=table,
        charts=[chart],
        description="Minimum area over prevalence for three recall ranges, absolute and relative.",
        claims=[_ranges()],
    )


def _ranges() -> Claim:
    """Section 3.4: "the gender predicate's range is [0.31, 1.0], genre's [0.02, 1.0]"."""
    even, rare = (minimum_auc(prevalence=each) for each in (0.5, 0.05))
    return Claim(
        "The least AUCPR at prevalence 0.5 and 0.05",
        "0.31 and 0.02",
        f"{even:.3f} and {rare:.3f}",
        abs(even - 0.31) < 0.005 and abs(rare - 0.02) < 0.006,
    )


@figure(paper=_PAPER, number="3.4", title="F1 contours and the unachievable region")
def f_contours(_: Context) -> Reproduction:
    """Equal F1 can be a fine classifier (A) or the worst ranking (B)."""
    import altair as alt

    table = []
    for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        recall = np.geomspace(value / (2.0 - value), 1.0, 120)  # from where precision is 1
        heights = f_score_contour(recall, value=value)
        table += [
            {"f1": f"{value:.1f}", "recall": float(r), "precision": float(p)}
            for r, p in zip(recall, heights, strict=True)
            if np.isfinite(p)
        ]
    lines = (
        alt.Chart(rows(table))
        .mark_line(strokeWidth=1.2, color=PALETTE[0], opacity=0.75)
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), detail="f1:N")
    )
    ends = [row for row in table if row["recall"] == 1.0]
    labels = (
        alt.Chart(rows(ends))
        .mark_text(align="left", dx=4, color=PALETTE[0], fontSize=10)
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), text="f1:N")
    )
    # B is where the contour of 0.4 meets the minimum curve; A has the same F1 at precision 0.85.
    odds = (1.0 - _PREVALENCE) / _PREVALENCE
    b_recall = 0.4 * odds / (2.0 - 0.4) + 0.4 / (2.0 - 0.4)
    b = (b_recall, float(minimum_precision(recall=b_recall, prevalence=_PREVALENCE)))
    a = (0.4 * 0.85 / (2 * 0.85 - 0.4), 0.85)
    points = [{"name": name, "recall": r, "precision": p} for name, (r, p) in (("A", a), ("B", b))]
    marks = (
        alt.Chart(rows(points))
        .mark_point(color=PALETTE[1], size=70)
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"))
    )
    names = (
        alt.Chart(rows(points))
        .mark_text(dx=11, dy=-9, fontSize=14, fontWeight="bold", color=PALETTE[1])
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), text="name:N")
    )
    chart = (space(_PREVALENCE, guessing=False) + lines + labels + marks + names).properties(
        title="A and B have the same F1 of 0.4 (prevalence 0.33)", **_SIDE
    )
    return Reproduction(
        title="Contours of F1 in precision-recall space",
        table=[*table, *({"f1": "0.4", **point} for point in points)],
        charts=[chart],
        description="Contours of F1 with the unachievable region at prevalence 0.33.",
        notes=[f"A = ({a[0]:.2f}, {a[1]:.2f}) and B = ({b[0]:.2f}, {b[1]:.2f}) have F1 0.4."],
    )
