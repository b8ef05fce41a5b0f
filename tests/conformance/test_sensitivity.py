"""Brute force: no pair of small neighbouring data sets is further apart than a statistic claims.

Every data set of up to four rows is laid out in one table and each statistic's own statement runs
over all of them at once, in DuckDB. Then all pairs are compared.
"""

import functools
import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout import kernel, questions
from heldout.data import sql
from heldout.kernel import Neighbours, Protection
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import (
    METRICS,
    STEPS,
    InfluenceMoments,
    RankedRows,
    RankedTable,
    ScoreTable,
    TiedPairs,
)
from heldout.kernel.statistic import BoundedSum, Statistic, compute, registered
from heldout.questions.counts import ThresholdCounts

for _room in (kernel, questions):  # statistics live in the kernel and in families
    for _module in pkgutil.walk_packages(_room.__path__, f"{_room.__name__}."):
        importlib.import_module(_module.name)
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
            # The other model's score of the same row.
            "rival": [SCORES[5 * kind % len(SCORES)] for rows in SETS for kind in rows],
        }
    )
    connection.register("incoming", table)
    connection.execute("CREATE TABLE every AS SELECT * FROM incoming")
    return connection


def answers(connection: Any, statistic: Statistic, *, rows: str, sets: int) -> Iterator[Any]:
    """The statistic of each data set, one after the other."""
    answer = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({sets}) AS whole(which),"
        f" LATERAL ({sql.assemble(rows, statistic.body())}) AS answer ORDER BY 1"
    ).fetchnumpy()
    which = answer.pop("which")
    borders = np.searchsorted(which, np.arange(sets + 1))
    for start, end in itertools.pairwise(borders):
        yield statistic.read({name: column[start:end] for name, column in answer.items()})


def vectors(connection: Any, statistic: Statistic, *, rows: str, sets: int) -> Any:
    """The statistic of each data set, without the entries that are zero in all of them."""
    seen: dict[int, dict[int, int]] = {}
    for index, vector in enumerate(answers(connection, statistic, rows=rows, sets=sets)):
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
    """The definition, written again: `left` rows are gone and `arrived` rows are new.

    Label neighbours have the same rows but for labels, which their counts do not tell.
    """
    most = protection.rows_per_unit
    if protection.neighbours is Neighbours.LABEL:
        return (left == arrived) & (left <= most)
    if protection.neighbours is Neighbours.ADD_REMOVE:
        return (left == 0) & (arrived <= most) | (arrived == 0) & (left <= most)
    if protection.unit:
        return (left <= most) & (arrived <= most)
    return (left == arrived) & (left <= 1)


@functools.cache
def pairs(protection: Protection) -> Any:
    """Which pairs of small data sets are neighbours."""
    left = sum(np.maximum(np.subtract.outer(kind, kind), 0) for kind in CONTENT.T)
    near = are_neighbours(left, left.T, protection)
    if protection.neighbours is Neighbours.LABEL:
        public = CONTENT[:, : len(SCORES)] + CONTENT[:, len(SCORES) :]
        near &= (public[:, None] == public[None]).all(axis=2)
    return near


