"""Choose among many queries or scores: thresholds, a secret bar, the k largest, one at random."""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from heldout.arguments import Whole
from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.exact import discrete_laplace, rational, working_precision
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import Randomness, below, random_bytes
from heldout.kernel.statistic import Sealed

_LEAST, _MOST = -(2**63), 2**63 - 1  # where OpenDP's integers end


@dataclass(frozen=True)
class SparseVector(Primitive):
    """Says query by query whether it is above the threshold, and stops after `limit` that are.

    One noise is added to the threshold and a fresh one to each query, both discrete Laplace. The
    noisy numbers themselves are never shown. With `monotone` all queries move the same way between
    neighbours (counts of rows under add-remove), and half of the queries' noise is enough.

    Claim:       pure DP, epsilon, however many queries there are.      [claim: sparse-vector]
    Neighbours:  those between which *each* query moves by at most `sensitivity` (not the sum of
                 their moves); with `monotone`, all of them upwards or all of them downwards.
    Sensitivity: the caller's, for one query.
    Numerics:    exact. Integers of any size; the scales are the doubles next above the exact ones.
    Refuses:     numbers that are not positive; queries or a threshold that are not whole.
    Reference:   Lyu, Su and Li 2017, Algorithm 1, theorems 2 and 5, section 4.2.
    Cost:        8 microseconds per query.

    >>> from heldout.kernel import price
    >>> test = SparseVector(Fraction(1), sensitivity=1, limit=4)
    >>> test.threshold_scale, test.query_scale, str(price(test.event()))
    (Fraction(5, 1), Fraction(10, 1), 'epsilon 1')
    """

    rule = ("sparse-vector", "epsilon")
    epsilon: Fraction
    sensitivity: int
    limit: int = 1
    monotone: bool = False
    threshold: int = 0
    threshold_share: Fraction | None = None
    """Of epsilon, for the threshold's noise; None: the share with the smallest error."""

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be more than 0, got {self.epsilon}.")
        for name in ("sensitivity", "limit"):
            object.__setattr__(self, name, Whole()(getattr(self, name), name))
        if self.threshold_share is not None and not 0 < self.threshold_share < 1:
            raise ArgumentError(f"threshold_share must lie in (0, 1), got {self.threshold_share}.")
        object.__setattr__(self, "epsilon", Fraction(self.epsilon))
        object.__setattr__(self, "threshold", _whole(self.threshold))
        # Refuses a scale that cannot be drawn before anything is paid.
        _law(self.threshold_scale, 1), _law(self.query_scale, 1)

    @property
    def _cost_of_a_positive(self) -> int:
        """Return how many sensitivities a positive query has to be carried, times the limit."""
        return self.limit if self.monotone else 2 * self.limit

    @property
    def _threshold_epsilon(self) -> Fraction:
        """Lyu et al., section 4.2: the split 1 : (2c)^(2/3) has the smallest error."""
        if self.threshold_share is not None:
            return self.epsilon * self.threshold_share
        return self.epsilon / (1 + Fraction(round(4 * self._cost_of_a_positive ** (2 / 3)), 4))

    @property
    def threshold_scale(self) -> Fraction:
        return self.sensitivity / self._threshold_epsilon

    @property
    def query_scale(self) -> Fraction:
        left = self.epsilon - self._threshold_epsilon
        return self._cost_of_a_positive * self.sensitivity / left

    def answers(self, queries: Sequence[int] | Any, threshold: int) -> tuple[bool, ...]:
        """One answer per query until `limit` of them were True; then no more.

        Every query gets its noise, also those after the stop, so that the time taken does not
        tell where it was.
        """
        values = [_whole(query) for query in np.asarray(queries, dtype=object).ravel()]
        bar = _whole(threshold) + unbounded_noise(self.threshold_scale, 1)[0]
        noise = unbounded_noise(self.query_scale, len(values)) if values else []
        given: list[bool] = []
        positive = 0
        for value, error in zip(values, noise, strict=True):
            given.append(value + error >= bar)
            positive += given[-1]
            if positive == self.limit:
                break
        return tuple(given)

    def sample(self, sealed: Sealed[Any]) -> tuple[bool, ...]:
        """The answers to a sealed vector of queries, against the public `threshold`."""
        return self.answers(unseal(sealed), self.threshold)

    def describe(self) -> dict[str, object]:
        return {
            "name": "sparse vector",
            "threshold": self.threshold,
            "threshold_scale": str(self.threshold_scale),
            "query_scale": str(self.query_scale),
            "limit": self.limit,
        }


