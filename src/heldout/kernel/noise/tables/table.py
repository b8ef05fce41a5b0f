"""Release noisy counts by label on bins of the public score grid, as every curve method does."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError


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
            raise ArgumentError("edges must rise from 0, one more than there are bins.")
        object.__setattr__(self, "edges", edges)
        for name in ("negatives", "positives"):
            counts = np.asarray(getattr(self, name), dtype=np.float64)
            if counts.shape != (edges.size - 1,):
                raise ArgumentError(f"{name} must have one count a bin.")
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
    """One draw a bin and class, all independent and of one scale."""
    return noise_of([[scale] * bins] * 2)


def noise_of(scales: Sequence[Sequence[Fraction]]) -> TableNoise:
    """One draw a bin and class, all independent, of these scales."""
    by_bin = np.array([[laplace_deviation(scale) for scale in row] for row in scales])
    above = np.sqrt(np.cumsum(by_bin[:, ::-1] ** 2, axis=1)[:, ::-1])
    ordered = sorted(scale for row in scales for scale in row)
    return TableNoise(
        scale=ordered[len(ordered) // 2],
        bin_deviation=by_bin,
        above_deviation=np.pad(above, ((0, 0), (0, 1))),
    )
