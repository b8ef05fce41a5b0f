"""Many small data sets at once: areas and intervals of a whole batch of simulations.

Scores are continuous here, so there are no ties and everything follows from one table: how many
negatives lie above each positive. The public functions of `heldout.precision_recall` say the same
for one data set (a test compares them), only slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.precision_recall.geometry import area_between

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
STUDIED = ("average-precision", "interpolated-median", "lower-trapezoid")
"""The three estimators that the dissertation takes on to its intervals."""
_CELLS_IN_CACHE = 40_000


def negatives_above(positives: Floats, negatives: Floats) -> Counts:
    """Negatives above each positive, best positive first; one data set a row."""
    up = np.sort(positives, axis=1)[:, ::-1]
    down = np.sort(negatives, axis=1)
    m = down.shape[1]
    return np.stack([m - np.searchsorted(d, u) for u, d in zip(up, down, strict=True)])


def areas(above: Counts, negatives: int) -> dict[str, Floats]:
    """Every estimator that joins points, for each row of `above`."""
    rows, n = above.shape
    i = np.arange(1.0, n + 1.0)
    end = np.concatenate([above[:, 1:], np.full((rows, 1), negatives)], axis=1)
    highest, lowest = i / (i + above), i / (i + end)
    # The mean over i/(i+k), k = above..end, is a difference of harmonic numbers.
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + negatives + 1))])
    place = np.arange(1, n + 1)
    mean = i * (harmonic[place + end] - harmonic[place + above - 1]) / (end - above + 1)
    middle = (above + end) // 2, (above + end + 1) // 2
    median = 0.5 * (i / (i + middle[0]) + i / (i + middle[1]))
    first = (above[:, 0] == 0).astype(np.float64)
    return {
        "average-precision": highest.mean(axis=1),
        "lower-trapezoid": (first + lowest[:, :-1].sum(axis=1) + highest.sum(axis=1)) / (2 * n),
        "upper-trapezoid": (1.0 + highest[:, :-1].sum(axis=1) + highest.sum(axis=1)) / (2 * n),
        "interpolated-max": _interpolated(i / n, highest),
        "interpolated-mean": _interpolated(i / n, mean),
        "interpolated-median": _interpolated(i / n, median),
        "interpolated-convex": np.array([_convex(row, i) for row in above]),
    }


def studied_areas(above: Counts, negatives: int) -> dict[str, Floats]:
    """Only the estimators of `STUDIED`."""
    rows, n = above.shape
    i = np.arange(1.0, n + 1.0)
    end = np.concatenate([above[:, 1:], np.full((rows, 1), negatives)], axis=1)
    highest = i / (i + above)
    lowest = i[:-1] / (i[:-1] + above[:, 1:])
    middle = (above + end) // 2, (above + end + 1) // 2
    median = 0.5 * (i / (i + middle[0]) + i / (i + middle[1]))
    first = (above[:, 0] == 0).astype(np.float64)
    return {
        "average-precision": highest.mean(axis=1),
        "interpolated-median": _interpolated(i / n, median),
        "lower-trapezoid": (first + lowest.sum(axis=1) + highest.sum(axis=1)) / (2 * n),
    }


def binormal_areas(positives: Floats, negatives: Floats) -> Floats:
    """The binormal estimator of each row."""
    deviation = negatives.std(axis=1, ddof=1)
    n, m = positives.shape[1], negatives.shape[1]
    return exact_area(
        mean=(positives.mean(axis=1) - negatives.mean(axis=1)) / deviation,
        deviation=positives.std(axis=1, ddof=1) / deviation,
        prevalence=n / (n + m),
    )


def bootstrap_areas(
    above: Counts, negatives: int, replicates: int, random: Generator
) -> dict[str, Floats]:
    """Stratified bootstrap replicates of one data set, for `STUDIED`.

    Only counts are drawn: copies of each positive, and negatives in each gap between positives.
    Copies of one negative count as one threshold in the public function and as several here, which
    moves the median of a level by less than a step.
    """
    most = max(1, _CELLS_IN_CACHE // above.size)
    blocks = [
        _bootstrap_block(above, negatives, min(most, replicates - start), random)
        for start in range(0, replicates, most)
    ]
    return {name: np.concatenate([block[name] for block in blocks]) for name in STUDIED}


def _bootstrap_block(
    above: Counts, negatives: int, replicates: int, random: Generator
) -> dict[str, Floats]:
    n = above.size
    drawn = random.integers(0, n, size=(replicates, n))
    copies = _counts_by_row(drawn, n)
    gaps = np.diff(np.concatenate([[0], above, [negatives]]))
    fallen = random.multinomial(negatives, gaps / negatives, size=replicates)
    fp = np.cumsum(fallen[:, :-1], axis=1).astype(np.float64)
    tp = np.cumsum(copies, axis=1).astype(np.float64)
    before = tp - copies
    highest = tp / np.maximum(tp + fp, 1.0)
    lowest = np.where(before + fp > 0, before / np.maximum(before + fp, 1.0), 1.0)
    weight = copies / n
    # Positives that were not drawn make no level: look past them both ways.
    seen = copies > 0
    place = np.arange(n)
    upcoming = np.where(seen, place, n)
    upcoming = np.minimum.accumulate(upcoming[:, ::-1], axis=1)[:, ::-1]
    upcoming = np.concatenate([upcoming[:, 1:], np.full((replicates, 1), n)], axis=1)
    padded = np.concatenate([fp, np.full((replicates, 1), float(negatives))], axis=1)
    predicted = (tp + 0.5 * (fp + np.take_along_axis(padded, upcoming, axis=1))) / n
    previous = np.maximum.accumulate(np.where(seen, place + 1, 0), axis=1)
    previous = np.concatenate([np.zeros((replicates, 1), dtype=np.intp), previous[:, :-1]], axis=1)
    start = np.take_along_axis(
        np.concatenate([np.zeros((replicates, 1)), predicted], axis=1), previous, axis=1
    )
    pieces = area_between(
        (before / n)[seen], start[seen], (tp / n)[seen], np.maximum(predicted[seen], 1e-300)
    )
    starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))[:-1]])
    return {
        "average-precision": (weight * highest).sum(axis=1),
        "interpolated-median": np.add.reduceat(pieces, starts),
        "lower-trapezoid": (weight * 0.5 * (highest + lowest)).sum(axis=1),
    }


def fold_areas(positives: Floats, negatives: Floats, folds: int) -> dict[str, Floats]:
    """Areas of each fold, shaped (rows, folds); rows are random, so folds are taken in order."""
    parts: dict[str, list[Floats]] = {name: [] for name in STUDIED}
    for up, down in zip(
        np.array_split(positives, folds, axis=1),
        np.array_split(negatives, folds, axis=1),
        strict=True,
    ):
        found = studied_areas(negatives_above(up, down), down.shape[1])
        for name in STUDIED:
            parts[name].append(found[name])
    return {name: np.stack(values, axis=1) for name, values in parts.items()}


def _interpolated(recall: Floats, precision: Floats) -> Floats:
    predicted = recall / precision
    left = np.broadcast_to(recall[:-1], predicted[:, 1:].shape)
    right = np.broadcast_to(recall[1:], predicted[:, 1:].shape)
    pieces = area_between(left, predicted[:, :-1], right, predicted[:, 1:])
    return np.asarray(recall[0] * precision[:, 0] + pieces.sum(axis=1))


def _convex(above: Counts, i: Floats) -> float:
    from scipy.optimize import isotonic_regression

    knots = isotonic_regression(np.diff(above, prepend=0).astype(np.float64)).blocks[1:] - 1
    recall = i[knots] / i.size
    predicted = (i[knots] + above[knots]) / i.size
    left, start = np.concatenate([[0.0], recall[:-1]]), np.concatenate([[0.0], predicted[:-1]])
    return float(area_between(left, start, recall, predicted).sum())


def _counts_by_row(drawn: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    rows = drawn.shape[0]
    flat = drawn + np.arange(rows)[:, None] * size
    return np.bincount(flat.ravel(), minlength=rows * size).reshape(rows, size)


_REACH = 12.0  # standard normal quantiles beyond this weigh less than 1e-32
_STEP = 0.1


def exact_area(*, mean: ArrayLike, deviation: ArrayLike, prevalence: ArrayLike) -> Floats:
    """Return areas of many models at once; the three arguments broadcast.

    The step shrinks where the positives spread wider than the negatives.
    """
    from scipy.special import log_ndtr

    a, b, pi = (
        np.asarray(v, dtype=np.float64)[..., None]
        for v in np.broadcast_arrays(mean, deviation, prevalence)
    )
    widest = float(np.max(b, initial=1.0))
    steps = int(np.ceil(2 * _REACH / _STEP * min(max(1.0, widest), 100.0)))
    u = np.linspace(-_REACH, _REACH, steps + 1)
    density = np.exp(-0.5 * u * u)
    density /= density.sum()
    # Ratios of far tails: 0/0 in plain numbers, a plain difference on the log scale.
    tail = np.exp(np.clip(log_ndtr(b * u - a) - log_ndtr(u), -700.0, 700.0))
    return np.asarray(np.sum(density / (1.0 + (1.0 - pi) / pi * tail), axis=-1))
