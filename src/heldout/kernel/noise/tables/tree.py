"""Noisy sums at every level of a b-ary tree, made to agree with each other."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.arguments.rules import Whole
from heldout.arrays import Floats, Ints
from heldout.kernel.noise.tables.counts import LinearCounts

__all__ = ["Tree", "branching_for"]

Number = TypeVar("Number", np.int64, np.float64)


def branching_for(bins: int) -> int:
    """The branching that HB takes: least mean variance of a range of `bins` leaves.

    >>> branching_for(1024), branching_for(4)
    (32, 4)
    """

    def variance(branching: int) -> float:
        height = height_for(bins, branching)
        return (branching - 1) * height**3 - 2 * (branching + 1) * height**2 / 3

    return min(range(2, max(bins, 2) + 1), key=variance)


def height_for(bins: int, branching: int) -> int:
    """Levels below the root: the least h with branching^h >= bins."""
    height, leaves = 1, branching
    while leaves < bins:
        height, leaves = height + 1, leaves * branching
    return height


@dataclass(frozen=True, kw_only=True)
class Tree(LinearCounts):
    """Every node below the root of a b-ary tree over the bins, then the least-squares fit.

    Claim:       pure DP, epsilon, for one class.                        [claim: tree-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one node a level: the height.
    Numerics:    exact: whole node sums; consistency is post-processing.
    Refuses:     an epsilon that is not positive; a branching below 2.
    Reference:   Hay, Rastogi, Miklau and Suciu 2010 (consistency); Qardaji, Yang and Li 2013 (HB,
                 the branching). The fit here is for any tree, so bins need not fill it.
    Cost:        8 microseconds a node.

    >>> from fractions import Fraction
    >>> Tree(bins=1024, epsilon=Fraction(1), moved=2).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "hierarchical"
    branching: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.branching is None:
            object.__setattr__(self, "branching", branching_for(self.bins))
        Whole(2, 2**20)(self.branching, "branching")

    @property
    def _branching(self) -> int:
        assert self.branching is not None
        return self.branching

    @property
    def height(self) -> int:
        return height_for(self.bins, self._branching)

    @property
    def weight(self) -> int:
        return self.height

    @property
    def dimension(self) -> int:
        return sum(self._nodes(self.bins))

    def queries(self, exact: Ints) -> Ints:
        levels = [exact]
        for _ in range(self.height - 1):
            levels.append(self._sums(levels[-1]))
        return np.concatenate(levels)

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        ends = np.cumsum(self._nodes(bins))
        levels = np.split(answers.astype(np.float64), ends[:-1])
        fits, children = [levels[0]], self._children_variances(bins)
        for own, variance in zip(levels[1:], children, strict=True):
            fits.append((own * variance + self._sums(fits[-1])) / (variance + 1))
        fitted = fits[-1]
        for below, variance, child in zip(
            fits[-2::-1], children[::-1], self._variances(bins)[-2::-1], strict=True
        ):
            rest = (fitted - self._sums(below)) / variance
            fitted = below + child * np.repeat(rest, self._branching)[: len(below)]
        return fitted

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        edges = np.arange(bins + 1)
        children, variances = self._children_variances(bins), self._variances(bins)
        leaf = np.ones(bins)
        leaf_with_node = np.ones(bins)
        # Of the leaves of an edge's node that lie below the edge: variance, covariance with all.
        below, below_with_node = np.zeros(bins + 1), np.zeros(bins + 1)
        for level, of_children in enumerate(children):
            child = edges // self._branching**level
            node = edges // self._branching ** (level + 1)
            running = np.append(0.0, np.cumsum(variances[level]))
            whole = running[child] - running[node * self._branching]
            below, below_with_node = below + whole, below_with_node + whole
            seen = np.append(of_children, 1.0)[node] + 1
            below, below_with_node = below - below_with_node**2 / seen, below_with_node / seen
            seen = seen[:bins]
            leaf, leaf_with_node = leaf - leaf_with_node**2 / seen, leaf_with_node / seen
        top = edges // self._branching ** (self.height - 1)
        running = np.append(0.0, np.cumsum(variances[-1]))
        below, below_with_node = below + running[top], below_with_node + running[top]
        above = np.maximum(running[-1] - 2 * below_with_node + below, 0.0)
        above[-1] = 0.0
        return np.sqrt(leaf), np.sqrt(above)

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "branching": self.branching, "height": self.height}

    def _nodes(self, bins: int) -> list[int]:
        """Nodes at each level, leaves first."""
        return [math.ceil(bins / self._branching**level) for level in range(self.height)]

    def _sums(self, level: NDArray[Number]) -> NDArray[Number]:
        return np.add.reduceat(level, np.arange(0, len(level), self._branching))

    def _variances(self, bins: int) -> list[Any]:
        """Of the fit of each node to itself and what is below it, leaves first."""
        levels = [np.ones(bins)]
        for _ in range(self.height - 1):
            below = self._sums(levels[-1])
            levels.append(below / (below + 1))
        return levels

    def _children_variances(self, bins: int) -> list[Any]:
        """Of the sum of each node's children, parents of leaves first."""
        return [self._sums(level) for level in self._variances(bins)[:-1]]
