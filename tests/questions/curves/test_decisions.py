"""What is read off curves for decisions: what counting gives, and what is refused."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError
from heldout.questions.curves.decisions import _logistic_fit

RANDOM = np.random.default_rng(3)
ODDS = RANDOM.normal(-1, 1.2, 4000)
LABELS = (RANDOM.random(4000) < 1 / (1 + np.exp(-ODDS))).astype(int)
SCORES = 1 / (1 + np.exp(-1.5 * ODDS - 0.3))  # too sure, and too high
SEX = RANDOM.choice(["F", "M"], 4000)
BLURRED = np.where(SEX == "M", np.clip(SCORES + RANDOM.normal(0, 0.3, 4000), 0, 1), SCORES)


@cache
def curves(epsilon: float | str = 20) -> Any:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    return ho.Session(rows, budget=ho.Budget(epsilon=20)).curves(epsilon=epsilon)


def near(measure: Any, value: float, slack: float) -> None:
    low, high = measure.noise_interval(0.999)
    assert low - slack <= value <= high + slack, (measure, value)
    assert measure == pytest.approx(value, abs=5 * slack + high - low)


@pytest.mark.chance(louder(0, 14, 10))
def test_net_benefit_is_that_of_counting_and_treat_all_that_of_the_prevalence() -> None:
    for at in (0.2, 0.5):
        called, odds = at <= SCORES, at / (1 - at)
        benefit = (called & (LABELS == 1)).mean() - odds * (called & (LABELS == 0)).mean()
        near(curves().net_benefit(at), benefit, 0.01)
        near(curves().treat_all(at), LABELS.mean() - odds * (1 - LABELS.mean()), 0.01)
    found = curves().decision_curve([0.2, 0.5])
    assert found.net_benefit[1] == curves().net_benefit(0.5)
    assert found.as_dict()["thresholds"] == [0.2, 0.5]
    assert curves().decision_curve().thresholds.size == 19


def test_costs_are_those_of_counting_and_the_best_threshold_has_the_least() -> None:
    def counted(at: float) -> float:
        called = at <= SCORES
        return float((called & (LABELS == 0)).mean() + 5 * (~called & (LABELS == 1)).mean())

    near(curves().cost(0.3, false_negative=5), counted(0.3), 0.03)
    best = curves().best_threshold(cost=(1, 5))
    assert counted(best) <= min(counted(at) for at in np.linspace(0.05, 0.9, 18)) + 0.02
    found = curves().cost_curve()
    assert (found.low <= found.cost).all()
    assert (found.cost <= found.high).all()
    assert found.cost.max() <= 0.5
    assert (found.cost[0], found.cost[-1]) == (0, 0)


@pytest.mark.chance(louder(0, 6, 20))
def test_the_best_f_score_is_found() -> None:
    def f_score(at: float) -> float:
        called = at <= SCORES
        return float(2 * (called & (LABELS == 1)).sum() / (called.sum() + LABELS.sum()))

    found = f_score(curves().best_threshold(f_score=1))
    assert found >= max(f_score(at) for at in np.linspace(0.05, 0.95, 19)) - 0.01


@pytest.mark.chance(louder(0, 14, 10))
def test_a_part_of_the_area_and_gains_are_those_of_the_rows() -> None:
    false, true, _ = roc_curve(LABELS, SCORES)
    for low, high in ((0.0, 0.2), (0.1, 1.0)):
        places = np.linspace(low, high, 2001)
        exact = float(np.interp(places, false, true).mean())
        near(curves().partial_auc(fpr=(low, high)), exact, 0.01)
    assert curves().gini == pytest.approx(2 * float(curves().auc) - 1)
    gain = curves().gain
    top = np.sort(LABELS[np.argsort(-SCORES)][:1000]).sum() / LABELS.sum()
    assert np.interp(0.25, gain.called, gain.recall) == pytest.approx(top, abs=0.02)


@pytest.mark.chance(louder(0, 6, 20))
def test_slope_and_intercept_are_those_of_a_logistic_fit() -> None:
    odds = np.log(SCORES / (1 - SCORES))
    fit = LogisticRegression(C=1e6).fit(odds[:, None], LABELS)
    near(curves().calibration_slope, float(fit.coef_[0, 0]), 0.03)
    low, high = curves().calibration_slope.interval()
    assert low <= 2 / 3 <= high
    shift = curves().calibration_intercept
    # The mean of the moved scores is the share of positives.
    moved = 1 / (1 + np.exp(-odds - float(shift)))
    assert moved.mean() == pytest.approx(LABELS.mean(), abs=0.01)


@pytest.mark.chance(louder(0, 6, 20))
def test_every_reading_has_a_range_so_that_noise_can_be_said_to_fill_it() -> None:
    found = curves()
    ranges = {
        found.gini: (-1, 0, 1),
        found.confusion(0.3).recall: (0, 0.5, 1),
        found.net_benefit(0.2): (-0.25, 0.375, 1),
        found.cost(0.3, false_negative=5): (0, 5 / 6, 5 / 3),
        found.partial_auc(fpr=(0, 0.2)): (0, 0.5, 1),
        found.calibration_slope: (-1, 1, 1e9),
        found.calibration_intercept: (-1e9, 0, 1e9),
    }
    for measure, (low, middle, high) in ranges.items():
        shares = [measure.share(each) for each in (low, middle, high)]
        assert shares == pytest.approx([0, 0.5, 1], abs=1e-6), measure.name
        assert measure.informative
    assert {"calibration slope", "calibration intercept"} <= set(found.measures)


def test_a_cost_that_noise_spreads_over_its_range_says_nothing() -> None:
    found = curves(epsilon="1/100000").cost(0.3, false_negative=5)
    assert not found.informative
    assert "no information at this price" in str(found)
    assert found.as_dict()["informative"] is False


def test_rows_that_count_for_a_part_have_less_sampling_error_than_whole_ones() -> None:
    from heldout.questions.curves.decisions import _trials

    cells = np.array([30.0, 20.0, 10.0, 40.0])
    recall = np.array([1.0, 0, 0, 0]), np.array([0, 0, 1.0, 0])
    assert _trials(*recall, cells) == pytest.approx(40)
    benefit = np.array([1, 0, 0.2, 0.2])
    counted = np.repeat(benefit, cells.astype(int))
    share = counted.mean()
    trials = _trials(benefit, 1 - benefit, cells)
    assert trials * share * (1 - share) == pytest.approx(counted.var() * 100)
    assert trials < 100


def test_a_false_positive_rate_is_reached_as_its_specificity_is() -> None:
    assert curves().threshold_for(fpr=0.1) == curves().threshold_for(specificity=0.9)
    for wrong in ({"fpr": 1.5}, {"fpr": 0.1, "recall": 0.5}, {"precision": 1.0}, {}):
        with pytest.raises(ArgumentError):
            curves().threshold_for(**wrong)


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.net_benefit(0),
        lambda found: found.net_benefit(1),
        lambda found: found.net_benefit("x"),
        lambda found: found.decision_curve([2]),
        lambda found: found.partial_auc(fpr=(0.5, 0.2)),
        lambda found: found.partial_auc(fpr=(0, 2)),
        lambda found: found.cost(0.5, false_positive=-1),
        lambda found: found.best_threshold(),
        lambda found: found.best_threshold(f_score=0),
        lambda found: found.best_threshold(cost=(0, 0)),
        lambda found: found.best_threshold(f_score=1, cost=(1, 1)),
    ],
)
def test_what_makes_no_sense_is_refused(ask: Any) -> None:
    with pytest.raises(ArgumentError):
        ask(curves())


@pytest.mark.chance(1e-7)
def test_curves_by_group_are_those_of_each_groups_rows_and_empty_groups_are_drowned() -> None:
    table = {"y": LABELS, "p": BLURRED, "sex": SEX}
    rows = ho.Dataset(table, label="y", score="p", groups={"sex": ["F", "M"]})
    session = ho.Session(rows, budget=ho.Budget(epsilon=8))
    found = session.curves(epsilon=8, by="sex")
    assert session.spent == ho.Loss.pure(8)
    for name in ("F", "M"):
        mine = name == SEX
        false, true, _ = roc_curve(LABELS[mine], BLURRED[mine])
        near(found.groups[name].auc, float(np.trapezoid(true, false)), 0.01)
    assert found.drowned == ("other",)
    assert found.worst == "M"
    assert found.gap.p_value < 0.01
    assert found.groups["M"].calibration_slope < found.groups["F"].calibration_slope
    assert found.gap_in("calibration slope").between == ("F", "M")
    assert "ROC curves of F, M" in found.figures()[-1].svg


def test_counts_of_any_size_in_a_single_bin_have_a_slope() -> None:
    """At the least price there is noise of 10^13 rows; what was paid for must be read."""
    for rows in (1.0, 1e6, 1e13):
        counts = np.array([0.0, rows, 0.0])
        fitted, _, _, bread = _logistic_fit(counts, counts, np.array([0.1, 0.4, 0.8]), slope=True)
        assert np.isfinite(fitted).all()
        assert np.isfinite(bread).all()
