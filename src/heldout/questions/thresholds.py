"""Thresholds with a promise: for a recall or a specificity, and for sets that cover new rows.

Both choose one cut of a public grid by the exponential mechanism, at a quantile of the rows, and
count the rows on either side of it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arguments import Share, visible
from heldout.arrays import Ints
from heldout.data.description import MeasuredRows, ScoredRows
from heldout.data.sql import Columns, double, held_to
from heldout.errors import ArgumentError
from heldout.intervals.confusion import NoisyConfusion
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio, with_public_total
from heldout.kernel.door import Drawn, Request
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise import DiscreteLaplace, selection
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import OfEachGroup, Sealed, Statistic, tally
from heldout.questions.base import Text
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess
from heldout.questions.values import value_pair, value_table
from heldout.questions.worst_cases import (
    HIGH,
    LOW,
    PERSON,
    REMOVE,
    REST,
    WorstCase,
    grouped_pair,
    table_pair,
    unit_pair,
)

__all__ = ["Conformal", "ThresholdFor"]

COUNT_SHARE: Final = Fraction(1, 5)
"""Of epsilon, for the counts on either side of the cut; the rest chooses it."""
MISS_SHARE: Final = Fraction(1, 10)
"""Of alpha, for the chance that the choice misses the rank that it must reach."""
VALUE_CELLS: Final = 1024
USUAL_RECALL: Final = 0.9

# --- A cut of the grid at a quantile -------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QuantileChoice(Primitive):
    """Chooses the cell of a public grid where a share of the rows is reached.

    With n rows, `upto(c)` of them in the cells 0 to c, the rank that is wanted is
    T = share (n + more) + margin. The penalty of cell c is how far T lies outside of the rows that
    it completes, max(T - upto(c), upto(c - 1) - T, 0). One cell more, after the last, stands for
    "all rows, whatever they are": its penalty is max(n - T, 0), so that some cell always has none.

    Claim:       pure DP, epsilon.                                     [claim: quantile-choice]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a penalty moves by at most k between replace-one neighbours, and by at most
                 k max(share, 1 - share) between add-remove ones; a cell's chance is proportional
                 to exp(-rate penalty), with twice that times the rate being epsilon.
    Numerics:    exact, see `choose_exactly`; penalties are whole numbers of 1/denominator.
    Refuses:     an epsilon that is not positive; a share outside [0, 1]; a margin that 64 bits do
                 not hold.
    Reference:   McSherry and Talwar 2007; Smith 2011 for quantiles; proofs/quantile-choice.md.
    Cost:        about 3 ms on a grid of 65,537 points.

    >>> choice = QuantileChoice(epsilon=Fraction(1), share=Fraction(9, 10),
    ...                         protection=Protection(neighbours="replace-one"))
    >>> choice.row_rate
    Fraction(1, 2)
    """

    epsilon: Fraction
    share: Fraction
    protection: Protection
    more: int = 0
    margin: int = 0

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 <= self.share <= 1:
            raise ArgumentError("epsilon must be positive, and share from 0 to 1.")
        if self.share.denominator * self.margin >= 2**61:  # penalties are counted in 64 bits
            raise ArgumentError("epsilon must be larger for this share. Pass a larger number.")

    @property
    def sensitivity(self) -> int:
        """Return how far a penalty moves, in parts of the share's denominator."""
        top, below = self.share.numerator, self.share.denominator
        if self.protection.neighbours is Neighbours.ADD_REMOVE:
            return self.protection.rows_per_unit * max(top, below - top)
        return self.protection.rows_per_unit * below

    @property
    def rate(self) -> Fraction:
        """Return what a unit of penalty takes off the logarithm of a cell's chance."""
        return self.epsilon / (2 * self.sensitivity)

    @property
    def row_rate(self) -> Fraction:
        """Return the same for a penalty of one row."""
        return self.rate * self.share.denominator

    def penalties(self, counts: Ints) -> Ints:
        """Return the penalty of each cell, and of the one after the last, in whole numbers."""
        top, below = self.share.numerator, self.share.denominator
        upto = np.cumsum(np.asarray(counts, dtype=np.int64))
        rows = int(upto[-1])
        wanted = top * (rows + self.more) + below * self.margin
        before = below * np.concatenate([[0], upto])
        reached = np.append(below * upto, max(wanted, below * rows))
        penalties: Ints = np.maximum(np.maximum(wanted - reached, before - wanted), 0)
        return penalties

    def choose(self, counts: Ints) -> int:
        """Draw a cell, of exact counts."""
        penalties = self.penalties(counts)
        return selection.choose_exactly(np.ones(penalties.size, np.int64), penalties, self.rate)

    def sample(self, sealed: Sealed[Any]) -> Ints:
        return np.array([self.choose(unseal(sealed))], dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"name": "exponential", "rate": str(self.rate), "share": str(self.share)}


