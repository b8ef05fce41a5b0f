"""From counts of an event on two neighbours to a lower bound on epsilon, with its confidence.

If a mechanism is (epsilon, delta)-private then P(event) <= exp(epsilon) Q(event) + delta for every
event, so P >= p and Q <= q give epsilon >= ln((p - delta) / q). The bounds p and q are those of
Clopper and Pearson, which hold for every sample size: nothing here is an approximation.
"""

from typing import Any

import numpy as np

__all__ = ["delta_bound", "epsilon_bound", "lower", "upper"]


def lower(hits: Any, trials: int, error: float) -> Any:
    """A chance that is below the true one, but for one time in 1/error.

    >>> round(float(lower(30, 100, 0.025)), 4)
    0.2124
    """
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    found = betaincinv(np.maximum(hits, 1), trials - hits + 1, error)
    return np.where(hits > 0, found, 0.0)


def upper(hits: Any, trials: int, error: float) -> Any:
    """A chance that is above the true one, but for one time in 1/error.

    >>> round(float(upper(30, 100, 0.025)), 4)
    0.3998
    """
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    found = betaincinv(hits + 1, np.maximum(trials - hits, 1), 1 - error)
    return np.where(hits < trials, found, 1.0)


def epsilon_bound(
    hits: Any, hits_of_neighbour: Any, trials: int, *, error: float, delta: float = 0.0
) -> Any:
    """The epsilon that the mechanism surely has at least, but for one time in 1/error.

    Claim:       with chance 1 - error the true epsilon at this delta is not below it.
    Numerics:    doubles; the chances are exact tails of the binomial law.
    Reference:   Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020, section 3.

    >>> round(float(epsilon_bound(50_000, 18_394, 100_000, error=1e-3)), 2)  # ln 2.718 is 1
    0.97
    >>> float(epsilon_bound(10, 30, 100, error=1e-3))
    0.0
    """
    above = lower(hits, trials, error / 2) - delta
    below = upper(hits_of_neighbour, trials, error / 2)
    return np.maximum(0.0, np.log(np.maximum(above, 1e-300)) - np.log(below))


def delta_bound(
    hits: int, hits_of_neighbour: int, trials: int, *, error: float, epsilon: float
) -> float:
    """The delta that the mechanism surely has at least if its epsilon is this one."""
    above = lower(hits, trials, error / 2)
    below = upper(hits_of_neighbour, trials, error / 2)
    return float(np.maximum(0.0, above - np.exp(epsilon) * below))
