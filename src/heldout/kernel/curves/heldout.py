"""The default method: few bins, in each its most crowded cell, one joint table, the area under the
ROC curve, and counts of their own at thresholds that were named beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.curves.registry import Terms
from heldout.kernel.curves.thresholds import (
    UNDIVIDED,
    CrowdedCells,
    MedianCuts,
    public_edges,
)
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational, exact
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.tables import NoisyTable, TableNoise, independent_noise, noise_of
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.kernel.statistic import Sealed

__all__ = [
    "AreaBySum",
    "CountsWithArea",
    "HeldoutCurves",
    "NamedCounts",
    "Placements",
    "RankSum",
    "TableWithArea",
    "build",
    "worse_than_chance",
]


# Counts and an area in one vector of sums, where what a row does to one it does not do to another.
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

        For a positive its place among the negatives minus the area, for a negative likewise, times
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

    Bins and influences are public by the time of the draw. Each count has noise of its own scale,
    smaller where its rows can move the sum less.

    Claim:       pure DP, epsilon.                                   [claim: counts-with-area]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row that leaves or arrives moves one count by 1 and the sum by its influence,
                 minus a centre where as many rows arrive as leave; the scales are such that both
                 together lose at most epsilon/moved, for every row that there can be.
    Numerics:    exact: influences are whole numbers, scales rationals.
    Refuses:     an area that leaves too little for the counts.
    Reference:   Li, Miklau et al. 2010, the matrix mechanism: the largest column in L1.
    Cost:        about half a millisecond per bin and class.

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

    By the pairs of a positive and a negative in order minus those out of order, and what Laplace
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


FIRST_SHARE: Final = Fraction(1, 10)
"""For the table that says where rows stand, where an area is bought."""
FIRST_BINS: Final = 8
EDGES_SHARE: Final = Fraction(1, 20)
HEAP_SHARE: Final = Fraction(1, 10)
COARSE: Final = 3
"""Up to so many levels bins are so wide that it pays to part every one: benchmarks/curves.py at
1,000 rows. Since 2026-11-18."""
LEAST_VISIBLE_HEAPS: Final = 500
"""Below so many visible rows no heap stands out."""
VISIBLE_LEVELS: Final = (2_500, 40_000)
"""From so many visible rows on 16 bins, and 32; 8 below."""
NAMED_SHARE: Final = Fraction(2, 3)
"""With named thresholds: their noise is then 3/2 of that of a confusion matrix for all of epsilon.
The shares above are of the rest."""
MOST_NAMED: Final = 16
PUBLIC_BINS: Final = 5
EXPECTED_ROWS: Final = 4_000  # what a plan assumes if the row count is private and nobody guesses


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedCounts:
    """Noisy counts of the rows between named thresholds, lowest scores first."""

    edges: tuple[int, ...]
    """Grid points; all of them are edges of the table beside."""
    counts: Ints
    """Shape (2, edges + 1): of the negatives, of the positives."""
    scale: Fraction
    """Independent discrete Laplace of this scale in each."""
    tied: bool = False
    """Whether the noises of both classes are each other's opposites: totals are public."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "edges": list(self.edges),
            "negatives": self.counts[0].tolist(),
            "positives": self.counts[1].tolist(),
            "scale": str(self.scale),
            **({"tied": True} if self.tied else {}),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class TableWithArea(NoisyTable):
    """A noisy table, and beside it what else was released of the same rows."""

    area: RankingDraw | AreaBySum | RankSum | None
    """Of the ROC curve; None if no share of epsilon buys it. In a report, and in older
    releases, it is a draw of its own."""
    named: NamedCounts | None = None
    first: NamedCounts | None = None
    """Between some of the cuts, before the area was bought."""
    cuts: Ints | None = None
    """The edges that divide the rows about evenly; None in older releases: all of them."""
    heaps: Ints | None = None
    """Grid points: of bins between cuts the cell that was drawn as its most crowded one."""
    heap_rate: Fraction | None = None
    """What a row adds to the logarithm of its cell's weight there; None in older releases, which
    drew a cell of every bin."""
    values: Ints | None = None
    """Grid points of declared scores, if any are: a bin's rows are then all at one of them."""
    parts: Ints | None = None
    """Where only outcomes are secret: edges of smaller bins, whose rows are public."""
    part_rows: Ints | None = None
    """Without noise, of both classes together."""
    tied_scales: Floats | None = None
    """The scale of each bin's noise, which adds to the positives what it takes from the negatives;
    `noise` has what independent noises would need to be as wide, whatever is read off them."""

    @property
    def beside(self) -> tuple[NamedCounts, ...]:
        """Other counts of the same rows."""
        return tuple(counts for counts in (self.named, self.first) if counts is not None)

    def as_dict(self) -> dict[str, Any]:
        more = {"named": self.named, "first": self.first}
        beside = {name: part.as_dict() for name, part in more.items() if part is not None}
        area = None if self.area is None else self.area.as_dict()
        places = {
            "cuts": self.cuts,
            "heaps": self.heaps,
            "values": self.values,
            "parts": self.parts,
            "part_rows": self.part_rows,
        }
        chosen = {name: points.tolist() for name, points in places.items() if points is not None}
        if self.heap_rate is not None:
            chosen["heap_rate"] = str(self.heap_rate)
        return {**super().as_dict(), "area": area, **beside, **chosen}


