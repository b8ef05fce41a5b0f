"""Select and train under one price, booked at once; the split is said."""

import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel import Budget, Ledger
from heldout.kernel.neighbours import Neighbours
from heldout.questions.features.budget import TABLE
from heldout.questions.features.logistic import PrivateLogisticRegression
from heldout.questions.features.logistic_plan import LogisticPlan
from heldout.questions.features.naive_bayes import PrivateNaiveBayes
from heldout.questions.features.questions import AUTO, JOINT, Training
from heldout.questions.features.stages import Stages
from heldout.questions.features.training import PrivateClassifier
from heldout.questions.session import Epsilon

__all__ = ["PrivatePipeline"]

CLASSIFIERS: dict[str, type[PrivateClassifier]] = {
    "naive-bayes": PrivateNaiveBayes,
    "logistic": PrivateLogisticRegression,
}
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
        "auto" (the default): logistic regression for a table of at most 256 features, naive Bayes
        for more. Or "naive-bayes" or "logistic", or an instance of one, whose `weight` and `ridge`
        count.
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

    >>> import numpy as np
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
        classifier: Any = AUTO,
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
        account: str | None = None,
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
            account=account,
        )
        self.select = select
        self.classifier = classifier
        self.split = split
        self.selection_score = selection_score
        self.k = k
        self.threshold = threshold

    def _classifier(self, named: str = "naive-bayes") -> Any:
        """A fresh classifier with the pipeline's public facts; "auto" is the one that is named."""
        if isinstance(self.classifier, PrivateNaiveBayes | PrivateLogisticRegression):
            from sklearn.base import clone

            model = clone(self.classifier)
        elif isinstance(self.classifier, str) and self.classifier in (AUTO, *CLASSIFIERS):
            model = CLASSIFIERS[named if self.classifier == AUTO else self.classifier]()
        else:
            raise ArgumentError(
                f"classifier must be {' or '.join(map(repr, (AUTO, *CLASSIFIERS)))} or an instance "
                f"of one, got {shown(self.classifier)}."
            )
        model.set_params(expected_rows=self.expected_rows, binarize=self.binarize)
        return model

    def _question(self, price: Fraction) -> Training:
        trained: Training = self._classifier()._question(price)
        return replace(
            trained,
            classifier=AUTO if self.classifier == AUTO else trained.classifier,
            select=self.select,
            split=self.split,
            selection_score=self.selection_score,
            k=self.k,
            threshold=self.threshold,
        )

    def _bound(self) -> int | None:
        """Rows are sampled down for the selection alone; the training weighs them instead."""
        if self.features_per_row is None and self._question(Fraction(1)).selects:
            return SAMPLED
        return self.features_per_row

    def _most_rows(self) -> int:
        table = self.n_features_in_ <= TABLE
        return int(self._classifier("logistic" if table else "naive-bayes")._most_rows())

    def _understand(self, stages: Stages, place: int) -> None:
        logistic = isinstance(stages.plan, LogisticPlan)
        model = self._classifier("logistic" if logistic else "naive-bayes")
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        model._understand(stages, place)
        self.classifier_, self._chosen = model, stages.chosen

    def _scores(self, matrix: Any) -> Any:
        seen = matrix if self._chosen is None else matrix[:, list(self._chosen)]
        return self.classifier_._scores(seen)
