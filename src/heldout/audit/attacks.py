"""Attacks on un-noised metrics: the label of a missing row from one published number.

The attacker knows every row but one, and the metric of all of them. She puts the missing row at
every rank, as a positive and as a negative, and guesses the class that gives the answer closest to
the published one; if both come equally close, the class that does so at more ranks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from heldout.arguments import as_numbers
from heldout.arguments.rules import Number, Whole
from heldout.errors import ArgumentError

__all__ = [
    "ATTACKS",
    "checked_decimals",
    "checked_scores",
    "label_from_auc",
    "label_from_average_precision",
    "label_from_roc",
    "metric_value",
]

_SAME = 1e-10  # doubles of one number that was computed in two ways


def label_from_auc(
    positives: Any, negatives: Any, published: float, *, decimals: int | None = None
) -> float:
    """The guess, 1 or 0, from the area under the ROC curve; one half if nothing speaks for either.

    >>> label_from_auc([0.9, 0.6], [0.5], 2 / 3)   # a third positive below the negative
    1.0
    """
    positives, negatives = _checked(positives, negatives)
    published, decimals = Number()(published, "published"), checked_decimals(decimals)
    n, m = positives.size, negatives.size
    # A rank is a known score or a gap between two; a tie counts one half.
    places = _places(np.unique(np.concatenate([positives, negatives])))
    below = _below(negatives, places)
    above = n - _below(positives, places)
    won = float(_below(negatives, positives).sum())
    if_positive = (won + below) / max((n + 1) * m, 1)
    if_negative = (won + above) / max(n * (m + 1), 1)
    return _guess(if_positive, if_negative, published, decimals)


def label_from_average_precision(
    positives: Any, negatives: Any, published: float, *, decimals: int | None = None
) -> float:
    """The guess from average precision.

    >>> label_from_average_precision([0.9, 0.6], [0.5, 0.2], (1 + 1 + 3 / 4) / 3)
    1.0
    """
    positives, negatives = _checked(positives, negatives)
    published, decimals = Number()(published, "published"), checked_decimals(decimals)
    n, m = positives.size, negatives.size
    descending = positives[::-1]
    index = np.arange(1.0, n + 1.0)
    rank = index + m - np.searchsorted(negatives, descending)
    place = np.arange(1.0, n + m + 2.0)  # rank of the missing row
    over = np.searchsorted(rank, place)  # positives that stay above it
    kept = _prefix(index / rank)
    pushed = _suffix((index + 1) / (rank + 1))
    if_positive = (kept[over] + (over + 1) / place + pushed[over]) / (n + 1)
    if_negative = (kept[over] + _suffix(index / (rank + 1))[over]) / max(n, 1)
    return _guess(if_positive, if_negative, published, decimals)


def label_from_roc(
    positives: Any, negatives: Any, published: Any, *, decimals: int | None = None
) -> float:
    """The guess from the points of an ROC curve, an array of (false, true positive rate).

    No rank is needed: every rate is a multiple of 1/m and 1/n, and one class has one row more.

    >>> label_from_roc([0.9, 0.6], [0.5, 0.2], [(0, 1 / 3), (0, 2 / 3), (1, 1)])
    1.0
    """
    n, m = (each.size for each in _checked(positives, negatives))
    decimals, points = checked_decimals(decimals), as_numbers(published, name="published")
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ArgumentError("published must be points of a curve. Pass pairs of two rates.")
    half = _SAME if decimals is None else 0.5 * 10.0**-decimals + _SAME

    def misfit(rates: Any, count: int) -> float:
        off = np.abs(rates * count - np.rint(rates * count)) / max(count, 1)
        return float(np.maximum(off - half, 0).sum())

    if_positive = misfit(points[:, 0], m) + misfit(points[:, 1], n + 1)
    if_negative = misfit(points[:, 0], m + 1) + misfit(points[:, 1], n)
    return 0.5 if if_positive == if_negative else float(if_positive < if_negative)


def metric_value(metric: str, labels: Any, scores: Any) -> Any:
    """What would be published: the exact metric of all rows; for "roc" its points."""
    labels, scores = np.asarray(labels), np.asarray(scores, dtype=float)
    positives, negatives = _sorted(scores[labels == 1]), _sorted(scores[labels == 0])
    n, m = max(positives.size, 1), max(negatives.size, 1)
    if metric == "roc":
        thresholds = np.unique(scores)[::-1]
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


def checked_scores(scores: Any, *, name: str) -> Any:
    """One row of finite numbers, or an error that quotes none of them."""
    found = as_numbers(scores, name=name)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ArgumentError(f"{name} must be a list of finite numbers.")
    return found


def checked_decimals(decimals: Any) -> int | None:
    """How many decimals are published; None for all of them."""
    if decimals is None:
        return None
    return Whole(0, 15, "Leave it out for all.")(decimals, "decimals")


def _checked(positives: Any, negatives: Any) -> tuple[Any, Any]:
    return (
        np.sort(checked_scores(positives, name="positives")),
        np.sort(checked_scores(negatives, name="negatives")),
    )


def _guess(if_positive: Any, if_negative: Any, published: float, decimals: int | None) -> float:
    if decimals is not None:
        published = round(published, decimals)
        if_positive, if_negative = (np.round(each, decimals) for each in (if_positive, if_negative))
    off = [np.abs(each - published) for each in (if_positive, if_negative)]
    nearest = min(each.min() for each in off)
    positive, negative = (int((each <= nearest + _SAME).sum()) for each in off)
    return 0.5 if positive == negative else float(positive > negative)


def _sorted(scores: Any) -> Any:
    return np.sort(np.asarray(scores, dtype=float))


def _below(ordered: Any, scores: Any) -> Any:
    """How many lie below each score, those at it counted half."""
    left, right = (np.searchsorted(ordered, scores, side=side) for side in ("left", "right"))
    return (left + right) / 2


def _places(known: Any) -> Any:
    """Every known score, one in each gap between them, and one beyond either end."""
    if not known.size:
        return np.zeros(1)
    middle = (known[1:] + known[:-1]) / 2
    return np.concatenate([[known[0] - 1], known, middle, [known[-1] + 1]])


def _prefix(terms: Any) -> Any:
    return np.concatenate([[0.0], np.cumsum(terms)])


def _suffix(terms: Any) -> Any:
    return np.concatenate([np.cumsum(terms[::-1])[::-1], [0.0]])
