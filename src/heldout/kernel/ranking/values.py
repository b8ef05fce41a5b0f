"""Exact values of the ranking metrics, and how far one person can move them."""

from fractions import Fraction
from typing import Any, Final

import numpy as np

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
    Cost:        O(N log N) time, O(N) memory; one sort a class.

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
    ordered = np.sort(negatives)
    looked_up = np.sort(positives)  # searchsorted is several times faster on sorted needles
    below = np.searchsorted(ordered, looked_up, side="left")
    not_above = np.searchsorted(ordered, looked_up, side="right")
    return int(below.sum(dtype=np.int64)) + int(not_above.sum(dtype=np.int64))


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
    Cost:        O(N log N) time, O(N) memory; one sort a class.

    >>> round(float(average_precision([0.9, 0.4, 0.4], [0.4, 0.1])), 12)  # (1 + 3/4 + 3/4) / 3
    0.833333333333
    """
    rising, below = np.sort(np.asarray(positives)), np.sort(np.asarray(negatives))
    if not rising.size:
        return Fraction(0)
    # Rows that score at least as much, of either class.
    called = (scores.size - np.searchsorted(scores, rising) for scores in (rising, below))
    right, wrong = (count.astype(np.uint64) for count in called)
    return Fraction(_floored_sum(right, right + wrong), rising.size * 2**BITS)


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
    rising, below = np.sort(np.asarray(positives)), np.sort(np.asarray(negatives))
    if not rising.size:
        return Fraction(0)
    wrong = (below.size - np.searchsorted(below, rising)).astype(np.uint64)
    index = np.arange(rising.size, 0, -1, dtype=np.uint64)
    return Fraction(_floored_sum(index, index + wrong), rising.size * 2**BITS)


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
    """Half of (second area - first area) plus one half: a number in [0, 1].

    Two models score the same rows, so n and m are the same and each pair's term, half of the
    difference of its two terms plus one half, lies in [0, 1]. That is all that the proof of
    `area` uses: the sensitivity is that of one area, and the difference itself has twice it.

    Claim:       the same as `area`.                                    [claim: auc-difference]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: see above; it is attained. proofs/auc-difference.md.
    Numerics:    exact.
    Refuses:     nothing.
    Reference:   none; follows from the sensitivity of one area.
    Cost:        O(1).

    >>> difference(Fraction(3, 4), Fraction(1))
    Fraction(5, 8)
    """
    return (second - first + 1) / 2
