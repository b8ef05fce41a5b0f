"""The search for bounds: what neighbours can do to it, and the exact probability of each answer."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Loss, Neighbours, Protection, price
from heldout.kernel.regression import (
    BoundSearch,
    BoundSearchAsPrinted,
    IntervalChoice,
    Search,
    coverage,
    doublings,
)
from heldout.kernel.statistic import Sealed

PROTECTIONS = [
    Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
    for relation in Neighbours
    for unit, rows in ((False, 1), (True, 1), (True, 2))
]
CELLS = 4  # three bounds and what lies beyond
SETS = [
    np.array(counts) for counts in itertools.product(range(4), repeat=CELLS) if sum(counts) <= 4
]


def neighbours(first: Any, second: Any, protection: Protection) -> bool:
    """The definition, written again for rows that have nothing but a cell."""
    left = int(np.maximum(first - second, 0).sum())
    arrived = int(np.maximum(second - first, 0).sum())
    most = protection.rows_per_unit
    if protection.neighbours is Neighbours.ADD_REMOVE:
        return left + arrived <= most and min(left, arrived) == 0
    if protection.unit:
        return max(left, arrived) <= most
    return left == arrived and left <= 1


def named(protection: Protection) -> str:
    return f"{protection.neighbours}-{protection.unit}-{protection.rows_per_unit}"


each_protection = pytest.mark.parametrize("protection", PROTECTIONS, ids=named)


@each_protection
def test_nested_counts_move_one_way_exactly_where_it_is_claimed(protection: Protection) -> None:
    search = BoundSearch(epsilon=Fraction(1), protection=protection, threshold=2)
    both_ways = False
    for first, second in itertools.product(SETS, repeat=2):
        if neighbours(first, second, protection):
            moved = np.cumsum(second)[:-1] - np.cumsum(first)[:-1]
            assert np.abs(moved).max() <= search.test.sensitivity
            both_ways |= bool((moved > 0).any() and (moved < 0).any())
    assert search.one_way == (not both_ways)
    assert search.test.monotone == search.one_way


def chances(counts: Any, search: BoundSearch) -> Any:
    """P(each bound), by summing over the noise of the threshold; the last also if none is above."""
    queries = np.cumsum(counts)[:-1]
    scale = float(search.test.threshold_scale)
    reach = int(60 * scale)
    z = np.arange(-reach, reach + 1)
    p = math.exp(-1 / scale)
    density = (1 - p) / (1 + p) * p ** np.abs(z)
    q = math.exp(-1 / float(search.test.query_scale))
    found = []
    for query in queries:
        cut = search.threshold + z - query  # above if noise >= cut
        high = q ** np.maximum(cut, 1) / (1 + q)
        low = 1 - q ** np.maximum(1 - cut, 1) / (1 + q)
        above = np.where(cut >= 1, high, low)
        found.append(float((density * above).sum()))
        density = density * (1 - above)
    found[-1] += float(density.sum())
    return np.array(found)


@each_protection
def test_the_probability_of_each_bound_changes_by_at_most_the_claim(
    protection: Protection,
) -> None:
    search = BoundSearch(epsilon=Fraction(3, 2), protection=protection, threshold=2)
    laws = [chances(counts, search) for counts in SETS]
    assert all(law.sum() == pytest.approx(1, abs=1e-9) for law in laws)
    worst = 0.0
    for (a, first), (b, second) in itertools.product(enumerate(SETS), repeat=2):
        if neighbours(first, second, protection):
            worst = max(worst, float(np.abs(np.log(laws[a] / laws[b])).max()))
    assert 0.25 < worst <= 1.5 + 1e-9


@pytest.mark.chance(4e-7, "a chi-square of 3 cells above 30: 3.1e-7")
def test_the_probabilities_of_bounds_are_those_that_are_drawn() -> None:
    protection = Protection(neighbours=Neighbours.REPLACE_ONE)
    search = BoundSearch(epsilon=Fraction(2), protection=protection, threshold=5)
    counts, draws = np.array([3, 4, 2, 1]), 1000
    drawn = np.bincount([search.sample(Sealed(counts)) for _ in range(draws)], minlength=3)
    expected = chances(counts, search) * draws
    assert float(((drawn - expected) ** 2 / expected).sum()) < 30


def interval_law(counts: Any, choice: IntervalChoice) -> Any:
    first, end, penalties = choice.candidates(counts)
    weight = (end - first) ** 3.0 * np.exp(-float(choice.rate) * penalties)
    return weight / weight.sum()


@each_protection
def test_the_probability_of_each_interval_changes_by_at_most_the_claim(
    protection: Protection,
) -> None:
    choice = IntervalChoice(epsilon=Fraction(1), protection=protection, cells=CELLS - 1, price=1)
    worst = 0.0
    for first, second in itertools.product(SETS, repeat=2):
        if neighbours(first, second, protection):
            one, two = interval_law(first, choice), interval_law(second, choice)
            worst = max(worst, float(np.abs(np.log(one / two)).max()))
    assert 0.3 < worst <= 1 + 1e-9


@pytest.mark.chance(2e-7, "a chi-square of 6 cells above 40: 1.5e-7")
def test_the_probabilities_of_intervals_are_those_that_are_drawn() -> None:
    choice = IntervalChoice(
        epsilon=Fraction(1), protection=Protection(neighbours="replace-one"), cells=3, price=2
    )
    counts, draws = np.array([1, 6, 3, 9]), 2000
    first, end, _ = choice.candidates(counts)
    places = {pair: i for i, pair in enumerate(zip(first.tolist(), end.tolist(), strict=True))}
    drawn = np.bincount(
        [places[choice.sample(Sealed(counts))] for _ in range(draws)], minlength=len(places)
    )
    expected = interval_law(counts, choice) * draws
    assert float(((drawn - expected) ** 2 / expected).sum()) < 40


def test_no_positive_answer_is_the_last_bound() -> None:
    search = BoundSearch(
        epsilon=Fraction(1), protection=Protection(neighbours="replace-one"), threshold=10**6
    )
    assert search.sample(Sealed(np.array([1, 1, 1, 1]))) == 2


@pytest.mark.chance(4e-07, "0.05 / 20^4, as each 128 more is 20 times rarer")
def test_a_search_finds_where_many_rows_are_whatever_their_centre() -> None:
    protection = Protection(neighbours="replace-one")
    search = Search(
        column="predicted",
        epsilon=Fraction(2),
        whole_epsilon=Fraction(4),
        protection=protection,
        scale=1.0,
        symmetric=False,
        slack=4,
    )
    values = np.linspace(1000, 1050, 5000)
    bounds = search.bounds(5000)
    between = np.histogram(values, [0, *bounds])[0]
    size = search.size_mechanism(5000).sample(Sealed(np.append(between, 0)))
    cells = search.cells(size, 5000)
    inside = np.histogram(values, cells)[0]
    place = search.place_mechanism(5000).sample(Sealed(np.append(inside, 0)))
    answers = {"predicted size": size, "predicted place": place}
    low, high = search.interval(answers, 5000)
    assert 0 < low <= 1025 <= high <= 2048
    assert high - low <= 768  # 256 in 95 of 100 draws, and each 128 more is 20 times rarer


def test_bounds_reach_further_and_cover_more_where_more_rows_are_seen() -> None:
    assert doublings(0.1) == (0, 10)
    for few, many in itertools.pairwise([0.1, 10, 100, 1000, 10**6]):
        assert doublings(many)[0] <= doublings(few)[0]
        assert doublings(many)[1] >= doublings(few)[1]
        assert coverage(many) >= coverage(few)


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon: Fraction) -> None:
    protection = Protection(neighbours="replace-one")
    with pytest.raises(ArgumentError):
        BoundSearch(epsilon=epsilon, protection=protection, threshold=1)
    with pytest.raises(ArgumentError):
        IntervalChoice(epsilon=epsilon, protection=protection, cells=2, price=1)


@each_protection
def test_the_price_of_the_event_is_the_claim(protection: Protection) -> None:
    epsilon = Fraction(3, 7)
    search = BoundSearch(epsilon=epsilon, protection=protection, threshold=1)
    choice = IntervalChoice(epsilon=epsilon, protection=protection, cells=2, price=1)
    for each in (search, choice):
        assert price(each.event()) == Loss.pure(each.epsilon)


@pytest.mark.chance(1e-20, "missed in 1 of 6,000 and in 2 of 3: binomial tails of 400")
@pytest.mark.parametrize(("rows", "epsilon"), [(5_000, "1"), (1_000, "1"), (5_000, "1/10")])
def test_printed_bounds_hold_as_many_rows_as_theorem_2_says(rows: int, epsilon: str) -> None:
    """Chen et al. 2016: theta - alpha of the rows with chance 1 - beta, alpha from n epsilon.

    The rows are the worst there are: every bound before the last holds just too few of them. With
    a tenth of alpha the theorem would be wrong, so this can fail.
    """
    theta, beta, k, runs = 0.95, 0.05, 6, 400
    alpha = 8 * (math.log(k - 1) + math.log(2 / beta)) / (rows * float(Fraction(epsilon)))
    search = BoundSearchAsPrinted(
        epsilon=Fraction(epsilon),
        protection=Protection(neighbours="replace-one"),
        threshold=math.ceil(theta * rows),
    )

    def missed(short: float) -> float:
        """How often the bounds hold only theta - short of the rows."""
        before = max(math.floor((theta - short) * rows), 0)
        counts = np.array([before, *[0] * (k - 1), rows - before, 0])
        return float(np.mean([search.sample(Sealed(counts)) < k for _ in range(runs)]))

    assert missed(1.01 * alpha) <= beta
    assert missed(alpha / 10) > beta
