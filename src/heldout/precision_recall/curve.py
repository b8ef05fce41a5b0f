"""A precision-recall curve as an object: its points, areas, intervals and picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.errors import ArgumentError
from heldout.precision_recall import binormal
from heldout.precision_recall.arguments import Floats, fractions, labelled_scores
from heldout.precision_recall.estimators import RECOMMENDED, estimates, known_estimator, pieces_of
from heldout.precision_recall.geometry import minimum_auc
from heldout.precision_recall.intervals import Interval, checked_confidence, interval
from heldout.precision_recall.levels import Levels, levels_from_scores
from heldout.precision_recall.normalised import normalised_auc

if TYPE_CHECKING:
    from numpy.random import Generator


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
        """A confidence interval for the area; see `heldout.precision_recall.interval`."""
        return interval(
            y_true=self._truth,
            y_score=self._scores,
            estimator=self.estimator,
            method=method,
            confidence=confidence,
            random_state=random_state,
        )

    def precision_at(self, recall: ArrayLike) -> Floats:
        """The height of the estimator's curve at any recall."""
        recall = fractions("recall", recall)
        if self.estimator == "binormal":
            model = binormal.fit(self._truth, self._scores)
            if model is None:
                return np.full(np.shape(recall), np.nan)
            return binormal.precision(model, self.prevalence, recall)
        return pieces_of(self._levels(), self.estimator).precision(recall)

    def band(
        self, recall: ArrayLike, *, confidence: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A pointwise interval for the precision at each recall.

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

    def plot(self, ax: Any = None, *, confidence: float | None = 0.95, title: str = "") -> Any:
        """Unachievable region, guessing, points, curve and band.

        On matplotlib's axes where it is installed, else an Altair chart. `confidence=None` leaves
        the band out.
        """
        from heldout.precision_recall.picture import draw

        return draw(self, confidence=confidence, title=title).plot(ax)

    def svg(self, *, confidence: float | None = 0.95, title: str = "") -> str:
        """The same as an SVG picture."""
        from heldout.precision_recall.picture import draw

        says = (
            f"Area {self.auc:.3f} by {self.estimator}, prevalence {self.prevalence:.3f}, with the "
            "unachievable region in grey and a pointwise band."
        )
        return draw(self, confidence=confidence, title=title).svg(says=says)

    def _levels(self) -> Levels:
        return levels_from_scores(self._truth, self._scores)

    def _false_rate(self, recall: Floats) -> Floats:
        """False positive rate of the empirical ROC curve, straight between positives."""
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
    """The precision-recall curve of labelled scores.

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
