"""Intervals for a released AUC, AUC difference or average precision, and their sampling error."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.measure import MOST_NOISE, Interval, Measure
from heldout.intervals.noise import crossed, halved
from heldout.intervals.readings import Curve
from heldout.intervals.tuned import (
    CLASS_PRIOR,
    FURTHEST,
    LEAST_SHOWN,
    MISPLACED,
    MISSING_CLASS,
)
from heldout.kernel.noise.additive import Look
from heldout.kernel.ranking.mechanism import RankingDraw, RankingMechanism, RankSumDraw
from heldout.kernel.ranking.statistic import SQUARES, STEPS, InfluenceMoments

# --- Sampling error from released placements: how far each row pulls at an area or at precision --
#
# A coarse noisy score table, cheap, says where a score stands among either class. By these places a
# row's influence on the metric is known from the row alone, so that the second moment of the rows'
# influences (`InfluenceMoments`) can be bought for little; it is the metric's sampling variance.
# All here is arithmetic on released numbers.


CELLS: Final = 64


@dataclass(frozen=True, eq=False)
class Scatter:
    """Weighted candidates for the sampling variance, in units of what a formula assumes."""

    ratios: Any
    weights: Any

    @classmethod
    def assumed(cls) -> "Scatter":
        return cls(np.ones(1), np.ones(1))

    @classmethod
    def around(cls, ratio: float, *, spread: float) -> "Scatter":
        """Candidates about this ratio, whose logarithms have a standard deviation of `spread`."""
        steps = np.linspace(-3.5, 3.5, 25)
        weights = np.exp(-(steps**2) / 2)
        return cls(ratio * np.exp(spread * steps), weights / weights.sum())

    @classmethod
    def seen(cls, ratio: float, *, scale: float, prior: "Scatter") -> "Scatter":
        """Update the belief by a noisy ratio that was released, with Laplace noise of this scale.

        Placements by a coarse table are wrong by a little, which counts as more noise.
        """
        seen = min(max(ratio, float(prior.ratios.min())), float(prior.ratios.max()))
        width = scale + MISPLACED * prior.ratios
        logs = np.log(prior.weights / width) - np.abs(seen - prior.ratios) / width
        weights = np.exp(logs - logs.max())
        return cls(prior.ratios, weights / weights.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """Each row's part in a metric's sampling error, by class and cell of the scores."""

    cuts: Any
    rival_cuts: Any | None = None
    negatives: Any
    positives: Any
    counts: tuple[float, float]
    """About how many negatives and positives there are."""
    bound: float

    def statistic(self, score_range: tuple[float, float]) -> InfluenceMoments:
        negatives, positives = (
            np.rint(np.clip(weights / self.bound, -1, 1) * STEPS).astype(int).ravel()
            for weights in (self.negatives, self.positives)
        )
        return InfluenceMoments(
            cuts=tuple(map(float, self.cuts)),
            rival_cuts=None if self.rival_cuts is None else tuple(map(float, self.rival_cuts)),
            negatives=tuple(negatives.tolist()),
            positives=tuple(positives.tolist()),
            score_range=score_range,
        )

    def typical_variance(self, shares: tuple[Any, Any]) -> float:
        """The sampling variance if the classes' rows lie in the cells by these shares."""
        terms = zip(shares, (self.negatives, self.positives), self.counts, strict=True)
        return float(sum(count * (share @ pulls**2) for share, pulls, count in terms))

    def variance(self, noisy: Any, *, scale: float) -> tuple[float, float]:
        """The sampling variance by the noisy moments, and the scale of its noise."""
        squares, *sums = (float(number) for number in noisy)
        step = self.bound / STEPS
        estimate, noise = (step**2 * STEPS / SQUARES * square for square in (squares, scale))
        for total, count in zip(sums, self.counts, strict=True):
            # Twice the scale squared is what the noise adds to the square of a sum.
            estimate -= step**2 * (total**2 - 2 * scale**2) / max(count, 1.0)
            noise += step**2 * scale**2 / max(count, 1.0)
        return estimate, noise


