"""The loss of a ridge logistic regression over private rows, as something to be minimised."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.questions.features.feature_rows import FeatureStatistic, seen_through
from heldout.questions.features.joint_counts import UNIT, row_units

__all__ = ["LogisticLoss", "Rows", "logistic"]

UNIT_ROUNDOFF = Fraction(1, 2**53)
HALF = Fraction(1, 2)
TOLERANCE = Fraction(1, 2**24)
LARGEST = 64  # coefficients beyond this are summed with care, term by term
FINE = 2**20  # how much finer the noise's lattice is than a row, over all coefficients
MARGIN = 2.0
"""How far on the right side a row's score must be to pull half as hard as it can.

Noise is paid for the hardest pull. Without a margin, rows pull half as hard before anything is
learnt. Of 0 to 3, tried on adult, diabetes130, CPS, ACS, wine, pima and abalone, 2 was best.
"""


@dataclass(frozen=True)
class LogisticLoss(FeatureStatistic):
    """Sum over rows of log(1 + exp(MARGIN - y t.x)), x the row's features and a constant 1/2.

    It is sealed as a function: for noise in lattice steps it gives the minimum of the noisy,
    ridged loss. `rows` is a public bound on the number of rows. With a `weight`, a feature that is
    set counts 1, or weight/size in rows of more features, and one that is not set 0. Without, as
    suits few features that many rows set, it counts 1/2 or -1/2.

    Claim:       a row's gradient is at most `row` long, in L1 with a weight and in its largest
                 entry without, and at most `square` in squared L2; the solver's minimum lies
                 within `slack` of the true one.                              [claim: logistic]
    Neighbours:  any; each row enters by itself.
    Sensitivity: with a weight, features sum to at most `weight`, each at most 1, and the constant
                 is 1/2; without, every entry is 1/2 or -1/2.
    Numerics:    doubles with a proved bound on their error.
    Refuses:     nothing in the rows.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011; proofs/logistic.md.
    Cost:        a dozen Newton steps by conjugate gradients.
    """

    features: int
    weight: int | None
    ridge: Fraction
    rows: int
    chosen: tuple[int, ...] | None = None
    claim: ClassVar[str] = "logistic"
    shown_by: ClassVar[str] = (
        "tests/questions/features/test_logistic.py"
        "::test_the_density_of_the_ideal_minimum_moves_by_no_more_than_claimed"
    )

    @property
    def dimension(self) -> int:
        return self.features + 1

    @property
    def row(self) -> Fraction:
        """How hard one row can pull: in all with a weight, at one coefficient without."""
        return HALF if self.weight is None else self.weight + HALF

    @property
    def square(self) -> Fraction:
        """The squared length of a row."""
        if self.weight is None:
            return HALF**2 * self.dimension
        return self.weight + HALF**2

    @property
    def length(self) -> Fraction:
        """The sum of a row's entries, without their signs."""
        return HALF * self.dimension if self.weight is None else self.row

    @cached_property
    def step(self) -> Fraction:
        """Of the noise: a power of two."""
        return Fraction(1, 1 << int(FINE * self.dimension / self.length).bit_length())

    @property
    def lattice(self) -> Fraction:
        """Of the coefficients."""
        return self.step / self.ridge

    @property
    def grain(self) -> int:
        """Bits after the point of coefficients that are summed: sums fit 62 bits."""
        return min(40, 62 - (LARGEST * self.dimension).bit_length())

    @property
    def bits(self) -> int:
        """Bits after the point of rows' gradients that are summed: sums fit 62 bits."""
        return 62 - self.rows.bit_length()

    @cached_property
    def error(self) -> Fraction:
        """A bound on the length of a gradient's error in doubles."""
        margin = self.length / (1 << (self.grain - 1))
        of_entries = self._root / (1 << (self.bits + 1))
        return 2 * self.rows * (self.length * (margin / 4 + 16 * UNIT_ROUNDOFF) + of_entries)

    @cached_property
    def _root(self) -> Fraction:
        """The square root of the dimension, rounded up."""
        return Fraction(math.isqrt(self.dimension << 40) + 1, 1 << 20)

    @property
    def tolerance(self) -> Fraction:
        return max(TOLERANCE, 4 * self.error)

    @cached_property
    def slack(self) -> int:
        """Lattice steps (L1) between two roundings of one minimum."""
        root = self._root
        wrong = self.tolerance + self.error + root * self.step / 2
        return math.ceil(2 * root * wrong / self.ridge / self.lattice) + self.dimension

    def read(self, columns: Columns) -> Any:
        matrix = seen_through(columns, self.chosen)
        rows = Rows(self, matrix, columns["label"])

        def minimum(noise: Any) -> Any:
            found = self.minimum(rows, list(noise))
            # Integers without an end: 64 bits would not hold those of many rows and features.
            steps = np.rint(found / float(self.lattice))
            return np.array([int(each) for each in steps], dtype=object)

        return minimum

    def minimum(self, rows: "Rows", noise: list[int]) -> Any:
        """Where the noisy loss is least, plus b/ridge; Newton's steps, shortened where needed."""
        from scipy.sparse.linalg import LinearOperator, cg

        ridge, tolerance = float(self.ridge), float(self.tolerance)
        at = np.zeros(self.dimension)
        slope, curve = rows.slope(at, noise)
        while np.linalg.norm(slope) > tolerance:
            curved = LinearOperator(
                (self.dimension, self.dimension),
                matvec=lambda v, curve=curve: rows.curved(v, curve) + ridge * v,
            )
            exact = min(0.1, float(np.linalg.norm(slope)) ** 0.5)
            move, _ = cg(curved, slope, rtol=max(exact, 1e-8), maxiter=10 * self.dimension)
            length = 1.0
            while True:
                tried = at - length * move
                then, curve_then = rows.slope(tried, noise)
                if then @ then < slope @ slope * (1 - length / 4):
                    break
                length /= 2
            at, slope, curve = tried, then, curve_then
        return at


