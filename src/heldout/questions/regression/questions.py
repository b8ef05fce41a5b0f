"""Questions about the residuals of a regression."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Generic

import numpy as np

from heldout.arguments import Choices, shown
from heldout.data.description import Description
from heldout.data.measured import FittedRows, MadeUpRegression, RegressionTable
from heldout.errors import ArgumentError
from heldout.kernel.door import Drawn, Staged
from heldout.kernel.regression import SquareCounts
from heldout.questions import Guess
from heldout.questions.base import Flag, Grid, Intervals, Number, OneOf, R_co, Whole
from heldout.questions.groups import Divisible, Groups_co, group_columns, parameters_by_group
from heldout.questions.regression.measures import RegressionMetrics as MetricsRelease
from heldout.questions.regression.plot_plan import METHODS, MetricsPlan, PlotPlan
from heldout.questions.regression.release import MetricsByGroup, PlotsByGroup
from heldout.questions.regression.release import ResidualPlot as PlotRelease
from heldout.questions.worst_cases import (
    GROUP,
    GROUPS,
    Column,
    Pair,
    WorstCase,
    declare_rows,
    numbers,
)

__all__ = ["RegressionMetrics", "ResidualPlot"]

SMALLEST, LARGEST = 1e-140, 1e140
"""Of a scale: whatever bounds are found from it are then within the widths above."""
MOST_MADE_UP: Final = 100_000
"""Rows that a forecast is made for: with more of them intervals are narrower than it says."""
GOLDEN: Final = (math.sqrt(5) - 1) / 2  # its multiples are spread evenly, and in no order
Scale = Annotated[
    float,
    Number(
        SMALLEST, LARGEST, "Pass the unit of the outcome: 1 for a test score, 1000 for a salary."
    ),
    "The public unit of the outcome: 1 for a test score, 1000 for a salary.",
]


@dataclass(frozen=True, kw_only=True)
class _OfResiduals(Divisible[R_co, Groups_co], Generic[R_co, Groups_co]):
    """Shares what both questions about residuals have in common.

    `scale` is the public unit of the numbers: bounds are searched from 1/1024 of it upwards by
    powers of two. Where the row count is private, `expected_rows` is a public guess that divides
    epsilon better. By group there is an answer for each, within the same bounds: these are chosen
    for all rows together, and the plan divides its counts and sums.
    """

    of = (FittedRows,)
    cannot_pool = "every site searches bounds of its own"
    stores = (SquareCounts,)
    scale: Scale = 1.0
    expected_rows: Annotated[
        int | None, Whole(), "A public guess of the number of rows, where it is private."
    ] = None

    @abstractmethod
    def plan(self, about: FittedRows, groups: int = 1) -> PlotPlan | MetricsPlan:
        """Return what is asked step by step, from public facts alone."""

    def request(self, about: FittedRows) -> Staged:
        return self.plan(about).staged(observed=about.observed, predicted=about.predicted)

    def request_by_group(self, about: FittedRows, by: str | tuple[str, ...]) -> Staged:
        plan = self.plan(about, len(about.group_names(by)))
        columns = {"observed": about.observed, "predicted": about.predicted}
        staged = plan.staged(**columns, **parameters_by_group(by, about))
        return replace(staged, view=group_columns(by))

    def read_by_group(self, drawn: Drawn) -> Groups_co:
        return self.combine(drawn, drawn.request.reading.parts(drawn))

    def _facts(self, about: FittedRows, groups: int) -> dict[str, Any]:
        """Return what every plan starts from."""
        return {
            "epsilon": self.price,
            "protection": about.protection,
            "rows": about.rows,
            "expected_rows": self.expected_rows,
            "scale": self.scale,
            "groups": groups,
        }

    draws = 5

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        return {} if about.scale == 1 else {"scale": about.scale}

    def typical_release(self, about: FittedRows, guess: Guess) -> R_co | None:
        """Return the release that `typical` makes, of at most so many rows as are made up."""
        assert guess.rows is not None
        rows = min(guess.rows, MOST_MADE_UP)
        public = None if about.rows is None else min(about.rows, MOST_MADE_UP)
        return super().typical_release(replace(about, rows=public), replace(guess, rows=rows))

    def typical(self, about: FittedRows, guess: Guess) -> object:
        """Return the answer to the question about made-up rows, which are no secret."""
        return self.request(about).draw(self._made_up(about, guess))

    def typical_by_group(
        self, about: FittedRows, by: str | tuple[str, ...], guess: Guess
    ) -> object:
        made_up = self._made_up(about, guess, len(about.group_names(by)))
        return replace(self.request_by_group(about, by), view=group_columns("group")).draw(made_up)

    def _made_up(self, about: FittedRows, guess: Guess, groups: int = 1) -> RegressionTable:
        assert guess.rows is not None
        spread, neighbours = self.scale * guess.spread, about.protection.neighbours
        return _made_up_rows(min(guess.rows, MOST_MADE_UP), spread, groups, neighbours)


@lru_cache(maxsize=4)
def _made_up_rows(rows: int, spread: float, groups: int, neighbours: str) -> RegressionTable:
    """Return rows of which nobody is; several forecasts are about the same ones."""
    from scipy.special import ndtri

    at = (np.arange(rows) + 0.5) / rows
    mixed = np.clip(np.arange(1, rows + 1) * GOLDEN % 1, 0.5 / rows, 1 - 0.5 / rows)
    predicted = 3 * spread * (2 * at - 1)
    return MadeUpRegression(
        {
            "observed": predicted + spread * ndtri(mixed),
            "predicted": predicted,
            "group": np.arange(rows) % groups,
        },
        observed="observed",
        predicted="predicted",
        groups={"group": list(range(max(groups - 1, 1)))},
        neighbours=neighbours,
    )


@dataclass(frozen=True, kw_only=True)
class ResidualPlot(_OfResiduals[PlotRelease, PlotsByGroup]):
    """Rows by predicted value and residual, as a table with noise.

    `bounds` declares what is publicly known, {"predicted": (0, 100), "residual": 20}, and saves
    the search. `grid` is (residual cells, predicted cells). `method` is "heldout", "dawa", or
    the paper's own "chen-2016-prirp".
    """

    kind = "residual-plot"
    rules = 3
    known_rules = (1, 2, 3)
    replayed = (
        {},
        {"by": "g"},
        {"bounds": {"predicted": [-2, 2], "residual": 2}},
        {"method": "dawa", "grid": [4, 4]},
        {"method": "chen-2016-prirp", "grid": [4, 4]},
    )
    grouped = PlotsByGroup
    title = "residual plot"
    headline = "mean residual"
    asks = "Do the residuals show a pattern?"
    tells = (
        "Rows by predicted value and residual, as a noisy table; plots and tests are read off it."
    )
    method: Annotated[str, OneOf(METHODS), "heldout, dawa, or the paper's own chen-2016-prirp."] = (
        "heldout"
    )
    bounds: Annotated[
        Mapping[str, Any],
        Intervals(("predicted", "residual")),
        "Public bounds, such as predicted=0,100 residual=20; they save the price of a search.",
    ] = field(default_factory=dict)
    grid: Annotated[
        Any, Grid(), "The number of cells along the residual and along the predicted value."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != "heldout" and self.grid is not None:
            down, across = self.grid
            if down != across or down not in (1, 2, 4, 8, 16, 32, 64):
                raise ArgumentError(
                    f"grid must be a power of two to 64 for {self.method}, alike for both, got "
                    f"{shown(self.grid)}. Try 16."
                )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        """Return cases with few cells: what a row can do is the same, and in fewer numbers.

        Where the number of rows is private it is guessed, publicly and too high: most of epsilon is
        in the table then.
        """
        some, many = (_PAIRS[0], _PAIRS[3]), 10**6
        public = {"residual": 1, "predicted": (0, 1)}
        return (
            _case(
                pairs=some,
                fields={"grid": (2, 2), "expected_rows": many},
                read=_own_cells,
                note="bounds, table and outside, jointly",
                why="a tenth is for the bounds and the number of rows",
            ),
            _case(
                name="dawa",
                pairs=some,
                fields={"grid": 2, "method": "dawa", "expected_rows": many},
                read=_own_cells,
                note="bounds, buckets and outside, jointly",
                why="a part is for the buckets, in which cells are averaged",
            ),
            _case(
                name="chen-2016-prirp",
                pairs=_PAIRS[:3],
                fields={"grid": 2, "method": "chen-2016-prirp"},
                read=_own_cells,
                note="the paper's own constants; bounds, buckets and outside, jointly",
                why="a third is for the bounds, a part for the buckets that average cells",
            ),
            _case(
                name="declared",
                pairs=_PAIRS,
                fields={"grid": (2, 2), "bounds": public},
                read=_own_cells,
                note="declared bounds, so that all of epsilon is in the table",
            ),
            _case(
                name="by-group",
                pairs=_GROUPED,
                fields={"grid": (2, 1), "bounds": public, "by": "g"},
                note="a table for each group, declared bounds; persons with rows in several groups",
                why="a twentieth is for the sizes of groups",
            ),
        )

    def plan(self, about: FittedRows, groups: int = 1) -> PlotPlan:
        return PlotPlan(
            **self._facts(about, groups),
            method=self.method,
            predicted=self.bounds.get("predicted"),
            residual=self.bounds.get("residual"),
            grid=self.grid,
            rules=self.rules,
        )

    def read(self, drawn: Drawn) -> PlotRelease:
        return PlotRelease(drawn, drawn.request.reading)


@dataclass(frozen=True, kw_only=True)
class RegressionMetrics(_OfResiduals[MetricsRelease, MetricsByGroup]):
    """MAE, RMSE, R squared and quantiles of the residuals, in one release; by group their mean too.

    `bounds` declares what is publicly known, {"residual": 20, "observed": (0, 100)}, and saves
    the search; what lies beyond is clipped. Without `r_squared` nothing is spent on the outcome's
    spread.
    """

    kind = "regression-metrics"
    rules = 2
    """Since 2, the only one of MAE and RMSE that is asked for has the price of both."""
    known_rules = (1, 2)
    replayed = (
        {},
        {"by": "g"},
        {"bounds": {"residual": 2, "observed": [-2, 2]}},
        {"r_squared": False},
        {"measures": ["rmse", "r_squared"], "bounds": {"residual": 2, "observed": [-2, 2]}},
        {"measures": ["mae", "quantiles"], "bounds": {"residual": 2}},
        {"measures": ["rmse"], "by": "g"},
    )
    grouped = MetricsByGroup
    lower_is_better = True
    title = "regression metrics"
    headline = "root mean squared error"
    asks = "How far are its predictions off?"
    tells = "RMSE, mean absolute error, bias and R squared of a regression."
    bounds: Annotated[
        Mapping[str, Any],
        Intervals(("observed", "residual")),
        "Public bounds, such as observed=0,100 residual=20; they save the price of a search.",
    ] = field(default_factory=dict)
    r_squared: Annotated[bool, Flag(), "Release R squared too, for a share of the price."] = True
    measures: Annotated[
        tuple[str, ...] | None,
        Choices(("mae", "rmse", "r_squared", "quantiles")),
        "Divide the price among these measures only, such as rmse r_squared. Default: all.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        residual = self.bounds.get("residual")
        if residual is not None and residual[0] != -residual[1]:
            raise ArgumentError(
                f"bounds of residual must be alike on both sides, got {shown(residual)}. Pass one "
                "positive number."
            )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        fields: dict[str, Any] = {
            "bounds": {"residual": 1, "observed": (0, 1)},
            "expected_rows": 10**6,
        }
        return (
            _case(
                pairs=(_PAIRS[0], _PAIRS[3]),
                fields=fields,
                note="sums and the cumulative table, jointly",
                why="spread over sums of three powers and a tree",
            ),
            _case(
                name="by-group",
                pairs=_GROUPED,
                fields=fields | {"by": "g"},
                note="sizes, sums and a tree for each group; persons with rows in several groups",
                why="spread over sizes, sums of three powers and trees",
            ),
        )

    def plan(self, about: FittedRows, groups: int = 1) -> MetricsPlan:
        residual = self.bounds.get("residual")
        return MetricsPlan(
            **self._facts(about, groups),
            residual=None if residual is None else residual[1],
            observed=self.bounds.get("observed"),
            outcome=self.r_squared if self.measures is None else "r_squared" in self.measures,
            wanted=self.measures,
            rules=self.rules,
        )

    def read(self, drawn: Drawn) -> MetricsRelease:
        return MetricsRelease(drawn, drawn.request.reading)


# --- audited -------------------------------------------------------------------------------------

_PREDICTED: Final = [0.2, 0.4, 0.6, 0.8, 0.5, 0.3, 0.7]
_RESIDUALS: Final = [0.1, -0.1, 0.3, -0.3, 0.0, 0.2, -0.2]


def _rows(*more: tuple[float, float]) -> dict[str, list[float]]:
    both = [*zip(_PREDICTED, _RESIDUALS, strict=True), *more]
    return {"p": [p for p, _ in both], "y": [p + r for p, r in both]}


def _pair(name: str, first: tuple[float, float], *second: tuple[float, float]) -> Pair:
    """Return tables where a row (predicted, residual) becomes another, or is there or not."""
    options = {} if second else {"neighbours": "add-remove"}
    return Pair(name, _rows(first), _rows(*second), options)


_PAIRS: Final = (
    _pair("a residual goes beyond every bound", (0.5, 0.9), (0.5, 1e300)),
    _pair("a residual goes to the other end", (0.5, 0.9), (0.5, -0.9)),
    _pair("a prediction goes to the other end", (0.05, 0.0), (0.95, 0.0)),
    _pair("a row at the bound is there or not", (0.0, 1.0)),
)


def _grouped(name: str, *sides: tuple[tuple[float, str], ...], **options: Any) -> Pair:
    """Return a person's rows (residual, group) on either side, beside the rows of others."""
    tables = []
    for own in sides:
        rows = _rows(*((0.5, residual) for residual, _ in own))
        people = [str(person) for person in range(len(_PREDICTED))] + ["own"] * len(own)
        groups = [*"abcabca"[: len(_PREDICTED)], *(group for _, group in own)]
        tables.append({**rows, "g": groups, "who": people})
    first, second = tables
    return Pair(name, first, second, {"groups": {"g": ["a", "b"]}, **options})


