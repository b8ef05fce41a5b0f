"""Noise for counts whose totals over the classes are public: only outcomes are secret."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import Sealed


@dataclass(frozen=True)
class TiedLaplace(DiscreteLaplace):
    """Discrete Laplace on the positives of each cell; the negatives are what its total leaves.

    The sealed vector has a block or more of `cells` negatives and as many positives. `dimension`
    counts the positives. What is drawn has the form of the vector; the two noises of a cell are
    each other's opposites.

    Claim:       pure DP, epsilon = l1_sensitivity / scale.            [claim: tied-counts]
    Neighbours:  label, by row or by unit of at most k rows.
    Sensitivity: of the positives alone, k a count: another outcome takes a row out of the
                 positives of its own cell, or puts it there. Totals are the same for neighbours.
    Numerics:    exact, as `DiscreteLaplace`.
    Refuses:     neighbours under which totals are private; a vector of another form.
    Reference:   proofs/tied-counts.md.
    Cost:        half of that of `DiscreteLaplace`.

    >>> from heldout.kernel import price
    >>> labels = Protection(neighbours="label")
    >>> tied = TiedLaplace.of_labels(
    ...     Fraction(1), l1_sensitivity=2, dimension=4, cells=2, protection=labels)
    >>> tied.scale, tied.dimension, str(price(tied.event()))
    (Fraction(1, 1), 2, 'epsilon 1')
    """

    cells: int = 1

    @classmethod
    def of_labels(
        cls,
        epsilon: Fraction,
        *,
        l1_sensitivity: int,
        dimension: int,
        cells: int,
        protection: Protection,
    ) -> "TiedLaplace":
        """Return the noise of a vector with this sensitivity and size, both classes counted.

        The positives move by half of what both classes move by.
        """
        if not protection.only_labels or l1_sensitivity % 2 or dimension % (2 * cells):
            raise ArgumentError("Counts can be tied where only outcomes are secret.")
        if epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        moved = l1_sensitivity // 2
        return cls(
            scale=moved / epsilon, l1_sensitivity=moved, dimension=dimension // 2, cells=cells
        )

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (2 * self.dimension,):
            raise ArgumentError("dimension must be that of the statistic.")
        blocks = exact.reshape(-1, 2, self.cells)
        positives = super().sample(Sealed(blocks[:, 1].ravel())).reshape(-1, self.cells)
        return np.stack([blocks.sum(axis=1) - positives, positives], axis=1).ravel()

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "name": "discrete Laplace on positives", "tied": True}


def count_noise(
    epsilon: Fraction, *, l1_sensitivity: int, dimension: int, cells: int, protection: Protection
) -> DiscreteLaplace:
    """Return the noise of counts by class and cell: tied where only outcomes are secret."""
    if protection.only_labels:
        return TiedLaplace.of_labels(
            epsilon,
            l1_sensitivity=l1_sensitivity,
            dimension=dimension,
            cells=cells,
            protection=protection,
        )
    return DiscreteLaplace.for_epsilon(epsilon, l1_sensitivity=l1_sensitivity, dimension=dimension)
