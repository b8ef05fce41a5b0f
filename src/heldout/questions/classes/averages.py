"""Readings of a matrix of several classes that are no ratio of two sums, with their intervals.

They are linearised about the released counts: their noise is a weighted sum of the counts' noises,
of known law. A class with few rows, or one that noise drowned, enters a mean with its own interval
instead (Zou and Donner 2008): it makes the mean wide, and not wrong.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.intervals.registry import Contrast

__all__ = ["Linearised", "MeanRatio", "class_contrasts", "recovered"]

_PRIOR: Final = 2.0  # rows, spread over all cells: what no row was seen in is not known to be empty
_STEP: Final = 1e-4  # of all rows, for slopes
_CLEAR: Final = 5.0  # standard deviations of the noise
_ENOUGH: Final = 10  # rows
_STRAIGHT: Final = 0.15  # of all rows: a class may have so much noise before slopes say nothing


def recovered(
    value: float, ends: Sequence[Interval], values: Sequence[float], correlation: Any, share: float
) -> Interval:
    """The interval of a mean from its parts' own, held to [0, 1]."""
    low = np.array([each - end[0] for each, end in zip(values, ends, strict=True)])
    high = np.array([end[1] - each for each, end in zip(values, ends, strict=True)])
    below, above = (share * math.sqrt(max(x @ correlation @ x, 0.0)) for x in (low, high))
    return max(value - below, 0.0), min(value + above, 1.0)


@dataclass(frozen=True, eq=False)
class MeanRatio:
    """A mean of several ratios of the same counts; `read` are the same as measures.

    Plain, or with `weights`: each row is a combination of the counts, and its share of their sum
    is a ratio's weight. Ratios whose denominator stands well above the noise enter as drawn, not
    held to [0, 1]: holding each would move the mean.
    """

    parts: tuple[Ratio, ...]
    read: tuple[Measure, ...]
    weights: Any = None

    @property
    def _counts(self) -> NoisyCounts:
        return self.parts[0].counts

    @cached_property
    def _shares(self) -> Any:
        """The weight of each ratio, and how it moves with the counts."""
        size, cells = len(self.parts), len(self._counts.estimate)
        if self.weights is None:
            return np.full(size, 1 / size), np.zeros((size, cells))
        sums = np.maximum(self.weights @ self._counts.estimate, 0.0)
        total = max(float(sums.sum()), self._counts.unit)
        shares = sums / total
        return shares, (self.weights - np.outer(shares, self.weights.sum(axis=0))) / total

    @cached_property
    def _clear(self) -> Any:
        """Which denominators stand well above the noise, with rows enough to be normal."""
        counts, found = self._counts, []
        for each in self.parts:
            spread = float(np.linalg.norm(counts.spread.T @ each.denominator))
            noise = math.sqrt(2) * counts.scale * spread
            least = max(_CLEAR * noise, _ENOUGH * counts.unit * float(each.denominator.max()))
            found.append(float(each.denominator @ counts.estimate) > least)
        return np.array(found)

    @cached_property
    def _centres(self) -> Any:
        cells = self._counts.estimate
        return np.array(
            [
                each.numerator @ cells / (each.denominator @ cells) if clear else each.value
                for each, clear in zip(self.parts, self._clear, strict=True)
            ]
        )

    @property
    def value(self) -> float:
        return min(max(float(self._shares[0] @ self._centres), 0.0), 1.0)

    @cached_property
    def _slopes(self) -> Any:
        """How the mean moves with the counts, by its weights and by the ratios that are clear."""
        shares, moving = self._shares
        found = self._centres @ moving
        for each, share, centre, clear in zip(
            self.parts, shares, self._centres, self._clear, strict=True
        ):
            if clear:
                below = float(each.denominator @ self._counts.estimate)
                found = found + share * (each.numerator - centre * each.denominator) / below
        return found

    def _ends(self, half: float, read: Callable[[Measure], Interval]) -> Interval:
        """The linear part's half-width with the distances of those that are not clear."""
        centre, (low, high) = float(self._shares[0] @ self._centres), (half, half)
        for share, value, each, clear in zip(
            self._shares[0], self._centres, self.read, self._clear, strict=True
        ):
            if not clear:
                end = read(each)
                low = math.hypot(low, share * (value - end[0]))
                high = math.hypot(high, share * (end[1] - value))
        return min(max(centre - low, 0.0), 1.0), min(max(centre + high, 0.0), 1.0)

    def noise_interval(self, level: float) -> Interval:
        half = half_width(self._counts, self._slopes, 0.0, level)
        return self._ends(half, lambda each: each.noise_interval(level))

    def interval(self, level: float) -> Interval:
        half = half_width(self._counts, self._slopes, deviation(self._counts, self._slopes), level)
        return self._ends(half, lambda each: each.interval(level))


