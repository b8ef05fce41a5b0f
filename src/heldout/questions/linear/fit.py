"""Coefficients with intervals, from noisy second moments of private rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from heldout.arguments import no_such, visible
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.noise import falls_to
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import DiscreteGaussian
from heldout.kernel.noise.fits import WishartDifference
from heldout.kernel.statistic import STEPS
from heldout.questions.linear.design import RESOLUTION, Design
from heldout.questions.linear.moments import Influences, Moments
from heldout.questions.linear.tuned import (
    FACTOR_NOISE,
    FEWEST_TIMES,
    IDENTIFIED,
    LEAST_FACTOR,
    MOST_FACTOR,
    MOST_PEAKED,
    MOST_TIMES,
    SPREAD_SHARE,
)

PURE, GAUSSIAN = "pure", "gaussian"

# --- The law of the noise in a fit ---------------------------------------------------------------


@dataclass(frozen=True)
class BilinearNoise:
    """u' (W1 - W2) v for two Wishart matrices, plus a normal number of deviation `normal`.

    A matrix of Gaussian noise gives a normal number alone. With the eigenvalues a, b of
    (u v' + v u')/2 it is a sum of differences of chi-squared variables, so its characteristic
    function is a product of (1 + 4 a^2 t^2)^(-freedom/2).
    """

    values: tuple[float, float]
    freedom: int
    normal: float = 0.0

    @classmethod
    def of(
        cls,
        left: Floats,
        right: Floats,
        mechanism: WishartDifference | DiscreteGaussian,
        normal: float = 0.0,
    ) -> "BilinearNoise":
        if isinstance(mechanism, DiscreteGaussian):
            # Entries of the triangle are independent, and those beside the diagonal count twice.
            spread = (left @ left) * (right @ right) + (left @ right) ** 2
            spread -= float(((left * right) ** 2).sum())
            return cls((0.0, 0.0), 0, math.hypot(mechanism.sigma * math.sqrt(spread), normal))
        scale = float(mechanism.scale)
        along = float(left @ right)
        far = float(np.linalg.norm(left) * np.linalg.norm(right))
        values = (scale * (along + far) / 2, scale * (along - far) / 2)
        return cls(values, mechanism.freedom, normal)

    @property
    def deviation(self) -> float:
        squares = sum(value**2 for value in self.values)
        return math.sqrt(4 * self.freedom * squares + self.normal**2)

    @property
    def _shape(self) -> tuple[float, float, float, int]:
        first, second = sorted(abs(value) / self.deviation for value in self.values)
        normal = self.normal / self.deviation
        return round(first, 6), round(second, 6), round(normal, 6), self.freedom

    def reach(self, level: float) -> float:
        """Return how far it goes from zero, either way, at a level."""
        deviation = self.deviation
        if not math.isfinite(deviation) or deviation == 0:
            return deviation
        return deviation * _reach(*self._shape, level)

    def below(self, value: float) -> float:
        """Return the probability of less than a value."""
        deviation = self.deviation
        if not math.isfinite(deviation) or deviation == 0:
            return 0.5
        tail = min(max(_beyond(abs(value) / deviation, *self._shape), 0.0), 1.0) / 2
        return 1 - tail if value > 0 else tail


_STEP: Final = 0.02
_POINTS: Final = np.arange(_STEP / 2, 60.0, _STEP)


@lru_cache(maxsize=256)
def _weights(first: float, second: float, normal: float, freedom: int) -> Floats:
    power = (1 + 4 * first**2 * _POINTS**2) * (1 + 4 * second**2 * _POINTS**2)
    whole: Floats = power ** (-freedom / 2) * np.exp(-(normal**2) * _POINTS**2 / 2) / _POINTS
    return whole


def _beyond(far: float, *shape: Any) -> float:
    """Invert the characteristic function (Gil-Pelaez) of a law of deviation 1, on both sides."""
    if far > 50:  # the sum has a period of 314, and the tail is below 1e-9
        return 0.0
    return 1 - 2 * _STEP / math.pi * float(_weights(*shape) @ np.sin(_POINTS * far))


@lru_cache(maxsize=4096)
def _reach(first: float, second: float, normal: float, freedom: int, level: float) -> float:
    return falls_to(lambda far: _beyond(far, first, second, normal, freedom), 1 - level, start=2.0)


# --- What is asked -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """Ask for noisy second moments, then for how far rows move the fit that they give.

    Claim:       pure DP, epsilon, the exact sum of the two steps; with noise "gaussian" zCDP, rho =
                 epsilon^2/2, which a budget of rho takes for any pure epsilon.
                                                                        [claim: linear-regression]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the steps': `Moments` and `Influences`.
    Numerics:    exact.
    Refuses:     an epsilon whose noise cannot be drawn, before anything is booked.
    Reference:   sequential composition; proofs/linear-regression.md.
    Cost:        two scans.
    """

    design: Design
    epsilon: Fraction
    protection: Protection
    rows: int | None
    noise: str = PURE

    @property
    def moments(self) -> Moments:
        return Moments(self.design)

    @cached_property
    def moments_noise(self) -> WishartDifference | DiscreteGaussian:
        if self.noise == GAUSSIAN:
            size = self.moments.size
            return DiscreteGaussian.for_rho(
                self.epsilon**2 / 2 * (1 - SPREAD_SHARE),
                l2_sensitivity_squared=self.moments.l2_squared(self.protection),
                dimension=size * (size + 1) // 2,
            )
        return WishartDifference.for_epsilon(
            self.epsilon * (1 - SPREAD_SHARE),
            trace=self.moments.trace(self.protection),
            size=self.moments.size,
        )

    @property
    def norm(self) -> float:
        """Return about the largest eigenvalue of the noise in the terms' moments, in steps^2."""
        noise, size = self.moments_noise, self.design.size
        if isinstance(noise, DiscreteGaussian):
            return 2 * math.sqrt(size) * noise.sigma
        return 2 * math.sqrt(2 * noise.freedom * size) * float(noise.scale)

    @cached_property
    def influences_noise(self) -> DiscreteLaplace | DiscreteGaussian:
        entries = self.design.size
        if self.noise == GAUSSIAN:
            most = STEPS * self.protection.rows_per_unit
            return DiscreteGaussian.for_rho(
                self.epsilon**2 / 2 * SPREAD_SHARE,
                l2_sensitivity_squared=entries * most**2,
                dimension=entries,
            )
        return DiscreteLaplace.for_epsilon(
            self.epsilon * SPREAD_SHARE,
            l1_sensitivity=entries * STEPS * self.protection.rows_per_unit,
            dimension=entries,
        )

    def fitted(self, answers: Answers) -> "Fitted":
        """Return the fit of released moments."""
        return Fitted(self, tuple(int(entry) for entry in answers["moments"]))

    def influences(self, answers: Answers) -> Influences:
        weights, fit = self.fitted(answers).influence_weights
        return Influences(self.design, weights, fit)

    def staged(self) -> Staged:
        """Return the request that the door books and draws."""
        noise = self.influences_noise
        steps = {
            "moments": Booked.of(Step(self.moments, self.moments_noise)),
            "influences": Booked(
                noise.event(), lambda answers: Step(self.influences(answers), noise)
            ),
        }
        return Staged(
            name="linear regression",
            steps=steps,
            parameters=self.parameters(),
            claim="linear-regression",
            description={
                "name": "noisy second moments",
                "moments": self.moments_noise.describe(),
                "influences": noise.describe(),
            },
            reading=self,
        )

    def parameters(self) -> dict[str, Any]:
        design = self.design
        return {
            "outcome": design.outcome,
            "terms": [term.name for term in design.terms],
            "bounds": {name: list(ends) for name, ends in design.bounds.items()},
            **({} if self.noise == PURE else {"noise": self.noise}),
        }


