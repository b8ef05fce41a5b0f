"""The sensitivities, on every small data set and on the large ones where small searches mislead."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from tests.kernel.ranking import small_data as small

from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.exact import working_precision
from heldout.kernel.ranking.sensitivity import (
    AreaSensitivity,
    PrecisionSensitivity,
    PublishedPrecisionSensitivity,
    RungSensitivity,
    SmoothSensitivity,
)

REPLACE = Protection(neighbours="replace-one")
ADD = Protection(neighbours="add-remove")


def unit(neighbours: str, rows: int) -> Protection:
    return Protection(neighbours=neighbours, unit=True, rows_per_unit=rows)


def moves(value: Callable[..., Fraction], protection: Protection, rows: int) -> Any:
    """The largest moves over all data sets of at most so many rows."""
    k = protection.rows_per_unit
    cores: Iterator[Any] = chain.from_iterable(small.data_sets(i) for i in range(rows - k + 1))
    return small.spread_by_counts(
        value,
        cores,
        most_rows=k,
        both_ways=protection.both_ways,
        equal_sizes=protection.row_count_is_public,
    )


def check(local: RungSensitivity, found: Any) -> None:
    """Every move is within the bound of both ends' rungs, and the rungs are adjacent."""
    for ((n, m), (other_n, other_m)), move in found.items():
        rung = local.rung(positives=n, negatives=m)
        other = local.rung(positives=other_n, negatives=other_m)
        assert abs(rung - other) <= 1
        assert move <= Fraction(local.upper(rung)), (n, m, other_n, other_m)


@pytest.mark.parametrize("protection", [REPLACE, ADD], ids=str)
def test_one_row_moves_the_area_by_one_over_the_smaller_class_and_no_more(
    protection: Protection,
) -> None:
    found = moves(small.area, protection, 8)
    check(AreaSensitivity(protection=protection), found)
    attained: dict[int, Fraction] = {}
    for ((n, m), _), move in found.items():
        attained[min(n, m)] = max(move, attained.get(min(n, m), Fraction(0)))
    assert attained[1] == (1 if protection is REPLACE else Fraction(1, 2))
    assert [attained[c] for c in (2, 3, 4)] == [
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(1, 4),
    ]


@pytest.mark.parametrize("value", [small.grouped_precision, small.precision])
@pytest.mark.parametrize("protection", [REPLACE, ADD], ids=str)
def test_one_row_moves_average_precision_within_its_bound(
    protection: Protection, value: Callable[..., Fraction]
) -> None:
    found = moves(value, protection, 8)
    check(PrecisionSensitivity(protection=protection), found)
    attained: dict[int, Fraction] = {}
    for ((n, _), _), move in found.items():
        attained[n] = max(move, attained.get(n, Fraction(0)))
    harmonic = [sum((Fraction(1, i) for i in range(1, n + 1)), Fraction(0)) for n in range(10)]
    if protection is REPLACE:
        expected = {n: (harmonic[n] - 1) / (n - 1) for n in range(4, 9)}
    else:
        expected = {n: (harmonic[n + 1] - 1) / n for n in range(3, 8)}
    assert {n: attained[n] for n in expected} == expected


