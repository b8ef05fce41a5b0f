"""Bands for the curves of a noisy table: rectangles at the edges, and monotony between them.

At each edge of the table the two rates lie in a rectangle, all rectangles hold at once, and a
curve rises: so above every false positive rate that an edge surely exceeds, the curve is below
that edge's highest true positive rate, and likewise from below. That is true of any curve, tied
or not; between the edges nothing is assumed but that it rises. Everything is made from released
numbers, hence free.

How far all rates stray at once is found by simulating the noise and the sampling from the
released table. This is not a privacy mechanism, so its uniform numbers need not be random: they
are the multiples of square roots of primes, which fill the cube evenly, and the same at each call.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.intervals.areas import area_variance
from heldout.intervals.noise import normal_quantile
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.intervals.readings import Curve, cumulative_counts, rates
from heldout.kernel.noise.tables import NoisyTable
from heldout.questions.curves.tuned import EDGE, MARGIN, TAIL

if TYPE_CHECKING:
    from heldout.questions.curves.posterior import Posterior

__all__ = [
    "Band",
    "Draws",
    "Rectangles",
    "Region",
    "area_half_width",
    "end_of",
    "evenly_filling",
    "gamma",
    "interval_of",
    "intervals_of",
    "nearly_normal",
    "normal",
    "normal_deviations",
    "normal_points",
    "read_curves",
    "rectangles",
    "uniform",
]

_PLACES: Final = np.unique(np.concatenate([np.linspace(0, 1, 129), np.linspace(0, 0.05, 26)]))
_DRAWS: Final = 3000
_MOST_KEPT: Final = 2**18  # numbers of a stream, 2 MB
_MOST_SIMULATED: Final = 64  # bins; beyond, or without a known law, Bonferroni


@dataclass(frozen=True, eq=False)
class Band:
    """A curve's lowest and highest value at each place."""

    at: Floats
    low: Floats
    high: Floats

    @property
    def mean_width(self) -> float:
        return float(np.trapezoid(self.high - self.low, self.at))


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Bounds of the rates at the inner edges, highest first, and of the prevalence.

    Row 0 of `low` and `high` is the false positive rate, row 1 the true positive rate.
    """

    low: Floats
    high: Floats
    prevalence: tuple[float, float]

    def roc(self, fpr: Floats, tpr: Floats) -> Band:
        """The band of the ROC curve at each fpr; it always holds the released curve."""
        (fpr_low, tpr_low), (fpr_high, tpr_high) = self.low, self.high
        places = np.asarray(fpr)[:, None]
        high = np.where(fpr_low > places, tpr_high, 1.0).min(axis=1, initial=1.0)
        low = np.where(fpr_high <= places, tpr_low, 0.0).max(axis=1, initial=0.0)
        low[-1] = np.where(places[-1] >= 1, 1.0, low[-1])[0]
        return _holding(np.asarray(fpr), np.minimum(low, high), high, np.asarray(tpr))

    def precision(self, recall: Floats, precision: Floats) -> Band:
        """The band of precision at each recall."""
        (fpr_low, tpr_low), (fpr_high, tpr_high) = self.low, self.high
        recall = np.asarray(recall, dtype=np.float64)
        places = recall[:, None]
        least = np.where(tpr_high < places, fpr_low, 0.0).max(axis=1, initial=0.0)
        most = np.where(tpr_low >= places, fpr_high, 1.0).min(axis=1, initial=1.0)
        low, high = self.prevalence
        bounds = []
        for share, false in ((low, np.maximum(least, most)), (high, np.minimum(least, most))):
            true, wrong = share * recall, (1 - share) * false
            called = true + wrong
            bounds.append(np.divide(true, called, out=np.ones_like(called), where=called > 0))
        bounds[0] = np.where(recall > 0, bounds[0], 0.0)
        return _holding(recall, bounds[0], np.where(recall > 0, bounds[1], 1.0), precision)


@dataclass(frozen=True, eq=False)
class Region:
    """Holds the curves of this much of the draws: at each place, or wholly."""

    posterior: "Posterior"
    level: float
    simultaneous: bool
    noise_only: bool

    @property
    def prevalence(self) -> tuple[float, float]:
        return interval_of(self.posterior.prevalence(noise_only=self.noise_only), self.level)

    def roc(self, fpr: Floats, tpr: Floats) -> Band:
        """The band of the ROC curve at each fpr; it always holds the released curve."""
        return self._band("roc", np.asarray(fpr, dtype=np.float64), np.asarray(tpr))

    def precision(self, recall: Floats, precision: Floats) -> Band:
        """The band of precision at each recall."""
        return self._band("precision", np.asarray(recall, dtype=np.float64), np.asarray(precision))

    def _band(self, kind: str, places: Floats, curve: Floats) -> Band:
        below, above = self._heights(kind, places)
        first, last = end_of(below, self.level, -1), end_of(above, self.level, 1)
        if self.simultaneous:
            far = self._deviations(kind)
            first = np.minimum(first, _mean(below) - far * _spread(below, -1))
            last = np.maximum(last, _mean(above) + far * _spread(above, 1))
        first, last = np.clip(first, 0.0, 1.0), np.clip(last, 0.0, 1.0)
        if kind == "roc":
            # Nothing is assumed of the order of rows in the cells where curves begin and end.
            top, bottom = self._end_cells()
            first = np.where(places < top, 0.0, first)
            last = np.where(places > bottom, 1.0, last)
            first = np.where(places >= 1, 1.0, first)
        else:
            first, last = np.where(places > 0, first, 0.0), np.where(places > 0, last, 1.0)
        return Band(places, np.minimum(first, curve), np.maximum(last, curve))

    def _end_cells(self) -> tuple[float, float]:
        """The false positive rates where the highest cell ends and the lowest begins."""
        rows = self.posterior
        false, _ = rows.draws(noise_only=self.noise_only).rates
        sizes = np.diff(np.append(rows.first, len(rows.starts)))
        share = (1 - self.level) / 2
        top = 0.0 if rows.tied[-1] else float(np.quantile(false[:, sizes[-1]], share))
        bottom = 1.0 if rows.tied[0] else float(np.quantile(false[:, -1 - sizes[0]], 1 - share))
        return top, bottom

    def _deviations(self, kind: str) -> float:
        """Return how many deviations hold this much of the draws wholly; on a grid of places."""
        known = self.posterior.furthest
        if (kind, self.noise_only) not in known:
            drawn = self._heights(kind, _PLACES)
            most = np.zeros(len(drawn[0]))
            for heights in drawn:
                away = heights - _mean(heights)
                off = np.maximum(away / _spread(heights, 1), -away / _spread(heights, -1))
                most = np.maximum(most, off.max(axis=1))
            known[kind, self.noise_only] = most
        most = known[kind, self.noise_only]
        far = float(np.quantile(most, min(self.level, TAIL)))
        if self.level > TAIL:
            far *= normal_deviations(self.level) / normal_deviations(TAIL)
        return far

    def _heights(self, kind: str, places: Floats) -> tuple[Floats, Floats]:
        """Of each draw the least and largest height near each place: one row less, one more."""
        draws = self.posterior.draws(noise_only=self.noise_only)
        (false, true), (m, n) = draws.rates, draws.sizes
        one_negative, one_positive = 1 / max(float(m.mean()), 1.0), 1 / max(float(n.mean()), 1.0)
        if kind == "roc":
            below, above = (
                read_curves(false, true, np.clip(places + sign * one_negative, 0.0, 1.0))
                + sign * one_positive
                for sign in (-1, 1)
            )
            return np.maximum(below, 0.0), np.minimum(above, 1.0)
        precisions = []
        for sign in (1, -1):  # more negatives, less precision
            wrong = read_curves(true, false, np.clip(places + sign * one_positive, 0.0, 1.0))
            wrong = np.clip(wrong + sign * one_negative, 0.0, 1.0) * m[:, None]
            right = places * n[:, None]
            called = right + wrong
            precisions.append(np.divide(right, called, out=np.ones_like(called), where=called > 0))
        return precisions[0], precisions[1]


def read_curves(x: Floats, y: Floats, places: Floats) -> Floats:
    """Each draw's curve at the places; x rises from 0 to 1.

    All of them at once, as one curve whose pieces lie side by side.

    >>> read_curves(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[0, 1], [2, 4]]), np.array([0.5]))
    array([[0.5],
           [3. ]])
    """
    apart = 2.0 * np.arange(len(x))[:, None]
    heights: Floats = np.interp((places + apart).ravel(), (x + apart).ravel(), y.ravel())
    return heights.reshape(len(x), len(places))


def _mean(heights: Floats) -> Floats:
    result: Floats = heights.mean(axis=0)
    return result


def _spread(heights: Floats, side: int) -> Floats:
    """Deviations below (-1) or above (1) the mean, as a law may be lopsided."""
    away = np.maximum(side * (heights - _mean(heights)), 0.0)
    away *= away
    least = 1e-6
    return np.asarray(np.sqrt(2 * away.mean(axis=0)) + least)


def _holding(at: Floats, low: Floats, high: Floats, curve: Floats) -> Band:
    return Band(at, np.minimum(low, curve), np.maximum(high, curve))


def rectangles(
    table: NoisyTable, *, level: float, simultaneous: bool, noise_only: bool
) -> Rectangles:
    """Bounds that hold with this confidence: all at once, or at each place by itself."""
    counts = np.stack([table.negatives, table.positives])[:, ::-1]
    above = np.cumsum(counts, axis=1)
    total = above[:, -1]
    inside, rest = np.maximum(above[:, :-1], 0.0), np.maximum(total[:, None] - above[:, :-1], 0.0)
    variance = (table.noise.above_deviation**2)[:, ::-1]  # from 0 at the top edge downwards
    of_above, of_total = variance[:, 1:-1], variance[:, -1]
    if table.noise.scale is None:
        # The noise below an edge may hang together with that above.
        of_rest = (np.sqrt(of_above) + np.sqrt(of_total)[:, None]) ** 2
        of_above = 2 * of_above
        of_rest = 2 * of_rest
    else:
        of_rest = of_total[:, None] - of_above
    rows = np.maximum(total, 0.0) + np.sqrt(of_total)
    sampled = np.zeros(2) if noise_only else rows
    simulated = table.noise.scale is not None and table.bins <= _MOST_SIMULATED
    # By itself, a point of a curve hangs on one rate of each class.
    quantile = single_quantile(level, of=2)
    if simultaneous and simulated:
        scales = table.noise.scales[:, ::-1]
        shares = _shares(counts, scales)
        together = _simulated_quantile(shares, rows, scales, level=level, noise_only=noise_only)
        quantile = max(quantile, together * MARGIN)
    elif simultaneous:
        quantile = single_quantile(level, of=2 * table.bins)
    low, high = ratio_bounds(
        inside,
        rest,
        top_variance=of_above,
        rest_variance=of_rest,
        rows=sampled[:, None],
        quantile=quantile,
    )
    least, most = ratio_bounds(
        total[1],
        total[0],
        top_variance=of_total[1],
        rest_variance=of_total[0],
        rows=0.0 if noise_only else float(rows.sum()),
        quantile=quantile,
    )
    return Rectangles(
        np.maximum.accumulate(low, axis=1),
        np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1],
        (float(least), float(most)),
    )


def area_half_width(table: NoisyTable, curve: Curve, level: float, *, noise_only: bool) -> float:
    """Return how far the area under the curve of a table may lie from the rows' own.

    The area moves by the error of one class's rates, taken over the other class, and how the
    errors of edges hang together is not known: an integral's deviation is at most the integral of
    the deviations (Minkowski). The classes' noise is independent. The order of rows within a bin
    is not known either: half of its pairs.
    """
    deviation = table.noise.above_deviation[:, ::-1]
    sizes = [max(curve.negatives, 1.0), max(curve.positives, 1.0)]
    false, true = (
        rates(cumulative_counts(counts)) for counts in (table.negatives, table.positives)
    )
    moved = []
    for rate, of_class, size, over in zip(
        (false, true), deviation, sizes, (true, false), strict=True
    ):
        moved.append(float(np.trapezoid((of_class + rate * of_class[-1]) / size, over)))
    variance = moved[0] ** 2 + moved[1] ** 2
    if not noise_only:
        variance += area_variance(min(max(curve.area, 0.01), 0.99), sizes[1], sizes[0])
    ties = float(np.diff(false) @ np.diff(true)) / 2
    return single_quantile(level) * math.sqrt(variance) + ties


def _shares(counts: Floats, scales: Floats) -> Floats:
    """Each class's share of each bin, with a little of every bin so that none is lost."""
    filled = np.maximum(counts, 0.0) + scales / 2
    result: Floats = filled / filled.sum(axis=1, keepdims=True)
    return result


