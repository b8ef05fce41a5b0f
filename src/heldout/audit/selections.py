"""Selection of features and training, through the public `select` and `fit`.

Rows are made private once; every answer after that is a call of `heldout.features.select`, or of
`fit`, which books its price in one ledger, reads the rows and draws. What is looked at is all that
the method lets out: noisy scores, names in order, and what a model was made of.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import EVERYTHING, numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy import Ledger
from heldout.privacy.loss import Loss

Asked = Callable[[Any, Fraction, Ledger], Any]
"""asked(private rows, epsilon, ledger): a release."""


def _features(
    name: str,
    asked: Asked,
    cases: Sequence[Pair],
    *,
    read: Callable[[Any], list[float]],
    note: str,
    why: str,
) -> None:
    def opened(pair: Pair, side: int) -> Any:
        from heldout.data.feature_matrix import FeatureMatrix

        return FeatureMatrix(*pair.side(side), **pair.options)

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        private, ledger = opened(pair, side), Ledger.open(None)
        return stacked([read(asked(private, epsilon, ledger)) for _ in range(count)])

    def claim(epsilon: Fraction) -> Loss:
        loss: Loss = asked(opened(cases[0], 0), epsilon, Ledger.open(None)).loss
        return loss

    register(
        Subject(name, RELEASE, tuple(cases), claim, draw, note=note, epsilon="4", why=why),
    )


# --- selections ----------------------------------------------------------------------------------


def _rows(last: Sequence[int], *, features: int, label: int = 1) -> tuple[Any, Any]:
    """Five rows with the first half of the features, five with the other, and one with these."""
    X = np.zeros((11, features), dtype=np.int8)
    X[:5, : features // 2] = X[5:10, features // 2 :] = 1
    X[10, list(last)] = 1
    return X, np.array([1, 0] * 5 + [label])


def _without(rows: tuple[Any, Any]) -> tuple[Any, Any]:
    return rows[0][:-1], rows[1][:-1]


def _tied(features: int) -> Pair:
    half = features // 2
    return Pair(
        "all tied; a row goes from half of the features to the others",
        _rows(range(half), features=features),
        _rows(range(half, features), features=features),
        {"features_per_row": half},
    )


def _leaves(features: int, *with_features: int) -> Pair:
    there = _rows(with_features, features=features)
    options = {"neighbours": "add-remove", "features_per_row": len(with_features)}
    return Pair("a row leaves", _without(there), there, options)


def _label(features: int) -> Pair:
    """Without a feature, among rows of one label: the majority without it moves for all of them."""
    X = np.zeros((11, features), dtype=np.int8)
    before, after = np.ones(11, dtype=int), np.array([1] * 10 + [0])
    return Pair("one of many labels changes", (X, before), (X, after), {"features_per_row": 1})


def _selection(
    method: str,
    score: str,
    cases: Sequence[Pair],
    *,
    k: int,
    read: Callable[[Any], list[float]],
    note: str,
    why: str = "spread over several numbers",
    **words: Any,
) -> None:
    def asked(private: Any, epsilon: Fraction, ledger: Ledger) -> Any:
        from heldout import features

        return features.select(
            private,
            epsilon=epsilon,
            method=method,
            score=score,
            k=k,
            ledger=ledger,
            budget=EVERYTHING,
            **words,
        )

    _features(f"selection-{method}", asked, cases, read=read, note=note, why=why)


def _names(k: int) -> Callable[[Any], list[float]]:
    def read(selection: Any) -> list[float]:
        found = [float(each) for each in selection.indices]
        return found + [-1.0] * (k - len(found))

    return read


def _by_feature(features: int) -> Callable[[Any], list[float]]:
    """Each feature's noisy score; where none are shown, whether it was selected."""

    def read(selection: Any) -> list[float]:
        found = np.full(features, -1.0)
        found[selection.indices] = 1.0 if selection.scores is None else selection.scores
        return [float(each) for each in found]

    return read


# Few features where all scores are let out: what a row can do is the same, in fewer numbers.
_selection(
    "noisy-counts",
    "total-count",
    (_leaves(2, 0), _tied(2)),
    k=2,
    read=_by_feature(2),
    note="all noisy scores",
)
_selection(
    "cluster",
    "total-count",
    (_leaves(2, 0), _tied(2)),
    k=2,
    read=_by_feature(2),
    note="all noisy scores, in clusters",
)
_selection(
    "score-perturbation",
    "purity-index",
    (_label(2), _tied(2)),
    k=2,
    read=_by_feature(2),
    note="all noisy scores",
)
_selection(
    "sparse-vector",
    "total-count",
    (_leaves(4, 0, 1, 2, 3), _tied(4)),
    k=1,
    threshold=6.0,
    read=_by_feature(4),
    note="which feature is above the threshold",
    why="half is for the threshold, and the order of the features is not told",
)
_selection(
    "noisy-top-k", "total-count", (_tied(4), _leaves(4, 0)), k=2, read=_names(2), note="names"
)
_selection(
    "permute-and-flip", "total-count", (_tied(4), _leaves(4, 0)), k=2, read=_names(2), note="names"
)

# --- trainings -----------------------------------------------------------------------------------

_MESSAGES = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]]
_LABELS = [1, 0, 1, 0, 1, 0]


def _row(features: list[int], label: int) -> tuple[Any, Any]:
    return np.array([*_MESSAGES, features]), np.array([*_LABELS, label])


# The number of rows is guessed, publicly and far too high: next to nothing goes to the cut then,
# and what a row can do is in few numbers.
_TRAINED = (
    Pair(
        "a row leaves",
        _row([1, 0], 1),
        _without(_row([1, 0], 1)),
        {"neighbours": "add-remove", "most_rows": 64},
    ),
    Pair("a row changes its label", _row([1, 0], 1), _row([1, 0], 0)),
    Pair("a row changes its features", _row([1, 0], 1), _row([0, 1], 1)),
)


def _training(name: str, kind: str, *, note: str, why: str, **words: Any) -> None:
    def asked(private: Any, epsilon: Fraction, ledger: Ledger) -> Any:
        from heldout import features

        model = getattr(features, kind)(
            epsilon=epsilon, expected_rows=10**6, ledger=ledger, budget=EVERYTHING, **words
        )
        return model.fit(private).release_

    def read(release: Any) -> list[float]:
        return numbers(release._noisy())

    _features(name, asked, _TRAINED, read=read, note=note, why=why)


_training(
    "naive-bayes",
    "PrivateNaiveBayes",
    note="noisy counts and the cut, jointly",
    why="spread over sizes, features and the cut",
    weight=1,
)
_training(
    "logistic",
    "PrivateLogisticRegression",
    note="coefficients and the cut",
    why="an eighth is for the curvature, a part for the cut; a row seldom pulls as hard as it may",
    weight=1,
)
_training(
    "pipeline",
    "PrivatePipeline",
    note="selection, counts and the cut, staged",
    why="half is for the selection",
    select="permute-and-flip",
    k=1,
)
