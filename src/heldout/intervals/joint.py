"""Read four noisy counts together, for metrics that are no ratio of two sums.

The counts that these rows may have are weighed by the known law of the noise, none below zero and
all adding up to a public number of rows; or, without one, small ones a little more. The
population's shares are weighed given the counts, by Jeffreys' law. Both are laid out on a fixed set
of points that fill the cube evenly, so the same release always has the same intervals. An interval
is the shortest one that holds its share of the weight, on a scale where the metric's range is
bounded; of the noise alone it leaves out no more than half of the rest on either side. That such
intervals cover is shown by simulation, in tests/intervals/test_contrasts.py.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from heldout.arrays import Bools, Floats, Ints
from heldout.intervals.measure import Interval
from heldout.intervals.readings import Contrast
from heldout.intervals.tuned import COUNT_PRIOR, NEAR_END

# --- Counts that add up to a public number, laid out by the law of the noise that was added to them
#
# Discrete Laplace noise of one scale, given its sum: the counts are drawn one after the other, each
# by its weight times the weight of all ways in which the later ones can make up the rest. So every
# point counts alike. Drawing all but one and weighing by the last would leave a handful of points
# where noise adds up to many scales, and intervals that are much too short there.


_REACH: Final = 10.0  # noise scales around what was drawn, beside what the noises add up to
_MOST_STEPS: Final = 192  # that a count's reach is divided into, where it holds more whole numbers


def laid_out(noisy: Any, scale: float, rows: int, uniform: Any) -> Floats:
    """Counts from 0 that add up to `rows`, one line for each point of the unit cube.

    >>> found = laid_out([4, -2, 1, 20], 2.0, 20, (np.arange(9.0).reshape(3, 3) + 0.5) / 9)
    >>> found.sum(axis=1).tolist(), bool(found.min() >= 0)
    ([20.0, 20.0, 20.0], True)
    """
    noisy = np.asarray(noisy, dtype=float)
    *few, rest = np.argsort(noisy, kind="stable")  # the largest is what the others leave
    clipped = np.maximum(noisy, 0.0)
    reach = np.ceil(_REACH * scale + abs(clipped.sum() - rows))
    low = np.clip(noisy - reach, 0.0, rows)[few]
    high = np.minimum(clipped + reach, rows)[few]
    step = max(1.0, np.ceil(float((high - low).max()) / (_MOST_STEPS - 1)))
    size = int(float((high - low).max()) // step) + 1
    along = step * np.arange(size)
    own = [_law(first + along, noisy[i], scale) for first, i in zip(low, few, strict=True)]
    left = _law(rows - low.sum() - step * np.arange(3 * size), noisy[rest], scale)
    index, one = np.arange(size), np.arange(2 * size)[:, None]
    third = own[2] + left[one + index]
    second = own[1] + _sum(third)[index[:, None] + index]
    first = own[0] + _sum(second)
    counts = np.empty((len(uniform), 4))
    line = np.zeros(len(uniform), dtype=int)
    for place, logs, i in zip(range(3), (first[None], second, third), few, strict=True):
        chosen, within = _chosen(logs, line, uniform[:, place])
        counts[:, i] = np.maximum(np.round(low[place] + step * (chosen + within - 0.5)), 0.0)
        line = line + chosen
    sums = counts[:, few].sum(axis=1, keepdims=True)
    counts[:, few] /= np.maximum(sums / max(rows, 1), 1.0)  # a wide cell may overshoot the rows
    counts[:, rest] = rows - counts[:, few].sum(axis=1)
    return np.maximum(counts, 0.0)


def _law(counts: Any, noisy: float, scale: float) -> Floats:
    """The log of a count's weight; one below 0 has none."""
    return np.where(counts >= 0, -np.abs(counts - noisy) / scale, -np.inf)


def _highest(logs: Any) -> Floats:
    most = logs.max(axis=-1, keepdims=True)
    return np.where(np.isfinite(most), most, 0.0)


def _sum(logs: Floats) -> Floats:
    """The log of the sum along the last axis."""
    most = _highest(logs)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(np.exp(logs - most).sum(axis=-1)) + most[..., 0]
        return result


