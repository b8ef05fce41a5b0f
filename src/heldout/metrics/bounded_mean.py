"""Means of a bounded error: Brier score, mean absolute and mean squared error."""

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
        low, high = statistic.score_range
        self._largest = (high - low) ** (2 if statistic.error == "squared" else 1)
        self._ratio = Ratio(
            counts=_sums(drawn.values, mechanism, statistic, rows=drawn.public_rows),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @property
    def measures(self) -> dict[str, Measure]:
        ratio, largest = self._ratio, self._largest

        def scaled(interval: Any) -> Any:
            def compute(level: float) -> Interval:
                low, high = interval(level)
                return (low * largest, high * largest)

            return compute

        return {
            self.name: Measure(
                ratio.value * largest,
                name=self.name,
                terms=self._drawn.terms,
                noise_interval=scaled(ratio.noise_interval),
                interval=scaled(ratio.interval),
                share=lambda value: value / largest,
            )
        }

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value / self._largest)


def _sums(
    noisy: Any, mechanism: DiscreteLaplace, statistic: BoundedSum, *, rows: int | None
) -> NoisyCounts:
    """The sum of errors and the sum of what they fall short of the largest error."""
    scale, unit = mechanism.float_scale, float(statistic.resolution)
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
