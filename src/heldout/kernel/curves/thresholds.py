"""Where the bins of a curve begin: evenly, or at recursive noisy medians."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from heldout.arguments import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise import selection
from heldout.kernel.noise.exact import draw_on_lattice, rational
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.noise.source import Randomness

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "UNDIVIDED",
    "CrowdedCells",
    "EvenEdges",
    "MedianCuts",
    "MedianNissim2007",
    "MediansAsPrinted",
    "RecursiveMedians",
    "Rows",
    "SmoothMedian",
    "cumulative_measure",
    "heap_weights",
    "public_edges",
]

_NEAR = 1e-6  # in the logarithm: far above the error of doubles, so no maximum is dropped


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on the points left + 1 .. right - 1 of the grid, through counts of all rows below."""

    below: Ints
    """below[i] = rows at points 0 .. i - 1, for i = 0 .. points."""
    left: int
    right: int

    @property
    def count(self) -> int:
        return int(self.below[self.right] - self.below[self.left + 1])

    def order_statistic(self, ranks: Ints | int) -> Ints:
        """The point of the row of each rank, from 1; `left` below that and `right` beyond."""
        ranks, count = np.asarray(ranks), self.count
        inside = np.clip(ranks, 1, max(count, 1)) + self.below[self.left + 1]
        points = np.searchsorted(self.below, inside, side="left") - 1
        return np.where(ranks < 1, self.left, np.where(ranks > count, self.right, points))


