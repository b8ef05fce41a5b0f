"""Noisy counts of rows above each of many public edges."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from heldout.mechanisms.base import unseal
from heldout.mechanisms.curves.counts import ClassCounts
from heldout.mechanisms.curves.tree import Tree
from heldout.privacy.events import Event
from heldout.statistics.sealed import Sealed

__all__ = ["CumulativeCounts"]


@dataclass(frozen=True, kw_only=True)
class CumulativeCounts:
    """A tree of noisy sums over the cells of a grid with one axis; the outside is not looked at.

    Claim:       pure DP, epsilon.                                        [claim: tree-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one node a level: see `Tree`.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Hay, Rastogi, Miklau and Suciu 2010.
    Cost:        8 microseconds a node.

    >>> from heldout.privacy import price
    >>> print(price(CumulativeCounts(cells=64, epsilon=Fraction(1, 2), moved=2).event()))
    epsilon 1/2
    """

    cells: int
    epsilon: Fraction
    moved: int

    def __post_init__(self) -> None:
        _ = self.tree

    @cached_property
    def tree(self) -> Tree:
        return Tree(bins=self.cells, epsilon=self.epsilon, moved=self.moved)

    def event(self) -> Event:
        [event] = self.tree.events(classes=1)
        return event

    def sample(self, sealed: Sealed[Any]) -> ClassCounts:
        return self.tree.draw(np.asarray(unseal(sealed), dtype=np.int64)[:-1])

    def describe(self) -> dict[str, object]:
        return {"name": "tree", **self.tree.describe()}
