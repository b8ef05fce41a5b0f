"""A smooth, non-negative density from a noisy table: post-processing of what is public."""

from typing import Any

import numpy as np

__all__ = ["smoothed", "whole_numbers"]


def smoothed(noisy: Any, *, deviation: Any, total: float) -> Any:
    """Counts not below zero that add up to `total`, near the noisy ones."""
    return simplex(noisy, total=total)


def simplex(values: Any, *, total: float) -> Any:
    """The nearest array without a negative entry that adds up to `total`.

    >>> simplex(np.array([3.0, 1.0, -1.0]), total=3.0).tolist()
    [2.5, 0.5, 0.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = np.flatnonzero(falling - excess > 0)[-1]
    return np.maximum(values - excess[last], 0.0)


def whole_numbers(values: Any, *, total: int) -> Any:
    """Whole numbers near the values, adding up to `total`: the largest remainders are rounded up.

    >>> whole_numbers(np.array([1.4, 0.8, 0.8]), total=3).tolist()
    [1, 1, 1]
    """
    values = np.asarray(values, dtype=np.float64)
    floors = np.floor(values).astype(np.int64)
    missing = int(total) - int(floors.sum())
    flat = floors.ravel()
    order = np.argsort((floors - values).ravel(), kind="stable")
    if missing > 0:
        flat[order[:missing]] += 1
    elif missing < 0:
        positive = [place for place in order[::-1] if flat[place] > 0]
        flat[positive[:-missing]] -= 1
    return flat.reshape(values.shape)
