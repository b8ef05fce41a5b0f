"""Noise for regressions: bounds that nobody declared, cumulative counts, tables of residuals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns, count_passed, double
from heldout.errors import ArgumentError
from heldout.kernel.curves.published import DawaChen2016
from heldout.kernel.door import Answers, Booked, Step
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise import selection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.dawa import Dawa
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.selection import SparseVector
from heldout.kernel.noise.source import Randomness
from heldout.kernel.noise.tables import ClassCounts, Tree
from heldout.kernel.statistic import Sealed, Statistic, check_resolution, tally

# --- tuned constants of the search for bounds: what each is for, since when, and what measures it -
#
# Tests are those of tests/questions/regression/. Where no trial is noted, none was kept.

LEAST_PRICE, MOST_PRICE = Fraction(1, 500), Fraction(1, 50)
"""The share of the rows for which a cell is kept, at least and at most. Since 2026-11-16; measured
by test_bounds.py."""
STRICT, STRICTEST = 1000, 3
"""From so many rows times epsilon on a cell must hold more to be kept, and how many times as much
at most. Since 2026-11-16."""
MOST_SLACK: Final = 12
"""The slack of a search, in units of 1/epsilon, is at most this or what it asks for. Since
2026-11-16."""
SIZE_SHARE: Final = Fraction(1, 2)
"""Of a search's price, for its first step, which finds the size. Since 2026-11-15."""


@dataclass(frozen=True, kw_only=True)
class BoundSearch:
    """The place of the first of some nested bounds that holds more than `threshold` rows.

    The statistic counts the rows between one bound and the next, and last those beyond all. If no
    answer is positive the last bound is taken: there is always an answer.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the rows within a bound move by at most k. Bounds are nested, so one row that is
                 replaced, or k rows that only leave or only arrive, move all counts the same way,
                 and half of the queries' noise is enough; proofs/residual-bounds.md.
    Numerics:    exact, as `SparseVector`.
    Refuses:     what `SparseVector` refuses.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, algorithm 1, with twice its
                 queries' accuracy for the same price.
    Cost:        8 microseconds a bound.

    >>> from heldout.kernel import price
    >>> search = BoundSearch(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...                      threshold=950)
    >>> search.test.query_scale, str(price(search.event()))
    (Fraction(2, 1), 'epsilon 1')
    """

    epsilon: Fraction
    protection: Protection
    threshold: int

    def __post_init__(self) -> None:
        _ = self.test  # what is wrong is refused before anything is booked

    @property
    def one_way(self) -> bool:
        """Return whether neighbours move all nested counts upwards or all of them downwards."""
        relation, rows = self.protection.neighbours, self.protection.rows_per_unit
        return relation is Neighbours.ADD_REMOVE or rows == 1

    @cached_property
    def test(self) -> SparseVector:
        return SparseVector(
            self.epsilon,
            sensitivity=self.protection.rows_per_unit,
            monotone=self.one_way,
            threshold=self.threshold,
        )

    def event(self) -> Event:
        return self.test.event()

    def sample(self, sealed: Sealed[Any]) -> int:
        """The place of the bound, from 0."""
        between = np.asarray(unseal(sealed), dtype=np.int64)[:-1]
        given = self.test.sample(Sealed(np.cumsum(between)))
        return given.index(True) if True in given else len(between) - 1

    def describe(self) -> dict[str, object]:
        return self.test.describe()


@dataclass(frozen=True, kw_only=True)
class BoundSearchAsPrinted(BoundSearch):
    """`BoundSearch` with the noise of its paper: 2/epsilon on the threshold, 4/epsilon on counts.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the rows within a bound move by at most k.
    Numerics:    exact, as `SparseVector`.
    Refuses:     what `SparseVector` refuses.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, algorithm 1.
    Cost:        8 microseconds a bound.

    >>> search = BoundSearchAsPrinted(
    ...     epsilon=Fraction(1), protection=Protection(neighbours="replace-one"), threshold=950)
    >>> search.test.threshold_scale, search.test.query_scale
    (Fraction(2, 1), Fraction(4, 1))
    """

    @cached_property
    def test(self) -> SparseVector:
        return SparseVector(
            self.epsilon,
            sensitivity=self.protection.rows_per_unit,
            threshold=self.threshold,
            threshold_share=Fraction(1, 2),
        )


