"""Attackers against an exact board and against ours."""

import numpy as np
import pytest
from benchmarks.board import ATTACKS, attacked

from heldout.board import certified


def test_the_bound_is_that_of_the_derivation() -> None:
    found = certified(rows=50_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2)
    assert (round(found.bound, 3), found.by) == (0.033, "counting")
    many = certified(rows=500_000, submissions=1000, improvements=10, spacing=0.01, epsilon=2)
    assert round(many.bound, 4) == 0.0105


def test_a_cheap_board_is_bounded_by_its_privacy() -> None:
    found = certified(rows=500, submissions=10**6, improvements=200, spacing=1e-4, epsilon=0.01)
    assert found.by == "privacy"


@pytest.mark.parametrize("attack", ATTACKS)
def test_attackers_stay_below_the_certificate_and_beat_an_exact_board(attack: str) -> None:
    runs = [attacked(attack, rows=2000, submissions=400, seed=each) for each in range(6)]
    exact, private, bound = (np.array(each) for each in zip(*runs, strict=True))
    assert np.median(exact) > (0.025 if attack == "best-of-many" else 0.05)
    assert (private <= bound).all()
    assert np.median(private) < np.median(exact)
