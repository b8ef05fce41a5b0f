"""The one door: validate the request, price it, book it durably, draw noise, return.

Nothing that is computed from private rows leaves this package by another way. The order is the
promise: no answer is computed, and no noise drawn, before the ledger has the price on disk, so a
crash at any point loses an answer and never a booking. A refused request costs nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from heldout.data.description import Description
from heldout.data.table import PrivateTable
from heldout.errors import AnswerLost, BudgetExceeded, HeldoutError
from heldout.kernel import Account, Budget, Event, Ledger, Loss, Receipt, price
from heldout.kernel.accountant import charge, smaller
from heldout.kernel.noise import Mechanism
from heldout.kernel.statistic import Statistic, compute


class Priced(Protocol):
    """Asks private rows for something that is paid as one. All of it is public."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def claim(self) -> str: ...

    def event(self) -> Event:
        """Return what the ledger books; its price is what this costs."""

    def draw(self, rows: PrivateTable) -> object:
        """Return noisy numbers of the rows; called by the door, after the booking."""

    def describe(self) -> dict[str, object]:
        """Say how the noise is made, in public terms."""


@dataclass(frozen=True)
class Step:
    """One statistic and the noise for it."""

    statistic: Statistic[Any]
    mechanism: Mechanism[Any, Any]


Answers = Mapping[str, Any]
"""Noisy numbers by the name of the step that gave them: public."""


@dataclass(frozen=True)
class Booked:
    """A step to come: what is booked for it, and how it is chosen once earlier answers are out."""

    price: Event
    choose: Callable[[Answers], Step]

    @classmethod
    def of(cls, step: Step) -> "Booked":
        """Return a step that no answer changes."""
        return cls(step.mechanism.event(), partial(_always, step))


def _always(step: Step, answers: Answers) -> Step:
    return step


def _fits(event: Event, booked: Event) -> bool:
    """Return whether an event costs what was booked, and no more under a budget of rho.

    There a price that is divided into fewer parts costs more.
    """
    budget = Budget(rho=1, delta="1/2")
    own, other = charge(event, budget=budget), charge(booked, budget=budget)
    return price(event) == price(booked) and smaller(own, other) == own


@dataclass(frozen=True)
class Request:
    """One statistic, released once; `view` says through which columns the rows are seen."""

    name: str
    statistic: Statistic[Any]
    mechanism: Mechanism[Any, Any]
    parameters: Mapping[str, Any]
    view: Callable[[Any], PrivateTable] | None = None
    reading: Any = None
    """What the reader of the answer needs to know of how it was asked. Public."""

    @property
    def claim(self) -> str:
        return self.statistic.claim

    def event(self) -> Event:
        return self.mechanism.event()

    def draw(self, rows: PrivateTable) -> object:
        seen = rows if self.view is None else self.view(rows)
        return self.mechanism.sample(compute(self.statistic, seen))

    def describe(self) -> dict[str, object]:
        return self.mechanism.describe()


@dataclass(frozen=True)
class Staged:
    """Several statistics paid as one, each chosen in the light of the answers before it.

    Each step has a name, by which the later ones and the reader find its answer. The prices of all
    steps are booked at once, before the first row is read; a step may not cost anything else than
    was booked for it.

    Claim:       the loss is that of the booked events together.                [claim: staged]
    Neighbours:  those of the steps' statistics.
    Sensitivity: the steps'.
    Numerics:    exact.
    Refuses:     a step whose price is not the booked one, before its rows are read.
    Reference:   Dwork, Rothblum and Vadhan 2010, adaptive composition.
    Cost:        that of the steps.
    """

    name: str
    steps: Mapping[str, Booked]
    parameters: Mapping[str, Any]
    claim: str
    description: Mapping[str, object]
    reading: Any = None
    """What the reader of the answers needs to know of how they were asked. Public."""
    view: Callable[[Any], PrivateTable] | None = None

    def event(self) -> Event:
        return Event.composed([step.price for step in self.steps.values()])

    def draw(self, rows: PrivateTable) -> dict[str, Any]:
        seen = rows if self.view is None else self.view(rows)
        answers: dict[str, Any] = {}
        for name, booked in self.steps.items():
            step = booked.choose(answers)
            if not _fits(step.mechanism.event(), booked.price):
                raise BudgetExceeded("Internal error: a step's cost differs from the booked price.")
            answers[name] = step.mechanism.sample(compute(step.statistic, seen))
        return answers

    def describe(self) -> dict[str, object]:
        return dict(self.description)


