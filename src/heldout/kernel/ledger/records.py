"""The records of a ledger, and the chain of hashes that links its entries.

The hash of an entry is SHA-256 of the hash before it and of the entry's canonical JSON. Nothing
in an entry, an account or a receipt is a function of private rows: an account has a random name,
an event has public parameters.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self

from heldout.arguments import shown
from heldout.errors import ArgumentError, HeldoutError, LedgerTampered
from heldout.kernel.events import Event
from heldout.kernel.loss import Budget, Loss, show

DEEPEST: Final = 3  # people > data set > analyst
OPENINGS: Final = ("opening", "registration", "grant")


@dataclass(frozen=True)
class Account:
    """One data set's budget. The id is random; it says nothing about the rows."""

    id: str
    budget: Budget


@dataclass(frozen=True)
class Receipt:
    """Proof of a booking; keep the hash, and `Ledger.verify(receipt=hash)` finds it again.

    `loss` is the price of the event; `charge` is what the budget gave, in the budget's kind.
    """

    sequence: int
    hash: str
    loss: Loss
    charge: Loss
    account: str
    time: datetime
    standing: tuple[Budget, Loss, Loss] | None = field(default=None, repr=False, compare=False)
    """Budget, spent and remaining right after, where the booking was made; no part of the proof."""

    def __getstate__(self) -> dict[str, Any]:
        # Whoever is shown the proof need not learn what the account has left.
        return self.__dict__ | {"standing": None}

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "sequence": self.sequence,
            "hash": self.hash,
            "loss": self.loss.as_dict(),
            "charge": self.charge.as_dict(),
            "account": self.account,
            "time": self.time.isoformat(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote."""
        try:
            receipt = cls(
                **dict(content)
                | {
                    "loss": Loss.from_dict(content["loss"]),
                    "charge": Loss.from_dict(content["charge"]),
                    "time": datetime.fromisoformat(content["time"]),
                }
            )
            if receipt.as_dict() != dict(content) or type(receipt.sequence) is not int:
                raise ValueError
            if not isinstance(receipt.hash, str) or not isinstance(receipt.account, str):
                raise ValueError
        except Exception:
            raise ArgumentError(
                "A receipt must be a mapping as Receipt.as_dict() returns it."
            ) from None
        return receipt


class LostRace(Exception):
    """Somebody else moved the chain between our look and our swap: look again."""


@dataclass(frozen=True)
class Identity:
    """Identifies a ledger: what it drew when it was made, and where its chain ends now.

    `key_check` tells the right key from a wrong one, and is empty until a key is needed; `closed`
    is the entry that closed the ledger to unregistered rows, or 0.
    """

    ledger: str
    key_check: str
    closed: int
    sequence: int
    head: str


@dataclass(frozen=True)
class State:
    """Holds what changes of an account: each entry that touches it says how it stands afterwards.

    `rows` is the number of rows of an account whose relation makes it public, once it is known.
    """

    budget: Budget
    spent: Loss
    closed: bool = False
    rows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON; what is as in the beginning is left out."""
        content: dict[str, Any] = {"budget": self.budget.as_dict(), "spent": self.spent.as_dict()}
        if self.closed:
            content["closed"] = True
        return content if self.rows is None else content | {"rows": self.rows}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "State":
        """Read it from an entry, or from one of the accounts above in an entry."""
        budget, spent = Budget.from_dict(content["budget"]), Loss.from_dict(content["spent"])
        return cls(budget, spent, content.get("closed", False), content.get("rows"))


@dataclass(frozen=True)
class AccountRow:
    """One account as it is stored; `kind` is "rows" (found by content), "data" or "analyst"."""

    id: str
    kind: str
    name: str | None
    parent: str | None
    state: str
    sequence: int
    head: str


@dataclass(frozen=True)
class Tie:
    """One fingerprint by which an account is found; `mac` and `seal` never leave the ledger."""

    mac: str
    account: str
    seal: str


@dataclass(frozen=True)
class Entry:
    """One link of the chain: a booking, or a decision about an account."""

    sequence: int
    account: str
    previous: str
    hash: str
    body: str

    @property
    def content(self) -> dict[str, Any]:
        """Return the entry as plain JSON."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def kind(self) -> str:
        """Return what it is.

        booking: a release was paid for; opening, tie: rows without a registration got their
        budget, or a further digest; registration, grant, raise, revocation, closing, counted,
        rekey: the custodian's decisions.
        """
        kind: str = self.content["kind"]
        return kind

    @property
    def analyst(self) -> str | None:
        """Return whose share paid, or whom a decision is about."""
        analyst: str | None = self.content.get("analyst")
        return analyst

    @property
    def model(self) -> str | None:
        """Return the model that a booking asked about."""
        model: str | None = self.request.get("model", self.request.get("score"))
        return model

    @property
    def path(self) -> list[dict[str, Any]]:
        """Return the entry's account and those above it, each with its state afterwards."""
        content = self.content
        return [content, *content.get("above", ())]

    @property
    def time(self) -> datetime:
        """Return when it was written (UTC, by the clock of the machine that wrote)."""
        return datetime.fromisoformat(self.content["time"])

    @property
    def budget(self) -> Budget:
        """Return the account's budget."""
        return Budget.from_dict(self.content["budget"])

    @property
    def spent(self) -> Loss:
        """Return what the account had spent once this entry was written."""
        return Loss.from_dict(self.content["spent"])

    @property
    def event(self) -> Event | None:
        """Return what was paid for; None in an opening."""
        content = self.content.get("event")
        return None if content is None else Event.from_dict(content)

    @property
    def loss(self) -> Loss | None:
        """Return the event's price; None in an opening."""
        content = self.content.get("loss")
        return None if content is None else Loss.from_dict(content)

    @property
    def charge(self) -> Loss | None:
        """Return what the budget was charged, in its own kind; None in an opening."""
        content = self.content.get("charge")
        return None if content is None else Loss.from_dict(content)

    @property
    def request(self) -> dict[str, Any]:
        """Return what was asked for."""
        request: dict[str, Any] = self.content.get("request", {})
        return request

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON, with the hashes."""
        return self.content | {"hash": self.hash, "previous": self.previous}

    def check(self) -> dict[str, Any]:
        """Return the content; raise unless the hash is that of it and the columns agree with it."""
        self.check_hash()
        if not _agree(self.body, self.sequence, self.account):
            raise tampered(self.sequence, "its columns and its content differ")
        return self.content

    def check_hash(self) -> None:
        """Raise unless the hash is that of the content."""
        texts = (self.account, self.previous, self.hash, self.body)
        if not all(isinstance(text, str) for text in texts):
            raise tampered(self.sequence, "a column is not text")
        if self.hash != link(self.previous, self.body):
            raise tampered(self.sequence, "its hash is not that of its content")


@lru_cache(maxsize=64)
def _agree(body: str, sequence: int, account: str) -> bool:
    """Check that a body is canonical and of this place; often asked of an account's last entry."""
    try:
        content: dict[str, Any] = json.loads(body)
        same = content["sequence"] == sequence and content["account"] == account
        return same and canonical(content) == body
    except (HeldoutError, KeyError, TypeError, ValueError):
        return False


def checked_name(what: str, name: object) -> str:
    """Return a name that people can read back to each other, or refuse it."""
    if (
        isinstance(name, str)
        and name.strip() == name
        and name.isprintable()
        and 0 < len(name) < 200
    ):
        return name
    raise ArgumentError(f"{what} must be printable text of 1 to 199 characters, got {shown(name)}.")


def canonical(content: Mapping[str, Any]) -> str:
    """The one JSON text of a mapping; exact numbers become text."""
    try:
        return json.dumps(
            content,
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
            default=_plain,
        )
    except (TypeError, ValueError, RecursionError):
        raise ArgumentError(
            "request must be plain JSON (text, numbers, lists, mappings). Convert it first."
        ) from None


def _plain(value: object) -> str:
    if isinstance(value, Fraction):
        return show(value)
    raise TypeError


def link(previous: str, body: str) -> str:
    """The hash of an entry."""
    return hashlib.sha256(previous.encode("utf-8") + body.encode("utf-8")).hexdigest()


def first_hash(ledger: str) -> str:
    """Where the chain of a ledger begins."""
    return hashlib.sha256(b"heldout ledger 1 " + ledger.encode("ascii")).hexdigest()


def tampered(sequence: int | None, why: str) -> LedgerTampered:
    """The error for entry `sequence`."""
    place = "The ledger" if sequence is None else f"Entry {sequence} of the ledger"
    error = LedgerTampered(
        f"{place} must be as it was written, got a change: {why}. "
        "Nothing more is booked; restore the newest copy, or begin a new ledger and a new budget."
    )
    error.sequence = sequence
    return error
