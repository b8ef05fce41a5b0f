"""Noisy residual plots of simulated rows: the release's own steps, without ledger and engine.

Legitimate here alone: the rows are simulated or public. The mechanisms are those of the release;
only the counting is done by NumPy instead of SQL.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

import numpy as np

from heldout.kernel import exact
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.regression import GridCounts
from heldout.kernel.statistic import Sealed
from heldout.questions.regression.plot_plan import AS_PRINTED, PlotPlan
from heldout.questions.regression.table import ResidualTable
from heldout_papers.chen_2016_residuals_data import Fitted
from heldout_papers.colours import HELDOUT

__all__ = ["METHODS", "counted", "ours", "prirp"]

PROTECTION: Final = Protection(neighbours=Neighbours.REPLACE_ONE)


def drawn(fit: Fitted, epsilon: str, method: str, scale: float) -> ResidualTable:
    """As `heldout.regression.residual_plot` draws it under replace-one."""
    plan = _plan(epsilon, fit.rows, scale, method)
    answers: dict[str, Any] = {}
    for name, booked in plan.staged().steps.items():
        step = booked.choose(answers)
        assert isinstance(step.statistic, GridCounts)
        sealed = Sealed(counted(step.statistic, fit))
        answers[name] = step.mechanism.sample(sealed)
    return plan.table(answers)


def ours(fit: Fitted, epsilon: str, *, scale: float = 1.0) -> ResidualTable:
    """The default method."""
    return drawn(fit, epsilon, "heldout", scale)


def prirp(fit: Fitted, epsilon: str, *, scale: float = 1.0) -> ResidualTable:
    """Return the paper's plot as printed: counts below 0 set to 0, the others rounded."""
    table = drawn(fit, epsilon, AS_PRINTED, scale)
    return _Rounded(**{column.name: getattr(table, column.name) for column in fields(table)})


METHODS: Final = {HELDOUT: ours, "PriRP": prirp}


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
def _plan(epsilon: str, rows: int, scale: float, method: str) -> PlotPlan:
    return PlotPlan(
        epsilon=exact(epsilon, name="epsilon"),
        protection=PROTECTION,
        rows=rows,
        expected_rows=None,
        scale=scale,
        method=method,
        predicted=None,
        residual=None,
        grid=None,
    )
