"""Estimators from outside in a private pipeline: they declare what one fit costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from heldout.arguments import shown
from heldout.arrays import Floats
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel import exact
from heldout.kernel.door import Answers, Booked, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.declared import DeclaredFit
from heldout.questions.features.plans import Features
from heldout.questions.features.selection import SelectionPlan
from heldout.questions.features.statistics import FeatureStatistic, SparseRows, seen_through


@runtime_checkable
class PricedEstimator(Protocol):
    """A classifier in scikit-learn's shape that says what one fit costs.

    `fit_price` is the epsilon of pure differential privacy that one call of `fit` costs where
    neighbours differ as the pipeline declares ("replace-one" or "add-remove", units of up to
    `rows_per_unit` rows). It depends on public parameters alone. That it is true is the
    estimator's own claim: the ledger books it, and nothing here proves it. `fit` gets a sparse
    matrix of 0 and 1 and labels 0 and 1; scores come from `decision_function`, or from
    `predict_proba` where there is none.
    """

    def fit_price(self, *, neighbours: str, rows_per_unit: int) -> Any: ...

    def fit(self, X: Any, y: Any) -> Any: ...


def declared_price(estimator: PricedEstimator, protection: Protection) -> Fraction:
    """Return what one fit costs, as the estimator says."""
    declared = estimator.fit_price(
        neighbours=protection.neighbours.value, rows_per_unit=protection.rows_per_unit
    )
    price = exact(declared, name="fit_price")
    if price <= 0:
        raise ArgumentError(f"fit_price must be more than 0, got {shown(declared)}.")
    return price


def scores_of(estimator: Any, matrix: SparseRows) -> Floats:
    """Return the log-odds of public rows by a fitted estimator."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(matrix), dtype=float)
    from scipy.special import logit

    shares = np.asarray(estimator.predict_proba(matrix), dtype=float)[:, 1]
    return np.asarray(logit(np.clip(shares, 1e-12, 1 - 1e-12)), dtype=float)


@dataclass(frozen=True)
class TrainingTable(FeatureStatistic[tuple[SparseRows, Any]]):
    """The rows themselves, for an estimator that answers for their privacy.

    Claim:       none of its own: `DeclaredFit` is the only one to open it. [claim: declared-fit]
    Neighbours:  any.
    Sensitivity: not known.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/declared-fit.md.
    Cost:        one pass.
    """

    chosen: Features = None
    claim = "declared-fit"
    shown_by = (
        "tests/questions/features/test_outside.py"
        "::test_an_estimator_sees_the_bounded_rows_and_the_selected_features_alone"
    )

    def read(self, columns: Columns) -> tuple[SparseRows, Any]:
        return seen_through(columns, self.chosen), np.asarray(columns["label"])


class OutsideStages:
    """A selection, if there is one, then the fit of an estimator from outside; paid as one."""

    def __init__(
        self, estimator: PricedEstimator, price: Fraction, selection: SelectionPlan | None
    ) -> None:
        self.estimator, self.price, self.selection = estimator, price, selection
        self.chosen: Features = None

    def request(self, words: Mapping[str, Any]) -> Staged:
        fit = DeclaredFit(self.price, self._learn)
        steps = {"learning": Booked(fit.event(), lambda answers: Step(self._table(answers), fit))}
        split = {"declared": str(self.price)}
        if self.selection is not None:
            first = Booked.of(Step(self.selection.statistic, self.selection.mechanism))
            steps = {"selection": first} | steps
        return Staged(
            name="select and train",
            steps=steps,
            parameters=dict(words) | split,
            claim="declared-fit",
            description={"name": "an estimator from outside", "split": split},
            reading=self,
        )

    def _table(self, answers: Answers) -> TrainingTable:
        if self.selection is not None:
            indices = self.selection.read(answers["selection"]).indices
            self.chosen = tuple(sorted(int(index) for index in indices)) or (0,)
        return TrainingTable(self.chosen)

    def _learn(self, rows: tuple[SparseRows, Any]) -> None:
        self.estimator.fit(*rows)
