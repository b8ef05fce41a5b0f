"""Thresholds with a promise: penalties brute-forced, cuts counted by hand, promises simulated."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.chances import louder

import heldout as ho
from heldout import questions as q
from heldout.data import sql
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection, price
from heldout.kernel.loss import Loss
from heldout.kernel.statistic import OfEachGroup
from heldout.questions.thresholds import CutMechanism, QuantileChoice, ValueTable

PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]
CELLS = 3
# A row is in one of three cells of the class, or of the other class (3).
TABLES = [
    rows
    for size in range(5)
    for rows in itertools.combinations_with_replacement(range(CELLS + 1), size)
]


def counts(rows: tuple[int, ...]) -> Any:
    return np.array([rows.count(cell) for cell in range(CELLS)])


def neighbours(protection: Protection) -> Any:
    by_core: dict[tuple[int, ...], set[tuple[int, tuple[int, ...]]]] = defaultdict(set)
    for rows in TABLES:
        for leaves in range(min(protection.rows_per_unit, len(rows)) + 1):
            for core in itertools.combinations(rows, len(rows) - leaves):
                by_core[core].add((leaves, rows))
    for several in by_core.values():
        for (leaves, first), (arrives, second) in itertools.combinations(several, 2):
            both = protection.unit or leaves == arrives
            if both if protection.both_ways else 0 in (leaves, arrives):
                yield first, second


@pytest.mark.parametrize("protection", PROTECTIONS, ids=Protection.describe)
@pytest.mark.parametrize("share", ["1/2", "9/10", "1/4"])
def test_no_neighbours_move_a_penalty_further_than_claimed_and_some_do_as_far(
    protection: Protection, share: str
) -> None:
    choice = QuantileChoice(
        epsilon=Fraction(1), share=Fraction(share), protection=protection, more=1, margin=0
    )
    known = {rows: choice.penalties(counts(rows)) for rows in TABLES}
    moved = [np.abs(known[first] - known[second]).max() for first, second in neighbours(protection)]
    assert max(moved) <= choice.sensitivity, "the claim is too small: not private"
    assert max(moved) == choice.sensitivity, "the claim is too large: noise for nothing"


def test_the_chosen_cell_has_the_stated_law_of_neighbours() -> None:
    for protection in PROTECTIONS:
        choice = QuantileChoice(epsilon=Fraction(1), share=Fraction(1, 2), protection=protection)
        known = {}
        for rows in TABLES:
            weights = np.exp(-float(choice.rate) * choice.penalties(counts(rows)))
            known[rows] = weights / weights.sum()
        worst = max(
            np.abs(np.log(known[first] / known[second])).max()
            for first, second in neighbours(protection)
        )
        assert worst <= 1 + 1e-9


def test_some_cell_always_has_no_penalty() -> None:
    protection = Protection(neighbours="replace-one")
    for share, margin in itertools.product(("0", "1/2", "1"), (0, 1, 9)):
        choice = QuantileChoice(
            epsilon=Fraction(1), share=Fraction(share), protection=protection, margin=margin
        )
        assert all(choice.penalties(counts(rows)).min() == 0 for rows in TABLES)


def test_the_choice_and_the_counts_cost_epsilon() -> None:
    for protection in PROTECTIONS:
        choice = QuantileChoice(epsilon=Fraction(4, 5), share=Fraction(1, 2), protection=protection)
        cut = CutMechanism(choice=choice, classes=2, by_class=1, cells=5)
        assert price(cut.event()) == Loss.pure(Fraction(1))


# --- tables of a value ---------------------------------------------------------------------------

VALUES = (0.0, 0.3, 0.5, 1.0)


@pytest.mark.parametrize("protection", PROTECTIONS, ids=Protection.describe)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    protection: Protection,
) -> None:
    statistic = ValueTable(ends=(0.0, 1.0), cells=4)
    connection = duckdb.connect()
    known = {}
    for rows in TABLES:
        table = pa.table({"value_0": pa.array([VALUES[cell] for cell in rows], pa.float64())})
        connection.register("incoming", table)
        text = sql.assemble("SELECT * FROM incoming", statistic.body())
        known[rows] = statistic.read(connection.execute(text).fetchnumpy())
        assert known[rows].sum() == len(rows)
    largest = max(
        np.abs(known[first] - known[second]).sum() for first, second in neighbours(protection)
    )
    assert largest == statistic.sensitivity(protection)


def test_a_row_moves_one_cell_of_its_own_groups_table() -> None:
    statistic = ValueTable(ends=(0.0, 1.0), cells=4).of_groups(2)
    assert isinstance(statistic, OfEachGroup)
    columns = {"member": np.array([0, 1]), "cell": np.array([1, 3]), "n": np.array([5, 7])}
    first, second = statistic.read(columns)
    assert first.tolist() == [0, 5, 0, 0]
    assert second.tolist() == [0, 0, 0, 7]
    columns["n"] = np.array([6, 7])
    more, same = statistic.read(columns)
    assert (more - first).tolist() == [0, 1, 0, 0]
    assert same.tolist() == second.tolist()


def test_a_value_is_in_the_cell_that_the_statement_counts_it_in() -> None:
    statistic = ValueTable(ends=(-1.0, 3.0), cells=7)
    connection = duckdb.connect()
    for value in np.linspace(-1, 3, 57).tolist():
        connection.register("incoming", pa.table({"value_0": [value]}))
        text = sql.assemble("SELECT * FROM incoming", statistic.body())
        counted = statistic.read(connection.execute(text).fetchnumpy())
        assert counted[statistic.cell(value)] == 1


# --- what answers mean ---------------------------------------------------------------------------


def scored(relation: str = "replace-one") -> ho.Session:
    places = np.arange(1000) / 1000
    rows = {"y": [1] * 1000 + [0] * 1000, "p": np.concatenate([places, places / 2])}
    dataset = ho.Dataset(rows, label="y", score="p", neighbours=relation)
    return ho.Session(dataset, budget=ho.Budget(epsilon=1000))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.chance(1e-12)  # thirty rows off at a rate of 33 a row and 65,537 cells
def test_a_threshold_reaches_the_recall_that_was_asked_for(relation: str) -> None:
    release = scored(relation).threshold_for(recall=0.9, epsilon=100)
    assert release.threshold == pytest.approx(0.1, abs=0.03)
    assert float(release.recall) == pytest.approx(0.9, abs=0.03)
    assert float(release.specificity) == pytest.approx(0.2, abs=0.06)
    assert next(iter(release.measures)) == "recall"
    assert release.as_dict()["threshold"] == release.threshold
    assert "recall 0.9" in str(release)


@pytest.mark.chance(louder(0, 3, 40))
def test_a_threshold_reaches_the_specificity_that_was_asked_for() -> None:
    release = scored().threshold_for(specificity=0.9, epsilon=100)
    assert release.threshold == pytest.approx(0.45, abs=0.015)
    assert float(release.specificity) == pytest.approx(0.9, abs=0.03)


@pytest.mark.chance(louder(0, 6, 20))
def test_the_threshold_calls_the_rows_that_were_counted() -> None:
    session = scored()
    release = session.threshold_for(recall=0.5, epsilon=100)
    there = session.confusion(threshold=release.threshold, epsilon=100)
    assert float(there.recall) == pytest.approx(float(release.recall), abs=0.005)


def test_one_measure_is_asked_for_and_recall_unless_another_is_named() -> None:
    assert q.ThresholdFor(epsilon=1) == q.ThresholdFor(epsilon=1, recall=0.9)
    with pytest.raises(ArgumentError, match="one of recall"):
        q.ThresholdFor(epsilon=1, recall=0.9, specificity=0.9)


@pytest.mark.chance(1e-6)  # the promise holds with a margin of six deviations
@pytest.mark.slow
def test_new_rows_are_covered_as_promised() -> None:
    random = np.random.default_rng(3)
    covered = []
    for _ in range(40):
        values = random.beta(2, 5, 400)
        dataset = ho.Dataset({"a": values}, values={"a": (0, 1)})
        release = ho.Session(dataset, budget=ho.Budget(epsilon=4)).conformal(
            "a", alpha=0.1, epsilon=4
        )
        fresh = random.beta(2, 5, 500)
        covered.append(np.mean([release.covers(value) for value in fresh]))
    assert 0.9 <= np.mean(covered) <= 0.97


def test_too_few_rows_give_a_threshold_that_covers_everything() -> None:
    dataset = ho.Dataset({"a": [0.1, 0.2]}, values={"a": (0, 1)})
    release = ho.Session(dataset, budget=ho.Budget(epsilon=1)).conformal("a", epsilon=1)
    margin = release.parameters["margin"]
    assert margin > 2
    assert release.promised == pytest.approx(0.9)
    assert release.covers(1.0) == math.isinf(release.threshold)


def test_a_margin_that_64_bits_do_not_hold_is_refused_before_it_is_paid() -> None:
    rows = ho.Dataset({"a": [0.1, 0.5, 0.9]}, values={"a": (0, 1)})
    session = ho.Session(rows, budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="epsilon must be larger"):
        session.conformal(column="a", alpha=0.123457, epsilon="1e-12")
    assert session.spent == Loss.pure(0)
