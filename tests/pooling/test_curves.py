"""Curves of several sites become one at common thresholds."""

import copy
import json

import numpy as np
import pytest

import heldout as ho
from heldout.errors import ArgumentError


@pytest.fixture(scope="module")
def parts():
    """Sites of unequal size and prevalence, whose scores are calibrated."""
    generator = np.random.default_rng(6)
    found = []
    for rows, centre in ((2000, -1.5), (600, 0.0)):
        score = 1 / (1 + np.exp(-generator.normal(centre, 1.5, rows)))
        found.append({"y": (generator.random(rows) < score).astype(int), "p": score})
    return found


@pytest.fixture(scope="module")
def released(parts):
    return [
        json.loads(
            json.dumps(
                ho.Session(ho.Dataset(each, label="y", score="p"), budget=ho.Budget(epsilon=20))
                .curves(epsilon=20)
                .as_dict()
            )
        )
        for each in parts
    ]


def test_the_pooled_curve_is_near_that_of_all_rows(parts, released):
    pooled = ho.pool(released)
    y, p = (np.concatenate([each[name] for each in parts]) for name in "yp")
    roc = pooled.roc
    tpr, fpr = (np.array([(p[y == k] >= t).mean() for t in roc.thresholds]) for k in (1, 0))
    assert np.abs(roc.tpr - tpr).mean() < 0.02
    assert np.abs(roc.fpr - fpr).mean() < 0.02
    assert roc.tpr[[0, -1]] == pytest.approx([0, 1], abs=0.01)
    assert pooled.prevalence == pytest.approx(y.mean(), abs=0.01)
    pr = pooled.precision_recall
    at = np.searchsorted(-pr.thresholds, -0.5)
    assert pr.precision[at] == pytest.approx(y[p >= pr.thresholds[at]].mean(), abs=0.05)
    calibration = pooled.calibration
    assert calibration.share.sum() == pytest.approx(1)
    assert np.abs(calibration.observed - calibration.predicted) @ calibration.share < 0.05
    low, high = pooled.interval(0.95)
    assert low < pooled.value < high
    assert "average precision of the curve" in pooled.measures
    assert len(pooled.as_dict()["curves"]["roc"]["tpr"]) == len(roc.thresholds)


def test_other_ranges_and_broken_curves_are_refused(released):
    contents = released
    other = copy.deepcopy(contents[1])
    other["curves"]["roc"]["thresholds"][0] = 2.0
    with pytest.raises(ArgumentError, match="score ranges"):
        ho.pool([contents[0], other])
    for place, value in (("tpr", [0, 1]), ("tpr", "x"), ("thresholds", [])):
        other = copy.deepcopy(contents[1])
        other["curves"]["roc"][place] = value
        with pytest.raises(ArgumentError, match="cannot be read"):
            ho.pool([contents[0], other])
