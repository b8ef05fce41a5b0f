"""The curves again, as scikit-learn's functions give them: one of the three, to be unpacked."""

from collections.abc import Iterator
from typing import Any, Final

from heldout.arrays import Floats
from heldout.drawing.chart import Figure
from heldout.intervals.measure import Measure
from heldout.questions.curves.pictures import TITLES
from heldout.questions.curves.release import CurvesRelease

__all__ = ["NamedCurve"]

_SUMMARY: Final = {
    "roc": "auc",
    "precision-recall": "average_precision",
    "calibration": "expected_calibration_error",
}


class NamedCurve(CurvesRelease):
    """Curves of which one was asked for by name: it is unpacked, printed and plotted."""

    def __init__(self, release: CurvesRelease, curve: str) -> None:
        super().__init__(release._drawn)
        self.curve = curve

    def __iter__(self) -> Iterator[Floats]:
        return iter(self._reading(self.curve))

    @property
    def headline(self) -> Measure:
        found: Measure = getattr(self, _SUMMARY[self.curve])
        return found

    def __str__(self) -> str:
        points = len(next(iter(self)))
        what = "bins" if self.curve == "calibration" else "points"
        return f"{TITLES[self.curve]} of {points} {what}; {self.headline}"

    def figures(self, level: float = 0.95) -> list[Figure]:
        from heldout.questions.curves.pictures import figures

        return figures([self._reading(self.curve)], level=level)

    def plot(self, kind: str | None = None, *, ax: Any = None, level: float = 0.95) -> Any:
        """This curve's picture unless another is named; see `CurvesRelease.plot`."""
        return super().plot(self.curve if kind is None else kind, ax=ax, level=level)
