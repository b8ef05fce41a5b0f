"""Curves from a noisy table, as the papers make them: cumulate, make monotone, divide.

Points run from the highest threshold down, so that rates rise. A threshold is an index t into the
public grid: what scores at grid point t or above is called positive.
"""

from typing import Any

import numpy as np

from heldout.kernel.noise.tables.table import NoisyTable

__all__ = ["cumulative_counts", "isotonic", "precision_recall", "rates", "roc"]


def isotonic(values: Any, weights: Any = None) -> Any:
    """The nearest rising sequence in (weighted) least squares, by pooling adjacent violators.

    >>> isotonic([1.0, 3.0, 2.0, 4.0]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if (np.diff(values) >= 0).all():
        return values
    each = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), each.tolist(), strict=True):
        mean, mass, size = value, weight, 1
        while means and means[-1] >= mean:
            total = masses[-1] + mass
            mean = (means.pop() * masses.pop() + mean * mass) / total
            mass, size = total, size + sizes.pop()
        means.append(mean)
        masses.append(mass)
        sizes.append(size)
    return np.repeat(means, sizes)


def cumulative_counts(counts: Any) -> Any:
    """Rising counts of what lies at or above each edge, from 0 at the top edge downwards."""
    noisy = np.cumsum(np.asarray(counts, dtype=np.float64)[::-1])
    return np.append(0.0, np.maximum(isotonic(noisy), 0.0))


def rates(cumulative: Any) -> Any:
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
    false, true = (rates(cumulative_counts(each)) for each in (table.negatives, table.positives))
    return false, true, table.edges[::-1]


def precision_recall(table: NoisyTable) -> tuple[Any, Any, Any]:
    """Recall, precision and threshold; it starts at (0, 1), where nothing is called positive."""
    false, true = (cumulative_counts(each) for each in (table.negatives, table.positives))
    called = false + true
    # Rising counts, so only the start of the curve may have none.
    precision = np.divide(true, called, out=np.ones_like(true), where=called > 0)
    return rates(true), precision, table.edges[::-1]
