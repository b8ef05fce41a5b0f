"""The curves that people read: ROC, precision-recall, reliability and lift. All of it is free."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from heldout.arrays import Floats, Ints
from heldout.intervals.measure import Measure, checked_level, framed
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.kernel.noise.tables.table import NoisyTable
from heldout.questions.curves.bands import Band, Rectangles, Region, rectangles
from heldout.questions.curves.draws import interval_of
from heldout.questions.curves.posterior import Posterior

__all__ = ["CalibrationCurve", "Lift", "PrecisionRecallCurve", "RocCurve"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reading:
    """A curve with its band; `kind` names its picture."""

    kind: ClassVar[str]
    _table: NoisyTable = field(repr=False)
    _posterior: Posterior | None = field(repr=False, default=None)

    @property
    def is_fitted(self) -> bool:
        """Whether the band goes by draws of the rows, which assume how rows lie between edges.

        Otherwise it goes by the edges of the table, and assumes only that the curve rises: where
        noise hides a class, where that is asked for, and for the papers' methods.
        """
        return self._posterior is not None

    def _region(self, level: float, simultaneous: bool, noise_only: bool) -> Region | Rectangles:
        words: Any = {"level": checked_level(level), "simultaneous": simultaneous}
        if self._posterior is not None:
            return self._posterior.region(noise_only=noise_only, **words)
        return rectangles(self._table, noise_only=noise_only, **words)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """The curve and its simultaneous band, on matplotlib's axes where it is installed.

        Without matplotlib it is an Altair chart, as `chart()` gives it.
        """
        from heldout.questions.curves.pictures import chart

        return chart(cast(Any, self), level=level).plot(ax)

    def chart(self, *, level: float = 0.95) -> Any:
        """The same as an Altair chart."""
        from heldout.questions.curves.pictures import chart

        return chart(cast(Any, self), level=level).altair()

    def to_frame(self, level: float = 0.95) -> Any:
        """The points as a pandas frame, with the ends of the band."""
        band = self.band(level)  # type: ignore[attr-defined]
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        points = {name: each for name, each in columns.items() if np.shape(each) == band.low.shape}
        return framed(**points, low=band.low, high=band.high)

    def svg(self, *, level: float = 0.95) -> str:
        """The chart as an SVG picture in the house style."""
        from heldout.questions.curves.pictures import svg

        return svg(cast(Any, self), level=level)


@dataclass(frozen=True, kw_only=True, eq=False)
class RocCurve(_Reading):
    """Rates that rise from (0, 0) to (1, 1) while the threshold falls.

    A row is called positive if its score is at least the threshold; the first threshold lies
    above all scores.
    """

    kind = "roc"
    fpr: Floats
    tpr: Floats
    thresholds: Floats

    def __iter__(self) -> Iterator[Floats]:
        """fpr, tpr and thresholds, as scikit-learn's `roc_curve` gives them."""
        return iter((self.fpr, self.tpr, self.thresholds))

    def band(
        self,
        level: float = 0.95,
        *,
        simultaneous: bool = True,
        noise_only: bool = False,
        at: ArrayLike | None = None,
    ) -> Band:
        """Where the true curve lies, at each fpr of this one or at those given.

        With `noise_only` it is the curve of these very rows, else that of the population that
        they were drawn from. `simultaneous` bands are for the whole curve at once. Where
        `is_fitted`, they assume how rows lie between the edges of the table; otherwise only that
        the curve rises.
        """
        places = self.fpr if at is None else np.asarray(at, dtype=np.float64)
        tpr = self.tpr if at is None else np.interp(places, self.fpr, self.tpr)
        return self._region(level, simultaneous, noise_only).roc(places, tpr)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "fpr": self.fpr.tolist(),
            "tpr": self.tpr.tolist(),
            "thresholds": self.thresholds.tolist(),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionRecallCurve(_Reading):
    """Precision against recall, from (0, 1), where nothing is called positive."""

    kind = "precision-recall"
    recall: Floats
    precision: Floats
    thresholds: Floats
    prevalence: float
    average_precision: Measure
    normalised_auc: Measure
    """AUCNPR: the area rescaled so that the worst ranking at this prevalence has 0."""

    def __iter__(self) -> Iterator[Floats]:
        """precision, recall and thresholds, as scikit-learn's function gives them: recall falls.

        The last point, where nothing is called positive, has no threshold.
        """
        return iter((self.precision[::-1], self.recall[::-1], self.thresholds[:0:-1]))

    def band(
        self,
        level: float = 0.95,
        *,
        simultaneous: bool = True,
        noise_only: bool = False,
        at: ArrayLike | None = None,
    ) -> Band:
        """Where the precision of the true curve lies, at each recall of this one or those given."""
        found = self._region(level, simultaneous, noise_only)
        if at is None:
            return found.precision(self.recall, self.precision)
        places = np.asarray(at, dtype=np.float64)
        return found.precision(places, np.interp(places, self.recall, self.precision))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "thresholds": self.thresholds.tolist(),
            "prevalence": self.prevalence,
            "normalised_auc": self.normalised_auc.as_dict(level),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationCurve(_Reading):
    """The share of positives in each bin of the scores, lowest first, against the mean score.

    Rows' own scores are not released: the mean score of a bin assumes that rows are spread
    smoothly over it.
    """

    kind = "calibration"
    predicted: Floats
    observed: Floats
    share: Floats
    """Of all rows."""
    edges: Floats
    """Scores where the bins begin and end."""
    _counts: tuple[Floats, Floats, Floats] = field(repr=False)
    """Noisy positives and negatives of each bin, and the variance of their noise."""
    _grid_edges: Ints | None = field(repr=False, default=None)

    def __iter__(self) -> Iterator[Floats]:
        """prob_true and prob_pred, as scikit-learn's `calibration_curve` gives them."""
        return iter((self.observed, self.predicted))

    def band(
        self, level: float = 0.95, *, simultaneous: bool = False, noise_only: bool = False
    ) -> Band:
        """Where the true share of positives of each bin lies."""
        each = len(self.observed) if simultaneous else 1
        if self._posterior is not None:
            assert self._grid_edges is not None
            shares = self._posterior.bin_shares(self._grid_edges, noise_only=noise_only)
            alone = 1 - (1 - checked_level(level)) / each
            ends = np.array([interval_of(share, alone) for share in shares.T])
            return Band(
                self.predicted,
                np.minimum(ends[:, 0], self.observed),
                np.maximum(ends[:, 1], self.observed),
            )
        positives, negatives, variance = self._counts
        rows = np.maximum(positives + negatives, 0.0) + np.sqrt(2 * variance)
        low, high = ratio_bounds(
            positives,
            negatives,
            top_variance=variance,
            rest_variance=variance,
            rows=0.0 if noise_only else rows,
            quantile=single_quantile(checked_level(level), of=each),
        )
        observed = self.observed
        return Band(self.predicted, np.minimum(low, observed), np.maximum(high, observed))

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of observed from predicted, by rows."""
        return float(np.sum(self.share * np.abs(self.observed - self.predicted)))

    @property
    def expected_calibration_error(self) -> float:
        """The same by its full name; the release's has an interval."""
        return self.error

    def error_interval(self, level: float, *, noise_only: bool) -> tuple[float, float]:
        """What the bins' own bands leave possible, all at once."""
        band = self.band(level, simultaneous=True, noise_only=noise_only)
        outside = np.maximum(np.maximum(band.low - self.predicted, self.predicted - band.high), 0)
        furthest = np.maximum(np.abs(band.low - self.predicted), np.abs(band.high - self.predicted))
        return (
            float(np.sum(self.share * outside)),
            min(1.0, float(np.sum(self.share * furthest))),
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "predicted": self.predicted.tolist(),
            "observed": self.observed.tolist(),
            "share": self.share.tolist(),
            "edges": self.edges.tolist(),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Lift:
    """How many times more positives than chance are among the share of rows that is called."""

    called: Floats
    lift: Floats
    thresholds: Floats
