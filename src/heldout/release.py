"""The one door: validate the request, price it, book it durably, draw noise, return.

Nothing that is computed from private rows leaves this package by another way. The order is the
promise: rows are not even read before the ledger has the price on disk, so a crash at any point
loses an answer and never a booking. A refused request costs nothing.
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heldout.data import Dataset
from heldout.measure import Interval, Measure
from heldout.mechanisms import Mechanism
from heldout.privacy import Account, Ledger, Loss, Protection, Receipt
from heldout.statistics import Statistic, compute


@dataclass(frozen=True)
class Request:
    """What is asked of private rows. All of it is public."""

    name: str
    statistic: Statistic
    mechanism: Mechanism
    parameters: Mapping[str, Any]

    def public(self) -> dict[str, Any]:
        """What the ledger keeps beside the event, for people."""
        return {"release": self.name, **self.parameters}


@dataclass(frozen=True)
class Drawn:
    """What came out of the door: noisy numbers, and the terms on which they were given."""

    request: Request
    values: Any
    receipt: Receipt
    protection: Protection
    public_rows: int | None
    data: str

    @property
    def loss(self) -> Loss:
        return self.request.mechanism.privacy_map()

    @property
    def terms(self) -> str:
        return f"{self.loss}, {self.protection.describe()}"


def release(request: Request, *, dataset: Dataset, ledger: Ledger, account: Account) -> Drawn:
    """Let one noisy statistic of private rows out, for a price that is booked first.

    Claim:       every answer is drawn after its loss is durable in the ledger, and the ledger's
                 total never exceeds the budget.                               [claim: one-door]
    Neighbours:  the data set's, for every request of its account.
    Sensitivity: the statistic's; the mechanism was built for it.
    Numerics:    exact.
    Refuses:     a file that changed since it was validated; what the ledger refuses.
    Reference:   Rogers, Roth, Ullman and Vadhan 2016, privacy filters.
    Cost:        one durable write, one pass over the rows.
    """
    dataset.check_unchanged()
    receipt = ledger.book(account, request.mechanism.event(), request=request.public())
    sealed = compute(request.statistic, dataset)
    values = request.mechanism.sample(sealed)
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
        return self._drawn.request.name

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
        return self._drawn.request.mechanism.describe()

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
            "claim": drawn.request.statistic.claim,
            "receipt": {"sequence": self.receipt.sequence, "hash": self.receipt.hash},
        }

    def _noisy(self) -> Any:
        """The noisy numbers as drawn, on the public lattice."""
        return self._drawn.values.tolist()

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td>{each:.4g}</td><td>{each.interval()[0]:.4g} to {each.interval()[1]:.4g}</td>"
            f"<td>{each.noise_interval()[0]:.4g} to {each.noise_interval()[1]:.4g}</td></tr>"
            for name, each in self.measures.items()
        )
        head = "<th></th><th>value</th><th>95% interval</th><th>privacy noise alone</th>"
        return (
            f"<table><caption>{html.escape(self.name)}: {html.escape(self._drawn.terms)}"
            f"</caption><tr>{head}</tr>{rows}</table>"
        )
