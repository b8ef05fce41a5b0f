"""The expected curve of a family, given a noisy table and a noisy area."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from heldout.intervals.curve import Curve, grid_scores
from heldout.intervals.normal import normal_quantile
from heldout.kernel.noise.bisection import halved
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.questions.curves.area import class_belief
from heldout.questions.curves.bands import evenly_filling
from heldout.questions.curves.methods.heldout import NamedCounts, TableWithArea
from heldout.questions.curves.methods.influence import AreaBySum, worse_than_chance
from heldout.questions.curves.methods.monotone import monotone_cubic
from heldout.questions.curves.model import STOPS, Family, first_guess

__all__ = ["Fitted", "fitted"]

SOFTNESS: Final = 1.3  # in noise scales: nearer than that a residual counts squared, beyond plain
# E[psi'] and E[psi^2] of Laplace noise of scale 1, psi(r) = r/sqrt(r^2 + SOFTNESS^2).
CURVATURE: Final = 0.4738
GRADIENT: Final = 0.3071
NOISE_COST: Final = 3.55  # E[2 sqrt(r^2 + SOFTNESS^2)] of the same noise
STRAY: Final = 1.2
"""How much more rates stray at the table's edges than noise says; chosen as `threshold.BETWEEN`."""
LEAST_SEEN: Final = 3.0  # deviations of the noise of a class count
AREA_SCALES: Final = (1e-5, 1e2)
_STEP: Final = 1e-5
_ITERATIONS: Final = 30
_LOOKS: Final = 2
_ENOUGH: Final = 1e-3  # of minus twice the log likelihood
_FEW: Final = 16  # bins
_PAIRS: Final = 300
_WIDER: Final = 1.2  # deviations of the points that the mean is taken over
_HEAVIEST: Final = 20  # points that share the largest weight, so that no single one decides


@dataclass(frozen=True, eq=False)
class Fitted:
    """The expected member of the family, and how far the noise lets it stray."""

    table: TableWithArea
    score_range: tuple[float, float]
    family: Family
    residuals: Callable[[Any], tuple[Any, Any]]
    parameters: Any

    @cached_property
    def _covariance_root(self) -> Any:
        """Of the parameters: the sandwich of an estimate by softened distances of Laplace noise.

        A root of it, so that no variance read off it is below zero, however many rows there are.
        """
        _, distances, slopes, prior_slopes = _slopes(self.residuals, self.parameters)
        believed = 1 / (1 + self.family.doubt * distances**2)
        prior = np.sqrt(believed) * prior_slopes
        curved = _triangular(np.hstack([math.sqrt(CURVATURE) * slopes, prior]))
        strays = np.hstack([math.sqrt(GRADIENT) * slopes, prior])
        return np.linalg.solve(curved, np.linalg.solve(curved.T, strays))

    @property
    def table_scale(self) -> float:
        """Of the noise of a bin."""
        assert self.table.noise.scale is not None
        return float(self.table.noise.scale)

    @property
    def seen(self) -> bool:
        """Whether either class stands out of the noise; else the curve is what was believed."""
        noise = float(self.table.noise.above_deviation[:, 0].max())
        counts = [float(each.sum()) for each in (self.table.negatives, self.table.positives)]
        if self.table.rows is not None:  # what is missing of them is noise, of both alike
            missing, noise = self.table.rows - sum(counts), noise / math.sqrt(2)
            counts = [each + missing / 2 for each in counts]
        return min(counts) > LEAST_SEEN * noise

    @cached_property
    def unexplained(self) -> float:
        """How much further the noisy numbers are from the law than noise takes them; 1 if not."""
        noisy, _ = self.residuals(self.parameters[None])
        found = float(2 * np.sqrt(noisy**2 + SOFTNESS**2).mean())
        return max(found / NOISE_COST, 1.0)

    @cached_property
    def curve(self) -> Curve:
        return self._assembled(self.parameters)

    def rates_at(self, cuts: Any) -> tuple[Any, Any]:
        """False and true positive rate at grid points of which the last is beyond all scores."""
        curve, points = self.curve, self.table.points
        scores = grid_scores(cuts, points=points, score_range=self.score_range)[:-1]
        falling = curve.thresholds[::-1]
        false, true = (
            np.append(np.interp(scores, falling, rate[::-1]), 0.0)
            for rate in (curve.fpr, curve.tpr)
        )
        return false, true

    def stray(self, read: Callable[[Curve], Any]) -> Any:
        """The covariance of what is read off the curve, by its slopes in the parameters.

        Times `STRAY` squared: the family is believed beforehand, and curves are not of it; and the
        more so, the more it leaves unexplained.
        """
        here = np.asarray(read(self.curve))
        slopes = np.array(
            [
                (np.asarray(read(self._assembled(self.parameters + along))) - here) / _STEP
                for along in np.eye(len(self.parameters)) * _STEP
            ]
        )
        strays = STRAY * self.unexplained * slopes.T @ self._covariance_root
        return strays @ strays.T

    def _assembled(self, parameters: Any) -> Curve:
        rates = tuple(each[0] for each in self.family.curves(parameters[None]))
        classes = tuple(float(each[0]) for each in self.family.counts(parameters[None]))
        return _assembled(self.table, rates, classes, self.score_range)


