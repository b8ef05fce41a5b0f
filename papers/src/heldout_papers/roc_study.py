"""Private curves of a scored test set, by any method, beside the true ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from heldout.intervals.readings import cumulative_counts, rates
from heldout.kernel.curves.registry import METHODS, method
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tables import NoisyTable, independent_noise
from heldout.kernel.statistic import Sealed
from heldout_papers.distance import area_between
from heldout_papers.scored_sets import ScoredSet

__all__ = [
    "DATA_THRESHOLDS",
    "OURS",
    "POINTS",
    "PUBLIC_CODE",
    "Curves",
    "Job",
    "Result",
    "drawer",
    "known",
    "read",
    "run",
    "true_curves",
]

OURS = "heldout"
"""The default method; it is read through `Session.curves`, as an analyst reads it."""
SMOOTH = "smooth AUC"
"""Boyd et al. 2015: a noisy area, and the symmetric binormal curve that has it."""
DATA_THRESHOLDS = "thresholds of the data"
"""The Laplace baseline of Stoddard et al. 2014 with "thresholds chosen based on the data"."""
PUBLIC_CODE = "DAWA's public code*"
"""PriROC with the noise of DAWA's public code; not private. Replace-one alone."""
POINTS = 2**16 + 1


class Curves(NamedTuple):
    """(false, true positive rate), (recall, precision), and the area under the first."""

    roc: tuple[Any, Any]
    precision_recall: tuple[Any, Any]
    auc: float


class Job(NamedTuple):
    """Some draws of one method on one test set."""

    cell: ScoredSet
    label: str
    name: str
    options: Mapping[str, Any]
    epsilon: str
    neighbours: str
    runs: int


class Result(NamedTuple):
    """What a job found: errors of each run, and the last curve."""

    job: Job
    roc: Any
    precision_recall: Any
    auc: Any
    areas: Any
    collapsed: Any
    """Whether noise left a class no row, so that a rate jumps from 0 to 1 at one threshold."""
    last: Curves


def known(name: str) -> bool:
    """Whether a method is there; the default one may not be."""
    return name in METHODS or name in (SMOOTH, DATA_THRESHOLDS, PUBLIC_CODE)


def true_curves(cell: ScoredSet) -> Curves:
    """Without noise, every point of the grid a threshold."""
    negatives, positives = cell.table().reshape(2, POINTS)
    held = np.flatnonzero(negatives + positives)
    edges = np.unique(np.concatenate([[0], held, held + 1, [POINTS]]))
    parts = [np.add.reduceat(each, edges[:-1]) for each in (negatives, positives)]
    noise = independent_noise(Fraction(1), bins=len(edges) - 1)
    return read(NoisyTable(edges=edges, negatives=parts[0], positives=parts[1], noise=noise))


def drawer(
    cell: ScoredSet, name: str, options: Mapping[str, Any], *, epsilon: str, neighbours: str
) -> Callable[[], Curves]:
    """A function that draws once."""
    if name == OURS:
        return _ours(cell, options, epsilon, neighbours)
    protection = Protection(neighbours=neighbours)  # type: ignore[arg-type]
    if name == SMOOTH:
        return _smooth(cell, epsilon, protection)
    if name == DATA_THRESHOLDS:
        return _data_thresholds(cell, float(epsilon), **options)
    if name == PUBLIC_CODE:
        from heldout_papers.chen_2016_price import SERIES, varied

        changed = varied(SERIES[PUBLIC_CODE], epsilon=epsilon, rows=len(cell.labels))
        counted = Sealed(cell.table())
        return lambda: read(changed.sample(counted), corner=True)
    made = method(
        name,
        epsilon=Fraction(epsilon),
        protection=protection,
        points=POINTS,
        rows=len(cell.labels) if protection.row_count_is_public else None,
        **options,
    )
    sealed = Sealed(cell.table())
    return lambda: read(made.sample(sealed), corner=name != "hierarchical-quantile")


def run(job: Job) -> Result:
    """All draws of a job."""
    true = true_curves(job.cell)
    draw = drawer(job.cell, job.name, job.options, epsilon=job.epsilon, neighbours=job.neighbours)
    drawn = [draw() for _ in range(job.runs)]
    areas = np.array([each.auc for each in drawn])
    return Result(
        job,
        np.array([area_between(each.roc, true.roc) for each in drawn]),
        np.array([area_between(each.precision_recall, true.precision_recall) for each in drawn]),
        np.abs(areas - true.auc),
        areas,
        np.array([_is_corner(curves) for curves in drawn]),
        drawn[-1],
    )


