"""One private mechanism on each of several groups of rows, at one price for all of them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.errors import ArgumentError
from heldout.kernel.events import price
from heldout.kernel.loss import Loss
from heldout.kernel.noise.mechanism import Mechanism, Primitive, unseal
from heldout.kernel.sealed import Sealed


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
    one: Mechanism

    def __post_init__(self) -> None:
        if price(self.one.event()) != Loss.pure(self.epsilon / self.moved):
            raise ArgumentError(
                "A question by group must have a pure price. Leave method and delta out."
            )

    def sample(self, sealed: Sealed[Any]) -> Any:
        parts = unseal(sealed)
        if len(parts) != self.groups:
            raise ArgumentError("groups must be those of the statistic.")
        return [self.one.sample(Sealed(part)) for part in parts]

    def describe(self) -> dict[str, object]:
        shared = {"groups": self.groups, "epsilon_of_a_row": str(self.epsilon / self.moved)}
        return {**self.one.describe(), **shared}
