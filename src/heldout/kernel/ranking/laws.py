"""Noise laws for smooth sensitivity: centred noise whose size depends on the rung of the data."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.exact import (
    LATTICE,
    Randomness,
    draw_on_lattice,
    falls_to,
    rational,
    working_precision,
)
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.ranking.sensitivity import RungSensitivity, SmoothSensitivity

if TYPE_CHECKING:
    from flint import arb

# --- What a noise law is: centred noise whose size depends on the rung of the data set -----------


class NoiseLaw(Protocol):
    """Symmetric noise for a statistic whose local sensitivity is known by rung. All public."""

    @property
    def local(self) -> RungSensitivity:
        """The sensitivity that the noise is made for."""

    def event(self) -> Event:
        """Return what the ledger books."""

    def describe(self) -> dict[str, object]:
        """Name and public parameters."""

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        """A multiple of the lattice: the value with exact noise, rounded."""

    def survival(self, rungs: Any, distance: Any) -> Floats:
        """P(|noise| > distance) on each of the rungs, in doubles, for plans and intervals."""


@dataclass(frozen=True, kw_only=True)
class ScaledNoise(Primitive, ABC):
    """f + (S/a) Z, with S the beta-smooth sensitivity and Z of one fixed law."""

    local: RungSensitivity

    @property
    @abstractmethod
    def sharpness(self) -> Fraction:
        """The a of S/a."""

    @property
    @abstractmethod
    def smoothing(self) -> Fraction:
        """The beta that S is smooth for."""

    @abstractmethod
    def magnitude(self, tail: "arb") -> "arb":
        """The z >= 0 with P(|Z| > z) = tail; indeterminate if the tail is not known well enough."""

    @abstractmethod
    def tail(self, z: Any) -> Floats:
        """P(|Z| > z) in doubles."""

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        smooth = SmoothSensitivity(local=self.local, beta=self.smoothing, rung=rung)

        def real(uniform: "arb") -> "arb":
            scale = smooth.ball() / rational(self.sharpness)
            return rational(value) + scale * symmetric(uniform, self.magnitude)

        return draw_on_lattice(real, lattice=lattice, randomness=randomness)

    def scale(self, rung: int) -> float:
        """S/a near enough for plans and intervals."""
        smooth = SmoothSensitivity(local=self.local, beta=self.smoothing, rung=rung)
        return smooth.approximate() / float(self.sharpness)

    def survival(self, rungs: Any, distance: Any) -> Floats:
        rungs, distance = np.broadcast_arrays(np.asarray(rungs), np.asarray(distance, dtype=float))
        whole, where = np.unique(np.floor(rungs).astype(np.int64), return_inverse=True)
        scales = np.array([self.scale(int(rung)) for rung in whole])[where.reshape(rungs.shape)]
        return self.tail(distance / scales)


def symmetric(uniform: "arb", magnitude: Callable[["arb"], "arb"]) -> "arb":
    """The quantile of a symmetric law from the magnitude's: one coin for the sign, by the half."""
    from flint import arb, fmpq

    half = arb(fmpq(1, 2))
    if uniform < half:
        return -magnitude(2 * uniform)
    if uniform > half:
        return magnitude(2 * (1 - uniform))
    return arb.nan()


def error_quantile(law: NoiseLaw, *, rung: int, level: float) -> float:
    """The t with P(|noise| <= t) = level for a data set on this rung."""
    return falls_to(lambda size: float(law.survival(rung, size)), 1 - level, start=1e-12)


def mean_absolute_error(law: NoiseLaw, *, rung: int, cap: float = 1.0) -> float:
    """The expected size of the noise, where an error counts at most `cap`."""
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 4000)]) * cap
    tails = np.asarray(law.survival(np.full(edges.shape, rung), edges))
    return float(np.trapezoid(tails, edges))


# --- Laplace noise with a polynomial tail, for smooth sensitivity --------------------------------


