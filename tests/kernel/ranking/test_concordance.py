"""Concordance: its definition, and how far one person moves it, on all small tables."""

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.kernel import Neighbours, Protection, price
from heldout.kernel.loss import Loss
from heldout.kernel.ranking.concordance import (
    PULL_STEPS,
    Concordance,
    ConcordanceMechanism,
    Pulls,
    pulls,
)
from heldout.kernel.statistic import Sealed

Row = tuple[int, int, int]
CENTRES = (Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1))


def is_comparable(first: Row, second: Row) -> bool:
    return first[1] == 1 and (first[0] < second[0] or (first[0] == second[0] and second[1] == 0))


def by_definition(rows: tuple[Row, ...]) -> Pulls:
    won, pairs = [0] * len(rows), [0] * len(rows)
    for i, j in itertools.permutations(range(len(rows)), 2):
        if is_comparable(rows[i], rows[j]):
            term = 1 + (rows[i][2] > rows[j][2]) - (rows[i][2] < rows[j][2])
            for row in (i, j):
                won[row] += term
                pairs[row] += 1
    both = list(zip(won, pairs, strict=True))
    return Pulls(
        len(rows),
        sum(won),
        sum(pairs),
        sum(s * s for s, _ in both),
        sum(s * q for s, q in both),
        sum(q * q for _, q in both),
    )


def test_all_pairs_are_compared_as_the_definition_says() -> None:
    draw = random.Random(0)
    for _ in range(400):
        rows = tuple(
            (draw.randint(0, 4), draw.randint(0, 1), draw.randint(0, 3))
            for _ in range(draw.randint(0, 11))
        )
        columns: Any = list(zip(*rows, strict=True)) or [(), (), ()]
        assert pulls(*columns) == by_definition(rows)


def test_sums_of_squares_are_exact_where_doubles_are_not() -> None:
    rows = 3000
    found = pulls(np.arange(rows), np.ones(rows), -np.arange(rows))
    assert found.value == 1
    assert found.pairs_squared == rows * (rows - 1) ** 2
    assert found.pull(Fraction(0)) == rows


# --- how far one person moves it -----------------------------------------------------------------

KINDS = [*itertools.product(range(2), (0, 1), range(2)), (2, 0, 0), (2, 1, 1)]
MOST = 4


@cache
def tables() -> dict[tuple[int, ...], Pulls]:
    """Return all tables of up to four rows, by the kinds of their rows."""
    found = {}
    for size in range(MOST + 1):
        for content in itertools.combinations_with_replacement(range(len(KINDS)), size):
            found[content] = by_definition(tuple(KINDS[kind] for kind in content))
    return found


def neighbours(protection: Protection) -> Any:
    """Yield all pairs of tables, by what they share: the rest leaves or arrives."""
    by_core: dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    most = protection.rows_per_unit
    for content in tables():
        for leaves in range(min(most, len(content)) + 1):
            for places in itertools.combinations(range(len(content)), len(content) - leaves):
                by_core[tuple(content[place] for place in places)].append((leaves, content))
    for several in by_core.values():
        for (leaves, first), (arrives, second) in itertools.combinations(set(several), 2):
            if protection.both_ways:
                allowed = protection.unit or leaves == arrives
            else:
                allowed = leaves == 0 or arrives == 0
            if allowed:
                yield tables()[first], tables()[second]


PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 2))
]


@pytest.mark.parametrize("protection", PROTECTIONS, ids=Protection.describe)
def test_no_small_neighbours_are_further_apart_than_claimed(protection: Protection) -> None:
    mechanism = ConcordanceMechanism(epsilon=Fraction(1), protection=protection, rows=100)
    k, local = protection.rows_per_unit, mechanism.local
    bounds = {centre: mechanism.pull_sensitivity(centre) for centre in CENTRES}
    known: dict[Pulls, dict[Fraction, int]] = {
        table: {centre: int(table.pull(centre) * PULL_STEPS) for centre in CENTRES}
        for table in set(tables().values())
    }
    for first, second in set(neighbours(protection)):
        assert abs(first.size - second.size) <= k
        rungs = [local.rung(positives=size, negatives=size) for size in (first.size, second.size)]
        assert abs(rungs[0] - rungs[1]) <= 1
        apart = abs(first.value - second.value)
        assert all(apart <= Fraction(1, max(rung, 1)) for rung in rungs)
        for centre, bound in bounds.items():
            assert abs(known[first][centre] - known[second][centre]) <= bound


