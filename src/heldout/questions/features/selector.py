"""Select features of private rows, in one call."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from heldout.arguments import is_one_of, shown
from heldout.data.feature_matrix import FeatureMatrix
from heldout.errors import ArgumentError, NotPrivate
from heldout.kernel import Budget, Ledger, exact
from heldout.kernel.neighbours import Neighbours
from heldout.kernel.noise.not_private import baseline_noise, shown_as_it_is
from heldout.kernel.statistic import compute
from heldout.questions.features.questions import Selection as SelectionQuestion
from heldout.questions.features.selection import (
    BASELINES,
    METHODS,
    Chosen,
    NotPrivateSelection,
    Selection,
    cluster_selection_2014,
    noisy_cut,
    private_threshold_testing,
)
from heldout.questions.features.statistics import FeatureScores, score_named
from heldout.questions.features.tuned import FEATURES_PER_ROW
from heldout.questions.session import Epsilon, PrivateSession

DEFAULT = "noisy-counts"


def select(
    X: Any,
    y: Any = None,
    *,
    epsilon: Epsilon,
    method: str = DEFAULT,
    score: str = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    features_per_row: int | None = None,
    neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
    unit: Any = None,
    rows_per_unit: int = 1,
    row_keys: Any = None,
    positive: object = 1,
    negative: object = None,
    feature_names: Sequence[str] | None = None,
    most_rows: int | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    budget: Budget | None = None,
    account: str | None = None,
    not_private: bool = False,
) -> Selection | NotPrivateSelection:
    """The features that are worth keeping, at a price of epsilon.

    `X` has a row for each row and a column for each *public* feature (0 or not 0; dense or sparse),
    `y` the labels. A `FeatureMatrix` may stand for both, and then says whose the rows are.

    `k` asks for so many features at most, `threshold` for those whose score is at least that; with
    neither, a threshold that few scores of nothing but noise exceed. A row that sets more than
    `features_per_row` features (10 unless told) keeps so many of them. `method` and `score` are in
    docs/features.md; three published methods that are not private run with `not_private=True`.

    Without a ledger nobody keeps count across calls; `account` names the one in it that pays.

    >>> import numpy as np
    >>> X = np.zeros((1000, 50), dtype=int); X[:, 7] = 1; X[:500, 3] = 1
    >>> select(X, [1, 0] * 500, epsilon="1", k=2).features
    (7, 3)
    """
    if isinstance(X, FeatureMatrix):
        private = X
        facts = (y, unit, row_keys, feature_names, most_rows, negative)
        otherwise = (neighbours, rows_per_unit, positive) != (Neighbours.REPLACE_ONE, 1, 1)
        if otherwise or any(fact is not None for fact in facts):
            raise ArgumentError(
                "y, unit, neighbours and other facts about the rows must be left out with a "
                "FeatureMatrix, which has them. Make the matrix with them."
            )
        if features_per_row is not None:
            private = private.restricted(
                np.arange(private.features), features_per_row=features_per_row
            )
    else:
        if y is None:
            raise ArgumentError("Pass y=, one label for each row of X.")
        private = FeatureMatrix(
            X,
            y,
            features_per_row=FEATURES_PER_ROW if features_per_row is None else features_per_row,
            positive=positive,
            negative=negative,
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_keys=row_keys,
            neighbours=neighbours,
            feature_names=feature_names,
            most_rows=most_rows,
        )
    return select_from(
        private,
        epsilon=epsilon,
        method=method,
        score=score,
        k=k,
        threshold=threshold,
        ledger=ledger,
        budget=budget,
        account=account,
        not_private=not_private,
    )


def select_from(
    private: FeatureMatrix,
    *,
    epsilon: Epsilon,
    method: str = DEFAULT,
    score: str = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    budget: Budget | None = None,
    account: str | None = None,
    session: PrivateSession | None = None,
    not_private: bool = False,
) -> Selection | NotPrivateSelection:
    """A selection from private rows that exist already, out of their budget."""
    amount = exact(epsilon, name="epsilon", minimum=0)
    if is_one_of(method, BASELINES):
        if not not_private:
            raise NotPrivate(
                f"method must be private, got {method!r}, which is not: {BASELINES[method]}. Use "
                f"{DEFAULT}, or pass not_private=True to run it on data that may be shown."
            )
        words = {
            "method": method,
            "score": score,
            "k": k,
            "threshold": threshold,
            "features": private.features,
            "features_per_row": private.features_per_row,
        }
        return _baseline(private, words, float(amount))
    if not is_one_of(method, METHODS):
        known = ", ".join([*METHODS, *BASELINES])
        raise ArgumentError(f"method must be one of {known}, got {shown(method)}.")
    if not_private:
        raise ArgumentError(f"not_private must be left out for {method!r}, which is private.")
    asked = SelectionQuestion(epsilon=amount, method=method, score=score, k=k, threshold=threshold)
    if session is None:
        spare = Budget(epsilon=amount) if budget is None and ledger is None else budget
        session = PrivateSession(private, budget=spare, ledger=ledger, account=account)
    selection: Selection = session.viewing(private).ask(asked)
    return selection


def _baseline(private: FeatureMatrix, words: dict[str, Any], epsilon: float) -> NotPrivateSelection:
    """A published selection, run as published, on exact scores. No ledger hears of it."""
    score = score_named(words["score"])
    threshold = words["threshold"]
    if threshold is None or words["k"] is not None:
        raise ArgumentError(
            f"threshold must be given for {words['method']}, and k left out. Pass threshold=."
        )
    moves = score.of_each(private.protection, most_rows=private.row_bound) / score.cells
    if words["method"] == "cluster-selection-2014":
        if score.name != "total-count":
            raise ArgumentError("score must be total-count for cluster-selection-2014.")
        scores = shown_as_it_is(compute(FeatureScores(score, private.row_bound), private))
        accepted = cluster_selection_2014(
            np.asarray(scores, dtype=float)[:, None],
            centres=np.linspace(0, 2 * threshold, 5)[:, None],
            threshold=threshold,
            epsilon=epsilon,
            features_per_row=private.features_per_row,
            noise=baseline_noise,
            rounds=5,
        )[0]
    else:
        exactly = (
            shown_as_it_is(compute(FeatureScores(score, private.row_bound), private)) / score.cells
        )
        run = noisy_cut if words["method"] == "noisy-cut" else private_threshold_testing
        accepted = run(
            exactly, threshold=threshold, epsilon=epsilon, noise=baseline_noise, sensitivity=moves
        )[0]
    chosen = Chosen(np.asarray(np.flatnonzero(accepted), dtype=np.int64))
    why = BASELINES[words["method"]]
    return NotPrivateSelection(private, chosen, method=words["method"], why=why, words=words)
