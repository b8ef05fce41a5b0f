"""Intervals of the area that was released beside a table."""

from typing import Any, Final

import numpy as np

from heldout.intervals.auc_interval import PRIOR, Belief, noise_interval, population_interval
from heldout.intervals.measure import Interval
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.questions.curves.methods.heldout import TableWithArea

__all__ = ["area_intervals", "class_belief"]

_REACH: Final = 4.5
_CANDIDATES: Final = 91
_PAIRS: Final = 25
_SEEN: Final = 2.6  # deviations of the noise that a class must measure to be there at all


def area_intervals(
    table: TableWithArea, area: RankingDraw, level: float, *, noise_only: bool
) -> Interval:
    """Where the area of these rows, or of the population, lies; by the area's own noise.

    The noise of the area depends on the smaller class, and the table tells how large that is.
    """
    known = class_belief(table, area)
    if not noise_only:
        return population_interval(area, level=level, known=known)
    return noise_interval(area, level=level, known=known)


def class_belief(table: TableWithArea, area: RankingDraw) -> Belief:
    """Weighted candidates for the class counts, by normal approximation of the summed noise."""
    negatives, positives = float(table.negatives.sum()), float(table.positives.sum())
    deviation = float(table.noise.above_deviation[0, 0])
    if table.rows is not None:
        centre = (positives + table.rows - negatives) / 2
        deviation /= np.sqrt(2)
        n = np.unique(np.clip(_around(centre, deviation, _CANDIDATES), 0, table.rows))
        m = table.rows - n
        smaller = min(centre, table.rows - centre)
        weights = _normal(n, min(max(centre, 0.0), float(table.rows)), deviation)
    else:
        first = np.unique(np.maximum(_around(positives, deviation, _PAIRS), 0.0))
        second = np.unique(np.maximum(_around(negatives, deviation, _PAIRS), 0.0))
        n, m = (each.ravel() for each in np.meshgrid(first, second))
        smaller = min(positives, negatives)
        weights = _normal(n, max(positives, 0.0), deviation)
        weights = weights * _normal(m, max(negatives, 0.0), deviation)
    local = area.mechanism.local
    size = local.rung_size(positives=n, negatives=m)
    weights = weights * (1 + PRIOR * deviation / np.maximum(size, 0.5))
    weights = weights / weights.sum()
    found = Belief(
        size / local.protection.rows_per_unit,
        weights,
        float((weights / np.maximum(n, 1.0)).sum()),
        float((weights / np.maximum(m, 1.0)).sum()),
        no_ranking=smaller <= _SEEN * deviation,
    )
    return found.condensed(100)


def _around(centre: float, deviation: float, number: int) -> Any:
    return np.linspace(centre - _REACH * deviation, centre + _REACH * deviation, number)


def _normal(values: Any, centre: float, deviation: float) -> Any:
    # A floor on the tails: sums of few Laplace noises have heavier ones.
    return np.exp(-(((values - centre) / max(deviation, 1e-9)) ** 2) / 2) + 1e-4
