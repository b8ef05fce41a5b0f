"""Noise once for several sites: each adds a share, and the shares add up to discrete Laplace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.source import below
from heldout.kernel.sealed import Sealed

__all__ = ["NoiseShare"]

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
    epsilon 1/2
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
        """What the shares of `honest` sites add up to."""
        return DiscreteLaplace(self.scale, self.l1_sensitivity, self.dimension)

    def event(self) -> Event:
        parameters = {**self.whole.event().parameters, "honest": str(self.honest)}
        return Event(kind="noise-share", version=1, parameters=parameters)

    def sample(self, sealed: Sealed[Any]) -> int:
        """Hand the share in; how many entries it had, which is public."""
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.dimension,):
            raise ArgumentError("dimension must be that of the statistic.")
        noise = self._draws(2 * self.dimension)
        both = zip(exact.tolist(), noise[::2], noise[1::2], strict=True)
        self.hand_in([each + more - less for each, more, less in both])
        return self.dimension

    def _draws(self, count: int) -> list[int]:
        """Negative binomials: P(k) ~ p^k times the product of ((j - 1) + 1/honest)/j, j = 1 to k.

        Discrete Laplace noise, if it is not below 0, is k with P(k) ~ p^k; k is kept with the
        chance of the product, one factor after the other.
        """
        zeros = Sealed(np.zeros(_BLOCK, dtype=np.int64))
        tries = DiscreteLaplace(self.scale, 1, _BLOCK)
        found: list[int] = []
        while len(found) < count:
            drawn = tries.sample(zeros).tolist()
            found += [each for each in drawn if each >= 0 and self._is_kept(each)]
        return found[:count]

    def _is_kept(self, number: int) -> bool:
        return all(below(j * self.honest) <= (j - 1) * self.honest for j in range(1, number + 1))

    def describe(self) -> dict[str, object]:
        return {**self.whole.describe(), "name": "share of discrete Laplace", "honest": self.honest}
