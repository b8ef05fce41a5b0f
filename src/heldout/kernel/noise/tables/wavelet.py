"""Privelet: noise on the Haar coefficients of the counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.kernel.noise.tables.counts import LinearCounts

__all__ = ["Wavelet", "haar", "inverse_haar"]


def haar(exact: Ints) -> Ints:
    """The total, then for each node of the binary tree, root first, left sum minus right sum.

    >>> haar(np.array([5, 1, 2, 0])).tolist()
    [8, 4, 4, 2]
    """
    sums, coefficients = exact, []
    while len(sums) > 1:
        left, right = sums[::2], sums[1::2]
        coefficients.append(left - right)
        sums = left + right
    return np.concatenate([sums, *coefficients[::-1]])


def inverse_haar(coefficients: Ints | Floats) -> Floats:
    """Counts from coefficients.

    >>> inverse_haar(np.array([8, 4, 4, 2])).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    sums = np.asarray(coefficients[:1], dtype=np.float64)
    while len(sums) < len(coefficients):
        differences = coefficients[len(sums) : 2 * len(sums)]
        sums = np.stack([sums + differences, sums - differences], axis=1).ravel() / 2
    return sums


@dataclass(frozen=True, kw_only=True)
class Wavelet(LinearCounts):
    """Discrete Laplace on the whole-numbered Haar coefficients, counts by the inverse transform.

    Privelet gives a coefficient (mean of the left half minus mean of the right half)/2 noise in
    proportion to 1/leaves of its node. Multiplied by the leaves, the coefficient is left sum minus
    right sum, a whole number, and the noise is the same on all of them.

    Claim:       pure DP, epsilon, for one class.                           [claim: privelet]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in the total and in one node a level, with +1 or -1: 1 + levels.
    Numerics:    exact: whole coefficients; the inverse is post-processing.
    Refuses:     an epsilon that is not positive.
    Reference:   Xiao, Wang and Gehrke 2010, with generalised sensitivity 1 + log2 bins.
    Cost:        8 microseconds a bin, bins filled up to a power of two.

    >>> from fractions import Fraction
    >>> Wavelet(bins=1000, epsilon=Fraction(1), moved=2).scale
    Fraction(22, 1)
    """

    name: ClassVar[str] = "wavelet"

    @property
    def levels(self) -> int:
        return (self.bins - 1).bit_length()

    @property
    def weight(self) -> int:
        return 1 + self.levels

    @property
    def dimension(self) -> int:
        return int(2**self.levels)

    def queries(self, exact: Ints) -> Ints:
        return haar(np.pad(exact, (0, self.dimension - len(exact))))

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return inverse_haar(answers)[:bins]

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        edges = np.arange(bins + 1.0)[:, None]
        leaves = 2.0 ** np.arange(1, self.levels + 1)
        # The sum of the bins from an edge up is the sum below the end minus that below the edge;
        # each weighs the coefficient of the node it falls in, and they may fall in the same one.
        low, high = _tent(edges / leaves), _tent(bins / leaves)
        same = np.floor(edges / leaves) == np.floor(bins / leaves)
        above = np.where(same, (high - low) ** 2, high**2 + low**2).sum(axis=1)
        above += ((bins - edges[:, 0]) / self.dimension) ** 2
        one = (1 / leaves**2).sum() + self.dimension**-2.0
        return np.full(bins, np.sqrt(one)), np.sqrt(above)


def _tent(position: Floats) -> Floats:
    """Weight of a node's coefficient in the sum of its leaves below a place inside it."""
    part = position - np.floor(position)
    return np.minimum(part, 1 - part)
