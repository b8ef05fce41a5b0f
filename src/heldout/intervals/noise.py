"""The tail of a sum of Laplace noises and a normal sampling error.

Intervals need P(sum of g_i Z_i + normal > t) for Z_i independent Laplace noises of one scale and
any weights g_i. Partial fractions of the characteristic function turn the sum of a few Laplaces
into a signed mixture of single ones, each of which has a closed form with a normal added. For many
the mixture loses all its digits, and the characteristic function is inverted by quadrature
(Gil-Pelaez 1951), which converges the faster the more of them there are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats

# --- Where something stops to hold, by halving or by secants: the one search of this package -----


def halved(
    holds: Callable[[float], bool], inside: float, outside: float, *, steps: int = 60
) -> tuple[float, float]:
    """The last place found where it holds, and the first where it does not.

    `holds` is true at `inside` and false at `outside`, whichever of the two is larger.

    >>> halved(lambda x: x * x < 2, 1.0, 2.0, steps=3)
    (1.375, 1.5)
    """
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside


def falls_to(function: Callable[[float], float], level: float, *, start: float) -> float:
    """The least argument, from 0, where a falling function is at most `level`.

    >>> round(falls_to(lambda x: 1 / (1 + x), 0.1, start=1.0), 6)
    9.0
    """
    far = start
    while function(far) > level:
        far *= 2
    return halved(lambda place: function(place) > level, 0.0, far, steps=80)[1]


def crossed(function: Callable[[float], float], low: float, high: float, *, width: float) -> float:
    """A place below 0, at most `width` before a rising function's crossing; by secants.

    `function` is below 0 at `low` and not at `high`. An end that stays is given half of its value
    (the Illinois rule), so that both ends move.

    >>> 0 <= 2**0.5 - crossed(lambda x: x * x - 2, 1.0, 2.0, width=1e-9) <= 1e-9
    True
    """
    below, above, moved = function(low), function(high), 0
    for _ in range(200):
        if high - low <= width:
            break
        place = high - above * (high - low) / (above - below)
        place = min(max(place, low + width / 2), high - width / 2)
        value = function(place)
        if value < 0:
            low, below, above = place, value, above / 2 if moved < 0 else above
        else:
            high, above, below = place, value, below / 2 if moved > 0 else below
        moved = -1 if value < 0 else 1
    return low


# --- The normal law for arrays, in NumPy alone ---------------------------------------------------
#
# SciPy's `ndtr` and `ndtri` are the same functions. To import them takes twice as long as to import
# NumPy, a fifth of what the command needs for curves of a thousand rows, and nothing else there
# needs SciPy. A test holds both against it.


_Ratio = tuple[tuple[float, ...], tuple[float, ...]]

# Wichura 1988, algorithm AS 241 (PPND16): numerators and denominators, highest power first.
# fmt: off
_CENTRE: Final[_Ratio] = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)
_TAIL: Final[_Ratio] = (
    (7.74545014278341407640e-4, 0.0227238449892691845833, 0.241780725177450611770,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 0.0151986665636164571966,
     0.148103976427480074590, 0.689767334985100004550, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)
_FAR: Final[_Ratio] = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.00124266094738807843860,
     0.0265321895265761230930, 0.296560571828504891230, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 0.0148753612908506148525, 0.136929880922735805310,
     0.599832206555887937690, 1.0),
)
# ln(erfc(z) / t) + z^2 in powers of 2 t - 1, with t = 2 / (2 + z), highest first: its Chebyshev
# series, computed to 400 bits and cut off where a term is below 1e-16.
_LOGARITHM: Final = (
    6.714920393601979e-12, -1.8902306008944537e-09, 4.013877704214506e-09, 1.1172352263623759e-08,
    -3.9024931626661816e-08, 1.4448658046252676e-09, 1.5307318366323928e-07, -2.495832761719667e-07,
    -1.6817283194044123e-07, 1.2500276612569754e-06, -1.2725805279147717e-06,
    -2.947986876998259e-06, 8.562779099386524e-06, 1.3772664134464417e-07, -3.0187948093951486e-05,
    3.17451797494374e-05, 7.140103219748502e-05, -0.0001743029472030762, -9.373503465815823e-05,
    0.000673678795580235, -0.0001462468629421063, -0.002345812500482853, 0.001758933557766382,
    0.008824938557060623, -0.009872689366388684, -0.0468956102311753, 0.04734330684190441,
    0.6726432239776567, -0.6717940840566923,
)
# fmt: on


def normal_share(places: Floats) -> Floats:
    """Return how much of the standard normal law lies below each place of an array.

    >>> normal_share(np.array([-np.inf, -1.0, 0.0, 2.0])).round(6).tolist()
    [0.0, 0.158655, 0.5, 0.97725]
    """
    places = np.asarray(places, dtype=np.float64)
    near = 2 / (2 + np.abs(places) * math.sqrt(0.5))
    tail = near * np.exp(_polynomial(2 * near - 1, _LOGARITHM) - places * places / 2) / 2
    return np.where(places < 0, tail, 1 - tail)


def normal_quantile(shares: Floats) -> Floats:
    """Return where so much of the standard normal law lies below, for an array of shares in (0, 1).

    >>> normal_quantile(np.array([1e-12, 0.158655, 0.5, 0.975])).round(4).tolist()
    [-7.0345, -1.0, 0.0, 1.96]
    """
    shares = np.asarray(shares, dtype=np.float64)
    beside = shares - 0.5
    quantiles = beside * _ratio(0.180625 - beside * beside, _CENTRE)
    outer = np.abs(beside) > 0.425
    depth = np.sqrt(-np.log(np.minimum(shares, 1 - shares)[outer]))
    tail = _ratio(depth - 1.6, _TAIL)
    if (far := depth > 5).any():
        tail[far] = _ratio(depth[far] - 5, _FAR)
    quantiles[outer] = np.copysign(tail, beside[outer])
    return quantiles


def _ratio(at: Any, ratio: _Ratio) -> Floats:
    numerator, denominator = ratio
    return _polynomial(at, numerator) / _polynomial(at, denominator)


def _polynomial(at: Floats, coefficients: tuple[float, ...]) -> Floats:
    value = np.full_like(at, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= at
        value += coefficient
    return value


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
        mixture = []
        for i, b in enumerate(scales):
            share = 1.0
            for j, c in enumerate(scales):
                if j != i:
                    share *= b * b / ((b - c) * (b + c))
            mixture.append((share, b))
        return tuple(mixture)

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
        """Return how far the sum reaches, and where the characteristic function is looked at.

        The midpoint rule of step h errs by the chance that the sum is beyond 2 pi / h - t.
        """
        import numpy as np

        weights = np.abs(np.array(self.weights))
        scales = np.maximum(weights[weights > 0] * self.scale, SMALLEST)
        scales, counts = np.unique(scales, return_counts=True)
        reach = 10 * math.sqrt(2 * float(counts @ scales**2) + self.deviation**2)
        reach += 25 * float(scales[-1])

        def damped(places: Floats) -> Floats:
            logs = np.log1p(np.multiply.outer(places, scales) ** 2) @ counts
            result: Floats = np.exp(-logs - (self.deviation * places) ** 2 / 2)
            return result

        step = math.pi / reach
        end = 8 * step
        while damped(np.array([end]))[0] > NEGLIGIBLE:
            end *= 1.5
        order = np.arange(float(math.ceil(end / step))) + 0.5
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
