"""The eight estimators: reference values, brute force, edge cases."""

import json
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score

from heldout import precision_recall as pr
from heldout.errors import ArgumentError

REFERENCE = json.loads((Path(__file__).parent / "reference_aucpr.json").read_text())
JOINING = [name for name in pr.ESTIMATORS if name != "binormal"]


def labelled(case):
    truth = np.repeat([1, 0], [len(case["positives"]), len(case["negatives"])])
    return truth, np.array([*case["positives"], *case["negatives"]])


@pytest.mark.parametrize("estimator", pr.ESTIMATORS)
@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["kind"])
def test_reference_values_hold_to_1e_9(case, estimator):
    truth, score = labelled(case)
    expected = case[estimator.replace("-", "_")]
    assert pr.auc(truth, score, estimator=estimator) == pytest.approx(expected, abs=1e-9, rel=0)


def naive(truth, score, estimator):
    """From the definition, one threshold at a time, with numerical joins."""
    n = sum(truth)
    points = [(0, 0)]
    ordered = sorted(zip(score, truth, strict=True), reverse=True)
    for _, group in groupby(ordered, lambda x: x[0]):
        tied = list(group)
        up = sum(t for _, t in tied)
        points.append((points[-1][0] + up, points[-1][1] + len(tied) - up))
    precision = [(tp, tp / (tp + fp) if tp + fp else 1.0) for tp, fp in points]
    levels = {}
    for tp, p in precision:
        levels.setdefault(tp, []).append(p)
    tps = sorted(levels)
    if estimator == "interpolated-convex":
        hull = []
        for q in points:
            while len(hull) > 1 and (
                (hull[-1][1] - hull[-2][1]) * (q[0] - hull[-2][0])
                >= (q[1] - hull[-2][1]) * (hull[-1][0] - hull[-2][0])
            ):
                hull.pop()
            hull.append(q)
        levels = {}
        for tp, fp in hull:
            levels.setdefault(tp, []).append(tp / (tp + fp) if tp + fp else 1.0)
        tps = sorted(levels)
    total = 0.0
    summary = {"mean": np.mean, "median": np.median}.get(estimator.split("-")[1], max)
    for a, b in pairwise(tps):
        width = (b - a) / n
        if estimator == "average-precision":
            total += width * max(levels[b])
        elif estimator == "lower-trapezoid":
            total += width * (min(levels[a]) + max(levels[b])) / 2
        elif estimator == "upper-trapezoid":
            total += width * (max(levels[a]) + max(levels[b])) / 2
        elif a == 0:
            total += width * summary(levels[b])
        else:
            start, stop = (a / n, summary(levels[a])), (b / n, summary(levels[b]))
            low, high = start[0], stop[0]
            total += quad(
                lambda r, s=start, e=stop, lo=low, hi=high: pr.interpolate(
                    min(max(r, lo), hi), start=s, stop=e
                ),
                low,
                high,
            )[0]
    return total


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=14),
    st.sampled_from(JOINING),
)
def test_estimators_equal_their_definition_on_tied_scores(rows, estimator):
    truth, score = zip(*rows, strict=True)
    if 0 < sum(truth) < len(truth):
        found = pr.auc(truth, score, estimator=estimator)
        assert found == pytest.approx(naive(truth, score, estimator), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 3)), min_size=4, max_size=12
    ),
    st.sampled_from(list(pr.ESTIMATORS)),
)
def test_a_weight_is_a_number_of_copies(rows, estimator):
    truth, score, weight = (np.array(column) for column in zip(*rows, strict=True))
    if weight.sum() == 0:
        return
    weighted = pr.auc(truth, score, estimator=estimator, sample_weight=weight)
    copied = pr.auc(np.repeat(truth, weight), np.repeat(score, weight), estimator=estimator)
    assert weighted == pytest.approx(copied, abs=1e-7, nan_ok=True)


def test_average_precision_is_that_of_scikit_learn():
    random = np.random.default_rng(1)
    for _ in range(20):
        truth = random.integers(0, 2, 50)
        score = random.integers(0, 20, 50)
        weight = random.random(50)
        assert pr.auc(truth, score, estimator="average-precision") == pytest.approx(
            average_precision_score(truth, score)
        )
        assert pr.auc(
            truth, score, estimator="average-precision", sample_weight=weight
        ) == pytest.approx(average_precision_score(truth, score, sample_weight=weight))


@pytest.mark.parametrize("estimator", pr.ESTIMATORS)
def test_without_positives_the_area_is_0_and_without_negatives_1(estimator):
    assert pr.auc([0, 0, 0], [1, 2, 3], estimator=estimator) == 0
    assert pr.auc([1, 1, 1], [1, 2, 3], estimator=estimator) == 1


@pytest.mark.parametrize("estimator", JOINING)
def test_one_positive_is_enough(estimator):
    assert pr.auc([0, 1, 0], [1, 3, 2], estimator=estimator) >= 0.5
    assert 0 < pr.auc([0, 1, 0], [3, 1, 2], estimator=estimator) < 1


