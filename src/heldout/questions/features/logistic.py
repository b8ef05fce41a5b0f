"""Logistic regression with noise inside its loss: the noise does not grow with the features."""

import os
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.kernel import Budget, Ledger
from heldout.kernel.neighbours import Neighbours
from heldout.questions.features.cut import STEP
from heldout.questions.features.logistic_loss import MARGIN
from heldout.questions.features.logistic_plan import CUTS, LogisticPlan
from heldout.questions.features.questions import WEIGHT, Training
from heldout.questions.features.right_calls import RegressionScores
from heldout.questions.features.stages import Stages
from heldout.questions.features.training import PrivateClassifier
from heldout.questions.session import Epsilon

__all__ = ["PrivateLogisticRegression"]

TIMES = 16  # more rows than so many times the guess are refused, on the custodian's side


class PrivateLogisticRegression(PrivateClassifier):
    """Ridge logistic regression on 0/1 features, differentially private (pure epsilon).

    Noise is put into the loss before it is minimised (objective perturbation). With many features
    it is Laplace in every coefficient, of a size that depends on how much one row weighs and not on
    the number of features; with few, noise of the law exp(-max), a third as large for rows that
    set about half of them. Rows on the right side pull until they are well beyond the cut, so that
    they pull hard from the start; the log-odds are those of that loss. The solver's and the
    doubles' errors have a proved bound, which a little noise at the end covers.

    Claim:       pure DP, epsilon.                                             [claim: logistic]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of `LogisticLoss`.
    Numerics:    exact noise; doubles with a proved bound inside.
    Refuses:     no epsilon; labels other than the two declared ones; rows far beyond
                 `expected_rows` where their number is not public.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011; proofs/logistic.md.
    Cost:        a dozen Newton steps and 16 microseconds a feature.

    `ridge` is the least strength of the penalty ridge/2 |t|^2 on the sum of losses; None chooses it
    from epsilon. `weight` is how many features a row may set before their weights shrink. The other
    parameters are those of `PrivateClassifier`.

    >>> import numpy as np
    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivateLogisticRegression(epsilon="1").fit(X, y)
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
        ridge: Epsilon | None = None,
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
        self.ridge = ridge

    def _question(self, price: Fraction) -> Training:
        return Training(
            epsilon=price,
            classifier="logistic",
            weight=self.weight,
            ridge=self.ridge,
            expected_rows=self.expected_rows,
        )

    def _most_rows(self) -> int:
        return TIMES * self._guess()

    def _understand(self, stages: Stages, place: int) -> None:
        assert isinstance(stages.plan, LogisticPlan)
        loss = stages.plan.loss(stages.chosen)
        self._found, self._row_weight = stages.found, loss.weight
        self.cut_ = CUTS.value(place)
        self.coef_ = self._found[None, :-1] / STEP
        self.intercept_ = self._found[-1:] / STEP - self.cut_
        self.ridge_ = float(loss.ridge)

    def _scores(self, matrix: Any) -> Any:
        own = RegressionScores(self._found, self._row_weight)(matrix) / STEP - self.cut_
        return np.logaddexp(0, own - MARGIN) - np.logaddexp(0, -own - MARGIN)