def deviation(counts: NoisyCounts, slopes: Any) -> float:
    """Of the sampling error of a reading with these slopes, by the counts as drawn."""
    squares = slopes**2
    most = counts.unit * max(float(counts.estimate @ squares), 0.0)
    unseen = counts.unit**2 * _PRIOR / len(squares) * float(squares.sum())
    return math.sqrt(counts.sampling_variance(slopes, most) + unseen)


def half_width(counts: NoisyCounts, slopes: Any, deviation: float, level: float) -> float:
    """Of the noise and a normal error together, and half a step of the count that weighs most.

    Many whole-numbered noises add up to one that is nearly continuous.
    """
    law = counts.noise(slopes, deviation=deviation)
    return law.quantile(level) + float(np.abs(counts.spread.T @ slopes).max()) / 2


@dataclass(frozen=True, eq=False)
class Linearised:
    """A smooth function of noisy counts near what was released; all of its range if not near."""

    counts: NoisyCounts
    contrast: Contrast

    @cached_property
    def value(self) -> float:
        found = float(self.contrast(self.counts.estimate))
        return self.contrast.neutral if math.isnan(found) else found

    @cached_property
    def _slopes(self) -> Any:
        cells = self.counts.estimate
        step = _STEP * max(float(cells.sum()), 1.0)
        moved = self.contrast(cells + step * np.eye(cells.size))
        return np.nan_to_num((moved - self.value) / step)

    @cached_property
    def _near(self) -> bool:
        """Whether noise leaves the counts where the function is nearly straight."""
        cells, size = self.counts.estimate, math.isqrt(self.counts.estimate.size)
        noise = np.linalg.norm(self.counts.spread.T @ (np.arange(cells.size) < size))
        return bool(math.sqrt(2) * self.counts.scale * noise < _STRAIGHT * float(cells.sum()))

    def noise_interval(self, level: float) -> Interval:
        return self._around(0.0, level)

    def interval(self, level: float) -> Interval:
        return self._around(deviation(self.counts, self._slopes), level)

    def _around(self, deviation: float, level: float) -> Interval:
        low, high = self.contrast.low, self.contrast.high
        if not self._near:
            return low, high
        half = half_width(self.counts, self._slopes, deviation, level)
        return max(self.value - half, low), min(self.value + half, high)


# --- the functions -------------------------------------------------------------------------------


def _matrix(cells: Sequence[Any]) -> Any:
    """Truth by call, then whatever axes there are beside; as shares, whose powers stay finite."""
    each = np.array(cells, dtype=float)
    each = each / max(float(np.abs(each).max()), 1e-280)
    size = math.isqrt(len(each))
    return each.reshape(size, size, *each.shape[1:])


def _kappa(*cells: Any) -> Any:
    matrix = _matrix(cells)
    total, right = matrix.sum(axis=(0, 1)), np.einsum("kk...->...", matrix)
    chance = (matrix.sum(axis=0) * matrix.sum(axis=1)).sum(axis=0) / total
    return (right - chance) / (total - chance)


def _matthews(*cells: Any) -> Any:
    matrix = _matrix(cells)
    called, true = matrix.sum(axis=0), matrix.sum(axis=1)
    total, right = matrix.sum(axis=(0, 1)), np.einsum("kk...->...", matrix)
    sides = (total**2 - (called**2).sum(axis=0)) * (total**2 - (true**2).sum(axis=0))
    return (right * total - (called * true).sum(axis=0)) / np.sqrt(sides)


def class_contrasts() -> tuple[Contrast, ...]:
    """What is read off a whole matrix, beside ratios and their means."""
    # fmt: off
    return (
        Contrast("Cohen's kappa", _kappa, -1, 1, 0.0, "(accuracy - chance) / (1 - chance)",
                 "Agreement of call and truth, or of two annotators, beyond chance",
                 "cohen_kappa_score"),
        Contrast("Matthews correlation", _matthews, -1, 1, 0.0,
                 "covariance of calls and truth over the root of their variances' product",
                 "Correlation of call and truth", "matthews_corrcoef"),
    )
    # fmt: on
