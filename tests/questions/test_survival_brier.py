"""The Brier score at a horizon: sums brute-forced, weights and the score counted by hand."""

import itertools
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import heldout as ho
from heldout.data import sql
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection
from heldout.questions.survival_brier import SurvivalErrors

KINDS = [
    (time, event, risk)
    for time, event in ((0.5, 1), (0.5, 0), (1.5, 1), (2.0, 0), (3.0, 0), (3.0, 1))
    for risk in (0.0, 0.25, 1.0)
]
SETS = [
    rows
    for size in range(3)
    for rows in itertools.combinations_with_replacement(range(len(KINDS)), size)
]
CONTENT = np.array([[rows.count(kind) for kind in range(len(KINDS))] for rows in SETS])
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]


def vectors(statistic: SurvivalErrors) -> Any:
    names = ("which", "time", "event", "value_0")
    cells = [(which, *KINDS[kind]) for which, rows in enumerate(SETS) for kind in rows]
    columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    connection = duckdb.connect()
    connection.register("incoming", pa.table(columns))
    connection.execute("CREATE TABLE every AS SELECT * FROM incoming")
    rows = sql.assemble("SELECT * FROM every WHERE every.which = whole.which", statistic.body())
    answers = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({len(SETS)}) AS whole(which),"
        f" LATERAL ({rows}) AS answer ORDER BY 1"
    ).fetchnumpy()
    borders = np.searchsorted(answers.pop("which"), np.arange(len(SETS) + 1))
    return np.array(
        [
            statistic.read({name: column[start:end] for name, column in answers.items()})
            for start, end in itertools.pairwise(borders)
        ]
    )


def are_neighbours(protection: Protection) -> Any:
    left = sum(np.maximum(np.subtract.outer(kind, kind), 0) for kind in CONTENT.T)
    arrived, most = left.T, protection.rows_per_unit
    if protection.neighbours is Neighbours.ADD_REMOVE:
        return (left == 0) & (arrived <= most) | (arrived == 0) & (left <= most)
    if protection.unit:
        return (left <= most) & (arrived <= most)
    return (left == arrived) & (left <= 1)


@pytest.mark.parametrize("protection", PROTECTIONS, ids=Protection.describe)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    protection: Protection,
) -> None:
    statistic = SurvivalErrors(
        times=(1.0, 2.0), weights=(1.0, 1.5, 2.0), with_rest=not protection.row_count_is_public
    )
    values = vectors(statistic)
    distances = np.abs(values[:, None, :] - values[None, :, :]).sum(axis=2)
    largest = distances[are_neighbours(protection)].max()
    assert largest <= statistic.sensitivity(protection), "the claim is too small: not private"
    assert largest == statistic.sensitivity(protection), "the claim is too large: noise for nothing"


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 11.0), (-1.0, 1.0), (0.0, 0.0)])
def test_weights_beyond_the_declared_largest_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="weights"):
        SurvivalErrors(times=(1.0,), weights=weights)


# --- what the answer means -----------------------------------------------------------------------


def asked(rows: dict[str, Any], **options: Any) -> Any:
    dataset = ho.Dataset(rows, time="t", event="e", values={"r": (0, 1)}, **options)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1000))
    return session.survival_brier("r", 2, epsilon=1000, steps=2)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_where_no_row_is_lost_it_is_the_mean_squared_error(relation: str) -> None:
    rows = {"t": [1.0, 3.0] * 500, "e": [1, 0] * 500, "r": [0.5, 0.1] * 500}
    release = asked(rows, neighbours=relation)
    assert release.value == pytest.approx((0.25 + 0.01) / 2, abs=0.003)
    low, high = release.interval()
    assert low < 0.13 < high


def test_rows_that_live_on_stand_for_those_that_were_lost() -> None:
    # Half of the rows are lost in the second bin; all others live on with the error 1/4.
    rows = {"t": [1.5, 3.0] * 500, "e": [0, 0] * 500, "r": [0.0, 0.5] * 500}
    assert asked(rows).value == pytest.approx(0.25, abs=0.005)


def test_a_risk_must_be_a_share() -> None:
    rows = {"t": [1.0, 3.0], "e": [1, 0], "r": [0.5, 2.0]}
    dataset = ho.Dataset(rows, time="t", event="e", values={"r": (0, 2)})
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        session.survival_brier("r", 2, epsilon=1)
    assert session.remaining.epsilon == 1
