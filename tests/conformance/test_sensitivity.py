"""Brute force: no pair of small neighbouring data sets is further apart than a statistic claims.

Every data set of up to four rows is laid out in one table and each statistic's own statement runs
over all of them at once, in DuckDB. Then all pairs are compared.
"""

import functools
import itertools
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout.data import sql
from heldout.mechanisms.discrete_laplace import unseal
from heldout.privacy import Neighbours, Protection
from heldout.statistics.base import Statistic, compute, registered

SCORES = (0.0, 5e-324, 0.25, 0.5, float(np.nextafter(0.75, 0)), 1.0)
KINDS = [(label, score) for label in (0, 1) for score in SCORES]
MOST_ROWS = 4
SETS = [
    rows
    for size in range(MOST_ROWS + 1)
    for rows in itertools.combinations_with_replacement(range(len(KINDS)), size)
]
CONTENT = np.array([[rows.count(kind) for kind in range(len(KINDS))] for rows in SETS])

PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2), (True, 3))
]


def named(protection: Protection) -> str:
    return (
        f"{protection.neighbours}-{'unit' if protection.unit else 'row'}-{protection.rows_per_unit}"
    )


CASES = [
    pytest.param(statistic, protection, id=f"{statistic}-{named(protection)}")
    for protection in PROTECTIONS
    for kind in registered()
    for statistic in kind.examples(protection)
]


@pytest.fixture(scope="module")
def connection() -> Any:
    connection = duckdb.connect()
    table = pa.table(
        {
            "which": [which for which, rows in enumerate(SETS) for _ in rows],
            "label": [KINDS[kind][0] for rows in SETS for kind in rows],
            "score": [KINDS[kind][1] for rows in SETS for kind in rows],
        }
    )
    connection.register("incoming", table)
    connection.execute("CREATE TABLE every AS SELECT * FROM incoming")
    return connection


def vectors(connection: Any, statistic: Statistic, *, rows: str, sets: int) -> Any:
    """The statistic of each data set, without the entries that are zero in all of them."""
    answer = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({sets}) AS whole(which),"
        f" LATERAL ({sql.assemble(rows, statistic.body())}) AS answer ORDER BY 1"
    ).fetchnumpy()
    which = answer.pop("which")
    borders = np.searchsorted(which, np.arange(sets + 1))
    seen: dict[int, dict[int, int]] = {}
    for index, (start, end) in enumerate(itertools.pairwise(borders)):
        vector = statistic.read({name: column[start:end] for name, column in answer.items()})
        assert vector.dtype == np.int64, "a statistic is a vector of whole numbers"
        for entry in np.flatnonzero(vector):
            seen.setdefault(int(entry), {})[index] = int(vector[entry])
    dense = np.zeros((sets, len(seen)), dtype=np.int64)
    for column, entries in enumerate(seen.values()):
        dense[list(entries), column] = list(entries.values())
    return dense


_DISTANCES: dict[Statistic, Any] = {}


def distances(connection: Any, statistic: Statistic) -> Any:
    """How far each pair of small data sets is apart."""
    if statistic not in _DISTANCES:
        rows = "SELECT label, score FROM every WHERE every.which = whole.which"
        values = vectors(connection, statistic, rows=rows, sets=len(SETS))
        _DISTANCES[statistic] = sum(
            (np.abs(np.subtract.outer(column, column)) for column in values.T),
            start=np.zeros((len(SETS), len(SETS)), dtype=np.int64),
        )
    return _DISTANCES[statistic]


def are_neighbours(left: Any, arrived: Any, protection: Protection) -> Any:
    """The definition, written again: `left` rows are gone and `arrived` rows are new."""
    most = protection.rows_per_unit
    if protection.neighbours is Neighbours.ADD_REMOVE:
        return (left == 0) & (arrived <= most) | (arrived == 0) & (left <= most)
    if protection.unit:
        return (left <= most) & (arrived <= most)
    return (left == arrived) & (left <= 1)


@functools.cache
def pairs(protection: Protection) -> Any:
    """Which pairs of small data sets are neighbours."""
    left = sum(np.maximum(np.subtract.outer(kind, kind), 0) for kind in CONTENT.T)
    return are_neighbours(left, left.T, protection)


@pytest.mark.parametrize(("statistic", "protection"), CASES)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    connection: Any, statistic: Statistic, protection: Protection
) -> None:
    largest = distances(connection, statistic)[pairs(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


def test_brute_force_notices_a_claim_that_is_too_small(connection: Any) -> None:
    """The suite itself can fail: each claim would be found out if it were smaller by one."""
    protection = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=2)
    one_row_less = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=1)
    statistic = registered()[0].examples(protection)[0]
    assert distances(connection, statistic)[pairs(protection)].max() > statistic.sensitivity(
        one_row_less
    )


