"""A noisy table of rows by predicted value and residual, and what follows from it for free."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from heldout.arguments import as_edges, as_number, as_numbers, as_whole, shown
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.examples import uniform
from heldout.intervals.joint import simplex, whole_numbers


def smoothed(noisy: Floats, *, deviation: float, total: float) -> Floats:
    """Counts not below zero that add up to `total`, without what looks like noise.

    The table is written as a sum of cosines. Those of like frequencies form blocks, 0, 1, 2-3,
    4-7, ... along each axis, and each block is shrunk by the share of its energy that noise of
    this `deviation` a cell would have (James and Stein). A pattern stays; what is as rough as the
    noise goes.
    """
    noisy = np.asarray(noisy, dtype=np.float64)
    down, across = cosines(noisy.shape[0]), cosines(noisy.shape[1])
    waves = down @ noisy @ across.T
    blocks = 100 * octaves(noisy.shape[0])[:, None] + octaves(noisy.shape[1])[None, :]
    for block in np.unique(blocks)[1:]:  # the first is the mean
        inside = blocks == block
        energy, size = float((waves[inside] ** 2).sum()), int(inside.sum())
        # Size - 2 is best for many; a block of one or two is shrunk as well.
        expected = max(size - 2, 0.7 * size) * deviation**2
        waves[inside] *= max(0.0, 1 - expected / energy) if energy > 0 else 0.0
    return simplex(down.T @ waves @ across, total=total)


def cosines(size: int) -> Floats:
    """The orthonormal cosine transform as a matrix.

    >>> bool(np.allclose(cosines(5) @ cosines(5).T, np.eye(5)))
    True
    """
    frequency, place = np.arange(size)[:, None], np.arange(size)[None, :]
    matrix = np.sqrt(2 / size) * np.cos(np.pi * (place + 0.5) * frequency / size)
    matrix[0] = np.sqrt(1 / size)
    return np.asarray(matrix)


def octaves(size: int) -> Floats:
    """The block of each frequency.

    >>> octaves(6).tolist()
    [0, 1, 2, 2, 3, 3]
    """
    return np.ceil(np.log2(1 + np.arange(size))).astype(np.int64)


Interval = tuple[float, float]
_MOST = 2.0**60  # rows: sums of them stay whole numbers


class Bounds(NamedTuple):
    """The rectangle that a plot shows; public once it is released."""

    predicted: Interval
    residual: Interval


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualTable:
    """Noisy counts of rows by residual (first axis) and predicted value (second axis).

    Cell (i, j) holds the rows with residual in [residual_edges[i], residual_edges[i + 1]) and
    predicted value in [predicted_edges[j], predicted_edges[j + 1]). Nothing here touches rows.

    >>> table = ResidualTable(predicted_edges=[0, 1, 2], residual_edges=[-1, 0, 1],
    ...                       noisy=[[40, 9], [38, -1]], outside=4.0, scale=Fraction(2), rows=90)
    >>> table.counts.sum(), bool((table.counts >= 0).all())
    (np.int64(86), True)
    """

    predicted_edges: Floats
    residual_edges: Floats
    noisy: Floats
    """Shape (residual cells, predicted cells): counts with noise, as drawn; may be below zero."""
    outside: float
    """The noisy count of rows beyond the bounds."""
    rows: int
    """The number of rows: public, or noisy with the scale `rows_scale`."""
    scale: Fraction | None
    """Independent discrete Laplace noise of this scale in each cell and in `outside`; None if the
    noise of cells hangs together (DAWA), and then see `deviation`."""
    rows_scale: Fraction | None = None
    """Scale of the discrete Laplace noise of `rows`, independent of the rest; None: public."""
    deviation: Floats | None = None
    """Standard deviation of the noise of each cell, for a scale of None."""
    outside_scale: Fraction | None = None
    """Scale of the noise of `outside`, where it is not `scale`."""
    tails: Floats | None = None
    """Noisy counts of the rows beyond the lower and the upper bound, no further than half the width
    between the bounds, by predicted cell; also in `outside`. None where nobody counted them."""
    unbiased: bool = True
    """False if a cell also has an error that no noise law describes (buckets of DAWA)."""

    def __post_init__(self) -> None:
        for name in ("predicted_edges", "residual_edges"):
            object.__setattr__(self, name, as_edges(getattr(self, name), name=name))
        object.__setattr__(self, "noisy", as_numbers(self.noisy, name="noisy"))
        if self.noisy.shape != (self.residual_edges.size - 1, self.predicted_edges.size - 1):
            raise ArgumentError("noisy must have one count for each residual and predicted cell.")
        if not np.isfinite(self.noisy).all():
            raise ArgumentError("noisy must be finite. Mend the counts.")
        for name in ("outside", "rows"):
            number = as_number(getattr(self, name))
            if not abs(number) <= _MOST:  # NaN is refused too
                raise ArgumentError(f"{name} must be a number of rows, at most {_MOST:g}.")
            object.__setattr__(self, name, number if name == "outside" else round(number))
        if self.scale is not None and not 0 < as_number(self.scale) <= _MOST:
            raise ArgumentError(f"scale must be a positive number, got {shown(self.scale)}.")

    @property
    def bounds(self) -> Bounds:
        predicted, residual = self.predicted_edges, self.residual_edges
        return Bounds(
            (float(predicted[0]), float(predicted[-1])), (float(residual[0]), float(residual[-1]))
        )

    # --- noise -----------------------------------------------------------------------------------

    @property
    def cell_deviation(self) -> Floats:
        """Standard deviation of the noise of each cell, in rows; the shape of `noisy`."""
        if self.scale is None:
            return np.broadcast_to(np.asarray(self.deviation, float), self.noisy.shape)
        return np.full(self.noisy.shape, laplace_deviation(self.scale))

    @property
    def outside_noise(self) -> float:
        """Standard deviation of the noise of `outside`; 0 where nobody knows it (DAWA)."""
        scale = self.scale if self.outside_scale is None else self.outside_scale
        return 0.0 if scale is None else laplace_deviation(scale)

    def noise_variance(self, weights: Floats) -> float:
        """Of sum(weights * noisy); an upper bound where the noise of cells hangs together."""
        given = as_numbers(weights, name="weights")
        if given.shape not in ((), self.noisy.shape):
            raise ArgumentError("weights must be one number, or one for each cell.")
        weighted = given * self.cell_deviation
        if self.scale is None:
            return float(np.abs(weighted).sum() ** 2)
        return float((weighted**2).sum())

    # --- the picture -----------------------------------------------------------------------------

    @cached_property
    def inside(self) -> float:
        """The best guess of the rows within the bounds, at least 0."""
        return min(max(self.rows - max(self.outside, 0.0), 0.0), float(max(self.rows, 0)))

    @cached_property
    def density(self) -> Floats:
        """Expected rows by cell: not below zero, adding up to `inside`; smoothed where noise is."""
        if self.scale is None:  # buckets were averaged before; their noise has no one size
            return simplex(self.noisy, total=self.inside)
        return smoothed(self.noisy, deviation=laplace_deviation(self.scale), total=self.inside)

    @cached_property
    def counts(self) -> Ints:
        """Whole rows by cell, not below zero, adding up to the rows within the bounds."""
        return whole_numbers(self.density, total=round(self.inside))

    def resampled(self, predicted_edges: Floats, residual_edges: Floats) -> Floats:
        """Expected rows in another grid's cells, each cell of this one spread evenly.

        What lies outside the other grid is not counted.
        """
        rows = overlaps(self.residual_edges, residual_edges)
        columns = overlaps(self.predicted_edges, predicted_edges)
        return rows.T @ self.counts @ columns

    def points(self, limit: int = 5_000) -> tuple[Floats, Floats]:
        """Predicted values and residuals of points for a scatter plot, at most `limit`.

        They are scattered over the cells by a fixed sequence (no row is where a point is).
        """
        count = as_whole(limit)
        if count is None or count < 0:
            raise ArgumentError(f"limit must be a whole number from 0, got {shown(limit)}.")
        most = min(int(self.counts.sum()), count)
        shares = self.counts * (most / max(self.counts.sum(), 1))
        drawn = whole_numbers(shares, total=most).ravel()
        cell = np.repeat(np.arange(drawn.size), drawn)
        # Evenly filling sequences show streaks where one cell follows the other; these do not.
        first, second = uniform(81, most), uniform(82, most)
        i, j = np.divmod(cell, self.counts.shape[1])
        predicted = self.predicted_edges[j] + first * np.diff(self.predicted_edges)[j]
        residual = self.residual_edges[i] + second * np.diff(self.residual_edges)[i]
        return predicted, residual

    def as_dict(self) -> dict[str, Any]:
        return {
            "predicted_edges": self.predicted_edges.tolist(),
            "residual_edges": self.residual_edges.tolist(),
            "noisy": self.noisy.tolist(),
            "outside": float(self.outside),
            "rows": self.rows,
            "scale": None if self.scale is None else str(self.scale),
            "counts": self.counts.tolist(),
        }


def laplace_deviation(scale: Fraction) -> float:
    """Standard deviation of discrete Laplace noise.

    >>> round(laplace_deviation(Fraction(4)), 2)
    5.64
    """
    p = math.exp(-1 / float(scale))
    return math.sqrt(2 * p) / -math.expm1(-1 / float(scale))


def overlaps(edges: Floats, others: Floats) -> Floats:
    """Which share of each cell of `edges` (first axis) lies in each cell of `others`.

    >>> overlaps(np.array([0.0, 2.0]), np.array([-1.0, 1.0, 1.5])).tolist()
    [[0.5, 0.25]]
    """
    edges, others = as_edges(edges, name="edges"), as_edges(others, name="edges")
    low = np.maximum(edges[:-1, None], others[None, :-1])
    high = np.minimum(edges[1:, None], others[None, 1:])
    width = np.diff(edges)[:, None]
    result: Floats = np.maximum(high - low, 0.0) / width
    return result


CELLS: Final = 10
MARGIN: Final = 0.1


class CountedPlot(Protocol):
    """Counts of a plot: rows are cells of the residual, columns cells of the prediction."""

    @property
    def counts(self) -> Ints: ...

    @property
    def predicted_edges(self) -> Floats: ...

    @property
    def residual_edges(self) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Reference:
    """The plot that others are held against: its grid, and the share of rows in each cell.

    >>> real = Reference.of_points([0.0, 1.0, 2.0, 3.0], [0.5, -0.5, 0.5, -0.5])
    >>> real.similarity_of_points([0.0, 1.0, 2.0, 9.0], [0.5, -0.5, 0.5, -0.5])
    0.25
    """

    shares: Floats
    predicted_edges: Floats
    residual_edges: Floats

    @classmethod
    def of_points(cls, predicted: Floats, residuals: Floats) -> "Reference":
        """A plot of points; the grid spans them with a margin on every side."""
        predicted, residuals = _points(predicted, residuals)
        if not predicted.size:
            raise ArgumentError("predicted must hold at least one point.")
        edges = [_spanning(values) for values in (predicted, residuals)]
        counts = _counted(predicted, residuals, edges[0], edges[1])
        return cls(counts / predicted.size, edges[0], edges[1])

    @classmethod
    def of_plot(cls, plot: CountedPlot) -> "Reference":
        """A released plot; the grid spans its bounds."""
        edges = [
            np.linspace(float(edges[0]), float(edges[-1]), CELLS + 1)
            for edges in (plot.predicted_edges, plot.residual_edges)
        ]
        shares = _shares(regridded(plot, predicted_edges=edges[0], residual_edges=edges[1]), plot)
        return cls(shares, edges[0], edges[1])

    def similarity(self, plot: CountedPlot) -> float:
        """0 for the same shares, 1 for plots that have no cell in common.

        The rows of a cell count as spread evenly over it: what points sampled from it show on
        average.
        """
        moved = regridded(
            plot, predicted_edges=self.predicted_edges, residual_edges=self.residual_edges
        )
        return self._distance(_shares(moved, plot))

    def similarity_of_points(self, predicted: Floats, residuals: Floats) -> float:
        """The same of a plot of points, such as those sampled from a released plot."""
        predicted, residuals = _points(predicted, residuals)
        counts = _counted(predicted, residuals, self.predicted_edges, self.residual_edges)
        return self._distance(counts / max(predicted.size, 1))

    def _distance(self, shares: Floats) -> float:
        missing = 1.0 - float(shares.sum())
        distance = (float(np.abs(self.shares - shares).sum()) + missing) / 2
        return round(min(max(distance, 0.0), 1.0), 12)


def similarity(one: "CountedPlot | Reference", two: CountedPlot) -> float:
    """Total variation between two plots on the grid that spans the first: 0 alike, 1 not at all.

    Chen et al. call it a similarity although 0 is the most alike; we keep their name.
    """
    real = one if isinstance(one, Reference) else Reference.of_plot(one)
    return real.similarity(two)


def regridded(plot: CountedPlot, *, predicted_edges: Floats, residual_edges: Floats) -> Floats:
    """The plot's counts on another grid, each cell's rows spread evenly over its area."""
    across = overlaps(plot.predicted_edges, predicted_edges)
    down = overlaps(plot.residual_edges, residual_edges)
    return down.T @ np.asarray(plot.counts, dtype=np.float64) @ across


def _shares(counts: Floats, plot: CountedPlot) -> Floats:
    total = float(np.sum(plot.counts))
    return counts / total if total > 0 else counts


def _spanning(values: Floats) -> Floats:
    return np.linspace(float(values.min()) - MARGIN, float(values.max()) + MARGIN, CELLS + 1)


def _counted(
    predicted: Floats, residuals: Floats, predicted_edges: Floats, residual_edges: Floats
) -> Floats:
    counts, _, _ = np.histogram2d(residuals, predicted, bins=[residual_edges, predicted_edges])
    return counts


def _points(predicted: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    both = [np.asarray(values, dtype=np.float64).ravel() for values in (predicted, residuals)]
    if both[0].size != both[1].size:
        raise ArgumentError(
            "predicted and residuals must have the same length. Pass both for each row."
        )
    if not all(np.isfinite(values).all() for values in both):
        raise ArgumentError("predicted and residuals must be finite. Drop what is not.")
    return both[0], both[1]
