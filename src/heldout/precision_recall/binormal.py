"""The area under the precision-recall curve of two normal score distributions.

Two quadratures of the same integral, equation (4.11) with the sign of its first term corrected:

* `reference_area` is QUADPACK at the tolerance of R's `integrate`, which the dissertation's own
  program calls. It agrees with that program to the last digits, and is about 1e-7 from the
  integral itself. The estimator "binormal" uses it.
* `exact_area` is the trapezoid rule over the normal quantile, exact to about 1e-12, for many
  models at once. The simulations and the true areas use it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.precision_recall.geometry import Floats, minimum_auc

_R_TOLERANCE = float(np.finfo(np.float64).eps) ** 0.25
_REACH = 12.0  # standard normal quantiles beyond this weigh less than 1e-32
_STEP = 0.1


class NormalScores(NamedTuple):
    """Scores of positives in units of the negatives: N(mean, deviation) against N(0, 1)."""

    mean: float
    deviation: float


def fit(
    truth: NDArray[np.bool_], scores: Floats, weights: Floats | None = None
) -> NormalScores | None:
    """Return sample means and standard deviations (divisor n - 1); None where they are undefined.

    Weights count as repeated examples, so the divisor is the total weight minus one.
    """
    moments = []
    for side in (truth, ~truth):
        values = scores[side]
        count = np.ones_like(values) if weights is None else weights[side]
        total = float(count.sum())
        if total <= 1.0:
            return None
        mean = float(np.dot(count, values) / total)
        moments.append((mean, float(np.sqrt(np.dot(count, (values - mean) ** 2) / (total - 1.0)))))
    (mean_y, deviation_y), (mean_x, deviation_x) = moments
    if deviation_x == 0.0:  # the negatives are one point
        if deviation_y == 0.0:
            return NormalScores(float(np.sign(mean_y - mean_x)) * np.inf, 0.0)
        return NormalScores((mean_y - mean_x) / deviation_y, np.inf)
    return NormalScores((mean_y - mean_x) / deviation_x, deviation_y / deviation_x)


def precision(model: NormalScores, prevalence: float, recall: ArrayLike) -> Floats:
    """Return the precision at a recall, under the model."""
    from scipy.special import ndtr, ndtri

    quantile = ndtri(np.asarray(recall, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        if np.isinf(model.deviation):
            false = (quantile > model.mean).astype(np.float64)
        elif np.isnan(model.mean):
            false = np.full_like(quantile, 0.5)
        else:
            spread = model.deviation * quantile if model.deviation else 0.0 * np.sign(quantile)
            false = ndtr(-model.mean + np.nan_to_num(spread, nan=0.0))
    true = prevalence * np.asarray(recall, dtype=np.float64)
    predicted = true + (1.0 - prevalence) * false
    return np.where(predicted > 0, true / np.where(predicted > 0, predicted, 1.0), 1.0)


def reference_area(
    model: NormalScores, prevalence: float, recall: tuple[float, float] = (0.0, 1.0)
) -> float:
    """Return the area as the dissertation's program integrates it."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    low, high = recall
    if np.isinf(model.deviation):  # a jump that a quadrature would smear: add its two sides
        jump = min(max(float(ndtr(model.mean)), low), high)
        beyond = minimum_auc(prevalence=prevalence, recall=(jump, high)) if jump < high else 0.0
        return (jump - low) + beyond
    value, _ = quad(
        lambda t: float(precision(model, prevalence, t)),
        low,
        high,
        epsabs=_R_TOLERANCE,
        epsrel=_R_TOLERANCE,
        limit=100,
    )
    return float(value)


def exact_area(*, mean: ArrayLike, deviation: ArrayLike, prevalence: ArrayLike) -> Floats:
    """Return areas of many models at once; the three arguments broadcast.

    The step shrinks where the positives spread wider than the negatives.
    """
    from scipy.special import log_ndtr

    a, b, pi = (
        np.asarray(v, dtype=np.float64)[..., None]
        for v in np.broadcast_arrays(mean, deviation, prevalence)
    )
    widest = float(np.max(b, initial=1.0))
    steps = int(np.ceil(2 * _REACH / _STEP * min(max(1.0, widest), 100.0)))
    u = np.linspace(-_REACH, _REACH, steps + 1)
    density = np.exp(-0.5 * u * u)
    density /= density.sum()
    # Ratios of far tails: 0/0 in plain numbers, a plain difference on the log scale.
    tail = np.exp(np.clip(log_ndtr(b * u - a) - log_ndtr(u), -700.0, 700.0))
    return np.asarray(np.sum(density / (1.0 + (1.0 - pi) / pi * tail), axis=-1))
