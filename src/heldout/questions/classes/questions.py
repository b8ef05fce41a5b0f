"""Questions about rows of more than two classes."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description
from heldout.data.sql import Columns
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.intervals.groups import ByGroup
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn, Request, Together
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.statistic import STEPS, Statistic, counted, tallied
from heldout.questions.base import Question, Section, Weighted, weight_parameters
from heldout.questions.classes.release import ClassAreas, ClassConfusionRelease, RankRelease
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess, weigh_counts
from heldout.questions.ranking.questions import (
    DEFAULT,
    SMALL_CLASSES,
    Auc,
    AveragePrecision,
    Method,
    worst_areas,
    worst_persons,
)
from heldout.questions.worst_cases import (
    LOW,
    PERSON,
    REMOVE,
    Pair,
    WorstCase,
    class_pair,
    class_pairs,
    hundreds,
    rows,
    spread,
    table_pair,
)

__all__ = ["CallCounts", "ClassAuc", "ClassAveragePrecision", "ClassConfusion", "TopK"]

# --- Counts of rows by their class, the class that a model calls them, and the true one's rank ---


AXES: Final = ("truth", "called", "rank")


@dataclass(frozen=True)
class CallCounts(Statistic[Ints]):
    """Rows by true and called class, or by the rank that the true class has among the scores.

    The vector has one entry for each combination of the `axes`, the last fastest; each axis has as
    many places as there are classes. By scores a row is called the first class that no other
    exceeds, and the true class's rank is the number of classes before it: those with a higher
    score, and those of the same score that were declared earlier. With more than one group there
    is such a vector for each, one after the other. Rows that are `weighted` count for their
    weights, in whole steps of the largest one; then come as many entries with the sums of
    w (1 - w), w a share of the largest, which tell the sums of w^2.

    Claim:       L1 sensitivity 1 a row that leaves or arrives, or the steps of the largest weight.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row has one truth, one call, one rank and one group, all of its own cells, so it
                 is counted in one entry: k rows under add-remove, 2k under replace-one. A weight
                 adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers; scores compare as doubles.
    Refuses:     axes that it does not know.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan with a comparison a class, O(entries) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> counts = CallCounts(classes=3)
    >>> counts.size, counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    (9, 2)
    """

    classes: int
    axes: tuple[str, ...] = ("truth", "called")
    by_scores: bool = True
    """Whether the highest score is the call; else `called` is a column."""
    groups: int = 1
    weighted: bool = False
    claim = "disjoint-counts"
    shown_by = (
        "tests/conformance/test_classes.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def __post_init__(self) -> None:
        if not self.axes or not set(self.axes) <= set(AXES):
            raise ArgumentError(f"axes must be some of {', '.join(AXES)}, got {self.axes}.")

    @property
    def size(self) -> int:
        """Return how many entries the vector has."""
        return int(self.classes ** len(self.axes)) * self.groups * (1 + self.weighted)

    def body(self) -> str:
        cells = [f"{self._place(axis)} AS {axis}" for axis in self.axes]
        if self.groups > 1:
            cells.insert(0, "member")
        keys = ", ".join(str(place + 1) for place in range(len(cells)))
        rows = f"{counted(self.weighted)}\nFROM evaluated"
        return f"SELECT {', '.join(cells)}, {rows}\nGROUP BY {keys}"

    def _place(self, axis: str) -> str:
        every = range(self.classes)
        if axis == "called" and self.by_scores:
            whens = " ".join(f"WHEN score_{place} >= top THEN {place}" for place in every)
            return f"CASE {whens} END"
        if axis == "rank":
            before = "CAST(score_{0} > own OR (score_{0} >= own AND truth > {0}) AS INTEGER)"
            return " + ".join(before.format(place) for place in every)
        return axis

    def read(self, columns: Columns) -> Ints:
        places = [(columns[axis], self.classes) for axis in self.axes]
        return tallied(columns, places, groups=self.groups, weighted=self.weighted)

    def of_groups(self, groups: int) -> "CallCounts":
        return replace(self, groups=groups)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved * (STEPS if self.weighted else 1)


Counted_co = TypeVar("Counted_co", bound=Release, covariant=True)
CLASSES_APART: Final = "answers of several classes are not pooled yet"


@dataclass(frozen=True, kw_only=True)
class _CallCounts(Divisible[Counted_co, ByGroup[Counted_co]], Generic[Counted_co]):
    """Counts of rows of several classes."""

    of = (ClassifiedRows,)
    replayed = ({}, {"by": "g"}, {"weighted": True})
    cannot_pool = CLASSES_APART
    axes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    reading: ClassVar[type[Release]]
    weighted: Weighted = False

    def request(self, about: ClassifiedRows) -> Request:
        statistic = CallCounts(
            classes=len(about.classes),
            axes=self.axes,
            by_scores=about.called_by_scores,
            weighted=self.weighted,
        )
        mechanism = DiscreteLaplace.for_epsilon(
            self.price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=statistic.size,
        )
        parameters = {"label": about.label, "model": about.model, "classes": list(about.classes)}
        parameters |= weight_parameters(self.weighted, about)
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> Counted_co:
        return cast(type[Counted_co], self.reading)(drawn)

    def typical(self, about: ClassifiedRows, guess: Guess) -> object:
        size = len(about.classes)
        right = NormalDist().cdf(guess.separation / 2)
        return weigh_counts(self._typical(size, right) * sum(guess.counts), self.weighted, guess)

    @abstractmethod
    def _typical(self, size: int, right: float) -> Floats:
        """Shares of all rows, if classes are alike and the model is right so often."""


@dataclass(frozen=True, kw_only=True)
class ClassConfusion(_CallCounts[ClassConfusionRelease]):
    """The confusion matrix of several classes: rows by true class and by the model's call."""

    kind = "class-confusion"
    asks = "How often is it right, class by class?"
    tells = (
        "The matrix of true and called classes, accuracy, and the precision and recall of each "
        "class."
    )
    headline = "accuracy"
    axes: ClassVar[tuple[str, ...]] = ("truth", "called")
    title = "confusion of classes"
    reading: ClassVar[type[Release]] = ClassConfusionRelease
    section = Section(
        title="Decisions by class",
        meaning="How often each class is called each other one, and what follows from it; macro "
        "means that all classes count alike, weighted that they count as often as they are true.",
        weight=40,
        place=5,
        cards=("accuracy", "balanced accuracy", "macro F1 score"),
        asked_as="confusion",
        old_name="confusion_of_classes",
    )
    section_by_group = Section(
        title="Decisions by group",
        meaning="How often the called class is the true one in each declared group, how far apart "
        "the groups are, and how often chance would put them so far apart. Groups of which noise "
        "leaves nothing to read are not compared.",
        weight=40,
        place=200,
        old_name="groups_of_classes",
    )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        note = "all cells of three classes jointly"
        return (WorstCase(pairs=class_pairs(), note=note, formerly="confusion-of-classes"),)

    def _typical(self, size: int, right: float) -> Floats:
        wrong = (1 - right) / (size - 1)
        return (np.full((size, size), wrong) + np.eye(size) * (right - wrong)).ravel() / size


