"""The entries of a ledger and the chain of hashes that ties them together.

The hash of an entry is SHA-256 of the hash before it and of the entry's canonical JSON. Nothing
in an entry is a function of private rows: an account has a random name, an event has public
parameters.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from heldout.errors import ArgumentError, HeldoutError, LedgerTampered
from heldout.kernel.events import Event
from heldout.kernel.loss import Budget, Loss
from heldout.kernel.rational import show

__all__ = [
    "DEEPEST",
    "OPENINGS",
    "SCHEMA_VERSION",
    "AccountRow",
    "Entry",
    "Identity",
    "LostRace",
    "State",
    "Tie",
    "canonical",
    "first_hash",
    "link",
    "mac_of",
    "seal_of",
    "tampered",
]

SCHEMA_VERSION: Final = 2
DEEPEST: Final = 3  # people > data set > analyst
OPENINGS: Final = ("opening", "registration", "grant")


class LostRace(Exception):
    """Somebody else moved the chain between our look and our swap: look again."""


@dataclass(frozen=True)
class Identity:
    """What a ledger drew when it was made, and where its chain ends now.

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
    """What changes of an account: each entry that touches it says how it stands afterwards.

    `rows` is the number of rows of an account whose relation makes it public, once it is known.
    """

    budget: Budget
    spent: Loss
    closed: bool = False
    rows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON; what is as in the beginning is left out."""
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
        """The entry as plain JSON."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def kind(self) -> str:
        """booking: a release was paid for; opening, tie: rows without a registration got their
        budget, or a further digest; registration, grant, raise, revocation, closing, counted,
        rekey: the custodian's decisions."""
        kind: str = self.content["kind"]
        return kind

    @property
    def analyst(self) -> str | None:
        """Whose share paid, or whom a decision is about."""
        analyst: str | None = self.content.get("analyst")
        return analyst

    @property
    def model(self) -> str | None:
        """The model that a booking asked about."""
        model: str | None = self.request.get("model", self.request.get("score"))
        return model

    @property
    def path(self) -> list[dict[str, Any]]:
        """The entry's account and those above it, each with its state afterwards."""
        content = self.content
        return [content, *content.get("above", ())]

    @property
    def time(self) -> datetime:
        """When it was written (UTC, by the clock of the machine that wrote)."""
        return datetime.fromisoformat(self.content["time"])

    @property
    def budget(self) -> Budget:
        """The account's budget."""
        return Budget.from_dict(self.content["budget"])

    @property
    def spent(self) -> Loss:
        """What the account had spent once this entry was written."""
        return Loss.from_dict(self.content["spent"])

    @property
    def event(self) -> Event | None:
        """What was paid for; None in an opening."""
        content = self.content.get("event")
        return None if content is None else Event.from_dict(content)

    @property
    def loss(self) -> Loss | None:
        """The event's price; None in an opening."""
        content = self.content.get("loss")
        return None if content is None else Loss.from_dict(content)

    @property
    def charge(self) -> Loss | None:
        """What the budget was charged, in its own kind; None in an opening."""
        content = self.content.get("charge")
        return None if content is None else Loss.from_dict(content)

    @property
    def request(self) -> dict[str, Any]:
        """What was asked for."""
        request: dict[str, Any] = self.content.get("request", {})
        return request

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, with the hashes."""
        return self.content | {"hash": self.hash, "previous": self.previous}

    def check(self) -> dict[str, Any]:
        """The content; raises unless the hash is that of it and the columns agree with it."""
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
    """Whether a body is canonical and of this place; asked of an account's last entry often."""
    try:
        content: dict[str, Any] = json.loads(body)
        same = content["sequence"] == sequence and content["account"] == account
        return same and canonical(content) == body
    except (HeldoutError, KeyError, TypeError, ValueError):
        return False


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


def mac_of(key: bytes, fingerprint: bytes) -> str:
    """How an account finds its rows again: useless without the ledger's own random key."""
    return hmac.new(key, b"rows " + fingerprint, hashlib.sha256).hexdigest()


def seal_of(key: bytes, account: str, mac: str) -> str:
    """Ties an account to its rows outside the chain, so that no hash depends on them."""
    return hmac.new(key, f"seal {account} {mac}".encode("ascii"), hashlib.sha256).hexdigest()


def tampered(sequence: int | None, why: str) -> LedgerTampered:
    """The error for entry `sequence`."""
    place = "The ledger" if sequence is None else f"Entry {sequence} of the ledger"
    error = LedgerTampered(
        f"{place} must be as it was written, got a change: {why}. "
        "Nothing more is booked; restore the newest copy, or begin a new ledger and a new budget."
    )
    error.sequence = sequence
    return error
