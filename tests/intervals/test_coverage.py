"""Intervals cover what they say, by simulation: at least as often, and not absurdly more often.

Noise is simulated with a fixed seed, so that these tests never fail by chance. What is tested of
most simulations is whether the truth survives, without computing the whole interval.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heldout.intervals import Metric, registered
from heldout.intervals.confusion import noisy_counts
from heldout.intervals.ratio import NoisyCounts, Ratio, with_public_total
from heldout.intervals.readings import f_score
from heldout.kernel.noise import DiscreteLaplace

LEVEL = 0.95
RUNS = 400
SLACK = 3 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)
#                     tp    fp    fn    tn
POPULATIONS = {
    "plain": (0.25, 0.15, 0.15, 0.45),
    "rare": (0.02, 0.03, 0.03, 0.92),
    "perfect": (0.3, 0.0, 0.0, 0.7),
}
LONGER = ((40, "2"), (2000, "1/5"))
METRICS = {**registered(), "F2 score": f_score(2.0)}


def discrete_laplace(generator: np.random.Generator, scale: float, shape: Any) -> Any:
    p = math.exp(-1 / scale)
    return generator.geometric(1 - p, shape) - generator.geometric(1 - p, shape)


def simulated(
    population: tuple[float, ...], *, rows: int, epsilon: str, add_remove: bool
) -> tuple[Any, list[NoisyCounts], DiscreteLaplace]:
    """True counts of many data sets drawn from the population, and what is released of them."""
    seed = [rows, int(1000 * Fraction(epsilon)), int(1000 * population[0]), add_remove]
    generator = np.random.default_rng(seed)
    mechanism = DiscreteLaplace.for_epsilon(
        Fraction(epsilon), l1_sensitivity=1 if add_remove else 2, dimension=4
    )
    truth = generator.multinomial(rows, population, size=RUNS)
    noisy = truth + discrete_laplace(generator, mechanism.float_scale, (RUNS, 4))
    public = None if add_remove else rows
    return truth, [noisy_counts(each, mechanism, rows=public) for each in noisy], mechanism


def ratio_of(metric: Metric, counts: NoisyCounts) -> Ratio:
    return Ratio(
        counts=counts,
        numerator=np.array(metric.numerator, dtype=float),
        denominator=np.array(metric.denominator, dtype=float),
    )


def coverages(
    metric: Metric, population: tuple[float, ...], truth: Any, released: list[NoisyCounts]
) -> tuple[float, float]:
    """How often the noise interval has the rows' ratio, and the interval the population's."""
    top, bottom = np.array(metric.numerator), np.array(metric.denominator)
    everywhere = float(top @ population) / float(bottom @ population)
    of_rows, of_all = [], []
    for exact, counts in zip(truth, released, strict=True):
        ratio = ratio_of(metric, counts)
        if bottom @ exact > 0:
            of_rows.append(ratio.survives_noise(LEVEL)(float(top @ exact) / float(bottom @ exact)))
        of_all.append(ratio.survives(LEVEL)(everywhere))
    return float(np.mean(of_rows)), float(np.mean(of_all))


@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("rows", "epsilon"),
    [(40, "1/5"), *(pytest.param(*each, marks=pytest.mark.slow) for each in LONGER)],
)
@pytest.mark.parametrize("population", POPULATIONS.values(), ids=POPULATIONS)
@pytest.mark.slow
def test_ratios_are_covered(
    population: tuple[float, ...], rows: int, epsilon: str, add_remove: bool
) -> None:
    truth, released, _ = simulated(population, rows=rows, epsilon=epsilon, add_remove=add_remove)
    for metric in (METRICS[name] for name in ("accuracy", "precision", "recall", "F2 score")):
        of_rows, of_all = coverages(metric, population, truth, released)
        assert of_rows >= LEVEL - SLACK, metric.name
        assert of_all >= LEVEL - SLACK, metric.name


@pytest.mark.slow
@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
def test_where_noise_is_many_counts_wide_the_coverage_is_the_level(add_remove: bool) -> None:
    """Neither too narrow nor too wide, once whole numbers no longer matter."""
    population = POPULATIONS["plain"]
    truth, released, mechanism = simulated(
        population, rows=20_000, epsilon="1/50", add_remove=add_remove
    )
    assert mechanism.float_scale >= 50
    for metric in METRICS.values():
        of_rows, of_all = coverages(metric, population, truth, released)
        assert LEVEL - SLACK <= of_rows <= 0.97 + SLACK, metric.name
        assert LEVEL - SLACK <= of_all <= 0.98 + SLACK, metric.name


def test_where_sampling_is_all_the_coverage_is_the_level() -> None:
    population = POPULATIONS["plain"]
    truth, released, _ = simulated(population, rows=3000, epsilon="1000", add_remove=False)
    for metric in METRICS.values():
        _, of_all = coverages(metric, population, truth, released)
        assert LEVEL - SLACK <= of_all <= 0.985 + SLACK, metric.name


def test_intervals_hold_every_ratio_that_survives() -> None:
    """The search for the ends of an interval loses nothing that the test of membership keeps."""
    population = POPULATIONS["rare"]
    for rows, epsilon in ((40, "1/5"), (2000, "1/2")):
        truth, released, _ = simulated(population, rows=rows, epsilon=epsilon, add_remove=True)
        for metric in (METRICS["precision"], METRICS["F1 score"]):
            top, bottom = np.array(metric.numerator), np.array(metric.denominator)
            for exact, counts in zip(truth[:40], released[:40], strict=True):
                ratio = ratio_of(metric, counts)
                low, high = ratio.noise_interval(LEVEL)
                if bottom @ exact > 0:
                    r = float(top @ exact) / float(bottom @ exact)
                    assert not ratio.survives_noise(LEVEL)(r) or low - 1e-6 <= r <= high + 1e-6
                wide_low, wide_high = ratio.interval(LEVEL)
                assert wide_low <= low + 1e-6
                assert wide_high >= high - 1e-6


def test_intervals_are_of_the_width_that_the_noise_has() -> None:
    """Accuracy of many rows: the half-width is the quantile of the four noises it is made of."""
    mechanism = DiscreteLaplace.for_epsilon(Fraction(1, 10), l1_sensitivity=2, dimension=4)
    rows = 100_000
    counts = noisy_counts(np.array([40_000, 5_000, 5_000, 50_000]), mechanism, rows=rows)
    low, high = ratio_of(METRICS["accuracy"], counts).noise_interval(LEVEL)
    generator = np.random.default_rng(4)
    noise = discrete_laplace(generator, mechanism.float_scale, (200_000, 4))
    # The public total shares what is missing: accuracy moves by half of (right - wrong).
    moved = np.abs(noise @ [1, -1, -1, 1]) / 2 / rows
    assert (high - low) / 2 == pytest.approx(np.quantile(moved, LEVEL), rel=0.05)


def test_a_level_that_is_higher_gives_an_interval_that_is_wider() -> None:
    mechanism = DiscreteLaplace.for_epsilon(Fraction(1, 2), l1_sensitivity=1, dimension=4)
    counts = noisy_counts(np.array([40, 10, 12, 60]), mechanism, rows=None)
    for metric in METRICS.values():
        ratio = ratio_of(metric, counts)
        for interval in (ratio.noise_interval, ratio.interval):
            ends = [interval(level) for level in (0.5, 0.8, 0.95, 0.999)]
            assert all(b[0] <= a[0] and a[1] <= b[1] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(
    "noisy", [[0, 0, 0, 0], [-5, -9, 3, -2], [-40, 12, -7, -30], [0, -1, 0, 9]]
)
def test_a_denominator_that_noise_took_gives_a_wide_interval_and_no_error(noisy: list[int]) -> None:
    mechanism = DiscreteLaplace.for_epsilon(Fraction(1, 5), l1_sensitivity=1, dimension=4)
    ratio = ratio_of(METRICS["precision"], noisy_counts(np.array(noisy), mechanism, rows=None))
    for interval in (ratio.noise_interval(LEVEL), ratio.interval(LEVEL)):
        assert interval[0] <= ratio.value <= interval[1]
        assert interval[1] - interval[0] > 0.9


# --- bounded means and counts --------------------------------------------------------------------


@pytest.mark.parametrize("rows", [30, 3000])
@pytest.mark.parametrize("epsilon", ["1/10", "2"])
@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
@pytest.mark.slow
def test_bounded_means_are_covered(rows: int, epsilon: str, add_remove: bool) -> None:
    generator = np.random.default_rng([rows, add_remove])
    resolution = 2**20
    mechanism = DiscreteLaplace.for_epsilon(
        Fraction(epsilon), l1_sensitivity=resolution, dimension=1 + add_remove
    )
    errors = generator.beta(0.5, 2.0, (RUNS, rows))
    totals = np.floor(errors * resolution + 0.5).astype(np.int64).sum(axis=1)
    noise = discrete_laplace(generator, mechanism.float_scale, (RUNS, 2))
    of_rows, of_all = [], []
    for total, extra in zip(totals.tolist(), noise.tolist(), strict=True):
        if add_remove:
            counts = NoisyCounts(
                estimate=np.array([total + extra[0], rows * resolution - total + extra[1]], float),
                spread=np.eye(2),
                scale=mechanism.float_scale,
                unit=float(resolution),
            )
        else:
            counts = NoisyCounts(
                estimate=np.array([total + extra[0], rows * resolution - total - extra[0]], float),
                spread=np.array([[1.0], [-1.0]]),
                scale=mechanism.float_scale,
                unit=float(resolution),
                rows=rows,
            )
        ratio = Ratio(
            counts=counts, numerator=np.array([1.0, 0.0]), denominator=np.array([1.0, 1.0])
        )
        of_rows.append(ratio.survives_noise(LEVEL)(total / (rows * resolution)))
        of_all.append(ratio.survives(LEVEL)(0.2))  # the mean of that beta law
    assert LEVEL - SLACK <= np.mean(of_rows) <= 0.97 + SLACK
    assert np.mean(of_all) >= LEVEL - SLACK


@pytest.mark.parametrize("epsilon", ["1/20", "1/2", "5"])
@pytest.mark.parametrize("add_remove", [False, True], ids=["replace-one", "add-remove"])
def test_counts_are_covered(epsilon: str, add_remove: bool) -> None:
    truth, released, _ = simulated(
        (0.4, 0.3, 0.2, 0.1), rows=5000, epsilon=epsilon, add_remove=add_remove
    )
    only = np.array([1.0, 0.0, 0.0, 0.0])
    covered = []
    half = released[0].noise(only).quantile(LEVEL) + released[0].granularity(only)
    for exact, counts in zip(truth, released, strict=True):
        covered.append(abs(counts.estimate[0] - exact[0]) <= half)
    assert np.mean(covered) >= LEVEL - SLACK


def test_noise_wider_than_the_public_rows_are_many_leaves_no_accuracy_to_read() -> None:
    top, bottom = np.array([1.0, 0, 0, 1]), np.ones(4)
    for noisy in ([9000, -200, 100, 7000], [-4000, 300, 9000, -5000], [500, 500, 500, 500]):
        counts = with_public_total(np.array(noisy), scale=600.0, rows=2000)
        low, high = Ratio(counts=counts, numerator=top, denominator=bottom).noise_interval(0.95)
        assert high - low > 0.8


def test_a_denominator_that_noise_may_have_made_up_leaves_all_of_the_range() -> None:
    top, bottom = np.array([1.0, 0.0]), np.ones(2)
    for seen, readable in (((9.0, -1.0), False), ((-9.0, 3.0), False), ((90.0, 10.0), True)):
        counts = NoisyCounts(estimate=np.array(seen), spread=np.eye(2), scale=2.0)
        ratio = Ratio(counts=counts, numerator=top, denominator=bottom)
        for low, high in (ratio.noise_interval(0.5), ratio.interval(0.5)):
            assert (high - low < 0.5) is readable
            assert readable or (low, high) == (0, 1)
