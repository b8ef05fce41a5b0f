"""Precision-recall space: geometry, areas, intervals and pictures, for public data.

    from heldout import precision_recall as pr

    pr.auc(y_true, y_score)                            # area, by one of eight estimators
    pr.interval(y_true=y_true, y_score=y_score)        # where the true area lies
    pr.normalised_auc(y_true, y_score)                 # 0 for the worst ranking, 1 for the best
    pr.curve(y_true, y_score).plot()                   # with the region that nobody can reach

Nothing private passes here: no noise is added and nothing is booked. The arithmetic is also safe
on released (noisy) counts, because arithmetic on a release is free; see `auc_from_counts`.

Reference: Boyd, 2014, chapters 3 and 4.
"""

from heldout.precision_recall.curve import Curve, SummaryCurve, curve, summary_curve
from heldout.precision_recall.estimators import (
    ESTIMATORS,
    Aggregate,
    PrevalenceWarning,
    aggregate,
    auc,
    auc_from_counts,
    estimates,
    f_score,
    f_score_contour,
    normalised_auc,
    normalised_f_score,
    precision_at_prevalence,
)
from heldout.precision_recall.geometry import (
    interpolate,
    interpolated_area,
    is_achievable,
    minimum_auc,
    minimum_average_precision,
    minimum_precision,
)
from heldout.precision_recall.intervals import METHODS, Interval, interval

__all__ = [
    "ESTIMATORS",
    "METHODS",
    "Aggregate",
    "Curve",
    "Interval",
    "PrevalenceWarning",
    "SummaryCurve",
    "aggregate",
    "auc",
    "auc_from_counts",
    "curve",
    "estimates",
    "f_score",
    "f_score_contour",
    "interpolate",
    "interpolated_area",
    "interval",
    "is_achievable",
    "minimum_auc",
    "minimum_average_precision",
    "minimum_precision",
    "normalised_auc",
    "normalised_f_score",
    "precision_at_prevalence",
    "summary_curve",
]
