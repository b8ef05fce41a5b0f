"""What newcomers stumble over in Python: each mistake is named, and what to do instead."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, UnknownLabel

LABELS = np.array([0, 1] * 200)
SCORES = np.linspace(0, 1, 400)
CLASSES = np.array(["a", "b", "c"] * 150)
COLUMNS = np.tile([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]], (150, 1))


@pytest.mark.parametrize(
    ("y_true", "y_score", "options", "message"),
    [
        (LABELS, np.c_[1 - SCORES, SCORES], {},
         "y_score has 2 columns. Pass the positive class: y_score[:, 1]."),
        (LABELS, SCORES[:-1], {},
         "y_true and y_score must have the same length, got y_true 400, y_score 399."),
        (LABELS, SCORES[:-1], {"neighbours": "add-remove"},
         "y_true and y_score must have the same length."),
        (LABELS, SCORES[:, None], {}, "y_score must be one-dimensional, got 2 dimensions."),
        (LABELS, SCORES, {"n_jobs": 2}, "n_jobs is not supported. A release is drawn in one"),
        (LABELS, SCORES, {"pos_lable": 1}, "No option 'pos_lable'. Did you mean 'pos_label'?"),
        (CLASSES, COLUMNS, {"multi_class": "ovr"},
         "y_score has 3 columns. Pass labels=, the classes in the order of the columns."),
        (CLASSES, COLUMNS, {"multi_class": "ovo", "labels": ["a", "b", "c"]},
         "multi_class must be 'ovr'"),
        (LABELS, np.c_[1 - SCORES, SCORES], {"epsilon": 0}, "epsilon must be more than 0, got 0."),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(
    y_true: Any, y_score: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        ho.roc_auc_score(y_true, y_score, **{"epsilon": 1} | options)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("epsilon", [Fraction(1, 6000), 1000, Fraction(-1, 3)])
def test_a_wrong_price_is_shown_as_people_write_it(epsilon: Any) -> None:
    with pytest.raises(ArgumentError) as refused:
        ho.roc_auc_score(LABELS, SCORES, epsilon=epsilon)
    message = str(refused.value)
    assert str(epsilon) in message
    assert "Fraction(" not in message
    assert "piecewise" not in message


def test_scores_of_three_classes_have_an_area_for_each() -> None:
    areas: Any = ho.roc_auc_score(
        CLASSES, COLUMNS, labels=["a", "b", "c"], multi_class="ovr", epsilon=4
    )
    assert list(areas.classes) == ["a", "b", "c"]
    assert float(areas) > 0.6


def test_a_printed_confusion_matrix_shows_its_counts() -> None:
    predicted = np.where(np.arange(400) < 300, LABELS, 1 - LABELS)
    matrix = ho.confusion_matrix(LABELS, predicted, epsilon=8)
    first, head, negatives, positives, noise = str(matrix).splitlines()
    assert first.startswith("accuracy 0.7")
    assert head.split() == ["called", "negative", "called", "positive"]
    assert (negatives.split()[0], positives.split()[0]) == ("negatives", "positives")
    assert int(negatives.split()[1]) == int(matrix.true_negatives.value)
    assert int(positives.split()[2]) == int(matrix.true_positives.value)
    assert noise.startswith("Noise per count: at most ±")


def test_a_confusion_matrix_read_off_curves_is_printed_like_one() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    read = ho.Session(rows, budget=1).curves(epsilon=1).confusion(0.5)
    first, head, *_, noise = repr(read).splitlines()
    assert first == str(read.accuracy)
    assert head.split() == ["called", "negative", "called", "positive"]
    assert noise.startswith("Noise per count: at most ±")


def test_a_budget_may_be_a_plain_number() -> None:
    rows = ho.Dataset({"y": LABELS, "p": SCORES}, label="y", score="p")
    budgets: list[Any] = [3, "3", ho.Budget(3), ho.Budget(epsilon=3), Fraction(3)]
    for budget in budgets:
        assert str(ho.Session(rows, budget=budget).remaining) == "epsilon 3"
    with pytest.raises(ArgumentError, match="epsilon must be"):
        ho.Session(rows, budget="three")


def test_a_model_of_three_classes_is_evaluated() -> None:
    model = LogisticRegression(max_iter=500).fit(COLUMNS, CLASSES)
    report = ho.evaluate(model, COLUMNS, CLASSES, epsilon=8)
    assert "balanced accuracy" in report.measures()


def test_one_candidate_too_many_says_how_many_were_declared() -> None:
    X, public = SCORES[:, None], np.arange(100)
    search = ho.Search(epsilon=8, candidates=1, folds=2, public=public)
    train, test = next(iter(search.split(X, LABELS)))
    model = LogisticRegression().fit(X[train], LABELS[train])
    search(model, X[test], LABELS[test])
    with pytest.raises(BudgetExceeded, match="declared 1 candidates, and this is one more"):
        search(model, X[test], LABELS[test])


@pytest.mark.parametrize("name", ["accuracy_score", "f1_score", "balanced_accuracy_score"])
def test_a_metric_of_scikit_learn_that_is_a_reading_names_the_matrix_that_has_it(name: str) -> None:
    with pytest.raises(
        AttributeError, match=r"Use heldout\.confusion_matrix\(.*\)\.(\w+):"
    ) as refused:
        getattr(ho, name)
    reading = str(refused.value).partition("epsilon=...).")[2].partition(":")[0]
    matrix: Any = ho.confusion_matrix(LABELS, SCORES >= 0.5, epsilon=1)
    assert 0 <= getattr(matrix, reading).value <= 1
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_score'$"):
        _ = ho.no_such_score


def test_classes_of_a_confusion_matrix_are_asked_for() -> None:
    with pytest.raises(UnknownLabel, match="or all classes, if there are more than two"):
        ho.confusion_matrix([0, 1, 0], [0, 1, 2], epsilon=1)


def test_a_report_whose_first_number_noise_hides_says_so_in_a_sentence() -> None:
    rows = ho.Dataset({"y": LABELS[:20], "p": SCORES[::20]}, label="y", score="p")
    report = ho.Session(rows, budget=1).report(epsilon="1/10")
    assert not report.headline.informative
    assert "Noise hides the AUC: there is no information at this price." in report.html()
