"""The confusion matrix as released, and the ratios that people read off it."""

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heldout.arguments import as_number
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.intervals.joint import Joint, simplex, whole_numbers
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio, Squares, with_public_total
from heldout.intervals.readings import (
    CELLS,
    ConfusionReadings,
    Contrast,
    Metric,
    attribute,
    chosen,
    contrasts,
    mean_cost,
    range_of_costs,
    registered,
)
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import Look
from heldout.kernel.noise.tied import TiedLaplace
from heldout.kernel.statistic import STEPS

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure


class NoisyConfusion(ConfusionReadings):
    """Four noisy counts; every ratio and contrast of them is free.

    `drawn` are the negatives below and above the threshold, then the positives.
    """

    def __init__(
        self,
        drawn: Any,
        mechanism: DiscreteLaplace,
        *,
        rows: int | None,
        terms: str,
        largest_weight: float | None = None,
    ) -> None:
        noisy = np.asarray(drawn).reshape(-1, 4)[:, [3, 1, 2, 0]].ravel()
        self._terms = terms
        counts = noisy_counts(noisy, mechanism, rows=rows, largest_weight=largest_weight)
        seen = noisy if largest_weight is None else counts.estimate / counts.unit
        self._counts = counts
        self._joint = Joint(
            seen,
            counts.estimate / counts.unit,
            counts.scale / counts.unit,
            counts.rows,
            usual_weights(counts),
            isinstance(mechanism, TiedLaplace),
        )
        self._positives = int(noisy[0]) + int(noisy[2])
        self._negatives = int(noisy[1]) + int(noisy[3])

    @cached_property
    def measures(self) -> dict[str, Measure]:
        compared = {name: self.contrast(contrast) for name, contrast in contrasts().items()}
        return {**self._ratios, **compared, **self._named_counts}

    def __getattr__(self, name: str) -> Measure:
        known = {attribute(contrast): contrast for contrast in contrasts()}
        if name in known:
            return self.contrast(contrasts()[known[name]])
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(attribute(contrast) for contrast in contrasts())})

    def contrast(self, contrast: Contrast) -> Measure:
        """A function of the released counts that is no ratio, at no further cost."""
        joint = self._joint
        return self._measure(
            contrast.name,
            joint.value(contrast),
            lambda level: joint.noise_interval(contrast, level),
            lambda level: joint.interval(contrast, level),
            share=contrast.share,
        )

    def cost(self, *, false_positive: float = 1, false_negative: float = 1) -> Measure:
        """Return what wrong calls cost per row on average, each kind at its own price. Free."""
        prices = [as_number(price) for price in (false_positive, false_negative)]
        if not (all(0 <= price < 1e12 for price in prices) and any(prices)):
            raise ArgumentError(
                "false_positive and false_negative must be at least 0, and not both 0."
            )
        most, weights = range_of_costs(*prices), np.array([0.0, *prices, 0.0])
        measure = self.contrast(mean_cost(*prices))
        measure.reach = lambda level: self._noise_of_mean(weights, most / 2, level) / most
        return measure

    def _noise_of_mean(self, weights: Any, middle: float, level: float) -> float:
        """Return how far noise takes a mean over all rows if it lies in the middle of its range."""
        counts, every = self._counts, np.ones(len(CELLS))
        if (
            counts.rows is None
            and Ratio(counts=counts, numerator=every, denominator=every).of_nothing
        ):
            return math.inf
        rows = max(float(counts.estimate.sum()), counts.unit)
        return counts.noise(weights - middle).quantile(level) / rows

    @cached_property
    def _whole(self) -> Floats:
        """The counts as people read them: whole, adding up to the rows where these are public."""
        counts = self._counts
        if counts.rows is None or counts.unit != 1:
            most = math.inf if counts.rows is None else float(counts.rows)
            rounded: Floats = np.clip(np.round(counts.estimate), 0, most)
            return rounded
        near = simplex(counts.estimate, total=float(counts.rows))
        return whole_numbers(near, total=counts.rows).astype(np.float64)

    def _count(self, index: int) -> Measure:
        counts = self._counts
        most = math.inf if counts.rows is None else float(counts.rows)
        estimate = float(self._whole[index])
        only = np.eye(len(CELLS))[index]

        def interval(level: float) -> Interval:
            half = counts.noise(only).quantile(level) + counts.granularity(only)
            low, high = counts.estimate[index] - half, counts.estimate[index] + half
            return (float(np.clip(low, 0, most)), float(np.clip(high, 0, most)))

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return self._measure(CELLS[index], estimate, interval, interval, whole=True)

    def _measure(self, name: str, value: float, noise: Any, full: Any, **more: Any) -> Measure:
        return Measure(
            value,
            name=name,
            terms=self._terms,
            noise_interval=noise,
            interval=full,
            **more,
        )

    def ratio(self, metric: Metric) -> Ratio:
        """The counts that the metric is a ratio of."""
        return Ratio(
            counts=self._counts,
            numerator=np.array(metric.numerator, dtype=float),
            denominator=np.array(metric.denominator, dtype=float),
        )

    def measure(self, metric: Metric) -> Measure:
        """A ratio of the released counts, at no further cost."""
        ratio = self.ratio(metric)
        whole = len(set(metric.denominator)) == 1  # noise goes as far wherever the number lies
        return self._measure(
            metric.name,
            ratio.value,
            ratio.noise_interval,
            ratio.interval,
            share=float,
            reach=partial(self._noise_of_mean, ratio.numerator, 0.5) if whole else None,
        )

    def surprise(self, name: str, value: float) -> float:
        return self.ratio(chosen(name)).p_value(value)


