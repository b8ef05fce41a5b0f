"""Second moments of the columns of a linear model, and how far single rows move its fit."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns, double
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import STEPS, Statistic, held_steps, summed
from heldout.questions.linear.design import RESOLUTION, Design


def coded_rows(design: Design) -> str:
    """Return the rows as the model sees them: whole numbers z_1, z_2, ..., the outcome last."""
    columns = ", ".join(f"{column} AS {name}" for name, column in design.coded().items())
    return f"(SELECT {columns} FROM evaluated{design.where()}) AS coded"


@dataclass(frozen=True)
class Moments(Statistic[Ints]):
    """Sums over rows of z z', its upper triangle: z is the constant, the terms and the outcome.

    Entries of z are whole numbers of steps: a constant, then each column's place between the ends
    of its bounds.

    Claim:       neighbours' matrices differ by P - Q, positive semidefinite, with traces that add
                 up to at most `trace`; squared differences of the upper triangle add up to at
                 most `l2_squared`.                                  [claim: regression-moments]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds z z', whose trace is its squared length: at most `length`, as every
                 entry is held to its steps. `rows_moved` rows leave or arrive in all.
    Numerics:    exact sums of whole numbers; a value is rounded to steps by its own row alone.
    Refuses:     nothing; the terms are checked when the question is made.
    Reference:   proofs/regression-moments.md.
    Cost:        one scan, O(1) memory, columns^2/2 sums.

    >>> from heldout.questions.linear.design import Term
    >>> design = Design("y", (Term(("x",)),), {"y": 0, "x": 1}, {"y": (0, 1), "x": (0, 1)})
    >>> replaced = Protection(neighbours="replace-one")
    >>> Moments(design).trace(replaced) / RESOLUTION**2 > 4
    True
    """

    design: Design
    claim: ClassVar[str] = "regression-moments"
    shown_by: ClassVar[str | None] = (
        "tests/questions/linear/test_fit.py"
        "::test_no_neighbours_move_the_moments_further_than_claimed_and_some_do_as_far"
    )

    @property
    def size(self) -> int:
        """Return how many columns there are, the constant and the outcome among them."""
        return self.design.size + 1

    def body(self) -> str:
        names = ["", *self.design.coded()]
        sums = []
        for i, first in enumerate(names):
            for j, second in list(enumerate(names))[i:]:
                number = f"{first or RESOLUTION} * {second or RESOLUTION}"
                # A sum of constants has no column of its own.
                number = number if second else f"CAST({RESOLUTION**2} AS BIGINT)"
                sums.append(summed(number, f"m_{i}_{j}"))
        return f"SELECT {', '.join(sums)}\nFROM {coded_rows(self.design)}"

    def read(self, columns: Columns) -> Ints:
        first, second = np.triu_indices(self.size)
        entries = (columns[f"m_{i}_{j}"] for i, j in zip(first, second, strict=True))
        return np.array([int(np.ma.filled(column, 0)[0]) for column in entries], dtype=np.int64)

    def trace(self, protection: Protection) -> int:
        """Return the largest sum of the traces of what arrives and what leaves."""
        return protection.rows_moved * self.design.length

    def l2_squared(self, protection: Protection) -> Fraction:
        """Return the largest sum of squared differences of the entries between neighbours."""
        rows, length = protection.rows_per_unit, self.design.length
        if protection.both_ways:
            return Fraction((rows * length) ** 2)
        fourth = sum(int(steps) ** 4 for steps in self.design.steps)
        return Fraction(rows**2 * (length**2 + fourth), 2)


@dataclass(frozen=True)
class Influences(Statistic[Ints]):
    """Sums over rows of how far each moves each coefficient, squared and held to 1, in STEPS.

    A row moves a coefficient by (weights . x) (y - fit . x), with released weights and a released
    fit; `weights` are scaled so that a square of 1 is where it is held.

    Claim:       L1 sensitivity STEPS for each coefficient and each row of a unit, and L2 that of
                 as many entries of STEPS each.                    [claim: regression-influences]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds to each entry a whole number from 0 to STEPS, of its own values and of
                 public numbers. k rows that leave take up to k STEPS from an entry and k that
                 arrive add as much: an entry moves by k STEPS either way, not by twice that.
    Numerics:    exact sums of whole numbers; a square is computed in doubles by its own row alone.
    Refuses:     nothing.
    Reference:   proofs/regression-influences.md; White 1980 (what the sums are for).
    Cost:        one scan, O(1) memory.

    >>> from heldout.questions.linear.design import Term
    >>> design = Design("y", (Term(("x",)),), {"y": 0, "x": 1}, {"y": (0, 1), "x": (0, 1)})
    >>> influences = Influences(design, weights=((0.0, 1.0),), fit=(0.0, 0.5))
    >>> influences.sensitivity(Protection(neighbours="replace-one")) == STEPS
    True
    """

    design: Design
    weights: tuple[tuple[float, ...], ...]
    """Of each coefficient: what the constant and the terms are multiplied with."""
    fit: tuple[float, ...]
    """The coded coefficients, the intercept first."""
    claim: ClassVar[str] = "regression-influences"
    shown_by: ClassVar[str | None] = (
        "tests/questions/linear/test_fit.py"
        "::test_no_neighbours_move_the_influences_further_than_claimed_and_some_do_as_far"
    )

    @property
    def size(self) -> int:
        return len(self.weights)

    def body(self) -> str:
        *terms, outcome = self.design.coded()
        residual = f"{_share(outcome, self.design.outcome_steps)} - ({_sum(self.fit, terms)})"
        rows = f"(SELECT *, {residual} AS residual FROM {coded_rows(self.design)}) AS fitted"
        moves = [f"({_sum(own, terms)}) * residual" for own in self.weights]
        squares = [held_steps(f"({move}) * ({move})") for move in moves]
        sums = ", ".join(summed(square, f"f_{place}") for place, square in enumerate(squares))
        return f"SELECT {sums}\nFROM {rows}"

    def read(self, columns: Columns) -> Ints:
        sums = (np.ma.filled(columns[f"f_{place}"], 0)[0] for place in range(self.size))
        return np.array([int(number) for number in sums], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return self.size * STEPS * protection.rows_per_unit

    def l2_squared(self, protection: Protection) -> int:
        """Return the largest sum of squared differences of the entries between neighbours."""
        return self.size * (STEPS * protection.rows_per_unit) ** 2


def _share(column: str, steps: int) -> str:
    return f"CAST({column} AS DOUBLE) / {double(steps)}"


def _sum(weights: tuple[float, ...], terms: list[str]) -> str:
    parts = [
        f"{double(w)} * ({_share(z, RESOLUTION)})" for w, z in zip(weights[1:], terms, strict=True)
    ]
    return " + ".join([double(weights[0]), *parts])


# Rows of a linear model, split into parts: how many standard errors a claim is off in each.
SCORE_STEPS: Final = 2**16
"""Whole steps of one standard error."""
SQUARE_STEPS: Final = 2**20
"""Whole steps of the variance that rows' squared influences are parts of."""
_MOST: Final = 2.0**20
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Comparison:
    """Compares with zero: weights . coefficients minus a threshold, or the opposite of that.

    It speaks for the claim where it is above zero.
    """

    weights: tuple[float, ...]
    threshold: float

    def opposite(self) -> "Comparison":
        return Comparison(tuple(-weight for weight in self.weights), -self.threshold)


