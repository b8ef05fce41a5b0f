"""A curve fitted to a small table: what the sampling error of a ranking metric is worked out from.

The family is binormal, bent where rows say so. Bins run from the highest scores down. The
negatives' share of each bin is free. At the edges of the bins the true positive rate is
Phi(a + b Phi^-1(fpr) + bend), with a bend that is smooth beyond what the sampling of rows explains;
between the edges the curve is bent likewise. All of this is arithmetic on released numbers. It says
which influence each row is given before the moments of the influences are drawn, so that an answer
that was stored is read with the curve it was drawn by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.noise import normal_quantile, normal_share
from heldout.intervals.readings import Curve, grid_scores
from heldout.kernel.curves.heldout import worse_than_chance
from heldout.kernel.curves.published import monotone_cubic
from heldout.kernel.noise.tables import NoisyTable
from heldout.questions.curves.bands import evenly_filling

SOFTNESS: Final = 1.3  # in noise scales: nearer than that a residual counts squared, beyond plain
NOISE_COST: Final = 3.55  # E[2 sqrt(r^2 + SOFTNESS^2)] of Laplace noise of scale 1
_STEP: Final = 1e-5
_ITERATIONS: Final = 30
_ENOUGH: Final = 1e-3  # of minus twice the log likelihood
_FEW: Final = 16  # bins
_PAIRS: Final = 300
_WIDER: Final = 1.2  # deviations of the points that the mean is taken over
_HEAVIEST: Final = 20  # points that share the largest weight, so that no single one decides
STOPS: Final = np.array(
    [0, 0.003, 0.015, 0.05, 0.12, 0.25, 0.42, 0.6, 0.75, 0.88, 0.95, 0.985, 0.997, 1.0]
)
"""Places within a bin, as shares of its negatives, where the curve is evaluated."""
_ENDS: Final = STOPS[[0, -1]]
"""Those that say how many rows a bin holds, so all that a fit looks at."""

# What is believed beforehand, the same for all data; chosen by trials on the cells of
# benchmarks.roc_error, so figures on those cells flatter it (docs/curves.md has fresh ones).
SEPARATION: Final = (1.7, 1.1)  # mean and deviation of a: areas from 0.36 to 0.997
SPREAD: Final = 0.2  # deviation of log b
BEND: Final = (0.15, 3.0)  # deviation of the bend and how far it reaches, in probits
DOUBT: Final = 1 / 3  # a bend far beyond its deviation costs its logarithm: there are corners
SAMPLING: Final = 0.8  # how much of the sampling error of n rows the bend may follow
SHARES: Final = 5.0  # deviation of the log shares of bins; less fills bins that hold no negatives
ROUNDNESS: Final = (0.95, 0.3)  # 1: bent within bins, 0: straight
PREVALENCE: Final = (-0.5, 1.4)  # mean and deviation of the log odds
TOTAL: Final = 0.7  # deviation of the log of an unknown row count around its estimate
_TINY: Final = 1e-7

Residuals: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
Slopes: TypeAlias = tuple[Floats, Floats, Floats, Floats]


@lru_cache(maxsize=16)  # by the table itself: a plan fits it to ask on, and a reading to read
def fitted_curve(table: NoisyTable, *, score_range: tuple[float, float]) -> Curve:
    """The posterior mean of the parameters; Laplace likelihoods, softened at zero.

    Around the maximum, which damped Gauss-Newton steps find. Where little is seen the posterior is
    lopsided, and its mean is nearer to the truth than its maximum. Nothing random.
    """
    assert table.noise.scale is not None
    counts = np.stack([table.negatives, table.positives])[:, ::-1]
    scales = table.noise.scales[:, ::-1]
    turned = worse_than_chance(table.negatives, table.positives, scales=table.noise.scales)
    as_parts = counts[::-1] if turned else counts
    guess = first_guess(*as_parts, scale=float(table.noise.scale), rows=table.rows)
    family = Family(guess, rows_known=table.rows is not None, turned=turned)

    def residuals(parameters: Floats) -> tuple[Floats, Floats]:
        rates = family.curves(parameters, _ENDS)
        sizes = family.counts(parameters)[::-1]
        noisy = []
        for index, (rate, size) in enumerate(zip(rates, sizes, strict=True)):
            mass = size[:, None] * (rate[:, :, -1] - rate[:, :, 0])
            noisy.append((counts[index] - mass) / scales[index])
        return np.concatenate(noisy, axis=1), family.prior(parameters)

    best = _best_of_starts(residuals, family)
    if family.bins <= _FEW:
        best = _averaged(residuals, best, family.doubt)
    rates = tuple(rate[0] for rate in family.curves(best[None]))
    classes = tuple(float(size[0]) for size in family.counts(best[None]))
    return _assembled(table, rates, classes, score_range)


def _slopes(residuals: Residuals, here: Floats) -> Slopes:
    """Noise and prior distances, and how each changes with each parameter."""
    noisy, prior = residuals(np.concatenate([here + np.eye(len(here)) * _STEP, here[None]]))
    by_noisy, by_prior = ((residual[:-1] - residual[-1]) / _STEP for residual in (noisy, prior))
    return noisy[-1], prior[-1], by_noisy, by_prior


def _cost(noisy: Floats, prior: Floats, doubt: Floats) -> Floats:
    """Prior distances squared and twice the softened noise, for each row of distances.

    Where `doubt` is not 0, a prior distance counts squared only up to about one over its root, and
    by its logarithm beyond.
    """
    squared = prior**2
    doubted = np.log1p(doubt * squared) / np.where(doubt > 0, doubt, 1.0)
    cost = np.where(doubt > 0, doubted, squared)
    result: Floats = 2 * np.sqrt(noisy**2 + SOFTNESS**2).sum(axis=-1) + cost.sum(axis=-1)
    return result


def _curvature_root(at: Slopes, doubt: Floats) -> tuple[Floats, Floats]:
    """A root of the curvature of half the cost, by Gauss and Newton; and its gradient."""
    noisy, prior, slopes, prior_slopes = at
    weights = 1 / np.sqrt(noisy**2 + SOFTNESS**2)
    believed = 1 / (1 + doubt * prior**2)
    root = np.hstack([slopes * np.sqrt(weights), prior_slopes * np.sqrt(believed)])
    return root, slopes @ (weights * noisy) + prior_slopes @ (believed * prior)


def _triangular(root: Floats) -> Floats:
    """The triangular root R'R of the same matrix: exact where its square would lose all digits."""
    return np.asarray(np.linalg.qr(np.hstack([root, 3e-5 * np.eye(len(root))]).T, mode="r"))