@dataclass(frozen=True, kw_only=True)
class CutMechanism:
    """Chooses a cut by the rows of one class, then counts the rows of all classes beside it.

    The sealed vector has the counts by cell of each class, one class after the other. Cells are
    counted from below, or from above if `falling`. Drawn are the chosen cell, counted from that
    side, and of each class the rows up to it and beyond it.

    Claim:       pure DP, epsilon.                                     [claim: quantile-choice]
    Neighbours:  the protection's.
    Sensitivity: that of the choice, then of two disjoint counts a class.
    Numerics:    exact.
    Refuses:     a vector of another length.
    Reference:   adaptive composition of two pure mechanisms; proofs/quantile-choice.md.
    Cost:        about 3 ms on a grid of 65,537 points.
    """

    choice: QuantileChoice
    classes: int
    by_class: int
    cells: int
    falling: bool = False

    @property
    def counts(self) -> DiscreteLaplace:
        """Return the noise of the counts."""
        whole = self.choice.epsilon / (1 - COUNT_SHARE)
        return DiscreteLaplace.for_epsilon(
            whole * COUNT_SHARE,
            l1_sensitivity=self.choice.protection.rows_moved,
            dimension=2 * self.classes,
        )

    def event(self) -> Event:
        return Event.composed([self.choice.event(), self.counts.event()])

    def sample(self, sealed: Sealed[Any]) -> Ints:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (self.classes * self.cells,):
            raise ArgumentError("cells must match the statistic.")
        table = table.reshape(self.classes, self.cells)
        if self.falling:
            table = table[:, ::-1]
        cut = self.choice.choose(table[self.by_class])
        upto = table[:, : cut + 1].sum(axis=1)
        sides = np.stack([upto, table.sum(axis=1) - upto], axis=1).ravel()
        return np.concatenate([[cut], self.counts.sample(Sealed(sides))])

    def describe(self) -> dict[str, object]:
        return {**self.choice.describe(), "counts": self.counts.describe()}


@dataclass(frozen=True)
class ValueTable(Statistic[Ints]):
    """Rows by cell of an even grid over the bounds of a declared value.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one cell.
    Numerics:    exact integers; a value's cell is found with monotone double operations.
    Refuses:     nothing; bounds are checked when they are declared.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan, O(cells) memory.

    >>> table = ValueTable(ends=(0.0, 1.0), cells=4)
    >>> table.cell(0.5), table.cell(1.0), table.end(1)
    (2, 3, 0.5)
    """

    ends: tuple[float, float]
    place: int = 0
    cells: int = VALUE_CELLS
    claim: ClassVar[str] = "disjoint-counts"
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_thresholds.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def cell(self, value: float) -> int:
        """Return the cell of a value, by the same operations as the statement."""
        low, high = self.ends
        place = math.floor((min(max(value, low), high) - low) / (high - low) * self.cells)
        return min(max(place, 0), self.cells - 1)

    def end(self, cell: int) -> float:
        """Return where a cell ends."""
        low, high = self.ends
        return low + (high - low) * (cell + 1) / self.cells

    def body(self) -> str:
        low, high = self.ends
        value = held_to(f"value_{self.place}", low, high)
        share = f"({value} - {double(low)}) / {double(high - low)} * {double(self.cells)}"
        cell = f"greatest(0, least({self.cells - 1}, CAST(floor({share}) AS INTEGER))) AS cell"
        return f"SELECT {cell}, count(*) AS n\nFROM evaluated\nGROUP BY 1"

    def read(self, columns: Columns) -> Ints:
        return tally(columns["n"], (columns["cell"], self.cells))[:-1]

    def of_groups(self, groups: int) -> OfEachGroup[Ints]:
        return OfEachGroup(self, groups)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved


