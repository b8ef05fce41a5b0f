"""The confusion matrix at any threshold, read off a released table."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.mechanisms.curves.table import NoisyTable
from heldout.metrics.curves.curve import Curve
from heldout.metrics.curves.fieller import ratio_bounds, single_quantile
from heldout.metrics.measure import Interval, Measure
from heldout.metrics.readings import CELLS, ConfusionReadings
from heldout.metrics.registry import Metric

__all__ = ["CurveConfusion"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveConfusion(ConfusionReadings):
    """Counts and ratios where rows with score >= threshold are called positive. Free.

    A threshold between two edges of the table has counts between theirs, and nothing more is
    known: intervals hold whatever the rows between the edges are.
    """

    threshold: float
    terms: str
    _at: float
    """The threshold on the table's own scale, where scores were mapped."""
    _curve: Curve
    _table: NoisyTable
    _edges: tuple[int, int]
    """The table's edges at or below and at or above the threshold."""

    def _cells(self) -> Any:
        false, true = self._curve.at(self._at)
        n, m = self._curve.positives, self._curve.negatives
        return np.array([n * true, m * false, n * (1 - true), m * (1 - false)])

    def _corner(self, positive_edge: int, negative_edge: int) -> tuple[Any, Any]:
        """Noisy cells and their variances, with the edges that each class is cut at."""
        table, cells, variances = self._table, np.zeros(4), np.zeros(4)
        for row, edge, (above, below) in (
            (0, negative_edge, (1, 3)),
            (1, positive_edge, (0, 2)),
        ):
            counts = table.positives if row else table.negatives
            deviation = table.noise.above_deviation[row]
            cells[above], cells[below] = counts[edge:].sum(), counts[:edge].sum()
            variances[above] = deviation[edge] ** 2
            if table.noise.scale is not None:
                variances[below] = deviation[0] ** 2 - deviation[edge] ** 2
            else:
                variances[above] *= 2
                variances[below] = 2 * (deviation[0] + deviation[edge]) ** 2
        return cells, np.maximum(variances, 0.0)

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        top = np.array(metric.numerator, dtype=float)
        rest = np.array(metric.denominator, dtype=float) - top
        bounds = []
        # Every metric here rises or falls with each count, so the ends lie at the corners.
        for positive_edge in set(self._edges):
            for negative_edge in set(self._edges):
                cells, variances = self._corner(positive_edge, negative_edge)
                rows = float((top + rest) @ (np.maximum(cells, 0) + np.sqrt(variances)))
                most = float(max(top.max(), rest.max()))
                bounds.append(
                    ratio_bounds(
                        float(top @ cells),
                        float(rest @ cells),
                        top_variance=float(top**2 @ variances),
                        rest_variance=float(rest**2 @ variances),
                        rows=0.0 if noise_only else rows * most,
                        quantile=single_quantile(level),
                    )
                )
        return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))

    def measure(self, metric: Metric) -> Measure:
        """A ratio of the counts."""
        cells = self._cells()
        top, whole = float(metric.numerator @ cells), float(metric.denominator @ cells)
        return Measure(
            top / whole if whole > 0 else 0.5,
            name=metric.name,
            terms=self.terms,
            noise_interval=lambda level: self._ratio_interval(metric, level, noise_only=True),
            interval=lambda level: self._ratio_interval(metric, level, noise_only=False),
        )

    def _count(self, index: int) -> Measure:
        most = math.inf if self._table.rows is None else float(self._table.rows)

        def interval(level: float) -> Interval:
            ends: list[float] = []
            for edge in set(self._edges):
                cells, variances = self._corner(edge, edge)
                half = single_quantile(level) * math.sqrt(variances[index]) + 0.5
                ends += [cells[index] - half, cells[index] + half]
            return (
                float(np.clip(min(ends), 0, most)),
                float(np.clip(max(ends), 0, most)),
            )

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return Measure(
            float(np.clip(round(self._cells()[index]), 0, most)),
            name=CELLS[index],
            terms=self.terms,
            noise_interval=interval,
            interval=interval,
            whole=True,
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        measures = {name: each.as_dict(level) for name, each in self.measures.items()}
        return {"threshold": self.threshold, "measures": measures}
