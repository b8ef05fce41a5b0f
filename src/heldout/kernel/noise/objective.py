"""The minimum of a convex loss over private rows, with noise inside the loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import Primitive, unseal
from heldout.kernel.noise.selection import folded, unbounded_noise
from heldout.kernel.noise.source import below
from heldout.kernel.statistic import Sealed

Minimiser = Callable[[Any], Any]
"""Noise in lattice steps -> the minimum without its linear part, in lattice steps."""

_MOST = 2**62
CURVED, SLACK = Fraction(1, 8), Fraction(1, 64)
"""The parts of epsilon for the change of curvature and for what the solver gets wrong."""


@dataclass(frozen=True)
class ObjectivePerturbation(Primitive):
    """Minimises loss(t) + ridge/2 |t|^2 + b.t with noise b, and lets the minimum out.

    The sealed content is a function of the noise `Z` (whole numbers, b = step * Z) that returns
    the minimum plus b/ridge, rounded to the lattice of `step/ridge`. The sum with -b/ridge is then
    exact. A little discrete Laplace noise at the end covers what the solver may get wrong.
    `b` is Laplace noise for rows that pull few coefficients, or with `even` noise of the law
    exp(-max|b|) for rows that pull all of them about as hard. With `groups`, the sizes of groups of
    consecutive coefficients, it is exp(-the largest sum of |b| over a group).

    Claim:       pure DP, epsilon.                              [claim: objective-perturbation]
    Neighbours:  at most k rows leave and at most k arrive, `moved` of them in all.
    Sensitivity: a row's gradient has L1 length (with `even`: a largest entry; with `groups`: a
                 largest L1 length within a group) of at most `row`, everywhere, and its curvature
                 is at most 1/4 times `square`. Two minima of the same loss and noise differ by at
                 most `slack` lattice steps (L1) after rounding.
    Numerics:    exact noise; the solver's error is inside `slack`.
    Refuses:     numbers that are not positive; a ridge too small for epsilon.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011, theorem 9; Awan and Slavkovic 2021,
                 section 4.1 (noise for the largest entry); proofs.
    Cost:        one minimisation, and 16 microseconds a coefficient.

    >>> from heldout.kernel import price
    >>> noise = ObjectivePerturbation(Fraction(1), moved=1, rows_per_unit=1, row=6, square=6,
    ...                               dimension=10, ridge=Fraction(16), step=Fraction(1, 2**20),
    ...                               slack=11)
    >>> round(float(noise.inner.scale * noise.step), 2), str(price(noise.event()))
    (6.74, 'epsilon 1')
    """

    rule = ("objective-perturbation", "epsilon")
    epsilon: Fraction
    moved: int
    rows_per_unit: int
    row: Fraction | int
    square: Fraction | int
    dimension: int
    ridge: Fraction
    step: Fraction
    slack: int
    even: bool = False
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        sizes = (self.moved, self.rows_per_unit, self.row, self.square, self.dimension, self.slack)
        if self.epsilon <= 0 or self.step <= 0 or min(sizes) <= 0:
            raise ArgumentError("epsilon, rows, dimension, step and slack must be positive.")
        if self.groups is not None and (self.even or sum(self.groups) != self.dimension):
            raise ArgumentError("groups must have every coefficient once, and not be even.")
        if self.ridge < self.least_ridge(
            self.epsilon, square=self.square, rows_per_unit=self.rows_per_unit
        ):
            raise ArgumentError(f"ridge must be larger for this epsilon, got {self.ridge}.")
        # Refuses scales that cannot be drawn before anything is paid.
        _ = self.inner, self.outer

    @staticmethod
    def least_ridge(epsilon: Fraction, *, square: Fraction | int, rows_per_unit: int) -> Fraction:
        """The ridge at which curvature, k ln(1 + square/(4 ridge)) at most, costs its part."""
        return rows_per_unit * square / (4 * CURVED * epsilon)

    @cached_property
    def inner(self) -> DiscreteLaplace:
        """Of b, in steps: rows move it by moved * row, and each entry by one step of rounding."""
        curved = Fraction(self.rows_per_unit * self.square) / (4 * self.ridge)
        left = self.epsilon - curved - SLACK * self.epsilon
        largest = 1 if self.even else self.dimension if self.groups is None else max(self.groups)
        rounded = self.step * largest
        reach = (self.moved * self.row + rounded) / self.step
        return DiscreteLaplace(scale=reach / left, l1_sensitivity=1, dimension=self.dimension)

    @cached_property
    def outer(self) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            SLACK * self.epsilon, l1_sensitivity=self.slack, dimension=self.dimension
        )

    def sample(self, sealed: Sealed[Minimiser]) -> Ints:
        """Coefficients in lattice steps of step/ridge."""
        minimum = unseal(sealed)
        # Integers without an end: the minimum depends on each of them, wherever they stop.
        if self.groups is not None:
            noise = grouped_noise(self.inner.scale, self.groups)
        else:
            drawn = even_noise if self.even else unbounded_noise
            noise = drawn(self.inner.scale, self.dimension)
        minima = [int(a) - b for a, b in zip(minimum(noise), noise, strict=True)]
        clipped = [min(max(step, -_MOST), _MOST) for step in minima]
        return self.outer.sample(Sealed(np.array(clipped, dtype=np.int64)))

    def describe(self) -> dict[str, object]:
        return {
            "name": "objective perturbation",
            "scale": str(self.inner.scale * self.step),
            "ridge": str(self.ridge),
            "entries": self.dimension,
            "largest_entry": self.even,
            **({} if self.groups is None else {"groups": list(self.groups)}),
        }


def even_noise(scale: Fraction, count: int) -> list[int]:
    """Whole numbers z, drawn together, with probability proportional to exp(-max|z|/scale).

    A sum N of count + 1 geometric numbers is kept with the chance
    prod (2N + 1)/(2N + 2i), i = 1 ... count; then every z is uniform from -N to N.

    >>> len(even_noise(Fraction(100), 3))
    3
    """
    while True:
        far = sum(folded(noise) for noise in unbounded_noise(scale, count + 1))
        if all(below(2 * far + 2 * i) <= 2 * far for i in range(1, count + 1)):
            return [below(2 * far + 1) - far for _ in range(count)]


def grouped_noise(scale: Fraction, groups: Sequence[int]) -> list[int]:
    """Whole numbers z with probability proportional to exp(-the largest sum of |z| over a group
    /scale), the groups being of consecutive numbers.

    A sum N of count + 1 geometric numbers is kept with the chance that `proofs/objective-
    perturbation.md` derives; then each group is uniform over the whole vectors whose sum of |z| is
    at most N. Groups of one make it `even_noise`.

    >>> len(grouped_noise(Fraction(100), (1, 3)))
    4
    """
    count = sum(groups)
    while True:
        far = sum(folded(noise) for noise in unbounded_noise(scale, count + 1))
        place, keep = 0, True
        for size in groups:
            most = 2**size * math.prod(range(far + place + 1, far + place + size + 1))
            keep = keep and below(most) < points_within(far, size) * math.factorial(size)
            place += size
        if keep:
            return [entry for size in groups for entry in point_within(far, size)]


def points_within(far: int, size: int) -> int:
    """Return how many whole vectors of a size have a sum of |z| of at most `far`.

    >>> points_within(1, 3), points_within(5, 1)
    (7, 11)
    """
    return sum(_points(far, size))


def _points(far: int, size: int) -> list[int]:
    """Return how many of them have 0, 1, 2, ... entries that are not 0."""
    return [2**k * math.comb(size, k) * math.comb(far, k) for k in range(size + 1)]


def point_within(far: int, size: int) -> list[int]:
    """Draw one of these vectors, each as likely as any other.

    Its number of entries that are not 0 is drawn first; their sizes are the gaps between as many
    different numbers from 1 to `far` in order.
    """
    drawn, counts = below(points_within(far, size)), _points(far, size)
    filled = next(place for place, total in enumerate(accumulate(counts)) if drawn < total)
    ends: set[int] = set()
    while len(ends) < filled:
        ends.add(1 + below(far))
    free, vector, last = list(range(size)), [0] * size, 0
    for end in sorted(ends):
        place = free.pop(below(len(free)))
        vector[place] = (end - last) * (1 - 2 * below(2))
        last = end
    return vector
