"""The discrimination study of Chen et al., 2016, section III-C: does a noisy plot show the fault?

Similarities of noisy plots to the real plot of ideal data; the further those of faulty data lie
from those of ideal data, the better the fault is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.regression.similarity import (
    CountedPlot,
    Reference,
    best_threshold,
    total_variation,
)
from heldout.reproduce.chen_2016_residuals_data import KINDS, Fitted, dataset

__all__ = ["Draw", "Separation", "compared", "similarities", "study"]

Draw = Callable[[Fitted, str], CountedPlot]
"""One noisy plot of a regression at an epsilon."""


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
