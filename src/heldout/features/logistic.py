"""Logistic regression with noise inside its loss: the noise does not grow with the features."""

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.features.budget import shares_for
from heldout.features.cut import STEP, Cuts, RowScores
from heldout.features.matrix import FeatureMatrix
from heldout.features.model import ModelRelease
from heldout.features.stages import Features, Stages
from heldout.features.training import PrivateClassifier
from heldout.mechanisms.objective import ObjectivePerturbation
from heldout.privacy import Budget, Ledger, exact
from heldout.privacy.events import Event
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.release import Step
from heldout.session import Epsilon, PrivateSession
from heldout.statistics.base import rows_moved
from heldout.statistics.joint_counts import UNIT, row_units
from heldout.statistics.logistic_loss import LogisticLoss

__all__ = ["LogisticPlan", "PrivateLogisticRegression"]

WEIGHT = 5
CUTS = Cuts(apart=Fraction(1, 8), near=32, far=(40, 48, 64, 96, 128))
LARGEST = 2.0**20
TIMES = 16  # more rows than so many times the guess are refused, on the custodian's side
LEAST_PRICE, MOST_PRICE = Fraction(1, 10**6), 10**6


def row_scores(coefficients: Any, weight: int) -> RowScores:
    """The regression's score of each row, from coefficients in whole lattice steps."""

    def scores(matrix: Any) -> Any:
        own = np.asarray(matrix.astype(np.int64) @ coefficients[:-1]).ravel()
        return own * row_units(matrix, weight) // UNIT + coefficients[-1]

    return scores


@dataclass(frozen=True)
class LogisticPlan:
    """One logistic regression before it is paid: coefficients, then the cut. Public facts alone."""

    features: int
    epsilon: Fraction
    weight: int
    ridge: Fraction | None
    rows: int
    most_rows: int
    protection: Protection

    @property
    def cut_epsilon(self) -> Fraction:
        shares = shares_for(self.epsilon, rows=self.rows, protection=self.protection)
        return self.epsilon * shares.cut

    @property
    def loss_epsilon(self) -> Fraction:
        return self.epsilon - self.cut_epsilon

    def split(self) -> dict[str, str]:
        return {"coefficients": str(self.loss_epsilon), "cut": str(self.cut_epsilon)}

    def prices(self) -> tuple[Event, Event]:
        chooser = CUTS.chooser(self.cut_epsilon, protection=self.protection)
        first = Event("objective-perturbation", {"epsilon": self.loss_epsilon})
        return first, chooser.event()

    def loss(self, chosen: Features = None) -> LogisticLoss:
        count = self.features if chosen is None else len(chosen)
        weight = min(self.weight, count)
        return LogisticLoss(count, weight, self.ridge_for(weight), self.most_rows, chosen)

    def learn(self, chosen: Features = None) -> Step:
        loss = self.loss(chosen)
        return Step(loss, self.mechanism(loss))

    def mechanism(self, loss: LogisticLoss) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            epsilon=self.loss_epsilon,
            moved=rows_moved(self.protection),
            rows_per_unit=self.protection.rows_per_unit,
            row=loss.row,
            dimension=loss.dimension,
            ridge=loss.ridge,
            step=loss.step,
            slack=loss.slack,
        )

    def understood(self, noisy: Any, chosen: Features = None) -> Any:
        """The coefficients in lattice steps of scores, held to a range that no sum overflows."""
        real = np.asarray(noisy, dtype=float) * float(self.loss(chosen).lattice)
        return np.rint(np.clip(real, -LARGEST, LARGEST) * STEP).astype(np.int64)

    def cut(self, found: Any, chosen: Features = None) -> Step:
        return CUTS.step(
            row_scores(found, self.loss(chosen).weight),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def ridge_for(self, weight: int) -> Fraction:
        """A power of two: what was asked for, or about four times the noise in one coefficient."""
        row = weight + 1
        least = ObjectivePerturbation.least_ridge(
            self.loss_epsilon, row=row, rows_per_unit=self.protection.rows_per_unit
        )
        wanted = 4 * rows_moved(self.protection) * row / self.loss_epsilon
        if self.ridge is not None:
            wanted = self.ridge
        return _next_power_of_two(max(least, wanted))


class PrivateLogisticRegression(PrivateClassifier):
    """Ridge logistic regression on 0/1 features, differentially private (pure epsilon).

    Noise is put into the loss before it is minimised (objective perturbation). The noise is
    Laplace in every coefficient, of a size that depends on how much one row weighs and not on the
    number of features; the solver's and the doubles' errors have a proved bound, which a little
    noise at the end covers.

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
        self.weight = weight
        self.ridge = ridge

    def plan(self, private: FeatureMatrix, price: Fraction) -> LogisticPlan:
        """How the price will be spent on these rows; of public facts alone."""
        weight = self.weight
        if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 1:
            raise ArgumentError(f"weight must be a whole number from 1, got {weight!r}. Try 5.")
        if not LEAST_PRICE <= price <= MOST_PRICE:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_PRICE} and {MOST_PRICE:,} for a logistic "
                "regression, got another. Try 1."
            )
        ridge = None if self.ridge is None else exact(self.ridge, name="ridge", minimum=0)
        if private.row_bound is None:
            raise ArgumentError(
                "most_rows must be declared for a logistic regression where the number of rows is "
                "not public. Pass FeatureMatrix(..., most_rows=...)."
            )
        return LogisticPlan(
            features=private.features,
            epsilon=price,
            weight=min(int(weight), private.features),
            ridge=ridge,
            rows=self._rows(private),
            most_rows=private.row_bound,
            protection=private.protection,
        )

    def _most_rows(self) -> int:
        return TIMES * self._guess()

    def _train(self, private: FeatureMatrix, price: Fraction, session: PrivateSession) -> None:
        plan = self.plan(private, price)
        stages = Stages(plan)
        words = {"features": private.features, "ridge": str(plan.loss().ridge)}
        drawn = session._release(stages.request("logistic regression", claim="logistic", **words))
        self._understand(stages, drawn.values[-1][0])
        self.split_ = stages.split()
        self.release_ = ModelRelease(
            drawn,
            weights=self.weights_,
            selected=self.selected_,
            split=self.split_,
            names=private.feature_names,
        )

    def _understand(self, stages: Stages, place: int) -> None:
        assert isinstance(stages.plan, LogisticPlan)
        loss = stages.plan.loss(stages.chosen)
        self._found, self._row_weight = stages.found, loss.weight
        self.cut_ = CUTS.value(place)
        self.coef_ = self._found[None, :-1] / STEP
        self.intercept_ = self._found[-1:] / STEP - self.cut_
        self.ridge_ = float(loss.ridge)
        self.weights_ = self.coef_[0]
        self.selected_ = np.arange(len(self.weights_))

    def _scores(self, matrix: Any) -> Any:
        return row_scores(self._found, self._row_weight)(matrix) / STEP - self.cut_


def _next_power_of_two(number: Fraction) -> Fraction:
    """The smallest power of two that is not below the number.

    >>> _next_power_of_two(Fraction(5)), _next_power_of_two(Fraction(1, 3))
    (Fraction(8, 1), Fraction(1, 2))
    """
    power = Fraction(2) ** math.ceil(math.log2(number))
    while power < number:
        power *= 2
    return power
