"""A score that an attacker learns: how much more likely an outcome is under one neighbour.

Noise is mostly independent from number to number, so the logarithm of the likelihood ratio is a
sum of one function a number, flat far out. It is learned as such: logistic regression on pieces
between quantiles, for the few numbers that differ at all.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["laplace_ratio", "learned_score", "telling"]

_MOST = 10  # numbers that take part
_LEVELS = (0.03, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.97)
_STEPS = 8
_CLEAR = 2.0  # standard errors that two medians must be apart to count


def telling(first: Any, second: Any) -> list[int]:
    """The numbers whose place or spread differs most between the two, the most telling first."""
    both = np.concatenate([first, second])
    size, rows = len(first), len(both)
    deviation = np.sqrt(size * (rows - size) * (rows + 1) / 12)
    found = []
    for j in range(both.shape[1]):
        numbers = both[:, j]
        off = 0.0
        for each in (numbers, np.abs(numbers - np.median(numbers))):
            ranks = _ranks(each)
            off = max(off, abs(ranks[:size].sum() - size * (rows + 1) / 2) / deviation)
        found.append(off)
    order = np.argsort(found)[::-1][:_MOST]
    return [int(j) for place, j in enumerate(order) if place == 0 or found[j] > 2.0]


def laplace_ratio(first: Any, second: Any) -> Callable[[Any], Any]:
    """The log likelihood ratio as if each number had Laplace noise about its median.

    Two medians and a width are learned of each number, so that it takes many numbers, each of which
    tells a little, where pieces between quantiles would learn nothing but chance.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).laplace(size=(2000, 2))
    >>> score = laplace_ratio(noise + [1, 0], noise)
    >>> score(np.array([[9.0, 5.0], [-9.0, 5.0]])).round().tolist()
    [1.0, -1.0]
    """
    both = [np.median(each, axis=0) for each in (first, second)]
    away = [np.abs(each - middle) for each, middle in zip((first, second), both, strict=True)]
    width = np.maximum(np.concatenate(away).mean(axis=0), 1e-300)
    error = width * np.sqrt(1 / len(first) + 1 / len(second))
    used = np.flatnonzero(np.abs(both[0] - both[1]) > _CLEAR * error)
    (here, there), width = (each[used] for each in both), width[used]

    def ratio(rows: Any) -> Any:
        # A number that is the same in nearly all answers has a width of nearly nothing.
        apart = np.abs(rows[:, used] - there) - np.abs(rows[:, used] - here)
        with np.errstate(over="ignore"):
            return np.round(np.clip(apart / width, -1e6, 1e6).sum(axis=1), 12)

    return ratio


def _ranks(numbers: Any) -> Any:
    """Ranks from 1, the mean of them where numbers are equal."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place.reshape(numbers.shape)]


def learned_score(
    first: Any, second: Any, columns: list[int], *, ridge: float
) -> Callable[[Any], Any]:
    """A score of outcomes that is high where the first neighbour is the more likely one."""
    both = np.concatenate([first, second])
    knots = {j: np.unique(np.quantile(both[:, j], _LEVELS, method="nearest")) for j in columns}

    def pieces(rows: Any) -> Any:
        found = []
        for j, places in knots.items():
            numbers = rows[:, j]
            found += [numbers < places[0], numbers > places[-1]]
            with np.errstate(over="ignore"):
                found += [
                    np.clip((numbers - low) / (high - low), 0, 1) for low, high in pairwise(places)
                ]
        return np.stack(found, axis=1).astype(np.float64)

    raw = pieces(both)
    centre, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-3

    def design(rows: Any) -> Any:
        return np.column_stack([np.ones(len(rows)), (pieces(rows) - centre) / spread])

    table = design(both)
    labels = np.repeat([1.0, 0.0], [len(first), len(second)])
    penalty = np.full(table.shape[1], ridge * len(both))
    penalty[0] = 1e-9
    weights = np.zeros(table.shape[1])
    for _ in range(_STEPS):  # Newton's method, which the penalty keeps from running away
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (chance - labels) + penalty * weights
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table + np.diag(penalty)
        weights = weights - np.linalg.solve(curvature, slope)
    return lambda rows: np.round(design(rows) @ weights, 12)
