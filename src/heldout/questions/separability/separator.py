"""A separator of true from privatized rows, as a statistic of the truth on a public lattice."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.data.truth import MOST_TIMES
from heldout.data.two_tables import Table, number_array, text_array
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.questions.features.logistic_loss import logistic
from heldout.questions.separability.recipe import Recipe, row_products

TOLERANCE = Fraction(1, 2**30)  # of the gradient's length at the minimum that is found, at least
HEAVIEST = 2 * MOST_TIMES  # all rows weigh at most so much together
CHUNK = 4096  # rows that are added up in one product
UNIT_ROUNDOFF = Fraction(1, 2**53)
LATTICE = 64  # how much finer the lattice is than what one row moves


@dataclass(frozen=True, eq=False)
class Separator(Statistic):
    """Coefficients of a ridge logistic regression on half of the true rows, and the other half.

    The coefficients minimise 1/(2 m) sum over true training rows log(1 + exp(-t x))
    + 1/(2 n) sum over public privatized training rows log(1 + exp(t x)) + ridge/2 |t|^2,
    with m a public number, and are rounded to a public lattice. The other half, the rows held
    out, is sealed beside them for the count that follows (`called_true`).

    Claim:       a rows of the training half that leave or arrive move the coefficients by at most
                 a * row + slack (L1, lattice steps); b rows of the other half move a later count
                 by at most b.                                         [claim: separability]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the minimum of a function with curvature `ridge` moves by the change of gradient,
                 at most 1/(2 m) a row, over `ridge`; L1 is at most sqrt(d) times that. The slack
                 holds the solver's and the doubles' errors and the rounding to the lattice.
    Numerics:    doubles with a proved bound on their error, then exact integers.
    Refuses:     nothing in the rows.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011, corollary 8 (output perturbation).
    Cost:        a dozen Newton steps, O(rows x d^2) each.
    """

    recipe: Recipe
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    public: Any
    """Vectors of the privatized training rows."""
    expected: int
    """m: about how many true training rows there are. Public."""
    ridge: Fraction
    claim: ClassVar[str] = "separability"
    shown_by: ClassVar[str] = (
        "tests/questions/separability/test_private.py"
        "::test_a_row_moves_the_coefficients_or_the_count_and_never_more_than_claimed"
    )

    @property
    def dimension(self) -> int:
        return int(self.public.shape[1])

    def body(self) -> str:
        columns = [f"c{index}" for index in range(len(self.numbers) + len(self.texts))]
        return f"SELECT {', '.join([*columns, 'split_key'])}\nFROM evaluated"

    def read(self, columns: Columns) -> Any:
        arrays = [columns[f"c{index}"] for index in range(len(self.numbers) + len(self.texts))]
        count = len(self.numbers)
        table = Table(
            {n: number_array(a) for n, a in zip(self.numbers, arrays, strict=False)},
            {n: text_array(a) for n, a in zip(self.texts, arrays[count:], strict=True)},
            {},
            rows=len(columns["split_key"]),
        )
        vectors, out = self.recipe.vectors(table, text_array(columns["split_key"]))
        found = self.minimum(vectors[~out])
        return np.rint(found / float(self.step)).astype(np.int64), vectors[out]

    def sensitivity(self, protection: Protection) -> int:
        """Of the coefficients alone, in lattice steps."""
        return protection.rows_moved * self.row + self.slack

    @cached_property
    def step(self) -> Fraction:
        """The lattice: a power of two, fine against what one row moves."""
        return power_of_two(self._curved(self._gradient) / (LATTICE * self.dimension))

    @cached_property
    def row(self) -> int:
        """Lattice steps, summed over entries, by which one training row moves the minimum."""
        return math.ceil(self._curved(self._gradient) / self.step)

    @cached_property
    def slack(self) -> int:
        """Lattice steps by which errors and rounding may move the coefficients besides."""
        errors = self._curved(2 * (self.tolerance + self.rounding))
        return math.ceil(errors / self.step) + self.dimension

    @property
    def _gradient(self) -> Fraction:
        return Fraction(1, 2 * self.expected)

    def _curved(self, gradient: Fraction) -> Fraction:
        """How far a gradient of this length moves the minimum at most, in L1."""
        root = Fraction(math.isqrt(self.dimension << 40) + 1, 1 << 20)
        return root * gradient / self.ridge

    @property
    def tolerance(self) -> Fraction:
        """The gradient's length at which the solver stops; above what doubles can get wrong."""
        return max(TOLERANCE, 4 * self.rounding)

    @property
    def rounding(self) -> Fraction:
        """A bound on the length of the error of a gradient that is computed in doubles."""
        products = self.dimension * HEAVIEST / self.ridge
        return 2 * HEAVIEST * UNIT_ROUNDOFF * (CHUNK + 64 + products)

    def minimum(self, true: Any) -> Any:
        """Newton's method, shortened until the gradient shrinks, down to the tolerance."""
        ridge, tolerance = float(self.ridge), float(self.tolerance)
        at = np.zeros(self.dimension)
        slope = self.gradient(true, at)
        while np.sqrt(slope @ slope) > tolerance:
            curved = ridge * np.eye(self.dimension)
            for rows, weight, sign in self._sides(true):
                for part in chunks(rows):
                    share = logistic(sign * (part @ at))
                    curved += weight * (part * (share * (1 - share))[:, None]).T @ part
            move, length = np.linalg.solve(curved, slope), 1.0
            while True:
                tried = at - length * move
                then = self.gradient(true, tried)
                if then @ then < slope @ slope * (1 - length / 2):
                    break
                length /= 2
            at, slope = tried, then
        return at

    def gradient(self, true: Any, at: Any) -> Any:
        """Summed in chunks, so that the error of doubles does not grow with the rows."""
        parts = [float(self.ridge) * at]
        for rows, weight, sign in self._sides(true):
            parts += [
                -sign * weight * (logistic(-sign * (part @ at)) @ part) for part in chunks(rows)
            ]
        return np.array([math.fsum(entry) for entry in np.array(parts).T])

    def _sides(self, true: Any) -> tuple[tuple[Any, float, float], ...]:
        return (
            (true, 1 / (2 * self.expected), 1.0),
            (self.public, 1 / (2 * max(len(self.public), 1)), -1.0),
        )


def called_true(coefficients: Any, rows: Any) -> Any:
    """How many of the rows a separator calls true, and how many privatized.

    A row's call follows from that row and the public coefficients, to the last bit.
    """
    called = int((row_products(rows, np.asarray(coefficients, dtype=float)) >= 0).sum())
    return np.array([called, len(rows) - called], dtype=np.int64)


def power_of_two(number: Fraction) -> Fraction:
    """The largest power of two that is not above the number.

    >>> power_of_two(Fraction(3)), power_of_two(Fraction(1, 3))
    (Fraction(2, 1), Fraction(1, 4))
    """
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length())
    return power if power <= number else power / 2


def chunks(rows: Any) -> list[Any]:
    return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
