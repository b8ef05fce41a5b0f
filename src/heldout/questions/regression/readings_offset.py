"""Whether predictions are plainly too low or too high on average.

Trend, curvature and fan are correlations: a model that is off by the same amount everywhere shows
none of them. A small offset is not called a fault, since most models have one: it is told from a
quarter of the residuals' spread on, if neither noise, sampling, the rows beyond the bounds nor
the width of a cell explain it.
"""

from typing import Final

import numpy as np

from heldout.drawing.words import numbers
from heldout.questions.regression.readings import mean_by_prediction, spread_by_prediction
from heldout.questions.regression.table import ResidualTable

__all__ = ["offset"]

SURE: Final = 0.999
"""So that a fourth look adds at most 1 plot in 1,000 to those that show a fault without one."""
PLAIN: Final = 0.25
FARTHER: Final = 5.0
"""A row beyond the bounds is taken to lie up to so many times as far out as the bound. Chosen on
normal, Laplace, t, lognormal and Pareto residuals of which up to 10% are cut."""


def offset(table: ResidualTable) -> str:
    """A sentence about the mean residual if it is plainly not 0, else nothing."""
    mean, spread = (each(table, whole=True) for each in (mean_by_prediction, spread_by_prediction))
    value = float(mean.values[0])
    (low,), (high,) = mean.interval(SURE)
    nearest = max(float(low), -float(high))
    bound = float(abs(table.residual_edges).max())
    beyond = FARTHER * bound * max(table.outside, 0.0) / max(table.rows, 1)
    # Rows stand in the middle of their cell, and may all lie at one edge of it.
    half_cell = float(np.diff(table.residual_edges).max()) / 2
    if nearest - beyond - half_cell <= PLAIN * float(spread.values[0]):
        return ""
    (low,), (high,) = mean.interval(0.95)
    show = numbers(table.residual_edges)
    direction = "low" if value > 0 else "high"
    low, high = sorted((abs(float(low)), abs(float(high))))
    return (
        f"predictions are too {direction} by about {show(abs(value))} on average "
        f"({show(low)} to {show(high)})"
    )
