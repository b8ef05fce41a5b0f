"""The default method: few bins where the curve bends, one joint table, the area under the ROC
curve, and counts of their own at thresholds that were named beforehand."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments.rules import Whole
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables.table import NoisyTable, independent_noise
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.kernel.rational import Rational, exact
from heldout.kernel.sealed import Sealed
from heldout.questions.curves.methods.cuts import MedianCuts
from heldout.questions.curves.methods.influence import AreaBySum, CountsWithArea, Placements
from heldout.questions.curves.methods.public_measure import public_edges

__all__ = ["HeldoutCurves", "NamedCounts", "TableWithArea", "build"]

AREA_SHARE: Final = Fraction(3, 5)
"""Chosen on adult and made-up scores: more costs ROC and PR errors under replace-one, and less
gains nothing there under add-remove. docs/accuracy.md has what other shares give."""
LEAST_VISIBLE: Final = 2_000
"""Below so many visible rows no area: counts tell it as well as buying it does."""
FIRST_SHARE: Final = Fraction(1, 10)
"""For the table that says where rows stand, where an area is bought."""
FIRST_BINS: Final = 8
EDGES_SHARE: Final = Fraction(1, 20)
FEW_EDGES_SHARE: Final = Fraction(1, 10)
"""Of eight bins without an area: more pays there, docs/accuracy.md has what it gives."""
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
    counts: Any
    """Shape (2, edges + 1): of the negatives, of the positives."""
    scale: Fraction
    """Independent discrete Laplace of this scale in each."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "edges": list(self.edges),
            "negatives": self.counts[0].tolist(),
            "positives": self.counts[1].tolist(),
            "scale": str(self.scale),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class TableWithArea(NoisyTable):
    """A noisy table, and beside it what else was released of the same rows."""

    area: RankingDraw | AreaBySum | None
    """Of the ROC curve; None if no share of epsilon buys it. In a report, and in older
    releases, it is a draw of its own."""
    named: NamedCounts | None = None
    first: NamedCounts | None = None
    """Between some of the edges, before the others were chosen."""

    @property
    def beside(self) -> tuple[NamedCounts, ...]:
        """Other counts of the same rows."""
        return tuple(each for each in (self.named, self.first) if each is not None)

    def as_dict(self) -> dict[str, Any]:
        more = {"named": self.named, "first": self.first}
        kept = {name: each.as_dict() for name, each in more.items() if each is not None}
        area = None if self.area is None else self.area.as_dict()
        return {**super().as_dict(), "area": area, **kept}


