"""Judge whether a conclusion holds on private rows: a verdict, and how sure it is.

Two ways to look. *Parts* split the rows at random and sum the t statistics of the parts, each held
to a bound: one person moves one part, whatever the bounds of the columns are. *Moments* fit the
model to noisy second moments: means need no parts, whose t statistics lean to one side where an
outcome is skewed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Final, Protocol

import numpy as np

from heldout.arrays import Floats
from heldout.drawing.words import between, show_probability
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.noise import halved
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.disjoint import SummedParts
from heldout.questions.linear.claims import Meaning
from heldout.questions.linear.fit import FitPlan
from heldout.questions.linear.moments import SCORE_STEPS, ModelParts, RowsOfModel
from heldout.questions.linear.tuned import COUNT_SHARE, EXTRA, ROOTS, ROWS_PER_COLUMN

LEVEL: Final = 0.95
MOST_PARTS: Final = 2**14
"""Reached by four billion rows. A noisy count beyond that is noise: nothing may grow with it."""
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot tell"
_NORMAL: Final = NormalDist()


# --- Laws of what was released, in standard errors of the analysis without noise -----------------


@dataclass(frozen=True)
class Evidence:
    """Holds by how many standard errors rows are for a claim, as released, with its laws."""

    value: float
    noise: Callable[[float], float]
    """Probability that noise is below a number."""
    whole: Callable[[float], float]
    """The same of noise and sampling error together."""


def below(value: float, variance: float, scale: float) -> float:
    """Return P(x <= value) for a normal number of this variance plus a Laplace one of this scale.

    >>> round(below(0.0, 1.0, 0.5), 3), round(below(1.645, 1.0, 0.001), 3)
    (0.5, 0.95)
    """
    deviation = math.sqrt(variance)
    if deviation == 0 or scale / deviation > 1e6:
        tail = math.exp(-abs(value) / scale) / 2
        return 1 - tail if value > 0 else tail
    if scale < deviation / 30:
        return _NORMAL.cdf(value / math.sqrt(variance + 2 * scale**2))
    place, ratio = value / deviation, deviation / scale

    def part(sign: float) -> float:
        """Return exp(ratio^2/2 - sign value/scale) times the normal law, without overflow."""
        edge = sign * place - ratio
        log = ratio**2 / 2 - sign * value / scale + _log_normal(edge)
        return math.exp(min(log, 700.0))

    return min(max(_NORMAL.cdf(place) - (part(1) - part(-1)) / 2, 0.0), 1.0)


def _log_normal(value: float) -> float:
    """Return the logarithm of the normal law, by its continued tail far out."""
    if value > -30:
        return math.log(math.erfc(-value / math.sqrt(2)) / 2)
    square = value * value
    return -square / 2 - math.log(-value * math.sqrt(2 * math.pi)) - 1 / square


@lru_cache(maxsize=1024)
def slope_and_variance(bound: float) -> tuple[float, float]:
    """Return how much of a shift a bounded normal number shows, and its variance.

    >>> slope, variance = slope_and_variance(1.0)
    >>> round(slope, 3), round(variance, 3)
    (0.683, 0.516)
    """
    slope = 2 * _NORMAL.cdf(bound) - 1
    return slope, slope - 2 * bound * _NORMAL.pdf(bound) + bound**2 * (1 - slope)


@lru_cache(maxsize=1024)
def best_bound(parts: int, epsilon: float) -> float:
    """Return the bound of a part's t statistic with the least variance of the sum, by theory."""

    def variance(bound: float) -> float:
        slope, own = slope_and_variance(bound)
        return (own + 8 * bound**2 / (parts * epsilon**2)) / slope**2

    return min((place / 20 for place in range(2, 61)), key=variance)


# --- What is asked -------------------------------------------------------------------------------


class ConclusionPlan(Protocol):
    """Asks the rows for evidence, and reads it."""

    @property
    def meaning(self) -> Meaning: ...

    def staged(self, parameters: dict[str, Any]) -> Staged:
        """Return the request that the door books and draws."""

    def evidence(self, answers: Answers) -> tuple[Evidence, ...]:
        """Return what was released, for each part of the claim."""


