"""Shares of noise add up to discrete Laplace noise, whatever the number of sites."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from heldout.errors import ArgumentError
from heldout.kernel.noise.additive import NoiseShare
from heldout.kernel.statistic import Sealed


def shares(sites: int, *, honest: int, scale: float, count: int) -> np.ndarray:
    handed: list[Any] = []
    for _ in range(sites):
        share = NoiseShare(
            scale=Fraction(scale),
            l1_sensitivity=1,
            dimension=count,
            honest=honest,
            hand_in=handed.append,
        )
        share.sample(Sealed(np.zeros(count, dtype=np.int64)))
    return np.array(handed)


def chance(drawn: np.ndarray, law: Any, reach: int = 6) -> float:
    """The p-value of a chi-squared test on the middle and both tails."""
    seen = np.array([(np.clip(drawn, -reach, reach) == k).sum() for k in range(-reach, reach + 1)])
    expected = np.array([law(k) for k in range(-reach, reach + 1)])
    expected[[0, -1]] += (1 - expected.sum()) / 2
    return float(stats.chisquare(seen, len(drawn) * expected).pvalue)


def laplace(scale: float) -> Any:
    p = np.exp(-1 / scale)
    return lambda k: (1 - p) / (1 + p) * p ** abs(k)


@pytest.mark.chance(1.1e-7, "a p-value of 1e-7; a wrong scale is missed with 7e-10 (noncentral)")
@pytest.mark.parametrize("honest", [1, 2, 7])
def test_the_sum_of_all_shares_is_discrete_laplace_and_not_three_tenths_off(honest: int) -> None:
    drawn = shares(honest, honest=honest, scale=2.0, count=3000).sum(axis=0)
    assert chance(drawn, laplace(2.0)) > 1e-7
    assert chance(drawn, laplace(2.6)) < 1e-7
    assert chance(drawn, laplace(1.5)) < 1e-7


@pytest.mark.chance(1e-7, "a p-value of 1e-7; .55 of shares are nothing, .4 of 5,000 with 1e-100")
def test_a_share_is_a_difference_of_negative_binomials() -> None:
    (drawn,) = shares(1, honest=4, scale=3.0, count=5000)
    one = stats.nbinom(1 / 4, 1 - np.exp(-1 / 3.0)).pmf(np.arange(200))
    both = np.convolve(one, one[::-1])
    assert chance(drawn, lambda k: both[199 + k]) > 1e-7
    assert (drawn == 0).mean() > 0.4, "most of a share is nothing: alone it protects nobody"


@pytest.mark.chance(2e-8, "1.7e-8 for the ratio, by two binomial laws; 1e-14 for the p-value")
def test_one_share_too_few_is_too_little_noise() -> None:
    """So that a site that drops out or lies must be counted among those that are not honest."""
    drawn = shares(2, honest=3, scale=2.0, count=4000).sum(axis=0)
    assert chance(drawn, laplace(2.0)) < 1e-5
    near = (drawn == 0).sum() / (drawn == 1).sum()
    # 1.43 times as much is expected.
    assert near > 1.1 * np.exp(1 / 2.0), "its loss is more than 1/scale"


def test_what_cannot_be_drawn_is_refused_and_only_the_length_comes_back() -> None:
    declared: dict[str, Any] = {"l1_sensitivity": 1, "dimension": 2, "hand_in": lambda _: None}
    with pytest.raises(ArgumentError, match="scale"):
        NoiseShare(scale=Fraction(2**17), honest=2, **declared)
    with pytest.raises(ArgumentError, match="honest"):
        NoiseShare(scale=Fraction(2), honest=0, **declared)
    share = NoiseShare(scale=Fraction(2), honest=2, **declared)
    assert share.sample(Sealed([5, 6])) == 2
    with pytest.raises(ArgumentError, match="dimension"):
        share.sample(Sealed([5]))