def unbounded_noise(scale: Fraction, count: int) -> list[int]:
    """Discrete Laplace noise as integers without an end.

    A comparison of two noisy numbers is not a function of one noisy vector, so noise that stopped
    at 64 bits would not be post-processing of noise that does not. What reaches the end goes on
    with a fresh draw: beyond any point the law is the same geometric one again.
    """
    law = _law(scale, count)
    drawn = [int(number) for number in law.sample(Sealed(np.zeros(count, dtype=np.int64)))]
    return [_continued(number, law) if number in (_LEAST, _MOST) else number for number in drawn]


def _continued(end: int, law: DiscreteLaplace) -> int:
    more = folded(discrete_laplace(Fraction(law.float_scale)))
    return end + more if end > 0 else end - more


def folded(noise: int) -> int:
    """Discrete Laplace noise made geometric: z if z >= 0, else -z - 1.

    P(g) is then proportional to p^g + p^(g+1), so to p^g, on 0, 1, 2, ...

    >>> [folded(z) for z in (-2, -1, 0, 1)]
    [1, 0, 0, 1]
    """
    return -noise - 1 if noise < 0 else noise


@lru_cache(maxsize=64)
def _law(scale: Fraction, count: int) -> DiscreteLaplace:
    return DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=count)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentError("queries and threshold must be whole numbers. Round them first.")
    return int(value)


# --- A secret bar that outlives a process: which submissions are above it ------------------------


def secret_of(test: SparseVector) -> int:
    """The noise of the bar: drawn once, kept by the custodian, shown to nobody."""
    return unbounded_noise(test.threshold_scale, 1)[0]


@dataclass(frozen=True)
class AboveBar:
    """One query of a sparse vector whose bar was drawn, and paid for, before.

    Claim:       all queries of one bar together, until `limit` of them were above it, cost what
                 was booked for the bar, and nothing more.                      [claim: board]
    Neighbours:  those between which the query moves by at most the test's sensitivity.
    Sensitivity: the statistic's.
    Numerics:    exact, integers without an end.
    Refuses:     nothing; the board counts the answers, and stops at the limit.
    Reference:   Lyu, Su and Li 2017, Algorithm 1; proofs/board.md.
    Cost:        10 microseconds.
    """

    test: SparseVector
    threshold: int
    """What a submission must reach: a function of what the board has shown."""
    paid: int
    """The ledger's entry that paid for the bar."""
    secret: int

    def __repr__(self) -> str:
        return f"AboveBar(threshold={self.threshold}, paid={self.paid})"

    def event(self) -> Event:
        return Event("covered", {"entry": self.paid})

    def sample(self, sealed: Sealed[Any]) -> bool:
        total = int(unseal(sealed)[0])
        noise = unbounded_noise(self.test.query_scale, 1)[0]
        return total + noise >= self.threshold + self.secret

    def describe(self) -> dict[str, object]:
        return {**self.test.describe(), "name": "sparse vector with a kept bar"}


@dataclass(frozen=True)
class Prepaid:
    """Noise whose price an earlier entry of the ledger paid, such as that of a board's scores.

    Claim:       the noise's own; the board draws it for at most as many scores as were paid for.
                                                                                [claim: board]
    Neighbours:  the noise's.
    Sensitivity: the statistic's.
    Numerics:    exact.
    Refuses:     nothing; the board counts the scores.
    Reference:   proofs/board.md.
    Cost:        that of the noise.
    """

    noise: DiscreteLaplace
    paid: int
    """The ledger's entry that paid for it."""

    def event(self) -> Event:
        return Event("covered", {"entry": self.paid})

    def sample(self, sealed: Sealed[Any]) -> Ints:
        return self.noise.sample(sealed)

    def describe(self) -> dict[str, object]:
        return self.noise.describe()


