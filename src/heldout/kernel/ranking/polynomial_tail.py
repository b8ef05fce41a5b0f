"""Laplace noise with a polynomial tail, for smooth sensitivity."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.noise.exact import rational
from heldout.kernel.ranking.law import ScaledNoise

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PolynomialTail"]


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

    def tail(self, z: Any) -> Any:
        nu = float(self.nu)
        lift = math.exp(-nu) / (nu - 1)
        far = np.maximum(z, nu)
        core = np.exp(-np.minimum(z, nu)) + lift
        beyond = lift * nu * (far / nu) ** (1 - nu)
        return np.where(np.asarray(z) <= nu, core, beyond) / (1 + lift)

    def log_density(self, z: Any) -> Any:
        """The logarithm of the density of Z, in doubles."""
        nu = float(self.nu)
        size = np.abs(z)
        shape = np.where(size <= nu, -size, -nu - nu * np.log(np.maximum(size, nu) / nu))
        return shape - math.log(2 * (1 + math.exp(-nu) / (nu - 1)))
