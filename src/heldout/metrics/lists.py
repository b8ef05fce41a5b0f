"""The mean over ranked lists of how well each is ranked."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.bounded_mean import mean
from heldout.metrics.measure import Measure
from heldout.metrics.ratio import NoisyCounts, Ratio
from heldout.metrics.release import Release
from heldout.release import Drawn
from heldout.statistics.weights import STEPS

__all__ = ["ListsRelease", "SpreadRatio"]


@dataclass(frozen=True, eq=False)
class SpreadRatio(Ratio):
    """The mean of v from noisy sums of v^2, v - v^2 and 1 - v, whose spread the first one tells."""

    def _variance(self, r: float, combination: Any, margin: float) -> float:
        """The sum of (v - r)^2 over all lists, and a deviation of its noise more."""
        weights = np.array([(1 - r) ** 2, r * r - 2 * r, r * r])
        counts = self.counts
        noise = math.sqrt(2) * counts.scale * float(np.linalg.norm(weights))
        seen = float(weights @ counts.estimate) + noise
        return max(seen, counts.unit * r * (1 - r)) * counts.unit


class ListsRelease(Release):
    """A noisy mean over lists."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        self._ratio = SpreadRatio(
            counts=NoisyCounts(
                estimate=np.asarray(drawn.values, dtype=float),
                spread=np.eye(3),
                scale=mechanism.float_scale,
                unit=float(STEPS),
            ),
            numerator=np.array([1.0, 1.0, 0.0]),
            denominator=np.ones(3),
        )

    @property
    def measures(self) -> dict[str, Measure]:
        return {self.name: mean(self._ratio, 1.0, name=self.name, terms=self._drawn.terms)}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value)
