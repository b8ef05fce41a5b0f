"""The ROC methods of the papers with the constants that they print, under their authors' names.

`published` has the same methods with constants worked out anew, which cost less for the same
noise. These are for comparison: they are private, and worse.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from heldout.arguments.rules import Whole
from heldout.arrays import Ints
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables.counts import BinCounts, Cumulative, Flat
from heldout.kernel.noise.tables.dawa import Dawa
from heldout.kernel.noise.tables.greedy import GreedyTree
from heldout.kernel.noise.tables.tree import Tree
from heldout.kernel.noise.tables.wavelet import Wavelet
from heldout.kernel.rational import Rational
from heldout.questions.curves.methods.published import TableMethod, kind_of_counts, share_of_medians
from heldout.questions.curves.methods.thresholds import MOST_BINS, EvenEdges, MediansAsPrinted

__all__ = ["CumulativeAsPrinted", "DawaChen2016", "DawaLi2014"]


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
