"""Fits of one classifier: on the truth, on shuffled labels, and on rows held out."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.errors import ArgumentError

FOLDS = 5
DEPTH = 5


@dataclass(frozen=True, eq=False)
class Fit:
    """One fitted classifier, its balanced accuracy and its scores on the rows it was fitted to."""

    model: Any
    accuracy: float
    scores: Any
    """Higher means more likely true; a probability where the classifier gives one."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What the classifier makes of rows that it was not fitted to, fold by fold."""

    accuracies: Any
    scores: Any


@dataclass(frozen=True, eq=False)
class Chosen:
    """A classifier to be fitted many times, and what to call it."""

    name: str
    make: Callable[[], Any]
    weighted: bool
    probabilities: bool


def choose(classifier: Any, *, seed: int) -> Chosen:
    """ "logistic", "tree", or any scikit-learn classifier."""
    from sklearn.base import clone, is_classifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.utils.validation import has_fit_parameter

    estimator, name = classifier, type(classifier).__name__
    if isinstance(classifier, str):
        known = {
            "logistic": (LogisticRegression(max_iter=2000), "logistic regression"),
            "tree": (
                DecisionTreeClassifier(max_depth=DEPTH, random_state=seed),
                f"decision tree of depth {DEPTH}",
            ),
        }
        if classifier not in known:
            raise ArgumentError(
                f"classifier must be 'both', 'logistic', 'tree' or a scikit-learn classifier, "
                f"got {classifier!r}."
            )
        estimator, name = known[classifier]
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ArgumentError(
            f"classifier must be 'logistic', 'tree' or a scikit-learn classifier, got {name}. "
            "Pass an object, such as RandomForestClassifier()."
        )
    if not is_classifier(estimator):
        raise ArgumentError(f"classifier must be a classifier, got {name}.")
    return Chosen(
        name=name,
        make=lambda: clone(estimator),
        weighted=has_fit_parameter(estimator, "sample_weight"),
        probabilities=hasattr(estimator, "predict_proba"),
    )


def fit(chosen: Chosen, features: Any, is_true: Any) -> Fit:
    """Fit on all rows and look at the same rows, as the paper does."""
    model = fitted(chosen, features, is_true)
    return Fit(
        model=model,
        accuracy=balanced_accuracy(model.predict(features), is_true),
        scores=scores_of(model, features),
    )


def fitted(chosen: Chosen, features: Any, is_true: Any) -> Any:
    """The classifier, with the two sides given the same weight."""
    from sklearn.exceptions import ConvergenceWarning

    extra = {"sample_weight": balance(is_true)} if chosen.weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return chosen.make().fit(features, is_true, **extra)


def held_out(chosen: Chosen, features: Any, is_true: Any, *, seed: int) -> HeldOut | None:
    """Five folds (fewer if a side has fewer rows); None if a side has a single row."""
    from sklearn.model_selection import StratifiedKFold

    folds = min(FOLDS, int(is_true.sum()), int((~is_true).sum()))
    if folds < 2:
        return None
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    accuracies, scores = [], np.empty(len(is_true))
    for train, test in split.split(features, is_true):
        model = fitted(chosen, features[train], is_true[train])
        accuracies.append(balanced_accuracy(model.predict(features[test]), is_true[test]))
        scores[test] = scores_of(model, features[test])
    return HeldOut(np.array(accuracies), scores)


def balance(is_true: Any) -> Any:
    """Weights of mean 1 under which both sides weigh the same.

    >>> balance(np.array([True, False, False, False])).tolist()
    [2.0, 0.6666666666666666, 0.6666666666666666, 0.6666666666666666]
    """
    rows, true = len(is_true), int(is_true.sum())
    return np.where(is_true, rows / (2 * max(true, 1)), rows / (2 * max(rows - true, 1)))


def balanced_accuracy(called_true: Any, is_true: Any) -> float:
    """The mean of the shares that are called right on each side."""
    right = np.asarray(called_true, dtype=bool) == is_true
    return float((right[is_true].mean() + right[~is_true].mean()) / 2)


def scores_of(model: Any, features: Any) -> Any:
    """The probability of being true; where there is none, the decision function, or the call."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(features)[:, list(model.classes_).index(True)]
    if hasattr(model, "decision_function"):
        return model.decision_function(features)
    return np.asarray(model.predict(features), dtype=float)


class Constant:
    """The classifier for tables without a single column that varies: it cannot tell."""

    classes_ = np.array([False, True])

    def predict(self, features: Any) -> Any:
        return np.zeros(len(features), dtype=bool)


def no_fit(is_true: Any) -> Fit:
    """What stands for a fit when there is no feature."""
    return Fit(model=Constant(), accuracy=0.5, scores=np.full(len(is_true), 0.5))