@dataclass(frozen=True, kw_only=True)
class IntervalChoice(Primitive):
    """Neighbouring cells that hold many rows and are few: one cell more must bring `price` rows.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: rows within an interval rise by at most k and fall by at most k between replace-one
                 neighbours, and do one of the two between add-remove ones. An interval's chance is
                 proportional to cells^3 exp(rate * (rows - price * cells)), so that rate * 2k,
                 or rate * k, is the loss.
    Numerics:    exact, see `choose_exactly`.
    Refuses:     an epsilon that is not positive; fewer than one cell or more than 1,024.
    Reference:   McSherry and Talwar 2007, the exponential mechanism.
    Cost:        O(cells^2).

    >>> choice = IntervalChoice(epsilon=Fraction(1), cells=32, price=10,
    ...                         protection=Protection(neighbours="replace-one"))
    >>> choice.rate
    Fraction(1, 2)
    """

    epsilon: Fraction
    protection: Protection
    cells: int
    price: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be more than 0, got {self.epsilon}.")
        if not 1 <= self.cells <= 1024 or self.price < 0:
            raise ArgumentError("cells must be 1 to 1,024 and their price not below 0.")

    @property
    def rate(self) -> Fraction:
        """Return what one row more adds to the logarithm of an interval's probability."""
        return self.epsilon / self.protection.rows_moved

    def sample(
        self, sealed: Sealed[Any], *, randomness: Randomness | None = None
    ) -> tuple[int, int]:
        """The first cell, and the one after the last."""
        counts = np.asarray(unseal(sealed), dtype=np.int64)
        if counts.shape != (self.cells + 1,):
            raise ArgumentError("cells must match the statistic.")
        first, end, penalties = self.candidates(counts)
        # Where epsilon is too small to see the rows, wide intervals are likelier than narrow ones.
        place = selection.choose_exactly(
            (end - first) ** 3, penalties, self.rate, randomness=randomness
        )
        return int(first[place]), int(end[place])

    def candidates(self, counts: Ints) -> tuple[Ints, Ints, Ints]:
        """Every interval: its first cell, its end, and its penalty in rows."""
        below = np.append(0, np.cumsum(counts[:-1]))
        first, end = np.triu_indices(self.cells + 1, 1)
        return first, end, self.price * (end - first) - (below[end] - below[first])

    def describe(self) -> dict[str, object]:
        return {"name": "exponential", "rate": str(self.rate), "cells": self.cells}


Interval = tuple[float, float]
Rows = Callable[[Answers], int]

LEAST, MOST = -10, 30  # bounds from scale / 1024 to 2^30 scale
CELLS: Final = 32


@dataclass(frozen=True, kw_only=True)
class Search:
    """Bounds of one column within `epsilon`: by its size alone, or also by where it lies.

    A symmetric search gives (-b, b), b a power of two times `scale`: the first that holds about
    `coverage` of the rows. Otherwise half of epsilon finds b, and the other half the few cells of
    (-b, b) that hold most rows. `rows` is the public number of rows, or one that was released
    before. `slack` tells how many rows less than the coverage will do at least, in units of
    1/epsilon: without it noise on the threshold sends the search past the last row.
    """

    column: str
    epsilon: Fraction
    whole_epsilon: Fraction
    """Of the release that this search is a part of."""
    protection: Protection
    scale: float
    symmetric: bool
    slack: int
    thrift: int = 1
    """How many times fewer rows than a plot's a cell must hold to be kept."""

    @property
    def size_epsilon(self) -> Fraction:
        return self.epsilon if self.symmetric else SIZE_SHARE * self.epsilon

    def bounds(self, rows: int) -> tuple[float, ...]:
        """The nested bounds, the smallest first."""
        low, high = doublings(self._visible(rows))
        return tuple(self.scale * 2.0**power for power in range(low, high + 1))

    def _visible(self, rows: int) -> float:
        return float(rows * self.whole_epsilon / self.protection.rows_per_unit)

    # --- how large -------------------------------------------------------------------------------

    def size_step(self, rows: int) -> Step:
        axis = Axis(self.column, (0.0, *self.bounds(rows)), absolute=True)
        return Step(GridCounts(axes=(axis,)), self.size_mechanism(rows))

    def size_mechanism(self, rows: int) -> BoundSearch:
        # A twentieth of the rows, but not so few that noise on the threshold runs past all rows.
        unit = self.protection.rows_per_unit / self.size_epsilon
        allowed = max(min(Fraction(rows, 20), MOST_SLACK * unit), self.slack * unit)
        # Half of the rows are wanted at least, however small epsilon is.
        threshold = max(coverage(self._visible(rows)) * rows - allowed, Fraction(rows, 2))
        return BoundSearch(
            epsilon=self.size_epsilon, protection=self.protection, threshold=int(threshold)
        )

    # --- where -----------------------------------------------------------------------------------

    def place_step(self, size: int, rows: int) -> Step:
        statistic = GridCounts(axes=(Axis(self.column, self.cells(size, rows)),))
        return Step(statistic, self.place_mechanism(rows))

    def place_mechanism(self, rows: int) -> IntervalChoice:
        return IntervalChoice(
            epsilon=self.epsilon - self.size_epsilon,
            protection=self.protection,
            cells=CELLS,
            price=math.ceil(self._price(rows) * rows),
        )

    def _price(self, rows: int) -> Fraction:
        """The share of rows for which a cell is kept: as few as noise lets stand out.

        Where there is much to see, a plot gives up the few rows in the tails for fewer empty
        cells: numbers far from 0 and close together lie in one or two of the cells.
        """
        epsilon = (self.epsilon - self.size_epsilon) / self.protection.rows_per_unit
        strictness = Fraction(max(1.0, min(self._visible(rows) / STRICT, STRICTEST)))
        wanted = strictness if self.thrift == 1 else Fraction(1, self.thrift)
        seen = wanted / (max(rows, 1) * epsilon)
        return max(LEAST_PRICE / self.thrift, min(MOST_PRICE, seen))

    def cells(self, size: int, rows: int) -> tuple[float, ...]:
        """Edges of the cells within (-b, b); doubles that are exact but for the scale."""
        bound = self.bounds(rows)[size]
        return tuple(bound * (2 * edge / CELLS - 1) for edge in range(CELLS + 1))

    def interval(self, answers: Answers, rows: int) -> Interval:
        """Return what the search's own answers, one or two, mean."""
        size = answers[f"{self.column} size"]
        if self.symmetric:
            bound = self.bounds(rows)[size]
            return (-bound, bound)
        edges = self.cells(size, rows)
        first, end = answers[f"{self.column} place"]
        return (edges[first], edges[end])

    def asked(self, row_count: Rows) -> dict[str, Booked]:
        """The steps, by name."""

        def size(answers: Answers) -> Step:
            return self.size_step(row_count(answers))

        def place(answers: Answers) -> Step:
            return self.place_step(answers[f"{self.column} size"], row_count(answers))

        steps = {f"{self.column} size": Booked(self.size_mechanism(1).event(), size)}
        if not self.symmetric:
            steps[f"{self.column} place"] = Booked(self.place_mechanism(1).event(), place)
        return steps


