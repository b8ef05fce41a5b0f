"""DAWA: private buckets of nearly even counts, then noisy counts of the buckets."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.selection import unbounded_noise
from heldout.kernel.noise.tables import BinCounts, ClassCounts, Flat, Tree, laplace_deviation
from heldout.kernel.statistic import Sealed

_PARTS = 64  # a node takes a whole number of 64ths of what is left for its leaves


def prefix_gram(sizes: Sequence[int]) -> Floats:
    """W^T W of "how many of the bins up to j", all j, where a bucket spreads its count evenly.

    >>> prefix_gram([1, 2]).tolist()
    [[3.0, 1.5], [1.5, 1.25]]
    """
    widths = np.asarray(sizes, dtype=np.float64)
    after = widths.sum() - np.cumsum(widths)
    with_those_before = (widths + 1) / 2 + after
    gram = np.minimum.outer(with_those_before, with_those_before)
    np.fill_diagonal(gram, (widths + 1) * (2 * widths + 1) / (6 * widths) + after)
    return np.asarray(gram)


class _Node(NamedTuple):
    """The leaves first .. end - 1 and what the noisy sum of them is worth."""

    first: int
    end: int
    share: int
    """In 64ths of what is left for its leaves; all of it for a leaf."""
    gain: Floats
    """How far an estimate of each leaf follows the sum: least squares, one answer at a time."""


@dataclass(frozen=True, kw_only=True)
class GreedyTree(BinCounts):
    """Every node of a binary tree, noise by a greedy choice of weights, then least squares.

    From the leaves upwards a node takes the share of the budget that makes all prefix sums of its
    leaves most accurate, and leaves the rest to the nodes below it.

    Claim:       pure DP, epsilon, for one class.                               [claim: dawa]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in the nodes of one path from root to leaf, whose weights sum to 1; a
                 node of weight w has noise of scale moved/(w epsilon).
    Numerics:    exact noise; weights are exact fractions of public numbers; the fit is
                 post-processing.
    Refuses:     an epsilon that is not positive; sizes that are not one per bin.
    Reference:   Li, Hay, Miklau and Wang 2014, section 5, damped by depth as in their public
                 code. The workload here is all prefix sums, as a ROC curve asks; shares in 64ths.
    Cost:        O(bins^2) and 0.1 ms a node.

    >>> tree = GreedyTree(bins=2, epsilon=Fraction(1), moved=2, sizes=(1, 1))
    >>> weights = tree.weights()
    >>> all(weights[0, 2] + weights[leaf, leaf + 1] == 1 for leaf in (0, 1))
    True
    """

    name: ClassVar[str] = "greedy"
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.sizes) != self.bins:
            raise ArgumentError("sizes must have one number per bin.")

    def events(self, *, classes: int) -> tuple[Event, ...]:
        law = DiscreteLaplace(
            scale=self.moved / self.epsilon, l1_sensitivity=self.moved, dimension=classes
        )
        return (law.event(),)

    @cached_property
    def _plan(self) -> tuple[list[_Node], Floats]:
        """All nodes, children before parents, and the covariance of the fitted leaves.

        It depends on public sizes alone. Covariances are in units of the noise of a node that had
        the whole budget.
        """
        gram, nodes = prefix_gram(self.sizes), list[_Node]()

        def covariance_of(first: int, end: int, depth: int) -> Floats:
            if end - first == 1:
                nodes.append(_Node(first, end, _PARTS, np.ones(1)))
                return np.ones((1, 1))
            low, high = (covariance_of(*child, depth + 1) for child in _halves(first, end))
            covariance = np.zeros((end - first, end - first))
            covariance[: len(low), : len(low)], covariance[len(low) :, len(low) :] = low, high
            asked = gram[first:end, first:end]
            share = _best_share(covariance, asked, cut=len(low), damping=2 ** (-depth / 2))
            covariance /= (1 - share / _PARTS) ** 2
            together = covariance.sum(axis=1)
            noise = (_PARTS / share) ** 2 if share else np.inf
            gain = together / (together.sum() + noise)
            nodes.append(_Node(first, end, share, gain))
            return covariance - np.outer(gain, together)

        covariance = covariance_of(0, self.bins, 0)
        return nodes, covariance

    def weights(self) -> dict[tuple[int, int], Fraction]:
        """The share of epsilon of every node, by its leaves (first, after the last)."""
        left, shares = {(0, self.bins): Fraction(1)}, {}
        for node in reversed(self._plan[0]):
            place = node.first, node.end
            shares[place] = left[place] * Fraction(node.share, _PARTS)
            if node.end - node.first > 1:
                left |= dict.fromkeys(_halves(*place), left[place] - shares[place])
        return shares

    def draw(self, exact: Ints) -> ClassCounts:
        nodes, covariance = self._plan
        noisy, estimates = self._noisy(np.append(0, np.cumsum(exact))), np.zeros(self.bins)
        for first, end, share, gain in nodes:
            if share > 0:
                total = noisy[first, end]
                estimates[first:end] += gain * (total - estimates[first:end].sum())
        one = laplace_deviation(self.moved / self.epsilon)
        sums = covariance[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)
        above = np.sqrt(np.maximum(np.diag(sums), 0.0))[::-1]
        return ClassCounts(
            counts=estimates,
            bin_deviation=one * np.sqrt(np.diag(covariance)),
            above_deviation=one * np.append(above, 0.0),
        )

    def _noisy(self, below: Floats) -> dict[tuple[int, int], int]:
        """The noisy sum of every node that has a weight; nodes of one weight are drawn together."""
        alike: dict[Fraction, list[tuple[int, int]]] = {}
        for place, weight in self.weights().items():
            if weight > 0:
                alike.setdefault(weight, []).append(place)
        noisy: dict[tuple[int, int], int] = {}
        for weight, places in alike.items():
            law = DiscreteLaplace(
                scale=self.moved / (weight * self.epsilon), l1_sensitivity=self.moved,
                dimension=len(places),
            )  # fmt: skip
            sums = np.array([below[end] - below[first] for first, end in places], dtype=np.int64)
            noisy |= dict(zip(places, law.sample(Sealed(sums)).tolist(), strict=True))
        return noisy

    def describe(self) -> dict[str, object]:
        return {"counts": self.name}


def _best_share(covariance: Floats, gram: Floats, *, cut: int, damping: float) -> int:
    """Return how many 64ths for the node itself have the least error of the prefix sums.

    Nodes above show its sum too, so what it would mend counts less the deeper it lies; the
    two halves by themselves count in full.
    """
    share = np.arange(_PARTS) / _PARTS
    together = covariance.sum(axis=1)
    error, mended = float((gram * covariance).sum()), float(together @ gram @ together)
    apart = sum(
        float(together[half] @ gram[half, half] @ together[half])
        for half in (slice(cut), slice(cut, None))
    )
    own = damping * share**2
    gained = ((mended - apart) * damping + apart) * own / ((1 - share) ** 2 + own * together.sum())
    return int(((error - gained) / (1 - share) ** 2).argmin())


def _halves(first: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    middle = (first + end) // 2
    return (first, middle), (middle, end)


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
    by_length = [list(map(int, row)) for row in costs]
    best, start_of_last = [0], [0]
    for end in range(1, bins + 1):
        cheapest, chosen = None, 0
        for power, own in enumerate(by_length):
            start = end - 2**power
            if start < 0:
                break
            total = best[start] + own[start]
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
                 the partition needs other noise to stay the cheapest: 4 per row. proofs/dawa.md.
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
            raise ArgumentError(f"dawa takes at most {_MOST_BINS} thresholds.")
        if not 0 < self.share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, got {self.share}. Try '1/4'.")
        if self.penalty < 0:
            raise ArgumentError(f"penalty must be 0 or more, got {self.penalty}. Try 2.")

    @property
    def multiple(self) -> int:
        """Return what makes every cost a whole number: the longest interval."""
        return int(2 ** (self.bins.bit_length() - 1))

    @property
    def cost_scale(self) -> Fraction:
        return 4 * self.multiple * self.moved / (self.share * self.epsilon)

    @property
    def bucket_epsilon(self) -> Fraction:
        return (1 - self.share) * self.epsilon

    @property
    def bucket_cost(self) -> int:
        """Return the cost of one more bucket in units of the costs: public, so rounded in any way.

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
        """Return what gives the sums of the buckets their noise."""
        return Tree(bins=len(edges) - 1, epsilon=self.bucket_epsilon, moved=self.moved)

    def _partition(self, exact: Ints) -> Ints:
        """Edges of the buckets: differentially private, share * epsilon."""
        costs = scaled_costs(exact, multiple=self.multiple)
        noise = iter(unbounded_noise(self.cost_scale, sum(map(len, costs))))
        more = self.bucket_cost
        noisy = [[cost + next(noise) + more for cost in row.tolist()] for row in costs]
        return cheapest_partition(noisy, bins=len(exact))

    def describe(self) -> dict[str, object]:
        return {
            "counts": self.name,
            "partition_epsilon": str(self.share * self.epsilon),
            "bucket_epsilon": str(self.bucket_epsilon),
            "penalty": self.penalty,
        }
