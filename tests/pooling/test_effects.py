"""Pooled intervals have the law of all noises together, and cover."""

import math
from fractions import Fraction

import numpy as np
import pytest

from heldout.intervals.confusion import noisy_counts
from heldout.intervals.noise import NoiseSum
from heldout.intervals.ratio import Ratio
from heldout.intervals.readings import registered
from heldout.kernel.noise import DiscreteLaplace
from heldout.pooling.answer import Effects, summed


@pytest.mark.parametrize("count", [5, 20, 80])
def test_the_tail_of_many_equal_noises_is_that_of_a_difference_of_gammas(count):
    from scipy import integrate, stats

    law = NoiseSum(weights=(1.0,) * count, scale=1.0)
    gamma = stats.gamma(count)

    def beyond(t):
        return integrate.quad(lambda x: gamma.pdf(x) * gamma.sf(x + t), 0, count + 60, limit=200)[0]

    for t in (0.5, 2 * math.sqrt(count), 4 * math.sqrt(count)):
        assert law.survival(t) == pytest.approx(beyond(t), abs=1e-7)


def test_many_noises_agree_with_the_closed_form_where_one_outweighs_the_others():
    few = NoiseSum(weights=(1.0, 0.5), scale=2.0, deviation=1.5)
    many = NoiseSum(weights=(1.0, 0.5, 1e-7, 1e-7, 1e-7), scale=2.0, deviation=1.5)
    for t in (0.1, 3.0, 12.0):
        assert many.survival(t) == pytest.approx(few.survival(t), abs=1e-6)
    assert many.quantile(0.95) == pytest.approx(few.quantile(0.95), rel=1e-5)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("sites", [2, 5, 20])
def test_sums_of_whole_noises_reach_half_a_step_beyond_the_continuous_law_at_most(scale, sites):
    reach = int(60 * scale) + 5
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(steps) / scale)
    law = np.array([1.0])
    for _ in range(sites):
        law = np.convolve(law, one / one.sum())
    continuous = NoiseSum(weights=(1.0,) * sites, scale=scale)
    tails = law[::-1].cumsum()[::-1]
    middle = len(law) // 2
    for t in range(1, int(6 * scale * math.sqrt(sites)) + 2):
        # Up to the chance that a spacing of the closed form costs (SPACING, downwards never).
        assert tails[middle + t] <= continuous.survival(t - 0.5) + 1e-4


def test_equal_precise_sites_pool_to_their_mean_and_show_no_difference():
    found = Effects(np.full(4, 0.8), np.full(4, 0.001), np.full(4, 0.02))
    assert found.fixed == pytest.approx(0.8)
    assert found.random_mean == pytest.approx(0.8)
    assert (found.q, found.i_squared, found.tau_squared) == pytest.approx((0, 0, 0), abs=1e-9)
    low, high = found.fixed_interval(0.95)
    assert high - low == pytest.approx(2 * 1.96 * 0.02 / 2, rel=0.02)


def test_a_site_weighs_by_the_variance_of_its_noise_and_its_sample():
    # Laplace noise of scale 0.1 has the variance 2 * 0.1**2 = 0.02; the samples have 0 and 0.04.
    found = Effects(np.array([0.5, 0.5]), np.array([0.1, 0.0]), np.array([0.0, 0.2]))
    assert found.weights() == pytest.approx([2 / 3, 1 / 3])


def test_heterogeneity_is_what_a_calculation_by_hand_gives():
    # At the middle 0.5 the slope is 1/4: logits are -0.4, 0 and 0.4, each of variance 0.04 there.
    shares = np.array([0.4, 0.5, 0.6])
    found = Effects(shares, np.zeros(3), 0.1 * np.sqrt(shares * (1 - shares)))
    assert found.q == pytest.approx(0.32 / 0.04)
    assert found.i_squared == pytest.approx(1 - 2 / 8)
    assert found.tau_squared == pytest.approx((8 - 2) / (75 - 25))
    half = 4.302653 * math.sqrt(0.32 / 2 / 3)  # Student's t with 2 degrees of freedom
    assert found.random_interval(0.95)[1] == pytest.approx(1 / (1 + math.exp(-half)), rel=1e-6)
    assert (
        Effects(*(np.array(each) for each in ([0.4, 0.5], [0, 0], [1, 1]))).prediction_interval(
            0.95
        )
        is None
    )


