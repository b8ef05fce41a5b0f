"""The default method: its price, its exact draws, how far one row moves its cuts, and its noise."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Loss
from heldout.kernel.curves.heldout import CountsWithArea, HeldoutCurves, TableWithArea
from heldout.kernel.curves.registry import method
from heldout.kernel.curves.thresholds import (
    CrowdedCells,
    MedianCuts,
    cumulative_measure,
    heap_weights,
    public_edges,
)
from heldout.kernel.events import price
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.selection import choose_exactly
from heldout.kernel.noise.tables import laplace_deviation
from heldout.kernel.statistic import Sealed

REPLACE = Protection(neighbours="replace-one")
PROTECTIONS = [
    REPLACE,
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=4),
    Protection(neighbours="add-remove", unit=True, rows_per_unit=3),
]
POINTS = 257


def made(**changed: Any) -> HeldoutCurves:
    arguments: dict[str, Any] = {
        "epsilon": Fraction(1),
        "protection": REPLACE,
        "points": POINTS,
        "rows": 2000,
    }
    found = method("heldout", **{**arguments, **changed})
    assert isinstance(found, HeldoutCurves)
    return found


def sealed(labels: Any, places: Any, points: int = POINTS) -> Sealed[Any]:
    counts = np.zeros(2 * points, dtype=np.int64)
    np.add.at(counts, np.asarray(labels, int) * points + np.asarray(places, int), 1)
    return Sealed(counts)


# --- price ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("rows", [1, 600, 10_000, 10**6])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(3, 7), Fraction(400)], ids=str)
def test_the_price_is_epsilon_and_the_sum_of_the_parts(
    protection: Protection, rows: int, epsilon: Fraction
) -> None:
    known = rows if protection.row_count_is_public else None
    one = made(protection=protection, rows=known, expected_rows=rows, epsilon=epsilon)
    assert price(one.event()) == Loss.pure(one.epsilon)
    parts = [each for each in (one.cuts, one.heaps, one.first, one.counts) if each]
    assert sum(price(each.event()).epsilon for each in parts) == epsilon
    if isinstance(one.counts, CountsWithArea):
        assert one.first is not None
        assert one.first.l1_sensitivity == one.counts.moved == protection.rows_moved
        assert one.counts.area_epsilon == one.area_share * epsilon
        assert one.counts.balanced == protection.row_count_is_public
    else:
        assert one.counts.l1_sensitivity == protection.rows_moved
    assert one.describe()["name"] == "heldout"


def test_parameters_come_from_public_facts_alone() -> None:
    one, other = made(rows=250), made(rows=250)
    assert one.event() == other.event()
    assert one.levels == 0, "public bins where rows do not stand out"
    assert [made(rows=rows).levels for rows in (1_000, 2_500, 100_000)] == [3, 4, 5]
    assert made().first is None, "no area is bought unless it is asked for"
    assert made(area_share="2/5").area_share == Fraction(2, 5)
    heaps = [made(rows=rows).heap_share for rows in (499, 500)]
    assert heaps == [0, Fraction(1, 10)], "no heap stands out of few rows"


@pytest.mark.parametrize(
    "bad",
    [
        {"area_share": "1"},
        {"heap_share": "1"},
        {"heap_share": "-1/10"},
        {"heap_share": "1/10", "values": (3, 9)},
        {"levels": 9},
        {"levels": -1},
        {"named": (0,)},
        {"named": (9, 9)},
        {"named": (POINTS,)},
        {"named_share": "1/2"},
        {"named": (9,), "named_share": "1"},
        {"named": tuple(range(1, 18))},
    ],
)
def test_wrong_parameters_are_refused_before_anything_is_booked(bad: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        made(**bad)


@pytest.mark.chance(1e-100, "--louder 20: 0 of 6 runs fail")
def test_a_row_at_a_named_threshold_lies_above_it() -> None:
    one = made(epsilon=Fraction(400), named=(60, 200))
    places = np.repeat([59, 60, 61, 199, 200, 201], 300)
    table = one.sample(sealed(np.arange(1800) % 2, places))
    assert table.named is not None
    assert np.abs(table.named.counts - np.array([[150, 450, 300]] * 2)).max() < 10


@pytest.mark.chance(1e-7, "6.1 deviations of 3.7% below, 8.1 above")
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_named_counts_have_the_stated_noise_and_price(protection: Protection) -> None:
    known = 400 if protection.row_count_is_public else None
    one = made(protection=protection, rows=known, expected_rows=400, named=(60, 200))
    assert price(one.event()) == Loss.pure(one.epsilon)
    assert one.named_counts is not None
    bought = one.named_counts.l1_sensitivity / one.named_counts.scale
    assert bought == Fraction(2, 3) * one.epsilon
    assert one.named_counts.l1_sensitivity == protection.rows_moved
    random = np.random.default_rng(5)
    labels, places = random.integers(0, 2, 400), random.integers(0, POINTS, 400)
    exact = np.histogram2d(labels, places, bins=[[0, 1, 2], [0, 60, 200, POINTS]])[0]
    rows, strays = sealed(labels, places), []
    for _ in range(150):
        table = one.sample(rows)
        assert table.named is not None
        assert {60, 200} <= set(table.edges.tolist())
        strays.append(table.named.counts - exact)
    deviation = laplace_deviation(one.named_counts.scale)
    # A standard deviation of 900 Laplace draws is known to about 4%, and 30% off is not by chance.
    assert 0.77 < np.std(strays) / deviation < 1.3


# --- exact choice --------------------------------------------------------------------------------


def chi_square(counts: Any, law: Any) -> float:
    """The survival probability of the statistic."""
    from scipy.stats import chi2

    expected = np.asarray(law) * counts.sum()
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(law) - 1))


def law_of(weights: Any, penalties: Any, rate: float) -> Any:
    mass = np.asarray(weights) * np.exp(-rate * np.asarray(penalties, dtype=float))
    return mass / mass.sum()


@pytest.mark.chance(1.1e-6, "a p-value of 1e-6; noncentral tails of the others: 1.2e-13")
def test_the_choice_has_the_law_that_it_says_and_no_other() -> None:
    weights, penalties, rate = np.array([5, 1, 3, 8, 2]), np.array([4, 0, 2, 7, 1]), Fraction(1, 3)
    drawn = Counter(choose_exactly(weights, penalties, rate) for _ in range(30_000))
    counts = np.array([drawn[i] for i in range(5)])
    assert chi_square(counts, law_of(weights, penalties, 1 / 3)) > 1e-6
    assert chi_square(counts, law_of(weights, penalties, 0.37)) < 1e-6
    assert chi_square(counts, law_of([5, 1, 3, 10, 2], penalties, 1 / 3)) < 1e-6


def test_a_weight_that_doubles_cannot_hold_is_still_possible_and_never_fails() -> None:
    weights = np.array([1, 2**32])
    assert choose_exactly(weights, np.array([0, 10**9]), Fraction(1)) == 0
    assert choose_exactly(weights, np.array([10**12, 10**12]), Fraction(1, 7)) in (0, 1)


def test_an_index_that_doubles_propose_too_often_is_drawn_again() -> None:
    """The second has a chance of exp(-10^6), and as a whole-numbered proposal one of 2^-39."""
    last = int(np.ceil(2.0**39 * (1 + 2.0**-30)))
    script = [last.to_bytes(5, "big"), b"\xff" * 12, bytes(5), bytes(12)]

    def stream(count: int) -> bytes:
        assert len(script[0]) == count
        return script.pop(0)

    chosen = choose_exactly(np.array([1, 1]), np.array([0, 10**6]), Fraction(1), randomness=stream)
    assert (chosen, script) == (0, [])


def test_the_choice_is_the_same_for_the_same_randomness() -> None:
    def stream(n: int) -> bytes:
        return bytes(range(7, 7 + n))

    args = (np.array([3, 9, 4]), np.array([1, 2, 0]), Fraction(1, 2))
    assert choose_exactly(*args, randomness=stream) == choose_exactly(*args, randomness=stream)


# --- cuts ----------------------------------------------------------------------------------------


def cut_law(counts: Any, cuts: MedianCuts) -> dict[tuple[int, ...], float]:
    """The law of the edges by enumeration, written anew from the statement of the proof."""
    points = len(counts)
    measure = cumulative_measure(points)
    pseudo = np.rint(measure * cuts.pseudo_rows)
    weights = np.maximum(np.rint(np.gradient(measure) * 2**32), 1)

    def mass(left: int, right: int) -> float:
        return float(np.sum(counts[left:right]) + pseudo[right] - pseudo[left])

    def parts(left: int, right: int, levels: int) -> dict[frozenset[int], float]:
        if levels == 0 or right - left < 2:
            return {frozenset(): 1.0}
        places = range(left + 1, right)
        penalties = [abs(mass(left, c) - mass(c, right)) for c in places]
        chances = law_of(weights[left + 1 : right], penalties, float(cuts.rate))
        found: dict[frozenset[int], float] = {}
        for c, chance in zip(places, chances, strict=True):
            lower, upper = parts(left, c, levels - 1), parts(c, right, levels - 1)
            for (a, pa), (b, pb) in itertools.product(lower.items(), upper.items()):
                key = a | b | {c}
                found[key] = found.get(key, 0.0) + chance * pa * pb
        return found

    whole = parts(0, points, cuts.levels)
    return {(0, *sorted(key), points): chance for key, chance in whole.items()}


@pytest.mark.parametrize("moved", [1, 2, 4])
def test_neighbours_cuts_are_within_epsilon_and_half_the_noise_would_not_do(moved: int) -> None:
    cuts = MedianCuts(levels=2, epsilon=Fraction(3), moved=moved, pseudo_rows=3)
    worst = 0.0
    for rows in itertools.product(range(3), repeat=5):
        here = cut_law(np.array(rows), cuts)
        for place in range(5):
            more = np.array(rows)
            more[place] += 1
            there = cut_law(more, cuts)
            worst = max(worst, *(abs(math.log(here[key] / there[key])) for key in here))
    assert worst <= float(cuts.epsilon / moved) + 1e-9, "one row"
    assert worst > float(cuts.epsilon / moved) / 2, "twice the rate would be refused"


@pytest.mark.chance(2e-6, "a p-value of 1e-6; another law is 1,276 off, and 41 are asked")
def test_cuts_are_drawn_by_that_law() -> None:
    cuts = MedianCuts(levels=2, epsilon=Fraction(4), moved=1, pseudo_rows=2)
    counts = np.array([4, 0, 1, 0, 6])
    law = cut_law(counts, cuts)
    drawn = Counter(tuple(cuts.draw(counts).tolist()) for _ in range(6_000))
    assert set(drawn) <= set(law)
    common = [key for key, chance in law.items() if chance > 0.005]
    observed = np.array([*(drawn[key] for key in common)])
    expected = np.array([law[key] for key in common])
    rest = 6_000 - observed.sum()
    observed, expected = np.append(observed, rest), np.append(expected, 1 - expected.sum())
    assert chi_square(observed, expected) > 1e-6
    other = cut_law(counts, MedianCuts(levels=2, epsilon=Fraction(6), moved=1, pseudo_rows=2))
    wrong = np.array([other[key] for key in common])
    assert chi_square(observed, np.append(wrong, 1 - wrong.sum())) < 1e-6


def test_cuts_find_where_the_rows_are() -> None:
    counts = np.zeros(65537, dtype=np.int64)
    counts[20_000:20_400] = 100
    edges = MedianCuts(levels=3, epsilon=Fraction(1), moved=2, pseudo_rows=2_000).draw(counts)
    assert ((edges > 20_000) & (edges < 20_400)).sum() >= 5


def test_public_edges_are_finer_towards_the_ends() -> None:
    edges = public_edges(65537, bins=8)
    assert len(edges) == 9
    assert np.diff(edges)[0] < np.diff(edges)[3]
    assert public_edges(3, bins=8).tolist() == [0, 1, 2, 3]


# --- the whole draw ------------------------------------------------------------------------------

DEGENERATE = {
    "no row": ([], []),
    "one row": ([1], [100]),
    "one class": ([0] * 50, list(range(50))),
    "all scores equal": ([0, 1] * 30, [POINTS - 1] * 60),
    "two scores": ([0, 1] * 30, [0, 256] * 30),
}


@pytest.mark.parametrize("rows", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(100)], ids=str)
@pytest.mark.parametrize("levels", [0, 3])
def test_a_valid_table_whatever_the_rows_are(rows: Any, epsilon: Fraction, levels: int) -> None:
    usual = made(epsilon=epsilon, levels=levels, rows=len(rows[0]), area_share="3/5")
    table = usual.sample(sealed(*rows))
    assert isinstance(table, TableWithArea)
    assert table.edges[0] == 0
    assert table.edges[-1] == POINTS
    assert json.loads(json.dumps(table.as_dict()))["area"]["unclamped"] == table.area.value


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(ArgumentError, match="points"):
        made().sample(Sealed(np.zeros(10, dtype=np.int64)))


@pytest.mark.chance(1e-7, "5.5 deviations are 4e-8; of the spread 5.9 below, 6.9 above")
def test_counts_are_unbiased_and_their_noise_has_the_stated_deviation() -> None:
    random = np.random.default_rng(1)
    rows = sealed(random.integers(0, 2, 600), random.integers(0, POINTS, 600))
    one = made(rows=600, levels=0)
    exact = np.add.reduceat(rows._content.reshape(2, POINTS), public_edges(POINTS, bins=5)[:-1], 1)
    strays = []
    for _ in range(300):
        table = one.sample(rows)
        strays.append(np.stack([table.negatives, table.positives]) - exact)
    deviation = laplace_deviation(one.counts.scale)
    everything = np.array(strays).ravel()
    assert abs(everything.mean()) < 5.5 * deviation / len(everything) ** 0.5
    # A standard deviation of 3,000 Laplace draws is known to about 2%, so that a noise of a scale
    # a sixth larger or smaller would be seen.
    assert 0.88 < everything.std() / deviation < 1.14


def test_the_area_is_that_of_the_rows_on_the_grid() -> None:
    places = np.concatenate([np.arange(100), np.arange(100) + 50])
    rows = sealed([0] * 100 + [1] * 100, places)
    one = made(rows=200, epsilon=Fraction(400), area_share="2/5")
    areas = [one.sample(rows).area.value for _ in range(5)]
    assert abs(np.median(areas) - 0.875) < 0.005


# --- crowded cells -------------------------------------------------------------------------------


def cell_law(counts: Any, edges: Any, cells: CrowdedCells) -> dict[tuple[int, ...], float]:
    """The probability of every choice of a cell, or of none, in each bin."""
    weights, law = heap_weights(len(counts)), {(): 1.0}
    for left, right in itertools.pairwise(edges):
        terms = weights[left:right] * np.exp(float(cells.rate) * np.asarray(counts[left:right]))
        choices: list[tuple[int, ...]] = [(cell,) for cell in range(left, right)]
        if cells.undivided:
            choices.append(())
            terms = np.append(terms, cells.undivided * weights[left:right].sum())
        law = {
            (*before, *choice): chance * float(term / terms.sum())
            for before, chance in law.items()
            for choice, term in zip(choices, terms, strict=True)
        }
    return law


@pytest.mark.parametrize("moved", [1, 2, 4])
@pytest.mark.parametrize("undivided", [0, 1, 9])
def test_neighbours_cells_are_within_epsilon_and_half_the_noise_would_not_do(
    moved: int, undivided: int
) -> None:
    edges, epsilon = [0, 2, 5], Fraction(3)
    cells = CrowdedCells(epsilon=epsilon, moved=moved, undivided=undivided)
    most = 0.0
    for counts in itertools.product(range(3), repeat=5):
        one = cell_law(counts, edges, cells)
        # Rows that leave or arrive one by one; `moved` of them lose `moved` times as much.
        for place in range(5):
            more = list(counts)
            more[place] += 1
            other = cell_law(more, edges, cells)
            losses = [abs(math.log(one[each] / other[each])) for each in one]
            most = max(most, *losses)
    assert most <= float(epsilon) / moved * (1 + 1e-12)
    heap = (
        cell_law([0, 0, 0, 0, 0], edges, cells),
        cell_law([0, 0, 0, 0, moved], edges, cells),
    )
    worst = max(abs(math.log(heap[0][each] / heap[1][each])) for each in heap[0])
    assert worst > float(epsilon) / 2, "with twice the rate a row could lose more than epsilon"


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("most", [1, 2])
def test_no_neighbours_cells_lose_more_than_epsilon_whichever_bins_rows_leave_and_enter(
    relation: str, most: int
) -> None:
    """All small neighbours themselves: rows that leave one bin for another, and units of rows."""
    protection = Protection(neighbours=relation, unit=most > 1, rows_per_unit=most)
    cells = CrowdedCells(epsilon=Fraction(4), moved=protection.rows_moved)
    tables = {size: _tables_of(size) for size in range(4)}
    laws = {
        counts: np.log(list(cell_law(counts, [0, 2, 4], cells).values()))
        for size in range(6)
        for counts in _tables_of(size)
    }
    worst = 0.0
    for leave, arrive in protection.changes():
        for stay, left, came in itertools.product(tables[3], tables[leave], tables[arrive]):
            before = tuple(np.add(stay, left).tolist())
            after = tuple(np.add(stay, came).tolist())
            worst = max(worst, float(np.abs(laws[before] - laws[after]).max()))
    assert 0.8 * 4 < worst <= 4 * (1 + 1e-12)


def _tables_of(rows: int) -> list[tuple[int, ...]]:
    """Every way to put so many rows into four cells."""
    return [each for each in itertools.product(range(rows + 1), repeat=4) if sum(each) == rows]


@pytest.mark.parametrize("undivided", [0, 2])
def test_cells_are_drawn_by_that_law(undivided: int) -> None:
    counts, edges = np.array([2, 0, 1, 3, 0]), np.array([0, 2, 5])
    cells = CrowdedCells(epsilon=Fraction(1), moved=1, undivided=undivided)
    law = cell_law(counts, edges.tolist(), cells)
    runs = 4_000
    found = Counter(tuple(cells.draw(counts, edges).tolist()) for _ in range(runs))
    for each, chance in law.items():
        deviation = math.sqrt(runs * chance * (1 - chance))
        assert abs(found[each] - runs * chance) < 5.5 * deviation + 1


def test_a_heap_is_found_and_is_a_bin_of_its_own() -> None:
    random = np.random.default_rng(5)
    places = np.where(random.random(4_000) < 0.2, 77, random.integers(0, POINTS, 4_000))
    drawn = made(rows=4_000).sample(sealed(random.random(4_000) < 0.3, places))
    assert 77 in drawn.heaps
    place = drawn.edges.tolist().index(77)
    assert drawn.edges[place + 1] == 78
    assert drawn.negatives[place] + drawn.positives[place] == pytest.approx(800, abs=250)


@pytest.mark.chance(1e-9, "half of about 60 bins parted, one in ten each")
def test_bins_without_a_heap_stay_whole_unless_they_are_wide() -> None:
    places = np.arange(10 * POINTS) % POINTS
    labels = np.arange(10 * POINTS) % 3 == 0
    few = {"rows": len(places), "epsilon": Fraction(1, 10), "heap_share": "1/10"}
    fine, coarse = (made(**few, levels=levels).sample(sealed(labels, places)) for levels in (6, 3))
    assert len(coarse.heaps) == len(coarse.cuts) - 1
    assert len(fine.heaps) < (len(fine.cuts) - 1) / 2


def test_declared_scores_are_the_bins_and_cost_nothing() -> None:
    one = made(values=(0, 64, 128, 256), rows=2_500)
    assert price(one.event()) == Loss.pure(Fraction(1))
    assert one.cuts is one.heaps is None
    drawn = one.sample(sealed([0, 1] * 1250, [64, 128] * 1250))
    assert drawn.edges.tolist() == [0, 64, 128, 256, POINTS]
    assert drawn.values.tolist() == [0, 64, 128, 256]