def fitted(table: TableWithArea, *, score_range: tuple[float, float]) -> Fitted:
    """The posterior mean of the parameters; Laplace likelihoods, softened at zero.

    Around the maximum, which damped Gauss-Newton steps find. Where little is seen the posterior is
    lopsided, and its mean is nearer to the truth than its maximum. With many bins more is seen, and
    the maximum is kept: a mean of so many parameters would not have the area that was bought.

    Laplace noise of the counts and of the area enters at its own scale; that of an area that was
    drawn by itself goes by the smaller class, of which the table tells as much as its own noise
    lets it. A sum of influences is an area only as far as they are right: what it misses is read
    off the curve, and the curve is fitted again. Nothing random.
    """
    assert table.noise.scale is not None
    counts = np.stack([table.negatives, table.positives])[:, ::-1]
    scales = table.noise.scales[:, ::-1]
    turned = worse_than_chance(table.negatives, table.positives, scales=table.noise.scales)
    as_parts = counts[::-1] if turned else counts
    guess = first_guess(*as_parts, scale=float(table.noise.scale), rows=table.rows)
    family = Family(guess, rows_known=table.rows is not None, turned=turned)
    seen = [_Seen(np.arange(table.bins), counts, scales)]
    seen += [_Seen.between(table, each) for each in table.beside]

    def distances(told: tuple[float, float] | None, parameters: Any) -> tuple[Any, Any]:
        rates = family.curves(parameters)
        sizes = family.counts(parameters)[::-1]
        noisy = []
        for index, (rate, size) in enumerate(zip(rates, sizes, strict=True)):
            held = size[:, None] * (rate[:, :, -1] - rate[:, :, 0])
            for each in seen:
                summed = np.add.reduceat(held, each.starts, axis=1)
                noisy.append((each.counts[index] - summed) / each.scales[index])
        if told is not None:
            runs, heights = np.diff(rates[0]), (rates[1][:, :, 1:] + rates[1][:, :, :-1]) / 2
            area = (runs * heights).sum(axis=(1, 2))
            noisy.append(((told[0] - area) / told[1])[:, None])
        return np.concatenate(noisy, axis=1), family.prior(parameters)

    residuals = partial(distances, _told(table, None))
    best = _best_of_starts(residuals, family)
    for _ in range(_LOOKS if isinstance(table.area, AreaBySum) else 0):
        fit = Fitted(table, score_range, family, residuals, best)
        residuals = partial(distances, _told(table, fit))
        best = _minimised(residuals, best, family.doubt)
    if family.bins <= _FEW:
        best = _averaged(residuals, best, family.doubt)
    return Fitted(table, score_range, family, residuals, best)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Noisy counts of both classes, highest scores first."""

    starts: Any
    """Which bins of the table begin a part."""
    counts: Any
    scales: Any

    @classmethod
    def between(cls, table: TableWithArea, some: NamedCounts) -> "_Seen":
        ends = np.searchsorted(table.edges, some.edges)
        starts = np.append(0, (table.bins - ends)[::-1])
        return cls(starts, some.counts[:, ::-1], np.full(some.counts.shape, float(some.scale)))


def _told(table: TableWithArea, fit: Fitted | None) -> tuple[float, float] | None:
    """The noisy area, and the scale of its noise.

    A sum of influences is an area but for what the placements miss of both classes together, and of
    how many rows they are: that much is read off a curve, once there is one.
    """
    area = table.area
    if not isinstance(area, AreaBySum):
        return None if area is None else (area.unclamped, _area_scale(table, area))
    if fit is None:
        return area.value, area.scale
    curve, placed = fit.curve, area.placements
    false, true = fit.rates_at(placed.cuts)
    expected = area.expected(false, true, positives=curve.positives, negatives=curve.negatives)
    # Rows' own places between the cuts are in the sum; at the cuts it knows of straight lines.
    between = curve.area + float(np.trapezoid(true, false))
    ratio = placed.smaller / max(min(curve.positives, curve.negatives), placed.smaller / 4, 1e-9)
    return curve.area + ratio * (area.value - expected - between), ratio * area.scale


def _slopes(residuals: Any, here: Any) -> tuple[Any, Any, Any, Any]:
    """Noise and prior distances, and how each changes with each parameter."""
    noisy, prior = residuals(np.concatenate([here + np.eye(len(here)) * _STEP, here[None]]))
    moved = ((each[:-1] - each[-1]) / _STEP for each in (noisy, prior))
    return noisy[-1], prior[-1], *moved


def _area_scale(table: TableWithArea, area: RankingDraw) -> float:
    """The size that the noise of an area drawn by itself exceeds as often as Laplace its scale.

    Over all class counts that the table leaves possible: where it hides a class, the area's noise
    may be as large as that of few rows.
    """
    law, known = area.law, class_belief(table, area)

    def smaller(log_size: float) -> bool:
        beyond = law.survival(known.rungs, np.exp(log_size)) @ known.weights
        return bool(beyond > np.exp(-1.0))

    low, high = np.log(AREA_SCALES)
    return float(np.exp(halved(smaller, low, high, steps=20)[1]))


def _cost(residuals: Any, parameters: Any, doubt: Any) -> Any:
    """Prior distances squared and twice the softened noise, for each row of parameters.

    Where `doubt` is not 0, a prior distance counts squared only up to about one over its root, and
    by its logarithm beyond.
    """
    noisy, prior = residuals(parameters)
    squared = prior**2
    doubted = np.log1p(doubt * squared) / np.where(doubt > 0, doubt, 1.0)
    held = np.where(doubt > 0, doubted, squared)
    return 2 * np.sqrt(noisy**2 + SOFTNESS**2).sum(axis=1) + held.sum(axis=1)


def _curvature_root(residuals: Any, here: Any, doubt: Any) -> tuple[Any, Any]:
    """A root of the curvature of half the cost, by Gauss and Newton; and its gradient."""
    noisy, prior, slopes, prior_slopes = _slopes(residuals, here)
    weights = 1 / np.sqrt(noisy**2 + SOFTNESS**2)
    believed = 1 / (1 + doubt * prior**2)
    root = np.hstack([slopes * np.sqrt(weights), prior_slopes * np.sqrt(believed)])
    return root, slopes @ (weights * noisy) + prior_slopes @ (believed * prior)


def _triangular(root: Any) -> Any:
    """The triangular root R'R of the same matrix: exact where its square would lose all digits."""
    return np.linalg.qr(np.hstack([root, 3e-5 * np.eye(len(root))]).T, mode="r")


