"""Boyd, 2014, figures 5.3 to 5.6: the dissertation's chapter on private evaluation.

The study is that of the 2015 paper; the errors here are root mean squares.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from heldout_papers.private_ranking import METRICS, worlds
from heldout_papers.private_ranking_pictures import (
    error_by_delta,
    error_by_size,
    noise_lines,
    sensitivity_lines,
)
from heldout_papers.private_ranking_studies import (
    agreement,
    ahead,
    draws_of,
    error_table,
    falling,
    gains,
    median_noise,
    notes,
    smooth_sensitivity,
)
from heldout_papers.registry import Context, Reproduction, figure

_PAPER = "boyd-2014"
_ERROR = "root mean square error"


@figure(paper=_PAPER, number="5.3", title="Smooth sensitivity of AUC by number of positives")
def figure_5_3(_: Context) -> Reproduction:
    """100, 1,000 and 10,000 rows; and what it comes to in noise at epsilon 1."""
    import altair as alt

    betas: dict[str, Fraction | None] = {
        "beta 0.001": Fraction(1, 1000),
        "beta 0.01": Fraction(1, 100),
        "beta 0.1": Fraction(1, 10),
        "beta none (local)": None,
    }
    table: list[dict[str, Any]] = []
    above, below = [], []
    for size in (100, 1000, 10_000):
        positives = np.unique(np.linspace(0, size, 201).astype(int))
        smooth = smooth_sensitivity(size, positives, betas)
        noisy = median_noise(size, positives, "1")
        table += [*smooth, *noisy]
        above.append(
            sensitivity_lines(smooth, x="positives", curves=list(betas)).properties(
                width=230, height=190, title=f"{size:,} rows"
            )
        )
        below.append(noise_lines(noisy, x="positives").properties(width=230, height=190))
    chart = alt.vconcat(alt.hconcat(*above), alt.hconcat(*below)).resolve_scale(color="independent")
    return Reproduction(
        title="Smooth sensitivity of AUC by number of positives, and the noise that follows",
        table=table,
        charts=[chart],
        description="Above: sensitivity for four smoothings. Below: noise by three mechanisms.",
        notes=["Noise at epsilon 1: median of its absolute value, before truncation."],
        claims=[agreement([row for row in table if "equation 9" in row])],
    )


@figure(paper=_PAPER, number="5.4", quick=300, title="Root mean square error of private AUC")
def figure_5_4(context: Context) -> Reproduction:
    """By epsilon, for several sizes."""
    return _errors(context, "auc")


@figure(
    paper=_PAPER,
    number="5.5",
    quick=300,
    title="Root mean square error of private average precision",
)
def figure_5_5(context: Context) -> Reproduction:
    """By epsilon, for several sizes."""
    return _errors(context, "average-precision")


@figure(paper=_PAPER, number="5.6", quick=300, title="Histograms of private average precision")
def figure_5_6(context: Context) -> Reproduction:
    """epsilon 1, delta 0.01 for theirs and 0 for ours; the first data set, from large to small."""
    cells = [("average-precision", size) for size in (1000, 300, 100, 30)]
    return draws_of(context, worlds(context)[0], cells, label="figure 5.6", columns=2)


def _errors(context: Context, metric: str) -> Reproduction:
    table = error_table(context, metric)
    return Reproduction(
        title=f"Root mean square error of private {METRICS[metric]}",
        table=table,
        charts=[
            error_by_delta(table, _ERROR, estimation=False),
            error_by_size(table, _ERROR, estimation=False),
        ],
        description="Error of the noise by epsilon: in the dissertation's layout, then by size.",
        notes=[*notes(context), *gains(table, _ERROR)],
        claims=[*falling(table, _ERROR), ahead(table, _ERROR)],
    )
