"""A whole ledger, walked from its first entry: what `Ledger.verify` finds."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from heldout.errors import HeldoutError, LedgerTampered
from heldout.kernel.accountant import charge, compose, covers
from heldout.kernel.events import Event, price
from heldout.kernel.ledger.chain import (
    AccountRow,
    Entry,
    Identity,
    State,
    Tie,
    canonical,
    first_hash,
    seal_of,
    tampered,
)
from heldout.kernel.loss import Budget, Loss

__all__ = ["Replay", "Verification"]


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


@dataclass
class _Known:
    """An account as the entries so far have left it."""

    kind: str
    name: str | None
    parent: str | None
    state: State
    sequence: int = 0
    head: str = ""
    _told: tuple[Budget | None, dict[str, str]] = (None, {})

    def told_budget(self) -> dict[str, str]:
        """The budget as entries tell it, which changes seldom."""
        if self._told[0] is not self.state.budget:
            self._told = (self.state.budget, self.state.budget.as_dict())
        return self._told[1]


_OPENING = {"opening": "rows", "registration": "data", "grant": "analyst"}
_DECISION: dict[str, Callable[[State, State], State]] = {
    "tie": lambda old, _: old,
    "grant": lambda old, told: replace(old, budget=told.budget, closed=False),
    "raise": lambda old, told: replace(old, budget=told.budget),
    "revocation": lambda old, _: replace(old, closed=True),
    "closing": lambda old, _: replace(old, closed=True),
    "counted": lambda old, told: replace(old, rows=told.rows),
}
"""What each decision may change of its account: the old state, what is told, the new state."""


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
        """Change the accounts of the entry's path as its kind says; they must be as it tells."""

        def require(true: bool, otherwise: str) -> None:
            if not true:
                raise tampered(entry.sequence, otherwise)

        kind, told = content["kind"], [content, *content.get("above", ())]
        require(content["ledger"] == self.identity.ledger, "it belongs to another ledger")
        if kind == "rekey":
            self._ties.clear()
            return
        above = [each["account"] for each in told[1:]]
        require(all(each in self._accounts for each in above), "an account was never opened")
        new = entry.account not in self._accounts
        if new:
            require(kind in _OPENING, "its account was never opened")
            known = self._opened(kind, content, above)
            require(known is not None, "its name was taken before")
            assert known is not None
            self._accounts[entry.account] = known
        path = [self._accounts[each] for each in (entry.account, *above)]
        require([each.parent for each in path] == [*above, None], "it is elsewhere in the tree")
        blocked = path if kind == "booking" else path[1:] if kind == "grant" else []
        require(not any(each.state.closed for each in blocked), "its account was closed")
        if kind == "booking":
            loss, cost = self._prices(canonical(content["event"]), path[0].state.budget)
            require(content["loss"] == loss.as_dict(), "its price is not that of its event")
            require(content["charge"] == cost.as_dict(), "its charge is not that of its event")
            for each in path:
                budget = each.state.budget
                spent = compose([each.state.spent, cost], budget=budget)
                require(covers(budget, spent), "it overspends its budget")
                each.state = replace(each.state, spent=spent)
        elif not new:
            require(kind in _DECISION, "its account was opened before, or its kind is unknown")
            old = path[0].state
            path[0].state = _DECISION[kind](old, State.from_dict(content))
            lower = kind == "raise" and not covers(path[0].state.budget, old.budget)
            again = kind == "counted" and old.rows is not None
            require(not lower and not again, f"a {kind} must not do this")
            require(kind != "grant" or old.closed, "its share was not revoked")
        for each, mine in zip(path, told, strict=True):
            require(mine["budget"] == each.told_budget(), "its budget is not that of its account")
            state = each.state
            same = mine["spent"] == state.spent.as_dict() and mine.get("rows") == state.rows
            same = same and mine.get("closed", False) == state.closed
            require(same, "its total is not the sum of its account")
            each.sequence, each.head = entry.sequence, entry.hash
        self._ties[entry.account] += int(content.get("ties", 0))
        if content.get("closes_ledger") and not self._closed:
            self._closed = entry.sequence

    def _opened(self, kind: str, content: dict[str, Any], above: list[str]) -> _Known | None:
        """A new account; None if its name is another's."""
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
        """The price and the charge; a ledger has many events and few different ones."""
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
            raise tampered(max(each.sequence for each in left.values()), "its account is missing")
        missing = Counter(self._ties)
        for tie in ties:
            if key is not None and tie.seal != seal_of(key, tie.account, tie.mac):
                raise tampered(self._last(tie.account), "its account was tied to other rows")
            missing[tie.account] -= 1
        for account, count in missing.items():
            if count:
                raise tampered(self._last(account), "its account is tied to more or fewer rows")
        return len(self._accounts)
