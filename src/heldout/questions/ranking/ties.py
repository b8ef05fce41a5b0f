"""How far the order of rows within a cell of the public grid can move a ranking metric.

On the grid rows of one cell are tied. `E` is the area of the exact scores, `A` that of the grid,
`T` the share of pairs of a positive and a negative row that share a cell. A tied pair counts one
half in `A` and 0, 1/2 or 1 in `E`, so `|E - A| <= T/2`. `T` is private. What is known of it:

- from the released area alone: the pairs won are `A - T/2 >= 0` and those lost `1 - A - T/2 >= 0`,
  so `T/2 <= min(A, 1 - A)`;
- from released curves: their bins are unions of cells, so `T` is at most the share of pairs that
  share a bin;
- from a release of `T` itself, `Session.grid_ties`, at a small price: nearly all there is to know.

Average precision counts a tie against the model, so that no order within the cells gives less.
How much more, the released curves bound: whatever the order, it stays within their band.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.intervals.auc_interval import belief, noise_interval
from heldout.intervals.measure import Interval, Measure, checked_level
from heldout.questions.ranking.release import RankingRelease

__all__ = ["TieBound", "TiesRelease", "bin_ties", "largest_ties"]

NAME = "pairs that share a cell"


@dataclass(frozen=True)
class TieBound:
    """The exact scores' area, and average precision, are at most so far from the grid's."""

    auc: float
    average_precision: float | None
    level: float
    source: str

    def sentence(self) -> str:
        """For people, with what it was computed from.

        >>> print(TieBound(auc=0.0001, average_precision=None, level=0.95, source="the area"
        ... ).sentence())
        Scores were ranked on the public grid. The order of rows within a cell can move the AUC by
        at most 0.0001 (from the area, 95% confidence); average precision counts ties against the
        model, so no order gives less.
        """
        precision = "average precision counts ties against the model, so no order gives less"
        if self.average_precision is not None:
            precision += f", and at most {self.average_precision:.2g} more"
        return (
            "Scores were ranked on the public grid. The order of rows within a cell can move the "
            f"AUC by at most {self.auc:.2g} (from {self.source}, {self.level * 100:g}% "
            f"confidence); {precision}."
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "auc": self.auc,
            "average_precision": self.average_precision,
            "level": self.level,
            "source": self.source,
        }


def largest_ties(area: Interval) -> float:
    """The largest T/2 that an area within these limits allows.

    >>> largest_ties((0.8, 0.9)), largest_ties((0.4, 0.7))
    (0.19999999999999996, 0.5)
    """
    low, high = area
    return 0.5 if low <= 0.5 <= high else max(min(low, 1 - low), min(high, 1 - high))


def bin_ties(low: Sequence[Any], high: Sequence[Any]) -> float:
    """The largest share of pairs within a bin, from limits of the rates at the bins' inner edges.

    Row 0 of each is the false, row 1 the true positive rate, thresholds falling; the outer edges
    have the rates 0 and 1. The share of a class between two edges is at most the upper limit at
    the one less the lower limit at the other.

    >>> bin_ties([[0.25], [0.75]], [[0.25], [0.75]])  # 1/4 * 3/4 + 3/4 * 1/4
    0.375
    """
    shares = []
    for least, most in zip(low, high, strict=True):
        ends = np.append(np.asarray(most, dtype=float), 1.0)
        shares.append(np.clip(ends - np.append(0.0, np.asarray(least, dtype=float)), 0.0, 1.0))
    return min(float(shares[0] @ shares[1]), 1.0)


class TiesRelease(RankingRelease):
    """The noisy share of pairs that share a cell of the public grid."""

    @property
    def measures(self) -> dict[str, Measure]:
        draw = self._draw

        def noise(level: float) -> Interval:
            return noise_interval(draw, level=level)

        def population(level: float) -> Interval:
            # Half of the error for the noise, half for the sample, whose variance is at most
            # that of one term times 1/n + 1/m.
            half = (1 + level) / 2
            known = belief(draw)
            if known is None:
                return 0.0, 1.0
            low, high = noise_interval(draw, level=half)
            reach = _normal_quantile(half)
            rows = known.per_positive + known.per_negative
            spread = [reach * math.sqrt(max(end * (1 - end), 0.0) * rows) for end in (low, high)]
            return max(0.0, low - spread[0]), min(1.0, high + spread[1])

        return {NAME: self._measure(NAME, draw.value, noise, population, float)}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def tie_bound(self, level: float = 0.95) -> TieBound:
        """One-sided, so with all of the error on the upper side. Free."""
        level = checked_level(level)
        two_sided = 2 * level - 1 if level > 0.5 else level
        upper = self.noise_interval(two_sided)[1]
        return TieBound(upper / 2, None, level, "a release of the tied pairs")


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)
