"""Curves from tables: the isotonic fit, and curves of exact counts against scikit-learn."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from heldout.intervals.readings import cumulative_counts, isotonic, plain_curve
from heldout.kernel.noise.tables import NoisyTable, independent_noise

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=20)


@given(numbers)
def test_the_isotonic_fit_is_that_of_scipy(values: list[float]) -> None:
    np.testing.assert_allclose(isotonic(values), isotonic_regression(values).x, atol=1e-9)


@given(numbers)
def test_cumulative_counts_rise_from_zero(values: list[float]) -> None:
    found = cumulative_counts(values)
    assert found[0] == 0
    assert (np.diff(found) >= -1e-9).all()


@given(st.data())
def test_any_noisy_table_gives_a_curve_from_corner_to_corner(data: st.DataObject) -> None:
    bins = data.draw(st.integers(1, 8))
    counts = st.lists(st.floats(-1e6, 1e6), min_size=bins, max_size=bins)
    table = NoisyTable(
        edges=np.arange(bins + 1),
        negatives=data.draw(counts),
        positives=data.draw(counts),
        noise=independent_noise(Fraction(1), bins=bins),
    )
    curve = plain_curve(table, score_range=(0.0, 1.0))
    for rate in (curve.fpr, curve.tpr):
        assert (rate[0], rate[-1]) == (0, 1)
        assert (np.diff(rate) >= 0).all()
    assert len(curve.thresholds) == bins + 1
    assert (np.diff(curve.thresholds) < 0).all()
    precision = curve.precision()
    assert precision[0] == 1
    assert ((precision >= 0) & (precision <= 1)).all()


def test_curves_of_exact_counts_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_curve, roc_curve

    generator = np.random.default_rng(4)
    labels = generator.integers(0, 2, 200)
    scores = np.minimum(generator.integers(0, 9, 200) + labels, 9)
    negatives, positives = (np.bincount(scores[labels == y], minlength=10) for y in (0, 1))
    table = NoisyTable(
        edges=np.arange(11),
        negatives=negatives,
        positives=positives,
        noise=independent_noise(Fraction(1), bins=10),
    )
    curve = plain_curve(table, score_range=(0.0, 9.0))
    expected = roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, expected[0])
    np.testing.assert_allclose(curve.tpr, expected[1])
    expected = precision_recall_curve(labels, scores)
    np.testing.assert_allclose(curve.tpr, expected[1][::-1])
    np.testing.assert_allclose(curve.precision(), expected[0][::-1])


def test_a_class_without_rows_gives_the_straight_line() -> None:
    table = NoisyTable(
        edges=[0, 1, 2, 3],
        negatives=[3, 2, 1],
        positives=[0, -1, -2],
        noise=independent_noise(Fraction(1), bins=3),
    )
    assert plain_curve(table, score_range=(0.0, 1.0)).tpr == pytest.approx([0, 1 / 3, 2 / 3, 1])
