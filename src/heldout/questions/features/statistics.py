"""The exact statistics of 0/1 features: scores, joint counts, right calls."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import OneOf
from heldout.arrays import Floats, Ints
from heldout.data.feature_matrix import MOST_ROWS, mixed
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.statistic import S_co, Statistic

WHOLE_ROWS = "SELECT * FROM evaluated"
"""The body of every statistic of a feature matrix.

The matrix answers it with `label`, `matrix` (0/1, each row within its bound) and
`restricted(features, most)`, which gives the rows seen through public features, each within that
bound.
"""


class SparseRows(Protocol):
    """Types the part of scipy's sparse matrices in compressed rows that is used; scipy has none."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def indptr(self) -> Ints: ...
    @property
    def indices(self) -> Ints: ...
    @property
    def T(self) -> "SparseRows": ...
    def tocsr(self) -> "SparseRows": ...
    def astype(self, kind: type) -> "SparseRows": ...
    def __getitem__(self, part: Any) -> "SparseRows": ...
    def __matmul__(self, vector: NDArray[Any]) -> NDArray[Any]: ...


class FeatureStatistic(Statistic[S_co]):
    """A statistic of all rows of a feature matrix."""

    def body(self) -> str:
        return WHOLE_ROWS


def seen_through(columns: Columns, chosen: tuple[int, ...] | None) -> SparseRows:
    """Return the private rows, all features or the public `chosen` ones, as a sparse 0/1 matrix."""
    rows: SparseRows = columns["matrix"]
    if chosen is not None:
        rows = columns["restricted"](chosen, len(chosen))
    return rows


class Counted(NamedTuple):
    """Rows that set each feature, by label, and rows in all; exact, or noisy."""

    negatives: NDArray[Any]
    positives: NDArray[Any]
    rows: tuple[float, float]

    @property
    def total(self) -> NDArray[Any]:
        """Return the rows of either label."""
        return np.asarray(self.negatives + self.positives)

    @property
    def difference(self) -> NDArray[Any]:
        """Return positives minus negatives."""
        return np.asarray(self.positives - self.negatives)


