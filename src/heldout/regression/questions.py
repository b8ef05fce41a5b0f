"""Questions about the residuals of a regression."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arguments import shown
from heldout.data.regression_table import FittedRows, RegressionTable
from heldout.errors import ArgumentError
from heldout.questions import Guess, Question
from heldout.questions.groups import divided, how_many, named
from heldout.questions.rules import By, Flag, Grid, Intervals, Number, OneOf, Whole
from heldout.regression.by_group import MetricsByGroup, PlotsByGroup
from heldout.regression.measures import RegressionMetrics as MetricsRelease
from heldout.regression.measures_plan import MetricsPlan
from heldout.regression.plot_plan import METHODS, PlotPlan
from heldout.regression.release import ResidualPlot as PlotRelease
from heldout.release import Drawn, Staged

__all__ = ["RegressionMetrics", "ResidualPlot"]

SMALLEST, LARGEST = 1e-140, 1e140
"""Of a scale: whatever bounds are found from it are then within the widths above."""
MOST_MADE_UP: Final = 20_000
GOLDEN: Final = (math.sqrt(5) - 1) / 2  # its multiples are spread evenly, and in no order
Scale = Annotated[
    float,
    Number(
        SMALLEST, LARGEST, "Pass the unit of the outcome: 1 for a test score, 1000 for a salary."
    ),
]


@dataclass(frozen=True, kw_only=True)
class _OfResiduals(Question):
    """What both questions about residuals share.

    `scale` is the public unit of the numbers: bounds are searched from 1/1024 of it upwards by
    powers of two. Where the row count is private, `expected_rows` is a public guess that divides
    epsilon better. `by` names a declared group, or several to cross: an answer for each of its
    values, within the same bounds.
    """

    of: ClassVar[tuple[type, ...]] = (FittedRows,)
    scale: Scale = 1.0
    expected_rows: Annotated[int | None, Whole()] = None
    by: By = None

    @abstractmethod
    def plan(self, about: FittedRows) -> Any:
        """What is asked step by step, from public facts alone."""

    def request(self, about: FittedRows) -> Staged:
        plan = self.plan(about)
        columns = {"observed": about.observed, "predicted": about.predicted}
        staged: Staged = plan.staged(**columns, **named(self.by, about))
        return replace(staged, view=divided(self.by))

    def _facts(self, about: FittedRows) -> dict[str, Any]:
        """What every plan is told."""
        return {
            "epsilon": self.price,
            "protection": about.protection,
            "rows": about.rows,
            "expected_rows": self.expected_rows,
            "scale": self.scale,
            "groups": how_many(self.by, about),
        }

    draws: ClassVar[int] = 5

    def typical(self, about: FittedRows, guess: Guess) -> Any:
        """The answer to the question about made-up rows, which are no secret."""
        assert guess.rows is not None
        rows = min(guess.rows, MOST_MADE_UP)
        from scipy.special import ndtri

        at = (np.arange(rows) + 0.5) / rows
        mixed = np.clip(np.arange(1, rows + 1) * GOLDEN % 1, 0.5 / rows, 1 - 0.5 / rows)
        residual = self.scale * guess.spread * ndtri(mixed)
        predicted = 3 * self.scale * guess.spread * (2 * at - 1)
        groups = how_many(self.by, about)
        made_up = RegressionTable(
            {
                "observed": predicted + residual,
                "predicted": predicted,
                "group": np.arange(rows) % groups,
            },
            observed="observed",
            predicted="predicted",
            groups={"group": list(range(max(groups - 1, 1)))},
            neighbours=about.protection.neighbours,
        )
        view = None if self.by is None else divided("group")
        return replace(self.request(about), view=view).draw(made_up)


@dataclass(frozen=True, kw_only=True)
class ResidualPlot(_OfResiduals):
    """Rows by predicted value and residual, as a table with noise.

    `bounds` declares what is publicly known, {"predicted": (0, 100), "residual": 20}, and saves
    the search. `grid` is (residual cells, predicted cells). `method` is "heldout", "dawa", or
    the paper's own "chen-2016-prirp".
    """

    kind: ClassVar[str] = "residual-plot"
    method: Annotated[str, OneOf(METHODS)] = "heldout"
    bounds: Annotated[Mapping[str, Any], Intervals(("predicted", "residual"))] = field(
        default_factory=dict
    )
    grid: Annotated[Any, Grid()] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "heldout" and self.grid is not None:
            down, across = self.grid
            if down != across or down not in (1, 2, 4, 8, 16, 32, 64):
                raise ArgumentError(
                    f"grid must be a power of two to 64 for {self.method}, alike for both, got "
                    f"{shown(self.grid)}. Try 16."
                )

    def plan(self, about: FittedRows) -> PlotPlan:
        return PlotPlan(
            **self._facts(about),
            method=self.method,
            predicted=self.bounds.get("predicted"),
            residual=self.bounds.get("residual"),
            grid=self.grid,
        )

    def read(self, drawn: Drawn) -> PlotRelease | PlotsByGroup:
        plan: PlotPlan = drawn.request.reading
        if self.by is None:
            return PlotRelease(drawn, plan)
        return PlotsByGroup(drawn, (PlotRelease(each, plan) for each in plan.parts(drawn)))


@dataclass(frozen=True, kw_only=True)
class RegressionMetrics(_OfResiduals):
    """MAE, RMSE, R squared and quantiles of the residuals, in one release; by group their mean too.

    `bounds` declares what is publicly known, {"residual": 20, "observed": (0, 100)}, and saves
    the search; what lies beyond is clipped. Without `r_squared` nothing is spent on the outcome's
    spread.
    """

    kind: ClassVar[str] = "regression-metrics"
    bounds: Annotated[Mapping[str, Any], Intervals(("observed", "residual"))] = field(
        default_factory=dict
    )
    r_squared: Annotated[bool, Flag()] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        residual = self.bounds.get("residual")
        if residual is not None and residual[0] != -residual[1]:
            raise ArgumentError(
                f"bounds of residual must be alike on both sides, got {shown(residual)}. Pass one "
                "positive number."
            )

    def plan(self, about: FittedRows) -> MetricsPlan:
        residual = self.bounds.get("residual")
        return MetricsPlan(
            **self._facts(about),
            residual=None if residual is None else residual[1],
            observed=self.bounds.get("observed"),
            outcome=self.r_squared,
        )

    def read(self, drawn: Drawn) -> MetricsRelease | MetricsByGroup:
        plan: MetricsPlan = drawn.request.reading
        if self.by is None:
            return MetricsRelease(drawn, plan)
        return MetricsByGroup(drawn, (MetricsRelease(each, plan) for each in plan.parts(drawn)))
