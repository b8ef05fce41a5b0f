"""Share of rows that are positive."""

from heldout.metrics.registry import Metric, register

PREVALENCE = register(
    Metric(
        name="prevalence",
        #           tp fp fn tn
        numerator=(1, 0, 1, 0),
        denominator=(1, 1, 1, 1),
        meaning="Share of rows that are positive",
        scikit_learn="mean of the labels",
    )
)
