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

A resample of sorted scores is a count for each distinct score, so no replicate needs a sort.

`effective` is this package's own. The binomial and logit intervals treat an area of theta as the
mean of n independent yes-or-no answers, n being the number of positives: variance theta (1 - theta)
/ n. Their coverage is above 95% because the real variance is smaller; the dissertation leaves open
by how much. Here:

1. V is the delete-one jackknife variance of average precision, positives and negatives each in
   closed form (O(N) after the sort), the prevalence held fixed. All consistent estimators of the
   area have the same limiting variance, so one V serves them.
2. The effective sample size solves 1/n_eff = (1 - w) V / (theta (1 - theta)) + w / n. V is itself
   noisy and too small when it matters, so a part w = 1/(1 + n^(1/4) / 2) of the cautious binomial
   answer stays; it fades as n grows.
3. The quantile is Student's, with the degrees of freedom that the fourth moments of the jackknife
   values give V (Satterthwaite), at least 4: few influential examples mean few degrees of freedom.
4. Wilson's score interval at n_eff. It stays in [0, 1] and also holds for an area of 0 or 1.

w and the floor of 4 were chosen by simulation; docs/ranking.md has the measurements.

Reference: Boyd, 2014, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import OneOf, Share, Whole, as_number, as_whole, shown
from heldout.errors import ArgumentError
from heldout.precision_recall import estimators
from heldout.precision_recall.estimators import RECOMMENDED, auc, known_estimator, pieces_of
from heldout.precision_recall.geometry import Floats, fraction
from heldout.precision_recall.levels import (
    Levels,
    labelled_scores,
    levels_from_distinct,
    levels_from_scores,
)

if TYPE_CHECKING:
    from numpy.random import Generator

METHODS = ("effective", "logit", "binomial", "bootstrap", "cross-validation")
"""The intervals that `interval` knows."""
_FEWEST_DEGREES = 4.0
_MOST_REPLICATES = 10_000_000
Counted = tuple[Floats, Floats]
"""Distinct scores of one class, and how often each is there."""


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
    """Return a confidence interval for the area, from an area and a class size or from the data.

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
    if chosen in ("bootstrap", "cross-validation"):
        how = {"estimator": estimator, "prevalence": prevalence}
        random = generator(random_state)
        if chosen == "bootstrap":
            areas = bootstrap_areas(truth, scores, replicates=replicates, random=random, **how)
            return _quantiles(areas, confidence)
        areas = fold_areas(truth, scores, folds=folds, random=random, **how)
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
    """Return Wilson's score interval at the effective sample size of the data."""
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
    """Return a level strictly between 0 and 1."""
    return Share("0.95 is usual.")(confidence, "confidence")


class EffectiveSize(NamedTuple):
    """The number of independent yes-or-no answers that the positives are worth."""

    positives: float
    degrees_of_freedom: float


class _Spread(NamedTuple):
    variance: float
    variance_of_variance: float


def effective_size(levels: Levels, value: float, prevalence: float | None = None) -> EffectiveSize:
    """Return the effective sample size of an estimate `value` of the area.

    With fewer than two examples of a class there is nothing to delete: n_eff is then n.
    """
    n, m = levels.positives, levels.negatives
    weight = 1.0 / (1.0 + 0.5 * n**0.25)
    uncertain = value * (1.0 - value)
    if n < 2 or m < 2 or uncertain <= 0.0:
        return EffectiveSize(max(n, 1.0), float("inf"))
    spread = jackknife(levels, levels.prevalence if prevalence is None else prevalence)
    inverse = (1.0 - weight) * spread.variance / uncertain + weight / n
    degrees = float("inf")
    if spread.variance_of_variance > 0.0:
        degrees = 2.0 * spread.variance**2 / spread.variance_of_variance
    return EffectiveSize(1.0 / inverse, max(degrees, _FEWEST_DEGREES))


def jackknife(levels: Levels, prevalence: float) -> _Spread:
    """Return the delete-one jackknife variance of average precision, and its own variance."""
    n, m = levels.positives, levels.negatives
    tp = levels.true_positives
    new = np.diff(tp, prepend=0.0)
    fp = levels.false_positives[levels.first]
    odds = n / m * (1.0 - prevalence) / prevalence

    # Delete one of the positives at threshold h: those above keep their true positives, those
    # below lose one, and recall is counted in n - 1.
    cost = odds * (n - 1.0) / n
    whole = new * _precision(tp, cost * fp)
    lost = _precision(tp - 1.0, cost * fp)
    above = np.cumsum(whole) - whole
    below = np.cumsum((new * lost)[::-1])[::-1] - new * lost
    up = _spread((above + (new - 1.0) * lost + below) / (n - 1.0), new)

    # Delete one of the negatives that threshold h is the first to take in (the last entry: none).
    cost = odds * m / (m - 1.0)
    whole = new * _precision(tp, cost * fp)
    lost = new * _precision(tp, cost * np.maximum(fp - 1.0, 0.0))
    above = np.concatenate([[0.0], np.cumsum(whole)])
    below = np.concatenate([np.cumsum(lost[::-1])[::-1], [0.0]])
    counts = np.diff(np.concatenate([[0.0], fp, [m]]))
    down = _spread((above + below) / n, counts)
    return _Spread(up.variance + down.variance, up.variance_of_variance + down.variance_of_variance)


