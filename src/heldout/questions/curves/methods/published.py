"""The methods of the two ROC papers: thresholds, then noisy counts between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from heldout.arguments.rules import OneOf, Whole
from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational, exact
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables.counts import BinCounts, Cumulative, Flat, Tree, Wavelet
from heldout.kernel.noise.tables.dawa import Dawa, GreedyTree
from heldout.kernel.noise.tables.table import NoisyTable, TableNoise
from heldout.kernel.statistic import Sealed
from heldout.questions.curves.methods.thresholds import (
    MOST_BINS,
    EvenEdges,
    MediansAsPrinted,
    RecursiveMedians,
)

__all__ = [
    "COUNTS",
    "CumulativeAsPrinted",
    "DawaChen2016",
    "DawaLi2014",
    "TableMethod",
    "fixed_space",
    "laplace",
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
            raise ArgumentError("points must be that of the score table.")
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
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    thresholds: int = 10,
    counts: str = "cumulative",
    split: str = "joint",
) -> TableMethod:
    """A few even thresholds and noise on the true and false positives at each."""
    edges = EvenEdges(bins=Whole(0, MOST_BINS - 1)(thresholds, "thresholds") + 1)
    return _method(
        "laplace",
        edges,
        epsilon,
        counts=counts,
        split=split,
        spent=Fraction(0),
        protection=protection,
        points=points,
        rows=rows,
    )


def fixed_space(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    thresholds: int = 2**10,
    counts: str = "wavelet",
    split: str = "halves",
) -> TableMethod:
    """Even thresholds, all of epsilon for the counts between them."""
    edges = EvenEdges(bins=thresholds)
    return _method(
        "fixed-space",
        edges,
        epsilon,
        counts=counts,
        split=split,
        spent=Fraction(0),
        protection=protection,
        points=points,
        rows=rows,
    )


def recursive_medians(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    levels: int = 10,
    share: Rational = Fraction(1, 5),
    counts: str = "wavelet",
    split: str = "halves",
) -> TableMethod:
    """Thresholds at recursive noisy medians for `share` of epsilon, the rest for the counts."""
    part = share_of_medians(share)
    edges = RecursiveMedians(levels=levels, epsilon=part * epsilon, moved=protection.rows_moved)
    return _method(
        "recursive-medians",
        edges,
        epsilon,
        counts=counts,
        split=split,
        spent=part * epsilon,
        protection=protection,
        points=points,
        rows=rows,
    )


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
    edges: EvenEdges | RecursiveMedians,
    epsilon: Fraction,
    *,
    spent: Fraction,
    counts: str,
    split: str,
    protection: Protection,
    points: int,
    rows: int | None,
) -> TableMethod:
    kind = kind_of_counts(counts, COUNTS)
    OneOf(("halves", "joint"))(split, "split")
    rest = epsilon - spent
    mechanism = kind(
        bins=edges.most_bins,
        epsilon=rest / 2 if split == "halves" else rest,
        moved=protection.rows_moved,
    )
    return TableMethod(
        name=name,
        epsilon=epsilon,
        points=points,
        rows=rows,
        edges=edges,
        counts=mechanism,
        split=split,
    )


@dataclass(frozen=True, kw_only=True)
class CumulativeAsPrinted(Cumulative):
    """`Cumulative` with the sensitivity that the paper prints: 2t + 1 for t thresholds.

    Claim:       pure DP, epsilon, for both classes together.            [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: t + 1 a row is enough, see `Cumulative`; 2t + 1 is not less.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 4.2.
    Cost:        8 microseconds a bin.

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


def laplace_2014(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    thresholds: int = 10,
) -> TableMethod:
    """Laplace noise of (2t + 1)/epsilon on the true and false positives at t even thresholds."""
    bins = Whole(0, MOST_BINS - 1)(thresholds, "thresholds") + 1
    counts = CumulativeAsPrinted(bins=bins, epsilon=epsilon, moved=protection.rows_moved)
    return TableMethod(
        name="stoddard-2014-laplace", epsilon=epsilon, points=points, rows=rows,
        edges=EvenEdges(bins=bins), counts=counts, split="joint",
    )  # fmt: skip


def priroc_2014(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    levels: int = 10,
    share: Rational = Fraction(1, 5),
) -> TableMethod:
    """Algorithm 3: k recursive medians for a fifth of epsilon; Privelet, half for each class."""
    return _priroc(
        name="stoddard-2014-priroc", kind=Wavelet, epsilon=epsilon, protection=protection,
        points=points, rows=rows, levels=levels, share=share,
    )  # fmt: skip


def priroc_2016(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    levels: int = 10,
    share: Rational = Fraction(1, 5),
    counts: str = "dawa",
) -> TableMethod:
    """PriROC: 2^10 recursive medians for a fifth of epsilon; DAWA (or HB), half for each class."""
    kind = kind_of_counts(counts, _COUNTS)
    return _priroc(
        name="chen-2016-priroc", kind=kind, epsilon=epsilon, protection=protection,
        points=points, rows=rows, levels=levels, share=share,
    )  # fmt: skip


def priroc_fix_2016(
    *,
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None = None,
    thresholds: int = 2**10,
    counts: str = "dawa",
) -> TableMethod:
    """PriROC-fix: 2^10 even thresholds, all of epsilon for DAWA (or HB), half for each class."""
    kind = kind_of_counts(counts, _COUNTS)
    edges = EvenEdges(bins=thresholds)
    return TableMethod(
        name="chen-2016-priroc-fix", epsilon=epsilon, points=points, rows=rows, edges=edges,
        counts=kind(bins=edges.most_bins, epsilon=epsilon / 2, moved=protection.rows_moved),
        split="halves",
    )  # fmt: skip


def _priroc(
    *,
    name: str,
    kind: type[BinCounts],
    epsilon: Fraction,
    protection: Protection,
    points: int,
    rows: int | None,
    levels: int,
    share: Rational,
) -> TableMethod:
    part, moved = share_of_medians(share), protection.rows_moved
    edges = MediansAsPrinted(levels=levels, epsilon=part * epsilon, moved=moved)
    rest = (1 - part) * epsilon
    return TableMethod(
        name=name, epsilon=epsilon, points=points, rows=rows, edges=edges,
        counts=kind(bins=edges.most_bins, epsilon=rest / 2, moved=moved), split="halves",
    )  # fmt: skip
