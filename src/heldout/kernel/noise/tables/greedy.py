"""DAWA's own second stage: a binary tree whose levels share the budget by what is asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.tables.counts import BinCounts, ClassCounts
from heldout.kernel.noise.tables.table import laplace_deviation
from heldout.kernel.sealed import Sealed

__all__ = ["GreedyTree", "prefix_gram"]

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
    Refuses:     an epsilon that is not positive; sizes that are not one a bin.
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
            raise ArgumentError("sizes must have one number a bin.")

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
            found = np.zeros((end - first, end - first))
            found[: len(low), : len(low)], found[len(low) :, len(low) :] = low, high
            asked = gram[first:end, first:end]
            share = _best_share(found, asked, cut=len(low), damping=2 ** (-depth / 2))
            found /= (1 - share / _PARTS) ** 2
            together = found.sum(axis=1)
            noise = (_PARTS / share) ** 2 if share else np.inf
            gain = together / (together.sum() + noise)
            nodes.append(_Node(first, end, share, gain))
            return found - np.outer(gain, together)

        covariance = covariance_of(0, self.bins, 0)
        return nodes, covariance

    def weights(self) -> dict[tuple[int, int], Fraction]:
        """The share of epsilon of every node, by its leaves (first, after the last)."""
        left, found = {(0, self.bins): Fraction(1)}, {}
        for node in reversed(self._plan[0]):
            place = node.first, node.end
            found[place] = left[place] * Fraction(node.share, _PARTS)
            if node.end - node.first > 1:
                left |= dict.fromkeys(_halves(*place), left[place] - found[place])
        return found

    def draw(self, exact: Ints) -> ClassCounts:
        nodes, covariance = self._plan
        noisy, estimates = self._noisy(np.append(0, np.cumsum(exact))), np.zeros(self.bins)
        for first, end, share, gain in nodes:
            if share > 0:
                told = noisy[first, end]
                estimates[first:end] += gain * (told - estimates[first:end].sum())
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
        found: dict[tuple[int, int], int] = {}
        for weight, places in alike.items():
            law = DiscreteLaplace(
                scale=self.moved / (weight * self.epsilon), l1_sensitivity=self.moved,
                dimension=len(places),
            )  # fmt: skip
            sums = np.array([below[end] - below[first] for first, end in places], dtype=np.int64)
            found |= dict(zip(places, law.sample(Sealed(sums)).tolist(), strict=True))
        return found

    def describe(self) -> dict[str, object]:
        return {"counts": self.name}


def _best_share(covariance: Floats, gram: Floats, *, cut: int, damping: float) -> int:
    """How many 64ths for the node itself have the least error of the prefix sums.

    Nodes above will tell its sum too, so what it would mend counts less the deeper it lies; the
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
