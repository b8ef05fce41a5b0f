"""Eight estimators of the area under the precision-recall curve.

| name | the curve between the empirical points |
|---|---|
| `average-precision` | a step at each positive, at its precision |
| `lower-trapezoid` | straight from the lowest precision at a recall to the highest at the next |
| `upper-trapezoid` | straight from highest to highest: too high (equation (4.4) is misprinted) |
| `interpolated-max`, `-mean`, `-median` | straight in ROC space, through the highest, mean or \
median precision at each recall |
| `interpolated-convex` | through the ROC convex hull: too high |
| `binormal` | two normal distributions of scores: wrong when they are not normal |

Conventions (those of the dissertation author's program): the curve starts at recall 0 and
precision 1; tied scores are one threshold; at recall 0 the lowest precision is 0 when a negative
comes first; the first piece of every interpolated curve is level. No positives: the area is 0. All
positives: 1. One positive is fine, except for `binormal`, which needs two of each class and gives
NaN. Weights count as repeated examples (a weight of 2 is the row twice). With `prevalence` the
negatives are weighted so that the prevalence is the given one: the area that the same ROC curve
has there.

Reference: Boyd, 2014, section 4.3; Davis and Goadrich, 2006.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import OneOf, as_number, as_numbers, shown
from heldout.errors import ArgumentError
from heldout.precision_recall.geometry import Floats, fraction, fractions, minimum_auc, recall_range
from heldout.precision_recall.levels import (
    Levels,
    Pieces,
    labelled_scores,
    levels_from_counts,
    levels_from_scores,
)

RECOMMENDED = "lower-trapezoid"


def auc(
    y_true: Iterable[Any],
    y_score: Iterable[float],
    *,
    estimator: str = RECOMMENDED,
    positive: object = 1,
    sample_weight: Iterable[float] | None = None,
    prevalence: float | None = None,
    recall: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return the area under the precision-recall curve, over a range of recall.

    >>> truth = [1, 0, 0, 1, 1]
    >>> score = [0.9, 0.8, 0.6, 0.6, 0.2]
    >>> round(auc(truth, score), 6)
    0.683333
    >>> round(auc(truth, score, estimator="average-precision"), 6)
    0.7
    >>> round(auc(truth, score, estimator="average-precision", prevalence=0.1), 6)
    0.389655
    """
    return estimates(
        y_true,
        y_score,
        estimators=(estimator,),
        positive=positive,
        sample_weight=sample_weight,
        prevalence=prevalence,
        recall=recall,
    )[estimator]


def estimates(
    y_true: Iterable[Any],
    y_score: Iterable[float],
    *,
    estimators: Iterable[str] | None = None,
    positive: object = 1,
    sample_weight: Iterable[float] | None = None,
    prevalence: float | None = None,
    recall: tuple[float, float] = (0.0, 1.0),
) -> dict[str, float]:
    """Return several estimates of the same data, for one sort (all eight by default)."""
    names = tuple(ESTIMATORS) if estimators is None else tuple(estimators)
    for name in names:
        known_estimator(name)
    span = recall_range(recall)
    truth, scores, weights = labelled_scores(y_true, y_score, positive, sample_weight)
    levels = None
    answers: dict[str, float] = {}
    for name in names:
        if name == "binormal":
            answers[name] = _binormal_area(truth, scores, weights, prevalence, span)
            continue
        if levels is None:
            levels = levels_from_scores(truth, scores, weights).at_prevalence(prevalence)
        answers[name] = pieces_of(levels, name).area(span)
    return answers


