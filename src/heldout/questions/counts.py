"""Questions that a few noisy counts or sums answer."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.bounded_mean import MeanRelease
from heldout.metrics.confusion import ConfusionRelease
from heldout.metrics.groups import ByGroup, DecisionsByGroup
from heldout.questions.base import Question
from heldout.questions.groups import (
    counted_parts,
    divided,
    how_many,
    named,
    tiled,
    weighed,
    weighing,
)
from heldout.questions.guess import Guess
from heldout.questions.rules import By, Flag, Number
from heldout.release import Drawn, Request
from heldout.statistics import BoundedSum, ThresholdCounts
from heldout.statistics.bounded_sum import CLIP

__all__ = ["Brier", "Confusion", "LogLoss", "MeanAbsoluteError", "MeanSquaredError"]


@dataclass(frozen=True, kw_only=True)
class Confusion(Question):
    """The confusion matrix where rows with score >= threshold are called positive."""

    kind: ClassVar[str] = "confusion"
    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    threshold: Annotated[float, Number()] = 0.5
    by: By = None
    weighted: Annotated[bool, Flag()] = False

    def request(self, about: ScoredRows) -> Request:
        price, groups = self.price, how_many(self.by, about)
        at = about.threshold(self.threshold)
        statistic = ThresholdCounts(
            thresholds=(about.counted_threshold(at),),
            groups=groups,
            weighted=self.weighted,
        )
        mechanism = DiscreteLaplace.for_epsilon(
            price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=statistic.size,
        )
        parameters = {"threshold": at, **about.scale_parameters, **named(self.by, about)}
        parameters |= weighing(self.weighted, about)
        return Request("confusion", statistic, mechanism, parameters, view=divided(self.by))

    def read(self, drawn: Drawn) -> ConfusionRelease | DecisionsByGroup:
        if self.by is None:
            return ConfusionRelease(drawn)
        return DecisionsByGroup(drawn, map(ConfusionRelease, counted_parts(drawn)))

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        if self.by is not None:
            return tiled(replace(self, by=None), about, guess, how_many(self.by, about))
        found, false_alarms, missed, left_alone = guess.confusion()
        counts = np.array([left_alone, false_alarms, missed, found])
        return weighed(counts, self.weighted, guess)


@dataclass(frozen=True, kw_only=True)
class _MeanError(Question):
    """The mean of a bounded error; by group, or weighted, if that is asked."""

    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    title: ClassVar[str]
    error: ClassVar[str]
    by: By = None
    weighted: Annotated[bool, Flag()] = False

    def request(self, about: Any) -> Request:
        with_rest = self.by is not None or about.rows is None or self.weighted
        statistic = BoundedSum(
            error=self.error,
            score_range=about.score_range,
            with_rest=with_rest,
            groups=how_many(self.by, about),
            weighted=self.weighted,
            **self._more(about),
        )
        mechanism = DiscreteLaplace.for_epsilon(
            self.price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=statistic.size,
        )
        parameters = {
            "error": self.error,
            "score_range": list(about.score_range),
            **self._more(about),
            **(about.scale_parameters if isinstance(about, ScoredRows) else {}),
            **named(self.by, about),
            **weighing(self.weighted, about),
        }
        return Request(self.title, statistic, mechanism, parameters, view=divided(self.by))

    def _more(self, about: Any) -> dict[str, Any]:
        """What else the error depends on."""
        if about.score_map is not None:
            raise ArgumentError(
                "A mean error is told in the scores' own unit. Declare score_range instead of "
                "score_map."
            )
        return {}

    def read(self, drawn: Drawn) -> MeanRelease | ByGroup:
        if self.by is None:
            return MeanRelease(drawn)
        return ByGroup(drawn, map(MeanRelease, counted_parts(drawn)), lower_is_better=True)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        if self.by is not None:
            without = replace(self, by=None)
            private = replace(about, rows=None)
            return tiled(without, private, guess, how_many(self.by, about))
        positives, negatives = guess.counts
        request = self.request(about)
        assert isinstance(request.statistic, BoundedSum)
        error, weight = guess.mean_error, guess.mean_weight if self.weighted else 1.0
        product = weight * error * (1 - error) * (1 - guess.error_spread**2)
        lacking = np.array([error, 1 - error]) * (1 - weight)
        parts = weight * np.array([error, product, 1 - error - product, *lacking])
        total = request.statistic.resolution * (positives + negatives)
        return np.round(parts * total).astype(np.int64)[: request.statistic.size]


@dataclass(frozen=True, kw_only=True)
class _OfProbabilities(_MeanError):
    """A mean error of probabilities, of two classes or of more."""

    of: ClassVar[tuple[type, ...]] = (ScoredRows, ClassifiedRows)

    def _more(self, about: Any) -> dict[str, Any]:
        if about.score_range != (0.0, 1.0):
            raise ArgumentError(
                f"The {self.title} judges probabilities: score_range must be (0, 1). Use "
                "mean_squared_error for other scores."
            )
        if not isinstance(about, ClassifiedRows):
            return {}
        about.check_scores()
        return {"classes": len(about.classes)}


@dataclass(frozen=True, kw_only=True)
class Brier(_OfProbabilities):
    """The Brier score: the mean squared distance of the score from the outcome, 0 or 1.

    Of several classes: the sum of these over all of them, at most 2 for probabilities.
    """

    kind: ClassVar[str] = "brier"
    title: ClassVar[str] = "Brier score"
    error: ClassVar[str] = "squared"


@dataclass(frozen=True, kw_only=True)
class LogLoss(_OfProbabilities):
    """The mean of -ln of the probability that the model gave to what was true.

    One below `clip` counts as `clip`, so that no row counts for more than -ln(clip). A smaller
    clip forgives less and has more noise.
    """

    kind: ClassVar[str] = "log-loss"
    title: ClassVar[str] = "log loss"
    error: ClassVar[str] = "log"
    clip: Annotated[float, Number(1e-15, 0.5)] = CLIP

    def _more(self, about: Any) -> dict[str, Any]:
        return {**super()._more(about), "clip": self.clip}


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