@pytest.mark.parametrize(
    ("protection", "rows"),
    [
        (unit("replace-one", 1), 7),
        (unit("add-remove", 2), 6),
        (unit("replace-one", 2), 6),
        (unit("add-remove", 3), 6),
        (unit("replace-one", 3), 5),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("value", "sensitivity"),
    [
        (small.area, AreaSensitivity),
        (small.grouped_precision, PrecisionSensitivity),
        (small.precision, PrecisionSensitivity),
    ],
    ids=["auc", "average-precision", "negatives-first"],
)
def test_one_unit_moves_a_metric_within_its_bound(
    value: Callable[..., Fraction],
    sensitivity: type[RungSensitivity],
    protection: Protection,
    rows: int,
) -> None:
    found = moves(value, protection, rows)
    check(sensitivity(protection=protection), found)
    if sensitivity is AreaSensitivity:
        k = protection.rows_per_unit
        for ((n, m), (other_n, other_m)), move in found.items():
            smaller = max(min(n, m), min(other_n, other_m))
            assert move <= min(Fraction(1), Fraction(k, max(smaller, 1)))


def ties_of_positives(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to put so many positives into ties, highest first."""
    if n == 0:
        yield ()
    for size in range(1, n + 1):
        for rest in ties_of_positives(n - size):
            yield (size, *rest)


@pytest.mark.parametrize(("n", "m"), [(2, 12), (3, 7), (4, 4)])
def test_few_positives_tied_among_many_negatives_stay_within_the_bound(n: int, m: int) -> None:
    """Every replacement has a core of all rows but one; of it, every data set with a row more."""
    largest = Fraction(0)
    for positives, negatives in ((n - 1, m), (n, m - 1)):
        for sizes in ties_of_positives(positives):
            for above in combinations_with_replacement(range(negatives + 1), len(sizes)):
                downwards: list[tuple[int, int]] = []
                for size, one, before in zip(sizes, above, (0, *above), strict=False):
                    downwards += [*[(1, 0)] * (one - before), (0, size)]
                downwards += [(1, 0)] * (negatives - sum(group[0] for group in downwards))
                found = small.with_a_row(tuple(reversed(downwards)))
                values = [small.grouped_precision(each) for each in found]
                own = [small.grouped_precision(e) for e in found if small.counts(e) == (n, m)]
                largest = max(largest, max(own) - min(values), max(values) - min(own))
    bound = PrecisionSensitivity(protection=REPLACE).upper(n)
    assert 0.8 * bound < largest <= Fraction(bound)


def precisions(positive_ranks: Any) -> Any:
    """Average precision from a matrix of rising ranks of the positives, a row a data set."""
    n = positive_ranks.shape[1]
    return (np.arange(1, n + 1) / positive_ranks).mean(axis=1)


def test_two_positives_among_many_negatives_come_to_seven_twelfths() -> None:
    m, widest = 3000, 0.0
    for above in range(8):  # negatives above the positive that stays
        moved = np.arange(m + 1)  # negatives above the positive that moves
        low, high = np.minimum(moved, above), np.maximum(moved, above)
        values = precisions(np.stack([low + 1, high + 2], axis=1))
        widest = max(widest, float(values.max() - values.min()))
    assert 7 / 12 - 0.001 < widest <= 7 / 12
    assert Fraction(PrecisionSensitivity(protection=REPLACE).upper(2)) >= Fraction(7, 12)


def test_one_of_two_positives_that_leaves_many_negatives_takes_one_half() -> None:
    m = 3000
    move = Fraction(1, 2) * (1 + Fraction(2, m + 2)) - Fraction(1, m + 1)
    assert Fraction(499, 1000) < move <= Fraction(PrecisionSensitivity(protection=ADD).upper(2))


def test_three_positives_among_many_negatives_come_to_nineteen_over_forty_five() -> None:
    m, widest = 3000, 0.0
    for first in range(6):
        for second in range(first, 8):
            moved = np.arange(m + 1)
            others = [np.full(m + 1, first), np.full(m + 1, second)]
            above = np.sort(np.stack([moved, *others], axis=1), axis=1)
            values = precisions(above + np.arange(1, 4))
            widest = max(widest, float(values.max() - values.min()))
    assert 19 / 45 - 0.001 < widest <= 19 / 45
    assert Fraction(PrecisionSensitivity(protection=REPLACE).upper(3)) >= Fraction(19, 45)


@pytest.mark.parametrize("n", [4, 7, 20])
def test_a_moved_positive_matters_less_than_a_changed_label_from_four_positives_on(n: int) -> None:
    moved_most = (1 + sum(1 / (2 * (2 * i + 1)) for i in range(1, n))) / n
    assert moved_most < PrecisionSensitivity(protection=REPLACE).upper(n)


def test_two_models_on_the_same_rows_move_like_one_area() -> None:
    from heldout.kernel.ranking.sensitivity import area

    widest = _widest_moves(area, AreaSensitivity(protection=REPLACE))
    assert widest[2] == Fraction(1, 2)


def test_two_models_on_the_same_rows_move_like_one_average_precision() -> None:
    from heldout.kernel.ranking.sensitivity import average_precision

    widest = _widest_moves(average_precision, PrecisionSensitivity(protection=REPLACE))
    assert widest[2] > Fraction(1, 3)  # so a bound half as large would fail


def _widest_moves(metric: Any, local: Any) -> dict[int, Fraction]:
    """Go through every data set of four rows with two scores each; the half difference."""
    from itertools import product

    from heldout.kernel.ranking.sensitivity import difference

    rows = list(product((0, 1), (0, 1, 2), (0, 1, 2)))  # label, first score, second score

    def value(data: tuple[tuple[int, int, int], ...]) -> Fraction:
        positives = [row for row in data if row[0]]
        negatives = [row for row in data if not row[0]]
        both = [metric([p[i] for p in positives], [q[i] for q in negatives]) for i in (1, 2)]
        return difference(*both)

    from itertools import combinations_with_replacement

    widest: dict[int, Fraction] = {}
    known: dict[Any, Fraction] = {}
    for core in combinations_with_replacement(rows, 3):
        by_counts: dict[tuple[int, int], list[Fraction]] = {}
        for row in rows:
            data = tuple(sorted((*core, row)))
            if data not in known:
                known[data] = value(data)
            n = sum(each[0] for each in data)
            by_counts.setdefault((n, 4 - n), []).append(known[data])
        everything = [each for values in by_counts.values() for each in values]
        for (n, m), values in by_counts.items():
            move = max(max(values) - min(everything), max(everything) - min(values))
            assert move <= Fraction(local.upper(local.rung(positives=n, negatives=m)))
            widest[min(n, m)] = max(move, widest.get(min(n, m), Fraction(0)))
    return widest


ALL_LOCALS = [
    *(AreaSensitivity(protection=each) for each in (REPLACE, ADD, unit("replace-one", 4))),
    *(
        PrecisionSensitivity(protection=each)
        for each in (REPLACE, ADD, unit("replace-one", 4), unit("add-remove", 40))
    ),
    PublishedPrecisionSensitivity(protection=REPLACE),
]


@pytest.mark.parametrize("local", ALL_LOCALS, ids=lambda each: f"{type(each).__name__}")
def test_the_double_is_above_the_ball_and_close_to_it(local: RungSensitivity) -> None:
    for rung in [*range(40), 100, 999, 10**6, 10**12]:
        with working_precision(128):
            ball = local.ball(rung)
            above = local.upper(rung) - ball
            assert above >= 0
            assert above <= ball * 1e-9


@pytest.mark.parametrize("local", ALL_LOCALS, ids=lambda each: f"{type(each).__name__}")
@pytest.mark.parametrize("beta", ["1/1000", "1/20", "1/2", "2"])
def test_the_closed_form_is_the_maximum_over_all_rungs(local: RungSensitivity, beta: str) -> None:
    size = Fraction(beta)
    bounds = np.array([local.upper(rung) for rung in range(900)])
    for rung in [0, 1, 2, 3, 4, 5, 6, 9, 17, 40, 120, 400]:
        exhaustive = np.max(np.exp(-float(size) * np.abs(np.arange(900) - rung)) * bounds)
        smooth = SmoothSensitivity(local=local, beta=size, rung=rung)
        assert smooth.approximate() == pytest.approx(exhaustive, rel=1e-12)
        with working_precision(96):
            assert float(smooth.ball().mid()) == pytest.approx(exhaustive, rel=1e-9)


def test_the_closed_form_of_the_area_is_that_of_the_literature() -> None:
    local = AreaSensitivity(protection=REPLACE)
    for c in (2, 5, 30, 100):
        for beta in (0.01, 0.1, 1.0):
            smooth = SmoothSensitivity(local=local, beta=Fraction(beta), rung=c).approximate()
            known = max(1 / c, np.exp(-beta * (c - 2)) / 2, np.exp(-beta * (c - 1)))
            assert smooth == pytest.approx(known, rel=1e-12)


def test_the_published_bound_is_at_least_ours_and_twice_it_at_a_thousand() -> None:
    ours = PrecisionSensitivity(protection=REPLACE)
    theirs = PublishedPrecisionSensitivity(protection=REPLACE)
    assert all(theirs.upper(n) >= ours.upper(n) for n in range(2, 3000))
    assert theirs.upper(1000) / ours.upper(1000) > 2
