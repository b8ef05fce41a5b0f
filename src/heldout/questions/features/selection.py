"""Select features, and show the selection to people, to machines and to the next step."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import Number, OneOf, Whole, as_array
from heldout.arrays import Floats, Ints
from heldout.data.feature_matrix import FeatureMatrix, FeatureRows
from heldout.drawing.page import card
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure, Release, checked_level
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace, Mechanism
from heldout.kernel.noise.selection import NoisyTopK, PermuteAndFlip, SparseVector
from heldout.kernel.statistic import Statistic
from heldout.questions.features.statistics import (
    FeatureCounts,
    FeatureScores,
    InformationGain,
    Score,
    SparseRows,
)
from heldout.questions.features.tuned import FEW_FEATURES, SPURIOUS


def clusters(scores: Floats, *, centres: int = 8, rounds: int = 25) -> Floats:
    """Return for each score the mean of its cluster, by k-means in one dimension.

    Of released numbers, so it costs nothing. The centres start at the quantiles of the upper half
    on a logarithmic scale: most features are rare, and a few are worth telling apart.

    >>> clusters(np.array([0.0, 1.0, 2.0, 100.0, 104.0]), centres=2).tolist()
    [1.0, 1.0, 1.0, 102.0, 102.0]
    """
    scores = np.asarray(scores, dtype=float)
    top, low = float(scores.max()), float(np.median(scores))
    if top <= low:
        return np.full_like(scores, scores.mean())
    middle = low + (top - low) * np.concatenate([[0.0], np.logspace(-2, 0, centres - 1)])
    nearest = np.zeros(len(scores), dtype=np.intp)
    for _ in range(rounds):
        nearest = np.searchsorted((middle[1:] + middle[:-1]) / 2, scores)
        sizes = np.bincount(nearest, minlength=len(middle))
        sums = np.bincount(nearest, weights=scores, minlength=len(middle))
        moved = np.where(sizes > 0, sums / np.maximum(sizes, 1), middle)
        if np.array_equal(moved, middle):
            break
        middle = np.sort(moved)
    level: Floats = middle[nearest]
    return level


@dataclass(frozen=True)
class Asked:
    """Holds what an analyst asks for; all of it public."""

    score: Score
    epsilon: Fraction
    k: int | None
    threshold: float | None


@dataclass(frozen=True)
class Chosen:
    """Features by their numbers, best first, and their noisy scores where those were released."""

    indices: Ints
    scores: Floats | None = None
    half_width: Callable[[float], float] | None = None
    """Half the width of a score's noise interval at a level."""


@dataclass(frozen=True)
class SelectionPlan:
    """One selection before it is paid: what is asked of the rows, and how the answer is read.

    It fits a step of `heldout.kernel.door.Staged` as well: `Step(plan.statistic, plan.mechanism)`.
    """

    method: str
    statistic: Statistic[Any]
    mechanism: Mechanism[Any, Any]
    read: Callable[[Any], Chosen]
    k: int | None
    threshold: float | None


Maker = Callable[[FeatureRows, Asked], SelectionPlan]
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
) -> SelectionPlan:
    """A selection by one of `METHODS`, planned from public facts.

    Claim:       pure DP, epsilon, for everything that a `Selection` shows.   [claim: selection]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the score's, for one feature or for all, as the mechanism needs it.
    Numerics:    exact; what is read off noisy integers may be doubles.
    Refuses:     methods and numbers that it does not know; what the score refuses.
    Reference:   proofs/selection.md.
    Cost:        one pass over entries and 8 microseconds per feature; `permute-and-flip` k times.
    """
    OneOf(METHODS)(method, "method")
    if epsilon <= 0:
        raise ArgumentError(f"epsilon must be more than 0, got {epsilon}.")
    if threshold is not None:
        threshold = Number(-1e15, 1e15)(threshold, "threshold")
    most = None if k is None else min(Whole()(k, "k"), private.features)
    return METHODS[method](private, Asked(score, epsilon, most, threshold))


@_method("noisy-counts")
def _noisy_counts(private: FeatureRows, asked: Asked) -> SelectionPlan:
    """Noise on the counts; the score of noisy counts is free."""
    return _from_counts("noisy-counts", private, asked, _best)


@_method("cluster")
def _cluster(private: FeatureRows, asked: Asked) -> SelectionPlan:
    """The mended Cluster Selection: noise on the counts first, then clusters of what came out."""

    def pick_clusters(scores: Floats, k: int | None, threshold: float | None) -> Ints:
        level = clusters(scores)
        if threshold is not None:
            level = np.where(level >= threshold, level, -np.inf)
        return _best(np.where(np.isinf(level), -np.inf, scores), k, None, order=level)

    return _from_counts("cluster", private, asked, pick_clusters)


