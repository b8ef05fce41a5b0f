"""Fits of one classifier: on the truth, on shuffled labels, and on rows held out."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arrays import Bools, Floats
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, checked_level
from heldout.questions.separability.tuned import (
    DEPTH,
    FOLDS,
    LEAF,
    LEAST_P_VALUE,
    MOST_ROWS,
    TREES,
)


class Classifier(Protocol):
    """A fitted classifier of scikit-learn, or `Constant`."""

    classes_: NDArray[Any]

    def predict(self, features: Floats, /) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False)
class Fit:
    """One fitted classifier, its balanced accuracy and its scores on the rows it was fitted to."""

    model: Classifier
    accuracy: float
    scores: Floats
    """Higher means more likely true; a probability where the classifier gives one."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Holds the classifier's scores of rows that it was not fitted to, fold by fold."""

    accuracies: Floats
    scores: Floats


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


def fit(chosen: Chosen, features: Floats, is_true: Bools) -> Fit:
    """Fit on all rows and look at the same rows, as the paper does."""
    model = fitted(chosen, features, is_true)
    return Fit(
        model=model,
        accuracy=balanced_accuracy(model.predict(features), is_true),
        scores=scores_of(model, features),
    )


def fitted(chosen: Chosen, features: Floats, is_true: Bools) -> Classifier:
    """Fit the classifier, with the two sides given the same weight."""
    from sklearn.exceptions import ConvergenceWarning

    extra = {"sample_weight": balance(is_true)} if chosen.weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model: Classifier = chosen.make().fit(features, is_true, **extra)
    return model


def held_out(chosen: Chosen, features: Floats, is_true: Bools, *, seed: int) -> HeldOut | None:
    """Fit five folds (fewer if a side has fewer rows); None if a side has a single row."""
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


def balance(is_true: Bools) -> Floats:
    """Return weights of mean 1 under which both sides weigh the same.

    >>> balance(np.array([True, False, False, False])).tolist()
    [2.0, 0.6666666666666666, 0.6666666666666666, 0.6666666666666666]
    """
    rows, true = len(is_true), int(is_true.sum())
    weights: Floats = np.where(is_true, rows / (2 * max(true, 1)), rows / (2 * max(rows - true, 1)))
    return weights


def balanced_accuracy(called_true: ArrayLike, is_true: Bools) -> float:
    """Return the mean of the shares that are called right on each side."""
    right = np.asarray(called_true, dtype=bool) == is_true
    return float((right[is_true].mean() + right[~is_true].mean()) / 2)


def scores_of(model: Any, features: Floats) -> Floats:
    """Return probabilities of being true; without them, the decision function, or the calls."""
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(features)[:, list(model.classes_).index(True)]
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(features)
    else:
        scores = model.predict(features)
    return np.asarray(scores, dtype=float)


class Constant:
    """The classifier for tables without a single column that varies: it cannot tell."""

    classes_ = np.array([False, True])

    def predict(self, features: Floats) -> Bools:
        return np.zeros(len(features), dtype=bool)


def no_fit(is_true: Bools) -> Fit:
    """Return what stands for a fit when there is no feature."""
    return Fit(model=Constant(), accuracy=0.5, scores=np.full(len(is_true), 0.5))


def auc(scores: Floats, is_true: Bools) -> float:
    """Return the chance that a true row scores above a privatized one; a tie counts half.

    >>> auc(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]))
    0.75
    """
    true, private = np.sort(scores[is_true]), np.sort(scores[~is_true])
    below = np.searchsorted(private, true, side="left") + np.searchsorted(private, true, "right")
    return float(below.sum()) / (2 * len(true) * len(private))


def mean_squared_propensity(scores: Floats, is_true: Bools) -> float:
    """Return pMSE (Woo et al. 2009): how far the estimated probabilities lie from 1/2, squared.

    Both sides weigh the same, so a row that could be from either has 1/2. 1/4 is the most.
    """
    away = (np.asarray(scores) - 0.5) ** 2
    return float((away[is_true].mean() + away[~is_true].mean()) / 2)


ROC_POINTS: Final = 200


