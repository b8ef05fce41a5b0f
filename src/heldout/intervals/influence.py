"""Sampling error from released placements: how far each row pulls at an area or at precision.

A coarse noisy score table, cheap, says where a score stands among either class. By these places a
row's influence on the metric is known from the row alone, so that the second moment of the rows'
influences (`InfluenceMoments`) can be bought for little; it is the metric's sampling variance.
All here is arithmetic on released numbers.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from heldout.intervals.curve import Curve
from heldout.kernel.ranking.influence import SQUARES, STEPS, InfluenceMoments

__all__ = ["Influence", "Scatter", "of_area", "of_difference", "of_precision", "shares"]

CELLS: Final = 64
MISPLACED: Final = 0.1
"""How far a variance by placements may be off, as a share, besides its noise."""
FURTHEST: Final = 2.0
"""Placements by two models that differ by more deviations, taken as independent, count as if they
differed by so many. Rows that two models place so differently are few, and bounding them keeps the
noise small."""


@dataclass(frozen=True, eq=False)
class Scatter:
    """Weighted candidates for the sampling variance, in units of what a formula assumes."""

    ratios: Any
    weights: Any

    @classmethod
    def assumed(cls) -> "Scatter":
        return cls(np.ones(1), np.ones(1))

    @classmethod
    def around(cls, ratio: float, *, spread: float) -> "Scatter":
        """Candidates about this ratio, whose logarithms have a standard deviation of `spread`."""
        steps = np.linspace(-3.5, 3.5, 25)
        weights = np.exp(-(steps**2) / 2)
        return cls(ratio * np.exp(spread * steps), weights / weights.sum())

    @classmethod
    def seen(cls, ratio: float, *, scale: float, prior: "Scatter") -> "Scatter":
        """What is believed once a noisy ratio was released, with Laplace noise of this scale.

        Placements by a coarse table are wrong by a little, which counts as more noise.
        """
        seen = min(max(ratio, float(prior.ratios.min())), float(prior.ratios.max()))
        width = scale + MISPLACED * prior.ratios
        logs = np.log(prior.weights / width) - np.abs(seen - prior.ratios) / width
        weights = np.exp(logs - logs.max())
        return cls(prior.ratios, weights / weights.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """Each row's part in a metric's sampling error, by class and cell of the scores."""

    cuts: Any
    rival_cuts: Any | None = None
    negatives: Any
    positives: Any
    counts: tuple[float, float]
    """About how many negatives and positives there are."""
    bound: float

    def statistic(self, score_range: tuple[float, float]) -> InfluenceMoments:
        negatives, positives = (
            np.rint(np.clip(each / self.bound, -1, 1) * STEPS).astype(int).ravel()
            for each in (self.negatives, self.positives)
        )
        return InfluenceMoments(
            cuts=tuple(map(float, self.cuts)),
            rival_cuts=None if self.rival_cuts is None else tuple(map(float, self.rival_cuts)),
            negatives=tuple(negatives.tolist()),
            positives=tuple(positives.tolist()),
            score_range=score_range,
        )

    def typical_variance(self, shares: tuple[Any, Any]) -> float:
        """The sampling variance if the classes' rows lie in the cells by these shares."""
        each = zip(shares, (self.negatives, self.positives), self.counts, strict=True)
        return float(sum(count * (share @ pulls**2) for share, pulls, count in each))

    def variance(self, noisy: Any, *, scale: float) -> tuple[float, float]:
        """The sampling variance by the noisy moments, and the scale of its noise."""
        squares, *sums = (float(each) for each in noisy)
        step = self.bound / STEPS
        found, noise = (step**2 * STEPS / SQUARES * each for each in (squares, scale))
        for total, count in zip(sums, self.counts, strict=True):
            # Twice the scale squared is what the noise adds to the square of a sum.
            found -= step**2 * (total**2 - 2 * scale**2) / max(count, 1.0)
            noise += step**2 * scale**2 / max(count, 1.0)
        return found, noise


