"""Sums of the powers of a bounded number over the rows, on an integer lattice."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.statistics.base import Statistic
from heldout.statistics.bounded_sum import check_resolution

LADDERS = {1: 8, 2: 9, 3: 11}  # powers -> eighths of the resolution that a replacement moves


@dataclass(frozen=True)
class PowerSums(Statistic):
    """Sums of t, t^2 and t^4, t in [0, 1], as the sums of their differences.

    t is the row's number (or its distance from `centre`) within `bounds`, from 0 at the lower to 1
    at the upper one; what lies outside is moved to the nearest bound. As t >= t^2 >= t^4, a row is
    divided into the parts t^4, t^2 - t^4, t - t^2 and 1 - t, none of them below zero. The vector
    holds the sum of each part, in this order (without t^4 for two `powers`, t and 1 - t for one),
    times `resolution`; the last part, without which a row is not whole, is left out where the row
    count is public. One row moves all of it no further than one sum alone.

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives; 1, 9/8 or 11/8 of it
                 for a row that is replaced where the row count is public. [claim: power-sums]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the parts add up to `resolution`; proofs/power-sums.md has the replaced row.
    Numerics:    exact integers. t is rounded to a whole number of steps in doubles, a function of
                 the row alone in [0, resolution]; powers are rounded up from there, exactly.
    Refuses:     bounds that are not finite and increasing; other than one to three powers.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2; the division is ours.
    Cost:        one scan, O(1) memory.

    >>> from heldout.privacy.neighbours import Neighbours, Protection
    >>> sums = PowerSums(column="residual", bounds=(0.0, 4.0), absolute=True, powers=3,
    ...                  with_rest=False)
    >>> sums.sensitivity(Protection(neighbours="replace-one")) / sums.resolution
    1.375
    """

    column: str
    bounds: tuple[float, float]
    with_rest: bool
    absolute: bool = False
    centre: float = 0.0
    """What sizes are measured from; public."""
    powers: int = 2
    resolution: int = 2**20
    claim: ClassVar[str] = "power-sums"

    def __post_init__(self) -> None:
        low, high = self.bounds
        if not 1e-150 <= high - low <= 1e150:
            raise ArgumentError("bounds must be two finite numbers, the lower first.")
        check_resolution(self.resolution)
        if self.powers not in LADDERS:
            raise ArgumentError(f"powers must be 1, 2 or 3, got {self.powers}.")
        if not abs(self.centre) <= 1e150 or (self.centre and not self.absolute):
            raise ArgumentError("centre must be a finite number, and go with absolute.")
        if not self.column.isidentifier():
            raise ArgumentError(f"column must be a name of ours, got {self.column!r}.")

    @property
    def size(self) -> int:
        return self.powers + self.with_rest

    def body(self) -> str:
        low, high = self.bounds
        width, steps = double(high - low), double(self.resolution)
        moved = f"{self.column} - {double(self.centre)}" if self.centre else self.column
        number = f"abs({moved})" if self.absolute else self.column
        inside = f"least(greatest({number}, {double(low)}), {double(high)}) - {double(low)}"
        # Not below 2^-60 of the width: some engines fail where a product vanishes.
        share = f"greatest({inside}, {double((high - low) * 2.0**-60)}) / {width}"
        once = f"least(floor(({share}) * {steps} + {double(0.5)}), {steps})"
        squared = f"ceil(once * once / {steps})"
        rows = (
            f"SELECT once, {squared} AS squared\n"
            f"  FROM (SELECT {once} AS once FROM evaluated) AS lattice"
        )
        chosen = ["count(*) AS n", f"{_whole('once')} AS once", f"{_whole('squared')} AS squared"]
        if self.powers == 3:
            chosen.append(f"{_whole(f'ceil(squared * squared / {steps})')} AS fourth")
        return "SELECT\n  " + ",\n  ".join(chosen) + f"\nFROM (\n  {rows}\n) AS powers"

    def read(self, columns: Columns) -> Any:
        names = ("n", "once", "squared", "fourth")[: self.powers + 1]
        n, *sums = (int(columns[name][0] or 0) for name in names)
        falling = [*sums[::-1], n * self.resolution] if self.with_rest else sums[::-1]
        return np.diff(np.array(falling, dtype=np.int64), prepend=0)

    def sensitivity(self, protection: Protection) -> int:
        whole = protection.rows_per_unit * self.resolution
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return whole
        if self.with_rest:
            return 2 * whole
        return whole * LADDERS[self.powers] // 8

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        rest = not protection.row_count_is_public
        return [
            cls(column="score", bounds=(0.0, 1.0), powers=powers, with_rest=rest)
            for powers in LADDERS
        ]


def _whole(number: str) -> str:
    return f"CAST(sum(CAST({number} AS BIGINT)) AS BIGINT)"
