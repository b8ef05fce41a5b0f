"""Discrete Gaussian noise on integer vectors: for budgets of rho."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import plus_discrete_gaussian
from heldout.kernel.statistic import Sealed


@dataclass(frozen=True)
class DiscreteGaussian(Primitive):
    """Adds to each entry an integer x with probability proportional to exp(-x^2 / (2 sigma^2)).

    Claim:       zCDP, rho = l2_sensitivity_squared / (2 sigma_squared). [claim: discrete-gaussian]
    Neighbours:  those for which the statistic proved its L2 sensitivity.
    Sensitivity: the statistic's: the sum of squared differences of entries.
    Numerics:    exact. OpenDP draws with integer arithmetic from the operating system's
                 randomness, at a double that is not below the exact sigma, so the true loss is at
                 most the claimed one. Entries saturate at 64 bits, which is post-processing.
    Refuses:     a sigma or sensitivity that is not positive; a sigma above 2^52.
    Reference:   Canonne, Kamath and Steinke 2020, theorem 4; proofs/discrete-gaussian.md.
    Cost:        about 13 microseconds an entry.

    >>> from heldout.kernel import price
    >>> noise = DiscreteGaussian.for_rho(Fraction(1, 8), l2_sensitivity_squared=4, dimension=3)
    >>> noise.sigma_squared, str(price(noise.event()))
    (Fraction(16, 1), 'rho 0.125')
    """

    rule = ("discrete-gaussian", "l2_sensitivity_squared", "sigma_squared", "dimension")
    sigma_squared: Fraction
    l2_sensitivity_squared: Fraction
    dimension: int

    def __post_init__(self) -> None:
        if self.sigma_squared <= 0 or self.l2_sensitivity_squared <= 0 or self.dimension <= 0:
            raise ArgumentError("sigma, sensitivity and dimension must be positive.")
        if self.sigma_squared > 2**104:
            raise ArgumentError("sigma must be at most 2^52. Use a larger price.")

    @classmethod
    def for_rho(
        cls, rho: Fraction, *, l2_sensitivity_squared: Fraction | int, dimension: int
    ) -> "DiscreteGaussian":
        """The mechanism that spends exactly `rho`."""
        if rho <= 0:
            raise ArgumentError("rho must be more than 0. Pass a larger number.")
        square = Fraction(l2_sensitivity_squared)
        return cls(
            sigma_squared=square / (2 * rho), l2_sensitivity_squared=square, dimension=dimension
        )

    @property
    def sigma(self) -> float:
        """The double that is drawn from: its square is not below the exact one.

        >>> noise = DiscreteGaussian(Fraction(2), Fraction(1), dimension=1)
        >>> Fraction(noise.sigma) ** 2 >= 2
        True
        """
        near = math.sqrt(self.sigma_squared)
        while Fraction(near) ** 2 < self.sigma_squared:
            near = math.nextafter(near, math.inf)
        return near

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.dimension,):
            raise ArgumentError("dimension must match the statistic.")
        return np.array(plus_discrete_gaussian(exact.tolist(), self.sigma), dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {
            "name": "discrete Gaussian",
            "sigma_squared": str(self.sigma_squared),
            "entries": self.dimension,
        }
