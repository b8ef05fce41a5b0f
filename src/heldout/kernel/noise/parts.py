"""Sample and aggregate: a bounded score of each of many random parts of the rows, summed."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.source import random_bytes
from heldout.kernel.statistic import Sealed

_BYTES: Final = 4


class Parted(Protocol):
    """Rows of so many units, which can be scored part by part."""

    @property
    def units(self) -> int: ...

    def scores(self, parts: Ints, count: int) -> Ints:
        """Return whole numbers for each part (a row) and entry (a column).

        `parts` has the part of each unit. A part's numbers are a function of its own units' rows
        alone, whatever their order is.
        """


@dataclass(frozen=True)
class SummedParts:
    """Puts every unit into a random part, sums the parts' bounded scores and adds noise.

    Claim:       pure DP, epsilon.                                       [claim: summed-parts]
    Neighbours:  replace-one and add-remove, by row or by unit: one unit arrives, leaves or becomes
                 another.
    Sensitivity: a unit's part does not depend on its rows, so one unit moves the scores of one
                 part: each of `entries` scores by 2 `most` at most.
    Numerics:    exact integers; scores are held to `most` here, whatever the rows give.
    Refuses:     numbers that are not positive.
    Reference:   proofs/summed-parts.md; Nissim, Raskhodnikova and Smith 2007, section 4.
    Cost:        that of the scores.

    >>> from heldout.kernel import price
    >>> parts = SummedParts(epsilon=Fraction(1, 2), parts=20, most=100, entries=2)
    >>> parts.noise.scale, str(price(parts.event()))
    (Fraction(800, 1), 'epsilon 0.5')
    """

    epsilon: Fraction
    parts: int
    most: int
    entries: int = 1

    def __post_init__(self) -> None:
        if min(self.parts, self.most, self.entries) < 1:
            raise ArgumentError("parts, most and entries must be positive.")
        _ = self.noise  # a scale that cannot be drawn is refused before anything is paid

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """Return the noise of the sums."""
        return DiscreteLaplace.for_epsilon(
            self.epsilon, l1_sensitivity=2 * self.most * self.entries, dimension=self.entries
        )

    def event(self) -> Event:
        return self.noise.event()

    def sample(self, sealed: Sealed[Parted]) -> Ints:
        rows = unseal(sealed)
        drawn = np.frombuffer(random_bytes(_BYTES * rows.units), dtype="<u4")
        return self.noise.sample(Sealed(self.sums(rows, drawn.astype(np.int64) % self.parts)))

    def sums(self, rows: Parted, parts: Ints) -> Ints:
        """Return the exact sums for units in these parts: not private."""
        scores = np.asarray(rows.scores(parts, self.parts), dtype=np.int64)
        total: Ints = np.clip(scores, -self.most, self.most).sum(axis=0)
        return total

    def describe(self) -> dict[str, object]:
        return {**self.noise.describe(), "name": "sum over random parts", "parts": self.parts}
