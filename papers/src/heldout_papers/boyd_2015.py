"""Boyd, Lantz and Page, 2015, figures 3 to 6: private AUC, average precision and ROC curves.

Their relation is replace-one with a public number of rows. `--data` names a folder with adult and
diabetes130 (in place of the set of a competition that cannot be had any more); without it the
scores are simulated.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.drawing.chart import INK, PALETTE
from heldout.questions.ranking.release import binormal_roc
from heldout_papers.altair_svg import rows
from heldout_papers.private_ranking import (
    METRICS,
    OURS,
    THEIRS,
    Release,
    exact_draws,
    worlds,
)
from heldout_papers.private_ranking_pictures import (
    error_by_delta,
    error_by_size,
    noise_lines,
    sensitivity_lines,
)
from heldout_papers.private_ranking_studies import (
    DRAWS,
    against_estimation,
    agreement,
    ahead,
    draws_of,
    error_table,
    gains,
    median_noise,
    notes,
    smooth_sensitivity,
)
from heldout_papers.registry import Claim, Context, Reproduction, figure

_PAPER = "boyd-2015"


# --- figure 3 ------------------------------------------------------------------------------------


@figure(paper=_PAPER, number="3", title="Smooth sensitivity of AUC by prevalence")
def figure_3(_: Context) -> Reproduction:
    """1,000 rows; and what the sensitivity comes to in noise, theirs and ours."""
    import altair as alt

    size = 1000
    positives = np.arange(0, size + 1, 5)
    betas: dict[str, Fraction | None] = {
        "beta 0 (global)": Fraction(0),
        "beta 0.001": Fraction(1, 1000),
        "beta 0.01": Fraction(1, 100),
        "beta 0.1": Fraction(1, 10),
        "beta infinite (local)": None,
    }
    table = smooth_sensitivity(size, positives, betas)
    noisy = [row for epsilon in ("0.1", "1") for row in median_noise(size, positives, epsilon)]
    for row in (*table, *noisy):
        row["prevalence"] = row["positives"] / size
    side = {"width": 250, "height": 250}
    left = sensitivity_lines(table, x="prevalence", curves=list(betas)).properties(
        title="As in the paper, 1,000 rows", **side
    )
    right = [
        noise_lines([row for row in noisy if row["epsilon"] == epsilon], x="prevalence").properties(
            title=f"The noise at epsilon {epsilon}", **side
        )
        for epsilon in ("0.1", "1")
    ]
    chart = alt.hconcat(left, alt.hconcat(*right)).resolve_scale(color="independent")
    return Reproduction(
        title="Smooth sensitivity of AUC by prevalence, and the noise that follows from it",
        table=[*table, *noisy],
        charts=[chart],
        description="Sensitivity over prevalence for five smoothings; noise by three mechanisms.",
        notes=["Noise: median of its absolute value, before truncation."],
        claims=[agreement(table)],
    )


# --- figure 4 ------------------------------------------------------------------------------------


@figure(
    paper=_PAPER, number="4", quick=300, title="Histograms of private AUC and average precision"
)
def figure_4(context: Context) -> Reproduction:
    """epsilon 1, delta 0.01 for theirs and 0 for ours; 100 and 1,000 rows a class."""
    world = worlds(context)[-1]
    cells = [(metric, size) for metric in METRICS for size in (100, 1000)]
    return draws_of(context, world, cells, label="figure 4", columns=2)


# --- figure 5 ------------------------------------------------------------------------------------


@figure(paper=_PAPER, number="5", quick=300, title="Mean absolute error by epsilon and size")
def figure_5(context: Context) -> Reproduction:
    """DP error and estimation error of AUC and average precision."""
    table = [row for metric in METRICS for row in error_table(context, metric)]
    charts = []
    for name in METRICS.values():
        part = [row for row in table if row["metric"] == name]
        charts.append(error_by_delta(part, "mean absolute error", estimation=True))
        charts.append(error_by_size(part, "mean absolute error", estimation=True))
    return Reproduction(
        title="Mean absolute error of private AUC and average precision",
        table=table,
        charts=charts,
        description="Lines: error of the noise by epsilon. Dashed: estimation error without noise. "
        "First AUC, then average precision; first in the paper's layout, then by size.",
        notes=[*notes(context), *gains(table, "mean absolute error")],
        claims=[*against_estimation(table), ahead(table, "mean absolute error")],
    )


# --- figure 6 ------------------------------------------------------------------------------------


@figure(
    paper=_PAPER, number="6", quick=300, title="Private ROC curves by the symmetric binormal method"
)
def figure_6(context: Context) -> Reproduction:
    """epsilon 0.1, 1,000 rows a class; the true curve and quantiles of the private ones."""
    random = np.random.default_rng(6)
    size = 1000
    tests = {
        f"Y ~ N(1, {deviation:g})": (random.normal(1, deviation, size), random.normal(0, 1, size))
        for deviation in (1.0, 0.5, 1.5)
    }
    tests[worlds(context)[0].name] = worlds(context)[0].subset(size, random)
    jobs = [
        Release(name, *scores, "auc", method, "0.1", context.repetitions or DRAWS, seed)
        for seed, (name, scores) in enumerate(tests.items())
        for method in (THEIRS[-1], OURS)
    ]
    table: list[dict[str, Any]] = []
    fpr = np.linspace(0, 1, 81)
    for name, (up, down) in tests.items():
        thresholds = np.quantile(down, 1 - fpr)
        true = [float(np.mean(up > threshold)) for threshold in thresholds]
        for method in (THEIRS[-1], OURS):
            table += _curve(name, method.label, "true", fpr, true)
    for job, _, drawn in context.over(exact_draws, jobs, label="figure 6"):
        for quantile in (0.025, 0.5, 0.975):
            curve = binormal_roc(float(np.quantile(drawn, quantile)), fpr)
            table += _curve(job.name, job.method.label, f"{100 * quantile:g}%", fpr, curve)
    return Reproduction(
        title="Private ROC curves by the symmetric binormal method, epsilon 0.1",
        table=table,
        charts=[_roc_panels(table, list(tests))],
        description="True curve and three quantiles of private curves; their noise above, ours "
        "below.",
        notes=[
            *notes(context),
            "The second number of N(1, 0.5) is taken as a standard deviation.",
            "The family is ordered by area: the quantiles of the curves are curves of quantiles.",
        ],
        claims=[_nearness(table, list(tests))],
    )


def _nearness(table: list[dict[str, Any]], names: list[str]) -> Claim:
    def apart(name: str) -> float:
        mine = [r for r in table if (r["data"], r["method"]) == (name, THEIRS[-1].label)]
        one, two = ([r["tpr"] for r in mine if r["curve"] == each] for each in ("true", "50%"))
        return float(np.mean(np.abs(np.array(one) - np.array(two))))

    found = {name: apart(name) for name in names}
    return Claim(
        "The symmetric curve is near for equal deviations and for adult, not for others",
        "graph",
        "area between true and median curve: "
        + "; ".join(f"{name} {value:.3f}" for name, value in found.items()),
        max(found[names[0]], found[names[3]]) < min(found[names[1]], found[names[2]]),
    )


def _curve(data: str, method: str, name: str, fpr: Any, tpr: Any) -> list[dict[str, Any]]:
    return [
        {"data": data, "method": method, "curve": name, "fpr": float(x), "tpr": float(y)}
        for x, y in zip(fpr, tpr, strict=True)
    ]


def _roc_panels(table: list[dict[str, Any]], names: list[str]) -> Any:
    import altair as alt

    order = ["true", "2.5%", "50%", "97.5%"]

    def panel(name: str, method: str) -> Any:
        here = [row for row in table if (row["data"], row["method"]) == (name, method)]
        first, top = name == names[0], method != OURS.label
        return (
            alt.Chart(rows(here))
            .mark_line(strokeWidth=1.7)
            .encode(
                x=alt.X("fpr:Q", title=None if top else "False positive rate"),
                y=alt.Y("tpr:Q", title=[method, "True positive rate"] if first else None),
                color=alt.Color(
                    "curve:N",
                    title="Curve",
                    scale=alt.Scale(domain=order, range=[INK, PALETTE[4], PALETTE[6], PALETTE[2]]),
                ),
                strokeDash=alt.StrokeDash(
                    "curve:N", scale=alt.Scale(domain=order, range=[[5, 3], [1, 0], [1, 0], [1, 0]])
                ),
            )
            .properties(width=165, height=165, title=name if top else "")
        )

    return alt.vconcat(
        *(alt.hconcat(*(panel(name, m.label) for name in names)) for m in (THEIRS[-1], OURS))
    ).configure_title(fontSize=12, anchor="middle", offset=6)
