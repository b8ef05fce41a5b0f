"""Planted violators, second part: threshold tests and selections that were published or used.

The numbers of the algorithms are those of Lyu, Su and Li 2017, "Understanding the sparse vector
technique for differential privacy", whose Algorithm 1 is the correct one.
"""

from typing import Any

import numpy as np

from heldout.audit.subjects import Pair
from heldout.audit.violators import plant, snapped
from heldout.questions.features.selection import (
    cluster_selection_2014,
    noisy_cut,
    private_threshold_testing,
)

__all__ = ["sparse_vector"]


def _laplace(random: Any) -> Any:
    return lambda scale, shape: random.laplace(scale=scale, size=shape)


def sparse_vector(
    queries: Any,
    count: int,
    random: Any,
    *,
    threshold_scale: float,
    query_scale: float,
    limit: int | None,
    with_value: bool = False,
) -> Any:
    """Rows of 1 (above), 0 (below) and -1 (stopped), for a threshold of 0.

    With `threshold_scale` 1/e1, `query_scale` 2 c/e2 and `limit` c it is Lyu et al.'s Algorithm 1,
    which is (e1 + e2)-private for queries of sensitivity 1.
    """
    values = np.asarray(queries, dtype=float)
    size = (count, values.size)
    threshold = random.laplace(scale=1.0, size=(count, 1)) * threshold_scale
    noisy = snapped(values + random.laplace(scale=1.0, size=size) * query_scale)
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
def _threshold_testing(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    return private_threshold_testing(
        data, threshold=5, epsilon=epsilon, noise=_laplace(random), count=count
    )


def _opposite(half: int) -> Pair:
    """0^c 1^c against 1^c 0^c."""
    return Pair("0^c 1^c against 1^c 0^c", [0] * half + [1] * half, [1] * half + [0] * half)


@plant(
    "noisy-cut",
    _opposite(8),
    note="noise on threshold and counts, and no limit on the positive answers",
)
def _noisy_cut(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    return noisy_cut(data, threshold=0, epsilon=epsilon, noise=_laplace(random), count=count)


@plant(
    "cluster-selection-2014",
    Pair("a row with all ten features on the border", 4, 5),
    note="Stoddard et al. 2014, Algorithm 1: sensitivities of k-means over rows, used for features",
)
def _cluster_selection(border: int, epsilon: float, count: int, random: Any) -> Any:
    """One round, two centres at 0 and 9; ten features have `border` rows each and one has 9."""
    return cluster_selection_2014(
        np.array([[9.0]] + [[float(border)]] * 10),
        centres=[[0.0], [9.0]],
        threshold=5.0,
        epsilon=epsilon,
        features_per_row=10,
        noise=_laplace(random),
        count=count,
    )[:, :2]


@plant(
    "sparse-vector-prints-value",
    Pair("m below, then one", [0] * 6 + [1], [1] * 6 + [0]),
    note="Lyu et al. Algorithm 3: the noisy answer that was compared is printed",
    epsilon="4",
    least=160_000,
)
def _prints_value(data: list[int], epsilon: float, count: int, random: Any) -> Any:
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
def _unscaled(data: list[int], epsilon: float, count: int, random: Any) -> Any:
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
def _without_query_noise(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    return sparse_vector(data, count, random, threshold_scale=1 / epsilon, query_scale=0.0, limit=1)


@plant(
    "sparse-vector-without-limit",
    _opposite(8),
    note="Lyu et al. Algorithm 6: every positive answer is free",
)
def _without_limit(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    return sparse_vector(
        data, count, random, threshold_scale=2 / epsilon, query_scale=2 / epsilon, limit=None
    )


@plant(
    "sparse-vector-without-threshold-noise",
    Pair("all below, by one", [0] * 12, [-1] * 12),
    note="noise on the queries alone: every answer 'below' costs",
)
def _without_threshold_noise(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    return sparse_vector(data, count, random, threshold_scale=0.0, query_scale=2 / epsilon, limit=1)
