"""How far two curves are apart: the area between them."""

from typing import Any

import numpy as np

__all__ = ["area_between"]


def area_between(one: tuple[Any, Any], two: tuple[Any, Any]) -> float:
    """The exact integral of |y1 - y2| over x, for two piecewise linear curves.

    A curve is (x, y) in the order in which it is drawn, x rising from the same start to the same
    end; several points at one x are a vertical piece.

    >>> area_between(([0, 1], [0, 1]), ([0, 0, 1], [0, 1, 1]))
    0.5
    """
    places = np.union1d(one[0], two[0])
    gaps = [_ends(*one, places), _ends(*two, places)]
    start, end = gaps[0][0] - gaps[1][0], gaps[0][1] - gaps[1][1]
    size = np.abs(start) + np.abs(end)
    # Where the curves cross, two triangles; elsewhere a trapezoid.
    crossing = np.divide(start**2 + end**2, size, out=np.zeros_like(size), where=size > 0)
    heights = np.where(start * end < 0, crossing, size) / 2
    return float((heights * np.diff(places)).sum())


def _ends(x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    """The curve just after the start and just before the end of each piece between places."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    last = np.searchsorted(x, places, side="right") - 1
    following = np.minimum(last + 1, len(x) - 1)
    run = x[following] - x[last]
    slope = np.divide(y[following] - y[last], run, out=np.zeros_like(run), where=run > 0)
    after = y[last] + slope * (places - x[last])
    before = after[:-1] + slope[:-1] * np.diff(places)
    return after[:-1], before
