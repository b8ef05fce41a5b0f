"""Public bounds of an outcome: what lies beyond counts as the nearer end, and fails nothing."""

import math
from dataclasses import replace
from typing import Any

import pytest

from heldout import questions as q
from heldout.data.measured import RegressionTable
from heldout.errors import ArgumentError, InfiniteScore, MissingScore


def table(**more: Any) -> RegressionTable:
    columns = {"y": [-5.0, 50.0, 300.0], "p": [math.inf, 40.0, -math.inf]}
    return RegressionTable(columns, observed="y", predicted="p", **more)


def test_numbers_beyond_the_bounds_count_as_the_nearer_end() -> None:
    bounded = table(bounds=(0, 100))
    numbers = bounded._fetch(
        "SELECT observed, predicted, residual FROM evaluated ORDER BY observed"
    )
    assert list(numbers["observed"]) == [0, 50, 100]
    assert list(numbers["predicted"]) == [100, 40, 0]
    assert list(numbers["residual"]) == [-100, 10, 100]
    assert bounded.description.bounds == (0, 100)
    assert bounded.description.scale == 5
    with pytest.raises(InfiniteScore):
        table()


def test_a_prediction_that_is_missing_is_refused_all_the_same() -> None:
    rows = {"y": [1.0, 2.0], "p": [1.0, None]}
    with pytest.raises(MissingScore):
        RegressionTable(rows, observed="y", predicted="p", bounds=(0, 100))


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, float("inf")), "ab", 7, (0, 1, 2)])
def test_bounds_that_are_none_are_refused(bounds: Any) -> None:
    with pytest.raises(ArgumentError, match="bounds must be two finite numbers"):
        table(bounds=bounds)


@pytest.mark.parametrize("rows", [30_000, 1_000_000])
def test_a_forecast_of_many_rows_is_no_wider_than_one_of_few(rows: int) -> None:
    about = table(bounds=(0, 100)).description
    question = q.RegressionMetrics(epsilon=1)
    few, many = (
        q.Quote((question,), replace(about, rows=count), q.Guess()).half_widths[0]
        for count in (3_000, rows)
    )
    name = question.headline
    assert 0 < many[name].noise < few[name].noise < 1