def influence_on_area(curve: Curve, *, counts: tuple[float, float]) -> Influence:
    """A positive row's is its place among the negatives minus the area, over the positives."""
    cuts, below, above = _places(curve)
    m, n = counts
    negatives, positives = (above - curve.area) / m, (below - curve.area) / n
    bound = float(max(np.abs(negatives).max(), np.abs(positives).max()))
    return Influence(
        cuts=cuts, negatives=negatives, positives=positives, counts=counts, bound=bound
    )


def influence_on_difference(
    curve: Curve, rival: Curve, *, counts: tuple[float, float]
) -> Influence:
    """The rival's area minus the first one's: the difference of a row's two placements."""
    m, n = counts
    (cuts, *places), (rival_cuts, *rival_places) = _places(curve), _places(rival)
    # Of the positives among the negatives, and of the negatives among the positives.
    furthest = [
        FURTHEST * math.sqrt(sum(_spread(side, by_class) for side in (curve, rival)))
        for by_class in (1, 0)
    ]
    positives, negatives = (
        np.clip(other[None, :] - own[:, None], -most, most) / count
        for own, other, most, count in zip(places, rival_places, furthest, (n, m), strict=True)
    )
    return Influence(
        cuts=cuts,
        rival_cuts=rival_cuts,
        negatives=negatives,
        positives=positives,
        counts=counts,
        bound=max(furthest[0] / n, furthest[1] / m),
    )


def _spread(curve: Curve, by_class: int) -> float:
    """The variance of the placements of positives (1) or negatives (0), at least 1/50."""
    place, of = (1 - curve.fpr, curve.tpr) if by_class else (curve.tpr, curve.fpr)
    middle, steps = (place[1:] + place[:-1]) / 2, np.diff(of)
    return max(float(steps @ middle**2) - float(steps @ middle) ** 2, 0.02)


def influence_on_precision(curve: Curve, *, counts: tuple[float, float]) -> Influence:
    """Average precision: the rows change the precision of others and have one of their own."""
    cuts, below, above = _places(curve)
    m, n = counts
    share = n / (n + m)
    false, true = 1 - below, above
    _, positives_in = cell_shares(curve, cuts)
    called = share * true + (1 - share) * false
    precision = share * true / called
    mean = float(positives_in @ precision)
    by_true = share * (1 - share) * false / called**2
    by_false = -share * (1 - share) * true / called**2
    by_share = float(positives_in @ (true * false / called**2))

    def reach(slopes: Floats, rates: Floats) -> Floats:
        """The mean over positives s of slope(s) * (1 if the row is above s, minus the rate)."""
        terms = positives_in * slopes
        result: Floats = np.cumsum(terms) - terms / 2 - float(terms @ rates)
        return result

    rows = n + m
    positives = (precision - mean + reach(by_true, true)) / n + by_share * (1 - share) / rows
    negatives = reach(by_false, false) / m - by_share * share / rows
    bound = float(max(np.abs(negatives).max(), np.abs(positives).max()))
    return Influence(
        cuts=cuts, negatives=negatives, positives=positives, counts=counts, bound=bound
    )


def _places(curve: Curve) -> tuple[Any, Any, Any]:
    """Cut points upwards, and by cell the shares of negatives below and of positives above."""
    level = (curve.fpr + curve.tpr) / 2
    wanted = np.arange(1, CELLS) / CELLS
    cuts = np.unique(np.interp(wanted, level, curve.thresholds))
    false, true = _rates(curve, cuts)
    false, true = (np.concatenate([[1.0], rate, [0.0]]) for rate in (false, true))
    return cuts, 1 - (false[1:] + false[:-1]) / 2, (true[1:] + true[:-1]) / 2


