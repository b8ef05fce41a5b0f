"""Plan what a residual plot asks of the rows, step by step, from public facts alone."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.regression import MOST_CELLS as MOST_ENTRIES
from heldout.kernel.regression import (
    Axis,
    CumulativeCounts,
    GridCounts,
    HilbertDawa,
    Interval,
    PowerSums,
    RowCount,
    Search,
    SearchAsPrinted,
    SquareCounts,
)
from heldout.questions.regression.table import ResidualTable
from heldout.questions.regression.tuned import (
    COUNT_SHARE,
    ENOUGH,
    FEW_CELLS,
    FEW_VISIBLE,
    MANY_CELLS,
    METRICS_LEAST_SHARE,
    METRICS_MOST_SHARE,
    METRICS_PARTS,
    METRICS_UNKNOWN_SHARE,
    PARTS_WITH_OUTCOME,
    PLOT_LEAST_SHARE,
    PLOT_MOST_SHARE,
    PLOT_UNKNOWN_SHARE,
    PREDICTED_SLACK,
    RESIDUAL_PART,
    RESIDUAL_SLACK,
    SPREAD_PART,
    THRIFT,
    WIDER,
)

GROUP: Final = "group"
"""Where the answers of all steps say which group's part of them is read; no step has this name."""


@dataclass(frozen=True, kw_only=True)
class ResidualsPlan:
    """Asks of residuals step by step; bounds are searched for all rows together.

    With more than one `groups` counts and sums are those of each group, one after the other. How
    many rows a group has is private, also where the number of all rows is not.
    """

    epsilon: Fraction
    protection: Protection
    rows: int | None
    expected_rows: int | None
    scale: float
    groups: int = 1

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")

    @property
    def guess(self) -> int | None:
        return self.rows if self.rows is not None else self.expected_rows

    @property
    def visible(self) -> Fraction | None:
        """Units times epsilon, as far as it is public: how well anything can be seen."""
        if self.guess is None:
            return None
        return max(self.guess, 1) * self.epsilon / self.protection.rows_per_unit

    # --- how many rows there are -----------------------------------------------------------------

    @property
    def counted(self) -> bool:
        """Return whether rows are counted with noise; those of a group always are."""
        return self.rows is None or self.groups > 1

    @property
    def count_epsilon(self) -> Fraction:
        return COUNT_SHARE * self.epsilon if self.counted else Fraction(0)

    @property
    def count_mechanism(self) -> DiscreteLaplace:
        moved = self.protection.rows_moved if self.groups > 1 else self.protection.rows_per_unit
        return DiscreteLaplace.for_epsilon(
            self.count_epsilon, l1_sensitivity=moved, dimension=self.groups
        )

    @property
    def count_step(self) -> Booked:
        return Booked.of(Step(RowCount(self.groups), self.count_mechanism))

    def row_count(self, answers: Answers) -> int:
        """The public number of all rows, or the noisy one, at least 1."""
        return self.rows if self.rows is not None else max(int(answers["count"].sum()), 1)

    def size(self, answers: Answers) -> int:
        """The number of rows that are read: those of the group that the answers name, or all."""
        if GROUP not in answers:
            return self.row_count(answers)
        return max(int(self.own(answers, "count")[0]), 1)

    def typical_size(self, answers: Answers) -> int:
        """Return how many rows are read together, in the mean over all rows."""
        if self.groups == 1:
            return self.row_count(answers)
        sizes = np.maximum(answers["count"].astype(np.float64), 0.0)
        return max(int((sizes**2).sum() / max(sizes.sum(), 1.0)), 1)

    # --- groups ----------------------------------------------------------------------------------

    def own(self, answers: Answers, step: str) -> Any:
        """Return a step's answer, or the part of the group that the answers name."""
        answer = answers[step]
        if GROUP not in answers:
            return answer
        parts = answer if isinstance(answer, list) else np.reshape(answer, (self.groups, -1))
        return parts[answers[GROUP]]

    def by_group(self, answers: Answers) -> list[Answers]:
        """The answers once for each group, which they name."""
        return [{**answers, GROUP: group} for group in range(self.groups)]

    def parts(self, drawn: Drawn) -> Iterator[Drawn]:
        """Each group's answers, as if its rows had been asked alone, at the price of all."""
        about = replace(drawn.about, rows=None)
        return (
            replace(drawn, values=answers, about=about) for answers in self.by_group(drawn.values)
        )


