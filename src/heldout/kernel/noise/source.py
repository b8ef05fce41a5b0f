"""Draw every random number that an answer depends on, in one place.

Production draws from the operating system. `using` puts another source in its place for the code
inside a `with` block; nothing else does: no setting, no environment variable, no argument of a
question. Only `heldout.testing` calls it, and no module of the package imports that one.

A source belongs to the thread (or task) and the process that set it. Other threads, forked children
and fresh interpreters draw from the operating system, so that no two processes share their noise.

Keys, tokens and names, which no answer depends on, come from `secrets`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from secrets import SystemRandom
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opendp.mod import Domain, Metric

Randomness = Callable[[int], bytes]
"""So many random bytes."""


class Source(Protocol):
    """Gives uniform bytes, and integer vectors with discrete Laplace or Gaussian noise."""

    def random_bytes(self, count: int) -> bytes:
        """Return so many independent uniform bytes."""

    def plus_discrete_laplace(self, exact: list[int], scale: float) -> list[int]:
        """Add independent noise, P(z) ~ exp(-|z|/scale), and hold every sum to 64 bits."""

    def plus_discrete_gaussian(self, exact: list[int], sigma: float) -> list[int]:
        """The same with P(z) ~ exp(-z^2 / (2 sigma^2))."""


class OperatingSystem:
    """Production: the kernel's random bytes, and OpenDP's samplers, which read the same."""

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def plus_discrete_laplace(self, exact: list[int], scale: float) -> list[int]:
        from opendp.measurements import make_laplace

        noisy: list[int] = make_laplace(*_whole_vectors(), scale=scale)(exact)
        return noisy

    def plus_discrete_gaussian(self, exact: list[int], sigma: float) -> list[int]:
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        vectors, _ = _whole_vectors()
        noisy: list[int] = make_gaussian(vectors, l2_distance(T="f64"), scale=sigma)(exact)
        return noisy


@cache
def _whole_vectors() -> "tuple[Domain, Metric]":
    """Return OpenDP's vectors of 64-bit integers and their L1 distance: made once."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), l1_distance(T="i64")


_PRODUCTION = OperatingSystem()
# With the process that set it: a forked child inherits the variable, and must not share the noise.
_INJECTED: ContextVar[tuple[int, Source] | None] = ContextVar("heldout_source", default=None)


@contextmanager
def using(source: Source) -> Iterator[None]:
    """Draw from this source inside the block. Answers are then as private as the source is secret.

    For `heldout.testing` alone; a test of the package's own source looks for other callers.
    """
    before = _INJECTED.set((os.getpid(), source))
    try:
        yield
    finally:
        _INJECTED.reset(before)


def _current() -> Source:
    injected = _INJECTED.get()
    return injected[1] if injected is not None and injected[0] == os.getpid() else _PRODUCTION


def random_bytes(count: int) -> bytes:
    """Return so many uniform random bytes.

    >>> len(random_bytes(12))
    12
    """
    return _current().random_bytes(count)


def plus_discrete_laplace(exact: list[int], scale: float) -> list[int]:
    """Add noise x to each entry, P(x) ~ exp(-|x|/scale); sums are held to 64 bits.

    >>> len(plus_discrete_laplace([3, 4], 2.0))
    2
    """
    return _current().plus_discrete_laplace(exact, scale)


def plus_discrete_gaussian(exact: list[int], sigma: float) -> list[int]:
    """Add noise x to each entry, P(x) ~ exp(-x^2 / (2 sigma^2)); sums are held to 64 bits.

    >>> len(plus_discrete_gaussian([3, 4], 2.0))
    2
    """
    return _current().plus_discrete_gaussian(exact, sigma)


class _FromBytes(SystemRandom):
    """Python's own rejection sampling, from the bytes of the source."""

    def getrandbits(self, k: int) -> int:
        count = (k + 7) // 8
        return int.from_bytes(random_bytes(count), "big") >> (count * 8 - k)

    def random(self) -> float:
        raise NotImplementedError("answers are drawn with whole numbers")


_WHOLE = _FromBytes()


def below(total: int) -> int:
    """Return a uniform whole number from 0 to total - 1.

    >>> below(1)
    0
    """
    return _WHOLE.randrange(total)
