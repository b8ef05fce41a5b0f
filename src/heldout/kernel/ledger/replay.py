"""A whole ledger, walked from its first entry: what `Ledger.verify` finds."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from heldout.errors import HeldoutError, LedgerTampered
from heldout.kernel.accountant import charge, compose, covers
from heldout.kernel.events import Event, price
from heldout.kernel.ledger.keys import seal_of
from heldout.kernel.ledger.records import (
    AccountRow,
    Entry,
    Identity,
    State,
    Tie,
    canonical,
    first_hash,
    tampered,
)
from heldout.kernel.loss import Budget, Loss


@dataclass(frozen=True)
class Verification:
    """Says that a whole verification succeeded: the ledger is as it was written."""

    ledger: str
    entries: int
    accounts: int
    sequence: int
    hash: str
    receipt_sequence: int | None = None

    def __str__(self) -> str:
        receipt = f" The receipt is entry {self.receipt_sequence}." if self.receipt_sequence else ""
        return f"{self.entries} entries of {self.accounts} accounts are intact.{receipt}"

    def as_dict(self) -> dict[str, str | int | None]:
        """Return plain JSON."""
        return dict(vars(self))


@dataclass
class _Known:
    """An account as the entries so far have left it."""

    kind: str
    name: str | None
    parent: str | None
    state: State
    sequence: int = 0
    head: str = ""
    _written: tuple[Budget | None, dict[str, str]] = (None, {})

    def agrees(self, content: dict[str, Any]) -> bool:
        """Return whether an entry leaves the account in this total, open or closed."""
        state = self.state
        same = content["spent"] == state.spent.as_dict() and content.get("rows") == state.rows
        return same and bool(content.get("closed", False) == state.closed)

    def written_budget(self) -> dict[str, str]:
        """Return the budget as entries have it, which changes seldom."""
        if self._written[0] is not self.state.budget:
            self._written = (self.state.budget, self.state.budget.as_dict())
        return self._written[1]


_OPENING = {"opening": "rows", "registration": "data", "grant": "analyst"}
_DECISION: dict[str, Callable[[State, State], State]] = {
    "tie": lambda old, _: old,
    "grant": lambda old, new: replace(old, budget=new.budget, closed=False),
    "raise": lambda old, new: replace(old, budget=new.budget),
    "revocation": lambda old, _: replace(old, closed=True),
    "closing": lambda old, _: replace(old, closed=True),
    "counted": lambda old, new: replace(old, rows=new.rows),
}
"""What a decision may change of its account, by the old state and the one its entry has."""


class Replay:
    """Walks the chain from the start, rebuilding every total from the events alone."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.sequence = 0
        self.head = first_hash(identity.ledger)
        self._closed = 0
        self._priced: dict[tuple[str, Budget], tuple[Loss, Loss]] = {}
        self._accounts: dict[str, _Known] = {}
        self._names: set[tuple[str, str | None, str | None]] = set()
        self._ties: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        """Check the next entry: its place, its hash, its price, its accounts' totals."""
        here = self.sequence + 1
        if entry.sequence != here:
            raise tampered(here, "it is missing")
        if entry.previous != self.head:
            raise tampered(here, "it does not follow the entry before it")
        content = entry.check()
        try:
            self._follow(entry, content)
        except LedgerTampered:
            raise
        except (HeldoutError, AttributeError, KeyError, TypeError, ValueError) as error:
            reason = "it holds something that this version of heldout cannot price"
            raise tampered(here, reason) from error
        self.sequence, self.head = here, entry.hash

    def _follow(self, entry: Entry, content: dict[str, Any]) -> None:
        """Change the accounts of the entry's path as its kind says; it must leave them so."""

        def require(true: bool, otherwise: str) -> None:
            if not true:
                raise tampered(entry.sequence, otherwise)

        kind, contents = content["kind"], [content, *content.get("above", ())]
        require(content["ledger"] == self.identity.ledger, "it belongs to another ledger")
        if kind == "rekey":
            self._ties.clear()
            return
        above = [part["account"] for part in contents[1:]]
        require(all(name in self._accounts for name in above), "an account was never opened")
        new = entry.account not in self._accounts
        if new:
            require(kind in _OPENING, "its account was never opened")
            known = self._open(kind, content, above)
            require(known is not None, "its name was taken before")
            assert known is not None
            self._accounts[entry.account] = known
        path = [self._accounts[name] for name in (entry.account, *above)]
        require([known.parent for known in path] == [*above, None], "it is elsewhere in the tree")
        blocked = path if kind == "booking" else path[1:] if kind == "grant" else []
        require(not any(known.state.closed for known in blocked), "its account was closed")
        if kind == "booking":
            loss, cost = self._prices(canonical(content["event"]), path[0].state.budget)
            require(content["loss"] == loss.as_dict(), "its price is not that of its event")
            require(content["charge"] == cost.as_dict(), "its charge is not that of its event")
            for known in path:
                budget = known.state.budget
                spent = compose([known.state.spent, cost], budget=budget)
                require(covers(budget, spent), "it overspends its budget")
                known.state = replace(known.state, spent=spent)
        elif not new:
            require(kind in _DECISION, "its account was opened before, or its kind is unknown")
            old = path[0].state
            path[0].state = _DECISION[kind](old, State.from_dict(content))
            lower = kind == "raise" and not covers(path[0].state.budget, old.budget)
            again = kind == "counted" and old.rows is not None
            require(not lower and not again, f"a {kind} must not do this")
            require(kind != "grant" or old.closed, "its share was not revoked")
        for known, part in zip(path, contents, strict=True):
            same = part["budget"] == known.written_budget()
            require(same, "its budget is not that of its account")
            require(known.agrees(part), "its total is not the sum of its account")
            known.sequence, known.head = entry.sequence, entry.hash
        self._ties[entry.account] += int(content.get("ties", 0))
        if content.get("closes_ledger") and not self._closed:
            self._closed = entry.sequence

    def _open(self, kind: str, content: dict[str, Any], above: list[str]) -> _Known | None:
        """Return a new account, or None if its name is another's."""
        budget = Budget.from_dict(content["budget"])
        parent = above[0] if above else None
        name = content["analyst" if kind == "grant" else "name"]
        unique = (kind, name, parent if kind == "grant" else None)
        if kind != "opening" and unique in self._names:
            return None
        self._names.add(unique)
        counted = content.get("rows") if kind == "opening" else None
        state = State(budget, compose([], budget=budget), rows=counted)
        return _Known(_OPENING[kind], name, parent, state)

    def _prices(self, event: str, budget: Budget) -> tuple[Loss, Loss]:
        """Return price and charge of an event; a ledger has many events and few different ones."""
        if (event, budget) not in self._priced:
            decoded = Event.decode(event)
            self._priced[event, budget] = price(decoded), charge(decoded, budget=budget)
        return self._priced[event, budget]

    def _last(self, account: str) -> int | None:
        known = self._accounts.get(account)
        return None if known is None else known.sequence

    def finish(self, accounts: Iterable[AccountRow], ties: Iterable[Tie], key: bytes | None) -> int:
        """Compare the end of the chain and the accounts with what was rebuilt.

        Without the key ties are counted, and their seals are taken on trust.
        """
        identity = self.identity
        if (identity.sequence, identity.head) != (self.sequence, self.head):
            raise tampered(min(identity.sequence, self.sequence) + 1, "the chain ends elsewhere")
        if identity.closed != self._closed:
            raise tampered(None, "it was opened to, or closed to, unregistered rows")
        left = dict(self._accounts)
        for row in accounts:
            known = left.pop(row.id, None)
            if known is None:
                raise tampered(None, "an account was never opened in the chain")
            if row.state != canonical(known.state.as_dict()):
                raise tampered(known.sequence, "the stored budget or total of its account differs")
            if (row.sequence, row.head) != (known.sequence, known.head):
                raise tampered(known.sequence, "its account points to another entry")
            if (row.kind, row.name, row.parent) != (known.kind, known.name, known.parent):
                raise tampered(known.sequence, "its account was renamed or moved")
        if left:
            raise tampered(max(known.sequence for known in left.values()), "its account is missing")
        missing = Counter(self._ties)
        for tie in ties:
            if key is not None and tie.seal != seal_of(key, tie.account, tie.mac):
                raise tampered(self._last(tie.account), "its account was tied to other rows")
            missing[tie.account] -= 1
        for account, count in missing.items():
            if count:
                raise tampered(self._last(account), "its account is tied to more or fewer rows")
        return len(self._accounts)
