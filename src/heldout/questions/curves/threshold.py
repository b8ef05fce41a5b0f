"""The confusion matrix at any threshold, read off a released table."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.curve import Curve
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.intervals.readings import CELLS, ConfusionReadings, Metric
from heldout.kernel.noise.tables.table import NoisyTable, laplace_deviation
from heldout.questions.curves.draws import interval_of
from heldout.questions.curves.methods.heldout import NamedCounts
from heldout.questions.curves.posterior import Posterior

__all__ = ["BetweenEdges", "CurveConfusion", "FromDraws", "Named"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveConfusion(ConfusionReadings):
    """Counts and ratios where rows with score >= threshold are called positive. Free."""

    threshold: float
    terms: str
    rows: int | None
    """Where their number is public."""

    @property
    @abstractmethod
    def cells(self) -> Floats:
        """Estimates of the four counts, in the order of `CELLS`."""

    @abstractmethod
    def _seen(self) -> list[tuple[Floats, Floats]]:
        """Cells that may be the true ones but for noise, each with the noise's covariance."""

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        top = np.array(metric.numerator, dtype=float)
        rest = np.array(metric.denominator, dtype=float) - top
        bounds = []
        for cells, covariance in self._seen():
            filled = np.maximum(cells, 0) + np.sqrt(np.diag(covariance))
            bounds.append(
                ratio_bounds(
                    float(top @ cells),
                    float(rest @ cells),
                    top_variance=float(top @ covariance @ top),
                    rest_variance=float(rest @ covariance @ rest),
                    covariance=float(top @ covariance @ rest),
                    rows=0.0 if noise_only else _trials(top, rest, filled),
                    quantile=single_quantile(level),
                )
            )
        return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))

    def measure(self, metric: Metric) -> Measure:
        """A ratio of the counts."""
        cells = self.cells
        top, whole = float(metric.numerator @ cells), float(metric.denominator @ cells)
        return Measure(
            top / whole if whole > 0 else 0.5,
            name=metric.name,
            terms=self.terms,
            noise_interval=lambda level: self._ratio_interval(metric, level, noise_only=True),
            interval=lambda level: self._ratio_interval(metric, level, noise_only=False),
            share=float,
        )

    def _count(self, index: int) -> Measure:
        most = math.inf if self.rows is None else float(self.rows)

        def interval(level: float) -> Interval:
            return self._count_interval(index, level)

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return Measure(
            float(np.clip(round(self.cells[index]), 0, most)),
            name=CELLS[index],
            terms=self.terms,
            noise_interval=interval,
            interval=interval,
            whole=True,
        )

    def _count_interval(self, index: int, level: float) -> Interval:
        most = math.inf if self.rows is None else float(self.rows)
        ends: list[float] = []
        for cells, covariance in self._seen():
            half = single_quantile(level) * math.sqrt(covariance[index, index]) + 0.5
            ends += [cells[index] - half, cells[index] + half]
        return float(np.clip(min(ends), 0, most)), float(np.clip(max(ends), 0, most))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        measures = {name: measure.as_dict(level) for name, measure in self.measures.items()}
        return {"threshold": self.threshold, "measures": measures}


def _trials(top: Floats, rest: Floats, cells: Floats) -> float:
    """Of how many rows a share would have the sampling variance of top/(top + rest).

    All of the denominator's where rows count for 0 or 1; fewer where most count for a part, as in
    a net benefit.
    """
    whole = float((top + rest) @ cells)
    share = float(top @ cells) / max(whole, 1e-300)
    if not 0 < share < 1:
        return whole * float(max(top.max(), rest.max()))
    spread = float(cells @ (top - share * (top + rest)) ** 2)
    return spread / (share * (1 - share))


def _cells_at(curve: Curve, at: float) -> Floats:
    false, true = curve.at(at)
    n, m = curve.positives, curve.negatives
    return np.array([n * true, m * false, n * (1 - true), m * (1 - false)])