@dataclass(frozen=True, kw_only=True)
class SearchAsPrinted(Search):
    """Algorithm 1 of Chen et al. 2016: (-b, b) with b = scale, 2 scale, 4 scale, ... for 95%."""

    def bounds(self, rows: int) -> tuple[float, ...]:
        return tuple(self.scale * 2.0**power for power in range(MOST + 1))

    def size_mechanism(self, rows: int) -> BoundSearch:
        return BoundSearchAsPrinted(
            epsilon=self.size_epsilon,
            protection=self.protection,
            threshold=math.ceil(Fraction(19, 20) * rows),
        )


def doublings(visible: float) -> tuple[int, int]:
    """Return how far below and above the scale bounds are searched, in powers of two.

    `visible` is rows times epsilon. Few rows are not seen far away: noise alone would stop the
    search first, so that it had better begin at the scale.

    >>> doublings(3), doublings(120), doublings(10**6)
    ((0, 10), (-4, 22), (-10, 30))
    """
    return -min(int(visible / 25), -LEAST), min(10 + int(visible / 10), MOST)


def coverage(visible: float) -> Fraction:
    """The share of rows that bounds should hold: the paper's, or more where noise allows it.

    >>> coverage(500), coverage(2_000), coverage(10**6)
    (Fraction(19, 20), Fraction(31, 32), Fraction(99, 100))
    """
    wanted = 1 - Fraction(125, 2) / Fraction(max(visible, 1.0))
    return max(Fraction(19, 20), min(Fraction(99, 100), wanted))


@dataclass(frozen=True, kw_only=True)
class CumulativeCounts:
    """A tree of noisy sums over the cells of a grid with one axis; the outside is not looked at.

    With more than one group the vector has the cells and the outside of each, one after the other,
    and there is a tree for each: a list of them is drawn.

    Claim:       pure DP, epsilon.                                        [claim: tree-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one node per level of its own group's tree, and in no other tree: see
                 `Tree`.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Hay, Rastogi, Miklau and Suciu 2010.
    Cost:        8 microseconds a node.

    >>> from heldout.kernel import price
    >>> print(price(CumulativeCounts(cells=64, epsilon=Fraction(1, 2), moved=2).event()))
    epsilon 0.5
    """

    cells: int
    epsilon: Fraction
    moved: int
    groups: int = 1

    def __post_init__(self) -> None:
        _ = self.tree

    @cached_property
    def tree(self) -> Tree:
        return Tree(bins=self.cells, epsilon=self.epsilon, moved=self.moved)

    def event(self) -> Event:
        [event] = self.tree.events(classes=self.groups)
        return event

    def sample(self, sealed: Sealed[Any]) -> ClassCounts | list[ClassCounts]:
        counts = np.asarray(unseal(sealed), dtype=np.int64).reshape(self.groups, -1)
        drawn = [self.tree.draw(own[:-1]) for own in counts]
        return drawn if self.groups > 1 else drawn[0]

    def describe(self) -> dict[str, object]:
        return {"name": "tree", **self.tree.describe()}


