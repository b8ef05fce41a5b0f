"""The curve object: points, heights, band and picture."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve

from heldout import precision_recall as pr
from heldout.errors import ArgumentError


@pytest.fixture
def labelled():
    random = np.random.default_rng(1)
    truth = np.repeat([1, 0], [30, 170])
    return truth, np.round(np.concatenate([random.normal(1, 1, 30), random.normal(0, 1, 170)]), 1)


def test_points_are_those_of_scikit_learn(labelled):
    curve = pr.curve(*labelled)
    precision, recall, thresholds = precision_recall_curve(*labelled)
    assert curve.recall[::-1] == pytest.approx(recall)
    assert curve.precision[::-1] == pytest.approx(precision)
    assert curve.thresholds[1:][::-1] == pytest.approx(thresholds)


@pytest.mark.parametrize("estimator", pr.ESTIMATORS)
def test_the_drawn_curve_has_the_estimated_area(labelled, estimator):
    curve = pr.curve(*labelled, estimator=estimator)
    grid = np.linspace(0, 1, 200_001)
    middle = (grid[1:] + grid[:-1]) / 2
    assert curve.precision_at(middle).mean() == pytest.approx(curve.auc, abs=2e-5)


def test_the_band_holds_the_curve_and_only_achievable_points(labelled):
    curve = pr.curve(*labelled)
    recall = np.linspace(0, 1, 101)
    low, high = curve.band(recall)
    height = curve.precision_at(recall)
    floor = pr.minimum_precision(recall=recall, prevalence=curve.prevalence)
    assert np.all(low <= height + 1e-12)
    assert np.all(height <= high + 1e-12)
    assert np.all(low >= floor - 1e-12)
    assert np.all(high <= 1)


def test_the_band_covers_the_true_curve_nine_times_in_ten():
    from heldout.precision_recall.estimators import NormalScores, precision

    random, recall = np.random.default_rng(2), np.array([0.1, 0.3, 0.5, 0.7])
    truth = precision(NormalScores(1, 1), 0.1, recall)
    label = np.repeat([1, 0], [50, 450])
    hits = np.zeros(4)
    for _ in range(200):
        score = np.concatenate([random.normal(1, 1, 50), random.normal(0, 1, 450)])
        low, high = pr.curve(label, score).band(recall)
        hits += (low <= truth) & (truth <= high)
    assert np.all(hits / 200 > 0.9)


def test_facts_agree_with_the_functions(labelled):
    curve = pr.curve(*labelled, estimator="interpolated-median")
    assert curve.auc == pr.auc(*labelled, estimator="interpolated-median")
    assert curve.normalised_auc == pr.normalised_auc(*labelled, estimator="interpolated-median")
    assert curve.minimum_auc == pr.minimum_auc(prevalence=0.15)
    assert set(curve.estimates) == set(pr.ESTIMATORS)
    truth, score = labelled
    assert curve.interval(0.9) == pr.interval(
        y_true=truth, y_score=score, estimator="interpolated-median", confidence=0.9
    )


def test_the_plot_has_region_guessing_band_line_and_points(labelled):
    chart = pr.curve(*labelled).plot(title="Mine").to_dict()
    marks = [_mark(layer) for layer in _flat(chart)]
    assert chart["title"] == "Mine"
    assert marks == ["area", "line", "area", "line", "point"]
    assert len(_flat(pr.curve(*labelled).plot(confidence=None).to_dict())) == 4


def test_all_positive_data_can_be_drawn():
    curve = pr.curve([1, 1], [1, 2])
    assert curve.auc == curve.prevalence == 1
    assert np.all(curve.band([0.2, 0.8])[0] == 1)
    assert curve.plot().to_dict()["layer"]


def test_a_curve_without_positives_is_refused():
    with pytest.raises(ArgumentError, match="at least one positive"):
        pr.curve([0, 0], [1, 2])


def _flat(chart):
    return [part for layer in chart["layer"] for part in layer.get("layer", [layer])]


def _mark(layer):
    return layer["mark"]["type"]