@dataclass(frozen=True, kw_only=True, eq=False)
class FromDraws(CurveConfusion):
    """At any threshold, by the draws of the rows that the release leaves possible."""

    grid_point: int
    posterior: Posterior = field(repr=False)
    bare: CurveConfusion = field(repr=False)
    """The same by the counts at the table's edges, with nothing assumed between them."""

    @cached_property
    def _rows(self) -> Floats:
        return self._drawn(noise_only=True)

    @cached_property
    def _population(self) -> Floats:
        return self._drawn(noise_only=False)

    def _drawn(self, *, noise_only: bool) -> Floats:
        """The four counts of each draw, in the order of `CELLS`."""
        draws = self.posterior.draws(noise_only=noise_only)
        (false, true), (m, n) = self.posterior.above(self.grid_point, draws), draws.sizes
        return np.stack([true, false, np.maximum(n - true, 0.0), np.maximum(m - false, 0.0)])

    @property
    def cells(self) -> Floats:
        result: Floats = self._rows.mean(axis=1)
        return result

    def _seen(self) -> list[tuple[Floats, Floats]]:
        return [(self.cells, np.cov(self._rows))]

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        drawn = self._rows if noise_only else self._population
        top, whole = np.array(metric.numerator) @ drawn, np.array(metric.denominator) @ drawn
        ratios = np.divide(top, whole, out=np.full_like(whole, 0.5), where=whole > 0.5)
        return interval_of(ratios, level)

    def _count_interval(self, index: int, level: float) -> Interval:
        most = math.inf if self.rows is None else float(self.rows)
        low, high = interval_of(self._rows[index], level, high=most)
        return max(math.floor(low), 0), min(math.ceil(high), most)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        bare = {
            name: {
                "interval": list(measure.interval(level)),
                "noise_interval": list(measure.noise_interval(level)),
            }
            for name, measure in self.bare.measures.items()
        }
        return {**super().as_dict(level), "nothing_assumed": bare}


@dataclass(frozen=True, kw_only=True, eq=False)
class Named(CurveConfusion):
    """At a threshold that was named beforehand: counts of their own, and the table's, joined.

    Both are unbiased with noise of a known variance and independent, so that the mean by their
    precisions has the least variance. The rows between two named thresholds are joined so, class
    by class.
    """

    named: NamedCounts = field(repr=False)
    table: NoisyTable = field(repr=False)
    edge: int

    @cached_property
    def _joined(self) -> tuple[Floats, Floats]:
        """Counts above and below the threshold by class, and their variances."""
        ends = np.searchsorted(self.table.edges, [0, *self.named.edges])
        fine = np.add.reduceat(np.stack([self.table.negatives, self.table.positives]), ends, axis=1)
        own = laplace_deviation(self.named.scale) ** 2 * (2 if self.named.tied else 1)
        sums = np.add.reduceat(self.table.noise.bin_deviation**2, ends, axis=1)
        weight = sums / (own + sums)
        counts = weight * self.named.counts + (1 - weight) * fine
        variances = np.broadcast_to(own * weight, counts.shape)
        split = int(np.searchsorted(self.named.edges, self.edge)) + 1
        parts = [(table[:, split:].sum(axis=1), table[:, :split].sum(axis=1))
                 for table in (counts, variances)]  # fmt: skip
        order = [(above[1], above[0], below[1], below[0]) for above, below in parts]
        return np.array(order[0]), np.array(order[1])

    @cached_property
    def _balanced(self) -> tuple[Floats, Floats]:
        """The same once what is missing of a public number of rows is shared among the cells."""
        cells, variances = self._joined
        covariance = np.diag(variances)
        if self.rows is not None:
            part = variances / variances.sum()
            cells = cells + part * (self.rows - cells.sum())
            covariance = covariance - np.outer(part, variances)
        return cells, covariance

    @property
    def cells(self) -> Floats:
        return np.maximum(self._balanced[0], 0.0)

    def _seen(self) -> list[tuple[Floats, Floats]]:
        return [self._balanced]


@dataclass(frozen=True, kw_only=True, eq=False)
class BetweenEdges(CurveConfusion):
    """By the counts at the edges around the threshold: what the papers' tables tell, and any other.

    A threshold between two edges has counts between theirs, and nothing more is known: intervals
    hold whatever the rows between the edges are.
    """

    at: float
    curve: Curve = field(repr=False)
    table: NoisyTable = field(repr=False)
    edges: tuple[int, int]
    """The table's edges at or below and at or above the threshold."""

    @property
    def cells(self) -> Floats:
        return _cells_at(self.curve, self.at)

    def _seen(self) -> list[tuple[Floats, Floats]]:
        # Every metric here rises or falls with each count, so the ends lie at the corners.
        return [self._corner(one, two) for one in set(self.edges) for two in set(self.edges)]

    def _corner(self, positive_edge: int, negative_edge: int) -> tuple[Floats, Floats]:
        """Noisy cells and their variances, with the edges that each class is cut at."""
        table, cells, variances = self.table, np.zeros(4), np.zeros(4)
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
        return cells, np.diag(np.maximum(variances, 0.0))
