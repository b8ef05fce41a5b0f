"""Time to an event: survival past public times, by predicted risk, and between groups.

All three count events and censorings by bins of time, and a row is in one bin. The curve, its
intervals and tests are arithmetic on these counts (`heldout.intervals.survival`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arguments import visible
from heldout.arrays import Floats, Ints
from heldout.data import Dataset, PrivateTable
from heldout.data.description import Description, SurvivalRows
from heldout.data.sql import count_passed, double
from heldout.errors import ArgumentError
from heldout.intervals.areas import (
    Belief,
    Scatter,
    believe_size,
    concordance_variance,
    noisy_area,
    two_sided_p_value,
)
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.noise import NoiseSum
from heldout.intervals.ratio import NoisyCounts, with_public_total
from heldout.intervals.survival import SurvivalCurve, cell_sums
from heldout.kernel.door import Drawn, Request
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import Look, laplace
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.ranking.concordance import PULL_STEPS, Concordance, ConcordanceMechanism
from heldout.kernel.ranking.ladder import NoiseLaw
from heldout.kernel.statistic import DisjointCounts
from heldout.pooling.answer import SummedPool, summed
from heldout.questions.base import Number, Numbers, Question, Text, Whole
from heldout.questions.groups import Divisible, group_columns, parameters_by_group
from heldout.questions.quote import Guess
from heldout.questions.worst_cases import (
    FLAG,
    GROUP,
    GROUPS,
    PERSON,
    REMOVE,
    SCORE,
    Pair,
    WorstCase,
    declare_rows,
)

__all__ = ["ConcordanceIndex", "KaplanMeier", "LogRank", "SurvivalCalibration"]

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

MOST_TIMES: Final = 500

# --- Rows by bins of time, and by whether the event came -----------------------------------------


@dataclass(frozen=True)
class SurvivalCounts(DisjointCounts):
    """Rows by bin of time and by whether the event came then; the rows beyond the last time.

    A time on an edge belongs to the bin that ends there. Cells are the censored and the events of
    each bin by turns, and one more for all rows beyond. With `edges` rows are counted by bins of a
    declared value first, as `ValueCounts` counts them; with groups, by group before that.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one cell, of one bin of the value, in one group.
    Numerics:    exact integers; times, values and edges compare as doubles.
    Refuses:     nothing; times are checked when the question is made.
    Reference:   proofs/disjoint-counts.md; Kaplan and Meier 1958.
    Cost:        one scan, O(times) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> counts = SurvivalCounts(times=(30.0, 365.0))
    >>> counts.size, counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    (5, 2)
    """

    times: tuple[float, ...]
    edges: tuple[float, ...] = ()
    place: int = 0
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_survival.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    @property
    def cells(self) -> int:
        """Return how many cells there are of one bin of the value."""
        return 2 * len(self.times) + 1

    def places(self) -> dict[str, tuple[str, int]]:
        passed = count_passed("time", self.times, sign=">")
        beyond = f"time > {double(self.times[-1])}"
        cell = f"CASE WHEN {beyond} THEN {self.cells - 1} ELSE 2 * ({passed}) + event END"
        above = count_passed(f"value_{self.place}", self.edges)
        return {"bin": (above, len(self.edges) + 1), "cell": (cell, self.cells)}


def bin_counts(noisy: Any, mechanism: DiscreteLaplace, rows: int | None) -> NoisyCounts:
    """Return noisy cells of one curve, which add up to `rows` where their number is public."""
    values, scale = np.asarray(noisy), mechanism.float_scale
    if rows is not None:
        return with_public_total(values, scale=scale, rows=rows)
    return NoisyCounts(estimate=values.astype(float), spread=np.eye(values.size), scale=scale)


# --- What people read ----------------------------------------------------------------------------


class SurvivalReading:
    """The share that lives on past each public time, with a band and a median. All of it is free.

    A time that is not shown has too few rows left at this price: its interval goes from 0 to the
    end of the last one shown.
    """

    terms: str
    times: tuple[float, ...]
    _curve: SurvivalCurve

    @property
    def shown(self) -> tuple[float, ...]:
        """Return the times that can be read."""
        return self.times[: self._curve.shown]

    def at(self, time: float) -> Measure:
        """Return the share that lives on past one of the public times."""
        if time not in self.times:
            known = ", ".join(f"{public:g}" for public in self.times[:20])
            raise ArgumentError(f"time must be one of the times in the grid: {known}.")
        return self._measure(self.times.index(time))

    def _measure(self, place: int) -> Measure:
        curve, shown = self._curve, self._curve.shown
        last = float(curve.shares[shown - 1]) if shown else 1.0
        return Measure.read(
            float(curve.shares[place]) if place < shown else last / 2,
            lambda level, noise: curve.ends(place, level, noise),
            name=self._called(place),
            terms=self.terms,
            share=float,
            reach=None if place < shown else lambda level: 1.0,
        )

    def _called(self, place: int) -> str:
        return f"survival past {self.times[place]:g}"

    @cached_property
    def measures(self) -> dict[str, Measure]:
        several = [self._measure(place) for place in range(len(self.times))]
        return {measure.name: measure for measure in several}

    def at_risk(self) -> Floats:
        """Return about how many rows reach each bin that ends at a time of the grid."""
        return np.maximum(self._curve.at_risk, 0.0)

    def band(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of a band that holds the whole curve at once, at the times shown."""
        return self._curve.band(level)

    def quantile(self, share: float = 0.5) -> Measure:
        """Return the time by which this share had the event; the median unless another is given.

        Between times of the grid the curve counts as straight. Where it does not fall so far, the
        answer is the last time, with an interval that says so: it ends at infinity.
        """
        if not 0 < share < 1:
            raise ArgumentError(f"share must lie between 0 and 1, got {share:g}. Try 0.5.")
        curve, wanted = self._curve, 1 - share

        def between(level: float, noise: bool) -> Interval:
            ends = [curve.ends(place, level, noise) for place in range(curve.shown)]
            before = [
                time for time, (low, _) in zip(self.times, ends, strict=False) if low > wanted
            ]
            after = [
                time for time, (_, high) in zip(self.times, ends, strict=False) if high < wanted
            ]
            return (max(before, default=0.0), min(after, default=math.inf))

        shares = np.concatenate([[1.0], curve.shares])
        times = np.concatenate([[0.0], self.times[: curve.shown]])
        value = float(np.interp(-wanted, -shares, times)) if curve.shown else self.times[-1]
        name = f"time by which {share * 100:g}% had the event"
        return Measure.read(value, between, name=name, terms=self.terms)

    def surprise(self, name: str, value: float) -> float:
        return self._curve.surprise(list(self.measures).index(name), value)

    def plotted(self) -> dict[str, Measure]:
        return {}

    def figures(self, level: float = 0.95) -> "list[Figure]":
        """Return the curve with the interval of each time."""
        from heldout.drawing.chart import Chart, Figure, Layer, Numbers

        rows = [{"time": 0.0, "share": 1.0, "low": 1.0, "high": 1.0}]
        for place, time in enumerate(self.shown):
            low, high = self._curve.interval(place, level)
            share = float(self._curve.shares[place])
            rows.append({"time": time, "share": share, "low": low, "high": high})
        style = {"interpolate": "step-after"}
        layers = [
            Layer("area", rows, x="time", y="low", y2="high", opacity=0.2, style=style),
            Layer("line", rows, x="time", y="share", style=style),
        ]
        far = self.times[-1]
        chart = Chart(layers, x=Numbers("Time", 0.0, far), y=Numbers("Share that lives on"))
        return [
            Figure(
                chart.svg(says="The share that lives on, by time."),
                f"The share without the event by time, with {level * 100:g}% intervals. Times "
                "with too few rows left at this price are not shown.",
            )
        ]


