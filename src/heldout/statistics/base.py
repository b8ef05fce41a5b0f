"""What a statistic is: one statement over the rows, and how far one neighbour can move it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from heldout.data.sql import Columns
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.statistics.sealed import Sealed

if TYPE_CHECKING:
    from heldout.data import PrivateTable


@dataclass(frozen=True)
class Statistic(ABC):
    """An exact statistic of the rows. Its parameters are public."""

    claim: ClassVar[str]

    @abstractmethod
    def body(self) -> str:
        """The SELECT over `evaluated(label, score)`, in DuckDB's dialect."""

    @abstractmethod
    def read(self, columns: Columns) -> Any:
        """What the statement's columns mean, in integers and rationals."""


class VectorStatistic(Statistic):
    """A vector of integers with a sensitivity that is the same for all data sets.

    A subclass is found by the conformance suite through `registered()`: it gives `examples()`,
    whose sensitivity is then brute-forced on all small neighbouring data sets.
    """

    @abstractmethod
    def sensitivity(self, protection: Protection) -> int:
        """The largest L1 distance between the vectors of neighbouring data sets."""

    @classmethod
    @abstractmethod
    def examples(cls, protection: Protection) -> list["VectorStatistic"]:
        """Small instances for the conformance suite."""


def compute(statistic: Statistic, dataset: "PrivateTable") -> Sealed[Any]:
    """Read the rows once and seal what comes out."""
    return Sealed(statistic.read(dataset._fetch(statistic.body())))


def rows_moved(protection: Protection) -> int:
    """How many rows, leaving and arriving together, tell two neighbours apart at most.

    Disjoint counts move by one a row, so this is their L1 sensitivity.

    >>> from heldout.privacy.neighbours import Neighbours, Protection
    >>> rows_moved(Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=4))
    8
    """
    both = protection.neighbours is Neighbours.REPLACE_ONE
    return protection.rows_per_unit * (2 if both else 1)


def registered() -> list[type[VectorStatistic]]:
    """Every vector statistic there is, for the conformance suite and the documentation."""
    import heldout.statistics

    found = (getattr(heldout.statistics, name) for name in heldout.statistics.__all__)
    return [
        each
        for each in found
        if isinstance(each, type)
        and issubclass(each, VectorStatistic)
        and each is not VectorStatistic
    ]
