"""What "how exact" costs and what a price buys: arithmetic on quotes, which read no row.

A wish is what somebody ticked and dragged; an offer is what it costs and how wide the answers
will be. Each question has a price of its own. Who drags exactness gets, for each question, the
lowest price on a ladder at which noise alone stays within it; who drags the price has it shared
evenly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from heldout import questions as q
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.kernel import Loss
from heldout.questions.base import FormField
from heldout.server import datasets, evaluations
from heldout.server.accounts import Person
from heldout.server.datasets import Held
from heldout.server.service import Service

__all__ = ["LADDER", "WIDTHS", "Choice", "Control", "Line", "Offer", "Wish", "choices", "offered"]

STEPS: Final = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
LADDER: Final = (
    *(Fraction(step) / scale for scale in (100, 10, 1) for step in STEPS),
    Fraction(10),
)
"""Prices to choose from."""
ANCHORS: Final = (Fraction(1, 10), Fraction(1, 2), Fraction(2))
"""Where half-widths are worked out first; between them they fall nearly as a power."""
WIDTHS: Final = (0.2, 0.15, 0.1, 0.075, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01, 0.0075,
                 0.005, 0.003, 0.002, 0.001)  # fmt: skip
"""How exact an answer may be asked to be: half-widths of noise alone, at 95%."""


@dataclass(frozen=True)
class Choice:
    """A kind of question as the page offers it, or why it does not."""

    question: type[q.Question[Any]]
    why_not: str | None

    @property
    def kind(self) -> str:
        return self.question.kind

    @property
    def title(self) -> str:
        return self.question.asks

    @property
    def tells(self) -> str:
        return self.question.tells

    def controls(self, wish: "Wish") -> tuple["Control", ...]:
        """Return the inputs of its form, filled in."""
        return tuple(Control.of(self.kind, each, wish) for each in _shown(self.question))


def _shown(question: type[q.Question[Any]]) -> list[FormField]:
    """Return the fields that a form shows; price, group and the other model have their own."""
    own = (question.rival_field(),)
    return [each for each in question.form() if each.name not in _ASIDE and each not in own]


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
    """What was typed or chosen."""
    choices: tuple[str, ...]
    several: bool
    usual: str
    """What it is if nothing is given, in words."""
    in_sight: bool

    @classmethod
    def of(cls, kind: str, form_field: FormField, wish: "Wish") -> "Control":
        schema = form_field.rule.schema()
        choices = schema.get("enum") or schema.get("items", {}).get("enum") or ()
        flag, default = schema.get("type") == "boolean", form_field.default
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


def choices(held: Held) -> tuple[Choice, ...]:
    """Return every registered kind: what may be asked of a data set first, as reports order it."""
    every = [Choice(each, evaluations.why_not(held, each)) for each in q.registered()]
    return tuple(sorted(every, key=_order))


def _order(choice: Choice) -> tuple[bool, int]:
    section = choice.question.section
    return choice.why_not is not None, 1000 if section is None else section.place


@dataclass(frozen=True)
class Wish:
    """What somebody ticked and dragged, as the page's address has it."""

    artifact: str
    rival: str
    ticked: tuple[str, ...]
    fields: Mapping[str, Mapping[str, tuple[str, ...]]]
    """What was typed for the fields of each kind."""
    group: str
    by: str
    exact: int
    cost: int
    guess: Mapping[str, str]

    @classmethod
    def of(cls, told: Any, held: Held) -> "Wish":
        """From the query of an address; what is not there has its usual value."""
        may = [each for each in choices(held) if each.why_not is None]
        known = [each.kind for each in may]
        chosen = "by" in told
        ticked = tuple(each for each in known if each in told.getlist("question"))
        return cls(
            artifact=told.get("artifact", ""),
            rival=told.get("rival", ""),
            ticked=ticked if chosen else ticked or tuple(known[:1]),
            fields={each.kind: _typed(told, each.question) for each in may},
            group=told.get("group", ""),
            by="price" if told.get("by") == "price" else "exact",
            exact=_step(told.get("exact", ""), WIDTHS, 8),
            cost=_step(told.get("cost", ""), LADDER, LADDER.index(Fraction(1, 2))),
            guess={each: told.get(each, "").strip() for each in q.Guess.numbers()},
        )

    @property
    def compares(self) -> bool:
        """Whether a question needs a second model."""
        return any(q.find(kind).rival_field() is not None for kind in self.ticked)

    def questions(self) -> list[dict[str, Any]]:
        """What is asked, without prices."""
        return [self._asked(q.find(kind)) for kind in self.ticked]

    def _asked(self, question: type[q.Question[Any]]) -> dict[str, Any]:
        typed = self.fields[question.kind]
        chosen = {
            each.name: each.rule.from_words(typed[each.name], each.name)
            for each in _shown(question)
            if typed.get(each.name)
        }
        compared = question.rival_field()
        if compared is not None:
            chosen[compared.name] = evaluations.RIVAL
        if self.group and question.by_group():
            chosen["by"] = self.group
        asked = question(epsilon=1, **chosen).as_dict()
        del asked["epsilon"]
        return asked

    def guessed(self) -> dict[str, Any]:
        """What the rows may be like, where somebody said so."""
        told: dict[str, Any] = {}
        for name, value in self.guess.items():
            if value:
                number = _number(name, value)
                told[name] = int(number) if number.is_integer() else number
        return told


