"""Naive Bayes from one release of noisy counts; which features count is then free to choose."""

import os
from fractions import Fraction
from typing import Any

from heldout.kernel import Budget, Ledger
from heldout.kernel.neighbours import Neighbours
from heldout.questions.features.cut import STEP
from heldout.questions.features.naive_bayes_plan import CUTS
from heldout.questions.features.questions import WEIGHT, Training
from heldout.questions.features.right_calls import SummedScores
from heldout.questions.features.stages import Stages
from heldout.questions.features.training import PrivateClassifier
from heldout.questions.session import Epsilon

__all__ = ["PrivateNaiveBayes"]


class PrivateNaiveBayes(PrivateClassifier):
    """Naive Bayes on 0/1 features, differentially private (pure epsilon), for many features.

    One release holds noisy counts of every feature by label, in which a row with many features
    gives each a smaller weight. Each feature's log-odds is then shrunk by what its noisy counts
    say against the noise that is known to be in them, so features that are all noise weigh
    nothing: selection costs nothing extra. Last, the cut that is right most often is chosen by
    permute-and-flip.

    Claim:       pure DP, epsilon.                                          [claim: naive-bayes]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: `JointCounts` for the counts, `RightCalls` for the cut.
    Numerics:    exact, on integers; weights are readings of noisy integers.
    Refuses:     no epsilon; labels other than the two declared ones.
    Reference:   Vaidya et al. 2013; proofs/naive-bayes.md.
    Cost:        one pass over the entries for each of two steps, 8 microseconds a feature.

    `weight` is how many features a row may set before their weights shrink. The other parameters
    are those of `PrivateClassifier`.

    >>> import numpy as np
    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivateNaiveBayes(epsilon="1").fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.99), str(model.release_.loss)
    (True, 'epsilon 1')
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon | None = None,
        classes: Any = (0, 1),
        binarize: float = 0.0,
        weight: int = WEIGHT,
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
        self.weight = weight

    def _question(self, price: Fraction) -> Training:
        return Training(
            epsilon=price,
            classifier="naive-bayes",
            weight=self.weight,
            expected_rows=self.expected_rows,
        )

    def _understand(self, stages: Stages, place: int) -> None:
        self._found = _, sizes = stages.found
        self.size_weights_ = sizes / STEP
        self.cut_ = CUTS.value(place)

    def _scores(self, matrix: Any) -> Any:
        return SummedScores(*self._found)(matrix) / STEP - self.cut_
