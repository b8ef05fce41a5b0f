"""Curves of each group, side by side."""

from typing import Any

import numpy as np

from heldout.drawing.chart import PALETTE, Chart, Field, Figure, Layer, Numbers, records
from heldout.intervals.groups import ByGroup
from heldout.questions.curves.release import CurvesRelease

__all__ = ["CurvesByGroup"]


class CurvesByGroup(ByGroup[CurvesRelease]):
    """One `CurvesRelease` for each group: `.groups["F"].calibration`, `.gap`, and so on."""

    @property
    def compared(self) -> tuple[str, ...]:
        error = "expected calibration error"
        every = next(iter(self.groups.values())).measures
        return (self.metric, "KS", *((error,) if error in every else ()))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        curves = {name: each.curves_as_dict(level) for name, each in self.groups.items()}
        return {**super().as_dict(level), "curves": curves}

    def figures(self, level: float = 0.95) -> list[Figure]:
        """The areas with their intervals, and the ROC curves of the groups that can be read."""
        found = super().figures(level)
        shown = [name for name in self.groups if name not in self.drowned][: len(PALETTE)]
        if not shown:
            return found
        lines = []
        for name in shown:
            release = self.groups[name]
            roc = release.roc
            lines.append(records(x=roc.fpr, y=roc.tpr, group=np.full(roc.fpr.size, name)))
        chart = Chart(
            [Layer("line", each, color=Field("group")) for each in lines],
            x=Numbers("False positive rate"),
            y=Numbers("True positive rate"),
            title="ROC curves by group",
            colours=dict(zip(shown, PALETTE, strict=False)),
        )
        said = chart.svg(says=f"ROC curves of {', '.join(shown)}.")
        return [
            *found,
            Figure(said, "True against false positive rate in each group that can be read."),
        ]