class _Pick(Protocol):
    """A choice among noisy scores: at most `k` features, or those at the threshold."""

    def __call__(self, scores: Floats, k: int | None, threshold: float | None) -> Ints: ...


def _from_counts(name: str, private: FeatureRows, asked: Asked, pick: _Pick) -> SelectionPlan:
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
            k = min(FEW_FEATURES, private.features)
        else:
            threshold = _beyond_chance(mechanism.float_scale, private.features, difference=by_label)

    def read(noisy: ArrayLike) -> Chosen:
        scores = asked.score.of_noisy(statistic.understood(noisy))
        indices = pick(scores, k, threshold)
        half_width = None
        if not by_label:
            half_width = lambda level: float(mechanism.error_quantile(level))  # noqa: E731
        return Chosen(indices, scores[indices], half_width)

    return SelectionPlan(name, statistic, mechanism, read, k, threshold)


@_method("score-perturbation")
def _score_perturbation(private: FeatureRows, asked: Asked) -> SelectionPlan:
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
            k = min(FEW_FEATURES, private.features)
        else:
            threshold = _beyond_chance(mechanism.float_scale / score.cells, private.features)

    def read(noisy: ArrayLike) -> Chosen:
        scores = np.asarray(noisy, dtype=float) / score.cells
        indices = _best(scores, k, threshold)
        return Chosen(
            indices,
            scores[indices],
            lambda level: mechanism.error_quantile(level) / score.cells,
        )

    return SelectionPlan(
        "score-perturbation",
        FeatureScores(score, private.row_bound),
        mechanism,
        read,
        k,
        threshold,
    )


@_method("sparse-vector")
def _sparse_vector(private: FeatureRows, asked: Asked) -> SelectionPlan:
    """Features one by one against a threshold, in a public order, until k were above it."""
    score, k = asked.score, asked.k or min(FEW_FEATURES, private.features)
    moves = score.of_each(private.protection, most_rows=private.row_bound)
    monotone = score.monotone(private.protection)
    threshold = asked.threshold
    if threshold is None:
        quiet = SparseVector(asked.epsilon, moves, k, monotone)
        threshold = _beyond_chance(float(quiet.query_scale) / score.cells, private.features)
    test = SparseVector(asked.epsilon, moves, k, monotone, math.ceil(threshold * score.cells))
    order = public_order(private.features)

    def read(answers: Sequence[bool]) -> Chosen:
        features = [place for place, above in zip(order, answers, strict=False) if above]
        return Chosen(np.array(features, dtype=np.int64))

    statistic = FeatureScores(score, private.row_bound, tuple(order))
    return SelectionPlan("sparse-vector", statistic, test, read, k, threshold)


def public_order(features: int) -> list[int]:
    """Return the features in the order of a hash of their numbers.

    In the order of their numbers the last ones would never have a turn. The order is public and the
    same each time, so that a stored answer is read as it was drawn.

    >>> public_order(6) == public_order(6), sorted(public_order(3))
    (True, [0, 1, 2])
    """
    return sorted(range(features), key=lambda feature: sha256(b"%d" % feature).digest())


@_method("noisy-top-k")
def _noisy_top_k(private: FeatureRows, asked: Asked) -> SelectionPlan:
    """The names of the k best scores after geometric noise."""
    return _names("noisy-top-k", NoisyTopK, private, asked)


@_method("permute-and-flip")
def _permute_and_flip(private: FeatureRows, asked: Asked) -> SelectionPlan:
    """The names of k scores, each drawn by permute-and-flip."""
    return _names("permute-and-flip", PermuteAndFlip, private, asked)


def _names(
    name: str, kind: type[NoisyTopK] | type[PermuteAndFlip], private: FeatureRows, asked: Asked
) -> SelectionPlan:
    if asked.threshold is not None:
        raise ArgumentError(
            f"threshold must be left out for {name}, which picks k features. Use noisy-counts."
        )
    score, k = asked.score, asked.k or min(FEW_FEATURES, private.features)
    mechanism = kind(
        asked.epsilon,
        score.of_each(private.protection, most_rows=private.row_bound),
        k,
        score.monotone(private.protection),
    )

    def read(places: ArrayLike) -> Chosen:
        return Chosen(np.array(places, dtype=np.int64))

    return SelectionPlan(name, FeatureScores(score, private.row_bound), mechanism, read, k, None)


def _best(
    scores: Floats, k: int | None, threshold: float | None, *, order: Floats | None = None
) -> Ints:
    """Return the features at or above the threshold, at most k of them, best first."""
    ranked = np.lexsort((-scores, -(scores if order is None else order)))
    least = -np.inf if threshold is None else threshold
    chosen: Ints = ranked[(scores[ranked] >= least) & (scores[ranked] > -np.inf)]
    return chosen if k is None else chosen[:k]


