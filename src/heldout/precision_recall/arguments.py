"""Checks of public arguments that several files of this package share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import as_array, as_number, as_numbers, pair, shown
from heldout.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]


def fraction(name: str, value: float) -> float:
    """`value` as a float in [0, 1], or an error that names it."""
    number = as_number(value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"{name} must lie in [0, 1], got {shown(value)}. Give a proportion.")
    return number


def fractions(name: str, values: ArrayLike) -> Floats:
    """Proportions in an array of any shape, or an error that names them."""
    array: Floats = as_numbers(values, name=name)
    if not np.all((array >= 0.0) & (array <= 1.0)):
        raise ArgumentError(f"{name} must lie in [0, 1]. Give proportions, not percentages.")
    return array


def recall_range(recall: tuple[float, float]) -> tuple[float, float]:
    """A recall range (a, b) with 0 <= a < b <= 1."""
    both = pair(recall)
    if both is None:
        raise ArgumentError(f"recall must be a range (a, b), got {shown(recall)}. Pass (0, 1).")
    low, high = fraction("recall[0]", both[0]), fraction("recall[1]", both[1])
    if not low < high:
        raise ArgumentError(
            f"recall must be a range (a, b) with a < b, got ({low:g}, {high:g}). "
            "Use (0, 1) for the whole curve."
        )
    return low, high


def labelled_scores(
    y_true: Iterable[Any],
    y_score: Iterable[float],
    positive: object = 1,
    sample_weight: Iterable[float] | None = None,
) -> tuple[NDArray[np.bool_], Floats, Floats | None]:
    """Labels as booleans, scores as finite floats, weights as non-negative floats or None."""
    labels = as_array(y_true, name="y_true")
    scores = as_numbers(y_score, name="y_score")
    if labels.ndim != 1 or scores.ndim != 1 or labels.size != scores.size:
        raise ArgumentError(
            "y_true and y_score must be one-dimensional and equally long, got shapes "
            f"{labels.shape} and {scores.shape}. Pass one label and one score a row."
        )
    if not labels.size:
        raise ArgumentError("y_true must have at least one row. Check the filter.")
    if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
        raise ArgumentError("y_score must be finite, got NaN or inf. Remove or replace such rows.")
    truth = _as_booleans(labels, positive)
    if sample_weight is None:
        return truth, scores, None
    weights = as_numbers(sample_weight, name="sample_weight")
    if weights.shape != scores.shape:
        raise ArgumentError(
            f"sample_weight must be as long as y_score, got {weights.shape}. One weight a row."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ArgumentError(
            "sample_weight must be finite, non-negative and not all zero. Check the weights."
        )
    return truth, scores, weights


def _as_booleans(labels: NDArray[Any], positive: object) -> NDArray[np.bool_]:
    if labels.dtype == np.bool_ and isinstance(positive, int) and positive == 1:
        return labels
    try:
        truth = np.asarray(labels == positive, dtype=np.bool_)
        if truth.shape != labels.shape:  # a plain False for types that numpy cannot compare
            truth = np.zeros(labels.shape, dtype=np.bool_)
        others = labels[~truth]
        # A missing label or a third label is a mistake that would silently count as negative.
        more = bool(others.size and np.any(others != others[0]))
    except Exception:  # cells that cannot be compared with each other
        truth, more = np.zeros(labels.shape, dtype=np.bool_), True
    if more:
        raise ArgumentError(
            f"y_true must hold two different labels, {shown(positive)} and one other. Say "
            "which one is positive, and remove missing labels."
        )
    return truth
