"""scikit-learn shaped functions for one-off use: arrays in, a `Release` out.

Each call is a session of its own with a budget of exactly `epsilon` and a ledger in memory:
nobody keeps count across calls. For data that is asked more than once use `heldout.Session`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import as_array, check_columns, no_such, shown
from heldout.data import Dataset
from heldout.data.description import MeasuredRows
from heldout.data.validation import other_label
from heldout.errors import ArgumentError, DataError, ScoreOutOfRange, UnknownLabel
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.ratio import MeanRelease
from heldout.kernel import Budget, exact
from heldout.questions.curves.readings import check_probabilities
from heldout.questions.curves.release import NamedCurve
from heldout.questions.ranking.release import AucRelease, RankingRelease
from heldout.questions.session import Epsilon, Session

Weights = tuple[Any, float | None]
"""A weight for each row, and the largest that there can be."""
Array = NDArray[Any]
DECLARED = ("positive", "negative", "score_range", "score_map", "out_of_range")
ABSENT = {
    "sample_weight": "confusion_matrix and brier_score_loss take it, with largest_weight=.",
    "max_fpr": "Read the part that you want off heldout.roc_curve.",
    "average": "With more than two classes, pass labels= and a column of y_score for each.",
    "multi_class": "With more than two classes, pass labels= and a column of y_score for each.",
    "random_state": "Noise has no seed: every call draws anew, and pays anew.",
    "n_jobs": "A release is drawn in one process.",
    "normalize": "Divide np.asarray(matrix), or read .recall and .precision with their intervals.",
    "drop_intermediate": "The noise decides how many points a curve has.",
    "threshold": "Pass the calls that it makes, y_pred=y_score >= 0.5; "
    "Session.confusion takes threshold=.",
    "n_bins": "The noise decides how many bins there are.",
    "strategy": "The noise decides where bins begin.",
}
"""Arguments that scikit-learn's functions take and these cannot, with the reason."""