def _simulated_quantile(
    shares: Floats, rows: Floats, scales: Floats, *, level: float, noise_only: bool
) -> float:
    """Return the quantile of the largest of all standardised deviations."""
    bins = shares.shape[1]
    uniform = evenly_filling(4 * bins)
    folded = 2 * uniform[:, : 2 * bins] - 1
    noise = scales * (-np.sign(folded) * np.log1p(-np.abs(folded))).reshape(-1, 2, bins)
    sample = np.zeros_like(noise)
    if not noise_only:
        normal = normal_quantile(uniform[:, 2 * bins :]).reshape(-1, 2, bins)
        sample = normal * np.sqrt(rows[:, None] * shares)
    rate = np.cumsum(shares, axis=1)[:, :-1]
    inside = np.cumsum(2 * scales**2, axis=1)
    outside = inside[:, -1:] - inside[:, :-1]
    variance = (1 - rate) ** 2 * inside[:, :-1] + rate**2 * outside
    if not noise_only:
        variance = variance + rows[:, None] * rate * (1 - rate)
    error = noise + sample
    above, total = np.cumsum(error, axis=2), error.sum(axis=2)
    strays = np.abs(above[:, :, :-1] - rate * total[:, :, None]) / np.sqrt(variance)
    prevalence = rows[1] / rows.sum() if rows.sum() > 0 else 0.5  # noise may leave no row
    spread = (1 - prevalence) ** 2 * inside[1, -1] + prevalence**2 * inside[0, -1]
    labels = noise.sum(axis=2)
    straying = (1 - prevalence) * labels[:, 1] - prevalence * labels[:, 0]
    if not noise_only:
        sampled = rows.sum() * prevalence * (1 - prevalence)
        spread, straying = spread + sampled, straying + np.sqrt(sampled) * _normal_column()
    most = np.maximum(
        strays.reshape(_DRAWS, -1).max(axis=1, initial=0.0), np.abs(straying) / np.sqrt(spread)
    )
    return float(np.quantile(most, level, method="higher"))


