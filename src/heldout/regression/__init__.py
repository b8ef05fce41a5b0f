"""Regression diagnostics on private rows: residual plots, error measures, logistic checks."""

import importlib
from typing import TYPE_CHECKING, Any

_PLACES = {
    "LogisticDiagnostics": "heldout.regression.logistic",
    "RegressionMetrics": "heldout.regression.measures",
    "RegressionSession": "heldout.regression.session",
    "RegressionTable": "heldout.data.regression_table",
    "ResidualPlot": "heldout.regression.release",
    "ResidualTable": "heldout.regression.table",
    "binned_residuals": "heldout.regression.readings_logistic",
    "logistic_diagnostics": "heldout.regression.logistic",
    "metrics": "heldout.regression.session",
    "residual_plot": "heldout.regression.session",
}

__all__ = [
    "LogisticDiagnostics",
    "RegressionMetrics",
    "RegressionSession",
    "RegressionTable",
    "ResidualPlot",
    "ResidualTable",
    "binned_residuals",
    "logistic_diagnostics",
    "metrics",
    "residual_plot",
]

if TYPE_CHECKING:
    from heldout.data.regression_table import RegressionTable
    from heldout.regression.logistic import LogisticDiagnostics, logistic_diagnostics
    from heldout.regression.measures import RegressionMetrics
    from heldout.regression.readings_logistic import binned_residuals
    from heldout.regression.release import ResidualPlot
    from heldout.regression.session import RegressionSession, metrics, residual_plot
    from heldout.regression.table import ResidualTable


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'heldout.regression' has no attribute {name!r}")
    found = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
