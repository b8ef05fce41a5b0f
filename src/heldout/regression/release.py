"""The released residual plot: a noisy table within private bounds, and what is read off it."""

from functools import cached_property
from typing import Any

import numpy as np

from heldout.measure import Measure
from heldout.metrics.ratio import NoisyCounts, Ratio
from heldout.regression.table import Bounds, ResidualTable
from heldout.release import Drawn, Release

__all__ = ["ResidualPlot"]


class ResidualPlot(Release):
    """Rows by predicted value and residual, within bounds that were found privately.

    Everything here is read off `table` and costs nothing more:

    - `counts`: whole, non-negative rows by cell; first axis residuals, second predicted values
    - `predicted_edges`, `residual_edges`: where the cells begin and end, in the data's units
    - `noisy`: counts as drawn, with `cell_deviation` and `noise_variance(weights)`
    - `rows`: how many rows there are (public or noisy); `outside`: the share beyond the bounds
    - `resampled(predicted_edges, residual_edges)`: rows in any other grid's cells
    - `points(limit)`: a scatter of evenly placed points
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self.table = self._table(drawn)

    @staticmethod
    def _table(drawn: Drawn) -> ResidualTable:
        table = drawn.values[-1] if isinstance(drawn.values, tuple) else drawn.values
        assert isinstance(table, ResidualTable)
        return table

    @property
    def bounds(self) -> Bounds:
        return self.table.bounds

    @property
    def predicted_edges(self) -> Any:
        return self.table.predicted_edges

    @property
    def residual_edges(self) -> Any:
        return self.table.residual_edges

    @property
    def noisy(self) -> Any:
        return self.table.noisy

    @property
    def counts(self) -> Any:
        return self.table.counts

    @property
    def density(self) -> Any:
        return self.table.density

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def cell_deviation(self) -> Any:
        return self.table.cell_deviation

    def noise_variance(self, weights: Any) -> float:
        return self.table.noise_variance(weights)

    def resampled(self, predicted_edges: Any, residual_edges: Any) -> Any:
        return self.table.resampled(predicted_edges, residual_edges)

    def points(self, limit: int = 5_000) -> tuple[Any, Any]:
        return self.table.points(limit)

    @property
    def terms(self) -> str:
        return self._drawn.terms

    @cached_property
    def outside(self) -> Measure:
        """The share of rows beyond the bounds."""
        table = self.table
        scale = table.outside_scale if table.scale is None else table.scale
        assert scale is not None
        spread = [[1.0], [-1.0]]
        if table.rows_scale is not None:
            spread = [[1.0, 0.0], [-1.0, float(table.rows_scale / scale)]]
        ratio = Ratio(
            counts=NoisyCounts(
                estimate=np.array([table.outside, table.rows - table.outside]),
                spread=np.array(spread),
                scale=float(scale),
                rows=table.rows if table.rows_scale is None else None,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )
        return Measure(
            ratio.value,
            name="share of rows outside the bounds",
            terms=self.terms,
            noise_interval=ratio.noise_interval,
            interval=ratio.interval,
        )

    @property
    def measures(self) -> dict[str, Measure]:
        return {self.outside.name: self.outside}

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        bounds = self.bounds
        return {
            **super().as_dict(level),
            "bounds": {"predicted": list(bounds.predicted), "residual": list(bounds.residual)},
            "counts": self.counts.tolist(),
        }

    def _noisy(self) -> Any:
        return self.table.as_dict()
