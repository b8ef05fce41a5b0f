"""The default method: few bins where the rows are, one joint table, the area under the ROC curve,
and counts of their own at thresholds that were named beforehand."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments.rules import Whole
from heldout.errors import ArgumentError
from heldout.mechanisms.base import unseal
from heldout.mechanisms.curves.cuts import MedianCuts
from heldout.mechanisms.curves.public_measure import public_edges
from heldout.mechanisms.curves.table import NoisyTable, independent_noise
from heldout.mechanisms.discrete_laplace import DiscreteLaplace
from heldout.mechanisms.smooth.ranking import RankingDraw, RankingMechanism, RankingStatistic
from heldout.privacy.events import Event
from heldout.privacy.neighbours import Protection
from heldout.privacy.rational import Rational, exact
from heldout.statistics.ranking import area_of_table
from heldout.statistics.sealed import Sealed

__all__ = ["HeldoutCurves", "NamedCounts", "TableWithArea", "build"]

# The most was chosen on adult and made-up scores, so that the area off the curve errs at most 1.15
# times as much as `session.auc`; the steps below it on SMS, Twitter, adult and made-up scores, for
# the ROC error. docs/curves.md has what other shares give.
AREA_SHARE: Final = Fraction(5, 8)
AREA_STEPS: Final = ((300, Fraction(0)), (2_000, Fraction(3, 8)))
"""Below so many visible rows a smaller share: counts tell the area as well as buying it does."""
EDGES_SHARE: Final = Fraction(1, 20)
NAMED_SHARE: Final = Fraction(2, 3)
"""With named thresholds: their noise is then 3/2 of that of a confusion matrix for all of epsilon.
The shares above are of the rest."""
MOST_NAMED: Final = 16
PUBLIC_BINS: Final = 5
LEAST_AREA_EPSILON, LARGEST_AREA_EPSILON = Fraction(1, 10_000), Fraction(100)
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

    area: RankingDraw | None
    """Of the ROC curve; None if no share of epsilon buys it."""
    named: NamedCounts | None = None

    def as_dict(self) -> dict[str, Any]:
        named = {} if self.named is None else {"named": self.named.as_dict()}
        area = None if self.area is None else self.area.as_dict()
        return {**super().as_dict(), "area": area, **named}


@dataclass(frozen=True, kw_only=True)
class HeldoutCurves:
    """Cuts, noisy counts by class between them, the noisy area, and counts at named thresholds.

    All parameters are public. Named thresholds are edges of the table too.

    Claim:       pure DP, epsilon, the exact sum of the parts.        [claim: curves-heldout]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: cuts: `MedianCuts`; counts of both classes in bins that are public once the cuts
                 are: disjoint, so `moved` rows move them by `moved`; counts between the named
                 thresholds likewise; area: `RankingMechanism`.
    Numerics:    exact.
    Refuses:     a table of other than 2 * points counts; shares that leave nothing for the counts.
    Reference:   sequential composition of the four.
    Cost:        10 to 30 ms on a grid of 65,537 points, after 20 to 100 ms once for an epsilon.

    >>> from heldout.privacy import price
    >>> one = build(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...             points=65537, rows=5000)
    >>> one.cuts.levels, one.counts.scale, str(price(one.event()))
    (4, Fraction(80, 13), 'epsilon 1')
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

    def __post_init__(self) -> None:
        shares = (self.area_share, self.edges_share, self.named_share)
        if min(shares) < 0 or sum(shares) >= 1:
            raise ArgumentError(
                "area_share, edges_share and named_share must leave a part of epsilon for the "
                f"counts, got {', '.join(map(str, shares))}. Leave them out."
            )
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
        _ = self.area, self.cuts, self.counts, self.named_counts

    @property
    def moved(self) -> int:
        return self.protection.rows_moved

    @cached_property
    def area(self) -> RankingMechanism | None:
        """The area alone: what it needs to know of the class counts the table tells."""
        if self.area_share == 0:
            return None
        return RankingMechanism(
            metric="auc",
            epsilon=min(self.area_share * self.epsilon, LARGEST_AREA_EPSILON),
            protection=self.protection,
            rows=self.rows if self.rows is not None else self.expected_rows,
            share=Fraction(0),
        )

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

    @cached_property
    def counts(self) -> DiscreteLaplace:
        return self._noise(self.most_bins)

    def _noise(self, bins: int) -> DiscreteLaplace:
        spent = self.named_share * self.epsilon
        spent += sum(part.epsilon for part in (self.area, self.cuts) if part is not None)
        return DiscreteLaplace.for_epsilon(
            self.epsilon - spent, l1_sensitivity=self.moved, dimension=2 * bins
        )

    def event(self) -> Event:
        parts = (self.cuts, self.counts, self.area, self.named_counts)
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
        edges = np.union1d(edges, np.array(self.named, dtype=np.int64))
        bins = len(edges) - 1
        noisy = self._noise(bins).sample(_summed(by_class, edges)).reshape(2, bins)
        return TableWithArea(
            edges=edges,
            negatives=noisy[0],
            positives=noisy[1],
            noise=independent_noise(self.counts.scale, bins=bins),
            rows=self.rows,
            area=self._drawn_area(by_class),
            named=self._drawn_named(by_class),
        )

    def _drawn_area(self, by_class: Any) -> RankingDraw | None:
        if self.area is None:
            return None
        statistic = RankingStatistic(
            area_of_table(by_class[0], by_class[1]),
            positives=int(by_class[1].sum()),
            negatives=int(by_class[0].sum()),
        )
        return self.area.sample(Sealed(statistic))

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
            "scale": str(self.counts.scale),
            "area": None if self.area is None else self.area.describe(),
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
    if area_share is None:
        area = next((share for bound, share in AREA_STEPS if visible < bound), AREA_SHARE)
        if area * rest * epsilon < LEAST_AREA_EPSILON:  # of millions of rows
            area = Fraction(0)
    else:
        area = exact(area_share, name="area_share")
    if levels is None:
        visible = visible * (1 - area) / (1 - AREA_SHARE)
        if (rows is not None or expected_rows is not None) and visible < 1_000:
            levels = 0
        else:
            levels = 3 + sum(visible >= bound for bound in (4_000, 40_000))
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
    )
