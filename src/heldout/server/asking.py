"""Prices what "how exact" costs and what a price buys, by quotes, which read no row.

A wish is what somebody ticked and dragged; an offer is what it costs and how wide the answers
will be. Each question has a price of its own. Who drags exactness gets, for each question, the
lowest price on a ladder at which noise alone stays within it; who drags the price has it shared
evenly.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from starlette.datastructures import QueryParams

from heldout import questions as q
from heldout.data.description import Description
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.kernel import Loss
from heldout.questions.base import FormField
from heldout.server import artifacts, datasets, evaluations
from heldout.server.accounts import Person
from heldout.server.datasets import Registered
from heldout.server.service import Service, moment
from heldout.server.storage import Json

STEPS: Final = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
LADDER: Final = (
    *(Fraction(step) / scale for scale in (100, 10, 1) for step in STEPS),
    Fraction(10),
)
"""Prices to choose from."""
ANCHOR: Final = LADDER.index(Fraction(1, 2))
"""Where half-widths are worked out first."""
WIDTHS: Final = (0.2, 0.15, 0.1, 0.075, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01, 0.0075,
                 0.005, 0.003, 0.002, 0.001)  # fmt: skip
"""How exact an answer may be asked to be: half-widths of noise alone, at 95%, of numbers that are
as large as 1; see `widths_of`."""


Widths = Callable[[Fraction], tuple[str, q.HalfWidths | None]]
"""The measure that a question is first read for, and its half-widths, at a price."""


@dataclass(frozen=True)
class Choice:
    """A kind of question as the page offers it, or why it does not."""

    question: type[q.Question[Any]]
    why_not: str | None

    @property
    def kind(self) -> str:
        return self.question.kind

    def controls(self, wish: "Wish | Unfilled") -> tuple["Control", ...]:
        """Return the inputs of its form, filled in."""
        return tuple(Control.of(self.kind, field, wish) for field in _shown(self.question))


def _shown(question: type[q.Question[Any]]) -> list[FormField]:
    """Return the fields that a form shows; price, group and the other model have their own."""
    own = (question.rival_field(), artifacts.file_field(question))
    return [field for field in question.form() if field.name not in _ASIDE and field not in own]


_ASIDE: Final = ("epsilon", "by")


@dataclass(frozen=True)
class Control:
    """One input of a form, by the rule of its field."""

    name: str
    label: str
    hint: str
    input: str
    """number, text, checkbox or select."""
    words: tuple[str, ...]
    """The text that was typed or chosen."""
    choices: tuple[str, ...]
    several: bool
    usual: str
    """The default, in words."""
    in_sight: bool

    @classmethod
    def of(cls, kind: str, form_field: FormField, wish: "Wish | Unfilled") -> "Control":
        schema = form_field.rule.schema()
        choices = schema.get("enum") or schema.get("items", {}).get("enum") or ()
        suggested = wish.suggested.get(kind, {})
        flag = schema.get("type") == "boolean"
        default = suggested.get(form_field.name, form_field.default)
        if flag and default:
            choices = ("yes", "no")
        number = schema.get("type") in ("number", "integer")
        return cls(
            name=f"{kind}.{form_field.name}",
            label=form_field.name.replace("_", " ").capitalize(),
            hint=form_field.help,
            input="select" if choices else "checkbox" if flag else "number" if number else "text",
            words=wish.fields.get(kind, {}).get(form_field.name, ()),
            choices=tuple(choices),
            several=form_field.rule.takes_several,
            usual="" if default in (None, {}, ()) else "yes" if default is True else str(default),
            in_sight=form_field.in_sight,
        )


def widths_of(registered: Registered) -> tuple[float, ...]:
    """Return how exact answers of a data set may be asked to be, in the unit of its numbers."""
    scale = registered.ready().scale
    return tuple(float(f"{width * scale:.2g}") for width in WIDTHS)


def choices(registered: Registered) -> tuple[Choice, ...]:
    """Return every registered kind: what may be asked of a data set first, as reports order it."""
    every = [Choice(kind, evaluations.why_not(registered, kind)) for kind in q.registered()]
    return tuple(sorted(every, key=_order))


def _about(registered: Registered, question: type[q.Question[Any]]) -> Description | None:
    """Return the facts that a question may use, with the numbers of a model where there are any."""
    known = registered.about(question)
    return None if known is None else registered.with_model(known) or known


def _order(choice: Choice) -> tuple[bool, int]:
    section = choice.question.section
    return choice.why_not is not None, 1000 if section is None else section.place


@dataclass(frozen=True)
class Wish:
    """Holds what somebody ticked and dragged, as the page's address has it."""

    artifact: str
    rival: str
    copy: str
    """The copy of the rows that a question is about, if one is."""
    ticked: tuple[str, ...]
    fields: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Texts that were typed for the fields of each kind."""
    suggested: Mapping[str, Mapping[str, object]]
    """Values that the public facts of the rows suggest, for fields where nothing is typed."""
    group: str
    by: str
    exact: int
    cost: int
    guess: Mapping[str, str]
    registered: Registered
    bought: tuple[int, float] | None = None
    """The number of positive rows by an answer that was bought before, and its date."""

    @classmethod
    def of(
        cls,
        query: QueryParams,
        registered: Registered,
        bought: tuple[int, float] | None = None,
    ) -> "Wish":
        """Return a wish from the query of an address; what is not there has its usual value."""
        may = [choice for choice in choices(registered) if choice.why_not is None]
        kinds, known = [choice.kind for choice in may], registered.ready()
        chosen = "by" in query
        ticked = tuple(kind for kind in kinds if kind in query.getlist("question"))
        # The first that needs no second model and no copy: it can be asked as it stands.
        alone = [
            choice.kind
            for choice in may
            if choice.question.rival_field() is None
            and artifacts.file_field(choice.question) is None
        ]
        return cls(
            artifact=query.get("artifact", ""),
            rival=query.get("rival", ""),
            copy=query.get("copy", ""),
            ticked=ticked if chosen else ticked or tuple((alone or kinds)[:1]),
            fields={choice.kind: _typed(query, choice.question) for choice in may},
            suggested={
                choice.kind: choice.question.suggested(_about(registered, choice.question) or known)
                for choice in may
            },
            group=query.get("group", ""),
            by="price" if query.get("by") == "price" else "exact",
            exact=_step(query.get("exact", ""), WIDTHS, 8),
            cost=_step(query.get("cost", ""), LADDER, LADDER.index(Fraction(1, 2))),
            guess={name: query.get(name, "").strip() for name in q.Guess.numbers()},
            bought=None if registered.declaration.prevalence is not None else bought,
            registered=registered,
        )

    @property
    def compares(self) -> bool:
        """Return True if a question needs a second model."""
        return any(q.find(kind).rival_field() is not None for kind in self.ticked)

    @property
    def takes_copy(self) -> bool:
        """Return True if a question is about a copy of the rows."""
        return any(artifacts.file_field(q.find(kind)) is not None for kind in self.ticked)

    @property
    def takes_model(self) -> bool:
        """Return True if a question is about a model."""
        if any(evaluations.takes_model(self.registered, q.find(kind)) for kind in self.ticked):
            return True
        if not self.ticked or not self.registered.declaration.from_models:
            return False
        try:
            asked = [question | {"epsilon": "1"} for question in self.questions()]
            return evaluations.needs_model(self.registered, evaluations.parsed(asked))
        except ArgumentError:  # said where the price is worked out
            return False

    def questions(self) -> list[Json]:
        """Return what is asked, without prices."""
        return [self._asked(q.find(kind)) for kind in self.ticked]

    def _asked(self, question: type[q.Question[Any]]) -> Json:
        typed = self.fields[question.kind]
        chosen = dict(self.suggested[question.kind]) | _read(question, typed)
        compared = question.rival_field()
        if compared is not None:
            chosen[compared.name] = evaluations.RIVAL
        if self.group and question.by_group():
            chosen["by"] = self.group
        if artifacts.file_field(question) is not None:
            return {"question": question.kind, **chosen}
        asked = question.of_fields({"epsilon": 1, **chosen}).as_dict()
        del asked["epsilon"]
        return asked

    def guessed(self) -> Json:
        """Return what the rows may be like, where somebody typed it."""
        numbers: Json = {} if self.bought is None else {"positives": self.bought[0]}
        for name, value in self.guess.items():
            if value:
                number = _number(name, value)
                numbers[name] = int(number) if number.is_integer() else number
        return numbers


class Unfilled:
    """A form that nobody has filled in yet."""

    fields: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}
    suggested: Final[Mapping[str, Mapping[str, object]]] = {}


def typed_question(kind: str, form: Any, epsilon: str) -> Json:
    """Return a question from a form of its own, as data."""
    if kind not in q.kinds():
        raise ArgumentError("Choose what to publish.")
    question = q.find(kind)
    chosen = _read(question, _typed(form, question))
    return question.of_fields({"epsilon": epsilon, **chosen}).as_dict()


def _read(question: type[q.Question[Any]], typed: Mapping[str, Sequence[str]]) -> Json:
    """Return the fields that were typed, by their own rules."""
    return {
        field.name: field.rule.from_words(typed[field.name], field.name)
        for field in _shown(question)
        if typed.get(field.name)
    }


def _typed(query: QueryParams, question: type[q.Question[Any]]) -> dict[str, tuple[str, ...]]:
    """Return what an address has for the fields of a kind, as words."""
    typed = {}
    for field in _shown(question):
        texts = [text.strip() for text in query.getlist(f"{question.kind}.{field.name}")]
        given = [text for text in texts if text]
        words = [word for text in given for word in text.replace(", ", " ").split()]
        typed[field.name] = tuple(words if field.rule.takes_several else given)
    return typed


@dataclass(frozen=True)
class Line:
    """One question of an offer."""

    choice: Choice
    question: Mapping[str, Any]
    price: Fraction
    name: str
    """The measure that the widths are of."""
    noise: float | None
    whole: float | None
    informative: bool
    reached: bool
    """Whether noise stays within what was asked for."""


@dataclass(frozen=True)
class Offer:
    """Says what a wish costs, and what to expect of the answers."""

    lines: tuple[Line, ...]
    loss: Loss
    why_not: str
    """Why it cannot be bought; empty if it can."""
    exact: int
    cost: int
    """Where the sliders stand that were not dragged."""
    guess: str
    """The guess that widths were worked out for, in words: nobody looked at the rows."""

    @property
    def questions(self) -> list[Json]:
        return [dict(line.question) for line in self.lines]


def offered(service: Service, person: Person, registered: Registered, wish: Wish) -> Offer | None:
    """Return the offer for a wish; None while nothing is ticked."""
    if not wish.ticked:
        return None
    widths = widths_of(registered)
    target = widths[wish.exact]
    share = LADDER[wish.cost] / len(wish.ticked)
    lines = []
    for asked in wish.questions():

        def width(price: Fraction, asked: Json = asked) -> tuple[str, q.HalfWidths | None]:
            return _width(service, person, registered, asked, price, wish)

        price = share if wish.by == "price" else _lowest(width, target)
        name, expected = width(price)
        lines.append(
            Line(
                choice=Choice(q.find(asked["question"]), None),
                question=asked | {"epsilon": str(price)},
                price=price,
                name=name,
                noise=None if expected is None else expected.noise,
                whole=None if expected is None else expected.whole,
                informative=expected is None or expected.informative,
                reached=expected is None or expected.noise <= target,
            )
        )
    content = [dict(line.question) for line in lines]
    quoted = evaluations.priced(service, person, registered, content, q.Guess(), wish.copy or None)
    why_not = ""
    try:
        account = datasets.share_of(service, person, registered.name)
        service.ledger.check(account, quoted.event)
    except BudgetExceeded:
        why_not = "It costs more than is left. Ask for less, or ask less exactly."
    total = sum((line.price for line in lines), Fraction(0))
    worst = max((line.noise for line in lines if line.noise is not None), default=widths[0])
    within = [place for place, width in enumerate(widths) if width >= worst]
    dearer = [place for place, price in enumerate(LADDER) if price >= total]
    return Offer(
        lines=tuple(lines),
        loss=quoted.loss,
        why_not=why_not,
        exact=wish.exact if wish.by == "exact" else max(within, default=0),
        cost=wish.cost if wish.by == "price" else min(dearer, default=len(LADDER) - 1),
        guess=_guess_in_words(registered, wish, judges=any(quoted.assumptions)),
    )


def redundant(wish: Wish) -> list[str]:
    """Return which of the questions another one answers as well."""
    kinds = [q.find(kind) for kind in wish.ticked]
    words = []
    for kind in kinds:
        section = kind.section
        for other in kinds:
            whole = other.holds_sections and section is not None and section.always
            read_off = other.section is not None and other.section.joined_by == kind.kind
            if other is not kind and (whole or read_off):
                less = "" if whole else ", less exactly"
                words.append(
                    f"“{other.asks}” tells the {kind.title.replace('{k}', 'k')} as well{less}. "
                    "Leave one of them out if that is enough."
                )
                break
    return words


@dataclass(frozen=True)
class CountsFirst:
    """An offer to buy the number of positive rows before anything else, at a low price."""

    choice: Choice
    price: Fraction
    cost: int


def counts_first(registered: Registered, wish: Wish) -> CountsFirst | None:
    """Return what to buy first where nobody says how many rows are positive; None if somebody does.

    The price is such that noise moves the number by about a fiftieth of the rows.
    """
    declared, rows = registered.declaration, registered.public_rows
    known = declared.prevalence or wish.guessed().get("positives")
    if declared.label is None or declared.classes or known:
        return None
    counting = [choice for choice in choices(registered) if choice.question.counts_positives]
    may = [choice for choice in counting if choice.why_not is None]
    if not may or wish.ticked == (may[0].kind,):
        return None
    needed = 200 * registered.ready().protection.rows_per_unit
    wanted = Fraction(needed, max(rows or needed, needed // 2))
    place = next((at for at, price in enumerate(LADDER) if price >= wanted), len(LADDER) - 1)
    return CountsFirst(may[0], LADDER[place], place)


def _guess_in_words(registered: Registered, wish: Wish, *, judges: bool) -> str:
    """Return the guess in words; `judges` says whether an answer depends on the scores' values."""
    guess = evaluations.guess_of(registered, wish.guessed()).about(registered.ready().rows)
    if registered.declaration.outcome is not None:
        return (
            f"{guess.rows:,} rows, and residuals whose standard deviation is {guess.spread:g} "
            f"times the scale ({'your guess' if wish.guess['spread'] else 'a guess'})"
        )
    if registered.declaration.label is None:
        return f"{guess.rows:,} rows"
    if registered.declaration.classes:
        return f"{guess.rows:,} rows, classes of one size (a guess) and an AUC of {guess.auc:g}"
    guessed = "a guess: one in four"
    if registered.declaration.prevalence is not None:
        guessed = "as the custodian says"
    if wish.guess["positives"]:
        guessed = "your guess"
    elif wish.bought is not None:
        guessed = f"by your answer of {moment(wish.bought[1])}"
    words = f"{guess.rows:,} rows of which {guess.positives:,} are positive ({guessed})"
    if not judges:
        return f"{words} and an AUC of {guess.auc:g}"
    return f"{words}, an AUC of {guess.auc:g} and {_calibration_in_words(guess)}"


