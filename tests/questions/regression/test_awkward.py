"""What is no scale, no bound, no grid and no table of residuals is refused in one typed line."""

import math
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout import regression
from heldout.errors import ArgumentError

ROWS = {"y": [1.0, 2.0, 3.0], "f": [1.5, 1.5, 3.0], "x": [0.0, 1.0, 2.0]}
ODD = ["x", [], 10**5000, math.nan, 1j, np.array([]), object()]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_an_odd_argument_is_refused_before_anything_is_paid(value: Any) -> None:
    table = regression.RegressionTable(ROWS, observed="y", predicted="f")
    session = regression.RegressionSession(table, budget=ho.Budget(epsilon="1"))
    for words in (
        {"scale": value},
        {"bounds": value},
        {"bounds": {"residual": value}},
        {"grid": value},
        {"expected_rows": value},
    ):
        with pytest.raises(ArgumentError) as caught:
            session.residual_plot(epsilon="1/2", **words)
        assert str(caught.value).isprintable()
    assert str(session.remaining) == "epsilon 1"
    for coefficients in (value, {"x": value}):
        with pytest.raises(ArgumentError):
            regression.RegressionTable(ROWS, observed="y", coefficients=coefficients)


@pytest.mark.parametrize("name", ["predicted_edges", "residual_edges", "noisy", "outside", "rows"])
@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_a_table_of_residuals_is_made_of_numbers(name: str, value: Any) -> None:
    words: dict[str, Any] = {
        "predicted_edges": [0, 1, 2], "residual_edges": [-1, 0, 1], "noisy": [[40, 9], [38, -1]],
        "outside": 4.0, "rows": 90, "scale": 2,
    }  # fmt: skip
    with pytest.raises(ArgumentError):
        regression.ResidualTable(**(words | {name: value}))


def test_edges_that_fall_are_refused() -> None:
    with pytest.raises(ArgumentError, match="rise"):
        regression.ResidualTable(
            predicted_edges=[0, 2, 1], residual_edges=[0, 1], noisy=[[1, 2]], outside=0, rows=3,
            scale=None,
        )  # fmt: skip


def test_a_plot_is_compared_with_a_plot_alone() -> None:
    plot = regression.residual_plot(ROWS, observed="y", predicted="f", epsilon="1", grid=2)
    assert 0 <= plot.similarity(plot) <= 1
    for other in ODD:
        with pytest.raises(ArgumentError, match="must be a ResidualPlot"):
            plot.similarity(other)
