"""Mean and spread of the residuals by predicted value, read off a released table for free.

Rows stand in the middle of their cell. An interval covers what the exact counts would have shown
(noise alone) or what the population's would (noise and sampling), by Fieller's argument: for the
true ratio r, top - r bottom is noise, so the interval holds every r for which it is not too large.
Where a band of predictions is nearly empty the interval is wide instead of wrong.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.drawing.words import numbers
from heldout.intervals.measure import Measure, checked_level
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.questions.regression.table import ResidualTable, laplace_deviation
from heldout.questions.regression.tuned import (
    CAPS,
    CUT_FARTHER,
    CUT_SHARP,
    DOUBT,
    FARTHER,
    FEWEST_BANDS,
    LEAST_CHANCE,
    MOST_BANDS,
    OUTER,
    OUTLYING,
    PLAIN_OFFSET,
    SHARP,
    SURE,
    TAIL_DOUBT,
    TAIL_PLACE,
)


def tail_quantile(level: float, *, kurtosis: float = 0.0, of: int = 1) -> float:
    """Return what a standardised sum exceeds in size with probability (1 - level)/of.

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
    """Return how often a standardised sum is larger than this by chance: inverts `tail_quantile`.

    >>> round(tail_chance(1.96), 3), round(tail_chance(2.17, kurtosis=3.0), 3)
    (0.05, 0.05)
    """
    low, high = 0.0, LEAST_CHANCE  # of -log10 of the chance, which is never said to be smaller
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

    def __init__(self, table: ResidualTable, weights: Floats) -> None:
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


Bounds = Callable[[float, bool], tuple[Any, Any]]
"""Low and high ends at a level; for noise alone, or for noise and sampling."""


@dataclass(frozen=True, eq=False)
class ByPrediction:
    """One number for each band of predicted values, with intervals."""

    name: str
    edges: Floats
    values: Floats
    rows: Floats
    _bounds: Bounds

    @property
    def predicted(self) -> Floats:
        """The middle of each band."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high ends by band: sampling and privacy noise, each band for itself."""
        return self._around(level, False)

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high ends by band: privacy noise alone."""
        return self._around(level, True)

    def measure(self, share: Callable[[float], float], *, terms: str) -> Measure:
        """The one number of a reading of the whole table; `share` as in `Measure`."""

        def only(ends: tuple[Floats, Floats]) -> tuple[float, float]:
            return float(ends[0][0]), float(ends[1][0])

        return Measure(
            float(self.values[0]),
            name=self.name,
            terms=terms,
            noise_interval=lambda level: only(self.noise_interval(level)),
            interval=lambda level: only(self.interval(level)),
            share=share,
        )

    def _around(self, level: float, noise_only: bool) -> tuple[Floats, Floats]:
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


def bands(table: ResidualTable) -> Ints:
    """Column indices at which bands of predictions begin, and the number of columns at the end.

    Bands hold about the same number of rows; the more noise there is, the fewer bands.
    """
    columns = table.noisy.shape[1]
    rows = table.density.sum(axis=0)
    total = float(rows.sum())
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
    below = np.cumsum(rows) / total
    places = np.abs(below[None, :-1] - (np.arange(1, number) / number)[:, None]).argmin(axis=1)
    return np.unique([0, *(places + 1), columns])


def mean_by_prediction(table: ResidualTable, *, whole: bool = False) -> ByPrediction:
    """The mean residual of the rows in each band of predictions, or of the `whole` table."""
    banded, middle, unit = _Banded.of(table, whole), _middles(table), _unit(table)
    values, ends = banded.ratio(middle[:, None], float(middle[0]), float(middle[-1]))

    def bounds(level: float, noise_only: bool) -> tuple[Floats, Floats]:
        low, high = ends(level, noise_only)
        return unit * low, unit * high

    edges = table.predicted_edges[banded.starts]
    return ByPrediction("mean residual", edges, unit * values, banded.rows, bounds)


def spread_by_prediction(table: ResidualTable, *, whole: bool = False) -> ByPrediction:
    """The standard deviation of residuals in each band, minus the width of a cell (Sheppard)."""
    banded, middle, unit = _Banded.of(table, whole), _middles(table), _unit(table)
    width = np.diff(table.residual_edges / unit)[:, None] ** 2 / 12
    low, high = float(middle[0]), float(middle[-1])
    means, mean_bounds = banded.ratio(middle[:, None], low, high)
    squares = (middle[:, None] - means) ** 2 - width
    values, square_bounds = banded.ratio(squares, -float(width.max()), (high - low) ** 2)

    def bounds(level: float, noise_only: bool) -> tuple[Floats, Floats]:
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
    overlap = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None)
    banded = _Banded.of(table, whole)
    values, bounds = banded.ratio((overlap / np.diff(edges))[:, None], 0.0, 1.0)
    band_edges = table.predicted_edges[banded.starts]
    return ByPrediction("coverage", band_edges, values, banded.rows, bounds)


@dataclass(frozen=True, eq=False)
class _Banded:
    """A table's counts by residual cell and band of predictions."""

    starts: Ints
    counts: Floats
    variance: Floats
    density: Floats

    @classmethod
    def of(cls, table: ResidualTable, whole: bool = False) -> "_Banded":
        starts = np.array([0, table.noisy.shape[1]]) if whole else bands(table)

        def summed(values: Floats) -> Floats:
            return np.add.reduceat(values, starts[:-1], axis=1)

        deviation = table.cell_deviation
        variance = summed(deviation**2)
        if table.scale is None:
            # Noise that hangs together may add up in full (Cauchy and Schwarz).
            variance = summed(deviation) ** 2 * deviation.shape[0]
        return cls(starts, summed(table.noisy), variance, summed(table.density))

    @property
    def rows(self) -> Floats:
        result: Floats = self.density.sum(axis=0)
        return result

    def ratio(self, weights: Floats, low: float, high: float) -> tuple[Floats, Bounds]:
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

        def bounds(level: float, noise_only: bool) -> tuple[Floats, Floats]:
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

    def _quantile(self, level: float, squares: Floats, errors: Floats) -> Floats:
        total = (squares * errors).sum(axis=0)
        fourth = (squares**2 * self.variance**2).sum(axis=0)
        kurtosis = np.divide(3 * fourth, total**2, out=np.zeros_like(total), where=total**2 > 0)
        return np.array([tail_quantile(level, kurtosis=float(excess)) for excess in kurtosis])


