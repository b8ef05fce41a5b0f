"""Noisy counts of rows above each of many public edges."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from heldout.kernel.events import Event
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables.counts import ClassCounts
from heldout.kernel.noise.tables.tree import Tree
from heldout.kernel.sealed import Sealed

__all__ = ["CumulativeCounts"]


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
