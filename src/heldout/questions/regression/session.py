"""The analyst's handle on the rows of a regression, and the one-off functions."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from heldout.data.measured import RegressionTable
from heldout.errors import ArgumentError
from heldout.kernel import Budget, Ledger, exact
from heldout.kernel.loss import Rational
from heldout.questions.base import GroupColumns
from heldout.questions.regression import questions as asked
from heldout.questions.session import Columns, PrivateSession

if TYPE_CHECKING:
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import MetricsByGroup, PlotsByGroup, ResidualPlot


class PlotOptions(TypedDict, total=False):
    """Options of a residual plot; None leaves an option at its default."""

    scale: float
    method: str
    bounds: Mapping[str, Any] | None
    grid: tuple[int, int] | int | None
    expected_rows: int | None


class MetricsOptions(TypedDict, total=False):
    """Options of regression metrics; None leaves an option at its default."""

    scale: float
    bounds: Mapping[str, Any] | None
    r_squared: bool
    measures: Sequence[str] | None
    expected_rows: int | None


class RegressionSession(PrivateSession):
    """Questions to the rows of one regression, each paid out of one budget.

    >>> rows = {"y": [2.1, 3.9, 6.2] * 200, "yhat": [2.0, 4.0, 6.0] * 200}
    >>> table = RegressionTable(rows, observed="y", predicted="yhat")
    >>> session = RegressionSession(table, budget=Budget(epsilon="2"))
    >>> plot = session.residual_plot(epsilon="1")
    >>> int(plot.counts.sum()) <= 600, str(session.remaining)
    (True, 'epsilon 1')
    """

    holds = RegressionTable

    @overload
    def residual_plot(
        self, *, epsilon: Rational, by: None = None, **options: Unpack["PlotOptions"]
    ) -> "ResidualPlot": ...
    @overload
    def residual_plot(
        self, *, epsilon: Rational, by: Columns, **options: Unpack["PlotOptions"]
    ) -> "PlotsByGroup": ...
    def residual_plot(
        self, *, epsilon: Rational, by: Columns | None = None, **options: Unpack["PlotOptions"]
    ) -> "ResidualPlot | PlotsByGroup":
        """Rows by predicted value and residual, as a table with noise: a `ResidualPlot`.

        `options` are those of `heldout.questions.ResidualPlot`: scale, method, bounds, grid,
        expected_rows and by, which gives a `PlotsByGroup`.
        """
        return self._ask(asked.ResidualPlot, by, epsilon=epsilon, **given(options))

    @overload
    def metrics(
        self, *, epsilon: Rational, by: None = None, **options: Unpack["MetricsOptions"]
    ) -> "RegressionMetrics": ...
    @overload
    def metrics(
        self, *, epsilon: Rational, by: Columns, **options: Unpack["MetricsOptions"]
    ) -> "MetricsByGroup": ...
    def metrics(
        self, *, epsilon: Rational, by: Columns | None = None, **options: Unpack["MetricsOptions"]
    ) -> "RegressionMetrics | MetricsByGroup":
        """MAE, RMSE, R squared and quantiles of the residuals: a `RegressionMetrics`.

        `options` are those of `heldout.questions.RegressionMetrics`: scale, bounds, r_squared,
        measures, expected_rows and by, which gives a `MetricsByGroup`.
        """
        return self._ask(asked.RegressionMetrics, by, epsilon=epsilon, **given(options))


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something: None leaves one at its default."""
    return {name: value for name, value in options.items() if value is not None}


@overload
def residual_plot(
    frame: Any, *, observed: str, epsilon: Rational, by: None = None, **others: Any
) -> "ResidualPlot": ...
@overload
def residual_plot(
    frame: Any, *, observed: str, epsilon: Rational, by: Columns, **others: Any
) -> "PlotsByGroup": ...
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
    by: GroupColumns = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    **declared: Any,
) -> "ResidualPlot | PlotsByGroup":
    """The private plot of residuals against predicted values, in one call: a `ResidualPlot`.

    `declared` is what `RegressionTable` takes: unit, rows_per_unit, row_key, neighbours, schema,
    name, and groups, for `by`, which gives a `PlotsByGroup`. Without a ledger nobody keeps count
    across calls, and the budget is `epsilon`.

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
        by=by,
    )


@overload
def metrics(
    frame: Any, *, observed: str, epsilon: Rational, by: None = None, **others: Any
) -> "RegressionMetrics": ...
@overload
def metrics(
    frame: Any, *, observed: str, epsilon: Rational, by: Columns, **others: Any
) -> "MetricsByGroup": ...
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
    measures: Sequence[str] | None = None,
    expected_rows: int | None = None,
    by: GroupColumns = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    **declared: Any,
) -> "RegressionMetrics | MetricsByGroup":
    """Private MAE, RMSE, R squared and quantiles of the residuals, in one call.

    A `RegressionMetrics`, or with `by` a `MetricsByGroup`; arguments as in `residual_plot`.

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
        measures=measures,
        expected_rows=expected_rows,
        by=by,
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
