"""Intervals for a released AUC, AUC difference or average precision.

Nothing that was not released enters. What the noisy counts say about the true ones is a belief,
a list of weighted candidates; the noise of the value is then a mixture over the candidates. The
weights favour small classes (PRIOR below), which is what makes the intervals hold for every true
class count and not only on average; tests/intervals/test_auc_interval.py measures it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np

from heldout.intervals.influence import Scatter
from heldout.kernel.noise.bisection import crossed, halved
from heldout.kernel.ranking.mechanism import RankingDraw, RankingMechanism

__all__ = [
    "Belief",
    "Look",
    "area_variance",
    "belief",
    "difference_variance",
    "is_plausible",
    "noise_interval",
    "noise_reach",
    "population_interval",
    "precision_variance",
    "two_sided_p_value",
]

PRIOR: Final = 2.0  # a class count of k noise scales gets the weight 1 + PRIOR/k
MISSING: Final = 0.01  # a class may be missing if no rows explain the counts so well, of the best
_REACH: Final = 12.0
_SPACING: Final = 0.25
_NODES: Final = 100
_POPULATION_NODES: Final = 32
Interval = tuple[float, float]


@dataclass(frozen=True)
class Look:
    """Noisy class counts that were released: positives, and negatives if rows are not public."""

    counts: tuple[float, ...]
    scale: float
    terms: int = 1
    """Of how many discrete Laplace draws the noise of a count is the sum, 1 or 2."""

    @property
    def spread(self) -> float:
        """The scale of one draw that is as wide."""
        return self.scale * math.sqrt(self.terms)

    def log_likelihood(self, true: Any, which: int) -> Any:
        distance = np.abs(true - self.counts[which]) / self.scale
        return -distance if self.terms == 1 else np.log1p(distance) - distance


@dataclass(frozen=True)
class Belief:
    """Weighted candidates for the rung, and for the class counts that sampling error needs."""

    rungs: Any
    weights: Any
    per_positive: float  # the belief's mean of 1/n
    per_negative: float
    scatter: Scatter = field(default_factory=Scatter.assumed)
    no_ranking: bool = False
    """Whether noise alone may have made up a class: without it the value is set by definition, and
    the interval is all of the range."""

    def condensed(self, nodes: int) -> "Belief":
        """The same belief about the rung in fewer candidates."""
        rungs, weights = _condensed(self.rungs, self.weights, nodes)
        return replace(self, rungs=rungs, weights=weights)

    @classmethod
    def known(cls, mechanism: RankingMechanism, positives: int, negatives: int) -> "Belief":
        """For counts that are public: also what a benchmark compares with."""
        rung = mechanism.local.rung(positives=positives, negatives=negatives)
        each = (1 / max(positives, 1), 1 / max(negatives, 1))
        return cls(np.array([float(rung)]), np.array([1.0]), *each)


def belief(draw: RankingDraw, others: Sequence[Look] = ()) -> Belief | None:
    """What the noisy counts say, its own and others of the same rows; None if there are none."""
    mechanism = draw.mechanism
    looks = [*(Look(counts, scale) for counts, scale in draw.looks), *others]
    if not looks:
        return None
    scale = min(look.spread for look in looks)
    if len(looks[0].counts) == 1:
        rows = mechanism.rows or 0
        positives, weights, none = _candidates(looks, 0, rows, ends=(0, rows))
        negatives = rows - positives
    else:
        first, first_weights, no_first = _candidates(looks, 0, None, ends=(0,))
        second, second_weights, no_second = _candidates(looks, 1, None, ends=(0,))
        none = max(no_first, no_second)
        positives, negatives = (each.ravel() for each in np.meshgrid(first, second))
        weights = np.outer(second_weights, first_weights).ravel()
    size = mechanism.local.rung_size(positives=positives, negatives=negatives)
    weights = weights * (1 + PRIOR * scale / np.maximum(size, 0.5))
    weights = weights / weights.sum()
    rungs, rung_weights = _condensed(
        size / mechanism.local.protection.rows_per_unit, weights, _NODES
    )
    return Belief(
        rungs,
        rung_weights,
        float((weights / np.maximum(positives, 1.0)).sum()),
        float((weights / np.maximum(negatives, 1.0)).sum()),
        no_ranking=none >= MISSING,
    )


def _candidates(
    looks: Sequence[Look], which: int, most: int | None, *, ends: tuple[int, ...]
) -> tuple[Any, Any, float]:
    """True counts that could have given the noisy ones, their likelihoods, and that of the ends."""
    sharpest = min(looks, key=lambda look: look.spread)  # says where to search
    noisy, scale = sharpest.counts[which], sharpest.spread
    spacing = max(scale * _SPACING, 0.25)
    centre = float(max(noisy, 0) if most is None else min(max(noisy, 0), most))
    low = max(0.0, centre - _REACH * scale)
    high = centre + _REACH * scale if most is None else min(float(most), centre + _REACH * scale)
    cells = max(1, math.ceil((high - low) / spacing))
    edges = np.linspace(low, high, cells + 1)
    middles = (edges[:-1] + edges[1:]) / 2 if high > low else np.array([centre])

    def logarithm(true: Any) -> Any:
        return sum(look.log_likelihood(true, which) for look in looks)

    likelihoods = logarithm(middles)
    best = float(np.max(likelihoods))
    at_ends = math.exp(min(float(np.max(logarithm(np.array(ends)))) - best, 0.0))
    return middles, np.exp(likelihoods - best), at_ends


def _condensed(rungs: Any, weights: Any, nodes: int) -> tuple[Any, Any]:
    """Fewer candidates: cells of equal width in rung^-1/2, each at its mean."""
    if rungs.size <= nodes:
        return rungs, weights
    size = 1 / np.maximum(rungs, 1.0)
    place = np.sqrt(size)
    low, high = float(place.min()), float(place.max())
    cell = np.minimum((place - low) / max(high - low, 1e-300) * nodes, nodes - 1).astype(int)
    total = np.bincount(cell, weights=weights, minlength=nodes)
    mean = np.bincount(cell, weights=weights * rungs, minlength=nodes)
    kept = total > 0
    return mean[kept] / total[kept], total[kept]


# --- privacy noise alone -------------------------------------------------------------------------


def noise_interval(
    draw: RankingDraw, *, level: float = 0.95, known: Belief | None = None
) -> Interval:
    """Covers the value of these very rows; clamped to the metric's range.

    >>> from fractions import Fraction
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.sealed import Sealed
    >>> from heldout.kernel.ranking.mechanism import RankingStatistic
    >>> mechanism = RankingMechanism(metric="auc", epsilon=Fraction(1), rows=20_000,
    ...                              protection=Protection(neighbours="replace-one"))
    >>> draw = mechanism.sample(Sealed(RankingStatistic(Fraction(4, 5), 10_000, 10_000)))
    >>> low, high = noise_interval(draw)
    >>> 0.0002 < high - low < 0.0015
    True
    """
    reach = noise_reach(draw, level=level, known=known)
    low, high = draw.unclamped - reach, draw.unclamped + reach
    if low > 1 or high < 0:
        # No value is so near. From the clamped number, which is nearer to every value there is.
        low, high = draw.value - reach, draw.value + reach
    return max(0.0, low), min(1.0, high)


def noise_reach(draw: RankingDraw, *, level: float = 0.95, known: Belief | None = None) -> float:
    """How far the noise goes at this level: by its law and the class counts, not by the value."""
    candidates, law = known or belief(draw), draw.law
    if candidates is None or candidates.no_ranking:
        return 1.0 + abs(draw.unclamped)

    def beyond(distance: float) -> float:
        tails = law.survival(candidates.rungs, np.full(candidates.rungs.shape, distance))
        return float((candidates.weights * tails).sum()) - (1 - level)

    # At this distance the interval is all of [0, 1]: there is no need to look further.
    return _falling_root(beyond, 1e-10, 1 + abs(draw.unclamped))


def _falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0, searched on a logarithmic scale."""
    if function(high) > 0:
        return high
    above, ends = lambda log: function(math.exp(log)) > 0, (math.log(low), math.log(high))
    return math.exp(halved(above, *ends, steps=26)[1])