def auc_from_counts(
    *,
    true_positives: ArrayLike,
    false_positives: ArrayLike,
    estimator: str = RECOMMENDED,
    prevalence: float | None = None,
    recall: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return the area from running counts at falling thresholds, such as a released (noisy) curve.

    `binormal` needs scores and is refused here.

    >>> auc_from_counts(true_positives=[5, 10], false_positives=[0, 10])
    0.875
    """
    levels = levels_from_counts(true_positives, false_positives).at_prevalence(prevalence)
    return pieces_of(levels, estimator).area(recall_range(recall))


def pieces_of(levels: Levels, estimator: str) -> Pieces:
    """Return the curve that an estimator draws through the levels."""
    rule = ESTIMATORS[known_estimator(estimator)]
    if rule is None:
        raise ArgumentError(
            f"estimator must be one that joins points, got {estimator!r}. It needs the scores."
        )
    if levels.positives == 0 or levels.negatives == 0:
        height = np.array([1.0 if levels.positives else 0.0])
        return Pieces(np.array([0.0]), np.array([1.0]), height, height, curved=False)
    return rule(levels)


def known_estimator(name: str) -> str:
    """Return `name`, if there is such an estimator."""
    return OneOf(ESTIMATORS, f"{RECOMMENDED} is a good choice.")(name, "estimator")


def _average_precision(levels: Levels) -> Pieces:
    return _straight(levels, levels.highest, levels.highest)


def _lower_trapezoid(levels: Levels) -> Pieces:
    begin = 0.0 if levels.before > 0 else 1.0
    return _straight(levels, np.concatenate([[begin], levels.lowest[:-1]]), levels.highest)


def _upper_trapezoid(levels: Levels) -> Pieces:
    highest = levels.highest
    return _straight(levels, np.concatenate([[1.0], highest[:-1]]), highest)


def _straight(levels: Levels, start: Floats, stop: Floats) -> Pieces:
    right = levels.recall
    return Pieces(np.concatenate([[0.0], right[:-1]]), right, start, stop, curved=False)


def _through(recall: Floats, precision: Floats) -> Pieces:
    """Return pieces straight in ROC space through one point per recall; level before the first."""
    predicted = recall / precision
    return Pieces(
        np.concatenate([[0.0], recall[:-1]]),
        recall,
        np.concatenate([[0.0], predicted[:-1]]),
        predicted,
        curved=True,
    )


def _convex(levels: Levels) -> Pieces:
    """Return the lower convex hull of false positives over true positives, by pooling slopes."""
    from scipy.optimize import isotonic_regression

    tp, fp = levels.true_positives, levels.false_positives[levels.first]
    # Beside weights of 1e300, weights of 1 are gone, and so is what they would add to the hull.
    rises = np.diff(tp, prepend=0.0) > 0
    tp, fp, recall = tp[rises], fp[rises], levels.recall[rises]
    widths = np.diff(tp, prepend=0.0)
    slopes = np.diff(fp, prepend=0.0) / widths
    knots = isotonic_regression(slopes, weights=widths).blocks[1:] - 1
    return _through(recall[knots], (tp / (tp + fp))[knots])


def _binormal_area(
    truth: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    scores: Floats,
    weights: Floats | None,
    prevalence: float | None,
    span: tuple[float, float],
) -> float:
    weight = np.ones(truth.shape) if weights is None else weights
    positives, negatives = float(weight[truth].sum()), float(weight[~truth].sum())
    if positives == 0 or negatives == 0:
        return span[1] - span[0] if positives else 0.0
    natural = positives / (positives + negatives)
    pi = natural if prevalence is None else fraction("prevalence", prevalence)
    model = fit(truth, scores, weights)
    return float("nan") if model is None else reference_area(model, pi, span)


ESTIMATORS: MappingProxyType[str, Callable[[Levels], Pieces] | None] = MappingProxyType(
    {
        "average-precision": _average_precision,
        "lower-trapezoid": _lower_trapezoid,
        "upper-trapezoid": _upper_trapezoid,
        "interpolated-max": lambda levels: _through(levels.recall, levels.highest),
        "interpolated-mean": lambda levels: _through(levels.recall, levels.mean()),
        "interpolated-median": lambda levels: _through(levels.recall, levels.median()),
        "interpolated-convex": _convex,
        "binormal": None,
    }
)
"""Name to rule; `binormal` has a model instead of a rule."""
REMARKS: Mapping[str, str] = {
    "lower-trapezoid": "recommended",
    "average-precision": "recommended",
    "interpolated-median": "recommended",
    "upper-trapezoid": "too high",
    "interpolated-max": "a little high",
    "interpolated-convex": "too high",
    "binormal": "right only for normal scores",
}
"""Findings of Boyd (2014, chapter 4) about each estimator of the area."""


# The area under the precision-recall curve of two normal score distributions.
#
# Two quadratures of the same integral, equation (4.11) with the sign of its first term corrected:
#
# * `reference_area` is QUADPACK at the tolerance of R's `integrate`, which the dissertation's own
# program calls. It agrees with that program to the last digits, and is about 1e-7 from the
# integral itself. The estimator "binormal" uses it. * `exact_area` is the trapezoid rule over the
# normal quantile, exact to about 1e-12, for many models at once. The simulations and the true
# areas use it.
_R_TOLERANCE = float(np.finfo(np.float64).eps) ** 0.25


class NormalScores(NamedTuple):
    """Scores of positives in units of the negatives: N(mean, deviation) against N(0, 1)."""

    mean: float
    deviation: float


def fit(
    truth: NDArray[np.bool_], scores: Floats, weights: Floats | None = None
) -> NormalScores | None:
    """Return sample means and standard deviations (divisor n - 1); None where they are undefined.

    Weights count as repeated examples, so the divisor is the total weight minus one.
    """
    moments = []
    for side in (truth, ~truth):
        values = scores[side]
        count = np.ones_like(values) if weights is None else weights[side]
        total = float(count.sum())
        if total <= 1.0:
            return None
        mean = float(np.dot(count, values) / total)
        moments.append((mean, float(np.sqrt(np.dot(count, (values - mean) ** 2) / (total - 1.0)))))
    (mean_y, deviation_y), (mean_x, deviation_x) = moments
    if deviation_x == 0.0:  # the negatives are one point
        if deviation_y == 0.0:
            return NormalScores(float(np.sign(mean_y - mean_x)) * np.inf, 0.0)
        return NormalScores((mean_y - mean_x) / deviation_y, np.inf)
    return NormalScores((mean_y - mean_x) / deviation_x, deviation_y / deviation_x)


def precision(model: NormalScores, prevalence: float, recall: ArrayLike) -> Floats:
    """Return the precision at a recall, under the model."""
    from scipy.special import ndtr, ndtri

    quantile = ndtri(np.asarray(recall, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        if np.isinf(model.deviation):
            false = (quantile > model.mean).astype(np.float64)
        elif np.isnan(model.mean):
            false = np.full_like(quantile, 0.5)
        else:
            spread = model.deviation * quantile if model.deviation else 0.0 * np.sign(quantile)
            false = ndtr(-model.mean + np.nan_to_num(spread, nan=0.0))
    true = prevalence * np.asarray(recall, dtype=np.float64)
    predicted = true + (1.0 - prevalence) * false
    return np.where(predicted > 0, true / np.where(predicted > 0, predicted, 1.0), 1.0)


def reference_area(
    model: NormalScores, prevalence: float, recall: tuple[float, float] = (0.0, 1.0)
) -> float:
    """Return the area as the dissertation's program integrates it."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    low, high = recall
    if np.isinf(model.deviation):  # a jump that a quadrature would smear: add its two sides
        jump = min(max(float(ndtr(model.mean)), low), high)
        beyond = minimum_auc(prevalence=prevalence, recall=(jump, high)) if jump < high else 0.0
        return (jump - low) + beyond
    value, _ = quad(
        lambda t: float(precision(model, prevalence, t)),
        low,
        high,
        epsabs=_R_TOLERANCE,
        epsrel=_R_TOLERANCE,
        limit=100,
    )
    return float(value)


# --- scores that know what comes for free ---------------------------------------------------------
#
# Areas from data of different prevalence do not have the same range, so their mean favours the
# tasks where more comes for free. AUCNPR has the same range everywhere; average that.
#
# Reference: Boyd, 2014, Definition 3.7 and section 3.4.


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
