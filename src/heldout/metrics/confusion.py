"""The confusion matrix as released, and the ratios that people read off it."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.auc_interval import Look
from heldout.metrics.measure import Interval, Measure
from heldout.metrics.ratio import NoisyCounts, Ratio, with_public_total
from heldout.metrics.readings import CELLS, ConfusionReadings
from heldout.metrics.registry import Metric
from heldout.metrics.release import Release
from heldout.release import Drawn

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure


class ConfusionRelease(ConfusionReadings, Release):
    """Noisy counts at one public threshold; every ratio of them is free."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        negative_below, negative_above, positive_below, positive_above = drawn.values
        noisy = np.array([positive_above, negative_above, positive_below, negative_below])
        self.threshold = float(drawn.request.parameters["threshold"])
        self._counts = noisy_counts(noisy, mechanism, rows=drawn.public_rows)
        self._positives = int(positive_above) + int(positive_below)
        self._negatives = int(negative_above) + int(negative_below)

    def class_counts(self) -> tuple[Look, ...]:
        """What the noisy cells say about the sizes of the classes, for other readings. Free."""
        scale, rows = self._counts.scale, self._drawn.public_rows
        if rows is None:
            return (Look((self._positives, self._negatives), scale, terms=2),)
        both = (self._positives, rows - self._negatives)
        return tuple(Look((positives,), scale, terms=2) for positives in both)

    def figures(self, level: float = 0.95) -> list["Figure"]:
        from heldout.drawing.pictures import confusion_matrix

        return [confusion_matrix(self, level=level)]

    def _count(self, index: int) -> Measure:
        counts = self._counts
        most = math.inf if counts.rows is None else float(counts.rows)
        estimate = float(np.clip(np.round(counts.estimate[index]), 0, most))
        only = np.eye(len(CELLS))[index]

        def interval(level: float) -> Interval:
            half = counts.noise(only).quantile(level) + counts.granularity(only)
            low, high = counts.estimate[index] - half, counts.estimate[index] + half
            return (float(np.clip(low, 0, most)), float(np.clip(high, 0, most)))

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return self._measure(CELLS[index], estimate, interval, interval, whole=True)

    def _measure(
        self, name: str, value: float, noise: Any, full: Any, *, whole: bool = False
    ) -> Measure:
        return Measure(
            value,
            name=name,
            terms=self._drawn.terms,
            noise_interval=noise,
            interval=full,
            whole=whole,
        )

    def measure(self, metric: Metric) -> Measure:
        """A ratio of the released counts, at no further cost."""
        ratio = Ratio(
            counts=self._counts,
            numerator=np.array(metric.numerator, dtype=float),
            denominator=np.array(metric.denominator, dtype=float),
        )
        return self._measure(metric.name, ratio.value, ratio.noise_interval, ratio.interval)


def noisy_counts(
    noisy: Any, mechanism: DiscreteLaplace, *, rows: int | None, unit: float = 1.0
) -> NoisyCounts:
    """Disjoint counts with their noise; a public total is used where there is one."""
    scale = mechanism.float_scale
    if rows is not None:
        return with_public_total(noisy, scale=scale, rows=rows)
    size = len(noisy)
    return NoisyCounts(
        estimate=np.asarray(noisy, dtype=float), spread=np.eye(size), scale=scale, unit=unit
    )