def _is_corner(curves: Curves) -> bool:
    """Return whether one of the two rates has no value between 0 and 1."""
    return any(bool(np.isin(rate, (0.0, 1.0)).all()) for rate in curves.roc)


def read(table: NoisyTable, *, corner: bool = False) -> Curves:
    """The curves of a table.

    The papers do not say what a rate is when noise leaves its class no row. `corner` holds rates to
    [0, 1]: the class is called nowhere but at the last threshold. The product draws a diagonal.
    """
    alarms, hits = (cumulative_counts(counts) for counts in (table.negatives, table.positives))
    called = alarms + hits
    # Rising counts, so only the start of the curve may have none.
    precision = np.divide(hits, called, out=np.ones_like(hits), where=called > 0)
    false, true, recall = rates(alarms), rates(hits), rates(hits)
    if corner:
        false, true = (
            rate if counts[-1] > 0 else np.eye(len(rate))[-1]
            for rate, counts in ((false, alarms), (true, hits))
        )
    return Curves((false, true), (recall, precision), float(np.trapezoid(true, false)))


def _data_thresholds(cell: ScoredSet, epsilon: float, *, thresholds: int) -> Callable[[], Curves]:
    """Counts above quantiles of the scores with noise (2t + 1)/epsilon, and no monotone step.

    Not private: the thresholds are the data's own. The points are joined in order of their false
    positive rate. In doubles: a simulation.
    """
    random = np.random.default_rng()
    places = np.quantile(cell.scores, np.linspace(1, 0, thresholds + 2)[1:-1])
    above = [
        np.array([(cell.scores[cell.labels == y] > place).sum() for place in (*places, -1)])
        for y in (0, 1)
    ]
    sizes, scale = [int(each[-1]) for each in above], (2 * thresholds + 1) / epsilon

    def draw() -> Curves:
        noisy = [each + random.laplace(0, scale, each.size) for each in above]
        false, true = (np.clip(each[:-1] / max(each[-1], 1), 0, 1) for each in noisy)
        order = np.argsort(false, kind="stable")
        false, true = (np.concatenate([[0], rate[order], [1]]) for rate in (false, true))
        called = sizes[0] * false + sizes[1] * true
        precision = np.divide(sizes[1] * true, called, out=np.ones_like(true), where=called > 0)
        return Curves((false, true), (true, precision), float(np.trapezoid(true, false)))

    return draw


def _ours(
    cell: ScoredSet, options: Mapping[str, Any], epsilon: str, neighbours: str
) -> Callable[[], Curves]:
    import heldout as ho

    rows = {"y": cell.labels.tolist(), "p": cell.scores.tolist()}
    dataset = ho.Dataset(rows, label="y", score="p", neighbours=neighbours)
    session: Any = ho.Session(dataset, budget=ho.Budget(epsilon=10**6))

    def draw() -> Curves:
        found = session.curves(epsilon=epsilon, **options)
        one, two = found.roc, found.precision_recall
        return Curves((one.fpr, one.tpr), (two.recall, two.precision), float(found.auc))

    return draw


def _smooth(cell: ScoredSet, epsilon: str, protection: Protection) -> Callable[[], Curves]:
    """The noisy area as published, clipped, and its symmetric binormal curve."""
    from heldout.kernel.noise.exact import LATTICE
    from heldout.kernel.ranking.ladder import CauchyBoyd2015
    from heldout.kernel.ranking.sensitivity import AreaSensitivity

    positives = int(cell.labels.sum())
    negatives = len(cell.labels) - positives
    true = true_curves(cell)
    law = CauchyBoyd2015(local=AreaSensitivity(protection=protection), epsilon=Fraction(epsilon))

    def draw() -> Curves:
        from scipy.special import ndtr, ndtri

        value = Fraction(true.auc).limit_denominator(positives * negatives * 2)
        area = float(law.sample(value, rung=min(positives, negatives)) * LATTICE)
        area = min(max(area, 1e-6), 1 - 1e-6)
        false = np.concatenate([[0.0], ndtr(np.linspace(-6, 6, 400)), [1.0]])
        rate = ndtr(np.sqrt(2) * ndtri(area) + ndtri(false))
        called = positives * rate + negatives * false
        precision = np.divide(positives * rate, called, out=np.ones_like(rate), where=called > 0)
        return Curves((false, rate), (rate, precision), area)

    return draw
