"""Rows of a linear model, split into parts: how many standard errors a claim is off in each."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.questions.linear.design import RESOLUTION, Design

SCORE_STEPS: Final = 2**16
"""Whole steps of one standard error."""
_MOST: Final = 2.0**20


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
        return np.stack([_t_statistics(sums, tested) for tested in self.tested], axis=1)


def _t_statistics(sums: Floats, tested: Comparison) -> Ints:
    """Return how many standard errors a combination is above its threshold, part by part."""
    count = sums[0, 0]
    left, solved = swept(sums)
    size = len(tested.weights)
    above = np.full(count.shape, -tested.threshold)
    square = np.zeros(count.shape)
    for i, weight in enumerate(tested.weights):
        above = above + weight * left[i, -1]
        for j, other in enumerate(tested.weights):
            square = square - weight * other * left[i, j]
    with np.errstate(all="ignore"):
        spread = np.maximum(left[-1, -1], 0.0) / (count - size) * square
        score = np.where(solved & (count > size + 1), above / np.sqrt(spread), 0.0)
    finite = np.clip(np.nan_to_num(score, nan=0.0, posinf=_MOST, neginf=-_MOST), -_MOST, _MOST)
    steps: Ints = np.floor(finite * SCORE_STEPS + 0.5).astype(np.int64)
    return steps


def swept(sums: Floats) -> tuple[Floats, "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]:
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
