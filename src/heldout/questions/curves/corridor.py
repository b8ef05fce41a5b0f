"""Bands around the fitted curve, measured across it, and intervals of its area.

`margins` says how far the curve may lie from the fitted one at points along
it. A simultaneous band takes one quantile of the largest standardised deviation over all points, by
simulating them with their correlations; it reaches further towards the diagonal than away from it.
Everything is made from released numbers, hence free; the simulation is no privacy mechanism, and
its numbers fill the cube evenly and are the same at each call.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from heldout.intervals.curve import Curve
from heldout.intervals.fieller import ratio_bounds, single_quantile
from heldout.kernel.noise.tables.table import NoisyTable
from heldout.questions.curves.bands import Band, Rectangles, normal_points, rectangles
from heldout.questions.curves.fit import Fitted
from heldout.questions.curves.margins import LEAST, SMOOTHED, Along
from heldout.questions.curves.methods.influence import AreaBySum, Placements
from heldout.questions.curves.model import STOPS

__all__ = ["Corridor", "area_interval", "corridor", "partial_area_interval", "region"]

_WITHIN: Final = STOPS[[0, 2, 4, 5, 6, 7, 8, 10]]
"""Places within a bin, as shares of it."""
# Chosen on adult and made-up scores at 1,000 and 5,000 rows, epsilon 1.
UNEVEN: Final = 0.09
"""Deviation of w within a bin, over the bin's length; for areas."""
INWARDS: Final = 1.8
"""How far a band may reach towards the diagonal at most, over how far it reaches away from it."""
AREA: Final = 1.4
"""How much more an area strays that was not bought: the fit leans one way in all bins at once."""
SUM: Final = 1.2
"""How much more one strays that was: the sum knows of rows' places only what was told before."""
USUAL: Final = 0.25
"""By so much the shares of positives on either side of a bin differ in smooth curves. Set by
looking at six made-up shapes, of which five have heaps; docs/accuracy.md has what that gives."""
TOGETHER: Final = 0.85
"""Of the simulated quantile of the largest deviation: the margins are not all met at once. Chosen
anew after those of `margins`, on the same scores and on adult, SMS and Twitter."""


@dataclass(frozen=True, eq=False)
class Corridor:
    """The lowest and the highest curve as points that rise, and bounds of the prevalence."""

    low: tuple[Any, Any]
    high: tuple[Any, Any]
    prevalence: tuple[float, float]

    def roc(self, fpr: Any, tpr: Any) -> Band:
        """The band of the ROC curve at each fpr; it always holds the released curve."""
        places = np.asarray(fpr, dtype=np.float64)
        low, high = np.interp(places, *self.low), np.interp(places, *self.high)
        low = np.where(places >= 1, 1.0, low)
        return Band(places, np.minimum(low, tpr), np.maximum(high, tpr))

    def precision(self, recall: Any, precision: Any) -> Band:
        """The band of precision at each recall."""
        recall = np.asarray(recall, dtype=np.float64)
        bounds = []
        for share, edge in zip(self.prevalence, (self.low, self.high), strict=True):
            wrong = (1 - share) * np.interp(recall, edge[1], edge[0])
            called = share * recall + wrong
            bounds.append(
                np.divide(share * recall, called, out=np.ones_like(called), where=called > 0)
            )
        low = np.where(recall > 0, bounds[0], 0.0)
        high = np.where(recall > 0, bounds[1], 1.0)
        return Band(recall, np.minimum(low, precision), np.maximum(high, precision))


@lru_cache(maxsize=32)  # a page asks for the same few, many times; all of it is public
def region(
    table: NoisyTable, fit: Fitted | None, *, level: float, simultaneous: bool, noise_only: bool
) -> Corridor | Rectangles:
    """Around the fitted law; or what the edges of a table without one leave possible."""
    words: Any = {"level": level, "simultaneous": simultaneous, "noise_only": noise_only}
    return rectangles(table, **words) if fit is None else corridor(fit, **words)