class SurvivalRelease(SurvivalReading, Release):
    """A noisy Kaplan-Meier curve."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism, statistic = drawn.request.mechanism, drawn.request.statistic
        assert isinstance(mechanism, DiscreteLaplace)
        assert isinstance(statistic, SurvivalCounts)
        self.times = statistic.times
        self._curve = SurvivalCurve(bin_counts(drawn.values, mechanism, drawn.about.rows))


class PooledSurvival(SurvivalReading, SummedPool):
    """The Kaplan-Meier curve of all rows of all sites."""

    def __init__(self, sites: "Sequence[Site]") -> None:
        SummedPool.__init__(self, sites)
        self.times = tuple(sites[0].content["parameters"]["grid"])
        self.terms = self._terms
        self._curve = SurvivalCurve(summed(self._noisy_counts))

    def _noisy(self, site: "Site") -> NoisyCounts:
        return bin_counts(site.noisy, site.mechanism, site.rows)


class CalibrationRelease(Release):
    """The share with the event by the horizon, by predicted risk."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism, statistic = drawn.request.mechanism, drawn.request.statistic
        assert isinstance(mechanism, DiscreteLaplace)
        assert isinstance(statistic, SurvivalCounts)
        low, high = drawn.request.parameters["bounds"]
        self.edges = (low, *statistic.edges, high)
        parts = np.asarray(drawn.values).reshape(-1, statistic.cells)
        self._curves = [SurvivalCurve(bin_counts(part, mechanism, None)) for part in parts]
        self._last = len(statistic.times) - 1

    @cached_property
    def measures(self) -> dict[str, Measure]:
        several = [self._observed(place) for place in range(len(self._curves))]
        return {measure.name: measure for measure in several}

    def _observed(self, place: int) -> Measure:
        curve, last = self._curves[place], self._last
        low, high = self.edges[place : place + 2]

        def turned(level: float, noise: bool) -> Interval:
            least, most = curve.ends(last, level, noise)
            return (1 - most, 1 - least)

        shown = last < curve.shown
        return Measure.read(
            1 - float(curve.shares[last]) if shown else 0.5,
            turned,
            name=f"observed risk where {low:g} to {high:g} is predicted",
            terms=self.terms,
            share=float,
            reach=None if shown else lambda level: 1.0,
        )

    def plotted(self) -> dict[str, Measure]:
        return {}

    def figures(self, level: float = 0.95) -> "list[Figure]":
        """Return observed against predicted risk, with the intervals of the bins shown."""
        from heldout.drawing.chart import MUTED, Chart, Figure, Layer, Numbers

        low, high = self.edges[0], self.edges[-1]
        rows = []
        for place, measure in enumerate(self.measures.values()):
            if measure.informative:
                ends = measure.interval(level)
                middle = (self.edges[place] + self.edges[place + 1]) / 2
                rows.append({"x": middle, "y": measure.value, "low": ends[0], "high": ends[1]})
        diagonal = [{"x": end, "y": min(max(end, 0.0), 1.0)} for end in (low, high)]
        layers = [
            Layer("line", diagonal, color=MUTED, style={"strokeDash": [4, 4]}),
            Layer("rule", rows, y="low", y2="high"),
            Layer("point", rows),
        ]
        chart = Chart(layers, x=Numbers("Predicted risk", low, high), y=Numbers("Observed risk"))
        horizon = self.parameters["horizon"]
        return [
            Figure(
                chart.svg(says="Observed against predicted risk."),
                f"The share with the event by {horizon:g}, by predicted risk, with "
                f"{level * 100:g}% intervals. On the dashed line both agree.",
            )
        ]


