"""Second moments of the columns of a linear model, and how far single rows move its fit."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heldout.arrays import Ints
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
                 up to at most `trace`.                              [claim: regression-moments]
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


@dataclass(frozen=True)
class Influences(Statistic[Ints]):
    """Sums over rows of how far each moves each coefficient, squared and held to 1, in STEPS.

    A row moves a coefficient by (weights . x) (y - fit . x), with released weights and a released
    fit; `weights` are scaled so that a square of 1 is where it is held.

    Claim:       L1 sensitivity STEPS for each coefficient and each row of a unit.
                                                                   [claim: regression-influences]
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


def _share(column: str, steps: int) -> str:
    return f"CAST({column} AS DOUBLE) / {double(steps)}"


def _sum(weights: tuple[float, ...], terms: list[str]) -> str:
    parts = [
        f"{double(w)} * ({_share(z, RESOLUTION)})" for w, z in zip(weights[1:], terms, strict=True)
    ]
    return " + ".join([double(weights[0]), *parts])
