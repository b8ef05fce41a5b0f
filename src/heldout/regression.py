"""Regression diagnostics on private rows: residual plots, error measures, logistic checks."""

from typing import TYPE_CHECKING, Any

from heldout.arguments import no_attribute
from heldout.data.measured import RegressionTable
from heldout.questions.linear.fit import LinearFit
from heldout.questions.linear.questions import fit
from heldout.questions.regression.logistic import (
    LogisticDiagnostics,
    binned_residuals,
    logistic_diagnostics,
)
from heldout.questions.regression.measures import RegressionMetrics
from heldout.questions.regression.release import ResidualPlot
from heldout.questions.regression.session import RegressionSession, metrics, residual_plot
from heldout.questions.regression.table import ResidualTable

__all__ = [
    "LinearFit",
    "LogisticDiagnostics",
    "RegressionMetrics",
    "RegressionSession",
    "RegressionTable",
    "ResidualPlot",
    "ResidualTable",
    "binned_residuals",
    "fit",
    "logistic_diagnostics",
    "metrics",
    "residual_plot",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise no_attribute("module 'heldout.regression'", name, __all__)
