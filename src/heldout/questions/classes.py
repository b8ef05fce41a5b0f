"""Questions about rows of more than two classes."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.classes import ClassifiedRows
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.class_areas import ClassAreas
from heldout.metrics.classes import ClassConfusionRelease, RankRelease
from heldout.metrics.groups import ByGroup
from heldout.metrics.release import Release
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
from heldout.questions.ranking import DEFAULT, Auc, AveragePrecision, Method
from heldout.questions.rules import By, Flag
from heldout.release import Drawn, Request, Together
from heldout.statistics import CallCounts

__all__ = ["ClassAuc", "ClassAveragePrecision", "ClassConfusion", "TopK"]


@dataclass(frozen=True, kw_only=True)
class _CallCounts(Question):
    """Counts of rows of several classes, by group if `by` is given."""

    of: ClassVar[tuple[type, ...]] = (ClassifiedRows,)
    axes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    reading: ClassVar[type[Release]]
    by: By = None
    weighted: Annotated[bool, Flag()] = False

    def request(self, about: ClassifiedRows) -> Request:
        statistic = CallCounts(
            classes=len(about.classes),
            axes=self.axes,
            by_scores=about.called_by_scores,
            groups=how_many(self.by, about),
            weighted=self.weighted,
        )
        mechanism = DiscreteLaplace.for_epsilon(
            self.price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=statistic.size,
        )
        parameters = {"label": about.label, "model": about.model, "classes": list(about.classes)}
        parameters |= named(self.by, about) | weighing(self.weighted, about)
        return Request(self.title, statistic, mechanism, parameters, view=divided(self.by))

    def read(self, drawn: Drawn) -> Any:
        if self.by is None:
            return self.reading(drawn)
        return ByGroup(drawn, map(self.reading, counted_parts(drawn)))

    def typical(self, about: ClassifiedRows, guess: Guess) -> Any:
        if self.by is not None:
            return tiled(replace(self, by=None), about, guess, how_many(self.by, about))
        size = len(about.classes)
        right = NormalDist().cdf(guess.separation / 2)
        return weighed(self._typical(size, right) * sum(guess.counts), self.weighted, guess)

    @abstractmethod
    def _typical(self, size: int, right: float) -> Any:
        """Shares of all rows, if classes are alike and the model is right so often."""


@dataclass(frozen=True, kw_only=True)
class ClassConfusion(_CallCounts):
    """The confusion matrix of several classes: rows by true class and by the model's call."""

    kind: ClassVar[str] = "class-confusion"
    axes: ClassVar[tuple[str, ...]] = ("truth", "called")
    title: ClassVar[str] = "confusion of classes"
    reading: ClassVar[type[Release]] = ClassConfusionRelease

    def _typical(self, size: int, right: float) -> Any:
        wrong = (1 - right) / (size - 1)
        return (np.full((size, size), wrong) + np.eye(size) * (right - wrong)).ravel() / size


@dataclass(frozen=True, kw_only=True)
class TopK(_CallCounts):
    """How often the true class is among the k of the highest scores, for every k."""

    kind: ClassVar[str] = "top-k"
    axes: ClassVar[tuple[str, ...]] = ("rank",)
    title: ClassVar[str] = "top-k accuracy"
    reading: ClassVar[type[Release]] = RankRelease

    def request(self, about: ClassifiedRows) -> Request:
        about.check_scores()
        return super().request(about)

    def _typical(self, size: int, right: float) -> Any:
        rest = 0.5 ** np.arange(1, size)
        return np.concatenate([[right], (1 - right) * rest / rest.sum()])


@dataclass(frozen=True, kw_only=True)
class _ClassAreas(Question):
    """A ranking metric of each class against all others, at equal shares of epsilon."""

    of: ClassVar[tuple[type, ...]] = (ClassifiedRows,)
    each: ClassVar[type[Auc] | type[AveragePrecision]]
    method: Method = DEFAULT

    def _questions(self, about: ClassifiedRows) -> dict[str, Auc | AveragePrecision]:
        about.check_scores()
        share = self.price / len(about.classes)
        return {name: self.each(epsilon=share, method=self.method) for name in about.classes}

    def request(self, about: ClassifiedRows) -> Together:
        parts: dict[str, Any] = {}
        for place, (name, question) in enumerate(self._questions(about).items()):
            asked = question.request(about.versus(place))
            parts[name] = replace(asked, view=_Versus(place))
        title = f"{self.each.kind.replace('-', ' ')} of classes"
        return Together(title, parts, {"classes": list(about.classes)})

    def read(self, drawn: Drawn) -> ClassAreas:
        return ClassAreas(drawn, self.each.release)

    def typical(self, about: ClassifiedRows, guess: Guess) -> Any:
        positives = max(1, sum(guess.counts) // len(about.classes))
        alike = replace(guess, positives=positives)
        return {
            name: question.typical(about.versus(place), alike)
            for place, (name, question) in enumerate(self._questions(about).items())
        }


@dataclass(frozen=True, kw_only=True)
class ClassAuc(_ClassAreas):
    """The area of each class against all others, at equal shares of epsilon, and their mean."""

    kind: ClassVar[str] = "class-auc"
    each: ClassVar[type[Auc] | type[AveragePrecision]] = Auc


@dataclass(frozen=True, kw_only=True)
class ClassAveragePrecision(_ClassAreas):
    """The average precision of each class against all others, and their mean.

    It moves by ln(n)/n with one of a class's n rows, where an area moves by 1/n: expect more noise.
    """

    kind: ClassVar[str] = "class-average-precision"
    each: ClassVar[type[Auc] | type[AveragePrecision]] = AveragePrecision


@dataclass(frozen=True)
class _Versus:
    """The view of the rows that tells whether each is of a class, and that class's score."""

    place: int

    def __call__(self, rows: Any) -> Any:
        return rows.versus(self.place)
