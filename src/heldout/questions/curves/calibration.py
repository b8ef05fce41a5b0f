"""Bins of a reliability diagram from a curve and its table."""

from typing import Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.intervals.curve import Curve, grid_scores
from heldout.kernel.noise.tables.table import NoisyTable
from heldout.questions.curves.readings import CalibrationCurve

__all__ = ["calibration_curve", "check_probabilities"]

_MOST_BINS: Final = 32
_FEWER: Final = 12


def calibration_curve(
    table: NoisyTable, curve: Curve, *, score_range: tuple[float, float]
) -> CalibrationCurve:
    """The table's own bins, or a dozen joined ones if it has very many."""
    kept = _diagram_edges(table, curve, score_range)
    edges = table.edges[kept]
    scores = grid_scores(edges, points=table.points, score_range=score_range)
    both = [np.array(curve.at(float(score))) for score in scores]
    false, true = np.array(both).T
    positives = np.maximum(-np.diff(true), 0.0) * curve.positives
    negatives = np.maximum(-np.diff(false), 0.0) * curve.negatives
    rows = positives + negatives
    middles = (scores[:-1] + np.minimum(scores[1:], score_range[1])) / 2
    observed = np.divide(positives, rows, out=np.full_like(rows, 0.5), where=rows > 0)
    noisy = [np.add.reduceat(each, kept[:-1]) for each in (table.positives, table.negatives)]
    variance = np.maximum(*(np.add.reduceat(each**2, kept[:-1]) for each in _deviations(table)))
    if table.noise.scale is None:
        # Noise of one method's bins may hang together; the joined one is bounded by their sum.
        variance = np.maximum(
            *(np.add.reduceat(each, kept[:-1]) ** 2 for each in _deviations(table))
        )
    return CalibrationCurve(
        _table=table,
        predicted=_mean_scores(curve, scores, middles),
        observed=observed,
        share=rows / rows.sum() if rows.sum() > 0 else np.full_like(rows, 1 / len(rows)),
        edges=np.minimum(scores, score_range[1]),
        _counts=(noisy[0], noisy[1], variance),
        _grid_edges=edges,
    )


def _deviations(table: NoisyTable) -> tuple[Floats, Floats]:
    negatives, positives = table.noise.bin_deviation
    return positives, negatives


def _diagram_edges(table: NoisyTable, curve: Curve, score_range: tuple[float, float]) -> Ints:
    """Indices of the edges that bound a bin of the diagram."""
    cuts = getattr(table, "cuts", None)
    if cuts is not None:
        return np.asarray(np.searchsorted(table.edges, cuts))
    if table.bins <= _MOST_BINS:
        return np.arange(table.bins + 1)
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)
    false, true = np.array([curve.at(float(score)) for score in scores]).T
    above = false * curve.negatives + true * curve.positives
    wanted = np.linspace(0.0, float(above.max()), _FEWER + 1)[1:-1]
    inner = np.searchsorted(-above, -wanted[::-1])
    return np.unique(np.concatenate([[0], np.clip(inner, 1, table.bins - 1), [table.bins]]))


def _mean_scores(curve: Curve, edges: Floats, middles: Floats) -> Floats:
    """The mean score of the rows between edges, along the curve; the middle where none are."""
    called = curve.fpr * curve.negatives + curve.tpr * curve.positives
    rising, above = curve.thresholds[::-1], called[::-1]
    means = []
    for low, high, middle in zip(edges[:-1], edges[1:], middles, strict=True):
        inside = rising[(rising > low) & (rising < high)]
        places = np.concatenate([[low], inside, [high]])
        mass = np.interp(places, rising, above)
        total = mass[0] - mass[-1]
        centres = (places[1:] + places[:-1]) / 2
        mean = float((-np.diff(mass) * centres).sum() / total) if total > 0 else float(middle)
        means.append(min(max(mean, float(low)), float(high)))
    result: Floats = np.minimum(np.array(means), edges[-1])
    return result


def check_probabilities(score_range: tuple[float, float]) -> None:
    """Refuse scores that are declared to reach beyond 0 and 1."""
    low, high = score_range
    if low < 0 or high > 1:
        raise ArgumentError(
            f"score_range must lie within (0, 1) for a reliability diagram, got ({low:g}, "
            f"{high:g}). It judges probabilities."
        )
