"""Private MAE, RMSE, R squared and quantiles: price, meaning, and honest intervals."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.errors import ArgumentError
from heldout.kernel import price
from heldout.regression import RegressionSession, RegressionTable, metrics

GENERATOR = np.random.default_rng(12)
PROTECTIONS: list[dict[str, Any]] = [
    {"neighbours": relation} | unit
    for relation in ("replace-one", "add-remove")
    for unit in ({}, {"unit": "who", "rows_per_unit": 2})
]


def rows(count: int) -> dict[str, Any]:
    x = GENERATOR.uniform(0, 50, count)
    return {"y": x + GENERATOR.normal(size=count), "p": x, "who": np.arange(count) // 2}


def table(content: dict[str, Any], **declared: Any) -> RegressionTable:
    return RegressionTable(content, observed="y", predicted="p", **declared)


@pytest.mark.parametrize("declared", PROTECTIONS, ids=str)
def test_the_ledger_takes_exactly_epsilon(declared: dict[str, Any]) -> None:
    session = RegressionSession(table(rows(400), **declared), budget=ho.Budget(epsilon=10))
    spent = Fraction(0)
    options: list[dict[str, Any]] = [
        {},
        {"r_squared": False},
        {"bounds": {"residual": 6}},
        {"bounds": {"residual": 6, "observed": (-10, 60)}},
    ]
    for epsilon, each in zip(("1/3", 0.1, 2, "1/7"), options, strict=True):
        found = session.metrics(epsilon=epsilon, **each)
        spent += Fraction(str(epsilon))
        *_, entry = session._ledger.entries(session._account)
        assert entry.event is not None
        assert price(entry.event) == found.loss == ho.Loss.pure(Fraction(str(epsilon)))
        assert session.spent == ho.Loss.pure(spent)
        json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_without_noise_the_numbers_are_the_clipped_rows_own(relation: str) -> None:
    content = rows(3000)
    found = metrics(
        content,
        observed="y",
        predicted="p",
        epsilon=10**6,
        neighbours=relation,
        bounds={"residual": 2, "observed": (0, 50)},
    )
    residuals = np.clip(content["y"] - content["p"], -2, 2)
    observed = np.clip(content["y"], 0, 50)
    assert found.mae == pytest.approx(np.abs(residuals).mean(), rel=1e-3)
    assert found.rmse == pytest.approx(math.sqrt((residuals**2).mean()), rel=1e-3)
    assert found.r_squared == pytest.approx(1 - (residuals**2).mean() / observed.var(), abs=1e-4)
    beyond = (np.abs(content["y"] - content["p"]) >= 2).mean()
    assert found.clipped == pytest.approx(beyond, abs=2e-3)
    for q in (0.1, 0.5, 0.8):
        assert found.quantile(q) == pytest.approx(np.quantile(residuals, q), abs=4 / 119 + 1e-3)


@pytest.mark.slow
def test_intervals_cover_these_rows_and_the_population() -> None:
    """24 releases a relation: fewer than 14 hits at 95%, in any of 20, have a chance of 2e-7."""
    truth = {"mae": math.sqrt(2 / math.pi), "rmse": 1.0, "median": 0.0, "lower": -0.674}
    truth["r_squared"] = 1 - 1 / (2500 / 12 + 1)
    for relation in ("replace-one", "add-remove"):
        own_hits, hits = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
        for _ in range(24):
            content = rows(600)
            residuals, observed = content["y"] - content["p"], content["y"]
            own = {
                "mae": np.abs(residuals).mean(),
                "rmse": math.sqrt((residuals**2).mean()),
                "median": np.median(residuals),
                "lower": np.quantile(residuals, 0.25),
                "r_squared": 1 - (residuals**2).mean() / observed.var(),
            }
            found = metrics(
                content,
                observed="y",
                predicted="p",
                epsilon=2,
                neighbours=relation,
                bounds={"residual": 6, "observed": (-10, 60)},
            )
            given = {
                "mae": found.mae,
                "rmse": found.rmse,
                "median": found.quantile(0.5),
                "lower": found.quantile(0.25),
                "r_squared": found.r_squared,
            }
            for name, measure in given.items():
                low, high = measure.noise_interval()
                own_hits[name] += low <= own[name] <= high
                low, high = measure.interval()
                hits[name] += low <= truth[name] <= high
        assert min(own_hits.values()) >= 14, own_hits
        assert min(hits.values()) >= 14, hits


@pytest.mark.slow
def test_r_squared_has_no_bias_to_speak_of_with_declared_bounds_and_little_budget() -> None:
    random = np.random.default_rng(8)
    strays = []
    for _ in range(30):
        predicted = random.normal(10, 3, 1000)
        observed = predicted + random.normal(0, 1.5, 1000)
        found = metrics(
            {"y": observed, "p": predicted},
            observed="y",
            predicted="p",
            epsilon="1/2",
            bounds={"residual": 6, "observed": (-4, 24)},
        )
        strays.append(found.r_squared - (1 - np.mean((observed - predicted) ** 2) / observed.var()))
    # It errs by .05 a time; squares of the outcome itself left a bias of -.6 and more.
    assert abs(np.mean(strays)) < 0.1


def test_where_noise_fills_the_range_r_squared_says_that_it_says_nothing() -> None:
    content = rows(200)
    found = metrics(content, observed="y", predicted="p", epsilon="1/20")
    assert not found.r_squared.informative
    assert "no information" in str(found.r_squared)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", ["0.01", "1"])
def test_odd_rows_give_a_valid_answer(relation: str, epsilon: str) -> None:
    for content in (
        {"y": [1.0], "p": [1.0]},
        {"y": [3.0] * 20, "p": [3.0] * 20},
        {"y": [*np.linspace(0, 1, 50), 1e300], "p": [0.0] * 51},
        {"y": np.arange(10.0), "p": np.zeros(10)},
    ):
        found = metrics(content, observed="y", predicted="p", epsilon=epsilon, neighbours=relation)
        assert -1 <= found.r_squared <= 1
        for measure in found.measures.values():
            low, high = measure.interval()
            assert math.isfinite(low)
            assert low <= measure <= high < math.inf
        json.dumps(found.as_dict(), allow_nan=False)


def test_wrong_arguments_are_refused_before_anything_is_spent() -> None:
    session = RegressionSession(table(rows(50)), budget=ho.Budget(epsilon=1))
    wrong: list[dict[str, Any]] = [
        {"epsilon": 0},
        {"epsilon": 1, "bounds": {"predicted": (0, 1)}},
        {"epsilon": 1, "bounds": {"residual": (-1, 2)}},
        {"epsilon": 1, "bounds": {"observed": (2, 1)}},
        {"epsilon": 1, "scale": -1},
    ]
    for each in wrong:
        with pytest.raises(ArgumentError):
            session.metrics(**each)
    assert session.spent == ho.Loss.pure(0)
    found = session.metrics(epsilon=1, r_squared=False)
    with pytest.raises(ArgumentError, match="r_squared"):
        _ = found.r_squared
    with pytest.raises(ArgumentError, match="q must"):
        found.quantile(1.5)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
@pytest.mark.parametrize("epsilon", ["1/1000", "1000"])
def test_bounds_found_from_the_outermost_scales_never_fail_after_the_booking(
    scale: float, epsilon: str
) -> None:
    session = RegressionSession(table(rows(20)), budget=ho.Budget(epsilon=10**4))
    with pytest.raises(ArgumentError, match="scale"):
        session.metrics(epsilon=epsilon, scale=scale * (1e10 if scale > 1 else 1e-10))
    assert session.spent == ho.Loss.pure(0)
    for _ in range(5):
        session.metrics(epsilon=epsilon, scale=scale).as_dict()


def test_a_spread_too_small_to_square_has_intervals_without_a_warning() -> None:
    content = {"y": [5.0] * 20, "p": [5.0] * 20}
    session = RegressionSession(table(content), budget=ho.Budget(epsilon=1000))
    plot = session.residual_plot(epsilon=1000)
    with np.errstate(all="raise", under="ignore"):
        json.dumps(plot.as_dict(), allow_nan=False)


@pytest.mark.slow
def test_intervals_by_searched_bounds_hold_the_errors_of_residuals_that_are_not_clipped() -> None:
    """16 runs each: at 92%, fewer than 7 have chance 5e-8; of clipped residuals alone, 3 hold."""
    laws = {
        "normal": (lambda: GENERATOR.normal(size=5000), 1.0),
        "t": (lambda: GENERATOR.standard_t(4, size=5000), math.sqrt(2)),
    }
    for name, (residuals, truth) in laws.items():
        held = []
        for _ in range(16):
            x = GENERATOR.uniform(0, 50, 5000)
            found = metrics(
                {"y": x + residuals(), "p": x},
                observed="y",
                predicted="p",
                epsilon=1,
                r_squared=False,
            )
            low, high = found.rmse.interval()
            held.append(low <= truth <= high)
        assert sum(held) >= 7, name


def test_an_r_squared_below_its_range_prints_as_that_or_less() -> None:
    content = rows(3000)
    content["p"] = content["p"] - 48.0
    found = metrics(
        content,
        observed="y",
        predicted="p",
        epsilon=10**6,
        bounds={"residual": 100, "observed": (-10, 60)},
    ).r_squared
    assert str(found).startswith(
        "R squared -1 or less, 95% interval -1 or less (privacy noise alone: -1 or less), "
    )
    assert found.as_dict()["least"] == -1.0


def test_the_price_is_shared_among_the_measures_that_are_asked_for() -> None:
    rows = {"y": [2.5, 3.5, 6.5] * 400, "p": [2.0, 4.0, 6.0] * 400}
    words = {"observed": "y", "predicted": "p", "epsilon": "1"}
    bounds = {"residual": 1, "observed": (0, 9)}
    released = ho.regression.metrics(rows, **words, bounds=bounds, measures=["rmse"])
    # The mean has 1.1 of the noise that it would have for all of epsilon.
    assert released._plan.shares == {"errors": Fraction(10, 11), "spread": Fraction(1, 11)}
    naive = Fraction(released._plan.errors_statistic({}).resolution)
    noise = released._plan.sums_mechanism("errors", released._plan.errors_statistic({})).scale
    assert noise == naive * Fraction(11, 10)
    assert str(released.loss) == "epsilon 1"
    assert set(released.measures) == {"root mean squared error"}
    with pytest.raises(ArgumentError, match="mae was not asked for"):
        _ = released.mae
    both = ho.regression.metrics(rows, **words, bounds=bounds, measures=["mae", "rmse"])
    assert set(both.measures) == {"mean absolute error", "root mean squared error"}
    with pytest.raises(ArgumentError, match="quantiles were not asked for"):
        released.quantile(0.5)
    explained = ho.regression.metrics(rows, **words, bounds=bounds, measures="r_squared")
    assert explained._plan.shares == {
        "errors": Fraction(5, 11), "spread": Fraction(1, 22), "centre": Fraction(1, 8),
        "outcome": Fraction(3, 8),
    }  # fmt: skip
    assert "R squared" in explained.measures
    # A searched bound must say how many rows it clips.
    searched = ho.regression.metrics(rows, **words, measures=["mae"])
    assert set(searched._plan.shares) == {"residual", "errors", "spread", "quantiles"}
    assert next(iter(searched.measures)) == "mean absolute error"
    assert searched.clipped.value < 0.5
    assert sum(searched._plan.shares.values()) == 1


def test_printed_metrics_state_their_terms_once() -> None:
    rows = {"seen": [1.0, 2.0, 3.0, 4.0] * 200, "said": [1.5, 1.5, 3.5, 3.5] * 200}
    found = ho.regression.metrics(
        rows, observed="seen", predicted="said", epsilon=5, bounds={"residual": 1}
    )
    first, *others = str(found).splitlines()
    assert first == "regression metrics, epsilon 5, replace-one neighbours"
    assert others[0].startswith("  mean absolute error ")
    assert "epsilon" not in "".join(others)
