"""Share of the model's alarms that are right."""

from heldout.metrics.registry import Metric, register

PRECISION = register(
    Metric(
        name="precision",
        #           tp fp fn tn
        numerator=(1, 0, 0, 0),
        denominator=(1, 1, 0, 0),
        meaning="Share of the model's alarms that are right",
        scikit_learn="precision_score",
    )
)
