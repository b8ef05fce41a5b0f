"""The released separability: a noisy separator, and how well it tells new rows apart."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.kernel.noise.disjoint import Disjoint
from heldout.questions.separability.separator import Separator, called_true

__all__ = ["SeparabilityRelease"]


class SeparabilityRelease(Release):
    """A noisy separator, and how well it tells rows apart that it was not trained on."""

    def __init__(self, drawn: Drawn, *, public: Any) -> None:
        super().__init__(drawn)
        statistic, mechanism = drawn.request.statistic, drawn.request.mechanism
        assert isinstance(statistic, Separator)
        assert isinstance(mechanism, Disjoint)
        answer, counts = drawn.values
        self.coefficients = dict(
            zip(statistic.recipe.features, (answer * float(statistic.step)).tolist(), strict=True)
        )
        """The released separator; positive speaks for the truth. Noisy, and free to use."""
        self._statistic = statistic
        self._called = called_true(answer * float(statistic.step), public)
        self._recall = Ratio(
            counts=NoisyCounts(
                estimate=np.asarray(counts, dtype=float),
                spread=np.eye(2),
                scale=mechanism.second.float_scale,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        wrong, right = (int(each) for each in self._called)
        share = right / max(wrong + right, 1)
        recall = self._recall

        def public(level: float) -> Interval:
            return _wilson(right, wrong + right, level)

        def noise(level: float) -> Interval:
            low, high = recall.noise_interval(level)
            return (low + share - 1, high + share - 1)

        def full(level: float) -> Interval:
            # Each side gets half of the error, so that both hold together at the level.
            each = (1 + level) / 2
            (low, high), (least, most) = recall.interval(each), public(each)
            return (low + least - 1, high + most - 1)

        def halved(make: Any) -> Any:
            return lambda level: tuple((1 + each) / 2 for each in make(level))

        value, terms = recall.value + share - 1, self.terms
        return {
            "separability": Measure(
                value, name="separability", terms=terms, noise_interval=noise, interval=full
            ),
            "accuracy": Measure(
                (1 + value) / 2,
                name="accuracy",
                terms=terms,
                noise_interval=halved(noise),
                interval=halved(full),
            ),
            "true rows called true": Measure(
                recall.value,
                name="true rows called true",
                terms=terms,
                noise_interval=recall.noise_interval,
                interval=recall.interval,
            ),
            "privatized rows called privatized": Measure(
                share,
                name="privatized rows called privatized",
                terms=terms,
                noise_interval=lambda level: (share, share),
                interval=public,
            ),
        }

    def _noisy(self) -> Any:
        answer, counts = self._drawn.values
        return {"coefficients": answer.tolist(), "called": counts.tolist()}

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        content = super().as_dict(level)
        content["lattice"] = str(self._statistic.step)
        content["coefficients"] = self.coefficients
        return content


def _wilson(hits: int, rows: int, level: float) -> Interval:
    from scipy.special import ndtri

    if rows == 0:
        return (0.0, 1.0)
    z = float(ndtri((1 + level) / 2))
    centre = (hits + z * z / 2) / (rows + z * z)
    half = z / (rows + z * z) * math.sqrt(hits * (rows - hits) / rows + z * z / 4)
    return (max(0.0, centre - half), min(1.0, centre + half))