AS_PRINTED: Final = "chen-2016-prirp"
METHODS: Final = ("heldout", "dawa", AS_PRINTED)
MOST_CELLS: Final = 64
_FARTHEST: Final = 1.7976931348623157e308
MOST_GRID: Final = (MOST_CELLS, MOST_CELLS)


@dataclass(frozen=True, kw_only=True)
class PlotPlan(ResidualsPlan):
    """One booking: the row count where it is private, the bounds that were not declared, a table.

    With more than one group there is a table for each, all within the same bounds, and the row
    count is that of each group, which is always private.

    Claim:       pure DP, epsilon, the exact sum of the steps.          [claim: residual-plot]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the steps': `RowCount`, `BoundSearch`, `IntervalChoice`, and the table's
                 disjoint counts. Every step's statistic and mechanism follow from public facts and
                 from the answers before it; every price is fixed before the first.
    Numerics:    exact.
    Refuses:     an unknown method; a scale, a grid or bounds that are not positive and finite.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, section III-B. Theirs searches
                 symmetric bounds with min(0.3, 470/(n epsilon)) of epsilon; here it is
                 400/(n epsilon) within [3/20, 1/2], the predicted values' interval need not be
                 symmetric, and DAWA is `method="dawa"`. `method="chen-2016-prirp"` is theirs:
                 that share, half for each symmetric search, its own DAWA.
    Cost:        one pass over the rows a step, five at most.
    """

    method: str
    predicted: Interval | None
    residual: Interval | None
    grid: tuple[int, int] | None
    """Cells of the residual and of the predicted value; None: from rows times epsilon."""
    rules: int = 3
    """Under the first rules the paper's method took 470/n, a misreading, for 470/(n epsilon). Since
    the third, rows a little beyond the bounds are counted by prediction (`ResidualTable.tails`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}.")
        if self.method == AS_PRINTED and self.rows is None:
            raise ArgumentError(
                f"method={AS_PRINTED!r} needs a public row count: replace-one neighbours and no "
                "unit column. Use method='heldout'."
            )
        if self.method != "heldout" and self.groups > 1:
            raise ArgumentError("A plot by group needs method='heldout'.")
        self.staged()  # what is wrong is refused before anything is booked

    # --- shares of epsilon -----------------------------------------------------------------------

    @property
    def bounds_share(self) -> Fraction:
        """Of epsilon, if both bounds are searched."""
        if self.method == AS_PRINTED:
            exchanged = self.epsilon if self.rules > 1 else 1
            return min(Fraction(3, 10), 470 / (max(self.rows or 1, 1) * Fraction(exchanged)))
        if self.visible is None:
            return PLOT_UNKNOWN_SHARE
        return max(PLOT_LEAST_SHARE, min(PLOT_MOST_SHARE, ENOUGH / self.visible))

    @property
    def _residual_part(self) -> Fraction:
        return Fraction(1, 2) if self.method == AS_PRINTED else RESIDUAL_PART

    @property
    def residual_epsilon(self) -> Fraction:
        share = self._residual_part * self.bounds_share if self.residual is None else 0
        return share * self.epsilon

    @property
    def predicted_epsilon(self) -> Fraction:
        share = (1 - self._residual_part) * self.bounds_share if self.predicted is None else 0
        return share * self.epsilon

    @property
    def table_epsilon(self) -> Fraction:
        spent = self.count_epsilon + self.residual_epsilon + self.predicted_epsilon
        return self.epsilon - spent

    # --- steps -----------------------------------------------------------------------------------

    @cached_property
    def residual_search(self) -> Search | None:
        if self.residual is not None:
            return None
        return self._search("residual", self.residual_epsilon, RESIDUAL_SLACK)

    @cached_property
    def predicted_search(self) -> Search | None:
        if self.predicted is not None:
            return None
        return self._search("predicted", self.predicted_epsilon, PREDICTED_SLACK)

    def _search(self, column: str, epsilon: Fraction, slack: int) -> Search:
        as_printed = self.method == AS_PRINTED
        return (SearchAsPrinted if as_printed else Search)(
            column=column,
            epsilon=epsilon,
            whole_epsilon=self.epsilon,
            protection=self.protection,
            scale=self.scale,
            symmetric=as_printed or column == "residual",
            slack=slack,
        )

    def bounds(self, answers: Answers) -> tuple[Interval, Interval]:
        """Of the predicted values and of the residuals."""
        residual, predicted, rows = self.residual, self.predicted, self.row_count(answers)
        if self.residual_search is not None:
            residual = self.residual_search.interval(answers, rows)
        if self.predicted_search is not None:
            predicted = self.predicted_search.interval(answers, rows)
        assert residual is not None
        assert predicted is not None
        return predicted, residual

    def cells(self, rows: int) -> tuple[int, int]:
        """Return how many cells of the residual and of the predicted value."""
        if self.method != "heldout":
            side = self._side(rows)
            return side, side
        if self.grid is not None:
            return self.grid
        # How far rows stand out from the noise of a cell.
        visible = float(rows * self.table_epsilon * 2 / self.protection.rows_moved)
        fineness = (max(visible, 1.0) / 125) ** 0.3
        return min(max(round(8 * fineness), 6), 48), min(max(round(6 * fineness), 4), 36)

    def _side(self, rows: int) -> int:
        """The paper's sqrt(N0 epsilon / 10) with 0.95^2 of the rows, to a power of two."""
        if self.grid is not None:
            return self.grid[0]
        wanted = math.sqrt(max(0.9025 * rows * float(self.epsilon) / 10, 1.0))
        return int(min(2 ** round(math.log2(wanted)), MOST_CELLS)) if wanted > 2 else 2

    @property
    def tails(self) -> int:
        """Return how many more cells of the residual there are: one beyond either bound."""
        return 2 if self.method == "heldout" and self.rules > 2 else 0

    def statistic(self, answers: Answers) -> GridCounts:
        predicted, (low, high) = self.bounds(answers)
        down, across = self.cells(self.typical_size(answers))
        edges = np.linspace(low, high, down + 1).tolist()
        if self.tails:
            half = (high - low) / 2
            edges = [max(low - half, -_FARTHEST), *edges, min(high + half, _FARTHEST)]
        return GridCounts(
            groups=self.groups,
            axes=(
                Axis("residual", tuple(edges)),
                Axis("predicted", tuple(np.linspace(*predicted, across + 1).tolist())),
            ),
        )

    def mechanism(self, cells: int) -> DiscreteLaplace | HilbertDawa:
        moved = self.protection.rows_moved
        if self.method != "heldout":
            return HilbertDawa(
                side=math.isqrt(cells),
                epsilon=self.table_epsilon,
                moved=moved,
                as_printed=self.method == AS_PRINTED,
            )
        return DiscreteLaplace.for_epsilon(
            self.table_epsilon, l1_sensitivity=moved, dimension=(cells + 1) * self.groups
        )

    def _steps(self) -> dict[str, Booked]:
        def table(answers: Answers) -> Step:
            statistic = self.statistic(answers)
            return Step(statistic, self.mechanism(statistic.size - 1))

        searches = [self.residual_search, self.predicted_search]
        # A noisy row count may ask for as many cells as there can be: they are refused here if at
        # all, before anything is booked.
        largest = MOST_GRID if self.rows is None or self.groups > 1 else self.cells(self.rows)
        down, across = self.grid or largest
        most = (down + self.tails) * across
        if (most + 1) * self.groups > MOST_ENTRIES:
            raise ArgumentError("by must make fewer groups, or grid have fewer cells.")
        last = Booked(self.mechanism(most).event(), table)
        steps = {"count": self.count_step} if self.counted else {}
        for search in searches:
            steps |= search.asked(self.row_count) if search is not None else {}
        return steps | {"table": last}

    def staged(self, **named: Any) -> Staged:
        """The request that the door books and draws."""
        return Staged(
            name="residual plot",
            parameters={**named, **self.parameters()},
            description=self.describe(),
            steps=self._steps(),
            claim="residual-plot",
            reading=self,
        )

    def parameters(self) -> dict[str, Any]:
        """Return what the ledger keeps beside the event; exact where it is a number."""
        parameters: dict[str, Any] = {"method": self.method, "scale": repr(self.scale)}
        for name, value in (
            ("predicted_bounds", self.predicted),
            ("residual_bounds", self.residual),
            ("grid", self.grid),
            ("expected_rows", self.expected_rows),
        ):
            if value is not None:
                parameters[name] = str(value)
        return parameters

    def describe(self) -> dict[str, object]:
        return {
            "name": self.method,
            "count_epsilon": str(self.count_epsilon),
            "residual_bounds_epsilon": str(self.residual_epsilon),
            "predicted_bounds_epsilon": str(self.predicted_epsilon),
            "table_epsilon": str(self.table_epsilon),
        }

    # --- what came out ---------------------------------------------------------------------------

    def table(self, answers: Answers) -> ResidualTable:
        """The answers as a table, of one group if they name it; post-processing."""
        statistic = self.statistic(answers)
        drawn, shape = self.own(answers, "table"), statistic.shape
        edges = [np.array(axis.edges) for axis in statistic.axes]
        facts: Mapping[str, Any] = {
            "residual_edges": edges[0],
            "predicted_edges": edges[1],
            "rows": self.size(answers),
            "rows_scale": self.count_mechanism.scale if self.counted else None,
        }
        if isinstance(drawn, SquareCounts):
            return ResidualTable(
                noisy=drawn.cells.reshape(shape),
                deviation=drawn.deviation.reshape(shape),
                outside=float(drawn.outside),
                outside_scale=drawn.outside_scale,
                scale=None,
                unbiased=False,
                **facts,
            )
        scale = self.protection.rows_moved / self.table_epsilon
        cells = drawn[:-1].reshape(shape)
        if not self.tails:
            return ResidualTable(noisy=cells, outside=float(drawn[-1]), scale=scale, **facts)
        tails = cells[[0, -1]].astype(np.float64)
        return ResidualTable(
            noisy=cells[1:-1],
            outside=float(drawn[-1]) + float(tails.sum()),
            outside_scale=scale * Fraction(math.sqrt(1 + tails.size)),
            tails=tails,
            scale=scale,
            **{**facts, "residual_edges": edges[0][1:-1]},
        )