def declared(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `Dataset` needs of labels and scores; scikit-learn's names are understood.

    >>> declared({"labels": ["no", "yes"]})
    {'negative': 'no', 'positive': 'yes'}
    """
    options = {name: value for name, value in options.items() if value is not None}
    given = options.pop("labels", None)
    if given is not None:
        values = as_array(given, name="labels").tolist()
        if not isinstance(values, list) or len(values) != 2 or values[0] == values[1]:
            raise ArgumentError("labels must be the negative label and the positive one.")
        options = dict(zip(("negative", "positive"), values, strict=True)) | options
        if "pos_label" in options and options["pos_label"] == values[0]:
            options["negative"] = values[1]
    if "pos_label" in options:
        options["positive"] = options.pop("pos_label")
    for name in options:
        if name in ABSENT:
            raise ArgumentError(f"{name} is not supported. {ABSENT[name]}")
        if name not in DECLARED:
            raise ArgumentError(no_such("option", name, (*DECLARED, "pos_label", "labels")))
    return options


def _both_declared(labels: dict[str, Any]) -> dict[str, Any]:
    """Return the same as `declared`, and ask for the negative label beside a positive word."""
    options = declared(labels)
    positive = options.get("positive")
    if isinstance(positive, str) and options.get("negative") is None:
        raise ArgumentError(
            f"Pass both labels, the negative one first: labels=[..., {shown(positive)}]."
        )
    return options


def one_off(
    y_true: object,
    y_score: object,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    delta: Epsilon | None = None,
    weights: Weights = (None, None),
    classes: list[Any] | None = None,
    **labels: Any,
) -> Session:
    """Open a session on two arrays of the same length, with a budget for one release.

    With `classes` the second array holds the class that a model says; an array of three columns or
    more holds a score for each of `labels`.
    """
    budget = Budget(epsilon=exact(epsilon, name="epsilon"), delta=0 if delta is None else delta)
    columns = {"y_true": as_array(y_true, name="y_true")}
    second = as_array(y_score, name="y_score")
    options: dict[str, Any]
    if classes is not None:
        columns["y_pred"], options = second, {"classes": classes, "prediction": "y_pred"}
    elif second.ndim == 2 and second.shape[1] > 2:
        scores = {f"score {place + 1}": second[:, place] for place in range(second.shape[1])}
        options = {"classes": _classes(labels, len(scores)), "scores": list(scores)}
        columns |= scores
    else:
        columns["y_score"], options = second, _both_declared(labels) | {"score": "y_score"}
    sizes, largest = weights
    if (sizes is None) != (largest is None):
        raise ArgumentError(
            "Pass sample_weight= and largest_weight= together. The largest weight that there can "
            "be is public, and never read off the data."
        )
    if sizes is not None:
        columns["sample_weight"] = as_array(sizes, name="sample_weight")
        options |= {"weight": "sample_weight", "largest_weight": largest}
    check_columns(columns, show_lengths=neighbours != "add-remove")
    advice = None
    try:
        dataset = Dataset(columns, label="y_true", neighbours=neighbours, **options)
    except (UnknownLabel, ScoreOutOfRange) as refused:
        advice = _in_words_of_arrays(refused, options)
    if advice is not None:  # raised outside, so that the first one is no part of it
        raise advice
    return Session(dataset, budget=budget)


def _in_words_of_arrays(refused: DataError, options: dict[str, Any]) -> DataError:
    """Return the error with the arguments of these functions instead of a data set's."""
    if isinstance(refused, ScoreOutOfRange):
        low, high = options.get("score_range", (0, 1))
        return ScoreOutOfRange(
            f"y_score must lie within score_range ({low:g}, {high:g}). For logits and other scores "
            "without a range pass score_map=(0, 1); for percentages score_range=(0, 100), the "
            "range that the model can give; out_of_range='clip' counts scores beyond it as its "
            "ends."
        )
    sides = (
        other_label(options.get("positive", 1), options.get("negative")),
        options.get("positive", 1),
    )
    return UnknownLabel(
        f"y_true must hold {shown(sides[0])} and {shown(sides[1])} and nothing else. Pass "
        "labels=, the negative label and the positive one, such as labels=['no', 'yes']."
    )


def _classes(labels: dict[str, Any], count: int) -> list[Any]:
    """Return the declared classes of so many columns of scores; they are public."""
    chosen = {"multi_class": ("ovr", "raise"), "average": ("macro",)}
    for name, values in chosen.items():
        if labels.pop(name, values[0]) not in values:
            raise ArgumentError(
                f"{name} must be {values[0]!r}: each class against all others, and their mean."
            )
    given = as_array(labels.pop("labels", ()), name="labels").tolist()
    if not isinstance(given, list) or len(given) != count:
        raise ArgumentError(
            f"y_score has {count} columns. Pass labels=, the classes in the order of the columns."
        )
    if labels:
        raise ArgumentError("With more than two classes, pass labels= and nothing else about them.")
    return given


def roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    method: str = "piecewise-laplace",
    smaller_class: int | None = None,
    delta: Epsilon | None = None,
    scores: str | None = None,
    **labels: Any,
) -> AucRelease:
    """Return the private area under the ROC curve.

    Scores of several classes are columns of `y_score`, named by `labels`: the answer is then the
    area of each class against all others, and their mean.

    >>> release = roc_auc_score([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> 0.9 < float(release) <= 1
    True
    """
    session = one_off(
        y_true, y_score, epsilon=epsilon, neighbours=neighbours, delta=delta, **labels
    )
    return session.auc(
        epsilon=epsilon, method=method, smaller_class=smaller_class, delta=delta, scores=scores
    )


def average_precision_score(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    method: str = "piecewise-laplace",
    smaller_class: int | None = None,
    delta: Epsilon | None = None,
    scores: str | None = None,
    ties: str = "grouped",
    **labels: Any,
) -> RankingRelease:
    """Return the private average precision, with scikit-learn's rule of ties.

    `ties="negatives-first"` is the rule of Boyd, Lantz and Page 2015.

    >>> release = average_precision_score([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> 0.7 < float(release) <= 1
    True
    """
    session = one_off(
        y_true, y_score, epsilon=epsilon, neighbours=neighbours, delta=delta, **labels
    )
    return session.average_precision(
        epsilon=epsilon,
        method=method,
        smaller_class=smaller_class,
        delta=delta,
        scores=scores,
        ties=ties,
    )


def roc_curve(y_true: Any, y_score: Any, *, epsilon: Epsilon, **options: Any) -> NamedCurve:
    """Return the private ROC curve; the other curves are in the same release, at no cost.

    `options` are those of the labels and scores, as in `Dataset`, `neighbours`, and the method's
    own, as in `Session.curves`.

    >>> release = roc_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> fpr, tpr, thresholds = release
    >>> float(fpr[0]), float(tpr[-1]), release.auc > 0.8
    (0.0, 1.0, True)
    """
    return _curve("roc", y_true, y_score, epsilon, options)