_GROUPED: Final = (
    _grouped("a row goes to another group", ((0.9, "a"),), ((-0.9, "b"),)),
    _grouped("a row is there or not", ((1.0, "a"),), (), neighbours="add-remove"),
    _grouped(
        "a person has rows in two groups, or in two others",
        ((0.9, "a"), (0.9, "b")),
        ((-0.9, "b"), (-0.9, "c")),
        unit="who",
        rows_per_unit=2,
    ),
)


def _table(content: Any, options: Mapping[str, Any]) -> RegressionTable:
    return RegressionTable(content, observed="y", predicted="p", name="neighbour", **options)


_case: Final = partial(WorstCase, make=_table, epsilon="4")


def _cell(release: Any, predicted: float, residual: float) -> tuple[int, int] | None:
    """Return where a row is in the released table; None is outside."""
    places = []
    for value, edges in ((residual, release.residual_edges), (predicted, release.predicted_edges)):
        if not edges[0] <= value <= edges[-1]:
            return None
        places.append(min(int(np.searchsorted(edges, value, side="right")) - 1, len(edges) - 2))
    return places[0], places[1]


def _own_cells(pair: Pair, release: Any) -> list[float]:
    """Return all numbers, and the cells of rows that differ, for one who knows the others."""
    values = numbers(release)
    table = release.table
    for rows in (pair.first, pair.second):
        if len(rows["p"]) == len(_PREDICTED):
            continue
        own = _cell(release, rows["p"][-1], rows["y"][-1] - rows["p"][-1])
        known = sum(
            _cell(release, p, r) == own for p, r in zip(_PREDICTED, _RESIDUALS, strict=True)
        )
        seen = table.outside if own is None else table.noisy[own]
        values.append(float(seen) - known)
    return values


_NUMBER: Final = Column((0.0, 1.0, -1.0, 0.5, 1024.0, 1e6, -1e6, 1 / 3), "normal")
declare_rows(
    FittedRows,
    {"o": _NUMBER, "e": _NUMBER, "g": GROUP},
    partial(RegressionTable, observed="o", predicted="e", groups=GROUPS, name="made up"),
    outcome=("o",),
)
