"""Code from outside that learns from private rows, at the epsilon that it declares."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.statistic import Sealed


@dataclass(frozen=True, eq=False)
class DeclaredFit(Primitive):
    """Hands rows to code that somebody else answers for; what it learns is the answer.

    Claim:       pure DP, epsilon, if what `learn` keeps of the rows is.   [claim: declared-fit]
    Neighbours:  those that the estimator declared its price for.
    Sensitivity: not known here.
    Numerics:    not known here: the estimator's.
    Refuses:     an epsilon that is not positive.
    Reference:   proofs/declared-fit.md.
    Cost:        that of the estimator.

    >>> from heldout.kernel import price
    >>> str(price(DeclaredFit(Fraction(1, 2), print).event()))
    'epsilon 0.5'
    """

    rule = ("declared", "epsilon")
    epsilon: Fraction
    learn: Callable[[Any], object]

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ArgumentError("The price of a fit must be more than 0.")

    def sample(self, sealed: Sealed[Any]) -> Ints:
        """Let it learn; there are no numbers of our own."""
        self.learn(unseal(sealed))
        return np.zeros(0, dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"name": "declared by the estimator", "epsilon": str(self.epsilon)}