# --- What people read ----------------------------------------------------------------------------


class ThresholdRelease(NoisyConfusion, Release):
    """A threshold that was chosen, and the confusion matrix there; every ratio of it is free."""

    def __init__(self, drawn: Drawn) -> None:
        Release.__init__(self, drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, CutMechanism)
        cut, *sides = (int(number) for number in drawn.values)
        last = mechanism.cells - 1
        # Sides go by the cut: from above with falling cells, else from below.
        point = last - cut if mechanism.falling else cut + 1
        (upto_negative, rest_negative), (upto_positive, rest_positive) = np.reshape(sides, (2, 2))
        cells = [upto_negative, rest_negative, upto_positive, rest_positive]
        if mechanism.falling:
            cells = [rest_negative, upto_negative, rest_positive, upto_positive]
        self.threshold = self._score(min(max(point, 0), last + 1), drawn)
        super().__init__(cells, mechanism.counts, rows=drawn.about.rows, terms=self.terms)

    def _score(self, point: int, drawn: Drawn) -> float:
        """Return the lowest score that counts as this point of the grid or above."""
        about, statistic = drawn.about, drawn.request.statistic
        low, high = statistic.score_range
        cells = statistic.cells
        if point <= 0:
            image = low
        elif point > cells:
            image = math.nextafter(high, math.inf)
        else:
            image = low + (high - low) * (point - 0.5) / cells
            # Half a step rounds to the even point.
            image = image if point % 2 == 0 else math.nextafter(image, math.inf)
        return float(image if about.score_map is None else about.score_map.score(image))

    @property
    def asked_for(self) -> str:
        """Return the measure that the threshold was chosen by."""
        return str(self.parameters["measure"])

    @cached_property
    def measures(self) -> dict[str, Measure]:
        own = super().measures
        return {self.asked_for: own[self.asked_for], **own}

    def __str__(self) -> str:
        wanted = f"{self.asked_for} {self.parameters['target']:g}"
        return f"threshold {self.threshold:.6g} for {wanted}: {self.headline}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {"threshold": self.threshold}


