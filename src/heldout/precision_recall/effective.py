"""How many positives the data are worth: the effective sample size behind the better interval.

The binomial and logit intervals treat an area of theta as the mean of n independent yes-or-no
answers, n being the number of positives: variance theta (1 - theta) / n. Their coverage is above
95% because the real variance is smaller; the dissertation leaves open by how much. Here:

1. V is the delete-one jackknife variance of average precision, positives and negatives each in
   closed form (O(N) after the sort), the prevalence held fixed. All consistent estimators of the
   area have the same limiting variance, so one V serves them.
2. The effective sample size solves 1/n_eff = (1 - w) V / (theta (1 - theta)) + w / n. V is itself
   noisy and too small when it matters, so a part w = 1/(1 + n^(1/4) / 2) of the cautious binomial
   answer stays; it fades as n grows.
3. The quantile is Student's, with the degrees of freedom that the fourth moments of the jackknife
   values give V (Satterthwaite), at least 4: few influential examples mean few degrees of freedom.
4. Wilson's score interval at n_eff. It stays in [0, 1] and also holds for an area of 0 or 1.

w and the floor of 4 were chosen by simulation; docs/precision-recall.md has the measurements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heldout.precision_recall.arguments import Floats
from heldout.precision_recall.levels import Levels

_FEWEST_DEGREES = 4.0


class EffectiveSize(NamedTuple):
    """The number of independent yes-or-no answers that the positives are worth."""

    positives: float
    degrees_of_freedom: float


class _Spread(NamedTuple):
    variance: float
    variance_of_variance: float


def effective_size(levels: Levels, value: float, prevalence: float | None = None) -> EffectiveSize:
    """The effective sample size of an estimate `value` of the area.

    With fewer than two examples of a class there is nothing to delete: n_eff is then n.
    """
    n, m = levels.positives, levels.negatives
    weight = 1.0 / (1.0 + 0.5 * n**0.25)
    uncertain = value * (1.0 - value)
    if n < 2 or m < 2 or uncertain <= 0.0:
        return EffectiveSize(max(n, 1.0), float("inf"))
    spread = jackknife(levels, levels.prevalence if prevalence is None else prevalence)
    inverse = (1.0 - weight) * spread.variance / uncertain + weight / n
    degrees = float("inf")
    if spread.variance_of_variance > 0.0:
        degrees = 2.0 * spread.variance**2 / spread.variance_of_variance
    return EffectiveSize(1.0 / inverse, max(degrees, _FEWEST_DEGREES))


def jackknife(levels: Levels, prevalence: float) -> _Spread:
    """Delete-one jackknife variance of average precision, and the variance of that variance."""
    n, m = levels.positives, levels.negatives
    tp = levels.true_positives
    new = np.diff(tp, prepend=0.0)
    fp = levels.false_positives[levels.first]
    odds = n / m * (1.0 - prevalence) / prevalence

    # Delete one of the positives at threshold h: those above keep their true positives, those
    # below lose one, and recall is counted in n - 1.
    cost = odds * (n - 1.0) / n
    kept = new * _precision(tp, cost * fp)
    lost = _precision(tp - 1.0, cost * fp)
    above = np.cumsum(kept) - kept
    below = np.cumsum((new * lost)[::-1])[::-1] - new * lost
    up = _spread((above + (new - 1.0) * lost + below) / (n - 1.0), new)

    # Delete one of the negatives that threshold h is the first to take in (the last entry: none).
    cost = odds * m / (m - 1.0)
    kept = new * _precision(tp, cost * fp)
    lost = new * _precision(tp, cost * np.maximum(fp - 1.0, 0.0))
    above = np.concatenate([[0.0], np.cumsum(kept)])
    below = np.concatenate([np.cumsum(lost[::-1])[::-1], [0.0]])
    counts = np.diff(np.concatenate([[0.0], fp, [m]]))
    down = _spread((above + below) / n, counts)
    return _Spread(up.variance + down.variance, up.variance_of_variance + down.variance_of_variance)


def score_interval(value: float, size: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion `value` seen in `size` trials."""
    ratio = quantile * quantile / size
    centre = (value + ratio / 2.0) / (1.0 + ratio)
    half = np.sqrt(value * (1.0 - value) * ratio + ratio * ratio / 4.0) / (1.0 + ratio)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _precision(true: Floats, false: Floats) -> Floats:
    predicted = true + false
    return np.where(true > 0, true / np.where(predicted > 0, predicted, 1.0), 0.0)


def _spread(values: Floats, counts: Floats) -> _Spread:
    """Jackknife variance of leave-one-out `values`, each seen `counts` times."""
    n = float(counts.sum())
    centred = values - np.dot(counts, values) / n
    square = centred * centred
    second = float(np.dot(counts, square)) / n
    fourth = float(np.dot(counts, square * square)) / n
    # Var(s^2) = (m4 - m2^2 (n-3)/(n-1)) / n; leave-one-out values are s/(n-1) of the originals.
    noise = max(fourth - second**2 * (n - 3.0) / (n - 1.0), 0.0) / n
    return _Spread((n - 1.0) * second, (n - 1.0) ** 2 * noise)
