"""How far a weighted sum of noisy counts may stray: the tail between normal and Laplace."""

import math
from typing import Any

import numpy as np

from heldout.intervals.measure import checked_level
from heldout.questions.regression.table import ResidualTable

__all__ = ["Sum", "tail_chance", "tail_quantile"]


def tail_quantile(level: float, *, kurtosis: float = 0.0, of: int = 1) -> float:
    """What a standardised sum exceeds in size with probability (1 - level)/of.

    A sum of many Laplace noises is nearly normal; a few leave it with excess kurtosis, for which
    Cornish and Fisher's term pays. A single one (excess kurtosis 3) is Laplace.

    >>> round(tail_quantile(0.95), 2), round(tail_quantile(0.95, kurtosis=3.0), 2)
    (1.96, 2.17)
    """
    from scipy.special import ndtri

    error = (1 - checked_level(level)) / of
    z = float(-ndtri(error / 2))
    stretched = z + max(z**3 - 3 * z, 0.0) * min(max(kurtosis, 0.0), 3.0) / 24
    if kurtosis <= 0:
        return z
    # Never below what a single Laplace noise needs if the sum is little else.
    single = -math.log(error) / math.sqrt(2)
    part = min(kurtosis / 3, 1.0)
    return max(stretched, z + part * (single - z))


def tail_chance(deviations: float, *, kurtosis: float = 0.0) -> float:
    """How often a standardised sum exceeds this in size by chance: the inverse of `tail_quantile`.

    >>> round(tail_chance(1.96), 3), round(tail_chance(2.17, kurtosis=3.0), 3)
    (0.05, 0.05)
    """
    low, high = 0.0, 15.0  # of -log10 of the chance, which is never said to be smaller
    size = abs(deviations)
    for _ in range(50):
        middle = (low + high) / 2
        if tail_quantile(1 - 10**-middle, kurtosis=kurtosis) < size:
            low = middle
        else:
            high = middle
    return float(10**-low)


class Sum:
    """A weighted sum of a table's noisy counts: its value, and the variance of both its errors."""

    def __init__(self, table: ResidualTable, weights: Any) -> None:
        weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), table.noisy.shape)
        self.value = float((weights * table.noisy).sum())
        self.noise_variance = table.noise_variance(weights)
        self.sampling_variance = float((weights**2 * table.density).sum())
        # The noise's part of the kurtosis is free of units; so is this, and cannot overflow.
        parts = (weights * table.cell_deviation) ** 2
        most = float(parts.max(initial=0.0))
        scaled = parts / most if most > 0 else parts
        noise = float(scaled.sum())
        self._noise_kurtosis = 3 * float((scaled**2).sum()) / noise**2 if noise > 0 else 0.0
        self._together = table.scale is None

    def variance(self, *, noise_only: bool) -> float:
        return self.noise_variance + (0.0 if noise_only else self.sampling_variance)

    def kurtosis(self, *, noise_only: bool) -> float:
        """Excess kurtosis of the error: 3 for one Laplace noise, 0 for a normal one."""
        variance = self.variance(noise_only=noise_only)
        if self._together:
            return 3.0
        return self._noise_kurtosis * (self.noise_variance / variance) ** 2 if variance > 0 else 0.0

    def half_width(self, level: float, *, noise_only: bool, of: int = 1) -> float:
        kurtosis = self.kurtosis(noise_only=noise_only)
        spread = math.sqrt(self.variance(noise_only=noise_only))
        return tail_quantile(level, kurtosis=kurtosis, of=of) * spread
