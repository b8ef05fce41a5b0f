"""Draw a real random number and round it to a public lattice, exactly.

The number is a function of a uniform variable that is known to finitely many bits. In ball
arithmetic the function of those bits is an interval that surely holds the number; if all of the
interval rounds to one lattice point, that point is the answer, and otherwise more bits are drawn
and the precision is raised. So the output has the law of the ideal real number, rounded: rounding
is post-processing, and the guarantee is the ideal one. No float takes part.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from heldout.kernel.noise.source import Randomness, random_bytes

if TYPE_CHECKING:
    from flint import arb

LATTICE: Final = Fraction(1, 2**40)
"""The public lattice of released areas and precisions: far finer than any noise in use."""

_FIRST_BITS: Final = 96
_MORE_BITS: Final = 64
_GUARD_BITS: Final = 48
_flint = threading.RLock()
# A thread that draws while another forks holds the lock, and does not exist in the child.
os.register_at_fork(after_in_child=_flint._at_fork_reinit)  # type: ignore[attr-defined]


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Flint's precision is one number for the whole process: set it, and let no other thread in."""
    from flint import ctx

    with _flint:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def rational(number: Fraction | int) -> "arb":
    """A rational as a ball at the working precision."""
    from flint import arb, fmpq

    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def double(number: float) -> "arb":
    """A double as a ball without a radius, whatever the precision.

    It is what `rational` gives for it, in a twentieth of the time.

    >>> from flint import arb
    >>> double(0.1) == rational(Fraction(0.1)), double(0.1).is_exact()
    (True, True)
    """
    from flint import arb

    return arb(number)


def draw_on_lattice(
    real: Callable[["arb"], "arb"],
    *,
    lattice: Fraction,
    randomness: Randomness | None = None,
) -> int:
    """The nearest multiple of `lattice` to real(U), for U uniform on (0, 1) and a monotone `real`.

    Claim:       the law of the output is that of round(real(U) / lattice).
                                                                      [claim: lattice-rounding]
    Neighbours:  any; the privacy is that of releasing real(U) itself.
    Sensitivity: not used here.
    Numerics:    exact, see the module's note. `real` must return a ball that holds its value for
                 every U in the given ball, or an indeterminate one, at any working precision.
    Refuses:     nothing.
    Reference:   proofs/lattice-rounding.md.
    Cost:        one evaluation at 144 bits; a second one about once in 2^20 draws.

    >>> draw_on_lattice(lambda u: u, lattice=Fraction(1, 4), randomness=lambda n: bytes([64] * n))
    1
    """
    from flint import arb, fmpq

    source = randomness or random_bytes
    bits = _FIRST_BITS
    known = int.from_bytes(source(bits // 8), "big")
    while True:
        with working_precision(bits + _GUARD_BITS):
            width = arb(fmpq(1, 2 ** (bits + 1)))
            uniform = arb(fmpq(2 * known + 1, 2 ** (bits + 1)), width)
            scaled = real(uniform) / rational(lattice) + rational(Fraction(1, 2))
            nearest = scaled.floor().unique_fmpz()
        if nearest is not None:
            return int(nearest)
        known = (known << _MORE_BITS) | int.from_bytes(source(_MORE_BITS // 8), "big")
        bits += _MORE_BITS


def discrete_laplace(scale: Fraction, *, randomness: Randomness | None = None) -> int:
    """An integer x with probability proportional to exp(-|x|/scale).

    The whole part of an exponential variable is geometric, and the difference of two geometric
    variables has this law.

    Claim:       the law of the output is the discrete Laplace law at the exact scale.
                                                                      [claim: lattice-rounding]
    Neighbours:  any.
    Sensitivity: not used here.
    Numerics:    exact.
    Refuses:     nothing; the scale is checked by `DiscreteLaplace`.
    Reference:   Ghosh, Roughgarden and Sundararajan 2009; proofs/lattice-rounding.md.
    Cost:        about 0.03 ms.

    >>> isinstance(discrete_laplace(Fraction(7, 2)), int)
    True
    """

    def shifted_exponential(uniform: "arb") -> "arb":
        # Minus one half: rounding to the nearest integer is then taking the whole part.
        return -uniform.log() * rational(scale) - rational(Fraction(1, 2))

    first, second = (
        draw_on_lattice(shifted_exponential, lattice=Fraction(1), randomness=randomness)
        for _ in range(2)
    )
    return first - second
