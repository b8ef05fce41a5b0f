"""Select features, train and evaluate, all on private rows."""

import importlib
from typing import TYPE_CHECKING, Any

_PLACES = {
    "Bins": "heldout.questions.features.bins",
    "FeatureMatrix": "heldout.data.feature_matrix",
    "HashedText": "heldout.data.feature_sources",
    "PricedEstimator": "heldout.questions.features.outside",
    "PrivateLogisticRegression": "heldout.questions.features.estimators",
    "PrivateNaiveBayes": "heldout.questions.features.estimators",
    "PrivatePipeline": "heldout.questions.features.estimators",
    "Selection": "heldout.questions.features.selection",
    "Vocabulary": "heldout.data.feature_sources",
    "select": "heldout.questions.features.selector",
}

__all__ = [
    "Bins",
    "FeatureMatrix",
    "HashedText",
    "PricedEstimator",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PrivatePipeline",
    "Selection",
    "Vocabulary",
    "select",
]

if TYPE_CHECKING:
    from heldout.data.feature_matrix import FeatureMatrix
    from heldout.data.feature_sources import HashedText, Vocabulary
    from heldout.questions.features.bins import Bins
    from heldout.questions.features.estimators import (
        PrivateLogisticRegression,
        PrivateNaiveBayes,
        PrivatePipeline,
    )
    from heldout.questions.features.outside import PricedEstimator
    from heldout.questions.features.selection import Selection
    from heldout.questions.features.selector import select


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'heldout.features' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
