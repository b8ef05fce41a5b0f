"""Noise for a matrix of second moments: the difference of two Wishart matrices, exactly rounded."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.exact import rational, working_precision
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.source import random_bytes
from heldout.kernel.statistic import Sealed

if TYPE_CHECKING:
    from flint import arb

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
