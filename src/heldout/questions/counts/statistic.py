"""Counts of rows by label and public score thresholds."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import tallied
from heldout.kernel.weights import STEPS, counted


@dataclass(frozen=True)
class ThresholdCounts(Statistic):
    """Rows by label and by the interval between public thresholds that their score falls in.

    The vector has one entry for each label and interval, negatives first, intervals upwards; a
    score on a threshold belongs to the interval above it. The confusion matrix at any of the
    thresholds is a sum of entries. With more than one group there is such a vector for each, one
    after the other, and a row is in that of its own `member`. Rows that are `weighted` count for
    their weights, in whole steps of the largest one; then come as many entries with the sums of
    w (1 - w), w a share of the largest, which tell the sums of w^2.

    Claim:       L1 sensitivity 1 a row that leaves or arrives, or the steps of the largest weight.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: groups and intervals are disjoint, so a row is counted in one cell, however many
                 of them there are, whomever it belongs to: k rows under add-remove, 2k under
                 replace-one. A weight adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers; scores and thresholds compare as doubles.
    Refuses:     thresholds that are not finite, increasing numbers.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 4, without its halving.
    Cost:        one scan, O(thresholds) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> ThresholdCounts(thresholds=(0.5,)).sensitivity(
    ...     Protection(neighbours=Neighbours.REPLACE_ONE))
    2
    """

    thresholds: tuple[float, ...]
    groups: int = 1
    weighted: bool = False
    claim: ClassVar[str] = "disjoint-counts"

    def __post_init__(self) -> None:
        finite = all(math.isfinite(each) for each in self.thresholds)
        rising = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if not (finite and rising):
            raise ArgumentError(
                f"thresholds must be finite and increasing, got {self.thresholds}. Sort them."
            )

    @property
    def intervals(self) -> int:
        return len(self.thresholds) + 1

    @property
    def size(self) -> int:
        """How many entries the vector has."""
        return 2 * self.intervals * self.groups * (1 + self.weighted)

    def body(self) -> str:
        above = [f"CAST(score >= {double(each)} AS INTEGER)" for each in self.thresholds]
        interval = " + ".join(above) or "CAST(0 AS INTEGER)"
        chosen = f"label, {interval} AS interval_number"
        rows = f"{counted(self.weighted)}\nFROM evaluated"
        if self.groups > 1:
            return f"SELECT member, {chosen}, {rows}\nGROUP BY 1, 2, 3"
        return f"SELECT {chosen}, {rows}\nGROUP BY 1, 2"

    def read(self, columns: Columns) -> Any:
        places = [(columns["label"], 2), (columns["interval_number"], self.intervals)]
        return tallied(columns, places, groups=self.groups, weighted=self.weighted)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved * (STEPS if self.weighted else 1)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        return [cls(thresholds=(0.5,)), cls(thresholds=(0.25, 0.5, 0.75))]
