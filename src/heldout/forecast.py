"""How wide the intervals of a release would be, from public guesses of its counts.

The very arithmetic of the release, with the expected counts in the place of the noisy ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from heldout.arguments import as_whole, shown
from heldout.errors import ArgumentError
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.bounded_mean import _sums
from heldout.metrics.confusion import noisy_counts
from heldout.metrics.ratio import NoisyCounts, Ratio
from heldout.metrics.registry import Metric, registered
from heldout.privacy import Protection
from heldout.statistics import BoundedSum, ThresholdCounts

BRIER = "Brier score"
SMOOTH = ("AUC", "average precision")


@dataclass(frozen=True)
class Forecast:
    """How wide the intervals of one release would be, as functions of epsilon."""

    noise: Callable[[Fraction], float]
    whole: Callable[[Fraction], float]
    sampling: float
    assumption: str
    least: Fraction = Fraction(1, 10**6)
    most: Fraction = Fraction(1000)


def forecast(
    name: str,
    value: float,
    *,
    rows: int,
    positives: int | None,
    alarms: int | None,
    level: float,
    protection: Protection,
) -> Forecast:
    if name in SMOOTH:
        return _smooth_forecast(
            name, value, rows=rows, positives=positives, level=level, protection=protection
        )
    if name == BRIER:
        return _ratio_forecast(_brier(value, rows=rows, protection=protection), level, "none")
    metric = registered()[name]
    cells, assumption = _cells(metric, value, rows=rows, positives=positives, alarms=alarms)
    return _ratio_forecast(_confusion(metric, cells, protection=protection), level, assumption)


def _ratio_forecast(make: Callable[[Fraction], Ratio], level: float, assumption: str) -> Forecast:
    def half_width(ratio: Ratio, interval: tuple[float, float]) -> float:
        return max(interval[1] - ratio.value, ratio.value - interval[0])

    def noise(epsilon: Fraction) -> float:
        ratio = make(epsilon)
        return half_width(ratio, ratio.noise_interval(level))

    def whole(epsilon: Fraction) -> float:
        ratio = make(epsilon)
        return half_width(ratio, ratio.interval(level))

    noisy = make(Fraction(1))
    counts = noisy.counts
    silent = Ratio(
        counts=NoisyCounts(
            estimate=counts.estimate,
            spread=np.zeros_like(counts.spread),
            scale=counts.scale,
            unit=counts.unit,
            rows=counts.rows,
        ),
        numerator=noisy.numerator,
        denominator=noisy.denominator,
    )
    return Forecast(noise, whole, half_width(silent, silent.interval(level)), assumption)


def _confusion(
    metric: Metric, cells: tuple[float, ...], *, protection: Protection
) -> Callable[[Fraction], Ratio]:
    """The release itself, with the expected counts in the place of the noisy ones."""
    statistic = ThresholdCounts(thresholds=(0.5,))
    rows = round(sum(cells)) if protection.row_count_is_public else None

    def make(epsilon: Fraction) -> Ratio:
        mechanism = DiscreteLaplace.for_epsilon(
            epsilon, l1_sensitivity=statistic.sensitivity(protection), dimension=len(cells)
        )
        return Ratio(
            counts=noisy_counts(np.array(cells), mechanism, rows=rows),
            numerator=np.array(metric.numerator, dtype=float),
            denominator=np.array(metric.denominator, dtype=float),
        )

    return make


def _brier(value: float, *, rows: int, protection: Protection) -> Callable[[Fraction], Ratio]:
    public = protection.row_count_is_public
    statistic = BoundedSum(error="squared", score_range=(0, 1), with_rest=not public)
    sums = np.array([value * rows, (1 - value) * rows]) * statistic.resolution

    def make(epsilon: Fraction) -> Ratio:
        mechanism = DiscreteLaplace.for_epsilon(
            epsilon, l1_sensitivity=statistic.sensitivity(protection), dimension=2 - public
        )
        return Ratio(
            counts=_sums(sums, mechanism, statistic, rows=rows if public else None),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    return make


def _cells(
    metric: Metric, value: float, *, rows: int, positives: int | None, alarms: int | None
) -> tuple[tuple[float, ...], str]:
    """Expected (true positives, false positives, false negatives, true negatives)."""
    if positives is None:
        if len(set(metric.denominator)) > 1:
            raise ArgumentError(
                f"positives must be given for {metric.name}. A guess of the prevalence will do."
            )
        positives = rows // 2  # the split does not matter to a ratio over all rows
    negatives = rows - positives
    if metric.name == "prevalence":
        value = positives / rows
    if alarms is None:
        assumption = "the model finds the share of positives that it leaves alone of negatives"

        def at(share: float) -> tuple[float, ...]:
            return (
                share * positives,
                (1 - share) * negatives,
                (1 - share) * positives,
                share * negatives,
            )
    else:
        alarms = whole_number(alarms, "alarms", most=rows)
        assumption = f"the model calls {alarms:,} rows positive"
        least, most = max(0, alarms - negatives), min(positives, alarms)

        def at(share: float) -> tuple[float, ...]:
            right = least + share * (most - least)
            return (right, alarms - right, positives - right, negatives - alarms + right)

    def worth(share: float) -> float:
        cells = np.array(at(share))
        bottom = float(np.array(metric.denominator) @ cells)
        return float(np.array(metric.numerator) @ cells) / bottom if bottom else 0.0

    if metric.name != "prevalence" and not worth(0) <= value <= worth(1):
        raise ArgumentError(
            f"value must lie within {worth(0):.3g} and {worth(1):.3g} for {metric.name} with "
            f"these counts, got {value:g}."
        )
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) < value else (low, middle)
    return at(high), assumption


def _smooth_forecast(
    name: str,
    value: float,
    *,
    rows: int,
    positives: int | None,
    level: float,
    protection: Protection,
) -> Forecast:
    """The noise of smooth sensitivity depends on the class counts alone, not on the value."""
    from heldout.mechanisms.smooth.plan import half_width_for

    if positives is None:
        raise ArgumentError(f"positives must be given for {name}. A guess will do.")
    metric = name.lower().replace(" ", "-")
    negatives = rows - positives
    if name == "AUC":
        variance = _area_variance(value, positives=positives, negatives=max(negatives, 1))
    else:
        variance = value * (1 - value) / positives
    sampling = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance)

    @lru_cache(maxsize=256)
    def noise(epsilon: Fraction) -> float:
        width = half_width_for(
            epsilon,
            rows=rows,
            positives=positives,
            metric=metric,
            level=level,
            protection=protection,
        )
        return min(width, 1.0)

    return Forecast(
        noise=noise,
        whole=lambda epsilon: min(1.0, math.hypot(noise(epsilon), sampling)),
        sampling=sampling,
        assumption="noise and sampling error add as if both were normal",
        least=Fraction(1, 1000),
        most=Fraction(50),
    )


def _area_variance(value: float, *, positives: int, negatives: int) -> float:
    """The sampling variance of an area under the ROC curve (Hanley and McNeil 1982)."""
    among_positives = value / (2 - value) - value**2
    among_negatives = 2 * value**2 / (1 + value) - value**2
    pairs = (positives - 1) * among_positives + (negatives - 1) * among_negatives
    return (value * (1 - value) + pairs) / (positives * negatives)


_MOST_ROWS = 2**53


def whole_number(number: Any, name: str, *, most: int | None) -> int:
    found = as_whole(number, most=_MOST_ROWS)
    if found is None or found < 1 or (most is not None and found > most):
        rule = "a whole number from 1" + ("" if most is None else f" to {most:,}, the rows")
        raise ArgumentError(f"{name} must be {rule}, got {shown(number)}.")
    return found
