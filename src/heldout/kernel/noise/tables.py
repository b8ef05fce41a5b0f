"""Noisy counts of one class on public bins: one by one, by a tree, or by a wavelet."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.statistic import Sealed


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounts:
    """Noisy counts of one class and what is public about their noise."""

    counts: Floats
    bin_deviation: Floats
    above_deviation: Floats
    scale: Fraction | None = None
    unbiased: bool = True


@dataclass(frozen=True, kw_only=True)
class BinCounts(ABC):
    """Noise for the counts of one class in at most `bins` bins.

    `epsilon` is what the class may lose when `moved` rows, leaving and arriving together, tell
    neighbours apart. Two classes drawn so lose `2 epsilon` if it is charged by class, and
    `epsilon` if it is charged by row; proofs/joint-table.md.
    """

    name: ClassVar[str]
    bins: int
    epsilon: Fraction
    moved: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.bins < 1 or self.moved < 1:
            raise ArgumentError("epsilon, bins and rows moved must be positive.")

    @abstractmethod
    def events(self, *, classes: int) -> tuple[Event, ...]:
        """Return what is booked for one class, or for both of a joint table."""

    @abstractmethod
    def draw(self, exact: Ints) -> ClassCounts:
        """Noisy counts from exact ones, one or more and at most `bins` of them."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Public parameters."""


@dataclass(frozen=True, kw_only=True)
class LinearCounts(BinCounts):
    """Whole-numbered linear queries, discrete Laplace of one scale on each, and a fit to them.

    A row is in one bin, and a bin has the weights of its column; `weight` is the largest L1 norm
    of a column, so the answers move by at most `moved * weight`.
    """

    @property
    @abstractmethod
    def weight(self) -> int:
        """The largest L1 norm of a column of the queries."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Return how many queries there are for `bins` bins."""

    @abstractmethod
    def queries(self, exact: Ints) -> Ints:
        """Exact whole-numbered answers."""

    @abstractmethod
    def solve(self, answers: Ints, *, bins: int) -> Floats:
        """Counts by bin from noisy answers."""

    @abstractmethod
    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        """For answers with noise of deviation 1: that of each bin and of all above each edge."""

    @property
    def scale(self) -> Fraction:
        return self.moved * self.weight / self.epsilon

    def events(self, *, classes: int) -> tuple[Event, ...]:
        mechanism = DiscreteLaplace(
            scale=self.scale,
            l1_sensitivity=self.moved * self.weight,
            dimension=classes * self.dimension,
        )
        return (mechanism.event(),)

    def draw(self, exact: Ints) -> ClassCounts:
        bins = len(exact)
        answers = self.queries(np.asarray(exact, dtype=np.int64))
        noisy = DiscreteLaplace(
            scale=self.scale, l1_sensitivity=self.moved * self.weight, dimension=len(answers)
        ).sample(Sealed(answers))
        one = laplace_deviation(self.scale)
        bin_deviation, above_deviation = self.deviations(bins=bins)
        return ClassCounts(
            counts=self.solve(noisy, bins=bins),
            bin_deviation=one * bin_deviation,
            above_deviation=one * above_deviation,
            scale=self.scale if self.weight == 1 else None,
        )

    def describe(self) -> dict[str, object]:
        return {"counts": self.name, "scale": str(self.scale), "queries": self.dimension}


@dataclass(frozen=True, kw_only=True)
class Flat(LinearCounts):
    """One noisy count per bin.

    Claim:       pure DP, epsilon, for one class.                        [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in one bin, so `moved` rows move the counts by `moved` in all.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, histograms.
    Cost:        8 microseconds per bin.

    >>> Flat(bins=8, epsilon=Fraction(1, 2), moved=2).scale
    Fraction(4, 1)
    """

    name: ClassVar[str] = "flat"

    @property
    def weight(self) -> int:
        return 1

    @property
    def dimension(self) -> int:
        return self.bins

    def queries(self, exact: Ints) -> Ints:
        return exact

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return answers.astype(np.float64)

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        return np.ones(bins), np.sqrt(np.arange(bins, -1, -1.0))


