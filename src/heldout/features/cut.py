"""Where a released score calls a row positive: the cut that is right most often."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.features.joint_counts import seen_through
from heldout.features.matrix import WHOLE_ROWS
from heldout.mechanisms.top_k import PermuteAndFlip
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.release import Step
from heldout.statistics.base import Statistic

__all__ = ["STEP", "Cuts", "RightCalls", "RowScores"]

STEP = 2**16  # steps of the lattice to one unit of log-odds
FARTHEST = 1e3

RowScores = Callable[[Any], Any]
"""A sparse 0/1 matrix -> each row's score in whole lattice steps, of that row alone."""


@dataclass(frozen=True)
class Cuts:
    """Public cuts of a score: `near` of them on each side, evenly `apart`, and a few far ones."""

    apart: Fraction
    near: int = 16
    far: tuple[int, ...] = (20, 24, 32, 48, 64, 96, 128)

    @property
    def places(self) -> tuple[int, ...]:
        """In lattice steps, rising.

        >>> len(Cuts(Fraction(1, 2)).places)
        47
        """
        sides = {*range(-self.near, self.near + 1), *self.far, *(-each for each in self.far)}
        return tuple(int(each * self.apart * STEP) for each in sorted(sides))

    def value(self, place: int) -> float:
        """The score from which rows are called positive, for an answer of `RightCalls`."""
        if place == 0:
            return -FARTHEST
        places = self.places
        return FARTHEST if place > len(places) else places[place - 1] / STEP

    def step(
        self,
        scores: RowScores,
        *,
        epsilon: Fraction,
        protection: Protection,
        chosen: tuple[int, ...] | None = None,
    ) -> Step:
        """The choice of a cut, by permute-and-flip."""
        return Step(
            RightCalls(scores, self.places, chosen), self.chooser(epsilon, protection=protection)
        )

    @staticmethod
    def chooser(epsilon: Fraction, *, protection: Protection) -> PermuteAndFlip:
        return PermuteAndFlip(
            epsilon,
            RightCalls.of_each(protection),
            monotone=RightCalls.monotone(protection),
        )


@dataclass(frozen=True, eq=False)
class RightCalls(Statistic):
    """How many rows each cut of a public score calls rightly, from "all positive" to "none".

    Claim:       one row adds 1 to some of the counts and nothing to the others.
                                                                           [claim: right-calls]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: each count moves by at most k under both relations: under replace-one k rows leave
                 and k arrive, and the moves have opposite signs. Under add-remove all move one way.
    Numerics:    exact integers: scores and cuts are whole numbers.
    Refuses:     nothing.
    Reference:   proofs/right-calls.md.
    Cost:        one pass over the entries.
    """

    scores: RowScores
    """Of released numbers alone."""
    cuts: tuple[int, ...]
    chosen: tuple[int, ...] | None = None
    claim: ClassVar[str] = "right-calls"

    def body(self) -> str:
        return WHOLE_ROWS

    def read(self, columns: Columns) -> Any:
        label, matrix = columns["label"], seen_through(columns, self.chosen)
        reached: Any = np.searchsorted(self.cuts, self.scores(matrix), side="right")
        cells = len(self.cuts) + 1
        negatives, positives = (
            np.bincount(reached[label == each], minlength=cells) for each in (0, 1)
        )
        below = np.concatenate([[0], np.cumsum(negatives)])
        above = int(positives.sum()) - np.concatenate([[0], np.cumsum(positives)])
        return (below + above).astype(np.int64)

    @staticmethod
    def of_each(protection: Protection) -> int:
        return protection.rows_per_unit

    @staticmethod
    def monotone(protection: Protection) -> bool:
        return protection.neighbours is Neighbours.ADD_REMOVE