@dataclass(frozen=True, eq=False)
class ModelRows:
    """Coded rows and the unit of each; `scores` are t statistics of each part in whole steps."""

    rows: Ints
    """A column for each coded column: the constant, the terms, the outcome."""
    unit: Ints
    """Which unit a row belongs to, counted from 0."""
    design: Design
    tested: tuple[Comparison, ...]

    @property
    def units(self) -> int:
        return int(self.unit.max()) + 1 if self.unit.size else 0

    def scores(self, parts: Ints, count: int) -> Ints:
        part = np.asarray(parts)[self.unit] if self.unit.size else np.zeros(0, dtype=np.int64)
        size = self.rows.shape[1]
        sums = np.zeros((size, size, count))
        for i in range(size):
            for j in range(i, size):
                # Products below 2^26: sums in doubles are exact, in whatever order.
                product = (self.rows[:, i] * self.rows[:, j]).astype(float)
                total = np.bincount(part, weights=product, minlength=count)[:count]
                sums[i, j] = sums[j, i] = total / (self.design.steps[i] * self.design.steps[j])
        fits = swept(sums)
        several = [self._t_statistics(part, sums[0, 0], fits, tested) for tested in self.tested]
        return np.stack(several, axis=1)

    def _t_statistics(
        self, part: Ints, count: Floats, fits: tuple[Floats, Flags], tested: Comparison
    ) -> Ints:
        """Return how many standard errors a combination is above its threshold, part by part.

        The errors are White's (HC1), which do not take residuals to spread alike.
        """
        left, solved = fits
        size = len(tested.weights)
        above = np.full(count.shape, -tested.threshold)
        along = np.zeros((size, *count.shape))  # the weights times the inverse of the moments
        square = np.zeros(count.shape)
        for i, weight in enumerate(tested.weights):
            above = above + weight * left[i, -1]
            for j, other in enumerate(tested.weights):
                along[i] = along[i] - other * left[i, j]
            square = square + weight * along[i]
        with np.errstate(all="ignore"):
            spread = np.maximum(left[-1, -1], 0.0) / (count - size) * square
            unequal = self._unequal(part, left, along, spread) / (count - size)
            score = np.where(
                solved & (count > size + 1), above / np.sqrt(spread * count * unequal), 0.0
            )
        finite = np.clip(np.nan_to_num(score, nan=0.0, posinf=_MOST, neginf=-_MOST), -_MOST, _MOST)
        steps: Ints = np.floor(finite * SCORE_STEPS + 0.5).astype(np.int64)
        return steps

    def _unequal(self, part: Ints, left: Floats, along: Floats, spread: Floats) -> Floats:
        """Return the sum of rows' squared influences in parts of a variance, part by part.

        A row's square is a whole number before it is summed, so the order of rows changes nothing.
        """
        moved, residual = np.zeros(len(part)), np.zeros(len(part))
        for i, steps in enumerate(self.design.steps):
            cells = self.rows[:, i] / steps
            if i < len(along):
                moved = moved + along[i][part] * cells
                residual = residual - left[i, -1][part] * cells
            else:
                residual = residual + cells
        square = (moved * residual) ** 2 / spread[part]
        bounded = np.clip(np.nan_to_num(square, nan=0.0, posinf=_MOST), 0.0, _MOST)
        total = np.zeros(len(spread), dtype=np.int64)
        np.add.at(total, part, np.floor(bounded * SQUARE_STEPS + 0.5).astype(np.int64))
        return total / SQUARE_STEPS


