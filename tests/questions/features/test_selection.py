"""Selecting features: by every method, at its price, through the one door."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import heldout as ho
from heldout.data.feature_matrix import FeatureMatrix
from heldout.errors import ArgumentError, BudgetExceeded, NotPrivate
from heldout.kernel import Budget, Ledger, price
from heldout.questions.features.estimators import select_from
from heldout.questions.features.selection import BASELINES, METHODS, clusters, plan_selection
from heldout.questions.features.statistics import SCORES, FeatureCounts, FeatureScores
from heldout.questions.features.tuned import SPURIOUS
from heldout.questions.session import PrivateSession

FEATURES, ROWS = 30, 400
LABELS = np.array([1, 0] * (ROWS // 2))
# Feature 4 is common, feature 9 tells the label, feature 2 is rarer; 20 and more are never set.
X = np.zeros((ROWS, FEATURES), dtype=np.int8)
X[:300, 4] = 1
X[LABELS == 1, 9] = 1
X[:90, 2] = 1
BEST = {"total-count": 4, "difference-count": 9, "purity-index": 9, "information-gain": 9}
PLENTY = "1000000"


def of_rows(**words: object) -> FeatureMatrix:
    return FeatureMatrix(X, LABELS, **({"features_per_row": 3} | words))


@pytest.fixture(scope="module")
def rows() -> FeatureMatrix:
    return of_rows()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("method", METHODS)
def test_with_plenty_of_budget_every_method_finds_what_the_score_asks_for(
    rows, method, score
) -> None:
    best = BEST[score]
    exact = FeatureScores(SCORES[score], rows.row_bound).read(
        rows._fetch("SELECT * FROM evaluated")
    )
    top = float(exact[best]) / SCORES[score].cells
    words = {"threshold": 0.95 * top} if method == "sparse-vector" else {}
    found = ho.features.select(rows, epsilon=PLENTY, method=method, score=score, k=1, **words)
    assert found.features == (best,)
    assert isinstance(found, ho.features.Selection)
    assert str(found.loss) == f"epsilon {PLENTY}"


@pytest.mark.parametrize("method", METHODS)
def test_a_selection_charges_its_epsilon_and_says_so(method, tmp_path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    found = ho.features.select(
        of_rows(),
        epsilon="1/2",
        method=method,
        ledger=ledger,
        budget=Budget(epsilon="3/4"),
        k=2,
    )
    session = PrivateSession(of_rows(), ledger=ledger)
    assert session.spent.epsilon == found.loss.epsilon == Fraction(1, 2)
    with pytest.raises(BudgetExceeded):
        ho.features.select(of_rows(), epsilon="1/2", method=method, ledger=ledger)
    said = json.loads(json.dumps(found.as_dict()))
    assert said["private"] is True
    assert said["parameters"]["method"] == method
    assert said["loss"]["epsilon"] == "1/2"
    assert len(said["features"]) == len(found) == len(found.indices)
    assert "epsilon 0.5" in str(found)
    assert "replace-one" in str(found)
    assert "<table>" in found._repr_html_()
    if method in ("noisy-counts", "cluster", "score-perturbation"):
        assert len(said["scores"]) == len(found)
    else:
        assert found.scores is None, "names alone: no noisy score was paid for"


PROTECTED = {
    "replace-one": {},
    "add-remove": {"neighbours": "add-remove", "most_rows": 500},
    "unit": {"unit": np.arange(ROWS) // 2, "rows_per_unit": 2, "most_rows": 500},
}


@pytest.fixture(scope="module", params=PROTECTED)
def protected(request) -> FeatureMatrix:
    return of_rows(**PROTECTED[request.param])


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("method", METHODS)
def test_noise_is_made_for_the_proven_sensitivity(protected, method, score) -> None:
    """An understated sensitivity anywhere between score and mechanism turns this red."""
    private = protected
    of = SCORES[score]
    plan = plan_selection(private, epsilon=Fraction(1, 3), method=method, score=of, k=4)
    assert price(plan.mechanism.event()).epsilon == Fraction(1, 3)
    each = of.of_each(private.protection, most_rows=private.row_bound)
    one_way = 1 if of.monotone(private.protection) else 2
    if method in ("noisy-counts", "cluster"):
        counts = FeatureCounts(FEATURES, 3, of.needs_label)
        assert plan.statistic == counts
        assert plan.mechanism.scale == 3 * counts.sensitivity(private.protection)
    elif method == "score-perturbation":
        together = of.of_all(
            private.protection, features=FEATURES, features_per_row=3, most_rows=private.row_bound
        )
        assert plan.mechanism.scale == 3 * together
    elif method == "sparse-vector":
        spent = each / plan.mechanism.threshold_scale
        assert spent + 4 * one_way * each / plan.mechanism.query_scale == Fraction(1, 3)
    else:
        assert plan.mechanism.scale == 3 * 4 * one_way * each


@pytest.mark.chance(1e-20, "a Poisson tail, 1e-25")
def test_neither_k_nor_threshold_takes_what_is_beyond_chance() -> None:
    """2,000 features of no row: about SPURIOUS get in, and never 60 (chance below 1e-25)."""
    rows = csr_array((50, 2000), dtype=np.int8)
    for score in ("total-count", "difference-count"):
        found = ho.features.select(rows, [1, 0] * 25, epsilon="1", score=score)
        assert len(found) < 6 * SPURIOUS
        assert found.as_dict()["parameters"]["threshold"] > 1


def test_k_and_threshold_may_be_asked_for_together() -> None:
    found = ho.features.select(X, LABELS, epsilon=PLENTY, k=5, threshold=150)
    assert found.features == (4, 9)
    assert np.abs(found.scores - [300, 200]).max() <= 1
    low, high = found.score_interval(0.95)
    assert (low <= found.scores).all()
    assert (found.scores <= high).all()


def test_clusters_are_kept_whole() -> None:
    found = ho.features.select(X, LABELS, epsilon=PLENTY, method="cluster", threshold=60)
    assert set(found.features) == {2, 4, 9}
    levels = clusters(np.array([0.0] * 50 + [40.0, 42.0, 90.0, 91.0]))
    assert len(set(levels[-4:-2])) == len(set(levels[-2:])) == 1
    assert clusters(np.zeros(5)).tolist() == [0.0] * 5


def test_names_follow_the_features() -> None:
    names = [f"word{i}" for i in range(FEATURES)]
    found = ho.features.select(X, LABELS, epsilon=PLENTY, k=2, feature_names=names)
    assert found.features == ("word4", "word9")
    assert list(found) == ["word4", "word9"]
    assert "word9" in found
    assert float(found) == 2
    assert found.transform(X).shape == (ROWS, 2)
    assert found.transform(csr_array(X)).shape == (ROWS, 2)


def test_rows_over_the_bound_count_for_as_many_features_as_the_bound_says() -> None:
    full = np.ones((200, 10), dtype=int)
    found = ho.features.select(full, [1, 0] * 100, epsilon=PLENTY, features_per_row=2, k=10)
    assert round(float(found.scores.sum())) == 400


@pytest.mark.parametrize("method", BASELINES)
def test_what_is_not_private_refuses_charges_nothing_and_is_marked(method, tmp_path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    session = PrivateSession(of_rows(), budget=Budget(epsilon="1"), ledger=ledger)
    words = {"epsilon": "50", "method": method, "threshold": 50, "ledger": ledger}
    with pytest.raises(NotPrivate, match="not_private=True"):
        ho.features.select(of_rows(), **words)
    found = ho.features.select(of_rows(), **words, not_private=True)
    assert str(session.spent) == "epsilon 0"
    assert str(found).startswith("NOT PRIVATE")
    said = found.as_dict()
    assert said["private"] is False
    assert said["loss"] is None
    assert said["warning"].startswith("NOT PRIVATE")
    assert 4 in found.features
    with pytest.raises(ArgumentError, match="threshold"):
        ho.features.select(of_rows(), epsilon="1", method=method, k=3, not_private=True)


@pytest.mark.parametrize(
    "words",
    [
        {"epsilon": "0"},
        {"epsilon": "x"},
        {"method": "hope"},
        {"score": "beauty"},
        {"k": 0},
        {"k": 1.5},
        {"k": True},
        {"threshold": "many"},
        {"threshold": float("nan")},
        {"method": "noisy-top-k", "threshold": 3},
        {"not_private": True},
        {"score": "information-gain", "method": "noisy-top-k", "unit": True},
    ],
)
def test_a_refused_selection_costs_nothing(words, tmp_path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    units = {"unit": np.arange(ROWS)} if words.pop("unit", False) else {}
    private = of_rows(**units)
    session = PrivateSession(private, budget=Budget(epsilon="1"), ledger=ledger)
    with pytest.raises(ArgumentError):
        select_from(private, **({"epsilon": "1"} | words), session=session)
    assert str(session.spent) == "epsilon 0"


def test_labels_and_units_go_with_arrays_and_not_with_a_matrix() -> None:
    with pytest.raises(ArgumentError, match="Pass y="):
        ho.features.select(X, epsilon="1")
    for words in ({"y": LABELS}, {"neighbours": "add-remove"}, {"rows_per_unit": 2}):
        with pytest.raises(ArgumentError, match="left out"):
            ho.features.select(of_rows(), epsilon="1", **words)
    units = np.arange(ROWS) // 2
    found = ho.features.select(X, LABELS, epsilon=PLENTY, unit=units, row_keys=np.arange(ROWS), k=1)
    assert "protecting each unit with at most 1 row" in str(found)
    assert found.scores[0] == pytest.approx(150, abs=1), "one row of each pair counts"


def test_selection_is_a_name_that_can_be_called_whatever_was_imported_before() -> None:
    import heldout.questions.features.selection  # noqa: F401

    assert callable(ho.features.select)
