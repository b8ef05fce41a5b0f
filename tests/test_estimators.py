"""Fitted models are evaluated, and searched for, at a declared price."""

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC
from tests.chances import louder

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, HeldoutError

GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(size=(900, 3))
Y = (X[:, 0] + GENERATOR.normal(size=900) > 0).astype(int)
PUBLIC = np.arange(900) < 300
MODEL = LogisticRegression().fit(X[PUBLIC], Y[PUBLIC])


@pytest.mark.chance(louder(0, 6, 20))
def test_a_fitted_model_has_a_report() -> None:
    report = ho.evaluate(MODEL, X[~PUBLIC], Y[~PUBLIC], epsilon=100)
    true = roc_auc_score(Y[~PUBLIC], MODEL.predict_proba(X[~PUBLIC])[:, 1])
    assert report.measures()["AUC"] == pytest.approx(true, abs=0.01)
    assert str(report.budget) == "epsilon 100"


def test_the_positive_class_may_be_the_models_first() -> None:
    words = np.where(Y == 1, "ill", "well")
    model = LogisticRegression().fit(X[PUBLIC], words[PUBLIC])
    ill = ho.evaluate(model, X, words, epsilon=100, pos_label="ill", curves=False)
    other = LinearSVC().fit(X[PUBLIC], words[PUBLIC])
    mapped = ho.evaluate(other, X, words, epsilon=100, pos_label="ill", curves=False)
    for report in (ill, mapped):
        assert report.measures()["AUC"] > 0.7


def test_a_report_is_paid_by_a_registered_account(tmp_path: Path) -> None:
    ledger = ho.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.register("stays", budget=ho.Budget(epsilon=3))
    ho.evaluate(MODEL, X, Y, epsilon=1, ledger=ledger, account="stays", curves=False)
    assert str(ledger.remaining("stays")) == "epsilon 2"


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (LinearRegression().fit(X, Y), X),
        (LogisticRegression(), X),
        (MODEL, X[:, :2]),
        (MODEL, X[1:]),
    ],
)
def test_what_gives_no_score_to_each_row_is_refused(model: Any, rows: Any) -> None:
    with pytest.raises(ArgumentError):
        ho.evaluate(model, rows, Y, epsilon=1)


def test_a_function_of_ours_is_a_scorer() -> None:
    scorer = make_scorer(ho.roc_auc_score, response_method="predict_proba", epsilon="100")
    true = cross_val_score(MODEL, X, Y, scoring="roc_auc")
    assert cross_val_score(MODEL, X, Y, scoring=scorer) == pytest.approx(true, abs=0.01)


@pytest.mark.chance(louder(0, 6, 20))
@pytest.mark.parametrize(
    ("metric", "frame"),
    [("roc_auc", True), ("average_precision", False), ("neg_brier_score", True), ("f1", False)],
)
def test_a_grid_is_searched_for_the_declared_price(metric: str, frame: bool) -> None:
    rows = pd.DataFrame(X, columns=list("abc")) if frame else X
    search = ho.Search(epsilon=200, candidates=2, folds=2, public=PUBLIC, metric=metric)
    grid = {"C": [1e-6, 1.0]}
    words: dict[str, Any] = {"refit": False, "error_score": "raise"}
    found = GridSearchCV(MODEL, grid, cv=search, scoring=search, **words).fit(rows, Y)
    true = GridSearchCV(MODEL, grid, cv=list(search.split(rows, Y)), scoring=metric, **words)
    expected = true.fit(rows, Y).cv_results_["mean_test_score"]
    assert found.cv_results_["mean_test_score"] == pytest.approx(expected, abs=0.02)
    with pytest.raises(BudgetExceeded):
        cross_val_score(MODEL, rows, Y, cv=search, scoring=search, error_score="raise")


