"""Sums of powers: every pair of lattice points, and what the SQL adds up."""

import math
from typing import Any

import numpy as np
import pytest

from heldout.errors import ArgumentError
from heldout.kernel import Neighbours, Protection
from heldout.kernel.regression import LADDERS, PowerSums
from heldout.kernel.statistic import BoundedSum
from heldout.regression import RegressionTable

REPLACED = Protection(neighbours=Neighbours.REPLACE_ONE)


@pytest.mark.parametrize("powers", LADDERS)
@pytest.mark.parametrize("resolution", [16, 32, 64, 256, 512])
def test_no_replaced_row_moves_the_parts_further_than_claimed(powers: int, resolution: int) -> None:
    k = np.arange(resolution + 1)
    s = -(-k * k // resolution)
    q = -(-s * s // resolution)
    assert (s <= k).all()
    assert (q <= s).all()
    parts = np.stack({1: [k], 2: [s, k - s], 3: [q, s - q, k - s]}[powers])
    assert (parts >= 0).all()
    furthest = int(np.abs(parts[:, :, None] - parts[:, None, :]).sum(axis=0).max())
    sums = PowerSums(
        column="residual",
        bounds=(0.0, 1.0),
        with_rest=False,
        powers=powers,
        resolution=resolution,
    )
    assert furthest == sums.sensitivity(REPLACED)


@pytest.mark.parametrize("power", [1, 2, 4])
def test_one_power_moves_as_far_as_any_other(power: int) -> None:
    values = np.array([0.0, 0.25, 0.5, 1.0, 7.0])
    table = RegressionTable({"y": values, "p": np.zeros(5)}, observed="y", predicted="p")
    sums = PowerSums(
        column="residual", bounds=(-2.0, 2.0), with_rest=False, absolute=True, powers=1, power=power
    )
    [found] = sums.read(table._fetch(sums.body()))
    assert found == sums.resolution * ((np.minimum(values, 2) / 2) ** power).sum()
    assert sums.sensitivity(REPLACED) == sums.resolution
    with pytest.raises(ArgumentError, match="power must be 1, or 2 or 4 alone"):
        PowerSums(column="residual", bounds=(0.0, 2.0), with_rest=False, powers=2, power=4)


def test_the_sums_are_those_of_the_clipped_numbers() -> None:
    generator = np.random.default_rng(4)
    observed = np.concatenate([generator.normal(size=200), [9.0, -1e300, 0.0]])
    table = RegressionTable(
        {"y": observed, "p": np.zeros(203)}, observed="y", predicted="p", neighbours="add-remove"
    )
    sums = PowerSums(column="residual", bounds=(0.0, 3.0), with_rest=True, absolute=True, powers=3)
    parts = sums.read(table._fetch(sums.body())) / sums.resolution
    t = np.minimum(np.abs(observed), 3.0) / 3.0
    expected = [(t**4).sum(), (t**2 - t**4).sum(), (t - t**2).sum(), (1 - t).sum()]
    assert parts.tolist() == pytest.approx(expected, abs=203 * 4 / sums.resolution)
    assert parts.sum() == 203


def test_powers_of_a_row_are_rounded_up_as_the_sensitivity_assumes() -> None:
    resolution = 16
    sums = PowerSums(
        column="residual", bounds=(0.0, 1.0), with_rest=True, powers=3, resolution=resolution
    )
    for k in range(resolution + 1):
        table = RegressionTable({"y": [k / resolution], "p": [0.0]}, observed="y", predicted="p")
        squared = -(-k * k // resolution)
        fourth = -(-squared * squared // resolution)
        parts = [fourth, squared - fourth, k - squared, resolution - k]
        assert sums.read(table._fetch(sums.body())).tolist() == parts


def test_distances_are_measured_from_the_centre() -> None:
    observed = np.array([-4.0, 0.0, 2.5, 3.0, 1e308])
    table = RegressionTable(
        {"y": observed, "p": np.zeros(5)}, observed="y", predicted="p", neighbours="add-remove"
    )
    sums = PowerSums(
        column="observed", bounds=(-2.0, 4.0), with_rest=True, absolute=True, centres=(2.0,)
    )
    squared = sums.read(table._fetch(sums.body()))[0] / sums.resolution
    assert squared == pytest.approx(1 + 0.25 + 0.125**2 + 0.25**2 + 1, abs=1e-4)
    with pytest.raises(ArgumentError, match="centre"):
        PowerSums(column="observed", bounds=(0.0, 4.0), with_rest=True, centres=(2.0,))


def test_no_rows_are_zero_sums() -> None:
    sums = PowerSums(column="residual", bounds=(0.0, 3.0), with_rest=True)
    empty = {"n": np.array([0]), "once": np.ma.masked_all(1), "squared": np.ma.masked_all(1)}
    assert sums.read(empty).tolist() == [0, 0, 0]


def test_the_largest_and_the_smallest_doubles_are_counted() -> None:
    extremes = [math.ulp(0.0), -1e308, 1e308, 5e-310]
    table = RegressionTable({"y": extremes, "p": [0.0] * 4}, observed="y", predicted="p")
    sums = PowerSums(column="residual", bounds=(-1e149, 1e149), with_rest=False)
    assert sums.read(table._fetch(sums.body())).sum() <= 4 * sums.resolution


def test_a_resolution_whose_sums_would_wrap_is_refused() -> None:
    sums: dict[str, Any] = {"column": "residual", "bounds": (0.0, 1.0), "with_rest": True}
    means: dict[str, Any] = {"error": "squared", "score_range": (0, 1), "with_rest": True}
    for resolution in (1, 2**20, 2**22):
        PowerSums(**sums, resolution=resolution)
        BoundedSum(**means, resolution=resolution)
    for resolution in (0, -1, 2**23, 2**62):
        with pytest.raises(ArgumentError, match="resolution must be 1 to"):
            PowerSums(**sums, resolution=resolution)
        with pytest.raises(ArgumentError, match="resolution must be 1 to"):
            BoundedSum(**means, resolution=resolution)