@lru_cache(maxsize=8)
def hilbert_order(side: int) -> Ints:
    """Indices of a square's cells, row by row numbered, in the order of the curve.

    Each cell shares an edge with the next, so that an interval of the order is a connected patch.

    >>> hilbert_order(2).tolist()
    [0, 2, 3, 1]
    """
    order = np.zeros((1, 1), dtype=np.int64)
    while len(order) < side:
        quarter = order.size
        order = np.block(
            [[order.T, np.rot90(order, 2).T + 3 * quarter], [order + quarter, order + 2 * quarter]]
        )
    return np.argsort(order.ravel(), kind="stable")


@dataclass(frozen=True, kw_only=True, eq=False)
class SquareCounts:
    """Estimates of the cells, row by row, and of the rows outside the square."""

    cells: Floats
    deviation: Floats
    """Standard deviation of the noise of each cell; its bucket's unevenness is not in it."""
    outside: int
    outside_scale: Fraction


@dataclass(frozen=True, kw_only=True)
class HilbertDawa(Primitive):
    """DAWA over the cells of a square, and discrete Laplace on the count of the rows outside it.

    Claim:       pure DP, epsilon, for both together.                  [claim: residual-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row lies in a cell or outside; DAWA and the noise outside each lose
                 epsilon/moved a row, and `moved` rows tell neighbours apart.
    Numerics:    exact, as `Dawa`.
    Refuses:     an epsilon that is not positive; a side that is no power of two, or above 64.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, section III-B; Li, Hay, Miklau
                 and Wang 2014. What differs from their DAWA is listed in `Dawa`.
    Cost:        that of `Dawa` with side * side bins.

    >>> from heldout.kernel import price
    >>> hilbert = HilbertDawa(side=8, epsilon=Fraction(1), moved=2)
    >>> str(price(hilbert.event())), hilbert.edge.scale
    ('epsilon 1', Fraction(2, 1))
    """

    rule = ("disjoint-rows", "epsilon")
    """Both parts together; where the rows that move lie does not change the price."""
    side: int
    epsilon: Fraction
    moved: int
    as_printed: bool = False
    """With the DAWA that the paper tells of, instead of ours."""

    def __post_init__(self) -> None:
        if not (1 <= self.side <= 64 and self.side & (self.side - 1) == 0):
            raise ArgumentError(f"side must be a power of two to 64, got {self.side}. Try 16.")
        _ = self.buckets, self.edge

    @cached_property
    def buckets(self) -> Dawa:
        kind = DawaChen2016 if self.as_printed else Dawa
        return kind(bins=self.side**2, epsilon=self.epsilon, moved=self.moved)

    @cached_property
    def edge(self) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(self.epsilon, l1_sensitivity=self.moved, dimension=1)

    def sample(self, sealed: Sealed[Any]) -> SquareCounts:
        counts = np.asarray(unseal(sealed), dtype=np.int64)
        if counts.shape != (self.side**2 + 1,):
            raise ArgumentError("side must match the statistic.")
        order = hilbert_order(self.side)
        drawn = self.buckets.draw(counts[:-1][order])
        cells, deviation = np.empty(self.side**2), np.empty(self.side**2)
        cells[order], deviation[order] = drawn.counts, drawn.bin_deviation
        outside = int(self.edge.sample(Sealed(counts[-1:]))[0])
        return SquareCounts(
            cells=cells, deviation=deviation, outside=outside, outside_scale=self.edge.scale
        )

    def describe(self) -> dict[str, object]:
        return {"name": "DAWA on Hilbert's curve", "side": self.side, **self.buckets.describe()}


# The exact statistics of a regression: rows by cell of a public grid, and sums of powers.
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
            raise ArgumentError(f"column must be a name that heldout gives, got {self.column!r}.")

    @property
    def cells(self) -> int:
        return len(self.edges) - 1

    def place(self) -> str:
        """Return how many edges lie at or below the row's number: 0 below all, cells + 1 beyond."""
        number = f"abs({self.column})" if self.absolute else self.column
        return count_passed(number, self.edges)


@dataclass(frozen=True)
class GridCounts(Statistic[Ints]):
    """Rows in each cell of the grid, the last axis fastest, and then all rows outside it.

    A cell holds its lower edge and not its upper one. With more than one group there is such a
    vector for each, one after the other, and a row is in that of its own `member`.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
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
        keys = ", ".join(map(str, range(1, len(places) + 1)))
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

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
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
            raise ArgumentError(f"column must be a name that heldout gives, got {self.column!r}.")

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
