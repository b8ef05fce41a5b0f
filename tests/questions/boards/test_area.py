"""A board by AUC: the sensitivity of its query, by brute force, and its scores."""

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.chances import louder

import heldout as ho
from heldout.board import Board, Plan
from heldout.errors import ArgumentError
from heldout.questions.boards import AreaMerit

ROWS = [(label, score) for label in (0, 1) for score in (0.0, 0.5, 1.0)]


def _read(rows: Any, bar: Fraction) -> Any:
    label, score = (np.array(each) for each in zip(*rows, strict=True))
    return AreaMerit(bar, len(rows)).read({"label": label, "score": score})


@pytest.mark.parametrize("bar", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_no_small_neighbours_move_it_further_than_claimed(bar: Fraction) -> None:
    furthest = 0
    claim = AreaMerit(bar, 4)
    for rest in itertools.combinations_with_replacement(ROWS, 3):
        found = np.array([_read([*rest, each], bar) for each in ROWS])
        moves = np.abs(found[:, None] - found[None])
        furthest = max(furthest, int(moves[:, :, 0].max()))
        assert moves[:, :, 1].max() <= claim.weight
        assert moves.sum(axis=2).max() <= claim.most + claim.weight
    assert furthest == claim.most, "and no smaller claim would do"


def test_the_first_number_is_above_0_where_the_area_is_above_the_bar() -> None:
    random = np.random.default_rng(3)
    label, score = random.integers(0, 2, 200), random.integers(0, 20, 200) / 20
    area = roc_auc_score(label, score)
    for steps in range(3000, 7000, 37):
        bar = Fraction(steps, 10_000)
        found = AreaMerit(bar, 200).read({"label": label, "score": score})
        assert (found[0] >= 0) == (area >= float(bar) - 1e-12)


@pytest.mark.chance(louder(0, 6, 20))
def test_a_board_by_area_shows_areas(tmp_path: Path) -> None:
    count = 4000
    labels = (np.arange(count) % 4 == 0).astype(int)
    random = np.random.default_rng(5)
    ledger = ho.Ledger.open(None)
    ledger.register("rows", budget=ho.Budget(9))
    terms: dict[str, Any] = {"price": 8, "improvements": 2, "submissions": 20, "start": 0.6}
    plan = Plan(rows=count, metric="auc", least_class=900, **terms)
    board = Board("spring", plan=plan, ledger=ledger, account="rows", state=tmp_path / "b.json")
    shown = []
    scores = [1 / (1 + np.exp(-random.normal(each * labels, 1))) for each in (0.0, 1.0, 2.5)]
    # The same model again would be called better now and then: so it is the first one.
    for place, which in enumerate((0, 1, 0, 2)):
        score = scores[which]
        rows = ho.Dataset({"y": labels, "p": score}, label="y", score="p")
        found = board.submit(rows, submission=str(place))
        if found.improved:
            shown.append((found.score, roc_auc_score(labels, score)))
    assert len(shown) == 2
    for score, truth in shown:  # five half-widths of 95% are passed with a chance of .05^5
        assert abs(score - truth) < 5 * plan.noise_half_width()
    assert ledger.spent("rows") == ho.Loss.pure(8)


def test_a_board_by_area_needs_the_least_class() -> None:
    terms: dict[str, Any] = {"rows": 4000, "price": 8, "improvements": 2, "submissions": 20}
    with pytest.raises(ArgumentError, match="least_class"):
        Plan(**terms, metric="auc")
    with pytest.raises(ArgumentError, match="least_class"):
        Plan(**terms, least_class=900)
