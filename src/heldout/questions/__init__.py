"""Questions as values: `session.ask(Auc(epsilon="1/2"))`, and JSON to send, keep and price them.

>>> question = Confusion(threshold=0.3, epsilon="1/2")
>>> question.as_dict()
{'question': 'confusion', 'version': 1, 'epsilon': '1/2', 'threshold': 0.3}
>>> from_dict(question.as_dict()) == question
True
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heldout.arguments import is_one_of, shown
from heldout.errors import ArgumentError
from heldout.questions.base import KINDS, VERSION, Question
from heldout.questions.guess import Guess, HalfWidths
from heldout.questions.quote import Quote

__all__ = [
    "Auc",
    "AveragePrecision",
    "Brier",
    "ClassAuc",
    "ClassAveragePrecision",
    "ClassConfusion",
    "Compare",
    "Confusion",
    "Curves",
    "GridTies",
    "Guess",
    "HalfWidths",
    "LogLoss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Ndcg",
    "PrecisionAtK",
    "Question",
    "Quote",
    "RegressionMetrics",
    "Report",
    "ResidualPlot",
    "Selection",
    "Separability",
    "TopK",
    "Training",
    "from_dict",
    "kinds",
]

PLACES = {
    "Auc": ("auc", "heldout.questions.ranking"),
    "AveragePrecision": ("average-precision", "heldout.questions.ranking"),
    "Brier": ("brier", "heldout.questions.counts"),
    "ClassAuc": ("class-auc", "heldout.questions.classes"),
    "ClassAveragePrecision": ("class-average-precision", "heldout.questions.classes"),
    "ClassConfusion": ("class-confusion", "heldout.questions.classes"),
    "Compare": ("compare", "heldout.questions.ranking"),
    "Confusion": ("confusion", "heldout.questions.counts"),
    "Curves": ("curves", "heldout.questions.curves"),
    "GridTies": ("grid-ties", "heldout.questions.ranking"),
    "LogLoss": ("log-loss", "heldout.questions.counts"),
    "MeanAbsoluteError": ("mean-absolute-error", "heldout.questions.counts"),
    "MeanSquaredError": ("mean-squared-error", "heldout.questions.counts"),
    "Ndcg": ("ndcg", "heldout.questions.lists"),
    "PrecisionAtK": ("precision-at-k", "heldout.questions.lists"),
    "RegressionMetrics": ("regression-metrics", "heldout.regression.questions"),
    "Report": ("report", "heldout.report.question"),
    "ResidualPlot": ("residual-plot", "heldout.regression.questions"),
    "Selection": ("selection", "heldout.features.questions"),
    "Separability": ("separability", "heldout.separability.question"),
    "TopK": ("top-k", "heldout.questions.classes"),
    "Training": ("training", "heldout.features.questions"),
}
"""Class -> the kind that it has in JSON, and where it lives; loaded when it is first used."""

if TYPE_CHECKING:
    from heldout.features.questions import Selection, Training
    from heldout.questions.classes import ClassAuc, ClassAveragePrecision, ClassConfusion, TopK
    from heldout.questions.counts import (
        Brier,
        Confusion,
        LogLoss,
        MeanAbsoluteError,
        MeanSquaredError,
    )
    from heldout.questions.curves import Curves
    from heldout.questions.lists import Ndcg, PrecisionAtK
    from heldout.questions.ranking import Auc, AveragePrecision, Compare, GridTies
    from heldout.regression.questions import RegressionMetrics, ResidualPlot
    from heldout.report.question import Report
    from heldout.separability.question import Separability


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module 'heldout.questions' has no attribute {name!r}")
    found = getattr(importlib.import_module(PLACES[name][1]), name)
    globals()[name] = found
    return found


def kinds() -> list[str]:
    """Every kind of question, as JSON names it."""
    return [kind for kind, _ in PLACES.values()]


def from_dict(content: Mapping[str, Any]) -> Question:
    """Read a question that `as_dict` wrote; unknown kinds, versions and fields are refused."""
    if not isinstance(content, Mapping):
        raise ArgumentError(f"A question must be an object, got {shown(content)}.")
    kind, version = content.get("question"), content.get("version", VERSION)
    places = dict(PLACES.values())
    if not is_one_of(kind, places):
        raise ArgumentError(f"question must be one of {', '.join(places)}, got {shown(kind)}.")
    if version != VERSION or isinstance(version, bool):
        raise ArgumentError(
            f"version must be {VERSION}, got {shown(version)}. Use a version of heldout that "
            "knows this one."
        )
    importlib.import_module(places[str(kind)])
    rest = {name: each for name, each in content.items() if name not in ("question", "version")}
    return KINDS[str(kind)].of_fields(rest)