def _unit(table: ResidualTable) -> float:
    """Numbers are reckoned in units of the largest, so that no square can overflow."""
    return float(np.abs(table.residual_edges).max())


def _middles(table: ResidualTable) -> Floats:
    edges = table.residual_edges / _unit(table)
    return (edges[:-1] + edges[1:]) / 2


def offset(table: ResidualTable) -> str:
    """A sentence about the mean residual if it is plainly not 0, else nothing."""
    mean, spread = (read(table, whole=True) for read in (mean_by_prediction, spread_by_prediction))
    value = float(mean.values[0])
    (low,), (high,) = mean.interval(SURE)
    nearest = max(float(low), -float(high))
    bound = float(abs(table.residual_edges).max())
    beyond = FARTHER * bound * max(table.outside, 0.0) / max(table.rows, 1)
    # Rows stand in the middle of their cell, and may all lie at one edge of it.
    half_cell = float(np.diff(table.residual_edges).max()) / 2
    if nearest - beyond - half_cell <= PLAIN_OFFSET * float(spread.values[0]):
        return ""
    (low,), (high,) = mean.interval(0.95)
    show = numbers(table.residual_edges)
    direction = "low" if value > 0 else "high"
    low, high = sorted((abs(float(low)), abs(float(high))))
    return (
        f"predictions are too {direction} by about {show(abs(value))} on average "
        f"({show(low)} to {show(high)})"
    )


def unexplained(
    table: ResidualTable,
    *,
    across: Floats,
    down: Floats,
    whole: Floats,
    largest: float,
    sign: float,
) -> float:
    """Return how many deviations of the sum of A B are left, if any.

    `across` is A by predicted cell, `whole` the residual minus its mean by cell, `down` the same
    with a weight by which cells that hold mostly noise count less. The sum without weights is
    judged alone if noise leaves it sharp, else either will do, and what the weights take off pulls
    like the rows beyond. `largest` is a correlation that no cut makes, `sign` that of the lean.
    """
    density = table.density
    beyond = max(table.outside, 0.0) + 2 * table.outside_noise
    cut = beyond * float(np.abs(whole).max())
    weighed = float((density * np.abs(whole - down)).sum())
    squares = float((across**2 * density.sum(axis=0)).sum())
    deviation = (squares / max(float(density.sum()), 1e-9)) ** 0.5
    deviations = []
    if table.tails is not None:
        counted, spread = _with_tails(table, across, whole, deviation)
        if spread <= CUT_SHARP * (squares * float((whole**2 * density).sum())) ** 0.5:
            return counted
        typical = (float((whole**2 * density).sum()) / max(float(density.sum()), 1e-9)) ** 0.5
        deviations.append(counted)
        deviations += [
            _capped(table, across, whole, deviation, sign=sign, cap=cap * typical) for cap in CAPS
        ]
    for values, hidden in ((whole, cut), (down, cut + weighed)):
        seen = Sum(table, across[None, :] * values)
        size = (squares * float((values**2 * density).sum())) ** 0.5
        lean = max(_against(table, across, end, seen.value) for end in _ends(density, whole))
        pull = min(min(CUT_FARTHER * lean, deviation) * hidden, largest * size)
        spread = seen.variance(noise_only=False) ** 0.5
        deviations.append((abs(seen.value) - pull) / spread if spread > 0 else 0.0)
        if spread <= CUT_SHARP * size:
            break
    return max(deviations)


