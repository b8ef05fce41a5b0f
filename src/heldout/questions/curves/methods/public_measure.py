"""A public guess of where scores lie: half evenly over the range, half by their log odds."""

import math
from functools import lru_cache
from typing import Final

import numpy as np

from heldout.arrays import Floats, Ints

__all__ = ["cumulative_measure", "heap_weights", "public_edges"]

_BY_LOG_ODDS: Final = 0.45
_LARGEST_PARTS: Final = 100  # percents are the finest fractions that count as simple
_HEAP_STEPS: Final = 2**31
_FURTHEST: Final = 7.0  # log odds; a probability of 0.0009 at the ends


@lru_cache(maxsize=16)
def cumulative_measure(points: int) -> Floats:
    """The share of the measure below each cut 0 .. points of the grid, from 0 to 1.

    Scores of models are seldom even: probabilities pile up near 0 and 1. So a part of the measure
    is even in the log odds of the place in the range. Public, whatever the rows are.

    >>> cumulative_measure(5).round(2).tolist()
    [0.0, 0.23, 0.41, 0.59, 0.77, 1.0]
    """
    place = np.arange(points + 1) / max(points - 1, 1)
    inner = np.clip(place - 0.5 / max(points - 1, 1), 1e-9, 1 - 1e-9)
    odds = np.clip(np.log(inner / (1 - inner)), -_FURTHEST, _FURTHEST)
    share = (1 - _BY_LOG_ODDS) * inner + _BY_LOG_ODDS * (odds + _FURTHEST) / (2 * _FURTHEST)
    share[0], share[-1] = 0.0, 1.0
    share.setflags(write=False)
    return share


def public_edges(points: int, *, bins: int) -> Ints:
    """Edges of at most `bins` bins of equal public measure.

    >>> public_edges(65537, bins=4).tolist()
    [0, 9689, 32769, 55849, 65537]
    """
    share = cumulative_measure(points)
    inner = np.searchsorted(share, np.arange(1, bins) / bins, side="left")
    return np.unique(np.concatenate([[0], np.clip(inner, 1, points - 1), [points]]))


@lru_cache(maxsize=16)
def heap_weights(points: int) -> Ints:
    """Whole weights of the grid points: where scores pile up, as far as that is known beforehand.

    Half of the weight goes by the public measure. The other half lies at simple fractions p/q of
    the range, where votes, deciles and rounded scores are: the less, the larger q is.

    >>> weights = heap_weights(65537)
    >>> bool(weights[32768] > weights[21845] > weights[6554] > weights[6555])
    True
    """
    anywhere = np.diff(cumulative_measure(points))
    simple = np.zeros(points)
    for below in range(1, _LARGEST_PARTS + 1):
        for part in range(below + 1):
            if math.gcd(part, below) == 1:
                simple[(2 * part * (points - 1) + below) // (2 * below)] += below**-2.5
    share = anywhere / anywhere.sum() + simple / simple.sum()
    weights: Ints = np.maximum(np.rint(share * _HEAP_STEPS), 1).astype(np.int64)
    weights.setflags(write=False)
    return weights
