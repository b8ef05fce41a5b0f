"""Planted violators: each claims epsilon and is not private. An auditor that misses one is blind.

They are written with NumPy's generator and plain floats: nothing here is for use. Threshold tests
and selections were published or used; the numbers of their algorithms are those of Lyu, Su and Li
2017, "Understanding the sparse vector technique for differential privacy", whose Algorithm 1 is the
correct one.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from heldout.audit.events import Floats
from heldout.audit.subjects import VIOLATOR, Pair, Subject, register
from heldout.kernel.loss import Loss
from heldout.questions.features.selection import (
    cluster_selection_2014,
    noisy_cut,
    private_threshold_testing,
)

Planted = Callable[[Any, float, int, Generator], Floats]
"""planted(data, epsilon, count, random): so many outcomes on one neighbour."""


def plant(
    name: str, *cases: Pair, note: str, epsilon: str = "1", least: int = 40_000
) -> Callable[[Planted], Planted]:
    """Register a mechanism that claims to be epsilon-private."""

    def keep(planted: Planted) -> Planted:
        def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
            return planted(pair.side(side), float(epsilon), count, np.random.default_rng())

        register(
            Subject(name, VIOLATOR, cases, Loss.pure, draw, note=note, epsilon=epsilon, least=least)
        )
        return planted

    return keep


def snap(numbers: npt.ArrayLike) -> Floats:
    """Round to a public lattice: a violator is caught for its own fault, not for its bits."""
    return np.asarray(np.rint(np.asarray(numbers) * 2**10) / 2**10)


@plant("half-the-scale", Pair("a count by one", 0, 1), note="noise of half the size")
def _half_the_scale(data: int, epsilon: float, count: int, random: Generator) -> Floats:
    return data + np.rint(random.laplace(scale=0.5 / epsilon, size=count))


@plant(
    "one-row-for-two",
    Pair("a row changes its cell", (5, 5), (4, 6)),
    note="replace-one neighbours with the sensitivity of add-remove",
)
def _one_row_for_two(
    data: tuple[int, int], epsilon: float, count: int, random: Generator
) -> Floats:
    return snap(np.array(data) + random.laplace(scale=1 / epsilon, size=(count, 2)))


def _area(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> float:
    pairs = np.subtract.outer(np.asarray(positives), np.asarray(negatives))
    return float((pairs > 0).mean()) if pairs.size else 0.5


_EIGHT = [0.1 + 0.1 * i for i in range(8)]


@plant(
    "local-sensitivity",
    Pair("the second positive leaves", ([0.95, 0.93], _EIGHT), ([0.95], _EIGHT)),
    Pair("one of two positives falls", ([0.95, 0.93], _EIGHT), ([0.95, 0.0], _EIGHT)),
    note="AUC with noise scaled by the local sensitivity of the very data",
)
def _local_sensitivity(data: Any, epsilon: float, count: int, random: Generator) -> Floats:
    positives, negatives = data
    local = 1 / max(1, min(len(positives), len(negatives)))
    noise = random.laplace(scale=local / epsilon, size=count)
    return snap(_area(positives, negatives) + noise)


@plant(
    "auc-2015-condition",
    Pair("the last positive is replaced", ([0.95], _EIGHT), ([], [*_EIGHT, 0.95])),
    note="the 2015 condition n > 0: without a positive row there is no answer",
)
def _condition_2015(data: Any, epsilon: float, count: int, random: Generator) -> Floats:
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
    return snap(_area(positives, negatives) + noise)


@plant(
    "gaussian-by-the-largest-entry",
    Pair("nine entries by one", [0] * 9, [1] * 9),
    note="Gaussian noise for how far one entry moves, where nine do",
)
def _gaussian_by_the_largest_entry(
    data: list[int], epsilon: float, count: int, random: Generator
) -> Floats:
    return data + np.rint(random.normal(scale=1.3 / epsilon, size=(count, len(data))))


@plant(
    "noisy-max-with-value",
    Pair("all counts by one", [0] * 6, [1] * 6),
    note="noisy max that also prints the noisy value it compared",
)
def _noisy_max(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    noisy = snap(np.array(data) + random.laplace(scale=1 / epsilon, size=(count, len(data))))
    return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)


@plant(
    "floating-point-laplace",
    Pair("a count by one", 0.0, 1.0),
    note="the textbook's formula in doubles, which shows in the lowest bits",
)
def _floating_point(data: float, epsilon: float, count: int, random: Generator) -> Floats:
    uniform = random.random(count) - 0.5
    return np.asarray(data - np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / epsilon)


@plant("seeded", Pair("a count by one", 0, 1), note="a generator with a fixed seed")
def _seeded(data: int, epsilon: float, count: int, random: Generator) -> Floats:
    def one() -> float:
        return float(np.random.default_rng(1).laplace(scale=1 / epsilon))

    return data + np.full(count, one())


@plant(
    "rare-catastrophe",
    Pair("a label by one", 0, 1),
    note="once in a hundred answers the exact number: (epsilon, 0.01), not epsilon",
)
def _rare(data: int, epsilon: float, count: int, random: Generator) -> Floats:
    noisy = data + np.rint(random.laplace(scale=1 / epsilon, size=count))
    return np.where(random.random(count) < 0.01, 1000 + data, noisy)


def _laplace(random: Generator) -> Callable[[float, tuple[int, ...]], Floats]:
    return lambda scale, shape: random.laplace(scale=scale, size=shape)


def sparse_vector(
    queries: npt.ArrayLike,
    count: int,
    random: Generator,
    *,
    threshold_scale: float,
    query_scale: float,
    limit: int | None,
    with_value: bool = False,
) -> Floats:
    """Return rows of 1 (above), 0 (below) and -1 (stopped), for a threshold of 0.

    With `threshold_scale` 1/e1, `query_scale` 2 c/e2 and `limit` c it is Lyu et al.'s Algorithm 1,
    which is (e1 + e2)-private for queries of sensitivity 1.
    """
    values = np.asarray(queries, dtype=float)
    size = (count, values.size)
    threshold = random.laplace(scale=1.0, size=(count, 1)) * threshold_scale
    noisy = snap(values + random.laplace(scale=1.0, size=size) * query_scale)
    above = (noisy >= threshold).astype(float)
    if limit is not None:
        before = np.cumsum(above, axis=1) - above
        stopped = before >= limit
        above, noisy = np.where(stopped, -1.0, above), np.where(stopped, np.nan, noisy)
    return np.where(above == 1, noisy, np.nan) if with_value else above


@plant(
    "private-threshold-testing",
    Pair("a row with the first feature and not the second", [5, 5], [6, 5]),
    note="Stoddard et al. 2014, Algorithm 2: un-noised counts against one noisy threshold",
)
def _threshold_testing(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    above = private_threshold_testing(
        data, threshold=5, epsilon=epsilon, noise=_laplace(random), count=count
    )
    return np.asarray(above)


def _opposite(half: int) -> Pair:
    """Return queries 0^c 1^c against 1^c 0^c."""
    return Pair("0^c 1^c against 1^c 0^c", [0] * half + [1] * half, [1] * half + [0] * half)


@plant(
    "noisy-cut",
    _opposite(8),
    note="noise on threshold and counts, and no limit on the positive answers",
)
def _noisy_cut(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    above = noisy_cut(data, threshold=0, epsilon=epsilon, noise=_laplace(random), count=count)
    return np.asarray(above)


@plant(
    "cluster-selection-2014",
    Pair("a row with all ten features on the border", 4, 5),
    note="Stoddard et al. 2014, Algorithm 1: sensitivities of k-means over rows, used for features",
)
def _cluster_selection(border: int, epsilon: float, count: int, random: Generator) -> Floats:
    """One round, two centres at 0 and 9; ten features have `border` rows each and one has 9."""
    chosen = cluster_selection_2014(
        np.array([[9.0]] + [[float(border)]] * 10),
        centres=[[0.0], [9.0]],
        threshold=5.0,
        epsilon=epsilon,
        features_per_row=10,
        noise=_laplace(random),
        count=count,
    )
    return np.asarray(chosen[:, :2])


@plant(
    "sparse-vector-prints-value",
    Pair("m below, then one", [0] * 6 + [1], [1] * 6 + [0]),
    note="Lyu et al. Algorithm 3: the noisy answer that was compared is printed",
    epsilon="4",
    least=160_000,
)
def _prints_value(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    shown = sparse_vector(
        data,
        count,
        random,
        threshold_scale=2 / epsilon,
        query_scale=2 / epsilon,
        limit=1,
        with_value=True,
    )
    first = np.argmax(~np.isnan(shown), axis=1)
    return np.stack([first, shown[np.arange(count), first]], axis=1)


@plant(
    "sparse-vector-unscaled",
    _opposite(8),
    note="Lyu et al. Algorithm 4: the noise of a query does not grow with the limit c",
)
def _unscaled(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    half = len(data) // 2
    return sparse_vector(
        data,
        count,
        random,
        threshold_scale=4 / epsilon,
        query_scale=4 / (3 * epsilon),
        limit=half,
    )


@plant(
    "sparse-vector-without-query-noise",
    Pair("0 1 against 1 0", [0, 1], [1, 0]),
    note="Lyu et al. Algorithm 5: noise on the threshold alone, with or without a limit",
)
def _without_query_noise(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    return sparse_vector(data, count, random, threshold_scale=1 / epsilon, query_scale=0.0, limit=1)


@plant(
    "sparse-vector-without-limit",
    _opposite(8),
    note="Lyu et al. Algorithm 6: every positive answer is free",
)
def _without_limit(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    return sparse_vector(
        data, count, random, threshold_scale=2 / epsilon, query_scale=2 / epsilon, limit=None
    )


@plant(
    "sparse-vector-without-threshold-noise",
    Pair("all below, by one", [0] * 12, [-1] * 12),
    note="noise on the queries alone: every answer 'below' costs",
)
def _without_threshold_noise(
    data: list[int], epsilon: float, count: int, random: Generator
) -> Floats:
    return sparse_vector(data, count, random, threshold_scale=0.0, query_scale=2 / epsilon, limit=1)


@plant(
    "board-that-redraws-its-bar",
    Pair("all right about one row more", [-2] * 40, [-1] * 40),
    note="a leaderboard whose bar is drawn anew for each submission: every 'no' costs",
    epsilon="4",
    least=100_000,
)
def _redrawn(data: list[int], epsilon: float, count: int, random: Generator) -> Floats:
    values = np.asarray(data, dtype=float)
    size = (count, values.size)
    bar = random.laplace(scale=2 / epsilon, size=size)
    above = values + random.laplace(scale=4 / epsilon, size=size) >= bar
    first = above.cumsum(axis=1) - above == 0
    return np.where(first, above, -1.0)