def precision_recall_curve(
    y_true: Any, y_score: Any, *, epsilon: Epsilon, **options: Any
) -> NamedCurve:
    """Return the private precision-recall curve; see `roc_curve`.

    As in scikit-learn recall falls, and there is one threshold fewer than points.

    >>> release = precision_recall_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> precision, recall, thresholds = release
    >>> float(recall[0]), float(recall[-1]), len(recall) - len(thresholds)
    (1.0, 0.0, 1)
    """
    return _curve("precision-recall", y_true, y_score, epsilon, options)


def calibration_curve(y_true: Any, y_prob: Any, *, epsilon: Epsilon, **options: Any) -> NamedCurve:
    """Return the private reliability diagram; see `roc_curve`.

    >>> prob_true, prob_pred = calibration_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> len(prob_true) == len(prob_pred)
    True
    """
    return _curve("calibration", y_true, y_prob, epsilon, options)


def _curve(
    kind: str, y_true: Any, y_score: Any, epsilon: Epsilon, options: dict[str, Any]
) -> NamedCurve:
    known = {"neighbours", "pos_label", "labels", *DECLARED, *ABSENT}
    labels = {name: options.pop(name) for name in known & set(options)}
    session = one_off(y_true, y_score, epsilon=epsilon, **labels)
    if kind == "calibration":
        assert not isinstance(session.dataset, MeasuredRows)
        check_probabilities(session.dataset.score_range)
    return NamedCurve(session.curves(epsilon=epsilon, **options), kind)


def confusion_matrix(
    y_true: Any,
    y_pred: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    sample_weight: Any = None,
    largest_weight: float | None = None,
    **labels: Any,
) -> ConfusionRelease:
    """Return the private confusion matrix; text labels may be predicted as 0 and 1.

    More than two `labels` give a matrix of so many classes. With weights, `largest_weight` is
    the largest that there can be: public, and what the noise is made for.

    >>> release = confusion_matrix([1, 0] * 300, [1, 0] * 300, epsilon="1")
    >>> release.accuracy > 0.9
    True
    """
    words: dict[str, Any] = {"epsilon": epsilon, "neighbours": neighbours}
    words["weights"] = (sample_weight, largest_weight)
    weighted, classes = sample_weight is not None, as_array(labels.get("labels", ()), name="labels")
    if classes.ndim == 1 and len(classes) > 2:
        if set(labels) != {"labels"}:
            raise ArgumentError(
                "With more than two classes, pass labels= and nothing else about them."
            )
        session = one_off(y_true, y_pred, classes=classes.tolist(), **words)
        return session.confusion(epsilon=epsilon, weighted=weighted)
    values = _both_declared(labels)
    called = _called(as_array(y_pred, name="y_pred"), values)
    session = one_off(y_true, called, **words, **values)
    return session.confusion(threshold=0.5, epsilon=epsilon, weighted=weighted)


def _called(predicted: Array, values: dict[str, Any]) -> Array:
    """Return 1 for the positive label and 0 for the negative one."""
    positive = values.get("positive", 1)
    negative = other_label(positive, values.get("negative"))
    if isinstance(positive, str) and predicted.dtype.kind in "biuf":
        positive, negative = 1, 0
    try:
        yes, no = predicted == positive, predicted == negative
        if predicted.ndim == 1 and bool((yes | no).all()):
            return np.asarray(yes, dtype=float)
    except Exception:
        pass  # raised outside: cells that cannot be compared are no labels, and are not quoted
    raise UnknownLabel(
        "y_pred must hold the two labels and no other. Pass labels=, the negative label and the "
        "positive one; or all classes, if there are more than two. For probabilities pass "
        "y_pred=y_score >= 0.5."
    )


def brier_score_loss(
    y_true: Any,
    y_prob: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    sample_weight: Any = None,
    largest_weight: float | None = None,
    **labels: Any,
) -> MeanRelease:
    """Return the private Brier score of predicted probabilities; weights as in `confusion_matrix`.

    >>> float(brier_score_loss([1, 0] * 500, [0.9, 0.1] * 500, epsilon="1")) < 0.1
    True
    """
    weights = (sample_weight, largest_weight)
    session = one_off(
        y_true, y_prob, epsilon=epsilon, neighbours=neighbours, weights=weights, **labels
    )
    return session.brier(epsilon=epsilon, weighted=sample_weight is not None)
