"""Diagnostics of a logistic regression: one curves release, and what is read off it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from heldout.arrays import Bools, Floats
from heldout.data import Dataset
from heldout.errors import ArgumentError
from heldout.kernel import Budget, Ledger, exact
from heldout.kernel.loss import Loss, Rational
from heldout.questions.curves.readings import CalibrationCurve, RocCurve
from heldout.questions.curves.release import CurvesRelease
from heldout.questions.session import Session


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Observed share less mean prediction, by bin of the prediction."""

    predicted: Floats
    residual: Floats
    share: Floats
    _calibration: CalibrationCurve

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high ends by bin: sampling and privacy noise."""
        band = self._calibration.band(level)
        low, high = band.low - self.predicted, band.high - self.predicted
        return np.minimum(low, self.residual), np.maximum(high, self.residual)

    @property
    def misfits(self) -> Bools:
        """Bins whose interval at 95% does not hold 0, true or false by bin."""
        low, high = self.interval(0.95)
        return (low > 0) | (high < 0)

    def chart(self, *, level: float = 0.95) -> Any:
        """An Altair chart."""
        from heldout.questions.regression.page import binned_chart

        return binned_chart(self, level=level).altair()

    def svg(self, *, level: float = 0.95) -> str:
        """The chart as an SVG picture in the house style."""
        from heldout.questions.regression.page import binned_figure

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
            f"curves must be the result of session.curves(...), got a {type(curves).__name__}."
        )
    bins = curves.calibration
    return BinnedResiduals(bins.predicted, bins.observed - bins.predicted, bins.share, bins)


class LogisticDiagnostics:
    """The ROC curve, the reliability diagram and the binned residuals of one release.

    `curves` is that release; everything else is read off it and costs nothing more.
    """

    def __init__(self, curves: CurvesRelease) -> None:
        self.curves = curves

    @property
    def roc(self) -> RocCurve:
        return self.curves.roc

    @property
    def calibration(self) -> CalibrationCurve:
        """The reliability diagram."""
        return self.curves.calibration

    @cached_property
    def binned_residuals(self) -> BinnedResiduals:
        """The mean of outcome - probability in each bin of the probability, with intervals."""
        return binned_residuals(self.curves)

    @property
    def loss(self) -> Loss:
        return self.curves.loss

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON: the curves release and the binned residuals."""
        return {
            **self.curves.as_dict(level),
            "binned_residuals": self.binned_residuals.as_dict(level),
        }

    def __str__(self) -> str:
        bins = len(self.binned_residuals.residual)
        misfits = int(self.binned_residuals.misfits.sum())
        return f"{self.curves.auc}; {misfits} of {bins} bins of residuals are not around 0"

    __repr__ = __str__


def logistic_diagnostics(
    frame: Any,
    *,
    observed: str,
    predicted: str,
    epsilon: Rational,
    method: str = "heldout",
    positive: object = 1,
    negative: object = None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    options: Mapping[str, Any] | None = None,
    **declared: Any,
) -> LogisticDiagnostics:
    """Return how a model that predicts probabilities fits: one curves release, read in three ways.

    `observed` names the outcome, `predicted` the probability of `positive`; `declared` is what
    `heldout.Dataset` takes more (unit, rows_per_unit, row_key, neighbours, schema, name), and
    `options` are the curve method's. With a session of your own,
    `LogisticDiagnostics(session.curves(epsilon=...))` is the same.

    >>> rows = {"y": [1, 0, 0, 1] * 250, "p": [0.9, 0.1, 0.2, 0.8] * 250}
    >>> found = logistic_diagnostics(rows, observed="y", predicted="p", epsilon="1")
    >>> len(found.binned_residuals.residual) == len(found.calibration.observed)
    True
    """
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(
            f"options must be the method's own by name, got a {type(options).__name__}."
        )
    dataset = Dataset(
        frame,
        label=observed,
        score=predicted,
        positive=positive,
        negative=negative,
        score_range=(0, 1),
        **declared,
    )
    if ledger is None and budget is None:
        budget = Budget(epsilon=exact(epsilon, name="epsilon"))
    session = Session(dataset, budget=budget, ledger=ledger)
    return LogisticDiagnostics(session.curves(epsilon=epsilon, method=method, **(options or {})))
