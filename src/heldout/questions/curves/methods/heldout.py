"""The default method: few bins, in each its most crowded cell, one joint table, the area under the
ROC curve, and counts of their own at thresholds that were named beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments.rules import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational, exact
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables.table import NoisyTable, independent_noise
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.kernel.statistic import Sealed
from heldout.questions.curves.methods.cuts import CrowdedCells, MedianCuts, public_edges
from heldout.questions.curves.methods.influence import (
    AreaBySum,
    CountsWithArea,
    Placements,
    RankSum,
)

__all__ = ["HeldoutCurves", "NamedCounts", "TableWithArea", "build"]

AREA_SHARE: Final = Fraction(2, 5)
LEAST_VISIBLE: Final = 2_000
"""Below so many visible rows no area: counts tell it as well as buying it does."""
FIRST_SHARE: Final = Fraction(1, 10)
"""For the table that says where rows stand, where an area is bought."""
FIRST_BINS: Final = 8
EDGES_SHARE: Final = Fraction(1, 20)
HEAP_SHARE: Final = Fraction(1, 10)
LEAST_VISIBLE_HEAPS: Final = 500
"""Below so many visible rows no heap stands out."""
VISIBLE_LEVELS: Final = (2_500, 40_000)
"""From so many visible rows on 16 bins, and 32; 8 below."""
NAMED_SHARE: Final = Fraction(2, 3)
"""With named thresholds: their noise is then 3/2 of that of a confusion matrix for all of epsilon.
The shares above are of the rest."""
MOST_NAMED: Final = 16
PUBLIC_BINS: Final = 5
LEAST_AREA_EPSILON: Final = Fraction(1, 10_000)
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
    """Grid points: of each bin between cuts the cell that was drawn as its most crowded one."""
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
    >>> one = build(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...             points=65537, rows=5000)
    >>> one.levels, one.heaps.epsilon, one.counts.epsilon, str(price(one.event()))
    (4, Fraction(1, 10), Fraction(3, 4), 'epsilon 1')
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
        if len(self.named) > MOST_NAMED or any(
            not low < high
            for low, high in zip((0, *self.named), (*self.named, self.points), strict=True)
        ):
            raise ArgumentError(
                f"thresholds must be at most {MOST_NAMED} different ones above the lowest score."
            )
        if self.named_share > 0 and not self.named:
            raise ArgumentError("named_share must go with thresholds. Pass thresholds=[0.5].")
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
        return CrowdedCells(epsilon=self.heap_share * self.epsilon, moved=self.moved)

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
            raise ArgumentError("points must be that of the score table.")
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


def build(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
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
    between them once more; `area_share` and `heap_share` are of what that leaves. `values` are the
    grid points of declared scores.
    """
    usual = NAMED_SHARE if named else Fraction(0)
    bought = usual if named_share is None else exact(named_share, name="named_share")
    rest = 1 - bought
    if expected_rows is not None:
        expected_rows = Whole(0, 10**15)(expected_rows, "expected_rows")
    if levels is not None:
        levels = Whole(0, 8)(levels, "levels")
    guess = rows if rows is not None else EXPECTED_ROWS if expected_rows is None else expected_rows
    # How far rows stand out from the noise; thresholds measured by benchmarks.roc_error.
    visible = guess * epsilon * rest * 2 / protection.rows_moved
    if area_share is not None:
        area = exact(area_share, name="area_share")
    elif visible < LEAST_VISIBLE:
        area = Fraction(0)
    else:
        least = LEAST_AREA_EPSILON * protection.rows_moved  # of millions of rows
        area = AREA_SHARE if AREA_SHARE * rest * epsilon >= least else Fraction(0)
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
        epsilon=epsilon,
        protection=protection,
        points=points,
        rows=rows,
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
