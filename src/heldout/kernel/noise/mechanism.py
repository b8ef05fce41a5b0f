"""Define mechanisms: objects that know their own price, sampling and error."""

from typing import ClassVar, Protocol, TypeVar

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