@dataclass(frozen=True, kw_only=True)
class PolynomialTail(ScaledNoise):
    """f + (S/a) Z: the density of Z falls as exp(-|z|) up to nu, and as |z|^-nu beyond.

    Claim:       pure DP, epsilon = a + max(1, nu - 1) * beta.  [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     a or beta that is not positive, nu of 1 or less.
    Reference:   Hladik and Tetek 2025, "Smooth sensitivity revisited"; MATH section 3.
    Cost:        about 0.05 ms a draw.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> tail = PolynomialTail(local=local, a=Fraction(3, 5), beta=Fraction(1, 10), nu=Fraction(5))
    >>> print(price(tail.event()))
    epsilon 1
    """

    rule = ("smooth-polynomial-tail", "a", "beta", "nu")
    a: Fraction
    beta: Fraction
    nu: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0 or self.beta <= 0 or self.nu <= 1:
            raise ArgumentError(
                f"a and beta must be positive and nu more than 1, got a = {self.a}, "
                f"beta = {self.beta}, nu = {self.nu}. See choose_polynomial_tail."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.a

    @property
    def smoothing(self) -> Fraction:
        return self.beta

    def describe(self) -> dict[str, object]:
        parameters = {"a": str(self.a), "beta": str(self.beta), "nu": str(self.nu)}
        return {"name": "polynomial tail", **parameters}

    def magnitude(self, tail: "arb") -> "arb":
        from flint import arb

        nu = rational(self.nu)
        corner = (-nu).exp()
        lift = corner / (nu - 1)  # the core's tail is exp(-z) + lift, over 1 + lift
        mass = tail * (1 + lift)
        border = corner + lift
        if mass > border:
            return -(mass - lift).log()
        if mass < border:
            return nu * ((border / mass).log() / (nu - 1)).exp()
        return arb.nan()

    def tail(self, z: Floats) -> Floats:
        nu = float(self.nu)
        lift = math.exp(-nu) / (nu - 1)
        far = np.maximum(z, nu)
        core = np.exp(-np.minimum(z, nu)) + lift
        beyond = lift * nu * (far / nu) ** (1 - nu)
        return np.where(np.asarray(z) <= nu, core, beyond) / (1 + lift)

    def log_density(self, z: Floats) -> Floats:
        """The logarithm of the density of Z, in doubles."""
        nu = float(self.nu)
        size = np.abs(z)
        shape = np.where(size <= nu, -size, -nu - nu * np.log(np.maximum(size, nu) / nu))
        return shape - math.log(2 * (1 + math.exp(-nu) / (nu - 1)))


# --- Cauchy and Laplace noise for smooth sensitivity: with tight constants, and as published -----


@dataclass(frozen=True, kw_only=True)
class _CauchyShape(ScaledNoise):
    """Z is standard Cauchy."""

    def magnitude(self, tail: "arb") -> "arb":
        return (tail / 2).cot_pi()

    def tail(self, z: Floats) -> Floats:
        return 1 - np.arctan(z) * 2 / np.pi

    def log_density(self, z: Floats) -> Floats:
        """The logarithm of the density of Z, in doubles."""
        result: Floats = -np.log(np.pi) - np.log1p(np.square(z))
        return result


@dataclass(frozen=True, kw_only=True)
class Cauchy(_CauchyShape):
    """f + (S/a) Z with standard Cauchy Z and the constants that the proof needs.

    Claim:       pure DP, epsilon = a + beta.                   [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     a or beta that is not positive.
    Reference:   Nissim, Raskhodnikova and Smith 2007, with both constants worked out; MATH 3.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-cauchy", "a", "beta")
    a: Fraction
    beta: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0 or self.beta <= 0:
            raise ArgumentError(
                f"a and beta must be positive, got a = {self.a}, beta = {self.beta}. "
                "Half of epsilon each is a good start."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.a

    @property
    def smoothing(self) -> Fraction:
        return self.beta

    def describe(self) -> dict[str, object]:
        return {"name": "Cauchy", "a": str(self.a), "beta": str(self.beta)}


@dataclass(frozen=True, kw_only=True)
class CauchyBoyd2015(_CauchyShape):
    """f + (6 S/epsilon) Z with beta = epsilon/6, exactly as the 2015 paper states it.

    Claim:       pure DP, epsilon (a third of it would be true).
                                                                [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`.
    Refuses:     an epsilon that is not positive.
    Reference:   Boyd, Lantz and Page 2015, theorem 2.1 with gamma = 2.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-cauchy-2015", "epsilon")
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be positive, got {self.epsilon}. Try '1'.")

    @property
    def sharpness(self) -> Fraction:
        return self.epsilon / 6

    @property
    def smoothing(self) -> Fraction:
        return self.epsilon / 6

    def describe(self) -> dict[str, object]:
        return {"name": "Cauchy as in Boyd et al. 2015", "epsilon": str(self.epsilon)}


@dataclass(frozen=True, kw_only=True)
class LaplaceBoyd2015(ScaledNoise):
    """f + (2 S/epsilon) Z with Laplace Z and beta = epsilon/(2 ln(2/delta)), as published.

    Claim:       (epsilon, delta)-DP.                           [claim: smooth-polynomial-tail]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: S is beta-smooth and never below the local sensitivity.
    Numerics:    exact, see `draw_on_lattice`; beta is a public rational just below the published
                 irrational number, which is on the safe side.
    Refuses:     an epsilon that is not positive; a delta outside (0, 1/2]; an epsilon too large for
                 the published proof, (exp(beta) - 1 - beta) epsilon > 2 beta^2: about 3.
    Reference:   Boyd, Lantz and Page 2015, theorem 2.2; Nissim et al. 2007, corollary 2.4.
    Cost:        about 0.05 ms a draw.
    """

    rule = ("smooth-laplace-2015", "epsilon", "delta")
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 < self.delta <= Fraction(1, 2):
            raise ArgumentError(
                f"epsilon must be positive and delta between 0 and 1/2, got {self.epsilon} "
                f"and {self.delta}. Try epsilon '1' and delta '1e-6'."
            )
        with working_precision(128):
            beta = rational(self.smoothing)
            holds = (beta.expm1() - beta) * rational(self.epsilon) <= 2 * beta * beta
        if not holds:
            raise ArgumentError(
                f"epsilon must be small enough for the proof of 2015, got {self.epsilon}. "
                "Use at most 3, or the default method."
            )

    @property
    def sharpness(self) -> Fraction:
        return self.epsilon / 2

    @property
    def smoothing(self) -> Fraction:
        with working_precision(128):
            beta = rational(self.epsilon) / (2 * rational(2 / self.delta).log())
            units = (beta * 2**64).lower().floor().unique_fmpz()
        return Fraction(int(units), 2**64)

    def describe(self) -> dict[str, object]:
        name = "Laplace as in Boyd et al. 2015"
        return {"name": name, "epsilon": str(self.epsilon), "delta": str(self.delta)}

    def magnitude(self, tail: "arb") -> "arb":
        return -tail.log()

    def tail(self, z: Floats) -> Floats:
        result: Floats = np.exp(-np.asarray(z, dtype=float))
        return result
