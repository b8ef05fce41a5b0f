"""The two steps of a private logistic regression: coefficients, then the cut."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.door import Step
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.objective import ObjectivePerturbation
from heldout.questions.features.budget import LATEST, RULES, Rules, shares_for
from heldout.questions.features.cut import STEP, Cuts
from heldout.questions.features.logistic_loss import LogisticLoss
from heldout.questions.features.right_calls import RegressionScores
from heldout.questions.features.stages import Features

__all__ = ["CUTS", "LogisticPlan"]

CUTS = Cuts(apart=Fraction(1, 8), near=32, far=(40, 48, 64, 96, 128))
LARGEST = 2.0**20
LEAST_PRICE, MOST_PRICE = Fraction(1, 10**6), 10**6
TYPICAL, FEW = 10, 5
"""A row of a table is taken to set 10 features unless told that it sets fewer; a table with 5 times
as many features in all has few. On tables of 38 to 55 features both kinds of noise did as well."""


@dataclass(frozen=True)
class LogisticPlan:
    """One logistic regression before it is paid: coefficients, then the cut. Public facts alone."""

    features: int
    features_per_row: int
    epsilon: Fraction
    weight: int
    ridge: Fraction | None
    rows: int
    most_rows: int | None
    protection: Protection
    rules: Rules = RULES[LATEST]

    def __post_init__(self) -> None:
        if not LEAST_PRICE <= self.epsilon <= MOST_PRICE:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_PRICE} and {MOST_PRICE:,} for a logistic "
                "regression. Try 1."
            )
        if self.most_rows is None:
            raise ArgumentError(
                "A logistic regression needs a public bound on the number of rows where the number "
                "itself is not public. Pass FeatureMatrix(..., most_rows=...)."
            )

    @property
    def cut_epsilon(self) -> Fraction:
        shares = shares_for(
            self.epsilon,
            rows=self.rows,
            protection=self.protection,
            features=self.features,
            rules=self.rules,
        )
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
        few = count <= FEW * min(TYPICAL, self.features_per_row)
        weight = None if few else min(self.weight, count)
        assert self.most_rows is not None
        loss = LogisticLoss(count, weight, Fraction(1), self.most_rows, chosen)
        return replace(loss, ridge=self.ridge_for(loss))

    def learn(self, chosen: Features = None) -> Step:
        loss = self.loss(chosen)
        return Step(loss, self.mechanism(loss))

    def mechanism(self, loss: LogisticLoss) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            epsilon=self.loss_epsilon,
            moved=self.protection.rows_moved,
            rows_per_unit=self.protection.rows_per_unit,
            row=loss.row,
            square=loss.square,
            dimension=loss.dimension,
            ridge=loss.ridge,
            step=loss.step,
            slack=loss.slack,
            even=loss.weight is None,
        )

    def understood(self, noisy: Any, chosen: Features = None) -> Any:
        """The coefficients in lattice steps of scores, held to a range that no sum overflows.

        The last one is what every row gets: half the constant's, and half of each feature's less
        where features count 1/2 or -1/2.
        """
        loss = self.loss(chosen)
        real = np.clip(np.asarray(noisy, dtype=float) * float(loss.lattice), -LARGEST, LARGEST)
        every = real[-1] - (real[:-1].sum() if loss.weight is None else 0)
        return np.rint(np.append(real[:-1], every / 2) * STEP).astype(np.int64)

    def cut(self, found: Any, chosen: Features = None) -> Step:
        return CUTS.step(
            RegressionScores(found, self.loss(chosen).weight),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def ridge_for(self, loss: LogisticLoss) -> Fraction:
        """A power of two: what was asked for, or two to four times the noise in one coefficient."""
        least = ObjectivePerturbation.least_ridge(
            self.loss_epsilon, square=loss.square, rows_per_unit=self.protection.rows_per_unit
        )
        # Noise of the law exp(-max) deviates by (dimension + 1)/sqrt(3) scales.
        deviation = 1 if loss.weight is not None else Fraction(4, 7) * (loss.dimension + 1)
        wanted = 2 * self.protection.rows_moved * loss.row * deviation / self.loss_epsilon
        if self.ridge is not None:
            wanted = self.ridge
        return _next_power_of_two(max(least, wanted))

    def weights(self, found: Any) -> Any:
        """The coefficients without the intercept."""
        return found[:-1] / STEP

    def told_apart(self, weights: Any) -> Any:
        """All of them: a penalty leaves none out."""
        return np.arange(len(weights))


def _next_power_of_two(number: Fraction) -> Fraction:
    """The smallest power of two that is not below the number.

    >>> _next_power_of_two(Fraction(5)), _next_power_of_two(Fraction(1, 3))
    (Fraction(8, 1), Fraction(1, 2))
    """
    power = Fraction(2) ** math.ceil(math.log2(number))
    while power < number:
        power *= 2
    return power
