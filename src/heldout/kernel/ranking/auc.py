"""The area under the ROC curve as an exact rational, and how far one person can move it."""

from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["area", "area_of_table", "pairs_won", "tied_of_table"]

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
