"""Data of Chen et al., 2016, section III-C: ideal, heteroscedastic and nonlinear regressions.

Every set is fitted by ordinary least squares to y = b0 + b1 x, which is right for the first alone.
The second argument of their N(0, .) is a variance, as in N(0, sigma^2) of their section III-A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["BOUNDS", "KINDS", "Fitted", "dataset", "family", "fitted", "private_model"]

BOUNDS: Final = (1.0, 50.0)  # of x in the first study; the second takes 0 to 50
QUADRATIC: Final = 0.01


@dataclass(frozen=True, eq=False)
class Fitted:
    """A regression with what a residual plot is made of."""

    name: str
    observed: Any
    predicted: Any

    @property
    def residuals(self) -> Any:
        return self.observed - self.predicted

    @property
    def rows(self) -> int:
        return len(self.observed)


def _ideal(x: Any, random: np.random.Generator) -> Any:
    return x + random.normal(0.0, 1.0, x.size)


def _heteroscedastic(x: Any, random: np.random.Generator) -> Any:
    return x + random.normal(0.0, 1.0, x.size) * np.sqrt(x)


def _nonlinear(x: Any, random: np.random.Generator) -> Any:
    return QUADRATIC * x**2 + x + random.normal(0.0, 1.0, x.size)


KINDS: Final[dict[str, Callable[[Any, np.random.Generator], Any]]] = {
    "ideal": _ideal,
    "heteroscedastic": _heteroscedastic,
    "nonlinear": _nonlinear,
}


def dataset(kind: str, *, rows: int, random: np.random.Generator) -> Fitted:
    """One set of the first study: x uniform on [1, 50]."""
    x = random.uniform(*BOUNDS, rows)
    return fitted(kind, x, KINDS[kind](x, random))


def family(
    *, rows: int, random: np.random.Generator, alpha: float = 0.0, beta: float = 0.0
) -> Fitted:
    """One set of the second study: x uniform on [0, 50], variance alpha x + 1, curve beta x^2."""
    x = random.uniform(0.0, BOUNDS[1], rows)
    y = x + beta * x**2 + random.normal(0.0, 1.0, rows) * np.sqrt(alpha * x + 1)
    return fitted(f"alpha {alpha:g}, beta {beta:g}", x, y)


def fitted(name: str, x: Any, y: Any) -> Fitted:
    """Least squares of y on one x."""
    deviation = x - x.mean()
    slope = float(deviation @ y / (deviation @ deviation))
    return Fitted(name, y, y.mean() + slope * deviation)


def private_model(fit: Fitted, *, epsilon: float, random: np.random.Generator) -> Fitted:
    """The same rows with coefficients that are epsilon-private by output perturbation.

    A ridge regression of y/50 on (1, z), z from -1 to 1, where x is read back from the
    predictions: the ridge weight decides how far one row moves the minimum (Chaudhuri, Monteleoni
    and Sarwate 2011). Doubles, and the minimum's own norm for its bound: this is a simulation.
    """
    low, high = BOUNDS
    z = np.clip((fit.predicted - low) / (high - low) * 2 - 1, -1, 1)
    y = np.clip(fit.observed / high, -1, 1)
    design = np.stack([np.ones_like(z), z], axis=1)
    ridge = 0.02
    gram = design.T @ design / fit.rows + ridge * np.eye(2)
    exact = np.linalg.solve(gram, design.T @ y / fit.rows)
    size = 2**0.5
    reach = 2 * size * (size * float(np.linalg.norm(exact)) + 1) / (fit.rows * ridge)
    direction = random.normal(size=2)
    noise = direction / np.linalg.norm(direction) * random.gamma(2, reach / epsilon)
    return Fitted("private model", fit.observed, high * design @ (exact + noise))
