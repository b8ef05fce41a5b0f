"""One cell of the feature-selection study: select on nine folds, train, predict the tenth.

The published methods are run as published (add-remove, floats, their own splits of epsilon); ours
through the public interface. Methods that are not private are marked in every table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from heldout.data.feature_matrix import bounded
from heldout.questions.features.selection import (
    cluster_selection_2014,
    clusters,
    noisy_cut,
    private_threshold_testing,
)
from heldout.questions.features.statistics import SCORES, Counted, counted
from heldout_papers.stoddard_2014_words import WordSet, fold, naive_bayes, word_set

__all__ = ["BROKEN", "SAMPLED", "Job", "Result", "chosen_by", "f1", "run", "true_scores"]

SAMPLED = 10
"""The paper's r."""
NOT_PRIVATE = " (not private)"
BROKEN = {"PTT", "NoisyCut", "Cluster 2014"}
THRESHOLD = {"SMS": 20, "TWITTER": 50, "REUTERS": 200}
SAMPLED_THRESHOLD = {**THRESHOLD, "REUTERS": 40}  # of counts after ten words of an article are kept
"""The paper does not print its tau. The best of three for its own methods, without privacy."""
TOP = 100
FREQUENT = 5_000
"""Words that figure 2 of the paper starts from."""


@dataclass(frozen=True)
class Job:
    """How one accuracy is made."""

    data: Path
    name: str
    label: str
    fold: int
    epsilon: str | None = "1"
    select: str | None = None
    score: str = "total-count"
    share: float = 0.0
    sampled: int | None = SAMPLED
    model: str = "published"
    top: int | None = TOP
    """Features kept where the score has no threshold, and without privacy; None: by threshold."""
    sample_first: bool = False
    """Words of a row are sampled once, before selection and training, instead of for each."""
    split_rows: bool = False
    """The share is of the rows, each part with all of epsilon, instead of epsilon."""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        return self.epsilon is not None and self.select not in BROKEN


@dataclass(frozen=True)
class Result:
    job: Job
    accuracy: float
    features: int


def run(job: Job) -> Result:
    """Train on nine folds and predict the tenth."""
    rows = word_set(job.data, job.name)
    train, test = fold(rows, job.fold)
    known = rows.labels[train]
    if job.model == "majority":
        right = rows.labels[test] == int(known.mean() > 0.5)
        return Result(job, float(right.mean()), 0)
    predicted, features = _fitted(job, rows, train)(rows.words[test])
    return Result(job, float((predicted == rows.labels[test]).mean()), features)


def _fitted(job: Job, rows: WordSet, train: Any) -> Any:
    words, labels = rows.words[train], rows.labels[train]
    if job.model == "logistic":  # the paper's code is slow; counted without noise, not private
        words = _only(words, np.argsort(-words.sum(axis=0), kind="stable")[:FREQUENT])
    random = np.random.default_rng()
    if job.sample_first and job.sampled is not None:
        words = bounded(words, job.sampled)
    if job.model == "ours":
        return _ours(job, words, labels)
    epsilon = None if job.epsilon is None else float(job.epsilon)
    chosen = np.arange(words.shape[1])
    own = left = epsilon
    choosing = training = np.full(len(labels), True)
    if job.split_rows:
        choosing = random.random(len(labels)) < job.share
        training = ~choosing
    elif epsilon is not None:
        own, left = epsilon * job.share, epsilon * (1 - job.share)
    if job.select is not None:
        cuts = SAMPLED_THRESHOLD if job.select == "Cluster 2014" else THRESHOLD
        chosen = chosen_by(
            job.select, words[choosing], labels[choosing], score=job.score, epsilon=own,
            random=random, sampled=job.sampled, top=job.top,
            threshold=cuts[job.name] * (job.share if job.split_rows else 1),
        )  # fmt: skip
    if len(chosen) == 0:
        majority = labels.mean() > 0.5
        return lambda unseen: (np.full(unseen.shape[0], majority), 0)
    seen, labels = words[training][:, chosen], labels[training]
    if job.model == "logistic":
        predict = _logistic(seen, labels, left)
    else:
        bound = seen.shape[1] if left is None else job.sampled or rows.longest or SAMPLED
        predict = naive_bayes(bounded(seen, bound), labels, epsilon=left, s=bound, random=random)
    return lambda unseen: (predict(unseen[:, chosen]), len(chosen))


def _ours(job: Job, words: Any, labels: Any) -> Any:
    from heldout.features import PrivatePipeline

    words_given: dict[str, Any] = {"neighbours": "add-remove", "expected_rows": 6000} | job.options
    model = PrivatePipeline(epsilon=job.epsilon, **words_given).fit(words, labels)
    return lambda unseen: (model.predict(unseen), len(model.selected_))


