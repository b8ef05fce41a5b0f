"""Attacks on un-noised metrics: the label of a missing row from one published number.

The attacker knows every row but one, and the metric of all of them. She puts the missing row at
every rank, as a positive and as a negative, and guesses the class that gives the answer closest to
the published one; if both come equally close, the class that does so at more ranks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments import Number, OneOf, Whole, as_numbers
from heldout.audit.events import Floats
from heldout.data import Dataset
from heldout.errors import ArgumentError

_SAME = 1e-10  # doubles of one number that was computed in two ways


def label_from_auc(
    positives: ArrayLike,
    negatives: ArrayLike,
    published: float,
    *,
    decimals: int | None = None,
) -> float:
    """The guess, 1 or 0, from the area under the ROC curve; one half if nothing speaks for either.

    >>> label_from_auc([0.9, 0.6], [0.5], 2 / 3)   # a third positive below the negative
    1.0
    """
    above, below = _checked(positives, negatives)
    value, digits = Number()(published, "published"), checked_decimals(decimals)
    n, m = above.size, below.size
    # A rank is a known score or a gap between two; a tie counts one half.
    places = _places(np.unique(np.concatenate([above, below])))
    won = float(_below(below, above).sum())
    if_positive = (won + _below(below, places)) / max((n + 1) * m, 1)
    if_negative = (won + n - _below(above, places)) / max(n * (m + 1), 1)
    return _guess(if_positive, if_negative, value, digits)


def label_from_average_precision(
    positives: ArrayLike,
    negatives: ArrayLike,
    published: float,
    *,
    decimals: int | None = None,
) -> float:
    """The guess from average precision.

    >>> label_from_average_precision([0.9, 0.6], [0.5, 0.2], (1 + 1 + 3 / 4) / 3)
    1.0
    """
    above, below = _checked(positives, negatives)
    value, digits = Number()(published, "published"), checked_decimals(decimals)
    n, m = above.size, below.size
    index = np.arange(1.0, n + 1.0)
    rank = index + m - np.searchsorted(below, above[::-1])
    place = np.arange(1.0, n + m + 2.0)  # rank of the missing row
    over = np.searchsorted(rank, place)  # positives that stay above it
    stay = _prefix(index / rank)
    pushed = _suffix((index + 1) / (rank + 1))
    if_positive = (stay[over] + (over + 1) / place + pushed[over]) / (n + 1)
    if_negative = (stay[over] + _suffix(index / (rank + 1))[over]) / max(n, 1)
    return _guess(if_positive, if_negative, value, digits)


def label_from_roc(
    positives: ArrayLike,
    negatives: ArrayLike,
    published: ArrayLike,
    *,
    decimals: int | None = None,
) -> float:
    """The guess from the points of an ROC curve, an array of (false, true positive rate).

    No rank is needed: every rate is a multiple of 1/m and 1/n, and one class has one row more.

    >>> label_from_roc([0.9, 0.6], [0.5, 0.2], [(0, 1 / 3), (0, 2 / 3), (1, 1)])
    1.0
    """
    n, m = (scores.size for scores in _checked(positives, negatives))
    decimals, points = checked_decimals(decimals), as_numbers(published, name="published")
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ArgumentError("published must be points of a curve. Pass pairs of two rates.")
    half = _SAME if decimals is None else 0.5 * 10.0**-decimals + _SAME

    def misfit(rates: Floats, count: int) -> float:
        off = np.abs(rates * count - np.rint(rates * count)) / max(count, 1)
        return float(np.maximum(off - half, 0).sum())

    if_positive = misfit(points[:, 0], m) + misfit(points[:, 1], n + 1)
    if_negative = misfit(points[:, 0], m + 1) + misfit(points[:, 1], n)
    return 0.5 if if_positive == if_negative else float(if_positive < if_negative)


def metric_value(metric: str, labels: ArrayLike, scores: ArrayLike) -> Floats | float:
    """Return what would be published: the exact metric of all rows; for "roc" its points."""
    of, ranks = np.asarray(labels), np.asarray(scores, dtype=float)
    positives, negatives = np.sort(ranks[of == 1]), np.sort(ranks[of == 0])
    n, m = max(positives.size, 1), max(negatives.size, 1)
    if metric == "roc":
        thresholds = np.unique(ranks)[::-1]
        tp = positives.size - np.searchsorted(positives, thresholds)
        fp = negatives.size - np.searchsorted(negatives, thresholds)
        return np.stack([fp / m, tp / n], axis=1)
    if metric == "auc":
        return float(_below(negatives, positives).sum()) / (n * m)
    index = np.arange(1.0, positives.size + 1.0)
    above = negatives.size - np.searchsorted(negatives, positives[::-1])
    return float((index / (index + above)).sum()) / n


ATTACKS: dict[str, Callable[..., float]] = {
    "auc": label_from_auc,
    "average-precision": label_from_average_precision,
    "roc": label_from_roc,
}


def checked_scores(scores: ArrayLike, *, name: str) -> Floats:
    """One row of finite numbers, or an error that quotes none of them."""
    numbers: Floats = as_numbers(scores, name=name)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ArgumentError(f"{name} must be a list of finite numbers.")
    return numbers


def checked_decimals(decimals: Any) -> int | None:
    """Return how many decimals are published; None for all of them."""
    if decimals is None:
        return None
    return Whole(0, 15, "Leave it out for all.")(decimals, "decimals")


def _checked(positives: ArrayLike, negatives: ArrayLike) -> tuple[Floats, Floats]:
    return (
        np.sort(checked_scores(positives, name="positives")),
        np.sort(checked_scores(negatives, name="negatives")),
    )


def _guess(
    if_positive: Floats, if_negative: Floats, published: float, decimals: int | None
) -> float:
    if decimals is not None:
        published = round(published, decimals)
        if_positive, if_negative = (np.round(side, decimals) for side in (if_positive, if_negative))
    off = [np.abs(side - published) for side in (if_positive, if_negative)]
    nearest = min(side.min() for side in off)
    positive, negative = (int((side <= nearest + _SAME).sum()) for side in off)
    return 0.5 if positive == negative else float(positive > negative)


def _below(ordered: Floats, scores: ArrayLike) -> Floats:
    """Return how many lie below each score, those at it counted half."""
    left, right = (np.searchsorted(ordered, scores, side=side) for side in ("left", "right"))
    return (left + right) / 2


def _places(known: Floats) -> Floats:
    """Every known score, one in each gap between them, and one beyond either end."""
    if not known.size:
        return np.zeros(1)
    middle = (known[1:] + known[:-1]) / 2
    return np.concatenate([[known[0] - 1], known, middle, [known[-1] + 1]])


def _prefix(terms: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(terms)])


def _suffix(terms: Floats) -> Floats:
    return np.concatenate([np.cumsum(terms[::-1])[::-1], [0.0]])


@dataclass(frozen=True)
class Exposure:
    """The share of rows whose label the attack recovers. For the custodian's eyes only."""

    metric: str
    decimals: int | None
    rows: int
    attacked: int
    recovered: float
    of_positives: float
    of_negatives: float

    @property
    def balanced(self) -> float:
        """The success against a row that is positive or negative with equal chance."""
        return (self.of_positives + self.of_negatives) / 2

    def __str__(self) -> str:
        digits = "in full" if self.decimals is None else f"to {self.decimals} decimals"
        return (
            f"With this {self.metric} {digits}, somebody who knows all other rows recovers the "
            f"label of {self.recovered:.0%} of {self.attacked:,} rows "
            f"({self.of_positives:.0%} of the positive, {self.of_negatives:.0%} of the negative)."
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "balanced": self.balanced}


