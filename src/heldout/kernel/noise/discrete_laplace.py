"""Discrete Laplace noise on integer vectors."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arguments.rules import Share
from heldout.errors import ArgumentError
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import plus_discrete_laplace
from heldout.kernel.sealed import Sealed


@dataclass(frozen=True)
class DiscreteLaplace(Primitive):
    """Adds to each entry an integer x with probability proportional to exp(-|x| / scale).

    Claim:       pure DP, epsilon = l1_sensitivity / scale.            [claim: discrete-laplace]
    Neighbours:  those for which the statistic proved its L1 sensitivity.
    Sensitivity: the statistic's.
    Numerics:    exact. OpenDP draws with integer arithmetic from the operating system's
                 randomness, at the double next above the exact scale, so the true loss is at most
                 the claimed one. Entries saturate at 64 bits, which is post-processing.
    Refuses:     a scale or sensitivity that is not positive.
    Reference:   Ghosh, Roughgarden and Sundararajan 2009; Canonne, Kamath and Steinke 2020.
    Cost:        about 8 microseconds an entry.

    >>> from heldout.kernel import price
    >>> DiscreteLaplace.for_epsilon(Fraction(1, 2), l1_sensitivity=2, dimension=4).scale
    Fraction(4, 1)
    >>> print(price(DiscreteLaplace(scale=Fraction(4), l1_sensitivity=2, dimension=4).event()))
    epsilon 1/2
    """

    rule = ("discrete-laplace", "l1_sensitivity", "scale", "dimension")
    scale: Fraction
    l1_sensitivity: int
    dimension: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.l1_sensitivity <= 0 or self.dimension <= 0:
            raise ArgumentError("scale, sensitivity and dimension must be positive.")
        if self.scale > 2**52:
            raise ArgumentError("scale must be at most 2^52. Use a larger epsilon.")

    @classmethod
    def for_epsilon(
        cls, epsilon: Fraction, *, l1_sensitivity: int, dimension: int
    ) -> "DiscreteLaplace":
        """The mechanism that spends exactly `epsilon`."""
        if epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        return cls(
            scale=l1_sensitivity / epsilon, l1_sensitivity=l1_sensitivity, dimension=dimension
        )

    def sample(self, sealed: Sealed[Any]) -> Any:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.dimension,):
            raise ArgumentError("dimension must be that of the statistic.")
        noisy = plus_discrete_laplace(exact.tolist(), self.float_scale)
        return np.array(noisy, dtype=np.int64)

    @property
    def float_scale(self) -> float:
        """The scale that is drawn from: the first double not below the exact one."""
        nearest = float(self.scale)
        return nearest if Fraction(nearest) >= self.scale else math.nextafter(nearest, math.inf)

    def error_quantile(self, level: float) -> int:
        """The least t with P(|noise| <= t) >= level, for one entry.

        >>> DiscreteLaplace(scale=Fraction(4), l1_sensitivity=2, dimension=1).error_quantile(0.95)
        12
        """
        scale, tail = self.float_scale, 1 - Share("Try 0.95.")(level, "level")
        whole = (1 + math.exp(-1 / scale)) / 2

        def beyond(t: int) -> float:
            """P(|x| > t) = 2 p^(t+1) / (1 + p) with p = exp(-1/scale)."""
            return math.exp(-(t + 1) / scale) / whole

        # The logarithm of p is -1/scale: taken of a rounded p it would be wrong at large scales.
        least = max(0, math.ceil(-scale * math.log(tail * whole)) - 2)
        while beyond(least) > tail:
            least += 1
        return least

    def describe(self) -> dict[str, object]:
        return {"name": "discrete Laplace", "scale": str(self.scale), "entries": self.dimension}
