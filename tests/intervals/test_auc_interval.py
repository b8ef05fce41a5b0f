"""Intervals of AUC and average precision hold, by simulation."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.chances import error_quantile

from heldout.intervals.areas import (
    Belief,
    belief,
    belief_if_shown,
    is_plausible,
    noise_interval,
    noise_reach,
    population_interval,
    two_sided_p_value,
)
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import Look
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.ranking.ladder import NoiseLaw
from heldout.kernel.ranking.mechanism import RankingDraw, RankingMechanism
from heldout.kernel.ranking.sensitivity import area, average_precision, difference

REPLACE = Protection(neighbours="replace-one")
NORMAL = NormalDist()


def made(metric: str, n: int, m: int, epsilon: str, neighbours: str = "replace-one") -> Any:
    return RankingMechanism(
        metric=metric,
        epsilon=Fraction(epsilon),
        protection=Protection(neighbours=neighbours),
        rows=n + m,
    )


def looked(mechanism: RankingMechanism, n: int, m: int, source: Any) -> RankingDraw:
    """Noisy counts as the mechanism draws them, in doubles' time; the value is set later."""
    counts = (n,) if mechanism.protection.row_count_is_public else (n, m)

    def noisy(look: Any) -> tuple[int, ...]:
        stay = math.exp(-1 / float(look.scale))
        return tuple(
            int(count + source.geometric(1 - stay) - source.geometric(1 - stay)) for count in counts
        )

    first = noisy(mechanism.first_look)
    return RankingDraw(mechanism, 0, first, noisy(mechanism.second_look(first)))


EDGES = np.concatenate([[0.0], np.geomspace(1e-7, 60, 3000)])


@lru_cache(maxsize=64)
def tails_of(law: NoiseLaw, rung: int) -> Any:
    return law.survival(np.full(EDGES.shape, rung), EDGES)


def value_noise(law: NoiseLaw, rung: int, source: Any, draws: int) -> Any:
    """Noise of a law by inverting its tail in doubles."""
    tails, edges = tails_of(law, rung), EDGES
    sizes = np.interp(-source.random(draws), -tails, edges)
    return sizes * source.choice([-1, 1], draws)