@pytest.mark.parametrize("protection", PROTECTIONS, ids=named)
def test_protection_lists_the_changes_that_neighbours_allow(protection: Protection) -> None:
    sizes = np.arange(MOST_ROWS + 1)
    left, arrived = (each.ravel() for each in np.meshgrid(sizes, sizes))
    allowed = are_neighbours(left, arrived, protection) & (left + arrived > 0)
    assert set(protection.changes()) == set(
        zip(left[allowed].tolist(), arrived[allowed].tolist(), strict=True)
    )


# --- raw tables, whose units own more rows than they may keep ------------------------------------

OTHERS = [("a", 0, 0.25), ("b", 1, 0.5), ("a", 1, 1.0), ("a", 0, 0.0)]
UNIT_ROWS = [(0, 0.0), (1, 0.25), (0, 1.0)]
MOST_OWNED = 4
OWNED = [
    rows for size in range(MOST_OWNED + 1) for rows in itertools.product(UNIT_ROWS, repeat=size)
]


@pytest.fixture(scope="module")
def raw(connection: Any) -> Any:
    """For each possible content of one unit, a table of that unit and two others."""
    rows = []
    for which, owned in enumerate(OWNED):
        # Interleaved, so that the unit's rows push the others' to other positions.
        mixed = [("c", *owned[i]) if i < len(owned) else None for i in range(MOST_OWNED)]
        table = [row for pair in zip(OTHERS, mixed, strict=True) for row in pair if row]
        rows += [(which, *row, 100 * which + place) for place, row in enumerate(table)]
    # Row keys are the same for the same row of the others, in whichever table.
    keys = [f"{unit}{score}" if unit != "c" else f"c{key}" for _, unit, _, score, key in rows]
    names = ("which", "person", "outcome", "risk", "place")
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)) | {"visit": keys})
    connection.register("raw_incoming", table)
    connection.execute("CREATE OR REPLACE TABLE raw AS SELECT * FROM raw_incoming ORDER BY place")
    return connection


@pytest.mark.parametrize("row_key", [None, "visit"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_unit_of_many_rows_moves_no_statistic_further_than_claimed(
    raw: Any, most: int, row_key: str | None
) -> None:
    raw.execute("CREATE OR REPLACE TABLE kept(which INTEGER, label INTEGER, score DOUBLE)")
    for which in range(len(OWNED)):
        # One by one: without a row key the order of the rows counts.
        rows = sql.evaluated(
            source=f"(SELECT * FROM raw WHERE raw.which = {which})",
            columns={"label": sql.column("outcome"), "score": sql.column("risk")},
            types={"person": "VARCHAR", "visit": "VARCHAR"},
            unit="person",
            row_key=row_key,
            rows_per_unit=most,
        )
        raw.execute(f"INSERT INTO kept SELECT {which}, label, score FROM ({rows})")
    rows = "SELECT label, score FROM kept WHERE kept.which = whole.which"
    empty = OWNED.index(())
    for relation in Neighbours:
        protection = Protection(neighbours=relation, unit=True, rows_per_unit=most)
        for kind in registered():
            for statistic in kind.examples(protection):
                values = vectors(raw, statistic, rows=rows, sets=len(OWNED))
                claimed = statistic.sensitivity(protection)
                if relation is Neighbours.ADD_REMOVE:
                    distance = np.abs(values - values[empty]).sum(axis=1).max()
                else:
                    distance = max(np.abs(values - each).sum(axis=1).max() for each in values)
                assert distance == claimed, (statistic, relation)


def test_a_unit_of_many_rows_moves_a_real_data_set_no_further_than_claimed() -> None:
    """The same through `Dataset`, on a sample: nothing between it and the statement differs."""
    generator = np.random.default_rng(20240817)
    for _ in range(12):
        most = int(generator.integers(1, 4))
        relation = str(generator.choice(["replace-one", "add-remove"]))
        vectors_of = []
        for change in (0, 1):
            own = 0 if change and relation == "add-remove" else int(generator.integers(0, 8))
            people = [*(unit for unit, _, _ in OTHERS), *["c"] * own]
            outcomes = [*(label for _, label, _ in OTHERS), *generator.integers(0, 2, own).tolist()]
            risks = [*(score for _, _, score in OTHERS), *generator.choice(SCORES, own).tolist()]
            dataset = ho.Dataset(
                {"person": people, "outcome": outcomes, "risk": risks},
                label="outcome",
                score="risk",
                unit="person",
                rows_per_unit=most,
                neighbours=relation,
            )
            examples = [each for kind in registered() for each in kind.examples(dataset.protection)]
            vectors_of.append([unseal(compute(each, dataset)) for each in examples])
        for statistic, first, second in zip(examples, *vectors_of, strict=True):
            claimed = statistic.sensitivity(dataset.protection)
            assert np.abs(first - second).sum() <= claimed, (statistic, relation, most)
