"""Means of a bounded error: Brier score, log loss, mean absolute and mean squared error."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import NoisyCounts, Ratio, Squares
from heldout.intervals.release import Release
from heldout.kernel.bounded_sum import BoundedSum
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.statistic import STEPS


class MeanRelease(Release):
    """A noisy mean of errors that lie in a declared range.

    The population interval takes the variance that the released sums of e (1 - e) tell, a deviation
    of its noise more, and never more than errors with this mean can have. Half of the range lies
    below the error of a model that knows nothing: an interval from 0 to there says nothing.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        statistic, mechanism = drawn.request.statistic, drawn.request.mechanism
        assert isinstance(statistic, BoundedSum)
        assert isinstance(mechanism, DiscreteLaplace)
        self._largest, self._guess = statistic.largest, of_a_guess(statistic)
        self._ratio = share_of(
            noisy_sums(
                drawn.values,
                mechanism,
                unit=float(statistic.resolution),
                rows=None if statistic.with_rest else drawn.about.rows,
            )
        )

    @property
    def measures(self) -> dict[str, Measure]:
        name = self.name
        measure = mean(self._ratio, self._largest, name=name, terms=self.terms, middle=self._guess)
        return {name: measure}

    def plotted(self) -> dict[str, Measure]:
        """Return the mean, unless it has no natural largest value to be drawn by."""
        return {} if self.parameters["error"] == "log" else self.measures

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value / self._largest)


def of_a_guess(statistic: BoundedSum) -> float:
    """The error of a model that finds all classes alike, whatever the row.

    >>> brier = BoundedSum(error="squared", score_range=(0, 1), with_rest=False)
    >>> of_a_guess(brier)
    0.25
    """
    if statistic.error == "log":
        return min(math.log(statistic.classes or 2), statistic.largest)
    if statistic.classes:
        return 1 - 1 / statistic.classes
    return statistic.largest / (4 if statistic.error == "squared" else 2)


def mean(
    ratio: Ratio,
    largest: float,
    *,
    name: str,
    terms: str,
    middle: float | None = None,
    low: float = 0.0,
) -> Measure:
    """A mean of numbers from `low` to `low + largest`, from its share of that range.

    Half of its range lies below `middle`, where that is given.
    """

    def scaled(interval: Callable[[float], Interval]) -> Callable[[float], Interval]:
        def compute(level: float) -> Interval:
            first, last = interval(level)
            return (low + first * largest, low + last * largest)

        return compute

    return Measure(
        low + ratio.value * largest,
        name=name,
        terms=terms,
        noise_interval=scaled(ratio.noise_interval),
        interval=scaled(ratio.interval),
        share=lambda value: (value - low) / (largest if middle is None else value + middle),
    )


def share_of(counts: NoisyCounts) -> Ratio:
    """The first of two sums, as a share of both."""
    return Ratio(counts=counts, numerator=np.array([1.0, 0.0]), denominator=np.ones(2))


def share_counts(noisy: Any, mechanism: DiscreteLaplace) -> NoisyCounts:
    """Return noisy counts of the rows that something holds for, and of the others."""
    return NoisyCounts(
        estimate=np.asarray(noisy, dtype=float), spread=np.eye(2), scale=mechanism.float_scale
    )


def _squares(combination: Any) -> Floats:
    """Of a e + b f, by the sums of e, e f and f - e f, then of e (1 - w) and f (1 - w)."""
    a, b = combination
    return np.array([a * a, (2 * b - a) * a, b * b, -a * a, -b * b])


def noisy_sums(
    noisy: Any, mechanism: DiscreteLaplace, *, unit: float, rows: int | None
) -> NoisyCounts:
    """The sum of errors, that of what they fall short of the largest, and how much they differ."""
    sums = np.asarray(noisy, dtype=float)
    spread = np.eye(sums.size)
    if rows is not None:
        sums, spread = np.append(sums, rows * unit - sums.sum()), np.vstack([spread, -np.ones(2)])
    both = np.array([[1.0, 0, 0, 0, 0], [0, 1, 1, 0, 0]])[:, : sums.size]
    return NoisyCounts(
        estimate=both @ sums,
        spread=both @ spread,
        scale=mechanism.float_scale,
        unit=unit,
        rows=rows,
        squares=Squares(sums * unit, spread * unit, lambda c: _squares(c)[: sums.size]),
    )


def list_sums(noisy: Any, mechanism: DiscreteLaplace) -> NoisyCounts:
    """Return the sums of v and of 1 - v over lists, and how much lists differ."""
    sums, both = np.asarray(noisy, dtype=float), np.array([[1.0, 1, 0], [0, 0, 1]])
    return NoisyCounts(
        estimate=both @ sums,
        spread=both,
        scale=mechanism.float_scale,
        unit=float(STEPS),
        squares=Squares(sums * STEPS, np.eye(3) * STEPS, _list_squares),
    )


def _list_squares(combination: Any) -> Floats:
    """Of a v + b (1 - v), by the sums of v^2, v - v^2 and 1 - v."""
    a, b = combination
    return np.array([a * a, (2 * a - b) * b, b * b])