def _typed(told: Any, question: type[q.Question[Any]]) -> dict[str, tuple[str, ...]]:
    """Return what an address has for the fields of a kind, as words."""
    typed = {}
    for each in _shown(question):
        texts = [text.strip() for text in told.getlist(f"{question.kind}.{each.name}")]
        given = [text for text in texts if text]
        words = [word for text in given for word in text.replace(", ", " ").split()]
        typed[each.name] = tuple(words if each.rule.takes_several else given)
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
    """What a wish costs, and what to expect of the answers."""

    lines: tuple[Line, ...]
    loss: Loss
    why_not: str
    """Why it cannot be bought; empty if it can."""
    exact: int
    cost: int
    """Where the sliders stand that were not dragged."""
    guess: str
    """What the widths were worked out for, in words: nobody looked at the rows."""

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [dict(each.question) for each in self.lines]


def offered(service: Service, person: Person, held: Held, wish: Wish) -> Offer | None:
    """The offer for a wish; None while nothing is ticked."""
    if not wish.ticked:
        return None
    target = WIDTHS[wish.exact]
    share = LADDER[wish.cost] / len(wish.ticked)
    lines = []
    for asked in wish.questions():

        def width(price: Fraction, asked: dict[str, Any] = asked) -> Any:
            return _width(service, person, held, asked, price, wish.guessed())

        price = share if wish.by == "price" else _lowest(width, target)
        name, found = width(price)
        lines.append(
            Line(
                choice=Choice(q.find(asked["question"]), None),
                question=asked | {"epsilon": str(price)},
                price=price,
                name=name,
                noise=None if found is None else found.noise,
                whole=None if found is None else found.whole,
                informative=found is None or found.informative,
                reached=found is None or found.noise <= target,
            )
        )
    content = [dict(each.question) for each in lines]
    questions = evaluations.parsed(content)
    quoted = q.Quote(questions, evaluations.asked_of(held, questions), q.Guess())
    why_not = ""
    try:
        account = datasets.share_of(service, person, held.name)
        service.ledger.check(account, quoted.event)
    except BudgetExceeded:
        why_not = "It costs more than is left. Ask for less, or ask less exactly."
    total = sum((each.price for each in lines), Fraction(0))
    worst = max((each.noise for each in lines if each.noise is not None), default=WIDTHS[0])
    within = [at for at, each in enumerate(WIDTHS) if each >= worst]
    dear = [at for at, each in enumerate(LADDER) if each >= total]
    return Offer(
        lines=tuple(lines),
        loss=quoted.loss,
        why_not=why_not,
        exact=wish.exact if wish.by == "exact" else max(within, default=0),
        cost=wish.cost if wish.by == "price" else min(dear, default=len(LADDER) - 1),
        guess=_guess_in_words(held, wish),
    )


def _guess_in_words(held: Held, wish: Wish) -> str:
    found = evaluations.guess_of(held, wish.guessed()).about(held.ready().rows)
    if held.declared.classes:
        return f"{found.rows:,} rows, classes of one size (a guess) and an AUC of {found.auc:g}"
    guessed = "a guess: one in four"
    if held.declared.prevalence is not None:
        guessed = "as the custodian says"
    if wish.guess["positives"]:
        guessed = "your guess"
    return (
        f"{found.rows:,} rows of which {found.positives:,} are positive ({guessed}) and an AUC of "
        f"{found.auc:g}"
    )


def _width(  # noqa: PLR0917
    service: Service,
    person: Person,
    held: Held,
    asked: Mapping[str, Any],
    price: Fraction,
    guess: Mapping[str, Any],
) -> tuple[str, q.HalfWidths | None]:
    """The measure that a question is first read for, and its half-widths at a price."""
    content = [dict(asked) | {"epsilon": str(price)}]
    priced = evaluations.quote(service, person, held.name, content, guess)
    found = priced.quote.half_widths[0]
    if not found:
        return "", None
    question = q.find(asked["question"])
    first = question.headline if question.headline in found else next(iter(found))
    return question.title if question.rival_field() is not None else first, found[first]


def _lowest(width: Any, target: float) -> Fraction:
    """The lowest price of the ladder at which noise stays within the target; the highest if none.

    Half-widths at a few prices and a power between them say where to look; what is offered is
    worked out there.
    """
    points = []
    for price in ANCHORS:
        _, found = width(price)
        if found is None:
            return Fraction(1, 2)
        points.append((math.log(price), math.log(max(found.noise, 1e-9))))
    wanted, at = math.log(target), len(points) - 2
    for at in range(len(points) - 1):
        if points[at + 1][1] <= wanted:
            break
    (x, y), (x2, y2) = points[at], points[at + 1]
    slope = min((y2 - y) / (x2 - x), -0.25)
    guess = math.exp(x + (wanted - y) / slope)
    place = min(range(len(LADDER)), key=lambda each: abs(math.log(LADDER[each] / guess)))
    if width(LADDER[place])[1].noise <= target:
        while place and width(LADDER[place - 1])[1].noise <= target:
            place -= 1
        return LADDER[place]
    while place < len(LADDER) - 1 and width(LADDER[place])[1].noise > target:
        place += 1
    return LADDER[place]


def _step(text: str, steps: Any, usual: int) -> int:
    """A place on a ladder, from what a slider sends."""
    return min(int(text), len(steps) - 1) if text.isascii() and text.isdigit() else usual


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ArgumentError(f"{name} must be a number.")
    return found