def _chosen(logs: Any, line: Any, uniform: Any) -> tuple[Any, Any]:
    """By inversion, each in its own line: the place, and how far into it, from 0 to 1."""
    weights = np.exp(logs - _highest(logs))
    total = np.cumsum(weights, axis=1)
    whole = np.maximum(total[:, -1:], 1e-300)
    ends = (np.arange(len(logs))[:, None] + total / whole).ravel()
    size = logs.shape[1]
    place = np.clip(np.searchsorted(ends, line + uniform) - line * size, 0, size - 1)
    share = weights[line, place] / whole[line, 0]
    below = total[line, place] / whole[line, 0] - share
    return place, np.clip((uniform - below) / np.maximum(share, 1e-300), 0.0, 1.0)


_POINTS: Final = 4096
_CELLS: Final = 4
_PRIOR: Final = 0.5  # of Jeffreys, for each cell
_SMALL, _STEPS, _TERMS = 24.0, 6, 150  # of the gamma law's quantile


@dataclass(frozen=True, eq=False)
class Joint:
    """Disjoint counts as drawn, with independent discrete Laplace noise of one scale."""

    noisy: Any
    estimate: Any
    """The same, once what is missing of a public total is shared among them."""
    scale: float
    rows: int | None
    weight: Any = 1.0
    """What a row of each cell counts for; less than 1 where rows have weights."""
    tied: bool = False
    """Whether the first two add up to a public number, and the last two."""

    @property
    def _width(self) -> float:
        """The scale, no smaller than lets whole numbers over it stay finite."""
        return max(self.scale, 1e-280)

    @cached_property
    def _truths(self) -> tuple[Any, Any]:
        """Counts that may be true, and the weight of each."""
        if self.tied:
            return self._tied_truths, np.ones(_POINTS)
        if self.rows is not None:  # what noise adds to one of them it takes from the others
            return laid_out(self.noisy, self._width, self.rows, _cube()), np.ones(_POINTS)
        counts = _truncated(self.noisy, self._width, _cube()[:, :_CELLS])
        few = np.prod(1 + COUNT_PRIOR * self._width / np.maximum(counts, 0.5), axis=1)
        return counts, few / few.max()

    @cached_property
    def _tied_truths(self) -> Floats:
        """Counts of which either pair adds up to its total, by the law of the noise."""
        totals = np.asarray(self.noisy, dtype=float).reshape(2, 2).sum(axis=1)
        firsts = [
            _between(float(self.noisy[2 * pair]), self._width, float(totals[pair]), points)
            for pair, points in enumerate(_cube()[:, :2].T)
        ]
        columns = [
            part
            for first, total in zip(firsts, totals, strict=True)
            for part in (first, total - first)
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _shares(self) -> Floats:
        """Cells of the population that such rows may have been drawn from, up to their sum."""
        seen = np.maximum(self._truths[0], 0.0) / self.weight + _PRIOR
        result: Floats = self.weight * _gamma_quantile(seen, _cube()[:, _CELLS:], _normals())
        return result

    def value(self, contrast: Contrast) -> float:
        """The contrast of the counts as drawn, held to what counts can be."""
        value = float(contrast(np.maximum(self.estimate, 0.0)))
        return contrast.neutral if np.isnan(value) else value

    def noise_interval(self, contrast: Contrast, level: float) -> Interval:
        """Covers the contrast of the true counts of these rows."""
        truths, weights = self._truths
        values = contrast(truths)
        # Where few positives are found, noise that adds to them pushes all of the weight to one end
        # of the range; the shortest interval then leaves out too much on the other side.
        both = [law(contrast, values, weights, level) for law in (_shortest, _central)]
        low, high = min(ends[0] for ends in both), max(ends[1] for ends in both)
        corners = self._corners(contrast, level)
        near = 1e-9 * (contrast.high - contrast.low)  # what rounding may leave
        if np.any(corners <= contrast.low + near):
            low = contrast.low
        if np.any(corners >= contrast.high - near):
            high = contrast.high
        return low, high

    def _corners(self, contrast: Contrast, level: float) -> Floats:
        """Its values where some of the cells that noise alone can explain are empty.

        A model without a mistake has two such cells, and few of the points lie near that corner.
        """
        explained = np.asarray(self.noisy) <= -self.scale * np.log(1 - level) + 0.5
        if self.tied:
            return contrast(self._tied_corners(explained))
        empty = np.array(list(product((False, True), repeat=_CELLS))) & explained
        return contrast(np.where(empty, 0.0, np.maximum(self.estimate, 1.0)))

    def _tied_corners(self, explained: Bools) -> Floats:
        """Return counts where what noise can explain is empty, and its fellow has the total."""
        ends = []
        for pair in (0, 1):
            first, second = np.maximum(self.estimate[2 * pair : 2 * pair + 2], 0.0)
            total, own = first + second, [(first, second)]
            own += [(0.0, total)] if explained[2 * pair] else []
            own += [(total, 0.0)] if explained[2 * pair + 1] else []
            ends.append(own)
        return np.array([[*first, *second] for first, second in product(*ends)])

    def interval(self, contrast: Contrast, level: float) -> Interval:
        """Covers the contrast in the population."""
        low, high = self.noise_interval(contrast, level)
        values = contrast(self._shares)
        for law in (_shortest, _central):
            ends = law(contrast, values, self._truths[1], level)
            low, high = min(low, ends[0]), max(high, ends[1])
        return low, high


@cache
def _cube() -> Floats:
    """Points that fill the unit cube evenly: an additive recurrence (Roberts 2018)."""
    dimension, golden = 2 * _CELLS, 2.0
    for _ in range(60):
        golden = (1 + golden) ** (1 / (dimension + 1))
    steps = golden ** -np.arange(1.0, dimension + 1)
    points = (0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1
    points.flags.writeable = False
    return points


@cache
def _normals() -> Floats:
    """The normal law's quantiles at the second half of the cube: 16,384, the same each time."""
    return _quantiles(_cube()[:, _CELLS:])


def _quantiles(share: Any) -> Floats:
    return np.fromiter(map(NormalDist().inv_cdf, share.flat), float).reshape(share.shape)


def _truncated(centres: Any, scale: float, uniform: Any) -> Floats:
    """Whole numbers from 0 with discrete Laplace weights around the centres, by inversion."""
    columns = []
    for centre, u in zip(np.asarray(centres, dtype=float), uniform.T, strict=True):
        edge = -0.5
        if centre <= edge:
            drawn = edge - scale * np.log1p(-u)
        else:
            below = np.exp((edge - centre) / scale) / 2
            at = below + u * (1 - below)
            low, high = np.log(2 * np.minimum(at, 0.5)), np.log(2 * np.minimum(1 - at, 0.5))
            drawn = centre + scale * np.where(at < 0.5, low, -high)
        columns.append(np.maximum(np.round(drawn), 0.0))
    return np.stack(columns, axis=1)


def _between(centre: float, scale: float, most: float, uniform: Any) -> Floats:
    """Whole numbers from 0 to `most` with discrete Laplace weights around a centre, by inversion.

    >>> _between(-3.0, 1.0, 2.0, np.array([0.1, 0.5, 0.99])).tolist()
    [0.0, 0.0, 2.0]
    """

    def below(place: float) -> float:
        """Of the Laplace law, from the nearer end: no digits are lost in the tails."""
        return (
            math.exp((place - at) / scale) / 2
            if place <= at
            else 1 - math.exp((at - place) / scale) / 2
        )

    low, high = -0.5, most + 0.5
    at = min(max(centre, low), high)  # beyond the ends the law is that at the end
    first, last = below(low), below(high)
    share = np.clip(first + uniform * (last - first), 1e-300, 1 - 1e-16)
    left, right = np.log(2 * np.minimum(share, 0.5)), np.log(2 * np.minimum(1 - share, 0.5))
    drawn = at + scale * np.where(share < 0.5, left, -right)
    result: Floats = np.clip(np.round(drawn), 0.0, most) + 0.0  # -0.0 is 0.0
    return result


def _gamma_quantile(shape: Floats, share: Floats, normal: Floats | None = None) -> Floats:
    """Where gamma laws have this share below: scipy's `gammaincinv`, which takes 0.2 s to import.

    Wilson and Hilferty's cube of a normal law, within 0.0003 of the share; exactly where the
    shape is small, by Newton's method, which climbs to the root as log P is concave in log x.

    >>> _gamma_quantile(np.array([0.5, 1.0]), np.array([0.25, 0.5])).round(6).tolist()
    [0.050766, 0.693147]
    """
    normal = _quantiles(share) if normal is None else normal
    quantiles = shape * np.maximum(1 - 1 / (9 * shape) + normal / (3 * np.sqrt(shape)), 0.0) ** 3
    small = shape < _SMALL
    a, goal = shape[small], np.log(share[small])
    goal += np.fromiter(map(math.lgamma, a + 1), float)
    x = np.maximum(quantiles[small], np.exp(goal / a))  # P is at most x^a / gamma(a + 1)
    for _ in range(_STEPS):
        term = series = np.ones_like(x)
        for k in range(1, _TERMS):
            term = term * (x / (a + k))
            series = series + term
        # log P = a log x - x + log series - log gamma(a + 1), and its slope is a / series.
        x = x * np.exp((goal - a * np.log(x) + x - np.log(series)) * series / a)
    quantiles[small] = x
    result: Floats = quantiles
    return result


def _ordered(values: Any, weights: Any, level: float) -> tuple[Any, Any] | None:
    """The values that have a meaning, upwards, and the weight below each; None if too few have."""
    known = ~np.isnan(values) & (weights > 0)
    if weights[known].sum() < level * weights.sum():
        return None
    values, weights = values[known], weights[known]
    order = np.argsort(values, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    return values[order], total / total[-1]


def _central(contrast: Contrast, values: Any, weights: Any, level: float) -> Interval:
    """The interval with half of what is left on either side."""
    if (ordered := _ordered(values, weights, level)) is None:
        return (contrast.low, contrast.high)
    values, total = ordered
    tail = (1 - level) / 2
    first = int(np.searchsorted(total, tail, side="right")) - 1
    last = int(np.searchsorted(total, 1 - tail)) - 1
    return float(values[first]), float(values[last])


def _shortest(contrast: Contrast, values: Any, weights: Any, level: float) -> Interval:
    """The shortest interval with this share of the weight; to the range's end where it begins."""
    if (ordered := _ordered(values, weights, level)) is None:
        return (contrast.low, contrast.high)
    values, total = ordered
    ends = np.searchsorted(total, total[:-1] + level - 1e-12)
    starts = np.flatnonzero(ends < len(total))
    scaled = contrast.scaled(values)
    widths = scaled[ends[starts] - 1] - scaled[starts]
    best = int(starts[np.argmin(widths)])
    last = int(ends[best]) - 1
    near = NEAR_END * float(widths.min())
    bottom, top = (contrast.scaled(end) for end in (contrast.low, contrast.high))
    low = contrast.low if best == 0 and scaled[0] - bottom < near else values[best]
    high = contrast.high if last == len(values) - 1 and top - scaled[-1] < near else values[last]
    return float(low), float(high)


# --- Counts as people read them: none below zero, whole, and adding up to a public number ---------


def simplex(values: Floats, *, total: float) -> Floats:
    """The nearest array without a negative entry that adds up to `total`.

    >>> simplex(np.array([3.0, 1.0, -1.0]), total=3.0).tolist()
    [2.5, 0.5, 0.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    values = values - values.max()  # a common shift changes nothing, and keeps small totals exact
    falling = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = np.flatnonzero(falling - excess > 0)[-1]
    result: Floats = np.maximum(values - excess[last], 0.0)
    return result


def whole_numbers(values: Floats, *, total: int) -> Ints:
    """Whole numbers near the values, adding up to `total`: the largest remainders are rounded up.

    >>> whole_numbers(np.array([1.4, 0.8, 0.8]), total=3).tolist()
    [1, 1, 1]
    """
    values = np.asarray(values, dtype=np.float64)
    floors = np.floor(values).astype(np.int64)
    missing = int(total) - int(floors.sum())
    flat = floors.ravel()
    order = np.argsort((floors - values).ravel(), kind="stable")
    if missing > 0:
        flat[order[:missing]] += 1
    elif missing < 0:
        positive = [place for place in order[::-1] if flat[place] > 0]
        flat[positive[:-missing]] -= 1
    # Numbers beyond 2^53 are not whole to the last digit; what is left goes to the largest.
    flat[flat.argmax()] += int(total) - int(flat.sum())
    return flat.reshape(values.shape)
