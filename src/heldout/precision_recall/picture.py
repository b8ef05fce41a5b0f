"""The picture of a precision-recall curve, as an Altair chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.drawing.figure import INK, MUTED, PALETTE, SHADE, rows
from heldout.precision_recall.geometry import minimum_precision

if TYPE_CHECKING:
    from heldout.precision_recall.curve import Curve

_STEPS = 201
_MOST_POINTS = 400
_JUST_AFTER = 1e-9
_SIDE = {"width": 380, "height": 320}


def space(prevalence: float, *, guessing: bool = True) -> Any:
    """What every picture of precision-recall space starts with: the unachievable region.

    The layers: the region below the minimum curve, and the level of guessing.
    """
    import altair as alt

    recall = np.linspace(0.0, 1.0, _STEPS)
    lowest = np.asarray(minimum_precision(recall=recall, prevalence=prevalence))
    region = (
        alt.Chart(rows([{"recall": r, "low": p} for r, p in _pairs(recall, lowest)]))
        .mark_area(color=SHADE, line={"color": MUTED, "strokeWidth": 1})
        .encode(x=axis("recall", "Recall"), y=axis("low", "Precision"))
    )
    if not guessing:
        return region
    ends = [{"recall": 0.0, "p": prevalence}, {"recall": 1.0, "p": prevalence}]
    line = (
        alt.Chart(rows(ends))
        .mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.2)
        .encode(x=axis("recall", "Recall"), y=axis("p", "Precision"))
    )
    return region + line


def draw(curve: Curve, *, confidence: float | None, title: str) -> Any:
    """Unachievable region, guessing, interval band, the estimator's curve, empirical points."""
    import altair as alt

    layers = [space(curve.prevalence)]
    if confidence is not None and curve.negatives:
        recall = np.linspace(0.005, 1.0, _STEPS)
        low, high = curve.band(recall, confidence=confidence)
        band = [
            {"recall": r, "low": lo, "high": hi}
            for (r, lo), hi in zip(_pairs(recall, low), high.tolist(), strict=True)
        ]
        layers.append(
            alt.Chart(rows(band))
            .mark_area(color=PALETTE[0], opacity=0.18)
            .encode(
                x=axis("recall", "Recall"),
                y=alt.Y("low:Q", title="Precision", scale=alt.Scale(domain=[0, 1])),
                y2="high:Q",
            )
        )
    layers.append(
        alt.Chart(rows(path(curve)))
        .mark_line(color=PALETTE[0])
        .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"), order="k:Q")
    )
    if curve.recall.size <= _MOST_POINTS:
        points = [
            {"recall": r, "precision": p} for r, p in _pairs(curve.recall[1:], curve.precision[1:])
        ]
        layers.append(
            alt.Chart(rows(points))
            .mark_point(color=INK, size=14, opacity=0.7)
            .encode(x=axis("recall", "Recall"), y=axis("precision", "Precision"))
        )
    name = curve.estimator.replace("-", " ")
    heading = title or f"Precision-recall curve ({name}, area {curve.auc:.3f})"
    return alt.layer(*layers).properties(title=heading, **_SIDE)


def path(curve: Curve) -> list[dict[str, float]]:
    """The estimator's curve as a polyline, jumps included."""
    grid = np.linspace(0.0, 1.0, 4 * _STEPS)
    levels = np.unique(curve.recall[curve.recall > 0])
    if levels.size <= _MOST_POINTS:
        after = np.minimum(levels + _JUST_AFTER, 1.0)
        grid = np.unique(np.concatenate([grid, levels, after, [_JUST_AFTER]]))
    heights = curve.precision_at(grid)
    return [{"k": k, "recall": r, "precision": p} for k, (r, p) in enumerate(_pairs(grid, heights))]


def axis(name: str, title: str) -> Any:
    """A quantitative axis from 0 to 1: `axis("recall", ...)` is x, anything else is y."""
    import altair as alt

    channel = alt.X if title == "Recall" else alt.Y
    return channel(f"{name}:Q", title=title, scale=alt.Scale(domain=[0, 1]))


def _pairs(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[tuple[float, float]]:
    return list(zip(x.tolist(), y.tolist(), strict=True))
