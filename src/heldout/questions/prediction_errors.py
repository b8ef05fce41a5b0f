"""Two regressions on the same rows: the difference of their mean errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from heldout.arguments import no_such, visible
from heldout.arrays import Ints
from heldout.data import Dataset
from heldout.data.description import Description, MeasuredRows
from heldout.data.sql import double, held_to
from heldout.errors import ArgumentError
from heldout.intervals.measure import Difference, Interval, Measure
from heldout.intervals.ratio import Ratio, noisy_sums, share_of
from heldout.kernel.door import Booked, Drawn, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import laplace
from heldout.kernel.statistic import BoundedSum, Statistic
from heldout.questions.base import Number, OneOf, Question, Text
from heldout.questions.quote import Guess, typical_sums
from heldout.questions.values import value_pair
from heldout.questions.worst_cases import PERSON, REMOVE, WorstCase

__all__ = ["CompareErrors"]

ABSOLUTE, SQUARED = "mean-absolute-error", "root-mean-squared-error"
TITLES: Final = {ABSOLUTE: "mean absolute error", SQUARED: "root mean squared error"}
LEVEL_SHARE: Final = Fraction(1, 5)
"""Of epsilon, for how large the squared errors are at all. A difference of roots is the difference
of squares over the sum of roots: where models are alike, the sum hardly matters."""
DOUBT_SHARE: Final = 0.1
"""Of the doubt of an interval, for the same."""


@dataclass(frozen=True)
class ErrorSums(BoundedSum):
    """Sums over rows of the second prediction's error minus the first one's, or of their mean.

    An error is the distance between a prediction and what was observed, held to `most`; it counts
    squared where `squared`. The sums are those of `BoundedSum`, of a number from 0 to 1.

    Claim:       as BoundedSum: L1 sensitivity `resolution` a row that leaves or arrives, or is
                 replaced where the row count is public.                  [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: half of the difference plus one half, or the mean, is a number from 0 to 1 of the
                 row's own values; nothing else of it enters the proof.
    Numerics:    exact integers; values are held to finite bounds before they are subtracted.
    Refuses:     what BoundedSum refuses.
    Reference:   proofs/bounded-sum.md.
    Cost:        one scan, O(1) memory.

    >>> sums = ErrorSums(places=(0, 1, 2), bounds=((0, 9), (0, 9), (0, 9)), most=9.0)
    >>> sums.sensitivity(Protection(neighbours="add-remove"))
    1048576
    """

    error: str = "difference"
    score_range: tuple[float, float] = (0.0, 1.0)
    with_rest: bool = True
    places: tuple[int, int, int] = (0, 1, 2)
    """Of what was observed and of both predictions, among the declared columns."""
    bounds: tuple[tuple[float, float], ...] = ((0.0, 1.0),) * 3
    most: float = 1.0
    squared: bool = False
    known: ClassVar[tuple[str, ...]] = ("difference", "level")
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_prediction_errors.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    @property
    def largest(self) -> float:
        """The width of the range."""
        most = self.most**2 if self.squared else self.most
        return 2 * most if self.error == "difference" else most

    def _error(self) -> str:
        observed, *predicted = (
            held_to(f"value_{place}", *ends)
            for place, ends in zip(self.places, self.bounds, strict=True)
        )
        shares = []
        for own in predicted:
            far = f"least(abs({observed} - {own}), {double(self.most)}) / {double(self.most)}"
            shares.append(f"({far}) * ({far})" if self.squared else far)
        first, second = shares
        if self.error == "level":
            return f"(({first}) + ({second})) / 2"
        return f"(({second}) - ({first}) + 1) / 2"

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return []


class ErrorDifference(Difference):
    """The second prediction's mean error minus the first one's, on the same rows."""

    sides: ClassVar[tuple[str, str]] = ("first", "second")

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self._steps: Mapping[str, Step] = drawn.request.reading

    def _ratio_of(self, name: str) -> Ratio:
        step: Any = self._steps[name]
        rows = None if step.statistic.with_rest else self._drawn.about.rows
        unit = float(step.statistic.resolution)
        return share_of(noisy_sums(self._drawn.values[name], step.mechanism, unit=unit, rows=rows))

    @cached_property
    def _difference(self) -> Ratio:
        """Return the place of the difference in its range, from 0 to 1."""
        return self._ratio_of("difference")

    @cached_property
    def _level(self) -> Ratio:
        return self._ratio_of("level")

    @property
    def _reach(self) -> float:
        """Return the largest difference of errors, or of their squares."""
        statistic: Any = self._steps["difference"].statistic
        return float(statistic.largest) / 2

    @property
    def _measured(self) -> str:
        return str(self.parameters["measure"])

    def _apart(self, difference: float, level: float) -> float:
        """Return a difference of roots, of the difference and the mean of two squares."""
        low, high = max(level - difference / 2, 0.0), max(level + difference / 2, 0.0)
        return math.sqrt(high) - math.sqrt(low)

    @property
    def measures(self) -> dict[str, Measure]:
        reach, squared = self._reach, self._measured == SQUARED

        def signed(share: float) -> float:
            return reach * (2 * share - 1)

        def ends(level: float, noise: bool) -> Interval:
            def of(ratio: Ratio, at: float) -> Interval:
                return ratio.noise_interval(at) if noise else ratio.interval(at)

            if not squared:
                low, high = of(self._difference, level)
                return signed(low), signed(high)
            rest = DOUBT_SHARE * (1 - level)
            low, high = (signed(end) for end in of(self._difference, level + rest))
            least, most = (reach * end for end in of(self._level, 1 - rest))
            # The smaller the errors are, the more a difference of squares means.
            corners = [
                self._apart(end, max(size, abs(end) / 2))
                for end in (low, high)
                for size in (least, most)
            ]
            return min(corners), max(corners)

        title = self.compared
        name = visible(f"{title} of {self.rival} minus {title} of {self.score}")
        value = signed(self._difference.value)
        if squared:
            value = self._apart(value, max(reach * self._level.value, abs(value) / 2))
        widest = math.sqrt(reach) if squared else reach
        return {
            name: Measure.read(
                value,
                ends,
                name=name,
                terms=self.terms,
                share=lambda value: (value / widest + 1) / 2,
            )
        }

    @property
    def p_value(self) -> float:
        return self._difference.p_value(0.5)

    @property
    def compared(self) -> str:
        return TITLES[self._measured]

    @property
    def phrases(self) -> tuple[str, str, str]:
        by = self.compared
        return f"has the smaller {by}", f"have the smaller {by}", f"has a smaller {by} than"

    def plotted(self) -> dict[str, Measure]:
        return {}

    def _noisy(self) -> object:
        return {name: list(map(int, values)) for name, values in self._drawn.values.items()}


@dataclass(frozen=True, kw_only=True)
class CompareErrors(Question[ErrorDifference]):
    """Which of two predictions of a number errs less on the same rows?

    The columns with what was observed and with both predictions are declared, with bounds. Errors
    beyond `largest_error`, a public number, count as that: the smaller it is, the less noise.
    """

    kind = "compare-errors"
    title = "difference in error"
    asks = "Does another regression have smaller errors?"
    tells = (
        "The difference in mean absolute or root mean squared error on the same rows, with its "
        "interval."
    )
    of = (MeasuredRows,)
    cannot_pool = "differences in error of several sites are not combined yet"
    needs_columns = (
        2,
        "it needs what was observed and predictions: declare values={'pay': (0, 9), ...}",
    )
    example: ClassVar[Mapping[str, Any]] = {"observed": "a", "first": "b", "second": "a"}
    replayed = (
        {},
        {"measure": ABSOLUTE},
        {"largest_error": 0.5},
    )
    observed: Annotated[str, Text("a column"), "The declared column with the observed numbers."]
    first: Annotated[str, Text("a column"), "The declared column with one model's predictions."]
    second: Annotated[
        str, Text("a column"), "The declared column with the other model's predictions."
    ]
    measure: Annotated[str, OneOf(tuple(TITLES)), "The error to compare by; lower is better."] = (
        SQUARED
    )
    largest_error: Annotated[
        float | None,
        Number(),
        "Larger errors count as this one. Default: the largest error that the bounds allow.",
    ] = None

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        names = list(about.values) if isinstance(about, MeasuredRows) else []
        if len(names) < 2:
            return {}
        return {"observed": names[0], "first": names[1], "second": names[-1]}

    def sums(self, about: MeasuredRows) -> ErrorSums:
        """Return the sums of differences, from public facts."""
        names = (self.observed, self.first, self.second)
        for name in names:
            if name not in about.values:
                raise ArgumentError(no_such("declared column", name, list(about.values)))
        bounds = [about.values[name].ends for name in names]
        observed, *predicted = bounds
        widest = max(
            max(high - observed[0], observed[1] - low) for low, high in predicted
        )  # the farthest that a prediction can be from what was observed
        most = widest if self.largest_error is None else self.largest_error
        if not 1e-100 < most < 1e100 or most > widest:
            raise ArgumentError(
                f"largest_error must be more than 0 and at most {widest:g}, as the bounds allow."
            )
        first, second, third = (about.place(name) for name in names)
        return ErrorSums(
            with_rest=about.rows is None,
            places=(first, second, third),
            bounds=tuple(bounds),
            most=most,
            squared=self.measure == SQUARED,
        )

    def steps(self, about: MeasuredRows) -> dict[str, Step]:
        """Return what is asked of the rows, by name."""
        sums = self.sums(about)
        if not sums.squared:
            return {"difference": self._step(sums, self.price, about)}
        level = replace(sums, error="level")
        return {
            "difference": self._step(sums, self.price * (1 - LEVEL_SHARE), about),
            "level": self._step(level, self.price * LEVEL_SHARE, about),
        }

    @staticmethod
    def _step(sums: ErrorSums, price: Fraction, about: MeasuredRows) -> Step:
        return Step(sums, laplace(sums, price, about.protection))

    def request(self, about: MeasuredRows) -> Staged:
        steps = self.steps(about)
        sums: Any = steps["difference"].statistic
        return Staged(
            name=f"difference in {TITLES[self.measure]}",
            steps={name: Booked.of(step) for name, step in steps.items()},
            parameters={
                "observed": self.observed,
                "first": self.first,
                "second": self.second,
                "measure": self.measure,
                "largest_error": sums.most,
            },
            claim="bounded-sum",
            description={name: step.mechanism.describe() for name, step in steps.items()},
            reading=steps,
        )

    def read(self, drawn: Drawn) -> ErrorDifference:
        return ErrorDifference(drawn)

    def typical(self, about: MeasuredRows, guess: Guess) -> dict[str, Ints]:
        """Return rows whose errors differ little, and lie at a tenth of the largest."""
        steps: dict[str, Any] = self.steps(about)
        even = replace(guess, mean_error=0.5, error_spread=0.1)
        small = replace(guess, mean_error=0.1, error_spread=0.1)
        return {
            name: typical_sums(step.statistic, small if name == "level" else even)
            for name, step in steps.items()
        }

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        return (-parameters["largest_error"], parameters["largest_error"])

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            value_pair("a row from right to wrong", [(0.0, 0.0)], [(1.0, 0.0)]),
            value_pair("a row that errs leaves", [(1.0, 0.0)], [], **REMOVE),
            value_pair("a person's two rows", [(0.0, 0.0)] * 2, [(1.0, 0.0)] * 2, **PERSON),
        )
        why = "one prediction is right, so only half of the range of a difference is used"
        return tuple(
            WorstCase(name=measure, pairs=pairs, make=_table, fields={"measure": measure}, why=why)
            for measure in TITLES
        )


def _table(content: Any, options: Mapping[str, Any]) -> Dataset:
    return Dataset(content, values={"a": (0, 1), "b": (0, 1)}, name="neighbour", **options)