class ConformalRelease(Release):
    """A threshold under which new rows fall with a promised share, and the share that did here."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism, table = drawn.request.mechanism, drawn.request.statistic
        assert isinstance(mechanism, CutMechanism)
        assert isinstance(table, ValueTable)
        self._cut, self._table = int(drawn.values[0]), table
        counts, noisy = mechanism.counts, np.asarray(drawn.values[1:])
        rows, scale = drawn.about.rows, counts.float_scale
        self._counts = (
            NoisyCounts(estimate=noisy.astype(float), spread=np.eye(2), scale=scale)
            if rows is None
            else with_public_total(noisy, scale=scale, rows=rows)
        )

    @property
    def threshold(self) -> float:
        """Return the end of the chosen cell; infinite where no finite one keeps the promise."""
        cells = self._table.cells
        return math.inf if self._cut >= cells - 1 else self._table.end(self._cut)

    @property
    def promised(self) -> float:
        """Return the share of new rows that is covered at least, on average over such releases."""
        return 1 - float(self.parameters["alpha"])

    def covers(self, value: float) -> bool:
        """Return whether a new row's value belongs to the set."""
        return self._cut >= self._table.cells - 1 or self._table.cell(value) <= self._cut

    @cached_property
    def measures(self) -> dict[str, Measure]:
        ratio = Ratio(self._counts, np.array([1.0, 0.0]), np.ones(2))
        return {"coverage": Measure.of(ratio, name="coverage", terms=self.terms, share=float)}

    def surprise(self, name: str, value: float) -> float:
        return self.measures[name].surprise(value)

    def plotted(self) -> dict[str, Measure]:
        return {}

    def __str__(self) -> str:
        column = visible(str(self.parameters["column"]))
        promise = f"at least {self.promised * 100:g}% of new rows are covered"
        return f"{column} up to {self.threshold:.6g}: {promise}; here {self.headline}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        finite = self.threshold if math.isfinite(self.threshold) else None
        return super().as_dict(level) | {"threshold": finite, "promised": self.promised}


# --- The questions -------------------------------------------------------------------------------


def _exact_share(share: float) -> Fraction:
    """Return a share as people write it, with a denominator that penalties can be counted in."""
    return Fraction(share).limit_denominator(10**6)


@dataclass(frozen=True, kw_only=True)
class ThresholdFor(Divisible[ThresholdRelease, ByGroup[ThresholdRelease]]):
    """The threshold that reaches a recall or a specificity, and how it performs."""

    kind = "threshold-for"
    title = "threshold"
    asks = "Which threshold finds a given share of the positives?"
    tells = (
        "The highest threshold that reaches a recall, or the lowest that reaches a specificity, "
        "and the confusion matrix there."
    )
    of = (ScoredRows,)
    example: ClassVar[Mapping[str, Any]] = {"recall": 0.75}
    replayed = (
        {},
        {"by": "g"},
        {"recall": None, "specificity": 0.9},
    )
    recall: Annotated[
        float | None,
        Share("Try 0.9."),
        "The share of the positives that must be called positive; 0.9 by default.",
    ] = None
    specificity: Annotated[
        float | None, Share("Try 0.9."), "The share of the negatives that must be called negative."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recall is not None and self.specificity is not None:
            raise ArgumentError("Pass one of recall= and specificity=, such as recall=0.9.")
        if self.recall is None and self.specificity is None:
            object.__setattr__(self, "recall", USUAL_RECALL)

    @property
    def _measure(self) -> str:
        return "specificity" if self.recall is None else "recall"

    def request(self, about: ScoredRows) -> Request:
        target = getattr(self, self._measure)
        statistic = ScoreTable(score_range=about.score_range)
        of_positives = self.recall is not None
        choice = QuantileChoice(
            epsilon=self.price * (1 - COUNT_SHARE),
            share=_exact_share(target),
            protection=about.protection,
        )
        mechanism = CutMechanism(
            choice=choice,
            classes=2,
            by_class=int(of_positives),
            cells=statistic.points,
            falling=of_positives,
        )
        parameters = {"score": about.score, "measure": self._measure, "target": target}
        return Request(self.title, statistic, mechanism, parameters | about.scale_parameters)

    def read(self, drawn: Drawn) -> ThresholdRelease:
        return ThresholdRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Ints:
        positives, negatives = guess.counts
        target = float(getattr(self, self._measure))
        # The same share of the other class is on the wrong side as of the classes' overlap.
        wrong = max(min(1 - guess.auc, 1.0), 0.0)
        upto = [wrong, target] if self.recall is not None else [target, wrong]
        sides = [(negatives, upto[0]), (positives, upto[1])]
        counts = [part for rows, share in sides for part in (rows * share, rows * (1 - share))]
        return np.round(np.array([2**15, *counts])).astype(np.int64)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            table_pair("a positive falls", [*REST, (1, HIGH)], [*REST, (1, LOW)]),
            table_pair("a positive leaves", [*REST, (1, LOW)], REST, **REMOVE),
            unit_pair(
                "a person's two positives fall",
                [(1, HIGH), (1, HIGH), *REST],
                [(1, LOW), (1, LOW), *REST],
            ),
        )
        grouped = (grouped_pair(pairs[0], "a", "b"), grouped_pair(pairs[1], "b", "b"))
        why = "the choice and the counts divide the price"
        return (
            WorstCase(pairs=pairs, why=why),
            WorstCase(name="by-group", pairs=grouped, fields={"by": "g"}, why=why),
        )


