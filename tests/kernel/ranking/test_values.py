"""The values: exact, and equal to scikit-learn's where both are defined alike."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.kernel.ranking.sensitivity import (
    ROUNDING,
    _floored_sum,
    area,
    area_of_table,
    average_precision,
    average_precision_negatives_first,
    average_precision_of_table,
    average_precision_of_table_negatives_first,
    difference,
)

scores = st.lists(st.integers(0, 6), max_size=12)


@given(positives=scores, negatives=scores)
@settings(max_examples=200, deadline=None)
def test_the_area_is_its_definition(positives: list[int], negatives: list[int]) -> None:
    terms = [Fraction(int(p > q) + int(p >= q), 2) for p in positives for q in negatives]
    expected = sum(terms, Fraction(0)) / len(terms) if terms else Fraction(1, 2)
    assert area(positives, negatives) == expected
    table = (np.bincount(each, minlength=7) for each in (negatives, positives))
    assert area_of_table(*(np.asarray(each, dtype=np.int64) for each in table)) == expected


@given(positives=scores, negatives=scores)
@settings(max_examples=200, deadline=None)
def test_average_precision_is_its_definition_rounded_down(
    positives: list[int], negatives: list[int]
) -> None:
    terms = [
        Fraction(right, right + sum(q >= p for q in negatives))
        for p in positives
        for right in [sum(each >= p for each in positives)]
    ]
    expected = sum(terms, Fraction(0)) / len(terms) if terms else Fraction(0)
    found = average_precision(positives, negatives)
    assert 0 <= expected - found < ROUNDING
    table = [np.bincount(each, minlength=7) for each in (negatives, positives)]
    assert average_precision_of_table(*table) == found


@given(positives=scores, negatives=scores)
@settings(max_examples=200, deadline=None)
def test_the_papers_average_precision_ranks_negatives_of_a_tie_first(
    positives: list[int], negatives: list[int]
) -> None:
    ranks = [
        i + sum(q >= p for q in negatives) for i, p in enumerate(sorted(positives, reverse=True), 1)
    ]
    terms = [Fraction(i, t) for i, t in enumerate(ranks, 1)]
    expected = sum(terms, Fraction(0)) / len(terms) if terms else Fraction(0)
    found = average_precision_negatives_first(positives, negatives)
    assert 0 <= expected - found < ROUNDING
    table = [np.bincount(each, minlength=7) for each in (negatives, positives)]
    assert average_precision_of_table_negatives_first(*table) == found
    assert found <= average_precision(positives, negatives)


@pytest.mark.parametrize("prevalence", [0.01, 0.5, 0.9])
def test_both_agree_with_scikit_learn_without_ties(prevalence: float) -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score

    source = np.random.default_rng(5)
    label = source.random(4000) < prevalence
    score = source.normal(size=4000) + label
    split = score[label], score[~label]
    assert float(area(*split)) == pytest.approx(roc_auc_score(label, score), abs=1e-12)
    expected = average_precision_score(label, score)
    assert float(average_precision(*split)) == pytest.approx(expected, abs=1e-12)


def test_ties_count_as_in_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score

    source = np.random.default_rng(6)
    label = source.random(500) < 0.4
    score = np.round(source.normal(size=500) + label)
    split = score[label], score[~label]
    assert float(area(*split)) == pytest.approx(roc_auc_score(label, score), abs=1e-12)
    expected = average_precision_score(label, score)
    assert float(average_precision(*split)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rows", [([], []), ([1.0], []), ([], [1.0]), ([1.0], [1.0])])
def test_degenerate_data_have_a_value(rows: tuple[list[float], list[float]]) -> None:
    assert area(*rows) == Fraction(1, 2)
    assert 0 <= average_precision(*rows) <= 1


def test_long_division_is_exact_at_the_largest_ranks() -> None:
    source = np.random.default_rng(7)
    for most in (10, 2**20, 2**33 - 1, 2**40):
        rank = source.integers(1, most, 300, dtype=np.uint64)
        index = np.maximum(1, (rank * source.random(300)).astype(np.uint64))
        pairs = zip(index.tolist(), rank.tolist(), strict=True)
        floors = [(i << 62) // t for i, t in pairs]
        assert _floored_sum(index, rank) == sum(floors)
        times = np.arange(300, dtype=np.uint64)
        many = sum(k * floor for k, floor in enumerate(floors))
        assert _floored_sum(index, rank, times) == many


def test_a_table_of_billions_of_rows_does_not_overflow() -> None:
    table = np.array([3 * 10**9, 10**9]), np.array([10**9, 3 * 10**9])
    n = m = 4 * 10**9
    won = Fraction(10**9 * 3 * 10**9, 2) + 3 * 10**9 * 3 * 10**9 + Fraction(3 * 10**9 * 10**9, 2)
    assert area_of_table(*table) == won / (n * m)
    precision = (Fraction(3, 4) * 3 + Fraction(1, 2)) / 4
    assert 0 <= precision - average_precision_of_table(*table) < ROUNDING


def test_the_difference_of_equal_models_is_one_half() -> None:
    assert difference(Fraction(4, 5), Fraction(4, 5)) == Fraction(1, 2)
    assert difference(Fraction(0), Fraction(1)) == 1
