"""How much two residual plots look alike: total variation on a grid of 10 by 10 cells.

The measure of Chen, Machanavajjhala, Reiter and Barrientos 2016, section III-C. A plot of
confidential rows in it makes the number confidential too: that comparison is for simulations and
for the custodian. Between two released plots it is free arithmetic.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from heldout.errors import ArgumentError

__all__ = [
    "CountedPlot",
    "Reference",
    "best_threshold",
    "regridded",
    "similarity",
    "total_variation",
]

CELLS: Final = 10
MARGIN: Final = 0.1
BINS: Final = 100


class CountedPlot(Protocol):
    """Counts of a plot: rows are cells of the residual, columns cells of the prediction."""

    @property
    def counts(self) -> Any: ...

    @property
    def predicted_edges(self) -> Any: ...

    @property
    def residual_edges(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class Reference:
    """The plot that others are held against: its grid, and the share of rows in each cell.

    >>> real = Reference.of_points([0.0, 1.0, 2.0, 3.0], [0.5, -0.5, 0.5, -0.5])
    >>> real.similarity_of_points([0.0, 1.0, 2.0, 9.0], [0.5, -0.5, 0.5, -0.5])
    0.25
    """

    shares: Any
    predicted_edges: Any
    residual_edges: Any

    @classmethod
    def of_points(
        cls, predicted: Any, residuals: Any, *, cells: int = CELLS, margin: float = MARGIN
    ) -> "Reference":
        """A plot of points; the grid spans them with a margin on every side."""
        predicted, residuals = _points(predicted, residuals)
        if not predicted.size:
            raise ArgumentError("predicted must hold at least one point.")
        edges = [_spanning(each, cells, margin) for each in (predicted, residuals)]
        counts = _counted(predicted, residuals, edges[0], edges[1])
        return cls(counts / predicted.size, edges[0], edges[1])

    @classmethod
    def of_plot(cls, plot: CountedPlot, *, cells: int = CELLS) -> "Reference":
        """A released plot; the grid spans its bounds."""
        edges = [
            np.linspace(float(each[0]), float(each[-1]), cells + 1)
            for each in (plot.predicted_edges, plot.residual_edges)
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

    def similarity_of_points(self, predicted: Any, residuals: Any) -> float:
        """The same of a plot of points, such as those sampled from a released plot."""
        predicted, residuals = _points(predicted, residuals)
        counts = _counted(predicted, residuals, self.predicted_edges, self.residual_edges)
        return self._distance(counts / max(predicted.size, 1))

    def _distance(self, shares: Any) -> float:
        missing = 1.0 - float(shares.sum())
        found = (float(np.abs(self.shares - shares).sum()) + missing) / 2
        return round(min(max(found, 0.0), 1.0), 12)


def similarity(one: "CountedPlot | Reference", two: CountedPlot, *, cells: int = CELLS) -> float:
    """Total variation between two plots on the grid that spans the first: 0 alike, 1 not at all.

    Chen et al. call it a similarity although 0 is the most alike; we keep their name.
    """
    real = one if isinstance(one, Reference) else Reference.of_plot(one, cells=cells)
    return real.similarity(two)


def regridded(plot: CountedPlot, *, predicted_edges: Any, residual_edges: Any) -> Any:
    """The plot's counts on another grid, each cell's rows spread evenly over its area."""
    across = _overlap(plot.predicted_edges, predicted_edges)
    down = _overlap(plot.residual_edges, residual_edges)
    return down.T @ np.asarray(plot.counts, dtype=np.float64) @ across


def total_variation(one: Any, two: Any, *, bins: int = BINS) -> float:
    """Between two samples of numbers in [0, 1], as histograms of equal bins.

    The samples' own roughness is in it: two samples of one law are not quite at 0.

    >>> total_variation([0.1, 0.2], [0.2, 0.9])
    0.5
    """
    heights = []
    for each in (one, two):
        sample = np.asarray(each, dtype=np.float64)
        cells = np.clip(np.floor(sample * bins + 1e-9).astype(np.int64), 0, bins - 1)
        heights.append(np.bincount(cells, minlength=bins) / max(sample.size, 1))
    return float(np.abs(heights[0] - heights[1]).sum() / 2)


def best_threshold(one: Any, two: Any) -> float:
    """Total variation over half-lines alone: what one cut between the samples tells apart.

    At most the total variation, and free of any choice of bins (Kolmogorov and Smirnov).

    >>> best_threshold([0.1, 0.2, 0.3], [0.25, 0.8, 0.9])
    0.6666666666666667
    """
    first, second = np.sort(np.asarray(one, float)), np.sort(np.asarray(two, float))
    places = np.concatenate([first, second])
    below = [
        np.searchsorted(each, places, side="right") / max(each.size, 1) for each in (first, second)
    ]
    return float(np.abs(below[0] - below[1]).max(initial=0.0))


def _shares(counts: Any, plot: CountedPlot) -> Any:
    total = float(np.sum(plot.counts))
    return counts / total if total > 0 else counts


def _overlap(held: Any, wanted: Any) -> Any:
    """Share of each held interval that lies in each wanted one."""
    held, wanted = np.asarray(held, np.float64), np.asarray(wanted, np.float64)
    low = np.maximum(held[:-1, None], wanted[None, :-1])
    high = np.minimum(held[1:, None], wanted[None, 1:])
    width = np.diff(held)[:, None]
    return np.maximum(high - low, 0.0) / width


def _spanning(values: Any, cells: int, margin: float) -> Any:
    return np.linspace(float(values.min()) - margin, float(values.max()) + margin, cells + 1)


def _counted(predicted: Any, residuals: Any, predicted_edges: Any, residual_edges: Any) -> Any:
    counts, _, _ = np.histogram2d(residuals, predicted, bins=[residual_edges, predicted_edges])
    return counts


def _points(predicted: Any, residuals: Any) -> tuple[Any, Any]:
    both = [np.asarray(each, dtype=np.float64).ravel() for each in (predicted, residuals)]
    if both[0].size != both[1].size:
        raise ArgumentError("predicted and residuals must be equally long. Pass one of each a row.")
    if not all(np.isfinite(each).all() for each in both):
        raise ArgumentError("predicted and residuals must be finite. Drop what is not.")
    return both[0], both[1]
