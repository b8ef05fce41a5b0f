"""A plan says what a release then gives."""

import json
from fractions import Fraction
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chances import error_quantile

import heldout as ho
from heldout.drawing.words import half_width
from heldout.errors import ArgumentError
from heldout.intervals import registered
from heldout.kernel import Protection
from heldout.kernel.ranking.mechanism import RankingMechanism
from heldout.planning import _rounded_up, canonical_metric, decimal, metrics, plan

ROWS, POSITIVES, SHARE = 3000, 600, 0.8


@pytest.fixture(scope="module")
def rows():
    """A model that finds 0.8 of the positives and leaves 0.8 of the negatives alone."""
    negatives = ROWS - POSITIVES
    found, alarms = round(SHARE * POSITIVES), round((1 - SHARE) * negatives)
    score = [0.9] * found + [0.1] * (POSITIVES - found) + [0.9] * alarms
    return {"y": [1] * POSITIVES + [0] * negatives, "p": score + [0.1] * (negatives - alarms)}


def session_on(rows, **declared):
    dataset = ho.Dataset(rows, label="y", score="p", **declared)
    return ho.Session(dataset, budget=ho.Budget(epsilon=10**6))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_planned_epsilon_gives_the_planned_half_width(rows, neighbours):
    session = session_on(rows, neighbours=neighbours)
    drawn = {}
    for metric in registered().values():
        expected = session.confusion(epsilon=10**4).measure(metric).value
        answer = plan(rows=ROWS, positives=POSITIVES, metric=metric.name, value=expected,
                      target=0.03, neighbours=neighbours)  # fmt: skip
        assert answer.half_width <= 0.03
        releases = drawn.setdefault(
            answer.epsilon, [session.confusion(epsilon=answer.epsilon) for _ in range(5)]
        )
        found = [each.measure(metric) for each in releases]
        widths = mean(half_width(each.noise_interval(), each.value) for each in found)
        assert widths == pytest.approx(answer.half_width, rel=0.1)
        wholes = mean(half_width(each.interval(), each.value) for each in found)
        assert wholes == pytest.approx(answer.whole_half_width, rel=0.1)


@pytest.mark.chance(1e-6, "a binomial tail of 4.7e-7 at 95%")
@pytest.mark.slow
def test_the_noise_stays_within_the_planned_half_width_as_often_as_promised(rows):
    session = session_on(rows)
    answer = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE, target=0.03)
    errors = [abs(session.confusion(epsilon=answer.epsilon).recall - SHARE) for _ in range(400)]
    inside = mean(error <= answer.half_width for error in errors)
    assert inside >= 0.89  # of 400 at 95%: fewer has a chance of 5e-7
    assert mean(error <= answer.half_width / 3 for error in errors) < 0.9, "and not far too wide"


def test_the_brier_score_is_planned_for(rows):
    session = session_on(rows)
    exact = float(session.brier(epsilon=10**4))
    answer = plan(rows=ROWS, metric="brier", value=exact, target=0.01)
    found = [session.brier(epsilon=answer.epsilon) for _ in range(25)]
    widths = mean(half_width(each.noise_interval(), each.value) for each in found)
    assert widths == pytest.approx(answer.half_width, rel=0.1)


def ranked_half_width(metric, epsilon):
    """By the mechanism that a release of 5,000 rows with 500 positives would have."""
    protection = Protection(neighbours="replace-one")
    made = RankingMechanism(metric=metric, epsilon=epsilon, protection=protection, rows=5000)
    counts = {"positives": 500, "negatives": 4500}
    return error_quantile(made.expected_law(**counts), rung=made.local.rung(**counts), level=0.95)


@pytest.mark.parametrize(("metric", "target"), [("auc", 0.02), ("average precision", 0.05)])
def test_ranking_metrics_cost_what_their_mechanism_says(metric, target):
    answer = plan(rows=5000, positives=500, metric=metric, value=0.85, target=target)
    name = metric.replace(" ", "-")
    law = ranked_half_width(name, answer.epsilon)
    # A little more than the law says: a release does not know the classes to the last row.
    assert law <= answer.half_width <= min(1.05 * law, target)
    assert ranked_half_width(name, answer.epsilon * Fraction(9, 10)) > target, "near the least"
    assert answer.sampling_half_width < answer.whole_half_width


def test_an_auc_is_planned_for_by_its_own_name():
    answer = ho.plan(rows=5000, positives=500, auc=0.85, target=0.02)
    assert (answer.metric, answer.value) == ("AUC", 0.85)
    assert 0.2 < answer.epsilon < 0.5
    assert 0.015 < answer.sampling_half_width < 0.025  # Hanley and McNeil: ±0.0204