# Plan what the private measures of a regression ask of the rows, from public facts alone.
EDGE: Final = 1.7976931348623157e308


@dataclass(frozen=True, kw_only=True)
class MetricsPlan(ResidualsPlan):
    """One booking: row count and bounds where they are private, sums of errors and of the outcome,
    and a cumulative table of the residuals; with several groups also sums of the residuals.

    Claim:       pure DP, epsilon, the exact sum of the steps.    [claim: regression-metrics]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the steps': `RowCount`, `BoundSearch`, `IntervalChoice`, `PowerSums` and
                 `CumulativeCounts`.
    Numerics:    exact.
    Refuses:     an epsilon that is not positive; bounds that are not finite and increasing.
    Reference:   sequential composition of the steps.
    Cost:        one pass over the rows a step, seven at most.
    """

    residual: float | None
    """The declared bound of a residual's size."""
    observed: Interval | None
    outcome: bool
    """Whether R squared is wanted, which needs the spread of the outcome."""
    wanted: tuple[str, ...] | None = None
    """Which measures share the price; None: all of them."""
    rules: int = 2
    """By older rules MAE and RMSE were always released together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.staged()  # what is wrong is refused before anything is booked

    # --- shares of epsilon -----------------------------------------------------------------------

    @cached_property
    def shares(self) -> dict[str, Fraction]:
        """Of epsilon, by step; they add up to 1."""
        shares: dict[str, Fraction] = {}
        if self.counted:
            shares["count"] = COUNT_SHARE
        search = METRICS_UNKNOWN_SHARE
        if self.visible is not None:
            search = max(METRICS_LEAST_SHARE, min(METRICS_MOST_SHARE, ENOUGH / self.visible))
        if self.residual is None:
            shares["residual"] = search / 2
        if self.outcome and self.observed is None:
            shares["observed"] = search / 2
        left = 1 - sum(shares.values(), Fraction(0))
        wanted: dict[str, Any] = {**(PARTS_WITH_OUTCOME if self.outcome else METRICS_PARTS)}
        if not self.has_quantiles:
            # How many rows a searched bound clips must be known.
            del wanted["quantiles"]
            if self.residual is None:
                wanted["quantiles"] = Fraction(sum(wanted.values()), 19)
        if self.groups > 1:
            wanted = {**wanted, "residuals": wanted["errors"] // 2}
        if self.error_power is not None:
            errors = wanted.pop("errors")
            own = {"errors": errors * (1 - SPREAD_PART), "spread": errors * SPREAD_PART}
            wanted = {**own, **wanted}
        whole = sum(wanted.values())
        return {**shares, **{name: left * part / whole for name, part in wanted.items()}}

    @property
    def has_quantiles(self) -> bool:
        return self.wanted is None or "quantiles" in self.wanted

    @property
    def error_power(self) -> int | None:
        """Return the one power of the errors that is averaged; None if MAE and RMSE both are.

        One sum moves less than several, and what is averaged has it alone. Another sum, of its
        squares, says how it varies from sample to sample.
        """
        if self.wanted is None or self.rules < 2:
            return None
        sizes, squares = "mae" in self.wanted, not {"rmse", "r_squared"}.isdisjoint(self.wanted)
        if sizes == squares:
            return None
        return 1 if sizes else 2

    @property
    def error_powers(self) -> int:
        """Return how many powers of the errors are summed, where both MAE and RMSE are wanted.

        The highest says how RMSE varies from sample to sample. Where noise is the larger error and
        only some measures are wanted, the price is better spent on the others.
        """
        few = self.visible is not None and self.visible < FEW_VISIBLE
        return 2 if self.wanted is not None and few else 3

    def part(self, name: str) -> Fraction:
        return self.shares[name] * self.epsilon

    # --- steps -----------------------------------------------------------------------------------

    @cached_property
    def searches(self) -> dict[str, Search]:
        return {
            name: Search(
                column=name,
                epsilon=self.part(name),
                whole_epsilon=self.epsilon,
                protection=self.protection,
                scale=self.scale,
                symmetric=name == "residual",
                slack=RESIDUAL_SLACK,
                thrift=THRIFT,
            )
            for name in ("residual", "observed")
            if name in self.shares
        }

    def residual_bound(self, answers: Answers) -> float:
        if self.residual is not None:
            return self.residual
        return WIDER * self._searched("residual", answers)[1]

    def observed_bounds(self, answers: Answers) -> Interval:
        return self.observed if self.observed is not None else self._searched("observed", answers)

    def _searched(self, name: str, answers: Answers) -> Interval:
        return self.searches[name].interval(answers, self.row_count(answers))

    def _sums(self, column: str, bounds: Interval, powers: int, **more: Any) -> PowerSums:
        return PowerSums(
            column=column,
            bounds=bounds,
            powers=powers,
            with_rest=self.counted,
            groups=self.groups,
            **more,
        )

    def errors_statistic(self, answers: Answers) -> PowerSums:
        bound = self.residual_bound(answers)
        if self.error_power is not None:
            return self._one_sum(answers, self.error_power)
        return self._sums("residual", (-bound, bound), self.error_powers, absolute=True)

    def spread_statistic(self, answers: Answers) -> PowerSums:
        assert self.error_power is not None
        return self._one_sum(answers, 2 * self.error_power)

    def _one_sum(self, answers: Answers, power: int) -> PowerSums:
        bound = self.residual_bound(answers)
        return self._sums("residual", (-bound, bound), 1, absolute=True, power=power)

    def residuals_statistic(self, answers: Answers) -> PowerSums:
        bound = self.residual_bound(answers)
        return self._sums("residual", (-bound, bound), 1)

    def centre_statistic(self, answers: Answers) -> PowerSums:
        return self._sums("observed", self.observed_bounds(answers), 1)

    def centre(self, answers: Answers) -> float:
        """The outcome's mean within its bounds, as it was released."""
        sums, (low, high) = self.own(answers, "centre"), self.observed_bounds(answers)
        whole = sums.sum() if self.counted else self.row_count(answers) * PowerSums.resolution
        share = min(max(float(sums[0]) / max(float(whole), 1.0), 0.0), 1.0)
        return min(low + (high - low) * share, high)

    def outcome_statistic(self, answers: Answers) -> PowerSums:
        """Squared distances from that mean: far less noise than squares of the outcome itself."""
        by_group = self.by_group(answers) if self.groups > 1 else [answers]
        centres = tuple(map(self.centre, by_group))
        return self._sums(
            "observed", self.observed_bounds(answers), 2, absolute=True, centres=centres
        )

    def cells(self, answers: Answers) -> int:
        """Within the bounds: more than a few only where noise leaves something to see in them."""
        visible = self.typical_size(answers) * self.part("quantiles") / self.protection.rows_moved
        return MANY_CELLS if visible >= ENOUGH else FEW_CELLS

    def residual_edges(self, answers: Answers) -> Floats:
        bound = self.residual_bound(answers)
        return np.linspace(-bound, bound, self.cells(answers) + 1)

    def quantiles_statistic(self, answers: Answers) -> GridCounts:
        inner = self.residual_edges(answers).tolist()
        return GridCounts(axes=(Axis("residual", (-EDGE, *inner, EDGE)),), groups=self.groups)

    def sums_mechanism(self, name: str, statistic: PowerSums) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            self.part(name),
            l1_sensitivity=statistic.sensitivity(self.protection),
            dimension=statistic.size * self.groups,
        )

    def quantiles_mechanism(self, cells: int) -> CumulativeCounts:
        return CumulativeCounts(
            cells=cells,
            epsilon=self.part("quantiles"),
            moved=self.protection.rows_moved,
            groups=self.groups,
        )

    def _quantiles_step(self, answers: Answers) -> Step:
        statistic = self.quantiles_statistic(answers)
        return Step(statistic, self.quantiles_mechanism(statistic.size - 1))

    def _asked(self, name: str) -> dict[str, Booked]:
        """The steps of one part."""
        if name == "count":
            return {name: self.count_step}
        if name in self.searches:
            return self.searches[name].asked(self.row_count)
        if name == "quantiles":
            return {
                name: Booked(self.quantiles_mechanism(MANY_CELLS + 2).event(), self._quantiles_step)
            }
        build, powers = {
            "errors": (self.errors_statistic, 1 if self.error_power else self.error_powers),
            "spread": (self.spread_statistic, 1),
            "residuals": (self.residuals_statistic, 1),
            "centre": (self.centre_statistic, 1),
            "outcome": (self.outcome_statistic, 2),
        }[name]
        # The sensitivity does not depend on the bounds: any stand for those that come.
        sums = self.sums_mechanism(name, self._sums("residual", (0.0, 1.0), powers))
        return {name: Booked(sums.event(), lambda answers: Step(build(answers), sums))}

    def staged(self, **named: Any) -> Staged:
        """The request that the door books and draws."""
        steps: dict[str, Booked] = {}
        for name in self.shares:
            steps |= self._asked(name)
        return Staged(
            name="regression metrics",
            steps=steps,
            parameters={**named, **self.parameters()},
            claim="regression-metrics",
            description={
                "name": "bounded sums and a tree",
                **{f"{name}_epsilon": str(self.part(name)) for name in self.shares},
            },
            reading=self,
        )

    def parameters(self) -> dict[str, Any]:
        declared = (
            ("residual_bound", self.residual),
            ("observed_bounds", self.observed),
            ("expected_rows", self.expected_rows),
        )
        parameters: dict[str, Any] = {"scale": repr(self.scale), "r_squared": str(self.outcome)}
        if self.wanted is not None:
            parameters["wanted"] = ", ".join(self.wanted)
        return parameters | {name: str(value) for name, value in declared if value is not None}
