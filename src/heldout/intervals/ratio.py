"""Ratios of noisy counts, with intervals that hold however small the denominator is.

For a ratio r = numerator / denominator of the true counts, numerator - r * denominator is zero,
so the same combination of the noisy counts is pure noise with a known law. An interval is the set
of all r that this does not rule out (Fieller's argument): it covers whatever the counts are, and
where the denominator is lost in the noise it is wide instead of wrong. For the population's ratio
the combination also has a sampling error of known variance, which is added.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from heldout.arrays import Bools, Floats, Ints
from heldout.intervals.measure import Measure, Release
from heldout.intervals.noise import NoiseSum, halved
from heldout.intervals.tuned import DENOMINATOR_SHARE, NO_ROWS
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.tied import OutcomeLaplace, drawn_sums
from heldout.kernel.statistic import STEPS, BoundedSum

# --- Intervals for ratios of noisy counts, many at once, by Fieller's argument on a grid ---------
#
# As in `heldout.intervals.ratio`: for the true ratio r the combination (1 - r) top - r rest of the
# noisy counts is pure noise, so the interval holds all r for which it is not too large. Where the
# denominator is lost in the noise the interval is wide instead of wrong.


_COARSE: Final = np.linspace(0.0, 1.0, 257)
_FINE: Final = np.linspace(0.0, 1.0, 65)
_GRANULARITY: Final = 0.5  # whole-numbered noise may lie so far beyond the continuous law


def ratio_bounds(
    top: Any,
    rest: Any,
    *,
    top_variance: Any,
    rest_variance: Any,
    rows: Any,
    quantile: float,
    covariance: Any = 0.0,
) -> tuple[Any, Any]:
    """Bounds for top/(top + rest), elementwise; neither count is below zero in truth.

    `rows` is 0 for the rows' own ratio; for the population's it is the true denominator or more,
    and adds the variance r (1 - r) of each row. `covariance` is that of the noise of top and rest.

    >>> low, high = ratio_bounds(30.0, 10.0, top_variance=4.0, rest_variance=4.0, rows=0.0,
    ...                          quantile=2.0)
    >>> round(float(low), 2), round(float(high), 2)
    (0.67, 0.85)
    """
    parts = np.broadcast_arrays(
        np.maximum(top, 0.0), np.maximum(rest, 0.0), top_variance, rest_variance, rows, covariance
    )
    top, rest, top_variance, rest_variance, rows, covariance = (
        np.asarray(part, dtype=np.float64)[..., None] for part in parts
    )
    total = top + rest
    centre = np.divide(top, total, out=np.full_like(total, 0.5), where=total > 0)[..., 0]

    def survives(r: Floats) -> Bools:
        distance = np.abs((1 - r) * top - r * rest) - _GRANULARITY * np.maximum(r, 1 - r)
        variance = (1 - r) ** 2 * top_variance + r**2 * rest_variance + rows * r * (1 - r)
        variance = np.maximum(variance - 2 * r * (1 - r) * covariance, 0.0)
        result: Bools = distance <= quantile * np.sqrt(variance)
        return result

    inside = survives(np.broadcast_to(_COARSE, (*centre.shape, _COARSE.size)))
    step = _COARSE[1]
    any_inside = inside.any(axis=-1)
    low = np.where(any_inside, _COARSE[inside.argmax(axis=-1)], centre)
    high = np.where(
        any_inside, _COARSE[_COARSE.size - 1 - inside[..., ::-1].argmax(axis=-1)], centre
    )
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    # The ends lie within one step further out: look closer there, and take the outer side.
    below = np.clip((low - step)[..., None] + step * _FINE, 0.0, 1.0)
    above = np.clip((high + step)[..., None] - step * _FINE, 0.0, 1.0)
    return _first(below, survives(below), step), _last(above, survives(above), step)


def _first(places: Any, inside: Any, step: float) -> Floats:
    index = np.where(inside.any(axis=-1), inside.argmax(axis=-1), places.shape[-1] - 1)
    ends = np.take_along_axis(places, index[..., None], axis=-1)[..., 0]
    return np.clip(ends - step / (_FINE.size - 1), 0.0, 1.0)


def _last(places: Any, inside: Any, step: float) -> Floats:
    index = np.where(inside.any(axis=-1), inside.argmax(axis=-1), places.shape[-1] - 1)
    ends = np.take_along_axis(places, index[..., None], axis=-1)[..., 0]
    return np.clip(ends + step / (_FINE.size - 1), 0.0, 1.0)


def single_quantile(level: float, *, of: int = 1) -> float:
    """Return the quantile of |a sum of Laplace noises and a normal error|, in deviations.

    The larger of the normal and the Laplace quantile: sums lie between the two. With `of` such
    sums, none of them exceeds it (Bonferroni).

    >>> round(single_quantile(0.95), 3), round(single_quantile(0.5), 3)
    (2.118, 0.674)
    """
    error = (1 - level) / of
    return max(-NormalDist().inv_cdf(error / 2), -math.log(error) / math.sqrt(2))


_USUAL = 0.05


@dataclass(frozen=True, eq=False)
class Squares:
    """Released sums that tell how much rows differ: estimate = truth + spread @ noise.

    `weights` turns a combination of the counts into that of these sums which is the sum over rows
    of the square of what each adds to it.
    """

    estimate: Floats
    spread: Floats
    weights: Callable[[Floats], Floats]

    def of(self, combination: Floats, scale: float) -> tuple[float, float]:
        """The sum of squares as seen, and the standard deviation of its noise."""
        weights = self.weights(combination)
        noise = math.sqrt(2) * scale * float(np.linalg.norm(self.spread.T @ weights))
        return float(weights @ self.estimate), noise


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Released counts: estimate = truth + spread @ noise, noise independent Laplace of one scale.

    `unit` is what one row adds at most (1 for counts, the resolution for bounded sums); `rows` is
    the public number of rows, or None.
    """

    estimate: Floats
    spread: Floats
    scale: float
    unit: float = 1.0
    rows: int | None = None
    squares: Squares | None = None

    def sampling_variance(self, combination: Floats, most: float) -> float:
        """Of a combination over draws of the rows: as seen, or the most that it can be.

        What is seen has a standard deviation of its noise added.
        """
        seen = self.squares_seen(combination)
        return most if seen is None else min(max(sum(seen), 0.0), most)

    def squares_seen(self, combination: Floats) -> tuple[float, float] | None:
        """The sum of squares of what rows add to it, and the deviation of that number's noise."""
        return None if self.squares is None else self.squares.of(combination, self.scale)

    def noise(self, combination: Floats, *, deviation: float = 0.0) -> NoiseSum:
        weights = tuple((self.spread.T @ combination).tolist())
        return NoiseSum(weights=weights, scale=self.scale, deviation=deviation)

    def margin(self, combination: Floats, tail: float) -> float:
        """Return how much noise takes off this sum with this probability; computed once."""
        key = (combination.tobytes(), tail)
        if key not in self._margins:
            # P(noise < -margin) is half of the two-sided tail, hence 1 - 2 * tail.
            self._margins[key] = self.noise(combination).quantile(1 - 2 * tail)
        return self._margins[key]

    @cached_property
    def _margins(self) -> dict[tuple[bytes, float], float]:
        return {}

    def granularity(self, combination: Floats) -> float:
        """Return how far whole-numbered noise may lie beyond the continuous law that stands for it.

        Half a step each, or three deviations of what so many roundings add up to.
        """
        return _granularity(self.noise(combination).weights)


