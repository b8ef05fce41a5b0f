"""Brute force by group: no pair of small neighbours moves further than claimed, whoever owns rows.

Every data set of up to three rows of two labels, two scores and three groups is laid out; each
statistic's own statement runs over all of them, in DuckDB, and all neighbours are compared.
"""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.small_tables import SmallTables, protections

import heldout as ho
from heldout import questions as q
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection, price
from heldout.kernel.door import Request
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.disjoint import EachGroup
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tied import TiedLaplace
from heldout.kernel.ranking.mechanism import RankingMechanism
from heldout.kernel.ranking.statistic import (
    METRICS,
    RankedRows,
    RankedTable,
    RankedWithTable,
    ScoreTable,
)
from heldout.kernel.regression import Axis, GridCounts, PowerSums, RowCount
from heldout.kernel.statistic import STEPS, BoundedSum, Statistic, compute
from heldout.questions.counts import ThresholdCounts
from heldout.questions.groups import Divisible

GROUPS = 3
KINDS = list(itertools.product(range(GROUPS), (0, 1), (0.0, 1.0)))
TABLES = SmallTables(
    KINDS,
    ("member", "label", "score"),
    public=[(group, score) for group, _, score in KINDS],
)
PROTECTIONS = protections(1, 2, 3)
VECTORS: list[Statistic] = [
    ThresholdCounts(thresholds=(0.5,), groups=GROUPS),
    BoundedSum(error="squared", score_range=(0, 1), with_rest=True, groups=GROUPS),
    RowCount(GROUPS),
    GridCounts(axes=(Axis("score", (0.0, 0.5)), Axis("label", (0.0, 1.0, 2.0))), groups=GROUPS),
    PowerSums(column="score", bounds=(0, 1), powers=3, with_rest=True, groups=GROUPS),
    PowerSums(
        column="score",
        bounds=(0, 1),
        powers=2,
        with_rest=True,
        absolute=True,
        centres=(0.0, 0.25, 1.0),
        groups=GROUPS,
    ),
]
WHOLE: list[Statistic] = [  # the same without groups
    ThresholdCounts(thresholds=(0.5,)),
    GridCounts(axes=(Axis("score", (0.0, 0.5)), Axis("label", (0.0, 1.0, 2.0)))),
    PowerSums(column="score", bounds=(0, 1), powers=3, with_rest=True),
]


@pytest.mark.parametrize("statistic", VECTORS, ids=lambda each: type(each).__name__)
def test_counts_and_sums_by_group_move_as_far_as_those_of_all_rows(
    statistic: Any,
) -> None:
    """The claim is the same for three groups as for one, and it is attained."""
    apart = TABLES.distances(statistic)
    for protection in PROTECTIONS:
        claimed = statistic.sensitivity(protection)
        largest = apart[TABLES.neighbours(protection)].max()
        assert largest <= claimed, protection
        assert largest == claimed or protection.only_labels, protection
        for whole in (each for each in WHOLE if type(each) is type(statistic)):
            assert claimed == whole.sensitivity(protection)


def test_outcomes_move_the_positives_of_all_groups_by_a_row_each() -> None:
    """What tied noise is for: the totals of both classes stay, the positives move by k."""
    values = np.array(TABLES.answers(VECTORS[0])).reshape(len(TABLES.tables), GROUPS, 2, -1)
    totals, positives = (
        each.reshape(len(TABLES.tables), -1) for each in (values.sum(axis=2), values[:, :, 1])
    )
    for protection in (each for each in PROTECTIONS if each.only_labels):
        one, other = np.nonzero(TABLES.neighbours(protection))
        assert (totals[one] == totals[other]).all()
        moved = np.abs(positives[one] - positives[other]).sum(axis=1)
        assert moved.max() == protection.rows_per_unit


