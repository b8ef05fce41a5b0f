"""A pair of rates at falling thresholds: what every reading of a score table starts from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heldout.arrays import Floats
from heldout.kernel.noise.tables.table import NoisyTable

# --- Curves from a noisy table, as the papers make them: cumulate, make monotone, divide ---------
#
# Points run from the highest threshold down, so that rates rise. A threshold is an index t into the
# public grid: what scores at grid point t or above is called positive.


def isotonic(values: ArrayLike, weights: Floats | None = None) -> Floats:
    """The nearest rising sequence in (weighted) least squares, by pooling adjacent violators.

    >>> isotonic([1.0, 3.0, 2.0, 4.0]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if (np.diff(values) >= 0).all():
        return values
    counts = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), counts.tolist(), strict=True):
        mean, mass, size = value, weight, 1
        while means and means[-1] >= mean:
            total = masses[-1] + mass
            mean = (means.pop() * masses.pop() + mean * mass) / total
            mass, size = total, size + sizes.pop()
        means.append(mean)
        masses.append(mass)
        sizes.append(size)
    return np.repeat(means, sizes)


def cumulative_counts(counts: Any) -> Floats:
    """Rising counts of what lies at or above each edge, from 0 at the top edge downwards."""
    noisy = np.cumsum(np.asarray(counts, dtype=np.float64)[::-1])
    return np.append(0.0, np.maximum(isotonic(noisy), 0.0))


def rates(cumulative: Floats) -> Floats:
    """Shares of the last count; a straight line when there is nothing to share."""
    total = float(cumulative[-1])
    if total <= 0:
        return np.linspace(0.0, 1.0, len(cumulative))
    return np.minimum(cumulative / total, 1.0)


def roc(table: NoisyTable) -> tuple[Any, Any, Any]:
    """False positive rate, true positive rate and threshold, from (0, 0) to (1, 1).

    >>> from fractions import Fraction
    >>> from heldout.kernel.noise.tables.table import independent_noise
    >>> table = NoisyTable(edges=[0, 2, 5], negatives=[6, 2], positives=[1, 3],
    ...                    noise=independent_noise(Fraction(2), bins=2))
    >>> [each.tolist() for each in roc(table)]
    [[0.0, 0.25, 1.0], [0.0, 0.75, 1.0], [5, 2, 0]]
    """
    false, true = (
        rates(cumulative_counts(counts)) for counts in (table.negatives, table.positives)
    )
    return false, true, table.edges[::-1]


def precision_recall(table: NoisyTable) -> tuple[Any, Any, Any]:
    """Recall, precision and threshold; it starts at (0, 1), where nothing is called positive."""
    false, true = (cumulative_counts(counts) for counts in (table.negatives, table.positives))
    called = false + true
    # Rising counts, so only the start of the curve may have none.
    precision = np.divide(true, called, out=np.ones_like(true), where=called > 0)
    return rates(true), precision, table.edges[::-1]


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

    def precision(self) -> Floats:
        """Share of positives among what is called positive; 1 where nothing is."""
        true, false = self.tpr * self.positives, self.fpr * self.negatives
        called = true + false
        result: Floats = np.divide(true, called, out=np.ones_like(called), where=called > 0)
        return result


def grid_scores(edges: Any, *, points: int, score_range: tuple[float, float]) -> Floats:
    """Scores of grid points; one step beyond the range for the edge above the last point."""
    low, high = score_range
    return low + np.asarray(edges, dtype=np.float64) * ((high - low) / max(points - 1, 1))


def grid_point(score: float, *, points: int, score_range: tuple[float, float]) -> int:
    """The grid point that a score is counted at, by the operations that rows are counted with.

    >>> grid_point(0.5, points=65537, score_range=(0.0, 1.0))
    32768
    """
    low, high = score_range
    return min(round((score - low) * ((points - 1) / (high - low))), points - 1)


def plain_curve(table: NoisyTable, *, score_range: tuple[float, float]) -> Curve:
    """As the papers read a table: cumulate, make monotone, divide."""
    false, true = (cumulative_counts(counts) for counts in (table.negatives, table.positives))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)
    return Curve(
        fpr=rates(false),
        tpr=rates(true),
        thresholds=scores[::-1],
        positives=float(true[-1]),
        negatives=float(false[-1]),
    )