@dataclass(frozen=True, kw_only=True)
class Conformal(Divisible[ConformalRelease, ByGroup[ConformalRelease]]):
    """A threshold on a declared value under which at least 1 - alpha of new rows fall.

    The value says how ill a row fits (one minus the probability of its true class, the size of a
    residual). A set of all answers whose value is not above the threshold then holds the true one
    for at least 1 - alpha of new rows like these: split conformal prediction, by group if asked.
    """

    kind = "conformal"
    title = "conformal threshold"
    asks = "Under which value do at least 1 - alpha of new rows fall?"
    tells = (
        "A threshold that covers new rows like these with at least the promised share, and the "
        "share that it covers here."
    )
    of = (MeasuredRows,)
    needs_columns = (
        1,
        "no column has declared bounds: declare values={'misfit': (0, 1)}",
    )
    column_field = "column"
    example: ClassVar[Mapping[str, Any]] = {"column": "a", "alpha": 0.25}
    replayed = ({}, {"by": "g"})
    column: Annotated[
        str, Text("a column"), "The declared column that says how badly each row fits."
    ]
    alpha: Annotated[
        float, Share("Try 0.1."), "The share of new rows that may fall above the threshold."
    ] = 0.1

    def request(self, about: MeasuredRows) -> Request:
        place = about.place(self.column)
        statistic = ValueTable(ends=about.values[self.column].ends, place=place)
        alpha = _exact_share(self.alpha)
        miss = alpha * MISS_SHARE
        choice = QuantileChoice(
            epsilon=self.price * (1 - COUNT_SHARE),
            share=1 - alpha + miss,
            protection=about.protection,
            more=1,
        )
        # So many rows beyond the rank that must be reached: no cell below it is then likely.
        margin = math.ceil(math.log((statistic.cells + 1) / miss) / choice.row_rate) + 1
        mechanism = CutMechanism(
            choice=replace(choice, margin=margin),
            classes=1,
            by_class=0,
            cells=statistic.cells,
        )
        parameters = {
            "column": self.column,
            "bounds": list(statistic.ends),
            "alpha": self.alpha,
            "margin": margin,
        }
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> ConformalRelease:
        return ConformalRelease(drawn)

    def typical(self, about: MeasuredRows, guess: Guess) -> Ints:
        rows = sum(guess.counts)
        covered = min(1 - self.alpha + self.request(about).parameters["margin"] / rows, 1.0)
        sides = [rows * covered, rows * (1 - covered)]
        return np.round(np.array([VALUE_CELLS // 2, *sides])).astype(np.int64)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        low, high = (0.0, 0.0), (1.0, 1.0)
        # So many that the rank that must be reached is one of them, and one to a cell or less.
        others = [((at + 0.5) / 100, 0.5) for at in range(100)]
        two = [high] * 2
        pairs = (
            value_pair("a value from end to end", [low], [high], others),
            value_pair("the largest value leaves", [high], [], others, **REMOVE),
            value_pair("a person's two values from end to end", [low] * 2, two, others, **PERSON),
        )
        why = "the choice and the counts divide the price, and all ranks move one way"
        return (WorstCase(pairs=pairs, make=value_table, epsilon="4", why=why),)
