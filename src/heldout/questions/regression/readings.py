"""Mean and spread of the residuals by predicted value, read off a released table for free.

Rows stand in the middle of their cell. An interval covers what the exact counts would have shown
(noise alone) or what the population's would (noise and sampling), by Fieller's argument: for the
true ratio r, top - r bottom is noise, so the interval holds every r for which it is not too large.
Where a band of predictions is nearly empty the interval is wide instead of wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from heldout.intervals.measure import Measure, checked_level
from heldout.questions.regression.readings_noise import tail_quantile
from heldout.questions.regression.table import ResidualTable

__all__ = [
    "ByPrediction",
    "bands",
    "coverage_by_prediction",
    "mean_by_prediction",
    "scale_by_prediction",
    "spread_by_prediction",
]

Bounds = Callable[[float, bool], tuple[Any, Any]]
"""Low and high ends at a level; for noise alone, or for noise and sampling."""

FEWEST_BANDS: Final = 4
MOST_BANDS: Final = 12
SHARP: Final = 0.2
"""Bands are as wide as it takes to know a mean to this part of the residuals' spread, and their
variance to this part of itself."""


@dataclass(frozen=True, eq=False)
class ByPrediction:
    """One number for each band of predicted values, with intervals."""

    name: str
    edges: Any
    values: Any
    rows: Any
    _bounds: Bounds

    @property
    def predicted(self) -> Any:
        """The middle of each band."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Low and high ends by band: sampling and privacy noise, each band for itself."""
        return self._around(level, False)

    def noise_interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Low and high ends by band: privacy noise alone."""
        return self._around(level, True)

    def measure(self, share: Callable[[float], float], *, terms: str) -> Measure:
        """The one number of a reading of the whole table; `share` as in `Measure`."""

        def only(ends: tuple[Any, Any]) -> tuple[float, float]:
            return float(ends[0][0]), float(ends[1][0])

        return Measure(
            float(self.values[0]),
            name=self.name,
            terms=terms,
            noise_interval=lambda level: only(self.noise_interval(level)),
            interval=lambda level: only(self.interval(level)),
            share=share,
        )

    def _around(self, level: float, noise_only: bool) -> tuple[Any, Any]:
        low, high = self._bounds(checked_level(level), noise_only)
        return np.minimum(low, self.values), np.maximum(high, self.values)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        noise_low, noise_high = self.noise_interval(level)
        return {
            "predicted_edges": self.edges.tolist(),
            "values": self.values.tolist(),
            "rows": self.rows.tolist(),
            "level": level,
            "interval": [low.tolist(), high.tolist()],
            "noise_interval": [noise_low.tolist(), noise_high.tolist()],
        }


def bands(table: ResidualTable) -> Any:
    """Column indices at which bands of predictions begin, and the number of columns at the end.

    Bands hold about the same number of rows; the more noise there is, the fewer bands.
    """
    columns = table.noisy.shape[1]
    held = table.density.sum(axis=0)
    total = float(held.sum())
    if columns == 1 or total <= 0:
        return np.array([0, columns])
    middle = _middles(table)
    shares = table.density.sum(axis=1) / total
    mean = float((shares * middle).sum())
    variance = float((shares * (middle - mean) ** 2).sum())
    number = float(MOST_BANDS)
    for weights, size in (
        (middle - mean, variance),
        ((middle - mean) ** 2 - variance, variance**2),
    ):
        # In one of k bands with as many rows each, the sum over rows has the noise's variance/k.
        noise = table.noise_variance(np.broadcast_to(weights[:, None], table.noisy.shape))
        number = min(number, SHARP**2 * size * total**2 / noise if noise > 0 else number)
    number = int(np.clip(number, FEWEST_BANDS, MOST_BANDS))
    below = np.cumsum(held) / total
    places = np.abs(below[None, :-1] - (np.arange(1, number) / number)[:, None]).argmin(axis=1)
    return np.unique([0, *(places + 1), columns])


def mean_by_prediction(table: ResidualTable, *, whole: bool = False) -> ByPrediction:
    """The mean residual of the rows in each band of predictions, or of the `whole` table."""
    banded, middle, unit = _Banded.of(table, whole), _middles(table), _unit(table)
    values, found = banded.ratio(middle[:, None], float(middle[0]), float(middle[-1]))

    def bounds(level: float, noise_only: bool) -> tuple[Any, Any]:
        low, high = found(level, noise_only)
        return unit * low, unit * high

    edges = table.predicted_edges[banded.starts]
    return ByPrediction("mean residual", edges, unit * values, banded.rows, bounds)


def spread_by_prediction(table: ResidualTable, *, whole: bool = False) -> ByPrediction:
    """The standard deviation of the residuals in each band, less the width of a cell (Sheppard)."""
    banded, middle, unit = _Banded.of(table, whole), _middles(table), _unit(table)
    width = np.diff(table.residual_edges / unit)[:, None] ** 2 / 12
    low, high = float(middle[0]), float(middle[-1])
    means, mean_bounds = banded.ratio(middle[:, None], low, high)
    squares = (middle[:, None] - means) ** 2 - width
    values, square_bounds = banded.ratio(squares, -float(width.max()), (high - low) ** 2)

    def bounds(level: float, noise_only: bool) -> tuple[Any, Any]:
        # The mean is not known exactly; squares about another point are larger by its distance.
        below, above = square_bounds(level, noise_only)
        first, last = mean_bounds(level, noise_only)
        least, most = below - ((last - first) / 2) ** 2, above
        return unit * np.sqrt(np.maximum(least, 0.0)), unit * np.sqrt(np.maximum(most, 0.0))

    edges, spread = table.predicted_edges[banded.starts], np.sqrt(np.maximum(values, 0.0))
    return ByPrediction("spread of the residuals", edges, unit * spread, banded.rows, bounds)


def scale_by_prediction(table: ResidualTable) -> ByPrediction:
    """Scale-location: the mean root of the residuals' size, in standard deviations of all."""
    banded, middle = _Banded.of(table), _middles(table)
    shares = table.density.sum(axis=1) / max(float(table.density.sum()), 1e-9)
    mean = float((shares * middle).sum())
    spread = float((shares * (middle - mean) ** 2).sum()) ** 0.5 or 1.0
    sizes = np.sqrt(np.abs(middle - mean) / spread)[:, None]
    values, bounds = banded.ratio(sizes, 0.0, float(sizes.max()))
    edges = table.predicted_edges[banded.starts]
    return ByPrediction("root of the residuals' size", edges, values, banded.rows, bounds)


