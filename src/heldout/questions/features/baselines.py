"""Published selections that are not private, kept for comparison and as a warning.

Each claims epsilon and does not keep it: docs/errata.md shows how. They refuse to run unless they
are called with `not_private=True`, charge no ledger (there is nothing to charge: the loss has no
bound), and mark what they give. The auditor catches each of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["BASELINES", "cluster_selection_2014", "noisy_cut", "private_threshold_testing"]

Noise = Callable[[float, tuple[int, ...]], Any]
"""noise(scale, shape): so much Laplace noise, from whoever calls."""


def private_threshold_testing(
    scores: Any, *, threshold: float, epsilon: float, noise: Noise, sensitivity: float = 1,
    count: int = 1, monotone: bool = False,
) -> Any:  # fmt: skip
    """Stoddard et al. 2014, Algorithm 2: un-noised scores against one noisy threshold.

    Rows of 0 and 1, one for each of `count` answers. Claimed: epsilon, by theorem 2 (or corollary 1
    with `monotone`). True: no bound at all.
    """
    scale = (1 if monotone else 2) * sensitivity / epsilon
    return (np.asarray(scores) >= threshold + noise(scale, (count, 1))).astype(float)


def noisy_cut(
    scores: Any, *, threshold: float, epsilon: float, noise: Noise, sensitivity: float = 1,
    count: int = 1,
) -> Any:  # fmt: skip
    """Lee and Clifton 2014: noise on threshold and scores, and no limit on the positive answers."""
    scores = np.asarray(scores)
    scale = 2 * sensitivity / epsilon
    noisy = scores + noise(scale, (count, len(scores)))
    return (noisy >= threshold + noise(scale, (count, 1))).astype(float)


def cluster_selection_2014(
    points: Any, *, centres: Any, threshold: float, epsilon: float, features_per_row: int,
    noise: Noise, rounds: int = 1, count: int = 1, difference: bool = False,
) -> Any:  # fmt: skip
    """Stoddard et al. 2014, Algorithm 1: private k-means of the features, whole clusters kept.

    `points` has a row of counts for each feature, whose sum is its score, or with `difference` how
    far its two counts are apart. Each round books half of its share for the sizes of the clusters,
    as if one row moved them by 1, and half for their sums, as if by `features_per_row`. In truth a
    row moves a feature to another cluster with all it has.
    """
    points = np.asarray(points, dtype=float)
    share = 2 * rounds / epsilon
    middle = np.repeat(np.array(centres, dtype=float)[None], count, axis=0)
    for _ in range(rounds):
        distance = ((points[None, :, None, :] - middle[:, None, :, :]) ** 2).sum(axis=3)
        nearest = distance.argmin(axis=2)
        member = nearest[:, :, None] == np.arange(middle.shape[1])
        sizes = member.sum(axis=1) + noise(share, middle.shape[:2])
        sums = np.einsum("anc,np->acp", member, points)
        sums = sums + noise(share * features_per_row, middle.shape)
        middle = sums / np.maximum(sizes, 1)[:, :, None]
    scores = np.abs(np.diff(middle, axis=2)[..., 0]) if difference else middle.sum(axis=2)
    kept = scores >= threshold
    return np.take_along_axis(kept, nearest, axis=1).astype(float)


BASELINES = {
    "private-threshold-testing": "un-noised scores against one noisy threshold",
    "noisy-cut": "no limit on the positive answers",
    "cluster-selection-2014": "k-means of features with the sensitivities of k-means of rows",
}