def _granularity(weights: tuple[float, ...]) -> float:
    # In plain floats: an interval asks this a hundred times, of four weights or so.
    return min(sum(map(abs, weights)) / 2, 3 * math.hypot(*weights) / math.sqrt(12))


def with_public_total(noisy: Ints, *, scale: float, rows: int) -> NoisyCounts:
    """Counts that are known to add up to `rows`: what is missing is shared among them."""
    size = len(noisy)
    spread = np.eye(size) - np.full((size, size), 1 / size)
    estimate = noisy + (rows - noisy.sum()) / size
    return NoisyCounts(estimate=estimate, spread=spread, scale=scale, rows=rows)


@dataclass(frozen=True, eq=False)
class Ratio:
    """numerator @ counts / denominator @ counts, known to lie in [0, 1]."""

    counts: NoisyCounts
    numerator: Floats
    denominator: Floats

    @property
    def value(self) -> float:
        """The estimate, held to [0, 1]; the middle where noise leaves no denominator at all."""
        top, rest = self._clipped
        return top / (top + rest) if top + rest > 0 else 0.5

    @cached_property
    def _clipped(self) -> tuple[float, float]:
        """The numerator, and what the denominator has beyond it, neither below zero nor too many.

        The true ones are not below zero, nor more than all rows may add, so holding the noisy ones
        there brings each closer to the truth; without it an estimate far out would leave an
        interval of no width, and noise that is wider than the rows are many an accuracy of 1. (Two
        errors that would have cancelled may no longer do so: that the intervals still cover is
        shown by simulation, in tests/intervals/test_coverage.py.)
        """
        rows, unit = self.counts.rows, self.counts.unit

        def clip(weights: Floats) -> float:
            most = math.inf if rows is None else rows * unit * float(weights.max())
            return min(max(float(weights @ self.counts.estimate), 0.0), most)

        return clip(self.numerator), clip(self.denominator - self.numerator)

    def _observed(self, r: float) -> float:
        """Return how far numerator - r * denominator is from the zero that it truly is."""
        top, rest = self._clipped
        return abs((1 - r) * top - r * rest)

    @cached_property
    def of_nothing(self) -> bool:
        """Return whether noise alone explains the denominator: then there is no ratio to cover."""
        seen = self._seen - self.counts.granularity(self.denominator)
        return seen <= 0 or self.counts.noise(self.denominator).survival(seen) >= NO_ROWS

    def noise_interval(self, level: float) -> tuple[float, float]:
        """Covers the ratio of the true counts of these rows; all of [0, 1] if there may be none."""
        if self.of_nothing:
            return (0.0, 1.0)
        if not any((self.counts.spread.T @ self.numerator).tolist()) and not any(
            (self.counts.spread.T @ self.denominator).tolist()
        ):
            return (self.value, self.value)  # both are public
        return _hull(self.survives_noise(level), centre=self.value)

    def interval(self, level: float) -> tuple[float, float]:
        """Covers the ratio in the population that these rows were drawn from."""
        if self.of_nothing:
            return (0.0, 1.0)
        return _hull(self.survives(level), centre=self.value)

    def survives_noise(self, level: float) -> Callable[[float], bool]:
        """Tells of each ratio whether noise alone can explain its distance from what was seen."""

        def survives(r: float) -> bool:
            combination = self.numerator - r * self.denominator
            law = self.counts.noise(combination)
            observed = self._observed(r) - _granularity(law.weights)
            return 2 * law.survival(max(observed, 0.0)) >= 1 - level

        return survives

    def survives(self, level: float) -> Callable[[float], bool]:
        """Tells of each ratio whether noise and sampling can explain its distance."""
        surprise, error = self._surprise(1 - level)
        return lambda r: surprise(r) >= error

    def p_value(self, r: float) -> float:
        """Return how often a ratio so far from `r` would be seen if the population's were `r`."""
        return min(self._surprise(_USUAL)[0](r), 1.0)

    def _surprise(self, error: float) -> tuple[Callable[[float], float], float]:
        """The p-value of each ratio, and what a bound on the row count leaves of the error."""
        counts = self.counts
        whole = bool(np.all(self.denominator == self.denominator[0]))
        if counts.rows is not None and whole:
            margin = 0.0
        else:
            tail = error * DENOMINATOR_SHARE
            error -= tail
            margin = counts.margin(self.denominator, tail)

        def surprise(r: float) -> float:
            combination = self.numerator - r * self.denominator
            # No population has a ratio beyond 0 and 1: there is noise alone to explain one.
            deviation = math.sqrt(max(self._variance(r, combination, margin), 0.0))
            law = counts.noise(combination, deviation=deviation)
            observed = self._observed(r) - (_granularity(law.weights) + counts.unit / 2)
            return 2 * law.survival(max(observed, 0.0))

        return surprise, error

    @cached_property
    def _seen(self) -> float:
        return float(self.denominator @ self.counts.estimate)

    @cached_property
    def _simple(self) -> bool:
        """Return whether each row counts once in the denominator or not at all."""
        return set(np.unique(self.denominator)) <= {0.0, 1.0} and bool(
            np.all(self.numerator <= self.denominator)
        )

    def _variance(self, r: float, combination: Floats, margin: float) -> float:
        """A bound on the variance of the combination over draws of the rows."""
        counts = self.counts
        if self._simple:
            # Given the denominator D the numerator is a sum of D values in [0, 1] with mean r,
            # whose variance is at most r (1 - r) each, and exactly that for zeros and ones.
            rows = max(self._seen + margin, counts.unit)
            most = rows * counts.unit * r * (1 - r)
        else:
            noise = counts.scale * math.sqrt(2)
            cells = np.maximum(counts.estimate, 0) + noise
            most = float(cells @ combination**2) * counts.unit
        one = min(counts.unit**2 * r * (1 - r), most)
        return max(counts.sampling_variance(combination, most), one)


