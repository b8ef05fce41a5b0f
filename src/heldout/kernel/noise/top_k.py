"""Which k of many scores are the largest: names alone, no scores."""

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arguments.rules import Whole
from heldout.errors import ArgumentError
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import below
from heldout.kernel.noise.sparse_vector import folded, unbounded_noise
from heldout.kernel.sealed import Sealed

__all__ = ["NoisyTopK", "PermuteAndFlip"]


@dataclass(frozen=True)
class _TopK(Primitive, ABC):
    """What the two selections share: their words, their price and the scale of their noise."""

    epsilon: Fraction
    sensitivity: int
    k: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be more than 0, got {self.epsilon}.")
        for name in ("sensitivity", "k"):
            object.__setattr__(self, name, Whole()(getattr(self, name), name))
        # Refuses a scale that cannot be drawn before anything is paid.
        DiscreteLaplace(scale=self.scale, l1_sensitivity=1, dimension=1)

    @property
    def scale(self) -> Fraction:
        carried = self.sensitivity if self.monotone else 2 * self.sensitivity
        return self.k * carried / Fraction(self.epsilon)

    def sample(self, sealed: Sealed[Any]) -> tuple[int, ...]:
        """The places of the k largest, the largest first."""
        return self.chosen([int(each) for each in np.asarray(unseal(sealed), dtype=np.int64)])

    @abstractmethod
    def chosen(self, scores: list[int]) -> tuple[int, ...]:
        """The places of the k largest of these exact scores, by noise."""

    def describe(self) -> dict[str, object]:
        return {"name": type(self).__doc__ or "", "scale": str(self.scale), "k": self.k}


@dataclass(frozen=True)
class NoisyTopK(_TopK):
    """Adds geometric noise once and names the k largest, in order.

    Geometric noise is one-sided, with half the variance of the two-sided law, and is enough: only
    the winners have to be carried to the neighbour's scores, and always upwards. With k = 1 it is
    the sister in whole numbers of permute-and-flip, a noisy maximum with exponential noise.

    Claim:       pure DP, epsilon, for the k names in order.               [claim: noisy-top-k]
    Neighbours:  those between which *each* score moves by at most `sensitivity`; with `monotone`,
                 all of them upwards or all of them downwards.
    Sensitivity: the caller's, for one score.
    Numerics:    exact. Integers of any size; ties go to the score that comes first.
    Refuses:     numbers that are not positive.
    Reference:   Durfee and Rogers 2019; Ding et al. 2021; proofs/noisy-top-k.md.
    Cost:        8 microseconds a score, whatever k is.

    >>> NoisyTopK(Fraction(1), sensitivity=1, k=10).scale
    Fraction(20, 1)
    """

    def chosen(self, scores: list[int]) -> tuple[int, ...]:
        noise = unbounded_noise(self.scale, len(scores)) if scores else []
        noisy = [score + folded(error) for score, error in zip(scores, noise, strict=True)]
        best = heapq.nsmallest(self.k, range(len(noisy)), key=lambda place: (-noisy[place], place))
        return tuple(best)

    def describe(self) -> dict[str, object]:
        return super().describe() | {"name": "top k with geometric noise"}


@dataclass(frozen=True)
class PermuteAndFlip(_TopK):
    """Picks one score after the other, each by permute-and-flip among those that are left.

    Each score that is x below the largest accepts with probability exp(-x/scale); one of those
    that accept is drawn with equal chances. That is the law of asking them in random order and
    taking the first that accepts.

    Claim:       pure DP, epsilon, for the k names in order.          [claim: permute-and-flip]
    Neighbours:  those between which *each* score moves by at most `sensitivity`; with `monotone`,
                 all of them upwards or all of them downwards.
    Sensitivity: the caller's, for one score.
    Numerics:    exact: a coin of exp(-x/scale) is whether geometric noise reaches x.
    Refuses:     numbers that are not positive.
    Reference:   McKenna and Sheldon 2020; proofs/permute-and-flip.md.
    Cost:        k times 8 microseconds a score: for small k.

    >>> PermuteAndFlip(Fraction(1), sensitivity=1, k=10, monotone=True).scale
    Fraction(10, 1)
    """

    def chosen(self, scores: list[int]) -> tuple[int, ...]:
        left = list(range(len(scores)))
        taken: list[int] = []
        while left and len(taken) < self.k:
            largest = max(scores[place] for place in left)
            reach = [folded(each) for each in unbounded_noise(self.scale, len(left))]
            accepting = [
                place
                for place, far in zip(left, reach, strict=True)
                if far >= largest - scores[place]
            ]
            taken.append(accepting[below(len(accepting))])
            left.remove(taken[-1])
        return tuple(taken)

    def describe(self) -> dict[str, object]:
        return super().describe() | {"name": "permute-and-flip"}
