"""The tail of a sum of Laplace noises and a normal sampling error.

Intervals need P(sum of g_i Z_i + normal > t) for Z_i independent Laplace noises of one scale and
any weights g_i. Partial fractions of the characteristic function turn the sum of a few Laplaces
into a signed mixture of single ones, each of which has a closed form with a normal added. For many
the mixture loses all its digits, and the characteristic function is inverted by quadrature
(Gil-Pelaez 1951), which converges the faster the more of them there are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heldout.kernel.noise.bisection import falls_to

SQRT_2 = math.sqrt(2)
NEGLIGIBLE = 1e-10  # of the characteristic function
SMALLEST = 1e-9  # a noise of whole numbers at this scale is never seen; smaller ones underflow
FEW = 4  # noises that partial fractions can tell apart
SPACING = 0.005  # equal weights are spread by this much, upwards, so that the fractions exist


@dataclass(frozen=True)
class NoiseSum:
    """The law of sum(weights[i] * Z[i]) + Normal(0, deviation^2), Z[i] ~ Laplace(scale).

    >>> one = NoiseSum(weights=(1.0,), scale=2.0)
    >>> round(one.survival(2.0), 6), round(math.exp(-1) / 2, 6)
    (0.18394, 0.18394)
    >>> round(one.quantile(0.95), 3)
    5.991
    """

    weights: tuple[float, ...]
    scale: float
    deviation: float = 0.0

    @cached_property
    def _mixture(self) -> tuple[tuple[float, float], ...]:
        scales = _separated(
            [max(abs(weight) * self.scale, SMALLEST) for weight in self.weights if weight]
        )
        found = []
        for i, b in enumerate(scales):
            share = 1.0
            for j, c in enumerate(scales):
                if j != i:
                    share *= b * b / ((b - c) * (b + c))
            found.append((share, b))
        return tuple(found)

    def survival(self, t: float) -> float:
        """P(sum > t)."""
        if t < 0:
            return 1.0 - self.survival(-t)
        if len(self.weights) - self.weights.count(0.0) > FEW:
            return self._inverted(t)
        mixture, total = self._mixture, 0.0
        if not mixture:
            return _normal_survival(t, self.deviation)
        for share, b in mixture:
            total += share * _one_survival(t, b, self.deviation)
        return min(max(total, 0.0), 0.5)

    def quantile(self, level: float) -> float:
        """The t with P(|sum| <= t) = level."""
        tail = (1 - level) / 2
        high = 1e-9 + self.deviation + self.scale * max(map(abs, self.weights), default=0.0)
        return falls_to(self.survival, tail, start=high)

    def _inverted(self, t: float) -> float:
        """P(sum > t) for t >= 0, from the characteristic function."""
        import numpy as np

        reach, places, heights = self._quadrature
        if t >= reach:
            return 0.0
        return float(min(max(0.5 - heights @ np.sin(places * t), 0.0), 0.5))

    @cached_property
    def _quadrature(self) -> tuple[float, Any, Any]:
        """How far the sum reaches, and where the characteristic function is looked at.

        The midpoint rule of step h errs by the chance that the sum is beyond 2 pi / h - t.
        """
        import numpy as np

        scales = np.array([max(abs(w) * self.scale, SMALLEST) for w in self.weights if w])
        scales, counts = np.unique(scales, return_counts=True)
        reach = 10 * math.sqrt(2 * float(counts @ scales**2) + self.deviation**2)
        reach += 25 * float(scales[-1])

        def damped(places: Any) -> Any:
            logs = np.log1p(np.multiply.outer(places, scales) ** 2) @ counts
            return np.exp(-logs - (self.deviation * places) ** 2 / 2)

        step = math.pi / reach
        end = 8 * step
        while damped(np.array([end]))[0] > NEGLIGIBLE:
            end *= 1.5
        order = np.arange(math.ceil(end / step)) + 0.5
        return reach, order * step, damped(order * step) / (math.pi * order)


def _separated(scales: Sequence[float]) -> list[float]:
    """The scales in rising order, each at least SPACING above the one before it."""
    separated: list[float] = []
    for scale in sorted(scales):
        floor = separated[-1] * (1 + SPACING) if separated else 0.0
        separated.append(max(scale, floor))
    # A weight that is tiny against the largest changes nothing but the conditioning.
    return [scale for scale in separated if scale > separated[-1] * 1e-6]


def _one_survival(t: float, scale: float, deviation: float) -> float:
    """P(Laplace(scale) + Normal(0, deviation^2) > t) for t >= 0."""
    if deviation == 0:
        return math.exp(-t / scale) / 2
    z, a = t / deviation, deviation / scale
    normal = math.exp(-z * z / 2)
    if a < z:
        rising = math.exp(a * a / 2 - a * z) * math.erfc((a - z) / SQRT_2) / 2
    else:
        rising = normal * _scaled_erfc((a - z) / SQRT_2) / 2
    falling = normal * _scaled_erfc((a + z) / SQRT_2) / 2
    return _normal_survival(t, deviation) + (rising - falling) / 2


def _normal_survival(t: float, deviation: float) -> float:
    if deviation == 0:
        return 0.0 if t > 0 else 0.5
    return math.erfc(t / (deviation * SQRT_2)) / 2


def _scaled_erfc(x: float) -> float:
    """exp(x^2) erfc(x) for x >= 0."""
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    if x > 1e9:
        return 1 / (x * math.sqrt(math.pi))
    square = 2 * x * x
    return (1 - 1 / square + 3 / square**2 - 15 / square**3) / (x * math.sqrt(math.pi))
