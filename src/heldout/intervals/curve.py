"""A pair of rates at falling thresholds: what every reading of a score table starts from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.intervals.assemble import cumulative_counts, rates
from heldout.kernel.noise.tables.table import NoisyTable

__all__ = ["Curve", "grid_point", "grid_scores", "plain_curve"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Rates that rise from (0, 0) to (1, 1) as the threshold falls, and the two class counts.

    >>> curve = Curve(fpr=np.array([0, 0.5, 1.0]), tpr=np.array([0, 0.8, 1.0]),
    ...               thresholds=np.array([1.25, 0.5, 0.0]), positives=10.0, negatives=30.0)
    >>> curve.area, curve.at(0.5)
    (0.65, (0.5, 0.8))
    """

    fpr: Any
    tpr: Any
    thresholds: Any
    positives: float
    negatives: float

    @property
    def prevalence(self) -> float:
        total = self.positives + self.negatives
        return self.positives / total if total > 0 else 0.5

    @property
    def area(self) -> float:
        return round(float(np.trapezoid(self.tpr, self.fpr)), 15)

    def at(self, threshold: float) -> tuple[float, float]:
        """False and true positive rate of a threshold, by straight lines between points."""
        rising = self.thresholds[::-1]
        return (
            float(np.interp(threshold, rising, self.fpr[::-1])),
            float(np.interp(threshold, rising, self.tpr[::-1])),
        )

    def precision(self) -> Any:
        """Share of positives among what is called positive; 1 where nothing is."""
        true, false = self.tpr * self.positives, self.fpr * self.negatives
        called = true + false
        return np.divide(true, called, out=np.ones_like(called), where=called > 0)


def grid_scores(edges: Any, *, points: int, score_range: tuple[float, float]) -> Any:
    """Scores of grid points; one step beyond the range for the edge above the last point."""
    low, high = score_range
    return low + np.asarray(edges, dtype=np.float64) * ((high - low) / max(points - 1, 1))


def grid_point(score: float, *, points: int, score_range: tuple[float, float]) -> int:
    """The grid point that a score is counted at.

    >>> grid_point(0.5, points=65537, score_range=(0.0, 1.0))
    32768
    """
    low, high = score_range
    return round((score - low) / (high - low) * (points - 1))


def plain_curve(table: NoisyTable, *, score_range: tuple[float, float]) -> Curve:
    """As the papers read a table: cumulate, make monotone, divide."""
    false, true = (cumulative_counts(each) for each in (table.negatives, table.positives))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)
    return Curve(
        fpr=rates(false),
        tpr=rates(true),
        thresholds=scores[::-1],
        positives=float(true[-1]),
        negatives=float(false[-1]),
    )
