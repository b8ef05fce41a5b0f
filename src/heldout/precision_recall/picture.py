"""The picture of a precision-recall curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heldout.drawing.chart import Chart, Layer, Numbers, records
from heldout.drawing.colours import INK, MUTED, SHADE
from heldout.precision_recall.geometry import minimum_precision

if TYPE_CHECKING:
    from heldout.precision_recall.curve import Curve

_STEPS = 201
_MOST_POINTS = 400
_JUST_AFTER = 1e-9
RECALL, PRECISION = Numbers("Recall"), Numbers("Precision")


def space(prevalence: float) -> list[Layer]:
    """What every picture of precision-recall space starts with.

    The layers: the region below the minimum curve, which no model reaches, and the level of
    guessing.
    """
    recall = np.linspace(0.0, 1.0, _STEPS)
    lowest = np.asarray(minimum_precision(recall=recall, prevalence=prevalence))
    guessing = [{"x": 0.0, "y": prevalence}, {"x": 1.0, "y": prevalence}]
    dashed = {"strokeDash": [4, 3], "strokeWidth": 1.2}
    return [
        Layer("area", records(x=recall, y=lowest), color=SHADE),
        Layer("line", guessing, color=MUTED, style=dashed),
    ]


def draw(curve: Curve, *, confidence: float | None, title: str) -> Chart:
    """Unachievable region, guessing, interval band, the estimator's curve, empirical points."""
    layers = space(curve.prevalence)
    if confidence is not None and curve.negatives:
        recall = np.linspace(0.005, 1.0, _STEPS)
        low, high = curve.band(recall, confidence=confidence)
        band = records(x=recall, low=low, high=high)
        layers.append(Layer("area", band, y="low", y2="high", opacity=0.18))
    layers.append(Layer("line", path(curve)))
    if curve.recall.size <= _MOST_POINTS:
        points = records(x=curve.recall[1:], y=curve.precision[1:])
        layers.append(Layer("point", points, color=INK, size=9, opacity=0.6))
    name = curve.estimator.replace("-", " ")
    heading = title or f"Precision-recall curve ({name}, area {curve.auc:.3f})"
    return Chart(layers, x=RECALL, y=PRECISION, title=heading, width=380, height=320)


def path(curve: Curve) -> list[dict[str, float]]:
    """The estimator's curve as a polyline, jumps included."""
    grid = np.linspace(0.0, 1.0, 4 * _STEPS)
    levels = np.unique(curve.recall[curve.recall > 0])
    if levels.size <= _MOST_POINTS:
        after = np.minimum(levels + _JUST_AFTER, 1.0)
        grid = np.unique(np.concatenate([grid, levels, after, [_JUST_AFTER]]))
    return records(x=grid, y=curve.precision_at(grid))
