"""How the bounds of a number are found: public choices, steps, and what the answers mean."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from heldout.mechanisms.bounds import BoundSearch, IntervalChoice
from heldout.privacy.neighbours import Protection
from heldout.release import Step
from heldout.statistics import Axis, GridCounts

__all__ = ["DOUBLINGS", "Interval", "Search"]

Interval = tuple[float, float]
Rows = Callable[[tuple[Any, ...]], int]

DOUBLINGS: Final = (-10, 30)  # bounds from scale / 1024 to 2^30 scale
CELLS: Final = 32
PRICE: Final = Fraction(1, 50)  # of the rows, for a 32nd of the width
SIZE_SHARE: Final = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Search:
    """Bounds of one column within `epsilon`: by its size alone, or also by where it lies.

    A symmetric search gives (-b, b), b a power of two times `scale`: the first that holds about
    `coverage` of the rows. Otherwise half of epsilon finds b, and the other half the few cells of
    (-b, b) that hold most rows. `slack` tells how many rows less than the coverage will do, in
    units of 1/epsilon: without it noise on the threshold sends the search past the last row.
    """

    column: str
    epsilon: Fraction
    protection: Protection
    scale: float
    symmetric: bool
    coverage: Fraction
    slack: int

    @property
    def bounds(self) -> tuple[float, ...]:
        low, high = DOUBLINGS
        return tuple(self.scale * 2.0**power for power in range(low, high + 1))

    @property
    def size_epsilon(self) -> Fraction:
        return self.epsilon if self.symmetric else SIZE_SHARE * self.epsilon

    def size_step(self, rows: int) -> Step:
        statistic = GridCounts(axes=(Axis(self.column, (0.0, *self.bounds), absolute=True),))
        return Step(statistic, self.size_mechanism(rows))

    def size_mechanism(self, rows: int) -> BoundSearch:
        allowed = self.slack * self.protection.rows_per_unit / self.size_epsilon
        # Half of the rows are wanted at least, however small epsilon is.
        threshold = max(self.coverage * rows - allowed, Fraction(rows, 2))
        return BoundSearch(
            epsilon=self.size_epsilon, protection=self.protection, threshold=int(threshold)
        )

    def place_step(self, size: int, rows: int) -> Step:
        statistic = GridCounts(axes=(Axis(self.column, self.cells(size)),))
        return Step(statistic, self.place_mechanism(rows))

    def place_mechanism(self, rows: int) -> IntervalChoice:
        return IntervalChoice(
            epsilon=self.epsilon - self.size_epsilon,
            protection=self.protection,
            cells=CELLS,
            price=int(PRICE * rows),
        )

    def cells(self, size: int) -> tuple[float, ...]:
        """Edges of the cells within (-b, b); doubles that are exact but for the scale."""
        bound = self.bounds[size]
        return tuple(bound * (2 * edge / CELLS - 1) for edge in range(CELLS + 1))

    def interval(self, answers: tuple[Any, ...]) -> Interval:
        """What the search's own answers, one or two, mean."""
        if self.symmetric:
            return (-self.bounds[answers[0]], self.bounds[answers[0]])
        edges = self.cells(answers[0])
        first, end = answers[1]
        return (edges[first], edges[end])

    @property
    def steps(self) -> int:
        return 1 if self.symmetric else 2
