"""Questions about how a model ranks the rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Self, TypeVar, cast

import numpy as np

from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.intervals.groups import ByGroup
from heldout.kernel.curves.heldout import TableWithArea
from heldout.kernel.door import Drawn, Request, Staged
from heldout.kernel.loss import decimal
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.ranking.mechanism import METHODS, RankingDraw, RankSumDraw, RankSums
from heldout.kernel.ranking.statistic import (
    LARGEST_EXACT,
    NEGATIVES_FIRST,
    RankDifferences,
    RankedRows,
    RankedTable,
    RankedWithTable,
    ScoreTable,
    TiedPairs,
)
from heldout.kernel.ranking.value_or_counts import ValueOrCounts, ValueOrTable
from heldout.kernel.statistic import Statistic
from heldout.questions.base import (
    Choice,
    Exact,
    Number,
    OneOf,
    Question,
    R_co,
    Rival,
    Section,
    Whole,
)
from heldout.questions.curves.questions import Curves
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess, HalfWidths, typical_sums
from heldout.questions.ranking.paired import PAIRED, PairedDifference, PairedErrors, paired_request
from heldout.questions.ranking.release import (
    AucRelease,
    CompareRelease,
    RankingRelease,
    RankingStages,
    TiesRelease,
)
from heldout.questions.worst_cases import (
    HIGH,
    LOW,
    REMOVE,
    REST,
    Pair,
    WorstCase,
    crossings,
    grouped_pair,
    hundreds,
    label_pairs,
    mapped_pairs,
    rows,
    spread,
    table_pair,
    unit_pair,
)

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["LEAST_EPSILON", "Auc", "AveragePrecision", "Compare", "GridTies", "resolution_of"]

Area_co = TypeVar("Area_co", bound=RankingRelease, covariant=True)
_MOST_ROWS: Final = 2**50  # four times it, as the top of a ladder, fits 64 bits
SMALL_CLASSES: Final = "a part is for the classes, and where they are small the noise is wider"
LEAST_EPSILON: Final = Fraction(1, 5000)
MOST_EPSILON: Final = 100
"""What the default noise has a ladder for, whatever share of it the noisy counts take."""
DEFAULT: Final = METHODS[0]
Method = Annotated[
    str,
    OneOf(METHODS, "Leave it out for the most accurate."),
    "The noise law; the default is the most accurate.",
]
SmallerClass = Annotated[
    int | None,
    Whole(1, _MOST_ROWS, "Leave it out if there is no public guess."),
    "A public guess of the size of the smaller class (of the positives, for average "
    "precision). It lowers the noise.",
]

_FORECASTS: Final = 15
GROUPED: Final = "grouped"
Ties = Annotated[
    str,
    OneOf((GROUPED, "negatives-first")),
    "How tied rows count: together, as in scikit-learn, or negatives first.",
]


def resolution_of(about: ScoredRows, scores: str | None = None) -> str:
    """Exact scores or the public grid: decided by what is declared or public, never by rows."""
    if scores is not None:
        return scores
    if about.remote:
        return "grid"  # so that counts travel, and not rows
    return "exact" if about.rows is None or about.rows <= LARGEST_EXACT else "grid"


@dataclass(frozen=True, kw_only=True)
class _Ranking(Question[R_co]):
    """One ranking metric, with noise whose parameters come from public facts alone."""

    of = (ScoredRows,)
    stores = (RankingDraw, RankSumDraw, ValueOrTable)
    metric: ClassVar[str]
    alone: ClassVar[bool] = False
    """Whether the value is bought without tables and moments; so it is of one group."""
    adapts: ClassVar[bool] = False
    """Whether counts by score may be drawn where a class is small."""
    rules = 5
    """Since 2, average precision has scikit-learn's rule of ties; since 3, what is spent beside the
    value grows with rows and epsilon from nothing; since 4, that of comparisons does too, and areas
    of small classes are read off counts by score; since 5, few public rows are counted outright,
    and comparisons spend little beside the value at first."""
    known_rules = (1, 2, 3, 4, 5)
    reported_since = (1, 3, 4, 5, 6)
    method: Method = DEFAULT
    smaller_class: SmallerClass = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method != DEFAULT:
            return
        if self.price > MOST_EPSILON:
            price = decimal(self.price)
            raise ArgumentError(f"epsilon must be at most {MOST_EPSILON}, got {price}.")
        # Refused here if any outcome of the first look would leave too little for the value.
        if self.price < LEAST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at least {decimal(LEAST_EPSILON)} for the {self.title}, got "
                f"{decimal(self.price)}. Pass a larger epsilon, or method='polynomial-tail'."
            )

    def _resolution(self, about: ScoredRows) -> str:
        return resolution_of(about, getattr(self, "scores", None))

    def _statistic(self, about: ScoredRows) -> Statistic[Any]:
        metric, may_count, on_grid = (
            self._ranked,
            self._may_count,
            self._resolution(about) == "grid",
        )
        table = ScoreTable(score_range=about.score_range)
        ranked: RankedRows | RankedTable = RankedRows(metric)
        if on_grid:
            ranked = RankedTable(metric, table, self._rival_range(about))
        return RankedWithTable(ranked, table) if may_count else ranked

    @property
    def _may_count(self) -> bool:
        """Return whether counts by score may be drawn where a class is small."""
        default = self.method == DEFAULT and getattr(self, "delta", None) is None
        return self.adapts and self.rules > 3 and default

    @property
    def _ranked(self) -> str:
        """Return the metric that is read off the rows."""
        return self.metric

    def _rival_range(self, about: ScoredRows) -> tuple[float, float] | None:
        """Return the range of the second model's scores, where there is one."""
        return None

    def _parameters(self, about: ScoredRows) -> dict[str, Any]:
        named: dict[str, Any] = {
            "score": about.score,
            "scores": self._resolution(about),
            "method": self.method,
        }
        if self.smaller_class is not None:
            named["smaller_class"] = self.smaller_class
        return named | about.scale_parameters

    def _stages(self, about: ScoredRows) -> RankingStages:
        """The value, and tables and moments beside it where they tell more than they cost."""
        return RankingStages(
            metric=self.metric,
            epsilon=self.price,
            protection=about.protection,
            rows=about.rows,
            score_range=about.score_range,
            rival_range=self._rival_range(about),
            statistic=self._statistic(about),
            smaller_class=self.smaller_class,
            method=self.method,
            delta=getattr(self, "delta", None),
            alone=self.alone,
            counts=about.declared_points if self._may_count else None,
            outright=self.rules > 4,
            grows=self.rules > 2,
            compared_grows=self.rules > 3,
            compared_slowly=self.rules > 4,
        )

    def _asked(
        self, about: ScoredRows, view: Callable[[Any], Any] | None = None, **named: Any
    ) -> Request | Staged:
        parameters = self._parameters(about) | named
        return self._stages(about).request(parameters=parameters, view=view)

    def request(self, about: ScoredRows) -> Request | Staged:
        return self._asked(about)

    def typical(self, about: ScoredRows, guess: Guess) -> object:
        mechanism = self._stages(about).value
        if isinstance(mechanism, RankSums):
            # Two models of most kinds place no row further apart than half of the others.
            return RankSumDraw(mechanism, guess.counts[0], 0, mechanism.rows)
        if not isinstance(mechanism, ValueOrCounts):
            return self._typical(mechanism, guess)
        first = guess.counts[: mechanism.dimension]
        second = first if mechanism.looks_again(first) else ()
        value = table = None
        if mechanism.is_small(first, second):
            counted = mechanism.counted(first, second)
            table = Curves(epsilon=counted.epsilon).typical(about, guess)
        else:
            value = self._typical(mechanism.ranked(first, second), guess)
        return ValueOrTable(mechanism, first, second, value, cast(TableWithArea, table))

    def _typical(self, mechanism: Any, guess: Guess) -> RankingDraw:
        counts = guess.counts[: 1 if mechanism.protection.row_count_is_public else 2]
        first = counts if mechanism.first_look is not None else ()
        second = counts if mechanism.second_look(first) is not None else ()
        units = round(Fraction(self._guessed(guess)) / LATTICE)
        return RankingDraw(mechanism, units, first, second)

    def _guessed(self, guess: Guess) -> float:
        return guess.auc


