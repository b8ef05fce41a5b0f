"""Select and train under one price."""

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.features import (
    FeatureMatrix,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
    PrivatePipeline,
)
from heldout.questions.features.plans import BAYES_CUTS, LOGISTIC_CUTS, Cuts
from heldout.questions.features.selection import METHODS


def separable(rows, features=30):
    y = np.arange(rows) % 2
    X = np.zeros((rows, features), dtype=int)
    X[y == 1, 3] = 1
    X[y == 0, 5] = 1
    return X, y


@pytest.mark.parametrize("classifier", ["naive-bayes", "logistic"])
@pytest.mark.parametrize("select", ["joint", None, *METHODS])
def test_the_ledger_books_epsilon_once_and_the_parts_add_up(select, classifier, tmp_path):
    X, y = separable(1000)
    ledger = tmp_path / "ledger.sqlite"
    model = PrivatePipeline(
        select=select,
        classifier=classifier,
        epsilon="2",
        k=None if select in ("joint", None) else 2,
        ledger=ledger,
        budget=ho.Budget(epsilon="3"),
    ).fit(csr_array(X), y)
    assert sum(Fraction(each) for each in model.split_.values()) == 2
    assert str(model.release_.loss) == "epsilon 2"
    assert ("selection" in model.split_) == (select not in ("joint", None))
    with pytest.raises(BudgetExceeded):
        clone(model).fit(csr_array(X), y)


@pytest.mark.chance(louder(0, 6, 20))
@pytest.mark.parametrize("select", ["joint", "permute-and-flip", "noisy-counts"])
def test_a_plain_signal_survives_selection(select):
    X, y = separable(4000)
    model = PrivatePipeline(select=select, k=None if select == "joint" else 2, epsilon="4")
    model.fit(X, y)
    assert {3, 5} <= set(model.selected_.tolist())
    assert (model.predict(X) == y).mean() > 0.99
    assert model.weights_.shape == (30,)
    assert np.isfinite(model.predict_proba(csr_array(X))).all()


def test_the_papers_split_and_ones_own_are_kept():
    X, y = separable(200)
    for split, method, selection in (
        ("paper", "cluster", Fraction(1, 5)),
        ("paper", "score-perturbation", Fraction(1, 2)),
        ("1/4", "noisy-top-k", Fraction(1, 4)),
    ):
        model = PrivatePipeline(select=method, split=split, epsilon="1", k=3).fit(X, y)
        assert Fraction(model.split_["selection"]) == selection
        assert f"selection {selection}" in str(model.release_)
        assert model.release_.as_dict()["parameters"]["select"] == method


def test_an_empty_selection_still_gives_a_model():
    X, y = separable(50)
    model = PrivatePipeline(select="noisy-counts", threshold=1e9, epsilon="1").fit(X, y)
    assert model.selected_.tolist() == [0]
    assert set(model.predict(X)) <= {0, 1}


def test_a_classifier_with_settings_of_its_own_may_be_passed():
    X, y = separable(100)
    for classifier in (PrivateNaiveBayes(weight=2), PrivateLogisticRegression(ridge=256)):
        model = PrivatePipeline(classifier=classifier, epsilon="1").fit(X, y)
        assert type(model.classifier_) is type(classifier)
    assert model.classifier_.ridge_ == 256
    private = FeatureMatrix(X, y, features_per_row=2)
    assert PrivatePipeline(select="cluster", k=2, epsilon="1").fit(private).n_features_in_ == 30


@pytest.mark.chance(louder(0, 6, 20))
@pytest.mark.parametrize(
    ("features", "bounded", "trained"),
    [(40, True, "logistic"), (40, False, "naive-bayes"), (300, True, "naive-bayes")],
)
def test_what_is_trained_by_default_follows_from_public_facts(features, bounded, trained):
    X, y = separable(400, features)
    rows = FeatureMatrix(X, y, neighbours="add-remove", most_rows=1000 if bounded else None)
    model = PrivatePipeline(epsilon="8", expected_rows=400).fit(rows)
    assert model.release_.as_dict()["parameters"]["classifier"] == trained
    assert isinstance(model.classifier_, PrivateLogisticRegression) == (trained == "logistic")
    assert (model.predict(X) == y).mean() > 0.9


def test_what_cannot_be_kept_is_refused():
    X, y = separable(40)
    for wrong, words in (
        ({"select": "private-threshold-testing"}, "select must be"),
        ({"split": "1/2"}, "Leave split out"),
        ({"select": "cluster", "split": "3/2"}, "split must lie"),
        ({"classifier": "forest"}, "classifier must be"),
        ({"select": "cluster", "selection_score": "luck"}, "score must be"),
        ({"epsilon": None}, "epsilon must be given"),
    ):
        with pytest.raises(ArgumentError, match=words):
            PrivatePipeline(**({"epsilon": "1"} | wrong)).fit(X, y)


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize(
    "model",
    [
        PrivatePipeline(select="noisy-counts", classifier="logistic"),
        pytest.param(PrivateNaiveBayes(), marks=pytest.mark.slow),
        pytest.param(PrivateLogisticRegression(), marks=pytest.mark.slow),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learn_accepts_it_with_these_exceptions(model):
    exceptions = {"check_fit_idempotent": "two fits are two releases, each with its own noise"}
    # The checks invent labels, so these are taken from y; and epsilon is large enough to learn.
    model = clone(model).set_params(epsilon="100", classes="observed", binarize=0.0)
    found = check_estimator(model, expected_failed_checks=exceptions, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("kind", "cuts"),
    [(PrivateLogisticRegression, LOGISTIC_CUTS), (PrivateNaiveBayes, BAYES_CUTS)],
    ids=["logistic", "naive Bayes"],
)
def test_a_cut_is_read_with_the_cuts_that_it_was_drawn_from(kind: Any, cuts: Cuts) -> None:
    """The model calls positive what scores above its cut, so the cut is one that was drawn from."""
    random = np.random.default_rng(4)
    labels = random.integers(0, 2, 400)
    features = (random.random((400, 6)) < np.where(labels, 0.7, 0.3)[:, None]).astype(int)
    read = set()
    with patch.object(Cuts, "value", lambda self, place: read.add(self) or 0.0):
        kind(epsilon="1").fit(features, labels)
    assert read == {cuts}
