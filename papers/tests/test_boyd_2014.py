"""The simulations behind chapter 4, in small: batches, truths and conclusions."""

import numpy as np
import pytest

from heldout import precision_recall as pr
from heldout_papers import batches, boyd_2014_bias, boyd_2014_intervals
from heldout_papers.batches import exact_area
from heldout_papers.registry import Context
from heldout_papers.scenarios import SCENARIOS, scenario

TRUE_AREAS = {
    "binormal": (0.0422075, 0.1733148, 0.2928357, 0.4621214, 0.7529960),
    "bibeta": (0.4906359, 0.7205008, 0.8095869, 0.8852958, 0.9608933),
    "offset uniform": (0.5278448, 0.5973074, 0.6579053, 0.7433408, 0.8873265),
}
PREVALENCES = (0.01, 0.05, 0.1, 0.2, 0.5)


@pytest.mark.parametrize("name", TRUE_AREAS)
def test_true_areas_are_the_known_ones(name):
    found = [scenario(name).area(pi) for pi in PREVALENCES]
    assert found == pytest.approx(TRUE_AREAS[name], abs=5e-7)


def test_two_quadratures_of_the_binormal_area_agree():
    found = exact_area(mean=1.0, deviation=1.0, prevalence=np.array(PREVALENCES))
    assert found == pytest.approx([scenario("binormal").area(p) for p in PREVALENCES], abs=1e-10)


@pytest.mark.parametrize("world", SCENARIOS, ids=lambda world: world.name)
def test_a_batch_says_what_the_public_functions_say(world):
    random = np.random.default_rng(1)
    up, down = world.draw(random, 5, 12, 60)
    above = batches.negatives_above(up, down)
    found = batches.areas(above, 60)
    found["binormal"] = batches.binormal_areas(up, down)
    short = batches.studied_areas(above, 60)
    for k in range(5):
        truth = np.repeat([1, 0], [12, 60])
        expected = pr.estimates(truth, np.concatenate([up[k], down[k]]))
        for name, value in expected.items():
            near = 1e-6 if name == "binormal" else 1e-12
            assert found[name][k] == pytest.approx(value, abs=near)
        for name in batches.STUDIED:
            assert short[name][k] == pytest.approx(expected[name], abs=1e-12)


def test_batched_intervals_say_what_the_public_function_says():
    random = np.random.default_rng(2)
    up, down = SCENARIOS[0].draw(random, 4, 20, 180)
    above = batches.negatives_above(up, down)
    value = batches.studied_areas(above, 180)["lower-trapezoid"]
    formulas = {
        "binomial": boyd_2014_intervals._binomial(value, 20),
        "logit": boyd_2014_intervals._logit(value, 20),
        "effective": boyd_2014_intervals._effective(value, above, 180),
    }
    truth = np.repeat([1, 0], [20, 180])
    for k in range(4):
        score = np.concatenate([up[k], down[k]])
        for method, (low, high) in formulas.items():
            expected = pr.interval(y_true=truth, y_score=score, method=method)
            assert (low[k], high[k]) == pytest.approx(expected, abs=1e-9)


def test_batched_bootstrap_has_the_distribution_of_the_public_one():
    random = np.random.default_rng(3)
    up, down = SCENARIOS[0].draw(random, 1, 20, 180)
    truth, score = np.repeat([1, 0], [20, 180]), np.concatenate([up[0], down[0]])
    fast = batches.bootstrap_areas(batches.negatives_above(up, down)[0], 180, 4000, random)
    for name in batches.STUDIED:
        slow = pr.interval(
            y_true=truth,
            y_score=score,
            estimator=name,
            method="bootstrap",
            replicates=1500,
            random_state=4,
        )
        assert np.quantile(fast[name], [0.025, 0.975]) == pytest.approx(slow, abs=0.025)


def test_estimators_converge_but_for_the_misspecified_binormal():
    table = boyd_2014_bias._study(
        Context(repetitions=40, workers=1), [(100, 0.1), (10_000, 0.1)], "test"
    )
    ratio = {(r["scenario"], r["examples"], r["estimator"]): r["bias_ratio"] for r in table}
    for world in SCENARIOS:
        for name in batches.STUDIED:
            assert ratio[world.name, 10_000, name] == pytest.approx(1, abs=0.03)
        # The upper trapezoid is above its lower neighbour, the convex hull above both.
        assert (
            ratio[world.name, 100, "interpolated-convex"]
            > ratio[world.name, 100, "interpolated-max"]
        )
        assert ratio[world.name, 100, "upper-trapezoid"] > ratio[world.name, 100, "lower-trapezoid"]
    assert ratio["binormal", 10_000, "binormal"] == pytest.approx(1, abs=0.03)
    assert ratio["offset uniform", 10_000, "binormal"] < 0.9


@pytest.mark.slow
def test_formula_intervals_cover_and_resampling_does_not():
    # 600 data sets of 200 examples: the dissertation's conclusion where positives are few.
    found = boyd_2014_intervals.simulate(
        boyd_2014_intervals._Job("binormal", 200, 600, np.random.SeedSequence(5))
    )
    rows = {
        (row["estimator"], row["method"]): row
        for row in boyd_2014_intervals._rows("binormal", 200, [found])
    }
    for name in batches.STUDIED:
        for method in ("binomial", "logit", "effective"):
            assert rows[name, method]["coverage"] > 0.935
        assert rows[name, "cross-validation"]["coverage"] < 0.9
        assert rows[name, "effective"]["mean_width"] < rows[name, "logit"]["mean_width"]
        assert rows[name, "effective"]["mean_width"] < rows[name, "binomial"]["mean_width"]
    assert rows["average-precision", "bootstrap"]["coverage"] < 0.94
    assert rows["average-precision", "cross-validation"]["location_ratio"] > 1.3