@dataclass(frozen=True, kw_only=True)
class PartsPlan:
    """Ask for the sum of bounded t statistics over random parts, and before for the row count.

    Claim:       pure DP, epsilon, the exact sum of the steps.               [claim: conclusion]
    Neighbours:  replace-one; add-remove; each by row or by unit of any number of rows.
    Sensitivity: the steps': `RowsOfModel` and `SummedParts`.
    Numerics:    exact.
    Refuses:     an epsilon whose noise cannot be drawn, before anything is booked.
    Reference:   proofs/conclusion.md.
    Cost:        one scan for each step.
    """

    meaning: Meaning
    epsilon: Fraction
    protection: Protection
    rows: int | None
    """The number of rows of the model, where it is public."""

    @property
    def parts_epsilon(self) -> Fraction:
        return self.epsilon if self.rows is not None else self.epsilon * (1 - COUNT_SHARE)

    @cached_property
    def count_noise(self) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            self.epsilon * COUNT_SHARE, l1_sensitivity=self.protection.rows_per_unit, dimension=1
        )

    def parts(self, answers: Answers) -> int:
        """Return how many parts there are, from public numbers."""
        rows = self.rows if self.rows is not None else max(int(answers["count"][0]), 0)
        least = ROWS_PER_COLUMN * (self.meaning.design.size + 1)
        return max(2, min(int(rows // max(least, ROOTS * math.sqrt(max(rows, 1)))), MOST_PARTS))

    def mechanism(self, parts: int) -> SummedParts:
        return SummedParts(
            epsilon=self.parts_epsilon,
            parts=parts,
            most=round(self.bound(parts) * SCORE_STEPS),
            entries=len(self.meaning.tested),
        )

    def bound(self, parts: int) -> float:
        return best_bound(parts, float(self.parts_epsilon) / len(self.meaning.tested))

    def staged(self, parameters: dict[str, Any]) -> Staged:
        meaning, unit = self.meaning, self.protection.unit
        statistic = ModelParts(meaning.design, meaning.tested, by_unit=unit)
        steps: dict[str, Booked] = {}
        if self.rows is None:
            steps["count"] = Booked.of(Step(RowsOfModel(meaning.design), self.count_noise))
            usual = self.mechanism(2)
        else:
            usual = self.mechanism(self.parts({}))
        steps["scores"] = Booked(
            usual.event(), lambda answers: Step(statistic, self.mechanism(self.parts(answers)))
        )
        return Staged(
            name="conclusion",
            steps=steps,
            parameters=parameters,
            claim="conclusion",
            description={"name": "bounded t statistics of random parts"},
            reading=self,
            view=(lambda rows: rows.with_lists()) if unit else None,
        )

    def evidence(self, answers: Answers) -> tuple[Evidence, ...]:
        parts = self.parts(answers)
        noise, bound = self.mechanism(parts).noise, self.bound(parts)
        slope, own = slope_and_variance(bound)
        unit = math.sqrt(parts) * slope * SCORE_STEPS
        scale, spread = noise.float_scale / unit, own / slope**2

        def law(variance: float) -> Callable[[float], float]:
            return lambda value: below(value, variance, scale)

        return tuple(
            Evidence(float(total) / unit, law(spread - 1 + EXTRA), law(spread + EXTRA))
            for total in answers["scores"]
        )


@dataclass(frozen=True, kw_only=True)
class MomentsPlan:
    """Ask for the fit that `LinearRegression` gives, and compare it with the claim.

    Claim:       pure DP, epsilon: that of the fit.                          [claim: conclusion]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the fit's.
    Numerics:    exact.
    Refuses:     an epsilon whose noise cannot be drawn, before anything is booked.
    Reference:   proofs/conclusion.md.
    Cost:        two scans.
    """

    meaning: Meaning
    fit: FitPlan

    def staged(self, parameters: dict[str, Any]) -> Staged:
        staged = self.fit.staged()
        return Staged(
            name="conclusion",
            steps=staged.steps,
            parameters=parameters,
            claim="conclusion",
            description=staged.description,
            reading=self,
        )

    def evidence(self, answers: Answers) -> tuple[Evidence, ...]:
        fitted = self.fit.fitted(answers)
        factor = float(fitted.safe_factors(answers["influences"])[self.meaning.place])

        def of(weights: Floats, threshold: float) -> Evidence:
            error = math.sqrt(factor * fitted.sampling_variance(weights))
            noise, whole = fitted.noise(weights), fitted.noise(weights, error)
            if not fitted.identified or error == 0:
                return Evidence(0.0, lambda value: 0.5, lambda value: 0.5)
            value = (float(weights @ fitted.coded) - threshold) / error
            return Evidence(
                value, lambda far: noise.below(far * error), lambda far: whole.below(far * error)
            )

        tested = self.meaning.tested
        return tuple(of(np.array(one.weights), one.threshold) for one in tested)


# --- What people read ----------------------------------------------------------------------------


class ConclusionRelease(Release):
    """Says whether a claim holds, with how likely that is.

    `verdict` is "holds", "does not hold" or "cannot tell". A claim that is false in the population
    is said to hold in about 5% of samples at most, sampling error and noise together; a claim of
    significance is about these very rows, and noise alone is counted.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self._plan: ConclusionPlan = drawn.request.reading
        self._evidence: tuple[Evidence, ...] = self._plan.evidence(drawn.values)

    @property
    def claim(self) -> str:
        """Return the claim, as it was stated."""
        return str(self.parameters["claim"])

    @cached_property
    def _chances(self) -> tuple[float, ...]:
        """Return how likely each part of the claim is."""
        meaning: Meaning = self._plan.meaning
        if meaning.two_sided:
            (evidence,) = self._evidence
            return (evidence.noise(abs(evidence.value) - meaning.criterion),)
        return tuple(evidence.whole(evidence.value) for evidence in self._evidence)

    @property
    def verdict(self) -> str:
        """Return "holds", "does not hold" or "cannot tell"."""
        if min(self._chances) >= LEVEL:
            return HOLDS
        return FAILS if min(self._chances) <= 1 - LEVEL else OPEN

    @property
    def holds(self) -> bool:
        """Return whether the claim surely holds."""
        return self.verdict == HOLDS

    @cached_property
    def probability(self) -> Measure:
        """Return how likely the claim is by what was released.

        Its noise interval has what the analysis without noise may have said: how likely the claim
        would be by these very rows.
        """
        value = max(0.0, sum(self._chances) - (len(self._chances) - 1))

        def without_noise(level: float) -> Interval:
            pairs = [self._without_noise(evidence, level) for evidence in self._evidence]
            rest = len(pairs) - 1
            low = max(0.0, sum(low for low, _ in pairs) - rest)
            return (low, min(high for _, high in pairs))

        return Measure(
            value,
            name=f"probability that {self.claim}",
            terms=self.terms,
            noise_interval=without_noise,
            interval=without_noise,
            share=lambda share: share,
            is_probability=True,
        )

    def _without_noise(self, evidence: Evidence, level: float) -> Interval:
        far = halved(lambda far: evidence.noise(far) < (1 + level) / 2, 0.0, 1e15, steps=100)[1]
        low, high = evidence.value - far, evidence.value + far
        meaning: Meaning = self._plan.meaning
        if meaning.two_sided:
            ends = sorted((abs(low), abs(high)))
            least = 0.0 if low < 0 < high else ends[0]
            return (float(least > meaning.criterion), float(ends[1] > meaning.criterion))
        return (_NORMAL.cdf(low), _NORMAL.cdf(high))

    @property
    def measures(self) -> dict[str, Measure]:
        return {self.probability.name: self.probability}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def finding(self, level: float = 0.95) -> str | None:
        if self.verdict == OPEN:
            return f"These rows cannot tell at this price whether {self.claim}."
        return f"{self.claim}: {self.verdict} (probability {self._shown})."

    @property
    def _shown(self) -> str:
        return show_probability(self.probability.value)

    def __str__(self) -> str:
        without_noise = between(self.probability.noise_interval(0.95), show_probability)
        chance = f"probability {self._shown} (without noise {without_noise})"
        return f"{self.claim}: {self.verdict}, {chance}, {self.terms}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {"verdict": self.verdict, "holds": self.holds}

    def _noisy(self) -> object:
        return {name: list(map(int, values)) for name, values in self._drawn.values.items()}