def _with_tails(
    table: ResidualTable, across: Floats, whole: Floats, deviation: float
) -> tuple[float, float]:
    """Return the same of the sum that counts the rows a little beyond the bounds as well, and its
    spread.

    They stand where tails are denser, at TAIL_PLACE of their cell, and may be TAIL_DOUBT of it off
    on average; rows further out pull like a deviation of A at the cell's end, and the noise of
    their count belongs to the spread.
    """
    assert table.tails is not None
    assert table.scale is not None
    places, reach = _tail_places(table, whole)
    half, noise = reach - float(np.abs(whole).max()), laplace_deviation(table.scale)
    weights = places[:, None] * across[None, :]
    seen = Sum(table, across[None, :] * whole)
    value = seen.value + float((weights * table.tails).sum())
    rows = np.maximum(table.tails.sum(axis=1), 0.0)
    typical = float(rows @ places**2) * deviation**2
    spread = (
        seen.variance(noise_only=False)
        + noise**2 * (float((weights**2).sum()) + (reach * deviation) ** 2)
        + typical
    ) ** 0.5
    far = max(table.outside - float(table.tails.sum()), 0.0)
    hidden = TAIL_DOUBT * half * float(rows.sum()) + far * reach
    return (abs(value) - deviation * hidden) / spread if spread > 0 else 0.0, spread


def _capped(
    table: ResidualTable,
    across: Floats,
    whole: Floats,
    deviation: float,
    *,
    sign: float,
    cap: float,
) -> float:
    """Return the same of a sum in which no row pulls harder than one `cap` from the mean.

    What lies beyond the cap is counted too: it pulls like a deviation of A, and the noise of that
    count belongs to the spread. Cells that are far out, by the cap or OUTLYING deviations, count
    only if they pull against the lean, which has this sign. No cell holds fewer rows than none, so
    what the others hold could only strengthen it: without them the sum is too low if anything, and
    has half of their noise.
    """
    assert table.tails is not None
    assert table.scale is not None
    places, reach = _tail_places(table, whole)
    noise = laplace_deviation(table.scale)
    inside = across[None, :] * np.clip(whole, -cap, cap)
    weights = across[None, :] * np.clip(places, -cap, cap)[:, None]
    density = table.density
    squared = float((whole**2 * density).sum()) / max(float(density.sum()), 1e-9)
    far = min(cap, OUTLYING * squared**0.5)
    inside = np.where((np.abs(whole) > far) & (sign * inside > 0), 0.0, inside)
    weights = np.where(sign * weights > 0, 0.0, weights)
    seen = Sum(table, inside)
    value = seen.value + float((weights * table.tails).sum())
    excess, of_tails = (np.maximum(np.abs(at) - cap, 0.0) for at in (whole, places))
    furthest = max(reach - cap, 0.0)
    hidden = (
        float((excess * table.noisy).sum())
        + float((of_tails[:, None] * table.tails).sum())
        + furthest * (table.outside - float(table.tails.sum()))
    )
    squares = float((excess**2).sum()) + furthest**2
    squares += float((of_tails**2).sum()) * table.tails.shape[1]
    rows = np.maximum(table.tails.sum(axis=1), 0.0)
    variance = (
        seen.variance(noise_only=False)
        + noise**2 * (float((weights**2).sum()) + deviation**2 * squares)
        + float(rows @ np.minimum(np.abs(places), cap) ** 2) * deviation**2
    )
    pull = deviation * max(hidden, 0.0)
    return (sign * value - pull) / math.sqrt(variance) if variance > 0 else 0.0


