"""Select features, train and evaluate, all on private rows."""

import importlib
from typing import TYPE_CHECKING, Any

_PLACES = {
    "Bins": "heldout.questions.features.estimators",
    "FeatureMatrix": "heldout.data.feature_matrix",
    "HashedText": "heldout.data.feature_matrix",
    "PricedEstimator": "heldout.questions.features.questions",
    "PrivateLogisticRegression": "heldout.questions.features.estimators",
    "PrivateNaiveBayes": "heldout.questions.features.estimators",
    "PrivatePipeline": "heldout.questions.features.estimators",
    "Selection": "heldout.questions.features.selection",
    "Vocabulary": "heldout.data.feature_matrix",
    "select": "heldout.questions.features.estimators",
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
    from heldout.data.feature_matrix import FeatureMatrix, HashedText, Vocabulary
    from heldout.questions.features.estimators import (
        Bins,
        PrivateLogisticRegression,
        PrivateNaiveBayes,
        PrivatePipeline,
        select,
    )
    from heldout.questions.features.questions import PricedEstimator
    from heldout.questions.features.selection import Selection


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        from heldout.arguments import no_attribute

        raise no_attribute("module 'heldout.features'", name, __all__)
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