class LogRankRelease(Release):
    """Hazard ratios between groups, with the p-value that events come as often in all of them.

    Each group is compared with all others. The log-rank statistic is the events of a group less
    those that its share of the rows at risk would have; over its variance it is the logarithm of
    the hazard ratio (Peto's one-step estimate).
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism, statistic = drawn.request.mechanism, drawn.request.statistic
        assert isinstance(mechanism, DiscreteLaplace)
        assert isinstance(statistic, SurvivalCounts)
        self._scale, self._times = mechanism.float_scale, len(statistic.times)
        # Rows of no declared group, the last, are counted and not compared.
        names = drawn.request.parameters["groups"][:-1]
        self._cells = np.asarray(drawn.values, dtype=float).reshape(statistic.groups, -1)[:-1]
        # Of two groups the first one says nothing that the second does not.
        self.groups = tuple(names) if len(names) > 2 else tuple(names[1:])
        self._first = len(names) - len(self.groups)

    @cached_property
    def _scores(self) -> list[tuple[float, float, NoiseSum]]:
        return [self._score(self._first + place) for place in range(len(self.groups))]

    def _score(self, group: int) -> tuple[float, float, NoiseSum]:
        """Return a group's statistic, its variance and the law of its noise and sampling error.

        A censored row counts half in the bin where it was last seen.
        """
        events, censored, reaching = cell_sums(self._times)
        risk_cells = reaching - censored / 2
        own, every = self._cells[group], self._cells.sum(axis=0)
        d, d_all = events @ own, events @ every
        risk, risk_all = risk_cells @ own, risk_cells @ every
        noise = math.sqrt(2) * self._scale * math.sqrt(self._cells.size)
        enough = np.minimum(risk, risk_all - risk) >= max(1.0, noise / 4)
        last = int(np.argmin(enough)) if not enough.all() else self._times
        d, d_all, risk, risk_all = (sums[:last] for sums in (d, d_all, risk, risk_all))
        share, hazard = risk / risk_all, d_all / risk_all
        # Under the null: the noise of each cell, own or another group's, and the sampling error.
        excess = events[:last] - hazard[:, None] * risk_cells[:last]
        inside, outside = (1 - share)[:, None] * excess, -share[:, None] * excess
        weights = [inside.sum(axis=0), *[outside.sum(axis=0)] * (len(self._cells) - 1)]
        variance = np.maximum(d_all * share * (1 - share) * (1 - hazard), 0.0)
        total = max(float(variance.sum()), 0.25)
        law = NoiseSum(tuple(np.concatenate(weights).tolist()), self._scale, math.sqrt(total))
        return float((d - d_all * share).sum()), total, law

    @property
    def p_value(self) -> float:
        """Return how often groups would look so different if events came alike; Bonferroni's."""
        values = [2 * law.survival(abs(score)) for score, _, law in self._scores]
        return min(min(values) * len(values), 1.0)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        several = zip(self.groups, self._scores, strict=True)
        made = [self._ratio(group, *score) for group, score in several]
        return {measure.name: measure for measure in made}

    def _ratio(self, group: str, score: float, variance: float, law: NoiseSum) -> Measure:
        still = replace(law, deviation=0.0)

        def ends(level: float, noise: bool) -> Interval:
            reach = (still if noise else law).quantile(level)
            return (_exp((score - reach) / variance), _exp((score + reach) / variance))

        return Measure.read(
            _exp(score / variance),
            ends,
            name=f"hazard ratio of {visible(group)} to all others",
            terms=self.terms,
            share=lambda ratio: ratio / (1 + ratio),
        )

    def finding(self, level: float = 0.95) -> str:
        """Return whether groups differ, as far as the p-value tells."""
        if self.p_value < 1 - level:
            return f"Events do not come alike in all groups (log-rank p-value {self.p_value:.3g})."
        return f"No difference between groups can be seen (log-rank p-value {self.p_value:.3g})."

    def surprise(self, name: str, value: float) -> float:
        score, variance, law = self._scores[list(self.measures).index(name)]
        return min(2 * law.survival(abs(score - variance * math.log(max(value, 1e-300)))), 1.0)

    def plotted(self) -> dict[str, Measure]:
        return {}

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {"p_value": self.p_value}

    def __str__(self) -> str:
        return f"{self.headline}, log-rank p-value {self.p_value:.3g}"