@dataclass(frozen=True, kw_only=True)
class _Area(_Ranking[Area_co], Divisible[Area_co, ByGroup[Area_co]], Generic[Area_co]):
    """A ranking metric of one model.

    `smaller_class` is a public guess of the smaller class (for average precision: of the
    positives), which makes the noise fit better. A wrong guess costs accuracy, never privacy.
    `method` may name another noise law: "polynomial-tail", "cauchy", or the papers'
    "boyd-2015-cauchy" and "boyd-2015-laplace" (with `delta`). `scores` is "exact" or "grid"; a
    ranking on the grid needs little memory and is the default for more than five million rows
    where their number is public.
    """

    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"by": "g"},
        {"scores": "grid"},
        {"method": "polynomial-tail"},
        {"method": "cauchy"},
        {"smaller_class": 5},
        {"epsilon": 60},
        {"epsilon": 60, "by": "g"},
    )
    delta: Annotated[
        Any, Exact(), "The delta of (epsilon, delta) privacy, for methods that need one."
    ] = None
    scores: Annotated[
        str | None, OneOf(("exact", "grid")), "Rank exact scores, or cells of the public grid."
    ] = None
    reading: ClassVar[type[RankingRelease]] = RankingRelease
    adapts: ClassVar[bool] = True

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.answer import PooledArea

        return PooledArea(sites)

    def check_by_group(self, about: ScoredRows) -> None:
        moved = about.protection.rows_moved
        if self._resolution(about) == "grid":
            raise ArgumentError(
                "by= ranks exact scores, which must fit into memory. Ask for a confusion matrix "
                "or a mean error by group, or copy the rows."
            )
        if self.method == DEFAULT and self.price / moved < LEAST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at least {decimal(moved * LEAST_EPSILON)} by group, got "
                f"{decimal(self.price)}."
            )

    def in_group(self, epsilon: Fraction) -> Self:
        one = super().in_group(epsilon)
        object.__setattr__(one, "alone", True)
        return one

    def read(self, drawn: Drawn) -> Area_co:
        return cast(type[Area_co], self.reading)(drawn)

    def expected(
        self, about: ScoredRows, guess: Guess, level: float = 0.95
    ) -> dict[str, HalfWidths]:
        """Return the median of several forecasts where counts are drawn: tables differ."""
        first = self.typical_release(about, guess)
        assert first is not None
        if not first.is_counted:
            return super().expected(about, guess, level)
        several = [first, *(self.typical_release(about, guess) for _ in range(_FORECASTS - 1))]
        return {
            first.headline.name: HalfWidths.median(
                [HalfWidths.of(release.headline, level) for release in several if release]
            )
        }


