"""How good a model is on the rows as one whole number: the higher, the better."""

from dataclasses import dataclass
from typing import Any, ClassVar

from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Protection
from heldout.statistics.base import Statistic
from heldout.statistics.bounded_sum import ERRORS, check_resolution

__all__ = ["MERITS", "Merit"]

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

    >>> from heldout.privacy.neighbours import Neighbours, Protection
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
            earned = f"CAST((score >= {double(self.threshold)}) = (label = 1) AS BIGINT)"
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
