"""A ranking metric with noise of its own, or counts by score where a class is small.

The noise of the value grows as the smaller class shrinks, and faster than that of counts in a few
bins. Where the crossing lies depends on the class, which is private: noisy class counts say on
which side of it the rows stand.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from heldout.arrays import Floats
from heldout.kernel.curves import heldout
from heldout.kernel.curves.heldout import HeldoutCurves, TableWithArea
from heldout.kernel.curves.registry import Terms
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace, Look
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.mechanism import RankingDraw, RankingMechanism
from heldout.kernel.ranking.statistic import RankingAndTable
from heldout.kernel.ranking.tuned import CLEAR, FEW, FIRST_SHARE, OUTRIGHT, SECOND_SHARE
from heldout.kernel.statistic import Sealed

MOST_ROWS: Final = 10**15


@dataclass(frozen=True, eq=False)
class ValueOrTable:
    """Holds what was drawn: looks at the class counts, then the value or the table."""

    mechanism: "ValueOrCounts"
    first_counts: tuple[int, ...]
    second_counts: tuple[int, ...]
    value: RankingDraw | None
    table: TableWithArea | None
    looks: list[Look] = field(init=False)
    """Each release of the counts, with the scale of its noise."""
    unchosen: tuple[Look, ...] = field(init=False)
    """The looks that did not decide what was drawn: of those that did, a value is only seen if
    noise made the class look large, and they say less than they seem to."""

    def __post_init__(self) -> None:
        counts = self.first_counts, self.second_counts
        looks = self.mechanism.looks(*counts)
        object.__setattr__(self, "looks", looks)
        clear = self.mechanism.is_clearly_large(*counts)
        object.__setattr__(self, "unchosen", tuple(looks) if clear else ())

    @property
    def is_whole(self) -> bool:
        """Return whether its parts are those that its counts lead to."""
        mechanism, first, second = self.mechanism, self.first_counts, self.second_counts
        if len(first) != mechanism.dimension or len(second) not in (0, mechanism.dimension):
            return False
        if bool(second) != mechanism.looks_again(first):
            return False
        small = mechanism.is_small(first, second)
        return (self.table is not None, self.value is not None) == (small, not small)

    def as_dict(self) -> dict[str, object]:
        """The released numbers as drawn."""
        names = ("positives", "negatives")
        looks = [
            {**dict(zip(names, look.counts, strict=False)), "scale": look.spread}
            for look in self.looks
        ]
        drawn = self.table.as_dict() if self.table is not None else {}
        return {
            "class_counts": looks,
            **(drawn if self.value is None else self.value.as_dict()),
        }


@dataclass(frozen=True, kw_only=True)
class ValueOrCounts:
    """Noisy class counts; then the noisy value, or where a class is small noisy counts by score.

    Claim:       pure DP, epsilon, whatever the class counts lead to.  [claim: value-or-counts]
    Neighbours:  the protection's.
    Sensitivity: class counts: the rows of a unit with a public row count, else as many as may
                 leave and arrive; then that of `RankingMechanism` or of `HeldoutCurves`.
    Numerics:    exact.
    Refuses:     what the two refuse, before anything is booked.
    Reference:   adaptive composition; proofs/value-or-counts.md.
    Cost:        that of the one that is drawn.

    `smaller_class` is a public guess, which takes the place of the looks; so do public rows that
    are few enough, where `outright` is set.

    >>> from heldout.kernel import price
    >>> one = ValueOrCounts(metric="auc", epsilon=Fraction(1), points=65537, rows=300,
    ...                     protection=Protection(neighbours="replace-one"))
    >>> one.is_small((12,), (12,)), one.is_small((80,), (80,)), str(price(one.event()))
    (True, False, 'epsilon 1')
    """

    metric: str
    epsilon: Fraction
    protection: Protection
    points: int
    rows: int | None = None
    smaller_class: int | None = None
    score_range: tuple[float, float] = (0.0, 1.0)
    values: tuple[int, ...] = ()
    """Grid points of declared scores."""
    outright: bool = False
    """Whether few public rows are counted without a look; older answers looked."""

    def __post_init__(self) -> None:
        if self.smaller_class is not None:
            _ = self.counted((), ()), self.ranked((), ())
            return
        if self.are_few:
            _ = self.counted((), ())
            return
        # What some counts refuse is refused for all counts, before the booking.
        for size in (0, MOST_ROWS):
            seen = (size,) * self.dimension
            _ = self.counted(seen, ()), self.counted(seen, seen)
            _ = self.ranked(seen, ()), self.ranked(seen, seen)

    # --- looks at the class counts ---------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Return how many class counts a look has: none where public facts decide."""
        if self.smaller_class is not None or self.are_few:
            return 0
        return 1 if self.protection.row_count_is_public else 2

    def _look(self, share: Fraction) -> DiscreteLaplace:
        public = self.protection.row_count_is_public
        return DiscreteLaplace.for_epsilon(
            self.epsilon * share,
            l1_sensitivity=self.protection.rows_per_unit if public else self.protection.rows_moved,
            dimension=self.dimension,
        )

    @cached_property
    def first_look(self) -> DiscreteLaplace | None:
        return self._look(FIRST_SHARE) if self.dimension else None

    @cached_property
    def second_look(self) -> DiscreteLaplace:
        return self._look(SECOND_SHARE)

    def looks(self, first: tuple[int, ...], second: tuple[int, ...]) -> list[Look]:
        """Return the class counts that were drawn, with the scales of their noise."""
        drawn = ((first, self.first_look), (second, self.second_look if second else None))
        return [
            Look(tuple(map(float, counts)), float(noise.scale)) for counts, noise in drawn if noise
        ]

    def looks_again(self, first: tuple[int, ...]) -> bool:
        """Return whether the first look leaves open if a class is small."""
        if self.first_look is None:
            return False
        return self.size(first, ()) < self.least + CLEAR * self.first_look.scale

    def size(self, first: tuple[int, ...], second: tuple[int, ...]) -> int:
        """Return the size of the class that matters, by all looks."""
        if self.smaller_class is not None or self.are_few:
            return self.smaller_class or 0
        classes = self._counts(first, second)
        n = float(classes[0])
        m = float(classes[1]) if len(classes) > 1 else (self.rows or 0) - n
        sizes = self._ranking(self.epsilon).local.rung_size(
            positives=np.array([n]), negatives=np.array([m])
        )
        return max(int(sizes[0]), 0)

    def _counts(self, first: tuple[int, ...], second: tuple[int, ...]) -> Floats:
        looks = self.looks(first, second)
        weights = np.array([look.spread**-2.0 for look in looks])
        result: Floats = weights @ np.array([look.counts for look in looks]) / weights.sum()
        return result

    @property
    def are_few(self) -> bool:
        """Return whether the public row count alone says that counts are to be drawn."""
        if not self.outright or self.smaller_class is not None or self.rows is None:
            return False
        few = self.rows < self._rows_for(OUTRIGHT[self.metric])
        return few and self.protection.row_count_is_public

    @property
    def least(self) -> Fraction:
        """Return from which size of the class on the value is drawn."""
        return self._rows_for(FEW[self.metric])

    def _rows_for(self, visible: int) -> Fraction:
        """Return how many rows stand out of the noise as so many do at epsilon 1, replace-one."""
        unit, moved = self.protection.rows_per_unit, self.protection.rows_moved
        return Fraction(visible) * 2 * unit * unit / (moved * self.epsilon)

    def is_small(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        """Return whether counts by score say more than the value, by public facts and the looks."""
        return self.size(first, second) < self.least

    def is_clearly_large(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        """Return whether noise alone would hardly ever have made the class look so large."""
        spread = min((look.spread for look in self.looks(first, second)), default=0.0)
        return self.size(first, second) >= self.least + CLEAR * spread

    # --- what is drawn then ----------------------------------------------------------------------

    def _rest(self, second: tuple[int, ...]) -> Fraction:
        """Return what the looks leave of epsilon."""
        if not self.dimension:
            return self.epsilon
        return self.epsilon * (1 - FIRST_SHARE - (SECOND_SHARE if second else 0))

    def _ranking(self, epsilon: Fraction, share: Fraction | None = None) -> RankingMechanism:
        return RankingMechanism(
            metric=self.metric,
            epsilon=epsilon,
            protection=self.protection,
            rows=self.rows,
            smaller_class=self.smaller_class,
            share=share,
        )

    def ranked(self, first: tuple[int, ...], second: tuple[int, ...]) -> RankingMechanism:
        """Return the noise of the value, with one look more at counts that deserve it."""
        rest = self._rest(second)
        if self.smaller_class is not None:
            return self._ranking(rest)
        deserved = self._ranking(self.epsilon).deserved(self.size(first, second))
        share = max(FIRST_SHARE, deserved - (SECOND_SHARE if second else 0))
        return self._ranking(rest, share * self.epsilon / rest)

    def counted(self, first: tuple[int, ...], second: tuple[int, ...]) -> HeldoutCurves:
        """Return the noisy table that suits about so many rows."""
        about = None
        if self.rows is None:
            guess = 4 * (self.smaller_class or 0)
            total = guess if not first else round(float(self._counts(first, second).sum()))
            about = min(max(total, 0), MOST_ROWS)
        terms = Terms(
            epsilon=self._rest(second),
            protection=self.protection,
            points=self.points,
            rows=self.rows,
        )
        return heldout.build(terms, expected_rows=about, values=self.values)

    def event(self) -> Event:
        """The first look and the rest, which has one price whatever the look says."""
        if self.first_look is None:
            own = self.counted((), ()) if self.is_small((), ()) else self.ranked((), ())
            return own.event()
        rest = Event("adaptive", {"epsilon": self._rest(())})
        return Event.composed([self.first_look.event(), rest])

    def sample(self, sealed: Sealed[RankingAndTable]) -> ValueOrTable:
        content = unseal(sealed)
        classes = [content.ranking.positives, content.ranking.negatives][: self.dimension]
        first: tuple[int, ...] = ()
        second: tuple[int, ...] = ()
        if self.first_look is not None:
            first = tuple(self.first_look.sample(Sealed(np.array(classes))).tolist())
        if self.looks_again(first):
            second = tuple(self.second_look.sample(Sealed(np.array(classes))).tolist())
        if self.is_small(first, second):
            table = self.counted(first, second).sample(Sealed(content.table))
            return ValueOrTable(self, first, second, None, table)
        value = self.ranked(first, second).sample(Sealed(content.ranking))
        return ValueOrTable(self, first, second, value, None)

    def describe(self) -> dict[str, object]:
        if self.are_few:
            return self.counted((), ()).describe()
        described = self._ranking(self.epsilon).describe()
        if self.first_look is not None:
            described["counts"] = self.first_look.describe()
        return {**described, "if_small": "counts by score"}