def cell_shares(curve: Curve, cuts: Any) -> tuple[Any, Any]:
    """Return which share of the negatives, and of the positives, the curve has in each cell."""
    false, true = (-np.diff(rate, prepend=1.0, append=0.0) for rate in _rates(curve, cuts))
    return false, true


def _rates(curve: Curve, thresholds: Any) -> tuple[Any, Any]:
    rising = curve.thresholds[::-1]
    return (
        np.interp(thresholds, rising, curve.fpr[::-1]),
        np.interp(thresholds, rising, curve.tpr[::-1]),
    )


# --- Intervals for a released AUC, AUC difference or average precision ---------------------------
#
# Nothing that was not released enters. What the noisy counts say about the true ones is a belief,
# a list of weighted candidates; the noise of the value is then a mixture over the candidates. The
# weights favour small classes (CLASS_PRIOR), which is what makes the intervals hold for every true
# class count and not only on average; tests/intervals/test_auc_interval.py measures it.


_REACH: Final = 12.0
_SPACING: Final = 0.25
_NODES: Final = 100
_POPULATION_NODES: Final = 32
_TABLE_SIZE: Final = 1025
_PLACES: Final = 33
_ROUNDS: Final = 6
Tail: TypeAlias = Callable[[Floats], Floats]


class NoisyValue(Protocol):
    """A value from 0 to 1 as it was drawn, with the law of its noise."""

    @property
    def metric(self) -> str: ...
    @property
    def unclamped(self) -> float: ...
    @property
    def value(self) -> float: ...
    @property
    def law(self) -> "NoiseTail": ...


class NoiseTail(Protocol):
    """Tells how far a noise goes: what intervals ask of its law."""

    def survival(self, rungs: Any, distance: Any) -> Floats: ...


Counted: TypeAlias = RankingDraw | RankSumDraw
"""A noisy value with noisy counts of the classes beside it."""


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
        weights = (1 / max(positives, 1), 1 / max(negatives, 1))
        return cls(np.array([float(rung)]), np.array([1.0]), *weights)


def _log_likelihood(look: Look, true: Floats, which: int) -> Floats:
    distance = np.abs(true - look.counts[which]) / look.scale
    return -distance if look.terms == 1 else np.log1p(distance) - distance


def believe_size(look: Look, *, rows_per_unit: int, most: int | None) -> Belief:
    """Return what a noisy size says of the rung, where the rung is that size over k.

    The size also stands for the number of rows that sampling error goes by.
    """
    sizes, weights, none = _candidates([look], 0, most, ends=(0,))
    weights = weights * (1 + CLASS_PRIOR * look.spread / np.maximum(sizes, 0.5))
    weights = weights / weights.sum()
    rungs, rung_weights = _condensed(sizes / rows_per_unit, weights, _NODES)
    per_row = float((weights / np.maximum(sizes, 1.0)).sum())
    return Belief(rungs, rung_weights, per_row, per_row, no_ranking=none >= MISSING_CLASS)


def belief(draw: Counted, others: Sequence[Look] = ()) -> Belief | None:
    """Return what the noisy counts say, its own and others of the same rows; None without any."""
    return _belief_after(draw, _looks(draw, others))


