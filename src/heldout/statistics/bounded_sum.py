"""Sums of a bounded error over the rows, on an integer lattice."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import MOST_ROWS, Columns, double
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.statistics.base import Statistic
from heldout.statistics.tally import tally

ERRORS = {
    "squared": "({distance}) * ({distance})",
    "absolute": "abs({distance})",
}


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
    second sum makes the mean a ratio of the two, with no row count needed; it is left out where
    the row count is public. With more than one group there are two sums for each, and a row is in
    those of its own `member`; how many rows a group has is never public.

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives, or is replaced where
                 the row count is public.                                [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds e to the first sum and resolution - e to the second, together exactly
                 `resolution`; where the row count is public only the first sum is kept, and a
                 replacement moves it by at most the range of e.
    Numerics:    exact integers; each row's error is one rounded double operation on public
                 formula, in [0, resolution] whatever the rounding.
    Refuses:     an error that is not "squared" or "absolute"; a resolution whose sums over 2^40
                 rows would pass 64 bits; groups without the second sum.
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
    claim: ClassVar[str] = "bounded-sum"

    def __post_init__(self) -> None:
        if self.error not in ERRORS:
            raise ArgumentError(f"error must be one of {', '.join(ERRORS)}, got {self.error!r}.")
        check_resolution(self.resolution)
        if self.groups > 1 and not self.with_rest:
            raise ArgumentError("with_rest must be True by group: their sizes are private.")

    def body(self) -> str:
        low, high = self.score_range
        position = f"(score - {double(low)}) / {double(high - low)}"
        error = ERRORS[self.error].format(distance=f"{position} - label")
        steps = f"CAST(floor(({error}) * {double(self.resolution)} + 0.5) AS BIGINT)"
        inside = f"greatest(0, least({self.resolution}, {steps}))"
        sums = f"CAST(sum({inside}) AS BIGINT) AS total, count(*) AS n\nFROM evaluated"
        return f"SELECT member, {sums}\nGROUP BY 1" if self.groups > 1 else f"SELECT {sums}"

    def read(self, columns: Columns) -> Any:
        if self.groups > 1:
            member = (columns["member"], self.groups)
            total = tally(np.ma.filled(columns["total"], 0), member)[:-1]
            rows = tally(columns["n"], member)[:-1]
            return np.stack([total, rows * self.resolution - total], axis=1).ravel()
        total, rows = int(columns["total"][0] or 0), int(columns["n"][0])
        rest = [rows * self.resolution - total] if self.with_rest else []
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
