"""Areas or average precisions of each class against all others, and their mean."""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from heldout.intervals.measure import Interval, Measure
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.questions.classes.averages import recovered
from heldout.questions.ranking.release import RankingRelease
from heldout.questions.ranking.stages import counts_of

__all__ = ["ClassAreas"]


class ClassAreas(Release):
    """One ranking metric for each class, `.classes["a"]`, and its macro average, the plain mean.

    The noise of different classes is independent. Their sampling errors are not: the same rows are
    positive for one class and negative for the others. The mean's interval takes the largest
    correlation that classes of these sizes allow; with two classes it is 1, as it must be.
    """

    def __init__(self, drawn: Drawn, each: type[RankingRelease], *, kind: str) -> None:
        super().__init__(drawn)
        names = drawn.request.parameters["classes"]
        self.classes = {name: each(replace(drawn.part(name), kind=kind)) for name in names}

    @cached_property
    def _sampling_correlation(self) -> Any:
        """A bound from the classes' sizes, as the noisy counts beside the areas tell them."""
        sizes = np.array([counts_of(each._draw)[1] for each in self.classes.values()])
        total = max(float(sizes.sum()), float(self._drawn.about.rows or 0), 2.0)
        sizes = np.clip(sizes, 1.0, total - 1)
        others = total - sizes
        both = 1 / others[:, None] + 1 / others[None, :]
        rest = np.maximum(total - sizes[:, None] - sizes[None, :], 0.0)
        covariance = both + rest / np.outer(others, others)
        deviation = np.sqrt(1 / sizes + 1 / others)
        found = np.minimum(covariance / np.outer(deviation, deviation), 1.0)
        np.fill_diagonal(found, 1.0)
        return found

    def _mean(self) -> Measure:
        each = [release.headline for release in self.classes.values()]
        values, size = [area.value for area in each], len(each)
        mean = math.fsum(values) / size

        def noise(level: float) -> Interval:
            ends = [area.noise_interval(level) for area in each]
            return recovered(mean, ends, values, np.eye(size), 1 / size)

        def whole(level: float) -> Interval:
            noisy = [area.noise_interval(level) for area in each]
            ends = [area.interval(level) for area in each]
            sampled = [
                (value - _apart(value - low, value - a), value + _apart(high - value, b - value))
                for value, (low, high), (a, b) in zip(values, ends, noisy, strict=True)
            ]
            drawn = recovered(mean, sampled, values, self._sampling_correlation, 1 / size)
            low, high = recovered(mean, noisy, values, np.eye(size), 1 / size)
            below = math.hypot(mean - low, mean - drawn[0])
            above = math.hypot(high - mean, drawn[1] - mean)
            return max(mean - below, 0.0), min(mean + above, 1.0)

        return Measure(
            mean,
            name=f"macro {each[0].name}",
            terms=self._drawn.terms,
            noise_interval=noise,
            interval=whole,
            share=float,
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        mean = self._mean()
        found = {mean.name: mean}
        for name, release in self.classes.items():
            one = release.headline
            found[f"{one.name}, {name}"] = Measure(
                one.value,
                name=f"{one.name}, {name}",
                terms=self._drawn.terms,
                noise_interval=one.noise_interval,
                interval=one.interval,
                share=float,
                reach=one.reach,
            )
        return found

    def _noisy(self) -> Any:
        return {name: each._noisy() for name, each in self.classes.items()}


def _apart(whole: float, part: float) -> float:
    """What is left of a distance, squared, without a part of it."""
    return math.sqrt(max(whole * whole - part * part, 0.0))
