"""Which points of precision-recall space can be reached, and how points are joined.

A data set with `n` positives and `m` negatives has prevalence `n / (n + m)` (the dissertation's
skew, pi). Even the worst ranking has a precision above zero, so part of the area under a
precision-recall curve comes for free. Weighted examples: let n and m be total weights.

Reference: Boyd, 2014, Theorems 3.3, 3.4, 3.5, 4.1, 4.2 and Corollary 3.6.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import as_number, as_numbers, pair, shown
from heldout.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]
_SMALL = 1e-2  # below this the series is more exact than the closed form
_TERMS = 9
_MOST = 100_000_000


def minimum_precision(*, recall: ArrayLike, prevalence: float) -> Floats | float:
    """Return the lowest precision that any ranking has at this recall (Theorem 3.3).

    At prevalence 0 there are no positives and precision is 0; at prevalence 1 it is 1.

    >>> round(minimum_precision(recall=0.5, prevalence=0.1), 6)
    0.052632
    >>> minimum_precision(recall=[0.0, 1.0], prevalence=0.25).tolist()
    [0.0, 0.25]
    """
    pi = fraction("prevalence", prevalence)
    r = fractions("recall", recall)
    lowest = np.ones_like(r) if pi == 1.0 else pi * r / (1.0 - pi + pi * r)
    return float(lowest) if lowest.ndim == 0 else lowest


def is_achievable(*, recall: float, precision: float, prevalence: float) -> bool:
    """Return whether some confusion matrix with this prevalence has this recall and precision.

    >>> is_achievable(recall=0.2, precision=0.2, prevalence=1 / 3)
    True
    >>> is_achievable(recall=0.6, precision=0.2, prevalence=1 / 3)
    False
    """
    p = fraction("precision", precision)
    lowest = minimum_precision(recall=fraction("recall", recall), prevalence=prevalence)
    # One rounding of slack, so that points on the minimum curve itself count as achievable.
    return bool(p >= lowest * (1.0 - 4 * np.finfo(float).eps))


def minimum_auc(*, prevalence: float, recall: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the area under the minimum curve, whole or over a range of recall (3.4 and 3.6).

    The limits are used at prevalence 0 (area 0) and 1 (all of the range).

    >>> round(minimum_auc(prevalence=0.1), 6)
    0.051755
    >>> round(minimum_auc(prevalence=0.1, recall=(0.5, 1)), 6)
    0.03836
    >>> minimum_auc(prevalence=0), minimum_auc(prevalence=1)
    (0.0, 1.0)
    """
    pi = fraction("prevalence", prevalence)
    low, high = recall_range(recall)
    if pi == 0.0:
        return 0.0
    if pi == 1.0:
        return high - low
    # The curve is the join of (0, 0) and (1, pi): false positives stay at (1 - pi)/pi, in units
    # of all positives. Corollary 3.6 subtracts two nearly equal numbers when pi is small.
    odds = (1.0 - pi) / pi
    return float(
        area_between(
            np.array([low]), np.array([low + odds]), np.array([high]), np.array([high + odds])
        )[0]
    )


def minimum_average_precision(*, positives: float, negatives: float) -> float:
    """Return the average precision of the worst ranking: all negatives first (Theorem 3.5).

    >>> round(minimum_average_precision(positives=10, negatives=90), 6)
    0.056738
    """
    n, m = as_number(positives), as_number(negatives)
    if not (0 <= n <= _MOST and m >= 0 and n.is_integer() and 0 < n + m < np.inf):
        raise ArgumentError(
            f"positives must be a whole number to {_MOST:,} and negatives at least 0, got "
            f"{shown(positives)} and {shown(negatives)}. Pass the sizes of the two classes."
        )
    if n == 0:
        return 0.0
    i = np.arange(1.0, n + 1.0)
    return float(np.mean(i / (i + m)))


