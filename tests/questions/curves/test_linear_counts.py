"""Flat, cumulative, wavelet and tree counts: sensitivity, fit and stated noise."""

from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel.noise.tables import (
    Cumulative,
    Flat,
    LinearCounts,
    Tree,
    Wavelet,
    branching_for,
    height_for,
)

KINDS: list[tuple[type[LinearCounts], dict[str, Any]]] = [
    (Flat, {}),
    (Cumulative, {}),
    (Wavelet, {}),
    (Tree, {}),
    (Tree, {"branching": 2}),
    (Tree, {"branching": 3}),
]
each_kind = pytest.mark.parametrize(
    ("kind", "options"), KINDS, ids=lambda value: getattr(value, "name", str(value))
)
some_bins = pytest.mark.parametrize("bins", [1, 2, 3, 5, 8, 9, 20])


def _made(
    kind: type[LinearCounts], options: dict[str, Any], bins: int, moved: int = 1
) -> LinearCounts:
    return kind(bins=bins, epsilon=Fraction(1), moved=moved, **options)


def _matrix(counts: LinearCounts, bins: int) -> Any:
    """The queries as a matrix, one column a bin."""
    return np.stack([counts.queries(row) for row in np.eye(bins, dtype=np.int64)], axis=1)


def _fit(counts: LinearCounts, bins: int) -> Any:
    """The fit as a matrix, one column a query."""
    queries = len(counts.queries(np.zeros(bins, dtype=np.int64)))
    return np.stack([counts.solve(row, bins=bins) for row in np.eye(queries)], axis=1)


@each_kind
@some_bins
def test_one_row_moves_the_queries_by_the_weight_and_no_more(
    kind: type[LinearCounts], options: dict[str, Any], bins: int
) -> None:
    counts = _made(kind, options, bins)
    assert np.abs(_matrix(counts, bins)).sum(axis=0).max() == counts.weight


@each_kind
def test_rows_that_leave_and_arrive_move_the_queries_by_moved_times_weight_at_most(
    kind: type[LinearCounts], options: dict[str, Any]
) -> None:
    bins, moved = 5, 2
    counts = _made(kind, options, bins, moved)
    start = np.array([3, 2, 2, 4, 2])
    largest = 0
    for gone in combinations_with_replacement(range(bins), 1):
        for new in combinations_with_replacement(range(bins), 1):
            other = start.copy()
            np.add.at(other, list(gone), -1)
            np.add.at(other, list(new), 1)
            change = np.abs(counts.queries(other) - counts.queries(start)).sum()
            largest = max(largest, int(change))
    assert 0 < largest <= moved * counts.weight
    assert counts.scale == moved * counts.weight


@each_kind
@some_bins
def test_queries_are_whole_and_as_many_as_booked(
    kind: type[LinearCounts], options: dict[str, Any], bins: int
) -> None:
    counts = _made(kind, options, bins)
    answers = counts.queries(np.arange(bins))
    assert answers.dtype == np.int64
    assert len(answers) == counts.dimension
    (event,) = counts.events(classes=2)
    assert event.parameters["dimension"] == str(2 * counts.dimension)


@each_kind
@some_bins
def test_the_fit_to_exact_answers_is_exact(
    kind: type[LinearCounts], options: dict[str, Any], bins: int
) -> None:
    counts = _made(kind, options, max(bins, 9))
    exact = np.arange(bins) ** 2 + 1
    found = counts.solve(counts.queries(exact), bins=bins)
    if kind is not Cumulative or bins == counts.bins:
        np.testing.assert_allclose(found, exact)


@some_bins
@pytest.mark.parametrize("branching", [None, 2, 3, 7])
def test_the_tree_is_fitted_by_least_squares(bins: int, branching: int | None) -> None:
    counts = Tree(bins=bins, epsilon=Fraction(1), moved=1, branching=branching)
    matrix = _matrix(counts, bins)
    np.testing.assert_allclose(_fit(counts, bins), np.linalg.pinv(matrix), atol=1e-12)


@each_kind
@pytest.mark.parametrize(("bins", "most"), [(1, 1), (4, 4), (7, 7), (8, 8), (5, 13), (20, 20)])
def test_the_stated_deviations_are_those_of_the_fit(
    kind: type[LinearCounts], options: dict[str, Any], bins: int, most: int
) -> None:
    counts = _made(kind, options, bins if kind is Cumulative else most)
    fit = _fit(counts, bins)
    above = np.cumsum(np.vstack([fit, np.zeros(fit.shape[1])])[::-1], axis=0)[::-1]
    bin_deviation, above_deviation = counts.deviations(bins=bins)
    np.testing.assert_allclose(bin_deviation, np.sqrt((fit**2).sum(axis=1)), atol=1e-9)
    np.testing.assert_allclose(above_deviation, np.sqrt((above**2).sum(axis=1)), atol=1e-7)


@pytest.mark.chance(2e-6, "5 deviations of the mean are 6e-7; 20% of a spread are 6 and more")
@pytest.mark.slow
@each_kind
def test_drawn_counts_have_the_stated_spread(
    kind: type[LinearCounts], options: dict[str, Any]
) -> None:
    counts, exact = _made(kind, options, 8), np.array([9, 0, 0, 4, 100, 1, 2, 3])
    draws = [counts.draw(exact) for _ in range(1000)]
    errors = np.stack([each.counts - exact for each in draws])
    ratio = np.sqrt((errors**2).mean(axis=0)) / draws[0].bin_deviation
    assert 0.85 < np.sqrt((ratio**2).mean()) < 1.15
    totals = errors.sum(axis=1)
    assert 0.8 < totals.std() / draws[0].above_deviation[0] < 1.25
    assert abs(totals.mean()) < 5 * totals.std() / 1000**0.5


def test_hb_takes_the_branching_of_least_variance() -> None:
    assert branching_for(1024) == 32
    assert [height_for(9, 3), height_for(10, 3), height_for(1, 2)] == [2, 3, 1]


def test_an_epsilon_of_zero_is_refused() -> None:
    with pytest.raises(ArgumentError, match="positive"):
        Flat(bins=2, epsilon=Fraction(0), moved=1)
    with pytest.raises(ArgumentError, match="branching"):
        Tree(bins=2, epsilon=Fraction(1), moved=1, branching=1)