@dataclass(frozen=True, kw_only=True)
class HeldoutCurves:
    """Cuts, noisy counts by class between them, the noisy area, and counts at named thresholds.

    Where an area is bought, a first table comes before it: it says which cuts to count between and
    how much a row moves the area. All parameters are public. Named thresholds are edges too.

    Claim:       pure DP, epsilon, the exact sum of the parts.        [claim: curves-heldout]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: cuts: `MedianCuts`; counts of both classes in bins that are public once the cuts
                 are: disjoint, so `moved` rows move them by `moved`; the first table and counts
                 between the named thresholds likewise; with an area: `CountsWithArea`.
    Numerics:    exact.
    Refuses:     a table of other than 2 * points counts; shares that leave nothing for the counts.
    Reference:   sequential composition of the four.
    Cost:        10 to 60 ms on a grid of 65,537 points.

    >>> from heldout.kernel import price
    >>> one = build(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...             points=65537, rows=5000)
    >>> one.levels, one.cuts.levels, one.counts.epsilon, str(price(one.event()))
    (4, 5, Fraction(17, 20), 'epsilon 1')
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

    def __post_init__(self) -> None:
        shares = (self.area_share, self.edges_share, self.named_share, self.first_share)
        if min(shares) < 0 or sum(shares) >= 1:
            raise ArgumentError(
                "area_share, edges_share, named_share and first_share must leave a part of epsilon "
                f"for the counts, got {', '.join(map(str, shares))}. Leave them out."
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
        # What is wrong is refused here, before anything is booked.
        _ = self.first, self.cuts, self.counts, self.named_counts

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
            levels=min(self.levels + 1, 8) if self.area_share else self.levels,
            epsilon=self.edges_share * self.epsilon,
            moved=self.moved,
            pseudo_rows=round(Fraction(3, 10) * self.expected_rows + unseen),
        )

    @property
    def most_bins(self) -> int:
        bins = 2**self.levels if self.levels else PUBLIC_BINS
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
        return self.epsilon * (1 - self.edges_share - self.named_share - self.first_share)

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
        parts = (self.cuts, self.first, self.counts, self.named_counts)
        return Event.composed([part.event() for part in parts if part is not None])

    def sample(self, sealed: Sealed[Any]) -> TableWithArea:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must be that of the score table.")
        by_class = table.reshape(2, self.points)
        if self.cuts is None:
            edges = public_edges(self.points, bins=PUBLIC_BINS)
        else:
            edges = self.cuts.draw(by_class.sum(axis=0))
        named = self._drawn_named(by_class)
        if isinstance(self.counts, CountsWithArea):
            return self._with_area(by_class, edges, named)
        edges = np.union1d(edges, np.array(self.named, dtype=np.int64))
        bins = len(edges) - 1
        noise = self._noise(self.counts_epsilon, bins)
        noisy = noise.sample(_summed(by_class, edges)).reshape(2, bins)
        return TableWithArea(
            edges=edges,
            negatives=noisy[0],
            positives=noisy[1],
            noise=independent_noise(noise.scale, bins=bins),
            rows=self.rows,
            area=None,
            named=named,
        )

    def _with_area(self, by_class: Any, cuts: Any, named: NamedCounts | None) -> TableWithArea:
        """A first table between few of the cuts; then counts where it says that the curve bends."""
        assert isinstance(self.counts, CountsWithArea)
        every = -(-(len(cuts) - 1) // FIRST_BINS)
        coarse = np.append(cuts[:-1:every], self.points)
        first = self._noise(self.first_share * self.epsilon, len(coarse) - 1)
        seen = first.sample(_summed(by_class, coarse)).reshape(2, -1)
        cuts = np.union1d(cuts, np.array(self.named, dtype=np.int64))
        placements = Placements.of_table(
            cuts, coarse=np.searchsorted(cuts, coarse), noisy=seen, scale=float(first.scale)
        )
        begin = np.searchsorted(cuts, np.union1d(coarse, np.array(self.named, dtype=np.int64)))
        edges = cuts[placements.chosen(begin, bins=self.most_bins)]
        noisy, noise, area = self.counts.draw(by_class, edges, placements)
        return TableWithArea(
            edges=edges,
            negatives=noisy[0],
            positives=noisy[1],
            noise=noise,
            rows=self.rows,
            area=area,
            named=named,
            first=NamedCounts(edges=tuple(coarse[1:-1].tolist()), counts=seen, scale=first.scale),
        )

    def _drawn_named(self, by_class: Any) -> NamedCounts | None:
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
            "bins": self.most_bins,
            "counts": self.counts.describe(),
            **({"first": self.first.describe()} if self.first else {}),
            **({"named": self.named_counts.describe()} if self.named_counts else {}),
        }


def _summed(by_class: Any, edges: Any) -> Sealed[Any]:
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
) -> HeldoutCurves:
    """The method with parameters from public facts.

    `expected_rows` is a public guess where the row count is private; a wrong one costs accuracy
    and never privacy. `levels` sets the number of bins, 2^levels; 0 takes public ones. `named` are
    grid points that become edges of the table, and `named_share` of epsilon counts the rows
    between them once more; `area_share` is of what that leaves.
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
    if levels is None:
        if (rows is not None or expected_rows is not None) and visible < 375:
            levels = 0
        else:
            fine, finest = (0, 40_000) if area else (1_500, 15_000)
            levels = 3 + (visible >= fine) + (visible >= finest)
    edges = FEW_EDGES_SHARE if levels == 3 and not area else EDGES_SHARE
    return HeldoutCurves(
        epsilon=epsilon,
        protection=protection,
        points=points,
        rows=rows,
        expected_rows=guess,
        levels=levels,
        area_share=area * rest,
        edges_share=edges * rest if levels else Fraction(0),
        named=named,
        named_share=bought,
        first_share=FIRST_SHARE * rest if area else Fraction(0),
    )