def belief_if_shown(
    draw: Counted, others: Sequence[Look], is_shown: Callable[[Belief], bool]
) -> Belief | None:
    """Return the belief, given that the number is shown.

    It is shown if `is_shown` of the belief, and so if noise made a small class look large. Of such
    draws the noisy count says less: a class below the least count that is shown explains it as well
    as a class of that count does, because the tail of Laplace noise has no memory.
    """
    looks = _looks(draw, others)
    sharpest = min(looks, key=lambda look: look.spread)
    which = int(np.argmin(sharpest.counts)) if len(sharpest.counts) > 1 else 0
    rows, count = draw.mechanism.rows, sharpest.counts[which]
    turned = len(sharpest.counts) == 1 and not draw.mechanism.metric.startswith("average-precision")
    above = turned and rows is not None and count > rows / 2

    def with_count(count: float) -> list[Look]:
        counts = (*sharpest.counts[:which], count, *sharpest.counts[which + 1 :])
        return [replace(look, counts=counts) if look is sharpest else look for look in looks]

    def shown_at(count: float) -> bool:
        known = _belief_after(draw, with_count(count))
        return known is not None and is_shown(known)

    none = float(rows or 0) if above else 0.0
    if shown_at(none):
        return _belief_after(draw, looks)  # never hidden
    least = halved(shown_at, float(count), none, steps=7)[0]

    def given_shown(true: Floats) -> Floats:
        over = (true - least) / sharpest.spread * (-1 if above else 1)
        hidden = np.exp(-np.abs(over)) / 2
        chance: Floats = np.where(over >= 0, 1 - hidden, hidden)
        return chance

    return _belief_after(draw, looks, which=which, chance=given_shown)


def beliefs(
    draw: Counted, others: Sequence[Look], *, scatter: Scatter
) -> tuple[Belief | None, Belief | None]:
    """Return what the noisy counts say, and what they say given that the number is shown.

    Intervals are made of the second. Whether it is shown hangs on the first, as
    `Measure.informative` has it.
    """

    def is_shown(known: Belief) -> bool:
        return is_noise_within(draw, MOST_NOISE / 2, known=known)

    known = belief(draw, others)
    if known is None:
        return None, None
    given = belief_if_shown(draw, others, is_shown) if is_shown(known) else known
    return (
        replace(known, scatter=scatter),
        None if given is None else replace(given, scatter=scatter),
    )


def _looks(draw: Counted, others: Sequence[Look]) -> list[Look]:
    return [*(Look(counts, scale) for counts, scale in draw.looks), *others]


