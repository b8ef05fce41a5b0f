"""What a statistic is: one statement over the rows, and how far one neighbour can move it."""

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from heldout.data.sql import Columns
from heldout.kernel.neighbours import Protection
from heldout.kernel.sealed import Sealed

if TYPE_CHECKING:
    from heldout.data import PrivateTable


S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")


@dataclass(frozen=True)
class Statistic(ABC, Generic[S_co]):
    """An exact statistic of the rows, of type `S`. Its parameters are public.

    A class is registered by being defined. It gives `examples()`, whose sensitivity the
    conformance suite brute-forces on all small neighbouring data sets, or it names in `shown_by`
    the test that does so in its stead; a class that does neither fails the suite.
    """

    claim: ClassVar[str]
    shown_by: ClassVar[str | None] = None
    """`tests/<file>.py::<test>`, for a statistic that is not a plain vector of label and score."""
    _defined: ClassVar[list[type["Statistic[Any]"]]] = []

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        Statistic._defined.append(cls)

    @abstractmethod
    def body(self) -> str:
        """The SELECT over `evaluated`, in DuckDB's dialect."""

    @abstractmethod
    def read(self, columns: Columns) -> S_co:
        """What the statement's columns mean, in integers and rationals."""

    def sensitivity(self, protection: Protection) -> int:
        """The largest L1 distance between the vectors of neighbouring data sets."""
        raise TypeError(f"{type(self).__name__} has no one sensitivity: see its contract.")

    def of_groups(self, groups: int) -> "Statistic[Any]":
        """Return the same statistic of each of several groups of rows, by the column `member`."""
        raise TypeError(f"{type(self).__name__} cannot be computed by group.")

    @classmethod
    def examples(cls, protection: Protection) -> list["Statistic[Any]"]:
        """Small instances for the conformance suite, read off `evaluated(label, score)`."""
        return []


def compute(statistic: Statistic[S], dataset: "PrivateTable") -> Sealed[S]:
    """Read the rows once and seal what comes out."""
    return Sealed(statistic.read(dataset._fetch(statistic.body())))


def registered() -> list[type[Statistic[Any]]]:
    """Return every statistic of this package whose module is loaded: nothing lists them."""
    ours = [kind for kind in Statistic._defined if kind.__module__.startswith("heldout.")]
    return [kind for kind in ours if not inspect.isabstract(kind)]
