"""Where the bins begin: cuts near the medians of all rows, of each half, of each quarter, ...; and
in each bin the cell of the grid that holds most rows."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from heldout.arguments.rules import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise import selection
from heldout.kernel.noise.exact import Randomness
from heldout.kernel.noise.mechanism import Primitive

__all__ = [
    "CrowdedCells",
    "MedianCuts",
    "cumulative_measure",
    "heap_weights",
    "public_edges",
]

_BY_LOG_ODDS: Final = 0.45
_LARGEST_PARTS: Final = 100  # percents are the finest fractions that count as simple
_HEAP_STEPS: Final = 2**31
_MEASURE: Final = 2**32
_FURTHEST: Final = 7.0  # log odds; a probability of 0.0009 at the ends


@lru_cache(maxsize=16)
def cumulative_measure(points: int) -> Floats:
    """The share of the measure below each cut 0 .. points of the grid, from 0 to 1.

    Scores of models are seldom even: probabilities pile up near 0 and 1. So a part of the measure
    is even in the log odds of the place in the range. Public, whatever the rows are.

    >>> cumulative_measure(5).round(2).tolist()
    [0.0, 0.23, 0.41, 0.59, 0.77, 1.0]
    """
    place = np.arange(points + 1) / max(points - 1, 1)
    inner = np.clip(place - 0.5 / max(points - 1, 1), 1e-9, 1 - 1e-9)
    odds = np.clip(np.log(inner / (1 - inner)), -_FURTHEST, _FURTHEST)
    share = (1 - _BY_LOG_ODDS) * inner + _BY_LOG_ODDS * (odds + _FURTHEST) / (2 * _FURTHEST)
    share[0], share[-1] = 0.0, 1.0
    share.setflags(write=False)
    return share


def public_edges(points: int, *, bins: int) -> Ints:
    """Edges of at most `bins` bins of equal public measure.

    >>> public_edges(65537, bins=4).tolist()
    [0, 9689, 32769, 55849, 65537]
    """
    share = cumulative_measure(points)
    inner = np.searchsorted(share, np.arange(1, bins) / bins, side="left")
    return np.unique(np.concatenate([[0], np.clip(inner, 1, points - 1), [points]]))


@lru_cache(maxsize=16)
def heap_weights(points: int) -> Ints:
    """Whole weights of the grid points: where scores pile up, as far as that is known beforehand.

    Half of the weight goes by the public measure. The other half lies at simple fractions p/q of
    the range, where votes, deciles and rounded scores are: the less, the larger q is.

    >>> weights = heap_weights(65537)
    >>> bool(weights[32768] > weights[21845] > weights[6554] > weights[6555])
    True
    """
    anywhere = np.diff(cumulative_measure(points))
    simple = np.zeros(points)
    for parts in range(1, _LARGEST_PARTS + 1):
        for part in range(parts + 1):
            if math.gcd(part, parts) == 1:
                simple[(2 * part * (points - 1) + parts) // (2 * parts)] += parts**-2.5
    share = anywhere / anywhere.sum() + simple / simple.sum()
    weights: Ints = np.maximum(np.rint(share * _HEAP_STEPS), 1).astype(np.int64)
    weights.setflags(write=False)
    return weights


@dataclass(frozen=True, kw_only=True)
class MedianCuts(Primitive):
    """Cuts of the grid by the exponential mechanism, `levels` times over, each part in two.

    A cut is penalised by how many more rows lie on one side than on the other. `pseudo_rows`
    public rows, spread by the public measure, count among the real ones: they keep a few bins
    where no rows are, and where epsilon is too small to see any they decide alone.

    Claim:       pure DP, epsilon.                                        [claim: median-cuts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row lies in one part a level and moves the penalties of that part's cuts by
                 one; each cut is drawn with rate epsilon/(2 levels moved), so that a row costs
                 epsilon/moved, and neighbours differ in `moved` rows.
    Numerics:    exact, see `choose_exactly`.
    Refuses:     an epsilon that is not positive; levels outside 1 to 8.
    Reference:   McSherry and Talwar 2007; the recursion is Kaplan, Schnapp and Stemmer 2022.
    Cost:        about 3 ms a level on a grid of 65,537 points.

    >>> cut = MedianCuts(levels=3, epsilon=Fraction(1, 10), moved=2, pseudo_rows=100)
    >>> cut.rate
    Fraction(1, 120)
    """

    levels: int
    epsilon: Fraction
    moved: int
    pseudo_rows: int

    def __post_init__(self) -> None:
        Whole(1, 8)(self.levels, "levels")
        if self.epsilon <= 0 or self.moved < 1 or self.pseudo_rows < 0:
            raise ArgumentError("epsilon and rows moved must be positive.")

    @property
    def rate(self) -> Fraction:
        """Return what one row of imbalance takes off the logarithm of a cut's probability."""
        return self.epsilon / (2 * self.levels * self.moved)

    def draw(self, counts: Ints, *, randomness: Randomness | None = None) -> Ints:
        """Edges from 0 to the number of points, at most 2^levels bins; counts are exact."""
        points = len(counts)
        measure = cumulative_measure(points)
        pseudo = np.rint(measure * self.pseudo_rows).astype(np.int64)
        below = np.append(0, np.cumsum(np.asarray(counts, dtype=np.int64))) + pseudo
        # A cut between the points c - 1 and c is as likely beforehand as the measure around it.
        around = np.gradient(measure) * _MEASURE
        weights = np.maximum(np.rint(around), 1).astype(np.int64)
        edges = {0, points}

        def cut(left: int, right: int, levels: int) -> None:
            if levels == 0 or right - left < 2:
                return
            inner = slice(left + 1, right)
            penalties = np.abs(2 * below[inner] - below[left] - below[right])
            place = selection.choose_exactly(
                weights[inner], penalties, self.rate, randomness=randomness
            )
            middle = left + 1 + place
            edges.add(middle)
            cut(left, middle, levels - 1)
            cut(middle, right, levels - 1)

        cut(0, points, self.levels)
        return np.array(sorted(edges))

    def describe(self) -> dict[str, object]:
        return {
            "thresholds": "median cuts",
            "levels": self.levels,
            "edges_epsilon": str(self.epsilon),
            "pseudo_rows": self.pseudo_rows,
        }


@dataclass(frozen=True, kw_only=True)
class CrowdedCells(Primitive):
    """In each bin one cell of the grid, likely the one that holds most rows.

    Scores that take few values lie in heaps; a heap is then a bin of its own. Where scores are
    smooth the cell is an arbitrary one. A cell with `n` rows and the public weight `w` is drawn
    with a probability proportional to `w exp(rate n)`.

    Claim:       pure DP, epsilon, for bins that are public.              [claim: curve-heaps]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row lies in one bin and moves one term of that bin's law by a factor of
                 exp(rate); the sum of the terms moves in the same direction and no further, so
                 that a row costs one rate and not two, and neighbours differ in `moved` rows.
    Numerics:    exact, see `choose_exactly`.
    Refuses:     an epsilon that is not positive.
    Reference:   McSherry and Talwar 2007; proofs/curve-heaps.md shows that one rate is enough.
    Cost:        about 3 ms on a grid of 65,537 points.

    >>> CrowdedCells(epsilon=Fraction(1, 10), moved=2).rate
    Fraction(1, 20)
    """

    epsilon: Fraction
    moved: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.moved < 1:
            raise ArgumentError("epsilon and rows moved must be positive.")

    @property
    def rate(self) -> Fraction:
        """Return what one row adds to the logarithm of its cell's weight."""
        return self.epsilon / self.moved

    def draw(self, counts: Ints, edges: Ints, *, randomness: Randomness | None = None) -> Ints:
        """Return one grid point for each bin between the edges; counts are exact."""
        counts = np.asarray(counts, dtype=np.int64)
        weights = heap_weights(len(counts))
        cells = [
            left
            + selection.choose_exactly(
                weights[left:right], -counts[left:right], self.rate, randomness=randomness
            )
            for left, right in pairwise(np.asarray(edges).tolist())
        ]
        return np.array(cells, dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"heaps": "most crowded cells", "heaps_epsilon": str(self.epsilon)}
