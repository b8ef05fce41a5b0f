"""The residual plots of all groups on the same axes."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heldout.drawing.chart import Chart, Field, Figure, Layer, Numbers, records
from heldout.drawing.colours import INK, PALETTE, SHADE
from heldout.drawing.svg import side_by_side
from heldout.intervals.measure import NO_INFORMATION
from heldout.questions.regression.pictures import PREDICTED, SIZE, around, cells, zero

if TYPE_CHECKING:
    from heldout.questions.regression.by_group import PlotsByGroup

__all__ = ["densities", "means"]

SMALL: Final[dict[str, Any]] = {"width": 190, "height": 135}
ACROSS: Final = 3


def densities(plots: "PlotsByGroup") -> Figure:
    """A small plot for each group; one that noise drowned is an empty grey panel."""
    panels = []
    for name, plot in plots.groups.items():
        table, drowned = plot.table, name in plots.drowned
        (left, right), (low, high) = table.bounds
        layers = [cells(table), zero(table.bounds.predicted)]
        if drowned:
            box = {"left": left, "right": right, "low": low, "high": high}
            middle = {"x": (left + right) / 2, "y": (low + high) / 2, "says": NO_INFORMATION}
            layers = [
                Layer("rect", [box], "left", "low", "right", "high", color=SHADE),
                Layer("text", [middle], color=INK, text="says"),
            ]
        x, y = Numbers(PREDICTED, left, right, 3), Numbers("Residual", low, high, 4)
        panels.append(Chart(layers, x=x, y=y, title=name, **SMALL))
    said = "; ".join(f"{name}: {each}" for name, each in plots.verdicts.items())
    return Figure(
        side_by_side(panels, across=ACROSS, title="Residual plots by group", says=said),
        "Where the rows of each group lie, after noise, on the same axes: the stronger the colour, "
        "the more of the group’s own rows a cell holds. A good fit is an even ribbon around the "
        "dashed line." + (" Grey: drowned in noise at this price." if plots.drowned else ""),
    )


def means(plots: "PlotsByGroup", level: float) -> list[Figure]:
    """Mean residuals by predicted value, a colour for each group that can be read."""
    shown = [name for name in plots.groups if name not in plots.drowned][: len(PALETTE)]
    colours = dict(zip(shown, PALETTE, strict=False))
    layers, ends = [], []
    for name in shown:
        reading = plots.groups[name].mean_by_prediction
        low, high = reading.interval(level)
        ends.append((low, high))
        # Bands of groups may be the same: their bars stand beside each other.
        place = (shown.index(name) + 1) / (len(shown) + 1)
        bands = records(
            left=reading.edges[:-1],
            right=reading.edges[1:],
            at=reading.edges[:-1] + place * np.diff(reading.edges),
            value=reading.values,
            low=low,
            high=high,
            group=np.full(low.size, name),
        )
        colour = Field("group")
        layers += [
            Layer("rule", bands, "at", "low", y2="high", color=colour, style={"strokeWidth": 1.5}),
            Layer(
                "rule", bands, "left", "value", "right", color=colour, style={"strokeWidth": 2.5}
            ),
        ]
    if not shown:
        return []
    predicted = plots.groups[shown[0]].bounds.predicted
    lows, highs = (np.concatenate(each) for each in zip(*ends, strict=True))
    chart = Chart(
        [zero(predicted), *layers],
        x=Numbers(PREDICTED, *predicted),
        y=around(lows, highs, "Mean residual"),
        title="Mean residual by predicted value",
        colours=colours,
        **SIZE,
    )
    said = "; ".join(f"{name} {plots.groups[name].mean_residual.value:+.4g}" for name in shown)
    return [
        Figure(
            chart.svg(says=f"Mean residual by group: {said}."),
            "Each level line is a band of predictions of one group; the bar on it is where the "
            f"population’s mean lies ({level * 100:g}%, noise and chance of the sample). On the "
            "dashed line predictions are right on average.",
        )
    ]
