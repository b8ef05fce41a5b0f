"""The released residual plot: a noisy table within private bounds, and what is read off it."""

import math
import os
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from heldout.arguments import as_number
from heldout.arrays import Floats, Ints
from heldout.drawing.chart import Figure
from heldout.drawing.page import write_page
from heldout.errors import ArgumentError
from heldout.intervals.groups import ByGroup, Gap
from heldout.intervals.measure import NO_INFORMATION, Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.kernel.door import Drawn
from heldout.questions.regression.measures import MEAN_RESIDUAL, RegressionMetrics
from heldout.questions.regression.plot_plan import PlotPlan
from heldout.questions.regression.readings import (
    ByPrediction,
    QuantilePlot,
    coverage_by_prediction,
    mean_by_prediction,
    spread_by_prediction,
)
from heldout.questions.regression.table import Bounds, ResidualTable, similarity
from heldout.questions.regression.verdict import Readings, Score, Verdict

OUTSIDE: Final = "share of rows outside the bounds"


class ResidualPlot(Release):
    """Rows by predicted value and residual, within bounds that were found privately.

    Everything here is read off `table` and costs nothing more:

    - `counts`: whole, non-negative rows by cell; first axis residuals, second predicted values
    - `predicted_edges`, `residual_edges`: where the cells begin and end, in the data's units
    - `noisy`: counts as drawn, with `cell_deviation` and `noise_variance(weights)`
    - `rows`: how many rows there are (public or noisy); `outside`: the share beyond the bounds
    - `resampled(predicted_edges, residual_edges)`: rows in any other grid's cells
    - `points(limit)`: a scatter of evenly placed points
    - `mean_by_prediction`, `spread_by_prediction`, `trend`, `curvature`, `fan`: with intervals
    - `mean_residual`, `spread`, `covered(half_width)`: over all predictions, with intervals
    - `verdict`: what they say, in a sentence
    - `chart(kind)`, `svg(kind)`, `save("plot.html")`: pictures
    """

    def __init__(self, drawn: Drawn, plan: PlotPlan) -> None:
        self.table: ResidualTable = plan.table(drawn.values)
        super().__init__(drawn)

    @property
    def bounds(self) -> Bounds:
        return self.table.bounds

    @property
    def predicted_edges(self) -> Floats:
        return self.table.predicted_edges

    @property
    def residual_edges(self) -> Floats:
        return self.table.residual_edges

    @property
    def noisy(self) -> Floats:
        return self.table.noisy

    @property
    def counts(self) -> Ints:
        return self.table.counts

    @property
    def density(self) -> Floats:
        return self.table.density

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def cell_deviation(self) -> Floats:
        return self.table.cell_deviation

    def noise_variance(self, weights: Floats) -> float:
        return self.table.noise_variance(weights)

    def resampled(self, predicted_edges: Floats, residual_edges: Floats) -> Floats:
        return self.table.resampled(predicted_edges, residual_edges)

    def points(self, limit: int = 5_000) -> tuple[Floats, Floats]:
        return self.table.points(limit)

    @property
    def data(self) -> str:
        """Return what the rows are called."""
        return str(self._drawn.about.name)

    @cached_property
    def _outside(self) -> Ratio:
        table = self.table
        scale = table.outside_scale if table.scale is None else table.scale
        assert scale is not None
        spread = [[1.0], [-1.0]]
        if table.rows_scale is not None:
            spread = [[1.0, 0.0], [-1.0, float(table.rows_scale / scale)]]
        return Ratio(
            counts=NoisyCounts(
                estimate=np.array([table.outside, table.rows - table.outside]),
                spread=np.array(spread),
                scale=float(scale),
                rows=table.rows if table.rows_scale is None else None,
            ),
            numerator=np.array([1.0, 0.0]),
            denominator=np.array([1.0, 1.0]),
        )

    @cached_property
    def outside(self) -> Measure:
        """The share of rows beyond the bounds."""
        return Measure(
            self._outside.value,
            name=OUTSIDE,
            terms=self.terms,
            noise_interval=self._outside.noise_interval,
            interval=self._outside.interval,
            share=float,
        )

    @cached_property
    def mean_residual(self) -> Measure:
        """Return what predictions within the bounds are too low by, on average."""
        low, high = self.bounds.residual
        reading = mean_by_prediction(self.table, whole=True)
        return reading.measure(lambda value: (value - low) / (high - low), terms=self.terms)

    @cached_property
    def spread(self) -> Measure:
        """The standard deviation of the residuals within the bounds."""
        reading = spread_by_prediction(self.table, whole=True)
        middle = float(np.clip(reading.values[0], 1e-300, self.bounds.residual[1] / 2))
        return reading.measure(lambda value: value / (value + middle), terms=self.terms)

    def covered(self, half_width: float | tuple[float, float]) -> Measure:
        """Return how often predictive intervals hold the outcome, over all rows; see `coverage`."""
        reading = coverage_by_prediction(self.table, *_ends(half_width), whole=True)
        return reading.measure(float, terms=self.terms)

    def surprise(self, name: str, value: float) -> float:
        if name == OUTSIDE:
            return self._outside.p_value(value)
        if name in (self.mean_residual.name, self.spread.name):
            return self.measures[name].surprise(value)
        return super().surprise(name, value)  # scores are weighed by the noise of their own table

    # --- readings --------------------------------------------------------------------------------

    @cached_property
    def readings(self) -> Readings:
        return Readings(self.table, terms=self.terms)

    @property
    def mean_by_prediction(self) -> ByPrediction:
        """The mean residual in bands of predictions."""
        return self.readings.mean_by_prediction

    @property
    def spread_by_prediction(self) -> ByPrediction:
        """The standard deviation of the residuals in bands of predictions."""
        return self.readings.spread_by_prediction

    @property
    def scale_by_prediction(self) -> ByPrediction:
        """Scale-location: the mean root of the size of standardised residuals, in bands."""
        return self.readings.scale_by_prediction

    @property
    def quantiles(self) -> QuantilePlot:
        """The QQ plot: the residuals' quantiles against a normal law's."""
        return self.readings.quantiles

    @property
    def p_values(self) -> dict[str, float]:
        """ "RESET" (is the mean wrong somewhere?) and "Breusch-Pagan" (does the spread change?).

        They hold under the noise: at most 5 in 100 are below 0.05 if residuals and predictions
        are independent.
        """
        if not self.table.unbiased:
            raise ArgumentError("This method joins cells, and no p-value accounts for that.")
        return self.readings.p_values

    def coverage(self, half_width: float | tuple[float, float]) -> ByPrediction:
        """Return how often predictive intervals hold the outcome, in bands of predictions.

        Intervals reach `half_width` on both sides of the prediction, or from the first number to
        the second. Within a cell of the table rows are taken to be spread evenly.
        """
        return coverage_by_prediction(self.table, *_ends(half_width))

    @property
    def trend(self) -> Score:
        return self.readings.trend

    @property
    def curvature(self) -> Score:
        return self.readings.curvature

    @property
    def fan(self) -> Score:
        return self.readings.fan

    def finding(self, level: float = 0.95) -> str:
        """Return what the plot shows: its verdict."""
        return str(self.verdict)

    @property
    def verdict(self) -> Verdict:
        """Return what the plot says: it curves, it fans out, or it is too noisy to tell."""
        return self.readings.verdict

    def similarity(self, other: "ResidualPlot") -> float:
        """0 for the same plot, 1 for one without a cell in common, on a grid of 10 by 10."""
        if not isinstance(other, ResidualPlot | ResidualTable):
            raise ArgumentError(f"other must be a ResidualPlot, got a {type(other).__name__}.")
        return similarity(self, other)

    def chart(self, kind: str = "density", *, level: float = 0.95) -> Any:
        """An Altair chart: "density", "points", "mean" or "spread"."""
        from heldout.questions.regression.page import chart

        return chart(self, kind, level=level).altair()

    def plot(self, kind: str = "density", *, ax: Any = None, level: float = 0.95) -> Any:
        """The same on matplotlib's axes where it is installed, else an Altair chart."""
        from heldout.questions.regression.page import chart

        return chart(self, kind, level=level).plot(ax)

    def svg(self, kind: str = "density", *, level: float = 0.95) -> str:
        """The chart as an SVG picture in the house style."""
        from heldout.questions.regression.page import figure

        return figure(self, kind, level=level).svg

    def _lead(self) -> str:
        return str(self.verdict)

    def figures(self, level: float = 0.95) -> list[Figure]:
        from heldout.questions.regression.page import figures

        return figures(self, level=level)

    def html(
        self,
        level: float = 0.95,
        *,
        metrics: RegressionMetrics | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """All pictures and numbers as one page that needs nothing from anywhere else.

        `metrics` are the error measures of the same rows, if they were released as well; `title`
        and `labels` as in `Report.html`.
        """
        from heldout.questions.regression.page import page

        return page(self, level=level, metrics=metrics, title=title, labels=labels)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        level: float = 0.95,
        metrics: RegressionMetrics | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the page as one self-contained HTML file."""
        return write_page(
            path, lambda: self.html(level, metrics=metrics, title=title, labels=labels)
        )

    def __str__(self) -> str:
        return f"{self.verdict} {self.outside}"

    @property
    def measures(self) -> dict[str, Measure]:
        return {
            self.outside.name: self.outside,
            "curvature": self.curvature,
            "fan": self.fan,
            "trend": self.trend,
            self.mean_residual.name: self.mean_residual,
            self.spread.name: self.spread,
        }

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        bounds = self.bounds
        return {
            **super().as_dict(level),
            "bounds": {"predicted": list(bounds.predicted), "residual": list(bounds.residual)},
            "counts": self.counts.tolist(),
            **self.readings.as_dict(level),
        }

    def _noisy(self) -> dict[str, Any]:
        return self.table.as_dict()


def _ends(half_width: float | tuple[float, float]) -> tuple[float, float]:
    """Of an interval around a prediction."""
    ends = half_width if isinstance(half_width, tuple) else (half_width, half_width)
    low, high = as_number(ends[0]), as_number(ends[-1])
    low = low if isinstance(half_width, tuple) else -low
    if not -math.inf < low < high < math.inf:
        raise ArgumentError("half_width must be a positive number, or two that rise.")
    return low, high


SPREAD: Final = "spread of the residuals"


class MetricsByGroup(ByGroup[RegressionMetrics]):
    """One `RegressionMetrics` for each group: `.groups["F"].rmse`, `.gap`, `.gap_in("R squared")`.

    All groups have the same bounds. P-values compare errors that are clipped there; the intervals
    of gaps hold what residuals beyond searched bounds may add.
    """

    @property
    def compared(self) -> tuple[str, ...]:
        every = next(iter(self.groups.values())).measures
        wanted = (self.metric, "root mean squared error", MEAN_RESIDUAL, "R squared")
        return tuple(metric for metric in wanted if metric in every)

    def figures(self, level: float = 0.95) -> list[Figure]:
        return self._pictured(self.compared, level)


class PlotsByGroup(ByGroup[ResidualPlot]):
    """One `ResidualPlot` for each group: `.groups["F"].verdict`, `.gap`, `.coverage_gap(20)`.

    All tables have the same cells. Scores (curvature, fan, trend) are weighed by the noise of their
    own table, so groups of other sizes are not compared by them.
    """

    @property
    def metric(self) -> str:
        return MEAN_RESIDUAL

    @property
    def compared(self) -> tuple[str, ...]:
        return (MEAN_RESIDUAL, SPREAD)

    @property
    def worst(self) -> str:
        """The group whose predictions are furthest off on average, of those readable."""
        readable = self._readable(self.metric) or self._every(self.metric)
        return max(readable, key=lambda name: abs(readable[name]))

    @property
    def data(self) -> str:
        """Return what the rows are called."""
        return str(self._drawn.about.name)

    @property
    def rows(self) -> int | None:
        """Return how many there are in all groups together, where that is public."""
        rows: int | None = self._drawn.about.rows
        return rows

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that divide the rows."""
        columns = self._drawn.request.parameters["by"]
        return (columns,) if isinstance(columns, str) else tuple(columns)

    def covered(self, half_width: float | tuple[float, float]) -> dict[str, Measure]:
        """Return how often predictive intervals hold the outcome, by group; see `covered`."""
        return {name: group.covered(half_width) for name, group in self.groups.items()}

    def coverage_gap(self, half_width: float | tuple[float, float]) -> Gap:
        """Return how far apart the groups are in that, at no further cost."""
        every = self.covered(half_width)
        sides = {name: measure for name, measure in every.items() if measure.informative}
        surprises = [partial(Measure.surprise, measure) for measure in sides.values()]
        return self._between("coverage", sides, surprises)

    @property
    def verdicts(self) -> dict[str, str]:
        """Return what the plot of each group says, or that it has no information."""
        drowned = f"{NO_INFORMATION.capitalize()}."
        return {
            name: drowned if name in self.not_informative else str(plot.verdict)
            for name, plot in self.groups.items()
        }

    def __str__(self) -> str:
        lines = (f"  {name}: {verdict}" for name, verdict in self.verdicts.items())
        return "\n".join([super().__str__(), *lines])

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        own = ("bounds", "counts", "verdict", "mean_by_prediction", "spread_by_prediction")
        plots = {
            name: {key: content[key] for key in own}
            for name, plot in self.groups.items()
            for content in [plot.as_dict(level)]
        }
        return {**super().as_dict(level), "plots": plots}

    def svg(self, *, level: float = 0.95) -> str:
        """The plots of all groups on the same axes, as one picture."""
        return self.figures(level)[0].svg

    def figures(self, level: float = 0.95) -> list[Figure]:
        """The plots on the same axes, means by prediction, and what is compared by group."""
        from heldout.questions.regression.page import densities, means

        return [densities(self), *means(self, level), *self._pictured(self.compared, level)]

    def html(
        self,
        level: float = 0.95,
        *,
        metrics: MetricsByGroup | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """All pictures and numbers as one page; the arguments are those of `ResidualPlot.html`."""
        from heldout.questions.regression.page import page_by_group

        return page_by_group(self, level=level, metrics=metrics, title=title, labels=labels)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        level: float = 0.95,
        metrics: MetricsByGroup | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the page as one self-contained HTML file."""
        return write_page(
            path, lambda: self.html(level, metrics=metrics, title=title, labels=labels)
        )
