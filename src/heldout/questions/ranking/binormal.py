"""The symmetric binormal ROC curve of an AUC: one number becomes a curve."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from heldout.errors import ArgumentError

__all__ = ["BinormalCurve", "binormal_curve", "binormal_roc"]

_NORMAL: Final = NormalDist()
_EDGE: Final = 1e-12


def binormal_roc(auc: float, fpr: Any) -> Any:
    """The true positive rate at each false positive rate: Phi(a + Phi^-1(fpr)).

    Both classes' scores are taken as normal with one variance, a = sqrt(2) Phi^-1(auc). Section 5
    of Boyd, Lantz and Page 2015. Arithmetic on a released number: free.

    >>> [round(float(rate), 3) for rate in binormal_roc(0.85, [0, 0.1, 0.5, 1])]
    [0.0, 0.573, 0.929, 1.0]
    """
    if not 0 <= auc <= 1:
        raise ArgumentError(f"auc must lie in [0, 1], got {auc}. Pass the clamped value.")
    rates = np.asarray(fpr, dtype=float)
    if np.any((rates < 0) | (rates > 1)):
        raise ArgumentError("fpr must lie in [0, 1], got a rate outside. Pass rates.")
    separation = 2**0.5 * _NORMAL.inv_cdf(min(max(auc, _EDGE), 1 - _EDGE))

    def rate(x: float) -> float:
        return x if x in (0, 1) else _NORMAL.cdf(separation + _NORMAL.inv_cdf(x))

    return np.array([rate(float(x)) for x in rates.ravel()]).reshape(rates.shape)


@dataclass(frozen=True)
class BinormalCurve:
    """A curve with its band; the band holds only as far as the binormal form does."""

    fpr: Any
    tpr: Any
    low: Any
    high: Any


def binormal_curve(
    auc: float, *, interval: tuple[float, float], points: int = 101
) -> BinormalCurve:
    """The curve of a released AUC, and the curves of its interval's two ends.

    The family is ordered: a larger area lies above everywhere, so the ends' curves bound the
    curves of all areas in between.

    >>> curve = binormal_curve(0.85, interval=(0.8, 0.9), points=3)
    >>> [round(float(rate), 2) for rate in (curve.low[1], curve.tpr[1], curve.high[1])]
    [0.88, 0.93, 0.97]
    """
    fpr = np.linspace(0.0, 1.0, points)
    low, high = interval
    return BinormalCurve(
        fpr, binormal_roc(auc, fpr), binormal_roc(low, fpr), binormal_roc(high, fpr)
    )
