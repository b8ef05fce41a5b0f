"""What the plans of a plot and of measures have in common: epsilon, the rows, and their groups."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.door import Answers, Booked, Drawn, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions.regression.grid_counts import RowCount

__all__ = ["COUNT_SHARE", "ResidualsPlan"]

COUNT_SHARE: Final = Fraction(1, 20)
GROUP: Final = "group"
"""Where the answers of all steps say which group's part of them is read; no step has this name."""


@dataclass(frozen=True, kw_only=True)
class ResidualsPlan:
    """What is asked of residuals step by step; bounds are found for all rows together.

    With more than one `groups` counts and sums are those of each group, one after the other. How
    many rows a group has is private, also where the number of all rows is not.
    """

    epsilon: Fraction
    protection: Protection
    rows: int | None
    expected_rows: int | None
    scale: float
    groups: int = 1

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")

    @property
    def guess(self) -> int | None:
        return self.rows if self.rows is not None else self.expected_rows

    @property
    def visible(self) -> Fraction | None:
        """Units times epsilon, as far as it is public: how well anything can be seen."""
        if self.guess is None:
            return None
        return max(self.guess, 1) * self.epsilon / self.protection.rows_per_unit

    # --- how many rows there are -----------------------------------------------------------------

    @property
    def counted(self) -> bool:
        """Whether rows are counted with noise; those of a group always are."""
        return self.rows is None or self.groups > 1

    @property
    def count_epsilon(self) -> Fraction:
        return COUNT_SHARE * self.epsilon if self.counted else Fraction(0)

    @property
    def count_mechanism(self) -> DiscreteLaplace:
        moved = self.protection.rows_moved if self.groups > 1 else self.protection.rows_per_unit
        return DiscreteLaplace.for_epsilon(
            self.count_epsilon, l1_sensitivity=moved, dimension=self.groups
        )

    @property
    def count_step(self) -> Booked:
        return Booked.of(Step(RowCount(self.groups), self.count_mechanism))

    def row_count(self, answers: Answers) -> int:
        """The public number of all rows, or the noisy one, at least 1."""
        return self.rows if self.rows is not None else max(int(answers["count"].sum()), 1)

    def size(self, answers: Answers) -> int:
        """The number of rows that are read: those of the group that the answers name, or all."""
        if GROUP not in answers:
            return self.row_count(answers)
        return max(int(self.own(answers, "count")[0]), 1)

    def typical_size(self, answers: Answers) -> int:
        """How many rows are read together, in the mean over all rows."""
        if self.groups == 1:
            return self.row_count(answers)
        sizes = np.maximum(answers["count"].astype(np.float64), 0.0)
        return max(int((sizes**2).sum() / max(sizes.sum(), 1.0)), 1)

    # --- groups ----------------------------------------------------------------------------------

    def own(self, answers: Answers, step: str) -> Any:
        """A step's answer, or the part of the group that the answers name."""
        found = answers[step]
        if GROUP not in answers:
            return found
        parts = found if isinstance(found, list) else np.reshape(found, (self.groups, -1))
        return parts[answers[GROUP]]

    def each(self, answers: Answers) -> list[Answers]:
        """The answers once for each group, which they name."""
        return [{**answers, GROUP: group} for group in range(self.groups)]

    def parts(self, drawn: Drawn) -> Iterator[Drawn]:
        """Each group's answers, as if its rows had been asked alone, at the price of all."""
        about = replace(drawn.about, rows=None)
        return (replace(drawn, values=each, about=about) for each in self.each(drawn.values))
