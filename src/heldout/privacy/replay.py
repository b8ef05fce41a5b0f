"""A whole ledger, walked from its first entry: what `Ledger.verify` finds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heldout.errors import HeldoutError, LedgerTampered
from heldout.privacy.accountant import charge, compose, fits
from heldout.privacy.chain import (
    AccountRow,
    Entry,
    Identity,
    Tie,
    canonical,
    first_hash,
    seal_of,
    tampered,
)
from heldout.privacy.events import Event, price
from heldout.privacy.loss import Budget, Loss

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


class Replay:
    """Walks the chain from the start, rebuilding every total from the events alone."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.sequence = 0
        self.head = first_hash(identity.ledger)
        self._priced: dict[tuple[str, Budget], tuple[Loss, Loss]] = {}
        self._accounts: dict[str, tuple[Budget, Loss, int, str]] = {}
        self._ties: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        """Check the next entry: its place, its hash, its price, its account's total."""
        here = self.sequence + 1
        if entry.sequence != here:
            raise tampered(here, "it is missing")
        if entry.previous != self.head:
            raise tampered(here, "it does not follow the entry before it")
        content = entry.check()
        try:
            budget, spent = self._totals(entry, content)
        except LedgerTampered:
            raise
        except (HeldoutError, AttributeError, KeyError, TypeError, ValueError) as error:
            reason = "it holds something that this version of heldout cannot price"
            raise tampered(here, reason) from error
        self._accounts[entry.account] = (budget, spent, entry.sequence, entry.hash)
        self._ties[entry.account] += int(content.get("ties", 0))
        self.sequence, self.head = here, entry.hash

    def _totals(self, entry: Entry, content: dict[str, Any]) -> tuple[Budget, Loss]:
        """The budget and the rebuilt total of the entry's account after it."""

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
            require(content["kind"] in ("booking", "tie"), "it is of an unknown kind")
            if known is None:
                raise tampered(entry.sequence, "its account was never opened")
            budget, spent = known[:2]
            if content["kind"] == "tie":
                require(content["spent"] == spent.as_dict(), "a tie must not spend")
                require(content["budget"] == budget.as_dict(), "its budget is not its account's")
                return budget, spent
            loss, cost = self._prices(canonical(content["event"]), budget)
            require(content["loss"] == loss.as_dict(), "its price is not that of its event")
            require(content["charge"] == cost.as_dict(), "its charge is not that of its event")
            require(fits(spent, cost, budget), "it overspends its budget")
            spent = compose([spent, cost], budget=budget)
        require(content["budget"] == budget.as_dict(), "its budget is not that of its account")
        require(content["spent"] == spent.as_dict(), "its total is not the sum of its account")
        return budget, spent

    def _prices(self, event: str, budget: Budget) -> tuple[Loss, Loss]:
        """The price and the charge; a ledger has many events and few different ones."""
        if (event, budget) not in self._priced:
            decoded = Event.decode(event)
            self._priced[event, budget] = price(decoded), charge(decoded, budget=budget)
        return self._priced[event, budget]

    def _last(self, account: str) -> int | None:
        known = self._accounts.get(account)
        return None if known is None else known[2]

    def finish(self, accounts: Iterable[AccountRow], ties: Iterable[Tie]) -> int:
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
            if (row.budget, row.spent) != amounts:
                raise tampered(sequence, "the stored budget or total of its account differs")
            if (row.sequence, row.head) != (sequence, head):
                raise tampered(sequence, "its account points to another entry")
        if open_accounts:
            raise tampered(max(row[2] for row in open_accounts.values()), "its account is missing")
        left = Counter(self._ties)
        for tie in ties:
            if tie.seal != seal_of(identity.key, tie.account, tie.mac):
                raise tampered(self._last(tie.account), "its account was tied to other rows")
            left[tie.account] -= 1
        for account, missing in left.items():
            if missing:
                raise tampered(self._last(account), "its account is tied to more or fewer rows")
        return len(self._accounts)
