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


@pytest.mark.chance(1e-7)
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


def test_the_page_shows_the_pooled_curves(released, tmp_path):
    three = [copy.deepcopy(released[0]), *copy.deepcopy(released)]
    three[0]["receipt"]["hash"] = "0" * 64
    pooled = ho.pool(three)
    page = pooled.save(tmp_path / "page.html").read_text()
    for title in ("ROC curve of all sites", "Precision-recall curve", "Reliability of all sites"):
        assert title in page
    low, high = pooled.prediction_interval()
    assert f"One more site like these, with 95%: {low:.3f} to {high:.3f}." in page
    assert pooled.as_dict()["curves"]["calibration"]["share"] == pooled.calibration.share.tolist()
    two = ho.pool(released)
    assert two.predicted() == ""
    assert "One more site" not in two.save(tmp_path / "two.html").read_text()


def test_scores_that_are_no_probabilities_have_no_reliability_diagram(parts):
    wide = [{"y": each["y"], "p": 10 * each["p"]} for each in parts]
    declared = {"label": "y", "score": "p", "score_range": (0, 10)}
    pooled = ho.pool(
        [
            ho.Session(ho.Dataset(each, **declared), budget=ho.Budget(epsilon=9)).curves(epsilon=4)
            for each in wide
        ]
    )
    assert len(pooled.figures()) == 3
    assert "calibration" not in pooled.as_dict()["curves"]
    with pytest.raises(ArgumentError, match="probabilities"):
        _ = pooled.calibration


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
