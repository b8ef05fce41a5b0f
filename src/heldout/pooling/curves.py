"""Curves of several sites as one, at common thresholds over the public range of scores.

Each site's curve says what share of its positives and of its negatives scores at least t. Weighted
by the sites' released numbers of positives and negatives these are the shares over all sites, and
precision, calibration and prevalence follow. Read off releases: no row is read, nothing is paid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heldout.drawing.chart import MUTED, PALETTE, Chart, Field, Figure, Layer, Numbers, records
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, checked_level
from heldout.pooling.answer import PooledArea
from heldout.pooling.site import Site

POINTS: Final = 129
BINS: Final = 10
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PooledRoc:
    """Shares of positives and negatives that score at least each threshold, over all sites.

    It has no band: a site's holds its own curve at each false positive rate, and the sites' rates
    at one threshold differ. The pooled area has an interval.
    """

    fpr: Vector
    tpr: Vector
    thresholds: Vector


@dataclass(frozen=True, eq=False)
class PooledPrecisionRecall:
    """Precision and recall over all rows of all sites."""

    recall: Vector
    precision: Vector
    thresholds: Vector
    prevalence: float


@dataclass(frozen=True, eq=False)
class PooledCalibration:
    """Observed share of positives by bins of the score, over all rows of all sites."""

    predicted: Vector
    observed: Vector
    share: Vector
    edges: Vector


class _Curve:
    """One site's curve: shares by threshold, and how many positives and negatives they are of."""

    def __init__(self, site: Site) -> None:
        noisy, roc = site.content["noisy"], site.content["curves"]["roc"]
        self.positives, self.negatives = (
            max(float(np.sum(np.array(noisy[name], dtype=float))), 1.0)
            for name in ("positives", "negatives")
        )
        columns = [np.array(roc[name], dtype=float) for name in ("thresholds", "tpr", "fpr")]
        if len({len(column) for column in columns}) != 1 or not np.isfinite(columns).all():
            raise ValueError
        # Thresholds run downwards, and interpolation wants them upwards.
        self._thresholds, *self._shares = (column[::-1] for column in columns)
        self.range = (float(self._thresholds[0]), float(self._thresholds[-1]))
        if not self.range[0] < self.range[1]:
            raise ValueError

    def at(self, thresholds: Vector) -> tuple[Vector, ...]:
        """TPR and FPR."""
        return tuple(np.interp(thresholds, self._thresholds, share) for share in self._shares)


class PooledCurves(PooledArea):
    """Curves of all sites as one; the headline is their area, by meta-analysis."""

    def __init__(self, sites: Sequence[Site]) -> None:
        super().__init__(sites)
        self._curves = [_Curve(site) for site in sites]
        for curve in self._curves[1:]:
            if curve.range != self._curves[0].range:
                raise ArgumentError(
                    "The sites' curves have different score ranges. Ask every site with the same."
                )

    @cached_property
    def roc(self) -> PooledRoc:
        """The ROC curve over all rows of all sites."""
        thresholds = np.linspace(*self._curves[0].range, POINTS)[::-1]
        positives, negatives = self._weights
        points = [one.at(thresholds) for one in self._curves]
        return PooledRoc(
            fpr=negatives @ np.array([fpr for _, fpr in points]),
            tpr=positives @ np.array([tpr for tpr, _ in points]),
            thresholds=thresholds,
        )

    @property
    def apart(self) -> list[tuple[Vector, ...]]:
        """TPR and FPR of each site, at the thresholds of `roc`."""
        return [curve.at(self.roc.thresholds) for curve in self._curves]

    @property
    def are_probabilities(self) -> bool:
        """Return whether scores lie from 0 to 1, so that calibration can be asked."""
        low, high = self._curves[0].range
        return low >= -1e-3 and high <= 1 + 1e-3

    def figures(self, level: float = 0.95) -> list[Figure]:
        return [*super().figures(level), *pictures(self)]

    @property
    def _weights(self) -> tuple[Vector, Vector]:
        counts = np.array([[curve.positives, curve.negatives] for curve in self._curves])
        shares = counts / counts.sum(axis=0)
        return shares[:, 0], shares[:, 1]

    @property
    def prevalence(self) -> float:
        """The share of positives over all sites."""
        positives = sum(curve.positives for curve in self._curves)
        return positives / (positives + sum(curve.negatives for curve in self._curves))

    @property
    def precision_recall(self) -> PooledPrecisionRecall:
        """The precision-recall curve over all rows of all sites."""
        roc, share = self.roc, self.prevalence
        true, false = share * roc.tpr, (1 - share) * roc.fpr
        called = true + false
        precision = np.divide(true, called, out=np.ones_like(true), where=called > 0)
        return PooledPrecisionRecall(roc.tpr, precision, roc.thresholds, share)

    @property
    def calibration(self) -> PooledCalibration:
        """Observed shares in ten bins of equal width; scores must be probabilities."""
        roc, share = self.roc, self.prevalence
        if not self.are_probabilities:
            raise ArgumentError("Calibration is for scores that are probabilities, from 0 to 1.")
        true, false = (
            -np.diff(shares[::-1]) for shares in (share * roc.tpr, (1 - share) * roc.fpr)
        )
        mass, middle = true + false, np.convolve(roc.thresholds[::-1], [0.5, 0.5], "valid")
        which = np.minimum((middle * BINS).astype(int), BINS - 1)
        rows, hits, scores = (
            np.bincount(which, weights, BINS).astype(float)
            for weights in (mass, true, mass * middle)
        )
        seen = rows > 0
        return PooledCalibration(
            predicted=scores[seen] / rows[seen],
            observed=hits[seen] / rows[seen],
            share=rows[seen],
            edges=np.linspace(0, 1, BINS + 1),
        )

    @property
    def measures(self) -> dict[str, Measure]:
        measures = super().measures
        others = [name for name in self.sites[0].content["measures"] if "average prec" in name]
        for name in others:
            pooled = PooledArea([_of(site, name) for site in self.sites])
            measures |= pooled.measures
        return measures

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        checked_level(level)
        roc, pr = self.roc, self.precision_recall
        drawn: dict[str, Any] = {
            "roc": {name: getattr(roc, name).tolist() for name in ("fpr", "tpr", "thresholds")},
            "precision_recall": {
                "recall": pr.recall.tolist(),
                "precision": pr.precision.tolist(),
                "prevalence": pr.prevalence,
            },
        }
        if self.are_probabilities:
            calibration = self.calibration
            drawn["calibration"] = {
                name: getattr(calibration, name).tolist()
                for name in ("predicted", "observed", "share", "edges")
            }
        return {**super().as_dict(level), "curves": drawn}


