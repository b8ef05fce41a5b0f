"""Means of a bounded error: Brier score, mean absolute and mean squared error."""

from collections.abc import Callable
from typing import Any

import numpy as np

from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.measure import Interval, Measure
from heldout.metrics.ratio import NoisyCounts, Ratio
from heldout.metrics.release import Release
from heldout.release import Drawn
from heldout.statistics import BoundedSum


class MeanRelease(Release):
    """A noisy mean of errors that lie in a declared range.

    The population interval takes the largest variance that errors with this mean can have, so it
    covers whatever their distribution is, and is wider than one that could look at them.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        statistic, mechanism = drawn.request.statistic, drawn.request.mechanism
        assert isinstance(statistic, BoundedSum)
        assert isinstance(mechanism, DiscreteLaplace)
        self._largest = statistic.largest
        self._ratio = Ratio(
            counts=noisy_sums(
                drawn.values,
                mechanism,
                unit=float(statistic.resolution),
                rows=None if statistic.with_rest else drawn.about.rows,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @property
    def measures(self) -> dict[str, Measure]:
        name = self.name
        return {name: mean(self._ratio, self._largest, name=name, terms=self.terms)}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value / self._largest)


def mean(ratio: Ratio, largest: float, *, name: str, terms: str) -> Measure:
    """A mean of errors that are at most `largest`, from its share of the largest one."""

    def scaled(interval: Callable[[float], Interval]) -> Callable[[float], Interval]:
        def compute(level: float) -> Interval:
            low, high = interval(level)
            return (low * largest, high * largest)

        return compute

    return Measure(
        ratio.value * largest,
        name=name,
        terms=terms,
        noise_interval=scaled(ratio.noise_interval),
        interval=scaled(ratio.interval),
        share=lambda value: value / largest,
    )


def noisy_sums(
    noisy: Any, mechanism: DiscreteLaplace, *, unit: float, rows: int | None
) -> NoisyCounts:
    """The sum of errors and the sum of what they fall short of the largest error."""
    scale = mechanism.float_scale
    if rows is None:
        return NoisyCounts(
            estimate=np.asarray(noisy, dtype=float), spread=np.eye(2), scale=scale, unit=unit
        )
    total = float(noisy[0])
    return NoisyCounts(
        estimate=np.array([total, rows * unit - total]),
        spread=np.array([[1.0], [-1.0]]),
        scale=scale,
        unit=unit,
        rows=rows,
    )