class Rows:
    """Rows, their weights and labels of -1 and 1, and the sums that Newton's method needs.

    A row's vector is its weight for each feature that it sets, `shift` (0 or -1/2) added to every
    feature, and 1/2 for the constant.
    """

    def __init__(self, loss: LogisticLoss, matrix: Any, label: Any) -> None:
        self.loss = loss
        self.whole = matrix.astype(np.int64)
        self.whole_across = self.whole.T.tocsr()
        self.matrix, self.across = self.whole.astype(float), self.whole_across.astype(float)
        if loss.weight is None:
            self.weights, self.shift = np.ones(matrix.shape[0]), -0.5
        else:
            self.weights, self.shift = row_units(matrix, loss.weight) / UNIT, 0.0
        self.labels = 2.0 * np.asarray(label) - 1

    def slope(self, at: Any, noise: list[int]) -> tuple[Any, Any]:
        """The gradient, and each row's curvature. Sums over rows and features are of integers."""
        loss = self.loss
        miss = logistic(MARGIN - self.labels * self.margins(at, noise))
        pull = -self.labels * miss
        fine = 2.0**loss.bits
        own = np.rint(self.weights * pull * fine).astype(np.int64)
        last = np.rint(pull * fine).astype(np.int64).sum()
        slope = np.append(self.whole_across @ own + self.shift * last, 0.5 * last) / fine
        return slope + float(loss.ridge) * at, miss * (1 - miss)

    def margins(self, at: Any, noise: list[int]) -> Any:
        """t.x for every row, t being `at` minus the noise over the ridge."""
        away = float(self.loss.lattice) * np.array(noise, dtype=float)
        whole = at - away
        # Noise beyond 53 bits is rounded on its way to a double: far out that would be seen.
        if np.abs(whole).max() > LARGEST or np.abs(away).max() > 2 * LARGEST:
            return self._careful(at, noise)
        fine = 2.0**self.loss.grain
        entries = np.rint(whole[:-1] * fine).astype(np.int64)
        features = self.weights * ((self.whole @ entries) / fine)
        return features + self.shift * (entries.sum() / fine) + 0.5 * whole[-1]

    def curved(self, vector: Any, curve: Any) -> Any:
        every = self.shift * vector[:-1].sum() + 0.5 * vector[-1]
        along = curve * (self.weights * (self.matrix @ vector[:-1]) + every)
        total = along.sum()
        return np.append(self.across @ (self.weights * along) + self.shift * total, 0.5 * total)

    def _careful(self, at: Any, noise: list[int]) -> Any:
        """Margins by exact rationals, for coefficients so large that doubles would lose them."""
        step = self.loss.lattice
        whole = [Fraction(float(a)) - step * b for a, b in zip(at, noise, strict=True)]
        every = Fraction(self.shift) * sum(whole[:-1]) + HALF * whole[-1]
        starts, places = self.matrix.indptr, self.matrix.indices
        return np.array(
            [
                float(Fraction(float(weight)) * sum(whole[j] for j in places[a:b]) + every)
                for a, b, weight in zip(starts, starts[1:], self.weights, strict=False)
            ]
        )


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)
