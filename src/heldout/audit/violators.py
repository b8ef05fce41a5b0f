"""Planted violators: each claims epsilon and is not private. An auditor that misses one is blind.

They are written with NumPy's generator and plain floats: nothing here is for use. Sparse vectors
and threshold tests have a file of their own.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.subjects import VIOLATOR, Pair, Subject, register
from heldout.kernel.loss import Loss

__all__ = ["plant", "snapped"]

Planted = Callable[[Any, float, int, Any], Any]
"""planted(data, epsilon, count, random): so many outcomes on one neighbour."""


def plant(
    name: str, *cases: Pair, note: str, epsilon: str = "1", least: int = 40_000
) -> Callable[[Planted], Planted]:
    """Register a mechanism that claims to be epsilon-private."""

    def keep(planted: Planted) -> Planted:
        def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
            return planted(pair.side(side), float(epsilon), count, np.random.default_rng())

        register(
            Subject(name, VIOLATOR, cases, Loss.pure, draw, note=note, epsilon=epsilon, least=least)
        )
        return planted

    return keep


def snapped(numbers: Any) -> Any:
    """On a public lattice, so that a violator is caught for its own fault and not for its bits."""
    return np.rint(np.asarray(numbers) * 2**10) / 2**10


@plant("half-the-scale", Pair("a count by one", 0, 1), note="noise of half the size")
def _half_the_scale(data: int, epsilon: float, count: int, random: Any) -> Any:
    return data + np.rint(random.laplace(scale=0.5 / epsilon, size=count))


@plant(
    "one-row-for-two",
    Pair("a row changes its cell", (5, 5), (4, 6)),
    note="replace-one neighbours with the sensitivity of add-remove",
)
def _one_row_for_two(data: tuple[int, int], epsilon: float, count: int, random: Any) -> Any:
    return snapped(np.array(data) + random.laplace(scale=1 / epsilon, size=(count, 2)))


def _area(positives: Any, negatives: Any) -> float:
    pairs = np.subtract.outer(np.asarray(positives), np.asarray(negatives))
    return float((pairs > 0).mean()) if pairs.size else 0.5


_EIGHT = [0.1 + 0.1 * i for i in range(8)]


@plant(
    "local-sensitivity",
    Pair("the second positive leaves", ([0.95, 0.93], _EIGHT), ([0.95], _EIGHT)),
    Pair("one of two positives falls", ([0.95, 0.93], _EIGHT), ([0.95, 0.0], _EIGHT)),
    note="AUC with noise scaled by the local sensitivity of the very data",
)
def _local_sensitivity(data: Any, epsilon: float, count: int, random: Any) -> Any:
    positives, negatives = data
    local = 1 / max(1, min(len(positives), len(negatives)))
    noise = random.laplace(scale=local / epsilon, size=count)
    return snapped(_area(positives, negatives) + noise)


@plant(
    "auc-2015-condition",
    Pair("the last positive is replaced", ([0.95], _EIGHT), ([], [*_EIGHT, 0.95])),
    note="the 2015 condition n > 0: without a positive row there is no answer",
)
def _condition_2015(data: Any, epsilon: float, count: int, random: Any) -> Any:
    """1/min(n, m) and 1 agree where n = 1, so the number itself is not what breaks.

    What breaks is the other side of the condition: with n = 0 the area is 0/0. Our releases
    define it as one half and answer.
    """
    positives, negatives = data
    if not positives or not negatives:
        return np.full(count, np.nan)
    smallest = min(len(positives), len(negatives))
    beta = epsilon / 6
    rungs = np.arange(1, smallest + 1)
    smooth = float(np.max(np.exp(-beta * (smallest - rungs)) / rungs))
    noise = 6 * smooth / epsilon * random.standard_cauchy(count)
    return snapped(_area(positives, negatives) + noise)


@plant(
    "noisy-max-with-value",
    Pair("all counts by one", [0] * 6, [1] * 6),
    note="noisy max that also prints the noisy value it compared",
)
def _noisy_max(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    noisy = snapped(np.array(data) + random.laplace(scale=1 / epsilon, size=(count, len(data))))
    return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)


@plant(
    "floating-point-laplace",
    Pair("a count by one", 0.0, 1.0),
    note="the textbook's formula in doubles, which shows in the lowest bits",
)
def _floating_point(data: float, epsilon: float, count: int, random: Any) -> Any:
    uniform = random.random(count) - 0.5
    return data - np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / epsilon


@plant("seeded", Pair("a count by one", 0, 1), note="a generator with a fixed seed")
def _seeded(data: int, epsilon: float, count: int, random: Any) -> Any:
    def one() -> float:
        return float(np.random.default_rng(1).laplace(scale=1 / epsilon))

    return data + np.full(count, one())


@plant(
    "rare-catastrophe",
    Pair("a label by one", 0, 1),
    note="once in a hundred answers the exact number: (epsilon, 0.01), not epsilon",
)
def _rare(data: int, epsilon: float, count: int, random: Any) -> Any:
    noisy = data + np.rint(random.laplace(scale=1 / epsilon, size=count))
    return np.where(random.random(count) < 0.01, 1000 + data, noisy)
