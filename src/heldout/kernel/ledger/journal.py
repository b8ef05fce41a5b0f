"""The journal of a ledger: a chain of entries, and the accounts as their last entries left them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from heldout.arguments import guess, no_such, shown
from heldout.errors import AccountClosed, BudgetMismatch, LedgerError
from heldout.kernel.ledger.records import (
    Account,
    AccountRow,
    Entry,
    Identity,
    State,
    canonical,
    checked_name,
    link,
    tampered,
)
from heldout.kernel.ledger.storage import Storage
from heldout.kernel.ledger.tables import Tables
from heldout.kernel.ledger.witness import Watch, Witness
from heldout.kernel.neighbours import Protection

T = TypeVar("T")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Balance(NamedTuple):
    """An account and its state."""

    row: AccountRow
    state: State


Line = list[Balance]
"""An account and those above it."""


class Clock:
    """Tells the time in whole ticks."""

    def __init__(self, tick: float | None) -> None:
        self._tick = timedelta(microseconds=1 if tick is None else max(1, round(tick * 1e6)))

    def now(self) -> datetime:
        """Return the time of the last tick."""
        return _EPOCH + (datetime.now(UTC) - _EPOCH) // self._tick * self._tick


class Books:
    """The accounts and the end of the chain within one transaction, checked as they are read."""

    def __init__(self, tables: Tables, identity: Identity, clock: Clock) -> None:
        """Use `Journal.read` and `Journal.write`, which check the end of the chain first."""
        self.tables = tables
        self.identity = identity
        self._clock = clock

    # --- looking ---------------------------------------------------------------------------------

    def id_of(self, account: Account | str) -> str:
        """Return the id of an account that is given by itself or by name."""
        return account.id if isinstance(account, Account) else self.named(account).id

    def named(self, name: object) -> AccountRow:
        """Return the registered account of a name, or the only one rows were opened under."""
        alike = self.tables.named(checked_name("account", name))
        rows = [row for row in alike if row.kind == "data"] or alike
        if len(rows) != 1:
            if rows:
                raise LedgerError(f"This ledger has more than one account {shown(name)}.")
            known = [row.name for row in self.tables.accounts() if row.kind == "data" and row.name]
            raise LedgerError(
                f"{no_such('account', name, sorted(known))} To add one: heldout ledger register."
            )
        opening = self.tables.opening(rows[0].id)
        if opening.content.get("name") != name:
            raise tampered(opening.sequence, "its account has another name")
        return rows[0]

    def is_registered(self, name: str) -> bool:
        return any(row.kind == "data" for row in self.tables.named(name))

    def share(self, row: AccountRow, analyst: str) -> AccountRow:
        """Return the account of an analyst's share."""
        shares = self.tables.shares(checked_name("analyst", analyst), row.id)
        if not shares:
            accounts = self.tables.accounts()
            known = [one.name for one in accounts if one.parent == row.id and one.name]
            raise LedgerError(
                f"{shown(analyst)} has no share of account {shown(row.name)}."
                f"{guess(analyst, known)} Grant one: heldout ledger grant."
            )
        opening = self.tables.opening(shares[0].id)
        if opening.analyst != analyst:
            raise tampered(opening.sequence, "its account has another name")
        return shares[0]

    def registrant(self, account: str) -> str:
        """Return who registered an account; nobody, if rows were asked about without that."""
        return str(self.tables.opening(account).content.get("who", ""))

    def check_protection(self, account: str, protection: Protection | None) -> None:
        """Refuse a table that is declared in another way than its account was."""
        declared = None if protection is None else protection.as_dict()
        before = self.tables.opening(account).content["protection"]
        if declared != before:
            protected = before or {}
            named = {
                "neighbours": "neighbours",
                "unit": "unit_name",
                "rows_per_unit": "rows_per_unit",
            }
            was = ", ".join(f"{word}={shown(protected.get(key))}" for word, key in named.items())
            raise BudgetMismatch(
                f"This account protects rows otherwise: {was}. Declare the data set in the same "
                "way, with the same outcome under 'label': losses under two neighbouring "
                "relations do not add up."
            )

    def line(self, account: str) -> Line:
        """Return an account and those above it, each as its last entry left it."""
        path = self.tables.path(account)
        if not path:
            raise LedgerError(
                "This account belongs to another ledger. Call account() or register() first."
            )
        line: Line = []
        ids = [row.id for row, _ in path]
        for place, (row, entry) in enumerate(path):
            if entry.hash != row.head:
                raise tampered(row.sequence, "it is not the last one of its account")
            entry.check()
            states = entry.path
            names = [state["account"] for state in states]
            if row.id not in names or names[names.index(row.id) :] != ids[place:]:
                raise tampered(row.sequence, "it is not the last one of its account")
            state = State.from_dict(states[names.index(row.id)])
            if canonical(state.as_dict()) != row.state:
                raise tampered(row.sequence, "the stored budget or total of its account differs")
            line.append(Balance(row, state))
        return line

    def open_line(self, account: str) -> Line:
        """Return an account and those above it, none of which is closed."""
        line = self.line(account)
        for row, state in line:
            if state.closed:
                what = "share of" if row.kind == "analyst" else "account"
                raise AccountClosed(f"The {what} {shown(row.name)} is closed. Nothing was charged.")
        return line

    # --- writing ---------------------------------------------------------------------------------

    def write(self, line: Line, content: Mapping[str, Any], *, opens: bool = False) -> Entry:
        """Add an entry that leaves the accounts of the line in their states.

        With `opens`, the first account is a new one.
        """
        entry = self._next_entry(line, content)
        for place, (row, state) in enumerate(line):
            text = canonical(state.as_dict())
            if opens and place == 0:
                new = replace(row, state=text, sequence=entry.sequence, head=entry.hash)
                self.tables.add_account(new)
            else:
                self.tables.swap(row, text, entry)
        self.tables.append(self.identity, entry)
        self.identity = replace(self.identity, sequence=entry.sequence, head=entry.hash)
        return entry

    def set_key_check(self, key_check: str) -> None:
        """Note which key this ledger remembers rows under."""
        self.tables.set_key_check(key_check)
        self.identity = replace(self.identity, key_check=key_check)

    def close_to_unregistered(self, sequence: int) -> None:
        """Note the entry from which on only registered rows are let in."""
        self.tables.close_to_unregistered(sequence)
        self.identity = replace(self.identity, closed=sequence)

    def _next_entry(self, line: Line, content: Mapping[str, Any]) -> Entry:
        states = [{"account": row.id} | state.as_dict() for row, state in line]
        body: dict[str, Any] = dict(content) | (states[0] if states else {"account": ""})
        if states[1:]:
            body["above"] = states[1:]
        body["ledger"], body["sequence"] = self.identity.ledger, self.identity.sequence + 1
        body["time"] = self._clock.now().isoformat(timespec="microseconds")
        text = canonical(body)
        before = self.identity.head
        return Entry(body["sequence"], body["account"], before, link(before, text), text)


class Journal:
    """Runs work on a ledger's books: one transaction, which first checks the end of the chain."""

    def __init__(self, storage: Storage, watch: Watch, clock: Clock) -> None:
        self._storage = storage
        self._watch = watch
        self._clock = clock

    def _books(self, tables: Tables) -> Books:
        return Books(tables, self._watch.check(tables), self._clock)

    def read(self, work: Callable[[Books], T]) -> T:
        """Run the work on one snapshot, which is at least as new as the witness."""
        with self._storage.lock:
            return self._watch.look(lambda tables: work(self._books(tables)))

    def write(self, work: Callable[[Books], T]) -> T:
        """Run the work as the only writer; what it wrote is durable once this returns.

        Refused while nothing is written if the witness cannot be written.
        """

        def run(tables: Tables) -> tuple[T, Witness | None]:
            books = self._books(tables)
            before = books.identity.sequence
            result = work(books)
            written = books.identity.sequence > before
            return result, Witness.of(books.identity) if written else None

        with self._storage.lock:
            self._watch.settle()
            result, end = self._storage.write(run)
            if end is not None:
                self._watch.remember_written(end)
        return result
