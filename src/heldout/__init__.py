"""Evaluate a model on data that you must not show: how good is it?

A number or a curve, an honest interval, and an exact privacy price, booked before the answer
exists. Everything public is here; each name is loaded when it is first used, so that importing
the package stays quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_PLACES = {
    "Budget": "heldout.kernel.loss",
    "Dataset": "heldout.data.dataset",
    "Ledger": "heldout.kernel.ledger.ledger",
    "Loss": "heldout.kernel.loss",
    "PostgresTable": "heldout.data.postgres",
    "Release": "heldout.intervals.measure",
    "Search": "heldout.estimators",
    "ScoreMap": "heldout.data.scores",
    "Session": "heldout.questions.session",
    "SparkTable": "heldout.data.spark",
    "average_precision_score": "heldout.one_off",
    "brier_score_loss": "heldout.one_off",
    "calibration_curve": "heldout.one_off",
    "confusion_matrix": "heldout.one_off",
    "evaluate": "heldout.estimators",
    "plan": "heldout.planning",
    "pool": "heldout.pooling.pool",
    "private_separability": "heldout.questions.separability.score",
    "precision_recall_curve": "heldout.one_off",
    "roc_auc_score": "heldout.one_off",
    "roc_curve": "heldout.one_off",
    "separability": "heldout.questions.separability.score",
}
_ROOMS = (
    "audit",
    "client",
    "errors",
    "examples",
    "features",
    "integrations",
    "judged",
    "models",
    "precision_recall",
    "questions",
    "regression",
    "survival",
)

__all__ = [
    "Budget",
    "Dataset",
    "Ledger",
    "Loss",
    "PostgresTable",
    "Release",
    "ScoreMap",
    "Search",
    "Session",
    "SparkTable",
    "audit",
    "average_precision_score",
    "brier_score_loss",
    "calibration_curve",
    "client",
    "confusion_matrix",
    "errors",
    "evaluate",
    "examples",
    "features",
    "integrations",
    "judged",
    "models",
    "plan",
    "pool",
    "precision_recall",
    "precision_recall_curve",
    "private_separability",
    "questions",
    "regression",
    "roc_auc_score",
    "roc_curve",
    "separability",
    "survival",
]

if TYPE_CHECKING:
    from heldout import (
        audit,
        client,
        errors,
        examples,
        features,
        integrations,
        judged,
        models,
        precision_recall,
        questions,
        regression,
        survival,
    )
    from heldout.data.dataset import Dataset
    from heldout.data.postgres import PostgresTable
    from heldout.data.scores import ScoreMap
    from heldout.data.spark import SparkTable
    from heldout.estimators import Search, evaluate
    from heldout.intervals.measure import Release
    from heldout.kernel.ledger.ledger import Ledger
    from heldout.kernel.loss import Budget, Loss
    from heldout.one_off import (
        average_precision_score,
        brier_score_loss,
        calibration_curve,
        confusion_matrix,
        precision_recall_curve,
        roc_auc_score,
        roc_curve,
    )
    from heldout.planning import plan
    from heldout.pooling.pool import pool
    from heldout.questions.separability.score import private_separability, separability
    from heldout.questions.session import Session


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(importlib.import_module(_PLACES[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"heldout.{name}")
    else:
        raise AttributeError(f"module 'heldout' has no attribute {name!r}{_instead_of(name)}")
    globals()[name] = value
    return value


def _instead_of(name: str) -> str:
    """Return what to use for a metric of scikit-learn that is read off a confusion matrix."""
    from heldout.intervals.readings import contrasts, registered

    ours = {title: metric.scikit_learn for title, metric in registered().items()}
    ours |= {title: contrast.scikit_learn for title, contrast in contrasts().items()}
    for title, theirs in ours.items():
        known = theirs.partition("(")[0]
        reading = title.lower().replace(" ", "_").replace("'", "")
        if name in (known, reading):
            return (
                f". Use heldout.confusion_matrix(y_true, y_pred, epsilon=...).{reading}: one "
                "matrix has every such metric, at no further price."
            )
    if name in _ELSEWHERE:
        return f". Use {_ELSEWHERE[name]}"
    from heldout.arguments import guess

    return "" if name.startswith("_") else f".{guess(name, __all__)}".rstrip(".")


_OF_REGRESSION = "heldout.regression.metrics(frame, observed='y', predicted='yhat', epsilon=...)"
_ELSEWHERE = {
    "log_loss": "heldout.Session(rows, budget=...).log_loss(epsilon=...)",
    "ndcg_score": "heldout.Session(rows, budget=...).ndcg(epsilon=...)",
    "r2_score": _OF_REGRESSION,
    "mean_squared_error": _OF_REGRESSION,
    "root_mean_squared_error": _OF_REGRESSION,
    "mean_absolute_error": _OF_REGRESSION,
    "cross_val_score": "heldout.Search, which is scikit-learn's cv and scoring at once",
    "make_scorer": "heldout.Search, which is scikit-learn's cv and scoring at once",
}


_FIRST = (
    "Budget",
    "Dataset",
    "Ledger",
    "Session",
    "confusion_matrix",
    "evaluate",
    "plan",
    "questions",
    "roc_auc_score",
    "roc_curve",
)


def __dir__() -> list[str]:
    """List the names that people need first; `heldout.__all__` has every one."""
    return [*_FIRST, "__all__", "__version__"]
