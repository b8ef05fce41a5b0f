"""The unachievable region, its area, and the join of two points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from heldout import precision_recall as pr
from heldout.errors import ArgumentError

inside = st.floats(0.01, 0.99)


def test_table_3_1_has_a_valid_and_an_invalid_point():
    assert pr.is_achievable(recall=0.2, precision=0.2, prevalence=1 / 3)
    assert pr.is_achievable(recall=0.5, precision=0.2, prevalence=1 / 3)
    assert not pr.is_achievable(recall=0.6, precision=0.2, prevalence=1 / 3)


def test_the_worst_ranking_lies_on_the_minimum_curve():
    truth, score = np.repeat([0, 1], [30, 10]), np.arange(40)[::-1]
    curve = pr.curve(truth, score)
    lowest = pr.minimum_precision(recall=curve.recall[1:], prevalence=0.25)
    assert curve.precision[1:] == pytest.approx(lowest)


@given(inside, inside, inside)
def test_no_confusion_matrix_is_below_the_minimum(recall, false_share, prevalence):
    true, false = recall * prevalence, false_share * (1 - prevalence)
    precision = true / (true + false)
    assert pr.is_achievable(recall=recall, precision=precision, prevalence=prevalence)


@pytest.mark.parametrize("prevalence", [1e-12, 1e-6, 0.01, 0.1, 0.5, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("span", [(0.0, 1.0), (0.5, 1.0), (0.2, 0.3)])
def test_minimum_area_is_the_integral_of_the_minimum_curve(prevalence, span):
    area, _ = quad(
        lambda r: pr.minimum_precision(recall=r, prevalence=prevalence),
        *span,
        epsabs=0,
        epsrel=1e-12,
        points=[span[0] + 1e-6],
    )
    assert pr.minimum_auc(prevalence=prevalence, recall=span) == pytest.approx(area, rel=1e-9)


@pytest.mark.parametrize("prevalence", [0.05, 0.33, 0.5, 0.8])
def test_minimum_area_is_theorem_3_4(prevalence):
    theorem = 1 + (1 - prevalence) * np.log(1 - prevalence) / prevalence
    assert pr.minimum_auc(prevalence=prevalence) == pytest.approx(theorem, rel=1e-12)


def test_minimum_area_has_its_limits_at_prevalence_0_and_1():
    assert pr.minimum_auc(prevalence=0) == 0
    assert pr.minimum_auc(prevalence=1, recall=(0.25, 0.75)) == 0.5
    assert pr.minimum_auc(prevalence=1e-300) == pytest.approx(0, abs=1e-299)


@pytest.mark.parametrize(("positives", "negatives"), [(1, 0), (1, 5), (4, 9), (30, 7)])
def test_minimum_average_precision_is_that_of_the_worst_ranking(positives, negatives):
    truth = np.repeat([0, 1], [negatives, positives])
    score = -np.arange(positives + negatives)
    worst = pr.auc(truth, score, estimator="average-precision")
    expected = pr.minimum_average_precision(positives=positives, negatives=negatives)
    assert worst == pytest.approx(expected)


def test_interpolation_is_straight_in_roc_space_at_every_prevalence():
    (r1, p1), (r2, p2), r = (0.2, 0.7), (0.9, 0.4), 0.5
    joined = pr.interpolate(r, start=(r1, p1), stop=(r2, p2))
    for pi in (0.1, 0.3):  # Theorem 4.1: the prevalence cancels
        s1, s2 = ((1 - p) * pi * q / (p * (1 - pi)) for q, p in ((r1, p1), (r2, p2)))
        s = s1 + (r - r1) / (r2 - r1) * (s2 - s1)
        assert joined == pytest.approx(pi * r / (pi * r + (1 - pi) * s))


@given(inside, inside, inside, inside)
def test_interpolated_area_is_the_integral_of_the_interpolation(r1, width, p1, p2):
    r2 = r1 + width * (1 - r1)
    if not r1 < r2:
        return
    area, _ = quad(
        lambda r: pr.interpolate(min(max(r, r1), r2), start=(r1, p1), stop=(r2, p2)),
        r1,
        r2,
        epsabs=1e-14,
        epsrel=1e-12,
    )
    found = pr.interpolated_area(start=(r1, p1), stop=(r2, p2))
    assert found == pytest.approx(area, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("shift", [0.0, 1e-15, 1e-12, 1e-8, 1e-4, 0.009, 0.011])
def test_the_area_is_stable_where_a_vanishes(shift):
    # a = 0: predictions do not grow with recall, the precision is a straight line from r1/d.
    r1, r2, d = 0.25, 0.5, 0.75
    found = pr.interpolated_area(start=(r1, r1 / d), stop=(r2, r2 / (d * (1 + shift))))
    nodes, weights = np.polynomial.legendre.leggauss(30)
    r = (r1 + r2) / 2 + nodes * (r2 - r1) / 2
    exact = np.dot(weights, r / (d + d * shift * (r - r1) / (r2 - r1))) * (r2 - r1) / 2
    assert found == pytest.approx(exact, rel=1e-14)


def test_the_area_is_exact_where_b_vanishes():
    # b = 0: equal precision at both ends, the join is level.
    found = pr.interpolated_area(start=(0.25, 0.4), stop=(0.75, 0.4))
    assert found == pytest.approx(0.2, rel=1e-15)


def test_a_join_from_recall_0_is_level():
    assert pr.interpolate(0.1, start=(0.0, 1.0), stop=(0.5, 0.4)) == 0.4
    assert pr.interpolated_area(start=(0.0, 1.0), stop=(0.5, 0.4)) == 0.2


@pytest.mark.parametrize(
    "call",
    [
        lambda: pr.minimum_precision(recall=1.5, prevalence=0.1),
        lambda: pr.minimum_precision(recall=0.5, prevalence=-0.1),
        lambda: pr.minimum_auc(prevalence=0.1, recall=(0.5, 0.5)),
        lambda: pr.minimum_auc(prevalence=float("nan")),
        lambda: pr.minimum_average_precision(positives=0, negatives=0),
        lambda: pr.minimum_average_precision(positives=1.5, negatives=1),
        lambda: pr.interpolate(0.9, start=(0.1, 0.5), stop=(0.5, 0.5)),
        lambda: pr.interpolated_area(start=(0.5, 0.5), stop=(0.5, 0.6)),
        lambda: pr.interpolated_area(start=(0.1, 0.0), stop=(0.5, 0.6)),
    ],
)
def test_arguments_out_of_range_are_refused(call):
    with pytest.raises(ArgumentError, match="must"):
        call()
