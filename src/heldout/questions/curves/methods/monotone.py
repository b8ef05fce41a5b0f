"""A cubic through points that rises where they rise: post-processing, of public numbers alone."""

import numpy as np
from numpy.typing import ArrayLike

from heldout.arrays import Floats

__all__ = ["monotone_cubic"]


def monotone_cubic(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> Floats:
    """Fritsch and Butland's (1984) cubic Hermite interpolant through (x, y), read at `at`.

    `x` rises strictly and holds `at`. scipy has the same; loading it takes a quarter of a second.

    >>> monotone_cubic([0, 1, 3], [0, 1, 1], [0, 0.5, 1, 2]).round(3).tolist()
    [0.0, 0.667, 1.0, 1.0]
    """
    x, y, at = (np.asarray(each, dtype=np.float64) for each in (x, y, at))
    h = np.diff(x)
    chord = np.diff(y) / h
    if len(h) == 1:
        return np.asarray(y[0] + chord[0] * (at - x[0]))
    slope = np.concatenate([[_end(h, chord)], np.zeros(len(h) - 1), [_end(h[::-1], chord[::-1])]])
    alike = chord[1:] * chord[:-1] > 0
    first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (first + second) / (first / chord[:-1] + second / chord[1:])
    slope[1:-1] = np.where(alike, mean, 0.0)
    k = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(h) - 1)
    t = (at - x[k]) / h[k]
    bend = slope[k] + slope[k + 1] - 2 * chord[k]
    rise = h[k] * t * (slope[k] + t * (chord[k] - slope[k] + (t - 1) * bend))
    return np.asarray(y[k] + rise)


def _end(h: Floats, chord: Floats) -> float:
    """The slope at an end: of the parabola through three points, held to the shape."""
    slope = float(((2 * h[0] + h[1]) * chord[0] - h[0] * chord[1]) / (h[0] + h[1]))
    if slope * chord[0] <= 0:
        return 0.0
    if chord[0] * chord[1] <= 0 and abs(slope) > 3 * abs(chord[0]):
        return float(3 * chord[0])
    return slope
