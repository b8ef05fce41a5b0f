"""Checks of public arguments that several files of this package share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from heldout.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]


def fraction(name: str, value: float) -> float:
    """`value` as a float in [0, 1], or an error that names it."""
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"{name} must lie in [0, 1], got {number:g}. Give a proportion.")
    return number


def recall_range(recall: tuple[float, float]) -> tuple[float, float]:
    """A recall range (a, b) with 0 <= a < b <= 1."""
    low, high = fraction("recall[0]", recall[0]), fraction("recall[1]", recall[1])
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
    labels = np.asarray(y_true)
    scores = np.asarray(y_score, dtype=np.float64)
    if labels.ndim != 1 or scores.ndim != 1 or labels.size != scores.size:
        raise ArgumentError(
            "y_true and y_score must be one-dimensional and equally long, got shapes "
            f"{labels.shape} and {scores.shape}. Pass one label and one score a row."
        )
    if not labels.size:
        raise ArgumentError("y_true must have at least one row, got none. Check the filter.")
    if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
        raise ArgumentError("y_score must be finite, got NaN or inf. Remove or replace such rows.")
    truth = _as_booleans(labels, positive)
    if sample_weight is None:
        return truth, scores, None
    weights = np.asarray(sample_weight, dtype=np.float64)
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
    if labels.dtype == np.bool_ and positive in (1, True):
        return labels
    truth = np.asarray(labels == positive)
    if truth.shape != labels.shape:  # numpy answers a plain False for types it cannot compare
        truth = np.zeros(labels.shape, dtype=np.bool_)
    others = labels[~truth]
    # A missing label or a third label is a mistake that would silently count as negative.
    if others.size and bool(np.any(others != others[0])):
        raise ArgumentError(
            f"y_true must hold two different labels, {positive!r} and one other, got more. "
            "Say which one is positive and remove missing labels."
        )
    return truth.astype(np.bool_, copy=False)
