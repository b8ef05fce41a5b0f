"""The normal law in NumPy is SciPy's."""

import numpy as np
from scipy.special import ndtr, ndtri

from heldout.intervals.noise import normal_quantile, normal_share


def test_shares_are_those_of_scipy_far_into_the_tails() -> None:
    places = np.concatenate([np.linspace(-37, 9, 50_001), [-np.inf, np.inf]])
    ours, theirs = normal_share(places), ndtr(places)
    assert np.allclose(ours, theirs, rtol=1e-14, atol=4e-16)
    inside = np.abs(places) <= 10
    assert np.allclose(ours[inside], theirs[inside], rtol=5e-14, atol=0)
    assert np.allclose(ours[:-2], theirs[:-2], rtol=1e-12, atol=0)


def test_quantiles_are_those_of_scipy_far_into_the_tails() -> None:
    small = np.logspace(-300, -1, 20_000)
    shares = np.concatenate([small, np.linspace(1e-3, 1 - 1e-3, 20_001), 1 - small[small > 1e-15]])
    assert np.allclose(normal_quantile(shares), ndtri(shares), rtol=4e-15, atol=1e-15)


def test_one_undoes_the_other_whatever_the_shape() -> None:
    places = np.linspace(-5, 5, 240).reshape(2, 3, 40)
    assert np.allclose(normal_quantile(normal_share(places)), places, rtol=0, atol=1e-9)
    assert normal_quantile(np.empty((0,))).shape == normal_share(np.empty((0,))).shape == (0,)


def test_what_is_no_number_stays_none() -> None:
    assert np.isnan(normal_share(np.array([np.nan])))
    assert np.isnan(normal_quantile(np.array([np.nan])))
