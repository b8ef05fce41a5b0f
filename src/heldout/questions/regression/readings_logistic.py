"""Binned residuals of a logistic regression, read off a curves release for free.

A residual of a yes-or-no outcome is one of two numbers for each prediction, so a scatter of them
shows two lines. Means of residuals in bins of the prediction show the fit (Gelman and Hill 2007,
section 5.6). They are the reliability diagram less its diagonal: no second release, no second
method.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.questions.curves.readings import CalibrationCurve
from heldout.questions.curves.release import CurvesRelease

__all__ = ["BinnedResiduals", "binned_residuals"]


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Observed share less mean prediction, by bin of the prediction."""

    predicted: Any
    residual: Any
    share: Any
    _calibration: CalibrationCurve

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Low and high ends by bin: sampling and privacy noise."""
        band = self._calibration.band(level)
        low, high = band.low - self.predicted, band.high - self.predicted
        return np.minimum(low, self.residual), np.maximum(high, self.residual)

    @property
    def misfits(self) -> Any:
        """Bins whose interval at 95% does not hold 0, true or false by bin."""
        low, high = self.interval(0.95)
        return (low > 0) | (high < 0)

    def chart(self, *, level: float = 0.95) -> Any:
        """An Altair chart."""
        from heldout.questions.regression.pictures import binned_chart

        return binned_chart(self, level=level).altair()

    def svg(self, *, level: float = 0.95) -> str:
        """The chart as an SVG picture in the house style."""
        from heldout.questions.regression.pictures import binned_figure

        return binned_figure(self, level=level).svg

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        return {
            "predicted": self.predicted.tolist(),
            "residual": self.residual.tolist(),
            "share": self.share.tolist(),
            "level": level,
            "interval": [low.tolist(), high.tolist()],
        }


def binned_residuals(curves: CurvesRelease) -> BinnedResiduals:
    """Binned residuals of a model that predicts probabilities, from `session.curves(...)`.

    Nothing is read from rows and nothing is paid: the curves were.
    """
    if not isinstance(curves, CurvesRelease):
        raise ArgumentError(
            f"curves must be what session.curves(...) gives, got a {type(curves).__name__}."
        )
    found = curves.calibration
    return BinnedResiduals(found.predicted, found.observed - found.predicted, found.share, found)
