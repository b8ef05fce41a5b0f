"""Numbers that are no 0/1 features: refused, or binned by public bounds."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from tests.chances import louder

from heldout.errors import ArgumentError, DataError
from heldout.features import Bins, PrivateLogisticRegression, PrivateNaiveBayes
from heldout.questions.features.plans import BAYES_CUTS, LOGISTIC_CUTS

RANDOM = np.random.default_rng(8)


def numeric(rows: int) -> tuple[Any, Any]:
    X = RANDOM.normal(50, 10, (rows, 3))
    y = (X[:, 0] - X[:, 1] + RANDOM.normal(0, 5, rows) > 0).astype(int)
    return X, y


@pytest.mark.parametrize("model", [PrivateLogisticRegression, PrivateNaiveBayes])
@pytest.mark.parametrize("cells", [[[0.5, 1.0]], [[-1, 1]], csr_array([[0.0, 2.5]])])
def test_numbers_that_are_no_counts_are_refused_unless_a_cut_is_named(
    model: Any, cells: Any
) -> None:
    X = np.repeat(cells.toarray() if hasattr(cells, "toarray") else np.array(cells), 40, axis=0)
    X = csr_array(X) if hasattr(cells, "toarray") else X
    y = np.arange(40) % 2
    with pytest.raises(DataError, match="Bins"):
        model(epsilon=1).fit(X, y)
    assert model(epsilon=1, binarize=0.0).fit(X, y).n_features_in_ == 2


def test_counts_are_taken_as_before() -> None:
    X = np.array([[3, 0], [0, 7]] * 50)
    y = np.array([1, 0] * 50)
    assert PrivateLogisticRegression(epsilon=100).fit(X, y).predict([[5, 0]]).tolist() == [1]


@pytest.mark.chance(louder(0, 14, 10))
def test_bins_let_a_private_model_see_what_a_cut_at_zero_hides() -> None:
    X, y = numeric(4000)
    bins = Bins(bounds=[(0, 100)] * 3, bins=16)
    model = PrivateLogisticRegression(epsilon="4").fit(bins.transform(X), y)
    fresh, truth = numeric(2000)
    binned = roc_auc_score(truth, model.predict_proba(bins.transform(fresh))[:, 1])
    assert binned > 0.8
    assert len(bins.get_feature_names_out(["a", "b", "c"])) == 48
    cut = PrivateLogisticRegression(epsilon="4", binarize=0.0).fit(X, y)
    assert roc_auc_score(truth, cut.predict_proba(fresh)[:, 1]) == 0.5


def test_bins_refuse_what_they_cannot_place() -> None:
    with pytest.raises(ArgumentError, match="an entry for each column"):
        Bins(bounds=[(0, 1)]).transform([[1, 2]])
    with pytest.raises(ArgumentError, match="every cell"):
        Bins(bounds=[(0, 1)]).transform([[float("nan")]])
    with pytest.raises(ArgumentError, match="the lower first"):
        Bins(bounds=[(1, 0)]).transform([[1]])


@pytest.mark.parametrize("cuts", [BAYES_CUTS, LOGISTIC_CUTS])
def test_where_all_rows_are_called_alike_they_are_still_ranked(cuts: Any) -> None:
    from scipy.special import expit

    for place in (0, len(cuts.places) + 1):
        scores = np.array([-2.0, 0.0, 3.0])
        assert len(set(expit(scores - cuts.value(place)))) == 3


def test_the_selected_features_are_those_with_a_weight() -> None:
    X = np.zeros((2000, 40), dtype=int)
    y = np.arange(2000) % 2
    X[y == 1, 3] = 1
    X[y == 0, 5] = 1
    model = PrivateNaiveBayes(epsilon="4").fit(X, y)
    assert model.selected_.tolist() == np.flatnonzero(model.weights_).tolist()
