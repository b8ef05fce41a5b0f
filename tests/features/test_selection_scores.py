"""Every score's sensitivity, by brute force over all small neighbouring data sets."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from heldout.errors import ArgumentError
from heldout.features.matrix import FeatureMatrix
from heldout.features.scores import SCORES, FeatureCounts, FeatureScores, Score, counted
from heldout.privacy.neighbours import Neighbours, Protection

Row = tuple[frozenset[int], int]
FEATURES = 3
REPLACE = Protection(neighbours=Neighbours.REPLACE_ONE)
ADD = Protection(neighbours=Neighbours.ADD_REMOVE)
PAIRS = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=2)
ADD_PAIRS = Protection(neighbours=Neighbours.ADD_REMOVE, unit=True, rows_per_unit=2)
PROTECTIONS = [REPLACE, ADD, PAIRS, ADD_PAIRS]


def rows(most: int) -> list[Row]:
    sets = [
        frozenset(each)
        for size in range(most + 1)
        for each in itertools.combinations(range(FEATURES), size)
    ]
    return [(each, label) for each in sets for label in (0, 1)]


def columns(data: tuple[Row, ...]) -> dict[str, object]:
    dense = np.zeros((len(data), FEATURES), dtype=np.int8)
    for place, (members, _) in enumerate(data):
        dense[place, sorted(members)] = 1
    label = np.array([each[1] for each in data], dtype=np.int64)
    return {"label": label, "matrix": csr_array(dense)}


def neighbours(protection: Protection, most_features: int, most_rows: int):
    """Each pair once: the common rows, then those that only one of the two has."""
    kinds = rows(most_features)
    for leave, arrive in protection.changes():
        for size in range(most_rows - max(leave, arrive) + 1):
            for common in itertools.combinations_with_replacement(kinds, size):
                for gone in itertools.combinations_with_replacement(kinds, leave):
                    for new in itertools.combinations_with_replacement(kinds, arrive):
                        yield common + gone, common + new


def distances(score: Score, protection: Protection, most_features: int, most_rows: int):
    """The largest move of one score, of all together, and whether scores ever part ways."""

    @cache
    def scored(data: tuple[Row, ...]) -> np.ndarray:
        return FeatureScores(score, most_rows).read(columns(data))

    one = together = 0
    parted = False
    for first, second in neighbours(protection, most_features, most_rows):
        moved = scored(tuple(sorted(second, key=str))) - scored(tuple(sorted(first, key=str)))
        one, together = max(one, np.abs(moved).max()), max(together, np.abs(moved).sum())
        parted = parted or bool((moved > 0).any() and (moved < 0).any())
    return int(one), int(together), parted


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: p.describe()[:34])
@pytest.mark.parametrize("name", ["total-count", "difference-count", "purity-index"])
def test_no_small_neighbours_are_further_apart_than_a_score_says_and_some_are_that_far(
    name: str, protection: Protection
) -> None:
    score = SCORES[name]
    most_features = 1 if protection.unit else 2
    most_rows = 3 + protection.unit
    one, together, parted = distances(score, protection, most_features, most_rows)
    assert one == score.of_each(protection, most_rows=None)
    bound = score.of_all(
        protection, features=FEATURES, features_per_row=most_features, most_rows=None
    )
    assert together == bound
    assert not (score.monotone(protection) and parted)


@pytest.mark.parametrize("protection", [REPLACE, ADD], ids=str)
def test_information_gain_moves_at_most_as_far_as_proven(protection: Protection) -> None:
    score = SCORES["information-gain"]
    for most_rows in (2, 3):
        one, together, _ = distances(score, protection, 2, most_rows)
        claimed = score.of_each(protection, most_rows=most_rows)
        assert one <= claimed
        assert one >= claimed - 19 - 9, "the bound is attained, up to the rounding"
        assert together <= score.of_all(
            protection, features=FEATURES, features_per_row=2, most_rows=most_rows
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
    most_features = 1 if protection.unit else 2
    statistic = FeatureCounts(FEATURES, most_features, by_label)

    @cache
    def vector(data: tuple[Row, ...]) -> np.ndarray:
        return statistic.read(columns(data))

    worst = max(
        int(np.abs(vector(second) - vector(first)).sum())
        for first, second in neighbours(protection, most_features, 2)
    )
    assert worst == statistic.sensitivity(protection)


def test_a_bound_that_is_smaller_would_be_caught() -> None:
    """The paper's footnote: at most 2 s features change if neighbours have one size."""
    score, most_features = SCORES["purity-index"], 1
    _, together, _ = distances(score, REPLACE, most_features, 2)
    assert together == 2 * FEATURES > 2 * most_features


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
