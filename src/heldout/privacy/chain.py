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
from typing import Any, Literal

from heldout.errors import ArgumentError, HeldoutError, LedgerTampered
from heldout.privacy.events import Event
from heldout.privacy.loss import Budget, Loss
from heldout.privacy.rational import show

__all__ = [
    "AccountRow",
    "Entry",
    "Identity",
    "Tie",
    "canonical",
    "first_hash",
    "link",
    "mac_of",
    "seal_of",
    "tampered",
]


@dataclass(frozen=True)
class Identity:
    """What a ledger drew when it was made, and where its chain ends now."""

    ledger: str
    key: bytes
    sequence: int
    head: str


@dataclass(frozen=True)
class AccountRow:
    """One data set's account as it is stored."""

    id: str
    budget: str
    spent: str
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
    """One link of the chain: an account that was opened or tied to more rows, or a booking."""

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
    def kind(self) -> Literal["opening", "tie", "booking"]:
        """opening: a data set got its budget; tie: it was declared in a further way, which leads
        to the same budget; booking: a release was paid for."""
        kind: Literal["opening", "tie", "booking"] = self.content["kind"]
        return kind

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
        texts = (self.account, self.previous, self.hash, self.body)
        if not all(isinstance(text, str) for text in texts):
            raise tampered(self.sequence, "a column is not text")
        if self.hash != link(self.previous, self.body):
            raise tampered(self.sequence, "its hash is not that of its content")
        if not _agree(self.body, self.sequence, self.account):
            raise tampered(self.sequence, "its columns and its content differ")
        return self.content


@lru_cache(maxsize=64)
def _agree(body: str, sequence: int, account: str) -> bool:
    """Whether a body is canonical and of this place; a booking asks it of its last entry thrice."""
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
            "request must be plain JSON (text, numbers, lists, mappings), got another object. "
            "Convert it first."
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