def _of(site: Site, measure: str) -> Site:
    """The same release with another of its measures as the headline."""
    content: Mapping[str, Any] = site.content
    chosen = {**content, "measures": {measure: content["measures"][measure]}}
    return Site(site.name, chosen, site.range)


# --- pictures ---


def pictures(pooled: PooledCurves) -> list[Figure]:
    """The curves over all rows of all sites; the ROC curve beside those of the sites."""
    roc, pr = pooled.roc, pooled.precision_recall
    thin = {"strokeWidth": 1}
    apart = [
        Layer("line", records(x=fpr, y=tpr), color=PALETTE[5], style=thin)
        for tpr, fpr in pooled.apart
    ]
    # Above the largest score nothing is called, and there is no precision.
    called = (roc.tpr > 0) | (roc.fpr > 0)
    precise = records(x=pr.recall[called], y=pr.precision[called])
    at_random = [{"x": x, "y": pr.prevalence} for x in (0.0, 1.0)]
    no_band = "No band: those of the sites do not add up to one."
    figures = [
        _curve(
            ("ROC curve of all sites", "False positive rate", "True positive rate"),
            [_dashed([{"x": x, "y": x} for x in (0.0, 1.0)]), *apart,
             Layer("line", records(x=roc.fpr, y=roc.tpr))],
            "True against false positive rate over all rows of all sites; thin lines are the "
            f"sites'. The dashed line is chance. {no_band}",
        ),
        _curve(
            ("Precision-recall curve of all sites", "Recall", "Precision"),
            [_dashed(at_random), Layer("line", precise)],
            "Precision against recall over all rows of all sites; the dashed line is chance. "
            f"{no_band}",
        ),
    ]  # fmt: skip
    if not pooled.are_probabilities:
        return figures
    calibration = pooled.calibration
    bins = records(x=calibration.predicted, y=calibration.observed)
    most = float(calibration.share.max(initial=0.0)) or 1.0
    for dot, share in zip(bins, calibration.share.tolist(), strict=True):
        dot["size"] = 10 + 190 * share / most
    diagonal = _dashed([{"x": x, "y": x} for x in (0.0, 1.0)])
    titles = ("Reliability of all sites", "Mean score", "Observed share of positives")
    caption = (
        "Observed share of positives against mean score in ten bins of the scores, over all rows "
        "of all sites; a larger dot has more rows. On the dashed line a score is the probability "
        "that it says."
    )
    return [*figures, _curve(titles, [diagonal, Layer("point", bins, size=Field("size"))], caption)]


def _curve(titles: tuple[str, str, str], layers: list[Layer], caption: str) -> Figure:
    title, x, y = titles
    chart = Chart(layers, x=Numbers(x), y=Numbers(y), title=title)
    return Figure(chart.svg(says=f"{y} against {x.lower()}."), caption)


def _dashed(ends: Any) -> Layer:
    return Layer("line", ends, color=MUTED, style={"strokeDash": [4, 3], "strokeWidth": 1.2})
