"""Intervals: reference values, coverage, width, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

from heldout import precision_recall as pr
from heldout.errors import ArgumentError
from heldout.precision_recall.intervals import effective_size, jackknife
from heldout.precision_recall.levels import levels_from_scores

REFERENCE = json.loads((Path(__file__).parent / "reference_aucpr.json").read_text())


@pytest.mark.parametrize("method", ["binomial", "logit"])
@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["kind"])
def test_formula_intervals_hold_to_1e_9(case, method):
    found = pr.interval(case["average_precision"], positives=len(case["positives"]), method=method)
    assert found == pytest.approx(case[f"{method}_interval_of_ap"], abs=1e-9, rel=0)


def sample(random, n=20, m=180):
    truth = np.repeat([1, 0], [n, m])
    return truth, np.concatenate([random.normal(1, 1, n), random.normal(0, 1, m)])


def deleted(truth, score, prevalence):
    """Average precision at a fixed prevalence, each example deleted in turn."""
    values = []
    for k in range(truth.size):
        kept = np.arange(truth.size) != k
        values.append(
            pr.auc(truth[kept], score[kept], estimator="average-precision", prevalence=prevalence)
        )
    return np.array(values)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("prevalence", [0.3, 0.05])
def test_the_closed_form_jackknife_is_the_delete_one_jackknife(ties, prevalence):
    random = np.random.default_rng(5)
    truth, score = sample(random, 12, 28)
    score = np.round(score, 1) if ties else score
    values = deleted(truth, score, prevalence)
    expected = sum((side.sum() - 1) * np.var(values[side]) for side in (truth == 1, truth == 0))
    found = jackknife(levels_from_scores(truth == 1, score), prevalence)
    assert found.variance == pytest.approx(expected, rel=1e-9)


def test_effective_size_is_usually_larger_than_the_number_of_positives():
    random = np.random.default_rng(6)
    sizes = []
    for _ in range(50):
        truth, score = sample(random, 100, 900)
        levels = levels_from_scores(truth == 1, score)
        sizes.append(effective_size(levels, pr.auc(truth, score)).positives)
    assert 105 < np.median(sizes) < 200


def test_the_effective_interval_covers_and_is_narrower_than_logit():
    # Figure 4.7 in small: 800 repetitions, binormal, 50 positives, 450 negatives.
    random, true_area = np.random.default_rng(7), 0.2928356
    covered, width, logit_width = 0, 0.0, 0.0
    for _ in range(800):
        truth, score = sample(random, 50, 450)
        low, high = pr.interval(y_true=truth, y_score=score)
        wide = pr.interval(y_true=truth, y_score=score, method="logit")
        covered += low <= true_area <= high
        width, logit_width = width + high - low, logit_width + wide.high - wide.low
    assert covered / 800 > 0.94  # 0.960 measured over 10,000, standard error 0.008
    assert width < 0.97 * logit_width  # 0.96 measured; 0.92 over all scenarios and sizes


def test_a_perfect_ranking_still_has_an_interval():
    truth, score = np.repeat([1, 0], [20, 100]), np.arange(120)[::-1]
    low, high = pr.interval(y_true=truth, y_score=score)
    assert high == 1.0
    assert 0.8 < low < 0.9


@pytest.mark.parametrize("truth", [[1, 0, 0], [1, 1, 0], [1, 0]])
def test_one_example_of_a_class_gives_a_wide_interval(truth):
    low, high = pr.interval(y_true=truth, y_score=np.arange(len(truth)))
    assert 0 <= low < high <= 1
    assert high - low > 0.3


def test_without_data_logit_is_the_default_and_with_data_effective():
    random = np.random.default_rng(8)
    truth, score = sample(random)
    assert pr.interval(0.4, positives=20) == pr.interval(0.4, positives=20, method="logit")
    assert pr.interval(y_true=truth, y_score=score) == pr.interval(
        y_true=truth, y_score=score, method="effective"
    )


def test_the_logit_interval_of_0_or_1_says_nothing():
    assert pr.interval(1.0, positives=10) == (0, 1)
    assert pr.interval(0.0, positives=10) == (0, 1)


def test_bootstrap_is_reproducible_stratified_and_near_its_estimate():
    random = np.random.default_rng(9)
    truth, score = sample(random, 60, 240)
    options = {"y_true": truth, "y_score": score, "method": "bootstrap", "replicates": 300}
    first = pr.interval(**options, random_state=1)
    assert first == pr.interval(**options, random_state=1)
    assert first != pr.interval(**options, random_state=2)
    assert first.low < pr.auc(truth, score) < first.high


def test_bootstrap_replicates_are_resamples():
    # With all scores equal in each class every resample is the data itself.
    truth, score = np.repeat([1, 0], [5, 7]), np.repeat([1.0, 1.0], [5, 7])
    low, high = pr.interval(
        y_true=truth, y_score=score, method="bootstrap", replicates=10, random_state=0
    )
    assert low == high == pr.auc(truth, score)


@pytest.mark.parametrize("estimator", ["lower-trapezoid", "binormal"])
def test_cross_validation_uses_students_t_over_folds(estimator):
    random = np.random.default_rng(10)
    truth, score = sample(random, 40, 100)
    options = {"y_true": truth, "y_score": score, "method": "cross-validation"}
    low, high = pr.interval(**options, estimator=estimator, random_state=3)
    assert low < high
    ten = pr.interval(**options, estimator=estimator, random_state=3, confidence=0.5)
    from scipy.stats import t

    assert (high - low) / (ten.high - ten.low) == pytest.approx(t.ppf(0.975, 9) / t.ppf(0.75, 9))


def test_more_confidence_is_a_wider_interval():
    random = np.random.default_rng(11)
    truth, score = sample(random)
    for method in ("effective", "logit", "binomial"):
        widths = [
            np.diff(pr.interval(y_true=truth, y_score=score, method=method, confidence=c))[0]
            for c in (0.5, 0.9, 0.99)
        ]
        assert widths == sorted(widths)


BOTH = {"y_true": [1, 0], "y_score": [1, 2]}
WITHOUT_DATA = "value and positives must be given, positives above 0, when there are no data"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, WITHOUT_DATA),
        ({"value": 0.5}, WITHOUT_DATA),
        ({"value": 1.5, "positives": 10}, "value must lie in .0, 1., got 1.5"),
        ({"value": 0.5, "positives": 0}, WITHOUT_DATA),
        ({"value": 0.5, "positives": 10, "confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"value": 0.5, "positives": 10, "method": "wald"}, "method must be one of"),
        (
            {"value": 0.5, "positives": 10, "method": "bootstrap"},
            "method must be binomial or",
        ),
        ({"y_true": [1, 0]}, "Pass both y_true and y_score, or neither"),
        ({**BOTH, "method": "cross-validation"}, "folds must be"),
        (
            {**BOTH, "y_true": [1, 1], "method": "bootstrap"},
            "A bootstrap interval needs",
        ),
        (
            {**BOTH, "method": "bootstrap", "replicates": 1},
            "replicates must be a whole",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(options, message):
    with pytest.raises(ArgumentError, match=f"^{message}"):
        pr.interval(**options)
