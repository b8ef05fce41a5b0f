"""Share of rows that the model gets right."""

from heldout.metrics.registry import Metric, register

ACCURACY = register(
    Metric(
        name="accuracy",
        #           tp fp fn tn
        numerator=(1, 0, 0, 1),
        denominator=(1, 1, 1, 1),
        meaning="Share of rows that the model gets right",
        scikit_learn="accuracy_score",
    )
)
