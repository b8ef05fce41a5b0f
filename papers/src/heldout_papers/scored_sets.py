"""Labels and scores of the test sets of the papers, by fixed models on public data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ADULT", "SMS", "TWITTER", "ScoredSet", "adult", "private_scores", "sms", "twitter"]

ADULT = "adult/adult.parquet"
SMS = "sms_spam/sms_spam.parquet"
TWITTER = "sentiment140_20k/sentiment140_20k.parquet"
_SEED = 20160


class ScoredSet(NamedTuple):
    """A test set as an evaluation sees it."""

    name: str
    labels: Any
    scores: Any

    def table(self, cells: int = 2**16) -> Any:
        """The integer vector of `ScoreTable` on [0, 1]: negatives first, then positives."""
        places = np.rint(self.scores * cells).astype(np.int64)
        counts = np.zeros(2 * (cells + 1), dtype=np.int64)
        np.add.at(counts, self.labels * (cells + 1) + places, 1)
        return counts


def sms(data: Path, model: Any = None, named: str = "") -> ScoredSet:
    """558 messages, 481 of them ham, which the papers count as 1."""
    table = _read(data / SMS)
    texts, labels = table["text"], 1 - table["label"]
    return _words(f"SMS{named}", texts, labels, negatives=77, positives=481, model=model)


def twitter(data: Path, model: Any = None, named: str = "") -> ScoredSet:
    """684 of 6,840 tweets, 385 of them positive."""
    from numpy.random import default_rng

    table = _read(data / TWITTER)
    chosen = default_rng(_SEED).permutation(len(table["label"]))[:6840]
    texts, labels = table["text"][chosen], table["label"][chosen]
    return _words(f"TWITTER{named}", texts, labels, negatives=299, positives=385, model=model)


def private_scores(data: Path) -> list[ScoredSet]:
    """The same two test sets scored by a private model at epsilon 1, as in the papers.

    Their code for it is not published; ours is `heldout.features.PrivateLogisticRegression`.
    """
    from heldout.features import PrivateLogisticRegression

    model = PrivateLogisticRegression(epsilon="1")
    return [sms(data, model, " (private model)"), twitter(data, model, " (private model)")]


def adult(data: Path, *, rows: int) -> ScoredSet:
    """The first rows of the shuffled test split; a logistic regression on the training split."""
    from numpy.random import default_rng
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table = _read(data / ADULT)
    names = [name for name in table if name not in ("label", "income", "split", "fnlwgt")]
    columns = np.stack([table[name].astype(object) for name in names], axis=1)
    words = [i for i, name in enumerate(names) if table[name].dtype == object]
    numbers = [i for i in range(len(names)) if i not in words]
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
        ),
        LogisticRegression(max_iter=300),
    )
    train = table["split"] == "train"
    model.fit(columns[train], table["label"][train])
    kept = default_rng(_SEED).permutation(np.flatnonzero(~train))[:rows]
    scores = model.predict_proba(columns[kept])[:, 1]
    return ScoredSet(f"adult {rows:,}", table["label"][kept].astype(np.int64), scores)


def _words(
    name: str, texts: Any, labels: Any, *, negatives: int, positives: int, model: Any = None
) -> ScoredSet:
    """A test set with the paper's numbers of either class; presence of words; a fixed model."""
    from numpy.random import default_rng
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    labels = np.asarray(labels, dtype=np.int64)
    random = default_rng(_SEED)
    wanted = {0: negatives, 1: positives}
    test = np.concatenate(
        [random.permutation(np.flatnonzero(labels == y))[: wanted[y]] for y in (0, 1)]
    )
    train = np.setdiff1d(np.arange(len(labels)), test)
    words = CountVectorizer(binary=True, stop_words="english")
    model = model or LogisticRegression(max_iter=300)
    model.fit(words.fit_transform(texts[train]), labels[train])
    scores = model.predict_proba(words.transform(texts[test]))[:, 1]
    return ScoredSet(name, labels[test], scores)


def _read(file: Path) -> dict[str, Any]:
    from pyarrow.parquet import read_table

    table = read_table(file)
    return {name: table[name].to_numpy() for name in table.column_names}
