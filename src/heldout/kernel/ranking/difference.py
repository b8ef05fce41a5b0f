"""How much better one model ranks than another, on the same rows."""

from fractions import Fraction

__all__ = ["difference"]


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
