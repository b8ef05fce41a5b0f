"""Where the row count is private and nobody guesses: a noisy count first, then what suits it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.curves import heldout, labels
from heldout.kernel.curves.heldout import HeldoutCurves, TableWithArea
from heldout.kernel.curves.labels import LabelCurves
from heldout.kernel.curves.registry import Terms
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import Sealed

__all__ = ["CountedCurves", "build"]

COUNT_SHARE: Final = Fraction(1, 20)
MOST_ROWS: Final = 10**15


@dataclass(frozen=True, kw_only=True)
class CountedCurves:
    """Counts the rows with noise, then draws the default curves for about so many.

    How many bins there are, and how strongly the cuts lean on the public measure, must suit the
    number of rows: a guess of thousands where there are hundreds spends epsilon on cuts that see
    nothing.

    Claim:       pure DP, epsilon: a twentieth for the count, the rest for the curves.
                                                                      [claim: curves-heldout]
    Neighbours:  add-remove; replace-one by unit of at most k rows.
    Sensitivity: count: at most k rows more or less; the rest is `HeldoutCurves`.
    Numerics:    exact.
    Refuses:     what `HeldoutCurves` refuses, before anything is booked.
    Reference:   sequential composition.
    Cost:        that of `HeldoutCurves`.

    >>> counted = CountedCurves(epsilon=Fraction(1), points=65537,
    ...                         protection=Protection(neighbours="add-remove"))
    >>> counted.look.scale, counted.after(150).levels, counted.after(50_000).levels
    (Fraction(20, 1), 0, 5)
    """

    epsilon: Fraction
    protection: Protection
    points: int
    area_share: Rational | None = None
    named: tuple[int, ...] = ()
    named_share: Rational | None = None
    heap_share: Rational | None = None
    values: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # What the curves of some count refuse is refused for every count, before the booking: few
        # rows buy no cuts, more buy cuts at their largest share, many buy heaps too.
        _ = self.look, self.after(0), self.after(0, levels=3), self.after(MOST_ROWS)

    @property
    def rest(self) -> Fraction:
        """Return what the count leaves for the curves."""
        return self.epsilon - COUNT_SHARE * self.epsilon

    @cached_property
    def look(self) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            COUNT_SHARE * self.epsilon, l1_sensitivity=self.protection.rows_per_unit, dimension=1
        )

    def after(self, count: int, *, levels: int | None = None) -> HeldoutCurves:
        """The curves that suit a released count; their epsilon is the same for every count."""
        return heldout.build(
            Terms(epsilon=self.rest, protection=self.protection, points=self.points),
            expected_rows=min(max(count, 0), MOST_ROWS),
            levels=levels,
            area_share=self.area_share,
            named=self.named,
            named_share=self.named_share,
            heap_share=self.heap_share,
            values=self.values,
        )

    def event(self) -> Event:
        """The count and the curves; how the curves divide their part depends on the count."""
        return Event.composed([self.look.event(), Event("adaptive", {"epsilon": self.rest})])

    def sample(self, sealed: Sealed[Any]) -> TableWithArea:
        rows = np.asarray(unseal(sealed), dtype=np.int64).sum(keepdims=True)
        count = int(self.look.sample(Sealed(rows))[0])
        return self.after(count).sample(sealed)

    def describe(self) -> dict[str, object]:
        return {
            "name": "heldout",
            "count": self.look.describe(),
            "bins": "by the noisy count",
            "curves_epsilon": str(self.rest),
        }


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
) -> HeldoutCurves | CountedCurves | LabelCurves:
    """The default method: for a public or guessed number of rows, or for one that it finds out.

    Where only outcomes are secret it is another one, and its bins are free.
    """
    shared: dict[str, Any] = {
        "area_share": area_share, "named": named, "named_share": named_share, "values": values
    }  # fmt: skip
    if terms.protection.only_labels:
        if heap_share is not None or terms.rows is None:
            raise ArgumentError("heap_share must be left out: heaps are public under 'label'.")
        return labels.build(terms, levels=levels, **shared)
    shared |= {"heap_share": heap_share}
    if terms.rows is None and expected_rows is None and levels is None:
        return CountedCurves(
            epsilon=terms.epsilon, protection=terms.protection, points=terms.points, **shared
        )
    return heldout.build(terms, expected_rows=expected_rows, levels=levels, **shared)
