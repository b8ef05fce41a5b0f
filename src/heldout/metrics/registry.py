"""Metrics that are ratios of confusion counts: one table, from which all else finds them."""

from dataclasses import dataclass

Cells = tuple[float, float, float, float]
"""Weights on (true positives, false positives, false negatives, true negatives)."""


@dataclass(frozen=True)
class Metric:
    """numerator @ cells / denominator @ cells, in [0, 1]."""

    name: str
    numerator: Cells
    denominator: Cells
    meaning: str
    scikit_learn: str


def f_score(beta: float) -> Metric:
    """The F score that weighs recall `beta` times as much as precision."""
    weights = (1 + beta * beta, 1.0, beta * beta, 0.0)
    meaning = "Harmonic mean of precision and recall"
    return Metric(f"F{beta:g} score", (weights[0], 0, 0, 0), weights, meaning, "fbeta_score")


# fmt: off
METRICS = (
    #       name           tp fp fn tn  of  tp fp fn tn  meaning, and scikit-learn's function
    Metric("accuracy",    (1, 0, 0, 1),    (1, 1, 1, 1),
           "Share of rows that the model gets right", "accuracy_score"),
    f_score(1),
    Metric("negative predictive value", (0, 0, 0, 1), (0, 0, 1, 1),
           "Share of the rows left alone that are negative", "precision_score(pos_label=0)"),
    Metric("precision",   (1, 0, 0, 0),    (1, 1, 0, 0),
           "Share of the model's alarms that are right", "precision_score"),
    Metric("prevalence",  (1, 0, 1, 0),    (1, 1, 1, 1),
           "Share of rows that are positive", "mean of the labels"),
    Metric("recall",      (1, 0, 0, 0),    (1, 0, 1, 0),
           "Share of positives that the model finds", "recall_score"),
    Metric("specificity", (0, 0, 0, 1),    (0, 1, 0, 1),
           "Share of negatives that the model leaves alone", "recall_score(pos_label=0)"),
)
# fmt: on


def registered() -> dict[str, Metric]:
    """Every metric by its name, in the table's order."""
    return {each.name: each for each in METRICS}
