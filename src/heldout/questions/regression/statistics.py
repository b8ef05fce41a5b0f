"""The exact statistics of a regression: rows by cell of a public grid, and sums of powers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.bounded_sum import check_resolution
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.statistic import Statistic, tally

MOST_CELLS = 2**20


@dataclass(frozen=True)
class Axis:
    """A number of each row and the public edges that divide it.

    >>> Axis("residual", (-1.0, 0.0, 1.0)).cells
    2
    """

    column: str
    edges: tuple[float, ...]
    absolute: bool = False

    def __post_init__(self) -> None:
        finite = all(math.isfinite(edge) for edge in self.edges)
        rising = all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        if len(self.edges) < 2 or not (finite and rising):
            raise ArgumentError("edges must be two or more finite, increasing numbers. Sort them.")
        if not self.column.isidentifier():
            raise ArgumentError(f"column must be a name of ours, got {self.column!r}.")

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    def place(self) -> str:
        """Return how many edges lie at or below the row's number: 0 below all, cells + 1 beyond."""
        number = f"abs({self.column})" if self.absolute else self.column
        return " + ".join(f"CAST({number} >= {double(edge)} AS INTEGER)" for edge in self.edges)


@dataclass(frozen=True)
class GridCounts(Statistic[Ints]):
    """Rows in each cell of the grid, the last axis fastest, and then all rows outside it.

    A cell holds its lower edge and not its upper one. With more than one group there is such a
    vector for each, one after the other, and a row is in that of its own `member`.

    Claim:       L1 sensitivity 1 a row that leaves or arrives.        [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the cells and the outside are disjoint, and so are groups: a row is counted once,
                 however many there are: k rows under add-remove, 2k under replace-one.
    Numerics:    exact integers. A row's number is compared with edges and nothing else is done to
                 it, so no engine can overflow or round.
    Refuses:     edges that are not finite and increasing; more than 2^20 cells.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, histograms.
    Cost:        one scan with a comparison an edge, O(cells) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> grid = GridCounts(axes=(Axis("residual", (-1.0, 0.0, 1.0)), Axis("predicted", (0.0, 9.0))))
    >>> grid.size, grid.sensitivity(Protection(neighbours=Neighbours.ADD_REMOVE))
    (3, 1)
    """

    axes: tuple[Axis, ...]
    groups: int = 1
    claim = "disjoint-counts"

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 2 or self.size * self.groups > MOST_CELLS:
            raise ArgumentError("a grid must have one axis or two, and at most 1,048,576 cells.")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.cells for axis in self.axes)

    @property
    def size(self) -> int:
        """Cells and the outside: the length of the vector, or of each group's."""
        return math.prod(self.shape) + 1

    def body(self) -> str:
        places = [f"{axis.place()} AS place_{i}" for i, axis in enumerate(self.axes)]
        places += ["member"] if self.groups > 1 else []
        keys = ", ".join(str(i + 1) for i in range(len(places)))
        listed = ",\n  ".join([*places, "count(*) AS n"])
        return f"SELECT\n  {listed}\nFROM evaluated\nGROUP BY {keys}"

    def read(self, columns: Columns) -> Ints:
        numbers = (np.ma.asarray(columns[f"place_{i}"]) - 1 for i in range(len(self.axes)))
        places = list(zip(numbers, self.shape, strict=True))
        if self.groups == 1:
            return tally(columns["n"], *places)
        member = (columns["member"], self.groups)
        cells = tally(columns["n"], member, *places)[:-1].reshape(self.groups, -1)
        rows = tally(columns["n"], member)[:-1, None]
        return np.hstack([cells, rows - cells.sum(axis=1, keepdims=True)]).ravel()

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [
            cls(axes=(Axis("score", (0.25, 0.5, 0.75)),)),
            cls(axes=(Axis("score", (0.0, 0.25, 2.0), absolute=True),)),
            cls(axes=(Axis("score", (0.0, 0.5, 1.0)), Axis("label", (0.0, 1.0)))),
        ]


