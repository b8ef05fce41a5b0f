"""Quantiles of each class read off a noisy tree, with a monotone cubic between them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments.rules import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables.counts import ClassCounts, Tree
from heldout.kernel.noise.tables.table import NoisyTable, TableNoise
from heldout.kernel.statistic import Sealed
from heldout.questions.curves.methods.thresholds import EvenEdges

__all__ = ["HierarchicalQuantile", "build", "monotone_cubic", "quantiles"]


def monotone_cubic(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> Floats:
    """Fritsch and Butland's (1984) cubic Hermite interpolant through (x, y), read at `at`.

    `x` rises strictly and holds `at`. scipy has the same; loading it takes a quarter of a second.

    >>> monotone_cubic([0, 1, 3], [0, 1, 1], [0, 0.5, 1, 2]).round(3).tolist()
    [0.0, 0.667, 1.0, 1.0]
    """
    x, y, at = (np.asarray(values, dtype=np.float64) for values in (x, y, at))
    h = np.diff(x)
    chord = np.diff(y) / h
    if len(h) == 1:
        return np.asarray(y[0] + chord[0] * (at - x[0]))
    slope = np.concatenate([[_end(h, chord)], np.zeros(len(h) - 1), [_end(h[::-1], chord[::-1])]])
    alike = chord[1:] * chord[:-1] > 0
    first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (first + second) / (first / chord[:-1] + second / chord[1:])
    slope[1:-1] = np.where(alike, mean, 0.0)
    k = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(h) - 1)
    t = (at - x[k]) / h[k]
    bend = slope[k] + slope[k + 1] - 2 * chord[k]
    rise = h[k] * t * (slope[k] + t * (chord[k] - slope[k] + (t - 1) * bend))
    return np.asarray(y[k] + rise)


def _end(h: Floats, chord: Floats) -> float:
    """The slope at an end: of the parabola through three points, held to the shape."""
    slope = float(((2 * h[0] + h[1]) * chord[0] - h[0] * chord[1]) / (h[0] + h[1]))
    if slope * chord[0] <= 0:
        return 0.0
    if chord[0] * chord[1] <= 0 and abs(slope) > 3 * abs(chord[0]):
        return float(3 * chord[0])
    return slope


_FINE = 2**10
_MOST_LEAVES = 2**18


def quantiles(leaves: Floats, levels: Floats, *, branching: int) -> Ints:
    """The leaf at which each level of the distribution is reached, walking down the tree.

    Nodes below zero count as empty, as the walk finds them.

    >>> quantiles(np.array([4.0, 0.0, 2.0, 2.0]), np.array([0.0, 0.5, 0.6, 1.0]), branching=2)
    array([0, 0, 2, 3])
    """
    stages = [np.asarray(leaves, dtype=np.float64)]
    while len(stages[-1]) > branching:
        stages.append(stages[-1].reshape(-1, branching).sum(axis=1))
    wanted = np.asarray(levels, dtype=np.float64) * max(float(np.sum(leaves)), 0.0)
    node = np.zeros(len(wanted), dtype=np.int64)
    for stage in stages[::-1]:
        children = np.maximum(stage.reshape(-1, branching), 0.0)[node]
        passed = np.cumsum(children, axis=1)
        child = np.minimum((passed < wanted[:, None]).sum(axis=1), branching - 1)
        before = np.append(np.zeros((len(wanted), 1)), passed, axis=1)
        wanted = wanted - np.take_along_axis(before, child[:, None], axis=1)[:, 0]
        node = node * branching + child
    return node


@dataclass(frozen=True, kw_only=True)
class HierarchicalQuantile:
    """A binary tree over an even grid for each class; quantiles; a monotone cubic through them.

    Claim:       pure DP, epsilon.                                       [claim: tree-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the two trees together are one joint table: a row is in one node a level of one.
    Numerics:    exact up to the tree's counts; all else is post-processing.
    Refuses:     fewer than 2 quantiles or more than 4,096.
    Reference:   Xu and Cormode 2025, federated computation of ROC and PR curves; with as many
                 leaves as their public code has, 4 times the quantiles or a little more.
    Cost:        8 microseconds a node.

    >>> from heldout.kernel.neighbours import Protection
    >>> one = build(epsilon=Fraction(1), protection=Protection(neighbours="add-remove"),
    ...             points=65537, quantiles=10)
    >>> one.tree.height, one.tree.scale
    (6, Fraction(6, 1))
    """

    epsilon: Fraction
    moved: int
    points: int
    rows: int | None
    quantiles: int
    branching: int

    def __post_init__(self) -> None:
        Whole(2, 2**12)(self.quantiles, "quantiles")
        Whole(2, 2**8)(self.branching, "branching")
        if self.tree.bins > _MOST_LEAVES:
            raise ArgumentError(
                f"branching must be smaller for {self.quantiles} quantiles, got {self.branching}. "
                "Try 2."
            )

    @property
    def tree(self) -> Tree:
        height = math.ceil(round(math.log(self.quantiles, self.branching), 9)) + 2
        return Tree(
            bins=self.branching**height,
            epsilon=self.epsilon,
            moved=self.moved,
            branching=self.branching,
        )

    def event(self) -> Event:
        (both,) = self.tree.events(classes=2)
        return both

    def sample(self, sealed: Sealed[Any]) -> NoisyTable:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must be that of the score table.")
        by_class, tree = table.reshape(2, self.points), self.tree
        coarse = EvenEdges(bins=tree.bins).draw(by_class[0])
        fine = np.union1d(coarse, EvenEdges(bins=_FINE).draw(by_class[0]))
        drawn = [tree.draw(np.add.reduceat(counts, coarse[:-1])) for counts in by_class]
        negatives, positives = (self._between(table, coarse, fine) for table in drawn)
        return NoisyTable(
            edges=fine,
            negatives=negatives,
            positives=positives,
            noise=TableNoise(
                scale=None,
                bin_deviation=np.stack(
                    [_spread(table.bin_deviation, coarse, fine) for table in drawn]
                ),
                above_deviation=np.stack(
                    [np.interp(fine, coarse, table.above_deviation) for table in drawn]
                ),
                unbiased=False,
            ),
            rows=self.rows,
        )

    def _between(self, drawn: ClassCounts, coarse: Ints, fine: Ints) -> Floats:
        """Counts in the fine bins by the cubic through the quantiles."""
        levels = np.linspace(0.0, 1.0, self.quantiles)
        where = quantiles(_filled(drawn.counts, self.tree.bins), levels, branching=self.branching)
        where = coarse[np.minimum(where, len(coarse) - 1)]
        # The first quantile of several at one place, and the ends of the grid.
        places, first = np.unique(where, return_index=True)
        known = dict(zip(places.tolist(), levels[first].tolist(), strict=True))
        known = {int(fine[0]): 0.0, **known, int(fine[-1]): 1.0}
        risen = monotone_cubic(list(known), list(known.values()), fine)
        result: Floats = np.maximum(float(np.sum(drawn.counts)), 0.0) * np.maximum(
            np.diff(risen), 0.0
        )
        return result

    def describe(self) -> dict[str, object]:
        return {
            "name": "hierarchical-quantile",
            "quantiles": self.quantiles,
            **self.tree.describe(),
        }


def _filled(counts: Floats, leaves: int) -> Floats:
    return np.pad(counts, (0, leaves - len(counts)))


def _spread(deviation: Floats, coarse: Ints, fine: Ints) -> Floats:
    """A coarse bin's deviation for the fine bins in it, in proportion to their width."""
    inside = np.searchsorted(coarse, fine[:-1], side="right") - 1
    return deviation[inside] * np.diff(fine) / np.diff(coarse)[inside]


def build(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    quantiles: int = 16,
    branching: int = 2,
) -> HierarchicalQuantile:
    """The method with its public parameters."""
    return HierarchicalQuantile(
        epsilon=epsilon,
        moved=protection.rows_moved,
        points=points,
        rows=rows,
        quantiles=quantiles,
        branching=branching,
    )
