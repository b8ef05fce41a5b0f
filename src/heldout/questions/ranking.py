"""Questions about how a model ranks the rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final

from heldout.arguments import shown
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.mechanisms.each_group import EachGroup
from heldout.mechanisms.smooth.choose import METHODS
from heldout.mechanisms.smooth.exact import LATTICE
from heldout.mechanisms.smooth.ranking import RankingDraw
from heldout.metrics.groups import ByGroup
from heldout.metrics.ranking import AucRelease, CompareRelease, RankingRelease
from heldout.metrics.ranking_stages import RankingStages
from heldout.metrics.ties import TiesRelease
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.questions.base import Question
from heldout.questions.groups import divided, how_many, named, part, shared
from heldout.questions.guess import Guess
from heldout.questions.rules import By, Exact, OneOf, Text, Whole
from heldout.release import Drawn, Request, Staged
from heldout.statistics import ScoreTable, Statistic
from heldout.statistics.ranking.by_group import RankedGroups
from heldout.statistics.ranking.ranked import LARGEST_EXACT, RankedRows, RankedTable, TiedPairs

__all__ = ["LEAST_EPSILON", "Auc", "AveragePrecision", "Compare", "GridTies", "resolution_of"]

_MOST_ROWS: Final = 2**50  # four times it, as the top of a ladder, fits 64 bits
LEAST_EPSILON: Final = Fraction(1, 5000)
MOST_EPSILON: Final = 100
"""What the default noise has a ladder for, whatever share of it the noisy counts take."""
DEFAULT: Final = METHODS[0]
Method = Annotated[str, OneOf(METHODS, "Leave it out for the most accurate.")]
SmallerClass = Annotated[
    int | None, Whole(1, _MOST_ROWS, "Leave it out if there is no public guess.")
]


def resolution_of(about: ScoredRows, scores: str | None = None) -> str:
    """Exact scores or the public grid: decided by what is declared or public, never by rows."""
    if scores is not None:
        return scores
    if about.remote:
        return "grid"  # so that counts travel, and not rows
    return "exact" if about.rows is None or about.rows <= LARGEST_EXACT else "grid"


@dataclass(frozen=True, kw_only=True)
class _Ranking(Question):
    """One ranking metric, with noise whose parameters come from public facts alone."""

    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    metric: ClassVar[str]
    method: Method = DEFAULT
    smaller_class: SmallerClass = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Refused here if any outcome of the first look would leave too little for the value.
        if self.method == DEFAULT and not LEAST_EPSILON <= self.price <= MOST_EPSILON:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_EPSILON} and {MOST_EPSILON} for {DEFAULT!r}, "
                f"got {shown(self.price)}. Pass another one, or method='polynomial-tail'."
            )

    def _resolution(self, about: ScoredRows) -> str:
        return resolution_of(about, getattr(self, "scores", None))

    def _statistic(self, about: ScoredRows) -> Statistic:
        if self._resolution(about) == "grid":
            return RankedTable(self.metric, ScoreTable(score_range=about.score_range))
        return RankedRows(self.metric)

    def _parameters(self, about: ScoredRows) -> dict[str, Any]:
        named: dict[str, Any] = {
            "score": about.score,
            "scores": self._resolution(about),
            "method": self.method,
        }
        if self.smaller_class is not None:
            named["smaller_class"] = self.smaller_class
        return named | about.scale_parameters

    def _stages(self, about: ScoredRows, *, alone: bool = False) -> RankingStages:
        """The value, and tables and moments beside it where they tell more than they cost."""
        return RankingStages(
            metric=self.metric,
            epsilon=self.price,
            protection=about.protection,
            rows=about.rows,
            score_range=about.score_range,
            statistic=self._statistic(about),
            smaller_class=self.smaller_class,
            method=self.method,
            delta=getattr(self, "delta", None),
            alone=alone,
        )

    def _asked(
        self, about: ScoredRows, view: Callable[[Any], Any] | None = None, **named: str
    ) -> Request | Staged:
        parameters = self._parameters(about) | named
        return self._stages(about).request(parameters=parameters, view=view)

    def request(self, about: ScoredRows) -> Request | Staged:
        return self._asked(about)

    def typical(self, about: ScoredRows, guess: Guess) -> RankingDraw:
        return self._typical(self._stages(about).value, guess)

    def _typical(self, mechanism: Any, guess: Guess) -> RankingDraw:
        counts = guess.counts[: 1 if mechanism.protection.row_count_is_public else 2]
        first = counts if mechanism.first_look is not None else ()
        second = counts if mechanism.second_look(first) is not None else ()
        units = round(Fraction(self._guessed(guess)) / LATTICE)
        return RankingDraw(mechanism, units, first, second)

    def _guessed(self, guess: Guess) -> float:
        return guess.auc


@dataclass(frozen=True, kw_only=True)
class _Area(_Ranking):
    """A ranking metric of one model, of all rows or by group.

    `smaller_class` is a public guess of the smaller class (for average precision: of the
    positives), which makes the noise fit better. A wrong guess costs accuracy, never privacy.
    `method` may name another noise law: "polynomial-tail", "cauchy", or the papers'
    "boyd-2015-cauchy" and "boyd-2015-laplace" (with `delta`). `scores` is "exact" or "grid"; a
    ranking on the grid needs little memory and is the default for more than five million rows
    where their number is public.
    """

    delta: Annotated[Any, Exact()] = None
    scores: Annotated[str | None, OneOf(("exact", "grid"))] = None
    by: By = None
    release: ClassVar[type[RankingRelease]] = RankingRelease

    def request(self, about: ScoredRows) -> Request | Staged:
        if self.by is None:
            return self._asked(about)
        if self._resolution(about) == "grid":
            raise ArgumentError(
                "by= ranks exact scores, which must fit into memory. Ask for a confusion matrix "
                "or a mean error by group, or copy the rows."
            )
        statistic = RankedGroups(self.metric, how_many(self.by, about))
        parameters = self._parameters(about) | named(self.by, about)
        mechanism = self._each_group(about)
        return Request(self.metric, statistic, mechanism, parameters, view=divided(self.by))

    def _each_group(self, about: ScoredRows) -> EachGroup:
        """A row that leaves or arrives moves one group: each is asked as if for a row alone."""
        moved = about.protection.rows_moved
        if self.method == DEFAULT and self.price / moved < LEAST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at least {moved * LEAST_EPSILON} by group, got {self.price}."
            )
        row = replace(about, protection=Protection(neighbours=Neighbours.ADD_REMOVE), rows=None)
        one = replace(self, epsilon=self.price / moved)._stages(row, alone=True).value
        return EachGroup(self.price, moved, how_many(self.by, about), one)

    def read(self, drawn: Drawn) -> RankingRelease | ByGroup:
        if self.by is None:
            return self.release(drawn)
        asked = drawn.request
        parts = (part(drawn, asked.statistic.whole, asked.mechanism.one, v) for v in drawn.values)
        return ByGroup(drawn, map(self.release, parts))

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        if self.by is None:
            return super().typical(about, guess)
        alike = shared(guess, how_many(self.by, about))
        return [self._typical(self._each_group(about).one, alike)] * how_many(self.by, about)


@dataclass(frozen=True, kw_only=True)
class Auc(_Area):
    """The area under the ROC curve; a tied pair counts one half, as in scikit-learn."""

    kind: ClassVar[str] = "auc"
    metric: ClassVar[str] = "auc"

    release: ClassVar[type[RankingRelease]] = AucRelease


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(_Area):
    """The mean precision at the positive rows' ranks; within a tie negatives come first."""

    kind: ClassVar[str] = "average-precision"
    metric: ClassVar[str] = "average-precision"

    def _guessed(self, guess: Guess) -> float:
        return guess.precision()