# --- sampling error and noise --------------------------------------------------------------------


def population_interval(
    draw: RankingDraw,
    *,
    level: float = 0.95,
    known: Belief | None = None,
    centre: float | None = None,
) -> Interval:
    """Covers the value in the population that the rows were drawn from.

    A candidate value is kept if the released number is not too far from it, under the sampling
    variance *at the candidate* (a score interval, so it never leaves [0, 1]) and the noise. The
    variance of an area is Hanley and McNeil's (1982), with the small-sample form of Newcombe
    (2006); of average precision the binomial one with n trials (Boyd 2014, section 4.3) and more.

    `known` and `centre` replace the belief and the released value, for comparisons in benchmarks.
    """
    candidates = known or belief(draw)
    if candidates is None or candidates.no_ranking:
        return 0.0, 1.0
    candidates = candidates.condensed(_POPULATION_NODES)
    value = draw.unclamped if centre is None else centre
    tail = (1 - level) / 2
    low = _rising_root(lambda theta: _tail_at(draw, candidates, value, theta, +1) - tail, value)
    gap = _rising_root(lambda gap: _tail_at(draw, candidates, value, 1 - gap, -1) - tail, 1 - value)
    return min(low, 1 - gap), max(low, 1 - gap)


def is_plausible(draw: RankingDraw, theta: float, *, level: float = 0.95) -> bool:
    """Whether the population interval holds theta, without looking for its ends."""
    candidates = belief(draw)
    if candidates is None or candidates.no_ranking:
        return True
    candidates = candidates.condensed(_POPULATION_NODES)
    sides = (_tail_at(draw, candidates, draw.unclamped, theta, side) for side in (+1, -1))
    return min(sides) >= (1 - level) / 2