def _averaged(residuals: Residuals, best: Floats, doubt: Floats) -> Floats:
    """The mean by importance: pairs of points on either side of the best, normal around it.

    The points fill the space evenly and are the same at each call: no privacy mechanism.
    """
    root = _triangular(_curvature_root(_slopes(residuals, best), doubt)[0])
    normal = _pairs(len(best))
    points = best + _WIDER * np.linalg.solve(root, normal.T).T
    logs = ((normal**2).sum(axis=1) - _cost(*residuals(points), doubt)) / 2
    most = np.sort(logs)[-_HEAVIEST]
    weights = np.exp(np.minimum(logs - most, 0.0))
    result: Floats = weights @ points / weights.sum()
    return result


@lru_cache(maxsize=4)
def _pairs(columns: int) -> Floats:
    normal = normal_quantile(evenly_filling(columns)[:_PAIRS])
    both = np.concatenate([normal, -normal])
    both.setflags(write=False)
    return both


def _best_of_starts(residuals: Residuals, family: "Family") -> Floats:
    """The parameters of least cost from what is believed beforehand, and from the counts as they
    are if that leaves more of them unexplained than noise does: a curve unlike the belief is too
    far from it to be found."""
    usual = _minimised(residuals, family.start(), family.doubt)
    noisy, prior = residuals(usual[None])
    if _cost(noisy, prior, family.doubt)[0] <= NOISE_COST * noisy.size:
        return usual
    ends = np.stack([usual, _minimised(residuals, family.start_at_guess(), family.doubt)])
    result: Floats = ends[np.argmin(_cost(*residuals(ends), family.doubt))]
    return result


def _minimised(residuals: Residuals, start: Floats, doubt: Floats) -> Floats:
    """The parameters of least cost, from `start`."""
    here, damping = start, 1e-2
    at = _slopes(residuals, here)
    least = float(_cost(*at[:2], doubt))
    for _ in range(_ITERATIONS):
        root, gradient = _curvature_root(at, doubt)
        curvature = root @ root.T
        for _ in range(8):
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
            furthest = 1.5 + np.abs(here) / 2
            step = np.clip(np.linalg.solve(damped, -gradient), -furthest, furthest)
            onwards = _slopes(residuals, here + step)  # most steps are taken
            cost = float(_cost(*onwards[:2], doubt))
            if cost < least:
                break
            damping *= 5
        else:
            return here
        here, at, won, least = here + step, onwards, least - cost, cost
        damping = max(damping / 5, 1e-7)
        if won < _ENOUGH:
            break
    return here