@lru_cache(maxsize=8)
def evenly_filling(columns: int) -> Floats:
    """Evenly filling numbers in (0, 1): multiples of the square roots of primes, modulo 1."""
    multiples = np.outer(np.arange(1, _DRAWS + 1), np.sqrt(_primes(columns).astype(np.float64)))
    filled = np.clip(multiples % 1.0, 1e-9, 1 - 1e-9)
    filled.setflags(write=False)
    return filled


@lru_cache(maxsize=2)
def normal_points(columns: int) -> Floats:
    """The same as deviations of a normal law; an evaluation asks for them three times."""
    points = normal_quantile(evenly_filling(columns))
    points.setflags(write=False)
    return points


def _primes(count: int) -> Ints:
    """The first ones, by a sieve.

    >>> _primes(6).tolist()
    [2, 3, 5, 7, 11, 13]
    """
    is_prime = np.ones(20 * count + 50, dtype=bool)
    is_prime[:2] = False
    for number in range(2, math.isqrt(len(is_prime)) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = False
    return np.flatnonzero(is_prime)[:count]


@lru_cache(maxsize=1)
def _normal_column() -> Floats:
    return normal_quantile(np.arange(1.0, _DRAWS + 1) * np.pi % 1.0)


# Draws of rows, the numbers that drive them, and the intervals that hold most of them.
#
# The numbers are the same at each call, and on every machine: whole-numbered hashes of counters.
# None of this is a privacy mechanism; all of it is arithmetic on released numbers.
def _hashes(stream: int, count: int) -> Any:
    """Whole numbers of 64 bits that look random: SplitMix64 (Steele, Lea and Flood 2014)."""
    counters = np.arange(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = counters + np.uint64((stream << 40) + 1)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _remembered(law: Callable[[int, int], Floats]) -> Callable[..., Floats]:
    """Keep the longest row of numbers of each stream that was asked for: shorter ones begin it.

    Tables of many groups, and two looks at one table, are driven by the same numbers.
    """
    longest: dict[int, Floats] = {}

    @wraps(law)
    def first(stream: int, *shape: int) -> Floats:
        count = math.prod(shape)
        row = longest.get(stream)
        if row is None or len(row) < count:
            row = law(stream, count)
            row.setflags(write=False)
            if count <= _MOST_KEPT:
                longest[stream] = row
        return row[:count].reshape(shape)

    return first


@_remembered
def uniform(stream: int, count: int) -> Floats:
    """Numbers in (0, 1).

    >>> uniform(1, 3).round(4).tolist()
    [0.0985, 0.0454, 0.2483]
    """
    halves = (_hashes(stream, count) >> np.uint64(11)) + 0.5
    halves *= 2.0**-53
    return np.asarray(halves, dtype=np.float64)


@_remembered
def log_uniform(stream: int, count: int) -> Floats:
    """Their logs."""
    return np.log(uniform(stream, count))


@_remembered
def normal(stream: int, count: int) -> Floats:
    """Numbers of a standard normal law."""
    return normal_quantile(uniform(stream, count))


@_remembered
def nearly_normal(stream: int, count: int) -> Floats:
    """Sums of four uniform numbers, of mean 0 and variance 1: for scatter, where tails are moot."""
    mixed = _hashes(stream, count)
    every_other, half = np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
    pairs = (mixed & every_other) + (mixed >> np.uint64(16) & every_other)
    drawn: Floats = (pairs & half) + (pairs >> np.uint64(32)) - 131070.0
    drawn *= math.sqrt(3) / 65536
    return drawn


def gamma(stream: int, shape: Floats) -> Floats:
    """Gamma numbers of these shapes: the cube of a normal one (Wilson and Hilferty 1931).

    Of a shape below 1, that of one more times a power of a uniform number.
    """
    shapes = shape.ravel()
    small = np.flatnonzero(shapes < 1)
    drawn = shapes.copy()
    drawn[small] += 1
    root = np.sqrt(drawn)
    root *= 3
    np.divide(1, root, out=root)
    cube = nearly_normal(stream, len(drawn)) * root
    root *= root
    cube += np.subtract(1, root, out=root)
    np.maximum(cube, 0.01, out=cube)
    for _ in range(3):
        drawn *= cube
    if len(small):
        chance = log_uniform(stream + 1, len(drawn))[small]
        chance /= shapes[small]
        drawn[small] *= np.exp(np.maximum(chance, -600.0, out=chance), out=chance)
    return drawn.reshape(shape.shape)


def interval_of(
    draws: Floats, level: float, *, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Where this much of the draws lies, the same share of the rest on either side.

    Beyond `TAIL` it grows as that of a normal law, as draws are few there. One that comes near an
    end of the range goes on to it: no draw lies quite there, and the truth may.
    """
    first, last = intervals_of(draws[:, None], level, low=low, high=high)
    return float(first[0]), float(last[0])


def intervals_of(
    draws: Floats, level: float, *, low: float = 0.0, high: float = 1.0
) -> tuple[Floats, Floats]:
    """Return both ends of the interval of each column of draws.

    >>> intervals_of(np.linspace(0.4, 0.6, 101)[:, None] + np.array([0.0, 0.2]), 0.9)
    (array([0.41, 0.61]), array([0.59, 0.79]))
    """
    within = min(level, TAIL)
    ends = np.quantile(draws, [(1 - within) / 2, 0.5, (1 + within) / 2], axis=0)
    if level > TAIL:
        more = normal_deviations(level) / normal_deviations(TAIL)
        ends = ends[1] + (ends - ends[1]) * more
    first, last = ends[0], ends[2]
    room = EDGE * (last - first)
    first = np.where(first - low <= room, low, first)
    last = np.where(high - last <= room, high, last)
    return np.maximum(first, low), np.minimum(last, high)


def normal_deviations(level: float) -> float:
    """Return how many deviations hold so much of a normal law."""
    return float(normal_quantile(np.array([(1 + level) / 2]))[0])


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of both classes by part of the grid, one table a draw; lowest scores first."""

    negatives: Floats
    positives: Floats

    @cached_property
    def sizes(self) -> tuple[Floats, Floats]:
        return self.negatives.sum(axis=1), self.positives.sum(axis=1)

    @cached_property
    def above(self) -> tuple[Floats, Floats]:
        """Count the rows at or above the start of each part; 0 after the last."""
        draws, parts = self.negatives.shape
        false, true = np.zeros((2, draws, parts + 1))
        np.cumsum(self.negatives[:, ::-1], axis=1, out=false[:, -2::-1])
        np.cumsum(self.positives[:, ::-1], axis=1, out=true[:, -2::-1])
        return false, true

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """False and true positive rates from the highest threshold down.

        Multiples of 2^-40: whether a rate is 1, or that of the next threshold, is then not decided
        by the last bits, which differ between machines.
        """
        rates = []
        for above, size in zip(self.above, self.sizes, strict=True):
            rate = above[:, ::-1] * (2.0**40 / np.maximum(size, 1e-9)[:, None])
            rates.append(np.multiply(np.rint(rate, out=rate), 2.0**-40, out=rate))
        return rates[0], rates[1]


def end_of(heights: Floats, level: float, side: int) -> Floats:
    """The lower (-1) or upper (1) end of the interval at each place by itself."""
    end = (1 + side * min(level, TAIL)) / 2
    if level <= TAIL:
        return np.asarray(np.quantile(heights, end, axis=0))
    middle, last = np.quantile(heights, [0.5, end], axis=0)
    return np.asarray(middle + (last - middle) * normal_deviations(level) / normal_deviations(TAIL))