@dataclass(frozen=True, kw_only=True)
class Compare(_Ranking):
    """Is the model with this score better on the same rows? The difference of the two AUCs."""

    kind: ClassVar[str] = "compare"
    metric: ClassVar[str] = "auc-difference"
    score: Annotated[str, Text("the name of a column")]

    def _resolution(self, about: ScoredRows) -> str:
        return "grid" if about.remote else "exact"

    def request(self, about: ScoredRows) -> Request | Staged:
        about.check_rival(self.score)
        rival = self.score
        return self._asked(about, lambda rows: rows.with_rival(rival), rival=rival)

    def read(self, drawn: Drawn) -> CompareRelease:
        return CompareRelease(drawn)

    def _guessed(self, guess: Guess) -> float:
        return 0.5


@dataclass(frozen=True, kw_only=True)
class GridTies(_Ranking):
    """The share of pairs that the public grid ties: how much ranking on it can matter.

    It moves like an area, so it has an area's noise, and a small epsilon is enough where there
    are many rows.
    """

    kind: ClassVar[str] = "grid-ties"
    metric: ClassVar[str] = "auc"

    def _resolution(self, about: ScoredRows) -> str:
        return "grid"

    def _statistic(self, about: ScoredRows) -> Statistic:
        return TiedPairs(ScoreTable(score_range=about.score_range))

    def _stages(self, about: ScoredRows, *, alone: bool = True) -> RankingStages:
        return super()._stages(about, alone=True)  # its interval is for noise alone

    def request(self, about: ScoredRows) -> Request:
        stages = self._stages(about)
        return Request("grid-ties", stages.statistic, stages.value, self._parameters(about))

    def read(self, drawn: Drawn) -> TiesRelease:
        return TiesRelease(drawn)

    def _guessed(self, guess: Guess) -> float:
        return 0.0
