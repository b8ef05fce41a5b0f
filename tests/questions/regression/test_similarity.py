"""How alike two residual plots are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heldout.errors import ArgumentError
from heldout.questions.regression.table import (
    Reference,
    regridded,
    similarity,
)


@dataclass
class Plot:
    counts: Any
    predicted_edges: Any
    residual_edges: Any


def plot(counts: Any, width: float = 1.0, height: float = 1.0) -> Plot:
    counts = np.asarray(counts)
    down, across = counts.shape
    return Plot(
        counts, np.linspace(-width, width, across + 1), np.linspace(-height, height, down + 1)
    )


counted = arrays(np.int64, (4, 6), elements=st.integers(0, 50))


@given(counted)
def test_a_plot_is_like_itself(counts):
    if counts.sum():
        assert similarity(plot(counts), plot(counts)) == pytest.approx(0, abs=1e-12)


@given(counted, counted)
def test_similarity_lies_between_0_and_1(one, two):
    assert 0 <= similarity(plot(one), plot(two)) <= 1


def test_plots_without_a_common_cell_are_at_1():
    assert similarity(plot([[5, 0]]), plot([[0, 9]])) == 1
    assert similarity(plot([[5, 5]]), plot([[0, 0]])) == 1


def test_what_lies_beyond_the_reference_counts_as_different():
    wide = Plot(np.array([[10, 10]]), np.array([-3.0, 1.0, 5.0]), np.array([-1.0, 1.0]))
    # A quarter of each cell lies in the reference, so three quarters of the mass is elsewhere.
    assert similarity(plot([[1, 1]]), wide) == pytest.approx(0.75)


@given(counted)
def test_regridding_inside_keeps_the_rows(counts):
    other = np.linspace(-1, 1, 14)
    moved = regridded(plot(counts), predicted_edges=other, residual_edges=other)
    assert moved.sum() == pytest.approx(counts.sum())
    assert (moved >= 0).all()


def test_the_formula_is_the_papers():
    random = np.random.default_rng(3)
    x, r = random.uniform(1, 50, 400), random.normal(0, 1, 400)
    other_x, other_r = random.uniform(-10, 60, 300), random.normal(0, 3, 300)
    real = Reference.of_points(x, r)
    edges = [np.linspace(each.min() - 0.1, each.max() + 0.1, 11) for each in (x, r)]
    p = np.histogram2d(x, r, bins=edges)[0].ravel() / 400
    q = np.histogram2d(other_x, other_r, bins=edges)[0].ravel() / 300
    assert real.shares.shape == (10, 10)
    assert real.similarity_of_points(other_x, other_r) == pytest.approx(
        0.5 * (np.abs(p - q).sum() + 1 - q.sum())
    )


def test_points_sampled_from_a_plot_show_the_plot():
    random = np.random.default_rng(4)
    counts = random.poisson(400, (8, 8)) * random.integers(0, 2, (8, 8))
    made = plot(counts, width=5, height=3)
    down, across = np.divmod(np.repeat(np.arange(64), counts.ravel()), 8)
    size = down.size
    x = made.predicted_edges[across] + random.random(size) * 10 / 8
    r = made.residual_edges[down] + random.random(size) * 6 / 8
    real = Reference.of_points(random.uniform(-5, 5, 500), random.uniform(-3, 3, 500))
    assert real.similarity_of_points(x, r) == pytest.approx(real.similarity(made), abs=0.02)


def test_points_that_do_not_match_are_refused():
    with pytest.raises(ArgumentError, match="the same length"):
        Reference.of_points([1.0], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="finite"):
        Reference.of_points([1.0], [np.inf])
    with pytest.raises(ArgumentError, match="at least one"):
        Reference.of_points([], [])
