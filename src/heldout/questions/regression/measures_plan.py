"""Plan what the private measures of a regression ask of the rows, from public facts alone."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats
from heldout.kernel.door import Answers, Booked, Staged, Step
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions.regression.mechanisms import CumulativeCounts, Interval, Search
from heldout.questions.regression.plot_plan import ResidualsPlan
from heldout.questions.regression.statistics import Axis, GridCounts, PowerSums
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
    RESIDUAL_SLACK,
    SPREAD_PART,
    THRIFT,
    WIDER,
)

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
