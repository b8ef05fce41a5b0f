"""Scores that know what comes for free: AUCNPR and the modified F score; one for several tasks.

Areas from data of different prevalence do not have the same range, so their mean favours the
tasks where more comes for free. AUCNPR has the same range everywhere; average that.

Reference: Boyd, 2014, Definition 3.7 and section 3.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments import as_number, as_numbers, shown
from heldout.errors import ArgumentError
from heldout.precision_recall.estimators import RECOMMENDED, auc
from heldout.precision_recall.geometry import Floats, fraction, fractions, minimum_auc, recall_range
from heldout.precision_recall.levels import labelled_scores

_SAME = 0.01  # a difference of minimum areas that one would see in a table
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
    """Return AUCNPR, the share of the achievable area, 0 for the worst ranking and 1 for the best.

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
        raise ArgumentError("y_true must hold one label per score.")
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
    """Return F_beta; 0 where recall and precision are both 0.

    >>> f_score(recall=0.25, precision=1.0)
    0.4
    """
    r, p = fraction("recall", recall), fraction("precision", precision)
    b = _beta(beta)
    return 0.0 if p * r == 0.0 else (1.0 + b * b) * p * r / (b * b * p + r)


def normalised_f_score(
    *, recall: float, precision: float, prevalence: float, beta: float = 1.0
) -> float:
    """Return F_beta of recall and of the precision above chance, (p - pi) / (1 - pi).

    Here pi is the prevalence. It is 0 for every point that is no better than guessing, and so on
    the whole minimum curve. At prevalence 1 nothing is above chance and it is 0.

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
    """Return the precision at which F_beta equals `value`; NaN where no precision up to 1 does.

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


class PrevalenceWarning(UserWarning):
    """Areas were averaged over data of different prevalence."""


@dataclass(frozen=True)
class Aggregate:
    """One score for several folds or tasks; `normalised_auc` is the one to report."""

    normalised_auc: float
    mean_auc: float
    normalised_aucs: tuple[float, ...]
    prevalences: tuple[float, ...]


def aggregate(
    aucs: Sequence[float],
    *,
    prevalences: Sequence[float],
    weights: Sequence[float] | None = None,
) -> Aggregate:
    """Return the (weighted) mean AUCNPR of several areas; warn when their prevalences differ.

    AUCNPR removes the difference in range, not all of the influence of prevalence: carry the
    curves to one prevalence (`auc(..., prevalence=...)`) when the scores are at hand.

    >>> result = aggregate([0.6, 0.7], prevalences=[0.2, 0.2])
    >>> round(result.mean_auc, 3), round(result.normalised_auc, 3)
    (0.65, 0.608)
    """
    areas = as_numbers(aucs, name="aucs")
    shares = as_numbers(prevalences, name="prevalences")
    if areas.ndim != 1 or areas.shape != shares.shape or not areas.size:
        raise ArgumentError(
            f"prevalences must be as many as aucs, got {shares.size} for {areas.size}. "
            "Pass the prevalence of each fold or task."
        )
    share = np.ones(areas.size) if weights is None else as_numbers(weights, name="weights")
    if share.shape != areas.shape or not (share >= 0).all() or not 0 < share.sum() < np.inf:
        raise ArgumentError(
            "weights must be as many as aucs, finite, non-negative and not all 0. Leave them out "
            "for a plain mean."
        )
    pis = tuple(fraction("prevalence", p) for p in shares)
    if max(pis) - min(pis) > _SAME:
        warnings.warn(
            f"prevalences run from {min(pis):.3g} to {max(pis):.3g}: a mean of areas favours the "
            "tasks where more comes for free; report the mean AUCNPR.",
            PrevalenceWarning,
            stacklevel=2,
        )
    scores = tuple(
        normalised_auc(fraction("auc", a), prevalence=p) for a, p in zip(areas, pis, strict=True)
    )
    return Aggregate(
        normalised_auc=float(np.average(scores, weights=share)),
        mean_auc=float(np.average(areas, weights=share)),
        normalised_aucs=scores,
        prevalences=pis,
    )


def precision_at_prevalence(
    precision: ArrayLike, *, prevalence: float, new_prevalence: float
) -> Floats | float:
    """Return the precision of the same classifier (same ROC point) at another prevalence.

    The odds of the precision scale with the odds of the prevalence.

    >>> round(precision_at_prevalence(0.8, prevalence=0.5, new_prevalence=0.1), 6)
    0.307692
    """
    old, new = fraction("prevalence", prevalence), fraction("new_prevalence", new_prevalence)
    if old in (0.0, 1.0):
        raise ArgumentError(
            f"prevalence must lie strictly between 0 and 1, got {old:g}. With one class there "
            "is nothing to carry over."
        )
    p = fractions("precision", precision)
    true, false = p * new * (1.0 - old), (1.0 - p) * (1.0 - new) * old
    total = true + false
    carried = np.where(total > 0, true / np.where(total > 0, total, 1.0), p)
    return float(carried) if carried.ndim == 0 else carried