def coverage(mechanism: RankingMechanism, n: int, m: int, draws: int = 10_000) -> float:
    """How often the noise interval holds the rows' own value: 20 values for each pair of looks."""
    source = np.random.default_rng(11)
    rung = mechanism.local.rung(positives=n, negatives=m)
    held = []
    for _ in range(draws // 20):
        draw = looked(mechanism, n, m, source)
        reach = noise_interval(draw)[1]
        sizes = np.abs(value_noise(draw.law, rung, source, 20))
        held.append(np.mean((sizes <= reach) | (reach >= 1)))
    return float(np.mean(held))


def longer(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("n", "epsilon"), [(100, "1"), longer(300, "0.5"), longer(1000, "0.1"), longer(1000, "1")]
)
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
@pytest.mark.slow
def test_noise_intervals_of_balanced_classes_cover_94_to_97_percent(
    metric: str, n: int, epsilon: str
) -> None:
    assert 0.94 <= coverage(made(metric, n, n, epsilon), n, n) <= 0.97


@pytest.mark.parametrize("n", [2, longer(10), 40, longer(200)])
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_noise_intervals_hold_for_rare_classes_too(metric: str, n: int) -> None:
    m = 2000 - n
    assert coverage(made(metric, n, m, "0.3"), n, m, draws=4000) >= 0.94


@pytest.mark.parametrize("n", [2, 15])
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
def test_noise_intervals_hold_for_very_rare_classes_at_a_large_epsilon(metric: str, n: int) -> None:
    m = 20_000 - n
    assert coverage(made(metric, n, m, "1"), n, m, draws=4000) >= 0.94


@pytest.mark.parametrize("n", [15, 60, 1000])
def test_noise_intervals_hold_if_the_row_count_is_private(n: int) -> None:
    mechanism = made("auc", n, 1000, "0.5", "add-remove")
    assert coverage(mechanism, n, 1000, draws=4000) >= 0.94


def population_draws(
    metric: str, n: int, m: int, epsilon: str, true_area: float, *, draws: int
) -> tuple[list[RankingDraw], float]:
    """Binormal samples, released; and the population's value."""
    mechanism = made(metric, n, m, epsilon)
    source = np.random.default_rng(13)
    shift = math.sqrt(2) * NORMAL.inv_cdf(true_area)
    rung = mechanism.local.rung(positives=n, negatives=m)
    found = []
    for _ in range(draws):
        rows = source.normal(shift, 1, n), source.normal(0, 1, m)
        value = float((area if metric == "auc" else average_precision)(*rows))
        draw = looked(mechanism, n, m, source)
        value += value_noise(draw.law, rung, source, 1)[0]
        found.append(replace(draw, units=round(value / float(LATTICE))))
    if metric == "auc":
        return found, true_area
    recall = (np.arange(4000) + 0.5) / 4000
    false = np.array([1 - NORMAL.cdf(shift - NORMAL.inv_cdf(each)) for each in recall])
    prevalence = n / (n + m)
    precision = prevalence * recall / (prevalence * recall + (1 - prevalence) * false)
    return found, float(precision.mean())


@pytest.mark.parametrize(
    ("n", "m", "epsilon", "true_area"),
    [
        longer(50, 50, "1", 0.95),
        (50, 400, "1", 0.7),
        longer(300, 300, "1", 0.6),
        longer(1000, 1000, "0.25", 0.85),
    ],
)
@pytest.mark.parametrize("metric", ["auc", "average-precision"])
@pytest.mark.slow
def test_population_intervals_cover_94_percent(
    metric: str, n: int, m: int, epsilon: str, true_area: float
) -> None:
    draws, truth = population_draws(metric, n, m, epsilon, true_area, draws=1200)
    covered = np.mean([is_plausible(draw, truth) for draw in draws])
    assert covered >= 0.94 - 2 * math.sqrt(0.94 * 0.06 / 1200)  # 94% within two deviations


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"), [(50, "1"), (100, "1"), (100, "0.5"), (300, "0.5"), (1000, "0.25")]
)
def test_population_intervals_are_little_wider_than_with_the_true_counts(
    n: int, epsilon: str
) -> None:
    draws, truth = population_draws("auc", n, n, epsilon, 0.85, draws=40)
    known = Belief.known(draws[0].mechanism, n, n)
    width = np.mean([np.diff(population_interval(draw)) for draw in draws])
    best = np.mean(
        [np.diff(population_interval(draw, known=known, centre=truth)) for draw in draws]
    )
    assert width <= 1.15 * best


def test_the_ends_of_an_interval_are_where_plausibility_ends() -> None:
    draws, _ = population_draws("auc", 100, 100, "1", 0.8, draws=3)
    for draw in draws:
        low, high = population_interval(draw)
        assert is_plausible(draw, low + 1e-6)
        assert is_plausible(draw, high - 1e-6)
        assert not is_plausible(draw, low - 1e-4)
        assert low < draw.value < high


def test_an_interval_widens_with_the_level_and_stays_in_range() -> None:
    mechanism = made("auc", 60, 60, "0.5")
    draw = RankingDraw(mechanism, int(Fraction(23, 20) / LATTICE), (60,), (60,))
    widths = [np.diff(population_interval(draw, level=level))[0] for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)
    low, high = population_interval(draw)
    assert 0 <= low < high == 1
    assert noise_interval(draw)[1] == 1


def test_with_known_counts_the_noise_interval_is_the_quantile_of_the_law() -> None:
    mechanism = made("auc", 500, 500, "1")
    draw = RankingDraw(mechanism, int(Fraction(1, 2) / LATTICE), (500,), (500,))
    low, high = noise_interval(draw, known=Belief.known(mechanism, 500, 500))
    reach = error_quantile(draw.law, rung=500, level=0.95)
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-3)


def test_without_counts_nothing_is_claimed() -> None:
    mechanism = RankingMechanism(
        metric="auc",
        epsilon=Fraction(1),
        protection=REPLACE,
        rows=100,
        method="boyd-2015-cauchy",
    )
    draw = RankingDraw(mechanism, int(Fraction(1, 2) / LATTICE), ())
    assert noise_interval(draw) == population_interval(draw) == (0.0, 1.0)
    assert two_sided_p_value(draw) == 1.0


