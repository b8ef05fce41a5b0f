"""Counts of rows by their class, the class that a model calls them, and the true one's rank."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import tallied
from heldout.kernel.weights import STEPS, counted

__all__ = ["CallCounts"]

AXES: Final = ("truth", "called", "rank")


@dataclass(frozen=True)
class CallCounts(Statistic):
    """Rows by true and called class, or by the rank that the true class has among the scores.

    The vector has one entry for each combination of the `axes`, the last fastest; each axis has as
    many places as there are classes. By scores a row is called the first class that no other
    exceeds, and the true class's rank is the number of classes before it: those with a higher
    score, and those of the same score that were declared earlier. With more than one group there
    is such a vector for each, one after the other. Rows that are `weighted` count for their
    weights, in whole steps of the largest one; then come as many entries with the sums of
    w (1 - w), w a share of the largest, which tell the sums of w^2.

    Claim:       L1 sensitivity 1 a row that leaves or arrives, or the steps of the largest weight.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row has one truth, one call, one rank and one group, all of its own cells, so it
                 is counted in one entry: k rows under add-remove, 2k under replace-one. A weight
                 adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers; scores compare as doubles.
    Refuses:     axes that it does not know.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan with a comparison a class, O(entries) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> counts = CallCounts(classes=3)
    >>> counts.size, counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    (9, 2)
    """

    classes: int
    axes: tuple[str, ...] = ("truth", "called")
    by_scores: bool = True
    """Whether the highest score is the call; else `called` is a column."""
    groups: int = 1
    weighted: bool = False
    claim: ClassVar[str] = "disjoint-counts"
    shown_by: ClassVar[str] = (
        "tests/conformance/test_classes.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def __post_init__(self) -> None:
        if not self.axes or not set(self.axes) <= set(AXES):
            raise ArgumentError(f"axes must be some of {', '.join(AXES)}, got {self.axes}.")

    @property
    def size(self) -> int:
        """How many entries the vector has."""
        return int(self.classes ** len(self.axes)) * self.groups * (1 + self.weighted)

    def body(self) -> str:
        cells = [f"{self._place(axis)} AS {axis}" for axis in self.axes]
        if self.groups > 1:
            cells.insert(0, "member")
        keys = ", ".join(str(place + 1) for place in range(len(cells)))
        rows = f"{counted(self.weighted)}\nFROM evaluated"
        return f"SELECT {', '.join(cells)}, {rows}\nGROUP BY {keys}"

    def _place(self, axis: str) -> str:
        every = range(self.classes)
        if axis == "called" and self.by_scores:
            whens = " ".join(f"WHEN score_{each} >= top THEN {each}" for each in every)
            return f"CASE {whens} END"
        if axis == "rank":
            before = "CAST(score_{0} > own OR (score_{0} >= own AND truth > {0}) AS INTEGER)"
            return " + ".join(before.format(each) for each in every)
        return axis

    def read(self, columns: Columns) -> Any:
        places = [(columns[axis], self.classes) for axis in self.axes]
        return tallied(columns, places, groups=self.groups, weighted=self.weighted)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved * (STEPS if self.weighted else 1)
