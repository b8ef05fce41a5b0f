"""Exact values of the ranking metrics, and how far one person can move them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from heldout.arrays import Floats
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection

# --- The area under the ROC curve as an exact rational, and how far one person can move it -------


HALF = Fraction(1, 2)


def area(positives: Any, negatives: Any) -> Fraction:
    """The share of (positive, negative) pairs in the right order; a tied pair counts one half.

    Claim:       one row moves it by at most 1/min(n, m), and by at most 1; a unit of k rows by
                 at most k/min(n, m).                                  [claim: auc-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: each pair's term lies in [0, 1]; the pairs that two neighbours share are all but
                 a share k/min(n, m) of either's pairs. proofs/auc-sensitivity.md.
    Numerics:    exact: scores are only compared, everything else is integers.
    Refuses:     nothing. With an empty class the area is 1/2.
    Reference:   Boyd, Lantz and Page 2015, theorem 3 (wrong only in its condition).
    Cost:        O(N log N) time, O(N) memory; one sort per class.

    >>> area([0.9, 0.4], [0.4, 0.1])
    Fraction(7, 8)
    >>> area([], [0.4, 0.1])
    Fraction(1, 2)
    """
    positives, negatives = np.asarray(positives), np.asarray(negatives)
    if not positives.size or not negatives.size:
        return HALF
    return Fraction(pairs_won(positives, negatives), 2 * positives.size * negatives.size)


def pairs_won(positives: Any, negatives: Any) -> int:
    """Twice the number of pairs that the positive row wins, ties counted once."""
    ordered = rising(negatives)
    looked_up = rising(positives)  # searchsorted is several times faster on sorted needles
    below = np.searchsorted(ordered, looked_up, side="left")
    not_above = np.searchsorted(ordered, looked_up, side="right")
    return int(below.sum(dtype=np.int64)) + int(not_above.sum(dtype=np.int64))


def rising(scores: Any) -> Floats:
    """The scores from the lowest on; `heldout.Dataset` keeps those of many rows so.

    >>> rising([0.4, 0.1]).tolist()
    [0.1, 0.4]
    """
    scores = np.asarray(scores)
    return scores if (scores[1:] >= scores[:-1]).all() else np.sort(scores)


def area_of_table(negatives_per_cell: Any, positives_per_cell: Any) -> Fraction:
    """The area from counts by score cell, lowest score first. Rows of one cell are tied.

    The same function as `area` of the cells' numbers, so the same claim.

    >>> area_of_table([1, 1, 0], [0, 1, 1])
    Fraction(7, 8)
    """
    negatives = np.asarray(negatives_per_cell, dtype=np.int64)
    positives = np.asarray(positives_per_cell, dtype=np.int64)
    n, m = int(positives.sum()), int(negatives.sum())
    if not n or not m:
        return HALF
    twice_below = 2 * np.cumsum(negatives) - negatives
    # Each product is below 2 n m; beyond 2^31 rows it may not fit 64 bits.
    wide = positives.astype(object) if n + m >= 2**31 else positives
    return Fraction(int((wide * twice_below).sum()), 2 * n * m)


def tied_of_table(negatives_per_cell: Any, positives_per_cell: Any) -> Fraction:
    """The share of (positive, negative) pairs whose rows share a cell; 0 if a class is empty.

    Half of it is how far the order of rows within their cells can move the area.

    Claim:       moves like an area: by at most k/min(n, m), and by at most 1.
                                                                       [claim: auc-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a pair's term is 1 if its rows share a cell and 0 if not, in [0, 1] and fixed by
                 its two rows, which is all that the proof for an area uses.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   proofs/auc-sensitivity.md.
    Cost:        O(cells).

    >>> tied_of_table([1, 1, 0], [0, 1, 1])
    Fraction(1, 4)
    """
    negatives = np.asarray(negatives_per_cell, dtype=np.int64)
    positives = np.asarray(positives_per_cell, dtype=np.int64)
    n, m = int(positives.sum()), int(negatives.sum())
    if not n or not m:
        return Fraction(0)
    wide = positives.astype(object) if n + m >= 2**31 else positives
    return Fraction(int((wide * negatives).sum()), n * m)


# --- Average precision as an exact fixed-point number, and how far one person can move it --------


_HALF_BITS: Final = 31
BITS: Final = 2 * _HALF_BITS
ROUNDING: Final = Fraction(1, 2**BITS)
"""The value is below the real average precision by less than this; the sensitivity holds it."""

_CHUNK: Final = 2**15  # positives at a time: what fits into a processor's cache


def average_precision(positives: Any, negatives: Any) -> Fraction:
    """The mean, over the positive rows, of the precision at their score, rounded down to 2^-62.

    The precision at a score is the share of positives among all rows that score at least as much,
    as in scikit-learn: rows of a tie count together. Each term is floored to 2^-62 and the mean of
    the floored terms is taken exactly, so the result is below the real average precision by less
    than 2^-62.

    Claim:       one row moves it by at most `local_sensitivity`, which is about (ln n)/n.
                                                                        [claim: ap-sensitivity]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: termwise, by what the row was and becomes; the worst case is the perfect
                 ranking. proofs/ap-sensitivity.md.
    Numerics:    exact integers; the rounding is part of the function and of its sensitivity.
    Refuses:     nothing. Without a positive row the value is 0, as in scikit-learn.
    Reference:   Boyd, Lantz and Page 2015, theorem 5, and Boyd 2014, theorem 5.3, whose bounds
                 are about twice as large, and for another rule of ties.
    Cost:        O(N log N) time, O(N) memory; one sort per class.

    >>> round(float(average_precision([0.9, 0.4, 0.4], [0.4, 0.1])), 12)  # (1 + 3/4 + 3/4) / 3
    0.833333333333
    """
    positives, below = rising(positives), rising(negatives)
    if not positives.size:
        return Fraction(0)
    # Rows that score at least as much, of either class.
    called = (scores.size - np.searchsorted(scores, positives) for scores in (positives, below))
    right, wrong = (count.astype(np.uint64) for count in called)
    return Fraction(_floored_sum(right, right + wrong), positives.size * 2**BITS)


def average_precision_of_table(negatives_per_cell: Any, positives_per_cell: Any) -> Fraction:
    """The same from counts by score cell, lowest score first. Rows of one cell are tied.

    >>> round(float(average_precision_of_table([1, 1, 0], [0, 2, 1])), 12)
    0.833333333333
    """
    counts, above = _cells_downwards(negatives_per_cell, positives_per_cell)
    n = int(counts.sum())
    if not n:
        return Fraction(0)
    right = np.cumsum(counts).astype(np.uint64)
    times = counts.astype(np.uint64)
    return Fraction(_floored_sum(right, right + above, times), n * 2**BITS)


def average_precision_negatives_first(positives: Any, negatives: Any) -> Fraction:
    """The mean of the precision at the positive rows' ranks, the papers' average precision.

    Rank 1 has the highest score; within a tie the negatives come first, so that no order of the
    tied rows gives less. Without ties it is `average_precision`, and its claim is the same.

    >>> round(float(average_precision_negatives_first([0.9, 0.4], [0.4, 0.1])), 12)  # (1 + 2/3) / 2
    0.833333333333
    """
    positives, below = rising(positives), rising(negatives)
    if not positives.size:
        return Fraction(0)
    wrong = (below.size - np.searchsorted(below, positives)).astype(np.uint64)
    index = np.arange(positives.size, 0, -1, dtype=np.uint64)
    return Fraction(_floored_sum(index, index + wrong), positives.size * 2**BITS)


def average_precision_of_table_negatives_first(
    negatives_per_cell: Any, positives_per_cell: Any
) -> Fraction:
    """The same from counts by score cell, lowest score first. Rows of one cell are tied.

    >>> round(float(average_precision_of_table_negatives_first([1, 1, 0], [0, 1, 1])), 12)
    0.833333333333
    """
    counts, above = _cells_downwards(negatives_per_cell, positives_per_cell)
    n = int(counts.sum())
    if not n:
        return Fraction(0)
    ends = np.cumsum(counts)
    total = 0
    for start in range(0, n, _CHUNK):  # memory stays small however many positives there are
        stop = min(start + _CHUNK, n)
        begin, last = np.searchsorted(ends, [start, stop - 1], side="right")
        some = slice(begin, last + 1)
        within = np.minimum(ends[some], stop) - np.maximum(ends[some] - counts[some], start)
        index = np.arange(start + 1, stop + 1, dtype=np.uint64)
        total += _floored_sum(index, index + np.repeat(above[some], within))
    return Fraction(total, n * 2**BITS)


def _cells_downwards(negatives_per_cell: Any, positives_per_cell: Any) -> tuple[Any, Any]:
    """Return the positives of each cell with some, highest first, and the negatives down to it."""
    positives = np.asarray(positives_per_cell, dtype=np.int64)[::-1]
    negatives = np.asarray(negatives_per_cell, dtype=np.int64)[::-1]
    cells = np.flatnonzero(positives)
    return positives[cells], np.cumsum(negatives)[cells].astype(np.uint64)


def _floored_sum(right: Any, called: Any, times: Any = 1) -> int:
    """The sum of floor(right * 2^62 / called), each so many times, for 1 <= right <= called.

    Long division in two digits of 31 bits: with a remainder below called < 2^33 no step overflows.
    """
    if int(called.max()) >= 2**33:
        terms = zip(right.tolist(), called.tolist(), strict=True)
        floors = np.array([(i << BITS) // t for i, t in terms], dtype=object)
        return int((floors * np.asarray(times).astype(object)).sum())
    digit = np.uint64(_HALF_BITS)
    high, rest = np.divmod(right << digit, called)
    low = (rest << digit) // called
    # high <= 2^31 and low < 2^31; there are fewer than 2^33 terms, so their sums fit.
    many = np.asarray(times, dtype=np.uint64)
    return (int((high * many).sum()) << _HALF_BITS) + int((low * many).sum())


# --- How much better one model ranks than another, on the same rows ------------------------------


def difference(first: Fraction, second: Fraction) -> Fraction:
    """Half of (second - first) plus one half, of two areas or average precisions: in [0, 1].

    Two models score the same rows, so n and m are the same and each pair's term, half of the
    difference of its two terms plus one half, lies in [0, 1]. That is all that the proof of
    `area` uses: the sensitivity is that of one area, and the difference itself has twice it.

    Of two average precisions it is half of the sum of two moves, which each bound of one of them
    bounds, at the rung that both have.

    Claim:       the same as `area`; of average precision, as `average_precision`.
                                             [claim: auc-difference] [claim: ap-difference]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: see above; it is attained for areas. proofs/auc-difference.md, ap-difference.md.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   none; follows from the sensitivity of one area.
    Cost:        O(1).

    >>> difference(Fraction(3, 4), Fraction(1))
    Fraction(5, 8)
    """
    return (second - first + 1) / 2


# Local sensitivities of the ranking statistics, as sequences over rungs.
#
# A *rung* says how far a data set is from the ones where a single person decides everything:
# `min(n, m) // k` for the area under the ROC curve and `n // k` for average precision, with k rows
# a unit (1 without units). Neighbours stand on the same rung or on adjacent ones, and the local
# sensitivity falls as the rung rises. That is all that a mechanism needs to know.
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
        above, below = nearest.as_integer_ratio()
        return nearest if above * max(rung, 1) >= below else math.nextafter(nearest, 1.0)

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
                "Use the default method, which allows more."
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
