"""The three text collections of Stoddard et al., as rows of words, and their published classifier.

As in the paper, every word that occurs in the texts is a feature. That is not private; here it is
taken for public by assumption, and the notes of each figure say so.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "FOLDS",
    "REUTERS",
    "SETS",
    "SMS",
    "TWITTER",
    "WordSet",
    "fold",
    "naive_bayes",
    "word_set",
]

SMS = "sms_spam/sms_spam.parquet"
TWITTER = "sentiment140_20k/sentiment140_20k.parquet"
REUTERS = "reuters21578/reuters21578.parquet"
SETS = {"SMS": SMS, "TWITTER": TWITTER, "REUTERS": REUTERS}
FOLDS = 10
_ROWS = {"SMS": 5574, "TWITTER": 7304, "REUTERS": 6906}
_SEED = 2014


class WordSet(NamedTuple):
    """Rows of words and their labels."""

    name: str
    words: Any
    labels: Any

    @property
    def longest(self) -> int | None:
        """The paper's s; a news article has no bound."""
        return None if self.name == "REUTERS" else 20


@lru_cache(maxsize=3)
def word_set(data: Path, name: str) -> WordSet:
    """The paper's number of rows; a fixed sample where there are more. Once in each worker."""
    from numpy.random import default_rng
    from pyarrow.parquet import read_table
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    table = read_table(data / SETS[name]).to_pydict()
    texts, labels = table.get("text"), np.asarray(table["label"], dtype=np.int64)
    if texts is None:
        texts = [f"{a or ''} {b or ''}" for a, b in zip(table["title"], table["body"], strict=True)]
    places = np.arange(len(labels))
    if name == "REUTERS":  # only what has a topic says whether it is about earnings
        places = np.flatnonzero([bool(each) for each in table["topics"]])
    chosen = default_rng(_SEED).permutation(places)[: _ROWS[name]]
    vectorizer = CountVectorizer(binary=True, stop_words="english")
    words = vectorizer.fit_transform([texts[each] for each in chosen])
    return WordSet(name, csr_array(words.astype(np.int8)), labels[chosen])


def fold(rows: WordSet, number: int) -> tuple[Any, Any]:
    """Which rows train and which test; the r-th cross-validation has the folds 10 r to 10 r + 9."""
    from numpy.random import default_rng

    places = default_rng(_SEED + number // FOLDS).permutation(len(rows.labels)) % FOLDS
    test = places == number % FOLDS
    return ~test, test


def naive_bayes(words: Any, labels: Any, *, epsilon: float | None, s: int, random: Any) -> Any:
    """Vaidya et al. 2013: noise on every count, under add-remove; what it predicts for rows.

    A row adds to at most s counts by label and to one number of rows, so the noise is (s + 1)/
    epsilon. None is without noise.
    """

    def noisy(counts: Any) -> Any:
        counts = np.asarray(counts, dtype=float)
        if epsilon is None:
            return counts
        return np.maximum(counts + random.laplace(scale=(s + 1) / epsilon, size=counts.shape), 0)

    rows = noisy([(labels == each).sum() for each in (0, 1)]) + 2
    counts = [
        noisy(np.asarray(words[labels == each].sum(axis=0, dtype=float)).ravel()) for each in (0, 1)
    ]
    rate = [np.minimum((each + 1) / n, 1 - 1 / n) for each, n in zip(counts, rows, strict=True)]
    weights = np.log(rate[1] / rate[0]) - np.log((1 - rate[1]) / (1 - rate[0]))
    start = np.log(rows[1] / rows[0]) + np.log((1 - rate[1]) / (1 - rate[0])).sum()
    return lambda unseen: np.asarray(unseen @ weights).ravel() + start > 0