def _averaged(residuals: Any, best: Any, doubt: Any) -> Any:
    """The mean by importance: pairs of points on either side of the best, normal around it.

    The points fill the space evenly and are the same at each call: no privacy mechanism.
    """
    root = _triangular(_curvature_root(residuals, best, doubt)[0])
    normal = normal_quantile(evenly_filling(len(best))[:_PAIRS])
    normal = np.concatenate([normal, -normal])
    points = best + _WIDER * np.linalg.solve(root, normal.T).T
    logs = ((normal**2).sum(axis=1) - _cost(residuals, points, doubt)) / 2
    most = np.sort(logs)[-_HEAVIEST]
    weights = np.exp(np.minimum(logs - most, 0.0))
    return weights @ points / weights.sum()


def _best_of_starts(residuals: Any, family: Family) -> Any:
    """The parameters of least cost from what is believed beforehand, and from the counts as they
    are if that leaves more of them unexplained than noise does: a curve unlike the belief is too
    far from it to be found."""
    usual = _minimised(residuals, family.start(), family.doubt)
    noisy, _ = residuals(usual[None])
    if _cost(residuals, usual[None], family.doubt)[0] <= NOISE_COST * noisy.size:
        return usual
    found = np.stack([usual, _minimised(residuals, family.start_at_guess(), family.doubt)])
    return found[np.argmin(_cost(residuals, found, family.doubt))]


def _minimised(residuals: Any, start: Any, doubt: Any) -> Any:
    """The parameters of least cost, from `start`."""
    here, damping = start, 1e-2
    least = _cost(residuals, here[None], doubt)[0]
    for _ in range(_ITERATIONS):
        root, gradient = _curvature_root(residuals, here, doubt)
        curvature = root @ root.T
        for _ in range(8):
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
            furthest = 1.5 + np.abs(here) / 2
            step = np.clip(np.linalg.solve(damped, -gradient), -furthest, furthest)
            found = _cost(residuals, (here + step)[None], doubt)[0]
            if found < least:
                break
            damping *= 5
        else:
            return here
        here, won, least = here + step, least - found, found
        damping = max(damping / 5, 1e-7)
        if won < _ENOUGH:
            break
    return here


def _rising(rate: Any) -> Any:
    """Midway between the least rising curve above and the largest below."""
    rate = np.clip(rate, 0.0, 1.0)
    up, down = np.maximum.accumulate(rate), np.minimum.accumulate(rate[::-1])[::-1]
    return np.maximum.accumulate((up + down) / 2)


def _assembled(
    table: TableWithArea, rates: Any, classes: Any, score_range: tuple[float, float]
) -> Curve:
    """One rising curve with a threshold a point."""
    (fpr, tpr), (n, m) = rates, classes
    false, true = (_rising(np.append(each[:, :-1].ravel(), 1.0)) for each in (fpr, tpr))
    false[0] = true[0] = 0.0
    false[-1] = true[-1] = 1.0
    # Within a bin the rows of both classes together are spread smoothly over the scores.
    called = false * m + true * n + np.linspace(0.0, 1e-6 * (n + m), len(false))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)[::-1]
    at_edges = called[:: len(STOPS) - 1]
    thresholds = np.minimum.accumulate(monotone_cubic(at_edges, scores, called))
    thresholds[:: len(STOPS) - 1] = scores
    return Curve(fpr=false, tpr=true, thresholds=thresholds, positives=n, negatives=m)