def _beyond_chance(scale: float, features: int, *, difference: bool = False) -> float:
    """Return a level that about `SPURIOUS` of so many scores of nothing but noise exceed.

    P(noise > x) is exp(-x/scale)/2. For the absolute difference of two noisy counts it is
    (2 + x/scale)/2 times the exponential.
    """
    tail = min(0.4, SPURIOUS / features)
    x = -math.log(2 * tail)
    for _ in range(40 * difference):
        x = math.log((2 + x) / (2 * tail))
    return max(1.0, scale * x)


_SHOWN = 8


class _Features:
    """Selected features, by number and by name, best first."""

    _chosen: Chosen
    _names: tuple[str, ...] | None
    _count: int

    @property
    def indices(self) -> Ints:
        """Return the selected features' numbers, as an array."""
        return self._chosen.indices

    @property
    def features(self) -> tuple[str | int, ...]:
        """Return the selected features' names where they have public ones, else their numbers."""
        numbers = [int(index) for index in self.indices]
        if self._names is None:
            return tuple(numbers)
        return tuple(self._names[index] for index in numbers)

    @property
    def scores(self) -> Floats | None:
        """Return the noisy scores of the selected features, or None if the method shows none."""
        return self._chosen.scores

    def transform(self, X: Any) -> NDArray[Any] | SparseRows:
        """Return the selected columns of a matrix with the same features."""
        rows: Any = X.tocsr() if hasattr(X, "tocsr") else as_array(X, name="X")
        if rows.ndim != 2 or rows.shape[1] != self._count:
            raise ArgumentError(f"X must have {self._count} features, as the rows had.")
        chosen: NDArray[Any] | SparseRows = rows[:, self.indices]
        return chosen

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.features)

    def __contains__(self, feature: object) -> bool:
        return feature in self.features

    def _listed(self) -> str:
        features = self.features
        if not features:
            return "none"
        shown = ", ".join(str(feature) for feature in features[:_SHOWN])
        more = len(features) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown

    def _plain_scores(self) -> list[float] | None:
        return None if self.scores is None else [float(score) for score in self.scores]


