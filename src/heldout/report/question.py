"""The question that a report answers: several questions at exact shares of one price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeGuard

from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.metrics.auc_interval import Look
from heldout.metrics.confusion import ConfusionRelease
from heldout.metrics.curves.curve import grid_point
from heldout.metrics.ranking import RankingRelease
from heldout.metrics.release import Release
from heldout.questions import Guess, HalfWidths, Question
from heldout.questions.ranking import LEAST_EPSILON, resolution_of
from heldout.questions.rules import By, Choices, Flag, Number, OneOf, Whole
from heldout.release import Drawn, Together
from heldout.report.report import Report as Answer
from heldout.report.sections import (
    BY_GROUP,
    CLASSES_BY_GROUP,
    CLASSES_ON_DEMAND,
    EVERY,
    OF_CLASSES,
    ON_DEMAND,
    ON_GRID,
    SECTIONS,
    WITH_CURVES,
    Options,
    Section,
    section,
    shared,
)
from heldout.statistics import ScoreTable

if TYPE_CHECKING:
    from heldout.metrics.curves.release import CurvesRelease

__all__ = ["Purchase", "Report", "assembled"]


@dataclass(frozen=True)
class Purchase:
    """What a report will hold of rows with this description, and what each section costs."""

    shares: Mapping[str, Fraction]
    questions: Mapping[str, Question]
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Report(Question):
    """Everything that a reader of a report asks for, each at its own exact share of epsilon.

    `threshold` is the middle of the score range unless it is given; `curves` adds their section;
    `sections` are the names of those to buy, all but the curves if it is left out; `scores` is as
    in `Auc`; `by` adds the decisions by declared group. With `weighted` rows count by their
    declared weights, and what has no weighted form is left out. `k` is how many rows of each ranked
    list count, in the sections "ndcg" and "precision_at_k".
    """

    kind: ClassVar[str] = "report"
    of: ClassVar[tuple[type, ...]] = (ScoredRows, ClassifiedRows)
    threshold: Annotated[float | None, Number()] = None
    curves: Annotated[bool, Flag()] = False
    sections: Annotated[Any, Choices(EVERY)] = None
    scores: Annotated[str | None, OneOf(("exact", "grid"))] = None
    by: By = None
    weighted: Annotated[bool, Flag()] = False
    k: Annotated[int, Whole(1, 10**6)] = 10

    def _chosen(self, about: Any) -> tuple[Section, ...]:
        if isinstance(about, ClassifiedRows):
            if self.threshold is not None or self.curves:
                raise ArgumentError(
                    "threshold and curves must be left out where there are classes. Ask "
                    "session.versus(...) for one class."
                )
            brier = section("brier")
            named = {each.name.removesuffix("_of_classes"): each for each in (*OF_CLASSES, brier)}
            wanted = tuple(named) if self.sections is None else self.sections
            named |= {each.name: each for each in (*CLASSES_ON_DEMAND, *ON_DEMAND)}
            chosen = tuple(named[name] for name in named if name in wanted)
            return (*chosen, *(() if self.by is None else CLASSES_BY_GROUP))
        every = (*SECTIONS, *WITH_CURVES)
        grouped = () if self.by is None else BY_GROUP
        if self.sections is None:
            return (*(every if self.curves else SECTIONS), *grouped)
        asked = {*self.sections, "curves"} if self.curves else set(self.sections)
        return (*(each for each in (*every, *ON_DEMAND) if each.name in asked), *grouped)

    def purchase(self, about: Any) -> Purchase:
        """The sections that apply, by what is declared of the rows, with a question for each."""
        if self.weighted:
            about.check_weight()
        chosen = self._chosen(about)
        options = Options(0.5, by=self.by, weighted=self.weighted, k=self.k)
        if isinstance(about, ScoredRows):
            at = about.threshold(about.middle if self.threshold is None else self.threshold)
            inside = _inside(at, about)
            options = replace(options, threshold=at, scores=self.scores, inside=inside)
        ranked = not self.weighted and any(each.name == "auc" for each in chosen)
        grid = ON_GRID if ranked and resolution_of(about, self.scores) == "grid" else ()
        reasons = {each.name: self._why_not(each, about) for each in (*chosen, *grid)}
        wanted = [each for each in (*chosen, *grid) if reasons[each.name] is None]
        reasons |= self._strange(chosen, about)
        if not wanted:
            reason = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            raise ArgumentError(f"No section applies ({reason}). Name others.")
        shares = _shares(self.price, wanted)
        if grid and shares[grid[0].name] < LEAST_EPSILON:  # too little to say anything
            wanted = [each for each in wanted if each not in grid]
            shares = _shares(self.price, wanted)
        options = replace(options, beside=frozenset(shares))
        return Purchase(
            shares=shares,
            questions={each.name: each.question(shares[each.name], options) for each in wanted},
            left_out={name: why for name, why in reasons.items() if why is not None},
        )

    def _strange(self, chosen: Sequence[Section], about: Any) -> dict[str, str]:
        """Those that were named and that rows of this kind do not have."""
        have = {each.name.removesuffix("_of_classes") for each in chosen}
        several = isinstance(about, ClassifiedRows)
        why = f"it takes an outcome of {'two' if several else 'more than two'} values"
        found = dict.fromkeys([each for each in self.sections or () if each not in have], why)
        # A report of several classes never had it by this name, and kept ones are read by names.
        if several and "average_precision" in found:
            found["average_precision"] = "of several classes it is class_average_precision"
        return found

    def _why_not(self, each: Section, about: Any) -> str | None:
        if self.weighted and not each.takes_weights:
            return "it has no weighted form"
        return each.why_not(about)

    def request(self, about: ScoredRows) -> Together:
        questions = self.purchase(about).questions
        parts = {name: question.request(about) for name, question in questions.items()}
        return Together("report", parts, {})

    def read(self, drawn: Drawn) -> Answer:
        bought = self.purchase(drawn.about)
        releases = {
            name: question.read(drawn.part(name)) for name, question in bought.questions.items()
        }
        return assembled(drawn, _informed(releases), shares=bought.shares, left_out=bought.left_out)

    def drowned(self, about: ScoredRows, *, expected_rows: int | None = None) -> list[str]:
        """The sections whose headline noise would leave nothing of, if those are most of them.

        By a plain guess of the rows. Where their number is not public, `expected_rows` is a public
        guess of it; without one nothing is said.
        """
        if about.rows is None and expected_rows is None:
            return []
        guess = Guess(rows=expected_rows).about(about.rows)
        asked = self.purchase(about).questions
        names = [name for name in asked if name != "grid_ties"]
        found: list[str] = []
        for done, name in enumerate(names):
            if 2 * (len(found) + len(names) - done) <= len(names):
                return []  # most can be read, whatever the rest is: curves, which take longest
            release = asked[name].typical_release(about, guess)
            if release is not None and not release.headline.informative:
                found.append(name)
        return found if 2 * len(found) > len(names) else []

    def expected(
        self, about: ScoredRows, guess: Guess, level: float = 0.95
    ) -> dict[str, HalfWidths]:
        releases = {
            name: question.typical_release(about, guess)
            for name, question in self.purchase(about).questions.items()
        }
        return {
            name: HalfWidths.of(measure, level)
            for release in _informed(releases).values()
            for name, measure in release.measures.items()
        }


def _shares(price: Fraction, wanted: Sequence[Section]) -> dict[str, Fraction]:
    """Exact shares; the area and the curves together need less than each by itself."""
    joint = {"auc", "curves"} <= {each.name for each in wanted}
    return shared(
        price,
        {each.name: (each.joint_weight if joint else None) or each.weight for each in wanted},
    )


def _inside(threshold: float, about: ScoredRows) -> bool:
    at = threshold if about.score_map is None else about.score_map.image(threshold)
    points = ScoreTable(score_range=about.score_range).points
    return grid_point(at, points=points, score_range=about.score_range) > 0


def assembled(
    drawn: Drawn,
    releases: Mapping[str, Release],
    *,
    shares: Mapping[str, Fraction],
    left_out: Mapping[str, str],
) -> Answer:
    """The report of releases that are paid for already, by section."""
    assert drawn.standing is not None
    assert drawn.receipt is not None
    standing = drawn.standing
    return Answer(
        subject=drawn.about,
        epsilon=sum(shares.values(), Fraction(0)),
        shares=shares,
        releases=releases,
        left_out=left_out,
        budget=standing.budget,
        spent=standing.spent,
        remaining=standing.remaining,
        time=drawn.receipt.time,
    )


def _informed(releases: Mapping[str, Release]) -> dict[str, Release]:
    """Each with what the others tell: narrower, and bought once.

    Rankings take the class counts of a confusion matrix; curves take its counts at the threshold,
    and the area.
    """
    counts = [look for each in releases.values() for look in _class_counts(each)]
    area, decided = releases.get("auc"), releases.get("confusion")
    found: dict[str, Release] = {}
    for name, each in releases.items():
        if isinstance(each, RankingRelease):
            found[name] = each.told(counts)
        elif name == "curves" and _are_curves(each):
            found[name] = each.told(
                area=area.told(counts) if isinstance(area, RankingRelease) else None,
                confusion=decided if isinstance(decided, ConfusionRelease) else None,
            )
        else:
            found[name] = each
    return found


def _are_curves(release: Release) -> "TypeGuard[CurvesRelease]":
    # Twelve modules that a report without curves does not need.
    from heldout.metrics.curves.release import CurvesRelease

    return isinstance(release, CurvesRelease)


def _class_counts(release: Release) -> tuple[Look, ...]:
    return release.class_counts() if isinstance(release, ConfusionRelease) else ()