@dataclass(frozen=True, kw_only=True)
class TopK(_CallCounts[RankRelease]):
    """The share of rows whose true class is among the k highest scores, for every k."""

    kind = "top-k"
    asks = "Is the truth among its first calls?"
    tells = "How often the true class is among the k with the highest scores, for every k."
    axes: ClassVar[tuple[str, ...]] = ("rank",)
    title = "top-k accuracy"
    reading: ClassVar[type[Release]] = RankRelease
    section = Section(
        title="Top-k accuracy",
        meaning="How often the true class is among the k of the highest scores.",
        weight=10,
        place=25,
    )

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        return about.no_scores if isinstance(about, ClassifiedRows) else super().why_not(about)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return (WorstCase(pairs=class_pairs()),)

    def _typical(self, size: int, right: float) -> Floats:
        rest = 0.5 ** np.arange(1, size)
        return np.concatenate([[right], (1 - right) * rest / rest.sum()])


@dataclass(frozen=True, kw_only=True)
class _ClassAreas(Question[ClassAreas]):
    """A ranking metric of each class against all others, at equal shares of epsilon."""

    of = (ClassifiedRows,)
    cannot_pool = CLASSES_APART
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]]
    rules = Auc.rules
    known_rules = Auc.known_rules
    reported_since = Auc.reported_since
    method: Method = DEFAULT

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        return about.no_scores if isinstance(about, ClassifiedRows) else super().why_not(about)

    def _questions(self, about: ClassifiedRows) -> dict[str, Auc | AveragePrecision]:
        share = self.price / len(about.classes)
        one = self.of_one_class(epsilon=share, method=self.method).under(self.rules)
        return dict.fromkeys(about.classes, one)

    def request(self, about: ClassifiedRows) -> Together:
        parts: dict[str, Any] = {}
        for place, (name, question) in enumerate(self._questions(about).items()):
            asked = question.request(about.versus(place))
            parts[name] = replace(asked, view=_Versus(place))
        title = f"{self.of_one_class.kind.replace('-', ' ')} of classes"
        return Together(title, parts, {"classes": list(about.classes)})

    def read(self, drawn: Drawn) -> ClassAreas:
        return ClassAreas(drawn, self.of_one_class.reading, kind=self.of_one_class.kind)

    def typical(self, about: ClassifiedRows, guess: Guess) -> object:
        positives = max(1, sum(guess.counts) // len(about.classes))
        alike = replace(guess, positives=positives)
        return {
            name: question.typical(about.versus(place), alike)
            for place, (name, question) in enumerate(self._questions(about).items())
        }


@dataclass(frozen=True, kw_only=True)
class ClassAuc(_ClassAreas):
    """The area of each class against all others, at equal shares of epsilon, and their mean."""

    kind = "class-auc"
    replayed = ({}, {"method": "polynomial-tail"})
    title = "AUC of each class"
    asks = "How well does it rank each class?"
    tells = "The AUC of each class against all others, and their mean."
    formerly = ("auc of classes",)
    section = Section(
        title="Ranking: each class against the others",
        meaning="How often a row of the class has a higher score for it than a row of another "
        "class; 0.5 is chance. The macro AUC is the plain mean.",
        weight=80,
        place=10,
        asked_as="auc",
        old_name="auc_of_classes",
    )
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]] = Auc

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        above, below = hundreds()
        bottom = rows([LOW, *above], below)
        pairs = (
            _two_classes("one of hundreds falls among two classes", worst_areas()[-1]),
            _two_classes(
                "the last of hundreds leaves one of two classes",
                table_pair("", bottom, bottom[1:], **REMOVE),
            ),
            _two_classes(
                "a person's two rows of hundreds fall among two classes", worst_persons()[0]
            ),
            _last_of_a_class(),
        )
        case = WorstCase(pairs=pairs, epsilon="4", why=SMALL_CLASSES, formerly="auc-of-classes")
        return (case,)


