"""Feature selection of Stoddard et al., in small and without their data."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from heldout.errors import ArgumentError
from heldout_papers import registry, stoddard_2014_selection, stoddard_2014_study
from heldout_papers.registry import Context
from heldout_papers.stoddard_2014_study import Job, chosen_by, f1, run, true_scores
from heldout_papers.stoddard_2014_words import SETS, fold, naive_bayes, word_set

FIGURES = ("1", "2", "3", "4", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three small collections: spam says 'prize', ham says 'lunch', and there is idle talk."""
    place = tmp_path_factory.mktemp("texts")
    random = np.random.default_rng(3)
    idle = np.array([f"word{i}" for i in range(60)])
    for name, file in SETS.items():
        labels = random.integers(0, 2, 240)
        texts = [
            " ".join([*(["prize"] if y else ["picnic"]), *random.choice(idle, 6)]) for y in labels
        ]
        columns = {"label": labels, "text": texts}
        if name == "REUTERS":
            columns = {"label": labels, "title": texts, "body": [None] * 240,
                       "topics": [["earn"]] * 240}  # fmt: skip
        (place / file).parent.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table(columns), place / file)
    return place


def test_five_figures_are_registered_and_ask_for_their_data() -> None:
    found = {
        e.number for e in registry.discover() if (e.paper, e.kind) == ("stoddard-2014", "figure")
    }
    assert set(FIGURES) <= found
    for number in FIGURES:
        entry = registry.find(paper="stoddard-2014", kind="figure", number=number)
        with pytest.raises(ArgumentError, match="sms_spam"):
            entry.run(Context(data=Path("/nowhere")))


@pytest.mark.parametrize("number", ["3", "5"])
def test_a_figure_in_small_has_a_table_a_picture_and_marks(folder, number, monkeypatch) -> None:
    monkeypatch.setattr(stoddard_2014_selection, "FOLDS", 1)
    monkeypatch.setattr(stoddard_2014_study, "TOP", 3)
    entry = registry.find(paper="stoddard-2014", kind="figure", number=number)
    found = entry.run(Context(data=folder, workers=1, repetitions=1))
    assert found.table
    for row in found.table:
        assert row["private"] == (
            not row["method"].endswith("*") and row.get("epsilon", "1") is not None
        )
    for chart in found.charts:
        assert chart.to_dict()
    if number == "3":
        assert {row["private"] for row in found.table} == {True, False}
        assert all(0 <= row["F1"] <= 1 for row in found.table)


@pytest.mark.chance(1e-7, "--louder 10: 0 of 14 runs fail")
@pytest.mark.parametrize("name", SETS)
def test_every_kind_of_job_predicts_the_tenth_fold(folder, name) -> None:
    for words in (
        {"model": "majority"},
        {"epsilon": None},
        {"epsilon": None, "select": "TC"},
        {"select": "PTT", "share": 0.2, "epsilon": "1000"},
        {"model": "ours", "epsilon": "1000"},
    ):
        result = run(Job(folder, name, "job", 0, **words))
        assert 0 <= result.accuracy <= 1
        if words.get("model") != "majority" and "select" not in words:
            assert result.accuracy > 0.9


def test_folds_are_disjoint_and_cover_all_rows(folder) -> None:
    rows = word_set(folder, "SMS")
    seen = sum(fold(rows, number)[1].astype(int) for number in range(10))
    assert (seen == 1).all()
    assert not np.array_equal(fold(rows, 0)[1], fold(rows, 10)[1])


@pytest.mark.parametrize(
    "method", ["PTT", "NoisyCut", "score perturbation", "noisy counts", "clusters of noisy counts"]
)
def test_with_plenty_of_budget_a_method_finds_the_frequent_words(folder, method) -> None:
    rows = word_set(folder, "SMS")
    exact = true_scores(rows.words, rows.labels, "total-count")
    wanted = np.flatnonzero(exact >= 60)
    assert 0 < len(wanted) < 5
    found = chosen_by(
        method, rows.words, rows.labels, score="total-count", epsilon=1e6,
        random=np.random.default_rng(1), sampled=20, threshold=60,
    )  # fmt: skip
    assert f1(found, wanted) == 1


def test_the_published_classifier_is_naive_bayes() -> None:
    from sklearn.naive_bayes import BernoulliNB

    random = np.random.default_rng(2)
    y = random.integers(0, 2, 500)
    X = (random.random((500, 12)) < np.where(y[:, None] == 1, 0.4, 0.2)).astype(np.int8)
    ours = naive_bayes(X, y, epsilon=None, s=12, random=random)(X)
    assert (ours == BernoulliNB().fit(X, y).predict(X)).mean() > 0.99


def test_f1_of_the_same_features_is_one_and_of_others_none() -> None:
    assert f1([1, 2], [2, 1]) == 1
    assert f1([1, 2], [3]) == 0
    assert f1([], []) == 0
