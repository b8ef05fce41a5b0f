"""How well a feature foretells the label, in integers, and how far one person can move it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heldout.arguments.rules import OneOf
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.questions.features.feature_rows import FeatureStatistic

__all__ = ["SCORES", "Counted", "FeatureCounts", "FeatureScores", "Score", "score_named"]


class Counted(NamedTuple):
    """Rows that set each feature, by label, and rows in all; exact, or noisy."""

    negatives: Any
    positives: Any
    rows: tuple[Any, Any]


def counted(columns: Columns) -> Counted:
    """Of the rows that `FeatureMatrix` gives to a statistic."""
    label, matrix = columns["label"], columns["matrix"]
    positives = np.asarray(matrix[label == 1].sum(axis=0, dtype=np.int64)).ravel()
    everything = np.asarray(matrix.sum(axis=0, dtype=np.int64)).ravel()
    above = int(label.sum())
    return Counted(everything - positives, positives, (len(label) - above, above))


class Score(ABC):
    """A score of each feature: integers of exact counts, numbers of noisy ones."""

    name: ClassVar[str]
    needs_label: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False
    cells: ClassVar[int] = 1
    """How many units on the integer scale make one unit of the score."""

    @abstractmethod
    def exact(self, counts: Counted, most_rows: int | None) -> Any:
        """The scores as integers; a function of the counts, which are exact."""

    @abstractmethod
    def of_noisy(self, counts: Counted) -> Any:
        """The scores that noisy counts stand for: post-processing, in doubles."""

    @abstractmethod
    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        """How far one feature's score moves between neighbours, at most."""

    @abstractmethod
    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        """How far all scores together move between neighbours, at most (L1)."""

    def monotone(self, protection: Protection) -> bool:
        """Whether all scores move the same way between neighbours."""
        return False


class TotalCount(Score):
    """Rows that set the feature.

    Claim:       a row that arrives adds 1 to at most s scores.          [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: one score k under both relations; all together k s under add-remove, and the
                 lesser of 2 k s and k d under replace-one. Monotone under add-remove.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 3.1.
    Cost:        one pass over the entries.

    >>> one_row = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> TotalCount().of_all(one_row, features=100, features_per_row=10, most_rows=None)
    20
    """

    name = "total-count"
    needs_label = False

    def exact(self, counts: Counted, most_rows: int | None) -> Any:
        return counts.negatives + counts.positives

    def of_noisy(self, counts: Counted) -> Any:
        return np.asarray(counts.negatives + counts.positives, dtype=float)

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        return protection.rows_per_unit

    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        return min(protection.rows_moved * features_per_row, protection.rows_per_unit * features)

    def monotone(self, protection: Protection) -> bool:
        return protection.neighbours is Neighbours.ADD_REMOVE


class DifferenceCount(Score):
    """How many more rows of one label than of the other set the feature.

    Claim:       a row moves at most s scores, by 1 each.                [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: one score k under add-remove and 2 k under replace-one (a row may keep its features
                 and change its label); all together k s and 2 k s.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, equation (3).
    Cost:        one pass over the entries.
    """

    name = "difference-count"

    def exact(self, counts: Counted, most_rows: int | None) -> Any:
        return np.abs(counts.positives - counts.negatives)

    def of_noisy(self, counts: Counted) -> Any:
        return np.abs(np.asarray(counts.positives - counts.negatives, dtype=float))

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        return protection.rows_moved

    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        return protection.rows_moved * features_per_row


class PurityIndex(Score):
    """The larger majority: among rows that set the feature, or among those that do not.

    Claim:       a row moves every score, by at most 1.                  [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: one score k under add-remove and 2 k under replace-one; all together d times that.
                 The paper's 2 s for neighbours of one size forgets that a row's label may change.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, equation (4) and its footnote 1.
    Cost:        one pass over the entries.
    """

    name = "purity-index"
    needs_rows = True

    def exact(self, counts: Counted, most_rows: int | None) -> Any:
        return self._of(counts)

    def of_noisy(self, counts: Counted) -> Any:
        return np.asarray(self._of(counts), dtype=float)

    def _of(self, counts: Counted) -> Any:
        among = counts.positives - counts.negatives
        return np.maximum(np.abs(among), np.abs(counts.rows[1] - counts.rows[0] - among))

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        return protection.rows_moved

    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        return protection.rows_moved * features