def score_interval(value: float, size: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion `value` seen in `size` trials."""
    ratio = quantile * quantile / size
    centre = (value + ratio / 2.0) / (1.0 + ratio)
    half = np.sqrt(value * (1.0 - value) * ratio + ratio * ratio / 4.0) / (1.0 + ratio)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _precision(true: Floats, false: Floats) -> Floats:
    predicted = true + false
    return np.where(true > 0, true / np.where(predicted > 0, predicted, 1.0), 0.0)


def _spread(values: Floats, counts: Floats) -> _Spread:
    """Return the jackknife variance of leave-one-out `values`, each seen `counts` times."""
    n = float(counts.sum())
    centred = values - np.dot(counts, values) / n
    square = centred * centred
    second = float(np.dot(counts, square)) / n
    fourth = float(np.dot(counts, square * square)) / n
    # Var(s^2) = (m4 - m2^2 (n-3)/(n-1)) / n; leave-one-out values are s/(n-1) of the originals.
    noise = max(fourth - second**2 * (n - 3.0) / (n - 1.0), 0.0) / n
    return _Spread((n - 1.0) * second, (n - 1.0) ** 2 * noise)


def generator(random_state: int | Generator | None) -> Generator:
    """Return a generator from a seed, a generator, or the operating system (None)."""
    from numpy.random import Generator, default_rng

    if isinstance(random_state, Generator):
        return random_state
    if random_state is None:
        return default_rng()
    return default_rng(Whole(0, advice="Or pass a generator.")(random_state, "random_state"))


def bootstrap_areas(
    truth: NDArray[np.bool_], scores: Floats, *, replicates: int, random: Generator, **how: Any
) -> Floats:
    """Return areas of stratified bootstrap replicates: each class is resampled by itself."""
    many = Whole(2, _MOST_REPLICATES, "1000 is usual.")(replicates, "replicates")
    classes = [_counted(scores[side]) for side in (truth, ~truth)]
    if any(not values.size for values, _ in classes):
        raise ArgumentError("A bootstrap interval needs rows of both classes in y_true.")
    return np.array(
        [_area(*(_resample(scores, random) for scores in classes), **how) for _ in range(many)]
    )


def fold_areas(
    truth: NDArray[np.bool_], scores: Floats, *, folds: int, random: Generator, **how: Any
) -> Floats:
    """Return areas of `folds` random parts of the data, each with its share of both classes."""
    smallest = int(min(truth.sum(), (~truth).sum()))
    count = as_whole(folds)
    if count is None or not 2 <= count <= smallest:
        raise ArgumentError(
            f"folds must be at least 2 and leave every fold one example of each class, got "
            f"{shown(folds)} for {smallest} of the rarer class. Use fewer folds."
        )
    parts = [np.array_split(random.permutation(scores[side]), count) for side in (truth, ~truth)]
    return np.array(
        [_area(_counted(up), _counted(down), **how) for up, down in zip(*parts, strict=True)]
    )


def _counted(scores: Floats) -> Counted:
    values, counts = np.unique(scores, return_counts=True)
    return values, counts.astype(np.float64)


def _resample(one: Counted, random: Generator) -> Counted:
    values, counts = one
    drawn = random.multinomial(int(counts.sum()), counts / counts.sum())
    return values[drawn > 0], drawn[drawn > 0].astype(np.float64)


def _area(up: Counted, down: Counted, *, estimator: str, prevalence: float | None) -> float:
    """Return the area of positives and negatives that are counted by score."""
    if estimator != "binormal":
        levels = levels_from_distinct(*up, *down).at_prevalence(prevalence)
        return pieces_of(levels, estimator).area()
    label = np.repeat([True, False], [up[0].size, down[0].size])
    weights = np.concatenate([up[1], down[1]])
    model = estimators.fit(label, np.concatenate([up[0], down[0]]), weights)
    natural = float(up[1].sum() / weights.sum())
    if model is None:
        return float("nan")
    return estimators.reference_area(model, natural if prevalence is None else prevalence)
