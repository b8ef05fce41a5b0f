"""Share of the rows left alone that are negative."""

from heldout.metrics.registry import Metric, register

NEGATIVE_PREDICTIVE_VALUE = register(
    Metric(
        name="negative predictive value",
        #           tp fp fn tn
        numerator=(0, 0, 0, 1),
        denominator=(0, 0, 1, 1),
        meaning="Share of the rows left alone that are negative",
        scikit_learn="precision_score(pos_label=0)",
    )
)
