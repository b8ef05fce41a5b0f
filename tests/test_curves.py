"""`Session.curves` and its one-off forms: price, relations, units, methods, awkward data."""

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.kernel.curves.heldout import (
    EDGES_SHARE,
    HEAP_SHARE,
    PUBLIC_BINS,
)
from heldout.kernel.curves.registry import METHODS

RANDOM = np.random.default_rng(4)
LABELS = (RANDOM.random(900) < 0.4).astype(int)
SCORES = np.clip(RANDOM.normal(0.35 + 0.25 * LABELS, 0.15), 0, 1)


def session(budget: str = "10", **declared: Any) -> ho.Session:
    dataset = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p", **declared)
    return ho.Session(dataset, budget=ho.Budget(epsilon=budget))


def assert_sound(release: Any) -> None:
    for rate in (release.roc.fpr, release.roc.tpr):
        assert rate[0] == 0
        assert rate[-1] == 1
        assert (np.diff(rate) >= 0).all()
    assert (np.diff(release.roc.thresholds) <= 0).all()
    json.dumps(release.as_dict(), allow_nan=False)
    for threshold in (0, 0.3, 1):
        release.confusion(threshold).as_dict()
    # Every threshold has a precision of nearly nothing; a high one may be out of a curve's reach.
    for name, least in (("recall", 0.7), ("precision", 0.001), ("specificity", 0.7)):
        assert 0 <= release.threshold_for(**{name: least}) <= 1


def test_one_release_is_charged_once_whatever_is_read_off_it() -> None:
    one = session()
    release = one.curves(epsilon="1/3")
    assert_sound(release)
    assert one.spent.epsilon == Fraction(1, 3)
    assert release.loss.epsilon == Fraction(1, 3)
    assert str(release).startswith("AUC of the curve")


def test_curves_beyond_the_budget_are_refused() -> None:
    with pytest.raises(BudgetExceeded):
        session("1").curves(epsilon="1.01")


LEVELLED = ("recursive-medians", "stoddard-2014-priroc", "chen-2016-priroc")
NOT_WHOLE = (2.5, Fraction(5, 2), Decimal(3), np.float64(3), True, "3", math.nan, 10**30)
COUNTED = (
    *(("heldout", name) for name in ("levels", "expected_rows")),
    *(("hierarchical-quantile", name) for name in ("quantiles", "branching")),
    *(("laplace", "thresholds"), ("fixed-space", "thresholds"), ("recursive-medians", "levels")),
)


@pytest.mark.parametrize("bad", [{"method": "spline"}, {"epsilon": 0}, {"thresholds": 3},
                                 {"epsilon": "-1"}, {"levels": 12},
                                 {"method": "hierarchical-quantile", "branching": 200}]
                         + [{"method": method, name: value}
                            for method, name in COUNTED for value in NOT_WHOLE])  # fmt: skip
def test_a_wrong_request_costs_nothing(bad: dict[str, Any]) -> None:
    one = session()
    with pytest.raises(ArgumentError):
        one.curves(**{"epsilon": "1", **bad})
    assert one.spent.epsilon == 0


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_every_reading(name: str) -> None:
    options = {"levels": 5} if name in LEVELLED else {}
    one = session()
    release = one.curves(epsilon="1", method=name, **options)
    assert_sound(release)
    assert one.spent.epsilon == 1
    assert release.mechanism["name"] == name
    assert release.roc.band(simultaneous=False).mean_width <= release.roc.band().mean_width + 1e-9


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", [False, True])
def test_both_relations_by_row_and_by_unit(neighbours: str, unit: bool) -> None:
    table = {"y": LABELS, "p": SCORES, "who": np.arange(900) // 3, "key": np.arange(900)}
    declared = {"unit": "who", "rows_per_unit": 3, "row_key": "key"} if unit else {}
    dataset = ho.Dataset(table, label="y", score="p", neighbours=neighbours, **declared)
    one = ho.Session(dataset, budget=ho.Budget(epsilon="3"))
    release = one.curves(epsilon="2")
    assert_sound(release)
    assert release.table.rows == (900 if neighbours == "replace-one" and not unit else None)
    moved = (2 if neighbours == "replace-one" else 1) * (3 if unit else 1)
    whole = Fraction(2 if release.table.rows is not None else release.mechanism["curves_epsilon"])
    edges = EDGES_SHARE if release.table.bins > PUBLIC_BINS else 0
    heaps = HEAP_SHARE if release.table.heaps is not None else 0
    assert release.table.noise.scale == moved / (whole * (1 - edges - heaps))


AWKWARD = {
    "all scores equal": ([0, 1] * 100, [0.5] * 200),
    "piled up at zero": ([0, 1] * 100, [0.0] * 200),
    "two scores": ([0, 1] * 100, [0.0, 1.0] * 100),
    "upside down": ([0, 1] * 100, [1.0, 0.0] * 100),
    "one row": ([1], [0.3]),
    "no positive": ([0] * 60, np.linspace(0, 1, 60)),
    "no negative": ([1] * 60, np.linspace(0, 1, 60)),
    "one positive": ([1] + [0] * 300, np.linspace(0, 1, 301)),
}
OFTEN = ("all scores equal", "one row", "no positive")
"""The others with the slow tests."""


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(rows, marks=[pytest.mark.slow] * (name not in OFTEN))
        for name, rows in AWKWARD.items()
    ],
    ids=AWKWARD,
)
@pytest.mark.filterwarnings("error")
def test_awkward_rows_have_a_valid_curve_and_a_wide_band(rows: Any) -> None:
    labels, scores = (np.asarray(each) for each in rows)
    for epsilon, neighbours in itertools.product(("0.01", "100"), ("replace-one", "add-remove")):
        release = ho.roc_curve(labels, scores, epsilon=epsilon, neighbours=neighbours)
        assert_sound(release)
        if epsilon == "0.01":
            # Nearly always 1; noise that looks like a few rows takes a part of it now and then.
            assert release.roc.band(noise_only=True).mean_width > 0.5
            low, high = release.auc.noise_interval(0.99)
            assert high - low > 0.5


def test_the_one_off_forms_give_the_same_release() -> None:
    for function in (ho.roc_curve, ho.precision_recall_curve, ho.calibration_curve):
        release = function(LABELS, SCORES, epsilon="1", neighbours="add-remove")
        assert len(release.roc.fpr) == len(release.roc.tpr) == len(release.roc.thresholds)
        assert len(release.precision_recall.recall) == len(release.precision_recall.precision)
        assert len(release.calibration.predicted) == len(release.calibration.observed)
        assert release.neighbours == "add-remove"


@pytest.mark.chance(louder(0, 14, 10))
def test_a_report_may_hold_the_curves() -> None:
    one = session()
    report = one.report(epsilon="2", curves=True)
    assert report.shares["curves"] == Fraction(11, 20)
    assert sum(report.shares.values()) == one.spent.epsilon == 2
    assert "Precision-recall curve" in report.html()
    assert "curves" not in one.report(epsilon="1").releases