@dataclass(frozen=True)
class RowCount(Statistic[Ints]):
    """Counts rows where their number is not public; of each group, if there are several.

    Claim:       L1 sensitivity 1 a row that leaves or arrives.        [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: at most k rows more or less, also when some leave and others arrive; none at all
                 where the number of rows is public. A row may leave one group and another arrive
                 in a second: 2k for several groups under replace-one.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> RowCount().sensitivity(Protection(neighbours="replace-one", unit=True, rows_per_unit=3))
    3
    """

    groups: int = 1
    claim = "disjoint-counts"

    def body(self) -> str:
        if self.groups > 1:
            return "SELECT member, count(*) AS n\nFROM evaluated\nGROUP BY 1"
        return "SELECT count(*) AS n\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        if self.groups > 1:
            return tally(columns["n"], (columns["member"], self.groups))[:-1]
        return np.array([int(columns["n"][0])], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        if self.groups > 1:
            return protection.rows_moved
        return 0 if protection.row_count_is_public else protection.rows_per_unit

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [cls()]


LADDERS = {1: 8, 2: 9, 3: 11}  # powers -> eighths of the resolution that a replacement moves
NAMES = {1: "once", 2: "squared", 4: "fourth"}  # a power of t -> the column of its sum


@dataclass(frozen=True)
class PowerSums(Statistic[Ints]):
    """Sums of t, t^2 and t^4, t in [0, 1], as the sums of their differences.

    t is the row's number within `bounds`, from 0 at the lower to 1 at the upper one; or, if it is
    `absolute`, its distance from a centre, from 0 to 1 at the further bound. What lies outside is
    moved to the nearest bound. As t >= t^2 >= t^4, a row is
    divided into the parts t^4, t^2 - t^4, t - t^2 and 1 - t, none of them below zero. The vector
    holds the sum of each part, in this order (without t^4 for two `powers`, t and 1 - t for one),
    times `resolution`; the last part, without which a row is not whole, is left out where the row
    count is public. One row moves all of it no further than one sum alone. One power may be another
    than t: `power` 2 sums t^2 and 1 - t^2, 4 sums t^4 and 1 - t^4. With more than one group
    there are such sums for each, one after the other, and a row is in those of its own `member`.

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives; 1, 9/8 or 11/8 of it
                 for a row that is replaced where the row count is public. [claim: power-sums]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the parts add up to `resolution`; proofs/power-sums.md has the replaced row.
    Numerics:    exact integers. t is rounded to a whole number of steps in doubles, a function of
                 the row alone in [0, resolution]; powers are rounded up from there, exactly.
    Refuses:     bounds that are not finite and increasing; a centre beyond them; other than one to
                 three powers; a `power` besides others; groups without the last part.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2; the division is ours.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> sums = PowerSums(column="residual", bounds=(-4.0, 4.0), absolute=True, powers=3,
    ...                  with_rest=False)
    >>> sums.sensitivity(Protection(neighbours="replace-one")) / sums.resolution
    1.375
    """

    column: str
    bounds: tuple[float, float]
    with_rest: bool
    absolute: bool = False
    centres: tuple[float, ...] = (0.0,)
    """What sizes are measured from: one for all rows, or each group's. Public."""
    powers: int = 2
    resolution: int = 2**20
    groups: int = 1
    power: int = 1
    """Of t, where one power is summed: 1, 2 or 4."""
    claim = "power-sums"

    def __post_init__(self) -> None:
        low, high = self.bounds
        if not 1e-150 <= high - low <= 1e150:
            raise ArgumentError("bounds must be two finite numbers, the lower first.")
        check_resolution(self.resolution)
        if self.powers not in LADDERS:
            raise ArgumentError(f"powers must be 1, 2 or 3, got {self.powers}.")
        if self.power not in NAMES or (self.power > 1 and self.powers > 1):
            raise ArgumentError(f"power must be 1, or 2 or 4 alone, got {self.power}.")
        inside = all(low <= centre <= high for centre in self.centres)
        fits = len(self.centres) in (1, self.groups)
        if not ((inside and fits) if self.absolute else self.centres == (0.0,)):
            raise ArgumentError("centres must lie within bounds, and go with absolute.")
        if self.groups > 1 and not self.with_rest:
            raise ArgumentError("with_rest must be True: sizes of groups are private.")
        if not self.column.isidentifier():
            raise ArgumentError(f"column must be a name of ours, got {self.column!r}.")

    @property
    def size(self) -> int:
        """The length of the vector, or of each group's."""
        return self.powers + self.with_rest

    @property
    def reaches(self) -> tuple[float, ...]:
        """The width of what t measures: that of the bounds, or from each centre to the further."""
        low, high = self.bounds
        if not self.absolute:
            return (high - low,)
        return tuple(max(centre - low, high - centre) for centre in self.centres)

    def body(self) -> str:
        (low, high), steps = self.bounds, double(self.resolution)
        width, least = _own(self.reaches), _own([reach * 2.0**-60 for reach in self.reaches])
        if self.absolute:
            moved = f"{self.column} - {_own(self.centres)}" if any(self.centres) else self.column
            inside = f"least(abs({moved}), {width})"
        else:
            clipped = f"least(greatest({self.column}, {double(low)}), {double(high)})"
            inside = f"{clipped} - {double(low)}"
        # Not below 2^-60 of the width: some engines fail where a product vanishes.
        share = f"greatest({inside}, {least}) / {width}"
        once = f"least(floor(({share}) * {steps} + {double(0.5)}), {steps})"
        squared = f"ceil(once * once / {steps})"
        own, by = ("member, ", "\nGROUP BY member") if self.groups > 1 else ("", "")
        rows = (
            f"SELECT {own}once, {squared} AS squared\n"
            f"  FROM (SELECT {own}{once} AS once FROM evaluated) AS lattice"
        )
        chosen = ["count(*) AS n", f"{_whole('once')} AS once", f"{_whole('squared')} AS squared"]
        if self.powers == 3 or self.power == 4:
            chosen.append(f"{_whole(f'ceil(squared * squared / {steps})')} AS fourth")
        return f"SELECT\n  {own}" + ",\n  ".join(chosen) + f"\nFROM (\n  {rows}\n) AS powers{by}"

    def read(self, columns: Columns) -> Ints:
        ladder = tuple(NAMES.values())[: self.powers] if self.powers > 1 else (NAMES[self.power],)
        names = ("n", *ladder)
        if self.groups > 1:
            member = (columns["member"], self.groups)
            n, *sums = (tally(np.ma.filled(columns[name], 0), member)[:-1] for name in names)
        else:
            n, *sums = (np.array([int(columns[name][0] or 0)]) for name in names)
        falling = [*sums[::-1], n * self.resolution] if self.with_rest else sums[::-1]
        return np.diff(np.stack(falling), axis=0, prepend=0).T.ravel()

    def sensitivity(self, protection: Protection) -> int:
        whole = protection.rows_per_unit * self.resolution
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return whole
        if self.with_rest:
            return 2 * whole
        return whole * LADDERS[self.powers] // 8

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        rest = not protection.row_count_is_public
        summed = [(powers, 1) for powers in LADDERS] + [(1, 2), (1, 4)]
        return [
            cls(column="score", bounds=(0.0, 1.0), powers=powers, power=power, with_rest=rest)
            for powers, power in summed
        ]


def _own(values: Sequence[float]) -> str:
    """A public number, or that of the row's group."""
    if len(set(values)) == 1:
        return double(values[0])
    cases = " ".join(
        f"WHEN {group} THEN {double(value)}" for group, value in enumerate(values[:-1])
    )
    return f"(CASE member {cases} ELSE {double(values[-1])} END)"


def _whole(number: str) -> str:
    return f"CAST(sum(CAST({number} AS BIGINT)) AS BIGINT)"
