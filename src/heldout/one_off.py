"""scikit-learn shaped functions for one-off use: arrays in, a `Release` out.

Each call is a session of its own with a budget of exactly `epsilon` and a ledger in memory:
nobody keeps count across calls. For data that is asked more than once use `heldout.Session`.
"""

from typing import Any

from heldout.arguments import as_array
from heldout.data import Dataset
from heldout.errors import ArgumentError
from heldout.metrics.bounded_mean import MeanRelease
from heldout.metrics.confusion import ConfusionRelease
from heldout.metrics.curves.release import CurvesRelease
from heldout.metrics.ranking import AucRelease, RankingRelease
from heldout.privacy import Budget, exact
from heldout.questions.session import Epsilon, Session

LABELS = {"positive", "negative", "score_range", "score_map", "out_of_range"}


def one_off(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: Epsilon,
    positive: object = 1,
    negative: object = None,
    score_range: tuple[float, float] = (0, 1),
    score_map: tuple[float, float] | None = None,
    out_of_range: str = "refuse",
    neighbours: str = "replace-one",
    delta: Epsilon | None = None,
) -> Session:
    """A session on two arrays of the same length, with a budget for one release."""
    truth, score = as_array(y_true, name="y_true"), as_array(y_score, name="y_score")
    if truth.ndim != 1 or truth.shape != score.shape:
        raise ArgumentError(
            "y_true and y_score must be one-dimensional and of the same length. Ravel them."
        )
    dataset = Dataset(
        {"label": truth, "score": score},
        label="label",
        score="score",
        positive=positive,
        negative=negative,
        score_range=score_range,
        score_map=score_map,
        out_of_range=out_of_range,
        neighbours=neighbours,
    )
    budget = Budget(epsilon=exact(epsilon, name="epsilon"), delta=0 if delta is None else delta)
    return Session(dataset, budget=budget)


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
    """The private area under the ROC curve.

    >>> release = roc_auc_score([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> 0.9 < float(release) <= 1
    True
    """
    session = one_off(
        y_true, y_score, epsilon=epsilon, neighbours=neighbours, delta=delta, **labels
    )
    found: AucRelease = session.auc(
        epsilon=epsilon, method=method, smaller_class=smaller_class, delta=delta, scores=scores
    )
    return found


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
    **labels: Any,
) -> RankingRelease:
    """The private average precision; within a tie the negatives come first.

    >>> release = average_precision_score([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> 0.7 < float(release) <= 1
    True
    """
    session = one_off(
        y_true, y_score, epsilon=epsilon, neighbours=neighbours, delta=delta, **labels
    )
    found: RankingRelease = session.average_precision(
        epsilon=epsilon, method=method, smaller_class=smaller_class, delta=delta, scores=scores
    )
    return found


def roc_curve(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    method: str = "heldout",
    **options: Any,
) -> CurvesRelease:
    """The private ROC curve, as `.roc`; the other curves are in the same release, at no cost.

    `options` are those of the labels and scores, as in `Dataset`, and the method's own, as in
    `Session.curves`.

    >>> release = roc_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> float(release.roc.fpr[0]), float(release.roc.tpr[-1]), release.auc > 0.8
    (0.0, 1.0, True)
    """
    labels = {name: options.pop(name) for name in LABELS & set(options)}
    session = one_off(y_true, y_score, epsilon=epsilon, neighbours=neighbours, **labels)
    return session.curves(epsilon=epsilon, method=method, **options)


def precision_recall_curve(
    y_true: Any,
    y_score: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    method: str = "heldout",
    **options: Any,
) -> CurvesRelease:
    """The private precision-recall curve, as `.precision_recall`; see `roc_curve`.

    >>> release = precision_recall_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> float(release.precision_recall.recall[-1])
    1.0
    """
    return roc_curve(
        y_true, y_score, epsilon=epsilon, neighbours=neighbours, method=method, **options
    )


def calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    epsilon: Epsilon,
    neighbours: str = "replace-one",
    method: str = "heldout",
    **options: Any,
) -> CurvesRelease:
    """The private reliability diagram, as `.calibration`; see `roc_curve`.

    >>> release = calibration_curve([0, 1] * 500, [0.2, 0.7] * 500, epsilon="1")
    >>> len(release.calibration.predicted) == len(release.calibration.observed)
    True
    """
    return roc_curve(
        y_true, y_prob, epsilon=epsilon, neighbours=neighbours, method=method, **options
    )


def confusion_matrix(
    y_true: Any, y_pred: Any, *, epsilon: Epsilon, neighbours: str = "replace-one", **labels: Any
) -> ConfusionRelease:
    """The private confusion matrix of predictions that are 0 or 1.

    >>> release = confusion_matrix([1, 0] * 300, [1, 0] * 300, epsilon="1")
    >>> release.accuracy > 0.9
    True
    """
    session = one_off(y_true, y_pred, epsilon=epsilon, neighbours=neighbours, **labels)
    found: ConfusionRelease = session.confusion(threshold=0.5, epsilon=epsilon)
    return found


def brier_score_loss(
    y_true: Any, y_prob: Any, *, epsilon: Epsilon, neighbours: str = "replace-one", **labels: Any
) -> MeanRelease:
    """The private Brier score of predicted probabilities.

    >>> float(brier_score_loss([1, 0] * 500, [0.9, 0.1] * 500, epsilon="1")) < 0.1
    True
    """
    session = one_off(y_true, y_prob, epsilon=epsilon, neighbours=neighbours, **labels)
    found: MeanRelease = session.brier(epsilon=epsilon)
    return found