@dataclass(frozen=True, kw_only=True)
class ClassAveragePrecision(_ClassAreas):
    """The average precision of each class against all others, and their mean.

    It moves by ln(n)/n with one of a class's n rows, where an area moves by 1/n: expect more noise.
    """

    kind = "class-average-precision"
    title = "average precision of each class"
    asks = "How good are its highest scores, class by class?"
    tells = "The average precision of each class against all others, and their mean."
    formerly = ("average precision of classes",)
    section = Section(
        title="Ranking: average precision of each class",
        meaning="The precision at the ranks of the class's rows by its score, on average. Chance "
        "gives the share of the class; the macro average precision is the plain mean.",
        weight=160,
        place=60,
        always=False,
    )
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]] = AveragePrecision

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            _on_top("a row on top of two rankings changes its class", "1", "0"),
            _on_top("a row on top of two rankings leaves", "1", "", **REMOVE),
            _on_top("a person's two rows on top change their class", "11", "00", **PERSON),
            _last_of_a_class(),
        )
        former = "average-precision-of-classes"
        return (WorstCase(pairs=pairs, epsilon="4", why=SMALL_CLASSES, formerly=former),)


@dataclass(frozen=True)
class _Versus:
    """The view of the rows that tells whether each is of a class, and that class's score."""

    place: int

    def __call__(self, rows: Any) -> PrivateTable:
        view: PrivateTable = rows.versus(self.place)
        return view


def _last_of_a_class() -> Pair:
    others = [(1, 1), (2, 2)] * 6
    return class_pair(("the last of a class is replaced", [(0, 0)], [(2, 2)]), others)


def _two_classes(name: str, pair: Pair) -> Pair:
    """Return rows with scores p and 1 - p: both classes' areas move by what a row does."""

    def of(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "q": [1 - p for p in content["p"]]}

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(pair.first), of(pair.second), {**pair.options, **declared})


def _on_top(name: str, first: str, second: str, **options: Any) -> Pair:
    """Return two classes of hundreds, ranked perfectly, with rows on top of both rankings.

    Such a row of the one class is a negative above all positives of the other: when it changes its
    class, both average precisions move by all that a row can. `first` and `second` are the rows'
    classes, one letter each, and the same person's.
    """
    low, high = spread(300, 0.1, 0.5), spread(300, 0.8, 0.9)

    def of(own: str) -> dict[str, Any]:
        labels = [*map(int, own), *[1] * 300, *[0] * 300]
        people = [*[0] * len(own), *range(1, 601)]
        return {
            "y": labels,
            "p": [*[0.99] * len(own), *high, *low],
            "q": [*[0.99] * len(own), *low, *high],
            "u": people,
            "k": list(range(len(labels))),
        }

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(first), of(second), {**options, **declared})
