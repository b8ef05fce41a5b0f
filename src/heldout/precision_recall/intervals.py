"""Confidence intervals for the area under the precision-recall curve.

| method | needs | what simulation says (prevalence 0.1, 20 to 1000 positives) |
|---|---|---|
| `effective` | labels and scores | covers at least 95%, some 8% narrower than `logit` |
| `logit` | area, positives | covers more than 95%, stays in (0, 1) |
| `binomial` | area, positives | covers about 95% or more, may leave [0, 1] |
| `bootstrap` | labels and scores | covers less than 95% when positives are few |
| `cross-validation` | labels and scores | aims beside the true area when positives are few |

The target is the area at the prevalence of the data (or at the `prevalence` given): the class
sizes are taken as fixed, not as random. Public data only: the two resampling methods draw
pseudo-random numbers from `random_state`, and nothing private passes here.

Reference: Boyd, 2014, section 4.3; `effective` is this package's own, see `effective.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import as_number
from heldout.arguments.rules import OneOf, Share
from heldout.errors import ArgumentError
from heldout.precision_recall import resampling
from heldout.precision_recall.arguments import Floats, fraction, labelled_scores
from heldout.precision_recall.effective import effective_size, score_interval
from heldout.precision_recall.estimators import RECOMMENDED, auc, known_estimator
from heldout.precision_recall.levels import levels_from_scores

if TYPE_CHECKING:
    from numpy.random import Generator

METHODS = ("effective", "logit", "binomial", "bootstrap", "cross-validation")
"""The intervals that `interval` knows."""


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def interval(
    value: float | None = None,
    *,
    positives: float | None = None,
    method: str | None = None,
    confidence: float = 0.95,
    y_true: Iterable[Any] | None = None,
    y_score: Iterable[float] | None = None,
    positive: object = 1,
    estimator: str = RECOMMENDED,
    prevalence: float | None = None,
    replicates: int = 1000,
    folds: int = 10,
    random_state: int | Generator | None = None,
) -> Interval:
    """A confidence interval for the area, from an area and a class size or from the data.

    Without `method`: `effective` when the data are given, else `logit`. With data, `value` may be
    left out and is then the estimator's. An area of 0 or 1 tells the logit interval nothing: it
    is then [0, 1], its limit.

    >>> low, high = interval(0.5, positives=100, method="logit")
    >>> round(low, 4), round(high, 4)
    (0.4032, 0.5968)
    >>> interval(y_true=[1, 1, 0, 0, 0], y_score=[0.9, 0.8, 0.3, 0.2, 0.1]).high
    1.0
    """
    without = "logit" if y_true is None else "effective"
    chosen, confidence = _check(without if method is None else method, confidence, estimator)
    if prevalence is not None:
        prevalence = fraction("prevalence", prevalence)
    if (y_true is None) != (y_score is None):
        raise ArgumentError("Pass both y_true and y_score, or neither.")
    if y_true is None or y_score is None:
        return _from_formula(chosen, value, positives, confidence)
    truth, scores, _ = labelled_scores(y_true, y_score, positive)
    if chosen == "bootstrap":
        areas = resampling.bootstrap_areas(
            truth,
            scores,
            estimator=estimator,
            replicates=replicates,
            prevalence=prevalence,
            random_state=random_state,
        )
        return _quantiles(areas, confidence)
    if chosen == "cross-validation":
        areas = resampling.fold_areas(
            truth,
            scores,
            estimator=estimator,
            folds=folds,
            prevalence=prevalence,
            random_state=random_state,
        )
        return _mean_of_folds(areas, confidence)
    if value is None:
        value = auc(truth, scores, estimator=estimator, prevalence=prevalence)
    if chosen == "effective":
        return effective_interval(truth, scores, fraction("value", value), confidence, prevalence)
    return _from_formula(chosen, value, float(truth.sum()), confidence)


def effective_interval(
    truth: NDArray[np.bool_],
    scores: Floats,
    value: float,
    confidence: float,
    prevalence: float | None = None,
) -> Interval:
    """Wilson's score interval at the effective sample size of the data."""
    from scipy.stats import t

    size = effective_size(levels_from_scores(truth, scores), value, prevalence)
    quantile = float(t.ppf(0.5 + confidence / 2.0, size.degrees_of_freedom))
    return Interval(*score_interval(value, size.positives, quantile))


def _from_formula(
    method: str, value: float | None, positives: float | None, confidence: float
) -> Interval:
    from scipy.special import expit, logit, ndtri

    if method not in ("binomial", "logit"):
        raise ArgumentError(
            f"method must be binomial or logit without data, got {method!r}. "
            "Pass y_true and y_score for the other methods."
        )
    size = 0.0 if positives is None else as_number(positives)
    if value is None or not 0 < size < np.inf:
        raise ArgumentError(
            "value and positives must be given, positives above 0, when there are no data. "
            "Pass interval(value, positives=...) or y_true and y_score."
        )
    area = fraction("value", value)
    quantile = float(ndtri(0.5 + confidence / 2.0))
    if method == "binomial":
        half = quantile * float(np.sqrt(area * (1.0 - area) / size))
        return Interval(area - half, area + half)
    if area in (0.0, 1.0):
        return Interval(0.0, 1.0)
    centre, half = float(logit(area)), quantile / float(np.sqrt(size * area * (1.0 - area)))
    return Interval(float(expit(centre - half)), float(expit(centre + half)))


def _quantiles(areas: Floats, confidence: float) -> Interval:
    low, high = np.quantile(areas, [0.5 - confidence / 2.0, 0.5 + confidence / 2.0])
    return Interval(float(low), float(high))


def _mean_of_folds(areas: Floats, confidence: float) -> Interval:
    from scipy.stats import t

    half = float(t.ppf(0.5 + confidence / 2.0, areas.size - 1)) * float(
        areas.std(ddof=1) / np.sqrt(areas.size)
    )
    centre = float(areas.mean())
    return Interval(centre - half, centre + half)


def _check(method: str, confidence: float, estimator: str) -> tuple[str, float]:
    known_estimator(estimator)
    advice = f"effective is the narrowest that holds, for {estimator} too."
    return OneOf(METHODS, advice)(method, "method"), checked_confidence(confidence)


def checked_confidence(confidence: float) -> float:
    """A level strictly between 0 and 1."""
    return Share("0.95 is usual.")(confidence, "confidence")
