"""Pairs that share a cell: how far one person moves their share, and what it bounds."""

import importlib
import importlib.util
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import chain, product
from typing import Any

import pytest
from tests.kernel.ranking import small_data as small

from heldout.kernel.neighbours import Protection
from heldout.kernel.ranking.sensitivity import (
    ROUNDING,
    AreaSensitivity,
    area_of_table,
    average_precision_of_table,
    average_precision_of_table_negatives_first,
    tied_of_table,
)
from heldout.questions.ranking.release import bin_ties, largest_ties


@cache
def tied(groups: Any) -> Fraction:
    """The definition, pair by pair."""
    positives = [cell for cell, (_, count) in enumerate(groups) for _ in range(count)]
    negatives = [cell for cell, (count, _) in enumerate(groups) for _ in range(count)]
    pairs = list(product(positives, negatives))
    return Fraction(sum(a == b for a, b in pairs), len(pairs)) if pairs else Fraction(0)


def all_data(rows: int) -> Iterator[Any]:
    return chain.from_iterable(small.data_sets(each) for each in range(rows + 1))


def columns(groups: Any) -> tuple[list[int], list[int]]:
    return [each[0] for each in groups], [each[1] for each in groups]


def test_the_tied_share_is_its_definition() -> None:
    for groups in all_data(6):
        assert tied_of_table(*columns(groups)) == tied(groups)
    assert tied_of_table([2**31, 1], [2**31, 0]) == Fraction(2**31, 2**31 + 1)


@pytest.mark.parametrize(
    "protection",
    [
        Protection(neighbours="replace-one"),
        Protection(neighbours="add-remove"),
        Protection(neighbours="replace-one", unit=True, rows_per_unit=2),
    ],
    ids=str,
)
def test_one_row_moves_the_tied_share_like_an_area(protection: Protection) -> None:
    k = protection.rows_per_unit
    found = small.spread_by_counts(
        tied,
        all_data(7 - k),
        most_rows=k,
        both_ways=protection.both_ways,
        equal_sizes=protection.row_count_is_public,
    )
    local = AreaSensitivity(protection=protection)
    largest: dict[int, Fraction] = {}
    for ((n, m), _), move in found.items():
        assert move <= Fraction(local.upper(local.rung(positives=n, negatives=m)))
        largest[min(n, m)] = max(move, largest.get(min(n, m), Fraction(0)))
    if k == 1 and protection.both_ways:
        assert largest[2] == Fraction(1, 2)  # attained: a smaller bound would be wrong


def refinements(groups: Any) -> Iterator[Any]:
    """Every ranking of exact scores that falls into these cells."""
    within = [
        [each for each in small.data_sets(sum(cell)) if small.counts(each) == cell[::-1]]
        for cell in groups
    ]
    return (tuple(chain.from_iterable(chosen)) for chosen in product(*within))


def test_no_order_within_cells_leaves_the_bound() -> None:
    reached = 0
    for groups in all_data(6):
        n, m = small.counts(groups)
        if not n or not m:
            continue
        area, half = small.area(groups), tied(groups) / 2
        exact = [small.area(each) for each in refinements(groups)]
        assert max(abs(each - area) for each in exact) == half
        assert half <= largest_ties((float(area), float(area))) + 1e-12
        reached += half == min(area, 1 - area)
        # Negatives first counts ties against the model: no order gives less.
        least = min(small.precision(each) for each in refinements(groups))
        assert least == small.precision(groups)
    assert reached > 100


def test_bins_of_cells_tie_at_least_as_many_pairs() -> None:
    for groups in all_data(5):
        n, m = small.counts(groups)
        for cut in range(1, len(groups)) if n and m else ():
            false = Fraction(sum(each[0] for each in groups[cut:]), m)
            true = Fraction(sum(each[1] for each in groups[cut:]), n)
            exact = ([float(false)], [float(true)])
            assert bin_ties(exact, exact) >= float(tied(groups)) - 1e-12
            # Wider limits allow more.
            wider = ([max(0.0, float(false) - 0.1)], [max(0.0, float(true) - 0.1)])
            assert bin_ties(wider, exact) >= bin_ties(exact, exact)


@pytest.mark.parametrize("chunk", [1, 2, 3, 2**20])
def test_a_table_has_the_metrics_of_its_rows_however_they_are_cut(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("heldout.kernel.ranking.sensitivity")
    monkeypatch.setattr(module, "_CHUNK", chunk)
    for groups in all_data(6):
        assert area_of_table(*columns(groups)) == small.area(groups)
        found = average_precision_of_table(*columns(groups))
        assert 0 <= small.grouped_precision(groups) - found < ROUNDING
        found = average_precision_of_table_negatives_first(*columns(groups))
        assert 0 <= small.precision(groups) - found < ROUNDING
