"""Two noisy vectors of disjoint rows, the second asked after the first was answered."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.errors import ArgumentError
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.sealed import Sealed


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
        """What the slack leaves of epsilon, if every row that moves is in the second part."""
        left = self.epsilon - self.first_slack / self.first.scale
        return DiscreteLaplace.for_epsilon(
            left, l1_sensitivity=self.moved, dimension=self.dimensions[1]
        )

    def sample(self, sealed: Sealed[Any]) -> Any:
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
