"""Noise for tables of residuals: cumulative counts, and DAWA along a Hilbert curve."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.tables.counts import ClassCounts
from heldout.kernel.noise.tables.dawa import Dawa
from heldout.kernel.noise.tables.tree import Tree
from heldout.kernel.sealed import Sealed
from heldout.questions.curves.methods.as_printed import DawaChen2016

__all__ = ["CumulativeCounts", "HilbertDawa", "SquareCounts", "hilbert_order"]


@dataclass(frozen=True, kw_only=True)
class CumulativeCounts:
    """A tree of noisy sums over the cells of a grid with one axis; the outside is not looked at.

    With more than one group the vector has the cells and the outside of each, one after the other,
    and there is a tree for each: a list of them is drawn.

    Claim:       pure DP, epsilon.                                        [claim: tree-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one node a level of its own group's tree, and in no other tree: see
                 `Tree`.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Hay, Rastogi, Miklau and Suciu 2010.
    Cost:        8 microseconds a node.

    >>> from heldout.kernel import price
    >>> print(price(CumulativeCounts(cells=64, epsilon=Fraction(1, 2), moved=2).event()))
    epsilon 1/2
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
        drawn = [self.tree.draw(each[:-1]) for each in counts]
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
            raise ArgumentError("side must be that of the statistic.")
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
