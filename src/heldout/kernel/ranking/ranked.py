"""The rows' ranking by score, read in one pass: a metric's exact value and the class counts."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from heldout.data.grid import MANY_ROWS
from heldout.data.sql import Columns
from heldout.kernel.ranking.auc import tied_of_table
from heldout.kernel.ranking.difference import difference
from heldout.kernel.ranking.metric import RankingMetric, ranking_metric
from heldout.kernel.ranking.score_table import ScoreTable
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import as_scores

__all__ = ["LARGEST_EXACT", "RankedRows", "RankedTable", "RankingStatistic", "TiedPairs"]

LARGEST_EXACT: Final = MANY_ROWS
"""Beyond so many rows, where their number is public, a ranking is read off the score table."""

_BRUTE_FORCE: Final = (
    "tests/conformance/test_sensitivity.py"
    "::test_no_small_neighbours_are_ranked_further_apart_than_their_rung_allows"
)


@dataclass(frozen=True, repr=False)
class RankingStatistic:
    """The exact value in [0, 1] and the class counts: what a `Sealed` of this room holds."""

    value: Fraction
    positives: int
    negatives: int


@dataclass(frozen=True)
class _Ranked(Statistic):
    """A ranking metric by its name, with the claim that it has."""

    metric: str
    claim: ClassVar[str] = "auc-sensitivity"
    shown_by: ClassVar[str] = _BRUTE_FORCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", self.kind.claim)

    @property
    def kind(self) -> RankingMetric:
        return ranking_metric(self.metric)


@dataclass(frozen=True)
class RankedRows(_Ranked):
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

    def body(self) -> str:
        rival = ", rival" if self.kind.compares else ""
        return f"SELECT label, score{rival}\nFROM evaluated"

    def read(self, columns: Columns) -> RankingStatistic:
        positive = np.asarray(np.ma.filled(columns["label"], 0)) == 1
        names = ("score", "rival") if self.kind.compares else ("score",)
        scores = [as_scores(columns[name]) for name in names]
        values = [self.kind.of_rows(each[positive], each[~positive]) for each in scores]
        value = difference(*values) if self.kind.compares else values[0]
        positives = int(positive.sum())
        return RankingStatistic(value, positives, positive.size - positives)


@dataclass(frozen=True)
class RankedTable(_Ranked):
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

    table: ScoreTable
    rival_range: tuple[float, float] | None = None
    """Of the second model's scores, where it is not the first one's."""

    def body(self) -> str:
        own = self.table.body()
        if not self.kind.compares:
            return own
        ends = self.rival_range or self.table.score_range
        other = replace(self.table, column="rival", score_range=ends).body()
        return (
            f"SELECT 0 AS model, label, point, n FROM (\n{own}\n) AS own\nUNION ALL\n"
            f"SELECT 1 AS model, label, point, n FROM (\n{other}\n) AS other"
        )

    def read(self, columns: Columns) -> RankingStatistic:
        sides = [columns]
        if self.kind.compares:
            model = np.asarray(columns["model"])
            sides = [
                {name: each[model == which] for name, each in columns.items()} for which in (0, 1)
            ]
        classes = [self.table.classes(side) for side in sides]
        values = [self.kind.of_table(*each) for each in classes]
        return _counted(difference(*values) if self.kind.compares else values[0], *classes[0])


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
    shown_by: ClassVar[str] = _BRUTE_FORCE

    def body(self) -> str:
        return self.table.body()

    def read(self, columns: Columns) -> RankingStatistic:
        classes = self.table.classes(columns)
        return _counted(tied_of_table(*classes), *classes)


def _counted(value: Fraction, negatives: Any, positives: Any) -> RankingStatistic:
    return RankingStatistic(value, int(positives.sum()), int(negatives.sum()))
