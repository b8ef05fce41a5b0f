"""How features are selected, by name: which statistic, which noise, and what is read off it.

A method makes a `Plan` of public facts alone. To add one: a function under `@_method`, a proof if
it has noise of its own, and its line in the table of docs/features.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from heldout.arguments.rules import Number, OneOf, Whole
from heldout.data.feature_matrix import FeatureRows
from heldout.errors import ArgumentError
from heldout.kernel.noise import DiscreteLaplace, Mechanism
from heldout.kernel.noise.sparse_vector import SparseVector
from heldout.kernel.noise.top_k import NoisyTopK, PermuteAndFlip
from heldout.kernel.statistic import Statistic
from heldout.questions.features.clusters import clusters
from heldout.questions.features.feature_scores import FeatureCounts, FeatureScores, Score

__all__ = ["METHODS", "Asked", "Chosen", "Plan", "plan_selection"]

FEW = 20
"""How many features a method that needs a number picks if none is given."""
SPURIOUS = 10
"""How many features without any row a default threshold lets through by chance, about."""


@dataclass(frozen=True)
class Asked:
    """What an analyst asks for; all of it public."""

    score: Score
    epsilon: Fraction
    k: int | None
    threshold: float | None


@dataclass(frozen=True)
class Chosen:
    """Features by their numbers, best first, and their noisy scores where those were released."""

    indices: Any
    scores: Any = None
    half_width: Callable[[float], float] | None = None
    """Half the width of a score's noise interval at a level."""


@dataclass(frozen=True)
class Plan:
    """One selection before it is paid: what is asked of the rows, and how the answer is read.

    It fits a step of `heldout.kernel.door.Staged` as well: `Step(plan.statistic, plan.mechanism)`.
    """

    method: str
    statistic: Statistic
    mechanism: Mechanism
    read: Callable[[Any], Chosen]
    k: int | None
    threshold: float | None


Maker = Callable[[FeatureRows, Asked], Plan]
METHODS: dict[str, Maker] = {}


def _method(name: str) -> Callable[[Maker], Maker]:
    def keep(make: Maker) -> Maker:
        METHODS[name] = make
        return make

    return keep


def plan_selection(
    private: FeatureRows,
    *,
    epsilon: Fraction,
    method: str,
    score: Score,
    k: int | None = None,
    threshold: float | None = None,
) -> Plan:
    """A selection by one of `METHODS`, planned from public facts.

    Claim:       pure DP, epsilon, for everything that a `Selection` shows.   [claim: selection]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the score's, for one feature or for all, as the mechanism needs it.
    Numerics:    exact; what is read off noisy integers may be doubles.
    Refuses:     methods and numbers that it does not know; what the score refuses.
    Reference:   proofs/selection.md.
    Cost:        one pass over the entries and 8 microseconds a feature; `permute-and-flip` k times.
    """
    OneOf(METHODS)(method, "method")
    if epsilon <= 0:
        raise ArgumentError(f"epsilon must be more than 0, got {epsilon}.")
    if threshold is not None:
        threshold = Number(-1e15, 1e15)(threshold, "threshold")
    most = None if k is None else min(Whole()(k, "k"), private.features)
    return METHODS[method](private, Asked(score, epsilon, most, threshold))


@_method("noisy-counts")
def _noisy_counts(private: FeatureRows, asked: Asked) -> Plan:
    """Noise on the counts; the score of noisy counts is free."""
    return _from_counts("noisy-counts", private, asked, _best)


@_method("cluster")
def _cluster(private: FeatureRows, asked: Asked) -> Plan:
    """The mended Cluster Selection: noise on the counts first, then clusters of what came out."""

    def whole_clusters(scores: Any, k: int | None, threshold: float | None) -> Any:
        level = clusters(scores)
        if threshold is not None:
            level = np.where(level >= threshold, level, -np.inf)
        return _best(np.where(np.isinf(level), -np.inf, scores), k, None, order=level)

    return _from_counts("cluster", private, asked, whole_clusters)


def _from_counts(name: str, private: FeatureRows, asked: Asked, pick: Any) -> Plan:
    by_label = asked.score.needs_label
    statistic = FeatureCounts(private.features, private.features_per_row, by_label)
    mechanism = DiscreteLaplace.for_epsilon(
        asked.epsilon,
        l1_sensitivity=statistic.sensitivity(private.protection),
        dimension=statistic.dimension,
    )
    k, threshold = asked.k, asked.threshold
    if k is None and threshold is None:
        if asked.score.needs_rows:  # of noise alone these scores are not near 0
            k = min(FEW, private.features)
        else:
            threshold = _beyond_chance(mechanism.float_scale, private.features, difference=by_label)

    def read(noisy: Any) -> Chosen:
        scores = asked.score.of_noisy(statistic.understood(noisy))
        indices = pick(scores, k, threshold)
        half_width = None
        if not by_label:
            half_width = lambda level: float(mechanism.error_quantile(level))  # noqa: E731
        return Chosen(indices, scores[indices], half_width)

    return Plan(name, statistic, mechanism, read, k, threshold)