def exposure(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    metric: str = "auc",
    decimals: int | None = None,
    most: int = 1000,
) -> Exposure:
    """Leave out each row (at most `most` of them, spread evenly) and try to get its label back.

    >>> labels = [1, 0] * 20
    >>> scores = [0.1 + 0.02 * i for i in range(40)]
    >>> exposure(labels, scores).recovered > 0.9
    True
    """
    OneOf(ATTACKS)(metric, "metric")
    decimals, attacked = checked_decimals(decimals), Whole()(most, "most")
    labels = checked_scores(labels, name="labels")
    scores = checked_scores(scores, name="scores")
    if labels.shape != scores.shape or labels.size < 2:
        raise ArgumentError("labels and scores must be two lists of the same length, at least 2.")
    if not np.isin(labels, (0, 1)).all():
        raise ArgumentError("labels must be 0 or 1, one per row.")
    labels = labels.astype(int)
    published = metric_value(metric, labels, scores)
    if decimals is not None:
        published = np.round(published, decimals)
    rows = labels.size
    targets = np.unique(np.linspace(0, rows - 1, min(attacked, rows)).round().astype(int))
    attack = ATTACKS[metric]
    success = np.empty(targets.size)
    for place, target in enumerate(targets):
        keep = np.arange(rows) != target
        known, others = labels[keep], scores[keep]
        guess = attack(others[known == 1], others[known == 0], published, decimals=decimals)
        success[place] = 0.5 if guess == 0.5 else float(guess == labels[target])
    positive = labels[targets] == 1

    def mean(of: Any) -> float:
        return float(success[of].mean()) if of.any() else 0.5

    return Exposure(
        metric=metric,
        decimals=decimals,
        rows=rows,
        attacked=int(targets.size),
        recovered=float(success.mean()),
        of_positives=mean(positive),
        of_negatives=mean(~positive),
    )


def most_success(epsilon: float) -> float:
    """The best that anyone can do against an epsilon-private release, at even odds.

    >>> round(most_success(1.0), 3)
    0.731
    """
    return 1 / (1 + math.exp(-epsilon))


def exposure_of(dataset: Dataset, **words: Any) -> Exposure:
    """The exposure of a data set's rows, on the custodian's side."""
    columns = dataset._fetch("SELECT label, score FROM evaluated")
    return exposure(columns["label"], columns["score"], **words)
