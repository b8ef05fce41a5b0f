"""A smooth, non-negative density from a noisy table: post-processing of what is public."""

from typing import Any

import numpy as np

__all__ = ["simplex", "smoothed", "whole_numbers"]


def smoothed(noisy: Any, *, deviation: float, total: float) -> Any:
    """Counts not below zero that add up to `total`, without what looks like noise.

    The table is written as a sum of cosines. Those of like frequencies form blocks, 0, 1, 2-3,
    4-7, ... along each axis, and each block is shrunk by the share of its energy that noise of
    this `deviation` a cell would have (James and Stein). A pattern stays; what is as rough as the
    noise goes.
    """
    noisy = np.asarray(noisy, dtype=np.float64)
    down, across = cosines(noisy.shape[0]), cosines(noisy.shape[1])
    waves = down @ noisy @ across.T
    blocks = 100 * octaves(noisy.shape[0])[:, None] + octaves(noisy.shape[1])[None, :]
    for block in np.unique(blocks)[1:]:  # the first is the mean
        inside = blocks == block
        energy, size = float((waves[inside] ** 2).sum()), int(inside.sum())
        # Size - 2 is best for many; a block of one or two is shrunk as well.
        expected = max(size - 2, 0.7 * size) * deviation**2
        waves[inside] *= max(0.0, 1 - expected / energy) if energy > 0 else 0.0
    return simplex(down.T @ waves @ across, total=total)


def cosines(size: int) -> Any:
    """The orthonormal cosine transform as a matrix.

    >>> bool(np.allclose(cosines(5) @ cosines(5).T, np.eye(5)))
    True
    """
    frequency, place = np.arange(size)[:, None], np.arange(size)[None, :]
    matrix = np.sqrt(2 / size) * np.cos(np.pi * (place + 0.5) * frequency / size)
    matrix[0] = np.sqrt(1 / size)
    return matrix


def octaves(size: int) -> Any:
    """The block of each frequency.

    >>> octaves(6).tolist()
    [0, 1, 2, 2, 3, 3]
    """
    return np.ceil(np.log2(1 + np.arange(size))).astype(np.int64)


def simplex(values: Any, *, total: float) -> Any:
    """The nearest array without a negative entry that adds up to `total`.

    >>> simplex(np.array([3.0, 1.0, -1.0]), total=3.0).tolist()
    [2.5, 0.5, 0.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    values = values - values.max()  # a common shift changes nothing, and keeps small totals exact
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
    # Numbers beyond 2^53 are not whole to the last digit; what is left goes to the largest.
    flat[flat.argmax()] += int(total) - int(flat.sum())
    return flat.reshape(values.shape)