def corridor(fit: Fitted, *, level: float, simultaneous: bool, noise_only: bool) -> Corridor:
    """Where the rows' own curve lies, or that of the population, with this confidence."""
    along = Along(fit)
    covariance = along.noise + (along.uneven if noise_only else SMOOTHED * along.sampling)
    deviation = np.sqrt(np.diag(covariance))
    quantile = single_quantile(level)
    if simultaneous:
        correlation = covariance / np.outer(deviation, deviation)
        quantile = max(quantile, TOGETHER * _largest(correlation, level))
    most = np.minimum(along.places, 2 - along.places)
    low, high = _reach(along.heights, most, deviation, quantile)
    low, high = (
        np.maximum(each, quantile * least)
        for each, least in zip((low, high), along.least, strict=True)
    )
    down, up = along.margins(quantile)
    lowest, highest = along.stepped(along.moved(-low - down), along.moved(high + up))
    return Corridor(lowest, highest, _prevalence(fit, level, noise_only=noise_only))


def area_interval(fit: Fitted, *, level: float, noise_only: bool) -> tuple[float, float]:
    """Where the area of the curve lies: half the mean of w, plus a half."""
    height = 2 * fit.curve.area - 1
    deviation = 2 * _area_deviation(fit, (0.0, 1.0), noise_only=noise_only)
    down, up = _reach(height, 1.0, deviation, single_quantile(level))
    return float(max(1 + height - down, 0.0)) / 2, float(min(1 + height + up, 2.0)) / 2


def partial_area_interval(
    fit: Fitted, mean: float, fpr: tuple[float, float], *, level: float, noise_only: bool
) -> tuple[float, float]:
    """Where the mean true positive rate lies over these false positive rates."""
    deviation = _area_deviation(fit, fpr, noise_only=noise_only) / (fpr[1] - fpr[0])
    down, up = _reach(mean, 1.0, deviation, single_quantile(level))
    return float(max(mean - down, 0.0)), float(min(mean + up, 1.0))


def _area_deviation(fit: Fitted, fpr: tuple[float, float], *, noise_only: bool) -> float:
    """Of the area between two false positive rates: half of what w strays by, over u there.

    Where w is off by d the curve is off by d (1 + s)/2 at its false positive rate, s the slope, and
    du is (1 + s) times as long as the step of that rate. The whole area goes by the noise of a sum
    of influences, where there is one, and by pairs of rows within bins; unless the law leaves
    counts unexplained, from which the sum is corrected.
    """
    across, curve = Across(fit), fit.curve
    ends = np.array(fpr) + np.interp(fpr, curve.fpr, curve.tpr)
    ends = np.where(np.array(fpr) == (0.0, 1.0), (0.0, 2.0), ends)
    inside = (across.places >= ends[0]) & (across.places <= ends[1])
    weights = np.gradient(across.places) * inside / 2
    variance = float(AREA**2 * weights @ across.noise @ weights)
    if isinstance(fit.table.area, AreaBySum) and fpr == (0.0, 1.0) and fit.unexplained == 1:
        area = fit.table.area
        told = 2 * (SUM * area.scale) ** 2 + _within_bins(fit, area.placements)
        variance = min(variance, told)
    return math.sqrt(variance + (0.0 if noise_only else float(weights @ across.sampling @ weights)))


def _within_bins(fit: Fitted, placed: Placements) -> float:
    """The variance of the area by the order of rows within bins, which nobody told.

    None where the rows beside a bin are mixed about as its own are; where those above are of one
    class and those below of the other, all of its pairs may be in order or none, and the sum errs
    where it was told otherwise.
    """
    edges, curve = fit.table.edges, fit.curve
    runs, rises = (-np.diff(each) for each in fit.rates_at(edges))
    told = [-np.diff(np.interp(edges, placed.cuts, each)) for each in (placed.false, placed.true)]
    share = curve.positives * rises
    share = share / np.maximum(share + curve.negatives * runs, 1e-9)
    beside = np.pad(share, 1, mode="edge")
    uneven = np.maximum(np.abs(beside[2:] - beside[:-2]) - USUAL, 0.0) / math.sqrt(12)
    pairs = runs * rises + runs * np.abs(rises - told[1]) + rises * np.abs(runs - told[0])
    return float(((uneven * pairs) ** 2).sum())


