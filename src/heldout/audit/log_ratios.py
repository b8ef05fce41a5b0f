"""Compute the log-ratio of one output's probabilities on a table and on its neighbour.

Each function takes what a `heldout.audit.tape.Draw` recorded on two neighbours and returns the
loss of that draw: the sum of |difference|/scale for Laplace noise; for a choice, a ladder or a
median the largest log ratio over everything that could have come out; for a sparse vector, a noisy
maximum or a training the exact log ratio of what did come out.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from heldout.audit.events import Floats
from heldout.audit.tape import Draw, Tape
from heldout.kernel.events import price

_FAR: Final = 45.0
"""Scales of noise that are summed over; what lies beyond weighs less than 1e-19."""
_POINTS: Final = 400_000
GAUSSIAN: Final = "discrete Gaussian"


def laplace(first: Any, second: Any, scale: Fraction) -> Fraction:
    """Sum of |difference|/scale over coordinates, exactly.

    >>> laplace(np.array([3, 1]), np.array([2, 2]), Fraction(4))
    Fraction(1, 2)
    """
    moved = sum(abs(int(a) - int(b)) for a, b in zip(first, second, strict=True))
    return moved / Fraction(scale)


def gaussian(mechanism: Any, first: Any, second: Any) -> Fraction:
    """The zCDP loss, exactly: the sum of squared differences over 2 sigma^2.

    >>> from heldout.kernel.noise.additive import DiscreteGaussian
    >>> gaussian(DiscreteGaussian(Fraction(2), Fraction(1), 2), [0, 1], [1, 1])
    Fraction(1, 4)
    """
    moved = sum((int(a) - int(b)) ** 2 for a, b in zip(first, second, strict=True))
    return moved / (2 * Fraction(mechanism.sigma_squared))


def wishart(mechanism: Any, first: Any, second: Any) -> float:
    """The trace norm of what moved, over twice the scale: a bound that some outputs attain.

    >>> from heldout.kernel.noise.fits import WishartDifference
    >>> noise = WishartDifference(scale=Fraction(2), trace=4, size=2)
    >>> wishart(noise, [1, 0, 0], [0, 0, 3])
    1.0
    """
    size = mechanism.size
    matrix = np.zeros((size, size))
    moved = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
    above, right = np.triu_indices(size)
    matrix[above, right] = matrix[right, above] = moved
    return float(np.abs(np.linalg.eigvalsh(matrix)).sum()) / (2 * float(mechanism.scale))


_COUPLED: Final = 20


def parts(mechanism: Any, first: Any, second: Any) -> float:
    """The largest |difference|/scale of the sums when the units that both have are in one part.

    Parts are drawn anew, so this is one of the ways to couple the two: the loss is at most the
    largest over all of them.
    """
    random = np.random.default_rng(0)
    sides, keys = (first, second), []
    for side in sides:
        units: list[list[tuple[int, ...]]] = [[] for _ in range(side.units)]
        for row, unit in zip(side.rows.tolist(), side.unit.tolist(), strict=True):
            units[unit].append(tuple(row))
        keys.append([tuple(sorted(rows)) for rows in units])
    worst = 0.0
    for _ in range(_COUPLED):
        places: dict[Any, list[int]] = {}
        spare = int(random.integers(mechanism.parts))
        chosen = [int(random.integers(mechanism.parts)) for _ in keys[0]]
        for key, place in zip(keys[0], chosen, strict=True):
            places.setdefault(key, []).append(place)
        missing = [key for key in set(keys[0]) if keys[0].count(key) > keys[1].count(key)]
        spare = places[missing[0]].pop() if missing else spare
        own = [places[key].pop() if places.get(key) else spare for key in keys[1]]
        again: dict[Any, list[int]] = {}
        for key, place in zip(keys[1], own, strict=True):
            again.setdefault(key, []).append(place)
        # First in, first out: of equal rows the one that is new, if any, was placed last.
        other = [again[key].pop(0) if again.get(key) else spare for key in keys[0]]
        sums = [
            mechanism.sums(side, np.array(where, dtype=np.int64))
            for side, where in zip(sides, (other, own), strict=True)
        ]
        worst = max(worst, float(laplace(sums[0], sums[1], mechanism.noise.scale)))
    return worst


def choice(first: Any, second: Any) -> float:
    """The largest log ratio of weights * exp(-rate * penalties), each divided by its sum.

    >>> one = (np.array([1, 1]), np.array([0, 0]), Fraction(1))
    >>> two = (np.array([1, 1]), np.array([0, 2]), Fraction(1))
    >>> round(choice(one, two), 3)
    1.434
    """
    return float(np.abs(_log_chances(*first) - _log_chances(*second)).max())


def _log_chances(weights: Any, penalties: Any, rate: Fraction) -> Floats:
    own = np.log(weights.astype(float)) - float(rate) * penalties
    return np.asarray(own - np.logaddexp.reduce(own))


@lru_cache(maxsize=2**6)
def _of_choice(draw: Draw) -> Floats:
    """Return the logarithms of a draw that is compared with several others."""
    return _log_chances(*draw.exact)


# --- smooth noise --------------------------------------------------------------------------------


def smooth(law: Any, first: Any, second: Any) -> float:
    """The largest log ratio of densities for two values on two rungs.

    Between the points where a ladder's density has a corner its logarithm is a straight line, so
    that the corners of both are enough.
    """
    if (first[0], first[1]) == (second[0], second[1]):
        return 0.0
    values = [float(value) for value, _ in (first, second)]
    reached = [_reached(law, rung) for _, rung in (first, second)]
    at = np.concatenate(
        [[v, *(v - far), *(v + far)] for v, far in zip(values, reached, strict=True)]
    )
    both = [
        _log_density(law, rung, np.abs(at - v))
        for (_, rung), v in zip((first, second), values, strict=True)
    ]
    return float(np.abs(both[0] - both[1]).max())


def _log_density(law: Any, rung: int, far: Floats) -> Floats:
    if hasattr(law, "ladder"):
        return np.asarray(law.ladder.log_density(np.full(far.shape, rung), far))
    return np.asarray(law.log_density(far / law.scale(rung)) - math.log(law.scale(rung)))


def _reached(law: Any, rung: int) -> Floats:
    """Distances at which a ratio may be largest: corners, or a fine grid where there are none."""
    if hasattr(law, "ladder"):
        return _corners(law.ladder, rung)
    return np.asarray(law.scale(rung) * np.geomspace(1e-6, 1e9, 4000))


def _corners(ladder: Any, rung: int) -> Floats:
    """Distances at which the density of a rung has a corner, and one beyond them all."""
    heights = ladder._floats[0]
    step = ladder.step(rung)
    top = 0.0
    if step > 0:
        top = heights[step] + (rung - max(ladder.starts[step], 1) + 1) * ladder.scales[step]
    far = top - heights[: step + 1]
    return np.append(far[far > 0], max(top, ladder.scales[0]) * 4)


def medians(mechanism: Any, first: Any, second: Any) -> float:
    """The largest log ratio of two Cauchy densities, whose places and widths differ.

    The ratio is extreme where its derivative, a quadratic, is 0, and at the far ends.
    """
    beta, a = float(mechanism.beta), float(mechanism.a)
    (m, s), (n, t) = (
        (place, max(gap * math.exp(-beta * k) for gap, k in contenders) / a)
        for place, contenders in (first, second)
    )
    d, at = float(n - m), [0.0]
    if d != 0:
        b = s * s - t * t - d * d
        root = math.sqrt(b * b + 4 * d * d * s * s)
        at += [d, (-b + root) / (2 * d), (-b - root) / (2 * d)]
    logs = [math.log(s / t)]
    logs += [math.log(s / (y * y + s * s)) - math.log(t / ((y - d) ** 2 + t * t)) for y in at]
    return max(abs(ratio) for ratio in logs)


# --- comparisons of noisy numbers ----------------------------------------------------------------


def sparse(test: Any, first: Any, second: Any, given: Any) -> float:
    """Of a sparse vector's answers; where one positive answer ends it, of the worst of all.

    `first` and `second` are pairs: the queries, and the threshold of each.
    """
    if test.limit > 1:
        return realised_sparse(test, first, second, given)
    bars = _bars(test, first, second)
    logs = [_answers(test, side, bars) for side in (first, second)]
    places = range(len(first[0]) + 1)
    return max(abs(_first(*logs[0], bars, i) - _first(*logs[1], bars, i)) for i in places)


def realised_sparse(test: Any, first: Any, second: Any, given: Any) -> float:
    """Of these answers, whichever bar led to them."""
    bars = _bars(test, first, second)
    both = []
    for side in (first, second):
        above, below = _answers(test, side, bars)
        logs = sum(above[i] if positive else below[i] for i, positive in enumerate(given))
        both.append(float(np.logaddexp.reduce(bars[1] + logs)))
    return abs(both[0] - both[1])


def _bars(test: Any, *several: Any) -> tuple[Floats, Floats]:
    """Noise of the bar on a lattice, and the logarithm of its probability."""
    scale, wide = float(test.threshold_scale), float(test.query_scale)
    far = [query - bar for pair in several for query, bar in zip(*pair, strict=True)]
    reach = _FAR * scale + max(map(abs, far), default=0)
    step = max(1, math.ceil(2 * reach / _POINTS))
    noise = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
    assert step == 1 or step < min(scale, wide) / 50, "too coarse for an exact ratio"
    return noise.astype(np.float64), -np.abs(noise) / scale


def _answers(test: Any, queries: Any, bars: Any) -> tuple[list[Floats], list[Floats]]:
    """Logarithms of the chances to be above and below, for each query at each bar."""
    scale = float(test.query_scale)
    above, below = [], []
    for query, bar in zip(*queries, strict=True):
        at = bars[0] + (bar - query)
        # P(z >= x) = p^x/(1 + p) from x = 1 on, and 1 - p^(1 - x)/(1 + p) up to x = 0.
        whole = math.log1p(math.exp(-1 / scale))
        small = np.where(at >= 1, -at, at - 1) / scale - whole
        large = np.log1p(-np.exp(small))
        above.append(np.where(at >= 1, small, large))
        below.append(np.where(at >= 1, large, small))
    return above, below


def _first(above: Any, below: Any, bars: Any, place: int) -> float:
    """That the answer at `place` is the first positive one; at the end: that none is."""
    logs = bars[1] + sum(below[:place])
    if place < len(above):
        logs = logs + above[place]
    return float(np.logaddexp.reduce(logs))


def top_k(mechanism: Any, first: list[int], second: list[int], given: Any) -> float:
    """Of the names that came out, in their order."""
    law = _flips if type(mechanism).__name__ == "PermuteAndFlip" else _noisy_top_k
    return abs(law(mechanism, first, given) - law(mechanism, second, given))


def _flips(mechanism: Any, scores: list[int], given: Any) -> float:
    """Step by step: the chance to accept, over the number of those that do.

    E[1/(1 + others that accept)] is the integral over t of prod(1 - a + a t): a polynomial.
    """
    left, log = list(range(len(scores))), 0.0
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    at = (nodes + 1) / 2
    for place in given:
        largest = max(scores[i] for i in left)
        accept = {i: math.exp(-(largest - scores[i]) / float(mechanism.scale)) for i in left}
        others = np.prod([1 - accept[i] + accept[i] * at for i in left if i != place], axis=0)
        log += math.log(accept[place]) + math.log(float((weights * others).sum() / 2))
        left.remove(place)
    return log


def _noisy_top_k(mechanism: Any, scores: list[int], given: Any) -> float:
    """From the last winner to the first: what each noisy score may be, and those below it."""
    scale = float(mechanism.scale)
    values = np.arange(min(scores), max(scores) + math.ceil(_FAR * scale) + 1)
    one = -math.expm1(-1 / scale)

    def at(place: int) -> Floats:  # P(score + noise = value)
        far = values - scores[place]
        return np.where(far >= 0, one * np.exp(-np.maximum(far, 0) / scale), 0.0)

    def up_to(place: int, winner: int) -> Floats:  # P(score + noise comes after the winner's value)
        far = values - scores[place] + (1 if place > winner else 0)
        return np.where(far >= 1, -np.expm1(-np.maximum(far, 0) / scale), 0.0)

    last = given[-1]
    chance = at(last)
    for place in set(range(len(scores))) - set(given):
        chance = chance * up_to(place, last)
    for place, after in zip(given[-2::-1], given[:0:-1], strict=True):
        sums = np.cumsum(chance)
        chance = at(place) * (sums if after > place else np.append(0.0, sums[:-1]))
    return math.log(float(chance.sum()))


# --- what has an optimum inside ------------------------------------------------------------------


def objective(one: Draw, two: Draw) -> float:
    """Of a perturbed minimum: the noise that leads to it, its Jacobian, and the solver's part.

    Noise Z leads to the minimum t where f(Z) - Z = t, in lattice steps. f is a contraction, so that
    Z is found by iteration. The density of t is that of Z over |det(1 - f')|.
    """
    from heldout.kernel.noise.fits import SLACK

    mechanism, (noise, curved), (other, bent) = one.mechanism, _led_to(one), _led_to(two)
    far = float(mechanism.norm([abs(a - b) for a, b in zip(noise, other, strict=True)]))
    return (
        far / float(mechanism.inner.scale) + abs(curved - bent) + float(SLACK * mechanism.epsilon)
    )


@lru_cache(maxsize=2**6)
def _led_to(draw: Draw) -> tuple[list[int], float]:
    """Return the noise that leads to a draw's output, and the logarithm of its determinant."""
    noise = [0] * len(draw.output)
    for _ in range(500):
        new = [int(a) - int(t) for a, t in zip(draw.exact(noise), draw.output, strict=True)]
        moved = max(abs(a - b) for a, b in zip(new, noise, strict=True))
        noise = new
        if moved <= 2:
            break
    return noise, _log_determinant(draw.exact, noise, float(draw.mechanism.inner.scale))


def _log_determinant(minimum: Any, noise: list[int], scale: float) -> float:
    """log|det(1 - f')| by differences that are small beside the noise and large beside rounding."""
    width = max(1, round(scale / 64))
    slopes = []
    for i in range(len(noise)):
        ends = []
        for sign in (1, -1):
            at = list(noise)
            at[i] += sign * width
            ends.append(np.array([int(step) for step in minimum(at)], dtype=float))
        slopes.append((ends[0] - ends[1]) / (2 * width))
    return float(np.linalg.slogdet(np.eye(len(noise)) - np.array(slopes))[1])


def partitions(mechanism: Any, first: Any, second: Any, edges: Any) -> float:
    """An upper bound for DAWA's partition: the least shift of noise that keeps it the cheapest.

    As in proofs/dawa.md, but with the very costs of the two tables: only intervals of the chosen
    partition get other noise, and every detour between two of its edges must stay as dear.
    """
    from scipy.optimize import linprog

    moved = [np.asarray(b) - np.asarray(a) for a, b in zip(first, second, strict=True)]
    if not any(costs.any() for costs in moved):
        return 0.0
    return max(
        _shift(moved, edges, linprog), _shift([-costs for costs in moved], edges, linprog)
    ) / (float(mechanism.cost_scale))


def _shift(moved: Any, edges: Any, linprog: Any) -> float:
    edges = [int(edge) for edge in edges]
    own = [moved[(high - low).bit_length() - 1][low] for low, high in pairwise(edges)]
    rows, limits = [], []
    for start, low in enumerate(edges[:-1]):
        cheapest = _detours(moved, low, edges[-1])
        for end in range(start + 1, len(edges)):
            row = np.zeros(2 * len(own))
            row[start:end], row[len(own) + start : len(own) + end] = 1.0, -1.0
            rows.append(row)
            limits.append(cheapest[edges[end] - low] - sum(own[start:end]))
    shift = linprog(np.ones(2 * len(own)), A_ub=np.array(rows), b_ub=np.array(limits, dtype=float))
    assert shift.success
    return float(shift.fun)


def _detours(moved: Any, low: int, high: int) -> list[float]:
    """The least change of cost of any path from `low` to each later edge."""
    best = [0.0]
    for end in range(low + 1, high + 1):
        options = [
            best[end - 2**power - low] + float(costs[end - 2**power])
            for power, costs in enumerate(moved)
            if end - 2**power >= low
        ]
        best.append(min(options))
    return best


# --- the loss of all draws -----------------------------------------------------------------------


def losses_of(first: Tape, second: Tape) -> tuple[Fraction | float, float]:
    """Return the loss of all draws together, and the largest of one draw over its own claim.

    The first is exact where every draw has Laplace noise. It is rho where a draw has Gaussian
    noise, which has no largest ratio; there a pure loss counts half its square. Without the second
    a step that is too dear could hide behind others for which the pair is not the worst.
    """
    rho = any(draw.kind == GAUSSIAN for draw in first.draws)
    losses: list[tuple[Draw, Fraction | float]] = []
    bars: dict[int, list[tuple[Draw, Draw]]] = {}
    for one, two in zip(first.draws, second.draws, strict=True):
        if one.kind == "bar":  # all queries of one bar are one draw
            bars.setdefault(one.mechanism.paid, []).append((one, two))
        else:
            losses.append((one, LOSSES[one.kind](one, two)))
    losses += [(queries[0][0], _bar(queries)) for queries in bars.values()]
    total: Fraction | float = Fraction(0)
    steps: dict[object, tuple[Draw, Fraction | float]] = {}
    for one, loss in losses:
        total += loss**2 / 2 if rho and one.kind != GAUSSIAN else loss
        _, before = steps.get(one.whole or one, (one, 0))
        steps[one.whole or one] = one, before + loss
    claimed = [(loss, _claim_of(one)) for one, loss in steps.values()]
    return total, max((float(loss / claim) for loss, claim in claimed if claim), default=0.0)


@lru_cache(maxsize=2**12)
def _claim_of(draw: Draw) -> Fraction | None:
    """Return what the mechanism of a draw claims; None where it has no price of its own."""
    if not hasattr(draw.claims, "event"):
        return None
    own = price(draw.claims.event())
    return own.rho if draw.kind == GAUSSIAN else own.epsilon


def _vector(one: Draw, two: Draw) -> Fraction:
    return laplace(one.exact, two.exact, one.mechanism.scale)


def _sparse(one: Draw, two: Draw) -> float:
    first, second = ((draw.exact[0], [draw.exact[1]] * len(draw.exact[0])) for draw in (one, two))
    return sparse(one.mechanism, first, second, one.output)


def _bar(queries: list[tuple[Draw, Draw]]) -> float:
    """The booking of the bar pays for all of its answers."""
    first, second = (
        ([draw.exact for draw in side], [draw.mechanism.threshold for draw in side])
        for side in zip(*queries, strict=True)
    )
    given = [one.output for one, _ in queries]
    return realised_sparse(queries[0][0].mechanism.test, first, second, given)


LOSSES: Final[Mapping[str, Callable[[Draw, Draw], Fraction | float]]] = {
    "discrete Laplace": _vector,
    "class counts": _vector,
    "share of noise": _vector,
    GAUSSIAN: lambda one, two: gaussian(one.mechanism, one.exact, two.exact),
    "parts": lambda one, two: parts(one.mechanism, one.exact, two.exact),
    "Wishart": lambda one, two: wishart(one.mechanism, one.exact, two.exact),
    "order": lambda one, two: 0,
    "choice": lambda one, two: float(np.abs(_of_choice(one) - _of_choice(two)).max()),
    "smooth noise": lambda one, two: smooth(one.mechanism, one.exact, two.exact),
    "median": lambda one, two: medians(one.mechanism, one.exact, two.exact),
    "sparse vector": _sparse,
    "top k": lambda one, two: top_k(one.mechanism, one.exact, two.exact, one.output),
    "objective": objective,
    "partition": lambda one, two: partitions(one.mechanism, one.exact, two.exact, one.output),
}
"""The loss of a draw by its kind."""