def coverage_by_prediction(
    table: ResidualTable, low: float, high: float, *, whole: bool = False
) -> ByPrediction:
    """The share of rows whose residual lies from `low` to `high`, in each band of predictions."""
    edges = table.residual_edges
    held = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None)
    banded = _Banded.of(table, whole)
    values, bounds = banded.ratio((held / np.diff(edges))[:, None], 0.0, 1.0)
    found = table.predicted_edges[banded.starts]
    return ByPrediction("coverage", found, values, banded.rows, bounds)


@dataclass(frozen=True, eq=False)
class _Banded:
    """A table's counts by residual cell and band of predictions."""

    starts: Any
    counts: Any
    variance: Any
    density: Any

    @classmethod
    def of(cls, table: ResidualTable, whole: bool = False) -> "_Banded":
        starts = np.array([0, table.noisy.shape[1]]) if whole else bands(table)

        def summed(values: Any) -> Any:
            return np.add.reduceat(values, starts[:-1], axis=1)

        deviation = table.cell_deviation
        variance = summed(deviation**2)
        if table.scale is None:
            # Noise that hangs together may add up in full (Cauchy and Schwarz).
            variance = summed(deviation) ** 2 * deviation.shape[0]
        return cls(starts, summed(table.noisy), variance, summed(table.density))

    @property
    def rows(self) -> Any:
        return self.density.sum(axis=0)

    def ratio(self, weights: Any, low: float, high: float) -> tuple[Any, Bounds]:
        """sum(weights counts)/sum(counts) by band, and its Fieller bounds within [low, high]."""
        weights = np.broadcast_to(weights, self.counts.shape)
        top, bottom = (weights * self.counts).sum(axis=0), self.counts.sum(axis=0)
        rows = self.rows
        values = np.divide(
            (weights * self.density).sum(axis=0), rows, out=np.zeros_like(rows), where=rows > 0
        )
        # The noisy ratio where its bottom is beyond doubt, that of the kept rows elsewhere.
        certain = bottom > 3 * np.sqrt(self.variance.sum(axis=0))
        values = np.clip(np.divide(top, bottom, out=values, where=certain), low, high)

        def bounds(level: float, noise_only: bool) -> tuple[Any, Any]:
            errors = self.variance if noise_only else self.variance + self.density
            quantile = self._quantile(level, (weights - values) ** 2, errors)
            # (top - r bottom)^2 <= quantile^2 sum (weights - r)^2 errors, a parabola in r.
            square = bottom**2 - quantile**2 * errors.sum(axis=0)
            middle = top * bottom - quantile**2 * (weights * errors).sum(axis=0)
            rest = top**2 - quantile**2 * (weights**2 * errors).sum(axis=0)
            root = np.sqrt(np.maximum(middle**2 - square * rest, 0.0))
            known = (square > 0) & certain
            below, above = (
                np.divide(middle + sign * root, square, out=np.full_like(root, end), where=known)
                for sign, end in ((-1, low), (1, high))
            )
            return np.clip(below, low, high), np.clip(above, low, high)

        return values, bounds

    def _quantile(self, level: float, squares: Any, errors: Any) -> Any:
        total = (squares * errors).sum(axis=0)
        fourth = (squares**2 * self.variance**2).sum(axis=0)
        kurtosis = np.divide(3 * fourth, total**2, out=np.zeros_like(total), where=total**2 > 0)
        return np.array([tail_quantile(level, kurtosis=float(each)) for each in kurtosis])


def _unit(table: ResidualTable) -> float:
    """Numbers are reckoned in units of the largest, so that no square can overflow."""
    return float(np.abs(table.residual_edges).max())


def _middles(table: ResidualTable) -> Any:
    edges = table.residual_edges / _unit(table)
    return (edges[:-1] + edges[1:]) / 2
