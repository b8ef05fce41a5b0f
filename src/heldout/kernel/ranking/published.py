"""Cauchy and Laplace noise for smooth sensitivity: with tight constants, and as published."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.noise.exact import rational, working_precision
from heldout.kernel.ranking.law import ScaledNoise

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Cauchy", "CauchyBoyd2015", "LaplaceBoyd2015"]


@dataclass(frozen=True, kw_only=True)
class _CauchyShape(ScaledNoise):
    """Z is standard Cauchy."""

    def magnitude(self, tail: "arb") -> "arb":
        return (tail / 2).cot_pi()

    def tail(self, z: Any) -> Any:
        return 1 - np.arctan(z) * 2 / np.pi

    def log_density(self, z: Any) -> Any:
        """The logarithm of the density of Z, in doubles."""
        return -np.log(np.pi) - np.log1p(np.square(z))


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

    def tail(self, z: Any) -> Any:
        return np.exp(-np.asarray(z, dtype=float))