def _rising(rate: Floats) -> Floats:
    """Midway between the least rising curve above and the largest below."""
    rate = np.clip(rate, 0.0, 1.0)
    up, down = np.maximum.accumulate(rate), np.minimum.accumulate(rate[::-1])[::-1]
    return np.maximum.accumulate((up + down) / 2)


def _assembled(
    table: NoisyTable,
    rates: tuple[Floats, ...],
    classes: tuple[float, ...],
    score_range: tuple[float, float],
) -> Curve:
    """One rising curve with a threshold a point."""
    (fpr, tpr), (n, m) = rates, classes
    false, true = (_rising(np.append(rate[:, :-1].ravel(), 1.0)) for rate in (fpr, tpr))
    false[0] = true[0] = 0.0
    false[-1] = true[-1] = 1.0
    # Within a bin the rows of both classes together are spread smoothly over the scores.
    called = false * m + true * n + np.linspace(0.0, 1e-6 * (n + m), len(false))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)[::-1]
    at_edges = called[:: len(STOPS) - 1]
    thresholds = np.minimum.accumulate(monotone_cubic(at_edges, scores, called))
    thresholds[:: len(STOPS) - 1] = scores
    return Curve(fpr=false, tpr=true, thresholds=thresholds, positives=n, negatives=m)


@dataclass(frozen=True)
class Guess:
    """A first look at the table: rows in all, share of positives, and either class by bin."""

    total: float
    prevalence: float
    shares: Floats
    positive_shares: Floats

    @property
    def positives(self) -> float:
        return self.total * self.prevalence

    @property
    def negatives(self) -> float:
        return self.total - self.positives


def first_guess(negatives: Floats, positives: Floats, *, scale: float, rows: int | None) -> Guess:
    """Class counts drawn towards one half, and shares towards even, as the noise is large."""
    bins = len(negatives)
    noise = scale * np.sqrt(2.0 * bins)  # deviation of a class count
    n, m = float(positives.sum()), float(negatives.sum())
    if rows is None:
        total = max(n + m, 1.5 * noise, 2.0)
        variance = (noise / total) ** 2
    else:
        total = max(float(rows), 1.0)
        n += (total - n - m) / 2
        variance = (noise / total) ** 2 / 2
    prior = 0.05
    prevalence = (n / total * prior + 0.4 * variance) / (prior + variance)
    least = min(0.5, 1 / total)
    prevalence = min(max(prevalence, least), 1 - least)
    shares = []
    for counts, in_all in ((negatives, total * (1 - prevalence)), (positives, total * prevalence)):
        seen = np.maximum(counts, 0.0)
        weight = 1 / (1 + (noise / in_all) ** 2)
        blended = weight * seen / max(float(seen.sum()), 1e-9) + (1 - weight) / bins
        blended = np.maximum(blended, min(0.4 * scale / in_all, 0.3 / bins) + 1e-4)
        shares.append(blended / blended.sum())
    return Guess(total, float(prevalence), *shares)


