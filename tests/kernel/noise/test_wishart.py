"""The difference of two Wisharts: its law, its exact rounding, and the loss that it claims."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate
from tests import chances

from heldout.errors import ArgumentError
from heldout.kernel import price
from heldout.kernel.noise import fits, source
from heldout.kernel.noise.fits import WishartDifference, wishart_difference
from heldout.kernel.statistic import Sealed
from heldout.questions.linear.fit import BilinearNoise
from heldout.testing import Seeded


def log_density(matrix, draws):
    """Log density of W1 - W2 at scale 1 for 2 x 2 matrices, up to a constant.

    The integral over the cone is an expectation over a third Wishart matrix of half the scale:
    exp(-tr N/2) P(N + W > 0).
    """
    first, off, second = (draws[:, i] + matrix[a] for i, a in enumerate([(0, 0), (0, 1), (1, 1)]))
    inside = (first > 0) & (first * second > off * off)
    return -np.trace(matrix) / 2 + math.log(max(inside.mean(), 1e-12)), int(inside.sum())


def test_the_log_density_moves_by_no_more_than_the_trace():
    generator = np.random.default_rng(5)
    normal = generator.standard_normal((400_000, 3, 2)) * math.sqrt(1 / 2)
    products = np.einsum("bki,bkj->bij", normal, normal)
    draws = np.stack([products[:, 0, 0], products[:, 0, 1], products[:, 1, 1]], axis=1)
    worst, tried = 0.0, 0
    for turn in range(200):
        own = generator.normal(size=(2, 2)) * generator.choice([0.3, 1, 2])
        at = (own + own.T) / 2
        arrives = generator.normal(size=2) * generator.choice([0.5, 1, 2])
        leaves = generator.normal(size=2) * generator.choice([0, 0.5, 1])
        if turn % 2:  # at right angles, where nothing cancels
            leaves = np.array([-arrives[1], arrives[0]]) * generator.choice([0, 0.5, 1])
        moved = np.outer(arrives, arrives) - np.outer(leaves, leaves)
        (one, few), (two, many) = log_density(at, draws), log_density(at + moved, draws)
        if min(few, many) < 10_000:
            continue
        tried += 1
        claimed = (arrives @ arrives + leaves @ leaves) / 2
        worst = max(worst, (abs(one - two) - 0.02) / claimed)
    assert tried > 50
    assert 0.6 < worst <= 1


def test_one_entry_has_laplace_noise_of_the_claimed_scale():
    """Of size 1 each Wishart is an exponential variable, and the loss is attained."""
    noise = WishartDifference.for_epsilon(Fraction(1, 2), trace=3, size=1)
    mean = 2 * float(noise.scale)  # of a chi-squared variable with 2 degrees of freedom

    def density(x):
        whole, _ = integrate.quad(lambda w: math.exp(-(2 * w + abs(x)) / mean), 0, math.inf)
        return whole / mean**2

    assert math.log(density(1.0) / density(4.0)) == pytest.approx(0.5, rel=1e-6)
    assert str(price(noise.event())) == "epsilon 0.5"


@pytest.mark.chance(4e-8, "three binomial tails of 1e-8")
def test_the_noise_has_the_moments_of_its_law():
    """Half of the entries lie within the reach that the characteristic function gives for 50%."""
    size, scale, runs = 2, 1000, 3000
    zeros, large = Sealed([0, 0, 0]), WishartDifference(Fraction(scale), 1, size)
    draws = np.array([large.sample(zeros) for _ in range(runs)]) / scale
    noise = WishartDifference(Fraction(1), 1, size)
    for place, (left, right) in enumerate([((1, 0), (1, 0)), ((1, 0), (0, 1)), ((0, 1), (0, 1))]):
        law = BilinearNoise.of(np.array(left, float), np.array(right, float), noise)
        inside = int((np.abs(draws[:, place]) <= law.reach(0.5)).sum())
        assert chances.improbability(inside, runs, 0.5) > 1e-8


def test_more_bits_are_drawn_until_every_entry_is_certain(monkeypatch):
    """With 8 bits to begin with, rounding is open at first; the first bits are never redrawn."""
    monkeypatch.setattr(fits, "_FIRST_BITS", 8)
    monkeypatch.setattr(fits, "_MORE_BITS", 8)
    asked = []

    class Counting(Seeded):
        def random_bytes(self, count):
            asked.append(count)
            return super().random_bytes(count)

    with source.using(Counting(3)):
        entries = wishart_difference(2, Fraction(10**6))
    assert len(entries) == 3
    assert len(asked) > 2 * 2 * 3
    assert len(asked) % (2 * 2 * 3) == 0


def test_what_is_too_large_is_held_to_62_bits_and_a_wrong_size_is_refused():
    noise = WishartDifference(Fraction(10**30), 1, 2)
    assert np.abs(noise.sample(Sealed([0, 0, 0]))).max() == 2**62
    with pytest.raises(ArgumentError, match="size"):
        noise.sample(Sealed([0, 0]))
    with pytest.raises(ArgumentError, match="positive"):
        WishartDifference(Fraction(0), 1, 1)
