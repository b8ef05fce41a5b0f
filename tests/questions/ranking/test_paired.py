"""Two models row by row: sums and counts brute-forced, and differences that one counts by hand."""

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
from heldout.kernel.statistic import Statistic
from heldout.questions.ranking.paired import PAIRED, PairedCalls, PairedErrors

KINDS = list(itertools.product((0, 1), (0.0, 0.5, 1.0), (0.0, 0.7, 1.0)))
PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]


def vectors(statistic: Statistic) -> Any:
    """The statistic of every kind of row alone: it is a sum over rows."""
    labels, scores, rivals = map(list, zip(*KINDS, strict=True))
    connection = duckdb.connect()
    columns = {"which": list(range(len(KINDS))), "label": labels, "score": scores, "rival": rivals}
    connection.register("rows", pa.table(columns))
    rows = sql.assemble("SELECT * FROM rows WHERE rows.which = whole.which", statistic.body())
    answers = connection.execute(
        f"SELECT whole.which AS which, answer.* FROM range({len(KINDS)}) AS whole(which),"
        f" LATERAL ({rows}) AS answer ORDER BY 1"
    ).fetchnumpy()
    own = [
        {name: column[at : at + 1] for name, column in answers.items()} for at in range(len(KINDS))
    ]
    return np.array([statistic.read(columns) for columns in own])


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("measure", ["brier", "log-loss", "calls"])
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    measure: str, protection: Protection
) -> None:
    rest = not protection.row_count_is_public
    statistic: Any = PairedCalls(0.5, 0.6)
    if measure != "calls":
        statistic = PairedErrors(error=measure, score_range=(0, 1), with_rest=rest)
    each = vectors(statistic)
    largest = 0
    for leave, arrive in protection.changes():
        moved = np.abs(arrive * each[:, None] - leave * each[None, :]).sum(axis=2)
        largest = max(largest, int(moved.max()))
    assert largest == statistic.sensitivity(protection)


LABELS = [1, 1, 0, 0, 1] * 200
FIRST = [0.9, 0.4, 0.2, 0.6, 0.8] * 200
SECOND = [0.7, 0.6, 0.1, 0.3, 0.2] * 200


def session(**options: Any) -> ho.Session:
    rows = {"y": LABELS, "p": FIRST, "q": SECOND}
    declared = {"label": "y", "score": "p", "rivals": ["q"], **options}
    return ho.Session(ho.Dataset(rows, **declared), budget=ho.Budget(epsilon=10**5))


def truths() -> dict[str, float]:
    y, p, q = (np.array(column) for column in (LABELS, FIRST, SECOND))

    def log_loss(score: Any) -> Any:
        return -np.log(np.maximum(np.where(y == 1, score, 1 - score), 0.01)).mean()

    called = [(score >= 0.5) == y for score in (p, q)]
    return {
        "brier": ((q - y) ** 2).mean() - ((p - y) ** 2).mean(),
        "log-loss": log_loss(q) - log_loss(p),
        "accuracy": called[1].mean() - called[0].mean(),
        "recall": called[1][y == 1].mean() - called[0][y == 1].mean(),
        "specificity": called[1][y == 0].mean() - called[0][y == 0].mean(),
    }


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("measure", PAIRED)
def test_a_difference_is_b_minus_a_as_one_counts_it(measure: str, relation: str) -> None:
    door = session(neighbours=relation)
    release = door.compare(score="q", measure=measure, epsilon=90)
    truth = truths()[measure]
    assert release.value == pytest.approx(truth, abs=0.02)
    low, high = release.interval()
    assert low <= truth <= high
    assert release.as_dict()["finding"] == release.finding()
    assert door.spent == ho.Loss.pure(90)
    if measure == "specificity":
        assert release.finding().startswith("q has a better specificity")
        assert release.p_value < 0.05
    assert release.kind == "compare"


def test_a_paired_interval_is_narrower_than_that_of_two_separate_answers() -> None:
    generator = np.random.default_rng(4)
    p = generator.random(5000)
    y = (generator.random(5000) < p).astype(int)
    rows = {"y": y, "p": p, "q": np.clip(p + generator.normal(0, 0.02, 5000), 0, 1)}
    dataset = ho.Dataset(rows, label="y", score="p", rivals=["q"])
    door = ho.Session(dataset, budget=ho.Budget(epsilon=1000))
    low, high = door.compare(score="q", measure="brier", epsilon=90).interval()
    one = np.subtract(*door.brier(epsilon=90).interval()[::-1])
    assert high - low < one


def test_a_wrong_threshold_or_range_is_refused_before_it_is_paid() -> None:
    door = session(score_range={"p": (0, 1), "q": (0, 10)})
    for words in (
        {"measure": "brier"},
        {"measure": "recall", "rival_threshold": 11},
        {"measure": "recall", "threshold": -1},
        {"measure": "f1"},
    ):
        with pytest.raises(ArgumentError):
            door.compare(score="q", epsilon=1, **words)
    assert door.spent == ho.Loss.pure(0)
    assert door.compare(score="q", measure="recall", rival_threshold=0.5, epsilon=90).value == (
        pytest.approx(truths()["recall"], abs=0.02)
    )
