"""Boyd, 2014, figures 4.1 to 4.4: empirical points, what estimators draw, the simulated worlds."""

from __future__ import annotations

from typing import Any

import numpy as np

from heldout.drawing.chart import INK, PALETTE
from heldout.precision_recall import ESTIMATORS, curve
from heldout_papers.altair_svg import rows
from heldout_papers.pr_space import axis, path, space
from heldout_papers.registry import Context, Reproduction, figure
from heldout_papers.scenarios import SCENARIOS

_PAPER = "boyd-2014"
_POSITIVES = (0.95, 0.80, 0.75, 0.50, 0.15)
_NEGATIVES = (
    *(0.90, 0.85, 0.70, 0.65, 0.60, 0.55, 0.45, 0.40),
    *(0.35, 0.30, 0.25, 0.20, 0.10, 0.05, 0.00),
)
"""Table 4.1; its caption says 10 and 20 examples, its rows are 5 and 15."""
_LABELS = np.repeat([1, 0], [len(_POSITIVES), len(_NEGATIVES)])
_SCORES = np.array([*_POSITIVES, *_NEGATIVES])
_SEED = 2014


@figure(paper=_PAPER, number="4.1", title="Empirical points of Table 4.1")
def empirical_points(_: Context) -> Reproduction:
    """The points, guessing, and the unachievable region at prevalence 0.25."""
    c = curve(_LABELS, _SCORES)
    table = [
        {"threshold": float(t), "recall": float(r), "precision": float(p)}
        for t, r, p in zip(c.thresholds[1:], c.recall[1:], c.precision[1:], strict=True)
    ]
    chart = (space(c.prevalence) + _points(table)).properties(
        title="How should these points be joined?", width=380, height=320
    )
    return Reproduction(
        title="Empirical precision-recall points of Table 4.1",
        table=table,
        charts=[chart],
        description="Twenty points, 5 positives and 15 negatives.",
    )


@figure(paper=_PAPER, number="4.2", title="What each estimator draws")
def estimator_curves(_: Context) -> Reproduction:
    """The eight interpolations of the points of Table 4.1."""
    import altair as alt

    panels: list[Any] = []
    table: list[dict[str, Any]] = []
    areas: dict[str, float] = {}
    for name in ESTIMATORS:
        c = curve(_LABELS, _SCORES, estimator=name)
        areas[name] = c.auc
        drawn = [row for row in path(c) if name != "binormal" or 0 < row["recall"] < 1]
        table += [
            {"estimator": name, "recall": row["recall"], "precision": row["precision"]}
            for row in drawn
        ]
        points = [
            {"recall": float(r), "precision": float(p)}
            for r, p in zip(c.recall[1:], c.precision[1:], strict=True)
        ]
        line = (
            alt.Chart(rows(drawn))
            .mark_line(color=PALETTE[0])
            .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), order="k:Q")
        )
        panels.append(
            (space(c.prevalence, guessing=False) + line + _points(points, size=12)).properties(
                title=f"{name.replace('-', ' ')}: {c.auc:.3f}", width=190, height=150
            )
        )
    grid = alt.vconcat(*(alt.hconcat(*panels[k : k + 4]) for k in (0, 4)))
    return Reproduction(
        title="Point estimators as precision-recall curves",
        table=table,
        charts=[grid],
        description="Eight small panels, one an estimator, on the data of Table 4.1.",
        notes=["; ".join(f"{name} {area:.4f}" for name, area in areas.items())],
    )


@figure(paper=_PAPER, number="4.3", title="Densities of the simulated scores")
def densities(_: Context) -> Reproduction:
    """Score densities of positives and negatives in the three scenarios."""
    import altair as alt

    panels, table = [], []
    for world in SCENARIOS:
        x = np.linspace(*world.span, 301)
        part = [
            {"scenario": world.name, "class": name, "score": float(s), "density": float(d)}
            for name, law in (("negative", world.negative()), ("positive", world.positive()))
            for s, d in zip(x, law.pdf(x), strict=True)
        ]
        table += part
        panels.append(
            alt.Chart(rows(part))
            .mark_line()
            .encode(
                x=alt.X("score:Q", title="Score", scale=alt.Scale(nice=False)),
                y=alt.Y("density:Q", title="Density"),
                color=alt.Color("class:N", title="Class"),
            )
            .properties(title=world.name, width=220, height=180)
        )
    return Reproduction(
        title="Densities of the simulated scores",
        table=table,
        charts=[alt.hconcat(*panels)],
        description="Density of negatives and positives: binormal, bibeta, offset uniform.",
    )


@figure(paper=_PAPER, number="4.4", title="True and sampled curves")
def sampled_curves(_: Context) -> Reproduction:
    """The true curve and five samples of 500 examples at prevalence 0.1."""
    import altair as alt
    from numpy.random import default_rng

    prevalence, size, samples = 0.1, 500, 5
    n = round(prevalence * size)
    random = default_rng(_SEED)
    recall = np.linspace(0.002, 1.0, 250)
    panels, table = [], []
    for world in SCENARIOS:
        ups, downs = world.draw(random, samples, n, size - n)
        labels = np.repeat([1, 0], [n, size - n])
        sampled = []
        for k, (up, down) in enumerate(zip(ups, downs, strict=True), start=1):
            c = curve(labels, np.concatenate([up, down]))
            keep = np.flatnonzero(np.diff(c.recall, prepend=-1.0, append=2.0)[:-1] > 0)
            keep = np.union1d(keep, np.maximum(keep - 1, 0))
            sampled += [
                {"curve": f"sample {k}", "k": int(j), "recall": r, "precision": p}
                for j, r, p in zip(
                    keep, c.recall[keep].tolist(), c.precision[keep].tolist(), strict=True
                )
            ]
        truth = [
            {"curve": "true", "k": j, "recall": float(r), "precision": float(p)}
            for j, (r, p) in enumerate(
                zip(recall, world.precision(recall, prevalence), strict=True)
            )
        ]
        table += [{"scenario": world.name, **row} for row in [*truth, *sampled]]
        thin = (
            alt.Chart(rows(sampled))
            .mark_line(strokeWidth=0.9, opacity=0.65, color=PALETTE[5])
            .encode(
                x=axis("recall", "Recall"),
                y=axis("precision", "Precision"),
                detail="curve:N",
                order="k:Q",
            )
        )
        thick = (
            alt.Chart(rows(truth))
            .mark_line(color=INK, strokeWidth=2.4)
            .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), order="k:Q")
        )
        panels.append(
            (space(prevalence, guessing=False) + thin + thick).properties(
                title=f"{world.name} (area {world.area(prevalence):.3f})", width=230, height=200
            )
        )
    return Reproduction(
        title="True curves and sampled curves at prevalence 0.1",
        table=table,
        charts=[alt.hconcat(*panels)],
        description="The true curve (dark) and five samples with 500 examples (light).",
    )


def _points(table: list[dict[str, Any]], size: int = 40) -> Any:
    import altair as alt

    return (
        alt.Chart(rows(table))
        .mark_point(color=INK, size=size)
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"))
    )
