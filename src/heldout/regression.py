"""Regression diagnostics on private rows: residual plots, error measures, logistic checks."""

import importlib
from typing import TYPE_CHECKING, Any

_PLACES = {
    "LogisticDiagnostics": "heldout.questions.regression.logistic",
    "RegressionMetrics": "heldout.questions.regression.measures",
    "RegressionSession": "heldout.questions.regression.session",
    "RegressionTable": "heldout.data.regression_table",
    "ResidualPlot": "heldout.questions.regression.release",
    "ResidualTable": "heldout.questions.regression.table",
    "binned_residuals": "heldout.questions.regression.logistic",
    "logistic_diagnostics": "heldout.questions.regression.logistic",
    "metrics": "heldout.questions.regression.session",
    "residual_plot": "heldout.questions.regression.session",
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
    from heldout.questions.regression.logistic import (
        LogisticDiagnostics,
        binned_residuals,
        logistic_diagnostics,
    )
    from heldout.questions.regression.measures import RegressionMetrics
    from heldout.questions.regression.release import ResidualPlot
    from heldout.questions.regression.session import RegressionSession, metrics, residual_plot
    from heldout.questions.regression.table import ResidualTable


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'heldout.regression' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