class InformationGain(Score):
    """What the feature tells about the label, in nats, times the number of rows.

    The integer scale has 1,024 steps to a nat: each of the nine terms x ln x is looked up in a
    table of integers.

    Claim:       a row moves one score by at most N ln N - (N - 1) ln(N - 1) nats, N the number of
                 rows or a public bound on it.                           [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: k times that for one score, and 18 steps for the rounding of two times nine terms;
                 all together d times that, as a row's label moves every score.
    Numerics:    exact integers; a term of the table is within one step of x ln x.
    Refuses:     neighbours without a public number of rows, unless most_rows was declared.
    Reference:   Friedman and Schuster 2010; Zhang et al. 2014, lemma 1; proofs/feature-scores.md.
    Cost:        one pass over the entries, and a table of N integers.

    >>> one_row = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> InformationGain().of_each(one_row, most_rows=1000) / 1024
    7.9267578125
    """

    name = "information-gain"
    needs_rows = True
    cells = 1024

    def exact(self, counts: Counted, most_rows: int | None) -> Any:
        x = np.arange(self._bound(most_rows) + 1, dtype=float)
        table = np.rint(self.cells * _x_ln_x(x)).astype(np.int64)
        return self._sum(counts, lambda count: table[count])

    def of_noisy(self, counts: Counted) -> Any:
        held = [np.maximum(np.asarray(each, dtype=float), 0) for each in counts[:2]]
        # A feature cannot be set by more rows of a label than there are.
        rows = tuple(max(float(each), 1.0) for each in counts.rows)
        held = [np.minimum(each, most) for each, most in zip(held, rows, strict=True)]
        return self._sum(Counted(held[0], held[1], (rows[0], rows[1])), _x_ln_x)

    def _sum(self, counts: Counted, term: Any) -> Any:
        without = [all_ - some for all_, some in zip(counts.rows, counts[:2], strict=True)]
        cells = term(counts.negatives) + term(counts.positives) + term(without[0])
        by_feature = term(counts.negatives + counts.positives) + term(without[0] + without[1])
        by_label = term(counts.rows[0]) + term(counts.rows[1])
        return cells + term(without[1]) - by_feature - by_label + term(sum(counts.rows))

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        rows = self._bound(most_rows)
        most = rows * math.log(rows) - (rows - 1) * math.log(max(rows - 1, 1))
        return math.ceil(self.cells * protection.rows_per_unit * most) + 19

    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        return features * self.of_each(protection, most_rows=most_rows)

    def _bound(self, most_rows: int | None) -> int:
        if most_rows is None:
            raise ArgumentError(
                "most_rows must be declared for information-gain where the number of rows is not "
                "public: its sensitivity grows with it. Declare a bound, or use total-count."
            )
        if most_rows > _LARGEST_TABLE:
            raise ArgumentError(
                f"most_rows must be at most {_LARGEST_TABLE:,} for information-gain. Use "
                "total-count."
            )
        return most_rows


_LARGEST_TABLE = 2**27  # x ln x of larger numbers has less than 1/1024 of a nat to spare


def _x_ln_x(x: Any) -> Any:
    from scipy.special import xlogy

    return xlogy(x, x)


SCORES: dict[str, Score] = {
    each.name: each for each in (TotalCount(), DifferenceCount(), PurityIndex(), InformationGain())
}


def score_named(name: str) -> Score:
    """A score by its name."""
    return SCORES[OneOf(SCORES)(name, "score")]


@dataclass(frozen=True)
class FeatureScores(FeatureStatistic):
    """The exact score of every feature, in a public order.

    Claim:       that of the score.                                      [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: `of_each` for a mechanism that looks at scores one by one, `of_all` for one that
                 lets all of them out.
    Numerics:    exact integers.
    Refuses:     what the score refuses.
    Reference:   proofs/feature-scores.md.
    Cost:        one pass over the entries.
    """

    score: Score
    rows: int | None = None
    order: tuple[int, ...] | None = None
    claim: ClassVar[str] = "feature-scores"
    shown_by: ClassVar[str] = (
        "tests/questions/features/test_selection_scores.py"
        "::test_no_small_neighbours_are_further_apart_than_a_score_says_and_some_are_that_far"
    )

    def read(self, columns: Columns) -> Any:
        found = np.asarray(self.score.exact(counted(columns), self.rows), dtype=np.int64)
        return found if self.order is None else found[list(self.order)]


@dataclass(frozen=True)
class FeatureCounts(FeatureStatistic):
    """Rows that set each feature; `by_label` negatives first, then positives, then rows by label.

    Claim:       L1 sensitivity s a row that leaves or arrives, s + 1 by label.
                                                                         [claim: feature-scores]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds 1 to at most s of the features' cells, and to one of the two cells of
                 rows by label where they are asked for.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   proofs/feature-scores.md.
    Cost:        one pass over the entries.

    >>> one_row = Protection(neighbours=Neighbours.ADD_REMOVE)
    >>> FeatureCounts(features=500, features_per_row=10, by_label=True).sensitivity(one_row)
    11
    """

    features: int
    features_per_row: int
    by_label: bool = False
    claim: ClassVar[str] = "feature-scores"
    shown_by: ClassVar[str] = (
        "tests/questions/features/test_selection_scores.py"
        "::test_counts_of_features_move_exactly_as_far_as_claimed"
    )

    @property
    def dimension(self) -> int:
        return 2 * self.features + 2 if self.by_label else self.features

    def read(self, columns: Columns) -> Any:
        found = counted(columns)
        if not self.by_label:
            return found.negatives + found.positives
        return np.concatenate([found.negatives, found.positives, np.array(found.rows)])

    def understood(self, noisy: Any) -> Counted:
        """The vector, exact or noisy, by its parts; without labels all rows count as negative."""
        noisy = np.asarray(noisy)
        if not self.by_label:
            return Counted(noisy, np.zeros_like(noisy), (0, 0))
        halves = noisy[: self.features], noisy[self.features : 2 * self.features]
        return Counted(*halves, (noisy[-2], noisy[-1]))

    def sensitivity(self, protection: Protection) -> int:
        if self.by_label:
            return protection.rows_moved * (self.features_per_row + 1)
        return SCORES["total-count"].of_all(
            protection,
            features=self.features,
            features_per_row=self.features_per_row,
            most_rows=None,
        )