def counted(columns: Columns) -> Counted:
    """Count the rows that `FeatureMatrix` gives to a statistic."""
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
    def exact(self, counts: Counted, most_rows: int | None) -> Ints:
        """Return the scores as integers; a function of the counts, which are exact."""

    @abstractmethod
    def of_noisy(self, counts: Counted) -> Floats:
        """Return the scores that noisy counts stand for: post-processing, in doubles."""

    @abstractmethod
    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        """Return how far one feature's score moves between neighbours, at most."""

    def of_all(
        self,
        protection: Protection,
        *,
        features: int,
        features_per_row: int,
        most_rows: int | None,
    ) -> int:
        """Return how far all scores together move between neighbours, at most (L1)."""
        return features * self.of_each(protection, most_rows=most_rows)

    def monotone(self, protection: Protection) -> bool:
        """Return whether all scores move the same way between neighbours."""
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

    def exact(self, counts: Counted, most_rows: int | None) -> Ints:
        return counts.total

    def of_noisy(self, counts: Counted) -> Floats:
        return np.asarray(counts.total, dtype=float)

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
    """Counts how many more rows of one label than of the other set the feature.

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

    def exact(self, counts: Counted, most_rows: int | None) -> Ints:
        return np.asarray(np.abs(counts.difference))

    def of_noisy(self, counts: Counted) -> Floats:
        return np.abs(counts.difference.astype(np.float64))

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

    def exact(self, counts: Counted, most_rows: int | None) -> Ints:
        return self._of(counts)

    def of_noisy(self, counts: Counted) -> Floats:
        return np.asarray(self._of(counts), dtype=float)

    def _of(self, counts: Counted) -> NDArray[Any]:
        among, rest = counts.difference, counts.rows[1] - counts.rows[0] - counts.difference
        return np.asarray(np.maximum(np.abs(among), np.abs(rest)))

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        return protection.rows_moved


class InformationGain(Score):
    """Measures what the feature tells about the label, in nats, times the number of rows.

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

    def exact(self, counts: Counted, most_rows: int | None) -> Ints:
        x = np.arange(self._bound(most_rows) + 1, dtype=float)
        table = np.rint(self.cells * _x_ln_x(x)).astype(np.int64)
        return self._sum(counts, lambda count: table[count])

    def of_noisy(self, counts: Counted) -> Floats:
        negatives, positives = (max(float(count), 1.0) for count in counts.rows)
        # A feature cannot be set by more rows of a label than there are.
        possible = Counted(
            np.clip(np.asarray(counts.negatives, dtype=float), 0, negatives),
            np.clip(np.asarray(counts.positives, dtype=float), 0, positives),
            (negatives, positives),
        )
        return self._sum(possible, _x_ln_x)

    def _sum(self, counts: Counted, term: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        without = (counts.rows[0] - counts.negatives, counts.rows[1] - counts.positives)
        cells = term(counts.negatives) + term(counts.positives) + term(without[0])
        by_feature = term(counts.total) + term(without[0] + without[1])
        by_label = term(counts.rows[0]) + term(counts.rows[1])
        return np.asarray(cells + term(without[1]) - by_feature - by_label + term(sum(counts.rows)))

    def of_each(self, protection: Protection, *, most_rows: int | None) -> int:
        rows = self._bound(most_rows)
        most = rows * math.log(rows) - (rows - 1) * math.log(max(rows - 1, 1))
        return math.ceil(self.cells * protection.rows_per_unit * most) + 19

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


def _x_ln_x(x: ArrayLike) -> Floats:
    from scipy.special import xlogy

    product: Floats = xlogy(x, x)
    return product


SCORES: dict[str, Score] = {
    score.name: score
    for score in (TotalCount(), DifferenceCount(), PurityIndex(), InformationGain())
}


def score_named(name: str) -> Score:
    """Return a score by its name."""
    return SCORES[OneOf(SCORES)(name, "score")]


@dataclass(frozen=True)
class FeatureScores(FeatureStatistic[Ints]):
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
    claim = "feature-scores"
    shown_by = (
        "tests/questions/features/test_selection_scores.py"
        "::test_no_small_neighbours_are_further_apart_than_a_score_says_and_some_are_that_far"
    )

    def read(self, columns: Columns) -> Ints:
        scores = np.asarray(self.score.exact(counted(columns), self.rows), dtype=np.int64)
        return scores if self.order is None else scores[list(self.order)]


@dataclass(frozen=True)
class FeatureCounts(FeatureStatistic[Ints]):
    """Rows that set each feature; `by_label` negatives first, then positives, then rows by label.

    Claim:       L1 sensitivity s per row that leaves or arrives, s + 1 by label.
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
    claim = "feature-scores"
    shown_by = (
        "tests/questions/features/test_selection_scores.py"
        "::test_counts_of_features_move_exactly_as_far_as_claimed"
    )

    @property
    def dimension(self) -> int:
        return 2 * self.features + 2 if self.by_label else self.features

    def read(self, columns: Columns) -> Ints:
        counts = counted(columns)
        if not self.by_label:
            return counts.total
        return np.concatenate([counts.negatives, counts.positives, np.array(counts.rows)])

    def understood(self, noisy: ArrayLike) -> Counted:
        """Divide the vector, exact or noisy; without labels all rows count as negative."""
        vector: NDArray[Any] = np.asarray(noisy)
        if not self.by_label:
            return Counted(vector, np.zeros_like(vector), (0, 0))
        halves = vector[: self.features], vector[self.features : 2 * self.features]
        return Counted(*halves, (vector[-2], vector[-1]))

    def sensitivity(self, protection: Protection) -> int:
        if self.by_label:
            return protection.rows_moved * (self.features_per_row + 1)
        return SCORES["total-count"].of_all(
            protection,
            features=self.features,
            features_per_row=self.features_per_row,
            most_rows=None,
        )


UNIT = 2**16  # steps of the lattice that make the weight 1
SIZES = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512)
"""Where the cells of row sizes begin: half octaves. The first cell is the empty rows."""


def size_cells(sizes: ArrayLike) -> Ints:
    """Return the cell of row sizes that each row is in, 0 to len(SIZES).

    >>> size_cells([0, 1, 5, 10_000]).tolist()
    [0, 1, 4, 18]
    """
    return np.asarray(np.searchsorted(SIZES, np.asarray(sizes), side="right"), dtype=np.int64)


def row_units(matrix: SparseRows, weight: int) -> Ints:
    """Return what a row's feature counts, in units: 1, or weight/size where it has more."""
    sizes = np.diff(matrix.indptr).astype(np.int64)
    return weight * UNIT // np.maximum(sizes, weight)


def place_of(features: int, places: int | None) -> Ints:
    """Return the place that each feature shares with others, by a public hash of its number.

    >>> place_of(3, None).tolist(), len(set(place_of(1000, 8).tolist()))
    ([0, 1, 2], 8)
    """
    numbers = np.arange(features, dtype=np.uint64)
    shared = numbers if places is None else mixed(numbers) % np.uint64(places)
    return np.asarray(shared, dtype=np.int64)


@dataclass(frozen=True)
class JointCounts(FeatureStatistic[Ints]):
    """Row sizes by label and features by label; a row's whole weight is the same public number.

    A row with at most `weight` features adds 1 to each of them in its label's half; one with more
    adds weight/size to each, so nothing is drawn by lot and nothing is thrown away. Beside that it
    adds `size_units` to the cell of its label and size. With `places` the features that share a
    place are summed: of many words hardly any is frequent, and fewer sums hold less noise.

    Claim:       L1 sensitivity (weight * UNIT + size_units) a row that leaves or arrives.
                                                                          [claim: joint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row with m features adds floor(weight * UNIT / max(m, weight)) to m cells, which
                 is weight * UNIT at most in all, summed or not, and size_units to one cell.
    Numerics:    exact integers.
    Refuses:     numbers that are not positive; weights whose sums over `MOST_ROWS` rows would
                 pass 64 bits, where they would wrap and move by 2^64.
    Reference:   Vaidya et al. 2013 (noisy counts); proofs/joint-counts.md.
    Cost:        one pass over the entries.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> counts = JointCounts(features=1000, weight=5, size_units=UNIT)
    >>> counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE)) / UNIT
    12.0
    """

    features: int
    weight: int
    size_units: int
    chosen: tuple[int, ...] | None = None
    places: int | None = None
    claim = "joint-counts"
    shown_by = (
        "tests/questions/features/test_naive_bayes.py"
        "::test_no_small_neighbours_move_the_counts_further_than_claimed"
    )

    def __post_init__(self) -> None:
        if min(self.features, self.weight, self.size_units, self.sums) < 1:
            raise ArgumentError("features, weight, size_units and places must be positive.")
        if MOST_ROWS * max(self.weight * UNIT, self.size_units) >= 2**63:
            raise ArgumentError(
                f"weight must be smaller, got {self.weight:,}: the sums of its counts would not "
                "fit 64 bits. Try 5."
            )

    @property
    def sums(self) -> int:
        """Return how many sums of features there are for each label."""
        return self.features if self.places is None else self.places

    @property
    def dimension(self) -> int:
        return 2 * (self.sums + len(SIZES) + 1)

    def read(self, columns: Columns) -> Ints:
        label, matrix = columns["label"], seen_through(columns, self.chosen)
        cells = size_cells(np.diff(matrix.indptr))
        units = row_units(matrix, self.weight)
        across = matrix.T.astype(np.int64)
        halves = [np.asarray(label == own, dtype=np.int64) for own in (0, 1)]
        by_size = [
            np.bincount(cells[half == 1], minlength=len(SIZES) + 1) * self.size_units
            for half in halves
        ]
        summed = np.zeros((2, self.sums), dtype=np.int64)
        for own, half in zip(summed, halves, strict=True):
            by_feature = np.asarray(across @ (units * half)).ravel()
            np.add.at(own, place_of(self.features, self.places), by_feature)
        return np.concatenate([*by_size, *summed]).astype(np.int64)

    def sensitivity(self, protection: Protection) -> int:
        own = min(self.weight, self.features) * UNIT + self.size_units
        return protection.rows_moved * own


RowScores = Callable[[SparseRows], Ints]
"""A sparse 0/1 matrix -> each row's score in whole lattice steps, of that row alone."""


@dataclass(frozen=True, eq=False)
class SummedScores:
    """The sum of the weights of a row's features, and the weight of its size."""

    weights: Ints
    size_weights: Ints

    def __call__(self, matrix: SparseRows) -> Ints:
        own: Ints = np.asarray(matrix.astype(np.int64) @ self.weights).ravel()
        return own + self.size_weights[size_cells(np.diff(matrix.indptr))]


@dataclass(frozen=True, eq=False)
class RegressionScores:
    """A regression's score of each row, from coefficients in whole lattice steps, the last one the
    constant's; without a `weight` rows are not weighed."""

    coefficients: Ints
    weight: int | None

    def __call__(self, matrix: SparseRows) -> Ints:
        own: Ints = np.asarray(matrix.astype(np.int64) @ self.coefficients[:-1]).ravel()
        if self.weight is not None:
            own = own * row_units(matrix, self.weight) // UNIT
        scores: Ints = own + self.coefficients[-1]
        return scores


@dataclass(frozen=True, eq=False)
class RightCalls(FeatureStatistic[Ints]):
    """Counts the rows that each cut of a public score calls rightly, from "all positive" to "none".

    Claim:       one row adds 1 to some of the counts and nothing to the others.
                                                                           [claim: right-calls]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: each count moves by at most k under both relations: under replace-one k rows leave
                 and k arrive, and the moves have opposite signs. Under add-remove all move one way.
    Numerics:    exact integers: scores and cuts are whole numbers.
    Refuses:     nothing.
    Reference:   proofs/right-calls.md.
    Cost:        one pass over the entries.
    """

    scores: RowScores
    """Of released numbers alone."""
    cuts: tuple[int, ...]
    chosen: tuple[int, ...] | None = None
    claim = "right-calls"
    shown_by = "tests/questions/features/test_naive_bayes.py::test_one_row_adds_0_or_1_to_every_cut"

    def read(self, columns: Columns) -> Ints:
        label, matrix = columns["label"], seen_through(columns, self.chosen)
        reached = np.searchsorted(self.cuts, self.scores(matrix), side="right")
        cells = len(self.cuts) + 1
        negatives = np.bincount(reached[label == 0], minlength=cells)
        positives = np.bincount(reached[label == 1], minlength=cells)
        below = np.concatenate([[0], np.cumsum(negatives)])
        above = int(positives.sum()) - np.concatenate([[0], np.cumsum(positives)])
        return np.asarray(below + above, dtype=np.int64)


# --- 0/1 features that describe columns, read as the few entries of a regression ------------------


RESOLUTION: Final = 64
"""Steps of an entry from 0 to 1."""
MOST_DEGREE: Final = 2


Groups = tuple[tuple[int, ...], ...]
"""Places of entries, by group."""


@dataclass(frozen=True)
class Coding:
    """Reads consecutive features as columns, of which a row sets one feature each.

    A column in order (bins of a number) becomes its place from -1 to 1 and, with degree 2, the
    bend 2 z^2 - 1 of that place: one entry each, however many bins there are. So does a column of
    one or two features. A column of more kinds keeps an entry of 0 or 1 for each of them. Of
    several features of a column that a row sets, the first counts.

    >>> from scipy.sparse import csr_array
    >>> coding = Coding(sizes=(3, 1, 3), ordered=(0,), degree=1)
    >>> coding.groups, (coding.coded(csr_array([[0, 0, 1, 1, 0, 1, 0]])) / RESOLUTION).tolist()
    ((1, 1, 3), [[1.0, 1.0, 0.0, 1.0, 0.0]])
    """

    sizes: tuple[int, ...]
    """How many features describe each column."""
    ordered: tuple[int, ...]
    """Which columns are in order, by place."""
    degree: int

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= MOST_DEGREE or min(self.sizes, default=0) < 1:
            raise ArgumentError("A coding needs columns of one feature or more, and degree 1 or 2.")
        if any(not 0 <= place < len(self.sizes) for place in self.ordered):
            raise ArgumentError(f"ordered must name places from 0 to {len(self.sizes) - 1}.")

    @property
    def features(self) -> int:
        return sum(self.sizes)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Return the entries of each group: a row's entries of one group sum to 1 at most."""
        groups: list[int] = []
        for place, size in enumerate(self.sizes):
            if size > 2 and place not in self.ordered:
                groups.append(size)
            else:
                groups += [1] * (self.degree if size > 2 else 1)
        return tuple(groups)

    @property
    def entries(self) -> int:
        return sum(self.groups)

    @cached_property
    def roles(self) -> tuple[Groups, Groups, Groups]:
        """Return the places of the groups' entries: slopes, bends and columns of kinds.

        >>> Coding(sizes=(5, 2, 3), ordered=(0,), degree=2).roles
        (((0,), (2,)), ((1,),), ((3, 4, 5),))
        """
        slopes: list[tuple[int, ...]] = []
        bends: list[tuple[int, ...]] = []
        kinds: list[tuple[int, ...]] = []
        entry = 0
        for place, size in enumerate(self.sizes):
            if size > 2 and place not in self.ordered:
                kinds.append(tuple(range(entry, entry + size)))
                entry += size
            else:
                slopes.append((entry,))
                entry += 1
                if size > 2 and self.degree == 2:
                    bends.append((entry,))
                    entry += 1
        return tuple(slopes), tuple(bends), tuple(kinds)

    @cached_property
    def table(self) -> Ints:
        """Return what each feature stands for: a row for each feature, in steps of an entry."""
        table = np.zeros((self.features, self.entries), dtype=np.int64)
        feature = entry = 0
        for place, size in enumerate(self.sizes):
            own = table[feature : feature + size]
            if size > 2 and place not in self.ordered:
                own[:, entry : entry + size] = RESOLUTION * np.eye(size, dtype=np.int64)
                entry += size
            else:
                at = np.linspace(-1, 1, size) if size > 1 else np.ones(1)
                own[:, entry] = np.rint(RESOLUTION * at)
                entry += 1
                if size > 2 and self.degree == 2:
                    own[:, entry] = np.rint(RESOLUTION * (2 * at**2 - 1))
                    entry += 1
            feature += size
        return table

    @cached_property
    def _lonely(self) -> Ints:
        """Return which features are the one of their column, 0 or 1 for each."""
        return np.repeat(np.array(self.sizes) == 1, self.sizes).astype(np.int64)

    @cached_property
    def absent(self) -> Ints:
        """Return the entries of a row without features: -1 for columns of one feature."""
        entries: Ints = -(self._lonely @ self.table)
        return entries

    @cached_property
    def moves(self) -> Ints:
        """Return how far setting a feature moves the entries from those of `absent`."""
        moved: Ints = self.table * (1 + self._lonely)[:, None]
        return moved

    def coded(self, matrix: SparseRows) -> Ints:
        """Return the entries of rows, -RESOLUTION to RESOLUTION, each from its own row alone."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        order = np.lexsort((matrix.indices, rows))
        rows, features = rows[order], matrix.indices[order]
        seen = np.stack([rows, column[features]])
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (seen[:, 1:] != seen[:, :-1]).any(axis=0)
        rows, features = rows[first], features[first]
        entries = np.tile(self.absent, (matrix.shape[0], 1))
        np.add.at(entries, rows, self.moves[features])
        return entries

    def spread(self, coefficients: Floats) -> tuple[Floats, float]:
        """Return the weight of each feature, and what a row without any has."""
        weights: Floats = self.moves @ coefficients / RESOLUTION
        return weights, float(self.absent @ coefficients) / RESOLUTION
