"""How far a curve may lie from the fitted one, measured across it, at points along it.

A place on a curve is named by u = fpr + tpr, and how high the curve is there by w = tpr - fpr: so a
steep piece and a flat one are looked at alike, square to the diagonal. How far w strays is known
from the fitted law (`Fitted.stray`), which is never believed to know the counts much better than
their own noise, and from the sampling of rows (two Brownian bridges, one a class). Beside what
strays there are margins for what the law cannot say: the shape of the curve within a bin, and
counts that say otherwise than the law.
Everything is made from released numbers, hence free.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.questions.curves.fit import Fitted
from heldout.questions.curves.model import STOPS

__all__ = ["Along"]

# Chosen on made-up scores of 17 kinds (binormal, weak, strong, steep, flat at the end, negatives
# that score highest, tied in 5, 10 and 50 values, two heaps, leaves of a tree, heavy tails, lost
# positives, skewed), 300 to 20,000 rows, .02 to .5 positive, epsilon .1 to 4, both relations: for
# noise bands of level .95 that hold in .95 to .98. CORNER, and that bins at the start may hold no
# negative, were put in after a look at Reuters. docs/curves.md says on what all were looked at.
COUNTED: Final = 0.5
"""The least deviation of a height, over that of the counts alone: where a law has seen few rows, as
near the ends, it believes that it knows the curve."""
NEAR: Final = 0.8
"""The same upwards, over that of the counts or of one bin, what is less: a curve may rise straight
up at its start, where the law has a few negatives in every bin."""
LEAST: Final = 0.3
"""The least deviation of a rate, over the scale of the noise of one count."""
UNEVEN: Final = 0.05
"""Deviation of w within a bin, over the height of the rectangle from edge to edge."""
CONTRADICTED: Final = 0.3
"""The band reaches to where the counts alone have the curve, less so many of their deviations."""
SHORT: Final = 0.004
"""Bins of a smaller length of u hold next to no row: what is between them is not looked at."""
WINDOW: Final = 0.01
"""Of u, to either side: the slope of the curve is that over a window, as it may lie elsewhere."""
CORNER: Final = 1.25
"""How far a curve may go within a bin, over where the lines of the bins beside meet: one beside it
may be steeper near it than all in all."""
MIXED: Final = 0.5
"""How much of the way a curve may go that turns over within a bin."""
SMOOTHED: Final = 0.75
"""How much of the sampling variance is left: the fit is smoother than the rows that it saw. Chosen
with an earlier choice of the margins, on adult and made-up scores."""
END: Final = 0.005
"""Bins that begin at a lower false positive rate, or end at so high a true one, are the ends."""
NOISE: Final = 3.0
"""How far a count there may be noise, in scales of it."""

_PART: Final = len(STOPS) - 1  # points of the curve in a bin
_WITHIN: Final = (1, 3, 4, 5, 6, 7, 8, 10, 12)
"""Which of them are looked at. None is at an edge, where the curve has two slopes."""


@dataclass(frozen=True, eq=False)
class Along:
    """Points along a fitted curve, and how far the curve may lie from them."""

    fit: Fitted

    @cached_property
    def _u(self) -> Any:
        curve = self.fit.curve
        return curve.fpr + curve.tpr + np.linspace(0, 1e-12, len(curve.fpr))

    @cached_property
    def _w(self) -> Any:
        return self.fit.curve.tpr - self.fit.curve.fpr

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """Negatives and positives."""
        return max(self.fit.curve.negatives, 1.0), max(self.fit.curve.positives, 1.0)

    @cached_property
    def _edges(self) -> tuple[Any, Any]:
        """Places and heights of the edges."""
        return self._u[::_PART], self._w[::_PART]

    @cached_property
    def _steps(self) -> tuple[Any, Any]:
        """By how much the rates rise in each bin."""
        curve = self.fit.curve
        return np.diff(curve.fpr[::_PART]), np.diff(curve.tpr[::_PART])

    @cached_property
    def _lengths(self) -> Any:
        return np.maximum(np.diff(self._edges[0]), 1e-12)

    @cached_property
    def points(self) -> Any:
        """Which points of the curve are looked at."""
        found, last = [], 1e-6
        for start in np.flatnonzero(self._lengths > SHORT) * _PART:
            for point in start + np.array(_WITHIN):
                if last + 2e-4 < self._u[point] < 2 - 1e-6:
                    found.append(point)
                    last = self._u[point]
        return np.array(found or [_PART // 2])

    @property
    def bins(self) -> Any:
        return self.points // _PART

    @cached_property
    def places(self) -> Any:
        return self._u[self.points]

    @cached_property
    def heights(self) -> Any:
        return self._w[self.points]

    @cached_property
    def _slopes(self) -> Any:
        """Of w over u: -1 where the curve is flat, 1 where it is steep."""
        begin, end = np.maximum(self.places - WINDOW, 0.0), np.minimum(self.places + WINDOW, 2.0)
        rise = np.interp(end, self._u, self._w) - np.interp(begin, self._u, self._w)
        return np.clip(rise / (end - begin), -1.0, 1.0)

    @cached_property
    def _parts(self) -> Any:
        """How much of its bin lies before a point."""
        starts = self._edges[0][self.bins]
        return np.clip((self.places - starts) / self._lengths[self.bins], 0.0, 1.0)

    def _between(self, at_edges: Any) -> Any:
        return at_edges[self.bins] * (1 - self._parts) + at_edges[self.bins + 1] * self._parts

    def _across(self, false: Any, true: Any) -> Any:
        """What w strays by where both rates stray by so much, at the same u."""
        return (1 - self._slopes) * true - (1 + self._slopes) * false

    @cached_property
    def _within(self) -> Any:
        """A Brownian bridge in each bin."""
        same = self.bins[:, None] == self.bins
        return (
            np.minimum.outer(self._parts, self._parts) - np.outer(self._parts, self._parts)
        ) * same

    @cached_property
    def _counts(self) -> tuple[Any, Any, Any]:
        """What the counts alone have at the edges: by how much w is higher, and two variances.

        Either class's rate is read from above and from below, by weights of least variance. The
        second variance is that of one bin, where that is less.
        """
        table, rates, found = self.fit.table, [], []
        noise = table.noise.bin_deviation[:, ::-1] ** 2
        for counts, each, size in zip(
            (table.negatives, table.positives), noise, self._sizes, strict=True
        ):
            held, above = (np.append(0.0, np.cumsum(some)) for some in (counts[::-1], each))
            weight = 1 - above / above[-1]
            rate = weight * held + (1 - weight) * (size - held[-1] + held)
            rates.append(np.clip(rate / size, 0.0, 1.0))
            one = np.maximum(np.append(each[0], each), np.append(each, each[-1]))
            found.append(np.array([above * weight, np.minimum(above * weight, one)]) / size**2)
        false, true = rates
        higher = true - false - np.interp(false + true, self._u, self._w)
        variances = [
            sum(
                self._between(each[index]) * (1 + sign * self._slopes) ** 2
                for each, sign in zip(found, (1, -1), strict=True)
            )
            for index in (0, 1)
        ]
        return self._between(higher), np.sqrt(variances[0]), np.sqrt(variances[1])

    @cached_property
    def noise(self) -> Any:
        """Covariance of w by the law."""
        points = self.points
        law = self.fit.stray(lambda each: self._across(each.fpr[points], each.tpr[points]))
        return law + (LEAST * self.fit.table_scale / min(self._sizes)) ** 2 * np.eye(len(points))

    @cached_property
    def least(self) -> tuple[Any, Any]:
        """The least deviations down and up: no law knows the counts much better than they do."""
        _, counted, near = self._counts
        return COUNTED * counted, np.maximum(COUNTED * counted, NEAR * near)

    @cached_property
    def uneven(self) -> Any:
        """Covariance of w from rows that lie within a bin as chance has it, and a little more."""
        run, rise = self._steps
        negatives, positives = self._sizes
        variance = (run / self._lengths) ** 2 * (rise + 1 / positives) / positives
        variance += (rise / self._lengths) ** 2 * (run + 1 / negatives) / negatives
        variance += (UNEVEN * run * rise / self._lengths) ** 2
        deviation = 2 * np.sqrt(variance)[self.bins]
        return np.outer(deviation, deviation) * self._within

    @cached_property
    def sampling(self) -> Any:
        """Covariance of w from drawing the rows: two Brownian bridges."""
        found, points = np.zeros((len(self.points),) * 2), self.points
        rates = (self.fit.curve.fpr[points], self.fit.curve.tpr[points])
        for rate, size, sign in zip(rates, self._sizes, (1, -1), strict=True):
            bridge = np.minimum.outer(rate, rate) - np.outer(rate, rate)
            # One row more of either kind: where no row was seen some may still be.
            bridge += np.eye(len(rate)) / size
            weight = 1 + sign * self._slopes
            found += np.outer(weight, weight) * bridge / size
        return found

    def rooms(self, quantile: float) -> tuple[Any, Any]:
        """How far down and up a curve may bend within a bin that goes on as it does beside it.

        Ties make it straight. Heaps make a corner, about where the straight lines of the bins
        before and after meet. Both are far from a smooth curve only where a bin is long. All
        negatives down from the highest score may be noise: then the curve rises straight up.
        """
        (places, heights), bins, at = self._edges, self.bins, self.places
        slopes = np.clip(np.diff(heights) / self._lengths, -1.0, 1.0)
        before, after = _beside(slopes, self._lengths > SHORT)
        chord, (since, until) = self._between(heights), (at - places[bins], places[bins + 1] - at)
        start, end = heights[bins], heights[bins + 1]
        # A curve rises: so it is in the rectangle from edge to edge. Straight up, w is u.
        without = self._without_negatives(quantile)
        straight = bins <= without
        highest = np.minimum(np.where(straight, at, start + since), end + until)
        highest = np.where(bins < without, at, highest)
        lowest = np.maximum(start - since, end - until)
        onwards = np.where(straight, at, start + before[bins] * since) - chord
        back = np.where(bins < without, at, end - after[bins] * until) - chord
        found = []
        for sign, most in ((-1, chord - lowest), (1, highest - chord)):
            one, other = sign * onwards, sign * back
            both = np.minimum(one, other)
            turning = MIXED * np.clip(np.maximum(one, other), 0.0, most)
            bent = np.where(both > 0, CORNER * both, turning)
            found.append(np.maximum(np.clip(bent, 0.0, most) - sign * (self.heights - chord), 0.0))
        return found[0], found[1]

    def margins(self, quantile: float) -> tuple[Any, Any]:
        """How far down and up, beside what strays."""
        down, up = self.rooms(quantile)
        higher, deviation, _ = self._counts
        spared = CONTRADICTED * deviation
        return down + np.maximum(-higher - spared, 0.0), up + np.maximum(higher - spared, 0.0)

    def moved(self, by: Any) -> tuple[Any, Any]:
        """The curve with heights moved, as points from (0, 0) to (1, 1) that rise."""
        heights = self.heights + by
        rates = ((self.places - heights) / 2, (self.places + heights) / 2)
        # A curve rises: so what holds at one place holds from there on, or up to there.
        false, true = (np.clip(each, 0.0, 1.0) for each in rates)
        if np.all(by >= 0):
            true, false = np.minimum.accumulate(true[::-1])[::-1], np.maximum.accumulate(false)
            ends = ((0.0, true[0]), (1.0, 1.0))
        else:
            true, false = np.maximum.accumulate(true), np.minimum.accumulate(false[::-1])[::-1]
            ends = ((false[0], 0.0), (1.0, true[-1]))
        (first, start), (last, stop) = ends
        return (
            np.concatenate([[0.0, first], false, [last]]),
            np.concatenate([[0.0, start], true, [stop]]),
        )

    def stepped(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The lowest and highest curve, with less assumed in the bins where curves begin and end.

        The highest scores may all be negatives': then the curve runs flat through a bin and rises
        at its end. The lowest may be either's. A few positives there may be noise.
        """
        curve, bins = self.fit.curve, self.bins
        first = curve.fpr[::_PART][:-1] <= END
        last = curve.tpr[::_PART][1:] >= 1 - END
        # Two points come before the places; from the last point of the bin before.
        begins = np.searchsorted(bins, bins) + 1
        ends = np.searchsorted(bins, bins, side="right") + 2
        noise = NOISE * self.fit.table_scale / self._sizes[1]
        lowest, highest = low[1].copy(), high[1].copy()
        inner = np.flatnonzero(first[bins] | last[bins])
        lowest[inner + 2] = np.maximum(low[1][begins[inner]] - noise, 0.0)
        inner = np.flatnonzero(last[bins])
        highest[inner + 2] = high[1][ends[inner]]
        return (low[0], np.maximum.accumulate(lowest)), (high[0], highest)

    def _without_negatives(self, quantile: float) -> int:
        """How many bins, from the highest scores, may hold no negative in all."""
        table = self.fit.table
        held = np.cumsum(table.negatives[::-1])
        noise = np.sqrt(np.cumsum(table.noise.bin_deviation[0, ::-1] ** 2))
        return int(np.cumprod(held <= quantile * noise).sum())


def _beside(slopes: Any, long: Any) -> tuple[Any, Any]:
    """The slopes of the last long bin before each and of the next after it; steep, flat at ends."""
    before, after = np.ones(len(slopes)), -np.ones(len(slopes))
    for bin_ in range(1, len(slopes)):
        before[bin_] = slopes[bin_ - 1] if long[bin_ - 1] else before[bin_ - 1]
    for bin_ in range(len(slopes) - 2, -1, -1):
        after[bin_] = slopes[bin_ + 1] if long[bin_ + 1] else after[bin_ + 1]
    return before, after
