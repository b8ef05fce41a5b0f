"""Bootstrap and cross-validation intervals, by resampling sorted scores.

Public data only: this is the one place of the package that draws pseudo-random numbers, with a
generator that the caller gives, and nothing private passes here. A resample of sorted scores is a
count for each distinct score, so no replicate needs a sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heldout.arguments import as_whole, shown
from heldout.arguments.rules import Whole
from heldout.errors import ArgumentError
from heldout.precision_recall import binormal
from heldout.precision_recall.arguments import Floats
from heldout.precision_recall.estimators import pieces_of
from heldout.precision_recall.levels import levels_from_distinct, levels_from_scores

if TYPE_CHECKING:
    from numpy.random import Generator


_MOST_REPLICATES = 10_000_000


def generator(random_state: int | Generator | None) -> Generator:
    """A generator from a seed, a generator, or the operating system (None)."""
    from numpy.random import Generator, default_rng

    if isinstance(random_state, Generator):
        return random_state
    if random_state is None:
        return default_rng()
    return default_rng(Whole(0, advice="Or pass a generator.")(random_state, "random_state"))


def bootstrap_areas(
    truth: NDArray[np.bool_],
    scores: Floats,
    *,
    estimator: str,
    replicates: int,
    prevalence: float | None,
    random_state: int | Generator | None,
) -> Floats:
    """Areas of stratified bootstrap replicates: each class is resampled by itself."""
    many = Whole(2, _MOST_REPLICATES, "1000 is usual.")(replicates, "replicates")
    random = generator(random_state)
    classes = [np.unique(scores[side], return_counts=True) for side in (truth, ~truth)]
    if any(not values.size for values, _ in classes):
        raise ArgumentError("A bootstrap interval needs rows of both classes in y_true.")
    areas = np.empty(many)
    for k in range(many):
        (up, up_count), (down, down_count) = (
            _resample(values, counts, random) for values, counts in classes
        )
        if estimator == "binormal":
            areas[k] = _binormal(up, up_count, down, down_count, prevalence)
            continue
        levels = levels_from_distinct(up, up_count, down, down_count)
        levels = levels if prevalence is None else levels.at_prevalence(prevalence)
        areas[k] = pieces_of(levels, estimator).area()
    return areas


def fold_areas(
    truth: NDArray[np.bool_],
    scores: Floats,
    *,
    estimator: str,
    folds: int,
    prevalence: float | None,
    random_state: int | Generator | None,
) -> Floats:
    """Areas of `folds` random parts of the data, each with its share of both classes."""
    smallest = int(min(truth.sum(), (~truth).sum()))
    count = as_whole(folds)
    if count is None or not 2 <= count <= smallest:
        raise ArgumentError(
            f"folds must be at least 2 and leave every fold one example of each class, got "
            f"{shown(folds)} for {smallest} of the rarer class. Use fewer folds."
        )
    random = generator(random_state)
    parts = [np.array_split(random.permutation(scores[side]), count) for side in (truth, ~truth)]
    areas = np.empty(count)
    for k, (up, down) in enumerate(zip(*parts, strict=True)):
        if estimator == "binormal":
            areas[k] = _binormal(up, np.ones(up.size), down, np.ones(down.size), prevalence)
            continue
        label = np.repeat([True, False], [up.size, down.size])
        levels = levels_from_scores(label, np.concatenate([up, down]))
        levels = levels if prevalence is None else levels.at_prevalence(prevalence)
        areas[k] = pieces_of(levels, estimator).area()
    return areas


def _resample(values: Floats, counts: NDArray[Any], random: Generator) -> tuple[Floats, Floats]:
    drawn = random.multinomial(int(counts.sum()), counts / counts.sum())
    kept = drawn > 0
    return values[kept], drawn[kept].astype(np.float64)


def _binormal(
    up: Floats, up_count: Floats, down: Floats, down_count: Floats, prevalence: float | None
) -> float:
    label = np.repeat([True, False], [up.size, down.size])
    weights = np.concatenate([up_count, down_count])
    model = binormal.fit(label, np.concatenate([up, down]), weights)
    if model is None:
        return float("nan")
    natural = float(up_count.sum() / weights.sum())
    return binormal.reference_area(model, natural if prevalence is None else prevalence)