@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_a_row_moves_its_own_group_alone_and_by_a_row(metric: str) -> None:
    """OfEachGroup: a row more changes one group, and no further than a ranking of its rows."""
    found = TABLES.answers(RankedRows(metric).of_groups(GROUPS))
    local = METRICS[metric].bound(protection=Protection(neighbours=Neighbours.ADD_REMOVE))
    one_more = (TABLES.left == 0) & (TABLES.left.T == 1)
    seen = 0
    for before, after in zip(*np.nonzero(one_more), strict=True):
        kind = int(np.flatnonzero(TABLES.content[after] - TABLES.content[before])[0])
        own = KINDS[kind][0]
        for group in range(GROUPS):
            first, second = found[before][group], found[after][group]
            if group != own:
                assert first == second
                continue
            seen += 1
            rungs = [
                local.rung(positives=e.positives, negatives=e.negatives) for e in (first, second)
            ]
            assert abs(rungs[0] - rungs[1]) <= 1
            most = min(local.upper(rung) for rung in rungs)
            assert abs(float(first.value - second.value)) <= most + 1e-12
    assert seen > 1000


def test_a_row_moves_one_entry_of_its_own_groups_table() -> None:
    """OfEachGroup: a row more adds 1 to one entry of its group's table, and to no other's."""
    found = np.array(TABLES.answers(ScoreTable((0, 1), cells=4).of_groups(GROUPS)))
    one_more = (TABLES.left == 0) & (TABLES.left.T == 1)
    for before, after in zip(*np.nonzero(one_more), strict=True):
        kind = int(np.flatnonzero(TABLES.content[after] - TABLES.content[before])[0])
        moved = found[after] - found[before]
        assert moved.sum() == np.abs(moved).sum() == 1
        assert moved[KINDS[kind][0]].sum() == 1


def test_a_ranking_with_its_table_is_the_ranking_and_the_table() -> None:
    """RankedWithTable, by group too: whatever holds of the two holds of both together."""
    table = ScoreTable((0, 1), cells=4)
    one = RankedWithTable(RankedRows("auc"), table)
    both = TABLES.answers(one.of_groups(GROUPS))
    ranked = TABLES.answers(RankedRows("auc").of_groups(GROUPS))
    tables = TABLES.answers(table.of_groups(GROUPS))
    for pairs, rankings, counts in zip(both, ranked, tables, strict=True):
        assert [pair.ranking for pair in pairs] == rankings
        assert [pair.table.tolist() for pair in pairs] == [count.tolist() for count in counts]
    whole = [
        TABLES.answers(statistic)
        for statistic in (one, RankedWithTable(RankedTable("auc", table), table))
    ]
    expected = TABLES.answers(RankedRows("auc")), TABLES.answers(table)
    for exact, on_grid, ranking, count in zip(*whole, *expected, strict=True):
        assert exact.ranking == ranking
        assert exact.table.tolist() == on_grid.table.tolist() == count.tolist()


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
def test_neighbours_differ_by_as_many_single_rows_as_are_paid_for(protection: Protection) -> None:
    """In all groups together, whatever groups a person's rows are in."""
    steps = (TABLES.left + TABLES.left.T)[TABLES.neighbours(protection)]
    assert steps.max() == protection.rows_moved


def test_each_group_is_ranked_as_its_rows_alone_would_be() -> None:
    generator = np.random.default_rng(8)
    table = {
        "y": generator.integers(0, 2, 60).tolist(),
        "p": generator.integers(0, 9, 60).tolist(),
        "g": generator.choice(["a", "b", "c", None], 60).tolist(),
    }
    about = {"label": "y", "score": "p", "score_range": (0, 9)}
    rows = ho.Dataset(table, groups={"g": ["a", "b"]}, **about)  # type: ignore[arg-type]
    found = unseal(compute(RankedRows("auc").of_groups(3), rows.with_groups("g")))
    for place, values in enumerate((["a"], ["b"], ["c", None])):
        mine = [i for i, value in enumerate(table["g"]) if value in values]
        alone = ho.Dataset(
            {name: [each[i] for i in mine] for name, each in table.items()},
            **about,  # type: ignore[arg-type]
        )
        assert found[place] == unseal(compute(RankedRows("auc"), alone))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_person_with_rows_in_several_groups_moves_counts_no_further_than_claimed(
    relation: str, most: int
) -> None:
    """Rows are bounded before they are divided: k rows in all, not k in each group."""
    others = [("q", 1, 0.2, "a"), ("r", 0, 0.9, "b"), ("q", 0, 0.4, "c")]
    own = list(itertools.product((0, 1), (0.2, 0.9), ("a", "b", "c")))
    statistic = ThresholdCounts(thresholds=(0.5,), groups=3)
    generator = np.random.default_rng([most, len(relation)])
    vectors = []
    for size in (0, 1, 2, 4, 6, 6, 6, 6):
        mine = [("p", *own[int(i)]) for i in generator.integers(0, len(own), size)]
        person, label, score, group = zip(*others, *mine, strict=True)
        rows = ho.Dataset(
            {"who": person, "y": label, "p": score, "g": group},
            label="y",
            score="p",
            groups={"g": ["a", "b"]},
            unit="who",
            rows_per_unit=most,
            neighbours=relation,
        )
        vectors.append(unseal(compute(statistic, rows.with_groups("g"))))
        kept = min(size, most) + min(most, 2) + 1
        assert vectors[-1].sum() == kept
    claimed = statistic.sensitivity(rows.protection)
    first = vectors[:1] if relation == "add-remove" else vectors
    apart = [np.abs(a - b).sum() for a in first for b in vectors]
    assert max(apart) <= claimed
    assert max(apart) >= most, "some are far apart"


