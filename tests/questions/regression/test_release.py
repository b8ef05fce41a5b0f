"""The whole plot: what it costs, whom it protects, and that it always answers."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, DataError
from heldout.kernel import Protection, price
from heldout.kernel.regression import Axis, GridCounts
from heldout.questions.regression.plot_plan import METHODS, PlotPlan
from heldout.regression import RegressionSession, RegressionTable, residual_plot

GENERATOR = np.random.default_rng(11)
ROWS = 2000
X = GENERATOR.uniform(1, 50, ROWS)
IDEAL = {"y": X + GENERATOR.normal(size=ROWS), "p": X, "who": np.arange(ROWS) // 4}
FAN = {**IDEAL, "y": X + GENERATOR.normal(size=ROWS) * np.sqrt(X)}
PROTECTIONS: list[dict[str, Any]] = [
    {"neighbours": relation} | unit
    for relation in ("replace-one", "add-remove")
    for unit in ({}, {"unit": "who", "rows_per_unit": 3})
]
each_protection = pytest.mark.parametrize("declared", PROTECTIONS, ids=str)
BOUNDS: list[dict[str, Any]] = [
    {},
    {"residual": 8},
    {"predicted": (0, 60)},
    {"residual": (-4, 9), "predicted": (0, 60)},
]


def table(rows: dict[str, Any], **declared: Any) -> RegressionTable:
    return RegressionTable(rows, observed="y", predicted="p", **declared)


@each_protection
def test_the_ledger_takes_exactly_epsilon_whatever_is_declared(declared: dict[str, Any]) -> None:
    session = RegressionSession(table(IDEAL, **declared), budget=ho.Budget(epsilon=10))
    spent = Fraction(0)
    asked = [("1/3", "heldout"), (0.1, "dawa"), (2, "heldout"), ("1/7", "dawa")]
    for bounds, (epsilon, method) in zip(BOUNDS, asked, strict=True):
        plot = session.residual_plot(epsilon=epsilon, method=method, bounds=bounds)
        spent += Fraction(str(epsilon))
        *_, entry = session._ledger.entries(session._account)
        assert entry.event is not None
        assert price(entry.event) == plot.loss == ho.Loss.pure(Fraction(str(epsilon)))
        assert session.spent == ho.Loss.pure(spent)
        assert plot.counts.sum() <= plot.rows
        json.dumps(plot.as_dict(), allow_nan=False)


@pytest.mark.parametrize("rows", [200, 5_000])
def test_the_papers_own_plot_has_its_constants_and_costs_epsilon(rows: int) -> None:
    random = np.random.default_rng(3)
    x = random.uniform(1, 50, rows)
    data = {"y": x + random.normal(0, 1, rows), "p": x}
    held = RegressionTable(data, observed="y", predicted="p")
    session = RegressionSession(held, budget=ho.Budget(epsilon=1))
    plot = session.residual_plot(epsilon="1/2", method="chen-2016-prirp")
    assert session.spent == ho.Loss.pure(Fraction(1, 2))
    share = min(Fraction(3, 10), Fraction(470, rows) / Fraction(1, 2))
    told = plot.mechanism
    assert Fraction(told["residual_bounds_epsilon"]) == share / 4  # half of the share, of 1/2
    assert told["residual_bounds_epsilon"] == told["predicted_bounds_epsilon"]
    low, high = plot.table.predicted_edges[[0, -1]]
    assert low == -high, "bounds are symmetric"
    assert np.log2(high) % 1 == 0, "a power of two times the scale"
    assert len(plot.table.predicted_edges) == len(plot.table.residual_edges)


def test_the_papers_own_plot_needs_a_public_row_count() -> None:
    held = RegressionTable({"y": [1.0, 2.0], "p": [1.0, 2.0]}, observed="y", predicted="p",
                           neighbours="add-remove")  # fmt: skip
    session = RegressionSession(held, budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="public row count"):
        session.residual_plot(epsilon="1/2", method="chen-2016-prirp")
    assert session.spent == ho.Loss.pure(Fraction(0))


def test_a_refused_plot_costs_nothing_and_reads_nothing() -> None:
    session = RegressionSession(table(IDEAL), budget=ho.Budget(epsilon="1/2"))
    with pytest.raises(BudgetExceeded):
        session.residual_plot(epsilon=1)
    wrong: list[dict[str, Any]] = [
        {"epsilon": 0},
        {"epsilon": "1/4", "scale": 0},
        {"epsilon": "1/4", "scale": "wide"},
        {"epsilon": "1/4", "method": "magic"},
        {"epsilon": "1/4", "grid": (0, 4)},
        {"epsilon": "1/4", "grid": 10, "method": "dawa"},
        {"epsilon": "1/4", "grid": 10, "method": "chen-2016-prirp"},
        {"epsilon": "1/4", "bounds": {"observed": 3}},
        {"epsilon": "1/4", "bounds": {"residual": -1}},
        {"epsilon": "1/4", "bounds": {"predicted": (3, 3)}},
        {"epsilon": "1/4", "bounds": {"predicted": (float("nan"), 3)}},
        {"epsilon": "1/4", "expected_rows": 0},
    ]
    for each in wrong:
        with pytest.raises(ArgumentError):
            session.residual_plot(**each)
    assert session.spent == ho.Loss.pure(0)


@each_protection
def test_a_plan_does_not_look_at_rows(declared: dict[str, Any]) -> None:
    """The same request on rows that differ leaves the same price and the same words."""
    seen = set()
    for rows in (IDEAL, FAN):
        session = RegressionSession(table(rows, **declared), budget=ho.Budget(epsilon=1))
        session.residual_plot(epsilon=1)
        [entry] = session._ledger.entries(session._account)
        content = entry.content
        for changing in ("time", "account", "ledger"):
            del content[changing]
        seen.add(json.dumps(content, sort_keys=True))
    assert len(seen) == 1


def test_a_private_row_count_is_not_in_the_plan() -> None:
    plans = [
        PlotPlan(
            epsilon=Fraction(1),
            protection=Protection(neighbours="add-remove"),
            rows=None,
            expected_rows=None,
            scale=1.0,
            method="heldout",
            predicted=None,
            residual=None,
            grid=None,
        )
        for _ in range(2)
    ]
    assert plans[0].staged().event() == plans[1].staged().event()
    assert table(IDEAL, neighbours="add-remove").public_rows is None


ODD: dict[str, dict[str, Any]] = {
    "constant predictions": {"y": np.linspace(0, 9, 300), "p": np.full(300, 3.0)},
    "one huge outlier": {"y": np.append(np.linspace(-1, 1, 300), 1e300), "p": np.zeros(301)},
    "all residuals zero": {"y": np.linspace(-5, 900, 300), "p": np.linspace(-5, 900, 300)},
    "ten rows": {"y": np.arange(10.0), "p": np.arange(10.0)[::-1]},
    "one row": {"y": [1.0], "p": [2.0]},
    "the largest numbers": {"y": [8e307, -8e307] * 9, "p": [-8e307, 8e307] * 9},
    "the smallest numbers": {"y": [5e-324, -5e-324] * 9, "p": [0.0, 0.0] * 9},
}


@pytest.mark.parametrize(
    ("relation", "method"),
    [("replace-one", each) for each in METHODS] + [("add-remove", each) for each in METHODS[:2]],
)
@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_odd_rows_give_a_valid_answer(rows: Any, relation: str, method: str) -> None:
    session = RegressionSession(table(rows, neighbours=relation), budget=ho.Budget(epsilon=9))
    for epsilon in ("0.01", "1"):
        plot = session.residual_plot(epsilon=epsilon, method=method)
        assert (plot.counts >= 0).all()
        assert plot.counts.shape == plot.noisy.shape
        assert (np.diff(plot.predicted_edges) > 0).all()
        assert (np.diff(plot.residual_edges) > 0).all()
        low, high = plot.outside.interval()
        assert 0 <= low <= plot.outside <= high <= 1
        json.dumps(plot.as_dict(), allow_nan=False)


@settings(max_examples=8, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(-1e307, 1e307), st.floats(-1e307, 1e307)), min_size=1, max_size=30
    ),
    epsilon=st.sampled_from(["0.001", "1", "40"]),
    scale=st.sampled_from([1e-140, 1e-3, 1.0, 1e140]),
)
def test_any_finite_rows_give_a_valid_answer(
    rows: list[tuple[float, float]], epsilon: str, scale: float
) -> None:
    observed, predicted = (list(each) for each in zip(*rows, strict=True))
    plot = residual_plot(
        {"y": observed, "p": predicted},
        observed="y",
        predicted="p",
        epsilon=epsilon,
        scale=scale,
    )
    assert int(plot.counts.sum()) <= len(rows)
    assert np.isfinite(plot.density).all()


BROKEN: dict[str, dict[str, Any]] = {
    "NULL observed": {"y": [1.0, None], "p": [1.0, 2.0]},
    "NaN predicted": {"y": [1.0, 2.0], "p": [1.0, float("nan")]},
    "infinite predicted": {"y": [1.0, 2.0], "p": [1.0, float("inf")]},
    "infinite residual": {"y": [1.7e308, 2.0], "p": [-1.7e308, 0.0]},
    "text": {"y": ["1", "much"], "p": ["1", "2"]},
    "no row": {"y": [], "p": []},
}


@pytest.mark.parametrize("rows", BROKEN.values(), ids=BROKEN)
def test_rows_that_are_no_finite_numbers_are_refused_before_anything_is_released(
    rows: Any,
) -> None:
    with pytest.raises(DataError):
        table(rows)


def test_predictions_may_be_a_column_an_array_or_coefficients() -> None:
    body = GridCounts(axes=(Axis("residual", (-2.0, -1.0, 0.0, 1.0, 2.0)),))
    rows = {"y": IDEAL["y"], "x": X, "p": 2.0 * X - 1.0}
    tables = [
        RegressionTable(rows, observed="y", predicted="p"),
        RegressionTable(rows, observed="y", predicted=rows["p"]),
        RegressionTable(rows, observed="y", coefficients={"intercept": -1.0, "x": 2.0}),
    ]
    counts = [body.read(each._fetch(body.body())).tolist() for each in tables]
    assert counts[0] == counts[1] == counts[2]
    assert sum(counts[0]) == ROWS


def test_an_array_beside_pandas_polars_and_arrow_frames(tmp_path: Path) -> None:
    import pandas
    import polars
    import pyarrow

    rows = {"y": [1.0, 2.0], "predicted": [0.0, 0.0]}
    for frame in (pandas.DataFrame(rows), polars.DataFrame(rows), pyarrow.table(rows)):
        found = RegressionTable(frame, observed="y", predicted=[0.5, 1.5])
        residuals = found._fetch("SELECT residual FROM evaluated")["residual"]
        assert residuals.tolist() == [0.5, 0.5]
    path = tmp_path / "rows.parquet"
    polars.DataFrame(rows).write_parquet(path)
    assert RegressionTable(path, observed="y", predicted="predicted").public_rows == 2
    for wrong in ([0.5], [["a", "b"]], [[1.0, 2.0], [3.0, 4.0]], 7):
        with pytest.raises(ArgumentError, match="predicted"):
            RegressionTable(rows, observed="y", predicted=wrong)
    with pytest.raises(ArgumentError, match="predicted"):
        RegressionTable(path, observed="y", predicted=[1.0, 2.0])


def test_a_unit_keeps_its_rows_and_no_more() -> None:
    body = GridCounts(axes=(Axis("residual", (-1e9, 1e9)),))
    found = table(IDEAL, unit="who", rows_per_unit=3)
    assert body.read(found._fetch(body.body())).tolist() == [3 * ROWS // 4, 0]


@pytest.mark.chance(1e-8)
@pytest.mark.parametrize("method", METHODS)
def test_the_bounds_hold_most_rows_and_the_counts_follow_them(method: str) -> None:
    plot = residual_plot(FAN, observed="y", predicted="p", epsilon=20, method=method)
    residuals = FAN["y"] - X
    low, high = plot.bounds.residual
    left, right = plot.bounds.predicted
    inside = (residuals >= low) & (residuals < high) & (left <= X) & (right > X)
    assert inside.mean() > 0.8
    edges = np.linspace(low, high, 9), np.linspace(left, right, 9)
    truth, _, _ = np.histogram2d(residuals, X, bins=edges)
    assert np.abs(plot.resampled(edges[1], edges[0]) - truth).sum() < 0.3 * ROWS
    assert plot.outside == pytest.approx(1 - inside.mean(), abs=0.02)


def test_declared_bounds_are_the_plots_own() -> None:
    plot = residual_plot(
        IDEAL,
        observed="y",
        predicted="p",
        epsilon=1,
        bounds={"residual": 3, "predicted": (0, 60)},
        grid=(6, 5),
    )
    assert plot.bounds == ((0.0, 60.0), (-3.0, 3.0))
    assert plot.counts.shape == (6, 5)


@pytest.mark.chance(1e-8, "5 of 10 plots on either side stray by 0.13, as 1 of 60 does")
def test_a_fan_is_told_from_ideal_data_at_five_hundred_rows_times_epsilon() -> None:
    """Mean similarities differ by 0.45; 10 plots each with deviations of 0.07 make 0.2 certain."""
    from heldout.questions.regression.table import Reference

    reference = Reference.of_points(X, IDEAL["y"] - X)
    means = []
    for rows in (IDEAL, FAN):
        session = RegressionSession(table(rows), budget=ho.Budget(epsilon=100))
        plots = [session.residual_plot(epsilon="1/4") for _ in range(10)]
        means.append(float(np.median([reference.similarity(plot) for plot in plots])))
    assert means[1] - means[0] > 0.2
