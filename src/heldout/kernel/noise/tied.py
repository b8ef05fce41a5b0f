"""Noise for counts whose totals over the classes are public: only outcomes are secret."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace, laplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.statistic import BoundedSum, Sealed


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
            raise ArgumentError("Counts can be tied only where nothing but the outcome is secret.")
        if epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        moved = l1_sensitivity // 2
        return cls(
            scale=moved / epsilon, l1_sensitivity=moved, dimension=dimension // 2, cells=cells
        )

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (2 * self.dimension,):
            raise ArgumentError("dimension must match the statistic.")
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


@dataclass(frozen=True)
class OutcomeLaplace(Primitive):
    """Discrete Laplace on sums, each as wide as another outcome of one of these rows can move them.

    The sealed vector holds `dimension` sums and after them as many reaches: whole numbers,
    functions of public columns. What is drawn has the same form, the reaches as they are.

    Claim:       pure DP, epsilon.                                     [claim: outcome-sums]
    Neighbours:  label, by row or by unit of at most k rows.
    Sensitivity: the statistic's promise: another outcome of one row moves the sums by parts of
                 their reaches that add up to 1 or less. Sum j has the scale k reach j / epsilon.
    Numerics:    exact, as `DiscreteLaplace`. A sum without a reach is public, and drawn as it is.
    Refuses:     other neighbours; a vector of another form; a `most` that makes too large a scale.
    Reference:   proofs/outcome-sums.md.
    Cost:        that of `DiscreteLaplace`.

    >>> from heldout.kernel import price
    >>> labels = Protection(neighbours="label")
    >>> sums = OutcomeLaplace(epsilon=Fraction(1, 2), dimension=2, most=100, protection=labels)
    >>> str(price(sums.event())), sums.noise(10).scale
    ('epsilon 0.5', Fraction(20, 1))
    """

    rule = ("weighted-laplace", "epsilon")
    epsilon: Fraction
    dimension: int
    most: int
    """No reach is larger, whatever the rows are."""
    protection: Protection

    def __post_init__(self) -> None:
        if not self.protection.only_labels:
            raise ArgumentError("neighbours must be 'label' for a reach that is public.")
        if self.epsilon <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        self.noise(self.most)  # refused before anything is booked

    def noise(self, reach: int) -> DiscreteLaplace:
        """Return the noise of a sum with this reach."""
        moved = self.protection.rows_per_unit * max(reach, 1)
        return DiscreteLaplace(scale=moved / self.epsilon, l1_sensitivity=moved, dimension=1)

    def sample(self, sealed: Sealed[Any]) -> Ints:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        if exact.shape != (2 * self.dimension,):
            raise ArgumentError("dimension must match the statistic.")
        sums, reaches = exact.reshape(2, -1)
        noisy = [
            int(self.noise(reach).sample(Sealed([total]))[0]) if reach else total
            for total, reach in zip(sums.tolist(), reaches.tolist(), strict=True)
        ]
        return np.array([*noisy, *reaches.tolist()], dtype=np.int64)

    def parts(self, drawn: Any) -> tuple[Ints, Ints]:
        """Return what was drawn as the noisy sums and their reaches."""
        sums, reaches = np.asarray(drawn, dtype=np.int64).reshape(2, -1)
        return sums, reaches

    def describe(self) -> dict[str, object]:
        of_unit = {"rows_per_unit": self.protection.rows_per_unit}
        name = "discrete Laplace by public reach"
        return {"name": name, "epsilon": str(self.epsilon), "entries": self.dimension, **of_unit}


def sum_noise(
    epsilon: Fraction, statistic: BoundedSum, protection: Protection
) -> DiscreteLaplace | OutcomeLaplace:
    """Return the noise of bounded sums: by their reaches, where they have them."""
    if statistic.by_outcome:
        return OutcomeLaplace(epsilon, statistic.size, statistic.resolution, protection)
    return laplace(statistic, epsilon, protection)


def drawn_sums(
    mechanism: DiscreteLaplace | OutcomeLaplace, drawn: Any
) -> tuple[Any, DiscreteLaplace]:
    """Return noisy sums as they were drawn, and the noise that each of them has."""
    if isinstance(mechanism, DiscreteLaplace):
        return drawn, mechanism
    sums, reaches = mechanism.parts(drawn)
    return sums, mechanism.noise(int(reaches[0]))