@dataclass(frozen=True, kw_only=True)
class Cumulative(LinearCounts):
    """A noisy count of the rows above each threshold, and of all rows.

    Claim:       pure DP, epsilon, for one class.                        [claim: joint-table]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row of the highest bin is in each of the `bins` counts.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive.
    Reference:   the Laplace baseline of Stoddard, Chen and Machanavajjhala 2014, section 4.2. They
                 take sensitivity 2t + 1 for t thresholds; a row is in one class, so that t + 1 is
                 enough for add-remove, and 2t + 2 for replace-one.
    Cost:        8 microseconds per bin.

    >>> Cumulative(bins=11, epsilon=Fraction(1), moved=2).scale
    Fraction(22, 1)
    """

    name: ClassVar[str] = "cumulative"

    @property
    def weight(self) -> int:
        return self.bins

    @property
    def dimension(self) -> int:
        return self.bins

    def queries(self, exact: Ints) -> Ints:
        return np.cumsum(exact[::-1])[::-1]

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return -np.diff(answers.astype(np.float64), append=0.0)

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        by_bin = np.full(bins, np.sqrt(2.0))
        by_bin[-1] = 1.0
        return by_bin, np.append(np.ones(bins), 0.0)


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
    Sensitivity: a row is in one node per level: the height.
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


def haar(exact: Ints) -> Ints:
    """The total, then for each node of the binary tree, root first, left sum minus right sum.

    >>> haar(np.array([5, 1, 2, 0])).tolist()
    [8, 4, 4, 2]
    """
    sums, coefficients = exact, []
    while len(sums) > 1:
        left, right = sums[::2], sums[1::2]
        coefficients.append(left - right)
        sums = left + right
    return np.concatenate([sums, *coefficients[::-1]])


def inverse_haar(coefficients: Ints | Floats) -> Floats:
    """Counts from coefficients.

    >>> inverse_haar(np.array([8, 4, 4, 2])).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    sums = np.asarray(coefficients[:1], dtype=np.float64)
    while len(sums) < len(coefficients):
        differences = coefficients[len(sums) : 2 * len(sums)]
        sums = np.stack([sums + differences, sums - differences], axis=1).ravel() / 2
    return sums


@dataclass(frozen=True, kw_only=True)
class Wavelet(LinearCounts):
    """Discrete Laplace on the whole-numbered Haar coefficients, counts by the inverse transform.

    Privelet gives a coefficient (mean of the left half minus mean of the right half)/2 noise in
    proportion to 1/leaves of its node. Multiplied by the leaves, the coefficient is left sum minus
    right sum, a whole number, and the noise is the same on all of them.

    Claim:       pure DP, epsilon, for one class.                           [claim: privelet]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is in the total and in one node per level, with +1 or -1: 1 + levels.
    Numerics:    exact: whole coefficients; the inverse is post-processing.
    Refuses:     an epsilon that is not positive.
    Reference:   Xiao, Wang and Gehrke 2010, with generalised sensitivity 1 + log2 bins.
    Cost:        8 microseconds per bin, bins filled up to a power of two.

    >>> from fractions import Fraction
    >>> Wavelet(bins=1000, epsilon=Fraction(1), moved=2).scale
    Fraction(22, 1)
    """

    name: ClassVar[str] = "wavelet"

    @property
    def levels(self) -> int:
        return (self.bins - 1).bit_length()

    @property
    def weight(self) -> int:
        return 1 + self.levels

    @property
    def dimension(self) -> int:
        return int(2**self.levels)

    def queries(self, exact: Ints) -> Ints:
        return haar(np.pad(exact, (0, self.dimension - len(exact))))

    def solve(self, answers: Ints, *, bins: int) -> Floats:
        return inverse_haar(answers)[:bins]

    def deviations(self, *, bins: int) -> tuple[Floats, Floats]:
        edges = np.arange(bins + 1.0)[:, None]
        leaves = 2.0 ** np.arange(1, self.levels + 1)
        # The sum of the bins from an edge up is the sum below the end minus that below the edge;
        # each weighs the coefficient of the node it falls in, and they may fall in the same one.
        low, high = _tent(edges / leaves), _tent(bins / leaves)
        same = np.floor(edges / leaves) == np.floor(bins / leaves)
        above = np.where(same, (high - low) ** 2, high**2 + low**2).sum(axis=1)
        above += ((bins - edges[:, 0]) / self.dimension) ** 2
        one = (1 / leaves**2).sum() + self.dimension**-2.0
        return np.full(bins, np.sqrt(one)), np.sqrt(above)


def _tent(position: Floats) -> Floats:
    """Weight of a node's coefficient in the sum of its leaves below a place inside it."""
    part = position - np.floor(position)
    return np.minimum(part, 1 - part)