@dataclass(frozen=True)
class Roc:
    """Share of true rows against share of privatized rows that are called true."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @classmethod
    def of(cls, scores: Any, is_true: Any) -> "Roc":
        thresholds = np.unique(scores)[::-1]
        if len(thresholds) > ROC_POINTS:
            picked = np.unique(np.linspace(0, len(thresholds) - 1, ROC_POINTS).round().astype(int))
            thresholds = thresholds[picked]
        shares = []
        for side in (~is_true, is_true):
            ordered = np.sort(scores[side])
            above = len(ordered) - np.searchsorted(ordered, thresholds, side="left")
            shares.append((0.0, *(above / len(ordered)).tolist()))
        return cls(*shares)


NAME: Final = "random forest on held-out rows"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Holds the forest's scores of the rows that it was not fitted to."""

    right: tuple[float, float]
    """The share of true rows, and of privatized ones, that are called right."""
    rows: tuple[int, int]
    auc: float
    score: float
    """The rank sum in standard deviations; standard normal if the tables are alike."""
    roc: Roc | None = None
    """Of the rows held out."""
    fit: Fit | None = None
    """The forest, with its scores of the rows held out."""
    tested: NDArray[np.intp] | None = None
    """Which rows are held out: the true ones first."""

    @property
    def value(self) -> float:
        """2 x accuracy - 1: 0 is chance, 1 never errs."""
        return self.right[0] + self.right[1] - 1

    @property
    def p_value(self) -> float:
        """The chance of such a rank sum, or a larger one, if the tables are alike.

        By the normal law, which is not believed further out than `LEAST_P_VALUE`.
        """
        from scipy.special import ndtr

        return max(float(ndtr(-self.score)), LEAST_P_VALUE)

    def interval(self, level: float = 0.95) -> Interval:
        """By the binomial spread of either side, Agresti and Coull's."""
        from scipy.special import ndtri

        reach = float(ndtri((1 + checked_level(level)) / 2))
        variance = 0.0
        for share, rows in zip(self.right, self.rows, strict=True):
            smoothed = (share * rows + 2) / (rows + 4)
            variance += smoothed * (1 - smoothed) / (rows + 4)
        half = reach * math.sqrt(variance)
        return max(self.value - half, -1.0), min(self.value + half, 1.0)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "classifier": NAME,
            "separability": self.value,
            "interval": list(self.interval(level)),
            "detection_auc": self.auc,
            "p_value": self.p_value,
            "rows": {"truth": self.rows[0], "privatized": self.rows[1]},
        }


def fit_forest(features: Floats, is_true: Bools, *, seed: int) -> Ensemble | None:
    """Fit half of the rows and look at the others; None where a side has fewer than four."""
    from numpy.random import default_rng
    from sklearn.ensemble import RandomForestClassifier

    random = default_rng(seed)
    halves: tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]] = ([], [])
    most = min(1.0, MOST_ROWS / len(is_true))
    for side in (is_true, ~is_true):
        order = random.permutation(np.flatnonzero(side))
        order = order[: max(4, round(most * len(order)))]
        if len(order) < 4:
            return None
        halves[0].append(order[: len(order) // 2])
        halves[1].append(order[len(order) // 2 :])
    train, test = (np.concatenate(half) for half in halves)
    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=seed, n_jobs=1)
    forest.fit(features[train], is_true[train], sample_weight=balance(is_true[train]))
    scores, truth = forest.predict_proba(features[test])[:, 1].round(9), is_true[test]
    called = scores > 0.5
    area, n, m = auc(scores, truth), int(truth.sum()), int((~truth).sum())
    return Ensemble(
        right=(float(called[truth].mean()), float((~called[~truth]).mean())),
        rows=(n, m),
        auc=area,
        score=_standardised(area, scores, n, m),
        roc=Roc.of(scores, truth),
        fit=Fit(model=forest, accuracy=balanced_accuracy(called, truth), scores=scores),
        tested=test,
    )


def _standardised(area: float, scores: Any, n: int, m: int) -> float:
    """The area minus 1/2, over its deviation when all orders of the labels are equally likely."""
    total = n + m
    ties = np.unique(scores, return_counts=True)[1].astype(np.float64)
    tied = float((ties**3 - ties).sum()) / (total * (total - 1))
    variance = (total + 1 - tied) / (12 * n * m)
    return (area - 0.5) / math.sqrt(variance) if variance > 0 else 0.0
