"""Counts and an area in one vector: what any neighbours lose, the noise, and what the sum says."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Loss
from heldout.kernel.curves.heldout import STEPS, AreaBySum, CountsWithArea, Placements
from heldout.kernel.events import price
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables import laplace_deviation
from heldout.questions.answers import from_plain, plain

PROTECTIONS = [
    Protection(neighbours="replace-one"),
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=2),
    Protection(neighbours="add-remove", unit=True, rows_per_unit=2),
]
EDGES = [0, 1, 3, 5]


def made(protection: Protection, **changed: Any) -> CountsWithArea:
    arguments: dict[str, Any] = {
        "epsilon": Fraction(3, 2),
        "area_epsilon": Fraction(1),
        "moved": protection.rows_moved,
        "balanced": protection.row_count_is_public,
    }
    return CountsWithArea(**{**arguments, **changed})


def placements(**changed: Any) -> Placements:
    arguments: dict[str, Any] = {
        "cuts": np.array([0, 1, 3, 5]),
        "false": np.array([1.0, 0.5, 0.2, 0.0]),
        "true": np.array([1.0, 0.9, 0.6, 0.0]),
        "positives": 20.0,
        "negatives": 50.0,
    }
    return Placements(**{**arguments, **changed})


# --- privacy -------------------------------------------------------------------------------------


def largest_loss(protection: Protection, weights: Any, cells: Any, total: Fraction) -> Fraction:
    """Over all rows that may leave and arrive, written anew from the definition of the noise."""
    rows = list(itertools.product((0, 1), range(weights.shape[1])))
    bins = np.searchsorted(EDGES, range(weights.shape[1]), side="right") - 1
    worst = Fraction(0)
    for leave, arrive in protection.changes():
        for gone in itertools.combinations_with_replacement(rows, leave):
            for come in itertools.combinations_with_replacement(rows, arrive):
                counts: dict[tuple[int, int], int] = {}
                moved = 0
                for sign, some in ((-1, gone), (1, come)):
                    for label, place in some:
                        cell = (label, int(bins[place]))
                        counts[cell] = counts.get(cell, 0) + sign
                        moved += sign * int(weights[label, place])
                loss = sum(
                    (abs(by) / cells[label][place] for (label, place), by in counts.items()),
                    start=abs(moved) / total,
                )
                worst = max(worst, loss)
    return worst


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_no_neighbours_lose_more_than_epsilon_and_some_lose_nearly_all(
    protection: Protection,
) -> None:
    one, random = made(protection), np.random.default_rng(4)
    tried = [placements().weights()]
    tried += [random.integers(-STEPS, STEPS, (2, 5)) // 2**k for k in (0, 3, 19)]
    tried += [np.zeros((2, 5), dtype=np.int64), np.full((2, 5), STEPS)]
    losses = []
    for weights in tried:
        cells, total = one.scales(weights, EDGES)
        assert min(total, *(each for row in cells for each in row)) > 0
        losses.append(largest_loss(protection, weights, cells, total))
    assert max(losses) <= one.epsilon
    assert max(losses) > Fraction(9, 10) * one.epsilon, "a little less noise would be too little"


def test_a_centre_without_a_public_row_count_would_lose_more_than_epsilon() -> None:
    protection = Protection(neighbours="add-remove")
    weights = placements().weights()
    cells, total = made(protection, balanced=True).scales(weights, EDGES)
    assert largest_loss(protection, weights, cells, total) > made(protection).epsilon


def test_the_price_is_epsilon() -> None:
    for protection in PROTECTIONS:
        assert price(made(protection).event()) == Loss.pure(Fraction(3, 2))


@pytest.mark.parametrize(
    "bad",
    [
        {"area_epsilon": Fraction(0)},
        {"area_epsilon": Fraction(3, 2)},
        {"epsilon": Fraction(1, 10**15), "area_epsilon": Fraction(1, 10**16)},
        {"area_epsilon": Fraction(1, 10**12)},
    ],
)
def test_what_could_fail_in_a_draw_is_refused_before_it(bad: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        made(PROTECTIONS[0], **bad)


# --- noise ---------------------------------------------------------------------------------------


@pytest.mark.chance(
    1e-6, "6 deviations: 5e-8 for each of 8, as their tails are those of a log-normal law"
)
def test_counts_and_sum_have_the_stated_noise() -> None:
    one, placed, random = made(PROTECTIONS[0]), placements(), np.random.default_rng(2)
    table = random.integers(0, 40, (2, 5))
    weights = placed.weights()
    cells, total = one.scales(weights, EDGES)
    exact = np.add.reduceat(table, EDGES[:-1], axis=1)
    strays = []
    for _ in range(400):
        noisy, noise, area = one.draw(table, np.array(EDGES), placed)
        strays.append([*(noisy - exact).ravel(), area.noisy - int((table * weights).sum())])
    stated = np.array([[laplace_deviation(each) for each in row] for row in cells])
    assert np.allclose(noise.bin_deviation, stated)
    assert np.allclose(noise.scales, np.array(cells, dtype=float), rtol=1e-9)
    whole = np.append(stated.ravel(), laplace_deviation(total))
    # The deviation of 400 Laplace draws is known to 5.6%, that of 2,800 to 2.1%: six of those.
    assert (np.abs(np.std(strays, axis=0) / whole - 1) < 0.336).all()
    assert abs(np.std(strays / whole) - 1) < 0.127
    assert area.noise_scale == total


def test_a_sum_beyond_64_bits_is_held_and_never_fails() -> None:
    table = np.zeros((2, 5), dtype=np.int64)
    table[1, 0] = 2**60
    _, _, area = made(PROTECTIONS[1]).draw(table, np.array(EDGES), placements())
    assert abs(area.noisy + 2**62) < 2**40


# --- what it says --------------------------------------------------------------------------------


def test_where_placements_are_right_the_sum_is_nothing_and_the_value_is_the_area() -> None:
    places, random = 64, np.random.default_rng(3)
    cuts = np.arange(0, 1025, 1024 // places)
    rates = [np.append(np.cumsum(random.random(places))[::-1], 0.0) for _ in range(2)]
    false, true = (each / each[0] for each in rates)
    placed = placements(cuts=cuts, false=false, true=true)
    area = AreaBySum(placements=placed, noisy=0, noise_scale=Fraction(1))
    assert area.value == placed.area
    expected = area.expected(false, true, positives=20.0, negatives=50.0)
    assert expected == pytest.approx(placed.area, abs=1e-12)
    # Other numbers of rows with the same rates: nothing moves.
    more = area.expected(false, true, positives=200.0, negatives=30.0)
    assert more == pytest.approx(placed.area, abs=1e-12)


def test_an_error_in_one_class_alone_is_seen_whole_by_the_sum() -> None:
    placed = placements()
    area = AreaBySum(placements=placed, noisy=0, noise_scale=Fraction(1))
    true = np.array([1.0, 0.95, 0.8, 0.0])
    found = area.expected(placed.false, true, positives=20.0, negatives=50.0)
    assert found == pytest.approx(float(-np.trapezoid(true, placed.false)), abs=1e-12)


def test_influences_are_whole_and_within_bounds_whatever_the_first_table_says() -> None:
    random = np.random.default_rng(6)
    cuts = np.arange(0, 33, 4)
    for _ in range(50):
        noisy = random.laplace(0, 10.0 ** random.integers(0, 6), (2, 4))
        placed = Placements.of_table(cuts, coarse=np.arange(0, 9, 2), noisy=noisy, scale=7.0)
        weights = placed.weights()
        assert weights.dtype == np.int64
        assert np.abs(weights).max() <= STEPS
        for rates in (placed.false, placed.true):
            assert rates[0] == pytest.approx(1)
            assert rates[-1] == 0
            assert (np.diff(rates) <= 0).all()


def test_a_kept_area_reads_back_exactly() -> None:
    area = AreaBySum(placements=placements(), noisy=-5, noise_scale=Fraction(7, 3))
    again = from_plain(plain(area))
    assert again.value == area.value
    assert again.noise_scale == area.noise_scale
    assert (again.placements.weights() == area.placements.weights()).all()


@pytest.mark.parametrize("falling", [False, True])
def test_where_counts_are_clear_they_and_not_the_belief_say_where_rows_stand(falling: bool) -> None:
    """Positives at both ends; a share that may only rise would be the same everywhere."""
    counts = np.array([[0, 300, 310, 5], [200, 3, 0, 90]])
    counts = counts[:, ::-1] if falling else counts
    placed = Placements.of_table(np.arange(5), coarse=np.arange(5), noisy=counts, scale=1.0)
    for rate, held in ((placed.false, counts[0]), (placed.true, counts[1])):
        # The emptiest parts are taken to hold a quarter of the mean.
        assert np.abs(rate[:-1] - np.cumsum(held[::-1])[::-1] / held.sum()).max() < 0.03


def test_in_noise_the_share_of_positives_is_believed_to_rise() -> None:
    counts = np.array([[40, 60, 50, 30], [35, 20, 45, 30]])
    placed = Placements.of_table(np.arange(5), coarse=np.arange(5), noisy=counts, scale=60.0)
    slopes = np.diff(placed.true) / np.diff(placed.false)
    assert (np.diff(slopes) >= -1e-9).all()
    assert placed.area > 0.5
