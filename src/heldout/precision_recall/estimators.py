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

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import OneOf
from heldout.errors import ArgumentError
from heldout.precision_recall.geometry import Floats, fraction, minimum_auc, recall_range
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
