"""One release of a ranking metric: noisy class counts and the noisy value, for one epsilon.

The size of the noise depends on a class count, so an honest interval needs to know that count. A
small share of epsilon buys it, in two looks: the first, with 2% of epsilon, says roughly how
large the class is, and thereby (it is public now) how much a second look deserves: little if the
class is large, up to a quarter of epsilon if it is small. The value gets the rest. Each part is
pure and the parts add up to epsilon whatever the first look says, so all of it costs epsilon.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from heldout.arguments import OneOf
from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.exact import LATTICE, discrete_laplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.source import Randomness
from heldout.kernel.noise.tied import OutcomeLaplace
from heldout.kernel.ranking.ladder import (
    Cauchy,
    CauchyBoyd2015,
    LaplaceBoyd2015,
    NoiseLaw,
    PiecewiseLaplace,
    PolynomialTail,
)
from heldout.kernel.ranking.sensitivity import RungSensitivity
from heldout.kernel.ranking.statistic import RankDifferences, RankingStatistic, ranking_metric
from heldout.kernel.ranking.tuned import FIRST_SHARE, SHARES, UNKNOWN_ROWS
from heldout.kernel.statistic import Sealed

# --- Public parameters from public facts: never from the data ------------------------------------


METHODS = (
    "piecewise-laplace",
    "polynomial-tail",
    "cauchy",
    "boyd-2015-cauchy",
    "boyd-2015-laplace",
)


def sensitivity_for(
    metric: str, *, protection: Protection, method: str = "piecewise-laplace"
) -> RungSensitivity:
    """The sensitivity bound of a metric by its name, as a method uses it."""
    kind = ranking_metric(metric)
    bound = kind.published_bound if method.startswith("boyd-2015") else kind.bound
    return bound(protection=protection)


def guessed_rung(
    local: RungSensitivity, *, rows: int | None, smaller_class: int | None = None
) -> int:
    """The rung that public parameters aim at.

    Without a public guess of the smaller class (for average precision: of the positives) it is a
    quarter of the rows: wrong by a factor of two at most for shares between 1/8 and 1/2. A wrong
    guess costs accuracy and never privacy.
    """
    size = smaller_class if smaller_class is not None else (rows or UNKNOWN_ROWS) // 4
    return max(2, size // local.protection.rows_per_unit)


def choose(
    method: str,
    *,
    epsilon: Fraction,
    local: RungSensitivity,
    rows: int | None,
    smaller_class: int | None = None,
    delta: Fraction | None = None,
) -> NoiseLaw:
    """The noise law of a method, with parameters from public facts.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> local = sensitivity_for("auc", protection=Protection(neighbours="replace-one"))
    >>> law = choose("polynomial-tail", epsilon=Fraction(1), local=local, rows=2000)
    >>> print(price(law.event()))
    epsilon 1
    """
    if (method == "boyd-2015-laplace") != (delta is not None):
        raise ArgumentError(
            f"delta must be given for 'boyd-2015-laplace' and for no other method, got {delta} "
            f"with {method!r}. Every other method here is pure."
        )
    if method == "piecewise-laplace":
        known = (
            max(rows or UNKNOWN_ROWS, 4 * (smaller_class or 0)) // local.protection.rows_per_unit
        )
        return PiecewiseLaplace(epsilon=epsilon, local=local, top=_power_of_two(known))
    if method == "polynomial-tail":
        rung = guessed_rung(local, rows=rows, smaller_class=smaller_class)
        return choose_polynomial_tail(epsilon=epsilon, local=local, rung=rung)
    if method == "cauchy":
        return Cauchy(local=local, a=epsilon / 2, beta=epsilon / 2)
    if method == "boyd-2015-cauchy":
        return CauchyBoyd2015(local=local, epsilon=epsilon)
    if delta is not None:
        return LaplaceBoyd2015(local=local, epsilon=epsilon, delta=delta)
    raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")


@lru_cache(maxsize=256)
def choose_polynomial_tail(
    *, epsilon: Fraction, local: RungSensitivity, rung: int
) -> PolynomialTail:
    """a, beta and nu that minimise the expected error, at most 1, on the guessed rung.

    Claim:       a + max(1, nu - 1) beta = epsilon, exactly.    [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: not used for privacy here: every choice has the same price.
    Numerics:    a search in doubles; its result is rounded to rationals and a is what is left.
    Refuses:     nothing.
    Reference:   none.
    Cost:        a few milliseconds, then cached.
    """
    nus = np.concatenate([np.linspace(2.05, 6, 40), np.geomspace(6.2, 60, 40)])[:, None]
    shares = np.geomspace(2e-3, 0.9, 120)[None, :]  # of epsilon, for the smoothing
    for _ in range(2):  # a coarse search, then a finer one about its best
        errors = _expected_error(float(epsilon), local, rung, nus, shares)
        i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
        best_nu, best_share = float(nus[i, 0]), float(shares[0, j])
        nus = best_nu * np.linspace(0.93, 1.07, 41)[:, None]
        nus = np.maximum(nus, 2.02)
        shares = np.minimum(best_share * np.linspace(0.93, 1.07, 41)[None, :], 0.95)
    nu = Fraction(round(best_nu * 1000), 1000)
    share = Fraction(round(best_share * 10**6), 10**6)
    beta = epsilon * share / max(Fraction(1), nu - 1)
    return PolynomialTail(local=local, a=epsilon - epsilon * share, beta=beta, nu=nu)


def _expected_error(
    epsilon: float, local: RungSensitivity, rung: int, nus: Floats, shares: Floats
) -> Floats:
    """E min(1, |noise|) over a grid of parameters."""
    beta = epsilon * shares / np.maximum(1.0, nus - 1)
    smooth = np.full(beta.shape, local.upper(rung))
    for low in range(1, min(local.settles + 2, rung)):
        smooth = np.maximum(smooth, np.exp(-beta * (rung - low)) * local.upper(low))
    scale = smooth / (epsilon * (1 - shares))
    return scale * _mean_below(nus, 1 / scale)


def _mean_below(nu: Floats, cap: Floats) -> Floats:
    """E min(|Z|, cap), in closed form: the integral of the tail from 0 to cap."""
    lift = np.exp(-nu) / (nu - 1)
    inner = np.minimum(cap, nu)
    core = -np.expm1(-inner) + lift * inner
    ratio = np.maximum(cap / nu, 1.0)
    beyond = lift * nu * nu * (1 - ratio ** (2 - nu)) / (nu - 2)
    return (core + beyond) / (1 + lift)


def _power_of_two(number: int) -> int:
    return int(2 ** max(8, math.ceil(math.log2(max(number, 2)))))


@dataclass(frozen=True)
class RankingDraw:
    """Holds what was drawn: everything here was paid for."""

    mechanism: "RankingMechanism"
    units: int
    first_counts: tuple[int, ...] = ()
    second_counts: tuple[int, ...] = ()
    unclamped: float = field(init=False)
    """The noisy value as drawn, which may lie outside [0, 1]: what intervals are made of."""
    value: float = field(init=False)
    """The noisy value, clamped to [0, 1]."""
    looks: list[tuple[tuple[int, ...], float]] = field(init=False)
    """Each release of the counts with the scale of its noise."""
    metric: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", self.mechanism.metric)
        unclamped = float(self.units * LATTICE)
        object.__setattr__(self, "unclamped", unclamped)
        object.__setattr__(self, "value", min(1.0, max(0.0, unclamped)))
        first, second = self.mechanism.first_look, self.mechanism.second_look(self.first_counts)
        pairs = ((self.first_counts, first), (self.second_counts, second))
        looks = [(counts, float(noise.scale)) for counts, noise in pairs if noise is not None]
        object.__setattr__(self, "looks", looks)

    @cached_property
    def law(self) -> NoiseLaw:
        """The law of the value's noise, which the first look at the counts decided."""
        return self.mechanism.law_after(self.first_counts)

    def as_dict(self) -> dict[str, object]:
        """The released numbers as drawn."""
        names = ("positives", "negatives")
        looks = [
            {**dict(zip(names, counts, strict=False)), "scale": scale}
            for counts, scale in self.looks
        ]
        return {"unclamped": self.unclamped, "lattice": str(LATTICE), "noisy_counts": looks}


@dataclass(frozen=True, kw_only=True)
class RankingMechanism:
    """Noisy class counts and a noisy ranking metric. Everything in it is public.

    Claim:       pure DP, epsilon (and delta for the one method that has it).
                                                                       [claim: ranking-release]
    Neighbours:  the protection's.
    Sensitivity: counts: k positives with a public row count, else as many as may leave and arrive;
                 value: the noise law's own.
    Numerics:    exact.
    Refuses:     an unknown metric or method; a share outside [0, 1).
    Reference:   adaptive composition of pure mechanisms; proofs/ranking-release.md.
    Cost:        about 1 ms, after 20 to 60 ms once for each new epsilon of the value.

    `smaller_class` is a public guess (for average precision: of the positives): it takes the
    place of the first look, which makes the value a little sharper if it is right; if it is wrong
    intervals widen, and still hold. `share` fixes the part of epsilon for the counts, in one look.

    >>> from heldout.kernel import price
    >>> mechanism = RankingMechanism(
    ...     metric="auc", epsilon=Fraction(1, 2), rows=2000,
    ...     protection=Protection(neighbours="replace-one"))
    >>> print(price(mechanism.event()))
    epsilon 0.5
    """

    metric: str
    epsilon: Fraction
    protection: Protection
    rows: int | None = None
    smaller_class: int | None = None
    method: str = "piecewise-laplace"
    delta: Fraction | None = None
    share: Fraction | None = None

    def __post_init__(self) -> None:
        OneOf(METHODS, "Leave it out for the most accurate.")(self.method, "method")
        if self.protection.row_count_is_public and self.rows is None:
            raise ArgumentError("Pass rows=: their number is public under these neighbours.")
        if self.share is not None and not 0 <= self.share < 1:
            raise ArgumentError(
                f"share must be at least 0 and below 1, got {self.share}. Leave it out."
            )
        self._law(self.epsilon * (1 - self._first_share))  # refuses what it must before booking

    @cached_property
    def local(self) -> RungSensitivity:
        return sensitivity_for(self.metric, protection=self.protection, method=self.method)

    @property
    def two_looks(self) -> bool:
        """Return whether the first look at the counts decides on a second."""
        guessed = self.share is not None or self.smaller_class is not None
        return self.method == "piecewise-laplace" and not guessed

    @cached_property
    def _first_share(self) -> Fraction:
        if self.share is not None:
            return self.share
        if self.method.startswith("boyd-2015"):
            return Fraction(0)  # exactly as published
        if self.two_looks:
            return FIRST_SHARE
        guess = guessed_rung(self.local, rows=self.rows, smaller_class=self.smaller_class)
        return self.deserved(guess * self.local.protection.rows_per_unit)

    @cached_property
    def first_look(self) -> DiscreteLaplace | None:
        return self._look(self._first_share)

    def second_share(self, first_counts: tuple[int, ...]) -> Fraction:
        """The share of epsilon that the second look deserves, by what the first one said."""
        if not self.two_looks:
            return Fraction(0)
        positives, *rest = first_counts
        negatives = rest[0] if rest else (self.rows or 0) - positives
        size = self.local.rung_size(positives=positives, negatives=negatives)
        return self.deserved(int(size))

    def second_look(self, first_counts: tuple[int, ...]) -> DiscreteLaplace | None:
        return self._look(self.second_share(first_counts))

    def law_after(self, first_counts: tuple[int, ...]) -> NoiseLaw:
        """The value's noise: with all that the looks at the counts leave of epsilon."""
        spent = self._first_share + self.second_share(first_counts)
        return self._law(self.epsilon * (1 - spent))

    def expected_law(self, *, positives: int, negatives: int) -> NoiseLaw:
        """The value's noise if the first look is right: for plans and benchmarks."""
        both = (positives, negatives)
        return self.law_after(both[: 1 if self.protection.row_count_is_public else 2])

    def deserved(self, size: int) -> Fraction:
        """Return the share of epsilon that a look at a class of this size deserves."""
        wanted = ranking_metric(self.metric).scales * self._moved / (max(size, 1) * self.epsilon)
        return next((share for share in SHARES if share >= wanted), SHARES[-1])

    @property
    def _moved(self) -> int:
        """With a public row count only the positives are counted, and a row changes them by 1."""
        public = self.protection.row_count_is_public
        return self.protection.rows_per_unit if public else self.protection.rows_moved

    def _look(self, share: Fraction) -> DiscreteLaplace | None:
        if share == 0:
            return None
        return DiscreteLaplace.for_epsilon(
            self.epsilon * share,
            l1_sensitivity=self._moved,
            dimension=1 if self.protection.row_count_is_public else 2,
        )

    def _law(self, epsilon: Fraction) -> NoiseLaw:
        return choose(
            self.method,
            epsilon=epsilon,
            local=self.local,
            rows=self.rows,
            smaller_class=self.smaller_class,
            delta=self.delta,
        )

    def event(self) -> Event:
        """Counts, then the rest. With two looks the rest holds the second look and the value:
        how it is split depends on the first look, its price does not."""
        look, rest = self.first_look, self._law(self.epsilon * (1 - self._first_share))
        return rest.event() if look is None else Event.composed([look.event(), rest.event()])

    def describe(self) -> dict[str, object]:
        rest = self._law(self.epsilon * (1 - self._first_share)).describe()
        described: dict[str, object] = {"metric": self.metric, **rest}
        if self.first_look is not None:
            described["counts"] = self.first_look.describe()
        return described

    def sample(
        self, sealed: Sealed[RankingStatistic], *, randomness: Randomness | None = None
    ) -> RankingDraw:
        statistic = unseal(sealed)
        rung = self.local.rung(positives=statistic.positives, negatives=statistic.negatives)
        first = _noisy(self.first_look, statistic, randomness)
        second = _noisy(self.second_look(first), statistic, randomness)
        units = self.law_after(first).sample(statistic.value, rung=rung, randomness=randomness)
        return RankingDraw(self, units, first, second)


def _noisy(
    look: DiscreteLaplace | None, statistic: RankingStatistic, randomness: Randomness | None
) -> tuple[int, ...]:
    if look is None:
        return ()
    counts = (statistic.positives, statistic.negatives)[: look.dimension]
    return tuple(count + discrete_laplace(look.scale, randomness=randomness) for count in counts)


# --- Where only outcomes are secret: the difference of two areas is linear in them ---------------


@dataclass(frozen=True, kw_only=True)
class RankSums:
    """Noisy positives and the noisy sum of their rank differences. Everything in it is public.

    Claim:       pure DP, epsilon.                                         [claim: outcome-sums]
    Neighbours:  label, by row or by unit of at most k rows.
    Sensitivity: that of `RankDifferences`, which `OutcomeLaplace` takes.
    Numerics:    exact.
    Refuses:     what `OutcomeLaplace` refuses.
    Reference:   proofs/outcome-sums.md.
    Cost:        two draws.
    """

    metric: ClassVar[str] = "auc-difference"
    epsilon: Fraction
    protection: Protection
    rows: int

    def __post_init__(self) -> None:
        _ = self.sums

    @cached_property
    def sums(self) -> OutcomeLaplace:
        most = 4 * max(self.rows, RankDifferences.SHARE)
        return OutcomeLaplace(self.epsilon, 2, most, self.protection)

    @cached_property
    def local(self) -> RungSensitivity:
        return sensitivity_for(self.metric, protection=self.protection)

    def event(self) -> Event:
        return self.sums.event()

    def describe(self) -> dict[str, object]:
        return {"metric": self.metric, **self.sums.describe()}

    def sample(self, sealed: Sealed[Any]) -> "RankSumDraw":
        (positives, total), reaches = self.sums.parts(self.sums.sample(sealed))
        return RankSumDraw(self, int(positives), int(total), int(reaches[1]))


@dataclass(frozen=True)
class RankSumDraw:
    """Holds what was drawn, and reads it as half of the difference plus one half."""

    mechanism: RankSums
    positives: int
    rank_sum: int
    reach: int
    """Of the sum: a public number."""

    @property
    def metric(self) -> str:
        return self.mechanism.metric

    @property
    def looks(self) -> list[tuple[tuple[int, ...], float]]:
        scale = float(self.mechanism.sums.noise(RankDifferences.SHARE).scale)
        return [((self.positives,), scale)]

    @property
    def unclamped(self) -> float:
        rows = self.mechanism.rows
        n = min(max(self.positives, 1), max(rows - 1, 1))
        return 0.5 + self.rank_sum / (4 * n * max(rows - n, 1))

    @property
    def value(self) -> float:
        return min(1.0, max(0.0, self.unclamped))

    @property
    def law(self) -> "RankSumLaw":
        scale = float(self.mechanism.sums.noise(self.reach).scale) if self.reach else 0.0
        return RankSumLaw(
            rows=self.mechanism.rows,
            rows_per_unit=self.mechanism.protection.rows_per_unit,
            scale=scale,
            count_scale=self.looks[0][1],
            away=abs(self.unclamped - 0.5),
        )

    def as_dict(self) -> dict[str, object]:
        """The released numbers as drawn."""
        return {
            "unclamped": self.unclamped,
            "rank_sum": self.rank_sum,
            "reach": self.reach,
            "noisy_counts": [{"positives": self.positives, "scale": self.looks[0][1]}],
        }


@dataclass(frozen=True)
class RankSumLaw:
    """Tells how far a quotient of two noisy sums is from the true one, by the smaller class.

    The sum's noise is divided by four times both classes. That of the positives, n of N, moves the
    quotient by a share of 1/n - 1/(N - n) a row, to first order.
    """

    rows: int
    rows_per_unit: int
    scale: float
    count_scale: float
    away: float
    """The distance of the released number from one half."""

    def survival(self, rungs: Any, distance: Any) -> Floats:
        """P(|noise| > distance) for classes of so many units, in doubles."""
        n = np.clip(np.asarray(rungs, dtype=float) * self.rows_per_unit, 1, max(self.rows / 2, 1))
        m = np.maximum(self.rows - n, 1)
        one = np.maximum(self.scale / (4 * n * m), 1e-12)
        other = self.count_scale * self.away * np.abs(1 / n - 1 / m)
        # The tail of a sum of two Laplace noises; equal ones are made to differ by a hundredth.
        other = np.where(np.abs(other - one) < one / 100, one * 0.99, other)
        other = np.maximum(other, 1e-14)
        tails = one**2 * np.exp(-distance / one) - other**2 * np.exp(-distance / other)
        result: Floats = np.clip(tails / (one**2 - other**2), 0.0, 1.0)
        return result
