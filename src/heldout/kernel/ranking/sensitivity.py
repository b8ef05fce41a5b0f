"""Local sensitivities of the ranking statistics, as sequences over rungs.

A *rung* says how far a data set is from the ones where a single person decides everything:
`min(n, m) // k` for the area under the ROC curve and `n // k` for average precision, with k rows
a unit (1 without units). Neighbours stand on the same rung or on adjacent ones, and the local
sensitivity falls as the rung rises. That is all that a mechanism needs to know.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeVar

from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.ranking.values import ROUNDING

if TYPE_CHECKING:
    from flint import arb

UPWARDS: Final = 1 + 2.0**-40  # far more than the rounding errors of the few operations before it
_EULER: Final = 0.5772156649015329

Sizes = TypeVar("Sizes", int, Floats)


@dataclass(frozen=True, kw_only=True)
class RungSensitivity(ABC):
    """A bound on the local sensitivity by rung: at most 1, and falling (see `settles`)."""

    protection: Protection

    def rung(self, *, positives: int, negatives: int) -> int:
        """The rung of a data set with these class counts."""
        return int(self.rung_size(positives=positives, negatives=negatives)) // self._rows

    @property
    def _rows(self) -> int:
        return self.protection.rows_per_unit

    @abstractmethod
    def rung_size(self, *, positives: Sizes, negatives: Sizes) -> Sizes:
        """The count that `rung` divides by k; also of arrays."""

    @abstractmethod
    def ball(self, rung: int) -> "arb":
        """The bound as a ball at the working precision of flint: exact, and can be refined."""

    @abstractmethod
    def upper(self, rung: int) -> float:
        """A double that is not below the bound; falls with the rung."""

    @property
    @abstractmethod
    def settles(self) -> int:
        """From this rung on the bound is log-convex in the rung and falls."""


@dataclass(frozen=True, kw_only=True)
class AreaSensitivity(RungSensitivity):
    """min(1, 1/rung) for the area under the ROC curve and for `difference`.

    Claim:       a bound on the local sensitivity for every data set of the rung.
                                                                       [claim: auc-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: k/min(n, m) <= 1/(min(n, m) // k). Attained with k = 1 and min(n, m) >= 2.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   proofs/auc-sensitivity.md.
    Cost:        O(1).

    >>> rows = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> rows.rung(positives=30, negatives=500), rows.upper(32)
    (30, 0.03125)
    """

    def rung_size(self, *, positives: Sizes, negatives: Sizes) -> Sizes:
        import numpy as np

        smaller: Sizes = np.minimum(positives, negatives)
        return smaller

    def ball(self, rung: int) -> "arb":
        from flint import arb, fmpq

        return arb(fmpq(1, max(rung, 1)))

    def upper(self, rung: int) -> float:
        nearest = 1 / max(rung, 1)
        exact = Fraction(1, max(rung, 1))
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, 1.0)

    @property
    def settles(self) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class _PositivesSensitivity(RungSensitivity):
    """Bounds that depend on the number n of positives: a sum over the steps of a path.

    A unit is moved row by row, in at most k steps; n falls by at most one a step, so the value
    moves by at most the sum of the row bounds at n, n - 1, ..., n - k + 1. Once the row bound is
    log-convex, hence convex, that sum is at most k times the mean of its two ends.
    """

    def rung_size(self, *, positives: Sizes, negatives: Sizes) -> Sizes:
        return positives

    @property
    @abstractmethod
    def _row_settles(self) -> int:
        """From this n on the row bound is log-convex and falls."""

    @abstractmethod
    def _row_ball(self, n: int) -> "arb":
        """The bound for one row."""

    @abstractmethod
    def _row_upper(self, n: int) -> float:
        """A double not below the bound for one row."""

    def _ends(self, rung: int) -> tuple[int, int]:
        return rung * self._rows, (rung - 1) * self._rows + 1

    def ball(self, rung: int) -> "arb":
        from flint import arb

        if rung < 1:
            return self._capped(arb(1), capped=True)
        high, low = self._ends(rung)
        if low >= self._row_settles:
            k = self._rows
            total = k * (self._row_ball(high) + self._row_ball(low)) / 2
        else:
            total = sum((self._row_ball(n) for n in range(low, high + 1)), arb(0))
        return self._capped(total + _fraction(ROUNDING), capped=low > 1)

    def _capped(self, total: "arb", *, capped: bool) -> "arb":
        from flint import arb

        return arb.min(total, arb(1)) if capped else arb(1)

    def upper(self, rung: int) -> float:
        if rung < 1:
            return 1.0
        high, low = self._ends(rung)
        if low <= 1:
            return 1.0
        if low >= self._row_settles:
            k = self._rows
            total = k * (self._row_upper(high) + self._row_upper(low)) / 2
        else:
            total = math.fsum(self._row_upper(n) for n in range(low, high + 1))
        return min(1.0, (total + float(ROUNDING)) * UPWARDS)

    @property
    def settles(self) -> int:
        rung = 1
        while self._ends(rung)[1] < self._row_settles or self.upper(rung) >= 1:
            rung += 1
        return rung


@dataclass(frozen=True, kw_only=True)
class PrecisionSensitivity(_PositivesSensitivity):
    """The bound for average precision, about (ln n)/n for a row.

    Claim:       a bound on the local sensitivity for every data set of the rung.
                                                                        [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: replace-one: 1 for n <= 1, 7/12, 19/45, then (H_n - 1)/(n - 1); add-remove: 1 for
                 n <= 1, 1/2, then (H_{n+1} - 1)/n. Attained, in the limit of many negatives.
    Numerics:    exact; 2^-62 is added for the fixed point of the value.
    Refuses:     nothing.
    Reference:   proofs/ap-sensitivity.md.
    Cost:        O(1) a rung, O(k) for the lowest few.

    >>> rows = PrecisionSensitivity(protection=Protection(neighbours="replace-one"))
    >>> [round(rows.upper(n), 4) for n in (1, 2, 3, 4, 1000)]
    [1.0, 0.5833, 0.4222, 0.3611, 0.0065]
    """

    @property
    def _special(self) -> dict[int, Fraction]:
        if self.protection.both_ways:
            return {2: Fraction(7, 12), 3: Fraction(19, 45)}
        return {2: Fraction(1, 2)}

    @property
    def _row_settles(self) -> int:
        return 4

    def _mean_to(self, n: int) -> int:
        """The bound is the mean of 1/2 .. 1/j for this j."""
        return n if self.protection.both_ways else n + 1

    def _row_ball(self, n: int) -> "arb":
        from flint import arb

        if n <= 1:
            return arb(1)
        if n in self._special:
            return _fraction(self._special[n])
        j = self._mean_to(n)
        return (arb(j + 1).digamma() + arb.const_euler() - 1) / (j - 1)

    def _row_upper(self, n: int) -> float:
        if n <= 1:
            return 1.0
        if n in self._special:
            return float(self._special[n]) * UPWARDS
        j = self._mean_to(n)
        return (_harmonic(j) - 1) / (j - 1) * UPWARDS


@dataclass(frozen=True, kw_only=True)
class PublishedPrecisionSensitivity(_PositivesSensitivity):
    """Equation (10) of the 2015 paper, for its mechanisms exactly as published.

    Claim:       a bound on the local sensitivity, about twice ours.    [claim: ap-sensitivity]
    Neighbours:  replace-one (as published; it also bounds add-remove); by row or by unit.
    Sensitivity: log-convex and falling from n = 2 on; it passes 1 there, as published.
    Numerics:    exact; 2^-62 is added for the fixed point of the value.
    Refuses:     units of more than one row, of which the paper does not speak.
    Reference:   Boyd, Lantz and Page 2015, theorem 5.
    Cost:        O(1).
    """

    def __post_init__(self) -> None:
        if self._rows != 1:
            raise ArgumentError(
                f"rows_per_unit must be 1 for a method of 2015, got {self._rows}. "
                "Use the default method, which knows units."
            )

    @property
    def _row_settles(self) -> int:
        return 2

    def _capped(self, total: "arb", *, capped: bool) -> "arb":
        from flint import arb

        return total if capped else arb(1)

    def _row_ball(self, n: int) -> "arb":
        from flint import arb

        first = arb.max(arb(n + 1).log() / n, (9 + arb(n - 1).log()) / (4 * (n - 1)))
        return first + arb.max(arb(n + 1).log() / n, (9 + arb(n).log()) / (4 * n))

    def _row_upper(self, n: int) -> float:
        first = max(math.log(n + 1) / n, (9 + math.log(n - 1)) / (4 * (n - 1)))
        return (first + max(math.log(n + 1) / n, (9 + math.log(n)) / (4 * n))) * UPWARDS

    def upper(self, rung: int) -> float:
        return 1.0 if rung < 2 else (self._row_upper(rung) + float(ROUNDING)) * UPWARDS

    @property
    def settles(self) -> int:
        return 2


def _fraction(number: Fraction) -> "arb":
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))


def _harmonic(n: int) -> float:
    """H_n to a few units in the last place."""
    if n < 64:
        return math.fsum(1 / i for i in range(1, n + 1))
    square = float(n) * n
    return math.log(n) + _EULER + 1 / (2 * n) - 1 / (12 * square) + 1 / (120 * square * square)


# --- Smooth sensitivity of a ranking statistic, in closed form, as an exact real -----------------


@dataclass(frozen=True, kw_only=True)
class SmoothSensitivity:
    """max over rungs j of exp(-beta |r - j|) * local(j), for a data set on rung r.

    Claim:       beta-smooth: neighbours' values differ by a factor of at most exp(beta), and it
                 is never below the local sensitivity.                      [claim: smooth-auc]
    Neighbours:  those of the local sensitivity.
    Sensitivity: neighbours' rungs differ by at most one. The local sensitivity is log-convex from
                 `settles` on, so only r itself and the rungs up to `settles` can attain the
                 maximum. proofs/smooth-auc.md.
    Numerics:    exact: a ball at any precision that is asked for.
    Refuses:     nothing.
    Reference:   Nissim, Raskhodnikova and Smith 2007; Boyd, Lantz and Page 2015, theorem 4.
    Cost:        O(1), no loop over the rows.

    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> SmoothSensitivity(local=local, beta=Fraction(1, 10), rung=100).approximate()
    0.01
    """

    local: RungSensitivity
    beta: Fraction
    rung: int

    def candidates(self) -> list[int]:
        """The rungs that can attain the maximum."""
        return sorted({*range(1, self.local.settles + 2), max(self.rung, 0)})

    def ball(self) -> "arb":
        """The value at flint's working precision."""
        from flint import arb, fmpq

        beta = arb(fmpq(self.beta.numerator, self.beta.denominator))
        best = arb(0)
        for rung in self.candidates():
            # Above the data set's rung the local sensitivity is lower, but for the papers' own.
            reach = (-beta * abs(self.rung - rung)).exp() * self.local.ball(rung)
            best = arb.max(best, reach)
        return best

    def approximate(self) -> float:
        """A double near the value, for plans and intervals."""
        beta = float(self.beta)
        return max(
            math.exp(-beta * abs(self.rung - rung)) * self.local.upper(rung)
            for rung in self.candidates()
        )
