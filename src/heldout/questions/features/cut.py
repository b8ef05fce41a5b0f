"""Where a released score calls a row positive: the cut that is right most often."""

from dataclasses import dataclass
from fractions import Fraction

from heldout.kernel.door import Step
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.top_k import PermuteAndFlip
from heldout.questions.features.right_calls import RightCalls, RowScores

__all__ = ["STEP", "Cuts", "RowScores"]

STEP = 2**16  # steps of the lattice to one unit of log-odds
FARTHEST = 1e3


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
        """One unit moves each count of `RightCalls` by its rows, all one way under add-remove."""
        one_way = protection.neighbours is Neighbours.ADD_REMOVE
        return PermuteAndFlip(epsilon, protection.rows_per_unit, monotone=one_way)
