"""The mean over ranked lists of how well each is ranked."""

from typing import Any

import numpy as np

from heldout.intervals.bounded_mean import mean, share_of
from heldout.intervals.measure import Measure
from heldout.intervals.ratio import NoisyCounts, Squares
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.weights import STEPS

__all__ = ["ListsRelease", "list_sums"]


def _squares(combination: Any) -> Any:
    """Of a v + b (1 - v), by the sums of v^2, v - v^2 and 1 - v."""
    a, b = combination
    return np.array([a * a, (2 * a - b) * b, b * b])


def list_sums(noisy: Any, mechanism: DiscreteLaplace) -> NoisyCounts:
    """Return the sums of v and of 1 - v over lists, and how much lists differ."""
    sums, both = np.asarray(noisy, dtype=float), np.array([[1.0, 1, 0], [0, 0, 1]])
    return NoisyCounts(
        estimate=both @ sums,
        spread=both,
        scale=mechanism.float_scale,
        unit=float(STEPS),
        squares=Squares(sums * STEPS, np.eye(3) * STEPS, _squares),
    )


class ListsRelease(Release):
    """A noisy mean over lists."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        self._ratio = share_of(list_sums(drawn.values, mechanism))

    @property
    def measures(self) -> dict[str, Measure]:
        return {self.name: mean(self._ratio, 1.0, name=self.name, terms=self._drawn.terms)}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value)
