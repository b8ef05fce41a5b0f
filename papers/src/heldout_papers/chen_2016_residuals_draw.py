"""Noisy residual plots of simulated rows: the release's own steps, without ledger and engine.

Legitimate here alone: the rows are simulated or public. The mechanisms are those of the release;
only the counting is done by NumPy instead of SQL.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from heldout.mechanisms.hilbert import HilbertDawa
from heldout.privacy import exact
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.regression.plan import PlotPlan
from heldout.regression.table import ResidualTable
from heldout.statistics import GridCounts
from heldout.statistics.base import rows_moved
from heldout.statistics.sealed import Sealed
from heldout_papers.chen_2016_residuals_data import Fitted

__all__ = ["METHODS", "counted", "ours", "prirp"]

PROTECTION: Final = Protection(neighbours=Neighbours.REPLACE_ONE)
COVERAGE: Final = 0.95
_MOST_DOUBLINGS: Final = 60


def ours(fit: Fitted, epsilon: str, *, scale: float = 1.0) -> ResidualTable:
    """As `heldout.regression.residual_plot` draws it under replace-one."""
    plan = _plan(epsilon, fit.rows, scale)
    answers: tuple[Any, ...] = ()
    for choose in plan.staged().steps:
        step = choose(answers)
        assert isinstance(step.statistic, GridCounts)
        sealed = Sealed(counted(step.statistic, fit))
        answers = (*answers, step.mechanism.sample(sealed))
    return plan.table(answers)


def prirp(fit: Fitted, epsilon: str, *, scale: float = 1.0) -> ResidualTable:
    """As the paper has it: symmetric bounds by a sparse vector, a square grid, DAWA.

    Theirs for the bounds is min(0.3, 470/(n epsilon)) of epsilon: the paper lost the epsilon in
    the denominator. The side is the power of two nearest to sqrt(0.95^2 n epsilon/10), since
    Hilbert's curve needs one.
    """
    price = exact(epsilon, name="epsilon")
    share = min(0.3, 470 / (fit.rows * float(price)))
    part = Fraction(share).limit_denominator(1000) * price
    random = np.random.default_rng()
    bounds = [
        _bound(values, float(part) / 2, scale, random) for values in (fit.residuals, fit.predicted)
    ]
    wanted = np.sqrt(max(COVERAGE**2 * fit.rows * float(price) / 10, 1.0))
    side = int(min(2 ** max(round(np.log2(wanted)), 1), 64))
    edges = [np.linspace(-bound, bound, side + 1) for bound in bounds]
    counts, _, _ = np.histogram2d(fit.residuals, fit.predicted, bins=edges)
    inside = counts.astype(np.int64).ravel()
    mechanism = HilbertDawa(side=side, epsilon=price - part, moved=rows_moved(PROTECTION))
    drawn = mechanism.sample(Sealed(np.append(inside, fit.rows - inside.sum())))
    return _Rounded(
        predicted_edges=edges[1],
        residual_edges=edges[0],
        noisy=drawn.cells.reshape(side, side),
        outside=float(drawn.outside),
        rows=fit.rows,
        scale=None,
        deviation=drawn.deviation.reshape(side, side),
        outside_scale=drawn.outside_scale,
        unbiased=False,
    )


METHODS: Final = {"ours": ours, "PriRP": prirp}


class _Rounded(ResidualTable):
    """The paper's own end: negative counts are set to 0, the others rounded."""

    @property
    def counts(self) -> Any:
        return np.rint(np.maximum(self.noisy, 0.0)).astype(np.int64)


def counted(statistic: GridCounts, fit: Fitted) -> Any:
    """The statistic's vector of a regression's rows: `GridCounts` with NumPy instead of SQL."""
    columns = {"predicted": fit.predicted, "residual": fit.residuals, "observed": fit.observed}
    entry = np.zeros(fit.rows, dtype=np.int64)
    outside = np.zeros(fit.rows, dtype=bool)
    for axis in statistic.axes:
        values = columns[axis.column]
        values = np.abs(values) if axis.absolute else values
        place = np.searchsorted(np.array(axis.edges), values, side="right") - 1
        outside |= (place < 0) | (place >= axis.cells)
        entry = entry * axis.cells + place
    entry[outside] = statistic.size - 1
    return np.bincount(entry, minlength=statistic.size)


@lru_cache(maxsize=64)
def _plan(epsilon: str, rows: int, scale: float) -> PlotPlan:
    return PlotPlan(
        epsilon=exact(epsilon, name="epsilon"),
        protection=PROTECTION,
        rows=rows,
        expected_rows=None,
        scale=scale,
        method="heldout",
        predicted=None,
        residual=None,
        grid=None,
    )


def _bound(values: Any, epsilon: float, scale: float, random: np.random.Generator) -> float:
    """Their algorithm 1, with ordinary doubles: this is a simulation."""
    wanted = COVERAGE * values.size + random.laplace(0, 2 / epsilon)
    sizes = np.sort(np.abs(values))
    bound = scale
    for _ in range(_MOST_DOUBLINGS):
        inside = int(np.searchsorted(sizes, bound, side="right"))
        if inside + random.laplace(0, 4 / epsilon) > wanted:
            return bound
        bound *= 2
    return bound
