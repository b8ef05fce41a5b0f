"""The confusion matrix at any threshold, read off a released table."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.intervals.curve import Curve, grid_scores
from heldout.intervals.fieller import ratio_bounds, single_quantile
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.readings import CELLS, ConfusionReadings
from heldout.intervals.registry import Metric
from heldout.kernel.noise.tables.table import NoisyTable, laplace_deviation
from heldout.questions.curves.fit import Fitted
from heldout.questions.curves.methods.heldout import NamedCounts

__all__ = ["BetweenEdges", "CurveConfusion", "FromFit", "Named"]

# Chosen on adult and the made-up scores of benchmarks.accuracy at 1,000 to 20,000 rows, epsilon 1,
# for intervals of level .95 that hold in .94 to .98; cps_march2000 and acs2018 were kept aside.
BETWEEN: Final = (0.1, 0.3)
"""How uneven rows lie within a bin: deviation of a rate, over what a class has in the bin, and
over how far the curve already departs from a straight line there."""
LEAST: Final = 0.3
"""The least deviation of a count, over the scale of its noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveConfusion(ConfusionReadings):
    """Counts and ratios where rows with score >= threshold are called positive. Free."""

    threshold: float
    terms: str
    rows: int | None
    """Where their number is public."""

    @property
    @abstractmethod
    def cells(self) -> Any:
        """Estimates of the four counts, in the order of `CELLS`."""

    @abstractmethod
    def _seen(self) -> list[tuple[Any, Any]]:
        """Cells that may be the true ones but for noise, each with the noise's covariance."""

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        top = np.array(metric.numerator, dtype=float)
        rest = np.array(metric.denominator, dtype=float) - top
        bounds = []
        for cells, covariance in self._seen():
            held = np.maximum(cells, 0) + np.sqrt(np.diag(covariance))
            bounds.append(
                ratio_bounds(
                    float(top @ cells),
                    float(rest @ cells),
                    top_variance=float(top @ covariance @ top),
                    rest_variance=float(rest @ covariance @ rest),
                    covariance=float(top @ covariance @ rest),
                    rows=0.0 if noise_only else _trials(top, rest, held),
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
            ends: list[float] = []
            for cells, covariance in self._seen():
                half = single_quantile(level) * math.sqrt(covariance[index, index]) + 0.5
                ends += [cells[index] - half, cells[index] + half]
            return (
                float(np.clip(min(ends), 0, most)),
                float(np.clip(max(ends), 0, most)),
            )

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return Measure(
            float(np.clip(round(self.cells[index]), 0, most)),
            name=CELLS[index],
            terms=self.terms,
            noise_interval=interval,
            interval=interval,
            whole=True,
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        measures = {name: each.as_dict(level) for name, each in self.measures.items()}
        return {"threshold": self.threshold, "measures": measures}


def _trials(top: Any, rest: Any, cells: Any) -> float:
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


def _cells_at(curve: Curve, at: float) -> Any:
    false, true = curve.at(at)
    n, m = curve.positives, curve.negatives
    return np.array([n * true, m * false, n * (1 - true), m * (1 - false)])


@dataclass(frozen=True, kw_only=True, eq=False)
class FromFit(CurveConfusion):
    """At any threshold, by the fitted law and a margin for what it may miss.

    The law has the noise of the whole table (`Fitted.stray`). Between two edges of the table rows
    may lie unevenly, by chance or because scores pile up: a share v of a bin's rows is off by
    about `BETWEEN` of sqrt(v (1 - v)), and the more so the more crooked the law is there.
    """

    at: float
    """The threshold on the table's own scale, where scores were mapped."""
    fit: Fitted = field(repr=False)

    @property
    def cells(self) -> Any:
        return _cells_at(self.fit.curve, self.at)

    def _seen(self) -> list[tuple[Any, Any]]:
        return [(self.cells, self._covariance)]

    @cached_property
    def _covariance(self) -> Any:
        fit, curve = self.fit, self.fit.curve
        found = fit.stray(lambda each: _cells_at(each, self.at))
        least = LEAST * fit.table_scale
        scores = grid_scores(fit.table.edges, points=fit.table.points, score_range=fit.score_range)
        place = int(np.clip(np.searchsorted(scores, self.at, side="right") - 1, 0, len(scores) - 2))
        low, high = scores[place], scores[place + 1]
        straight = (high - self.at) / (high - low)
        rates = zip(curve.at(self.at), curve.at(low), curve.at(high), strict=True)
        for (rate, most, few), size, (above, below) in zip(
            rates, (curve.negatives, curve.positives), ((1, 3), (0, 2)), strict=True
        ):
            inside = (most - few) * size
            part = (rate - few) / (most - few) if most > few else 0.5
            uneven = BETWEEN[0] ** 2 * max(part * (1 - part), 0.0)
            crooked = (BETWEEN[1] * (part - straight)) ** 2 if 0 < straight < 1 else 0.0
            variance = inside**2 * (uneven + crooked) + least**2
            found[above, above] += variance
            found[below, below] += variance
            found[above, below] -= variance
            found[below, above] -= variance
        return found


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
    def _joined(self) -> tuple[Any, Any]:
        """Counts above and below the threshold by class, and their variances."""
        ends = np.searchsorted(self.table.edges, [0, *self.named.edges])
        fine = np.add.reduceat(np.stack([self.table.negatives, self.table.positives]), ends, axis=1)
        own = laplace_deviation(self.named.scale) ** 2
        sums = np.add.reduceat(self.table.noise.bin_deviation**2, ends, axis=1)
        weight = sums / (own + sums)
        counts = weight * self.named.counts + (1 - weight) * fine
        variances = np.broadcast_to(own * weight, counts.shape)
        split = int(np.searchsorted(self.named.edges, self.edge)) + 1
        parts = [(each[:, split:].sum(axis=1), each[:, :split].sum(axis=1))
                 for each in (counts, variances)]  # fmt: skip
        order = [(above[1], above[0], below[1], below[0]) for above, below in parts]
        return np.array(order[0]), np.array(order[1])

    @cached_property
    def _balanced(self) -> tuple[Any, Any]:
        """The same once what is missing of a public number of rows is shared among the cells."""
        cells, variances = self._joined
        covariance = np.diag(variances)
        if self.rows is not None:
            part = variances / variances.sum()
            cells = cells + part * (self.rows - cells.sum())
            covariance = covariance - np.outer(part, variances)
        return cells, covariance

    @property
    def cells(self) -> Any:
        return np.maximum(self._balanced[0], 0.0)

    def _seen(self) -> list[tuple[Any, Any]]:
        return [self._balanced]


@dataclass(frozen=True, kw_only=True, eq=False)
class BetweenEdges(CurveConfusion):
    """Off the papers' tables, which have no law between their edges.

    A threshold between two edges has counts between theirs, and nothing more is known: intervals
    hold whatever the rows between the edges are.
    """

    at: float
    curve: Curve = field(repr=False)
    table: NoisyTable = field(repr=False)
    edges: tuple[int, int]
    """The table's edges at or below and at or above the threshold."""

    @property
    def cells(self) -> Any:
        return _cells_at(self.curve, self.at)

    def _seen(self) -> list[tuple[Any, Any]]:
        # Every metric here rises or falls with each count, so the ends lie at the corners.
        return [self._corner(one, two) for one in set(self.edges) for two in set(self.edges)]

    def _corner(self, positive_edge: int, negative_edge: int) -> tuple[Any, Any]:
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
