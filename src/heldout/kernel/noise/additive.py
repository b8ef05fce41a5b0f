"""Add noise to vectors of whole numbers: discrete Laplace, or Gaussian for budgets of rho."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np

from heldout.arguments import Share
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import below, plus_discrete_gaussian, plus_discrete_laplace
from heldout.kernel.statistic import Sealed


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
    epsilon 0.5
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

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.dimension,):
            raise ArgumentError("dimension must match the statistic.")
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


class Vector(Protocol):
    """A statistic whose answer is a vector of so many entries."""

    @property
    def size(self) -> int: ...
    def sensitivity(self, protection: Protection) -> int: ...


def laplace(statistic: Vector, epsilon: Fraction, protection: Protection) -> DiscreteLaplace:
    """Return the noise that spends `epsilon` on a vector, by its own sensitivity."""
    return DiscreteLaplace.for_epsilon(
        epsilon, l1_sensitivity=statistic.sensitivity(protection), dimension=statistic.size
    )


# --- Noise once for several sites: each adds a share, and the shares add up to discrete Laplace --


LARGEST_SCALE: Final = 2**16
_BLOCK: Final = 512


@dataclass(frozen=True)
class NoiseShare:
    """Hands a site's vector, with its share of the noise, to a secure sum; nothing else leaves.

    A share is the difference of two negative binomials of shape 1/honest. The sum over `honest`
    sites is discrete Laplace noise of the whole scale: it is infinitely divisible.

    Claim:       pure DP, epsilon = l1_sensitivity / scale, for whoever sees the sum over all
                 sites and up to (sites - honest) sites' own vectors.          [claim: noise-share]
    Neighbours:  those of one site, for which its statistic proved its L1 sensitivity.
    Sensitivity: the statistic's; a person must be in one site alone.
    Numerics:    exact: OpenDP's draws, kept or not by whole random numbers of the operating system.
    Refuses:     a scale above 2^16, for which exact draws take minutes.
    Reference:   Goryczka and Xiong 2015, section 4; Balle, Bell, Gascón and Nissim 2020.
    Cost:        about scale^(1 - 1/honest) draws an entry, 15 microseconds each.

    >>> from heldout.kernel import price
    >>> handed = []
    >>> share = NoiseShare(
    ...     scale=Fraction(4), l1_sensitivity=2, dimension=3, honest=5, hand_in=handed.append
    ... )
    >>> share.sample(Sealed([1, 2, 3])), len(handed[0])
    (3, 3)
    >>> print(price(share.event()))
    epsilon 0.5
    """

    scale: Fraction
    l1_sensitivity: int
    dimension: int
    honest: int
    hand_in: Callable[[Sequence[int]], None]

    def __post_init__(self) -> None:
        if self.honest < 1:
            raise ArgumentError(f"honest must be at least 1, got {self.honest!r}.")
        if self.scale > LARGEST_SCALE:
            raise ArgumentError(
                f"A share of noise must have a scale of at most {LARGEST_SCALE:,}. Use a larger "
                "epsilon, or pool releases instead."
            )
        _ = self.whole

    @property
    def whole(self) -> DiscreteLaplace:
        """Return what the shares of `honest` sites add up to."""
        return DiscreteLaplace(self.scale, self.l1_sensitivity, self.dimension)

    def event(self) -> Event:
        parameters = {**self.whole.event().parameters, "honest": str(self.honest)}
        return Event(kind="noise-share", version=1, parameters=parameters)

    def sample(self, sealed: Sealed[Any]) -> int:
        """Hand the share in; how many entries it had, which is public."""
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.dimension,):
            raise ArgumentError("dimension must match the statistic.")
        noise = self._draws(2 * self.dimension)
        both = zip(exact.tolist(), noise[::2], noise[1::2], strict=True)
        self.hand_in([count + more - less for count, more, less in both])
        return self.dimension

    def _draws(self, count: int) -> list[int]:
        """Negative binomials: P(k) ~ p^k times the product of ((j - 1) + 1/honest)/j, j = 1 to k.

        Discrete Laplace noise, if it is not below 0, is k with P(k) ~ p^k; k is kept with the
        chance of the product, one factor after the other.
        """
        zeros = Sealed(np.zeros(_BLOCK, dtype=np.int64))
        tries = DiscreteLaplace(self.scale, 1, _BLOCK)
        numbers: list[int] = []
        while len(numbers) < count:
            drawn = tries.sample(zeros).tolist()
            numbers += [number for number in drawn if number >= 0 and self._is_kept(number)]
        return numbers[:count]

    def _is_kept(self, number: int) -> bool:
        return all(below(j * self.honest) <= (j - 1) * self.honest for j in range(1, number + 1))

    def describe(self) -> dict[str, object]:
        return {**self.whole.describe(), "name": "share of discrete Laplace", "honest": self.honest}


@dataclass(frozen=True)
class Look:
    """Noisy class counts that were released: positives, and negatives if rows are not public."""

    counts: tuple[float, ...]
    scale: float
    terms: int = 1
    """Of how many discrete Laplace draws the noise of a count is the sum, 1 or 2."""

    @property
    def spread(self) -> float:
        """Return the scale of one draw that is as wide."""
        return self.scale * math.sqrt(self.terms)


# --- discrete Gaussian noise ---------------------------------------------------------------------


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


# --- noise as published, which protects nobody ----------------------------------------------------


def baseline_noise(scale: float, shape: tuple[int, ...]) -> Floats:
    """Laplace noise of the published scale, on a fine lattice."""
    count = math.prod(shape)
    law = DiscreteLaplace(scale=Fraction(scale) * 1024, l1_sensitivity=1, dimension=count)
    return (law.sample(Sealed(np.zeros(count, dtype=np.int64))) / 1024).reshape(shape)
