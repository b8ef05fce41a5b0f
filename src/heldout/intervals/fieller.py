"""Intervals for ratios of noisy counts, many at once, by Fieller's argument on a grid.

As in `heldout.intervals.ratio`: for the true ratio r the combination (1 - r) top - r rest of the
noisy counts is pure noise, so the interval holds all r for which it is not too large. Where the
denominator is lost in the noise the interval is wide instead of wrong.
"""

import math
from statistics import NormalDist
from typing import Any, Final

import numpy as np

__all__ = ["ratio_bounds", "single_quantile"]

_COARSE: Final = np.linspace(0.0, 1.0, 257)
_FINE: Final = np.linspace(0.0, 1.0, 65)
_GRANULARITY: Final = 0.5  # whole-numbered noise may lie so far beyond the continuous law


def ratio_bounds(
    top: Any,
    rest: Any,
    *,
    top_variance: Any,
    rest_variance: Any,
    rows: Any,
    quantile: float,
    covariance: Any = 0.0,
) -> tuple[Any, Any]:
    """Bounds for top/(top + rest), elementwise; neither count is below zero in truth.

    `rows` is 0 for the rows' own ratio; for the population's it is the true denominator or more,
    and adds the variance r (1 - r) of each row. `covariance` is that of the noise of top and rest.

    >>> low, high = ratio_bounds(30.0, 10.0, top_variance=4.0, rest_variance=4.0, rows=0.0,
    ...                          quantile=2.0)
    >>> round(float(low), 2), round(float(high), 2)
    (0.67, 0.85)
    """
    parts = np.broadcast_arrays(
        np.maximum(top, 0.0), np.maximum(rest, 0.0), top_variance, rest_variance, rows, covariance
    )
    top, rest, top_variance, rest_variance, rows, covariance = (
        np.asarray(each, dtype=np.float64)[..., None] for each in parts
    )
    total = top + rest
    centre = np.divide(top, total, out=np.full_like(total, 0.5), where=total > 0)[..., 0]

    def survives(r: Any) -> Any:
        distance = np.abs((1 - r) * top - r * rest) - _GRANULARITY * np.maximum(r, 1 - r)
        variance = (1 - r) ** 2 * top_variance + r**2 * rest_variance + rows * r * (1 - r)
        variance = np.maximum(variance - 2 * r * (1 - r) * covariance, 0.0)
        return distance <= quantile * np.sqrt(variance)

    kept = survives(np.broadcast_to(_COARSE, (*centre.shape, _COARSE.size)))
    step = _COARSE[1]
    found = kept.any(axis=-1)
    low = np.where(found, _COARSE[kept.argmax(axis=-1)], centre)
    high = np.where(found, _COARSE[_COARSE.size - 1 - kept[..., ::-1].argmax(axis=-1)], centre)
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    # The ends lie within one step further out: look closer there, and take the outer side.
    below = np.clip((low - step)[..., None] + step * _FINE, 0.0, 1.0)
    above = np.clip((high + step)[..., None] - step * _FINE, 0.0, 1.0)
    return _first(below, survives(below), step), _last(above, survives(above), step)


def _first(places: Any, kept: Any, step: float) -> Any:
    index = np.where(kept.any(axis=-1), kept.argmax(axis=-1), places.shape[-1] - 1)
    found = np.take_along_axis(places, index[..., None], axis=-1)[..., 0]
    return np.clip(found - step / (_FINE.size - 1), 0.0, 1.0)


def _last(places: Any, kept: Any, step: float) -> Any:
    index = np.where(kept.any(axis=-1), kept.argmax(axis=-1), places.shape[-1] - 1)
    found = np.take_along_axis(places, index[..., None], axis=-1)[..., 0]
    return np.clip(found + step / (_FINE.size - 1), 0.0, 1.0)


def single_quantile(level: float, *, of: int = 1) -> float:
    """What a sum of Laplace noises and a normal error exceeds in size, in deviations, by chance.

    The larger of the normal and the Laplace quantile: sums lie between the two. With `of` such
    sums, none of them exceeds it (Bonferroni).

    >>> round(single_quantile(0.95), 3), round(single_quantile(0.5), 3)
    (2.118, 0.674)
    """
    error = (1 - level) / of
    return max(-NormalDist().inv_cdf(error / 2), -math.log(error) / math.sqrt(2))
