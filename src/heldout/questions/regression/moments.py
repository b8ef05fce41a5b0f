"""Means of bounded numbers from noisy power sums, with intervals that know their spread."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from heldout.intervals.ratio import NoisyCounts, Ratio

__all__ = ["MomentRatio", "noisy_parts"]


@dataclass(frozen=True, eq=False)
class MomentRatio(Ratio):
    """The mean of a number g in [0, 1] of each row, and a bound on the mean of its square.

    `square` are the weights of g^2 in the parts, where it was summed too; otherwise g^2 <= most g
    is all that is known, `most` the largest g. Where it is known from elsewhere, `around` is the
    mean of (g - 1/2)^2.
    """

    square: Any = None
    most: float = 1.0
    around: float | None = None

    @property
    def noise_deviation(self) -> float:
        """Of the mean, by the noise alone and while the number of rows stands out of it."""
        counts = self.counts
        weights = counts.spread.T @ (self.numerator - self.value * self.denominator)
        rows = max(float(self.denominator @ counts.estimate), counts.unit)
        return float(np.sqrt(2) * counts.scale * np.linalg.norm(weights)) / rows

    @cached_property
    def _square_sum(self) -> float:
        """The sum of g^2, as far up as noise may have hidden it."""
        noise = self.counts.noise(self.square).quantile(0.9)
        return max(float(self.square @ self.counts.estimate), 0.0) + noise

    def _variance(self, r: float, combination: Any, margin: float) -> float:
        """Of the sum over rows of g - r, for rows that are drawn independently with mean r."""
        counts = self.counts
        rows = max(float(self.denominator @ counts.estimate) + margin, counts.unit)
        largest = self.most * r
        if self.square is not None:
            largest = min(self._square_sum / rows, largest)
        if self.around is not None:
            largest = min(self.around + r - 0.25, largest)
        return rows * counts.unit * max(largest - r * r, 0.0)


def noisy_parts(noisy: Any, *, scale: float, unit: float, rows: int | None) -> NoisyCounts:
    """The parts of all rows; the last is what is missing to whole rows where these are public."""
    noisy = np.asarray(noisy, dtype=np.float64)
    if rows is None:
        return NoisyCounts(estimate=noisy, spread=np.eye(len(noisy)), scale=scale, unit=unit)
    return NoisyCounts(
        estimate=np.append(noisy, rows * unit - noisy.sum()),
        spread=np.vstack([np.eye(len(noisy)), -np.ones(len(noisy))]),
        scale=scale,
        unit=unit,
        rows=rows,
    )