class ConfusionRelease(NoisyConfusion, Release):
    """Noisy counts at one public threshold; every ratio and contrast of them is free."""

    def __init__(self, drawn: Drawn) -> None:
        Release.__init__(self, drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        self.threshold = float(drawn.request.parameters["threshold"])
        super().__init__(
            drawn.values,
            mechanism,
            rows=drawn.about.rows,
            terms=self.terms,
            largest_weight=drawn.request.parameters.get("largest_weight"),
        )

    @property
    def by_class(self) -> Ints:
        """The counts as drawn: below and above the threshold; negatives first."""
        return np.asarray(self._drawn.values)[:4].reshape(2, 2)

    @property
    def noise_scale(self) -> Fraction:
        return Fraction(self._drawn.request.mechanism.scale)

    def class_counts(self) -> tuple[Look, ...]:
        """Return what the noisy cells say of the class sizes, for other readings. Free."""
        if "weight" in self._drawn.request.parameters:
            return ()
        scale, rows = self._counts.scale, self._drawn.about.rows
        if rows is None:
            return (Look((self._positives, self._negatives), scale, terms=2),)
        if isinstance(self._drawn.request.mechanism, TiedLaplace):  # the negatives say the same
            return (Look((self._positives,), scale, terms=2),)
        both = (self._positives, rows - self._negatives)
        return tuple(Look((positives,), scale, terms=2) for positives in both)

    def plotted(self) -> dict[str, Measure]:
        return {name: ratio for name, ratio in self.measures.items() if name in registered()}

    def figures(self, level: float = 0.95) -> list["Figure"]:
        from heldout.drawing.page import confusion_matrix

        return [confusion_matrix(self, level=level)]

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """The heat map, on matplotlib's axes where it is installed, else an Altair chart."""
        from heldout.drawing.page import confusion_chart

        return confusion_chart(self, level=level).plot(ax)


TIED: Final = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""What two noises do to the counts of `CELLS` where only outcomes are secret."""


def noisy_counts(
    noisy: Any,
    mechanism: DiscreteLaplace,
    *,
    rows: int | None,
    largest_weight: float | None = None,
) -> NoisyCounts:
    """Disjoint counts with their noise; a public total is used where there is one.

    Where the noise is tied, the counts are those of `CELLS`: what is called positive, true and
    false, adds up to a public number, and so does the rest.

    Sums of weights in steps of the largest are returned in the weights' own unit; after them come
    those of w (1 - w), which give the sums of squares and so the sampling error.
    """
    scale, unit, squares = mechanism.float_scale, 1.0, None
    tied = TIED if isinstance(mechanism, TiedLaplace) else None
    if largest_weight is not None:
        step = largest_weight / STEPS
        noisy, scale, rows, unit = noisy * step, scale * step, None, largest_weight
        spread = np.eye(len(noisy)) * unit
        if tied is not None:
            spread = np.kron(np.eye(2), tied) * unit
        squares = Squares(noisy * unit, spread, lambda c: np.concatenate([c**2, -(c**2)]))
        noisy = noisy[: len(noisy) // 2]
    if rows is not None and tied is None:
        return with_public_total(noisy, scale=scale, rows=rows)
    return NoisyCounts(
        estimate=np.asarray(noisy, dtype=float),
        spread=np.eye(len(noisy)) if tied is None else tied,
        scale=scale,
        unit=unit,
        rows=rows,
        squares=squares,
    )


def usual_weights(counts: NoisyCounts) -> Floats | float:
    """Return the mean weight of a cell's rows as a share of the largest: by squares over sums.

    A deviation of the noise is added above and below, so what noise hides counts as the most.
    """
    if counts.squares is None:
        return 1.0
    seen = [counts.squares_seen(cell) or (0.0, 0.0) for cell in np.eye(len(counts.estimate))]
    squares = np.array([max(sum(pair), 0.0) for pair in seen]) / counts.unit**2
    noise = math.sqrt(2) * counts.scale / counts.unit
    return np.clip(squares / np.maximum(counts.estimate / counts.unit - noise, noise), 1e-3, 1.0)
