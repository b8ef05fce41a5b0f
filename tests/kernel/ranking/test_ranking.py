"""One release of a ranking metric: its price, its draws, its plan and its speed."""

import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest

from heldout.errors import ArgumentError, SealedError
from heldout.kernel import price
from heldout.kernel.events import leaves
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.exact import LATTICE, discrete_laplace
from heldout.kernel.ranking.mechanism import RankingMechanism
from heldout.kernel.ranking.sensitivity import area, average_precision
from heldout.kernel.ranking.statistic import RankingStatistic
from heldout.kernel.statistic import Sealed

PROTECTIONS = [
    Protection(neighbours="replace-one"),
    Protection(neighbours="add-remove"),
    Protection(neighbours="replace-one", unit=True, rows_per_unit=3),
    Protection(neighbours="add-remove", unit=True, rows_per_unit=3),
]
METRICS = ("auc", "average-precision", "auc-difference", "average-precision-difference")


def mechanism(metric: str, protection: Protection, epsilon: str = "1/2") -> RankingMechanism:
    rows = 2000 if protection.row_count_is_public else None
    return RankingMechanism(
        metric=metric, epsilon=Fraction(epsilon), protection=protection, rows=rows
    )


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("metric", METRICS)
def test_counts_and_value_together_cost_epsilon_exactly(
    metric: str, protection: Protection
) -> None:
    made = mechanism(metric, protection)
    assert price(made.event()).epsilon == Fraction(1, 2)
    counts, rest = leaves(made.event())
    assert (counts.kind, rest.kind) == ("discrete-laplace", "piecewise-laplace")
    assert made.first_look is not None
    first = price(made.first_look.event()).epsilon
    assert first + Fraction(str(rest.parameters["epsilon"])) == Fraction(1, 2)
    moved = protection.rows_per_unit * (2 if protection.both_ways else 1)
    expected = 1 if protection.row_count_is_public else moved
    for seen in (-5, 0, 3, 40, 700, 10**6):  # whatever the first look says
        noisy = (seen,) if protection.row_count_is_public else (seen, 900)
        second = made.second_look(noisy)
        assert second is not None
        assert made.first_look.l1_sensitivity == second.l1_sensitivity == expected
        value = price(made.law_after(noisy).event()).epsilon
        assert first + price(second.event()).epsilon + value == Fraction(1, 2)


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda each: each.describe())
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rows", [(0, 0), (1, 0), (0, 1), (1, 1), (7, 0), (1000, 1000)])
def test_every_data_set_gives_a_value_on_the_lattice(
    metric: str, protection: Protection, rows: tuple[int, int]
) -> None:
    draw = mechanism(metric, protection).sample(Sealed(RankingStatistic(Fraction(1, 3), *rows)))
    assert isinstance(draw.units, int)
    assert draw.unclamped == float(draw.units * LATTICE)
    assert 0 <= draw.value <= 1
    seen = 1 if protection.row_count_is_public else 2
    assert (len(draw.first_counts), len(draw.second_counts)) == (seen, seen)


def test_the_published_methods_spend_everything_on_the_value() -> None:
    made = RankingMechanism(
        metric="auc",
        epsilon=Fraction(1),
        protection=PROTECTIONS[0],
        rows=200,
        method="boyd-2015-laplace",
        delta=Fraction(1, 100),
    )
    assert made.first_look is None
    assert made.event().kind == "smooth-laplace-2015"
    assert price(made.event()).delta == Fraction(1, 100)


def test_the_other_methods_look_at_the_counts_once() -> None:
    for method in ("polynomial-tail", "cauchy"):
        made = RankingMechanism(
            metric="auc",
            epsilon=Fraction(1),
            protection=PROTECTIONS[0],
            rows=2000,
            method=method,
        )
        assert made.second_look((700,)) is None
        assert made.first_look is not None
        law = price(made.law_after((700,)).event()).epsilon
        assert price(made.first_look.event()).epsilon + law == 1
        draw = made.sample(Sealed(RankingStatistic(Fraction(4, 5), 700, 1300)))
        assert draw.second_counts == ()
        assert len(draw.looks) == 1


def test_a_public_guess_of_the_class_replaces_the_first_look() -> None:
    made = RankingMechanism(
        metric="auc",
        epsilon=Fraction(1),
        protection=PROTECTIONS[0],
        rows=2000,
        smaller_class=1000,
    )
    blind = mechanism("auc", PROTECTIONS[0], "1")
    assert made.second_look((990,)) is None
    sharper = price(made.law_after((990,)).event()).epsilon
    assert sharper > price(blind.law_after((990,)).event()).epsilon
    assert made.first_look is not None
    assert price(made.first_look.event()).epsilon + sharper == 1


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(40)])
def test_counts_get_the_discrete_laplace_law(scale: Fraction) -> None:
    source = random.Random(3)
    draws = np.array([discrete_laplace(scale, randomness=source.randbytes) for _ in range(8000)])
    stay = math.exp(-1 / float(scale))
    most = int(3 * scale) + 1
    values = np.arange(-most, most + 1)
    expected = 8000 * (1 - stay) / (1 + stay) * stay ** np.abs(values)
    found = np.array([np.sum(draws == value) for value in values])
    kept = expected > 10
    statistic = float(np.sum((found[kept] - expected[kept]) ** 2 / expected[kept]))
    assert statistic < kept.sum() + 4 * math.sqrt(2 * kept.sum())


def test_a_statistic_must_be_sealed_and_arguments_public() -> None:
    with pytest.raises(SealedError):
        str(Sealed(RankingStatistic(Fraction(1, 3), 1, 1)))
    with pytest.raises(ArgumentError, match="Pass rows="):
        RankingMechanism(metric="auc", epsilon=Fraction(1), protection=PROTECTIONS[0])
    with pytest.raises(ArgumentError, match="method must be"):
        RankingMechanism(
            metric="auc", epsilon=Fraction(1), protection=PROTECTIONS[0], rows=9, method="best"
        )
    with pytest.raises(ArgumentError, match="share must be"):
        RankingMechanism(
            metric="auc",
            epsilon=Fraction(1),
            protection=PROTECTIONS[0],
            rows=9,
            share=Fraction(1),
        )


def test_a_release_of_ten_thousand_rows_takes_two_milliseconds() -> None:
    source = np.random.default_rng(0)
    label = source.random(10_000) < 0.3
    score = source.normal(size=10_000) + label
    for metric, function in (("auc", area), ("average-precision", average_precision)):
        made = RankingMechanism(
            metric=metric, epsilon=Fraction(1), protection=PROTECTIONS[0], rows=10_000
        )
        times = []
        for _ in range(30):
            start = time.thread_time()  # of this thread: others may have the processor
            positives, negatives = score[label], score[~label]
            value = function(positives, negatives)
            sealed = Sealed(RankingStatistic(value, positives.size, negatives.size))
            made.sample(sealed)
            times.append(time.thread_time() - start)
        assert min(times) < 0.002
