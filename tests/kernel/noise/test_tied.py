"""Counts whose totals are public: how far another outcome moves what noise is added to."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Loss, Protection, price
from heldout.kernel.curves.labels import LabelCurves, build, even_cuts, rank_weights
from heldout.kernel.curves.registry import Terms
from heldout.kernel.noise.tied import TiedLaplace, count_noise
from heldout.kernel.statistic import Sealed

PROTECTIONS = [
    Protection(neighbours="label"),  # type: ignore[arg-type]
    *(Protection(neighbours="label", unit=True, rows_per_unit=k) for k in (1, 2)),  # type: ignore[arg-type]
]


def tables(cells: list[int]) -> dict[tuple[int, ...], Any]:
    """Both classes' counts for every outcome of rows in these cells."""
    found = {}
    for labels in itertools.product((0, 1), repeat=len(cells)):
        counts = np.zeros((2, max(cells) + 1), dtype=np.int64)
        np.add.at(counts, (np.array(labels), np.array(cells)), 1)
        found[labels] = counts
    return found


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
def test_only_the_positives_move_and_by_as_many_as_outcomes_change(protection: Protection) -> None:
    k, found, furthest = protection.rows_per_unit, tables([0, 0, 1, 2, 2]), 0
    for one, other in itertools.combinations(found, 2):
        changed = sum(a != b for a, b in zip(one, other, strict=True))
        if changed <= k:
            first, second = found[one], found[other]
            assert (first.sum(axis=0) == second.sum(axis=0)).all()
            furthest = max(furthest, int(np.abs(first[1] - second[1]).sum()))
    noise = count_noise(
        Fraction(1),
        l1_sensitivity=protection.rows_moved,
        dimension=6,
        cells=3,
        protection=protection,
    )
    assert isinstance(noise, TiedLaplace)
    assert noise.l1_sensitivity == furthest == k
    assert noise.scale == k
    assert price(noise.event()) == Loss.pure(1)


def test_classes_add_up_to_the_public_totals() -> None:
    noise = TiedLaplace(scale=Fraction(3), l1_sensitivity=1, dimension=6, cells=3)
    exact = np.array([[[5, 0, 2], [1, 1, 1]], [[7, 7, 7], [0, 0, 0]]])  # two groups
    drawn = np.array([noise.sample(Sealed(exact.ravel())) for _ in range(50)]).reshape(-1, 2, 2, 3)
    assert (drawn.sum(axis=2) == exact.sum(axis=1)).all()
    assert len(np.unique(drawn[:, 0, 1, 0])) > 3
    with pytest.raises(ArgumentError):
        noise.sample(Sealed([1, 2, 3]))


def test_totals_are_not_public_under_other_neighbours() -> None:
    for relation in ("replace-one", "add-remove"):
        rows = Protection(neighbours=relation)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="nothing but the outcome is secret"):
            TiedLaplace.of_labels(
                Fraction(1), l1_sensitivity=2, dimension=4, cells=2, protection=rows
            )
        assert not isinstance(
            count_noise(Fraction(1), l1_sensitivity=2, dimension=4, cells=2, protection=rows),
            TiedLaplace,
        )
        with pytest.raises(ArgumentError, match="must be 'label'"):
            build(Terms(epsilon=Fraction(1), protection=rows, points=9, rows=5))


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("share", ["0", "2/5", "9/10"])
def test_no_outcomes_move_a_table_of_curves_further_than_its_price(
    protection: Protection, share: str
) -> None:
    """Every change of at most k outcomes, in every small table: the loss of all draws together."""
    for totals in ([2, 0, 1, 3, 0, 1], [6, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]):
        rows = np.array(totals)
        curves = build(
            Terms(
                epsilon=Fraction(3, 2),
                protection=protection,
                points=len(rows),
                rows=int(rows.sum()),
            ),
            levels=1,
            area_share=share,
            named=(2,),
            named_share="1/3",
        )
        assert price(curves.event()) == Loss.pure("3/2")
        edges, weights = curves.places(rows)["edges"], rank_weights(rows)
        scales, sum_scale = curves.scales(rows, weights, edges)
        bin_of = np.searchsorted(edges, np.arange(len(rows)), side="right") - 1
        assert curves.named_counts is not None
        worst = Fraction(0)
        places = [place for place, count in enumerate(totals) for _ in range(count)]
        for changed in itertools.combinations(places, protection.rows_per_unit):
            for signs in itertools.product((1, -1), repeat=len(changed)):
                bins, ranks, named = np.zeros(len(scales)), 0, np.zeros(2)
                for place, sign in zip(changed, signs, strict=True):
                    bins[bin_of[place]] += sign
                    ranks += sign * int(weights[place])
                    named[int(place >= 2)] += sign
                loss = sum(
                    (abs(int(n)) / scale for n, scale in zip(bins, scales, strict=True)),
                    Fraction(0),
                )
                if sum_scale is not None:
                    loss += abs(ranks) / sum_scale
                loss += int(np.abs(named).sum()) / curves.named_counts.scale
                worst = max(worst, loss)
        assert worst <= curves.epsilon
        assert worst > curves.epsilon / 3


def test_what_a_table_of_curves_shows_beside_its_noise_is_the_same_whatever_the_outcomes_are() -> (
    None
):
    generator = np.random.default_rng(3)
    totals = generator.integers(0, 4, 40)
    totals[7] = 90  # a heap
    terms = Terms(epsilon=Fraction(1), protection=PROTECTIONS[0], points=40, rows=int(totals.sum()))
    curves = build(terms, named=(11,))
    assert isinstance(curves, LabelCurves)
    seen = []
    for share in (0.0, 0.3, 1.0):
        positives = np.round(share * totals).astype(np.int64)
        table = curves.sample(Sealed(np.concatenate([totals - positives, positives])))
        shown = table.as_dict()
        for noisy in ("negatives", "positives", "area", "named"):
            shown.pop(noisy)
        seen.append(shown)
        assert (
            table.negatives + table.positives == np.add.reduceat(totals, table.edges[:-1])
        ).all()
        assert table.heaps is not None
        assert 7 in table.heaps.tolist()
    assert seen[0] == seen[1] == seen[2]


def test_the_rank_sum_of_the_positives_is_the_area() -> None:
    generator = np.random.default_rng(4)
    by_class = generator.integers(0, 5, (2, 30))
    weights, (m, n) = rank_weights(by_class.sum(axis=0)), by_class.sum(axis=1)
    below = np.cumsum(by_class[0]) - by_class[0] / 2
    area = float(by_class[1] @ below) / (n * m)
    assert 0.5 + float(by_class[1] @ weights) / (2 * n * m) == pytest.approx(area, abs=1e-12)


def test_cuts_divide_rows_about_evenly() -> None:
    generator = np.random.default_rng(5)
    totals = generator.integers(0, 3, 1000)
    edges = even_cuts(totals, 8)
    assert np.ptp(np.add.reduceat(totals, edges[:-1])) <= 4
