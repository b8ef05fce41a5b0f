"""Smooth sensitivity of the median, and recursive medians on tiny grids, by enumeration."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from tests.chances import improbability

from heldout.errors import ArgumentError
from heldout.kernel.curves.thresholds import (
    EvenEdges,
    MedianNissim2007,
    MediansAsPrinted,
    RecursiveMedians,
    Rows,
    SmoothMedian,
)
from heldout.kernel.events import Event, price
from heldout.kernel.neighbours import Protection

Multiset = tuple[int, ...]


def _rows(values: Multiset, points: int, left: int = -1, right: int | None = None) -> Rows:
    counts = np.bincount(np.array(values, dtype=np.int64), minlength=points)
    below = np.append(0, np.cumsum(counts))
    return Rows(below, left, points if right is None else right)


def _sets(points: int, most: int) -> Iterator[Multiset]:
    for size in range(most + 1):
        yield from combinations_with_replacement(range(points), size)


def _smooth(median: SmoothMedian, rows: Rows) -> float:
    return max(gap * math.exp(-float(median.beta) * k) for gap, k in median.candidates(rows))


def _middle(rows: Rows) -> int:
    return int(rows.order_statistic((rows.count + 1) // 2))


def _with_one_more(values: Multiset, points: int) -> Iterator[Multiset]:
    for new in range(points):
        yield tuple(sorted((*values, new)))


@pytest.mark.parametrize("kind", [SmoothMedian, MedianNissim2007])
@pytest.mark.parametrize("beta", [Fraction(1, 20), Fraction(1, 2), Fraction(1)])
def test_the_sensitivity_is_smooth_and_never_below_the_local_one(
    beta: Fraction, kind: type[SmoothMedian]
) -> None:
    points, median = 6, kind(a=Fraction(1), beta=beta)
    tight = 0
    for values in _sets(points, 5):
        here = _rows(values, points)
        scale = _smooth(median, here)
        for other in _with_one_more(values, points):
            there = _rows(other, points)
            ratio = abs(math.log(scale / _smooth(median, there)))
            assert ratio <= float(beta) + 1e-9
            tight += ratio > 0.99 * float(beta)
            move = abs(_middle(here) - _middle(there))
            assert move <= min(scale, _smooth(median, there)) + 1e-9
    assert tight, "a smaller beta would do"


def test_the_sensitivity_is_the_largest_gap_that_arrivals_and_departures_can_make() -> None:
    """The closed form against a search through every data set within k steps."""
    points, median = 5, SmoothMedian(a=Fraction(1), beta=Fraction(1, 3))
    known = set(_sets(points, 6))
    moves = {
        values: max(
            abs(_middle(_rows(values, points)) - _middle(_rows(other, points)))
            for other in [
                *_with_one_more(values, points),
                *(values[:i] + values[i + 1 :] for i in range(len(values))),
            ]
        )
        for values in known
    }

    def distance(one: Multiset, two: Multiset) -> int:
        a, b = np.bincount(one, minlength=points), np.bincount(two, minlength=points)
        return int(np.abs(a - b).sum()) if one and two else len(one) + len(two)

    for values in _sets(points, 3):
        reached = max(
            move * math.exp(-distance(values, other) / 3) for other, move in moves.items()
        )
        assert _smooth(median, _rows(values, points)) >= reached - 1e-9


def test_the_references_sensitivity_is_its_formula_and_never_the_smaller() -> None:
    """Nissim et al.: max over k of exp(-beta k) max over t of x[m + t] - x[m + t - k - 1]."""
    points, beta = 6, 1 / 3
    ours, theirs = (
        kind(a=Fraction(1), beta=Fraction(1, 3)) for kind in (SmoothMedian, MedianNissim2007)
    )
    apart = 0
    for values in _sets(points, 5):
        if not values:
            continue
        m, n = (len(values) + 1) // 2, len(values)

        def x(rank: int, values: Multiset = values, n: int = n) -> int:
            return -1 if rank < 1 else points if rank > n else values[rank - 1]

        printed = max(
            math.exp(-beta * k) * max(x(m + t) - x(m + t - k - 1) for t in range(k + 2))
            for k in range(n + 2)
        )
        rows = _rows(values, points)
        assert _smooth(theirs, rows) == pytest.approx(max(printed, 1.0))
        assert _smooth(theirs, rows) >= _smooth(ours, rows) - 1e-12
        apart += _smooth(theirs, rows) > _smooth(ours, rows) + 1e-9
    assert apart


def _cauchy(value: float) -> float:
    return 0.5 + math.atan(value) / math.pi


def _outcomes(cut: RecursiveMedians, values: Multiset, points: int) -> dict[Any, float]:
    """The probability of every sequence of cuts, by the Cauchy distribution function."""
    median = cut.median

    def walk(left: int, right: int, levels: int) -> dict[Any, float]:
        if levels == 0 or right - left < 2:
            return {(): 1.0}
        rows = _rows(values, points, left, right)
        centre, scale = _middle(rows), _smooth(median, rows) / float(median.a)
        inside = {
            j: _cauchy((j + 0.5 - centre) / scale) - _cauchy((j - 0.5 - centre) / scale)
            for j in range(left + 1, right)
        }
        inside[(left + right) // 2] += 1 - sum(inside.values())
        found: dict[Any, float] = {}
        for j, mass in inside.items():
            low, high = walk(left, j, levels - 1), walk(j, right, levels - 1)
            for (a, p), (b, q) in product(low.items(), high.items()):
                found[j, a, b] = mass * p * q
        return found

    return walk(-1, points, cut.levels)


def _neighbours(values: Multiset, points: int, protection: Protection) -> Iterator[Multiset]:
    for leave, arrive in protection.changes():
        if leave <= len(values):
            for gone in {tuple(sorted(c)) for c in combinations_with_replacement(values, leave)}:
                kept = list(values)
                try:
                    for each in gone:
                        kept.remove(each)
                except ValueError:
                    continue
                for new in combinations_with_replacement(range(points), arrive):
                    yield tuple(sorted((*kept, *new)))


@pytest.mark.parametrize(
    ("protection", "floor"),
    [
        (Protection(neighbours="add-remove"), 0.3),
        (Protection(neighbours="replace-one"), 0.3),
        (Protection(neighbours="add-remove", unit=True, rows_per_unit=2), 0.2),
        (Protection(neighbours="replace-one", unit=True, rows_per_unit=2), 0.1),
    ],
    ids=["add-remove", "replace-one", "unit add-remove", "unit replace-one"],
)
def test_no_sequence_of_cuts_is_more_telling_than_claimed(
    protection: Protection, floor: float
) -> None:
    points, most = 4, 4
    cut = RecursiveMedians(levels=2, epsilon=Fraction(2), moved=protection.rows_moved)
    known = {values: _outcomes(cut, values, points) for values in _sets(points, most)}
    worst = 0.0
    for values, here in known.items():
        assert sum(here.values()) == pytest.approx(1)
        for other in _neighbours(values, points, protection):
            there = known.get(other)
            if there is not None:
                worst = max(worst, *(math.log(here[key] / there[key]) for key in here))
    assert floor * 2 < worst <= 2


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_noise_as_printed_loses_less_than_its_price(relation: Any) -> None:
    protection = Protection(neighbours=relation)
    cut = MediansAsPrinted(levels=2, epsilon=Fraction(2), moved=protection.rows_moved)
    assert price(Event.composed(cut.events())).as_dict()["epsilon"] == "2"
    worst = _worst(cut, 4, protection)
    assert 0.1 < worst <= 2 * 5 / 8


def test_without_the_half_replace_one_loses_more_than_one_row_should() -> None:
    """Both medians of a level change: what add-remove noise gives away under replace-one."""
    points, cut = 4, RecursiveMedians(levels=2, epsilon=Fraction(2), moved=1)
    one = _worst(cut, points, Protection(neighbours="add-remove"))
    both = _worst(cut, points, Protection(neighbours="replace-one"))
    assert both > 1.3 * one


def _worst(cut: RecursiveMedians, points: int, protection: Protection) -> float:
    known = {values: _outcomes(cut, values, points) for values in _sets(points, 4)}
    return max(
        math.log(here[key] / known[other][key])
        for values, here in known.items()
        for other in _neighbours(values, points, protection)
        if other in known
        for key in here
    )


def test_the_noise_of_a_median_is_as_wide_as_its_smooth_sensitivity() -> None:
    """At u = 3/4 the Cauchy law is at 1: the median and S/a, to the next point."""
    median = SmoothMedian(a=Fraction(1, 1000), beta=Fraction(1, 10))
    for values in ((0, 0, 1, 3, 3), (0, 0, 30, 30, 30), (5, 20, 21, 39)):
        rows = _rows(values, 40)
        drawn = median.sample(rows, randomness=lambda count: b"\xc0" + bytes(count - 1))
        assert drawn == pytest.approx(_middle(rows) + 1000 * _smooth(median, rows), abs=1)


@pytest.mark.chance(4e-8, "four binomial tails")
def test_cuts_are_drawn_with_those_probabilities() -> None:
    points, values = 4, (0, 0, 1, 3, 3)
    cut = RecursiveMedians(levels=1, epsilon=Fraction(3), moved=1)
    expected = _outcomes(cut, values, points)
    counts = np.bincount(values, minlength=points)
    runs = 4000
    drawn = [tuple(cut.draw(counts).tolist()) for _ in range(runs)]
    for (middle, _, _), mass in expected.items():
        edges = tuple(sorted({0, middle + 1, points}))
        assert improbability(drawn.count(edges), runs, mass) > 1e-8


@pytest.mark.chance(1e-15, "8 of 15 draws stray, one in 1,000 each: 6435e-24")
def test_medians_split_the_rows_evenly_when_there_is_budget() -> None:
    generator = np.random.default_rng(5)
    points = 2**12
    counts = np.bincount((generator.beta(2, 8, 20_000) * points).astype(int), minlength=points)

    def is_even() -> bool:
        edges = RecursiveMedians(levels=3, epsilon=Fraction(20_000), moved=2).draw(counts)
        shares = np.add.reduceat(counts, edges[:-1]) / counts.sum()
        return len(shares) == 8 and 0.1 < shares.min() < shares.max() < 0.15

    # Cauchy noise strays so far in about one draw of 1,000.
    assert sum(is_even() for _ in range(15)) >= 8


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [9, 0, 0, 0], [0, 0, 0, 5], [1, 0, 0, 0]])
def test_edges_rise_from_the_first_point_to_the_last(counts: list[int]) -> None:
    for _ in range(20):
        edges = RecursiveMedians(levels=4, epsilon=Fraction(1, 100), moved=2).draw(counts)
        assert edges[0] == 0
        assert edges[-1] == 4
        assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("moved", [1, 2, 8])
def test_the_levels_cost_epsilon_together(moved: int) -> None:
    cut = RecursiveMedians(levels=7, epsilon=Fraction(1, 5), moved=moved)
    assert price(Event.composed(cut.events())).as_dict()["epsilon"] == "1/5"
    assert 7 * moved * (cut.median.a + cut.median.beta) == Fraction(1, 5)


def test_impossible_levels_and_noise_are_refused() -> None:
    with pytest.raises(ArgumentError, match="levels"):
        RecursiveMedians(levels=0, epsilon=Fraction(1), moved=1)
    with pytest.raises(ArgumentError, match="thresholds"):
        EvenEdges(bins=0)
    with pytest.raises(ArgumentError, match="positive"):
        SmoothMedian(a=Fraction(0), beta=Fraction(1))