# --- Noisy tables ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TableNoise:
    """The noise of a table, as far as it is public; what a band is made of.

    Row 0 of an array is the negatives', row 1 the positives'. Noise of different classes is
    independent in every method; noise of different bins is so only where `scale` is given.
    """

    scale: Fraction | None
    """Independent discrete Laplace in each bin of each class, of this scale or, where they differ,
    of this one in the middle; None if it is not."""
    bin_deviation: Floats
    """Shape (2, bins): standard deviation of the noise of each bin."""
    above_deviation: Floats
    """Shape (2, bins + 1): that of the noise of the count at or above edges[i]; 0 at the top."""
    unbiased: bool = True
    """False if an estimate also has an error that no noise law describes (buckets of DAWA,
    interpolation between quantiles)."""

    @property
    def scales(self) -> Floats:
        """That of each bin, shape (2, bins), by its deviation; where bins are independent."""
        result: Floats = 0.5 / np.arcsinh(np.sqrt(0.5) / np.maximum(self.bin_deviation, 1e-150))
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """Noisy counts in bins of the public grid; bin i holds grid points edges[i] .. edges[i+1]-1.

    Estimates are after the method's own consistency step and before any that makes a curve
    monotone, so a bin may be below zero. Everything read off a table is free.

    >>> table = NoisyTable(edges=[0, 2, 5], negatives=[7, -1], positives=[1, 4],
    ...                    noise=independent_noise(Fraction(2), bins=2), rows=None)
    >>> table.bins, table.above(table.positives).tolist()
    (2, [5.0, 4.0, 0.0])
    """

    edges: Ints
    negatives: Floats
    positives: Floats
    noise: TableNoise
    rows: int | None = None

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.int64)
        if edges.ndim != 1 or edges.size < 2 or edges[0] != 0 or (np.diff(edges) <= 0).any():
            raise ArgumentError("edges must rise from 0, and be one more than the bins.")
        object.__setattr__(self, "edges", edges)
        for name in ("negatives", "positives"):
            counts = np.asarray(getattr(self, name), dtype=np.float64)
            if counts.shape != (edges.size - 1,):
                raise ArgumentError(f"{name} must have one count per bin.")
            object.__setattr__(self, name, counts)

    @property
    def bins(self) -> int:
        return len(self.edges) - 1

    @property
    def points(self) -> int:
        """Points of the public grid."""
        return int(self.edges[-1])

    @staticmethod
    def above(counts: Floats) -> Floats:
        """Counts at or above each edge, lowest edge first; the last is 0."""
        return np.append(np.cumsum(np.asarray(counts, dtype=np.float64)[::-1])[::-1], 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "edges": self.edges.tolist(),
            "negatives": self.negatives.tolist(),
            "positives": self.positives.tolist(),
            "rows": self.rows,
        }

    def tolist(self) -> dict[str, Any]:
        """Return what a release prints as its noisy numbers."""
        return self.as_dict()


def laplace_deviation(scale: Fraction) -> float:
    """Standard deviation of discrete Laplace noise: sqrt(2p)/(1-p) with p = exp(-1/scale).

    >>> round(laplace_deviation(Fraction(10)), 3)
    14.136
    """
    p = np.exp(-1.0 / float(scale))
    return float(np.sqrt(2 * p) / -np.expm1(-1.0 / float(scale)))


def independent_noise(scale: Fraction, *, bins: int) -> TableNoise:
    """One draw per bin and class, all independent and of one scale."""
    return noise_of([[scale] * bins] * 2)


def noise_of(scales: Sequence[Sequence[Fraction]]) -> TableNoise:
    """One draw per bin and class, all independent, of these scales."""
    by_bin = np.array([[laplace_deviation(scale) for scale in row] for row in scales])
    above = np.sqrt(np.cumsum(by_bin[:, ::-1] ** 2, axis=1)[:, ::-1])
    ordered = sorted(scale for row in scales for scale in row)
    return TableNoise(
        scale=ordered[len(ordered) // 2],
        bin_deviation=by_bin,
        above_deviation=np.pad(above, ((0, 0), (0, 1))),
    )