@pytest.mark.parametrize("estimator", JOINING)
def test_a_perfect_ranking_has_area_1_except_by_mean_and_median(estimator):
    area = pr.auc([1, 1, 0, 0], [4, 3, 2, 1], estimator=estimator)
    # The mean and the median also look at the false positives after the last positive.
    assert area < 1 if estimator in ("interpolated-mean", "interpolated-median") else area == 1


def test_binormal_needs_two_of_each_class():
    assert np.isnan(pr.auc([1, 0, 0], [1, 2, 3], estimator="binormal"))
    assert np.isnan(pr.auc([1, 1, 0], [1, 2, 3], estimator="binormal"))


@pytest.mark.parametrize(
    ("up", "down", "expected"),
    [
        ([2, 3], [1, 1], None),  # negatives in one point: the curve jumps
        ([2, 2], [1, 3], None),  # positives in one point
        ([2, 2], [1, 1], 1.0),
        ([1, 1], [2, 2], None),
        ([1, 1], [1, 1], None),
    ],
)
def test_binormal_survives_scores_without_spread(up, down, expected):
    area = pr.auc([1, 1, 0, 0], [*up, *down], estimator="binormal")
    assert 0 <= area <= 1
    assert expected is None or area == pytest.approx(expected)


def test_recall_ranges_add_up():
    random = np.random.default_rng(2)
    truth, score = random.integers(0, 2, 60), random.integers(0, 30, 60)
    for estimator in JOINING:
        parts = [
            pr.auc(truth, score, estimator=estimator, recall=span)
            for span in ((0, 0.13), (0.13, 0.5), (0.5, 1))
        ]
        assert sum(parts) == pytest.approx(pr.auc(truth, score, estimator=estimator))


def test_another_prevalence_is_another_weight_of_the_negatives():
    random = np.random.default_rng(3)
    truth, score = random.integers(0, 2, 80), random.normal(size=80)
    n, m = truth.sum(), 80 - truth.sum()
    weight = np.where(truth == 1, 1.0, n * 0.95 / (m * 0.05))
    for estimator in JOINING:
        assert pr.auc(truth, score, estimator=estimator, prevalence=0.05) == pytest.approx(
            pr.auc(truth, score, estimator=estimator, sample_weight=weight)
        )


def test_areas_from_counts_are_areas_from_scores():
    random = np.random.default_rng(4)
    truth, score = random.integers(0, 2, 60), random.integers(0, 25, 60)
    curve = pr.curve(truth, score)
    tp = curve.recall[1:] * curve.positives
    fp = tp / np.where(tp > 0, curve.precision[1:], 1) - tp
    fp = np.where(tp > 0, fp, np.arange(1, tp.size + 1))
    none = int((tp == 0).sum())
    fp[:none] = [((score >= t) & (truth == 0)).sum() for t in curve.thresholds[1 : none + 1]]
    for estimator in JOINING:
        counted = pr.auc_from_counts(
            true_positives=np.round(tp), false_positives=np.round(fp), estimator=estimator
        )
        assert counted == pytest.approx(pr.auc(truth, score, estimator=estimator))


def test_labels_may_be_text_or_booleans():
    score = [3, 2, 1]
    assert pr.auc(["sick", "well", "sick"], score, positive="sick") == pr.auc([1, 0, 1], score)
    assert pr.auc([True, False, True], score) == pr.auc([1, 0, 1], score)


@pytest.mark.parametrize(
    ("truth", "score", "options"),
    [
        ([], [], {}),
        ([1, 0], [1], {}),
        ([1, 0], [1, float("nan")], {}),
        ([1, 0], [1, float("inf")], {}),
        ([1, 0, 2], [1, 2, 3], {}),
        ([1.0, 0.0, float("nan")], [1, 2, 3], {}),
        ([1, 0], [1, 2], {"estimator": "trapezoid"}),
        ([1, 0], [1, 2], {"sample_weight": [1, -1]}),
        ([1, 0], [1, 2], {"sample_weight": [1]}),
        ([1, 1], [1, 2], {"prevalence": 0.5}),
        ([1, 0], [1, 2], {"prevalence": 1.0}),
        ([1, 0], [1, 2], {"recall": (0.5, 0.2)}),
    ],
)
def test_bad_arguments_are_refused_in_one_line(truth, score, options):
    with pytest.raises(ArgumentError) as caught:
        pr.auc(truth, score, **options)
    assert "\n" not in str(caught.value)


def test_counts_that_fall_are_refused():
    with pytest.raises(ArgumentError, match="never fall"):
        pr.auc_from_counts(true_positives=[2, 1], false_positives=[0, 1])
    with pytest.raises(ArgumentError, match="needs the scores"):
        pr.auc_from_counts(true_positives=[1], false_positives=[1], estimator="binormal")
