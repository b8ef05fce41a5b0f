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
from heldout.privacy import Loss
from heldout.server import datasets, evaluations
from heldout.server.accounts import Person
from heldout.server.datasets import Held
from heldout.server.service import Service

__all__ = ["LADDER", "WIDTHS", "Choice", "Line", "Offer", "Wish", "choices", "offered"]

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
    """A question as the page offers it."""

    kind: str
    title: str
    tells: str


CHOICES: Final = (
    Choice("auc", "How well does it rank?",
           "AUC: how often a positive row scores higher than a negative one."),
    Choice("average-precision", "How good are its highest scores?",
           "Average precision: how many of the rows it ranks first are positive."),
    Choice("confusion", "How often is it right?",
           "Accuracy, precision, recall and the four counts at one threshold."),
    Choice("brier", "Are its probabilities right?",
           "Brier score: the mean squared distance between score and outcome."),
    Choice("curves", "Draw its curves",
           "ROC, precision-recall and calibration, with bands; one purchase."),
    Choice("compare", "Is it better than another model of mine?",
           "The difference in AUC on the same rows: sharper than two AUCs side by side."),
    Choice("report", "Write a full report",
           "AUC, average precision, confusion matrix and Brier score on one page."),
)  # fmt: skip
OF_CLASSES: Final = (
    Choice("class-confusion", "How often is it right?",
           "The matrix of true and called classes, accuracy, and precision and recall of each."),
    Choice("class-auc", "How well does it rank?",
           "AUC of each class against all others, and their mean."),
    Choice("top-k", "Is the truth among its first calls?",
           "How often the true class is among the k of the highest scores, for every k."),
    Choice("brier", "Are its probabilities right?",
           "Brier score: the squared distance between scores and outcome, over all classes."),
    Choice("report", "Write a full report", "All of these on one page."),
)  # fmt: skip
"""The same for rows of more than two classes."""
BY_GROUP: Final = ("auc", "confusion", "brier", "class-confusion")
"""What can be asked by group."""


def choices(held: Held) -> tuple[Choice, ...]:
    """What may be asked of a data set."""
    found = OF_CLASSES if held.declared.classes else CHOICES
    probabilities = held.declared.of_dataset["score_range"] == (0.0, 1.0)
    return tuple(each for each in found if each.kind != "brier" or probabilities)


@dataclass(frozen=True)
class Wish:
    """What somebody ticked and dragged, as the page's address has it."""

    artifact: str
    rival: str
    ticked: tuple[str, ...]
    threshold: str
    group: str
    by: str
    exact: int
    cost: int
    guess: Mapping[str, str]

    @classmethod
    def of(cls, told: Any, held: Held) -> "Wish":
        """From the query of an address; what is not there has its usual value."""
        known = [each.kind for each in choices(held)]
        chosen = "by" in told
        ticked = tuple(each for each in known if each in told.getlist("question"))
        return cls(
            artifact=told.get("artifact", ""),
            rival=told.get("rival", ""),
            ticked=ticked if chosen else ticked or (known[0],),
            threshold=told.get("threshold", "0.5").strip(),
            group=told.get("group", ""),
            by="price" if told.get("by") == "price" else "exact",
            exact=_step(told.get("exact", ""), WIDTHS, 8),
            cost=_step(told.get("cost", ""), LADDER, LADDER.index(Fraction(1, 2))),
            guess={each: told.get(each, "").strip() for each in ("rows", "positives", "auc")},
        )

    def questions(self) -> list[dict[str, Any]]:
        """What is asked, without prices."""
        found = []
        for kind in self.ticked:
            asked: dict[str, Any] = {"question": kind}
            if kind == "confusion" or (kind == "report" and "confusion" in self.ticked):
                asked["threshold"] = _number("threshold", self.threshold)
            if kind == "compare":
                asked["score"] = evaluations.RIVAL
            if self.group and kind in BY_GROUP:
                asked["by"] = self.group
            found.append(asked)
        return found

    def guessed(self) -> dict[str, Any]:
        """What the rows may be like, where somebody said so."""
        told: dict[str, Any] = {}
        for name, value in self.guess.items():
            if value:
                number = _number(name, value)
                told[name] = number if name == "auc" else int(number)
        return told


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
                choice=next(each for each in choices(held) if each.kind == asked["question"]),
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
    quoted = q.Quote(evaluations.parsed(content), evaluations.asked_of(held, content), q.Guess())
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
    kind, first = asked["question"], next(iter(found))
    if kind in ("confusion", "class-confusion") and "accuracy" in found:
        first = "accuracy"
    return "difference in AUC" if kind == "compare" else first, found[first]


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