@pytest.mark.slow
@pytest.mark.parametrize(("sites", "between"), [(2, 0.3), (5, 0.0), (5, 0.3), (20, 0.3)])
def test_random_effects_cover_over_sites_of_unequal_size(sites, between):
    random, runs = np.random.default_rng(5), 1500
    covered = 0
    for _ in range(runs):
        precision = np.exp(random.uniform(0, 3.2, sites))
        logits = between * random.normal(size=sites)
        scales, deviations = 0.08 / precision, 0.05 / np.sqrt(precision)
        seen = 1 / (1 + np.exp(-logits)) + scales * random.laplace(size=sites)
        seen += deviations * random.normal(size=sites)
        low, high = Effects(seen, scales, deviations).random_interval(0.95)
        covered += low <= 0.5 <= high
    assert 0.93 < covered / runs < 0.975


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("sites", [2, 20])
def test_ratios_of_pooled_counts_cover(sites, public):
    random, runs, scale = np.random.default_rng(6), 800, 4
    mechanism = DiscreteLaplace(scale=Fraction(scale), l1_sensitivity=1, dimension=4)
    metric = registered()["precision"]
    top, bottom = np.array(metric.numerator, float), np.array(metric.denominator, float)
    covered = np.zeros(2)
    for _ in range(runs):
        rows = np.exp(random.uniform(5, 8, sites)).astype(int)
        truth = random.multinomial(rows, [0.15, 0.1, 0.1, 0.65])
        noise = random.geometric(1 - math.exp(-1 / scale), (2, sites, 4))
        noisy = truth + noise[0] - noise[1]
        each = [
            noisy_counts(n, mechanism, rows=int(r) if public else None)
            for n, r in zip(noisy, rows, strict=True)
        ]
        ratio = Ratio(counts=summed(tuple(each)), numerator=top, denominator=bottom)
        totals = truth.sum(axis=0)
        covered += (
            ratio.survives(0.95)(0.6),
            ratio.survives_noise(0.95)(top @ totals / (bottom @ totals)),
        )
    assert np.all(covered / runs > 0.93)
    assert np.all(covered / runs < 0.985)


def test_a_prediction_mixes_the_variances_that_the_scatter_allows():
    """Nagashima, Noma and Furukawa (2019), draw by draw; of the variances the larger half."""
    from scipy.optimize import brentq
    from scipy.stats import chi2

    generator = np.random.default_rng(4)
    found = Effects(np.array([0.70, 0.83, 0.78, 0.88, 0.74]), np.full(5, 0.004), np.full(5, 0.02))
    drawn = []
    for scatter in chi2(4).ppf(generator.uniform(0, 0.5, 3000)):
        between = 0.0
        if found._scatter(0.0) > scatter:
            between = brentq(lambda t, s=scatter: float(found._scatter(t)) - s, 0.0, 1e4)
        mean, error = found._mean(between), float(found._error(between))
        tries = mean + error * generator.standard_t(4, 10)
        drawn.extend(tries + math.sqrt(between) * generator.normal(size=10))
    expected = 1 / (1 + np.exp(-np.quantile(drawn, [0.025, 0.975])))
    assert found.prediction_interval(0.95) == pytest.approx(expected, abs=0.015)
    wide, narrow = found.prediction_interval(0.99), found.random_interval(0.95)
    assert wide[0] < expected[0] < narrow[0] < narrow[1] < expected[1] < wide[1]
