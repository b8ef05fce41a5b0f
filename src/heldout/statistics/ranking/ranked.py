"""The rows' ranking by score, read in one pass: a metric's exact value and the class counts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from heldout.data.grid import MANY_ROWS
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.statistics.base import Statistic
from heldout.statistics.ranking.auc import area, area_of_table, tied_of_table
from heldout.statistics.ranking.average_precision import (
    average_precision,
    average_precision_of_table,
)
from heldout.statistics.ranking.difference import difference
from heldout.statistics.score_table import ScoreTable

__all__ = ["LARGEST_EXACT", "RankedRows", "RankedTable", "RankingStatistic", "TiedPairs"]

LARGEST_EXACT: Final = MANY_ROWS
"""Beyond so many rows, where their number is public, a ranking is read off the score table."""

CLAIMS: Final = {
    "auc": "auc-sensitivity",
    "average-precision": "ap-sensitivity",
    "auc-difference": "auc-difference",
}


@dataclass(frozen=True, repr=False)
class RankingStatistic:
    """The exact value in [0, 1] and the class counts: what a `Sealed` of this room holds."""

    value: Fraction
    positives: int
    negatives: int


@dataclass(frozen=True)
class RankedRows(Statistic):
    """A ranking metric of the exact scores.

    Claim:       the sensitivities of `area`, `average_precision` and `difference`, which hold for
                 any scores.                 [claim: auc-sensitivity] [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: by rung, see `statistics.ranking.sensitivity`.
    Numerics:    exact: scores are only compared.
    Refuses:     a metric it does not know.
    Reference:   proofs/auc-sensitivity.md, proofs/ap-sensitivity.md, proofs/auc-difference.md.
    Cost:        one scan, one sort a class, O(rows) memory.
    """

    metric: str
    claim: ClassVar[str] = "auc-sensitivity"

    def __post_init__(self) -> None:
        if self.metric not in CLAIMS:
            raise ArgumentError(f"metric must be one of {', '.join(CLAIMS)}, got {self.metric!r}.")
        object.__setattr__(self, "claim", CLAIMS[self.metric])

    def body(self) -> str:
        rival = ", rival" if self.metric == "auc-difference" else ""
        return f"SELECT label, score{rival}\nFROM evaluated"

    def read(self, columns: Columns) -> RankingStatistic:
        positive = np.asarray(columns["label"]) == 1
        score = np.asarray(columns["score"], dtype=np.float64)
        positives, negatives = score[positive], score[~positive]
        if self.metric == "average-precision":
            value = average_precision(positives, negatives)
        else:
            value = area(positives, negatives)
        if self.metric == "auc-difference":
            rival = np.asarray(columns["rival"], dtype=np.float64)
            value = difference(value, area(rival[positive], rival[~positive]))
        return RankingStatistic(value, positives.size, negatives.size)


@dataclass(frozen=True)
class RankedTable(Statistic):
    """A ranking metric of the scores rounded to the public grid, in memory that does not grow.

    Rows at one point of the grid are tied. The claim is that of the exact scores, since it holds
    for any scores; only the value may differ, by what the ties hide. Two models have a table each:
    an area needs no more than its own.

    Claim:       see `RankedRows`.          [claim: auc-sensitivity] [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: by rung, see `statistics.ranking.sensitivity`.
    Numerics:    exact.
    Refuses:     a metric it does not know.
    Reference:   as `RankedRows`.
    Cost:        one scan a model, O(cells) memory.
    """

    metric: str
    table: ScoreTable
    claim: ClassVar[str] = "auc-sensitivity"

    def __post_init__(self) -> None:
        if self.metric not in CLAIMS:
            raise ArgumentError(f"metric must be one of {', '.join(CLAIMS)}, got {self.metric!r}.")
        object.__setattr__(self, "claim", CLAIMS[self.metric])

    def body(self) -> str:
        own = self.table.body()
        if self.metric != "auc-difference":
            return own
        rivals = "FROM (SELECT label, rival AS score FROM evaluated) AS rivals"
        other = own.replace("FROM evaluated", rivals)
        return (
            f"SELECT 0 AS model, label, point, n FROM (\n{own}\n) AS own\nUNION ALL\n"
            f"SELECT 1 AS model, label, point, n FROM (\n{other}\n) AS other"
        )

    def read(self, columns: Columns) -> RankingStatistic:
        if self.metric == "auc-difference":
            model = np.asarray(columns["model"])
            sides = [
                {name: np.asarray(each)[model == which] for name, each in columns.items()}
                for which in (0, 1)
            ]
            (negatives, positives), others = (self._classes(side) for side in sides)
            value = difference(area_of_table(negatives, positives), area_of_table(*others))
        else:
            negatives, positives = self._classes(columns)
            metric = area_of_table if self.metric == "auc" else average_precision_of_table
            value = metric(negatives, positives)
        return RankingStatistic(value, int(positives.sum()), int(negatives.sum()))

    def _classes(self, columns: Columns) -> tuple[Any, Any]:
        """Counts by grid point, of the negatives and of the positives."""
        counts: Any = self.table.read(columns)
        return counts[: self.table.points], counts[self.table.points :]


@dataclass(frozen=True)
class TiedPairs(Statistic):
    """The share of pairs of a positive and a negative row that share a point of the grid.

    Claim:       see `tied_of_table`.                                  [claim: auc-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of an area, by rung.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/auc-sensitivity.md.
    Cost:        none where the table is known already; else one scan, O(cells) memory.
    """

    table: ScoreTable
    claim: ClassVar[str] = "auc-sensitivity"

    def body(self) -> str:
        return self.table.body()

    def read(self, columns: Columns) -> RankingStatistic:
        counts: Any = self.table.read(columns)
        negatives, positives = counts[: self.table.points], counts[self.table.points :]
        value = tied_of_table(negatives, positives)
        return RankingStatistic(value, int(positives.sum()), int(negatives.sum()))
