"""Questions that a few noisy counts or sums answer."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.bounded_mean import MeanRelease
from heldout.metrics.confusion import ConfusionRelease
from heldout.questions.base import Question
from heldout.questions.guess import Guess
from heldout.questions.rules import Number
from heldout.release import Drawn, Request
from heldout.statistics import BoundedSum, ThresholdCounts

__all__ = ["Brier", "Confusion", "MeanAbsoluteError", "MeanSquaredError"]


@dataclass(frozen=True, kw_only=True)
class Confusion(Question):
    """The confusion matrix where rows with score >= threshold are called positive."""

    kind: ClassVar[str] = "confusion"
    threshold: Annotated[float, Number()] = 0.5

    def request(self, about: ScoredRows) -> Request:
        at = about.threshold(self.threshold)
        statistic = ThresholdCounts(thresholds=(about.counted_threshold(at),))
        mechanism = DiscreteLaplace.for_epsilon(
            self.price, l1_sensitivity=statistic.sensitivity(about.protection), dimension=4
        )
        parameters = {"threshold": at, **about.scale_parameters}
        return Request("confusion", statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> ConfusionRelease:
        return ConfusionRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        found, false_alarms, missed, left_alone = guess.confusion()
        return np.round([left_alone, false_alarms, missed, found]).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class _MeanError(Question):
    """The mean of a bounded error."""

    title: ClassVar[str]
    error: ClassVar[str]

    def request(self, about: ScoredRows) -> Request:
        if about.score_map is not None:
            raise ArgumentError(
                "A mean error is told in the scores' own unit. Declare score_range instead of "
                "score_map."
            )
        with_rest = not about.protection.row_count_is_public
        statistic = BoundedSum(error=self.error, score_range=about.score_range, with_rest=with_rest)
        mechanism = DiscreteLaplace.for_epsilon(
            self.price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=1 + with_rest,
        )
        parameters = {"error": self.error, **about.scale_parameters}
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> MeanRelease:
        return MeanRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        positives, negatives = guess.counts
        request = self.request(about)
        assert isinstance(request.statistic, BoundedSum)
        total = request.statistic.resolution * (positives + negatives)
        error = round(total * guess.mean_error)
        both = [error, total - error]
        return np.array(both[: 1 + request.statistic.with_rest], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Brier(_MeanError):
    """The Brier score: the mean squared distance of the score from the outcome, 0 or 1."""

    kind: ClassVar[str] = "brier"
    title: ClassVar[str] = "Brier score"
    error: ClassVar[str] = "squared"

    def request(self, about: ScoredRows) -> Request:
        if about.score_range != (0.0, 1.0):
            raise ArgumentError(
                "The Brier score judges probabilities: score_range must be (0, 1). Use "
                "mean_squared_error for other scores."
            )
        return super().request(about)


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteError(_MeanError):
    """The mean distance of the score from the end of its range that the label stands for."""

    kind: ClassVar[str] = "mean-absolute-error"
    title: ClassVar[str] = "mean absolute error"
    error: ClassVar[str] = "absolute"


@dataclass(frozen=True, kw_only=True)
class MeanSquaredError(_MeanError):
    """The mean squared distance of the score from its label's end of the range."""

    kind: ClassVar[str] = "mean-squared-error"
    title: ClassVar[str] = "mean squared error"
    error: ClassVar[str] = "squared"
