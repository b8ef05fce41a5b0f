"""The F score: a weighted harmonic mean of precision and recall."""

from heldout.metrics.registry import Metric, register


def f_score(beta: float) -> Metric:
    """The F score that weighs recall `beta` times as much as precision."""
    square = beta * beta
    return Metric(
        name=f"F{beta:g} score",
        #           tp          fp   fn      tn
        numerator=(1 + square, 0.0, 0.0, 0.0),
        denominator=(1 + square, 1.0, square, 0.0),
        meaning="Harmonic mean of precision and recall",
        scikit_learn="fbeta_score",
    )


F1_SCORE = register(f_score(1))
