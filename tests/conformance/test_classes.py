"""Brute force for several classes, weights and logarithms: nobody moves counts beyond the claim.

Every data set of up to three rows of three classes, with scores that tie and weights that differ,
is laid out; each statistic's own statement runs over all of them, in DuckDB.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from tests.small_tables import SmallTables, protections

import heldout as ho
from heldout.errors import ArgumentError
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import STEPS, BoundedSum, compute
from heldout.questions.classes import CallCounts
from heldout.questions.counts import ThresholdCounts
from heldout.questions.ranking.paired import PairedRight

SCORES = ((1.0, 0.0, 0.0), (0.2, 0.6, 0.6))
KINDS = list(itertools.product((0, 1), range(3), range(len(SCORES))))
PROTECTIONS = protections(1, 2, 3)
COUNTS: list[Any] = [
    CallCounts(classes=3),
    CallCounts(classes=3, by_scores=False),
    CallCounts(classes=3, axes=("rank",)),
    CallCounts(classes=3, axes=("truth", "called", "rank"), groups=2),
    CallCounts(classes=3, weighted=True, groups=2),
    PairedRight(),
    ThresholdCounts(thresholds=(0.5,), weighted=True),
    *(
        BoundedSum(error=error, score_range=(0, 1), with_rest=True, **words)  # type: ignore[arg-type]
        for error in ("squared", "log")
        for words in (
            {"classes": 3},
            {"classes": 3, "weighted": True},
            {"weighted": True, "groups": 2},
        )
    ),
]


def evaluated(kind: int) -> tuple[Any, ...]:
    """What a statement sees of a row of this kind."""
    member, truth, which = KINDS[kind]
    scores, weight = SCORES[which], (1.0, 0.3)[truth % 2]
    label, score = int(truth == 0), scores[0]
    seen = (max(scores), scores[truth], weight, label, score)
    return member, truth, 2 - truth, *scores, *seen, which


@pytest.fixture(scope="module")
def tables() -> SmallTables:
    names = ("member", "truth", "called", "score_0", "score_1", "score_2", "top", "own")
    return SmallTables(
        KINDS,
        (*names, "weight", "label", "score", "rival"),
        cells=[evaluated(kind) for kind in range(len(KINDS))],
        public=[(member, which) for member, _, which in KINDS],
    )


@pytest.mark.parametrize("statistic", COUNTS, ids=str)
def test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far(
    tables: SmallTables, statistic: Any
) -> None:
    """CallCounts, and the sums of errors of several classes and of weights."""
    apart = tables.distances(statistic)
    for protection in PROTECTIONS:
        largest, claimed = (
            apart[tables.neighbours(protection)].max(),
            statistic.sensitivity(protection),
        )
        assert largest <= claimed, protection
        assert largest == claimed or protection.only_labels, protection


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("most", [1, 3])
def test_a_person_with_rows_of_several_classes_moves_counts_no_further_than_claimed(
    relation: str, most: int
) -> None:
    """Through `Dataset`, whose statement bounds each person's rows first."""
    others = [("q", "a", 0.2, 0.8, 3.0), ("r", "b", 0.9, 0.1, 5.0), ("q", "b", 0.4, 0.4, 0.0)]
    own = list(itertools.product("ab", (0.2, 0.9), (0.1, 0.9), (0.0, 2.5, 5.0)))
    statistics = [
        CallCounts(classes=2),
        CallCounts(classes=2, axes=("rank",), weighted=True),
        BoundedSum(error="squared", score_range=(0, 1), with_rest=True, classes=2),
        BoundedSum(error="log", score_range=(0, 1), with_rest=True, classes=2, weighted=True),
    ]
    generator = np.random.default_rng([most, len(relation)])
    found = []
    for size in (0, 2, 6, 6):
        mine = [("p", *own[int(i)]) for i in generator.integers(0, len(own), size)]
        names = ("who", "y", "pa", "pb", "w")
        table = dict(zip(names, zip(*others, *mine, strict=True), strict=True))
        rows = ho.Dataset(
            table,
            label="y",
            classes=["a", "b"],
            scores=["pa", "pb"],
            weight="w",
            largest_weight=5,
            unit="who",
            rows_per_unit=most,
            neighbours=relation,
        )
        found.append([unseal(compute(each, rows)) for each in statistics])
        assert found[-1][0].sum() == min(size, most) + min(most, 2) + 1
    for statistic, *each in zip(statistics, *found, strict=True):
        first = each[:1] if relation == "add-remove" else each
        apart = max(np.abs(a - b).sum() for a in first for b in each)
        assert 0 < apart <= statistic.sensitivity(rows.protection), statistic


def test_weights_beyond_the_declared_range_count_as_its_end(tables: SmallTables) -> None:
    """Even rows that should not have passed validation move no sum further than claimed."""
    for weight in (-3.0, 1e300, float("inf")):
        value = tables.connection.execute(
            "SELECT n FROM (WITH evaluated AS (SELECT 1 AS label, 0.7 AS score,"
            f" CAST('{weight}' AS DOUBLE) AS weight) "
            + ThresholdCounts(thresholds=(0.5,), weighted=True).body()
            + ")"
        ).fetchone()
        assert 0 <= value[0] <= STEPS


def test_what_would_not_be_private_or_has_no_meaning_is_refused() -> None:
    for wrong in (
        {"error": "log", "clip": 0.0},
        {"error": "log", "clip": 1.0},
        {"error": "squared", "weighted": True, "with_rest": False},
        {"error": "squared", "weighted": True, "resolution": 2**10},
        {"error": "absolute", "classes": 3},
        {"error": "cubed"},
    ):
        with pytest.raises(ArgumentError):
            BoundedSum(**{"score_range": (0, 1), "with_rest": True, **wrong})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="axes must be"):
        CallCounts(classes=3, axes=("colour",))
