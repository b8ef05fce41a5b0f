"""Noise for fitted models: on a matrix of second moments, and inside a convex loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.exact import rational, working_precision
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.selection import folded, unbounded_noise
from heldout.kernel.noise.source import below, random_bytes
from heldout.kernel.statistic import Sealed

if TYPE_CHECKING:
    from flint import arb

# --- the difference of two Wishart matrices, exactly rounded --------------------------------------


_FIRST_BITS: Final = 96
_MORE_BITS: Final = 64
_GUARD_BITS: Final = 64
_MOST: Final = 2**62


@dataclass(frozen=True)
class WishartDifference(Primitive):
    """Adds W1 - W2 to a symmetric matrix of whole numbers, whose upper triangle is released.

    W1 and W2 are independent Wishart matrices of size + 1 degrees of freedom and the scale matrix
    `scale` I; their difference is rounded to whole numbers.

    Claim:       pure DP, epsilon = trace / (2 scale).                [claim: wishart-difference]
    Neighbours:  those whose matrices differ by P - Q, both positive semidefinite, with traces that
                 add up to at most `trace`.
    Sensitivity: the statistic's: rows z that arrive and leave change a sum of z z' so.
    Numerics:    exact: the ideal noise, rounded in ball arithmetic. Entries are held to 62 bits,
                 which is post-processing.
    Refuses:     numbers that are not positive.
    Reference:   proofs/wishart-difference.md; Sheffet 2019 has one Wishart and needs a delta.
    Cost:        size (size + 1) pairs of normal numbers, 10 microseconds a pair.

    >>> from heldout.kernel import price
    >>> noise = WishartDifference.for_epsilon(Fraction(1, 2), trace=6, size=3)
    >>> noise.scale, str(price(noise.event()))
    (Fraction(6, 1), 'epsilon 0.5')
    """

    rule = ("wishart-difference", "trace", "scale", "size")
    scale: Fraction
    trace: int
    size: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.trace <= 0 or self.size <= 0:
            raise ArgumentError("scale, trace and size must be positive.")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, *, trace: int, size: int) -> "WishartDifference":
        """Return the mechanism that spends exactly `epsilon`."""
        if epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        return cls(scale=Fraction(trace) / (2 * epsilon), trace=trace, size=size)

    @property
    def entries(self) -> int:
        """Return how many entries the upper triangle has, with the diagonal."""
        return self.size * (self.size + 1) // 2

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of each of the two matrices."""
        return self.size + 1

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (self.entries,):
            raise ArgumentError("size must match the statistic.")
        noise = wishart_difference(self.size, self.scale)
        both = zip(exact.tolist(), noise, strict=True)
        return np.array([min(max(a + b, -_MOST), _MOST) for a, b in both], dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {
            "name": "difference of two Wisharts",
            "scale": str(self.scale),
            "entries": self.entries,
        }


def wishart_difference(size: int, scale: Fraction) -> list[int]:
    """Draw the upper triangle of scale (G' G - H' H), rounded; G and H have size + 1 normal rows.

    Normal numbers come in pairs from two uniform ones (Box and Muller). All are known to finitely
    many bits, as balls; if an entry's ball does not round to one whole number, every uniform number
    gets more bits and all is computed again.

    Claim:       the law of the output is that of the ideal matrix, each entry rounded to the
                 nearest whole number.                                [claim: wishart-difference]
    Neighbours:  any.
    Sensitivity: not used here.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/wishart-difference.md, proofs/lattice-rounding.md.
    Cost:        1 ms for 5 columns, 4 ms for 12.

    >>> len(wishart_difference(3, Fraction(100)))
    6
    """
    from flint import arb_mat

    rows, bits = size + 1, _FIRST_BITS
    pairs = size * rows  # of normal numbers: half of them are G's, half are H's
    known = [int.from_bytes(random_bytes(bits // 8), "big") for _ in range(2 * pairs)]
    while True:
        with working_precision(bits + _GUARD_BITS):
            normal = [
                number
                for first, second in zip(known[::2], known[1::2], strict=True)
                for number in _normal_pair(_ball(first, bits), _ball(second, bits))
            ]
            wisharts = [
                matrix.transpose() * matrix
                for matrix in (
                    arb_mat(rows, size, normal[:pairs]),
                    arb_mat(rows, size, normal[pairs:]),
                )
            ]
            factor, half = rational(scale), rational(Fraction(1, 2))
            entries = [
                (factor * (wisharts[0][i, j] - wisharts[1][i, j]) + half).floor().unique_fmpz()
                for i in range(size)
                for j in range(i, size)
            ]
        if all(entry is not None for entry in entries):
            return [int(entry) for entry in entries]
        known = [
            (number << _MORE_BITS) | int.from_bytes(random_bytes(_MORE_BITS // 8), "big")
            for number in known
        ]
        bits += _MORE_BITS


def _ball(known: int, bits: int) -> "arb":
    """Return the ball of all numbers from 0 to 1 that begin with these bits."""
    from flint import arb, fmpq

    return arb(fmpq(2 * known + 1, 2 ** (bits + 1)), arb(fmpq(1, 2 ** (bits + 1))))


def _normal_pair(first: "arb", second: "arb") -> "tuple[arb, arb]":
    """Return two independent normal numbers from two uniform ones."""
    far = (-2 * first.log()).sqrt()
    sine, cosine = (2 * second).sin_cos_pi()
    return far * sine, far * cosine


# --- the minimum of a convex loss over private rows, with noise inside the loss -------------------


Minimiser = Callable[[Any], Any]
"""Noise in lattice steps -> the minimum without its linear part, in lattice steps."""

CURVED, SLACK = Fraction(1, 8), Fraction(1, 64)
"""The parts of epsilon for the change of curvature and for what the solver gets wrong."""


@dataclass(frozen=True)
class Block:
    """Coefficients whose noise is drawn together, for a share of what a row may move.

    >>> Block(Fraction(1, 2), ((0,), (2, 3))).places
    (0, 2, 3)
    """

    share: Fraction
    groups: tuple[tuple[int, ...], ...]
    """Places of coefficients. The block's norm is the largest L1 length of a group."""

    @property
    def places(self) -> tuple[int, ...]:
        """Return the places of all its coefficients."""
        return tuple(place for group in self.groups for place in group)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return how many coefficients its groups have."""
        return tuple(map(len, self.groups))


@dataclass(frozen=True)
class ObjectivePerturbation(Primitive):
    """Minimises loss(t) + ridge/2 |t|^2 + b.t with noise b, and lets the minimum out.

    The sealed content is a function of the noise `Z` (whole numbers, b = step * Z) that returns
    the minimum plus b/ridge, rounded to the lattice of `step/ridge`. The sum with -b/ridge is then
    exact. A little discrete Laplace noise at the end covers what the solver may get wrong.
    `b` is Laplace noise for rows that pull few coefficients, or with `even` noise of the law
    exp(-max|b|) for rows that pull all of them about as hard. With `blocks` it is exp(-the sum over
    blocks of the share times the largest sum of |b| over a group), so blocks are independent.

    Claim:       pure DP, epsilon.                              [claim: objective-perturbation]
    Neighbours:  at most k rows leave and at most k arrive, `moved` of them in all.
    Sensitivity: a row's gradient has L1 length (with `even`: a largest entry; with `groups`: a
                 largest L1 length within a group) of at most `row`, everywhere, and its curvature
                 is at most 1/4 times `square`. Two minima of the same loss and noise differ by at
                 most `slack` lattice steps (L1) after rounding.
    Numerics:    exact noise; the solver's error is inside `slack`.
    Refuses:     numbers that are not positive; a ridge too small for epsilon.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011, theorem 9; Awan and Slavkovic 2021,
                 section 4.1 (noise for the largest entry); proofs.
    Cost:        one minimisation, and 16 microseconds a coefficient.

    >>> from heldout.kernel import price
    >>> noise = ObjectivePerturbation(Fraction(1), moved=1, rows_per_unit=1, row=6, square=6,
    ...                               dimension=10, ridge=Fraction(16), step=Fraction(1, 2**20),
    ...                               slack=11)
    >>> round(float(noise.inner.scale * noise.step), 2), str(price(noise.event()))
    (6.74, 'epsilon 1')
    """

    rule = ("objective-perturbation", "epsilon")
    epsilon: Fraction
    moved: int
    rows_per_unit: int
    row: Fraction | int
    square: Fraction | int
    dimension: int
    ridge: Fraction
    step: Fraction
    slack: int
    even: bool = False
    blocks: tuple[Block, ...] | None = None

    def __post_init__(self) -> None:
        sizes = (self.moved, self.rows_per_unit, self.row, self.square, self.dimension, self.slack)
        if self.epsilon <= 0 or self.step <= 0 or min(sizes) <= 0:
            raise ArgumentError("epsilon, rows, dimension, step and slack must be positive.")
        if self.blocks is not None:
            places = sorted(place for block in self.blocks for place in block.places)
            if self.even or places != list(range(self.dimension)):
                raise ArgumentError("blocks must have every coefficient once, and not be even.")
            if min(block.share for block in self.blocks) <= 0:
                raise ArgumentError("Shares of blocks must be positive.")
        if self.ridge < self.least_ridge(
            self.epsilon, square=self.square, rows_per_unit=self.rows_per_unit
        ):
            raise ArgumentError(f"ridge must be larger for this epsilon, got {self.ridge}.")
        # Refuses scales that cannot be drawn before anything is paid.
        _ = self.inner, self.outer
        least = min((block.share for block in self.blocks or ()), default=Fraction(1))
        DiscreteLaplace(scale=self.inner.scale / least, l1_sensitivity=1, dimension=1)

    @staticmethod
    def least_ridge(epsilon: Fraction, *, square: Fraction | int, rows_per_unit: int) -> Fraction:
        """The ridge at which curvature, k ln(1 + square/(4 ridge)) at most, costs its part."""
        return rows_per_unit * square / (4 * CURVED * epsilon)

    @cached_property
    def inner(self) -> DiscreteLaplace:
        """Of b, in steps: rows move it by moved * row, and each entry by one step of rounding."""
        curved = Fraction(self.rows_per_unit * self.square) / (4 * self.ridge)
        left = self.epsilon - curved - SLACK * self.epsilon
        rounded = self.step * self.norm([1] * self.dimension)
        reach = (self.moved * self.row + rounded) / self.step
        return DiscreteLaplace(scale=reach / left, l1_sensitivity=1, dimension=self.dimension)

    def norm(self, vector: Sequence[int]) -> Fraction:
        """Return the length of a vector of coefficients in the norm that the noise is for.

        >>> halves = Block(Fraction(1, 4), ((0,), (2,))), Block(Fraction(3, 4), ((1, 3),))
        >>> ObjectivePerturbation(Fraction(1), moved=1, rows_per_unit=1, row=1, square=4,
        ...                       dimension=4, ridge=Fraction(16), step=Fraction(1, 2**20),
        ...                       slack=11, blocks=halves).norm([-8, 4, 4, 0])
        Fraction(5, 1)
        """
        sizes = [abs(entry) for entry in vector]
        if self.blocks is None:
            return Fraction(max(sizes) if self.even else sum(sizes))
        return sum(
            (
                block.share * max(sum(sizes[place] for place in group) for group in block.groups)
                for block in self.blocks
            ),
            Fraction(0),
        )

    @cached_property
    def outer(self) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            SLACK * self.epsilon, l1_sensitivity=self.slack, dimension=self.dimension
        )

    def sample(self, sealed: Sealed[Minimiser]) -> Ints:
        """Coefficients in lattice steps of step/ridge."""
        minimum = unseal(sealed)
        # Integers without an end: the minimum depends on each of them, wherever they stop.
        if self.blocks is not None:
            noise = noise_of_blocks(self.inner.scale, self.blocks)
        else:
            drawn = even_noise if self.even else unbounded_noise
            noise = drawn(self.inner.scale, self.dimension)
        minima = [int(a) - b for a, b in zip(minimum(noise), noise, strict=True)]
        clipped = [min(max(step, -_MOST), _MOST) for step in minima]
        return self.outer.sample(Sealed(np.array(clipped, dtype=np.int64)))

    def describe(self) -> dict[str, object]:
        return {
            "name": "objective perturbation",
            "scale": str(self.inner.scale * self.step),
            "ridge": str(self.ridge),
            "entries": self.dimension,
            "largest_entry": self.even,
            **({} if self.blocks is None else {"blocks": _described(self.blocks)}),
        }


def _described(blocks: tuple[Block, ...]) -> list[dict[str, object]]:
    return [{"share": str(block.share), "groups": list(block.sizes)} for block in blocks]


def noise_of_blocks(scale: Fraction, blocks: Sequence[Block]) -> list[int]:
    """Whole numbers z with probability proportional to exp(-the sum over blocks of the share times
    the largest sum of |z| over a group/scale): blocks are independent.

    >>> blocks = Block(Fraction(3, 4), ((0,), (2,))), Block(Fraction(1, 4), ((1, 3),))
    >>> len(noise_of_blocks(Fraction(100), blocks))
    4
    """
    noise: dict[int, int] = {}
    for block in blocks:
        own = grouped_noise(scale / block.share, block.sizes)
        noise |= dict(zip(block.places, own, strict=True))
    return [noise[place] for place in range(len(noise))]


def even_noise(scale: Fraction, count: int) -> list[int]:
    """Whole numbers z, drawn together, with probability proportional to exp(-max|z|/scale).

    A sum N of count + 1 geometric numbers is kept with the chance
    prod (2N + 1)/(2N + 2i), i = 1 ... count; then every z is uniform from -N to N.

    >>> len(even_noise(Fraction(100), 3))
    3
    """
    while True:
        far = sum(folded(noise) for noise in unbounded_noise(scale, count + 1))
        if all(below(2 * far + 2 * i) <= 2 * far for i in range(1, count + 1)):
            return [below(2 * far + 1) - far for _ in range(count)]


def grouped_noise(scale: Fraction, groups: Sequence[int]) -> list[int]:
    """Whole numbers z with probability proportional to exp(-the largest sum of |z| over a group
    /scale), the groups being of consecutive numbers.

    A sum N of count + 1 geometric numbers is kept with the chance that `proofs/objective-
    perturbation.md` derives; then each group is uniform over the whole vectors whose sum of |z| is
    at most N. Groups of one make it `even_noise`.

    >>> len(grouped_noise(Fraction(100), (1, 3)))
    4
    """
    count = sum(groups)
    while True:
        far = sum(folded(noise) for noise in unbounded_noise(scale, count + 1))
        place, keep = 0, True
        for size in groups:
            most = 2**size * math.prod(range(far + place + 1, far + place + size + 1))
            keep = keep and below(most) < points_within(far, size) * math.factorial(size)
            place += size
        if keep:
            return [entry for size in groups for entry in point_within(far, size)]


def points_within(far: int, size: int) -> int:
    """Return how many whole vectors of a size have a sum of |z| of at most `far`.

    >>> points_within(1, 3), points_within(5, 1)
    (7, 11)
    """
    return sum(_points(far, size))


def _points(far: int, size: int) -> list[int]:
    """Return how many of them have 0, 1, 2, ... entries that are not 0."""
    return [2**k * math.comb(size, k) * math.comb(far, k) for k in range(size + 1)]


def point_within(far: int, size: int) -> list[int]:
    """Draw one of these vectors, each as likely as any other.

    Its number of entries that are not 0 is drawn first; their sizes are the gaps between as many
    different numbers from 1 to `far` in order.
    """
    drawn, counts = below(points_within(far, size)), _points(far, size)
    filled = next(place for place, total in enumerate(accumulate(counts)) if drawn < total)
    ends: set[int] = set()
    while len(ends) < filled:
        ends.add(1 + below(far))
    free, vector, last = list(range(size)), [0] * size, 0
    for end in sorted(ends):
        place = free.pop(below(len(free)))
        vector[place] = (end - last) * (1 - 2 * below(2))
        last = end
    return vector
