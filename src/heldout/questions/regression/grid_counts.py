"""Rows by the cell of a public grid over one or two of their numbers."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import tally

MOST_CELLS = 2**20


@dataclass(frozen=True)
class Axis:
    """A number of each row and the public edges that divide it.

    >>> Axis("residual", (-1.0, 0.0, 1.0)).cells
    2
    """

    column: str
    edges: tuple[float, ...]
    absolute: bool = False

    def __post_init__(self) -> None:
        finite = all(math.isfinite(each) for each in self.edges)
        rising = all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        if len(self.edges) < 2 or not (finite and rising):
            raise ArgumentError("edges must be two or more finite, increasing numbers. Sort them.")
        if not self.column.isidentifier():
            raise ArgumentError(f"column must be a name of ours, got {self.column!r}.")

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    def place(self) -> str:
        """How many edges lie at or below the row's number: 0 below all, cells + 1 beyond all."""
        number = f"abs({self.column})" if self.absolute else self.column
        return " + ".join(f"CAST({number} >= {double(each)} AS INTEGER)" for each in self.edges)


@dataclass(frozen=True)
class GridCounts(Statistic):
    """Rows in each cell of the grid, the last axis fastest, and then all rows outside it.

    A cell holds its lower edge and not its upper one. With more than one group there is such a
    vector for each, one after the other, and a row is in that of its own `member`.

    Claim:       L1 sensitivity 1 a row that leaves or arrives.        [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the cells and the outside are disjoint, and so are groups: a row is counted once,
                 however many there are: k rows under add-remove, 2k under replace-one.
    Numerics:    exact integers. A row's number is compared with edges and nothing else is done to
                 it, so no engine can overflow or round.
    Refuses:     edges that are not finite and increasing; more than 2^20 cells.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, histograms.
    Cost:        one scan with a comparison an edge, O(cells) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> grid = GridCounts(axes=(Axis("residual", (-1.0, 0.0, 1.0)), Axis("predicted", (0.0, 9.0))))
    >>> grid.size, grid.sensitivity(Protection(neighbours=Neighbours.ADD_REMOVE))
    (3, 1)
    """

    axes: tuple[Axis, ...]
    groups: int = 1
    claim: ClassVar[str] = "disjoint-counts"

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 2 or self.size * self.groups > MOST_CELLS:
            raise ArgumentError("a grid must have one axis or two, and at most 1,048,576 cells.")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.cells for axis in self.axes)

    @property
    def size(self) -> int:
        """Cells and the outside: the length of the vector, or of each group's."""
        return math.prod(self.shape) + 1

    def body(self) -> str:
        places = [f"{axis.place()} AS place_{i}" for i, axis in enumerate(self.axes)]
        places += ["member"] if self.groups > 1 else []
        keys = ", ".join(str(i + 1) for i in range(len(places)))
        listed = ",\n  ".join([*places, "count(*) AS n"])
        return f"SELECT\n  {listed}\nFROM evaluated\nGROUP BY {keys}"

    def read(self, columns: Columns) -> Any:
        numbers = (np.ma.asarray(columns[f"place_{i}"]) - 1 for i in range(len(self.axes)))
        places = list(zip(numbers, self.shape, strict=True))
        if self.groups == 1:
            return tally(columns["n"], *places)
        member = (columns["member"], self.groups)
        cells = tally(columns["n"], member, *places)[:-1].reshape(self.groups, -1)
        rows = tally(columns["n"], member)[:-1, None]
        return np.hstack([cells, rows - cells.sum(axis=1, keepdims=True)]).ravel()

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        return [
            cls(axes=(Axis("score", (0.25, 0.5, 0.75)),)),
            cls(axes=(Axis("score", (0.0, 0.25, 2.0), absolute=True),)),
            cls(axes=(Axis("score", (0.0, 0.5, 1.0)), Axis("label", (0.0, 1.0)))),
        ]


@dataclass(frozen=True)
class RowCount(Statistic):
    """How many rows count, where that is not public; of each group, if there are several.

    Claim:       L1 sensitivity 1 a row that leaves or arrives.        [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: at most k rows more or less, also when some leave and others arrive; none at all
                 where the number of rows is public. A row may leave one group and another arrive
                 in a second: 2k for several groups under replace-one.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> RowCount().sensitivity(Protection(neighbours="replace-one", unit=True, rows_per_unit=3))
    3
    """

    groups: int = 1
    claim: ClassVar[str] = "disjoint-counts"

    def body(self) -> str:
        if self.groups > 1:
            return "SELECT member, count(*) AS n\nFROM evaluated\nGROUP BY 1"
        return "SELECT count(*) AS n\nFROM evaluated"

    def read(self, columns: Columns) -> Any:
        if self.groups > 1:
            return tally(columns["n"], (columns["member"], self.groups))[:-1]
        return np.array([int(columns["n"][0])], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        if self.groups > 1:
            return protection.rows_moved
        return 0 if protection.row_count_is_public else protection.rows_per_unit

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        return [cls()]