class Selection(_Features, Release):
    """Features of private rows, selected and paid for.

    `float()` is how many there are; `features`, `indices` and `scores` hold them, best first.
    """

    private = True

    def __init__(self, drawn: Drawn, private: FeatureRows, chosen: Chosen) -> None:
        super().__init__(drawn)
        self._chosen, self._names, self._count = chosen, private.feature_names, private.features
        self._rows = private.rows

    @property
    def measures(self) -> dict[str, Measure]:
        """Return how many features were selected: a fact about the answer, so without a doubt."""
        return count_selected(len(self), terms=self.terms)

    @property
    def method(self) -> str:
        return str(self._drawn.request.parameters["method"])

    @property
    def information_gains(self) -> Floats | None:
        """Return the noisy information gains in nats per row: Stoddard et al., equation (6).

        A score is that times the number of rows. None for other scores, where no scores were
        released, or where the number of rows is not public.
        """
        is_gain = self._drawn.request.parameters["score"] == InformationGain.name
        if not is_gain or self.scores is None or not self._rows:
            return None
        return self.scores / self._rows

    def score_interval(self, level: float = 0.95) -> tuple[Floats, Floats] | None:
        """Return noise intervals of the selected features' scores; None without scores.

        They hold for a feature that was named beforehand; that it was selected for a high noisy
        score makes the true one lower more often than not.
        """
        level = checked_level(level)
        if self.scores is None or self._chosen.half_width is None:
            return None
        half = self._chosen.half_width(level)
        return self.scores - half, self.scores + half

    def __str__(self) -> str:
        words = self._drawn.request.parameters
        return (
            f"{len(self):,} of {self._count:,} features by {words['score']} "
            f"({self.method}): {self._listed()}; {self.terms}"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {
            "private": True,
            "features": list(self.features),
            "indices": [int(index) for index in self.indices],
            "scores": self._plain_scores(),
            **self._plain_gains(),
        }

    def _plain_gains(self) -> dict[str, list[float]]:
        gains = self.information_gains
        return {} if gains is None else {"information_gains": [float(gain) for gain in gains]}

    def _noisy(self) -> list[float] | None:
        """Return what was drawn for the selected features; the rest was used and let go."""
        return self._plain_scores()

    def _repr_html_(self) -> str:
        scores = self._plain_scores()
        shown = [""] * len(self) if scores is None else [f"{score:.4g}" for score in scores]
        rows = zip(self.features, shown, strict=True)
        return card(str(self), head=("Feature", "Noisy score"), rows=rows)


class NotPrivateSelection(_Features):
    """Selects as a published method does that is not private. Nothing was charged or is safe."""

    private = False
    loss = None

    def __init__(
        self,
        private: FeatureMatrix,
        chosen: Chosen,
        *,
        method: str,
        why: str,
        words: dict[str, Any],
    ) -> None:
        self._chosen, self._names, self._count = chosen, private.feature_names, private.features
        self.method, self._why, self._words = method, why, words

    def __str__(self) -> str:
        return (
            f"NOT PRIVATE: {len(self):,} of {self._count:,} features by {self._words['score']} "
            f"({self.method}: {self._why}): {self._listed()}; no privacy at any epsilon"
        )

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        return {
            "release": "selection",
            "private": False,
            "warning": f"NOT PRIVATE: {self._why}",
            "loss": None,
            "parameters": dict(self._words),
            "features": list(self.features),
            "indices": [int(index) for index in self.indices],
            "scores": None,
        }


Noise = Callable[[float, tuple[int, ...]], Floats]
"""noise(scale, shape): so much Laplace noise, from whoever calls."""


def private_threshold_testing(
    scores: ArrayLike, *, threshold: float, epsilon: float, noise: Noise, sensitivity: float = 1,
    count: int = 1, monotone: bool = False,
) -> Floats:  # fmt: skip
    """Stoddard et al. 2014, Algorithm 2: un-noised scores against one noisy threshold.

    Rows of 0 and 1, one for each of `count` answers. Claimed: epsilon, by theorem 2 (or corollary 1
    with `monotone`). True: no bound at all.
    """
    scale = (1 if monotone else 2) * sensitivity / epsilon
    above = np.asarray(scores) >= threshold + noise(scale, (count, 1))
    return np.asarray(above, dtype=float)


def noisy_cut(
    scores: ArrayLike, *, threshold: float, epsilon: float, noise: Noise, sensitivity: float = 1,
    count: int = 1,
) -> Floats:  # fmt: skip
    """Lee and Clifton 2014: noise on threshold and scores, and no limit on the positive answers."""
    exact = np.asarray(scores)
    scale = 2 * sensitivity / epsilon
    noisy = exact + noise(scale, (count, len(exact)))
    return np.asarray(noisy >= threshold + noise(scale, (count, 1)), dtype=float)


def cluster_selection_2014(
    points: ArrayLike, *, centres: ArrayLike, threshold: float, epsilon: float,
    features_per_row: int, noise: Noise, rounds: int = 1, count: int = 1, difference: bool = False,
) -> Floats:  # fmt: skip
    """Stoddard et al. 2014, Algorithm 1: private k-means of the features, whole clusters kept.

    `points` has a row of counts for each feature, whose sum is its score, or with `difference` how
    far its two counts are apart. Each round books half of its share for the sizes of the clusters,
    as if one row moved them by 1, and half for their sums, as if by `features_per_row`. In truth a
    row moves a feature to another cluster with all it has.
    """
    counts = np.asarray(points, dtype=float)
    share = 2 * rounds / epsilon
    middle = np.repeat(np.array(centres, dtype=float)[None], count, axis=0)
    for _ in range(rounds):
        distance = ((counts[None, :, None, :] - middle[:, None, :, :]) ** 2).sum(axis=3)
        nearest = distance.argmin(axis=2)
        member = nearest[:, :, None] == np.arange(middle.shape[1])
        sizes = member.sum(axis=1) + noise(share, middle.shape[:2])
        sums = np.einsum("anc,np->acp", member, counts)
        sums = sums + noise(share * features_per_row, middle.shape)
        middle = sums / np.maximum(sizes, 1)[:, :, None]
    scores = np.abs(np.diff(middle, axis=2)[..., 0]) if difference else middle.sum(axis=2)
    accepted = np.take_along_axis(scores >= threshold, nearest, axis=1)
    return np.asarray(accepted, dtype=float)


BASELINES = {
    "private-threshold-testing": "un-noised scores against one noisy threshold",
    "noisy-cut": "no limit on the positive answers",
    "cluster-selection-2014": "k-means of features with the sensitivities of k-means of rows",
}


def count_selected(count: int, *, terms: str) -> dict[str, Measure]:
    """Return the number of selected features as a measure whose interval is that number."""
    number, name = float(count), "features selected"

    def exactly(level: float) -> Interval:
        return number, number

    measure = Measure(
        number, name=name, terms=terms, noise_interval=exactly, interval=exactly, whole=True
    )
    return {name: measure}
