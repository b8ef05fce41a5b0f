"""Sums of a bounded error over the rows, on an integer lattice."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from heldout.arrays import Ints
from heldout.data.sql import MOST_ROWS, Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.statistic import STEPS, Statistic, held_steps, part_of, summed, tally

ERRORS = {
    "squared": "({distance}) * ({distance})",
    "absolute": "abs({distance})",
    "log": "-ln(greatest({own}, {clip})) / {largest}",
}
CLIP = 0.01


def check_resolution(resolution: int) -> None:
    """Refuse a resolution whose sums could wrap: one row would then move them by 2^64."""
    if resolution < 1 or resolution * MOST_ROWS >= 2**63:
        raise ArgumentError(f"resolution must be 1 to {2**22:,}, got {resolution:,}. Try 2**20.")


@dataclass(frozen=True)
class BoundedSum(Statistic[Ints]):
    """Sums over rows of the error e and of e (1 - e), and of what the error falls short of.

    A row's error lies in [0, 1] once divided by the width of the declared range; it is rounded to
    a whole number of `resolution` steps. A negative row's truth is the lower end of the range, a
    positive row's the upper end, so that on (0, 1) the squared error is the Brier score's. The
    logarithmic one is -ln of what the model gives to the truth, which counts as `clip` where it is
    less, over -ln(clip). With `classes` the squared error is half the sum over all of them, at most
    1, and the logarithmic one takes the true class's score.

    The entries are the sums of e, of e (1 - e), which tells how much errors differ, and of what is
    left of 1. The last makes the mean a ratio, with no row count needed; it is left out where the
    row count is public. With more than one group there are three sums for each, and a row is in
    those of its own `member`; how many rows a group has is never public. A row that is `weighted`
    has an error of at most its weight w, a share of the largest one: with f = w - e the entries
    are the sums of e, e f, f - e f, e (1 - w) and f (1 - w).

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives, or is replaced where
                 the row count is public.                                [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds entries that are not below 0 and `resolution` together, or at most
                 w (2 - w), which is no more; where the row count is public, a replacement moves
                 e and e (1 - e) by |e - e'| (1 + |1 - e - e'|) together, at most 1.
    Numerics:    exact integers; each row's error is one rounded double operation on public
                 formula, in [0, resolution] whatever the rounding; products are rounded down.
    Refuses:     an error that it does not know; a resolution whose sums over 2^40 rows would pass
                 64 bits; groups or weights without the second sum.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> replaced = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> BoundedSum(error="squared", score_range=(0, 1), with_rest=False).sensitivity(replaced)
    1048576
    """

    error: str
    score_range: tuple[float, float]
    with_rest: bool
    resolution: int = 2**20
    groups: int = 1
    classes: int = 0
    clip: float = CLIP
    weighted: bool = False
    claim: ClassVar[str] = "bounded-sum"
    known: ClassVar[tuple[str, ...]] = tuple(ERRORS)
    """Errors; a family that sums other numbers of a row overrides it, `_error` and `largest`."""

    def __post_init__(self) -> None:
        if self.error not in self.known:
            raise ArgumentError(
                f"error must be one of {', '.join(self.known)}, got {self.error!r}."
            )
        check_resolution(self.resolution)
        if (self.groups > 1 or self.weighted) and not self.with_rest:
            raise ArgumentError("with_rest must be True: sizes of groups and weights are private.")
        if self.weighted and self.resolution != STEPS:
            raise ArgumentError("resolution must be that of the weights.")
        if not 1e-15 <= self.clip <= 0.5 or (self.classes and self.error == "absolute"):
            raise ArgumentError("clip must lie between 1e-15 and 0.5.")

    @property
    def largest(self) -> float:
        """The largest error, in the unit that people read it in."""
        if self.error == "log":
            return -math.log(self.clip)
        if self.classes:
            return 2.0
        low, high = self.score_range
        return (high - low) ** (2 if self.error == "squared" else 1)

    def _error(self) -> str:
        """A row's error, from 0 to 1."""
        low, high = self.score_range
        place = f"(score - {double(low)}) / {double(high - low)}"
        if self.error == "squared" and self.classes:
            squares = " + ".join(f"score_{place} * score_{place}" for place in range(self.classes))
            return f"({squares} - 2 * own + 1) / 2"
        return ERRORS[self.error].format(
            distance=f"{place} - label",
            own="own" if self.classes else "CASE WHEN label = 1 THEN score ELSE 1 - score END",
            clip=double(self.clip),
            largest=double(self.largest),
        )

    @property
    def size(self) -> int:
        """Return how many entries the vector has."""
        return (2 + self.with_rest + 2 * self.weighted) * self.groups

    def body(self) -> str:
        error, most, whole = self._error(), str(self.resolution), double(self.resolution)
        if self.weighted:
            most = whole = held_steps("weight")
        steps = f"CAST(floor(({error}) * {whole} + 0.5) AS BIGINT)"
        chosen = f"greatest(0, least({most}, {steps})) AS error, {most} AS most"
        rest, lacking = "(most - error)", f"({self.resolution} - most)"
        sums = {"total": "error", "product": self._part("error", rest), "most": "most"}
        if self.weighted:
            sums |= {"lacking": self._part("error", lacking), "spare": self._part(rest, lacking)}
        listed = ", ".join(summed(number, name) for name, number in sums.items())
        if self.groups > 1:
            errors = f"(SELECT member, {chosen} FROM evaluated) AS errors"
            return f"SELECT member, {listed}\nFROM {errors}\nGROUP BY 1"
        return f"SELECT {listed}\nFROM (SELECT {chosen} FROM evaluated) AS errors"

    def _part(self, number: str, share: str) -> str:
        return part_of(number, share, self.resolution)

    def read(self, columns: Columns) -> Ints:
        filled = {name: np.ma.filled(column, 0) for name, column in columns.items()}
        member = (columns["member"], self.groups) if self.groups > 1 else None

        def sums(name: str) -> Ints:
            if member is None:
                return np.array([int(filled[name][0] or 0)], dtype=np.int64)
            return tally(filled[name], member)[:-1]

        total, product = sums("total"), sums("product")
        vectors = [total, product]
        if self.with_rest:
            vectors.append(sums("most") - total - product)
        if self.weighted:
            vectors += [sums("lacking"), sums("spare")]
        return np.stack(vectors, axis=1).ravel()

    def of_groups(self, groups: int) -> "BoundedSum":
        return replace(self, groups=groups)

    def sensitivity(self, protection: Protection) -> int:
        rows = protection.rows_per_unit
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return rows * self.resolution
        # With units the two sums move apart: k rows leave and k others arrive.
        return rows * self.resolution * (2 if self.with_rest else 1)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        rest = not protection.row_count_is_public
        return [cls(error=name, score_range=(0, 1), with_rest=rest) for name in ERRORS]