def _tail_places(table: ResidualTable, whole: Floats) -> tuple[Floats, float]:
    """Return where rows a little beyond the lower and the upper bound stand, and how far rows that
    lie further out count, both from the mean."""
    edges = table.residual_edges / np.abs(table.residual_edges).max()
    half = float(edges[-1] - edges[0]) / 2
    centre = float((edges[0] + edges[1]) / 2 - whole[0, 0])
    places = np.array([edges[0] - TAIL_PLACE * half, edges[-1] + TAIL_PLACE * half]) - centre
    return places, half + float(np.abs(whole).max())


def _ends(density: Floats, whole: Floats) -> list[Floats]:
    """Return the residuals of cells at the lower and the upper end that hold OUTER of the rows."""
    ends = []
    for sizes in (-whole, whole):
        order = np.unique(sizes)[::-1]
        beyond = np.array([float(density[sizes >= size].sum()) for size in order])
        least = order[int(np.argmax(beyond >= OUTER * beyond[-1]))]
        ends.append(np.where(sizes >= least, whole, 0.0))
    return ends


def _against(table: ResidualTable, across: Floats, end: Floats, value: float) -> float:
    """Return how far A of rows, weighed by residuals, may lie on the other side of a sum."""
    lean = Sum(table, across[None, :] * end)
    doubt: float = DOUBT * lean.variance(noise_only=False) ** 0.5
    weight = float((table.density * np.abs(end)).sum())
    return max(doubt - float(np.sign(value)) * lean.value, 0.0) / max(weight, 1e-9)


_EDGE = 1e-6  # a share of 0 or 1 has no normal quantile


@dataclass(frozen=True, eq=False)
class QuantilePlot:
    """A QQ plot: at each residual, which normal quantile the share of rows below it has.

    Shares are of the rows within the bounds of the table. Normal residuals lie on the line through
    the quartiles.
    """

    residual: Floats
    """Edges of the cells, where shares are known without any assumption."""
    share: Floats
    """Of the rows within the bounds, below each of them."""
    _counts: tuple[Floats | float, ...]
    """Noisy counts below and above, their variances, and the rows."""

    @property
    def theoretical(self) -> Floats:
        """Normal quantiles of the shares."""
        return _quantile(self.share)

    @property
    def line(self) -> tuple[float, float]:
        """Centre and spread of the normal law with the same quartiles."""
        from scipy.special import ndtri

        first, third = np.interp([0.25, 0.75], self.share, self.residual)
        return float((first + third) / 2), float((third - first) / (2 * ndtri(0.75)))

    def interval(
        self, level: float = 0.95, *, noise_only: bool = False, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Low and high ends of the normal quantiles, each for itself or all at once."""
        below, above, below_variance, above_variance, rows = self._counts
        low, high = ratio_bounds(
            below,
            above,
            top_variance=below_variance,
            rest_variance=above_variance,
            rows=0.0 if noise_only else rows,
            quantile=single_quantile(
                checked_level(level), of=len(self.share) if simultaneous else 1
            ),
        )
        return _quantile(np.minimum(low, self.share)), _quantile(np.maximum(high, self.share))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        return {
            "residual": self.residual.tolist(),
            "theoretical": self.theoretical.tolist(),
            "level": level,
            "interval": [low.tolist(), high.tolist()],
        }


def quantile_plot(table: ResidualTable) -> QuantilePlot:
    """From the noisy counts by residual cell, whatever the prediction."""
    noisy, variance = table.noisy.sum(axis=1), (table.cell_deviation**2).sum(axis=1)
    if table.scale is None:  # noise that hangs together may add up in full
        variance = table.cell_deviation.sum(axis=1) ** 2 * table.noisy.shape[0]
    rows = np.cumsum(table.density.sum(axis=1))
    total = max(float(rows[-1]), 1e-9)
    below, below_variance = np.cumsum(noisy)[:-1], np.cumsum(variance)[:-1]
    counts = (
        below,
        noisy.sum() - below,
        below_variance,
        variance.sum() - below_variance,
        total + np.sqrt(variance.sum()),
    )
    return QuantilePlot(table.residual_edges[1:-1], rows[:-1] / total, counts)


def _quantile(share: Floats) -> Floats:
    from scipy.special import ndtri

    result: Floats = ndtri(np.clip(share, _EDGE, 1 - _EDGE))
    return result