def of_area(curve: Curve, *, counts: tuple[float, float]) -> Influence:
    """A positive row's is its place among the negatives less the area, over the positives."""
    cuts, below, above = _places(curve)
    m, n = counts
    negatives, positives = (above - curve.area) / m, (below - curve.area) / n
    bound = float(max(np.abs(negatives).max(), np.abs(positives).max()))
    return Influence(
        cuts=cuts, negatives=negatives, positives=positives, counts=counts, bound=bound
    )


def of_difference(curve: Curve, rival: Curve, *, counts: tuple[float, float]) -> Influence:
    """The rival's area less the first one's: the difference of a row's two placements."""
    m, n = counts
    (cuts, *places), (rival_cuts, *rival_places) = _places(curve), _places(rival)
    # Of the positives among the negatives, and of the negatives among the positives.
    furthest = [
        FURTHEST * math.sqrt(sum(_spread(each, by_class) for each in (curve, rival)))
        for by_class in (1, 0)
    ]
    positives, negatives = (
        np.clip(other[None, :] - own[:, None], -most, most) / count
        for own, other, most, count in zip(places, rival_places, furthest, (n, m), strict=True)
    )
    return Influence(
        cuts=cuts,
        rival_cuts=rival_cuts,
        negatives=negatives,
        positives=positives,
        counts=counts,
        bound=max(furthest[0] / n, furthest[1] / m),
    )


def _spread(curve: Curve, by_class: int) -> float:
    """The variance of the placements of positives (1) or negatives (0), at least 1/50."""
    place, of = (1 - curve.fpr, curve.tpr) if by_class else (curve.tpr, curve.fpr)
    middle, steps = (place[1:] + place[:-1]) / 2, np.diff(of)
    return max(float(steps @ middle**2) - float(steps @ middle) ** 2, 0.02)


def of_precision(curve: Curve, *, counts: tuple[float, float]) -> Influence:
    """Average precision: the rows change the precision of others and have one of their own."""
    cuts, below, above = _places(curve)
    m, n = counts
    share = n / (n + m)
    false, true = 1 - below, above
    _, positives_in = shares(curve, cuts)
    called = share * true + (1 - share) * false
    precision = share * true / called
    mean = float(positives_in @ precision)
    by_true = share * (1 - share) * false / called**2
    by_false = -share * (1 - share) * true / called**2
    by_share = float(positives_in @ (true * false / called**2))

    def reach(slopes: Any, rates: Any) -> Any:
        """The mean over positives s of slope(s) * (1 if the row is above s, less the rate)."""
        terms = positives_in * slopes
        return np.cumsum(terms) - terms / 2 - float(terms @ rates)

    rows = n + m
    positives = (precision - mean + reach(by_true, true)) / n + by_share * (1 - share) / rows
    negatives = reach(by_false, false) / m - by_share * share / rows
    bound = float(max(np.abs(negatives).max(), np.abs(positives).max()))
    return Influence(
        cuts=cuts, negatives=negatives, positives=positives, counts=counts, bound=bound
    )


def _places(curve: Curve) -> tuple[Any, Any, Any]:
    """Cut points upwards, and by cell the shares of negatives below and of positives above."""
    level = (curve.fpr + curve.tpr) / 2
    wanted = np.arange(1, CELLS) / CELLS
    cuts = np.unique(np.interp(wanted, level, curve.thresholds))
    false, true = _rates(curve, cuts)
    false, true = (np.concatenate([[1.0], each, [0.0]]) for each in (false, true))
    return cuts, 1 - (false[1:] + false[:-1]) / 2, (true[1:] + true[:-1]) / 2


def shares(curve: Curve, cuts: Any) -> tuple[Any, Any]:
    """Which share of the negatives, and of the positives, the curve has in each cell."""
    false, true = (-np.diff(each, prepend=1.0, append=0.0) for each in _rates(curve, cuts))
    return false, true


def _rates(curve: Curve, thresholds: Any) -> tuple[Any, Any]:
    rising = curve.thresholds[::-1]
    return (
        np.interp(thresholds, rising, curve.fpr[::-1]),
        np.interp(thresholds, rising, curve.tpr[::-1]),
    )
