"""A noisy table of rows by predicted value and residual, and what follows from it for free."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from heldout.arguments import as_edges, as_number, as_numbers, as_whole, shown
from heldout.errors import ArgumentError
from heldout.examples.chance import uniform
from heldout.questions.regression.density import simplex, smoothed, whole_numbers

__all__ = ["Bounds", "ResidualTable", "overlaps"]

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

    predicted_edges: Any
    residual_edges: Any
    noisy: Any
    """Shape (residual cells, predicted cells): counts with noise, as drawn; may be below zero."""
    outside: float
    """The noisy count of rows beyond the bounds."""
    rows: int
    """How many rows there are: public, or noisy with the scale `rows_scale`."""
    scale: Fraction | None
    """Independent discrete Laplace noise of this scale in each cell and in `outside`; None if the
    noise of cells hangs together (DAWA), and then see `deviation`."""
    rows_scale: Fraction | None = None
    """Scale of the discrete Laplace noise of `rows`, independent of the rest; None: public."""
    deviation: Any = None
    """Standard deviation of the noise of each cell, for a scale of None."""
    outside_scale: Fraction | None = None
    """Scale of the noise of `outside`, where it is not `scale`."""
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
    def cell_deviation(self) -> Any:
        """Standard deviation of the noise of each cell, in rows; the shape of `noisy`."""
        if self.scale is None:
            return np.broadcast_to(np.asarray(self.deviation, float), self.noisy.shape)
        return np.full(self.noisy.shape, laplace_deviation(self.scale))

    def noise_variance(self, weights: Any) -> float:
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
    def density(self) -> Any:
        """Expected rows by cell: not below zero, adding up to `inside`; smoothed where noise is."""
        if self.scale is None:  # buckets were averaged before; their noise has no one size
            return simplex(self.noisy, total=self.inside)
        return smoothed(self.noisy, deviation=laplace_deviation(self.scale), total=self.inside)

    @cached_property
    def counts(self) -> Any:
        """Whole rows by cell, not below zero, adding up to the rows within the bounds."""
        return whole_numbers(self.density, total=round(self.inside))

    def resampled(self, predicted_edges: Any, residual_edges: Any) -> Any:
        """Expected rows in another grid's cells, each cell of this one spread evenly.

        What lies outside the other grid is not counted.
        """
        rows = overlaps(self.residual_edges, residual_edges)
        columns = overlaps(self.predicted_edges, predicted_edges)
        return rows.T @ self.counts @ columns

    def points(self, limit: int = 5_000) -> tuple[Any, Any]:
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


def overlaps(edges: Any, others: Any) -> Any:
    """Which share of each cell of `edges` (first axis) lies in each cell of `others`.

    >>> overlaps(np.array([0.0, 2.0]), np.array([-1.0, 1.0, 1.5])).tolist()
    [[0.5, 0.25]]
    """
    edges, others = as_edges(edges, name="edges"), as_edges(others, name="edges")
    low = np.maximum(edges[:-1, None], others[None, :-1])
    high = np.minimum(edges[1:, None], others[None, 1:])
    width = np.diff(edges)[:, None]
    return np.maximum(high - low, 0.0) / width
