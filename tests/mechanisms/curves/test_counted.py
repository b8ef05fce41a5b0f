"""Curves where the row count is private: its noisy count comes first and decides what suits."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.mechanisms.curves.counted import COUNT_SHARE, CountedCurves
from heldout.mechanisms.curves.heldout import HeldoutCurves, TableWithArea
from heldout.mechanisms.curves.registry import method
from heldout.privacy import Loss
from heldout.privacy.events import price
from heldout.privacy.neighbours import Protection
from heldout.statistics.sealed import Sealed

POINTS = 257
PROTECTIONS = [
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=4),
    Protection(neighbours="add-remove", unit=True, rows_per_unit=3),
]
each_protection = pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: p.describe())


def made(protection: Protection, **changed: Any) -> Any:
    arguments: dict[str, Any] = {"epsilon": Fraction(1), "points": POINTS, "rows": None}
    return method("heldout", protection=protection, **{**arguments, **changed})


@each_protection
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(3, 7), Fraction(400)], ids=str)
def test_the_count_and_the_curves_cost_epsilon_whatever_the_count_is(
    protection: Protection, epsilon: Fraction
) -> None:
    counted = made(protection, epsilon=epsilon)
    assert isinstance(counted, CountedCurves)
    assert price(counted.event()) == Loss.pure(epsilon)
    assert counted.look.scale == protection.rows_per_unit / (COUNT_SHARE * epsilon)
    for count in (-(10**6), 0, 1, 300, 5_000, 10**6, 10**18):
        rest = counted.after(count)
        assert price(rest.event()) == Loss.pure(epsilon - COUNT_SHARE * epsilon), count


@each_protection
def test_a_guess_or_named_bins_take_the_place_of_the_count(protection: Protection) -> None:
    for named in ({"expected_rows": 600}, {"levels": 3}):
        assert isinstance(made(protection, **named), HeldoutCurves)


def test_few_rows_get_public_bins_and_many_get_cuts() -> None:
    protection = Protection(neighbours="add-remove")
    random = np.random.default_rng(3)
    for rows, most in ((200, 5), (60_000, 32)):
        places = random.integers(0, 2 * POINTS, rows)
        table = Sealed(np.bincount(places, minlength=2 * POINTS))
        drawn = made(protection).sample(table)
        assert isinstance(drawn, TableWithArea)
        assert drawn.bins == most
        total = float(drawn.negatives.sum() + drawn.positives.sum())
        assert total == pytest.approx(rows, abs=300)
