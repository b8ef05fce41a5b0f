"""Share of positives that the model finds."""

from heldout.metrics.registry import Metric, register

RECALL = register(
    Metric(
        name="recall",
        #           tp fp fn tn
        numerator=(1, 0, 0, 0),
        denominator=(1, 0, 1, 0),
        meaning="Share of positives that the model finds",
        scikit_learn="recall_score",
    )
)
