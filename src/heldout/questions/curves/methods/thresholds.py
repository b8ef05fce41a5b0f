"""Where the bins of a curve begin: evenly, or at recursive noisy medians."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from heldout.arguments.rules import Whole
from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.questions.curves.methods.median import MedianNissim2007, Rows, SmoothMedian

__all__ = ["EvenEdges", "MediansAsPrinted", "RecursiveMedians"]

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
    def each(self) -> Fraction:
        """What one median may lose when one row arrives or leaves."""
        return self.epsilon / (self.levels * self.moved)

    @property
    def median(self) -> SmoothMedian:
        return SmoothMedian(a=self.each / 2, beta=self.each / 2)

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
            "median_epsilon": str(self.each),
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
    >>> cut.each, cut.median.a, cut.median.beta
    (Fraction(1, 20), Fraction(1, 160), Fraction(1, 40))
    """

    @property
    def median(self) -> SmoothMedian:
        return MedianNissim2007(a=self.each / 8, beta=self.each / 2)

    def events(self) -> tuple[Event, ...]:
        level = Event("exponential", {"epsilon": self.moved * self.each})
        return (level,) * self.levels