@_method("score-perturbation")
def _score_perturbation(private: FeatureRows, asked: Asked) -> Plan:
    """Noise on the scores themselves, all of them released."""
    score = asked.score
    mechanism = DiscreteLaplace.for_epsilon(
        asked.epsilon,
        l1_sensitivity=score.of_all(
            private.protection,
            features=private.features,
            features_per_row=private.features_per_row,
            most_rows=private.row_bound,
        ),
        dimension=private.features,
    )
    k, threshold = asked.k, asked.threshold
    if k is None and threshold is None:
        if score.needs_rows:
            k = min(FEW, private.features)
        else:
            threshold = _beyond_chance(mechanism.float_scale / score.cells, private.features)

    def read(noisy: Any) -> Chosen:
        scores = np.asarray(noisy, dtype=float) / score.cells
        indices = _best(scores, k, threshold)
        return Chosen(
            indices,
            scores[indices],
            lambda level: mechanism.error_quantile(level) / score.cells,
        )

    return Plan(
        "score-perturbation",
        FeatureScores(score, private.row_bound),
        mechanism,
        read,
        k,
        threshold,
    )


@_method("sparse-vector")
def _sparse_vector(private: FeatureRows, asked: Asked) -> Plan:
    """Features one by one against a threshold, in a public order, until k were above it."""
    score, k = asked.score, asked.k or min(FEW, private.features)
    each = score.of_each(private.protection, most_rows=private.row_bound)
    monotone = score.monotone(private.protection)
    threshold = asked.threshold
    if threshold is None:
        quiet = SparseVector(asked.epsilon, each, k, monotone)
        threshold = _beyond_chance(float(quiet.query_scale) / score.cells, private.features)
    test = SparseVector(asked.epsilon, each, k, monotone, math.ceil(threshold * score.cells))
    order = public_order(private.features)

    def read(answers: Any) -> Chosen:
        found = [place for place, above in zip(order, answers, strict=False) if above]
        return Chosen(np.array(found, dtype=np.int64))

    statistic = FeatureScores(score, private.row_bound, tuple(order))
    return Plan("sparse-vector", statistic, test, read, k, threshold)


def public_order(features: int) -> list[int]:
    """Return the features in the order of a hash of their numbers.

    In the order of their numbers the last ones would never have a turn. The order is public and the
    same each time, so that a stored answer is read as it was drawn.

    >>> public_order(6) == public_order(6), sorted(public_order(3))
    (True, [0, 1, 2])
    """
    return sorted(range(features), key=lambda feature: sha256(b"%d" % feature).digest())


@_method("noisy-top-k")
def _noisy_top_k(private: FeatureRows, asked: Asked) -> Plan:
    """The names of the k best scores after geometric noise."""
    return _names("noisy-top-k", NoisyTopK, private, asked)


@_method("permute-and-flip")
def _permute_and_flip(private: FeatureRows, asked: Asked) -> Plan:
    """The names of k scores, each drawn by permute-and-flip."""
    return _names("permute-and-flip", PermuteAndFlip, private, asked)


def _names(
    name: str, kind: type[NoisyTopK] | type[PermuteAndFlip], private: FeatureRows, asked: Asked
) -> Plan:
    if asked.threshold is not None:
        raise ArgumentError(
            f"threshold must be left out for {name}, which picks k features. Use noisy-counts."
        )
    score, k = asked.score, asked.k or min(FEW, private.features)
    mechanism = kind(
        asked.epsilon,
        score.of_each(private.protection, most_rows=private.row_bound),
        k,
        score.monotone(private.protection),
    )

    def read(places: Any) -> Chosen:
        return Chosen(np.array(places, dtype=np.int64))

    return Plan(name, FeatureScores(score, private.row_bound), mechanism, read, k, None)


def _best(scores: Any, k: int | None, threshold: float | None, *, order: Any = None) -> Any:
    """The features at or above the threshold, at most k of them, best first."""
    ranked = np.lexsort((-scores, -(scores if order is None else order)))
    least = -np.inf if threshold is None else threshold
    kept = ranked[(scores[ranked] >= least) & (scores[ranked] > -np.inf)]
    return kept if k is None else kept[:k]


def _beyond_chance(scale: float, features: int, *, difference: bool = False) -> float:
    """A level that about `SPURIOUS` of so many scores of nothing but noise exceed.

    P(noise > x) is exp(-x/scale)/2. For the absolute difference of two noisy counts it is
    (2 + x/scale)/2 times the exponential.
    """
    tail = min(0.4, SPURIOUS / features)
    x = -math.log(2 * tail)
    for _ in range(40 * difference):
        x = math.log((2 + x) / (2 * tail))
    return max(1.0, scale * x)