def test_the_price_of_all_groups_is_that_of_the_rows_that_may_move() -> None:
    row = Protection(neighbours=Neighbours.ADD_REMOVE)
    one = RankingMechanism(metric="auc", epsilon=Fraction(1, 4), protection=row)
    assert str(price(EachGroup(Fraction(1), 4, 7, one).event())) == "epsilon 1"
    for epsilon, moved in ((Fraction(1), 2), (Fraction(1, 2), 4)):
        with pytest.raises(ArgumentError, match="price without delta"):
            EachGroup(epsilon, moved, 7, one)


BY_GROUP: list[Divisible[Any, Any]] = [
    q.Confusion(epsilon="1/2"),
    q.Confusion(epsilon="1/2", weighted=True),
    q.Brier(epsilon="1/2"),
    q.Brier(epsilon="1/2", weighted=True),
    q.LogLoss(epsilon="1/2"),
    q.Auc(epsilon="1/2"),
    q.AveragePrecision(epsilon="1/2"),
    q.Curves(epsilon="1/2"),
]


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
@pytest.mark.parametrize("question", BY_GROUP, ids=lambda each: each.kind)
def test_a_question_by_group_pairs_its_noise_with_the_rows_that_may_move(
    question: Divisible[Any, Any], protection: Protection
) -> None:
    """Noise on a vector is for the sensitivity of all groups; other noise is for a single row.

    Where only outcomes are secret, a confusion matrix has noise on its positives.
    """
    people = {"unit": "who", "rows_per_unit": protection.rows_per_unit} if protection.unit else {}
    rows = ho.Dataset(
        {"who": range(6), "y": [0, 1] * 3, "p": [0.2, 0.7] * 3, "g": list("abcabc"), "w": [1] * 6},
        label="y",
        score="p",
        weight="w",
        largest_weight=2,
        groups={"g": ["a", "b"]},
        neighbours=protection.neighbours,
        **people,  # type: ignore[arg-type]
    )
    asked = q.By(question, "g").request(rows.description)
    assert isinstance(asked, Request)
    assert price(asked.event()) == ho.Loss.pure("1/2")
    if isinstance(asked.mechanism, DiscreteLaplace):
        claimed = asked.statistic.sensitivity(rows.protection)
        tied = question.kind == "confusion" and protection.only_labels
        assert isinstance(asked.mechanism, TiedLaplace) == tied
        if isinstance(asked.mechanism, TiedLaplace):  # noise on positives alone: half of the moves
            largest = STEPS if question.weighted else 1
            assert claimed == 2 * protection.rows_per_unit * largest
            assert asked.mechanism.l1_sensitivity == protection.rows_per_unit * largest
            assert 2 * asked.mechanism.dimension == asked.statistic.size
            assert asked.mechanism.cells == asked.statistic.intervals
        else:
            assert asked.mechanism.l1_sensitivity == claimed
        return
    assert isinstance(asked.mechanism, EachGroup)
    one: Any = asked.mechanism.one
    assert one.protection == Protection(neighbours=Neighbours.ADD_REMOVE)
    assert getattr(one, "rows", None) is None
    assert price(one.event()) == ho.Loss.pure(Fraction(1, 2 * protection.rows_moved))
