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
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from heldout.intervals.fieller import ratio_bounds, single_quantile
from heldout.intervals.normal import normal_quantile
from heldout.kernel.noise.tables.table import NoisyTable

__all__ = ["Band", "Rectangles", "evenly_filling", "normal_points", "rectangles"]

_DRAWS: Final = 3000
_MOST_SIMULATED: Final = 64  # bins; beyond, or without a known law, Bonferroni
_MARGIN: Final = 1.02  # for plugging in estimated rates


@dataclass(frozen=True, eq=False)
class Band:
    """A curve's lowest and highest value at each place."""

    at: Any
    low: Any
    high: Any

    @property
    def mean_width(self) -> float:
        return float(np.trapezoid(self.high - self.low, self.at))


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Bounds of the rates at the inner edges, highest first, and of the prevalence.

    Row 0 of `low` and `high` is the false positive rate, row 1 the true positive rate.
    """

    low: Any
    high: Any
    prevalence: tuple[float, float]

    def roc(self, fpr: Any, tpr: Any) -> Band:
        """The band of the ROC curve at each fpr; it always holds the released curve."""
        (fpr_low, tpr_low), (fpr_high, tpr_high) = self.low, self.high
        places = np.asarray(fpr)[:, None]
        high = np.where(fpr_low > places, tpr_high, 1.0).min(axis=1, initial=1.0)
        low = np.where(fpr_high <= places, tpr_low, 0.0).max(axis=1, initial=0.0)
        low[-1] = np.where(places[-1] >= 1, 1.0, low[-1])[0]
        return _holding(np.asarray(fpr), np.minimum(low, high), high, np.asarray(tpr))

    def precision(self, recall: Any, precision: Any) -> Band:
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


def _holding(at: Any, low: Any, high: Any, curve: Any) -> Band:
    return Band(at, np.minimum(low, curve), np.maximum(high, curve))


def rectangles(
    table: NoisyTable, *, level: float, simultaneous: bool, noise_only: bool
) -> Rectangles:
    """Bounds that hold with this confidence: all at once, or at each place by itself."""
    counts = np.stack([table.negatives, table.positives])[:, ::-1]
    above = np.cumsum(counts, axis=1)
    total = above[:, -1]
    held, rest = np.maximum(above[:, :-1], 0.0), np.maximum(total[:, None] - above[:, :-1], 0.0)
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
        quantile = max(quantile, together * _MARGIN)
    elif simultaneous:
        quantile = single_quantile(level, of=2 * table.bins)
    low, high = ratio_bounds(
        held,
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


def _shares(counts: Any, scales: Any) -> Any:
    """Each class's share of each bin, with a little of every bin so that none is lost."""
    held = np.maximum(counts, 0.0) + scales / 2
    return held / held.sum(axis=1, keepdims=True)


def _simulated_quantile(
    shares: Any, rows: Any, scales: Any, *, level: float, noise_only: bool
) -> float:
    """What the largest of all standardised deviations stays below with this probability."""
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
def evenly_filling(columns: int) -> Any:
    """Evenly filling numbers in (0, 1): multiples of the square roots of primes, modulo 1."""
    multiples = np.outer(np.arange(1, _DRAWS + 1), np.sqrt(_primes(columns).astype(np.float64)))
    filled = np.clip(multiples % 1.0, 1e-9, 1 - 1e-9)
    filled.setflags(write=False)
    return filled


@lru_cache(maxsize=2)
def normal_points(columns: int) -> Any:
    """The same as deviations of a normal law; an evaluation asks for them three times."""
    points = normal_quantile(evenly_filling(columns))
    points.setflags(write=False)
    return points


def _primes(count: int) -> Any:
    """The first ones, by a sieve.

    >>> _primes(6).tolist()
    [2, 3, 5, 7, 11, 13]
    """
    kept = np.ones(20 * count + 50, dtype=bool)
    kept[:2] = False
    for number in range(2, math.isqrt(len(kept)) + 1):
        if kept[number]:
            kept[number * number :: number] = False
    return np.flatnonzero(kept)[:count]


@lru_cache(maxsize=1)
def _normal_column() -> Any:
    return normal_quantile(np.arange(1, _DRAWS + 1) * np.pi % 1.0)
