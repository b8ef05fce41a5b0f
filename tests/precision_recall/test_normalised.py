"""AUCNPR, F scores, other prevalences, aggregation."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout import precision_recall as pr
from heldout.errors import ArgumentError

shares = st.floats(0.01, 0.99)


def test_the_worst_ranking_scores_0_and_the_best_1():
    n, m = 20, 60
    worst = np.repeat([0, 1], [m, n]), -np.arange(n + m)
    best = np.repeat([1, 0], [n, m]), -np.arange(n + m)
    # The whole worst curve is one join in ROC space; AUCNPR is exact for that estimator.
    low = pr.auc_from_counts(
        true_positives=[0, n], false_positives=[m, m], estimator="interpolated-max"
    )
    assert low == pytest.approx(pr.auc(*worst, estimator="upper-trapezoid"), abs=0.6)
    assert pr.normalised_auc(pr.minimum_auc(prevalence=0.25), prevalence=0.25) == 0
    assert pr.normalised_auc(*best, estimator="interpolated-max") == 1
    assert -0.01 < pr.normalised_auc(*worst, estimator="interpolated-median") < 0.01


def test_table_3_2_follows_from_its_areas():
    # gender: area 0.509 scored 0.325 and genre 0.624 scored 0.611 give the prevalences back.
    assert pr.normalised_auc(0.509, prevalence=0.4557) == pytest.approx(0.325, abs=1e-3)
    assert pr.normalised_auc(0.624, prevalence=0.0655) == pytest.approx(0.611, abs=1e-3)


def test_conventions_at_prevalence_0_and_1():
    assert pr.normalised_auc(0.0, prevalence=0) == 0
    assert pr.normalised_auc(1.0, prevalence=1) == 1
    assert pr.normalised_auc([0, 0], [1, 2]) == 0
    assert pr.normalised_auc([1, 1], [1, 2]) == 1


def test_restricted_recall_is_normalised_by_its_own_range():
    truth, score = [1, 0, 1, 0, 0, 1], [6, 5, 4, 3, 2, 1]
    area = pr.auc(truth, score, recall=(0.5, 1))
    lowest = pr.minimum_auc(prevalence=0.5, recall=(0.5, 1))
    assert pr.normalised_auc(truth, score, recall=(0.5, 1)) == pytest.approx(
        (area - lowest) / (0.5 - lowest)
    )


@given(shares, shares, shares, st.floats(0.2, 5))
def test_the_modified_f_score_is_0_up_to_guessing_and_below_f_beta(r, p, pi, beta):
    found = pr.normalised_f_score(recall=r, precision=p, prevalence=pi, beta=beta)
    if p <= pi:
        assert found == 0
    else:
        assert 0 < found <= pr.f_score(recall=r, precision=p, beta=beta) + 1e-12


@given(shares, shares, shares)
def test_the_modified_f_1_is_the_formula_of_the_dissertation(r, p, pi):
    if p > pi:
        formula = 2 * (p - pi) * r / (p - pi + (1 - pi) * r)
        assert pr.normalised_f_score(recall=r, precision=p, prevalence=pi) == pytest.approx(formula)


@given(shares, st.floats(0.05, 0.95), st.floats(0.3, 3))
def test_contours_have_the_value_they_claim(r, value, beta):
    p = float(pr.f_score_contour(r, value=value, beta=beta))
    if np.isfinite(p):
        assert pr.f_score(recall=r, precision=p, beta=beta) == pytest.approx(value)


@given(shares, shares, shares, shares)
def test_precision_at_another_prevalence_keeps_the_roc_point(recall, fpr, pi, other):
    def at(prevalence):
        return prevalence * recall / (prevalence * recall + (1 - prevalence) * fpr)

    moved = pr.precision_at_prevalence(at(pi), prevalence=pi, new_prevalence=other)
    assert moved == pytest.approx(at(other))


def test_areas_carried_to_their_own_prevalence_stay():
    random = np.random.default_rng(1)
    truth, score = random.integers(0, 2, 50), random.normal(size=50)
    same = truth.mean()
    assert pr.auc(truth, score, prevalence=same) == pytest.approx(pr.auc(truth, score))
    assert pr.auc(truth, score, prevalence=0.01) < pr.auc(truth, score)


def test_aggregation_warns_when_prevalences_differ_and_not_otherwise():
    with pytest.warns(pr.PrevalenceWarning, match="favours"):
        result = pr.aggregate([0.4, 0.4], prevalences=[0.05, 0.5])
    assert result.mean_auc == pytest.approx(0.4)
    assert result.normalised_aucs[0] > result.normalised_aucs[1]
    assert result.normalised_auc == pytest.approx(np.mean(result.normalised_aucs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pr.aggregate([0.4, 0.5], prevalences=[0.2, 0.2])


def test_aggregation_may_be_weighted():
    result = pr.aggregate([0.4, 0.8], prevalences=[0.2, 0.2], weights=[3, 1])
    assert result.mean_auc == pytest.approx(0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pr.normalised_auc(0.5),
        lambda: pr.normalised_auc(value=None, prevalence=0.1),
        lambda: pr.normalised_auc(0.5, [1, 2]),
        lambda: pr.aggregate([], prevalences=[]),
        lambda: pr.aggregate([0.5], prevalences=[0.1, 0.2]),
        lambda: pr.aggregate([0.5], prevalences=[0.1], weights=[0]),
        lambda: pr.f_score(recall=0.5, precision=0.5, beta=0),
        lambda: pr.normalised_f_score(recall=2, precision=0.5, prevalence=0.6),
        lambda: pr.precision_at_prevalence(0.5, prevalence=0, new_prevalence=0.5),
        lambda: pr.precision_at_prevalence(1.5, prevalence=0.5, new_prevalence=0.5),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(ArgumentError, match="must"):
        call()
