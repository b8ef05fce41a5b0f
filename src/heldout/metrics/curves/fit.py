"""The most likely curve of a family, given a noisy table and a noisy area."""

from typing import Any, Final

import numpy as np

from heldout.mechanisms.bisection import halved
from heldout.mechanisms.curves.heldout import TableWithArea
from heldout.mechanisms.curves.monotone import monotone_cubic
from heldout.metrics.curves.curve import Curve, grid_scores
from heldout.metrics.curves.model import STOPS, Family, Guess, first_guess

__all__ = ["fitted_curve"]

SOFTNESS: Final = 1.3  # in noise scales: nearer than that a residual counts squared, beyond plain
LEAST_AREA_SCALE: Final = 1e-5
_STEP: Final = 1e-5
_ITERATIONS: Final = 30
_ENOUGH: Final = 1e-3  # of minus twice the log likelihood


def fitted_curve(table: TableWithArea, *, score_range: tuple[float, float]) -> Curve:
    """Maximum posterior by damped Gauss-Newton steps; Laplace likelihoods, softened at zero.

    Laplace noise of the counts and of the area enters at its own scale; the area's is one over
    epsilon times the smaller class, which the first look at the table tells. Nothing random.
    """
    assert table.noise.scale is not None
    scale = float(table.noise.scale)
    negatives, positives = table.negatives[::-1], table.positives[::-1]
    guess = first_guess(negatives, positives, scale=scale, rows=table.rows)
    family = Family(guess, rows_known=table.rows is not None)
    area_scale = _area_scale(table, guess)

    def residuals(parameters: Any) -> tuple[Any, Any]:
        fpr, tpr = family.curves(parameters)
        n, m = family.counts(parameters)
        runs, heights = np.diff(fpr), (tpr[:, :, 1:] + tpr[:, :, :-1]) / 2
        area = (runs * heights).sum(axis=(1, 2))
        noisy = np.concatenate(
            [
                (negatives - m[:, None] * (fpr[:, :, -1] - fpr[:, :, 0])) / scale,
                (positives - n[:, None] * (tpr[:, :, -1] - tpr[:, :, 0])) / scale,
                ((table.area.unclamped - area) / area_scale)[:, None],
            ],
            axis=1,
        )
        return noisy, family.prior(parameters)

    best = _minimised(residuals, family.start())
    rates = tuple(each[0] for each in family.curves(best[None]))
    classes = tuple(float(each[0]) for each in family.counts(best[None]))
    return _assembled(table, rates, classes, score_range)


def _area_scale(table: TableWithArea, guess: Guess) -> float:
    """The size that the area's noise exceeds as often as Laplace noise exceeds its scale, to 1."""
    mechanism = table.area.mechanism
    size = mechanism.local.rung_size(positives=guess.positives, negatives=guess.negatives)
    rung = round(float(size)) // mechanism.protection.rows_per_unit

    def smaller(log_size: float) -> bool:
        return bool(table.area.law.survival(rung, np.exp(log_size)) > np.exp(-1.0))

    return float(np.exp(halved(smaller, np.log(LEAST_AREA_SCALE), 0.0, steps=16)[1]))


def _minimised(residuals: Any, start: Any) -> Any:
    """Least prior distance squared and twice the softened noise, from `start`."""

    def cost(noisy: Any, prior: Any) -> float:
        return float(2 * np.sqrt(noisy**2 + SOFTNESS**2).sum() + (prior**2).sum())

    here, damping = start, 1e-2
    nearby = np.eye(len(start)) * _STEP
    noisy, prior = residuals(here[None])
    least = cost(noisy[0], prior[0])
    for _ in range(_ITERATIONS):
        noisy, prior = residuals(np.concatenate([here + nearby, here[None]]))
        weights = 1 / np.sqrt(noisy[-1] ** 2 + SOFTNESS**2)
        slopes, prior_slopes = (noisy[:-1] - noisy[-1]) / _STEP, (prior[:-1] - prior[-1]) / _STEP
        curvature = (slopes * weights) @ slopes.T + prior_slopes @ prior_slopes.T
        gradient = slopes @ (weights * noisy[-1]) + prior_slopes @ prior[-1]
        for _ in range(8):
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
            step = np.clip(np.linalg.solve(damped, -gradient), -1.5, 1.5)
            found = cost(*(each[0] for each in residuals((here + step)[None])))
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


def _assembled(
    table: TableWithArea, rates: Any, classes: Any, score_range: tuple[float, float]
) -> Curve:
    """One rising curve with a threshold a point."""
    (fpr, tpr), (n, m) = rates, classes
    false = np.append(fpr[:, :-1].ravel(), 1.0)
    true = np.clip(np.append(tpr[:, :-1].ravel(), 1.0), 0.0, 1.0)
    # Midway between the least rising curve above and the largest below.
    up, down = np.maximum.accumulate(true), np.minimum.accumulate(true[::-1])[::-1]
    true = np.maximum.accumulate((up + down) / 2)
    false = np.maximum.accumulate(np.clip(false, 0.0, 1.0))
    false[0] = true[0] = 0.0
    false[-1] = true[-1] = 1.0
    # Within a bin the rows of both classes together are spread smoothly over the scores.
    called = false * m + true * n + np.linspace(0.0, 1e-6 * (n + m), len(false))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)[::-1]
    at_edges = called[:: len(STOPS) - 1]
    thresholds = np.minimum.accumulate(monotone_cubic(at_edges, scores, called))
    thresholds[:: len(STOPS) - 1] = scores
    return Curve(fpr=false, tpr=true, thresholds=thresholds, positives=n, negatives=m)
