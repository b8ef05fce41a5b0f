"""How good a model is on the rows as one whole number: the higher, the better."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.bounded_sum import ERRORS, check_resolution
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic

__all__ = ["MERITS", "AreaMerit", "Merit"]

STEPS = 2**20
MERITS = {"accuracy": 1, "brier": STEPS, "mean-absolute-error": STEPS}
"""What a row may earn, in whole steps, by each metric."""
_ERROR = {"brier": "squared", "mean-absolute-error": "absolute"}


@dataclass(frozen=True)
class Merit(Statistic):
    """The sum over the rows of what each earns: a right call 1, a small error nearly `STEPS`.

    Divided by the number of rows and the most that one can earn, it is the accuracy, or 1 less the
    mean error.

    Claim:       one row earns from 0 to `most` steps.                     [claim: board]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: `most` times the rows of a unit: of the rows that leave and those that arrive, the
                 ones lower the sum and the others raise it.
    Numerics:    exact integers; a row's error is one rounded double operation, held to its range.
    Refuses:     a metric that is not known; scores of no range.
    Reference:   proofs/board.md.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> Merit(metric="accuracy").sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    1
    """

    metric: str
    threshold: float = 0.5
    score_range: tuple[float, float] = (0.0, 1.0)
    claim: ClassVar[str] = "board"

    def __post_init__(self) -> None:
        if self.metric not in MERITS:
            raise ArgumentError(f"metric must be one of {', '.join(MERITS)}, got {self.metric!r}.")
        check_resolution(self.most)

    @property
    def most(self) -> int:
        """What one row can earn at most."""
        return MERITS[self.metric]

    def body(self) -> str:
        if self.metric == "accuracy":
            earned = f"CAST((score >= {double(self.threshold)}) = (label = 1) AS INTEGER)"
        else:
            low, high = self.score_range
            position = f"(score - {double(low)}) / {double(high - low)}"
            error = ERRORS[_ERROR[self.metric]].format(distance=f"{position} - label")
            lost = f"CAST(floor(({error}) * {double(self.most)} + 0.5) AS BIGINT)"
            earned = f"{self.most} - greatest(0, least({self.most}, {lost}))"
        return f"SELECT CAST(sum({earned}) AS BIGINT) AS total\nFROM evaluated"

    def read(self, columns: Columns) -> Any:
        import numpy as np

        return np.array([int(columns["total"][0] or 0)], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return self.most * protection.rows_per_unit

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        return [cls(metric=each) for each in MERITS]


@dataclass(frozen=True)
class AreaMerit(Statistic):
    """How far the pairs of a positive and a negative row that a model ranks rightly exceed a bar.

    Twice the pairs that are ranked rightly and the tied ones once, less twice the bar's share of
    all pairs, in steps of `1/STEPS_OF_A_BAR`; and the number of positive rows, `weight` for each.
    The AUC is above the bar where the first number is above 0, whatever the classes' sizes are.

    Claim:       the first number moves by at most `most`, the second by `weight`. [claim: board]
    Neighbours:  replace-one, the number of rows public.
    Sensitivity: every pair counts -2b to 2 - 2b steps for a bar b. A replaced row of the same
                 class changes its pairs by 2 each, of which there are at most n - 1; one that
                 changes its class leaves n0 pairs and enters n1 - 1 others, n - 1 in all.
    Numerics:    exact integers.
    Refuses:     more rows than 64 bits have room for; a bar that is no whole number of steps.
    Reference:   proofs/board.md.
    Cost:        one scan and a sort.
    """

    bar: Fraction
    rows: int
    claim: ClassVar[str] = "board"
    shown_by: ClassVar[str] = (
        "tests/questions/boards/test_area.py::test_no_small_neighbours_move_it_further_than_claimed"
    )
    STEPS_OF_A_BAR: ClassVar[int] = 10_000
    MOST_ROWS: ClassVar[int] = 10_000_000

    def __post_init__(self) -> None:
        if self.rows > self.MOST_ROWS:
            raise ArgumentError(f"A board by AUC takes at most {self.MOST_ROWS:,} rows.")
        if (self.bar * self.STEPS_OF_A_BAR).denominator != 1:
            raise ArgumentError("bar must be a whole number of steps.")

    @property
    def most(self) -> int:
        return 2 * (self.rows - 1) * self.STEPS_OF_A_BAR

    @property
    def weight(self) -> int:
        return (self.rows - 1) * self.STEPS_OF_A_BAR

    def body(self) -> str:
        return "SELECT label, score\nFROM evaluated"

    def read(self, columns: Columns) -> Any:
        import numpy as np

        label, score = np.asarray(columns["label"]), np.asarray(columns["score"])
        positives, negatives = score[label == 1], np.sort(score[label == 0])
        right = int(np.searchsorted(negatives, positives, side="left").sum())
        tied = int(np.searchsorted(negatives, positives, side="right").sum()) - right
        pairs = len(positives) * len(negatives)
        steps = int(self.bar * self.STEPS_OF_A_BAR)
        above = (2 * right + tied) * self.STEPS_OF_A_BAR - 2 * steps * pairs
        return np.array([above, len(positives) * self.weight], dtype=np.int64)
