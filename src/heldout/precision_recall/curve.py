"""A precision-recall curve as an object: its points, areas, intervals and picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import as_numbers, shown
from heldout.drawing.chart import INK, MUTED, SHADE, Chart, Layer, Numbers, records
from heldout.errors import ArgumentError
from heldout.precision_recall import estimators
from heldout.precision_recall.estimators import (
    RECOMMENDED,
    estimates,
    known_estimator,
    normalised_auc,
    pieces_of,
)
from heldout.precision_recall.geometry import (
    Floats,
    fraction,
    fractions,
    minimum_auc,
    minimum_precision,
)
from heldout.precision_recall.intervals import Interval, checked_confidence, interval
from heldout.precision_recall.levels import Levels, labelled_scores, levels_from_scores

if TYPE_CHECKING:
    from altair import LayerChart
    from numpy.random import Generator

    from heldout.drawing.chart import Display


_STEPS = 201
_MOST_POINTS = 400
_JUST_AFTER = 1e-9
RECALL, PRECISION = Numbers("Recall"), Numbers("Precision")


@dataclass(frozen=True, eq=False)
class Curve:
    """Points at falling thresholds, from recall 0 and precision 1; the data stay inside.

    `thresholds[0]` is infinite: nothing is predicted positive there.
    """

    recall: Floats
    precision: Floats
    thresholds: Floats
    positives: int
    negatives: int
    estimator: str
    _truth: NDArray[np.bool_] = field(repr=False)
    _scores: Floats = field(repr=False)

    @property
    def prevalence(self) -> float:
        """Share of the positives: the precision of guessing."""
        return self.positives / (self.positives + self.negatives)

    @property
    def auc(self) -> float:
        """The area, by the curve's estimator."""
        return estimates(self._truth, self._scores, estimators=(self.estimator,))[self.estimator]

    @property
    def estimates(self) -> dict[str, float]:
        """The area by all eight estimators."""
        return estimates(self._truth, self._scores)

    @property
    def minimum_auc(self) -> float:
        """The area that any ranking of these examples gets for free."""
        return minimum_auc(prevalence=self.prevalence)

    @property
    def normalised_auc(self) -> float:
        """The share of the achievable area."""
        return normalised_auc(self.auc, prevalence=self.prevalence)

    def interval(
        self,
        confidence: float = 0.95,
        *,
        method: str = "effective",
        random_state: int | Generator | None = None,
    ) -> Interval:
        """Return a confidence interval for the area; see `heldout.precision_recall.interval`."""
        return interval(
            y_true=self._truth,
            y_score=self._scores,
            estimator=self.estimator,
            method=method,
            confidence=confidence,
            random_state=random_state,
        )

    def precision_at(self, recall: ArrayLike) -> Floats:
        """Return the height of the estimator's curve at any recall."""
        recall = fractions("recall", recall)
        if self.estimator == "binormal":
            model = estimators.fit(self._truth, self._scores)
            if model is None:
                return np.full(np.shape(recall), np.nan)
            return estimators.precision(model, self.prevalence, recall)
        return pieces_of(self._levels(), self.estimator).precision(recall)

    def band(
        self, recall: ArrayLike, *, confidence: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a pointwise interval for the precision at each recall.

        Precision at recall r falls with S, the false positive rate there. S has a binomial
        variance and that of its threshold (slope taken over n^(-1/3) / 2 of recall on each side);
        their ratio shrinks the number of negatives, and S gets the Clopper-Pearson interval of
        that many. The band never excludes the curve itself nor includes what is unachievable. It
        is a guide for the eye: pointwise, and approximate at the ends of recall.
        """
        from scipy.special import betaincinv

        r, confidence = fractions("recall", recall), checked_confidence(confidence)
        n, m, pi = self.positives, self.negatives, self.prevalence
        if not (n and m):
            level = np.full(r.shape, pi)
            return level, level
        window = 0.5 * n ** (-1.0 / 3.0)
        left, right = np.maximum(r - window, 0.0), np.minimum(r + window, 1.0)
        rate = self._false_rate(r)
        slope = (self._false_rate(right) - self._false_rate(left)) / (right - left)
        seen = (rate * m + 0.5) / (m + 1.0)
        threshold = slope**2 * (r * (1.0 - r) / n)
        worth = m / (1.0 + threshold / (seen * (1.0 - seen) / m))
        count, tail = rate * worth, 0.5 - confidence / 2.0
        least = betaincinv(np.maximum(count, 1e-12), worth - count + 1.0, tail)
        most = betaincinv(count + 1.0, np.maximum(worth - count, 1e-12), 1.0 - tail)
        least = np.where(rate * m < 1.0, 0.0, least)
        true = pi * r
        with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 at recall 0: nothing known
            low, high = (true / (true + (1.0 - pi) * s) for s in (most, least))
        low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
        height = self.precision_at(r)
        floor = pi * r / (1.0 - pi + pi * r)
        return np.maximum(np.minimum(low, height), floor), np.maximum(high, height)

    def plot(
        self, ax: Any = None, *, confidence: float | None = 0.95, title: str = ""
    ) -> Display | LayerChart:
        """Draw the unachievable region, guessing, points, curve and band.

        On matplotlib's axes where it is installed, else an Altair chart. `confidence=None` leaves
        the band out.
        """
        return self.chart(confidence=confidence, title=title).plot(ax)

    def svg(self, *, confidence: float | None = 0.95, title: str = "") -> str:
        """Return the same as an SVG picture."""
        says = (
            f"Area {self.auc:.3f} by {self.estimator}, prevalence {self.prevalence:.3f}, with the "
            "unachievable region in grey and a pointwise band."
        )
        return self.chart(confidence=confidence, title=title).svg(says=says)

    def chart(self, *, confidence: float | None = 0.95, title: str = "") -> Chart:
        """Return the unachievable region, guessing, the band, the curve and the points."""
        layers = space(self.prevalence)
        if confidence is not None and self.negatives:
            recall = np.linspace(0.005, 1.0, _STEPS)
            low, high = self.band(recall, confidence=confidence)
            band = records(x=recall, low=low, high=high)
            layers.append(Layer("area", band, y="low", y2="high", opacity=0.18))
        layers.append(Layer("line", self.path()))
        if self.recall.size <= _MOST_POINTS:
            points = records(x=self.recall[1:], y=self.precision[1:])
            layers.append(Layer("point", points, color=INK, size=9, opacity=0.6))
        name = self.estimator.replace("-", " ")
        heading = title or f"Precision-recall curve ({name}, area {self.auc:.3f})"
        return Chart(layers, x=RECALL, y=PRECISION, title=heading, width=380, height=320)

    def path(self) -> list[dict[str, float]]:
        """Return the estimator's curve as a polyline, jumps included."""
        grid = np.linspace(0.0, 1.0, 4 * _STEPS)
        levels = np.unique(self.recall[self.recall > 0])
        if levels.size <= _MOST_POINTS:
            after = np.minimum(levels + _JUST_AFTER, 1.0)
            grid = np.unique(np.concatenate([grid, levels, after, [_JUST_AFTER]]))
        return records(x=grid, y=self.precision_at(grid))

    def _levels(self) -> Levels:
        return levels_from_scores(self._truth, self._scores)

    def _false_rate(self, recall: Floats) -> Floats:
        """Return the false positive rate of the empirical ROC curve, straight between positives."""
        levels = self._levels()
        r = np.concatenate([[0.0], levels.recall])
        s = np.concatenate([[0.0], levels.false_positives[levels.first] / levels.negatives])
        return np.asarray(np.interp(recall, r, s))


def curve(
    y_true: Iterable[Any],
    y_score: Iterable[float],
    *,
    estimator: str = RECOMMENDED,
    positive: object = 1,
) -> Curve:
    """Return the precision-recall curve of labelled scores.

    >>> c = curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    >>> [round(float(p), 3) for p in c.precision], c.recall.tolist()
    ([1.0, 1.0, 0.5, 0.667, 0.5], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> round(c.auc, 4), round(c.normalised_auc, 4)
    (0.7917, 0.6994)
    """
    name = known_estimator(estimator)
    truth, scores, _ = labelled_scores(y_true, y_score, positive)
    positives = int(truth.sum())
    if not positives:
        raise ArgumentError(
            "y_true must hold at least one positive to draw a curve. Check `positive`."
        )
    thresholds, where = np.unique(-scores, return_inverse=True)
    tp = np.cumsum(np.bincount(where, weights=truth, minlength=thresholds.size))
    rows = np.cumsum(np.bincount(where, minlength=thresholds.size))
    return Curve(
        recall=np.concatenate([[0.0], tp / positives]),
        precision=np.concatenate([[1.0], tp / rows]),
        thresholds=np.concatenate([[np.inf], -thresholds]),
        positives=positives,
        negatives=int(truth.size - positives),
        estimator=name,
        _truth=truth,
        _scores=scores,
    )


@dataclass(frozen=True, eq=False)
class SummaryCurve:
    """One curve for several, at a chosen prevalence."""

    recall: Floats
    precision: Floats
    prevalence: float
    curves: int

    @property
    def auc(self) -> float:
        """The area under it."""
        return float(np.trapezoid(self.precision, self.recall))

    @property
    def normalised_auc(self) -> float:
        """The share of the achievable area."""
        return normalised_auc(self.auc, prevalence=self.prevalence)

    def chart(self, *, title: str = "") -> Chart:
        """Return the unachievable region, guessing and the curve."""
        layers = [
            *space(self.prevalence),
            Layer("line", records(x=self.recall, y=self.precision)),
        ]
        heading = title or (
            f"Summary of {self.curves} curves at prevalence {self.prevalence:.3g} "
            f"(area {self.auc:.3f})"
        )
        return Chart(layers, x=RECALL, y=PRECISION, title=heading, width=380, height=320)

    def plot(self, ax: Any = None, *, title: str = "") -> Display | LayerChart:
        """Draw it, on matplotlib's axes where it is installed, else as an Altair chart."""
        return self.chart(title=title).plot(ax)


def summary_curve(
    curves: Sequence[Curve],
    *,
    prevalence: float,
    weights: Sequence[float] | None = None,
) -> SummaryCurve:
    """Return one precision-recall curve for folds or tasks whose prevalences differ.

    A vertical average of precision favours the curves with more positives. The false positive
    rate at a recall does not depend on the prevalence, so the rates are averaged, and their mean
    is put back at the chosen prevalence. For one model that was tested at several prevalences
    this is the model's curve at the chosen one.

    Reference: the question is left open in Boyd, 2014, section 6.1.

    >>> rare = curve([1, 0, 0, 1, 0, 0], [6, 5, 4, 3, 2, 1])
    >>> even = curve([1, 0, 1, 0], [4, 3, 2, 1])
    >>> summary = summary_curve([rare, even], prevalence=0.5)
    >>> round(summary.auc, 2), summary.precision[-1].round(2).item()
    (0.89, 0.67)
    """
    pi = fraction("prevalence", prevalence)
    if not 0.0 < pi < 1.0 or not curves or any(not c.negatives for c in curves):
        raise ArgumentError(
            "curves must be at least one curve of rows of both classes, and prevalence must lie "
            f"strictly between 0 and 1; got {len(curves)} curves and {shown(prevalence)}."
        )
    share = np.ones(len(curves)) if weights is None else as_numbers(weights, name="weights")
    if share.shape != (len(curves),) or not (share >= 0).all() or not 0 < share.sum() < np.inf:
        raise ArgumentError("weights must be as many as curves, non-negative and not all 0.")
    recall = np.linspace(0.0, 1.0, 4 * _STEPS + 1)[1:]
    rate = np.average([c._false_rate(recall) for c in curves], axis=0, weights=share)
    precision = pi * recall / (pi * recall + (1.0 - pi) * rate)
    start = precision[:1]  # nothing is called positive at recall 0: level to the first point
    return SummaryCurve(
        np.concatenate([[0.0], recall]), np.concatenate([start, precision]), pi, len(curves)
    )


def space(prevalence: float) -> list[Layer]:
    """Return what every picture of the space starts with: what no model reaches, and guessing."""
    recall = np.linspace(0.0, 1.0, _STEPS)
    lowest = np.asarray(minimum_precision(recall=recall, prevalence=prevalence))
    guessing = [{"x": 0.0, "y": prevalence}, {"x": 1.0, "y": prevalence}]
    dashed = {"strokeDash": [4, 3], "strokeWidth": 1.2}
    return [
        Layer("area", records(x=recall, y=lowest), color=SHADE),
        Layer("line", guessing, color=MUTED, style=dashed),
    ]