def _calibration_in_words(guess: q.Guess) -> str:
    if guess.calibration_slope != 1:
        return f"a calibration slope of {guess.calibration_slope:g}"
    return (
        "calibrated scores (if they are not, intervals of the Brier score and log loss can be more "
        "than twice as wide, those of calibration four times)"
    )


def _width(  # noqa: PLR0917
    service: Service,
    person: Person,
    registered: Registered,
    asked: Mapping[str, Any],
    price: Fraction,
    wish: Wish,
) -> tuple[str, q.HalfWidths | None]:
    """Return the measure that a question is first read for, and its half-widths at a price."""
    content = [dict(asked) | {"epsilon": str(price)}]
    widths = evaluations.quote(
        service, person, registered.name, content, wish.guessed(), wish.copy or None
    ).half_widths[0]
    if not widths:
        return "", None
    question = q.find(asked["question"])
    first = question.headline if question.headline in widths else next(iter(widths))
    return question.title if question.rival_field() is not None else first, widths[first]


def _lowest(width: Widths, target: float) -> Fraction:
    """Return the lowest price at which noise stays within the target; the highest if none.

    Noise falls about as one over the price, so one half-width says where to look. What is offered
    is worked out there, and elsewhere only if that was not so: two quotes as a rule.
    """
    worked_out: dict[int, float] = {}

    def noise(place: int) -> float:
        if place not in worked_out:
            widths = width(LADDER[place])[1]
            assert widths is not None
            worked_out[place] = max(widths.noise, 1e-9)
        return worked_out[place]

    if width(LADDER[ANCHOR])[1] is None:
        return LADDER[ANCHOR]
    at, slope, place = ANCHOR, -1.0, ANCHOR
    for _ in range(3):
        place = _place_for(math.log(LADDER[at]) + math.log(target / noise(at)) / slope)
        if place in worked_out:
            break
        run = math.log(LADDER[place] / LADDER[at])
        slope = max(-4.0, min(math.log(noise(place) / noise(at)) / run, -0.25))
        at = place
    while place < len(LADDER) - 1 and noise(place) > target:
        place += 1
    while place and noise(place) * float(LADDER[place] / LADDER[place - 1]) <= target:
        if noise(place - 1) > target:
            break
        place -= 1
    return LADDER[place]


def _place_for(logarithm: float) -> int:
    """Return the first place on the ladder that reaches a price; the last if none does."""
    places = (at for at, price in enumerate(LADDER) if math.log(price) >= logarithm - 1e-9)
    return next(places, len(LADDER) - 1)


def _step(text: str, steps: Sequence[object], usual: int) -> int:
    """Return a place on a ladder, from what a slider sends."""
    return min(int(text), len(steps) - 1) if text.isascii() and text.isdigit() else usual


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be a number.")
    return number
