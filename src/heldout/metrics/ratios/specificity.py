"""Share of negatives that the model leaves alone."""

from heldout.metrics.registry import Metric, register

SPECIFICITY = register(
    Metric(
        name="specificity",
        #           tp fp fn tn
        numerator=(0, 0, 0, 1),
        denominator=(0, 1, 0, 1),
        meaning="Share of negatives that the model leaves alone",
        scikit_learn="recall_score(pos_label=0)",
    )
)
