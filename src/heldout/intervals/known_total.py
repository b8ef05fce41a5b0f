"""Counts that add up to a public number, laid out by the law of the noise that was added to them.

Discrete Laplace noise of one scale, given its sum: the counts are drawn one after the other, each
by its weight times the weight of all ways in which the later ones can make up the rest. So every
point counts alike. Drawing all but one and weighing by the last would leave a handful of points
where noise adds up to many scales, and intervals that are much too short there.
"""

from typing import Any, Final

import numpy as np

__all__ = ["laid_out"]

_REACH: Final = 10.0  # noise scales around what was drawn, beside what the noises add up to
_CELLS: Final = 192  # that a count's reach is divided into, where it holds more whole numbers


def laid_out(noisy: Any, scale: float, rows: int, uniform: Any) -> Any:
    """Counts from 0 that add up to `rows`, one line for each point of the unit cube.

    >>> found = laid_out([4, -2, 1, 20], 2.0, 20, (np.arange(9.0).reshape(3, 3) + 0.5) / 9)
    >>> found.sum(axis=1).tolist(), bool(found.min() >= 0)
    ([20.0, 20.0, 20.0], True)
    """
    noisy = np.asarray(noisy, dtype=float)
    *few, rest = np.argsort(noisy, kind="stable")  # the largest is what the others leave
    held = np.maximum(noisy, 0.0)
    reach = np.ceil(_REACH * scale + abs(held.sum() - rows))
    low = np.clip(noisy - reach, 0.0, rows)[few]
    high = np.minimum(held + reach, rows)[few]
    step = max(1.0, np.ceil(float((high - low).max()) / (_CELLS - 1)))
    size = int(float((high - low).max()) // step) + 1
    along = step * np.arange(size)
    own = [_law(first + along, noisy[i], scale) for first, i in zip(low, few, strict=True)]
    left = _law(rows - low.sum() - step * np.arange(3 * size), noisy[rest], scale)
    index, one = np.arange(size), np.arange(2 * size)[:, None]
    third = own[2] + left[one + index]
    second = own[1] + _sum(third)[index[:, None] + index]
    first = own[0] + _sum(second)
    found = np.empty((len(uniform), 4))
    line = np.zeros(len(uniform), dtype=int)
    for place, logs, i in zip(range(3), (first[None], second, third), few, strict=True):
        chosen, within = _chosen(logs, line, uniform[:, place])
        found[:, i] = np.maximum(np.round(low[place] + step * (chosen + within - 0.5)), 0.0)
        line = line + chosen
    sums = found[:, few].sum(axis=1, keepdims=True)
    found[:, few] /= np.maximum(sums / max(rows, 1), 1.0)  # a wide cell may overshoot the rows
    found[:, rest] = rows - found[:, few].sum(axis=1)
    return np.maximum(found, 0.0)


def _law(counts: Any, noisy: float, scale: float) -> Any:
    """The log of a count's weight; one below 0 has none."""
    return np.where(counts >= 0, -np.abs(counts - noisy) / scale, -np.inf)


def _highest(logs: Any) -> Any:
    most = logs.max(axis=-1, keepdims=True)
    return np.where(np.isfinite(most), most, 0.0)


def _sum(logs: Any) -> Any:
    """The log of the sum along the last axis."""
    most = _highest(logs)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - most).sum(axis=-1)) + most[..., 0]


def _chosen(logs: Any, line: Any, uniform: Any) -> tuple[Any, Any]:
    """By inversion, each in its own line: the place, and how far into it, from 0 to 1."""
    weights = np.exp(logs - _highest(logs))
    total = np.cumsum(weights, axis=1)
    whole = np.maximum(total[:, -1:], 1e-300)
    ends = (np.arange(len(logs))[:, None] + total / whole).ravel()
    size = logs.shape[1]
    place = np.clip(np.searchsorted(ends, line + uniform) - line * size, 0, size - 1)
    share = weights[line, place] / whole[line, 0]
    below = total[line, place] / whole[line, 0] - share
    return place, np.clip((uniform - below) / np.maximum(share, 1e-300), 0.0, 1.0)
