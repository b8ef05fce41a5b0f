"""The closed form of a sum of Laplace noises and a normal error, against three other ways."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal, stats

from heldout.intervals.noise import SPACING, NoiseSum

LAWS = [
    NoiseSum(weights=(1.0,), scale=3.0),
    NoiseSum(weights=(1.0, -1.0), scale=2.0),
    NoiseSum(weights=(0.75, -0.25, -0.25, -0.25), scale=4.0),
    NoiseSum(weights=(0.9, -0.1, 0.5, 0.0), scale=20.0),
    NoiseSum(weights=(1.0, 1.0, 1.0, 1.0), scale=0.5),
    NoiseSum(weights=(0.3, -0.7), scale=2.0, deviation=5.0),
    NoiseSum(weights=(1.0, 1.0, -1.0, -1.0), scale=2.0, deviation=0.1),
    NoiseSum(weights=(0.5, 0.001), scale=10.0, deviation=30.0),
    NoiseSum(weights=(), scale=1.0, deviation=2.0),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=str)


def spread(law: NoiseSum) -> float:
    return math.sqrt(sum(2 * (w * law.scale) ** 2 for w in law.weights) + law.deviation**2)


@each_law
def test_the_tail_agrees_with_draws(law: NoiseSum) -> None:
    generator = np.random.default_rng(99)
    draws = 200_000
    sample = generator.normal(scale=law.deviation or 1e-300, size=draws)
    for weight in law.weights:
        sample += weight * generator.laplace(scale=law.scale, size=draws)
    for at in (0.0, 0.5, 1.0, 2.0, 3.0):
        t = at * spread(law)
        expected = law.survival(t)
        error = math.sqrt(expected * (1 - expected) / draws)
        # Equal weights are spread upwards by up to 1.5%, which moves a tail by a few percent.
        slack = 6 * SPACING * expected * at
        assert -5 * error <= expected - (sample > t).mean() <= 5 * error + slack


@each_law
def test_the_tail_agrees_with_convolution(law: NoiseSum) -> None:
    steps = 300  # of the grid, to one standard deviation
    step = spread(law) / steps
    grid = np.arange(-40 * steps, 40 * steps + 1) * step
    density = (grid == 0).astype(float)
    for weight in (each for each in law.weights if each):
        laplace = stats.laplace(scale=abs(weight) * law.scale)
        density = signal.fftconvolve(
            density, laplace.cdf(grid + step / 2) - laplace.cdf(grid - step / 2), mode="same"
        )
    if law.deviation:
        normal = stats.norm(scale=law.deviation)
        density = signal.fftconvolve(
            density, normal.cdf(grid + step / 2) - normal.cdf(grid - step / 2), mode="same"
        )
    for at in (0.5, 1.0, 2.0, 4.0):
        t, middle = at * spread(law), 40 * steps + round(at * steps)
        exact = density[middle + 1 :].sum() + density[middle] / 2
        assert law.survival(t) == pytest.approx(exact, rel=0.01 + 8 * SPACING * at, abs=1e-9)
        assert law.survival(t) >= exact * (1 - at / 200) - 1e-9, "never lighter than the truth"


weights = st.lists(st.floats(-2, 2), max_size=4).map(tuple)
scales = st.sampled_from([1e-300, 1e-9, 0.01, 1.0, 1e6, 1e15])
deviations = st.sampled_from([0.0, 1e-300, 1e-6, 1.0, 1e6, 1e12])


@given(weights, scales, deviations, st.floats(0, 1e18), st.floats(0, 1e18))
@settings(deadline=None)
def test_a_tail_is_a_chance_that_falls_and_mirrors(
    weights: tuple[float, ...], scale: float, deviation: float, one: float, other: float
) -> None:
    law = NoiseSum(weights=weights, scale=scale, deviation=deviation)
    near, far = sorted((one, other))
    assert 0 <= law.survival(far) <= law.survival(near) + 1e-7
    assert law.survival(near) <= 0.5
    assert law.survival(-near) == pytest.approx(1 - law.survival(near))


@given(weights, scales, deviations, st.floats(0.01, 0.9999))
@settings(deadline=None)
def test_a_quantile_has_its_level(
    weights: tuple[float, ...], scale: float, deviation: float, level: float
) -> None:
    law = NoiseSum(weights=weights, scale=scale, deviation=deviation)
    t = law.quantile(level)
    assert 2 * law.survival(t) <= (1 - level) * (1 + 1e-6) + 1e-12
    if t > 1e-6:
        assert 2 * law.survival(t * 0.999) >= (1 - level) * (1 - 1e-6) - 1e-7
