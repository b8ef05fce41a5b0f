"""Sums of a bounded error over the rows, on an integer lattice."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import MOST_ROWS, Columns, double
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.statistics.base import Statistic
from heldout.statistics.tally import tally
from heldout.statistics.weights import STEPS, counted, held_steps

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
class BoundedSum(Statistic):
    """The sum of each row's error, and the sum of what it falls short of the largest error.

    A row's error lies in [0, 1] once divided by the width of the declared range; it is rounded to
    a whole number of `resolution` steps. A negative row's truth is the lower end of the range, a
    positive row's the upper end, so that on (0, 1) the squared error is the Brier score's. The
    logarithmic one is -ln of what the model gives to the truth, which counts as `clip` where it is
    less, over -ln(clip). With `classes` the squared error is half the sum over all of them, at most
    1, and the logarithmic one takes the true class's score.

    The second sum makes the mean a ratio of the two, with no row count needed; it is left out where
    the row count is public. With more than one group there are two sums for each, and a row is in
    those of its own `member`; how many rows a group has is never public. A row that is `weighted`
    adds to both in proportion to its weight, a share of the largest one.

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives, or is replaced where
                 the row count is public.                                [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds e to the first sum and resolution - e to the second, together exactly
                 `resolution`, or its weight in steps, which is no more; where the row count is
                 public only the first sum is kept, and a replacement moves it by at most the range
                 of e.
    Numerics:    exact integers; each row's error is one rounded double operation on public
                 formula, in [0, resolution] whatever the rounding.
    Refuses:     an error that it does not know; a resolution whose sums over 2^40 rows would pass
                 64 bits; groups or weights without the second sum.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2.
    Cost:        one scan, O(1) memory.

    >>> from heldout.privacy.neighbours import Neighbours, Protection
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

    def __post_init__(self) -> None:
        if self.error not in ERRORS:
            raise ArgumentError(f"error must be one of {', '.join(ERRORS)}, got {self.error!r}.")
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
            squares = " + ".join(f"score_{each} * score_{each}" for each in range(self.classes))
            return f"({squares} - 2 * own + 1) / 2"
        return ERRORS[self.error].format(
            distance=f"{place} - label",
            own="own" if self.classes else "CASE WHEN label = 1 THEN score ELSE 1 - score END",
            clip=double(self.clip),
            largest=double(self.largest),
        )

    def body(self) -> str:
        error, most = self._error(), str(self.resolution)
        steps = f"CAST(floor(({error}) * {double(self.resolution)} + 0.5) AS BIGINT)"
        if self.weighted:
            most = held_steps("weight")
            steps = f"CAST(floor(({error}) * {most} + 0.5) AS BIGINT)"
        inside = f"greatest(0, least({most}, {steps}))"
        rows = f"{counted(self.weighted)} AS n\nFROM evaluated"
        sums = f"CAST(sum({inside}) AS BIGINT) AS total, {rows}"
        return f"SELECT member, {sums}\nGROUP BY 1" if self.groups > 1 else f"SELECT {sums}"

    def read(self, columns: Columns) -> Any:
        each = 1 if self.weighted else self.resolution
        if self.groups > 1:
            member = (columns["member"], self.groups)
            total = tally(np.ma.filled(columns["total"], 0), member)[:-1]
            rows = tally(np.ma.filled(columns["n"], 0), member)[:-1]
            return np.stack([total, rows * each - total], axis=1).ravel()
        total, rows = (int(np.ma.filled(columns[name], 0)[0] or 0) for name in ("total", "n"))
        rest = [rows * each - total] if self.with_rest else []
        return np.array([total, *rest], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        rows = protection.rows_per_unit
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return rows * self.resolution
        # With units the two sums move apart: k rows leave and k others arrive.
        return rows * self.resolution * (2 if self.with_rest else 1)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        rest = not protection.row_count_is_public
        return [cls(error=name, score_range=(0, 1), with_rest=rest) for name in ERRORS]
