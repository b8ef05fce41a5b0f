"""Ranked lists: what scikit-learn gives, and how far one unit moves the sums."""

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import heldout as ho
from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import STEPS, compute
from heldout.questions.lists import RankedLists

ROWS = [(0, 0.2), (1, 0.2), (0, 0.9), (1, 0.9)]
LISTS = [rows for size in range(4) for rows in itertools.combinations_with_replacement(ROWS, size)]


def sums(statistic: RankedLists, *lists: Any) -> Any:
    rows = [(who, *row) for who, rows in enumerate(lists) for row in rows]
    names = ("list", "label", "score")
    columns = {name: np.array([row[at] for row in rows]) for at, name in enumerate(names)}
    return statistic.read(columns)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("measure", ["ndcg", "precision"])
def test_no_unit_moves_the_sums_further_than_claimed_and_some_do_as_far(
    measure: str, k: int
) -> None:
    """RankedLists of one unit of any content, beside two others that stay."""
    statistic = RankedLists(measure, k)
    others = ((ROWS[0], ROWS[3]), (ROWS[1], ROWS[2], ROWS[2]))
    found = np.array([sums(statistic, *others, own) for own in LISTS])
    nobody = sums(statistic, *others)
    for relation in Neighbours:
        protection = Protection(neighbours=relation, unit=True, rows_per_unit=3)
        before = nobody[None] if relation is Neighbours.ADD_REMOVE else found
        apart = np.abs(before[:, None] - found[None]).sum(axis=2).max()
        if relation is Neighbours.LABEL:
            apart = max(
                np.abs(found[one] - found[other]).sum()
                for one, other in itertools.combinations(range(len(LISTS)), 2)
                if sorted(score for _, score in LISTS[one])
                == sorted(score for _, score in LISTS[other])
            )
            assert apart <= statistic.sensitivity(protection)
            continue
        assert apart == statistic.sensitivity(protection)


def test_a_list_counts_the_same_whatever_the_other_lists_are() -> None:
    generator = np.random.default_rng(2)
    statistic = RankedLists("ndcg", 4)
    for _ in range(50):
        lists = [
            [ROWS[int(i)] for i in generator.integers(0, 4, int(generator.integers(1, 7)))]
            for _ in range(4)
        ]
        together = sums(statistic, *lists)
        assert (together == sum(sums(statistic, each) for each in lists)).all()
        assert together.sum() == 4 * STEPS


def test_ndcg_and_precision_are_those_of_scikit_learn_and_of_counting() -> None:
    generator = np.random.default_rng(1)
    labels = (generator.random((200, 9)) < 0.3).astype(int)
    scores = generator.random((200, 9))
    table = {"q": np.repeat(np.arange(200), 9), "y": labels.ravel(), "p": scores.ravel()}
    rows = ho.Dataset(table, label="y", score="p", unit="q", rows_per_unit=9)
    for k in (1, 3, 9, 20):
        *found, rest = unseal(compute(RankedLists("ndcg", k), rows.with_lists())) / (200 * STEPS)
        assert sum(found) == pytest.approx(ndcg_score(labels, scores, k=k), abs=1e-6)
        square, *_ = parts = unseal(compute(RankedLists("precision", k), rows.with_lists()))
        first = np.take_along_axis(labels, np.argsort(-scores, axis=1)[:, :k], axis=1)
        each = first.sum(axis=1) / k
        assert 1 - parts[2] / (200 * STEPS) == pytest.approx(each.mean(), abs=1e-6)
        assert square / (200 * STEPS) == pytest.approx((each**2).mean(), abs=1e-6)
        assert sum(found) + rest == 1


def test_lists_need_units_and_a_unit_pays_once_however_many_rows_it_has() -> None:
    table = {"q": [1, 1, 2, 2], "y": [0, 1, 1, 0], "p": [0.1, 0.9, 0.2, 0.4]}
    one = ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=9))
    with pytest.raises(ArgumentError, match="unit="):
        one.ndcg(epsilon=1)
    assert one.spent == ho.Loss.pure(0)
    for most in (1, 50):
        rows = ho.Dataset(table, label="y", score="p", unit="q", rows_per_unit=most)
        session = ho.Session(rows, budget=ho.Budget(epsilon=9))
        answer = session.precision_at_k(epsilon=1, k=1)
        assert answer.mechanism["scale"] == str(2 * STEPS)
        assert answer.name == "precision at 1"
    for wrong in (("gain", 3), ("ndcg", 0)):
        with pytest.raises(ArgumentError):
            RankedLists(*wrong)
