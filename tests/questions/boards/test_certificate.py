"""Attackers against an exact board and against ours."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from benchmarks.board import ATTACKS, attacked

from heldout.board import Plan, certified
from heldout.questions.boards import certificate_of


def test_the_bound_is_that_of_the_derivation() -> None:
    found = certified(rows=50_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2)
    assert (round(found.bound, 3), found.by) == (0.033, "counting")
    many = certified(rows=500_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2)
    assert round(many.bound, 4) == 0.0105


def test_a_cheap_board_is_bounded_by_its_privacy() -> None:
    found = certified(rows=500, submissions=10**6, improvements=200, spacing=1e-4, epsilon=0.01)
    assert found.by == "privacy"


@pytest.mark.parametrize("spacing", [1 / 49, 0.3, 0.25, 0.0134])
def test_every_score_that_can_be_shown_is_counted(spacing: float) -> None:
    plan = Plan(rows=10**6, price=8, improvements=1, submissions=3, start=0, step=spacing)
    noisy = np.linspace(-0.5, 2.0, 9999) * plan.whole
    shown = {plan.shown_score([int(each)], 0.5) for each in noisy}
    with patch("heldout.questions.boards._transcripts", return_value=0.0) as transcripts:
        plan.certificate()
    assert len(shown) <= transcripts.call_args.args[2] <= len(shown) + 1


def test_the_certificate_of_shown_scores_has_room_for_noise_and_rounding() -> None:
    plan = Plan(rows=10**6, price=8, improvements=4, submissions=30, start=0, step=0.01)
    # A fifth of the failures, 0.01, is shared by four scores: exp(-t / scale) is 0.01 / 4 at t.
    scale = plan.noise.float_scale / plan.whole
    noise = scale * math.log(4 / 0.01) + plan.spacing / 2
    found = certificate_of(plan)
    assert found.level == 0.95
    assert found.bound == pytest.approx(plan.certificate(0.96).bound + noise, rel=1e-9)
    assert noise > 0.001


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.slow
def test_attackers_stay_below_the_certificate_and_beat_an_exact_board(attack: str) -> None:
    runs = [attacked(attack, rows=2000, submissions=400, seed=each) for each in range(6)]
    exact, private, bound = (np.array(each) for each in zip(*runs, strict=True))
    assert np.median(exact) > (0.025 if attack == "best-of-many" else 0.05)
    assert (private <= bound).all()
    assert np.median(private) < np.median(exact)
