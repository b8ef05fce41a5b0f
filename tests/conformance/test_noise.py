"""The noise that is drawn has the law that is claimed: right at the true scale, wrong 3% off.

The false alarm rate of a comparison is one in ten million, and so is its chance to miss.
"""

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.statistic import BoundedSum, Sealed

FALSE_ALARM = 1e-7
DRAWS = 120_000
SCALES = [Fraction(1, 2), Fraction(4), Fraction(2**21, 3)]


def draws(scale: Fraction, count: int = DRAWS, *, exact: int = 0) -> Any:
    mechanism = DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=count)
    return mechanism.sample(Sealed(np.full(count, exact, dtype=np.int64))) - exact


def scale_is_rejected(sample: Any, scale: float) -> bool:
    """A two-sided test on the mean of |x|, which is the sufficient statistic for the scale."""
    p = math.exp(-1 / scale)
    mean, second = 2 * p / (1 - p * p), 2 * p / (1 - p) ** 2
    error = math.sqrt((second - mean**2) / len(sample))
    return bool(abs(np.abs(sample).mean() - mean) / error > stats.norm.isf(FALSE_ALARM / 2))


def law_is_rejected(sample: Any, scale: float) -> bool:
    """Pearson's chi-square over about fifty cells of equal chance, signs apart."""
    borders = np.unique(np.round(stats.laplace(scale=scale).ppf(np.linspace(0, 1, 51)[1:-1])))
    p = math.exp(-1 / scale)

    def at_most(x: Any) -> Any:
        tail = np.exp(-np.abs(x) / scale) / (1 + p)
        return np.where(x < 0, tail, 1 - p * tail)

    chances = np.diff(np.concatenate([[0], at_most(borders), [1]]))
    counts = np.bincount(np.searchsorted(borders, sample), minlength=len(borders) + 1)
    return bool(stats.chisquare(counts, chances * len(sample)).pvalue < FALSE_ALARM)


@pytest.mark.chance(8e-7, "1e-7 for each law; 4.7e-7 and 8.7e-8 to miss 3%, by normal tails")
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_is_accepted_at_the_true_scale_and_rejected_three_percent_off(
    scale: Fraction,
) -> None:
    sample = draws(scale)
    assert not scale_is_rejected(sample, float(scale))
    assert not law_is_rejected(sample, float(scale))
    assert scale_is_rejected(sample, float(scale) * 1.03)
    assert scale_is_rejected(sample, float(scale) * 0.97)


@pytest.mark.chance(7e-8, "the normal tail of a mean of |x| at .97 of the scale: 6.6e-8")
def test_a_mechanism_that_draws_three_percent_too_little_is_found_out() -> None:
    claimed = Fraction(4)
    assert scale_is_rejected(draws(claimed * Fraction(97, 100)), float(claimed))


def test_the_law_of_another_family_is_found_out() -> None:
    rounded = np.random.default_rng(3).normal(scale=4 * math.sqrt(2), size=DRAWS).round()
    assert law_is_rejected(rounded.astype(np.int64), 4.0)


@pytest.mark.chance(FALSE_ALARM, "a p-value")
@pytest.mark.parametrize("exact", [0, -3, 10**12])
def test_noise_does_not_depend_on_what_it_hides(exact: int) -> None:
    sample = draws(Fraction(4), 60_000, exact=exact)
    assert not law_is_rejected(sample, 4.0)


@pytest.mark.chance(FALSE_ALARM, "a normal tail")
def test_entries_of_one_draw_are_independent() -> None:
    sample = draws(Fraction(4), 60_000).astype(float)
    correlation = np.corrcoef(sample[:-1], sample[1:])[0, 1]
    assert abs(correlation) * math.sqrt(len(sample)) < stats.norm.isf(FALSE_ALARM / 2)


def test_no_draw_comes_twice_not_even_in_a_forked_child() -> None:
    wide = Fraction(2**50)
    seen = [tuple(draws(wide, 4).tolist()) for _ in range(3)]
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover, in the child
            os.write(write, ",".join(map(str, draws(wide, 4).tolist())).encode())
            os._exit(0)
        os.waitpid(child, 0)
        seen.append(tuple(int(each) for each in os.read(read, 4096).decode().split(",")))
        os.close(read)
        os.close(write)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("resolution", [1, 2**20])
def test_every_output_lies_on_the_public_lattice(resolution: int) -> None:
    """Whole numbers, and nothing of the exact value in which whole numbers are reached."""
    statistic = BoundedSum(
        error="squared", score_range=(0, 1), with_rest=False, resolution=resolution
    )
    mechanism = DiscreteLaplace.for_epsilon(
        Fraction(1, 3), l1_sensitivity=statistic.resolution, dimension=2000
    )
    sample = mechanism.sample(Sealed(np.full(2000, 12345, dtype=np.int64)))
    assert sample.dtype == np.int64
    # Every residue is reached: noise does not keep a grid of its own that shows the exact value.
    assert set((sample % 7).tolist()) == set(range(7))
