"""The tail of a sum of Laplace noises and a normal sampling error, in closed form.

Intervals need P(sum of g_i Z_i + normal > t) for Z_i independent Laplace noises of one scale and
any weights g_i. Partial fractions of the characteristic function turn the sum of Laplaces into a
signed mixture of single ones, each of which has a closed form with a normal added.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from heldout.mechanisms.bisection import falls_to

SMALLEST = 1e-9  # a noise of whole numbers at this scale is never seen; smaller ones underflow
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
        return tuple(
            (
                math.prod(b * b / ((b - c) * (b + c)) for j, c in enumerate(scales) if j != i),
                b,
            )
            for i, b in enumerate(scales)
        )

    def survival(self, t: float) -> float:
        """P(sum > t)."""
        if t < 0:
            return 1.0 - self.survival(-t)
        if not self._mixture:
            return _normal_survival(t, self.deviation)
        total = sum(share * _one_survival(t, b, self.deviation) for share, b in self._mixture)
        return min(max(total, 0.0), 0.5)

    def quantile(self, level: float) -> float:
        """The t with P(|sum| <= t) = level."""
        tail = (1 - level) / 2
        high = 1e-9 + self.deviation + max((b for _, b in self._mixture), default=0.0)
        return falls_to(self.survival, tail, start=high)


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
        rising = math.exp(a * a / 2 - a * z) * math.erfc((a - z) / math.sqrt(2)) / 2
    else:
        rising = normal * _scaled_erfc((a - z) / math.sqrt(2)) / 2
    falling = normal * _scaled_erfc((a + z) / math.sqrt(2)) / 2
    return _normal_survival(t, deviation) + (rising - falling) / 2


def _normal_survival(t: float, deviation: float) -> float:
    if deviation == 0:
        return 0.0 if t > 0 else 0.5
    return math.erfc(t / (deviation * math.sqrt(2))) / 2


def _scaled_erfc(x: float) -> float:
    """exp(x^2) erfc(x) for x >= 0."""
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    if x > 1e9:
        return 1 / (x * math.sqrt(math.pi))
    square = 2 * x * x
    return (1 - 1 / square + 3 / square**2 - 15 / square**3) / (x * math.sqrt(math.pi))