def _exp(log: float) -> float:
    return math.exp(min(max(log, -30.0), 30.0))


# --- The questions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times(Numbers):
    """Public times above 0, `MOST_TIMES` at most.

    >>> Times()([365, 30], "grid")
    (30.0, 365.0)
    """

    def __call__(self, value: Any, name: str) -> tuple[float, ...]:
        times = super().__call__(value, name)
        if times[0] <= 0 or len(times) > MOST_TIMES:
            raise ArgumentError(f"{name} must be 1 to {MOST_TIMES} times above 0.")
        return times


GridOfTimes = Annotated[
    Any, Times(), "Public times, in the column's unit, at which the curve is read."
]


NEEDS_RISK = (1, "no column has predicted risks: declare values={'risk': (0, 1)}")


def typical_cells(times: int, rows: float, hazard: float = 0.7) -> Floats:
    """Return cells where half of the rows have the event by the last time, and a fifth is lost."""
    left = rows * np.exp(-(hazard + 0.2) * np.arange(times + 1) / times)
    gone = -np.diff(left)
    share = hazard / (hazard + 0.2)
    cells = np.stack([gone * (1 - share), gone * share], axis=1).ravel()
    return np.append(cells, left[-1])


@dataclass(frozen=True, kw_only=True)
class KaplanMeier(Divisible[SurvivalRelease, ByGroup[SurvivalRelease]]):
    """The share of rows without the event past each of some public times."""

    kind = "kaplan-meier"
    title = "Kaplan-Meier curve"
    asks = "How many survive past each time?"
    tells = (
        "The Kaplan-Meier curve at public times: the share without the event, allowing for "
        "censoring, with a band and the median time."
    )
    of = (SurvivalRows,)
    example: ClassVar[Mapping[str, Any]] = {"grid": [1.0, 2.0]}
    replayed = ({}, {"by": "g"})
    grid: GridOfTimes

    def statistic(self) -> SurvivalCounts:
        """Return the counts that answer it."""
        return SurvivalCounts(times=self.grid)

    def request(self, about: SurvivalRows) -> Request:
        statistic = self.statistic()
        parameters = {"time": about.time, "event": about.event, "grid": list(self.grid)}
        mechanism = laplace(statistic, self.price, about.protection)
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> SurvivalRelease:
        return SurvivalRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> Ints:
        return np.round(typical_cells(len(self.grid), sum(guess.counts))).astype(np.int64)

    @classmethod
    def pool(cls, sites: "Sequence[Site]") -> "Pooled":
        return PooledSurvival(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return survival_cases()


@dataclass(frozen=True, kw_only=True)
class SurvivalCalibration(Divisible[CalibrationRelease, ByGroup[CalibrationRelease]]):
    """The share with the event by a horizon, by bins of the risk that a model predicts for then."""

    kind = "survival-calibration"
    title = "calibration at a horizon"
    asks = "Do as many have the event by then as predicted?"
    tells = "The share with the event by a horizon, allowing for censoring, by predicted risk."
    of = (SurvivalRows,)
    needs_columns = NEEDS_RISK
    column_field = "column"
    example: ClassVar[Mapping[str, Any]] = {"column": "a", "horizon": 2.0, "bins": 2, "steps": 2}
    replayed = ({}, {"by": "g"})
    column: Annotated[
        str,
        Text("a column"),
        "The declared column with the predicted risk of the event by the horizon.",
    ]
    horizon: Annotated[float, Number(1e-300), "The time by which the event may have happened."]
    bins: Annotated[int, Whole(1, 100), "The number of bins of predicted risk."] = 5
    steps: Annotated[
        int, Whole(1, 100), "The number of time bins that allow for censored rows."
    ] = 4

    def _ends(self, about: SurvivalRows) -> tuple[float, float]:
        about.place(self.column)
        return about.values[self.column].ends

    def statistic(self, about: SurvivalRows) -> SurvivalCounts:
        """Return the counts that answer it."""
        low, high = self._ends(about)
        return SurvivalCounts(
            times=tuple(self.horizon * step / self.steps for step in range(1, self.steps + 1)),
            edges=tuple(low + (high - low) * bin_ / self.bins for bin_ in range(1, self.bins)),
            place=about.place(self.column),
        )

    def request(self, about: SurvivalRows) -> Request:
        statistic = self.statistic(about)
        parameters = {
            "time": about.time,
            "event": about.event,
            "column": self.column,
            "bounds": list(self._ends(about)),
            "horizon": self.horizon,
            "bins": self.bins,
            "steps": self.steps,
        }
        mechanism = laplace(statistic, self.price, about.protection)
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> CalibrationRelease:
        return CalibrationRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> Ints:
        rows = sum(guess.counts) / self.bins
        hazards = (np.arange(self.bins) + 0.5) / self.bins
        several = [typical_cells(self.steps, rows, float(-np.log1p(-hazard))) for hazard in hazards]
        return np.round(np.concatenate(several)).astype(np.int64)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return survival_cases()


@dataclass(frozen=True, kw_only=True)
class LogRank(Question[LogRankRelease]):
    """The log-rank test: do events come as often in all groups of a declared column?"""

    kind = "log-rank"
    title = "log-rank test"
    asks = "Are events equally frequent in all groups?"
    tells = "The hazard ratio of each group to all others, and the p-value of the log-rank test."
    of = (SurvivalRows,)
    example: ClassVar[Mapping[str, Any]] = {"grid": [1.0, 2.0], "between": "g"}
    grid: GridOfTimes
    between: Annotated[str, Text("a column"), "The declared column whose groups are compared."]

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and not about.groups:
            why = "no groups are declared: declare groups={'arm': ['A', 'B']}"
        return why

    def check(self, about: Description) -> None:
        super().check(about)
        if len(about.group_names(self.between)) < 3:  # the last are the rows of no group
            raise ArgumentError(f"{visible(self.between)!r} must have two declared groups or more.")

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        first = next(iter(about.groups), None)
        return {} if first is None else {"between": first}

    def request(self, about: SurvivalRows) -> Request:
        statistic = SurvivalCounts(times=self.grid).of_groups(len(about.group_names(self.between)))
        parameters = {
            "time": about.time,
            "event": about.event,
            "grid": list(self.grid),
            **parameters_by_group(self.between, about),
        }
        mechanism = laplace(statistic, self.price, about.protection)
        view = group_columns(self.between)
        return Request(self.title, statistic, mechanism, parameters, view=view)

    def read(self, drawn: Drawn) -> LogRankRelease:
        return LogRankRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> Ints:
        groups = len(about.group_names(self.between))
        one = typical_cells(len(self.grid), sum(guess.counts) / groups)
        return np.round(np.tile(one, groups)).astype(np.int64)

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        return (0.0, math.inf)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return (WorstCase(pairs=survival_pairs(), make=survival_table),)


# --- audited -------------------------------------------------------------------------------------

OwnRows = list[tuple[float, int, float]]
_OTHERS: Final[OwnRows] = [
    (0.5, 1, 0.8), (1.0, 0, 0.4), (1.5, 1, 0.6), (2.0, 0, 0.2), (2.5, 1, 0.1), (3.0, 0, 0.5),
]  # fmt: skip


def survival_table(content: Any, options: Mapping[str, Any]) -> PrivateTable:
    """Return private rows with a time t, an event e, a score p and the value a from 0 to 1."""
    columns = {"time": "t", "event": "e", "score": "p", "values": {"a": (0, 1)}}
    return Dataset(content, **{**columns, "name": "neighbour", **options})


def survival_pair(
    name: str, first: OwnRows, second: OwnRows, others: OwnRows = _OTHERS, **options: Any
) -> Pair:
    """Return one person's rows of time, event and risk on either side, beside those of others."""

    def of(own: OwnRows, group: str) -> dict[str, Any]:
        content = [*own, *others]
        people = [*[0] * len(own), *range(1, len(others) + 1)]
        return {
            "t": [time for time, _, _ in content],
            "e": [event for _, event, _ in content],
            "p": [risk for _, _, risk in content],
            "a": [risk for _, _, risk in content],
            "g": [*group * len(own), *("aababb"[at % 6] for at in range(len(others)))],
            "u": people,
            "k": list(range(len(content))),
        }

    return Pair(name, of(first, "a"), of(second, "b"), {"groups": {"g": ["a", "b"]}, **options})


def survival_pairs() -> tuple[Pair, ...]:
    """Return neighbours where a person's rows go from one end of all to the other."""
    first, last = (0.5, 1, 0.0), (9.0, 0, 1.0)
    return (
        survival_pair("an early event becomes a late censoring", [first], [last]),
        survival_pair("an early event leaves", [first], [], **REMOVE),
        survival_pair("a person's two rows from end to end", [first] * 2, [last] * 2, **PERSON),
    )


def survival_cases(**fields: Any) -> tuple[WorstCase, ...]:
    """Return the worst neighbours of a question about counts by time, plain and by group."""
    pairs = survival_pairs()
    by_group = WorstCase(name="by-group", pairs=pairs, fields={"by": "g"}, make=survival_table)
    return (WorstCase(pairs=pairs, fields=fields, make=survival_table), by_group)


def _open_survival(content: Any, **options: Any) -> Dataset:
    columns: dict[str, Any] = {"time": "t", "event": "e", "score": "p", "groups": GROUPS}
    return Dataset(content, **columns, values={"a": (0, 1)}, name="made up", **options)


declare_rows(
    SurvivalRows,
    {"t": SCORE, "e": FLAG, "p": SCORE, "a": SCORE, "g": GROUP},
    _open_survival,
    outcome=("t", "e"),
)


# Concordance: does the row whose event comes first have the higher risk?
LEAST_EPSILON: Final = Fraction(1, 5000)
MOST_EPSILON: Final = 100
USUAL_SCATTER: Final = (0.2, 0.8)
"""The sampling variance as a share of the largest, and the deviation of that share's logarithm,
before the pull is seen. Since 2026-11-18; measured by benchmarks/measures.py."""


@dataclass(frozen=True)
class _Value:
    """The value as drawn."""

    unclamped: float
    law: NoiseLaw
    metric: str = "concordance"

    @property
    def value(self) -> float:
        return min(1.0, max(0.0, self.unclamped))


class ConcordanceRelease(Release):
    """A noisy concordance index."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, ConcordanceMechanism)
        self._mechanism = mechanism
        self._size, self._units, self._pull = (int(number) for number in drawn.values)
        self._draw = _Value(float(self._units * LATTICE), mechanism.law)

    @cached_property
    def _known(self) -> Belief:
        look = Look((float(self._size),), float(self._mechanism.size_look.scale))
        rows = self._drawn.about.rows
        per_unit = self._mechanism.protection.rows_per_unit
        most = None if rows is None else rows // 2
        known = believe_size(look, rows_per_unit=per_unit, most=most)
        size = 1 / known.per_positive
        # The pull over the size squared is the sampling variance; here in parts of the largest.
        centre = min(max(self._draw.value, 0.01), 0.99)
        whole = concordance_variance(centre, size, size) * size**2 * PULL_STEPS
        scale = float(self._mechanism.pull_look(self._units).scale)
        usual = Scatter.around(USUAL_SCATTER[0], spread=USUAL_SCATTER[1])
        scatter = Scatter.seen(self._pull / whole, scale=scale / whole, prior=usual)
        return replace(known, scatter=scatter)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        name, known = self.name, self._known
        return {name: noisy_area(self._draw, name=name, terms=self.terms, known=known, shown=known)}

    def surprise(self, name: str, value: float) -> float:
        return two_sided_p_value(self._draw, null=value, known=self._known)


@dataclass(frozen=True, kw_only=True)
class ConcordanceIndex(Divisible[ConcordanceRelease, ByGroup[ConcordanceRelease]]):
    """Harrell's C: the share of comparable pairs in which the earlier event has the higher score.

    A tied score counts one half. Two events at one time are not compared; an event and a censoring
    at one time are, and the censored row lives on: as in lifelines.
    """

    kind = "concordance"
    title = "concordance"
    takes_long = True
    asks = "Does a higher risk mean an earlier event?"
    tells = (
        "Harrell's C: among pairs of rows where it is known whose event came first, how often "
        "that row has the higher score."
    )
    of = (SurvivalRows,)
    replayed = ({}, {"by": "g"}, {"column": "a"})
    column: Annotated[
        str | None,
        Text("a column"),
        "The declared value that is the risk; left out, it is the declared score.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_EPSILON <= self.price <= MOST_EPSILON:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_EPSILON} and {MOST_EPSILON} for the "
                f"{self.title}, got {self.price}."
            )

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and isinstance(about, SurvivalRows) and not (about.score or about.values):
            why = "no column has the risk that a model gives: name it with score="
        return why

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        if not isinstance(about, SurvivalRows) or about.score is not None:
            return {}
        return {"column": next(iter(about.values), None)}

    def check_by_group(self, about: SurvivalRows) -> None:
        moved = about.protection.rows_moved
        if self.price / moved < LEAST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at least {moved * LEAST_EPSILON} by group, got {self.price}."
            )

    def request(self, about: SurvivalRows) -> Request:
        mechanism = ConcordanceMechanism(
            epsilon=self.price, protection=about.protection, rows=about.rows
        )
        if self.column is None and about.score is None:
            known = ", ".join(map(repr, about.values))
            raise ArgumentError(f"Name column, the risk that is judged. Columns: {known}.")
        column = "score" if self.column is None else f"value_{about.place(self.column)}"
        risk = self.column or about.score
        parameters = {"time": about.time, "event": about.event, "score": risk}
        return Request(self.title, Concordance(column), mechanism, parameters)

    def read(self, drawn: Drawn) -> ConcordanceRelease:
        return ConcordanceRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> Ints:
        # As many comparable pairs as half of the rows having the event would give.
        size = max(sum(guess.counts) // 3, 1)
        value = guess.auc
        pull = USUAL_SCATTER[0] * 2 * value * (1 - value) * size * PULL_STEPS
        return np.array([size, round(Fraction(value) / LATTICE), round(pull)], dtype=np.int64)

    @classmethod
    def pool(cls, sites: "Sequence[Site]") -> "Pooled":
        from heldout.pooling.answer import PooledArea

        return PooledArea(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (*concordance_pairs(),)
        return (
            WorstCase(pairs=pairs, make=survival_table, why="parts are for the interval"),
            WorstCase(name="by-group", pairs=pairs, fields={"by": "g"}, make=survival_table),
        )


def concordance_pairs() -> tuple[Pair, ...]:
    """Return neighbours where a row turns all its pairs around."""
    best, worst = (0.1, 1, 1.0), (0.1, 1, 0.0)
    hundreds = [(0.5 + at / 100, 1, 0.9 - at / 1000) for at in range(300)]
    return (
        survival_pair("the first event falls from the top to the bottom", [best], [worst]),
        survival_pair("the first event leaves", [best], [], **REMOVE),
        survival_pair("a person's two events fall", [best] * 2, [worst] * 2, **PERSON),
        # Where rows are many hardly anything is spent on their number: the value shows most.
        survival_pair("the first of hundreds falls from top to bottom", [best], [worst], hundreds),
    )
