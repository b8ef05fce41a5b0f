"""How well each unit's list of rows is ranked, summed over the units."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import as_scores
from heldout.kernel.weights import STEPS

__all__ = ["RankedLists"]

MEASURES: Final = ("ndcg", "precision")


@dataclass(frozen=True)
class RankedLists(Statistic):
    """Sums over lists of a measure v of each: of v^2, of v - v^2 and of 1 - v.

    The first two add up to the sum of v, all three to the number of lists; and the first tells how
    much lists differ, so that the mean's sampling error need not be guessed.

    A list is the rows of one unit (a query, a user) that count, highest score first and negative
    rows first among equals. "precision" is the share of positive rows among the first `k`, where
    places that a short list leaves empty count as negative. "ndcg" gives a positive row at place i
    a gain of 1 / log2(i + 1), sums the gains of the first `k` and divides by what the best order
    would give; a list without a positive row has 0, as in scikit-learn.

    Claim:       L1 sensitivity STEPS a unit that leaves or arrives.       [claim: ranked-lists]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: a unit adds three whole numbers, none below 0, of its own rows alone: STEPS in
                 all, however many rows it has. Add-remove moves one unit, replace-one two.
    Numerics:    exact sums of whole numbers. A list's value is computed in doubles by operations on
                 its own rows, in the order of their ranks, then rounded and held to 0 and STEPS.
    Refuses:     a measure that it does not know, a k that is not positive, rows without units.
    Reference:   proofs/ranked-lists.md; Jarvelin and Kekalainen 2002.
    Cost:        one scan, one sort, O(rows) memory.

    >>> replaced = Protection(neighbours=Neighbours.REPLACE_ONE, unit=True, rows_per_unit=20)
    >>> RankedLists(measure="ndcg", k=10).sensitivity(replaced) / STEPS
    2.0
    """

    measure: str
    k: int
    claim: ClassVar[str] = "ranked-lists"
    shown_by: ClassVar[str] = (
        "tests/conformance/test_ranked_lists.py"
        "::test_no_unit_moves_the_sums_further_than_claimed_and_some_do_as_far"
    )

    def __post_init__(self) -> None:
        if self.measure not in MEASURES or self.k < 1:
            raise ArgumentError(f"measure must be one of {', '.join(MEASURES)}, and k positive.")

    def body(self) -> str:
        return "SELECT list, label, score\nFROM evaluated"

    def read(self, columns: Columns) -> Any:
        positive = np.asarray(np.ma.filled(columns["label"], 0)) == 1
        _, member = np.unique(np.asarray(columns["list"]), return_inverse=True)
        order = np.lexsort((positive, -as_scores(columns["score"]), member))
        member, positive = member[order], positive[order]
        lists = int(member[-1]) + 1 if member.size else 0
        place = np.arange(member.size) - np.searchsorted(member, member)
        # Of places, not of rows: a row's gain does not depend on where in the table it stands.
        gains = np.full(self.k, 1 / self.k)
        if self.measure == "ndcg":
            gains = 1 / np.log2(np.arange(self.k) + 2.0)
        own = np.where(positive & (place < self.k), gains[np.minimum(place, self.k - 1)], 0.0)
        values = np.bincount(member, weights=own, minlength=lists)
        if self.measure == "ndcg":
            held = np.minimum(np.bincount(member, weights=positive, minlength=lists), self.k)
            values = values / np.cumsum(gains)[np.maximum(held.astype(np.int64) - 1, 0)]
        steps = np.clip(np.floor(values * STEPS + 0.5), 0, STEPS).astype(np.int64)
        squares = np.clip(np.floor(values * values * STEPS + 0.5), 0, steps).astype(np.int64)
        parts = (squares, steps - squares, STEPS - steps)
        return np.array([int(each.sum()) for each in parts], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        if not protection.unit:
            raise ArgumentError("A ranked list is that of a unit. Make the Dataset with unit=.")
        return STEPS * (2 if protection.neighbours is Neighbours.REPLACE_ONE else 1)
