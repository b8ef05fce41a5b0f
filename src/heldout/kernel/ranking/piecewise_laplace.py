"""Piecewise Laplace noise at a certified ladder of local sensitivities. The default."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.kernel.noise.exact import LATTICE, Randomness, draw_on_lattice, rational
from heldout.kernel.noise.mechanism import Primitive
from heldout.kernel.ranking.ladder import Ladder, build
from heldout.kernel.ranking.law import symmetric
from heldout.kernel.ranking.sensitivity import RungSensitivity

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PiecewiseLaplace"]


@dataclass(frozen=True, kw_only=True)
class PiecewiseLaplace(Primitive):
    """Laplace noise whose scale is the local sensitivity, and grows outwards by the rungs.

    The score of a distance z on rung r is how many rungs one must climb down to move the value so
    far: it rises by one over the first s(r), by one over the next s(r-1), and so on. The density
    is proportional to exp(-epsilon * score). Neighbours' scores differ by at most one, and the
    ladder s is chosen, and certified in exact arithmetic, so that the normaliser takes no more
    than what the score leaves of epsilon. So there is no second half of epsilon to pay, and no
    parameter to choose.

    Claim:       pure DP, epsilon.                                     [claim: piecewise-laplace]
    Neighbours:  those of the sensitivity bound.
    Sensitivity: by rung; neighbours stand on the same or on adjacent rungs.
    Numerics:    exact, see `draw_on_lattice`; the table's doubles are exact public numbers.
    Refuses:     an epsilon outside [1/10000, 100].
    Reference:   proofs/piecewise-laplace.md; the shape is Durfee 2025 ("Unifying Laplace mechanism
                 with instance optimality"), whose proof leaves half of epsilon unused.
    Cost:        20 to 60 ms once for an epsilon; then about 0.1 ms a draw.

    >>> from heldout.kernel import price
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> noise = PiecewiseLaplace(epsilon=Fraction(1, 2), local=local, top=2**11)
    >>> print(price(noise.event()))
    epsilon 1/2
    """

    rule = ("piecewise-laplace", "epsilon")
    epsilon: Fraction
    local: RungSensitivity
    top: int

    def __post_init__(self) -> None:
        if not Fraction(1, 10_000) <= self.epsilon <= 100:
            raise ArgumentError(
                f"epsilon must lie between 1/10000 and 100, got {self.epsilon}. Pass another one."
            )

    @cached_property
    def ladder(self) -> Ladder:
        return build(self.epsilon, self.local, self.top)

    def describe(self) -> dict[str, object]:
        return {"name": "piecewise Laplace", "epsilon": str(self.epsilon), "top": self.top}

    def sample(
        self,
        value: Fraction,
        *,
        rung: int,
        lattice: Fraction = LATTICE,
        randomness: Randomness | None = None,
    ) -> int:
        def real(uniform: "arb") -> "arb":
            return rational(value) + symmetric(uniform, lambda tail: self._magnitude(tail, rung))

        return draw_on_lattice(real, lattice=lattice, randomness=randomness)

    def survival(self, rungs: Any, distance: Any) -> Any:
        return self.ladder.survival(rungs, distance)

    def _magnitude(self, tail: "arb", rung: int) -> "arb":
        """The z with P(|noise| > z) = tail: find the step, then invert on it."""
        from flint import arb, ctx

        ladder = self.ladder
        below = ladder.normalisers(ctx.prec)
        epsilon = rational(self.epsilon)
        top = ladder.step(rung)
        rest = tail * self._mass(top, rung, below, epsilon)
        step = self._guess(tail, rung, top)
        while step < top and rest > self._left(step + 1, rung, below, epsilon):
            step += 1
        while step > 0 and rest < self._left(step, rung, below, epsilon):
            step -= 1
        if (step < top and not rest < self._left(step + 1, rung, below, epsilon)) or (
            step > 0 and not rest > self._left(step, rung, below, epsilon)
        ):
            return arb.nan()  # astride a border, as far as is known: more bits, please
        scale = rational(Fraction(ladder.scales[step]))
        limit = scale / -(-epsilon).expm1()
        place = max(ladder.starts[step], 1) - 1
        grown = (rest * (epsilon * (rung - place)).exp() - (below[step] - limit)) / limit
        climbed = scale * (grown.log() / epsilon)
        height = self._height(top, rung) - ladder.exact_height[step]
        return rational(height) - climbed

    def _mass(self, step: int, rung: int, below: list["arb"], epsilon: "arb") -> "arb":
        """N at the data set's own rung."""
        if step == 0:
            return below[0]
        limit = rational(Fraction(self.ladder.scales[step])) / -(-epsilon).expm1()
        walked = rung - self.ladder.starts[step] + 1
        return limit + (-epsilon * walked).exp() * (below[step] - limit)

    def _left(self, step: int, rung: int, below: list["arb"], epsilon: "arb") -> "arb":
        """The mass that lies beyond the lower end of a step."""
        return (-epsilon * (rung - max(self.ladder.starts[step], 1) + 1)).exp() * below[step]

    def _height(self, step: int, rung: int) -> Fraction:
        if step == 0:
            return Fraction(0)
        walked = rung - self.ladder.starts[step] + 1
        return self.ladder.exact_height[step] + walked * Fraction(self.ladder.scales[step])

    def _guess(self, tail: "arb", rung: int, top: int) -> int:
        """Where to begin the search; a wrong guess costs time and nothing else."""
        size = float(tail.mid())
        if size <= 0:
            return 0
        logs = self.ladder.log_normalisers[: top + 1]
        places = np.maximum(np.array(self.ladder.starts[: top + 1]), 1) - 1
        left = -float(self.epsilon) * (rung - places) + logs
        wanted = np.log(size) + logs[top]
        return int(np.clip(np.searchsorted(left, wanted, side="right") - 1, 0, top))
