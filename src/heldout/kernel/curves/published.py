"""The methods of the two ROC papers: thresholds, then noisy counts between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heldout.arguments import OneOf, Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.curves.registry import Terms
from heldout.kernel.curves.thresholds import (
    MOST_BINS,
    EvenEdges,
    MediansAsPrinted,
    RecursiveMedians,
)
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational, exact
from heldout.kernel.noise.dawa import Dawa, GreedyTree
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables import (
    BinCounts,
    ClassCounts,
    Cumulative,
    Flat,
    NoisyTable,
    TableNoise,
    Tree,
    Wavelet,
)
from heldout.kernel.statistic import Sealed

__all__ = [
    "COUNTS",
    "CumulativeAsPrinted",
    "DawaChen2016",
    "DawaLi2014",
    "HierarchicalQuantile",
    "TableMethod",
    "build",
    "fixed_space",
    "laplace",
    "monotone_cubic",
    "quantiles",
    "recursive_medians",
]

COUNTS: dict[str, type[BinCounts]] = {
    method.name: method for method in (Flat, Cumulative, Wavelet, Tree, Dawa)
}


@dataclass(frozen=True, kw_only=True)
class TableMethod:
    """Edges first, then the counts of each class between them.

    Claim:       pure DP, epsilon, the sum of both stages.               [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the parts'. `split` "halves" charges half of the counts' budget to each class, as
                 both papers do, and twice what is lost; "joint" charges the row, which is in one
                 class, and so has half of the noise for the same price.
    Numerics:    exact.
    Refuses:     a table of other than 2 * points counts.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, algorithm 3; Chen et al. 2016, IV.
    Cost:        the parts'.
    """

    name: str
    epsilon: Fraction
    points: int
    rows: int | None
    edges: EvenEdges | RecursiveMedians
    counts: BinCounts
    split: str

    def event(self) -> Event:
        if self.split == "halves":
            parts = 2 * self.counts.events(classes=1)
        else:
            parts = self.counts.events(classes=2)
        return Event.composed([*self.edges.events(), *parts])

    def sample(self, sealed: Sealed[Any]) -> NoisyTable:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must match the score table.")
        by_class = table.reshape(2, self.points)
        edges = self.edges.draw(by_class.sum(axis=0))
        negatives, positives = (
            self.counts.draw(np.add.reduceat(counts, edges[:-1])) for counts in by_class
        )
        both = (negatives, positives)
        return NoisyTable(
            edges=edges,
            negatives=negatives.counts,
            positives=positives.counts,
            noise=TableNoise(
                scale=negatives.scale,
                bin_deviation=np.stack([table.bin_deviation for table in both]),
                above_deviation=np.stack([table.above_deviation for table in both]),
                unbiased=negatives.unbiased,
            ),
            rows=self.rows,
        )

    def describe(self) -> dict[str, object]:
        parts = {**self.edges.describe(), **self.counts.describe()}
        return {"name": self.name, **parts, "split": self.split}


def laplace(
    terms: Terms, *, thresholds: int = 10, counts: str = "cumulative", split: str = "joint"
) -> TableMethod:
    """A few even thresholds and noise on the true and false positives at each."""
    edges = EvenEdges(bins=Whole(0, MOST_BINS - 1)(thresholds, "thresholds") + 1)
    return _method("laplace", terms, edges, kind_of_counts(counts, COUNTS), split=split)


def fixed_space(
    terms: Terms, *, thresholds: int = 2**10, counts: str = "wavelet", split: str = "halves"
) -> TableMethod:
    """Even thresholds, all of epsilon for the counts between them."""
    edges = EvenEdges(bins=thresholds)
    return _method("fixed-space", terms, edges, kind_of_counts(counts, COUNTS), split=split)


def recursive_medians(
    terms: Terms,
    *,
    levels: int = 10,
    share: Rational = Fraction(1, 5),
    counts: str = "wavelet",
    split: str = "halves",
) -> TableMethod:
    """Thresholds at recursive noisy medians for `share` of epsilon, the rest for the counts."""
    edges = RecursiveMedians(
        levels=levels,
        epsilon=share_of_medians(share) * terms.epsilon,
        moved=terms.protection.rows_moved,
    )
    return _method("recursive-medians", terms, edges, kind_of_counts(counts, COUNTS), split=split)


def share_of_medians(share: Rational) -> Fraction:
    """The part of epsilon that finds the thresholds."""
    part = exact(share, name="share")
    if not 0 < part < 1:
        raise ArgumentError(f"share must lie between 0 and 1, got {share!r}. Try '0.2'.")
    return part


def kind_of_counts(counts: str, known: Mapping[str, type[BinCounts]]) -> type[BinCounts]:
    """The class of this name."""
    return known[OneOf(known)(counts, "counts")]


def _method(
    name: str,
    terms: Terms,
    edges: EvenEdges | RecursiveMedians,
    kind: type[BinCounts],
    *,
    split: str = "halves",
) -> TableMethod:
    """Return these edges with counts of this kind, for what the edges leave of epsilon."""
    OneOf(("halves", "joint"))(split, "split")
    rest = terms.epsilon - (edges.epsilon if isinstance(edges, RecursiveMedians) else 0)
    counts = kind(
        bins=edges.most_bins,
        epsilon=rest / 2 if split == "halves" else rest,
        moved=terms.protection.rows_moved,
    )
    return TableMethod(
        name=name, epsilon=terms.epsilon, points=terms.points, rows=terms.rows,
        edges=edges, counts=counts, split=split,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CumulativeAsPrinted(Cumulative):
    """`Cumulative` with the sensitivity that the paper prints: 2t + 1 for t thresholds.

    Claim:       pure DP, epsilon, for both classes together.            [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: t + 1 per row is enough, see `Cumulative`; 2t + 1 is not less.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 4.2.
    Cost:        8 microseconds per bin.

    >>> CumulativeAsPrinted(bins=11, epsilon=Fraction(1), moved=1).scale
    Fraction(21, 1)
    """

    name: ClassVar[str] = "cumulative, sensitivity 2t + 1"

    @property
    def weight(self) -> int:
        return 2 * self.bins - 1


@dataclass(frozen=True, kw_only=True)
class DawaLi2014(Dawa):
    """DAWA as its paper prints it: no penalty on buckets, and its own tree over them.

    Claim:       pure DP, epsilon, for one class.                               [claim: dawa]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of `Dawa` for the buckets, that of `GreedyTree` for their counts.
    Numerics:    exact.
    Refuses:     what `Dawa` refuses.
    Reference:   Li, Hay, Miklau and Wang 2014, sections 4 and 5. Their public code halves the
                 noise of the first stage and cuts it off at 0, which no proof covers.
    Cost:        that of both.

    >>> DawaLi2014(bins=1024, epsilon=Fraction(1), moved=2).penalty
    0
    """

    name: ClassVar[str] = "dawa of Li et al. 2014"
    penalty: int = field(default=0, init=False)

    def second_stage(self, edges: Ints) -> BinCounts:
        return GreedyTree(
            bins=len(edges) - 1,
            epsilon=self.bucket_epsilon,
            moved=self.moved,
            sizes=tuple(np.diff(edges).tolist()),
        )


@dataclass(frozen=True, kw_only=True)
class DawaChen2016(Dawa):
    """DAWA as the residual plots' paper tells it: no penalty, a noisy total of each bucket.

    Claim:       pure DP, epsilon, for one class.                               [claim: dawa]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of `Dawa` for the buckets; their totals are disjoint counts.
    Numerics:    exact.
    Refuses:     what `Dawa` refuses.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, section III-B, perturbation.
    Cost:        that of `Dawa`.

    >>> DawaChen2016(bins=16, epsilon=Fraction(1), moved=2).second_stage([0, 4, 16]).name
    'flat'
    """

    name: ClassVar[str] = "dawa of Chen et al. 2016"
    penalty: int = field(default=0, init=False)

    def second_stage(self, edges: Ints) -> BinCounts:
        return Flat(bins=len(edges) - 1, epsilon=self.bucket_epsilon, moved=self.moved)


_COUNTS: dict[str, type[BinCounts]] = {"dawa": DawaLi2014, "hierarchical": Tree}


def laplace_2014(terms: Terms, *, thresholds: int = 10) -> TableMethod:
    """Laplace noise of (2t + 1)/epsilon on the true and false positives at t even thresholds."""
    edges = EvenEdges(bins=Whole(0, MOST_BINS - 1)(thresholds, "thresholds") + 1)
    return _method("stoddard-2014-laplace", terms, edges, CumulativeAsPrinted, split="joint")


def priroc_2014(terms: Terms, *, levels: int = 10, share: Rational = Fraction(1, 5)) -> TableMethod:
    """Algorithm 3: k recursive medians for a fifth of epsilon; Privelet, half for each class."""
    return _method("stoddard-2014-priroc", terms, _as_printed(terms, levels, share), Wavelet)


def priroc_2016(
    terms: Terms,
    *,
    levels: int = 10,
    share: Rational = Fraction(1, 5),
    counts: str = "dawa",
) -> TableMethod:
    """PriROC: 2^10 recursive medians for a fifth of epsilon; DAWA (or HB), half for each class."""
    kind = kind_of_counts(counts, _COUNTS)
    return _method("chen-2016-priroc", terms, _as_printed(terms, levels, share), kind)


def priroc_fix_2016(terms: Terms, *, thresholds: int = 2**10, counts: str = "dawa") -> TableMethod:
    """PriROC-fix: 2^10 even thresholds, all of epsilon for DAWA (or HB), half for each class."""
    kind = kind_of_counts(counts, _COUNTS)
    return _method("chen-2016-priroc-fix", terms, EvenEdges(bins=thresholds), kind)


def _as_printed(terms: Terms, levels: int, share: Rational) -> MediansAsPrinted:
    return MediansAsPrinted(
        levels=levels,
        epsilon=share_of_medians(share) * terms.epsilon,
        moved=terms.protection.rows_moved,
    )


# Quantiles of each class read off a noisy tree, with a monotone cubic between them.
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
    Sensitivity: the two trees together are one joint table: a row is in one node per level of one.
    Numerics:    exact up to the tree's counts; all else is post-processing.
    Refuses:     fewer than 2 quantiles or more than 4,096.
    Reference:   Xu and Cormode 2025, federated computation of ROC and PR curves; with as many
                 leaves as their public code has, 4 times the quantiles or a little more.
    Cost:        8 microseconds a node.

    >>> from heldout.kernel.neighbours import Protection
    >>> one = build(Terms(epsilon=Fraction(1), protection=Protection(neighbours="add-remove"),
    ...                   points=65537), quantiles=10)
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
            raise ArgumentError("points must match the score table.")
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


def build(terms: Terms, *, quantiles: int = 16, branching: int = 2) -> HierarchicalQuantile:
    """The method with its public parameters."""
    return HierarchicalQuantile(
        epsilon=terms.epsilon, moved=terms.protection.rows_moved, points=terms.points,
        rows=terms.rows, quantiles=quantiles, branching=branching,
    )  # fmt: skip