@dataclass(frozen=True)
class _TopK(Primitive, ABC):
    """Shares words, price and scale of the noise between the two selections."""

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
        return self.chosen([int(score) for score in np.asarray(unseal(sealed), dtype=np.int64)])

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
            reach = [folded(noise) for noise in unbounded_noise(self.scale, len(left))]
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


# --- the exponential mechanism, exactly ----------------------------------------------------------

_BITS: Final = 40  # of the heaviest proposal weight; 2^20 of them fit 64 bits
_MARGIN: Final = 1 + 2.0**-30  # over the rounding of doubles, 700 * 2^-50 at most
_FIRST_BITS: Final = 96
_MORE_BITS: Final = 64


def choose_exactly(
    weights: Ints, penalties: Ints, rate: Fraction, *, randomness: Randomness | None = None
) -> int:
    """An index i with probability exactly proportional to weights[i] * exp(-rate * penalties[i]).

    Proposals have whole-numbered weights that lie above the true ones, as doubles computed them
    and a margin made sure; a proposal is then accepted with exactly the quotient as probability,
    by comparing a uniform number with it in ball arithmetic, to as many bits as that takes.

    Claim:       the law of the index is the stated one, exactly.        [claim: median-cuts]
    Neighbours:  any; the privacy is that of the law.
    Sensitivity: not used here.
    Numerics:    exact: doubles only propose.
    Refuses:     nothing.
    Reference:   von Neumann 1951, rejection; the exponential mechanism is McSherry and Talwar's.
    Cost:        one exponential an index, and one ball for a proposal; nearly all are accepted.

    >>> choose_exactly(np.array([1, 1]), np.array([0, 10**6]), Fraction(1))
    0
    """
    penalties = np.asarray(penalties, dtype=np.int64)
    penalties = penalties - penalties.min()
    weights = np.asarray(weights, dtype=np.int64)
    shift = _BITS - int(weights.max()).bit_length()
    ideal = np.ldexp(weights.astype(np.float64), shift) * np.exp(-float(rate) * penalties)
    proposals = np.maximum(np.ceil(ideal * _MARGIN), 1).astype(np.int64)
    ends = np.cumsum(proposals)
    while True:
        place = _below(int(ends[-1]), randomness)
        index = int(np.searchsorted(ends, place, side="right"))
        quotient = Fraction(int(weights[index])) * Fraction(2) ** shift / int(proposals[index])
        if _accept(quotient, rate * int(penalties[index]), randomness):
            return index


def _below(total: int, randomness: Randomness | None) -> int:
    if randomness is None:
        return below(total)
    bits = total.bit_length()
    while True:
        number = int.from_bytes(randomness(math.ceil(bits / 8)), "big") >> (-bits % 8)
        if number < total:
            return number


def _accept(quotient: Fraction, exponent: Fraction, randomness: Randomness | None) -> bool:
    """True with probability quotient * exp(-exponent), which is at most 1."""
    from flint import arb, fmpq

    source = randomness or random_bytes
    bits = _FIRST_BITS
    known = int.from_bytes(source(bits // 8), "big")
    while True:
        with working_precision(bits + 48):
            chance = rational(quotient) * (-rational(exponent)).exp()
            if chance > 1:
                raise AssertionError("a proposal lies below its weight")
            uniform = arb(fmpq(2 * known + 1, 2 ** (bits + 1)), arb(fmpq(1, 2 ** (bits + 1))))
            if uniform < chance:
                return True
            if uniform > chance:
                return False
        known = (known << _MORE_BITS) | int.from_bytes(source(_MORE_BITS // 8), "big")
        bits += _MORE_BITS
