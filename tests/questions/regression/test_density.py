"""From noisy counts to a picture: whole, non-negative, adding up, and closer than the noise."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heldout.intervals.joint import simplex, whole_numbers
from heldout.questions.regression.table import (
    laplace_deviation,
    overlaps,
    smoothed,
)
from heldout.regression import ResidualTable

noisy_tables = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-(10**9), 10**9))
)


def table(noisy: Any, *, rows: int, outside: float = 0.0) -> ResidualTable:
    down, across = noisy.shape
    return ResidualTable(
        residual_edges=np.linspace(-3, 3, down + 1),
        predicted_edges=np.linspace(10, 20, across + 1),
        noisy=noisy,
        outside=outside,
        scale=Fraction(4),
        rows=rows,
    )


@settings(max_examples=60, deadline=None)
@given(noisy=noisy_tables, rows=st.integers(0, 10**7), outside=st.integers(-(10**6), 10**8))
def test_counts_are_whole_not_below_zero_and_add_up_whatever_the_noise(
    noisy: Any, rows: int, outside: int
) -> None:
    found = table(noisy, rows=rows, outside=float(outside))
    assert found.counts.dtype == np.int64
    assert (found.counts >= 0).all()
    assert int(found.counts.sum()) == min(max(rows - max(outside, 0), 0), rows)
    predicted, residual = found.points(limit=500)
    assert len(predicted) == min(int(found.counts.sum()), 500)
    assert ((predicted >= 10) & (predicted <= 20)).all()
    assert ((residual >= -3) & (residual <= 3)).all()


@settings(max_examples=40, deadline=None)
@given(
    values=arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6)),
    total=st.floats(1e-3, 1e6),
)
def test_the_nearest_counts_keep_the_order_and_the_total(values: Any, total: float) -> None:
    found = simplex(values, total=total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6)
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= -1e-9).all()


def test_noise_far_beyond_the_rows_leaves_a_valid_picture() -> None:
    noisy = np.array([[9e18, -9e18], [5e17, 3.0]])
    assert simplex(noisy, total=1e-3).sum() == pytest.approx(1e-3)
    found = table(noisy, rows=7)
    assert found.counts.sum() == 7
    assert (found.counts >= 0).all()
    huge = table(noisy, rows=2**60 + 1)
    assert int(huge.counts.sum()) == round(huge.inside)


def test_whole_numbers_differ_by_less_than_one_where_the_total_allows_it() -> None:
    values = np.array([[0.2, 3.7], [2.6, 3.5]])
    found = whole_numbers(values, total=10)
    assert found.sum() == 10
    assert (np.abs(found - values) < 1).all()


def test_smoothing_brings_a_pattern_closer_and_leaves_an_exact_table_alone() -> None:
    generator = np.random.default_rng(5)
    down, across = np.meshgrid(np.linspace(-2, 2, 16), np.linspace(0, 1, 12), indexing="ij")
    truth = 400 * np.exp(-(down**2) / (0.2 + across))
    scale = Fraction(30)
    deviation = laplace_deviation(scale)
    errors = []
    for _ in range(20):
        noisy = truth + generator.laplace(scale=30, size=truth.shape)
        ours = smoothed(noisy, deviation=deviation, total=float(truth.sum()))
        plain = simplex(noisy, total=float(truth.sum()))
        errors.append([np.abs(ours - truth).sum(), np.abs(plain - truth).sum()])
    ours, plain = np.mean(errors, axis=0)
    assert ours < 0.6 * plain
    exact = smoothed(truth, deviation=1e-9, total=float(truth.sum()))
    assert exact == pytest.approx(truth, abs=1e-6)


def test_resampling_to_another_grid_spreads_cells_evenly_and_loses_no_row() -> None:
    found = table(np.array([[10, 30], [20, 40]]), rows=100)
    whole = found.resampled(np.linspace(10, 20, 6), np.linspace(-3, 3, 8))
    assert whole.sum() == pytest.approx(100)
    same = found.resampled(found.predicted_edges, found.residual_edges)
    assert same == pytest.approx(found.counts)
    assert overlaps([0.0, 1.0], [5.0, 6.0]).tolist() == [[0.0]]


def test_the_variance_of_a_combination_is_that_of_independent_noise() -> None:
    found = table(np.zeros((2, 2)), rows=10)
    weights = np.array([[1.0, -1.0], [2.0, 0.0]])
    assert found.noise_variance(weights) == pytest.approx(6 * laplace_deviation(Fraction(4)) ** 2)
