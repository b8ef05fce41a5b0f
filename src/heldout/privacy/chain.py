"""The entries of a ledger and the chain of hashes that ties them together.

The hash of an entry is SHA-256 of the hash before it and of the entry's canonical JSON. Nothing
in an entry is a function of private rows: an account has a random name, an event has public
parameters.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

from heldout.errors import ArgumentError, HeldoutError, LedgerTampered
from heldout.privacy.accountant import charge, compose, fits
from heldout.privacy.events import Event, price
from heldout.privacy.loss import Budget, Loss
from heldout.privacy.rational import show

__all__ = [
    "AccountRow",
    "Entry",
    "Identity",
    "Replay",
    "Verification",
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
    """One data set's account as it is stored; `mac` and `seal` never leave the ledger."""

    id: str
    mac: str
    seal: str
    budget: str
    spent: str
    sequence: int
    head: str


@dataclass(frozen=True)
class Entry:
    """One link of the chain: an account that was opened, or a booking."""

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
    def kind(self) -> Literal["opening", "booking"]:
        """opening: a data set got its budget; booking: a release was paid for."""
        return "booking" if self.content["kind"] == "booking" else "opening"

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

    def check(self) -> None:
        """Raise unless the hash is that of the content and the columns agree with it."""
        if self.hash != link(self.previous, self.body):
            raise tampered(self.sequence, "its hash is not that of its content")
        try:
            content = self.content
            agree = content["sequence"] == self.sequence and content["account"] == self.account
            agree = agree and canonical(content) == self.body
        except (HeldoutError, KeyError, TypeError, ValueError):
            agree = False
        if not agree:
            raise tampered(self.sequence, "its columns and its content differ")


@dataclass(frozen=True)
class Verification:
    """What a whole verification found: the ledger is as it was written."""

    ledger: str
    entries: int
    accounts: int
    sequence: int
    hash: str
    receipt_sequence: int | None = None

    def __str__(self) -> str:
        found = f" The receipt is entry {self.receipt_sequence}." if self.receipt_sequence else ""
        return f"{self.entries} entries of {self.accounts} accounts are intact.{found}"

    def as_dict(self) -> dict[str, str | int | None]:
        """Plain JSON."""
        return dict(vars(self))


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
    return hashlib.sha256(previous.encode("ascii") + body.encode("utf-8")).hexdigest()


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


class Replay:
    """Walks the chain from the start, rebuilding every total from the events alone."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.sequence = 0
        self.head = first_hash(identity.ledger)
        self._accounts: dict[str, tuple[Budget, Loss, int, str]] = {}

    def add(self, entry: Entry) -> None:
        """Check the next entry: its place, its hash, its price, its account's total."""
        here = self.sequence + 1
        if entry.sequence != here:
            raise tampered(here, "it is missing")
        if entry.previous != self.head:
            raise tampered(here, "it does not follow the entry before it")
        entry.check()
        try:
            budget, spent = self._totals(entry)
        except LedgerTampered:
            raise
        except (HeldoutError, AttributeError, KeyError, TypeError, ValueError) as error:
            reason = "it holds something that this version of heldout cannot price"
            raise tampered(here, reason) from error
        self._accounts[entry.account] = (budget, spent, entry.sequence, entry.hash)
        self.sequence, self.head = here, entry.hash

    def _totals(self, entry: Entry) -> tuple[Budget, Loss]:
        """The budget and the rebuilt total of the entry's account after it."""
        content = entry.content

        def require(true: bool, otherwise: str) -> None:
            if not true:
                raise tampered(entry.sequence, otherwise)

        known = self._accounts.get(entry.account)
        require(content["ledger"] == self.identity.ledger, "it belongs to another ledger")
        if content["kind"] == "opening":
            require(known is None, "its account was opened before")
            budget = Budget.from_dict(content["budget"])
            spent = compose([], budget=budget)
        else:
            require(content["kind"] == "booking", "it is of an unknown kind")
            if known is None:
                raise tampered(entry.sequence, "its account was never opened")
            budget, spent = known[:2]
            event = Event.from_dict(content["event"])
            loss, cost = price(event), charge(event, budget=budget)
            require(content["loss"] == loss.as_dict(), "its price is not that of its event")
            require(content["charge"] == cost.as_dict(), "its charge is not that of its event")
            require(fits(spent, cost, budget), "it overspends its budget")
            spent = compose([spent, cost], budget=budget)
        require(content["budget"] == budget.as_dict(), "its budget is not that of its account")
        require(content["spent"] == spent.as_dict(), "its total is not the sum of its account")
        return budget, spent

    def finish(self, accounts: Iterable[AccountRow]) -> int:
        """Compare the end of the chain and the accounts with what was rebuilt."""
        identity = self.identity
        if (identity.sequence, identity.head) != (self.sequence, self.head):
            raise tampered(min(identity.sequence, self.sequence) + 1, "the chain ends elsewhere")
        open_accounts = dict(self._accounts)
        for row in accounts:
            rebuilt = open_accounts.pop(row.id, None)
            if rebuilt is None:
                raise tampered(None, "an account was never opened in the chain")
            budget, spent, sequence, head = rebuilt
            amounts = canonical(budget.as_dict()), canonical(spent.as_dict())
            if row.seal != seal_of(identity.key, row.id, row.mac):
                raise tampered(sequence, "its account was tied to other rows")
            if (row.budget, row.spent) != amounts:
                raise tampered(sequence, "the stored budget or total of its account differs")
            if (row.sequence, row.head) != (sequence, head):
                raise tampered(sequence, "its account points to another entry")
        if open_accounts:
            raise tampered(max(row[2] for row in open_accounts.values()), "its account is missing")
        return len(self._accounts)
