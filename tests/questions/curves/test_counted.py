"""Curves where the row count is private: its noisy count comes first and decides what suits."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.chances import louder

from heldout.errors import ArgumentError
from heldout.kernel import Budget, Loss
from heldout.kernel.accountant import charge, covers
from heldout.kernel.curves.counted import COUNT_SHARE, CountedCurves
from heldout.kernel.curves.heldout import PUBLIC_BINS, HeldoutCurves, TableWithArea
from heldout.kernel.curves.registry import method
from heldout.kernel.events import Event, price
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Sealed

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
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(20)], ids=str)
@pytest.mark.parametrize("options", [{}, {"named": (100,)}, {"area_share": "1/10"}], ids=str)
def test_a_budget_of_rho_is_charged_at_least_what_any_count_draws(
    protection: Protection, epsilon: Fraction, options: dict[str, Any]
) -> None:
    counted = made(protection, epsilon=epsilon, **options)
    booked = charge(counted.event(), budget=Budget(rho=1))
    for count in (0, 1, 30, 300, 3_000, 30_000, 10**9):
        drawn = Event.composed([counted.look.event(), counted.after(count).event()])
        assert covers(booked, charge(drawn, budget=Budget(rho=1))), count


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [
        (Fraction(1, 7000), {}),
        (Fraction(1, 2500), {"named": (100,)}),
        (Fraction(1), {"area_share": "24/25"}),
        (Fraction(1), {"area_share": "97/100"}),
    ],
    ids=str,
)
def test_what_some_count_cannot_draw_is_refused_before_the_booking(
    epsilon: Fraction, options: dict[str, Any]
) -> None:
    try:
        counted = made(PROTECTIONS[0], epsilon=epsilon, **options)
    except ArgumentError:
        return
    for count in (0, 100, 1_000, 10**4, 10**5, 10**6, 10**7, 10**12):
        assert price(counted.after(count).event()) == Loss.pure(counted.rest)


@each_protection
def test_a_guess_or_named_bins_take_the_place_of_the_count(protection: Protection) -> None:
    for named in ({"expected_rows": 600}, {"levels": 3}):
        assert isinstance(made(protection, **named), HeldoutCurves)


@pytest.mark.chance(louder(0, 40, 6))
def test_few_rows_get_public_bins_and_many_get_cuts() -> None:
    protection, rows = Protection(neighbours="add-remove"), 60_000
    assert made(protection).after(150).most_bins == PUBLIC_BINS
    places = np.random.default_rng(3).integers(0, 2 * POINTS, rows)
    drawn = made(protection).sample(Sealed(np.bincount(places, minlength=2 * POINTS)))
    assert isinstance(drawn, TableWithArea)
    assert len(drawn.cuts) == 33
    total = float(drawn.negatives.sum() + drawn.positives.sum())
    assert total == pytest.approx(rows, abs=600)