def _hull(survives: Callable[[float], bool], *, centre: float) -> tuple[float, float]:
    """The smallest interval around all r in [0, 1] that survive; all of [0, 1] if none does."""
    cached = lru_cache(maxsize=None)(survives)
    grid = sorted({*np.linspace(0, 1, 33).tolist(), centre})
    inside = [r for r in grid if cached(r)]
    if not inside:
        return (0.0, 1.0)

    first, last = grid.index(inside[0]), grid.index(inside[-1])
    low = 0.0 if first == 0 else halved(cached, inside[0], grid[first - 1], steps=20)[1]
    high = 1.0 if last == len(grid) - 1 else halved(cached, inside[-1], grid[last + 1], steps=20)[1]
    return (low, high)


# Means of a bounded error: Brier score, log loss, mean absolute and mean squared error.
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
        assert isinstance(mechanism, DiscreteLaplace | OutcomeLaplace)
        self._largest, self._guess = statistic.largest, of_a_guess(statistic)
        self._ratio = share_of(
            noisy_sums(
                *drawn_sums(mechanism, drawn.values),
                unit=float(statistic.resolution),
                rows=None if statistic.with_rest else drawn.about.rows,
            )
        )

    @cached_property
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
    return Measure.of(
        ratio,
        lambda place: low + place * largest,
        name=name,
        terms=terms,
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
