"""Two noisy vectors of disjoint rows, the second asked after the first was answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.events import Event, price
from heldout.kernel.loss import Loss
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import Mechanism, Primitive, unseal
from heldout.kernel.noise.source import random_bytes
from heldout.kernel.statistic import Sealed


@dataclass(frozen=True)
class Disjoint(Primitive):
    """Discrete Laplace on a vector of some rows, then on a vector of the other rows.

    The sealed content is a pair: the first vector, and what `then(answer, rest)` makes the second
    vector of, once the first noisy answer is public. `moved` is how many rows leave and arrive
    between neighbours at most; each row lies in the first part or in the second, never in both.

    Claim:       pure DP, epsilon, for both answers together.          [claim: separability]
    Neighbours:  those for which `moved` was derived.
    Sensitivity: with a rows of the first part and b of the second that leave or arrive,
                 a + b <= moved, the first vector moves by at most a * first_row + first_slack
                 (L1) and the second by at most b.
    Numerics:    exact, as DiscreteLaplace. The slack is for what is not exact in the first vector
                 (a solver, doubles): it may differ even where no row of its part does.
    Refuses:     what DiscreteLaplace refuses.
    Reference:   McSherry 2009, theorem 4 (parallel composition), with an adaptive second part.
    Cost:        that of the two draws.

    >>> from heldout.kernel import price
    >>> both = Disjoint(epsilon=Fraction(1), moved=2, first_row=48, first_slack=2,
    ...                 dimensions=(3, 2), then=max)
    >>> both.first.scale, both.second.scale, str(price(both.event()))
    (Fraction(100, 1), Fraction(100, 49), 'epsilon 1')
    """

    rule = ("disjoint-rows", "epsilon")
    """Both answers together; where the rows that move lie does not change the price."""
    epsilon: Fraction
    moved: int
    first_row: int
    first_slack: int
    dimensions: tuple[int, int]
    then: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError(f"epsilon must be more than 0, got {self.epsilon}.")

    @property
    def first(self) -> DiscreteLaplace:
        """All of epsilon, if every row that moves is in the first part."""
        return DiscreteLaplace.for_epsilon(
            self.epsilon,
            l1_sensitivity=self.moved * (self.first_row + self.first_slack),
            dimension=self.dimensions[0],
        )

    @property
    def second(self) -> DiscreteLaplace:
        """Return the epsilon that the slack leaves if all rows that move are in the second part."""
        left = self.epsilon - self.first_slack / self.first.scale
        return DiscreteLaplace.for_epsilon(
            left, l1_sensitivity=self.moved, dimension=self.dimensions[1]
        )

    def sample(self, sealed: Sealed[tuple[Ints, Any]]) -> tuple[Ints, Ints]:
        vector, rest = unseal(sealed)
        answer = self.first.sample(Sealed(vector))
        return answer, self.second.sample(Sealed(self.then(answer, rest)))

    def describe(self) -> dict[str, object]:
        return {
            "name": "discrete Laplace on disjoint rows",
            "scale": str(self.second.scale),
            "first_scale": str(self.first.scale),
            "entries": sum(self.dimensions),
        }


# --- One private mechanism on each of several groups of rows, at one price for all of them -------


@dataclass(frozen=True)
class EachGroup(Primitive):
    """The same mechanism on every group; each row is in one group, whoever it belongs to.

    The sealed content is a list with the statistic of each group. `moved` is how many rows leave
    and arrive between neighbours at most, in all groups together.

    Claim:       pure DP, epsilon, for all groups together, however many.   [claim: each-group]
    Neighbours:  those for which `moved` was derived.
    Sensitivity: a row that leaves or arrives changes the rows of its own group alone, by one. `one`
                 is private for that at epsilon/moved, and at most `moved` rows do so.
    Numerics:    that of `one`.
    Refuses:     a mechanism whose price is not epsilon/moved.
    Reference:   McSherry 2009, theorem 4, with a path of single rows; proofs/each-group.md.
    Cost:        that of `one`, for each group.
    """

    rule = ("disjoint-rows", "epsilon")
    epsilon: Fraction
    moved: int
    groups: int
    one: Mechanism[Any, Any]

    def __post_init__(self) -> None:
        if price(self.one.event()) != Loss.pure(self.epsilon / self.moved):
            raise ArgumentError(
                "A question by group must have a price without delta. Leave method and delta out."
            )

    def sample(self, sealed: Sealed[list[Any]]) -> list[Any]:
        parts = unseal(sealed)
        if len(parts) != self.groups:
            raise ArgumentError("groups must match the statistic.")
        return [self.one.sample(Sealed(part)) for part in parts]

    def describe(self) -> dict[str, object]:
        shared = {"groups": self.groups, "epsilon_of_a_row": str(self.epsilon / self.moved)}
        return {**self.one.describe(), **shared}


def each_group(
    one: Mechanism[Any, Any], *, epsilon: Fraction, moved: int, groups: int
) -> Mechanism[Any, Any]:
    """Return the mechanism that releases what `one` releases of a group, of every group.

    `one` must be private at epsilon/moved for one row more or less. Noise on the entries of a
    vector is the same on the groups' vectors end to end, of which a row moves its own group's part
    alone: that is booked as one discrete Laplace, whose sensitivity is that of `moved` rows.

    >>> row = DiscreteLaplace.for_epsilon(Fraction(1, 2), l1_sensitivity=1, dimension=4)
    >>> both = each_group(row, epsilon=Fraction(1), moved=2, groups=3)
    >>> both == DiscreteLaplace.for_epsilon(Fraction(1), l1_sensitivity=2, dimension=12)
    True
    """
    whole = EachGroup(epsilon, moved, groups, one)  # refuses another price
    if not isinstance(one, DiscreteLaplace):
        return whole
    return replace(one, l1_sensitivity=moved * one.l1_sensitivity, dimension=groups * one.dimension)


def split_groups(
    mechanism: Mechanism[Any, Any], values: Any, groups: int
) -> tuple[Mechanism[Any, Any], Sequence[Any]]:
    """Return the noise of one group, and each group's part of what `each_group` drew."""
    if isinstance(mechanism, EachGroup):
        return mechanism.one, list(values)
    assert isinstance(mechanism, DiscreteLaplace)
    one = replace(mechanism, dimension=mechanism.dimension // groups)
    return one, list(np.asarray(values).reshape(groups, -1))


# --- Sample and aggregate: a bounded score of each of many random parts of the rows, summed -------


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
