"""Private bounds for numbers that nobody has bounded: first how large, then where."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.exact import Randomness
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.sparse_vector import SparseVector
from heldout.kernel.sealed import Sealed
from heldout.questions.curves.methods.cuts import choose_exactly

__all__ = ["BoundSearch", "BoundSearchAsPrinted", "IntervalChoice"]


@dataclass(frozen=True, kw_only=True)
class BoundSearch:
    """The place of the first of some nested bounds that holds more than `threshold` rows.

    The statistic counts the rows between one bound and the next, and last those beyond all. If no
    answer is positive the last bound is taken: there is always an answer.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the rows within a bound move by at most k. Bounds are nested, so one row that is
                 replaced, or k rows that only leave or only arrive, move all counts the same way,
                 and half of the queries' noise is enough; proofs/residual-bounds.md.
    Numerics:    exact, as `SparseVector`.
    Refuses:     what `SparseVector` refuses.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, algorithm 1, with twice its
                 queries' accuracy for the same price.
    Cost:        8 microseconds a bound.

    >>> from heldout.kernel import price
    >>> search = BoundSearch(epsilon=Fraction(1), protection=Protection(neighbours="replace-one"),
    ...                      threshold=950)
    >>> search.test.query_scale, str(price(search.event()))
    (Fraction(2, 1), 'epsilon 1')
    """

    epsilon: Fraction
    protection: Protection
    threshold: int

    def __post_init__(self) -> None:
        _ = self.test  # what is wrong is refused before anything is booked

    @property
    def one_way(self) -> bool:
        """Whether neighbours move all nested counts upwards or all of them downwards."""
        relation, rows = self.protection.neighbours, self.protection.rows_per_unit
        return relation is Neighbours.ADD_REMOVE or rows == 1

    @cached_property
    def test(self) -> SparseVector:
        return SparseVector(
            self.epsilon,
            sensitivity=self.protection.rows_per_unit,
            monotone=self.one_way,
            threshold=self.threshold,
        )

    def event(self) -> Event:
        return self.test.event()

    def sample(self, sealed: Sealed[Any]) -> int:
        """The place of the bound, from 0."""
        between = np.asarray(unseal(sealed), dtype=np.int64)[:-1]
        given = self.test.sample(Sealed(np.cumsum(between)))
        return given.index(True) if True in given else len(between) - 1

    def describe(self) -> dict[str, object]:
        return self.test.describe()


@dataclass(frozen=True, kw_only=True)
class BoundSearchAsPrinted(BoundSearch):
    """`BoundSearch` with the noise of its paper: 2/epsilon on the threshold, 4/epsilon on counts.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: the rows within a bound move by at most k.
    Numerics:    exact, as `SparseVector`.
    Refuses:     what `SparseVector` refuses.
    Reference:   Chen, Machanavajjhala, Reiter and Barrientos 2016, algorithm 1.
    Cost:        8 microseconds a bound.

    >>> search = BoundSearchAsPrinted(
    ...     epsilon=Fraction(1), protection=Protection(neighbours="replace-one"), threshold=950)
    >>> search.test.threshold_scale, search.test.query_scale
    (Fraction(2, 1), Fraction(4, 1))
    """

    @cached_property
    def test(self) -> SparseVector:
        return SparseVector(
            self.epsilon,
            sensitivity=self.protection.rows_per_unit,
            threshold=self.threshold,
            threshold_share=Fraction(1, 2),
        )


@dataclass(frozen=True, kw_only=True)
class IntervalChoice(Primitive):
    """Neighbouring cells that hold many rows and are few: one cell more must bring `price` rows.

    Claim:       pure DP, epsilon.                                    [claim: residual-bounds]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: rows within an interval rise by at most k and fall by at most k between replace-one
                 neighbours, and do one of the two between add-remove ones. An interval's chance is
                 proportional to cells^3 exp(rate * (rows - price * cells)), so that rate * 2k,
                 or rate * k, is the loss.
    Numerics:    exact, see `choose_exactly`.
    Refuses:     an epsilon that is not positive; fewer than one cell or more than 1,024.
    Reference:   McSherry and Talwar 2007, the exponential mechanism.
    Cost:        O(cells^2).

    >>> choice = IntervalChoice(epsilon=Fraction(1), cells=32, price=10,
    ...                         protection=Protection(neighbours="replace-one"))
    >>> choice.rate
    Fraction(1, 2)
    """

    epsilon: Fraction
    protection: Protection
    cells: int
    price: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be more than 0, got {self.epsilon}.")
        if not 1 <= self.cells <= 1024 or self.price < 0:
            raise ArgumentError("cells must be 1 to 1,024 and their price not below 0.")

    @property
    def rate(self) -> Fraction:
        """What one row more adds to the logarithm of an interval's probability."""
        return self.epsilon / self.protection.rows_moved

    def sample(
        self, sealed: Sealed[Any], *, randomness: Randomness | None = None
    ) -> tuple[int, int]:
        """The first cell, and the one after the last."""
        counts = np.asarray(unseal(sealed), dtype=np.int64)
        if counts.shape != (self.cells + 1,):
            raise ArgumentError("cells must be those of the statistic.")
        first, end, penalties = self.candidates(counts)
        # Where epsilon is too small to see the rows, wide intervals are likelier than narrow ones.
        place = choose_exactly((end - first) ** 3, penalties, self.rate, randomness=randomness)
        return int(first[place]), int(end[place])

    def candidates(self, counts: Any) -> tuple[Any, Any, Any]:
        """Every interval: its first cell, its end, and its penalty in rows."""
        below = np.append(0, np.cumsum(counts[:-1]))
        first, end = np.triu_indices(self.cells + 1, 1)
        return first, end, self.price * (end - first) - (below[end] - below[first])

    def describe(self) -> dict[str, object]:
        return {"name": "exponential", "rate": str(self.rate), "cells": self.cells}
