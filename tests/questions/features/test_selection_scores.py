"""Every score's sensitivity, by brute force over all small neighbouring data sets."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import mutual_info_score

import heldout as ho
from heldout.data.feature_matrix import FeatureMatrix
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.questions.features.statistics import (
    SCORES,
    FeatureCounts,
    FeatureScores,
    Score,
    counted,
)

Row = tuple[frozenset[int], int]
REPLACE = Protection(neighbours=Neighbours.REPLACE_ONE)
ADD = Protection(neighbours=Neighbours.ADD_REMOVE)
PAIRS = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=2)
ADD_PAIRS = Protection(neighbours=Neighbours.ADD_REMOVE, unit=True, rows_per_unit=2)
PROTECTIONS = [REPLACE, ADD, PAIRS, ADD_PAIRS]


@dataclass(frozen=True)
class Small:
    """All data sets of a few rows: a row has at most `most` of `features`, and a label."""

    features: int
    most: int
    rows: int

    @property
    def kinds(self) -> list[Row]:
        sets = [
            frozenset(each)
            for size in range(self.most + 1)
            for each in itertools.combinations(range(self.features), size)
        ]
        return [(each, label) for each in sets for label in (0, 1)]

    def columns(self, data: tuple[int, ...]) -> dict[str, object]:
        """Rows by their kinds, as a statistic gets them."""
        dense = np.zeros((len(data), self.features), dtype=np.int8)
        for place, kind in enumerate(data):
            dense[place, sorted(self.kinds[kind][0])] = 1
        label = np.array([self.kinds[kind][1] for kind in data], dtype=np.int64)
        return {"label": label, "matrix": csr_array(dense)}

    def neighbours(self, protection: Protection):
        """Each pair: the common rows, with those that only one of the two has."""
        every = range(len(self.kinds))
        some = cache(lambda size: list(itertools.combinations_with_replacement(every, size)))
        for leave, arrive in protection.changes():
            for size in range(self.rows - max(leave, arrive) + 1):
                for common in some(size):
                    for gone in some(leave):
                        first = tuple(sorted(common + gone))
                        for new in some(arrive):
                            yield first, tuple(sorted(common + new))


def small(protection: Protection) -> Small:
    return Small(2, 1, 4) if protection.unit else Small(3, 2, 3)


def distances(score: Score, protection: Protection, of: Small):
    """The largest move of one score, of all together, and whether scores ever part ways."""

    @cache
    def scored(data: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(FeatureScores(score, of.rows).read(of.columns(data)).tolist())

    one = together = 0
    parted = False
    for first, second in of.neighbours(protection):
        moved = [b - a for a, b in zip(scored(first), scored(second), strict=True)]
        one = max(one, *map(abs, moved))
        together = max(together, sum(map(abs, moved)))
        parted = parted or min(moved) < 0 < max(moved)
    return one, together, parted


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: p.describe()[:34])
@pytest.mark.parametrize("name", ["total-count", "difference-count", "purity-index"])
def test_no_small_neighbours_are_further_apart_than_a_score_says_and_some_are_that_far(
    name: str, protection: Protection
) -> None:
    score, of = SCORES[name], small(protection)
    one, together, parted = distances(score, protection, of)
    assert one == score.of_each(protection, most_rows=None)
    bound = score.of_all(protection, features=of.features, features_per_row=of.most, most_rows=None)
    assert together == bound
    assert not (score.monotone(protection) and parted)


@pytest.mark.parametrize("protection", [REPLACE, ADD], ids=str)
def test_information_gain_moves_at_most_as_far_as_proven(protection: Protection) -> None:
    score = SCORES["information-gain"]
    for most_rows in (2, 3):
        one, together, _ = distances(score, protection, Small(3, 2, most_rows))
        claimed = score.of_each(protection, most_rows=most_rows)
        assert one <= claimed
        assert one >= claimed - 19 - 9, "the bound is attained, up to the rounding"
        assert together <= score.of_all(
            protection, features=3, features_per_row=2, most_rows=most_rows
        )


def nats(a: int, b: int, c: int, d: int) -> float:
    """N times the information gain of the table of counts a b / c d."""
    h = lambda x: x * math.log(x) if x else 0.0  # noqa: E731
    return h(a) + h(b) + h(c) + h(d) - h(a + b) - h(c + d) - h(a + c) - h(b + d) + h(a + b + c + d)


@pytest.mark.parametrize("rows", [1, 2, 5, 12, 25])
def test_information_gain_of_every_table_of_counts_moves_at_most_as_far_as_proven(rows) -> None:
    """All 2 x 2 tables of one feature: so many rows, against one row moved or gone."""
    bound = rows * math.log(rows) - (rows - 1) * math.log(max(rows - 1, 1))
    worst = 0.0
    for a, b, c in itertools.product(range(rows), repeat=3):
        d = rows - 1 - a - b - c
        if d < 0:
            continue
        table = (a, b, c, d)
        more = [nats(*(n + (i == cell) for i, n in enumerate(table))) for cell in range(4)]
        values = [nats(*table), *more]
        worst = max(worst, max(values) - min(values))
    assert worst <= bound + 1e-9
    assert worst >= bound - 1e-9, "and some table attains it"


def test_the_integer_scale_is_the_information_gain() -> None:
    random = np.random.default_rng(2)
    X, y = (random.random((200, 30)) < 0.2).astype(np.int8), random.integers(0, 2, 200)
    found = FeatureScores(SCORES["information-gain"], 200).read(
        {"label": y, "matrix": csr_array(X)}
    )
    for feature in range(30):
        on, off = y[X[:, feature] == 1], y[X[:, feature] == 0]
        cells = (int(on.sum()), int(len(on) - on.sum()), int(off.sum()), int(len(off) - off.sum()))
        assert abs(found[feature] / 1024 - nats(*cells)) <= 9 / 1024


@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: p.describe()[:34])
def test_counts_of_features_move_exactly_as_far_as_claimed(protection, by_label) -> None:
    of = small(protection)
    statistic = FeatureCounts(of.features, of.most, by_label)

    @cache
    def vector(data: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(statistic.read(of.columns(data)).tolist())

    worst = max(
        sum(abs(b - a) for a, b in zip(vector(first), vector(second), strict=True))
        for first, second in Small(of.features, of.most, 2).neighbours(protection)
    )
    assert worst == statistic.sensitivity(protection)


def test_a_bound_that_is_smaller_would_be_caught() -> None:
    """The paper's footnote: at most 2 s features change if neighbours have one size."""
    of = Small(3, 1, 2)
    _, together, _ = distances(SCORES["purity-index"], REPLACE, of)
    assert together == 2 * of.features > 2 * of.most


