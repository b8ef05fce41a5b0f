"""Select and train under one price, booked at once; the split is said."""

import os
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arguments import is_one_of, shown
from heldout.errors import ArgumentError
from heldout.features.budget import features_to_take, selection_share
from heldout.features.logistic import PrivateLogisticRegression
from heldout.features.matrix import FeatureMatrix
from heldout.features.model import ModelRelease
from heldout.features.naive_bayes import PrivateNaiveBayes
from heldout.features.selection_methods import METHODS, Plan, plan_selection
from heldout.features.stages import Stages
from heldout.features.training import PrivateClassifier
from heldout.privacy import Budget, Ledger
from heldout.privacy.neighbours import Neighbours
from heldout.session import Epsilon, PrivateSession
from heldout.statistics.feature_scores import score_named

__all__ = ["PrivatePipeline"]

JOINT = "joint"
CLASSIFIERS: dict[str, type[PrivateClassifier]] = {
    "naive-bayes": PrivateNaiveBayes,
    "logistic": PrivateLogisticRegression,
}
BY_NUMBER = ("noisy-top-k", "permute-and-flip", "sparse-vector")
"""Methods whose noise grows with k."""
MORE = 8  # times as many features from the others, as the training can tell noise by itself
SAMPLED = 10  # features a row may set while features are selected: the paper's r


class PrivatePipeline(PrivateClassifier):
    """Selects features and trains a classifier on them, for one epsilon and one booking.

    Parameters
    ----------
    select
        "joint" (the default): one release of counts by feature and label serves selection *and*
        naive Bayes, so nothing is split off. Or a method of `heldout.features.select`
        ("noisy-counts", "noisy-top-k", "permute-and-flip", "sparse-vector", ...): then epsilon is
        split. None trains on all features, and so does "joint" with a logistic regression.
    classifier
        "naive-bayes" or "logistic", or an instance of one, whose `weight` and `ridge` count.
    split
        The part of epsilon for the selection. None is a half; "paper" is the 2014 paper's split
        for the method. It must be left out where nothing is split.
    selection_score, k, threshold
        As `score`, `k` and `threshold` in `heldout.features.select`; with neither `k` nor
        `threshold`, k follows from the public facts.

    The other parameters are those of `PrivateClassifier`.

    Claim:       pure DP, epsilon.                                           [claim: pipeline]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: those of the selection and of the training, which sees the selected features.
    Numerics:    exact.
    Refuses:     methods that are not private; a split where there is nothing to split.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 5.1; proofs/pipeline.md.
    Cost:        that of the parts.

    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivatePipeline(select="permute-and-flip", k=2, epsilon="1").fit(X, y)
    >>> sorted(model.selected_.tolist()), model.split_["selection"]
    ([3, 5], '1/2')
    """

    def __init__(
        self,
        *,
        select: str | None = JOINT,
        classifier: Any = "naive-bayes",
        epsilon: Epsilon | None = None,
        split: Any = None,
        selection_score: str = "total-count",
        k: int | None = None,
        threshold: float | None = None,
        classes: Any = (0, 1),
        binarize: float = 0.0,
        features_per_row: int | None = None,
        expected_rows: int | None = None,
        neighbours: str | Neighbours = "replace-one",
        rows_per_unit: int = 1,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            classes=classes,
            binarize=binarize,
            features_per_row=features_per_row,
            expected_rows=expected_rows,
            neighbours=neighbours,
            rows_per_unit=rows_per_unit,
            ledger=ledger,
            budget=budget,
        )
        self.select = select
        self.classifier = classifier
        self.split = split
        self.selection_score = selection_score
        self.k = k
        self.threshold = threshold

    def _classifier(self) -> Any:
        """A fresh classifier with the pipeline's public facts."""
        if isinstance(self.classifier, PrivateNaiveBayes | PrivateLogisticRegression):
            from sklearn.base import clone

            model = clone(self.classifier)
        elif isinstance(self.classifier, str) and self.classifier in CLASSIFIERS:
            model = CLASSIFIERS[self.classifier]()
        else:
            raise ArgumentError(
                f"classifier must be {' or '.join(map(repr, CLASSIFIERS))} or an instance of one, "
                f"got {shown(self.classifier)}."
            )
        model.set_params(expected_rows=self.expected_rows, binarize=self.binarize)
        return model

    def _selects(self) -> bool:
        """Whether a selection of its own comes before the training."""
        if self.select is not None and not is_one_of(self.select, (JOINT, *METHODS)):
            raise ArgumentError(
                f"select must be 'joint', None or one of {', '.join(METHODS)}, got "
                f"{shown(self.select)}."
            )
        alone = self.select is None or self.select == JOINT
        if alone and self.split is not None:
            raise ArgumentError(
                f"split must be left out with select={self.select!r}, where all of epsilon trains."
            )
        return not alone

    def _private(self, X: Any, y: Any, *, unit: Any, row_keys: Any) -> FeatureMatrix:
        self._selects(), self._classifier()
        return super()._private(X, y, unit=unit, row_keys=row_keys)

    def _bound(self) -> int | None:
        """Rows are sampled down for the selection alone; the training weighs them instead."""
        if self.features_per_row is None and self._selects():
            return SAMPLED
        return self.features_per_row

    def _most_rows(self) -> int:
        return int(self._classifier()._most_rows())

    def _selection(self, private: FeatureMatrix, epsilon: Fraction) -> Plan:
        k = self.k
        if k is None and self.threshold is None:
            k = features_to_take(
                epsilon,
                rows=self._rows(private),
                features=private.features,
                protection=private.protection,
            )
            k = k if self.select in BY_NUMBER else min(MORE * k, private.features)
        return plan_selection(
            private,
            epsilon=epsilon,
            method=str(self.select),
            score=score_named(self.selection_score),
            k=k,
            threshold=self.threshold,
        )

    def _train(self, private: FeatureMatrix, price: Fraction, session: PrivateSession) -> None:
        model = self._classifier()
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        selection: Plan | None = None
        share = Fraction(0)
        if self._selects():
            share = selection_share(self.split, method=str(self.select))
            selection = self._selection(private, share * price)
        stages = Stages(model.plan(private, price - share * price), selection)
        drawn = session._release(
            stages.request("select and train", claim="pipeline", **self._words(private, selection))
        )
        model._understand(stages, drawn.values[-1][0])
        self.classifier_, self._chosen = model, stages.chosen
        self.split_ = stages.split()
        """What each part cost, in epsilon."""
        chosen = np.arange(private.features) if stages.chosen is None else list(stages.chosen)
        weights = np.zeros(private.features)
        weights[chosen] = model.weights_
        self.weights_ = weights
        self.selected_ = model.selected_ if stages.chosen is None else np.array(chosen)
        self.release_ = ModelRelease(
            drawn,
            weights=weights,
            selected=self.selected_,
            split=self.split_,
            names=private.feature_names,
        )

    def _words(self, private: FeatureMatrix, selection: Plan | None) -> dict[str, Any]:
        words: dict[str, Any] = {"features": private.features, "select": self.select}
        if selection is not None:
            words |= {
                "score": self.selection_score,
                "k": selection.k,
                "threshold": selection.threshold,
            }
        return words

    def _scores(self, matrix: Any) -> Any:
        seen = matrix if self._chosen is None else matrix[:, list(self._chosen)]
        return self.classifier_._scores(seen)