class Family:
    """Curves by parameters; many at once, one a row of `parameters`.

    Of a model that is worse than chance the classes are `turned`: each takes the other's part, in
    the guess as well. What is believed is then the same of a model and of its opposite.

    Columns: log shares of the bins, a, log b, bends in units of their prior, roundness, log odds
    of the prevalence, log of the total over its guess.
    """

    def __init__(self, guess: Guess, *, rows_known: bool, turned: bool) -> None:
        self.guess = guess
        self.turned = turned
        self.bins = bins = len(guess.shares)
        self.total_deviation = 1e-3 if rows_known else TOTAL
        self.size = 2 * bins + 4
        self._root = self._bend_root(np.cumsum(guess.shares)[:-1])

    @property
    def doubt(self) -> Floats:
        """For each distance of `prior`: how soon it counts by its logarithm instead of squared."""
        doubts = np.zeros(2 * self.bins + 5)
        doubts[self.bins + 3 : 2 * self.bins + 2] = DOUBT
        return doubts

    def _bend_root(self, edges: Floats) -> Floats:
        """A square root of the prior covariance of the bends at the inner edges.

        Triangular, so each parameter is a step from what the edges before it make likely. A bend
        that may turn anywhere, and steps that may rarely be large, leave room for a corner: scores
        in two heaps have one. One that is smooth everywhere would round it off.
        """
        where = normal_quantile(np.clip(edges, 1e-6, 1 - 1e-6))
        deviation, reach = BEND
        gaps = where[:, None] - where[None, :]
        covariance = deviation**2 * np.exp(-np.abs(gaps) / reach)
        # Sampling: a Brownian bridge on a typical curve (a = 1), in probits.
        rate = np.clip(normal_share(1.0 + where), 1e-3, 1 - 1e-3)
        slope = np.exp(-(normal_quantile(rate) ** 2) / 2) / np.sqrt(2 * np.pi)
        bridge = np.minimum.outer(rate, rate) - np.outer(rate, rate)
        rows = max(self.guess.positives, 2.0)
        covariance += SAMPLING**2 * bridge / np.outer(slope, slope) / rows
        root = np.linalg.cholesky(covariance + 1e-6 * np.eye(len(edges)))
        return np.asarray(root, dtype=np.float64)

    def start(self) -> Floats:
        begin = np.zeros(self.size)
        logs = np.log(self.guess.shares)
        begin[: self.bins] = logs - logs.mean()
        begin[self.bins] = SEPARATION[0]
        begin[-3] = ROUNDNESS[0]
        begin[-2] = np.log(self.guess.prevalence / (1 - self.guess.prevalence))
        return begin

    def start_at_guess(self) -> Floats:
        """Where the curve passes through the guess at every edge.

        For curves far from what is believed: bends of many deviations are too far to walk to.
        """
        begin = self.start()
        false, true = (
            normal_quantile(np.clip(np.cumsum(shares)[:-1], _TINY, 1 - _TINY))
            for shares in (self.guess.shares, self.guess.positive_shares)
        )
        begin[self.bins] = np.median(true - false) if self.bins > 1 else 0.0
        bends = true - false - begin[self.bins]
        begin[self.bins + 2 : 2 * self.bins + 1] = np.linalg.solve(self._root, bends)
        return begin

    def curves(self, parameters: Floats, stops: Floats = STOPS) -> tuple[Floats, Floats]:
        """False and true positive rate: row, bin from the highest, place within the bin."""
        bins = self.bins
        logs = parameters[:, :bins]
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares = shares / shares.sum(axis=1, keepdims=True)
        starts = np.cumsum(shares, axis=1) - shares
        fpr = starts[:, :, None] + shares[:, :, None] * stops
        a, b = parameters[:, bins], np.exp(parameters[:, bins + 1])
        bend = parameters[:, bins + 2 : 2 * bins + 1] @ self._root.T
        at_ends = (bend[:, :1], bend, bend[:, -1:])
        ends = np.concatenate(at_ends, axis=1) if bins > 1 else np.zeros((len(a), 2))
        bent = ends[:, :-1, None] + (ends[:, 1:] - ends[:, :-1])[:, :, None] * stops
        probit = normal_quantile(np.clip(fpr, _TINY, 1 - _TINY))
        tpr = normal_share(a[:, None, None] + b[:, None, None] * probit + bent)
        tpr[:, 0, 0], tpr[:, -1, -1] = 0.0, 1.0
        start, stop = tpr[:, :, :1], tpr[:, :, -1:]
        straight = start + (stop - start) * stops
        tpr = straight + parameters[:, -3, None, None] * (tpr - straight)
        # A strong bend may overshoot within a bin; no curve does.
        tpr = np.clip(tpr, np.minimum(start, stop), np.maximum(start, stop))
        return (tpr, fpr) if self.turned else (fpr, tpr)

    def counts(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Positives and negatives."""
        total = self.guess.total * np.exp(np.clip(parameters[:, -1], -20, 20))
        positives = total / (1 + np.exp(np.clip(-parameters[:, -2], -40, 40)))
        return (total - positives, positives) if self.turned else (positives, total - positives)

    def prior(self, parameters: Floats) -> Floats:
        """Distances from what is believed beforehand, in deviations."""
        bins = self.bins
        logs = parameters[:, :bins]
        mean = logs.mean(axis=1, keepdims=True)
        centres = np.array([SEPARATION[0], 0.0])
        deviations = np.array([SEPARATION[1], SPREAD])
        last = np.array([ROUNDNESS[0], -PREVALENCE[0] if self.turned else PREVALENCE[0], 0.0])
        last_deviations = np.array([ROUNDNESS[1], PREVALENCE[1], self.total_deviation])
        return np.concatenate(
            [
                (logs - mean) / SHARES,
                mean / 5.0,
                (parameters[:, bins : bins + 2] - centres) / deviations,
                parameters[:, bins + 2 : 2 * bins + 1],
                (parameters[:, -3:] - last) / last_deviations,
            ],
            axis=1,
        )
