"""Models from outside: read without trust, proven row by row, scored in isolation.

>>> model = load({"coefficients": {"age": 0.05}, "intercept": -3, "link": "logit"})
>>> score(model, {"id": [1, 2], "age": [40.0, 80.0]}, row_key="id")
ScoredRows(scores=['score'], row_key='id')
"""

from heldout.models.model import Model, load
from heldout.models.predictions import Predictions, join_predictions, read_predictions
from heldout.models.sandbox import available
from heldout.models.score import ScoredRows, score

__all__ = [
    "Model",
    "Predictions",
    "ScoredRows",
    "available",
    "join_predictions",
    "load",
    "read_predictions",
    "score",
]