@dataclass(frozen=True, eq=False)
class Across:
    """A fitted curve as w at places u, and the covariance of w; for areas.

    Some places are edges of bins, where the curve has two slopes and the covariance is too large:
    `AREA` was chosen with it.
    """

    fit: Fitted

    @cached_property
    def _edges(self) -> Any:
        curve = self.fit.curve
        return (curve.fpr + curve.tpr)[:: len(STOPS) - 1]

    @cached_property
    def places(self) -> Any:
        starts, lengths = self._edges[:-1, None], np.diff(self._edges)[:, None]
        inner = np.unique((starts + lengths * _WITHIN).ravel().round(9))
        return inner[(inner > 1e-6) & (inner < 2 - 1e-6)]

    def heights(self, curve: Curve) -> Any:
        along = curve.fpr + curve.tpr + np.linspace(0, 1e-12, len(curve.fpr))
        return np.interp(self.places, along, curve.tpr - curve.fpr)

    @cached_property
    def _rates(self) -> tuple[Any, Any]:
        heights = self.heights(self.fit.curve)
        return (self.places - heights) / 2, (self.places + heights) / 2

    @cached_property
    def noise(self) -> Any:
        """Of the law, and of rows that lie unevenly within a bin; bins are independent in that."""
        edges, places = self._edges, self.places
        bins = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, len(edges) - 2)
        lengths = np.maximum(np.diff(edges), 1e-12)[bins]
        part = np.clip((places - edges[bins]) / lengths, 0.0, 1.0)
        bridge = np.minimum.outer(part, part) - np.outer(part, part)
        uneven = UNEVEN**2 * np.outer(lengths, lengths) * bridge * (bins[:, None] == bins)
        curve = self.fit.curve
        sizes = np.maximum([curve.negatives, curve.positives], 1.0)
        least = (LEAST * self.fit.table_scale / sizes.min()) ** 2
        return self.fit.stray(self.heights) + uneven + least * np.eye(len(places))

    @cached_property
    def sampling(self) -> Any:
        """Two Brownian bridges: at one place, w strays by 2 (dt - s df)/(1 + s), s the slope."""
        false, true = self._rates
        rise, run = np.gradient(true), np.gradient(false)
        steep, flat = 2 * rise / (rise + run), 2 * run / (rise + run)
        curve, found = self.fit.curve, np.zeros((len(false), len(false)))
        for rate, weight, size in (
            (true, flat, curve.positives),
            (false, steep, curve.negatives),
        ):
            bridge = np.minimum.outer(rate, rate) - np.outer(rate, rate)
            # One row more of either kind: where no row was seen some may still be.
            bridge += np.eye(len(rate)) / max(size, 1.0)
            found += np.outer(weight, weight) * bridge / max(size, 1.0)
        return found


def _reach(heights: Any, most: Any, deviation: Any, quantile: float) -> tuple[Any, Any]:
    """A height is at most `most`, and near that it strays further down than up.

    A curve that seems nearly perfect may well miss a few rows. So the deviations are counted on the
    scale of atanh(height/most), within limits.
    """
    spread = np.minimum(deviation / most, 1.0)
    share = np.minimum(np.abs(heights) / most, 1 - spread / 2)
    far = quantile * spread / (1 - share**2)
    even = quantile * deviation
    inwards = most * (share - np.tanh(np.arctanh(share) - far))
    inwards = np.clip(inwards, even, INWARDS * even)
    above = heights >= 0
    return np.where(above, inwards, even), np.where(above, even, inwards)


def _largest(correlation: Any, level: float) -> float:
    """What the largest of correlated standard normal deviations stays below so often."""
    size = len(correlation)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = normal_points(size) @ root.T
    return float(np.quantile(np.abs(drawn).max(axis=1), level, method="higher"))


def _prevalence(fit: Fitted, level: float, *, noise_only: bool) -> tuple[float, float]:
    curve = fit.curve
    covariance = fit.stray(lambda each: np.array([each.positives, each.negatives]))
    low, high = ratio_bounds(
        curve.positives,
        curve.negatives,
        top_variance=covariance[0, 0],
        rest_variance=covariance[1, 1],
        covariance=covariance[0, 1],
        rows=0.0 if noise_only else curve.positives + curve.negatives,
        quantile=single_quantile(level),
    )
    return float(low), float(high)