@dataclass(frozen=True, kw_only=True)
class Auc(_Area[AucRelease]):
    """The area under the ROC curve; a tied pair counts one half, as in scikit-learn."""

    kind = "auc"
    title = "AUC"
    asks = "How well does it rank?"
    tells = (
        "The area under the ROC curve: how often a positive row scores higher than a negative one."
    )
    metric: ClassVar[str] = "auc"
    reading: ClassVar[type[RankingRelease]] = AucRelease
    section = Section(
        title="Ranking: area under the ROC curve",
        meaning="How often a positive row has a higher score than a negative one; a tie counts "
        "one half, and 0.5 is chance.",
        weight=20,
        weight_with_curves=70,
        place=10,
        leads=True,
    )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = worst_areas()
        few = (*pairs[1:4], pairs[-1])
        grouped = (*crossings(rows(*hundreds())), grouped_pair(pairs[3], "a", "b"))
        return (
            WorstCase(pairs=pairs, read=_as_drawn, why=SMALL_CLASSES, both_doors=True),
            WorstCase(
                name="value",
                pairs=pairs,
                fields=_LARGE,
                why=SMALL_CLASSES,
                note="as if classes were large, so that the value is drawn",
            ),
            WorstCase(
                name="by-group",
                pairs=grouped,
                fields={"by": "g"},
                read=_as_drawn,
                note="a person's rows are in several groups",
            ),
            WorstCase(
                name="of-persons",
                pairs=worst_persons(),
                fields=_LARGE,
                why=SMALL_CLASSES,
                note="two rows of one person",
            ),
            WorstCase(
                name="mapped",
                pairs=mapped_pairs(),
                read=_as_drawn,
                why=SMALL_CLASSES,
                note="scores without a range, by score_map",
            ),
            # The noise of Cauchy laws is so wide that little shows at epsilon 1.
            *(
                WorstCase(
                    name=law,
                    pairs=few,
                    fields={"method": law},
                    epsilon=price,
                    why="tails wider than privacy needs",
                )
                for law, price in (
                    ("polynomial-tail", "1"),
                    ("cauchy", "4"),
                    ("boyd-2015-cauchy", "6"),
                )
            ),
            WorstCase(
                name="boyd-2015-laplace",
                pairs=few,
                fields={"method": "boyd-2015-laplace", "delta": "1/100"},
                epsilon="3",
                note="the one release with a delta, 0.01",
                why="half is for the change of scale, and delta is taken off",
                answers_each=90,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(_Area[RankingRelease]):
    """The mean precision at the positive rows' scores, as in scikit-learn.

    `ties="negatives-first"` ranks the negatives of a tie before its positives, as Boyd, Lantz and
    Page (2015) do: never more, and without ties the same.
    """

    kind = "average-precision"
    title = "average precision"
    asks = "How good are its highest scores?"
    tells = "Average precision: the share of positive rows among those it ranks first."
    metric: ClassVar[str] = "average-precision"
    ties: Ties = GROUPED
    replayed = (
        *_Area.replayed,
        {"ties": "negatives-first"},
    )
    section = Section(
        title="Ranking: average precision",
        meaning="The precision at the positive rows' ranks, on average: high if alarms at the "
        "top of the list are right. Chance gives the prevalence.",
        weight=40,
        weight_with_curves=42,
        place=20,
    )

    @property
    def _ranked(self) -> str:
        return self.metric if self.ties == GROUPED and self.rules > 1 else NEGATIVES_FIRST

    @property
    def _may_count(self) -> bool:
        return super()._may_count and self.ties == GROUPED

    def _parameters(self, about: ScoredRows) -> dict[str, Any]:
        named = super()._parameters(about)
        return named if self.rules == 1 else {**named, "ties": self.ties}

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        top, few, many = [0.9 + 0.01 * i for i in range(4)], spread(8), spread(60)
        positives = hundreds()[0]
        pairs = (
            table_pair("a negative is put on top", rows(top, [*few, LOW]), rows(top, [*few, 0.99])),
            table_pair(
                "a positive becomes a negative on top",
                rows(top, few),
                rows(top[:-1], [*few, 0.99]),
            ),
            table_pair(
                "one of two positives falls", rows([0.9, HIGH], many), rows([0.9, LOW], many)
            ),
            table_pair("the only positive falls", rows([HIGH], many), rows([LOW], many)),
            table_pair("the last positive is replaced", rows([HIGH], few), rows([], [*few, LOW])),
            table_pair(
                "a negative arrives on top",
                rows(top[:3], few),
                rows(top[:3], [*few, 0.99]),
                **REMOVE,
            ),
            table_pair("the last positive leaves", rows([HIGH], few), rows([], few), **REMOVE),
            table_pair(
                "one of hundreds of positives becomes a negative on top",
                rows([*positives, HIGH], few),
                rows(positives, [*few, 0.99]),
            ),
        )
        return (
            WorstCase(pairs=pairs, read=_as_drawn, why=SMALL_CLASSES, both_doors=True),
            WorstCase(
                name="value",
                pairs=pairs,
                fields=_LARGE,
                why=SMALL_CLASSES,
                note="as if there were many positives, so that the value is drawn",
            ),
            WorstCase(
                name="negatives-first",
                pairs=pairs[:2],
                fields={"ties": "negatives-first"},
                why=SMALL_CLASSES,
            ),
        )

    def _guessed(self, guess: Guess) -> float:
        return guess.precision()


AP: Final = "average-precision"
RANKED: Final = {"auc": "auc-difference", AP: "average-precision-difference"}
"""Measures of how rows are ranked, with the metric that is the difference of two of them."""


@dataclass(frozen=True, kw_only=True)
class Compare(_Ranking[CompareRelease | PairedDifference]):
    """Is the model with this score better on the same rows? The difference of the two AUCs.

    `measure` may be average precision, or another one that is compared row by row.
    """

    kind = "compare"
    title = "difference in AUC"
    asks = "Is it better than another model?"
    tells = "The difference in AUC on the same rows: sharper than two AUCs side by side."
    formerly = ("auc-difference",)
    metric: ClassVar[str] = "auc-difference"
    score: Annotated[str, Rival(), "The declared column with the other model's score."]
    measure: Annotated[
        str,
        OneOf((*RANKED, *PAIRED)),
        "The measure to compare by; for errors, lower is better.",
    ] = "auc"
    threshold: Annotated[
        float,
        Number(),
        "For accuracy, recall and specificity: rows with at least this score are called positive.",
    ] = 0.5
    rival_threshold: Annotated[
        float | None, Number(), "The other model's threshold, if it differs."
    ] = None
    example: ClassVar[Mapping[str, Any]] = {"score": "q"}
    replayed = (
        {},
        {"smaller_class": 5},
        {"epsilon": 100},
        *({"measure": measure} for measure in (AP, *PAIRED)),
    )

    @property
    def _ranked(self) -> str:
        return RANKED.get(self.measure, self.metric)

    def _stages(self, about: ScoredRows) -> RankingStages:
        # Tables and moments beside the value are those of areas.
        return replace(super()._stages(about), metric=self._ranked, alone=self.measure == AP)

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.answer import PooledArea

        measure = sites[0].content["parameters"].get("measure", "auc")
        if measure != "auc":
            raise ArgumentError(f"Differences in {measure} of several sites are not pooled yet.")
        return PooledArea(sites)

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        most = -math.log(parameters["clip"]) if "clip" in parameters else 1.0
        return (-most, most)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        areas = worst_areas()
        pairs = tuple(map(_two_models, (areas[0], areas[1], areas[5], areas[-1])))
        ends = (
            _two_models(
                table_pair("a row is wrong, then right", [*REST, (1, 0.0)], [*REST, (1, 1.0)])
            ),
            _two_models(
                table_pair("a row that is right leaves", [*REST, (1, 1.0)], REST, **REMOVE)
            ),
        )
        paired = (
            WorstCase(name=measure, pairs=ends, fields={"measure": measure}) for measure in PAIRED
        )
        precise = WorstCase(name=AP, pairs=pairs, fields={"measure": AP}, why=SMALL_CLASSES)
        flipped = tuple(map(_two_models, label_pairs(1.0)))
        labels = (
            WorstCase(
                name=f"{measure}-labels",
                pairs=flipped,
                fields={"measure": measure},
                note="only outcomes are secret: noise by how far the models are apart",
            )
            for measure in ("auc", "brier", "recall")
        )
        whole = WorstCase(pairs=pairs, why=SMALL_CLASSES, both_doors=True)
        return (whole, precise, *paired, *labels)

    def _resolution(self, about: ScoredRows) -> str:
        return "grid" if about.remote else "exact"

    def _statistic(self, about: ScoredRows) -> Statistic[Any]:
        by_outcome = about.protection.only_labels and self.method == DEFAULT
        if by_outcome and self.measure == "auc" and self._resolution(about) == "exact":
            return RankDifferences()
        return super()._statistic(about)

    def _rival_range(self, about: ScoredRows) -> tuple[float, float] | None:
        return about.rival_range(self.score)

    def request(self, about: ScoredRows) -> Request | Staged:
        if self.measure in PAIRED:
            return paired_request(
                self.measure,
                about,
                self.price,
                rival=self.score,
                threshold=self.threshold,
                rival_threshold=self.rival_threshold,
            )
        about.check_rival(self.score)
        rival = self.score
        named = about.rival_parameters(rival)
        if self.measure != "auc":
            named |= {"measure": self.measure}
        return self._asked(about, lambda rows: rows.with_rival(rival), **named)

    def read(self, drawn: Drawn) -> CompareRelease | PairedDifference:
        return CompareRelease(drawn) if self.measure in RANKED else PairedDifference(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> object:
        """Return rows of which one in ten is right with one model alone, or a guess of areas."""
        if self.measure in RANKED:
            return super().typical(about, guess)
        request = self.request(about)
        statistic = request.statistic if isinstance(request, Request) else None
        if isinstance(statistic, PairedErrors):
            return typical_sums(statistic, replace(guess, mean_error=0.5, error_spread=0.3))
        shares = np.array([0.6, 0.05, 0.05, 0.3])
        positives, negatives = guess.counts
        counts = np.concatenate([shares * negatives, shares[::-1] * positives])
        return np.round(counts).astype(np.int64)

    def _guessed(self, guess: Guess) -> float:
        return 0.5


@dataclass(frozen=True, kw_only=True)
class GridTies(_Ranking[TiesRelease]):
    """The share of pairs that the public grid ties: how much ranking on it can matter.

    It moves like an area, so it has an area's noise, and a small epsilon is enough where there
    are many rows.
    """

    kind = "grid-ties"
    title = "ties on the grid"
    asks = "Does it matter that scores are ranked on a grid?"
    tells = (
        "The share of pairs of a positive and a negative row that share a cell of the public grid."
    )
    cannot_pool = "rows of different sites are never ranked against one another"
    metric: ClassVar[str] = "auc"
    section = Section(
        title="Ties on the grid",
        meaning="So many rows are ranked by score cells on the public grid. This is the share of "
        "pairs of a positive and a negative row that share a cell; half of it is what the order "
        "within cells can do to the AUC.",
        weight=1,
        place=300,
        always=False,
        lower_is_better=True,
        secondary=True,
    )

    @classmethod
    def joins_report(cls, description: Any, choice: Choice) -> bool:
        ranked = Auc.kind in choice.beside and not choice.weighted
        return ranked and resolution_of(description, choice.scores) == "grid"

    @classmethod
    def for_report(cls, epsilon: Fraction, choice: Choice) -> Question[object] | None:
        return None if epsilon < LEAST_EPSILON else super().for_report(epsilon, choice)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        tied = [0.5] * 8
        pairs = (
            table_pair(
                "the only positive leaves the cell of all", rows([0.5], tied), rows([HIGH], tied)
            ),
            table_pair(
                "the second positive is replaced",
                rows([0.5, LOW], tied),
                rows([LOW], [*tied, HIGH]),
            ),
            table_pair(
                "one of hundreds of positives leaves the cell of all",
                rows([0.5] * 601, [0.5] * 600),
                rows([0.5] * 600 + [HIGH], [0.5] * 600),
            ),
            table_pair("the last positive leaves", rows([0.5], tied), rows([], tied), **REMOVE),
        )
        return (WorstCase(pairs=pairs, why=SMALL_CLASSES, both_doors=True),)

    alone: ClassVar[bool] = True  # its interval is for noise alone

    def _resolution(self, about: ScoredRows) -> str:
        return "grid"

    def _statistic(self, about: ScoredRows) -> Statistic[Any]:
        return TiedPairs(ScoreTable(score_range=about.score_range))

    def request(self, about: ScoredRows) -> Request:
        stages = self._stages(about)
        return Request("grid-ties", stages.statistic, stages.value, self._parameters(about))

    def read(self, drawn: Drawn) -> TiesRelease:
        return TiesRelease(drawn)

    def _guessed(self, guess: Guess) -> float:
        return 0.0


_LARGE: Final[Mapping[str, Any]] = {"smaller_class": 10**4}
_PLACES: Final = np.array([0.25, 0.5, 0.75])


def _as_drawn(pair: Pair, answer: Any) -> list[float]:
    """Return what was drawn as so many numbers, whether that is values or counts by score."""
    parts = answer.groups.values() if isinstance(answer, ByGroup) else [answer]
    return [number for part in parts for number in _few_numbers(part)]


def _few_numbers(release: RankingRelease) -> list[float]:
    drawn = release._as_drawn
    assert isinstance(drawn, ValueOrTable)
    looks = [*drawn.first_counts, *(drawn.second_counts or drawn.first_counts)]
    if drawn.table is None:
        assert drawn.value is not None
        own = drawn.value.second_counts or drawn.value.first_counts
        counts = np.zeros((2, len(_PLACES) + 1))
        numbers = [drawn.value.unclamped, float(own[0])]
    else:
        edges = drawn.table.edges / drawn.table.edges[-1]
        above = (
            np.append(np.cumsum(part[::-1])[::-1], 0)
            for part in (drawn.table.negatives, drawn.table.positives)
        )
        counts = np.array([np.interp([0.0, *_PLACES], edges, part) for part in above])
        numbers = [0.0, 0.0]
    return [*map(float, looks), *numbers, *counts.ravel().tolist()]


def worst_areas() -> tuple[Pair, ...]:
    """Return pairs where an area moves most."""
    few, some, (above, below) = spread(8), spread(20), hundreds()
    nineteen = [0.8 + 0.005 * i for i in range(19)]
    return (
        table_pair("one of two positives falls", rows([HIGH, 0.9], few), rows([HIGH, LOW], few)),
        table_pair("the only positive falls", rows([HIGH], few), rows([LOW], few)),
        table_pair("the last positive is replaced", rows([HIGH], few), rows([], [*few, HIGH])),
        table_pair(
            "the second positive is replaced", rows([HIGH, LOW], few), rows([LOW], [*few, HIGH])
        ),
        table_pair(
            "one of twenty positives falls",
            rows([*nineteen, HIGH], some),
            rows([*nineteen, LOW], some),
        ),
        table_pair("the last positive leaves", rows([HIGH], few), rows([], few), **REMOVE),
        table_pair(
            "the second positive leaves", rows([HIGH, LOW], few), rows([LOW], few), **REMOVE
        ),
        # Where classes are large hardly anything is spent on their counts: the value shows most.
        table_pair(
            "one of hundreds of positives falls",
            rows([*above, HIGH], below),
            rows([*above, LOW], below),
        ),
    )


def worst_persons() -> tuple[Pair, ...]:
    """Return pairs where two rows of one person move an area most."""
    few, (above, below) = spread(8), hundreds()
    return (
        unit_pair(
            "a person's two positives of hundreds fall",
            rows([HIGH, HIGH, *above], below),
            rows([LOW, LOW, *above], below),
        ),
        unit_pair(
            "a person's two rows are all positives", rows([HIGH, HIGH], few), rows([LOW, LOW], few)
        ),
    )


def _two_models(pair: Pair) -> Pair:
    """Return the pair with a second model's score, 1 - p: a row that falls for A rises for B."""

    def of(content: Mapping[str, Any]) -> dict[str, Any]:
        return {**content, "q": [1 - p for p in content["p"]]}

    return Pair(pair.name, of(pair.first), of(pair.second), {**pair.options, "rivals": ["q"]})