@dataclass(frozen=True)
class Fitted:
    """A fit of noisy second moments, in coded columns; all of it is post-processing."""

    plan: FitPlan
    noisy: tuple[int, ...]

    @cached_property
    def _matrix(self) -> Floats:
        """Return the noisy moments of the coded columns, from -1 to 1 each."""
        size = self.plan.moments.size
        matrix = np.zeros((size, size))
        first, second = np.triu_indices(size)
        matrix[first, second] = matrix[second, first] = self.noisy
        steps = self.plan.design.steps
        whole: Floats = matrix / np.outer(steps, steps)
        if self.plan.rows is not None:
            whole[0, 0] = self.plan.rows
        return whole

    @property
    def rows(self) -> float:
        """Return the number of rows: public, or as released."""
        return max(float(self._matrix[0, 0]), 1.0)

    @cached_property
    def _noise_norm(self) -> float:
        """Return about the largest eigenvalue of the noise in the terms' moments."""
        return self.plan.norm / RESOLUTION**2

    @cached_property
    def _inverse(self) -> tuple[Floats, bool]:
        """Return the inverse of the terms' moments, and whether noise leaves it a meaning."""
        terms = self._matrix[:-1, :-1]
        values, vectors = np.linalg.eigh(terms)
        least = IDENTIFIED * self._noise_norm
        above = np.maximum(values, max(least, 1e-9 * abs(float(values[-1])), 1e-9))
        return (vectors / above) @ vectors.T, bool(values[0] > least)

    @property
    def identified(self) -> bool:
        """Return whether the columns vary by themselves beyond what noise could make of them."""
        return self._inverse[1]

    @cached_property
    def coded(self) -> Floats:
        """Return the coded coefficients, the intercept first."""
        fit: Floats = np.clip(self._inverse[0] @ self._matrix[:-1, -1], -1e6, 1e6)
        return fit

    @cached_property
    def variance(self) -> float:
        """Return the variance of the residuals, coded; at least what noise alone would show."""
        own = np.array([*-self.coded, 1.0])
        left = float(own @ self._matrix @ own)
        scaled = own / self.plan.design.steps
        noise = BilinearNoise.of(scaled, scaled, self.plan.moments_noise).deviation
        return min(max(left, noise, 1e-9) / self.rows, 1.0)

    @cached_property
    def targets(self) -> Floats:
        """Return the coefficients in the columns' own units as combinations of coded ones."""
        return self.plan.design.in_units

    def sampling_variance(self, combination: Floats) -> float:
        """Return the variance of a combination of coded coefficients, if spread is equal."""
        return self.variance * float(combination @ self._inverse[0] @ combination)

    @cached_property
    def times(self) -> float:
        """Return how many times the mean a row's squared influence may be, from public numbers."""
        noise = self.plan.influences_noise
        if isinstance(noise, DiscreteGaussian):
            entry = noise.sigma / STEPS
        else:
            entry = math.sqrt(2) * float(noise.scale) / STEPS
        return min(max(FACTOR_NOISE * self.rows / entry, FEWEST_TIMES), MOST_TIMES)

    @cached_property
    def influence_weights(self) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]:
        """Return the weights and the fit that `Influences` takes."""
        inverse = self._inverse[0]
        weights = []
        for target in self.targets:
            mean_square = max(self.sampling_variance(target) / self.rows, 1e-300)
            own = inverse @ target / math.sqrt(self.times * mean_square)
            weights.append(tuple(np.clip(np.nan_to_num(own), -1e9, 1e9).tolist()))
        return tuple(weights), tuple(self.coded.tolist())

    def factors(self, influences: Ints) -> Floats:
        """Return the sampling variances in parts of those that assume equal spread."""
        means = np.asarray(influences) / STEPS * self.times / self.rows
        factors: Floats = np.clip(means, LEAST_FACTOR, MOST_FACTOR)
        return factors

    def safe_factors(self, influences: Ints) -> Floats:
        """Return factors that are seldom too small, for verdicts.

        Of squared influences with mean 1 and mean square k, those held to `times` lose at most
        k/(4 times) of the mean. A mean by itself has no unequal spread.
        """
        if self.plan.design.size == 1:
            return np.ones(1)
        safe: Floats = np.maximum(self.factors(influences), 1.0) + MOST_PEAKED / 4 / self.times
        return safe

    def noise(self, combination: Floats, normal: float = 0.0) -> BilinearNoise:
        """Return the law of the noise in a combination of coded coefficients.

        The noisy fit is off by inverse (e - E b) exactly, with E and e the noise of the moments and
        b the fit without noise; that fit is taken to be the noisy one.
        """
        steps = self.plan.design.steps
        left = np.array([*(self._inverse[0] @ combination), 0.0]) / steps
        right = np.array([*-self.coded, 1.0]) / steps
        return BilinearNoise.of(left, right, self.plan.moments_noise, normal)


