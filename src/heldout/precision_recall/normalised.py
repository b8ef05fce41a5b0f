"""Scores that know what comes for free: AUCNPR and the modified F score.

Reference: Boyd, 2014, Definition 3.7 and section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments import as_number, as_numbers, shown
from heldout.errors import ArgumentError
from heldout.precision_recall.arguments import Floats, fraction, labelled_scores, recall_range
from heldout.precision_recall.estimators import RECOMMENDED, auc
from heldout.precision_recall.geometry import minimum_auc

_STEEPEST = 1e150  # its square is still a double


def normalised_auc(
    y_true: Iterable[Any] | float | None = None,
    y_score: Iterable[float] | None = None,
    *,
    value: float | None = None,
    prevalence: float | None = None,
    estimator: str = RECOMMENDED,
    positive: object = 1,
    sample_weight: Iterable[float] | None = None,
    recall: tuple[float, float] = (0.0, 1.0),
) -> float:
    """AUCNPR: the share of the achievable area, 0 for the worst ranking and 1 for the best.

    From labels and scores, or from an area and a prevalence. Undefined without both classes; by
    convention it is 0 at prevalence 0 and 1 at prevalence 1. With data, `prevalence` carries the
    ROC curve over to another prevalence first.

    >>> round(normalised_auc(0.509, prevalence=0.5), 3)
    0.292
    >>> normalised_auc([1, 1, 0], [3, 2, 1])
    1.0
    """
    span = recall_range(recall)
    if y_score is None:
        area = value if y_true is None else y_true
        if not isinstance(area, (int, float, np.floating, np.integer)) or prevalence is None:
            raise ArgumentError(
                "value and prevalence must both be given when there are no data. "
                "Pass normalised_auc(area, prevalence=...) or labels and scores."
            )
        return _normalise(float(area), fraction("prevalence", prevalence), span)
    if y_true is None or isinstance(y_true, (int, float)):
        raise ArgumentError("y_true must hold one label a score. Pass the labels.")
    truth, scores, weights = labelled_scores(y_true, y_score, positive, sample_weight)
    if prevalence is None:
        weight = np.ones(truth.shape) if weights is None else weights
        pi = float(weight[truth].sum() / weight.sum())
    else:
        pi = fraction("prevalence", prevalence)
    area = auc(
        truth,
        scores,
        estimator=estimator,
        sample_weight=weights,
        prevalence=prevalence,
        recall=span,
    )
    return _normalise(area, pi, span)


def _normalise(area: float, prevalence: float, span: tuple[float, float]) -> float:
    if prevalence in (0.0, 1.0):
        return prevalence
    lowest, highest = minimum_auc(prevalence=prevalence, recall=span), span[1] - span[0]
    return (area - lowest) / (highest - lowest)


def f_score(*, recall: float, precision: float, beta: float = 1.0) -> float:
    """F_beta; 0 where recall and precision are both 0.

    >>> f_score(recall=0.25, precision=1.0)
    0.4
    """
    r, p = fraction("recall", recall), fraction("precision", precision)
    b = _beta(beta)
    return 0.0 if p * r == 0.0 else (1.0 + b * b) * p * r / (b * b * p + r)


def normalised_f_score(
    *, recall: float, precision: float, prevalence: float, beta: float = 1.0
) -> float:
    """F_beta of recall and of the precision above chance, (p - prevalence)/(1 - prevalence).

    It is 0 for every point that is no better than guessing, and so on the whole minimum curve.
    At prevalence 1 nothing is above chance and it is 0.

    >>> round(normalised_f_score(recall=0.5, precision=0.6, prevalence=0.2), 6)
    0.5
    >>> normalised_f_score(recall=1.0, precision=0.2, prevalence=0.2)
    0.0
    """
    pi, p = fraction("prevalence", prevalence), fraction("precision", precision)
    if p <= pi:
        _ = fraction("recall", recall), _beta(beta)
        return 0.0
    return f_score(recall=recall, precision=(p - pi) / (1.0 - pi), beta=beta)


def f_score_contour(recall: ArrayLike, *, value: float, beta: float = 1.0) -> Floats:
    """The precision at which F_beta equals `value`; NaN where no precision up to 1 does.

    >>> f_score_contour([0.1, 0.25, 1.0], value=0.4).tolist()
    [nan, 1.0, 0.25]
    """
    r = as_numbers(recall, name="recall")
    target, b = fraction("value", value), _beta(beta)
    below = (1.0 + b * b) * r - b * b * target
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(below > 0, target * r / below, np.nan)
    return np.where(p <= 1.0 + 1e-12, np.minimum(p, 1.0), np.nan)


def _beta(beta: float) -> float:
    number = as_number(beta)
    if not 0 < number <= _STEEPEST:
        raise ArgumentError(
            f"beta must be a positive number to {_STEEPEST:g}, got {shown(beta)}. 1 is usual."
        )
    return number
