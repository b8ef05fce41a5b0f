"""The question that a report answers: several questions at exact shares of one price."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from heldout.arguments import Choices
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.intervals.measure import Release
from heldout.kernel.door import Drawn, Together
from heldout.questions import Guess, HalfWidths, Question
from heldout.questions.base import (
    Choice,
    Flag,
    GroupColumns,
    Number,
    OneOf,
    Rule,
    Weighted,
    Whole,
    shared,
)
from heldout.questions.quote import assumed_calibration
from heldout.questions.registry import Place, places, section_name
from heldout.questions.report import Report as Answer
from heldout.questions.worst_cases import (
    HIGH,
    REMOVE,
    WorstCase,
    hundreds,
    rows,
    spread,
    table_pair,
)

__all__ = ["Purchase", "Report", "assembled"]


@dataclass(frozen=True)
class Sections(Rule):
    """Some of the sections that reports have, by kind; their older names are understood."""

    takes_several: ClassVar[bool] = True

    def _words(self) -> Choices:
        return Choices(tuple(name for name, place in places().items() if not place.by_group))

    def __call__(self, value: Any, name: str) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Collection) and all(isinstance(word, str) for word in value):
            value = [section_name(word) for word in value]
        return self._words()(value, name)

    def schema(self) -> dict[str, Any]:
        return self._words().schema()


@dataclass(frozen=True)
class Purchase:
    """The sections that a report will have of rows with this description, and their prices."""

    shares: Mapping[str, Fraction]
    questions: Mapping[str, Question[Any]]
    left_out: Mapping[str, str]


def _under(question: Question[Any], rules: int) -> Question[Any]:
    """Return the question by the rules that it had when reports had these."""
    since = question.reported_since
    known = sum(first <= rules for first in since)
    return question if known == len(since) else question.under(known)


@dataclass(frozen=True, kw_only=True)
class Report(Question[Answer]):
    """Everything that a reader of a report asks for, each at its own exact share of epsilon.

    `threshold` is the middle of the score range unless it is given; `curves` adds their section;
    `sections` are the kinds of those to buy, the usual ones if it is left out; `scores` is as in
    `Auc`; `by` adds the decisions by declared group. With `weighted` rows count by their declared
    weights, and what has no weighted form is left out. `k` is how many rows of each ranked list
    count.
    """

    kind = "report"
    holds_sections = True
    title = "report"
    asks = "How good is it, all in all?"
    tells = (
        "AUC, average precision, confusion matrix, Brier score and more on one page, for one price."
    )
    of = (ScoredRows, ClassifiedRows)
    replayed = (
        {},
        {"curves": True},
        {"by": "g"},
        {"weighted": True},
    )
    rules = 6
    """Since 2, sections go by their kinds; since 3, rankings go by their rules 2, since 4 by 3,
    since 5 by 4, since 6 by 5."""
    known_rules = (1, 2, 3, 4, 5, 6)
    cannot_pool = "pool the JSON of reports, section by section"
    threshold: Annotated[
        float | None, Number(), "Rows with at least this score are called positive."
    ] = None
    curves: Annotated[bool, Flag(), "Add curves, for about a quarter of the price."] = False
    sections: Annotated[Sequence[str] | None, Sections(), "Buy only these sections."] = None
    scores: Annotated[
        str | None, OneOf(("exact", "grid")), "Rank exact scores, or cells of the public grid."
    ] = None
    by: GroupColumns = None
    weighted: Weighted = False
    k: Annotated[int, Whole(1, 10**6), "How many rows of each ranked list count."] = 10

    def _wanted(self, description: Any) -> tuple[list[Place], dict[str, str]]:
        """Return the sections to buy of rows of this kind, and why others that were named are not.

        A name may stand for another kind where rows have several classes.
        """
        every = places()
        fitting = {
            name: place for name, place in every.items() if type(description) in place.question.of
        }
        if self.sections is None:
            names = {name for name, place in fitting.items() if place.section.always}
        else:
            second = {place.section.asked_as: name for name, place in fitting.items()}
            names = {second.get(name, name) for name in self.sections}
        choice = self._choice(description, beside=names)
        chosen = [
            place
            for name, place in fitting.items()
            if (place.by_group and self.by is not None and place.section.always)
            or (not place.by_group and name in names)
            or (not place.by_group and place.question.joins_report(description, choice))
        ]
        strange = {
            name: str(every[name].question.why_not(description))
            for name in self.sections or ()
            if name in names and name not in fitting
        }
        return chosen, strange

    def _choice(self, description: Any, beside: Iterable[str]) -> Choice:
        chosen = Choice(
            0.5,
            beside=frozenset(beside),
            weighted=self.weighted,
            k=self.k,
            curves=self.curves,
            scores=self.scores,
        )
        if not isinstance(description, ScoredRows):
            if self.threshold is not None or self.curves:
                raise ArgumentError(
                    "With classes, leave threshold= and curves= out. Ask session.versus(...) "
                    "for one class."
                )
            return chosen
        given = description.middle if self.threshold is None else self.threshold
        at = description.threshold(given)
        point = description.grid_points([description.counted_threshold(at)])
        return replace(chosen, threshold=at, inside=point != (0,))

    def purchase(self, description: Any) -> Purchase:
        """Return the sections that apply, by what is declared of the rows, and their questions."""
        if self.weighted:
            description.check_weight()
        chosen, reasons = self._wanted(description)
        reasons |= {
            place.name: why
            for place in chosen
            if (why := self._why_not(place, description)) is not None
        }
        wanted = [place for place in chosen if place.name not in reasons]
        while wanted:
            shares = _shares(self.price, wanted)
            choice = self._choice(description, beside=shares)
            made = {
                place.name: place.question.for_report(
                    shares[place.name], replace(choice, by=self.by) if place.by_group else choice
                )
                for place in wanted
            }
            questions = {
                name: _under(question, self.rules)
                for name, question in made.items()
                if question is not None
            }
            if len(questions) == len(made):
                return Purchase(shares, questions, left_out=reasons)
            wanted = [place for place in wanted if place.name in questions]
        reason = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise ArgumentError(f"No section applies ({reason}). Name others.")

    def _why_not(self, place: Place, description: Any) -> str | None:
        fields = {field.name for field in place.question.form()}
        if self.weighted and "weighted" not in fields:
            return "it has no weighted form"
        return place.question.why_not(description)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        """Return pairs where all that a report has moves as far as it can."""
        few, (above, below) = spread(8), hundreds()
        pairs = (
            table_pair(
                "one of hundreds changes its label at the top",
                rows([*above, 1.0], below),
                rows(above, [*below, 1.0]),
            ),
            table_pair(
                "the best of hundreds leaves",
                rows([*above, 1.0], below),
                rows(above, below),
                **REMOVE,
            ),
            table_pair("the last positive is replaced", rows([HIGH], few), rows([], [*few, HIGH])),
        )
        note, why = "everything that a report prints, jointly", "spread over a dozen numbers"
        return (WorstCase(pairs=pairs, epsilon="4", why=why, note=note),)

    def _part(self, name: str) -> str:
        """Return what a section is called in the request and in what is drawn for it."""
        return name if self.rules > 1 else places()[name].old_name

    def request(self, about: Any) -> Together:
        questions = self.purchase(about).questions
        parts = {self._part(name): asked.request(about) for name, asked in questions.items()}
        return Together("report", parts, {})

    def read(self, drawn: Drawn) -> Answer:
        bought = self.purchase(drawn.about)
        releases = {
            name: question.release(drawn.part(self._part(name)))
            for name, question in bought.questions.items()
        }
        return assembled(drawn, _informed(releases), shares=bought.shares, left_out=bought.left_out)

    def hidden_by_noise(self, about: Any, guess: Guess) -> tuple[str, ...]:
        """Return the sections whose headline noise would hide, if those are most of them."""
        asked = self.purchase(about).questions
        names = [name for name in asked if not places()[name].section.secondary]
        hidden: list[str] = []
        for done, name in enumerate(names):
            if 2 * (len(hidden) + len(names) - done) <= len(names):
                return ()  # most can be read, whatever the rest is: curves, which take longest
            release = asked[name].typical_release(about, guess)
            if release is not None and not release.headline.informative:
                hidden.append(name)
        return tuple(hidden) if 2 * len(hidden) > len(names) else ()

    def assumes(self, about: ScoredRows, guess: Guess) -> str:
        questions = self.purchase(about).questions.values()
        if not any(question.assumes(about, guess) for question in questions):
            return ""
        otherwise = "intervals of errors and of calibration can be two to four times as wide"
        return assumed_calibration(about, guess, otherwise)

    def expected(
        self, about: ScoredRows, guess: Guess, level: float = 0.95
    ) -> dict[str, HalfWidths]:
        releases: dict[str, Any] = {
            name: question.typical_release(about, guess)
            for name, question in self.purchase(about).questions.items()
        }
        return {
            name: HalfWidths.of(measure, level)
            for release in _informed(releases).values()
            for name, measure in release.measures.items()
        }


def _shares(price: Fraction, wanted: Iterable[Place]) -> dict[str, Fraction]:
    """Return exact shares; the area and the curves together need less than each by itself."""
    sections = {place.name: place.section for place in wanted}
    joint = any(section.joined_by in sections for section in sections.values())
    return shared(
        price,
        {
            name: (section.weight_with_curves if joint else None) or section.weight
            for name, section in sections.items()
        },
    )


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
    """Return each with what the others tell: narrower, and bought once."""
    return {name: release.informed(releases) for name, release in releases.items()}
