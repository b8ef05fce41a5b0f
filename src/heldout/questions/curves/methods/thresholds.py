"""Where the bins of a curve begin: evenly, or at recursive noisy medians."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from heldout.arguments.rules import Whole
from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.exact import Randomness, draw_on_lattice, rational

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "EvenEdges",
    "MedianNissim2007",
    "MediansAsPrinted",
    "RecursiveMedians",
    "Rows",
    "SmoothMedian",
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
                 median a level; each has epsilon/(levels * moved). `moved` is 2 for replace-one:
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
