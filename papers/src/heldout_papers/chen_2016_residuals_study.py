"""The discrimination study of Chen et al., 2016, section III-C: does a noisy plot show the fault?

Similarities of noisy plots to the real plot of ideal data; the further those of faulty data lie
from those of ideal data, the better the fault is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.questions.regression.table import CountedPlot, Reference
from heldout_papers.chen_2016_residuals_data import KINDS, Fitted, dataset, family
from heldout_papers.chen_2016_residuals_draw import METHODS

__all__ = [
    "Apart",
    "Detection",
    "Draw",
    "Job",
    "Separation",
    "compared",
    "detect",
    "run",
    "similarities",
    "smallest",
    "study",
]

Draw = Callable[[Fitted, str], CountedPlot]
"""One noisy plot of a regression at an epsilon."""


BINS = 100


def total_variation(one: Any, two: Any, *, bins: int = BINS) -> float:
    """Between two samples of numbers in [0, 1], as histograms of equal bins.

    The samples' own roughness is in it: two samples of one law are not quite at 0.

    >>> total_variation([0.1, 0.2], [0.2, 0.9])
    0.5
    """
    heights = []
    for values in (one, two):
        sample = np.asarray(values, dtype=np.float64)
        cells = np.clip(np.floor(sample * bins + 1e-9).astype(np.int64), 0, bins - 1)
        heights.append(np.bincount(cells, minlength=bins) / max(sample.size, 1))
    return float(np.abs(heights[0] - heights[1]).sum() / 2)


def best_threshold(one: Any, two: Any) -> float:
    """Total variation over half-lines alone: what one cut between the samples tells apart.

    At most the total variation, and free of any choice of bins (Kolmogorov and Smirnov).

    >>> best_threshold([0.1, 0.2, 0.3], [0.25, 0.8, 0.9])
    0.6666666666666667
    """
    first, second = np.sort(np.asarray(one, float)), np.sort(np.asarray(two, float))
    places = np.concatenate([first, second])
    below = [
        np.searchsorted(sample, places, side="right") / max(sample.size, 1)
        for sample in (first, second)
    ]
    return float(np.abs(below[0] - below[1]).max(initial=0.0))


@dataclass(frozen=True)
class Separation:
    """How far apart two sets of similarities are."""

    kind: str
    rows: int
    epsilon: str
    plots: int
    total_variation: float
    best_threshold: float
    ideal: float
    faulty: float


def similarities(reference: Reference, fit: Fitted, *, epsilon: str, plots: int, draw: Draw) -> Any:
    """Of `plots` noisy plots of one data set to the reference."""
    return np.array([reference.similarity(draw(fit, epsilon)) for _ in range(plots)])


def study(
    *,
    rows: int,
    epsilon: str,
    plots: int,
    draw: Draw,
    seed: int = 1,
    kinds: Iterable[str] = tuple(KINDS),
) -> dict[str, Any]:
    """Similarities by kind of data, all to the real plot of the ideal data."""
    random = np.random.default_rng(seed)
    fits = {kind: dataset(kind, rows=rows, random=random) for kind in KINDS}
    ideal = fits["ideal"]
    real = Reference.of_points(ideal.predicted, ideal.residuals)
    return {
        kind: similarities(real, fits[kind], epsilon=epsilon, plots=plots, draw=draw)
        for kind in kinds
    }


def compared(found: dict[str, Any], *, rows: int, epsilon: str) -> list[Separation]:
    """The ideal against each of the others."""
    ideal = found["ideal"]
    return [
        Separation(
            kind=kind,
            rows=rows,
            epsilon=epsilon,
            plots=len(sample),
            total_variation=total_variation(ideal, sample),
            best_threshold=best_threshold(ideal, sample),
            ideal=float(np.mean(ideal)),
            faulty=float(np.mean(sample)),
        )
        for kind, sample in found.items()
        if kind != "ideal"
    ]


@dataclass(frozen=True)
class Job:
    """One cell of figure 3."""

    method: str
    rows: int
    epsilon: str
    plots: int
    seed: int


def run(job: Job) -> tuple[Job, dict[str, Any]]:
    """The similarities of one cell."""
    return job, study(
        rows=job.rows,
        epsilon=job.epsilon,
        plots=job.plots,
        draw=METHODS[job.method],
        seed=job.seed,
    )


@dataclass(frozen=True)
class Detection:
    """One cell of table I; without a method the plots are exact."""

    method: str | None
    rows: int
    epsilon: str | None
    parameter: str
    draws: int
    seed: int


STRENGTHS = {
    "alpha": tuple(0.005 * 2 ** (step / 2) for step in range(17)),
    "beta": tuple(0.0002 * 2 ** (step / 2) for step in range(17)),
}
TOLD_APART = 0.95


Apart = dict[str, float]
"""How far two sets of distances are apart: by total variation, as printed, and by one cut."""


def detect(job: Detection) -> tuple[Detection, dict[float, Apart]]:
    """How far distances of ideal and of faulty data are apart, by strength of the fault."""
    random = np.random.default_rng(job.seed)
    ideal = family(rows=100_000, random=random)
    margin = float(np.abs(family(rows=job.rows, random=random).residuals).max())
    edges = (np.linspace(-0.1, 50.1, 11), np.linspace(-margin - 0.1, margin + 0.1, 11))
    expected, _, _ = np.histogram2d(ideal.residuals, ideal.predicted, bins=[edges[1], edges[0]])
    reference = Reference(expected / ideal.rows, edges[0], edges[1])

    def distances(**fault: float) -> Any:
        return np.array([_distance(job, reference, random, fault) for _ in range(job.draws)])

    without = distances()
    found: dict[float, Apart] = {}
    strengths = STRENGTHS[job.parameter]
    for measure in ("total variation", "one cut"):
        low, high = 0, len(strengths)
        while low < high:  # a stronger fault is told apart more easily
            middle = (low + high) // 2
            strength = strengths[middle]
            if strength not in found:
                faulty = distances(**{job.parameter: strength})
                found[strength] = {
                    "total variation": total_variation(without, faulty),
                    "one cut": best_threshold(without, faulty),
                }
            if found[strength][measure] >= TOLD_APART:
                high = middle
            else:
                low = middle + 1
    return job, found


def _distance(
    job: Detection, reference: Reference, random: np.random.Generator, fault: dict[str, float]
) -> float:
    fit = family(rows=job.rows, random=random, **fault)
    if job.method is None or job.epsilon is None:
        return reference.similarity_of_points(fit.predicted, fit.residuals)
    return reference.similarity(METHODS[job.method](fit, job.epsilon))


def smallest(found: dict[float, Apart], *, by: str) -> float | None:
    """The least strength that is told apart by this measure."""
    told = [strength for strength, value in found.items() if value[by] >= TOLD_APART]
    return min(told) if told else None