def test_equal_models_are_seldom_told_apart_and_different_ones_are() -> None:
    mechanism = made("auc-difference", 1000, 1000, "1")
    source = np.random.default_rng(14)
    found = {}
    for gap in (0.0, 0.1):
        values = []
        for _ in range(120):
            truth = source.normal(0, 1, (2, 2, 1000))
            scores = truth[0] + 0.5 * truth[1]  # two models that share most of their scores
            first = area(scores[0] + 1.0, scores[1])
            second = area(scores[0] + 1.0 + 4 * gap, scores[1])
            draw = looked(mechanism, 1000, 1000, source)
            value = float(difference(first, second)) + value_noise(draw.law, 1000, source, 1)[0]
            values.append(two_sided_p_value(replace(draw, units=round(value / float(LATTICE)))))
        found[gap] = np.mean(np.array(values) < 0.05)
    assert found[0.0] <= 0.08
    assert found[0.1] > 0.9


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("n", "width"), [longer(60, 1.1), (200, 0.8)])
@pytest.mark.slow
def test_counts_released_beside_narrow_the_interval_and_it_still_holds(
    n: int, width: float, neighbours: str
) -> None:
    """As in a report of epsilon 1: a sixth for the area, a third for the confusion matrix.

    With 60 positives nothing can be said, and to know it is not narrower.
    """
    m, source = 2000 - n, np.random.default_rng(n)
    mechanism = made("auc", n, m, "1/6", neighbours)
    scale = 6.0 if neighbours == "replace-one" else 3.0
    rung = mechanism.local.rung(positives=n, negatives=m)

    def two_cells(count: int) -> float:
        return count + float(np.round(source.laplace(scale=scale, size=2)).sum())

    held, alone, told = [], [], []
    for _ in range(250):
        draw = looked(mechanism, n, m, source)
        if neighbours == "replace-one":
            beside = [Look((two_cells(n),), scale, terms=2) for _ in range(2)]
        else:
            beside = [Look((two_cells(n), two_cells(m)), scale, terms=2)]
        reach = noise_interval(draw, known=belief(draw, beside))[1]
        sizes = np.abs(value_noise(draw.law, rung, source, 20))
        held.append(np.mean((sizes <= reach) | (reach >= 1)))
        alone.append(noise_interval(draw)[1])
        told.append(reach)
    # 5,000 values, 20 to a pair of looks: a true 0.95 is below 0.93 once in 10^5 or less.
    assert np.mean(held) >= 0.93
    assert np.mean(told) < width * np.mean(alone)


@pytest.mark.parametrize("metric", ["auc", "average-precision", "auc-difference"])
@pytest.mark.parametrize("value", [-0.4, 0.02, 0.5, 0.99, 1.0, 1.1, 1.8])
def test_an_interval_holds_the_noise_interval_and_is_no_shorter_beyond_the_range(
    metric: str, value: float
) -> None:
    mechanism = RankingMechanism(
        metric=metric,
        epsilon=Fraction(1),
        rows=200,
        protection=Protection(neighbours="replace-one"),
    )
    draws = [
        RankingDraw(mechanism, round(Fraction(number) / LATTICE), (60,), (60,))
        for number in (value, min(max(value, 0.0), 1.0))
    ]
    beyond, at_end = (noise_interval(draw) for draw in draws)
    assert beyond == pytest.approx(at_end)
    low, high = population_interval(draws[0])
    assert low <= beyond[0]
    assert high >= beyond[1]


def test_a_number_that_is_shown_by_luck_has_the_wider_interval() -> None:
    mechanism = made("auc", 150, 150, "1")

    def widths(count: int) -> tuple[float, float]:
        draw = RankingDraw(mechanism, round(Fraction(17, 20) / LATTICE), (count,), (count,))
        plain = belief(draw)
        given = belief_if_shown(draw, (), lambda known: noise_reach(draw, known=known) <= 0.25)
        return tuple(np.diff(noise_interval(draw, known=known))[0] for known in (plain, given))

    near, far = widths(30), widths(150)
    assert near[1] > 1.05 * near[0]
    assert far[1] == pytest.approx(far[0], rel=0.01)
