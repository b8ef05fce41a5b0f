"""Discrete Gaussian noise: its law from both sources, its sigma, the ends of its integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from heldout.errors import ArgumentError
from heldout.kernel.noise import source
from heldout.kernel.noise.additive import DiscreteGaussian
from heldout.kernel.statistic import Sealed
from heldout.testing import Seeded

SOURCES = {"operating system": source.OperatingSystem(), "seeded": Seeded(7)}


def distance(noise, sigma_squared):
    """The p-value of a chi-squared test against the exact law, tails joined."""
    reach = math.ceil(4 * math.sqrt(float(sigma_squared))) + 1
    places = np.arange(-reach, reach + 1)
    law = np.exp(-(places**2) / (2 * float(sigma_squared)))
    seen = np.array([(noise == place).sum() for place in places], dtype=float)
    seen[[0, -1]] += [(noise < -reach).sum(), (noise > reach).sum()]
    expected = law / law.sum() * len(noise)
    common = expected >= 5
    pairs = [np.append(side[common], side[~common].sum()) for side in (seen, expected)]
    return stats.chisquare(pairs[0], pairs[1] * pairs[0].sum() / pairs[1].sum()).pvalue


@pytest.mark.chance(8e-8, "four chi-squared tests at 2e-8, and two false laws that pass")
@pytest.mark.parametrize("name", SOURCES)
def test_noise_has_the_exact_law_and_nine_tenths_of_sigma_are_seen(name):
    for square in (Fraction(1, 3), Fraction(37)):
        law = DiscreteGaussian(square, Fraction(1), dimension=60_000)
        with source.using(SOURCES[name]):
            drawn = law.sample(Sealed([0] * 60_000))
        assert distance(drawn, square) > 2e-8
        assert distance(drawn, square * Fraction(81, 100)) < 2e-8


def test_the_drawn_sigma_is_never_below_the_exact_one_and_within_two_steps():
    rounded_up = 0
    for rho in [*("1/3", "1e-9", "7/5", "1000"), *(f"{part}/97" for part in range(1, 97))]:
        noise = DiscreteGaussian.for_rho(Fraction(rho), l2_sensitivity_squared=7, dimension=1)
        assert Fraction(noise.sigma) ** 2 >= noise.sigma_squared
        lower = math.nextafter(math.nextafter(noise.sigma, 0), 0)
        assert Fraction(lower) ** 2 < noise.sigma_squared
        rounded_up += noise.sigma > math.sqrt(noise.sigma_squared)
    assert rounded_up > 30, "about half of all square roots are rounded down by themselves"


@pytest.mark.parametrize("name", SOURCES)
def test_entries_saturate_at_64_bits_and_never_wrap_round(name):
    ends = [2**63 - 1, -(2**63)]
    with source.using(SOURCES[name]):
        for _ in range(20):
            high, low = source.plus_discrete_gaussian(ends, 1e9)
            assert high > 0 > low


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ArgumentError, match="rho"):
        DiscreteGaussian.for_rho(Fraction(0), l2_sensitivity_squared=1, dimension=1)
    with pytest.raises(ArgumentError, match="positive"):
        DiscreteGaussian(Fraction(1), Fraction(0), dimension=1)
    with pytest.raises(ArgumentError, match="2\\^52"):
        DiscreteGaussian(Fraction(2**105), Fraction(1), dimension=1)
    with pytest.raises(ArgumentError, match="dimension"):
        DiscreteGaussian(Fraction(1), Fraction(1), dimension=1).sample(Sealed([0, 0]))