def _only(words: Any, kept: Any) -> Any:
    """The matrix with all other columns empty."""
    from scipy.sparse import diags_array

    mask = np.zeros(words.shape[1], dtype=words.dtype)
    mask[kept] = 1
    return (words @ diags_array(mask)).tocsr()


def _logistic(words: Any, labels: Any, epsilon: float | None) -> Any:
    if epsilon is None:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=300).fit(words, labels).predict
    from heldout.features import PrivateLogisticRegression

    model = PrivateLogisticRegression(
        epsilon=str(round(epsilon, 6)), neighbours="add-remove", expected_rows=6000
    )
    return model.fit(words, labels).predict


def true_scores(words: Any, labels: Any, score: str) -> Any:
    """Exact scores, in rows (or nats times rows)."""
    exact = SCORES[score].exact(counted({"label": labels, "matrix": words}), len(labels))
    return exact / SCORES[score].cells


def chosen_by(
    method: str,
    words: Any,
    labels: Any,
    *,
    score: str,
    epsilon: float | None,
    random: Any,
    sampled: int | None,
    threshold: float,
    top: int | None = None,
) -> Any:
    """Features by a method of the paper, as published; without epsilon the exact scores decide."""

    def noise(scale: float, shape: tuple[int, ...]) -> Any:
        return random.laplace(scale=scale, size=shape)

    if epsilon is None:
        return _best(true_scores(words, labels, score), threshold, top)
    if method == "PTT":  # no sampling; corollary 1 for total counts
        exact = true_scores(words, labels, score)
        cut = _cut(score, exact, threshold, top)
        moved = np.log(len(labels)) + 1 if score == "information-gain" else 1.0
        answers = private_threshold_testing(
            exact, threshold=cut, epsilon=epsilon, noise=noise, sensitivity=moved,
            monotone=score == "total-count",
        )  # fmt: skip
        return np.flatnonzero(answers[0])
    if method == "NoisyCut":
        exact = true_scores(words, labels, score)
        return np.flatnonzero(
            noisy_cut(exact, threshold=threshold, epsilon=epsilon, noise=noise)[0]
        )
    return _of_sampled(
        method, words, labels, score=score, epsilon=epsilon, noise=noise, s=sampled or SAMPLED,
        threshold=threshold, top=top,
    )  # fmt: skip


def _of_sampled(
    method: str, words: Any, labels: Any, *, score: str, epsilon: float, noise: Any, s: int,
    threshold: float, top: int | None,
) -> Any:  # fmt: skip
    """The methods that need a bound on the words of a row."""
    seen = bounded(words, s)
    counts = counted({"label": labels, "matrix": seen})
    if method == "Cluster 2014":
        points = np.stack([counts.negatives, counts.positives], axis=1)
        apart = score == "difference-count"
        cut = _cut(score, true_scores(seen, labels, score), threshold, top)
        places = np.linspace(0, 2 * cut, 3 if apart else 6)
        sides = np.eye(2) if apart else [[0.5, 0.5]]
        accepted = cluster_selection_2014(
            points, centres=np.concatenate([np.outer(places, each) for each in sides]),
            threshold=cut, epsilon=epsilon, features_per_row=s, noise=noise, rounds=5,
            difference=apart,
        )  # fmt: skip
        return np.flatnonzero(accepted[0])
    if method == "clusters of noisy counts":
        noisy = counts.negatives + counts.positives + noise(s / epsilon, (words.shape[1],))
        return np.flatnonzero(clusters(noisy) >= threshold)
    if method == "noisy counts":  # any score of noisy counts by label
        scale = (s + 1) / epsilon
        by_label = [each + noise(scale, each.shape) for each in counts[:2]]
        sizes = tuple(each + float(noise(scale, ())) for each in counts.rows)
        found = SCORES[score].of_noisy(Counted(by_label[0], by_label[1], (sizes[0], sizes[1])))
        return _best(found, threshold, top)
    if method != "score perturbation":
        raise ValueError(method)
    scale = s / epsilon
    if score == "information-gain":  # the paper's 2s features of bounded privacy, O(log n) each
        scale = 2 * s * (np.log(len(labels)) + 1) / epsilon
    exact = true_scores(seen, labels, score)
    return _best(exact + noise(scale, exact.shape), threshold, top)


def _best(scores: Any, threshold: float, top: int | None) -> Any:
    if top is None:
        return np.flatnonzero(scores >= threshold)
    return np.argsort(-scores)[:top]


def _cut(score: str, exact: Any, threshold: float, top: int | None) -> float:
    """Where a threshold of rows has no meaning for the score: what the best `top` exceed."""
    if score == "total-count" or top is None:
        return threshold
    return float(np.sort(exact)[-min(top, len(exact))])


def f1(found: Any, wanted: Any) -> float:
    """Of the features found and those whose true score is at least the threshold."""
    both = len(np.intersect1d(found, wanted))
    return 2 * both / max(1, len(found) + len(wanted))
