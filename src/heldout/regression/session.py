"""The analyst's handle on the rows of a regression, and the one-off functions."""

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heldout.arguments import as_number, as_whole, shown
from heldout.errors import ArgumentError
from heldout.privacy import Budget, Ledger, exact
from heldout.privacy.rational import Rational
from heldout.regression.measures import RegressionMetrics
from heldout.regression.measures_plan import MetricsPlan
from heldout.regression.plan import PlotPlan
from heldout.regression.release import ResidualPlot
from heldout.regression.rows import RegressionTable
from heldout.regression.search import Interval
from heldout.release import Staged
from heldout.session import PrivateSession

__all__ = ["RegressionSession", "metrics", "residual_plot"]

NARROWEST, WIDEST = 1e-150, 1e150
SMALLEST, LARGEST = 1e-140, 1e140
"""Of a scale: whatever bounds are found from it are then within the widths above."""


class RegressionSession(PrivateSession):
    """Questions to the rows of one regression, each paid out of one budget.

    >>> rows = {"y": [2.1, 3.9, 6.2] * 200, "yhat": [2.0, 4.0, 6.0] * 200}
    >>> table = RegressionTable(rows, observed="y", predicted="yhat")
    >>> session = RegressionSession(table, budget=Budget(epsilon="2"))
    >>> plot = session.residual_plot(epsilon="1")
    >>> int(plot.counts.sum()) <= 600, str(session.remaining)
    (True, 'epsilon 1')
    """

    def __init__(
        self,
        table: RegressionTable,
        *,
        budget: Budget | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> None:
        if not isinstance(table, RegressionTable):
            raise ArgumentError(
                f"table must be a RegressionTable, got {type(table).__name__}. Say which columns "
                "are observed and predicted."
            )
        super().__init__(
            table, budget=budget, ledger=ledger, account=account, analyst=analyst, new=new
        )

    def _named(self, request: Staged) -> Staged:
        """The request with the names of the columns, for the ledger and for whoever reads it."""
        table = self._table
        assert isinstance(table, RegressionTable)
        model = table.predicted or "a linear model"
        names = {"observed": table.observed, "predicted": model}
        return replace(request, parameters={**names, **request.parameters})

    def residual_plot(
        self,
        *,
        epsilon: Rational,
        scale: float = 1.0,
        method: str = "heldout",
        bounds: Mapping[str, Any] | None = None,
        grid: tuple[int, int] | int | None = None,
        expected_rows: int | None = None,
    ) -> ResidualPlot:
        """Rows by predicted value and residual, as a table with noise.

        `scale` is the public unit of the numbers: bounds are searched from 1/1024 of it upwards by
        powers of two. `bounds` declares what is publicly known, {"predicted": (0, 100),
        "residual": 20}, and saves the search. `grid` is (residual cells, predicted cells).
        `method` is "heldout", "dawa", or the paper's own "chen-2016-prirp". Where the row count
        is private, `expected_rows` is a public guess that divides epsilon better.
        """
        predicted, residual = checked_bounds(bounds)
        plan = PlotPlan(
            epsilon=exact(epsilon, name="epsilon"),
            protection=self._table.protection,
            rows=self._table.public_rows,
            expected_rows=_checked_rows(expected_rows),
            scale=checked_scale(scale),
            method=method,
            predicted=predicted,
            residual=residual,
            grid=_checked_grid(grid, method),
        )
        return ResidualPlot(self._release(self._named(plan.staged())), plan)

    def metrics(
        self,
        *,
        epsilon: Rational,
        scale: float = 1.0,
        bounds: Mapping[str, Any] | None = None,
        r_squared: bool = True,
        expected_rows: int | None = None,
    ) -> RegressionMetrics:
        """MAE, RMSE, R squared and quantiles of the residuals, in one release.

        `bounds` declares what is publicly known, {"residual": 20, "observed": (0, 100)}, and saves
        the search; what lies beyond is clipped. Without `r_squared` nothing is spent on the
        outcome's spread.
        """
        given = _named_bounds(bounds)
        if not set(given) <= {"observed", "residual"}:
            raise ArgumentError(
                "bounds must name 'observed', 'residual' or both. Pass {'residual': 20}."
            )
        _, residual = checked_bounds({name: given[name] for name in given if name == "residual"})
        if residual is not None and residual[0] != -residual[1]:
            raise ArgumentError(
                f"bounds of residual must be alike on both sides, got "
                f"{shown(given['residual'])}. Pass one positive number."
            )
        plan = MetricsPlan(
            epsilon=exact(epsilon, name="epsilon"),
            protection=self._table.protection,
            rows=self._table.public_rows,
            expected_rows=_checked_rows(expected_rows),
            scale=checked_scale(scale),
            residual=None if residual is None else residual[1],
            observed=_interval(given.get("observed"), "observed"),
            outcome=bool(r_squared),
        )
        return RegressionMetrics(self._release(self._named(plan.staged())), plan)


def residual_plot(
    frame: Any,
    *,
    observed: str,
    predicted: Any = None,
    coefficients: Mapping[str, float] | None = None,
    epsilon: Rational,
    scale: float = 1.0,
    method: str = "heldout",
    bounds: Mapping[str, Any] | None = None,
    grid: tuple[int, int] | int | None = None,
    expected_rows: int | None = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    **declared: Any,
) -> ResidualPlot:
    """The private plot of residuals against predicted values, in one call.

    `declared` is what `RegressionTable` takes: unit, rows_per_unit, row_key, neighbours, schema
    and name. Without a ledger nobody keeps count across calls, and the budget is `epsilon`.

    >>> rows = {"y": [2.1, 3.9, 6.2] * 200, "yhat": [2.0, 4.0, 6.0] * 200}
    >>> plot = residual_plot(rows, observed="y", predicted="yhat", epsilon="1")
    >>> plot.counts.shape == (len(plot.residual_edges) - 1, len(plot.predicted_edges) - 1)
    True
    """
    session = one_off(
        frame,
        observed=observed,
        predicted=predicted,
        coefficients=coefficients,
        epsilon=epsilon,
        budget=budget,
        ledger=ledger,
        **declared,
    )
    return session.residual_plot(
        epsilon=epsilon,
        scale=scale,
        method=method,
        bounds=bounds,
        grid=grid,
        expected_rows=expected_rows,
    )


def metrics(
    frame: Any,
    *,
    observed: str,
    predicted: Any = None,
    coefficients: Mapping[str, float] | None = None,
    epsilon: Rational,
    scale: float = 1.0,
    bounds: Mapping[str, Any] | None = None,
    r_squared: bool = True,
    expected_rows: int | None = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    **declared: Any,
) -> RegressionMetrics:
    """Private MAE, RMSE, R squared and quantiles of the residuals, in one call.

    >>> rows = {"y": [2.5, 3.5, 6.5] * 400, "yhat": [2.0, 4.0, 6.0] * 400}
    >>> found = metrics(rows, observed="y", predicted="yhat", epsilon="2", bounds={"residual": 1})
    >>> 0.4 < found.mae < 0.6
    True
    """
    session = one_off(
        frame,
        observed=observed,
        predicted=predicted,
        coefficients=coefficients,
        epsilon=epsilon,
        budget=budget,
        ledger=ledger,
        **declared,
    )
    return session.metrics(
        epsilon=epsilon,
        scale=scale,
        bounds=bounds,
        r_squared=r_squared,
        expected_rows=expected_rows,
    )


def one_off(
    frame: Any,
    *,
    epsilon: Rational,
    budget: Budget | None,
    ledger: str | os.PathLike[str] | Ledger | None,
    **declared: Any,
) -> RegressionSession:
    """A session on a frame; its budget is `epsilon` if there is no ledger to keep another."""
    if isinstance(frame, RegressionTable):
        raise ArgumentError("frame must be a table, got a RegressionTable. Use RegressionSession.")
    price = exact(epsilon, name="epsilon")
    if ledger is None and budget is None:
        budget = Budget(epsilon=price)
    return RegressionSession(RegressionTable(frame, **declared), budget=budget, ledger=ledger)


# --- public arguments ----------------------------------------------------------------------------


def checked_scale(scale: float) -> float:
    number = as_number(scale)
    if not SMALLEST <= number <= LARGEST:
        raise ArgumentError(
            f"scale must be a positive number, {SMALLEST:g} to {LARGEST:g}, got {shown(scale)}. "
            "Pass the unit of the outcome: 1 for a test score, 1000 for a salary."
        )
    return number


def checked_bounds(bounds: Mapping[str, Any] | None) -> tuple[Interval | None, Interval | None]:
    """Declared intervals of the predicted values and of the residuals."""
    given = _named_bounds(bounds)
    if not set(given) <= {"predicted", "residual"}:
        raise ArgumentError(
            "bounds must name 'predicted', 'residual' or both. Pass {'residual': 20}."
        )
    residual = given.get("residual")
    if residual is not None and not isinstance(residual, tuple | list):
        residual = (-as_number(residual), as_number(residual))
    return _interval(given.get("predicted"), "predicted"), _interval(residual, "residual")


def _interval(value: Any, name: str) -> Interval | None:
    if value is None:
        return None
    low, high = (as_number(each) for each in value) if _is_pair(value) else (math.nan, math.nan)
    width = high - low
    if not (NARROWEST <= width <= WIDEST) or max(abs(low), abs(high)) > 1e9 * width:
        raise ArgumentError(
            f"bounds of {name} must be two finite numbers, the lower first, got {shown(value)}."
        )
    return (low, high)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _named_bounds(bounds: Any) -> dict[str, Any]:
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise ArgumentError(
            f"bounds must be intervals by name, got {shown(bounds)}. Pass {{'residual': 20}}."
        )
    return dict(bounds)


def _checked_grid(grid: tuple[int, int] | int | None, method: str) -> tuple[int, int] | None:
    if grid is None:
        return None
    pair = (grid, grid) if isinstance(grid, int) else grid
    whole = _is_pair(pair) and all(type(each) is int and 1 <= each <= 256 for each in pair)
    if not whole:
        raise ArgumentError(
            f"grid must be whole numbers of cells from 1 to 256, got {shown(grid)}."
        )
    if method != "heldout" and (pair[0] != pair[1] or pair[0] not in (1, 2, 4, 8, 16, 32, 64)):
        raise ArgumentError(
            f"grid must be a power of two to 64 for {method}, alike for both, got {shown(grid)}. "
            "Try 16."
        )
    return (pair[0], pair[1])


def _checked_rows(rows: int | None) -> int | None:
    if rows is None:
        return None
    count = as_whole(rows, most=2**53)
    if count is None or count < 1:
        raise ArgumentError(f"expected_rows must be a whole number from 1, got {shown(rows)}.")
    return count