def test_an_average_precision_is_planned_for_by_its_own_name():
    words = {"rows": 5000, "positives": 500, "epsilon": "1"}
    short = ho.plan(average_precision=0.4, **words)
    assert short == ho.plan(metric="average-precision", value=0.4, **words)
    with pytest.raises(ArgumentError, match="not both"):
        ho.plan(auc=0.8, average_precision=0.4, **words)


def test_units_are_dearer_by_what_one_of_them_can_move():
    alone = plan(rows=ROWS, metric="accuracy", value=0.8, epsilon=1, unit=True)
    three = plan(rows=ROWS, metric="accuracy", value=0.8, epsilon=1, rows_per_unit=3)
    assert three.half_width == pytest.approx(3 * alone.half_width, rel=0.15)
    assert not three.protection.row_count_is_public


def test_epsilon_is_the_least_of_two_digits():
    answer = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE, target=0.03)
    less = answer.epsilon - Fraction(1, 100)
    again = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE, epsilon=less)
    assert answer.half_width <= 0.03 < again.half_width


@settings(max_examples=60, deadline=None)
@given(number=st.fractions(min_value="1/1000000", max_value=10**6))
def test_rounding_goes_up_by_less_than_a_tenth(number):
    rounded = _rounded_up(number)
    assert number <= rounded <= number * Fraction(11, 10)
    assert len(f"{float(rounded):.15g}".replace(".", "").strip("0").split("e")[0]) <= 2


def test_more_than_enough_epsilon_buys_little():
    answer = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE, epsilon=1)
    enough = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE,
                  epsilon=answer.enough_epsilon)  # fmt: skip
    endless = plan(rows=ROWS, positives=POSITIVES, metric="recall", value=SHARE, epsilon=1000)
    assert enough.half_width <= enough.sampling_half_width / 3
    assert enough.whole_half_width < 1.12 * endless.whole_half_width


def test_alarms_decide_what_precision_costs():
    few = plan(rows=5000, positives=500, metric="precision", value=0.5, alarms=200, epsilon=1)
    many = plan(rows=5000, positives=500, metric="precision", value=0.5, alarms=900, epsilon=1)
    assert few.half_width > 3 * many.half_width
    assert "200 rows" in few.assumption


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "rows must"),
        ({"rows": True}, "rows must"),
        ({"positives": 6000}, "positives must"),
        ({"metric": "gini"}, "metric must be one of accuracy"),
        ({"value": None}, "Pass value="),
        ({"value": 1.5}, "the expected recall must"),
        ({"target": None}, "Pass either target="),
        ({"epsilon": 1}, "Pass either target="),
        ({"target": 0}, "target must"),
        ({"target": 1e-9}, "No epsilon reaches it"),
        ({"auc": 0.8}, "not both"),
        ({"level": 1}, "level must"),
        ({"alarms": 9000}, "alarms must"),
        ({"alarms": 10}, "value must lie within"),
        ({"positives": None, "metric": "recall"}, "needs positives="),
        ({"neighbours": "none"}, "neighbours must"),
    ],
)
def test_what_cannot_be_planned_is_refused(wrong, message):
    good = {"rows": 5000, "positives": 500, "metric": "recall", "value": 0.8, "target": 0.02}
    with pytest.raises(ArgumentError, match=message):
        plan(**{**good, **wrong})


@pytest.mark.parametrize("name", metrics())
def test_every_metric_is_found_by_its_name(name):
    assert canonical_metric(name.upper().replace(" ", "_")) == name


def test_a_plan_is_plain_json_and_a_sentence():
    answer = plan(rows=5000, metric="prevalence", positives=500, epsilon="1/3")
    assert json.loads(json.dumps(answer.as_dict()))["epsilon"] == "1/3"
    assert answer.value == 0.1
    assert str(answer).startswith("prevalence 0.1 on 5,000 rows: epsilon 1/3 gives")
    assert decimal(Fraction(10**9)) == "1000000000"


@pytest.mark.parametrize("metric", ["auc", "average_precision", "precision", "f1", "brier score"])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "20"])
def test_noise_and_sampling_together_are_never_less_than_either(metric: str, epsilon: str) -> None:
    answer = plan(rows=3000, positives=400, metric=metric, value=0.6, epsilon=epsilon)
    assert answer.whole_half_width >= max(answer.half_width, answer.sampling_half_width)