# --- What people read ----------------------------------------------------------------------------


class LinearFit(Release):
    """A private linear regression: coefficients in the columns' own units, with intervals.

    An interval covers the coefficient in the population, with sampling error and noise; where noise
    leaves nothing to read, it has no ends.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        plan: FitPlan = drawn.request.reading
        self._plan = plan
        self._fitted: Fitted = plan.fitted(drawn.values)
        self._factors = self._fitted.factors(drawn.values["influences"])

    @property
    def design(self) -> Design:
        return self._plan.design

    @property
    def identified(self) -> bool:
        """Return whether the coefficients can be distinguished from noise at all."""
        return self._fitted.identified

    @cached_property
    def coefficients(self) -> dict[str, Measure]:
        """Return the coefficients by term, in the units of the columns."""
        return {name: self._measure(place) for place, name in enumerate(self.design.names) if place}

    @property
    def intercept(self) -> Measure:
        """Return the fit where all columns are 0."""
        return self._measure(0)

    @property
    def measures(self) -> dict[str, Measure]:
        several = [*self.coefficients.values(), self.intercept]
        return {measure.name: measure for measure in several}

    def __str__(self) -> str:
        from heldout.drawing.words import spread

        lines = [f"{visible(self.design.outcome)}, linear regression, {self.terms}"]
        for name, measure in self.measures.items():
            value, interval, noise = spread(measure, 0.95)
            lines.append(
                f"  {visible(name)} {value}, 95% interval {interval} (privacy noise alone: {noise})"
                if measure.informative
                else f"  {visible(name)}: {value}"
            )
        return "\n".join(lines)

    @property
    def standard_errors(self) -> dict[str, float]:
        """Return the standard error of each coefficient: sampling and noise, in its own unit."""
        return {
            name: self._law(target, factor).deviation if self.identified else math.inf
            for name, target, factor in zip(
                self.design.names, self._fitted.targets, self._factors, strict=True
            )
        }

    @property
    def residual_deviation(self) -> float:
        """Return the standard deviation of the residuals, in the outcome's unit."""
        low, high = self.design.bounds[self.design.outcome]
        return math.sqrt(self._fitted.variance) * (high - low) / 2

    def predict(self, row: Mapping[str, float]) -> Measure:
        """Return the mean outcome of rows like this one, by the fit.

        Its sampling error takes the largest of the coefficients' factors of unequal spread.
        """
        missing = [name for name in self.design.bounds if name not in row]
        missing = [name for name in missing if name != self.design.outcome]
        if missing:
            raise ArgumentError(no_such("value for", missing[0], sorted(row)))
        combination = self._fitted.targets.T @ self.design.monomials(row)
        words = ", ".join(f"{name} {value:g}" for name, value in row.items())
        name = f"{self.design.outcome} at {words}"
        return self._of(combination, float(self._factors.max()), self.design.offset, name)

    def _measure(self, place: int) -> Measure:
        offset = self.design.offset if place == 0 else 0.0
        names = self.design.names
        name = names[place] if place == 0 else f"coefficient of {names[place]}"
        return self._of(self._fitted.targets[place], float(self._factors[place]), offset, name)

    def _law(self, combination: Floats, factor: float) -> BilinearNoise:
        sampling = math.sqrt(factor * self._fitted.sampling_variance(combination))
        return self._fitted.noise(combination, sampling)

    def _of(self, combination: Floats, factor: float, offset: float, name: str) -> Measure:
        value = float(combination @ self._fitted.coded) + offset

        def around(law: BilinearNoise, level: float) -> Interval:
            far = law.reach(level) if self.identified else math.inf
            return (value - far, value + far)

        return Measure(
            value,
            name=name,
            terms=self.terms,
            noise_interval=lambda level: around(self._fitted.noise(combination), level),
            interval=lambda level: around(self._law(combination, factor), level),
        )

    def _noisy(self) -> object:
        return {name: list(map(int, values)) for name, values in self._drawn.values.items()}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def surprise(self, name: str, value: float) -> float:
        return self.measures[name].surprise(value) if self.identified else 1.0

    def finding(self, level: float = 0.95) -> str | None:
        if not self.identified:
            return "Noise hides which column does what: ask for a larger epsilon or fewer columns."
        clear = {
            name: measure.value
            for name, measure in self.coefficients.items()
            if not measure.interval(level)[0] <= 0 <= measure.interval(level)[1]
        }
        if not clear:
            return "No coefficient is surely different from zero."
        words = (f"{name} {'raises' if value > 0 else 'lowers'}" for name, value in clear.items())
        return f"At the same values of the others, {', '.join(words)} {self.design.outcome}."