def test_scores_of_noisy_counts_are_those_of_exact_ones_without_noise() -> None:
    random = np.random.default_rng(4)
    X, y = (random.random((300, 40)) < 0.1).astype(np.int8), random.integers(0, 2, 300)
    asked = {"label": y, "matrix": csr_array(X)}
    counts = FeatureCounts(40, 40, by_label=True)
    understood = counts.understood(counts.read(asked))
    for score in SCORES.values():
        exact = FeatureScores(score, 300).read(asked) / score.cells
        assert np.abs(score.of_noisy(understood) - exact).max() <= 9 / 1024


def test_scores_of_wild_counts_are_numbers() -> None:
    wild = np.array([-50.0, 10.0, 1e9])
    counts = FeatureCounts(3, 3, by_label=True).understood(np.concatenate([wild, wild, [-3, 7]]))
    for score in SCORES.values():
        assert np.isfinite(score.of_noisy(counts)).all()


def test_information_gain_without_a_public_number_of_rows_is_refused() -> None:
    private = FeatureMatrix([[1, 0], [0, 1]], [1, 0], neighbours="add-remove")
    assert private.row_bound is None
    with pytest.raises(ArgumentError, match="most_rows"):
        SCORES["information-gain"].of_each(private.protection, most_rows=private.row_bound)
    declared = FeatureMatrix([[1, 0], [0, 1]], [1, 0], neighbours="add-remove", most_rows=50)
    assert SCORES["information-gain"].of_each(declared.protection, most_rows=declared.row_bound)


def test_counts_are_those_of_the_rows() -> None:
    private = FeatureMatrix([[1, 1, 0], [1, 0, 0], [0, 1, 0]], [1, 0, 1])
    found = counted(private._fetch("SELECT * FROM evaluated"))
    assert found.negatives.tolist() == [1, 0, 0]
    assert found.positives.tolist() == [1, 2, 0]
    assert found.rows == (1, 2)


def test_information_gains_are_in_nats_per_row_as_in_the_paper() -> None:
    """At a price that leaves no noise: scikit-learn's mutual information, which is equation (6)."""
    random = np.random.default_rng(6)
    y = random.integers(0, 2, 400)
    X = (random.random((400, 3)) < np.column_stack([0.2 + 0.5 * y, 0.5 - 0.2 * y, 0.3 + 0 * y])) * 1
    rows = FeatureMatrix(X, y)
    bought = ho.features.select(rows, epsilon=10**6, score="information-gain", k=3)
    assert bought.information_gains is not None
    expected = [mutual_info_score(X[:, index], y) for index in bought.indices]
    assert bought.information_gains == pytest.approx(expected, abs=1e-3)
    assert bought.as_dict()["information_gains"] == list(bought.information_gains)
    assert ho.features.select(rows, epsilon=1, k=1).information_gains is None
