"""Residual plots and error measures of each group, side by side and within the same bounds."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from heldout.drawing.chart import Figure
from heldout.drawing.page import write_page
from heldout.intervals.groups import ByGroup, Gap
from heldout.intervals.measure import NO_INFORMATION, Measure
from heldout.questions.regression.measures import MEAN_RESIDUAL, RegressionMetrics
from heldout.questions.regression.release import ResidualPlot

__all__ = ["MetricsByGroup", "PlotsByGroup"]

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
        return tuple(each for each in wanted if each in every)

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
        """What the rows are called."""
        return str(self._drawn.about.name)

    @property
    def rows(self) -> int | None:
        """How many there are in all groups together, where that is public."""
        rows: int | None = self._drawn.about.rows
        return rows

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that divide the rows."""
        columns = self._drawn.request.parameters["by"]
        return (columns,) if isinstance(columns, str) else tuple(columns)

    def covered(self, half_width: float | tuple[float, float]) -> dict[str, Measure]:
        """How often predictive intervals hold the outcome, by group; see `ResidualPlot.covered`."""
        return {name: each.covered(half_width) for name, each in self.groups.items()}

    def coverage_gap(self, half_width: float | tuple[float, float]) -> Gap:
        """How far apart the groups are in that, at no further cost."""
        every = self.covered(half_width)
        sides = {name: each for name, each in every.items() if each.informative}
        surprises = [partial(Measure.surprise, each) for each in sides.values()]
        return self._between("coverage", sides, surprises)

    @property
    def verdicts(self) -> dict[str, str]:
        """What the plot of each group says, or that noise drowned it."""
        drowned = f"{NO_INFORMATION.capitalize()}."
        return {
            name: drowned if name in self.drowned else str(each.verdict)
            for name, each in self.groups.items()
        }

    def __str__(self) -> str:
        lines = (f"  {name}: {said}" for name, said in self.verdicts.items())
        return "\n".join([super().__str__(), *lines])

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        own = ("bounds", "counts", "verdict", "mean_by_prediction", "spread_by_prediction")
        plots = {
            name: {key: found[key] for key in own}
            for name, each in self.groups.items()
            for found in [each.as_dict(level)]
        }
        return {**super().as_dict(level), "plots": plots}

    def svg(self, *, level: float = 0.95) -> str:
        """The plots of all groups on the same axes, as one picture."""
        return self.figures(level)[0].svg

    def figures(self, level: float = 0.95) -> list[Figure]:
        """The plots on the same axes, means by prediction, and what is compared by group."""
        from heldout.questions.regression.pictures import densities, means

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
