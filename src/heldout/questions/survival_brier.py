"""The Brier score of predicted risks by a horizon, where rows may be lost before it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.description import SurvivalRows
from heldout.data.sql import double, held_to
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.ratio import NoisyCounts, noisy_sums, share_of
from heldout.intervals.survival import SurvivalCurve
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import laplace
from heldout.kernel.statistic import BoundedSum, Statistic
from heldout.questions.base import Number, Question, Text, Whole
from heldout.questions.quote import Guess
from heldout.questions.survival import (
    NEEDS_RISK,
    SurvivalCounts,
    bin_counts,
    survival_pairs,
    survival_table,
    typical_cells,
)
from heldout.questions.worst_cases import WorstCase

__all__ = ["SurvivalBrier"]

LOST_SHARE: Final = Fraction(1, 4)
"""Of epsilon, for the counts that say how many rows are lost by when."""
LARGEST_WEIGHT: Final = 10.0
"""A row counts at most so often, for others like it that were lost."""


@dataclass(frozen=True)
class SurvivalErrors(BoundedSum):
    """Sums over rows of a squared error by a horizon, weighted for rows that were lost before it.

    A row that lives past the horizon has the error r^2 of its predicted risk r and the last of the
    `weights`; one with the event before has (1 - r)^2 and the weight of its bin of time; one that
    was lost before counts as 0. Weights are public, or were released; the sums are those of
    `BoundedSum`, with the error over the largest weight.

    Claim:       as BoundedSum: L1 sensitivity `resolution` a row that leaves or arrives, or is
                 replaced where the row count is public.                  [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the error is a number from 0 to 1 of the row's own time, event and risk.
    Numerics:    exact integers; risks are held to 0 and 1, times compare as doubles.
    Refuses:     what BoundedSum refuses; weights that are not from 0 to the largest, or not one
                 for each bin and one more.
    Reference:   Graf, Schmoor, Sauerbrei and Schumacher 1999; proofs/bounded-sum.md.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> errors = SurvivalErrors(times=(1.0,), weights=(1.0, 1.25))
    >>> errors.largest, errors.sensitivity(Protection(neighbours=Neighbours.ADD_REMOVE))
    (1.25, 1048576)
    """

    error: str = "survival"
    score_range: tuple[float, float] = (0.0, 1.0)
    with_rest: bool = True
    times: tuple[float, ...] = (1.0,)
    weights: tuple[float, ...] = (1.0, 1.0)
    place: int = 0
    known: ClassVar[tuple[str, ...]] = ("survival",)
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_survival_brier.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fit = len(self.weights) == len(self.times) + 1 and min(self.weights) >= 0
        if not fit or not 0 < self.largest <= LARGEST_WEIGHT:
            raise ArgumentError(
                f"weights must be one per bin and one more, {LARGEST_WEIGHT} at most."
            )

    @property
    def largest(self) -> float:
        return max(self.weights)

    def _error(self) -> str:
        risk = held_to(f"value_{self.place}", 0.0, 1.0)
        shares = [double(weight / self.largest) for weight in self.weights]
        bins = zip(self.times, shares, strict=False)
        weight = " ".join(f"WHEN time <= {double(time)} THEN {share}" for time, share in bins)
        died = (
            f"({double(1)} - {risk}) * ({double(1)} - {risk}) * CASE {weight} ELSE {double(0)} END"
        )
        return (
            f"CASE WHEN time > {double(self.times[-1])} THEN {risk} * {risk} * {shares[-1]} "
            f"WHEN event = 1 THEN {died} ELSE {double(0)} END"
        )

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return []


def censoring(cells: Any, mechanism: DiscreteLaplace, rows: int | None) -> SurvivalCurve:
    """Return the curve of rows not yet lost, where an event takes a row out of sight."""
    counts = bin_counts(cells, mechanism, rows)
    order = np.arange(len(counts.estimate))
    order[:-1] = order[:-1].reshape(-1, 2)[:, ::-1].ravel()
    turned = NoisyCounts(
        estimate=counts.estimate[order],
        spread=counts.spread[order],
        scale=counts.scale,
        rows=counts.rows,
    )
    return SurvivalCurve(turned)


def censoring_weights(curve: SurvivalCurve) -> Floats:
    """Return how many rows a row stands for, by bin of its event, and past the last time.

    >>> counts = NoisyCounts(estimate=np.array([0.0, 500, 500]), spread=np.eye(3), scale=1)
    >>> censoring_weights(SurvivalCurve(counts)).round(3).tolist()
    [1.414, 2.0]
    """
    ends = np.concatenate([[1.0], curve.shares, np.zeros(curve.times - curve.shown)])
    ends = np.maximum(ends, 1 / LARGEST_WEIGHT)
    middles = np.sqrt(ends[:-1] * ends[1:])  # lost at a constant rate within the bin
    return np.minimum(1 / np.append(middles, ends[-1]), LARGEST_WEIGHT)


class SurvivalBrierRelease(Release):
    """A noisy Brier score at a horizon.

    Its intervals hold the noise of the weights too: the error of their logarithm, at the horizon,
    moves the score by at most its own part.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        plan, answers = drawn.request.reading, drawn.values
        assert isinstance(plan, _Plan)
        self._answers = answers
        self._curve = plan.curve(answers)
        step = plan.errors(answers)
        statistic, mechanism = step.statistic, step.mechanism
        assert isinstance(statistic, SurvivalErrors)
        assert isinstance(mechanism, DiscreteLaplace)
        rows = None if statistic.with_rest else drawn.about.rows
        unit = float(statistic.resolution)
        self._ratio = share_of(noisy_sums(answers["errors"], mechanism, unit=unit, rows=rows))
        self._largest = statistic.largest

    @cached_property
    def _weight_noise(self) -> float:
        """Return the deviation of the noise of the last weight's logarithm."""
        shown = self._curve.shown
        return math.inf if shown < self._curve.times else self._curve.noise_deviation(shown - 1)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        value = self._ratio.value * self._largest

        def widened(level: float, noise: bool) -> Interval:
            ends = self._ratio.noise_interval(level) if noise else self._ratio.interval(level)
            more = NormalDist().inv_cdf((1 + level) / 2) * value * min(self._weight_noise, 1e6)
            low, high = (end * self._largest for end in ends)
            return (
                max(value - math.hypot(value - low, more), 0.0),
                min(value + math.hypot(high - value, more), self._largest),
            )

        measure = Measure.read(
            min(value, 1.0),
            widened,
            name=self.name,
            terms=self.terms,
            share=lambda score: score / (score + 0.25),
            reach=None if math.isfinite(self._weight_noise) else lambda level: 1.0,
        )
        return {self.name: measure}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def surprise(self, name: str, value: float) -> float:
        return self.measures[name].surprise(value)

    def _noisy(self) -> dict[str, Any]:
        return {name: np.asarray(vector).tolist() for name, vector in self._answers.items()}


@dataclass(frozen=True)
class _Plan:
    """Both steps, from public facts: counts of rows lost by when, then errors weighted by them."""

    epsilon: Fraction
    protection: Protection
    rows: int | None
    times: tuple[float, ...]
    place: int

    @property
    def lost(self) -> Step:
        statistic = SurvivalCounts(times=self.times)
        return Step(statistic, laplace(statistic, self.epsilon * LOST_SHARE, self.protection))

    def curve(self, answers: Answers) -> SurvivalCurve:
        mechanism = self.lost.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        return censoring(answers["lost"], mechanism, self.rows)

    def errors(self, answers: Answers) -> Step:
        weights = censoring_weights(self.curve(answers))
        return self._errors(tuple(float(weight) for weight in weights))

    def _errors(self, weights: tuple[float, ...]) -> Step:
        statistic = SurvivalErrors(
            with_rest=self.rows is None, times=self.times, weights=weights, place=self.place
        )
        noise = laplace(statistic, self.epsilon * (1 - LOST_SHARE), self.protection)
        return Step(statistic, noise)

    def steps(self) -> dict[str, Booked]:
        price = self._errors((1.0,) * (len(self.times) + 1)).mechanism.event()
        return {"lost": Booked.of(self.lost), "errors": Booked(price, self.errors)}


@dataclass(frozen=True, kw_only=True)
class SurvivalBrier(Question[SurvivalBrierRelease]):
    """The mean squared error of predicted risks by a horizon, weighted for rows that were lost."""

    kind = "survival-brier"
    title = "Brier score at a horizon"
    asks = "How far are predicted risks from what happened by then?"
    tells = "The Brier score of predicted risks by a horizon, weighted to allow for censoring."
    of = (SurvivalRows,)
    needs_columns = NEEDS_RISK
    column_field = "column"
    example: ClassVar[Mapping[str, Any]] = {"column": "a", "horizon": 2.0, "steps": 2}
    column: Annotated[
        str,
        Text("a column"),
        "The declared column with the predicted risk of the event by the horizon.",
    ]
    horizon: Annotated[float, Number(1e-300), "The time by which the event may have happened."]
    steps: Annotated[
        int, Whole(1, 100), "The number of time bins that allow for censored rows."
    ] = 6

    def _plan(self, about: SurvivalRows) -> _Plan:
        place = about.place(self.column)
        low, high = about.values[self.column].ends
        if low < 0 or high > 1:
            raise ArgumentError(
                f"values[{self.column!r}] must lie from 0 to 1, got {low:g} to {high:g}: a risk is "
                "a share."
            )
        times = tuple(self.horizon * step / self.steps for step in range(1, self.steps + 1))
        return _Plan(self.price, about.protection, about.rows, times, place)

    def request(self, about: SurvivalRows) -> Staged:
        plan = self._plan(about)
        parameters = {
            "time": about.time,
            "event": about.event,
            "column": self.column,
            "horizon": self.horizon,
            "steps": self.steps,
        }
        return Staged(
            name=self.title,
            steps=plan.steps(),
            parameters=parameters,
            claim="staged",
            description={"name": "discrete Laplace", "lost": plan.lost.mechanism.describe()},
            reading=plan,
        )

    def read(self, drawn: Drawn) -> SurvivalBrierRelease:
        return SurvivalBrierRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> dict[str, Ints]:
        plan, rows = self._plan(about), sum(guess.counts)
        cells = np.round(typical_cells(self.steps, rows)).astype(np.int64)
        statistic = plan.errors({"lost": cells}).statistic
        assert isinstance(statistic, SurvivalErrors)
        error, deviation = guess.error("squared")
        mean = error / statistic.largest
        spread = max(mean * (1 - mean) - (deviation / statistic.largest) ** 2, 0.0)
        parts = [mean, spread, 1 - mean - spread][: statistic.size]
        return {"lost": cells, "errors": np.round(np.array(parts) * rows * statistic.resolution)}

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        why = "a part of the price is for the weights"
        return (WorstCase(pairs=survival_pairs(), make=survival_table, why=why),)