def interpolate(
    recall: ArrayLike, *, start: tuple[float, float], stop: tuple[float, float]
) -> Floats | float:
    """Return the precision between two points, straight in ROC space (Theorem 4.1).

    It does not depend on the prevalence. From a start at recall 0 it is the level line of the
    second point, as long as the start has no false positives; precision 0 at recall 0 does not
    say how many there are, so it is refused.

    >>> round(interpolate(0.5, start=(0.25, 0.5), stop=(1.0, 0.4)), 6)
    0.428571
    """
    (r1, p1), (r2, p2) = _point("start", start), _point("stop", stop)
    r = fractions("recall", recall)
    if not r1 < r2 or np.any(r < r1) or np.any(r > r2):
        raise ArgumentError(
            f"recall must lie between the recalls of start and stop, got {r1:g} to {r2:g} for "
            "the ends. Order the two points by recall."
        )
    if r1 == 0.0:
        level = np.full_like(r, p2)
        return float(level) if r.ndim == 0 else level
    d1, d2 = r1 / p1, r2 / p2  # recall + false positives, in units of all positives
    predicted = d1 + (d2 - d1) * (r - r1) / (r2 - r1)
    joined = r / predicted
    return float(joined) if r.ndim == 0 else joined


def interpolated_area(*, start: tuple[float, float], stop: tuple[float, float]) -> float:
    """Return the area under `interpolate` between two points (Theorem 4.2), stable for all a and b.

    >>> round(interpolated_area(start=(0.25, 0.5), stop=(1.0, 0.4)), 6)
    0.318971
    """
    (r1, p1), (r2, p2) = _point("start", start), _point("stop", stop)
    if not r1 < r2:
        raise ArgumentError(
            f"start must have a smaller recall than stop, got {r1:g} and {r2:g}. Swap them."
        )
    if r1 == 0.0:
        return p2 * r2
    ends = (np.array([x]) for x in (r1, r1 / p1, r2, r2 / p2))
    return float(area_between(*ends)[0])


def area_between(r1: Floats, d1: Floats, r2: Floats, d2: Floats) -> Floats:
    """Return areas of `r / d(r)`, `d` linear from `d1` at `r1` to `d2` at `r2`.

    `d` counts predictions. With x = d2/d1 - 1 the integral is
    (r2-r1)/d1 * (r1 log1p(x)/x + (r2-r1) (x-log1p(x))/x^2). Equation (4.9) divides by a^2 and
    cancels when `a` (here x) vanishes; this form does not. When `d1` is 0 (nothing predicted yet)
    the precision is constant and the area is a rectangle.
    """
    width = r2 - r1
    empty = d1 <= 0.0
    base = np.where(empty, 1.0, d1)
    x = np.where(empty, 0.0, (d2 - d1) / base)
    level, slope = _log_ratio(x)
    area = width / base * (r1 * level + width * slope)
    if np.any(empty):
        area = np.where(empty, width * r2 / np.where(d2 > 0, d2, 1.0), area)
    return np.asarray(area, dtype=np.float64)


def _log_ratio(x: Floats) -> tuple[Floats, Floats]:
    """Return log1p(x)/x and (x - log1p(x))/x^2, both exact to a few ulp near x = 0."""
    small = np.abs(x) < _SMALL
    level, slope = np.empty_like(x), np.empty_like(x)
    s = x[small]
    series = np.zeros_like(s)
    for k in range(_TERMS + 1, 1, -1):  # 1/2 - x/3 + x^2/4 - ...
        series = 1.0 / k - s * series
    slope[small] = series
    level[small] = 1.0 - s * series
    b = x[~small]
    log = np.log1p(b)
    level[~small] = log / b
    slope[~small] = (b - log) / (b * b)
    return level, slope


def _point(name: str, point: tuple[float, float]) -> tuple[float, float]:
    both = pair(point)
    if both is None:
        raise ArgumentError(f"{name} must be (recall, precision), got {shown(point)}. Pass both.")
    r, p = fraction(f"{name} recall", both[0]), fraction(f"{name} precision", both[1])
    if p == 0.0:
        raise ArgumentError(
            f"{name} must have a precision above 0, got 0. A point with no true positive does "
            "not say how many false positives it has."
        )
    return r, p


# --- arguments: proportions and ranges of recall ---


def fraction(name: str, value: float) -> float:
    """Return `value` as a float in [0, 1]; the error names it."""
    number = as_number(value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"{name} must lie in [0, 1], got {shown(value)}. Give a proportion.")
    return number


def fractions(name: str, values: ArrayLike) -> Floats:
    """Return proportions in an array of any shape; the error names them."""
    array: Floats = as_numbers(values, name=name)
    if not np.all((array >= 0.0) & (array <= 1.0)):
        raise ArgumentError(f"{name} must lie in [0, 1]. Give proportions, not percentages.")
    return array


def recall_range(recall: tuple[float, float]) -> tuple[float, float]:
    """Return a recall range (a, b) with 0 <= a < b <= 1."""
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