def _belief_after(
    draw: Counted,
    looks: Sequence[Look],
    *,
    which: int = 0,
    chance: Callable[[Floats], Floats] | None = None,
) -> Belief | None:
    """Believe these looks; `chance` is that of what was seen to be shown, by the true count."""
    mechanism = draw.mechanism
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
        positives, negatives = (grid.ravel() for grid in np.meshgrid(first, second))
        weights = np.outer(second_weights, first_weights).ravel()
    if chance is not None:
        weights = weights / np.maximum(chance((positives, negatives)[which]), LEAST_SHOWN)
    size = mechanism.local.rung_size(positives=positives, negatives=negatives)
    weights = weights * (1 + CLASS_PRIOR * scale / np.maximum(size, 0.5))
    weights = weights / weights.sum()
    rungs, rung_weights = _condensed(
        size / mechanism.local.protection.rows_per_unit, weights, _NODES
    )
    return Belief(
        rungs,
        rung_weights,
        float((weights / np.maximum(positives, 1.0)).sum()),
        float((weights / np.maximum(negatives, 1.0)).sum()),
        no_ranking=none >= MISSING_CLASS,
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

    def logarithm(true: Floats) -> Floats:
        result: Floats = np.sum([_log_likelihood(look, true, which) for look in looks], axis=0)
        return result

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
    positive = total > 0
    return mean[positive] / total[positive], total[positive]


def _believed(draw: NoisyValue) -> Belief | None:
    """Return what a draw's own noisy counts say; of one without them, nothing."""
    return belief(draw) if isinstance(draw, Counted) else None


# --- privacy noise alone -------------------------------------------------------------------------


def noise_interval(
    draw: NoisyValue, *, level: float = 0.95, known: Belief | None = None
) -> Interval:
    """Covers the value of these very rows; clamped to the metric's range.

    >>> from fractions import Fraction
    >>> from heldout.kernel.neighbours import Protection
    >>> from heldout.kernel.statistic import Sealed
    >>> from heldout.kernel.ranking.statistic import RankingStatistic
    >>> mechanism = RankingMechanism(metric="auc", epsilon=Fraction(1), rows=20_000,
    ...                              protection=Protection(neighbours="replace-one"))
    >>> draw = mechanism.sample(Sealed(RankingStatistic(Fraction(4, 5), 10_000, 10_000)))
    >>> low, high = noise_interval(draw)
    >>> 0.0002 < high - low < 0.0015
    True
    """
    # From the clamped number, which is nearer to every value there is: clamped after it is widened,
    # the interval of a number far outside would be short where it should be long.
    reach = noise_reach(draw, level=level, known=known)
    return max(0.0, draw.value - reach), min(1.0, draw.value + reach)


def noise_reach(draw: NoisyValue, *, level: float = 0.95, known: Belief | None = None) -> float:
    """Return how far the noise goes at this level: by its law and the class counts alone."""
    candidates = known or _believed(draw)
    if candidates is None or candidates.no_ranking:
        return 1.0 + abs(draw.unclamped)
    beyond = _noise_tail(draw, candidates)
    # At this distance the interval is all of [0, 1]: there is no need to look further.
    return _falling_root(lambda far: beyond(far) - (1 - level), 1e-10, 1 + abs(draw.unclamped))


def is_noise_within(
    draw: NoisyValue, distance: float, *, level: float = 0.95, known: Belief
) -> bool:
    """Return whether the noise goes no further than a distance below 1, without looking how far."""
    if known.no_ranking:
        return False
    return float(_noise_tail(draw, known)(np.array([distance]))[0]) <= 1 - level


def _falling_root(function: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Return where a falling function of arrays crosses 0, searched on a logarithmic scale."""
    if function(np.array([high]))[0] > 0:
        return high
    ends = math.log(low), math.log(high)
    for _ in range(_ROUNDS):  # all places of a round take about as long as one
        places = np.linspace(*ends, _PLACES)
        last = int(np.argmax(function(np.exp(places)) <= 0))
        ends = float(places[max(last - 1, 0)]), float(places[last])
    return math.exp(ends[1])


def noisy_area(
    draw: NoisyValue, *, name: str, terms: str, known: Belief | None, shown: Belief | None
) -> Measure:
    """Return a noisy value from 0 to 1 with the intervals that a belief gives.

    `shown` is the belief by which it is shown or not.
    """

    def ends(level: float, noise: bool) -> Interval:
        return (noise_interval if noise else population_interval)(draw, level=level, known=known)

    def reach(level: float) -> float:
        return noise_reach(draw, level=level, known=shown)

    return Measure.read(draw.value, ends, name=name, terms=terms, share=float, reach=cache(reach))


# --- sampling error and noise --------------------------------------------------------------------


def population_interval(
    draw: NoisyValue,
    *,
    level: float = 0.95,
    known: Belief | None = None,
    centre: float | None = None,
) -> Interval:
    """Covers the value in the population that the rows were drawn from, and the noise interval.

    A candidate value is kept if the released number is not too far from it, under the sampling
    variance *at the candidate* (a score interval, so it never leaves [0, 1]) and the noise. The
    variance of an area is Hanley and McNeil's (1982), with the small-sample form of Newcombe
    (2006); of average precision the binomial one with n trials (Boyd 2014, section 4.3) and more.

    `known` and `centre` replace the belief and the released value, for comparisons in benchmarks.
    """
    candidates = known or _believed(draw)
    if candidates is None or candidates.no_ranking:
        return 0.0, 1.0
    least, most = (
        (1.0, 0.0) if centre is not None else noise_interval(draw, level=level, known=known)
    )
    candidates = candidates.condensed(_POPULATION_NODES)
    value = draw.value if centre is None else centre
    beyond = _tabulated(_noise_tail(draw, candidates), furthest=16 * (1 + abs(draw.unclamped)))

    def tail(theta: float, side: int) -> float:
        return (
            _upper_tail(draw, candidates, side * (value - theta), theta, beyond) - (1 - level) / 2
        )

    low = _rising_root(lambda theta: tail(theta, +1), value)
    gap = _rising_root(lambda gap: tail(1 - gap, -1), 1 - value)
    return min(low, 1 - gap, least), max(low, 1 - gap, most)


def is_plausible(draw: NoisyValue, theta: float, *, level: float = 0.95) -> bool:
    """Return whether the population interval holds theta, without looking for its ends."""
    candidates = _believed(draw)
    if candidates is None or candidates.no_ranking:
        return True
    least, most = noise_interval(draw, level=level)
    if least <= theta <= most:
        return True
    candidates = candidates.condensed(_POPULATION_NODES)
    above = draw.value - theta
    sides = (_upper_tail(draw, candidates, distance, theta) for distance in (above, -above))
    return min(sides) >= (1 - level) / 2


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


def _upper_tail(
    draw: NoisyValue,
    candidates: Belief,
    distance: float,
    theta: float,
    beyond: "Tail | None" = None,
) -> float:
    """P(sampling error + noise >= distance), as a sum over quantiles of the sampling error."""
    nodes, node_weights = _sampling_nodes(candidates.scatter)
    deviation = math.sqrt(_variance(draw.metric, theta, candidates))
    gaps = distance - deviation * nodes
    half = (beyond or _noise_tail(draw, candidates))(np.abs(gaps)) / 2
    return float(node_weights @ np.where(gaps >= 0, half, 1 - half))


def _noise_tail(draw: NoisyValue, candidates: Belief) -> Tail:
    """P(|noise| > distance), averaged over what is believed of the rungs."""

    def beyond(distance: Floats) -> Floats:
        tails = draw.law.survival(candidates.rungs[None, :], distance[:, None])
        result: Floats = tails @ candidates.weights
        return result

    return beyond


def _tabulated(tail: Tail, *, furthest: float) -> Tail:
    """Return the same by a table of logarithms that lines join: exact for a Laplace law."""
    distances = np.geomspace(1e-10, furthest, _TABLE_SIZE)
    logs = np.log(np.maximum(tail(distances), 1e-300))
    return lambda distance: np.exp(np.interp(distance, distances, logs))


def _sampling_nodes(scatter: Scatter) -> tuple[Any, Any]:
    """Normal errors, in assumed deviations, of each of the variances that are believed in."""
    nodes = np.linspace(-4.5, 4.5, 41)
    weights = np.exp(-(nodes**2) / 2)
    reach = np.outer(np.sqrt(scatter.ratios), nodes)
    return reach.ravel(), np.outer(scatter.weights, weights / weights.sum()).ravel()


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


def precision_difference_variance(theta: float, n: float, m: float) -> float:
    """Of half the difference of two average precisions, at most, if their correlation is not below
    zero: half of the variance of one of 1/2. Models that agree have much less."""
    return precision_variance(0.5, n, m) / 2


def concordance_variance(theta: float, n: float, m: float) -> float:
    """Of concordance with n comparable pairs for each row but one, at most.

    Each row's own share of concordant pairs is then all or nothing. Rows are less extreme: a tenth
    to a third of it is usual, which the released pull tells.
    """
    return 2 * max(theta * (1 - theta), 0.0) / n


VARIANCES: Final[dict[str, Callable[[float, float, float], float]]] = {
    "auc": area_variance,
    "average-precision": precision_variance,
    "auc-difference": difference_variance,
    "average-precision-difference": precision_difference_variance,
    "concordance": concordance_variance,
}


def two_sided_p_value(draw: NoisyValue, *, null: float = 0.5, known: Belief | None = None) -> float:
    """Return how surprising the released number is if the population's value is `null`. Free.

    For "auc-difference" the null 0.5 says that the two models are equally good.
    """
    candidates = known or _believed(draw)
    if candidates is None or candidates.no_ranking:
        return 1.0
    distance = abs(draw.unclamped - null)
    return min(1.0, 2 * _upper_tail(draw, candidates, distance, null))
