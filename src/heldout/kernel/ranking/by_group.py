"""A ranking metric of each group of rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.kernel.ranking.ranked import RankedRows, RankingStatistic
from heldout.kernel.statistic import Statistic

__all__ = ["RankedGroups"]


@dataclass(frozen=True)
class RankedGroups(Statistic):
    """A ranking metric of the exact scores, in each group; the list is as long as there are groups.

    Claim:       a row that leaves or arrives changes the ranking of one group, by that row; no
                 other group's.                                           [claim: each-group]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: of one group by rung, as of `RankedRows` for one row more or less.
    Numerics:    exact.
    Refuses:     a metric it does not know.
    Reference:   proofs/each-group.md.
    Cost:        one scan, one sort a class and group, O(rows) memory.
    """

    metric: str
    groups: int
    claim: ClassVar[str] = "each-group"
    shown_by: ClassVar[str] = (
        "tests/conformance/test_groups.py::test_a_row_moves_its_own_group_alone_and_by_a_row"
    )

    @property
    def whole(self) -> RankedRows:
        """What is read of each group."""
        return RankedRows(self.metric)

    def body(self) -> str:
        return "SELECT member, label, score\nFROM evaluated"

    def read(self, columns: Columns) -> list[RankingStatistic]:
        member = np.asarray(np.ma.filled(columns["member"], -1))
        rows = [member == group for group in range(self.groups)]
        return [
            self.whole.read(
                {name: np.ma.asarray(columns[name])[mine] for name in ("label", "score")}
            )
            for mine in rows
        ]