def swept(sums: Floats) -> tuple[Floats, Flags]:
    """Solve the least squares of every part at once, by sweeping; and say which could be solved.

    The last axis counts parts. The result has minus the inverse of the terms' moments, the
    coefficients in the last column, and the squared residuals in the corner. All operations are
    elementwise, so that a part's numbers do not depend on the parts beside it.
    """
    left = sums.copy()
    solved = np.ones(sums.shape[2:], dtype=bool)
    for place in range(len(left) - 1):
        pivot = left[place, place].copy()
        solved &= pivot > 1e-9 * np.maximum(sums[place, place], 1e-300)
        safe = np.where(pivot > 0, pivot, 1.0)
        row = left[place].copy()
        left = left - row[:, None] * row[None, :] / safe
        left[place] = left[:, place] = row / safe
        left[place, place] = -1.0 / safe
    return left, solved


@dataclass(frozen=True)
class ModelParts(Statistic[ModelRows]):
    """The coded rows of a linear model with their units, to be scored part by part.

    Claim:       a part's scores are a function of its own units' rows.  [claim: summed-parts]
    Neighbours:  replace-one; add-remove; each by row or by unit.
    Sensitivity: that of `SummedParts`, which holds the scores and draws the parts.
    Numerics:    exact sums of whole numbers by part, then elementwise operations on them.
    Refuses:     nothing.
    Reference:   proofs/summed-parts.md; Barrientos, Reiter, Machanavajjhala and Chen 2019.
    Cost:        O(rows) memory.
    """

    design: Design
    tested: tuple[Comparison, ...]
    by_unit: bool
    claim: ClassVar[str] = "summed-parts"
    shown_by: ClassVar[str | None] = (
        "tests/questions/linear/test_conclusion.py"
        "::test_one_unit_moves_the_sums_by_one_part_and_no_more"
    )

    def body(self) -> str:
        columns = [f"{column} AS {name}" for name, column in self.design.coded().items()]
        unit = ["list"] if self.by_unit else []
        return f"SELECT {', '.join([*unit, *columns])}\nFROM evaluated{self.design.where()}"

    def read(self, columns: Columns) -> ModelRows:
        names = list(self.design.coded())
        own = [np.asarray(np.ma.filled(columns[name], 0), dtype=np.int64) for name in names]
        rows = np.column_stack([np.full(len(own[0]), RESOLUTION, dtype=np.int64), *own])
        unit = np.arange(len(rows), dtype=np.int64)
        if self.by_unit:
            _, unit = np.unique(np.asarray(columns["list"]), return_inverse=True)
        return ModelRows(rows, unit.astype(np.int64), self.design, self.tested)


@dataclass(frozen=True)
class RowsOfModel(Statistic[Ints]):
    """The number of rows that a model is about.

    Claim:       L1 sensitivity k, the rows of a unit.                     [claim: model-rows]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: up to k rows leave and up to k arrive: the number moves by k at most.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/model-rows.md.
    Cost:        one scan, O(1) memory.
    """

    design: Design
    claim: ClassVar[str] = "model-rows"
    shown_by: ClassVar[str | None] = (
        "tests/questions/linear/test_conclusion.py"
        "::test_the_number_of_rows_moves_by_a_unit_and_no_more"
    )

    def body(self) -> str:
        return f"SELECT count(*) AS n\nFROM evaluated{self.design.where()}"

    def read(self, columns: Columns) -> Ints:
        return np.array([int(columns["n"][0])], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_per_unit
