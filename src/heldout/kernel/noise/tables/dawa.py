"""DAWA: private buckets of nearly even counts, then noisy counts of the buckets."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.sparse_vector import unbounded_noise
from heldout.kernel.noise.tables.counts import BinCounts, ClassCounts, Flat
from heldout.kernel.noise.tables.tree import Tree

__all__ = ["Dawa", "cheapest_partition", "scaled_costs"]

_MOST_BINS = 2**12


def scaled_costs(exact: Ints, *, multiple: int) -> list[Any]:
    """`multiple` times the deviation of each interval of 1, 2, 4, ... bins from its own mean.

    Entry k has one whole number for each start of an interval of 2^k bins; `multiple` is a power
    of two, at least the longest interval.

    >>> [each.tolist() for each in scaled_costs(np.array([3, 1, 1]), multiple=2)]
    [[0, 0, 0], [4, 0]]
    """
    costs, length = [], 1
    while length <= len(exact):
        windows = np.lib.stride_tricks.sliding_window_view(exact, length)
        sums = windows.sum(axis=1, keepdims=True)
        deviation = np.abs(length * windows - sums).sum(axis=1)
        costs.append(deviation * (multiple // length))
        length *= 2
    return costs


def cheapest_partition(costs: list[Any], *, bins: int) -> Ints:
    """Edges of the partition into such intervals with the least total cost.

    Of equally cheap ones a fixed one is taken, whatever the costs are.

    >>> cheapest_partition([[1, 1, 1], [5, 0]], bins=3).tolist()
    [0, 1, 3]
    """
    by_length = [list(map(int, each)) for each in costs]
    best, start_of_last = [0], [0]
    for end in range(1, bins + 1):
        cheapest, chosen = None, 0
        for power, each in enumerate(by_length):
            start = end - 2**power
            if start < 0:
                break
            total = best[start] + each[start]
            if cheapest is None or total < cheapest:
                cheapest, chosen = total, start
        assert cheapest is not None
        best.append(cheapest)
        start_of_last.append(chosen)
    edges = [bins]
    while edges[-1] > 0:
        edges.append(start_of_last[edges[-1]])
    return np.array(edges[::-1])


@dataclass(frozen=True, kw_only=True)
class Dawa(BinCounts):
    """Buckets chosen by noisy cost with `share` of epsilon, their counts with the rest.

    Claim:       pure DP, epsilon, for one class.                               [claim: dawa]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row moves the cost of any partition by less than 2, and only its own bucket of
                 the partition needs other noise to stay the cheapest: 4 a row. proofs/dawa.md.
    Numerics:    exact: costs times a power of two are whole numbers, with discrete Laplace noise;
                 both are compared as integers without an end.
    Refuses:     an epsilon that is not positive; more than 4,096 bins; a share outside (0, 1).
    Reference:   Li, Hay, Miklau and Wang 2014. Three things differ. Their second stage is a
                 workload-aware tree; here it is the tree of HB over the buckets. Their public
                 code draws about half of this noise and raises noisy deviations below zero to
                 zero, and our proof covers neither. Instead a bucket costs `penalty` scales of
                 the noise more, a public number; without it noise cuts the bins into hundreds
                 of buckets. 2 had the lowest error in 14 of the 28 combinations tried, 8 runs
                 each: 0 to 3 on simulated scores; 0, 1, 2, 3, 5, 8 on three cells that
                 `benchmarks/roc_error.py` reports, which favours DAWA there. In fresh runs it beat
                 0 in 25 of 40: a modest gain.
    Cost:        8 microseconds an interval, bins * log2 bins of them, and O(bins^2) additions.

    >>> Dawa(bins=1024, epsilon=Fraction(1), moved=2).cost_scale
    Fraction(32768, 1)
    """

    name: ClassVar[str] = "dawa"
    share: Fraction = Fraction(1, 4)
    penalty: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins > _MOST_BINS:
            raise ArgumentError(f"thresholds must be at most {_MOST_BINS} for dawa.")
        if not 0 < self.share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, got {self.share}. Try '1/4'.")
        if self.penalty < 0:
            raise ArgumentError(f"penalty must be 0 or more, got {self.penalty}. Try 2.")

    @property
    def multiple(self) -> int:
        """What makes every cost a whole number: the longest interval."""
        return int(2 ** (self.bins.bit_length() - 1))

    @property
    def cost_scale(self) -> Fraction:
        return 4 * self.multiple * self.moved / (self.share * self.epsilon)

    @property
    def bucket_epsilon(self) -> Fraction:
        return (1 - self.share) * self.epsilon

    @property
    def bucket_cost(self) -> int:
        """What one more bucket costs, in the units of the costs: public, so any rounding will do.

        The noise of one count more, as in the reference, and the penalty.
        """
        return round(
            self.multiple * self.moved / self.bucket_epsilon + self.penalty * self.cost_scale
        )

    def events(self, *, classes: int) -> tuple[Event, ...]:
        partition = Event("exponential", {"epsilon": self.share * self.epsilon})
        # The tree is chosen for the buckets that stage one released. With height h it has h times
        # this sensitivity and h times this scale: the same price, known before anything is drawn.
        flat = Flat(bins=self.bins, epsilon=self.bucket_epsilon, moved=self.moved)
        return (partition, *flat.events(classes=classes))

    def draw(self, exact: Ints) -> ClassCounts:
        exact = np.asarray(exact, dtype=np.int64)
        bins = len(exact)
        edges = self._partition(exact)
        sums = np.add.reduceat(exact, edges[:-1])
        buckets = self.second_stage(edges).draw(sums)
        sizes = np.diff(edges)
        everywhere = np.arange(bins + 1)
        return ClassCounts(
            counts=np.repeat(buckets.counts / sizes, sizes),
            bin_deviation=np.repeat(buckets.bin_deviation / sizes, sizes),
            above_deviation=np.interp(everywhere, edges, buckets.above_deviation),
            unbiased=False,
        )

    def second_stage(self, edges: Ints) -> BinCounts:
        """What gives the sums of the buckets their noise."""
        return Tree(bins=len(edges) - 1, epsilon=self.bucket_epsilon, moved=self.moved)

    def _partition(self, exact: Ints) -> Ints:
        """Edges of the buckets: differentially private, share * epsilon."""
        costs = scaled_costs(exact, multiple=self.multiple)
        noise = iter(unbounded_noise(self.cost_scale, sum(map(len, costs))))
        more = self.bucket_cost
        noisy = [[cost + next(noise) + more for cost in each.tolist()] for each in costs]
        return cheapest_partition(noisy, bins=len(exact))

    def describe(self) -> dict[str, object]:
        return {
            "counts": self.name,
            "partition_epsilon": str(self.share * self.epsilon),
            "bucket_epsilon": str(self.bucket_epsilon),
            "penalty": self.penalty,
        }
