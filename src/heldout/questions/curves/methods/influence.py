"""Counts and an area in one vector of sums, where what a row does to one it does not do to another.

A first, coarse table says about where a row stands among those of the other class. Its influence on
the area under the ROC curve, by that, is a number that is known from the row alone; the area is the
sum of all of these, but for a product of two small errors. A row that hardly moves the area may
then move its count by nearly all of epsilon.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.noise.tables.table import TableNoise, noise_of
from heldout.kernel.statistic import Sealed

__all__ = ["AreaBySum", "CountsWithArea", "Placements", "RankSum", "worse_than_chance"]

STEPS: Final = 2**20
"""Of the largest influence there can be: influences are whole numbers of them."""
LEAST: Final = Fraction(1, 20)
"""Of what a row may lose, for its count at least."""
CENTRE: Final = STEPS // 5
"""What influences are counted from where the row count is public, if the others allow it, on the
side of the furthest. Set by argument, not scanned: most rows are near 0, and a few far from it."""
CLEARLY: Final = 3.0
"""Deviations of the noise by which a table must say that positives have the lower scores."""
_MOST: Final = 2**62


@dataclass(frozen=True, kw_only=True, eq=False)
class Placements:
    """About which share of either class lies at or above each cut. Public: released before."""

    cuts: Ints
    """Grid points that rise, from 0 to the number of points."""
    false: Floats
    true: Floats
    positives: float
    negatives: float

    @classmethod
    def of_table(cls, cuts: Ints, *, coarse: Ints, noisy: Ints, scale: float) -> "Placements":
        """By noisy counts of both classes between every `coarse` cut, lowest scores first.

        The share of positives is believed to rise with the score, or to fall where the counts
        clearly say so; a wrong belief costs accuracy.
        """
        turn = -1 if worse_than_chance(*noisy, scales=np.full(noisy.shape, scale)) else 1
        seen = np.maximum(noisy, 0.0)
        sizes = np.maximum(noisy.sum(axis=1), 2 * scale)
        usual = sizes[1] / sizes.sum()
        share = (seen[1] + usual * scale) / (seen.sum(axis=0) + scale)
        up = turn * np.maximum.accumulate(turn * share)
        down = turn * np.minimum.accumulate(turn * share[::-1])[::-1]
        unclear = CLEARLY * scale / (seen.sum(axis=0) + scale)
        share = np.clip((up + down) / 2, share - unclear, share + unclear)
        rows = seen.sum(axis=0)
        rows = np.maximum(rows, max(rows.mean(), 1.0) / 4)
        rates = []
        for mass in ((1 - share) * rows, share * rows):
            above = np.append(np.cumsum(mass[::-1])[::-1], 0.0) / mass.sum()
            rates.append(np.interp(np.arange(len(cuts)), coarse, above))
        return cls(
            cuts=np.asarray(cuts),
            false=rates[0],
            true=rates[1],
            positives=float(sizes[1]),
            negatives=float(sizes[0]),
        )

    @property
    def area(self) -> float:
        return float(-np.trapezoid(self.true, self.false))

    @property
    def smaller(self) -> float:
        return min(self.positives, self.negatives)

    def weights(self) -> Ints:
        """The influence of a row on the area by class and grid point, in steps: within +-STEPS.

        For a positive its place among the negatives less the area, for a negative likewise, times
        the smaller class over its own.
        """
        middles = np.arange(self.cuts[-1]) + 0.5
        above, below = (np.interp(middles, self.cuts, rate) for rate in (self.true, self.false))
        negatives = self.smaller / self.negatives * (above - self.area)
        positives = self.smaller / self.positives * (1 - below - self.area)
        rounded = np.rint(STEPS * np.stack([negatives, positives])).astype(np.int64)
        return np.clip(rounded, -STEPS, STEPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaBySum:
    """A noisy sum of the influences on the area."""

    placements: Placements
    noisy: int
    noise_scale: Fraction
    """Discrete Laplace, in steps."""

    @property
    def value(self) -> float:
        """The area, but for noise and the product of what the placements miss of either class."""
        return self.placements.area + self.noisy / (STEPS * self.placements.smaller)

    @property
    def scale(self) -> float:
        """Of the noise of `value`."""
        return float(self.noise_scale) / (STEPS * self.placements.smaller)

    def expected(self, false: Floats, true: Floats, *, positives: float, negatives: float) -> float:
        """Return what `value` is without noise for rows with these rates at the cuts."""
        placed = self.placements
        above, below = ((rate[1:] + rate[:-1]) / 2 for rate in (placed.true, placed.false))
        moved = positives / placed.positives * (-np.diff(true) @ (1 - below - placed.area))
        moved += negatives / placed.negatives * (-np.diff(false) @ (above - placed.area))
        return placed.area + float(moved)

    def as_dict(self) -> dict[str, Any]:
        return {"unclamped": self.value, "scale": self.scale}


@dataclass(frozen=True, kw_only=True, eq=False)
class RankSum:
    """A noisy sum, over the positives, of twice their rank counted from the middle."""

    noisy: int
    noise_scale: Fraction
    """Discrete Laplace."""

    def as_dict(self) -> dict[str, Any]:
        return {"rank_sum": self.noisy, "scale": str(self.noise_scale)}


@dataclass(frozen=True, kw_only=True)
class CountsWithArea(Primitive):
    """Noisy counts by class and bin, and a noisy sum of the rows' influences on the area.

    Bins and influences are public by the time of the draw. Each count has noise of its own scale:
    the less, the less its rows can move the sum.

    Claim:       pure DP, epsilon.                                   [claim: counts-with-area]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row that leaves or arrives moves one count by 1 and the sum by its influence,
                 less a centre where as many rows arrive as leave; the scales are such that both
                 together lose at most epsilon/moved, for every row that there can be.
    Numerics:    exact: influences are whole numbers, scales rationals.
    Refuses:     an area that leaves too little for the counts.
    Reference:   Li, Miklau et al. 2010, the matrix mechanism: the largest column in L1.
    Cost:        about half a millisecond a bin and class.

    >>> both = CountsWithArea(epsilon=Fraction(1), area_epsilon=Fraction(1, 2), moved=1)
    >>> cells, total = both.scales(np.array([[-4, -2, 0, 0], [1, 1, 2, 4]]), [0, 2, 4])
    >>> total, [[str(each) for each in row] for row in cells]
    (Fraction(8, 1), [['2', '1'], ['8/7', '2']])
    """

    rule = ("weighted-laplace", "epsilon")
    epsilon: Fraction
    area_epsilon: Fraction
    """What the noise of the sum costs, by itself."""
    moved: int
    balanced: bool = False
    """Whether as many rows arrive as leave: where the row count is public."""

    def __post_init__(self) -> None:
        if not 0 < self.area_epsilon <= (1 - LEAST) * self.epsilon:
            raise ArgumentError("area_share must leave a part of epsilon for the counts.")
        # The largest scales that a draw can ask for are refused before anything is booked.
        for scale in (1 / (LEAST * self.epsilon), STEPS / self.area_epsilon):
            DiscreteLaplace(self.moved * scale, self.moved, 1)

    def scales(self, weights: Ints, edges: Ints) -> tuple[list[list[Fraction]], Fraction]:
        """Of the noise of each count, by class and bin, and of the sum."""
        low, high = int(weights.min()), int(weights.max())
        furthest = Fraction(high - low, 2) if self.balanced else Fraction(max(-low, high))
        scale = max(furthest, Fraction(1)) * self.moved / self.area_epsilon
        of_row = self.epsilon / self.moved
        centre = Fraction(0)
        if self.balanced:
            most = (1 - LEAST) * of_row * scale
            usual = Fraction(CENTRE if high > -low else -CENTRE)
            centre = min(max(usual, high - most), low + most)
        least = np.minimum.reduceat(weights, edges[:-1], axis=1).tolist()
        largest = np.maximum.reduceat(weights, edges[:-1], axis=1).tolist()
        cells = [
            [1 / (of_row - max(b - centre, centre - a) / scale) for a, b in zip(*row, strict=True)]
            for row in zip(least, largest, strict=True)
        ]
        return cells, scale

    def draw(
        self, by_class: Ints, edges: Ints, placements: Placements
    ) -> tuple[Ints, TableNoise, AreaBySum]:
        """Noisy counts by class and bin, their noise, and the area; the counts given are exact."""
        weights = placements.weights()
        cells, scale = self.scales(weights, edges)
        exact = np.add.reduceat(by_class, edges[:-1], axis=1)
        noisy = [
            [_with_noise(count, spread) for count, spread in zip(row, scales, strict=True)]
            for row, scales in zip(exact.tolist(), cells, strict=True)
        ]
        # Whole numbers without a largest one; holding the sum to 64 bits moves it no further.
        filled = np.flatnonzero(by_class)
        pairs = zip(
            by_class.ravel()[filled].tolist(), weights.ravel()[filled].tolist(), strict=True
        )
        total = min(max(sum(count * weight for count, weight in pairs), -_MOST), _MOST)
        area = AreaBySum(placements=placements, noisy=_with_noise(total, scale), noise_scale=scale)
        return np.array(noisy), noise_of(cells), area

    def describe(self) -> dict[str, object]:
        return {"name": "counts with area", "area_epsilon": str(self.area_epsilon)}


def worse_than_chance(negatives: Floats, positives: Floats, *, scales: Floats) -> bool:
    """Return True if noisy counts, lowest first, clearly say that positives score lower.

    By the pairs of a positive and a negative in order less those out of order, and what Laplace
    noise of these scales (negatives first) makes of such a number.

    >>> up, down = np.array([10, 40, 90]), np.array([90, 40, 10])
    >>> scales = np.full((2, 3), 5.0)
    >>> worse_than_chance(up, down, scales=scales), worse_than_chance(down, up, scales=scales)
    (True, False)
    """
    # For a row of the other class: rows below less rows above.
    over_negatives, over_positives = (
        2 * np.cumsum(counts) - counts - counts.sum() for counts in (negatives, positives)
    )
    in_order = float(positives @ over_negatives)
    spread = 2 * ((scales[1] * over_negatives) ** 2 + (scales[0] * over_positives) ** 2)
    return bool(in_order < -CLEARLY * np.sqrt(spread.sum()))


def _with_noise(value: int, scale: Fraction) -> int:
    return int(DiscreteLaplace(scale, 1, 1).sample(Sealed([value]))[0])