def test_some_neighbours_are_as_far_apart_as_claimed() -> None:
    protection = Protection(neighbours=Neighbours.REPLACE_ONE)
    # Five events and the last row is at the top or at the bottom of all: 4 of 10 pairs.
    others = [(time, 1, 5 - time) for time in range(1, 5)]
    first, second = (by_definition(((0, 1, score), *others)) for score in (9, -9))
    assert first.size == 2
    assert first.value - second.value == Fraction(4, 10)
    assert abs(first.value - second.value) <= 1 / Fraction(first.size)
    largest = max(
        abs(one.value - other.value) * min(Fraction(one.pairs, 2 * (one.rows - 1)), 10)
        for one, other in neighbours(protection)
        if one.size >= 1 and other.size >= 1
    )
    assert largest == 1


def test_two_rows_of_a_unit_pull_nearly_as_far_as_claimed_and_further_than_one() -> None:
    others = [(time, 1, -time) for time in range(1, 19)]
    best, worst = (
        by_definition(((-1, 1, sign * 101), (0, 1, sign * 100), *others)) for sign in (1, -1)
    )
    protection = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=2)
    mechanism = ConcordanceMechanism(epsilon=Fraction(1), protection=protection, rows=20)
    moved = (best.pull(Fraction(0)) - worst.pull(Fraction(0))) * PULL_STEPS
    assert 0.9 * mechanism.pull_sensitivity(Fraction(0)) < moved
    assert moved <= mechanism.pull_sensitivity(Fraction(0))


def test_a_row_changes_its_own_group_alone() -> None:
    statistic = Concordance().of_groups(2)
    columns = {
        "member": np.array([0, 0, 1, 1, 1]),
        "time": np.array([1.0, 2, 1, 2, 3]),
        "event": np.array([1, 1, 1, 0, 1]),
        "score": np.array([0.3, 0.2, 0.1, 0.5, 0.4]),
    }
    before = statistic.read(columns)
    assert len(before) == 2
    for row in range(5):
        rest = np.arange(5) != row
        after = statistic.read({name: column[rest] for name, column in columns.items()})
        assert after[1 - columns["member"][row]] == before[1 - columns["member"][row]]
        assert after[columns["member"][row]].rows == before[columns["member"][row]].rows - 1


def test_the_three_parts_cost_epsilon() -> None:
    for protection in PROTECTIONS:
        mechanism = ConcordanceMechanism(epsilon=Fraction(2, 3), protection=protection, rows=50)
        assert price(mechanism.event()) == Loss.pure(Fraction(2, 3))
        for units in (0, 2**39, 2**40):
            assert price(mechanism.pull_look(units).event()) == Loss.pure(Fraction(2, 15))


def test_noise_is_added_to_all_three_numbers() -> None:
    protection = Protection(neighbours=Neighbours.REPLACE_ONE)
    mechanism = ConcordanceMechanism(epsilon=Fraction(1), protection=protection, rows=100)
    table = by_definition(tuple((time, 1, time % 3) for time in range(20)))
    draws = np.array([mechanism.sample(Sealed(table)) for _ in range(8)])
    assert all(len(set(column)) > 1 for column in draws.T.tolist())


# --- what the answer means -----------------------------------------------------------------------


@pytest.mark.chance(1e-9)  # the noise is within 0.001 but for exp(-400)
def test_a_risk_that_orders_all_events_has_a_concordance_of_one() -> None:
    times = list(range(1, 1001))
    rows = {"t": times, "e": [1, 0] * 500, "p": [-time for time in times], "g": ["a", "b"] * 500}
    dataset = ho.Dataset(rows, time="t", event="e", score="p", groups={"g": ["a", "b"]})
    session = ho.Session(dataset, budget=ho.Budget(epsilon=200))
    release = session.concordance(epsilon=100)
    assert release.value == pytest.approx(1, abs=0.01)
    assert release.interval()[1] == pytest.approx(1, abs=0.01)
    assert "concordance" in str(release)


def test_rows_without_a_risk_cannot_be_ranked() -> None:
    dataset = ho.Dataset({"t": [1, 2], "e": [1, 1]}, time="t", event="e")
    with pytest.raises(ho.errors.ArgumentError, match="score="):
        ho.Session(dataset, budget=ho.Budget(epsilon=1)).concordance(epsilon=1)