def _tail_at(draw: RankingDraw, candidates: Belief, value: float, theta: float, side: int) -> float:
    """P(the released number is at least so far on this side of theta)."""
    return _upper_tail(draw, candidates, side * (value - theta), theta)


def _rising_root(function: Callable[[float], float], near: float) -> float:
    """The least argument in [0, 1] where a rising function is at least 0, or 1.

    It is looked for below `near` first, ever further away: an evaluation takes milliseconds.
    """
    low, high, reach, function = 0.0, 1.0, 2**-12, cache(function)
    if function(low) >= 0:
        return low
    if function(high) <= 0:
        return high
    while low < near - reach < high:
        if function(near - reach) < 0:
            low = near - reach
        else:
            high = near - reach
        reach *= 4
    return crossed(function, low, high, width=2**-24)


def _upper_tail(draw: RankingDraw, candidates: Belief, distance: float, theta: float) -> float:
    """P(sampling error + noise >= distance), as a double sum over quantiles of both."""
    nodes, node_weights = _sampling_nodes(candidates.scatter)
    deviation = math.sqrt(_variance(draw.mechanism.metric, theta, candidates))
    gaps = distance - deviation * nodes
    half = draw.law.survival(candidates.rungs[None, :], np.abs(gaps)[:, None]) / 2
    tails = np.where(gaps[:, None] >= 0, half, 1 - half)
    return float(node_weights @ tails @ candidates.weights)


def _sampling_nodes(scatter: Scatter) -> tuple[Any, Any]:
    """Normal errors, in assumed deviations, of each of the variances that are believed in."""
    nodes = np.linspace(-4.5, 4.5, 41)
    weights = np.exp(-(nodes**2) / 2)
    each = np.outer(np.sqrt(scatter.ratios), nodes)
    return each.ravel(), np.outer(scatter.weights, weights / weights.sum()).ravel()


def _variance(metric: str, theta: float, candidates: Belief) -> float:
    """The sampling variance of the metric where its population value is theta, as assumed."""
    return VARIANCES[metric](theta, 1 / candidates.per_positive, 1 / candidates.per_negative)


def area_variance(theta: float, n: float, m: float) -> float:
    """Of an area, for n positives and m negatives: Hanley and McNeil's, by Newcombe's method 5."""
    spread = max(theta * (1 - theta), 0.0)
    size = max((n + m) / 2 - 1, 1.0)
    first, second = (1 - theta) / (2 - theta), theta / (1 + theta)
    return spread * (1 + size * first + size * second) / (n * m)


def precision_variance(theta: float, n: float, m: float) -> float:
    """Of average precision: binomial, with a trial a positive row, and a fifth more.

    On calibrated, normal, beta and heavy-tailed scores at prevalences of .02 to .5 it was .56 to
    1.17 times the binomial one; tests of many groups tell a sixth too little.
    """
    return 1.2 * max(theta * (1 - theta), 0.0) / n


def difference_variance(theta: float, n: float, m: float) -> float:
    """Of half the difference of two areas, at most, if they are not negatively correlated.

    Half of the variance of one uninformative area. Models that agree have much less.
    """
    return (1 / n + 1 / m) / 24


VARIANCES: Final[dict[str, Callable[[float, float, float], float]]] = {
    "auc": area_variance,
    "average-precision": precision_variance,
    "auc-difference": difference_variance,
}


def two_sided_p_value(
    draw: RankingDraw, *, null: float = 0.5, known: Belief | None = None
) -> float:
    """How surprising the released number is if the population's value is `null`. Free.

    For "auc-difference" the null 0.5 says that the two models are equally good.
    """
    candidates = known or belief(draw)
    if candidates is None or candidates.no_ranking:
        return 1.0
    distance = abs(draw.unclamped - null)
    return min(1.0, 2 * _upper_tail(draw, candidates, distance, null))
