"""Curves of each group, side by side."""

from typing import Any

from heldout.drawing.chart import Chart, Field, Figure, Layer, Numbers
from heldout.drawing.colours import PALETTE
from heldout.metrics.curves.release import CurvesRelease
from heldout.metrics.groups import ByGroup

__all__ = ["CurvesByGroup"]


class CurvesByGroup(ByGroup):
    """One `CurvesRelease` for each group: `.groups["F"].calibration`, `.gap`, and so on."""

    @property
    def _compared(self) -> tuple[str, ...]:
        error = "expected calibration error"
        every = next(iter(self.groups.values())).measures
        return (self.metric, "KS", *((error,) if error in every else ()))

    def figures(self, level: float = 0.95) -> list[Figure]:
        """The areas with their intervals, and the ROC curves of the groups that can be read."""
        found = super().figures(level)
        shown = [name for name in self.groups if name not in self.drowned][: len(PALETTE)]
        if not shown:
            return found
        rows: list[dict[str, Any]] = []
        for name in shown:
            release = self.groups[name]
            assert isinstance(release, CurvesRelease)
            points = zip(release.roc.fpr.tolist(), release.roc.tpr.tolist(), strict=True)
            rows.append([{"x": x, "y": y, "group": name} for x, y in points])  # type: ignore[arg-type]
        chart = Chart(
            [Layer("line", each, color=Field("group")) for each in rows],  # type: ignore[arg-type]
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