@pytest.mark.parametrize(("statistic", "protection"), CASES)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    connection: Any, statistic: Statistic, protection: Protection
) -> None:
    largest = distances(connection, statistic)[pairs(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    if protection.only_labels and largest < statistic.sensitivity(protection):
        wider = Protection(
            neighbours="replace-one", unit=True, rows_per_unit=protection.rows_per_unit
        )
        assert statistic.sensitivity(protection) <= statistic.sensitivity(wider)
        return  # a label change is a replacement, and the bound is that of replacements
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


# --- every statistic is in the suite, or says which test stands in for it ------

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("kind", registered(), ids=lambda kind: kind.__name__)
def test_every_statistic_is_brute_forced_here_or_names_the_test_that_does_so(
    kind: type[Statistic],
) -> None:
    examples = [each for protection in PROTECTIONS for each in kind.examples(protection)]
    if examples:
        assert kind.shown_by is None, "one of the two"
        assert all(type(each) is kind for each in examples)
        return
    assert kind.shown_by, f"{kind.__name__} gives no examples() and names no test in shown_by"
    file, _, test = kind.shown_by.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"\ndef {test}(" in text, f"there is no {kind.shown_by}"
    assert re.search(rf"\b{kind.__name__}\b", text), f"{file} does not speak of {kind.__name__}"


def test_statistics_live_in_their_room_or_in_a_family_and_have_a_contract() -> None:
    for module in pkgutil.walk_packages(ho.__path__, "heldout."):
        if not module.name.startswith("heldout.__main__"):
            importlib.import_module(module.name)
    found = registered()
    assert len(found) > 12
    for kind in found:
        assert kind.__module__.startswith(("heldout.kernel.", "heldout.questions.")), kind
        assert f"[claim: {kind.claim}]" in (kind.__doc__ or ""), kind


def test_a_statistic_is_registered_by_being_defined() -> None:
    class Unheard(Statistic):
        claim = "none"

        def body(self) -> str:
            return "SELECT 1"

        def read(self, columns: Any) -> Any:
            return columns

    assert Statistic._defined.pop() is Unheard
    with pytest.raises(TypeError):
        Unheard().sensitivity(PROTECTIONS[0])


# --- rankings, whose sensitivity is local ------

GRID = ScoreTable(score_range=(0, 1), cells=4)
RANKINGS: list[tuple[RankedRows | RankedTable | TiedPairs, str]] = [
    *((RankedRows(name), name) for name in METRICS),
    *((RankedTable(name, GRID), name) for name in METRICS),
    (TiedPairs(GRID), "auc"),
]


@pytest.mark.parametrize(("statistic", "metric"), RANKINGS, ids=str)
def test_no_small_neighbours_are_ranked_further_apart_than_their_rung_allows(
    connection: Any, statistic: Statistic, metric: str
) -> None:
    rows = "SELECT label, score, rival FROM every WHERE every.which = whole.which"
    found = list(answers(connection, statistic, rows=rows, sets=len(SETS)))
    values = np.array([float(each.value) for each in found])
    moved = np.abs(np.subtract.outer(values, values))
    for protection in PROTECTIONS:
        local = METRICS[metric].bound(protection=protection)
        rungs = [local.rung(positives=e.positives, negatives=e.negatives) for e in found]
        bounds = np.array([local.upper(rung) for rung in rungs])
        steps = np.abs(np.subtract.outer(rungs, rungs))
        near = pairs(protection)
        assert steps[near].max() <= 1, "neighbours stand on adjacent rungs"
        most = np.minimum.outer(bounds, bounds)
        assert (moved[near] <= most[near] + 1e-12).all(), (protection, metric)
        # Two average precisions rarely move apart: half of their difference moves by 3/8.
        assert moved[near].max() > 0.35, "some are far apart"


@pytest.mark.parametrize(
    "statistic",
    [
        ScoreTable(score_range=(0, 1), cells=2, column="rival"),
        InfluenceMoments(
            cuts=(0.25,),
            rival_cuts=(0.5, 0.75),
            negatives=(0, -STEPS, STEPS // 8, 5, 1, 0),
            positives=(STEPS, 0, -1, 0, -STEPS // 8, -STEPS),
        ),
    ],
    ids=lambda statistic: type(statistic).__name__,
)
def test_two_models_cells_move_no_further_than_claimed(
    connection: Any, statistic: Statistic
) -> None:
    rows = "SELECT label, score, rival FROM every WHERE every.which = whole.which"
    values = vectors(connection, statistic, rows=rows, sets=len(SETS))
    moved = sum(np.abs(np.subtract.outer(column, column)) for column in values.T)
    for protection in PROTECTIONS:
        largest, claimed = moved[pairs(protection)].max(), statistic.sensitivity(protection)
        assert largest <= claimed, protection
        assert largest == claimed or protection.only_labels, protection


def test_brute_force_notices_a_claim_that_is_too_small(connection: Any) -> None:
    """The suite itself can fail: each claim would be found out if it were smaller by one."""
    protection = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=2)
    one_row_less = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=1)
    statistic = ThresholdCounts(thresholds=(0.5,))
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


# --- raw tables, whose units own more rows than they may keep ------

OTHERS = [("a", 0, 0.25), ("b", 1, 0.5), ("a", 1, 1.0), ("a", 0, 0.0)]
UNIT_ROWS = [(0, 0.0), (1, 0.25), (0, 1.0), (1, 1.0)]  # two differ by their outcomes alone
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
@pytest.mark.parametrize("most", [*(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2)), 3])
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
                elif relation is Neighbours.LABEL:
                    assert claimed >= max(
                        np.abs(values[one] - values[other]).sum()
                        for one, other in itertools.combinations(range(len(OWNED)), 2)
                        if [score for _, score in OWNED[one]]
                        == [score for _, score in OWNED[other]]
                    ), (statistic, relation)
                    continue
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


@pytest.mark.parametrize("error", ["squared", "absolute"])
def test_an_error_counts_from_none_to_one_whatever_a_score_is(error: str) -> None:
    """No such score is let in; were one, its row would still weigh no more than another."""
    statistic = BoundedSum(error=error, score_range=(0, 1), with_rest=True, resolution=100)
    rows = "WITH evaluated(score, label) AS (VALUES (9.0, 0), (-4.0, 1), (1.0, 1))"
    total = duckdb.sql(f"{rows} SELECT total FROM ({statistic.body()}) AS body").fetchall()
    assert total == [(200,)]
