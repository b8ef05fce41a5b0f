"""Define mechanisms: objects that know their own price, sampling and error."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.statistic import Sealed

Content = TypeVar("Content")
Drawn_co = TypeVar("Drawn_co", covariant=True)


class Mechanism(Protocol[Content, Drawn_co]):
    """Opens one sealed statistic and returns noisy numbers on a public lattice."""

    def event(self) -> Event:
        """Return the event that the ledger books: enough to price this use, and nothing private."""

    def sample(self, sealed: Sealed[Content]) -> Drawn_co:
        """Draw, with randomness from the operating system."""

    def describe(self) -> dict[str, object]:
        """Name and public parameters, for the release."""


class Primitive:
    """A mechanism that one of the ledger's rules prices: its name, and the fields it asks for.

    >>> from heldout.kernel.noise import DiscreteLaplace
    >>> DiscreteLaplace(scale=2, l1_sensitivity=1, dimension=3).event().as_dict()["parameters"]
    {'dimension': '3', 'l1_sensitivity': '1', 'scale': '2'}
    """

    rule: ClassVar[tuple[str, ...]] = ("exponential", "epsilon")

    def event(self) -> Event:
        kind, *names = self.rule
        return Event(kind, {name: getattr(self, name) for name in names})


def unseal(sealed: Sealed[Content]) -> Content:
    """The content, for a mechanism that is about to add noise to it."""
    return sealed._content


def shown_as_it_is(sealed: Sealed[Content]) -> Content:
    """The exact statistic, for published algorithms that are not private. Claims nothing.

    `heldout.features` alone calls it, after the caller said `not_private=True`; what comes out is
    marked as such and no ledger is charged.
    """
    return unseal(sealed)


# --- Code from outside that learns from private rows, at the epsilon that it declares -------------


@dataclass(frozen=True, eq=False)
class DeclaredFit(Primitive):
    """Hands rows to code that somebody else answers for; what it learns is the answer.

    Claim:       pure DP, epsilon, if what `learn` keeps of the rows is.   [claim: declared-fit]
    Neighbours:  those that the estimator declared its price for.
    Sensitivity: not known here.
    Numerics:    not known here: the estimator's.
    Refuses:     an epsilon that is not positive.
    Reference:   proofs/declared-fit.md.
    Cost:        that of the estimator.

    >>> from heldout.kernel import price
    >>> str(price(DeclaredFit(Fraction(1, 2), print).event()))
    'epsilon 0.5'
    """

    rule = ("declared", "epsilon")
    epsilon: Fraction
    learn: Callable[[Any], object]

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError("The price of a fit must be more than 0.")

    def sample(self, sealed: Sealed[Any]) -> Ints:
        """Let it learn; there are no numbers of our own."""
        self.learn(unseal(sealed))
        return np.zeros(0, dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"name": "declared by the estimator", "epsilon": str(self.epsilon)}
