"""The one door: validate the request, price it, book it durably, draw noise, return.

Nothing that is computed from private rows leaves this package by another way. The order is the
promise: no answer is computed, and no noise drawn, before the ledger has the price on disk, so a
crash at any point loses an answer and never a booking. A refused request costs nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from heldout.data.table import PrivateTable
from heldout.drawing.chart import Figure
from heldout.drawing.page import measures_card
from heldout.drawing.words import spread
from heldout.errors import BudgetExceeded
from heldout.measure import Interval, Measure
from heldout.mechanisms import Mechanism
from heldout.privacy import Account, Event, Ledger, Loss, Protection, Receipt, price
from heldout.statistics import Statistic, compute


class Question(Protocol):
    """What is asked of private rows and paid as one. All of it is public."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def claim(self) -> str: ...

    def event(self) -> Event:
        """What the ledger books."""

    def privacy_map(self) -> Loss:
        """What it costs; the price of the event."""

    def draw(self, rows: PrivateTable) -> Any:
        """Noisy numbers of the rows; called by the door, after the booking."""

    def describe(self) -> dict[str, object]:
        """How the noise is made, in public terms."""


@dataclass(frozen=True)
class Step:
    """One statistic and the noise for it."""

    statistic: Statistic
    mechanism: Mechanism

    def draw(self, rows: PrivateTable) -> Any:
        return self.mechanism.sample(compute(self.statistic, rows))


@dataclass(frozen=True)
class Request:
    """One statistic, released once."""

    name: str
    statistic: Statistic
    mechanism: Mechanism
    parameters: Mapping[str, Any]

    @property
    def claim(self) -> str:
        return self.statistic.claim

    def event(self) -> Event:
        return self.mechanism.event()

    def privacy_map(self) -> Loss:
        return price(self.mechanism.event())

    def draw(self, rows: PrivateTable) -> Any:
        return Step(self.statistic, self.mechanism).draw(rows)

    def describe(self) -> dict[str, object]:
        return self.mechanism.describe()


@dataclass(frozen=True)
class Staged:
    """Several statistics paid as one, each chosen in the light of the answers before it.

    `steps` are functions of the answers so far, which are public; `prices` are the events that
    are booked, all at once, before the first row is read. A step may not cost anything else than
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
    steps: tuple[Callable[[tuple[Any, ...]], Step], ...]
    prices: tuple[Event, ...]
    parameters: Mapping[str, Any]
    claim: str
    description: Mapping[str, object]

    def event(self) -> Event:
        return Event.composed(self.prices)

    def privacy_map(self) -> Loss:
        return price(self.event())

    def draw(self, rows: PrivateTable) -> tuple[Any, ...]:
        answers: tuple[Any, ...] = ()
        for choose, booked in zip(self.steps, self.prices, strict=True):
            step = choose(answers)
            if price(step.mechanism.event()) != price(booked):
                raise BudgetExceeded(
                    "A step must cost what was booked for it, got another price. Book that one."
                )
            answers = (*answers, step.draw(rows))
        return answers

    def describe(self) -> dict[str, object]:
        return dict(self.description)


@dataclass(frozen=True)
class Drawn:
    """What came out of the door: noisy numbers, and the terms on which they were given."""

    request: Any  # a Question; whoever reads the values knows its kind
    values: Any
    receipt: Receipt
    protection: Protection
    public_rows: int | None
    data: str

    @property
    def loss(self) -> Loss:
        loss: Loss = self.request.privacy_map()
        return loss

    @property
    def terms(self) -> str:
        return f"{self.loss}, {self.protection.describe()}"


def release(request: Question, *, dataset: PrivateTable, ledger: Ledger, account: Account) -> Drawn:
    """Let noisy numbers of private rows out, for a price that is booked first.

    Claim:       every answer is drawn after its loss is durable in the ledger, and the ledger's
                 total never exceeds the budget.                               [claim: one-door]
    Neighbours:  the data set's, for every request of its account.
    Sensitivity: the statistic's; the mechanism was built for it.
    Numerics:    exact.
    Refuses:     a file that changed since it was validated; what the ledger refuses.
    Reference:   Rogers, Roth, Ullman and Vadhan 2016, privacy filters.
    Cost:        one durable write, one pass over the rows for each statistic.
    """
    dataset.check_unchanged()
    booked = {"release": request.name, **request.parameters}
    receipt = ledger.book(account, request.event(), request=booked)
    values = request.draw(dataset)
    return Drawn(
        request=request,
        values=values,
        receipt=receipt,
        protection=dataset.protection,
        public_rows=dataset.public_rows,
        data=dataset.name,
    )


class Release(ABC):
    """One answer, for people and for machines. Everything here is already paid for.

    A subclass turns what was drawn into measures; the first of them is the headline, which
    `float()`, `value`, `interval()` and `noise_interval()` speak of.
    """

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn

    @property
    @abstractmethod
    def measures(self) -> dict[str, Measure]:
        """What can be read off this release, by name, the headline first."""

    @property
    def headline(self) -> Measure:
        return next(iter(self.measures.values()))

    @property
    def name(self) -> str:
        return str(self._drawn.request.name)

    @property
    def loss(self) -> Loss:
        return self._drawn.loss

    @property
    def receipt(self) -> Receipt:
        return self._drawn.receipt

    @property
    def protection(self) -> Protection:
        return self._drawn.protection

    @property
    def neighbours(self) -> str:
        return str(self._drawn.protection.neighbours)

    @property
    def mechanism(self) -> dict[str, object]:
        return dict(self._drawn.request.describe())

    @property
    def value(self) -> float:
        return self.headline.value

    def __float__(self) -> float:
        return self.headline.value

    def interval(self, level: float = 0.95) -> Interval:
        return self.headline.interval(level)

    def noise_interval(self, level: float = 0.95) -> Interval:
        return self.headline.noise_interval(level)

    def __str__(self) -> str:
        return str(self.headline)

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON: everything that an analyst may see of this release."""
        drawn = self._drawn
        return {
            "release": self.name,
            "value": self.value,
            "measures": {name: each.as_dict(level) for name, each in self.measures.items()},
            "noisy": self._noisy(),
            "loss": self.loss.as_dict(),
            "protection": drawn.protection.as_dict(),
            "rows": drawn.public_rows,
            "parameters": dict(drawn.request.parameters),
            "mechanism": self.mechanism,
            "claim": drawn.request.claim,
            "receipt": {"sequence": self.receipt.sequence, "hash": self.receipt.hash},
        }

    def _noisy(self) -> Any:
        """The noisy numbers as drawn, on the public lattice."""
        return self._drawn.values.tolist()

    def figures(self, level: float = 0.95) -> list[Figure]:
        """Pictures of its own, each with a caption."""
        return []

    def _lead(self) -> str:
        """What its card says first."""
        value, interval, _ = spread(self.headline, 0.95)
        return f"{self.headline.name} {value} ({interval})"

    def _repr_html_(self) -> str:
        return measures_card(
            self._lead(),
            self.measures,
            drawn=self.figures(),
            note=f"Paid: {self._drawn.terms}. Receipt {self.receipt.hash}.",
        )
