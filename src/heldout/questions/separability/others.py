"""The scores that people know from elsewhere: detection AUC and the propensity score's pMSE."""

from typing import Any

import numpy as np


def auc(scores: Any, is_true: Any) -> float:
    """The chance that a true row scores above a privatized one; a tie counts half.

    >>> auc(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]))
    0.75
    """
    true, private = np.sort(scores[is_true]), np.sort(scores[~is_true])
    below = np.searchsorted(private, true, side="left") + np.searchsorted(private, true, "right")
    return float(below.sum()) / (2 * len(true) * len(private))


def mean_squared_propensity(scores: Any, is_true: Any) -> float:
    """pMSE (Woo et al. 2009): how far the estimated probabilities lie from 1/2, squared.

    Both sides weigh the same, so 1/2 is what a row has that cannot be told apart. 1/4 is the most.
    """
    away = (np.asarray(scores) - 0.5) ** 2
    return float((away[is_true].mean() + away[~is_true].mean()) / 2)