@dataclass(frozen=True)
class Together:
    """Several requests of the same rows, by name: booked as one or not at all.

    Claim:       the loss is that of the parts' events together.                [claim: staged]
    """

    name: str
    parts: Mapping[str, Priced]
    parameters: Mapping[str, Any]
    claim: str = "staged"

    def event(self) -> Event:
        return Event.composed([part.event() for part in self.parts.values()])

    def draw(self, rows: PrivateTable) -> dict[str, Any]:
        return {name: part.draw(rows) for name, part in self.parts.items()}

    def describe(self) -> dict[str, object]:
        return {name: part.describe() for name, part in self.parts.items()}


@dataclass(frozen=True)
class Standing:
    """States the budget of an account, what it has spent and what is left."""

    budget: Budget
    spent: Loss
    remaining: Loss


@dataclass(frozen=True)
class Drawn:
    """Holds the noisy numbers of one release, and the terms on which they were given."""

    request: Any  # a Priced; whoever reads the values knows its kind
    values: Any
    receipt: Receipt | None
    """None for a typical answer, which a quote is made of and nobody paid for."""
    about: Any  # the Description of the rows; whoever reads the values knows its kind
    standing: Standing | None
    """Of the account that paid, right after it did."""
    terms: str = ""
    """The price and who is protected, as the end of a sentence."""
    kind: str = ""
    """Of the question that asked for it."""

    def __getstate__(self) -> dict[str, Any]:
        # A fitted model is passed on with what was drawn; what its account has left is not.
        return self.__dict__ | {"standing": None}

    def part(self, name: str) -> "Drawn":
        """Return one of the requests that were booked together."""
        part = self.request.parts[name]
        terms = self.about.protection.terms(price(part.event()))
        return replace(self, request=part, values=self.values[name], terms=terms)


def release(
    request: Priced,
    *,
    rows: PrivateTable,
    about: Description,
    ledger: Ledger,
    account: Account,
    words: Mapping[str, Any],
) -> Drawn:
    """Release noisy numbers of private rows, for a price that is booked first.

    `words` are what the ledger keeps of what was asked.

    Claim:       every answer is drawn after its loss is durable in the ledger, and the ledger's
                 total never exceeds the budget.                               [claim: one-door]
    Neighbours:  the data set's, for every request of its account.
    Sensitivity: the statistic's; the mechanism was built for it.
    Numerics:    exact.
    Refuses:     a file that changed since it was validated; what the ledger refuses.
    Reference:   Rogers, Roth, Ullman and Vadhan 2016, privacy filters.
    Cost:        one durable write, one pass over the rows for each statistic.
    """
    rows.check_unchanged()
    receipt = ledger.book(account, request.event(), request=words)
    terms = about.protection.terms(receipt.loss)
    standing = None if receipt.standing is None else Standing(*receipt.standing)
    try:
        values = request.draw(rows)
    except HeldoutError as error:  # its message holds no private value
        lost = AnswerLost(receipt.sequence, receipt.hash, str(error))
    except Exception:
        lost = AnswerLost(receipt.sequence, receipt.hash)
    except BaseException as stopped:  # Ctrl-C: whoever catches it can name the receipt
        stopped.add_note(str(AnswerLost(receipt.sequence, receipt.hash)))
        raise
    else:
        return Drawn(request, values, receipt, about, standing, terms)
    raise lost  # outside, so that not even its context holds what failed
