"""The default method: few bins where the rows are, one joint table, and the area under the ROC."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.errors import ArgumentError
from heldout.mechanisms.base import unseal
from heldout.mechanisms.curves.cuts import MedianCuts
from heldout.mechanisms.curves.public_measure import public_edges
from heldout.mechanisms.curves.table import NoisyTable, independent_noise
from heldout.mechanisms.curves.whole import whole_number
from heldout.mechanisms.discrete_laplace import DiscreteLaplace
from heldout.mechanisms.smooth.ranking import RankingDraw, RankingMechanism, RankingStatistic
from heldout.privacy.events import Event
from heldout.privacy.neighbours import Protection
from heldout.privacy.rational import Rational, exact
from heldout.statistics.base import rows_moved
from heldout.statistics.ranking import area_of_table
from heldout.statistics.sealed import Sealed

__all__ = ["HeldoutCurves", "TableWithArea", "build"]

AREA_SHARE: Final = Fraction(3, 8)
AREA_SHARE_WITHOUT_CUTS: Final = Fraction(3, 10)
EDGES_SHARE: Final = Fraction(1, 10)
PUBLIC_BINS: Final = 5
LARGEST_AREA_EPSILON: Final = Fraction(100)
EXPECTED_ROWS: Final = 4_000  # what a plan assumes if the row count is private and nobody guesses


@dataclass(frozen=True, kw_only=True, eq=False)
class TableWithArea(NoisyTable):
    """A noisy table, and a noisy area under the ROC curve beside it."""

    area: RankingDraw

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "area": self.area.as_dict()}


@dataclass(frozen=True, kw_only=True)
class HeldoutCurves:
    """Cuts, then noisy counts by class between them, and the noisy area. All parameters public.

    Claim:       pure DP, epsilon, the exact sum of the parts.        [claim: curves-heldout]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: cuts: `MedianCuts`; counts of both classes in bins that are public once the cuts
                 are: disjoint, so `moved` rows move them by `moved`; area: `RankingMechanism`.
    Numerics:    exact.
    Refuses:     a table of other than 2 * points counts; shares that leave nothing for the counts.
    Reference:   sequential composition of the three.
    Cost:        10 to 30 ms on a grid of 65,537 points, after 20 to 100 ms once for an epsilon.

    >>> from heldout.privacy import price
    >>> one = build(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...             points=65537, rows=5000)
    >>> one.cuts.levels, one.counts.scale, str(price(one.event()))
    (3, Fraction(80, 21), 'epsilon 1')
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

    def __post_init__(self) -> None:
        if not (0 < self.area_share < 1 and 0 <= self.edges_share < 1 - self.area_share):
            raise ArgumentError(
                "area_share and edges_share must leave a part of epsilon for the counts, got "
                f"{self.area_share} and {self.edges_share}. Leave them out."
            )
        if (self.levels > 0) != (self.edges_share > 0):
            raise ArgumentError(
                f"levels must go with edges_share, got {self.levels} and {self.edges_share}."
            )
        # What is wrong is refused here, before anything is booked.
        _ = self.area, self.cuts, self.counts

    @property
    def moved(self) -> int:
        return rows_moved(self.protection)

    @cached_property
    def area(self) -> RankingMechanism:
        """The area alone: what it needs to know of the class counts the table tells."""
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
        return int(min(bins, self.points))

    @cached_property
    def counts(self) -> DiscreteLaplace:
        return self._noise(self.most_bins)

    def _noise(self, bins: int) -> DiscreteLaplace:
        spent = self.area.epsilon + (self.cuts.epsilon if self.cuts else 0)
        return DiscreteLaplace.for_epsilon(
            self.epsilon - spent, l1_sensitivity=self.moved, dimension=2 * bins
        )

    def event(self) -> Event:
        edges = [self.cuts.event()] if self.cuts else []
        return Event.composed([*edges, self.counts.event(), self.area.event()])

    def sample(self, sealed: Sealed[Any]) -> TableWithArea:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must be that of the score table.")
        by_class = table.reshape(2, self.points)
        if self.cuts is None:
            edges = public_edges(self.points, bins=PUBLIC_BINS)
        else:
            edges = self.cuts.draw(by_class.sum(axis=0))
        bins = len(edges) - 1
        joint = np.add.reduceat(by_class, edges[:-1], axis=1)
        noisy = self._noise(bins).sample(Sealed(joint.ravel())).reshape(2, bins)
        statistic = RankingStatistic(
            area_of_table(by_class[0], by_class[1]),
            positives=int(by_class[1].sum()),
            negatives=int(by_class[0].sum()),
        )
        return TableWithArea(
            edges=edges,
            negatives=noisy[0],
            positives=noisy[1],
            noise=independent_noise(self.counts.scale, bins=bins),
            rows=self.rows,
            area=self.area.sample(Sealed(statistic)),
        )

    def describe(self) -> dict[str, object]:
        edges = self.cuts.describe() if self.cuts else {"thresholds": "public"}
        return {
            "name": "heldout",
            **edges,
            "bins": self.most_bins,
            "scale": str(self.counts.scale),
            "area": self.area.describe(),
        }


def build(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    expected_rows: int | None = None,
    levels: int | None = None,
    area_share: Rational | None = None,
) -> HeldoutCurves:
    """The method with parameters from public facts.

    `expected_rows` is a public guess where the row count is private; a wrong one costs accuracy
    and never privacy. `levels` sets the number of bins, 2^levels; 0 takes public ones.
    """
    if expected_rows is not None:
        expected_rows = whole_number(expected_rows, "expected_rows", least=0, most=10**15)
    if levels is not None:
        levels = whole_number(levels, "levels", least=0, most=8)
    guess = rows if rows is not None else EXPECTED_ROWS if expected_rows is None else expected_rows
    if levels is None:
        # How far rows stand out from the noise; thresholds measured by benchmarks.roc_error.
        visible = guess * epsilon * 2 / rows_moved(protection)
        if (rows is not None or expected_rows is not None) and visible < 1_000:
            levels = 0
        else:
            levels = 3 + sum(visible >= bound for bound in (8_000, 40_000))
    usual = AREA_SHARE if levels else AREA_SHARE_WITHOUT_CUTS
    return HeldoutCurves(
        epsilon=epsilon,
        protection=protection,
        points=points,
        rows=rows,
        expected_rows=guess,
        levels=levels,
        area_share=usual if area_share is None else exact(area_share, name="area_share"),
        edges_share=EDGES_SHARE if levels else Fraction(0),
    )
