"""Read the rows for a ranking: the metrics, the score table and the ranked rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from heldout.arguments import OneOf
from heldout.arrays import Floats, Ints
from heldout.data.scores import CELLS, MANY_ROWS, NEAR, grid_body
from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.ranking.sensitivity import (
    AreaSensitivity,
    PrecisionSensitivity,
    PublishedPrecisionSensitivity,
    RungSensitivity,
    area,
    area_of_table,
    average_precision,
    average_precision_negatives_first,
    average_precision_of_table,
    average_precision_of_table_negatives_first,
    difference,
    tied_of_table,
)
from heldout.kernel.ranking.tuned import BESIDE, LEAST_VISIBLE, LEAST_VISIBLE_COMPARED, SCALES
from heldout.kernel.statistic import OfEachGroup, Statistic, as_scores, tally

# --- The ranking metrics there are: what each is worth, and how far one person can move it -------


@dataclass(frozen=True)
class RankingMetric:
    """One metric of how rows are ranked; everything that differs from metric to metric."""

    name: str
    words: str
    claim: str
    of_rows: Callable[[Any, Any], Fraction]
    """Of the scores of positives and of negatives."""
    of_table: Callable[[Any, Any], Fraction]
    """Of negatives and positives by score cell, lowest score first."""
    bound: type[RungSensitivity]
    published_bound: type[RungSensitivity]
    """The bound of the papers, for their methods exactly as published."""
    scales: int
    """How many noise scales of the second look the class should measure."""
    shares: tuple[Fraction, Fraction]
    """Of epsilon, for each score table and for the moments of influence beside the value."""
    least_visible: int
    """Rows times epsilon from which on something is bought beside the value."""
    compares: bool = False
    """Whether it is the `difference` of two models on the same rows."""


METRICS: Final = {
    metric.name: metric
    for metric in (
        RankingMetric(
            name="auc",
            words="AUC",
            claim="auc-sensitivity",
            of_rows=area,
            of_table=area_of_table,
            bound=AreaSensitivity,
            published_bound=AreaSensitivity,
            scales=SCALES["auc"],
            shares=BESIDE["auc"],
            least_visible=LEAST_VISIBLE,
        ),
        RankingMetric(
            name="average-precision",
            words="average precision",
            claim="ap-sensitivity",
            of_rows=average_precision,
            of_table=average_precision_of_table,
            bound=PrecisionSensitivity,
            published_bound=PublishedPrecisionSensitivity,
            scales=SCALES["average-precision"],
            shares=BESIDE["average-precision"],
            least_visible=LEAST_VISIBLE,
        ),
    )
}
METRICS["auc-difference"] = replace(
    METRICS["auc"],
    name="auc-difference",
    words="difference",
    claim="auc-difference",
    shares=BESIDE["auc-difference"],
    least_visible=LEAST_VISIBLE_COMPARED,
    compares=True,
)
METRICS["average-precision-difference"] = replace(
    METRICS["average-precision"],
    name="average-precision-difference",
    words="difference",
    claim="ap-difference",
    shares=BESIDE["average-precision-difference"],
    least_visible=LEAST_VISIBLE_COMPARED,
    compares=True,
)
# The papers' rule of ties. All else, the noise too, is that of average precision.
NEGATIVES_FIRST: Final = "average-precision-negatives-first"
METRICS[NEGATIVES_FIRST] = replace(
    METRICS["average-precision"],
    name=NEGATIVES_FIRST,
    of_rows=average_precision_negatives_first,
    of_table=average_precision_of_table_negatives_first,
)


def ranking_metric(name: str) -> RankingMetric:
    """A metric by its name.

    >>> ranking_metric("auc").words
    'AUC'
    """
    return METRICS[OneOf(METRICS)(name, "metric")]


# --- The score table: rows by label and score cell on a public grid ------------------------------


@dataclass(frozen=True)
class ScoreTable(Statistic[Ints]):
    """Rows by label and by the nearest point of an even grid over the range; negatives first.

    The grid has `cells` equal steps, so `cells + 1` points, both ends of the range among them.
    The sufficient statistic of every ranking metric, up to ties at a point. Its size is public
    and does not grow with the rows.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
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

    def grid(self) -> Floats:
        """The public grid, lowest score first."""
        low, high = self.score_range
        return np.linspace(low, high, self.cells + 1)

    def body(self) -> str:
        own = grid_body(self.score_range, self.cells)
        if self.column == "score":
            return own
        other = f"FROM (SELECT label, {self.column} AS score FROM evaluated) AS others"
        return own.replace("FROM evaluated", other)

    def read(self, columns: Columns) -> Ints:
        # One rounding may carry the top of an odd range past the last point.
        point = np.clip(columns["point"], 0, self.cells)
        return tally(columns["n"], (columns["label"], 2), (point, self.points))[:-1]

    def classes(self, columns: Columns) -> tuple[Any, Any]:
        """Counts by grid point, of the negatives and of the positives."""
        counts: Any = self.read(columns)
        return counts[: self.points], counts[self.points :]

    def count(self, labels: Any, scores: Any) -> Ints:
        """Return the same counts of rows that are at hand, by the same two operations."""
        low, high = self.score_range
        factor = self.cells / (high - low)
        counts: Ints = np.zeros(2 * self.points, dtype=np.int64)
        for start in range(0, len(scores), 8 * NEAR):  # so many that no step needs new memory
            some = as_scores(scores[start : start + 8 * NEAR])
            places = np.rint((some - low if low else some) * factor)
            points = np.clip(places, 0, self.cells).astype(np.int64)
            positive = np.asarray(np.ma.filled(labels[start : start + 8 * NEAR], 0)) == 1
            counts += np.bincount(points + positive * self.points, minlength=counts.size)
        return counts

    def of_groups(self, groups: int) -> OfEachGroup[Ints]:
        return OfEachGroup(self, groups)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [cls(score_range=(0, 1), cells=2), cls(score_range=(0, 1), cells=2**16)]