@dataclass(frozen=True, kw_only=True)
class HeldoutCurves:
    """Cuts and crowded cells, noisy counts by class between them, the noisy area, named thresholds.

    A crowded cell is a bin of its own. Where an area is bought, a first table comes before it: it
    says how much a row moves the area. All parameters are public. Named thresholds are edges too.
    Where the scores' values are declared, they are the bins, and cuts and cells cost nothing.

    Claim:       pure DP, epsilon, the exact sum of the parts.        [claim: curves-heldout]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: cuts: `MedianCuts`; cells: `CrowdedCells`; counts of both classes in bins that are
                 public once the cuts and cells are: disjoint, so `moved` rows move them by
                 `moved`; the first table and counts between the named thresholds likewise; with an
                 area: `CountsWithArea`.
    Numerics:    exact.
    Refuses:     a table of other than 2 * points counts; shares that leave nothing for the counts.
    Reference:   sequential composition of the five.
    Cost:        10 to 60 ms on a grid of 65,537 points.

    >>> from heldout.kernel import price
    >>> one = build(Terms(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...                   points=65537, rows=5000))
    >>> one.levels, one.heaps.epsilon, one.counts.scale / 2, str(price(one.event()))
    (4, Fraction(1, 10), Fraction(20, 17), 'epsilon 1')
    """

    epsilon: Fraction
    protection: Protection
    points: int
    rows: int | None
    expected_rows: int
    levels: int
    """0: the bins are public."""
    area_share: Fraction
    edges_share: Fraction
    named: tuple[int, ...] = ()
    """Grid points that rise; rows at one or above are called positive."""
    named_share: Fraction = Fraction(0)
    first_share: Fraction = Fraction(0)
    """Goes with an area."""
    heap_share: Fraction = Fraction(0)
    """0: no crowded cells."""
    values: tuple[int, ...] = ()
    """Grid points that rise, where the scores' values are declared."""

    def __post_init__(self) -> None:
        shares = (
            self.area_share, self.edges_share, self.named_share, self.first_share, self.heap_share,
        )  # fmt: skip
        if min(shares) < 0 or sum(shares) >= 1:
            raise ArgumentError(
                "area_share, edges_share, named_share, first_share and heap_share must leave a "
                f"part of epsilon for the counts, got {', '.join(map(str, shares))}. Leave them "
                "out."
            )
        if (self.area_share > 0) != (self.first_share > 0):
            raise ArgumentError("first_share must go with area_share. Leave it out.")
        check_named(self.named, self.named_share, self.points)
        if (self.levels > 0) != (self.edges_share > 0):
            raise ArgumentError(
                f"levels must go with edges_share, got {self.levels} and {self.edges_share}."
            )
        if self.values and (self.levels or self.heap_share):
            raise ArgumentError("score_values must go without levels and heap_share.")
        # What is wrong is refused here, before anything is booked.
        _ = self.first, self.cuts, self.heaps, self.counts, self.named_counts

    @property
    def moved(self) -> int:
        return self.protection.rows_moved

    @cached_property
    def cuts(self) -> MedianCuts | None:
        if self.levels == 0:
            return None
        # A third of the rows, and about as many as this much epsilon cannot tell from none.
        unseen = min(30 * self.moved / self.epsilon, Fraction(10**9))
        return MedianCuts(
            levels=self.levels,
            epsilon=self.edges_share * self.epsilon,
            moved=self.moved,
            pseudo_rows=round(Fraction(3, 10) * self.expected_rows + unseen),
        )

    @cached_property
    def heaps(self) -> CrowdedCells | None:
        if self.heap_share == 0:
            return None
        return CrowdedCells(
            epsilon=self.heap_share * self.epsilon,
            moved=self.moved,
            undivided=UNDIVIDED if self.levels > COARSE else 0,
        )

    @property
    def most_bins(self) -> int:
        bins = 2**self.levels if self.levels else len(self.values) or PUBLIC_BINS
        bins *= 1 if self.heaps is None else 3  # a cell and what lies below and above it
        return int(min(bins + len(self.named), self.points))

    @cached_property
    def named_counts(self) -> DiscreteLaplace | None:
        if self.named_share == 0:
            return None
        return DiscreteLaplace.for_epsilon(
            self.named_share * self.epsilon,
            l1_sensitivity=self.moved,
            dimension=2 * (len(self.named) + 1),
        )

    @property
    def counts_epsilon(self) -> Fraction:
        """For the counts, and the area with them."""
        others = self.edges_share + self.heap_share + self.named_share + self.first_share
        return self.epsilon * (1 - others)

    @cached_property
    def first(self) -> DiscreteLaplace | None:
        return self._noise(self.first_share * self.epsilon, FIRST_BINS) if self.area_share else None

    @cached_property
    def counts(self) -> DiscreteLaplace | CountsWithArea:
        if self.area_share == 0:
            return self._noise(self.counts_epsilon, self.most_bins)
        return CountsWithArea(
            epsilon=self.counts_epsilon,
            area_epsilon=self.area_share * self.epsilon,
            moved=self.moved,
            balanced=self.protection.row_count_is_public,
        )

    def _noise(self, epsilon: Fraction, bins: int) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(epsilon, l1_sensitivity=self.moved, dimension=2 * bins)

    def event(self) -> Event:
        parts = (self.cuts, self.heaps, self.first, self.counts, self.named_counts)
        return Event.composed([part.event() for part in parts if part is not None])

    def sample(self, sealed: Sealed[Any]) -> TableWithArea:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must match the score table.")
        by_class = table.reshape(2, self.points)
        cuts, heaps = self._drawn_edges(by_class.sum(axis=0))
        named = self._drawn_named(by_class)
        thresholds = np.array(self.named, dtype=np.int64)
        edges = np.unique(np.concatenate([cuts, thresholds]))
        if heaps is not None:
            edges = np.unique(np.concatenate([edges, heaps, heaps + 1]))
        released: dict[str, Any] = {
            "edges": edges,
            "rows": self.rows,
            "named": named,
            "cuts": cuts,
            "heaps": heaps,
            "heap_rate": None if self.heaps is None else self.heaps.rate,
        }
        released["values"] = np.array(self.values, dtype=np.int64) if self.values else None
        if isinstance(self.counts, CountsWithArea):
            return self._with_area(by_class, released)
        bins = len(edges) - 1
        noise = self._noise(self.counts_epsilon, bins)
        noisy = noise.sample(_summed(by_class, edges)).reshape(2, bins)
        return TableWithArea(
            negatives=noisy[0],
            positives=noisy[1],
            noise=independent_noise(noise.scale, bins=bins),
            area=None,
            **released,
        )

    def _drawn_edges(self, counts: Ints) -> tuple[Ints, Ints | None]:
        """The cuts, and of each bin between them the cell that seems most crowded."""
        if self.values:
            return np.array([0, *self.values[1:], self.points]), None
        if self.cuts is None:
            cuts = public_edges(self.points, bins=PUBLIC_BINS)
        else:
            cuts = self.cuts.draw(counts)
        return cuts, None if self.heaps is None else self.heaps.draw(counts, cuts)

    def _with_area(self, by_class: Ints, released: Mapping[str, Any]) -> TableWithArea:
        """A first table between few of the cuts; then the counts, and the area with them."""
        assert isinstance(self.counts, CountsWithArea)
        cuts = released["cuts"]
        every = -(-(len(cuts) - 1) // FIRST_BINS)
        coarse = np.append(cuts[:-1:every], self.points)
        first = self._noise(self.first_share * self.epsilon, len(coarse) - 1)
        seen = first.sample(_summed(by_class, coarse)).reshape(2, -1)
        placements = Placements.of_table(
            cuts, coarse=np.searchsorted(cuts, coarse), noisy=seen, scale=float(first.scale)
        )
        noisy, noise, area = self.counts.draw(by_class, released["edges"], placements)
        return TableWithArea(
            negatives=noisy[0],
            positives=noisy[1],
            noise=noise,
            area=area,
            first=NamedCounts(edges=tuple(coarse[1:-1].tolist()), counts=seen, scale=first.scale),
            **released,
        )

    def _drawn_named(self, by_class: Ints) -> NamedCounts | None:
        if self.named_counts is None:
            return None
        noisy = self.named_counts.sample(_summed(by_class, [0, *self.named, self.points]))
        return NamedCounts(
            edges=self.named, counts=noisy.reshape(2, -1), scale=self.named_counts.scale
        )

    def describe(self) -> dict[str, object]:
        edges = self.cuts.describe() if self.cuts else {"thresholds": "public"}
        return {
            "name": "heldout",
            **edges,
            **(self.heaps.describe() if self.heaps else {}),
            "bins": self.most_bins,
            "counts": self.counts.describe(),
            **({"first": self.first.describe()} if self.first else {}),
            **({"named": self.named_counts.describe()} if self.named_counts else {}),
        }


def _summed(by_class: Ints, edges: Ints | list[int]) -> Sealed[Any]:
    """The rows of each class between edges."""
    return Sealed(np.add.reduceat(by_class, edges[:-1], axis=1).ravel())


def check_named(named: tuple[int, ...], share: Fraction, points: int) -> None:
    """Refuse grid points that do not rise, too many of them, or a share for none."""
    ends = zip((0, *named), (*named, points), strict=True)
    if len(named) > MOST_NAMED or any(low >= high for low, high in ends):
        raise ArgumentError(
            f"thresholds must be at most {MOST_NAMED} different values above the lowest score."
        )
    if share > 0 and not named:
        raise ArgumentError("named_share must go with thresholds. Pass thresholds=[0.5].")


def share_of_named(named: tuple[int, ...], share: Rational | None) -> Fraction:
    """Return the part of epsilon that counts rows between named grid points once more."""
    usual = NAMED_SHARE if named else Fraction(0)
    return usual if share is None else exact(share, name="named_share")


def build(
    terms: Terms,
    *,
    expected_rows: int | None = None,
    levels: int | None = None,
    area_share: Rational | None = None,
    named: tuple[int, ...] = (),
    named_share: Rational | None = None,
    heap_share: Rational | None = None,
    values: tuple[int, ...] = (),
) -> HeldoutCurves:
    """The method with parameters from public facts.

    `expected_rows` is a public guess where the row count is private; a wrong one costs accuracy
    and never privacy. `levels` sets the number of bins, 2^levels; 0 takes public ones. `named` are
    grid points that become edges of the table, and `named_share` of epsilon counts the rows
    between them once more; `area_share` and `heap_share` are of what that leaves. No area is
    bought unless it is asked for: its own question buys it better, and all other readings are
    worse for it. `values` are the grid points of declared scores.
    """
    bought = share_of_named(named, named_share)
    rows, rest = terms.rows, 1 - bought
    if expected_rows is not None:
        expected_rows = Whole(0, 10**15)(expected_rows, "expected_rows")
    if levels is not None:
        levels = Whole(0, 8)(levels, "levels")
    guess = rows if rows is not None else EXPECTED_ROWS if expected_rows is None else expected_rows
    # How far rows stand out from the noise; thresholds measured by benchmarks.roc_error.
    visible = guess * terms.epsilon * rest * 2 / terms.protection.rows_moved
    area = Fraction(0) if area_share is None else exact(area_share, name="area_share")
    if values:
        levels = 0
    elif levels is None:
        if (rows is not None or expected_rows is not None) and visible < 375:
            levels = 0
        else:
            levels = 3 + sum(visible >= least for least in VISIBLE_LEVELS)
    heaps = HEAP_SHARE if levels and visible >= LEAST_VISIBLE_HEAPS else Fraction(0)
    if heap_share is not None:
        heaps = exact(heap_share, name="heap_share")
    return HeldoutCurves(
        **vars(terms),
        expected_rows=guess,
        levels=levels,
        area_share=area * rest,
        edges_share=EDGES_SHARE * rest if levels else Fraction(0),
        named=named,
        named_share=bought,
        first_share=FIRST_SHARE * rest if area else Fraction(0),
        heap_share=heaps * rest,
        values=values,
    )