def test_folds_are_disjoint_and_look_at_no_row() -> None:
    search = ho.Search(epsilon=1, candidates=1, folds=4, public=PUBLIC)
    other = ho.Search(epsilon=1, candidates=1, folds=4, public=np.flatnonzero(PUBLIC))
    splits = list(search.split(X, Y))
    tested = np.concatenate([test for _, test in splits])
    assert sorted(tested) == np.flatnonzero(~PUBLIC).tolist()
    assert all(train.tolist() == np.flatnonzero(PUBLIC).tolist() for train, _ in splits)
    for (_, ours), (_, theirs) in zip(splits, other.split(X[::-1], 1 - Y), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_a_fold_is_scored_once_by_each_candidate_and_not_again() -> None:
    search = ho.Search(epsilon=2, candidates=2, folds=2, public=PUBLIC)
    (_, first), (_, second) = search.split(X, Y)
    for _ in range(2):
        search(MODEL, X[first], Y[first])
    with pytest.raises(BudgetExceeded):
        search(MODEL, X[first], Y[first])
    search(MODEL, X[second], Y[second])
    for rows in (np.flatnonzero(PUBLIC), first[1:]):
        with pytest.raises(BudgetExceeded):
            search(MODEL, X[rows], Y[rows])


@pytest.mark.parametrize("equal", [True, False])
def test_equal_rows_in_two_folds_change_no_count_and_no_refusal(equal: bool) -> None:
    rows, labels = np.zeros((43, 3)), np.zeros(43, dtype=int)
    if not equal:
        rows, labels = X[:43], Y[:43]
    search = ho.Search(epsilon=2, candidates=2, folds=2, public=np.arange(43) < 2)
    tests = [test for _, test in search.split(rows, labels)]
    assert [len(test) for test in tests] == [20, 21]
    for test in tests:
        for _ in range(2):
            search(MODEL, rows[test], labels[test])
        for others in (test, np.arange(len(test))):
            with pytest.raises(BudgetExceeded):
                search(MODEL, rows[others], labels[others])


def test_what_is_handed_to_the_scorer_decides_nothing_but_the_fold() -> None:
    search = ho.Search(epsilon=100, candidates=1, folds=2, public=PUBLIC)
    rows, labels = X.copy(), Y.copy()
    (_, first), _ = search.split(rows, labels)
    true = roc_auc_score(Y[first], MODEL.predict_proba(X[first])[:, 1])
    rows[:], labels[:] = 0, 0  # the table is changed after it was handed in
    score = search(MODEL, np.full((len(first), 3), np.nan), np.ones(len(first)))
    assert score == pytest.approx(true, abs=0.02)


def test_folds_of_distinct_sizes_need_rows_enough() -> None:
    search = ho.Search(epsilon=1, candidates=1, folds=5, training_epsilon="1/100")
    with pytest.raises(ArgumentError, match="at least 15 private rows, got 14"):
        list(search.split(X[:14], Y[:14]))
    assert [len(test) for _, test in search.split(X[:15], Y[:15])] == [1, 2, 3, 4, 5]


def test_what_a_search_costs_is_what_its_parts_cost(tmp_path: Path) -> None:
    public = ho.Search(epsilon="6", candidates=6, folds=5, public=PUBLIC)
    assert public.fold_epsilon == 1
    learner = ho.Search(epsilon="6", candidates=2, folds=3, training_epsilon="1")
    assert learner.fold_epsilon == Fraction(6, 2) - 2
    assert all(set(train) | set(test) == set(range(900)) for train, test in learner.split(X, Y))
    ledger = ho.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.register("stays", budget=ho.Budget(epsilon=10))
    booked = ho.Search(epsilon=6, candidates=2, public=PUBLIC, ledger=ledger, account="stays")
    for _ in range(2):
        list(booked.split(X, Y))
        assert str(ledger.remaining("stays")) == "epsilon 4", "once, before the first score"
    assert "epsilon 6 for the search" in str(public)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"public": PUBLIC, "training_epsilon": 1},
        {"training_epsilon": "1/2"},
        {"public": PUBLIC, "candidates": 0},
        {"public": PUBLIC, "folds": 1},
        {"public": PUBLIC, "metric": "r2"},
        {"public": PUBLIC, "account": "stays"},
        {"public": PUBLIC, "sample_weight": 1},
    ],
)
def test_a_search_that_cannot_be_paid_or_proven_is_refused(words: dict[str, Any]) -> None:
    with pytest.raises(HeldoutError):
        ho.Search(**{"epsilon": 1, "candidates": 1} | words)


def test_a_search_is_for_one_table_in_one_process() -> None:
    search = ho.Search(epsilon=1, candidates=1, public=PUBLIC)
    list(search.split(X, Y))
    for other in (X + 1, X.copy()):  # a copy too: whether cells are equal may decide nothing
        with pytest.raises(ArgumentError, match="one table"):
            list(search.split(other, Y))
    with pytest.raises(ArgumentError, match="n_jobs must be 1"):
        pickle.loads(pickle.dumps(search))(None, X, Y)
    again = ho.Search(epsilon=1, candidates=1, public=PUBLIC)
    with pytest.raises(ArgumentError, match="n_jobs must be 1"):
        cross_val_score(MODEL, X, Y, cv=again, scoring=again, n_jobs=2, error_score="raise")
