"""Log-odds of features from noisy counts: each shrunk by how little its count says.

All of it is arithmetic on what was released; no row is read here and nothing is charged.
"""

from typing import Any

import numpy as np

__all__ = ["log_odds"]

RATES, ODDS, SPAN = 16, 17, 4.0
ROUNDS = 12
EVEN = 0.02  # of the prior of the log-odds stays spread evenly
WIDTH = 1.5  # standard deviation of log-odds before anything is seen
SMALLEST = np.float32(1e-30)


def log_odds(
    noisy: Any,
    *,
    scale: float,
    rows: Any,
    learnt: bool = True,
    largest: float = 0.4,
    centred: bool = True,
) -> Any:
    """The mean of ln(p1/p0) given both noisy counts of a feature, for every feature.

    A feature has a rate (how many rows set it) and log-odds, each on a small grid. The count of a
    label is the rate times `rows` of that label, plus Poisson spread and Laplace noise of `scale`.
    With `learnt` the prior over the grid is fitted to all features' noisy counts (empirical Bayes:
    Robbins 1956; Kiefer and Wolfowitz 1956), so that thousands of features that are pure noise are
    recognised as such, and rare strong ones are not. The less a feature's counts narrow the fitted
    prior, the more of the prior's mean is taken off: that would weigh how many features a row has.
    Without `centred` it is not, and the last bits are those of answers from before it was.

    >>> noisy = np.array([[0.0, 2.0, 90.0, 3.0], [1.0, -2.0, 5.0, 400.0]])
    >>> log_odds(noisy, scale=5, rows=(1000, 1000), learnt=False).round(1).tolist()
    [0.1, -0.2, -2.6, 3.5]
    """
    noisy, rows = np.asarray(noisy, dtype=np.float32), np.maximum(np.asarray(rows, dtype=float), 1)
    rates = np.concatenate([[0.0], np.geomspace(1 / rows.sum(), largest, RATES)])
    odds = np.linspace(-SPAN, SPAN, ODDS)
    first = rates[:, None] * rows.sum() / (rows[0] + rows[1] * np.exp(odds))
    shares = np.stack([first, first * np.exp(odds)])
    likelihood = _likelihood(noisy, shares * rows[:, None, None], scale)
    likelihood[:, (shares.max(axis=0) > 1).ravel()] = 0
    own = np.exp(-0.5 * (odds / WIDTH) ** 2)
    prior = np.outer(np.full(len(rates), 1 / len(rates)), own / own.sum())
    for _ in range(ROUNDS if learnt else 0):
        evidence = np.maximum(likelihood @ prior.ravel().astype(np.float32), SMALLEST)
        spread = prior * (likelihood.T @ (1 / evidence)).reshape(prior.shape) / len(noisy.T)
        of_odds = spread[1:].sum(axis=0)
        of_odds = (1 - EVEN) * of_odds / max(of_odds.sum(), 1e-12) + EVEN / ODDS
        prior = np.outer(spread.sum(axis=1), of_odds)
    evidence = np.maximum(likelihood @ prior.ravel().astype(np.float32), SMALLEST)
    # A feature that no row sets says nothing, whatever the odds are called there.
    held = np.where(rates[:, None] > 0, odds, 0)
    if not centred:
        weighted = (prior * held).ravel().astype(np.float32)
        return np.asarray((likelihood @ weighted) / evidence, dtype=float)
    powers = [(prior * held**power).ravel() for power in (1, 2)]
    mean, square = (
        np.asarray(likelihood @ each.astype(np.float32), dtype=float) / evidence for each in powers
    )
    if not learnt:
        return mean
    common, spread = powers[0].sum(), powers[1].sum() - powers[0].sum() ** 2
    return mean - common * np.clip((square - mean**2) / max(spread, 1e-9), 0, 1)


def _likelihood(noisy: Any, expected: Any, scale: float) -> Any:
    """Of every grid point for every feature, the largest of a feature being 1."""
    total: Any = 0
    for counts, mean in zip(noisy, expected.reshape(2, -1), strict=True):
        # Poisson spread widens the Laplace law to the sum of the two variances.
        wide = np.sqrt(scale**2 + mean / 2)
        far = np.abs(counts[:, None] - mean.astype(np.float32)) / wide.astype(np.float32)
        total = total - far - np.log(2 * wide).astype(np.float32)
    total -= total.max(axis=1, keepdims=True)
    return np.exp(total)
