"""Estimators from outside in a private pipeline: what they see, and what is booked for them.

A `TrainingTable` is the rows themselves: what an estimator gets is looked at here.
"""

from fractions import Fraction
from typing import Any, Self

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import heldout as ho
from heldout.errors import AnswerLost, ArgumentError, BudgetExceeded
from heldout.features import FeatureMatrix, PricedEstimator, PrivatePipeline


class Noted(BaseEstimator):  # type: ignore[misc]
    """Notes what it saw; its price is 1/2, times the rows of a unit."""

    def __init__(self, *, fails: bool = False, price: Any = "1/2") -> None:
        self.fails, self.price = fails, price

    def fit_price(self, *, neighbours: str, rows_per_unit: int) -> Any:
        return Fraction(self.price) * rows_per_unit

    def fit(self, X: Any, y: Any) -> Self:
        if self.fails:
            raise ValueError(f"a secret: {y}")
        self.seen_ = X.toarray(), y
        return self

    def predict_proba(self, X: Any) -> Any:
        share = np.asarray(X.sum(axis=1)).ravel() / max(X.shape[1], 1)
        return np.column_stack([1 - share, share])


def rows() -> tuple[Any, Any]:
    y = np.arange(400) % 2
    X = np.zeros((400, 12), dtype=int)
    X[:, 0], X[:, 7] = y, 1
    return X, y


def test_an_estimator_sees_the_bounded_rows_and_the_selected_features_alone() -> None:
    """`TrainingTable` claims no sensitivity: what it hands over is what the estimator pays for."""
    X, y = rows()
    model = PrivatePipeline(
        classifier=Noted(), select="permute-and-flip", k=1, epsilon="100", features_per_row=2
    ).fit(X, y)
    assert model.selected_.tolist() == [7]
    seen, labels = model.classifier_.seen_
    assert seen.shape == (400, 1)
    assert seen.all()
    assert labels.tolist() == y.tolist()
    assert model.split_ == {"selection": "199/2", "declared": "1/2"}
    assert str(model.release_.loss) == "epsilon 100"
    assert model.predict_proba(X[:3]).shape == (3, 2)
    assert model.release_.as_dict()["selected"] == [7]
    assert isinstance(Noted(), PricedEstimator)


def test_the_price_is_that_of_the_declared_relation_and_booked_at_once(tmp_path: Any) -> None:
    X, y = rows()
    words: dict[str, Any] = {"ledger": tmp_path / "ledger.sqlite"}
    model = PrivatePipeline(
        classifier=Noted(), select=None, epsilon="1", rows_per_unit=2, neighbours="add-remove",
        budget=ho.Budget(epsilon="3/2"), **words,
    ).fit(X, y, unit=np.arange(400) // 2)  # fmt: skip
    assert model.split_ == {"declared": "1"}
    assert model.release_.parameters["declared"] == "1"
    with pytest.raises(BudgetExceeded):
        model.fit(X, y, unit=np.arange(400) // 2)


def test_a_fit_that_fails_stays_booked_and_shows_no_row() -> None:
    X, y = rows()
    matrix = FeatureMatrix(X, y)
    with pytest.raises(AnswerLost) as lost:
        PrivatePipeline(classifier=Noted(fails=True), select=None, epsilon="1/2").fit(matrix)
    assert "secret" not in str(lost.value)
    assert lost.value.__context__ is None


@pytest.mark.parametrize(
    "words",
    [
        {"epsilon": "1", "select": None},
        {"epsilon": "1/4", "select": None},
        {"epsilon": "1/2", "select": "noisy-top-k", "k": 1},
        {"epsilon": "1/2", "select": None, "split": "1/2"},
        {"epsilon": "1/2", "select": None, "classifier": Noted(price="0")},
        {"epsilon": "1/2", "select": None, "classifier": object()},
    ],
)
def test_prices_that_do_not_fit_are_refused_before_anything_is_booked(
    words: dict[str, Any], tmp_path: Any
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with pytest.raises(ArgumentError):
        PrivatePipeline(**{"classifier": Noted(), "ledger": ledger} | words).fit(*rows())
    assert not ledger.exists()