# --- The rows' ranking by score, read in one pass: a metric's exact value and the class counts ---


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
class _Ranked(Statistic[RankingStatistic]):
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

    Claim:       the sensitivities of `area`, `average_precision` (with either rule of ties) and
                 `difference`, which hold for any scores.
                                             [claim: auc-sensitivity] [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: by rung, see `kernel.ranking.sensitivity`.
    Numerics:    exact: scores are only compared.
    Refuses:     a metric it does not know.
    Reference:   proofs/auc-sensitivity.md, proofs/ap-sensitivity.md, proofs/auc-difference.md,
                 proofs/ap-difference.md.
    Cost:        one scan, one sort per class, O(rows) memory.
    """

    def of_groups(self, groups: int) -> OfEachGroup[RankingStatistic]:
        return OfEachGroup(self, groups)

    def body(self) -> str:
        rival = ", rival" if self.kind.compares else ""
        return f"SELECT label, score{rival}\nFROM evaluated"

    def read(self, columns: Columns) -> RankingStatistic:
        positive = np.asarray(np.ma.filled(columns["label"], 0)) == 1
        names = ("score", "rival") if self.kind.compares else ("score",)
        scores = [as_scores(columns[name]) for name in names]
        values = [self.kind.of_rows(score[positive], score[~positive]) for score in scores]
        value = difference(*values) if self.kind.compares else values[0]
        positives = int(positive.sum())
        return RankingStatistic(value, positives, positive.size - positives)


@dataclass(frozen=True)
class RankDifferences(Statistic[Ints]):
    """The positives and the sum over them of their rank by the rival minus that by the score.

    A rank is counted from the middle, doubled, ties at their mean: B - A is the sum over twice
    the positives times the negatives. After the two come their reaches, for `OutcomeLaplace`:
    of the positives `SHARE`, and of the sum so much that both together stay within them.

    Claim:       another label moves the positives and the sum by parts of their reaches that add
                 up to at most 1; the reaches are those of neighbours too.   [claim: outcome-sums]
    Neighbours:  label, by row or by unit of at most k rows.
    Sensitivity: ranks are functions of scores; a label takes a row's 1 and its rank in or out.
    Numerics:    exact: ranks are whole numbers, and below 2^31 rows the sums are below 2^63.
    Refuses:     nothing.
    Reference:   proofs/outcome-sums.md; Mann and Whitney 1947.
    Cost:        one scan, two sorts, O(rows) memory.

    >>> rows = {"label": np.array([1, 0, 1]), "score": np.array([0.1, 0.2, 0.3]),
    ...         "rival": np.array([0.2, 0.1, 0.3])}
    >>> RankDifferences().read(rows).tolist()  # area 1/2 by the score, 1 by the rival
    [2, 2, 10, 3]
    """

    SHARE: ClassVar[int] = 10
    """The positives get the tenth part of epsilon, the sum the rest."""
    claim: ClassVar[str] = "outcome-sums"
    shown_by: ClassVar[str] = (
        "tests/kernel/noise/test_outcome_sums.py"
        "::test_no_outcome_moves_ranks_by_more_than_their_reaches"
    )

    def body(self) -> str:
        return "SELECT label, score, rival\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        positive = np.asarray(np.ma.filled(columns["label"], 0)) == 1
        own, other = (_double_ranks(as_scores(columns[name])) for name in ("score", "rival"))
        further = other - own
        furthest = int(np.abs(further).max(initial=0))
        reach = -(-furthest * self.SHARE // (self.SHARE - 1))
        sums = [int(positive.sum()), int(further[positive].sum())]
        return np.array([*sums, self.SHARE, reach], dtype=np.int64)


def _double_ranks(scores: Floats) -> Ints:
    """Twice the rank of each row from the middle, ties at their mean."""
    _, place, rows = np.unique(scores, return_inverse=True, return_counts=True)
    ranks: Ints = (2 * np.cumsum(rows) - rows - scores.size)[place]
    return ranks.astype(np.int64)


@dataclass(frozen=True)
class RankedTable(_Ranked):
    """A ranking metric of the scores rounded to the public grid, in memory that does not grow.

    Rows at one point of the grid are tied. The claim is that of the exact scores, since it holds
    for any scores; only the value may differ, by what the ties hide. Two models have a table each:
    an area needs no more than its own.

    Claim:       see `RankedRows`.          [claim: auc-sensitivity] [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: by rung, see `kernel.ranking.sensitivity`.
    Numerics:    exact.
    Refuses:     a metric it does not know.
    Reference:   as `RankedRows`.
    Cost:        one scan per model, O(cells) memory.
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
                {name: column[model == which] for name, column in columns.items()}
                for which in (0, 1)
            ]
        classes = [self.table.classes(side) for side in sides]
        values = [self.kind.of_table(*counts) for counts in classes]
        return _counted(difference(*values) if self.kind.compares else values[0], *classes[0])


@dataclass(frozen=True, repr=False, eq=False)
class RankingAndTable:
    """A ranking, and the score table of the same rows: what a `Sealed` holds."""

    ranking: RankingStatistic
    table: Ints


@dataclass(frozen=True)
class RankedWithTable(Statistic[RankingAndTable]):
    """A ranking metric, and the score table of the same rows, of which one is released.

    Claim:       the ranking moves by its rung as `RankedRows` does, the table by 1 per row that
                 leaves or arrives as `ScoreTable` does.              [claim: value-or-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of either; whoever releases both pays for both.
    Numerics:    exact.
    Refuses:     what the two refuse.
    Reference:   proofs/value-or-counts.md.
    Cost:        one scan for both; that of `RankedRows` or `RankedTable`, and O(cells) memory.
    """

    ranked: RankedRows | RankedTable
    table: ScoreTable
    claim: ClassVar[str] = "value-or-counts"
    shown_by: ClassVar[str] = (
        "tests/conformance/test_groups.py"
        "::test_a_ranking_with_its_table_is_the_ranking_and_the_table"
    )

    def of_groups(self, groups: int) -> OfEachGroup[RankingAndTable]:
        assert isinstance(self.ranked, RankedRows), "by= ranks exact scores"
        return OfEachGroup(self, groups)

    def body(self) -> str:
        return self.ranked.body()

    def read(self, columns: Columns) -> RankingAndTable:
        if isinstance(self.ranked, RankedTable):
            counts = self.table.read(columns)
        else:
            counts = self.table.count(columns["label"], columns["score"])
        return RankingAndTable(self.ranked.read(columns), counts)


@dataclass(frozen=True)
class TiedPairs(Statistic[RankingStatistic]):
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


# --- How far the rows pull at a metric: moments of each row's influence, by released cut points --


STEPS: Final = 2**15
"""An influence is a whole number of steps, from -STEPS to STEPS."""
SQUARES: Final = 4
"""The largest square counts as so many of the largest influence."""


@dataclass(frozen=True)
class InfluenceMoments(Statistic[Ints]):
    """The sum of the squares of the rows' influences on a metric, and their sum in either class.

    Cut points divide the points of the score grid into cells, or with a rival both models' scores;
    a row's influence u is the number of its class and cell. All of these are public, or were
    released before, so that a row's influence does not depend on other rows. The vector holds the
    sum of q = SQUARES u^2 / STEPS, rounded down, over all rows, the sum of u over the negatives
    and the sum of u over the positives.

    Claim:       L1 sensitivity (SQUARES + 1) STEPS a row that leaves or arrives, and a quarter of
                 STEPS/SQUARES more for one that is replaced.        [claim: influence-moments]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: q + |u| is at most (SQUARES + 1) STEPS, and |u| - q at most STEPS/(4 SQUARES):
                 what arrives and what leaves have squares of opposite signs.
                 proofs/influence-moments.md.
    Numerics:    exact integers; scores, or the points of the grid that they have, are compared
                 with cut points and nothing else.
    Refuses:     cut points that are not increasing; influences out of their range.
    Reference:   Hampel 1974, influence curves; DeLong, DeLong and Clarke-Pearson 1988.
    Cost:        none beyond the score table; with a rival, one scan with a comparison a cut point.

    >>> from heldout.kernel.neighbours import Protection
    >>> moments = InfluenceMoments(cuts=(0.5,), negatives=(0, -STEPS), positives=(-STEPS, 0))
    >>> moments.sensitivity(Protection(neighbours="replace-one")) / STEPS
    5.0625
    """

    cuts: tuple[float, ...]
    negatives: tuple[int, ...]
    """Influences of the negatives by cell; with a rival, its cells run fastest."""
    positives: tuple[int, ...]
    rival_cuts: tuple[float, ...] | None = None
    score_range: tuple[float, float] = (0.0, 1.0)
    """Of the grid, without a rival."""
    claim: ClassVar[str] = "influence-moments"

    def __post_init__(self) -> None:
        for cuts in (self.cuts, self.rival_cuts or ()):
            if not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
                raise ArgumentError("cut points must be finite and increasing. Sort them.")
        for influences in (self.negatives, self.positives):
            if len(influences) != self.cells or max(map(abs, influences)) > STEPS:
                raise ArgumentError(
                    f"influences must be one per cell, each at most {STEPS} in size."
                )

    @property
    def cells(self) -> int:
        rival = 1 if self.rival_cuts is None else len(self.rival_cuts) + 1
        return (len(self.cuts) + 1) * rival

    def body(self) -> str:
        if self.rival_cuts is None:
            return grid_body(self.score_range)
        own, other = _place("score", self.cuts), _place("rival", self.rival_cuts)
        chosen = f"label,\n  {own} AS place_0,\n  {other} AS place_1,\n  count(*) AS n"
        return f"SELECT\n  {chosen}\nFROM evaluated\nGROUP BY 1, 2, 3"

    def read(self, columns: Columns) -> Ints:
        places = [(columns["label"], 2)]
        if self.rival_cuts is None:
            places.append((self._places(columns["point"]), len(self.cuts) + 1))
        else:
            places.append((columns["place_0"], len(self.cuts) + 1))
            places.append((columns["place_1"], len(self.rival_cuts) + 1))
        rows = tally(columns["n"], *places)[:-1].reshape(2, -1)
        influence = np.array([self.negatives, self.positives], dtype=np.int64)
        squares = rows * (SQUARES * influence**2 // STEPS)
        return np.array([squares.sum(), *(rows * influence).sum(axis=1)], dtype=np.int64)

    def _places(self, points: Any) -> np.ma.MaskedArray[Any, Any]:
        """Return how many cut points lie at or below each point of the grid."""
        low, high = self.score_range
        scores = low + np.ma.getdata(points) * ((high - low) / CELLS)
        places = np.searchsorted(self.cuts, scores, side="right")
        return np.ma.array(places, mask=np.ma.getmaskarray(points))

    def sensitivity(self, protection: Protection) -> int:
        more = STEPS // (4 * SQUARES) if protection.both_ways else 0
        return protection.rows_per_unit * ((SQUARES + 1) * STEPS + more)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        turn = STEPS // (2 * SQUARES)  # where |u| - q is largest
        return [
            cls(cuts=(0.25, 0.75), negatives=(-turn, 0, STEPS), positives=(0, STEPS, -STEPS // 2)),
            cls(cuts=(0.5,), negatives=(turn, 5), positives=(-STEPS, -turn)),
        ]


def _place(column: str, cuts: tuple[float, ...]) -> str:
    """Return how many cut points lie at or below the score."""
    return " + ".join(f"CAST({column} >= {double(cut)} AS INTEGER)" for cut in cuts) or "0"
