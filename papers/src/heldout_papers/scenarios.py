"""The three simulated worlds of Boyd's chapter 4, with their true curves and areas.

binormal: N(0, 1) against N(1, 1). bibeta: Beta(2, 5) against Beta(5, 2). offset uniform:
U(0, 1) against U(0.5, 1.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scenario:
    """Distributions of the scores of the two classes."""

    name: str
    span: tuple[float, float]
    negative: Callable[[], Any]
    positive: Callable[[], Any]
    draw_negative: Callable[[Generator, tuple[int, int]], Floats]
    draw_positive: Callable[[Generator, tuple[int, int]], Floats]

    def draw(
        self, random: Generator, repetitions: int, positives: int, negatives: int
    ) -> tuple[Floats, Floats]:
        """Scores of positives and of negatives, one data set a row."""
        return (
            self.draw_positive(random, (repetitions, positives)),
            self.draw_negative(random, (repetitions, negatives)),
        )

    def precision(self, recall: Floats, prevalence: float) -> Floats:
        """The true curve."""
        threshold = self.positive().isf(recall)
        false = self.negative().sf(threshold)
        true = prevalence * recall
        total = true + (1.0 - prevalence) * false
        return np.where(total > 0, true / np.where(total > 0, total, 1.0), 1.0)

    def area(self, prevalence: float) -> float:
        """The true area under the curve."""
        return _area(self.name, prevalence)


def _normal(mean: float) -> Callable[[], Any]:
    def frozen() -> Any:
        from scipy.stats import norm

        return norm(mean, 1.0)

    return frozen


def _beta(a: float, b: float) -> Callable[[], Any]:
    def frozen() -> Any:
        from scipy.stats import beta

        return beta(a, b)

    return frozen


def _uniform(low: float) -> Callable[[], Any]:
    def frozen() -> Any:
        from scipy.stats import uniform

        return uniform(low, 1.0)

    return frozen


SCENARIOS = (
    Scenario(
        "binormal",
        (-4.0, 5.0),
        _normal(0.0),
        _normal(1.0),
        lambda random, shape: random.standard_normal(shape),
        lambda random, shape: random.standard_normal(shape) + 1.0,
    ),
    Scenario(
        "bibeta",
        (0.0, 1.0),
        _beta(2.0, 5.0),
        _beta(5.0, 2.0),
        lambda random, shape: random.beta(2.0, 5.0, shape),
        lambda random, shape: random.beta(5.0, 2.0, shape),
    ),
    Scenario(
        "offset uniform",
        (-0.25, 1.75),
        _uniform(0.0),
        _uniform(0.5),
        lambda random, shape: random.random(shape),
        lambda random, shape: random.random(shape) + 0.5,
    ),
)
"""In the dissertation's order."""


def scenario(name: str) -> Scenario:
    """A scenario by its name."""
    return next(s for s in SCENARIOS if s.name == name)


@cache
def _area(name: str, prevalence: float) -> float:
    """By the tanh-sinh rule: the curve may be steep at both ends and break at recall 0.5."""
    world = scenario(name)
    t = np.linspace(-3.6, 3.6, 289)
    bend = 0.5 * np.pi * np.sinh(t)
    share = 0.5 * (1.0 + np.tanh(bend))
    weight = 0.25 * np.pi * np.cosh(t) / np.cosh(bend) ** 2 * (t[1] - t[0])
    # The offset uniform's supports part at recall 0.5.
    halves = (world.precision(0.5 * side + 0.5 * share, prevalence) for side in (0.0, 1.0))
    return float(sum(0.5 * np.dot(weight, half) for half in halves))
