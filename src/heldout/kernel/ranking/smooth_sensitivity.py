"""Smooth sensitivity of a ranking statistic, in closed form, as an exact real."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from heldout.kernel.ranking.sensitivity import RungSensitivity

if TYPE_CHECKING:
    from flint import arb

__all__ = ["SmoothSensitivity"]


@dataclass(frozen=True, kw_only=True)
class SmoothSensitivity:
    """max over rungs j of exp(-beta |r - j|) * local(j), for a data set on rung r.

    Claim:       beta-smooth: neighbours' values differ by a factor of at most exp(beta), and it
                 is never below the local sensitivity.                      [claim: smooth-auc]
    Neighbours:  those of the local sensitivity.
    Sensitivity: neighbours' rungs differ by at most one. The local sensitivity is log-convex from
                 `settles` on, so only r itself and the rungs up to `settles` can attain the
                 maximum. proofs/smooth-auc.md.
    Numerics:    exact: a ball at any precision that is asked for.
    Refuses:     nothing.
    Reference:   Nissim, Raskhodnikova and Smith 2007; Boyd, Lantz and Page 2015, theorem 4.
    Cost:        O(1), no loop over the rows.

    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.ranking.sensitivity import AreaSensitivity
    >>> local = AreaSensitivity(protection=Protection(neighbours="replace-one"))
    >>> SmoothSensitivity(local=local, beta=Fraction(1, 10), rung=100).approximate()
    0.01
    """

    local: RungSensitivity
    beta: Fraction
    rung: int

    def candidates(self) -> list[int]:
        """The rungs that can attain the maximum."""
        return sorted({*range(1, self.local.settles + 2), max(self.rung, 0)})

    def ball(self) -> "arb":
        """The value at flint's working precision."""
        from flint import arb, fmpq

        beta = arb(fmpq(self.beta.numerator, self.beta.denominator))
        best = arb(0)
        for rung in self.candidates():
            # Above the data set's rung the local sensitivity is lower, but for the papers' own.
            reach = (-beta * abs(self.rung - rung)).exp() * self.local.ball(rung)
            best = arb.max(best, reach)
        return best

    def approximate(self) -> float:
        """A double near the value, for plans and intervals."""
        beta = float(self.beta)
        return max(
            math.exp(-beta * abs(self.rung - rung)) * self.local.upper(rung)
            for rung in self.candidates()
        )
