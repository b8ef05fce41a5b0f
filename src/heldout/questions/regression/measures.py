"""Private measures of a regression: MAE, RMSE, R squared and quantiles of the residuals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments import shown
from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio, single_quantile
from heldout.kernel.door import Drawn
from heldout.kernel.regression import PowerSums
from heldout.questions.regression.plot_plan import MetricsPlan
from heldout.questions.regression.tuned import ABSOLUTE_BEYOND, SEARCHED, SQUARED_BEYOND, USUAL


@dataclass(frozen=True, eq=False)
class MomentRatio(Ratio):
    """The mean of a number g in [0, 1] of each row, and a bound on the mean of its square.

    `square` are the weights of g^2 in the parts, where it was summed too; otherwise g^2 <= most g
    is all that is known, `most` the largest g. Where it is known from elsewhere, `mean_square` is
    the mean of g^2, or `around` that of (g - 1/2)^2.
    """

    square: Floats | None = None
    most: float = 1.0
    around: float | None = None
    mean_square: float | None = None

    @property
    def noise_deviation(self) -> float:
        """Of the mean, by the noise alone and while the number of rows stands out of it."""
        counts = self.counts
        weights = counts.spread.T @ (self.numerator - self.value * self.denominator)
        rows = max(float(self.denominator @ counts.estimate), counts.unit)
        return float(np.sqrt(2) * counts.scale * np.linalg.norm(weights)) / rows

    @cached_property
    def _square_sum(self) -> float:
        """Return the sum of g^2, as far up as noise may have hidden it; infinite if unknown."""
        if self.square is None:
            return math.inf
        noise = self.counts.noise(self.square).quantile(0.9)
        return max(float(self.square @ self.counts.estimate), 0.0) + noise

    def _variance(self, r: float, combination: Any, margin: float) -> float:
        """Of the sum over rows of g - r, for rows that are drawn independently with mean r."""
        counts = self.counts
        rows = max(float(self.denominator @ counts.estimate) + margin, counts.unit)
        largest = min(self._square_sum / rows, self.most * r)
        if self.around is not None:
            largest = min(self.around + r - 0.25, largest)
        if self.mean_square is not None:
            largest = min(self.mean_square, largest)
        return rows * counts.unit * max(largest - r * r, 0.0)


def noisy_parts(noisy: Any, *, scale: float, unit: float, rows: int | None) -> NoisyCounts:
    """The parts of all rows; the last is what is missing to whole rows where these are public."""
    noisy = np.asarray(noisy, dtype=np.float64)
    if rows is None:
        return NoisyCounts(estimate=noisy, spread=np.eye(len(noisy)), scale=scale, unit=unit)
    return NoisyCounts(
        estimate=np.append(noisy, rows * unit - noisy.sum()),
        spread=np.vstack([np.eye(len(noisy)), -np.ones(len(noisy))]),
        scale=scale,
        unit=unit,
        rows=rows,
    )


MEAN_RESIDUAL: Final = "mean residual"
SUMS: Final = ("errors", "spread", "residuals", "centre", "outcome")
_SHARES: Final = np.linspace(0.0, 2.0, 2001)
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


class RegressionMetrics(Release):
    """Error measures of one regression, from sums within bounds and a table of the residuals.

    Residuals beyond ±`residual_bound` count as that bound, and observed values beyond
    `observed_bounds` as the nearest of them: the numbers are those of the clipped values. `clipped`
    says how many residuals that concerns; where the bound was searched, the intervals of MAE and
    RMSE reach up to what they may have added. R squared is held to [-1, 1]
    and prints as "-1 or less" at the lower end; where the outcome has a long tail, clipping takes
    more of its variance than of the errors, and R squared comes out too low: declare bounds that
    hold the tail. `drawn` may name a group.
    """

    def __init__(self, drawn: Drawn, plan: MetricsPlan) -> None:
        super().__init__(drawn)
        self._plan = plan
        answers = drawn.values
        self.rows = plan.size(answers)
        self.residual_bound = plan.residual_bound(answers)
        self.observed_bounds = plan.observed_bounds(answers) if plan.outcome else None
        self._edges = np.array([-self.residual_bound, self.residual_bound])
        self._above: Any = None
        if "quantiles" in plan.shares:
            self._edges = plan.residual_edges(answers)
            self._above = plan.own(answers, "quantiles")

    @property
    def _public_rows(self) -> int | None:
        return None if self._plan.counted else self._plan.rows

    # --- means of errors -------------------------------------------------------------------------

    def _ratio(
        self,
        name: str,
        numerator: Sequence[float],
        square: Sequence[float] | None = None,
        most: float = 1.0,
    ) -> MomentRatio:
        plan, answers = self._plan, self._drawn.values
        statistic: PowerSums = getattr(plan, f"{name}_statistic")(answers)
        counts = noisy_parts(
            plan.own(answers, name),
            scale=plan.sums_mechanism(name, statistic).float_scale,
            unit=float(statistic.resolution),
            rows=self._public_rows,
        )
        return MomentRatio(
            counts=counts,
            numerator=np.asarray(numerator, dtype=np.float64),
            denominator=np.ones(len(counts.estimate)),
            square=None if square is None else np.asarray(square, dtype=np.float64),
            most=most,
        )

    @cached_property
    def _alone(self) -> MomentRatio:
        """Return the mean of the one power of the errors that was summed."""
        return replace(self._ratio("errors", (1, 0)), mean_square=self._upper(self._spread))

    @cached_property
    def _spread(self) -> MomentRatio:
        return self._ratio("spread", (1, 0))

    def _upper(self, ratio: MomentRatio) -> float:
        return float(_interval(ratio, USUAL, True)[1])

    @cached_property
    def _absolute(self) -> MomentRatio:
        if self._plan.error_power == 2:
            raise ArgumentError("mae was not asked for. Add it to measures= and ask again.")
        if self._plan.error_power == 1:
            return self._alone
        if self._plan.error_powers == 2:
            return self._ratio("errors", (1, 1, 0), square=(1, 0, 0))
        return self._ratio("errors", (1, 1, 1, 0), square=(1, 1, 0, 0))

    @cached_property
    def _squared(self) -> MomentRatio:
        if self._plan.error_power == 1:
            raise ArgumentError("rmse was not asked for. Add it to measures= and ask again.")
        if self._plan.error_power == 2:
            return self._alone
        if self._plan.error_powers == 2:
            return self._ratio("errors", (1, 0, 0))
        return self._ratio("errors", (1, 1, 0, 0), square=(1, 0, 0, 0))

    @cached_property
    def _fourth(self) -> MomentRatio:
        if self._plan.error_power == 2:
            return self._spread
        return self._ratio("errors", (1, 0, 0, 0))

    @cached_property
    def _middle(self) -> MomentRatio:
        """Return the mean of the residuals, 0 at the lower bound and 1 at the upper."""
        if "residuals" not in self._plan.shares:
            raise ArgumentError("mean_residual is released by group; a residual plot has it too.")
        squares = self._upper(self._spread if self._plan.error_power == 1 else self._squared)
        return replace(self._ratio("residuals", (1, 0)), around=squares / 4)

    @property
    def _no_rows(self) -> bool:
        return (self._absolute if self._has_mae else self._squared).of_nothing

    @property
    def _has_mae(self) -> bool:
        return self._plan.error_power != 2

    @property
    def _has_rmse(self) -> bool:
        return self._plan.error_power != 1

    def surprise(self, name: str, value: float) -> float:
        """Of errors that are clipped at the bound; of the rest by the width of the interval."""
        share = value / self.residual_bound
        if name == MEAN_RESIDUAL:
            return float(self._middle.p_value((share + 1) / 2))
        if self._has_mae and name == self.mae.name:
            return float(self._absolute.p_value(share))
        if self._has_rmse and name == self.rmse.name:
            return float(self._squared.p_value(share * share))
        return self.measures[name].surprise(value)

    def _beyond(self, factors: tuple[float, float], level: float) -> float:
        """Return what may lie beyond searched bounds; declared bounds are taken at their word.

        No row that is clipped counts less than 1 in the fourth moment, so they are no more.
        """
        if self._plan.residual is not None:
            return 0.0
        if self._plan.error_power == 1 or self._plan.error_powers == 2:
            return factors[1] * self.clipped.interval(level)[1]
        fourth = float(_interval(self._fourth, level, True)[1])
        clipped = min(self.clipped.value, fourth)
        return max(factors[0] * fourth, factors[1] * clipped)

    @cached_property
    def _usually_beyond(self) -> float:
        """Return the same of squared errors by the noisy numbers as they are, for R squared.

        Its interval is widened besides (`SEARCHED`); with their upper limits it would say nothing.
        """
        if self._plan.residual is not None:
            return 0.0
        alone = self._plan.error_power == 2 or self._plan.error_powers > 2
        fourth = self._fourth.value if alone else self.clipped.value
        return max(SQUARED_BEYOND[0] * fourth, SQUARED_BEYOND[1] * min(self.clipped.value, fourth))

    def _measure(
        self, name: str, value: float, interval: Callable[[float, bool], Any], **more: Any
    ) -> Measure:
        return Measure.read(value, interval, name=name, terms=self.terms, **more)

    @cached_property
    def mae(self) -> Measure:
        """The mean absolute error."""
        ratio, bound = self._absolute, self.residual_bound

        def interval(level: float, noise_only: bool) -> Interval:
            low, high = _interval(ratio, level, noise_only)
            return bound * low, bound * (high + self._beyond(ABSOLUTE_BEYOND, level))

        return self._size("mean absolute error", bound * ratio.value, interval)

    @cached_property
    def rmse(self) -> Measure:
        """The root of the mean squared error."""
        ratio, bound = self._squared, self.residual_bound

        def interval(level: float, noise_only: bool) -> Interval:
            low, high = _interval(ratio, level, noise_only)
            high += self._beyond(SQUARED_BEYOND, level)
            return bound * math.sqrt(low), bound * math.sqrt(high)

        return self._size("root mean squared error", bound * math.sqrt(ratio.value), interval)

    def _size(self, name: str, value: float, interval: Callable[[float, bool], Any]) -> Measure:
        """One from 0 upwards: half of that range lies below the value, if that is not too high."""
        middle = min(max(value, 1e-300), self.residual_bound / 2)
        return self._measure(name, value, interval, share=lambda size: size / (size + middle))

    @cached_property
    def mean_residual(self) -> Measure:
        """Return what predictions are too low by, on average; of groups."""
        ratio, bound = self._middle, self.residual_bound

        def interval(level: float, noise_only: bool) -> Interval:
            low, high = _interval(ratio, level, noise_only)
            beyond = self._beyond(ABSOLUTE_BEYOND, level)
            return bound * (2 * low - 1 - beyond), bound * (2 * high - 1 + beyond)

        # No mean lies further from 0 than the mean distance: searched bounds may be far wider.
        searched = self._plan.residual is None
        distance = self.mae if self._has_mae else self.rmse
        most = min(bound, max(distance.noise_interval()[1], 1e-300)) if searched else bound
        return self._residual(MEAN_RESIDUAL, bound * (2 * ratio.value - 1), interval, most)

    def _residual(
        self, name: str, value: float, interval: Callable[[float, bool], Any], most: float
    ) -> Measure:
        """One from -most to most."""

        def share(residual: float) -> float:
            return min(max(residual / (2 * most) + 0.5, 0.0), 1.0)

        return self._measure(name, value, interval, share=share)

    @cached_property
    def r_squared(self) -> Measure:
        """1 - (mean squared error) / (variance of the outcome), held to [-1, 1]."""
        if self.observed_bounds is None:
            raise ArgumentError("R squared was not asked for. Ask again with r_squared=True.")
        mean, spread, reach = self._outcome
        unit = (self.residual_bound / reach) ** 2
        width = (self.observed_bounds[1] - self.observed_bounds[0]) / reach

        # The mean squared distance from any point is the variance, and its distance from the mean
        # squared: of that the noise of the centre tells what is usual, and how far it strays.
        off = (mean.noise_deviation * width) ** 2
        variance = max(spread.value - off, 0.0)

        def interval(level: float, noise_only: bool) -> Interval:
            halves = []
            for ratio in (self._squared, spread):
                low, high = _interval(ratio, level, noise_only)
                halves.append(max(high - ratio.value, ratio.value - low))
            stray = math.hypot(halves[1], single_quantile(level) * math.sqrt(5) * off)
            # Fieller: the shares left unexplained that both errors together can explain.
            distance = unit * self._squared.value - _SHARES * variance
            reached = np.hypot(unit * halves[0], _SHARES * stray)
            reached *= 1 if self._declared else SEARCHED
            # What a searched bound clips may add to the errors, and never takes from them.
            beyond = unit * self._usually_beyond
            shares = _SHARES[(distance <= reached) & (-distance <= reached + beyond)]
            return 1 - float(shares.max(initial=0.0)), 1 - float(shares.min(initial=2.0))

        # Of a noisy divisor v with deviation d, v/(v^2 + d^2) has less bias than 1/v.
        noise = spread.noise_deviation
        steadied = (variance**2 + noise**2) / variance if variance > 0 else 0.0
        return self._measure(
            "R squared",
            _explained(unit * self._squared.value, steadied),
            interval,
            share=lambda value: (value + 1) / 2,
            least=-1.0,
        )

    @property
    def _declared(self) -> bool:
        return self._plan.residual is not None and self._plan.observed is not None

    @cached_property
    def _outcome(self) -> tuple[MomentRatio, MomentRatio, float]:
        """Return the outcome's mean within bounds, mean squared distance from it, and its unit."""
        low, high = self._plan.observed_bounds(self._drawn.values)
        centre = self._plan.centre(self._drawn.values)
        reach = max(centre - low, high - centre)
        return self._ratio("centre", (1, 0)), self._ratio("outcome", (1, 0, 0)), reach

    # --- quantiles -------------------------------------------------------------------------------

    @cached_property
    def clipped(self) -> Measure:
        """The share of residuals beyond the bound."""
        if self._above is None:
            raise ArgumentError(
                "clipped and quantiles were not asked for. Add them to measures= and ask again."
            )
        counts, deviation = self._above.counts, self._above.bin_deviation
        outside = counts[0] + counts[-1]
        noise = float(deviation[0] + deviation[-1])

        def interval(level: float, noise_only: bool) -> Interval:
            if self._no_rows:
                return 0.0, 1.0
            reach = single_quantile(level)
            share = min(max(outside / self.rows, 0.0), 1.0)
            upper = min(share + reach * noise / self.rows, 1.0)
            sampling = 0.0 if noise_only else math.sqrt(upper * (1 - upper) / self.rows)
            rest = reach * math.hypot(noise / self.rows, sampling) + self._rows_error(level)
            return max(share - rest, 0.0), min(share + rest, 1.0)

        value = min(max(outside / self.rows, 0.0), 1.0)
        return self._measure("share of residuals that are clipped", value, interval, share=float)

    def _rows_error(self, level: float) -> float:
        """Return how far a noisy row count may be from the true one, as a share of it."""
        if not self._plan.counted:
            return 0.0
        return float(self._plan.count_mechanism.error_quantile(level)) / self.rows

    def quantile(self, q: float) -> Measure:
        """The residual that a share q of the rows lies below."""
        if not (isinstance(q, int | float) and 0 < q < 1):
            raise ArgumentError(f"q must lie between 0 and 1, got {shown(q)}. Try 0.5.")
        if self._above is None:
            raise ArgumentError(
                "quantiles were not asked for. Add them to measures= and ask again."
            )
        edges = self._edges
        distance, deviation = self._below(q)
        rising = _rising(distance, deviation)

        def interval(level: float, noise_only: bool) -> Interval:
            if self._no_rows:
                return float(edges[0]), float(edges[-1])
            sampling = 0.0 if noise_only else self.rows * q * (1 - q)
            reach = single_quantile(level) * np.sqrt(deviation**2 + sampling)
            below, beyond = edges[distance + reach < 0], edges[distance - reach > 0]
            return (
                float(below.max(initial=edges[0])),
                float(beyond.min(initial=edges[-1])),
            )

        value = float(np.interp(0.0, rising, edges))
        return self._residual(f"residual quantile {q:g}", value, interval, self.residual_bound)

    def _below(self, q: float) -> tuple[Floats, Floats]:
        """Return rows below each edge less q of all rows, and the deviation of its noise.

        Rows are counted from the nearer end, where less noise adds up; the tree is full, so that
        its noise is the same from both.
        """
        table = self._above
        below = np.cumsum(table.counts)[:-1]
        above = np.cumsum(table.counts[::-1])[::-1][1:]
        known = not self._plan.counted
        total = float(self.rows) if known else float(table.counts.sum())
        of_total = 0.0 if known else float(table.above_deviation[0])
        of_above = table.above_deviation[1:-1]
        near = np.arange(len(below)) < len(below) / 2
        distance = np.where(near, below - q * total, (1 - q) * total - above)
        deviation = np.where(near, of_above[::-1] + q * of_total, of_above + (1 - q) * of_total)
        return distance, deviation

    @cached_property
    def quantiles(self) -> dict[float, Measure]:
        return {q: self.quantile(q) for q in QUANTILES}

    # --- for people and machines -----------------------------------------------------------------

    @property
    def measures(self) -> dict[str, Measure]:
        measures = [self.mae] if self._has_mae else []
        measures += [self.rmse] if self._has_rmse else []
        if "residuals" in self._plan.shares:
            measures.append(self.mean_residual)
        if self.observed_bounds is not None:
            measures.append(self.r_squared)
        measures += self.quantiles.values() if self._plan.has_quantiles else []
        measures += [] if self._above is None else [self.clipped]
        return {measure.name: measure for measure in measures}

    def __str__(self) -> str:
        lines = (f"  {measure.line()}" for measure in self.measures.values())
        return "\n".join([f"{self.name}, {self.terms}", *lines])

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            **super().as_dict(level),
            "bounds": {
                "residual": [-self.residual_bound, self.residual_bound],
                "observed": None if self.observed_bounds is None else list(self.observed_bounds),
            },
        }

    def _noisy(self) -> dict[str, Any]:
        plan, answers = self._plan, self._drawn.values
        names = [name for name in SUMS if name in plan.shares]
        sums: dict[str, Any] = {name: plan.own(answers, name).tolist() for name in names}
        counts = [] if self._above is None else np.asarray(self._above.counts).tolist()
        return {
            "rows": self.rows,
            **sums,
            "residual_edges": self._edges.tolist(),
            "residual_counts": counts,
        }


def _interval(ratio: Ratio, level: float, noise_only: bool) -> Interval:
    return ratio.noise_interval(level) if noise_only else ratio.interval(level)


def _rising(values: Floats, deviation: Floats) -> Floats:
    """Return the nearest values that do not fall, by weighted least squares."""
    from scipy.optimize import isotonic_regression

    weights = 1 / np.maximum(deviation, 1e-9) ** 2
    rising: Floats = isotonic_regression(values, weights=weights / weights.max()).x
    return rising


def _explained(errors: float, variance: float) -> float:
    """1 - errors / variance, at least -1."""
    return 1 - errors / variance if 2 * variance > errors else -1.0