@dataclass(frozen=True, kw_only=True)
class SmoothMedian:
    """The lower median of an interval's rows plus (S/a) Z, Z standard Cauchy, to the next point.

    Claim:       pure DP, epsilon = a + beta, when one row arrives or leaves.
                                                                   [claim: recursive-medians]
    Neighbours:  one row more or less in the interval; `RecursiveMedians` has the others.
    Sensitivity: S = max(1, max over k of exp(-beta k) (x[h + ceil(k/2)] - x[l - floor(k/2)])),
                 or with ceil and floor exchanged, where x[l], x[h] are the two rows that the
                 median moves between; proofs/recursive-medians.md. The reference's formula is for
                 rows replaced at a fixed number, and the number in an interval is not fixed.
    Numerics:    exact, on the grid: S is a ball at any precision, the draw is `draw_on_lattice`.
                 Doubles only drop terms of the maximum that are lower by more than their error.
    Refuses:     a or beta that is not positive.
    Reference:   Nissim, Raskhodnikova and Smith 2007, section 3.1.
    Cost:        O(min(rows, ln(points)/beta)) and one draw.

    >>> rows = Rows(np.concatenate([[0], np.cumsum([3, 0, 2, 0, 0, 4])]), left=-1, right=6)
    >>> median = SmoothMedian(a=Fraction(1), beta=Fraction(1))
    >>> int(rows.order_statistic(5)), median.candidates(rows)
    (2, [(3, 1)])
    """

    a: Fraction
    beta: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0 or self.beta <= 0:
            raise ArgumentError("a and beta must be positive. Half of epsilon each is a start.")

    def candidates(self, rows: Rows) -> list[tuple[int, int]]:
        """(gap, k) such that S is the largest gap * exp(-beta k): the contenders."""
        if rows.count == 0:
            return [(rows.right - rows.left, 0)]
        beta = float(self.beta)
        # Beyond this k even the whole interval counts less than the one grid step that S has.
        furthest = min(rows.count + 1, int(np.log(rows.right - rows.left) / beta) + 2)
        steps = np.arange(furthest + 1)
        gaps = self._gaps(rows, steps)
        logarithms = np.log(np.maximum(gaps, 1)) - beta * steps
        best = max(float(logarithms.max()), 0.0)
        contenders: dict[int, int] = {1: 0} if best < _NEAR else {}
        for k in np.flatnonzero(logarithms > best - _NEAR):
            contenders.setdefault(int(gaps[k]), int(k))
        return sorted(contenders.items())

    @staticmethod
    def _gaps(rows: Rows, steps: Ints) -> Ints:
        """The longest gap around the median when up to k rows arrive or leave."""
        middle, odd = divmod(rows.count, 2)
        # Even: the median is row `middle` and may move up to the next. Odd: it is row middle + 1
        # and may move down to row `middle`. Either way these two rows are the nearest.
        more, less = (steps + 1) // 2, steps // 2
        down, up = (less, more) if odd else (more, less)
        return rows.order_statistic(middle + 1 + up) - rows.order_statistic(middle - down)

    def sample(self, rows: Rows, *, randomness: Randomness | None = None) -> int:
        """A point of the grid, or beyond it; whole, and differentially private."""
        median = int(rows.order_statistic((rows.count + 1) // 2))
        candidates = self.candidates(rows)

        def real(uniform: "arb") -> "arb":
            from flint import arb

            scales = [gap * (-rational(self.beta) * k).exp() for gap, k in candidates]
            smooth = scales[0]
            for scale in scales[1:]:
                smooth = arb.max(smooth, scale)
            # -cot(pi u) is tan(pi (u - 1/2)), the quantile of the Cauchy law.
            return rational(median) - smooth / rational(self.a) * uniform.cot_pi()

        return draw_on_lattice(real, lattice=Fraction(1), randomness=randomness)


@dataclass(frozen=True, kw_only=True)
class MedianNissim2007(SmoothMedian):
    """The same with the sensitivity of the reference, which is never smaller.

    Claim:       pure DP, epsilon = a + beta, when one row arrives or leaves.
                                                                   [claim: recursive-medians]
    Neighbours:  one row more or less in the interval; `MediansAsPrinted` has the others.
    Sensitivity: S = max(1, max over k of exp(-beta k) times the widest k + 1 gaps in a row that
                 have the median at an end or inside).
    Numerics:    exact, as `SmoothMedian`.
    Refuses:     a or beta that is not positive.
    Reference:   Nissim, Raskhodnikova and Smith 2007, section 3.1, proposition 3.4.
    Cost:        O(k^2) for the k of `SmoothMedian`.

    >>> rows = Rows(np.concatenate([[0], np.cumsum([3, 0, 2, 0, 0, 4])]), left=-1, right=6)
    >>> MedianNissim2007(a=Fraction(1), beta=Fraction(1)).candidates(rows)
    [(3, 0)]
    """

    @staticmethod
    def _gaps(rows: Rows, steps: Ints) -> Ints:
        most, middle = int(steps[-1]) + 1, (rows.count + 1) // 2
        near = rows.order_statistic(np.arange(middle - most, middle + most + 1))
        return np.array([
            (near[most : most + k + 2] - near[most - k - 1 : most + 1]).max() for k in steps
        ])  # fmt: skip


MOST_BINS = 2**17  # more than there are points in a grid


@dataclass(frozen=True, kw_only=True)
class EvenEdges:
    """Bins of equal width, whatever the rows are. Free.

    >>> EvenEdges(bins=4).draw(np.zeros(17)).tolist()
    [0, 4, 8, 12, 17]
    """

    bins: int

    def __post_init__(self) -> None:
        Whole(1, MOST_BINS)(self.bins, "thresholds")

    @property
    def most_bins(self) -> int:
        return self.bins

    def events(self) -> tuple[Event, ...]:
        return ()

    def draw(self, counts: Ints) -> Ints:
        points = len(counts)
        return np.unique(np.append(np.arange(self.bins) * (points - 1) // self.bins, points))

    def describe(self) -> dict[str, object]:
        return {"thresholds": "even", "bins": self.bins}


@dataclass(frozen=True, kw_only=True)
class RecursiveMedians:
    """Noisy medians of all rows, of each half, of each quarter, ... for `levels` levels.

    Claim:       pure DP, epsilon.                                 [claim: recursive-medians]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one interval a level, so a row that arrives or leaves changes one
                 median per level; each has epsilon/(levels * moved). `moved` is 2 for replace-one:
                 the row that leaves and the row that arrives may lie in two intervals.
    Numerics:    exact, see `SmoothMedian`.
    Refuses:     an epsilon that is not positive; levels outside 1 to 14.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, algorithm 4 (add-remove); Chen et al.
                 2016, algorithm 2 (replace-one). Both draw 8 S/epsilon of noise a median; with
                 the constants worked out 2 S/epsilon is enough, and is what is drawn here
                 (a = beta = epsilon/2).
    Cost:        0.1 ms a median, 2^levels - 1 of them.

    >>> cut = RecursiveMedians(levels=2, epsilon=Fraction(1, 5), moved=2)
    >>> cut.median.a, cut.median.beta
    (Fraction(1, 40), Fraction(1, 40))
    """

    levels: int
    epsilon: Fraction
    moved: int

    def __post_init__(self) -> None:
        Whole(1, 14)(self.levels, "levels")
        if self.epsilon <= 0:
            raise ArgumentError("epsilon must be positive.")

    @property
    def most_bins(self) -> int:
        return int(2**self.levels)

    @property
    def median_price(self) -> Fraction:
        """Return what one median may lose when one row arrives or leaves."""
        return self.epsilon / (self.levels * self.moved)

    @property
    def median(self) -> SmoothMedian:
        return SmoothMedian(a=self.median_price / 2, beta=self.median_price / 2)

    def events(self) -> tuple[Event, ...]:
        level = {"a": self.moved * self.median.a, "beta": self.moved * self.median.beta}
        return tuple(Event("smooth-cauchy", level) for _ in range(self.levels))

    def draw(self, counts: Ints) -> Ints:
        points = len(counts)
        below = np.append(0, np.cumsum(counts))
        median, edges = self.median, {0, points}

        def cut(left: int, right: int, levels: int) -> None:
            # Without a point between left and right there is nothing to find out.
            if levels == 0 or right - left < 2:
                return
            middle = median.sample(Rows(below, left, right))
            if not left < middle < right:
                middle = (left + right) // 2
            edges.add(middle + 1)
            cut(left, middle, levels - 1)
            cut(middle, right, levels - 1)

        cut(-1, points, self.levels)
        return np.array(sorted(edges))

    def describe(self) -> dict[str, object]:
        return {
            "thresholds": "recursive medians",
            "levels": self.levels,
            "median_epsilon": str(self.median_price),
        }


@dataclass(frozen=True, kw_only=True)
class MediansAsPrinted(RecursiveMedians):
    """Recursive medians with the noise that both papers print: 8 S/e, e the share of a median.

    Claim:       pure DP, epsilon.                                 [claim: recursive-medians]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of `RecursiveMedians`, with S of Nissim et al. at beta = e/2. Noise of 8 S/e
                 then loses e/8 + e/2; the papers' price e is charged all the same.
    Numerics:    exact, see `SmoothMedian`.
    Refuses:     what `RecursiveMedians` refuses.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, algorithm 4 (e = epsilon/k, add-remove);
                 Chen et al. 2016, algorithm 2 (e = gamma/2 = epsilon/2s, replace-one).
    Cost:        that of `RecursiveMedians`.

    >>> cut = MediansAsPrinted(levels=2, epsilon=Fraction(1, 5), moved=2)
    >>> cut.median_price, cut.median.a, cut.median.beta
    (Fraction(1, 20), Fraction(1, 160), Fraction(1, 40))
    """

    @property
    def median(self) -> SmoothMedian:
        return MedianNissim2007(a=self.median_price / 8, beta=self.median_price / 2)

    def events(self) -> tuple[Event, ...]:
        level = Event("exponential", {"epsilon": self.moved * self.median_price})
        return (level,) * self.levels


# Where the bins begin: cuts near the medians of all rows, of each half, of each quarter, ...; and
# in each bin the cell of the grid that holds most rows.
_BY_LOG_ODDS: Final = 0.45
_LARGEST_PARTS: Final = 100  # percents are the finest fractions that count as simple
_HEAP_STEPS: Final = 2**31
_MEASURE: Final = 2**32
UNDIVIDED: Final = 9
"""How much likelier a bin has no heap than one, beforehand: benchmarks/curves.py; 3 and 20 were
tried. Since 2026-11-18."""
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
    Sensitivity: a row lies in one part per level and moves the penalties of that part's cuts by
                 one; each cut is drawn with rate epsilon/(2 levels moved), so that a row costs
                 epsilon/moved, and neighbours differ in `moved` rows.
    Numerics:    exact, see `choose_exactly`.
    Refuses:     an epsilon that is not positive; levels outside 1 to 8.
    Reference:   McSherry and Talwar 2007; the recursion is Kaplan, Schnapp and Stemmer 2022.
    Cost:        about 3 ms per level on a grid of 65,537 points.

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
    """In each bin the cell of the grid that holds most rows, if one stands out; else none.

    Scores that take few values lie in heaps; a heap is then a bin of its own. A cell with `n` rows
    and the public weight `w` is drawn with a probability proportional to `w exp(rate n)`, and no
    cell with one proportional to `undivided` times the sum of the bin's `w`. So a bin over which
    rows lie evenly stays whole but for once in about `undivided` times: parting it would double the
    noise of its count. With 0 a cell of every bin is drawn.

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
    undivided: int = UNDIVIDED

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.moved < 1:
            raise ArgumentError("epsilon and rows moved must be positive.")
        Whole(0, 1000)(self.undivided, "undivided")

    @property
    def rate(self) -> Fraction:
        """Return what one row adds to the logarithm of its cell's weight."""
        return self.epsilon / self.moved

    def draw(self, counts: Ints, edges: Ints, *, randomness: Randomness | None = None) -> Ints:
        """Return at most one grid point for each bin between the edges; counts are exact."""
        counts, cells = np.asarray(counts, dtype=np.int64), []
        weights = heap_weights(len(counts))
        for left, right in pairwise(np.asarray(edges).tolist()):
            inside, penalties = weights[left:right], -counts[left:right]
            if self.undivided:
                inside = np.append(inside, self.undivided * inside.sum())
                penalties = np.append(penalties, 0)
            place = selection.choose_exactly(inside, penalties, self.rate, randomness=randomness)
            if place < right - left:
                cells.append(left + place)
        return np.array(cells, dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"heaps": "most crowded cells", "heaps_epsilon": str(self.epsilon)}
