"""The score table: rows by label and score cell on a public grid."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.grid import CELLS, grid_body
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import tally


@dataclass(frozen=True)
class ScoreTable(Statistic):
    """Rows by label and by the nearest point of an even grid over the range; negatives first.

    The grid has `cells` equal steps, so `cells + 1` points, both ends of the range among them.
    The sufficient statistic of every ranking metric, up to ties at a point. Its size is public
    and does not grow with the rows.

    Claim:       L1 sensitivity 1 a row that leaves or arrives.        [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted at one point: k rows under add-remove, 2k under replace-one.
    Numerics:    exact integers. A score's point is found with two double operations and rounding
                 half to even, each monotone, so that the order of scores is kept.
    Refuses:     fewer than two cells or more than 2^20.
    Reference:   the counts behind scikit-learn's `confusion_matrix_at_thresholds`.
    Cost:        one scan, O(cells) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> table = ScoreTable(score_range=(0, 1), cells=4)
    >>> table.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    2
    >>> table.grid().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    score_range: tuple[float, float]
    cells: int = CELLS
    column: str = "score"
    """Or "rival", the other model's score of the same rows."""
    claim: ClassVar[str] = "disjoint-counts"

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= 2**20:
            raise ArgumentError(f"cells must be 2 to 1,048,576, got {self.cells}.")
        if self.column not in ("score", "rival"):
            raise ArgumentError(f"column must be 'score' or 'rival', got {self.column!r}.")

    @property
    def points(self) -> int:
        return self.cells + 1

    def grid(self) -> Any:
        """The public grid, lowest score first."""
        low, high = self.score_range
        return np.linspace(low, high, self.cells + 1)

    def body(self) -> str:
        own = grid_body(self.score_range, self.cells)
        if self.column == "score":
            return own
        other = f"FROM (SELECT label, {self.column} AS score FROM evaluated) AS others"
        return own.replace("FROM evaluated", other)

    def read(self, columns: Columns) -> Any:
        # One rounding may carry the top of an odd range past the last point.
        point = np.clip(columns["point"], 0, self.cells)
        return tally(columns["n"], (columns["label"], 2), (point, self.points))[:-1]

    def classes(self, columns: Columns) -> tuple[Any, Any]:
        """Counts by grid point, of the negatives and of the positives."""
        counts: Any = self.read(columns)
        return counts[: self.points], counts[self.points :]

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        return [cls(score_range=(0, 1), cells=2), cls(score_range=(0, 1), cells=2**16)]


@dataclass(frozen=True)
class ScoreTables(Statistic):
    """The score table of each group of rows; the list is as long as there are groups.

    Claim:       a row that leaves or arrives changes the table of one group, by 1 in one entry; no
                 other group's.                                           [claim: each-group]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: of one group's table, as of `ScoreTable` for one row more or less.
    Numerics:    exact integers.
    Refuses:     what `ScoreTable` refuses.
    Reference:   proofs/each-group.md.
    Cost:        one scan, O(groups * cells) memory.
    """

    table: ScoreTable
    groups: int
    claim: ClassVar[str] = "each-group"
    shown_by: ClassVar[str] = (
        "tests/conformance/test_groups.py::test_a_row_moves_one_entry_of_its_own_groups_table"
    )

    def body(self) -> str:
        own = self.table.body().replace("SELECT label", "SELECT member, label", 1)
        return own.replace("GROUP BY 1, 2", "GROUP BY 1, 2, 3")

    def read(self, columns: Columns) -> list[Any]:
        point = np.clip(columns["point"], 0, self.table.cells)
        places = (columns["member"], self.groups), (columns["label"], 2)
        counts = tally(columns["n"], *places, (point, self.table.points))[:-1]
        return list(counts.reshape(self.groups, -1))
