"""What every part of a ledger stands on: one storage, its watch, and entries that are chained."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.arguments import shown
from heldout.errors import ArgumentError, LedgerError, LedgerKeyError
from heldout.kernel import accountant
from heldout.kernel.ledger.account import Account
from heldout.kernel.ledger.chain import (
    AccountRow,
    Entry,
    Identity,
    State,
    canonical,
    link,
    tampered,
)
from heldout.kernel.ledger.keys import KeyPlace, check_of
from heldout.kernel.ledger.replay import Replay, Verification
from heldout.kernel.ledger.watch import Watch
from heldout.kernel.ledger.witness import Witness, WitnessFile
from heldout.kernel.loss import Budget, Loss

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from heldout.kernel.ledger.storage import Storage

__all__ = ["Books", "Line", "file_of"]

Line = list[tuple[AccountRow, State]]
"""An account and those above it, each with its state."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Books:
    """Reads and writes entries; `Registry` and `Ledger` say which."""

    def __init__(
        self,
        storage: "Storage",
        witness: WitnessFile | None = None,
        key: KeyPlace | None = None,
        *,
        tick: float | None = None,
    ) -> None:
        """Use `Ledger`."""
        self._tick = 1 if tick is None else max(1, round(tick * 1e6))  # microseconds
        self._storage = storage
        self._watch = Watch(storage, witness)
        self._key_place = key or KeyPlace(None, memory=True)

    @property
    def id(self) -> str:
        """The random name that a ledger drew when it was made."""
        return self._watch.ledger

    # --- looking ---------------------------------------------------------------------------------

    def spent(self, account: Account | str) -> Loss:
        """What the account has spent, in the kind of its budget."""
        return self._standing(account)[0][1].spent

    def budget(self, account: Account | str) -> Budget:
        """The account's budget as it is now."""
        return self._standing(account)[0][1].budget

    def remaining(self, account: Account | str) -> Loss:
        """What can still be taken: the least that is left of the account and of those above it."""
        return least_left(self._standing(account))

    def standing(self, account: Account | str) -> tuple[Budget, Loss, Loss]:
        """Budget, spent and remaining, as they are at one moment."""
        return told(self._standing(account))

    def _standing(self, account: Account | str) -> Line:
        def look(connection: "Connection") -> Line:
            self._watch.check(connection)
            return self._line(connection, self._id(connection, account))

        with self._storage.lock:
            return self._watch.look(look)

    def entries(self, account: Account | str | None = None) -> list[Entry]:
        """The bookings of an account and of all below it, in order; `history` has every entry."""
        return [entry for entry in self.history(account) if entry.kind == "booking"]

    def history(self, account: Account | str | None = None) -> list[Entry]:
        """Every entry of an account and of all below it, or of the ledger, in order."""

        def look(connection: "Connection") -> list[Entry]:
            self._watch.check(connection)
            only = None
            if account is not None:
                only = self._storage.subtree(connection, self._id(connection, account))
            listed = list(self._storage.all_entries(connection, only))
            for entry in listed:
                entry.check_hash()
            return listed

        with self._storage.lock:
            return self._watch.look(look)

    def registered_by(self, name: str) -> str | None:
        """Who registered the account of a name, or None if there is none."""

        def look(connection: "Connection") -> str | None:
            self._watch.check(connection)
            if not self._storage.named(connection, checked_name("account", name)):
                return None
            return self._who(connection, self._named(connection, name).id)

        with self._storage.lock:
            return self._watch.look(look)

    def verify(self, receipt: str | None = None) -> Verification:
        """Recompute every hash, price and total; with a receipt's hash, find that booking.

        Raises LedgerTampered with the entry at fault in `sequence`. The key is not needed; where
        it is at hand, the ties of rows to accounts are checked as well.
        """
        if receipt is not None and not isinstance(receipt, str):
            raise ArgumentError(f"receipt must be a receipt's hash, got {shown(receipt)}.")

        def walk(connection: "Connection") -> tuple[Verification, Witness]:
            identity = self._watch.check(connection)
            replay, found = Replay(identity), None
            for entry in self._storage.all_entries(connection):
                replay.add(entry)
                if entry.hash == receipt:
                    found = entry.sequence
            key = None
            with contextlib.suppress(LedgerKeyError):
                key = self._key(identity) if identity.key_check else None
            count = replay.finish(
                self._storage.all_accounts(connection), self._storage.tied(connection), key
            )
            if receipt is not None and found is None:
                raise tampered(None, "it has no booking with this receipt, unless it is another's")
            end = (replay.sequence, replay.head)
            verified = Verification(identity.ledger, replay.sequence, count, *end, found)
            return verified, Witness(identity.ledger, *end)

        with self._storage.lock:
            verified, end = self._watch.look(walk)
            self._watch.remember(end)
        return verified

    # --- accounts in the tables, checked against the chain ---------------------------------------

    def _id(self, connection: "Connection", account: Account | str) -> str:
        return account.id if isinstance(account, Account) else self._named(connection, account).id

    def _named(self, connection: "Connection", name: str) -> AccountRow:
        """The registered account of a name, or the only one that rows were opened under."""
        found = self._storage.named(connection, checked_name("account", name))
        rows = [each for each in found if each.kind == "data"] or found
        if len(rows) != 1:
            many = "No account" if not rows else "More than one account"
            raise LedgerError(
                f"{many} {shown(name)} in this ledger. Register it: heldout ledger register."
            )
        opening = self._storage.opening(connection, rows[0].id)
        if opening.content.get("name") != name:
            raise tampered(opening.sequence, "its account has another name")
        return rows[0]

    def _who(self, connection: "Connection", account: str) -> str:
        """Whoever registered it; nobody, if rows were asked about without a registration."""
        return str(self._storage.opening(connection, account).content.get("who", ""))

    def _line(self, connection: "Connection", account: str) -> Line:
        """An account and those above it, each as its last entry left it."""
        line: Line = []
        path = self._storage.path(connection, account)
        if not path:
            raise LedgerError(
                "This account is of another ledger. Call account() or register() first."
            )
        ids = [row.id for row, _ in path]
        for place, (row, entry) in enumerate(path):
            if entry.hash != row.head:
                raise tampered(row.sequence, "it is not the last one of its account")
            entry.check()
            told = entry.path
            names = [each["account"] for each in told]
            if row.id not in names or names[names.index(row.id) :] != ids[place:]:
                raise tampered(row.sequence, "it is not the last one of its account")
            state = State.from_dict(told[names.index(row.id)])
            if canonical(state.as_dict()) != row.state:
                raise tampered(row.sequence, "the stored budget or total of its account differs")
            line.append((row, state))
        return line

    def _entry(self, identity: Identity, line: Line, content: Mapping[str, Any]) -> Entry:
        """The entry that follows, and leaves the accounts of the line in these states."""
        told = [{"account": row.id} | state.as_dict() for row, state in line]
        body: dict[str, Any] = dict(content) | (told[0] if told else {"account": ""})
        if told[1:]:
            body["above"] = told[1:]
        body["ledger"], body["sequence"] = identity.ledger, identity.sequence + 1
        body["time"] = self._now().isoformat(timespec="microseconds")
        text = canonical(body)
        hashed = link(identity.head, text)
        return Entry(body["sequence"], body["account"], identity.head, hashed, text)

    def _now(self) -> datetime:
        """The last tick of the clock."""
        passed = (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=self._tick)
        return _EPOCH + passed * timedelta(microseconds=self._tick)

    def _write(
        self,
        connection: "Connection",
        identity: Identity,
        line: Line,
        content: Mapping[str, Any],
        *,
        opens: bool = False,
    ) -> tuple[Entry, Identity]:
        """Add an entry; with `opens` the first account is a new one.

        Returns the entry and where the chain ends now.
        """
        entry = self._entry(identity, line, content)
        states = [canonical(state.as_dict()) for _, state in line]
        old = [row for row, _ in line]
        if opens:
            new = replace(old.pop(0), state=states.pop(0), sequence=entry.sequence, head=entry.hash)
            self._storage.add_account(connection, new)
        self._storage.swap(connection, old, states, entry)
        self._storage.append(connection, identity, [entry])
        return entry, replace(identity, sequence=entry.sequence, head=entry.hash)

    # --- the key ---------------------------------------------------------------------------------

    def _key(self, identity: Identity, *, make: bool = False) -> bytes:
        """The key of this ledger; `make` draws one where none was needed before."""
        place, name = self._key_place, identity.ledger
        new = make and not identity.key_check
        key = place.make(name) if new else place.find(name)
        if key is None or (identity.key_check and check_of(key, name) != identity.key_check):
            what = "is missing" if key is None else "is another one"
            raise LedgerKeyError(
                f"The key under which this ledger remembers rows {what}. Restore "
                f"'{place.file_of(name)}' from a copy. If it is lost: heldout ledger rekey, and "
                "name accounts with account= (--account). Registered accounts need no key."
            )
        return key

    # --- one process -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Ledger({self._storage.place})"


def least_left(line: Line) -> Loss:
    """What the tightest account of a line has left, part by part."""
    left = [accountant.remaining(state.spent, state.budget) for _, state in line]
    least = left[0]
    for each in left[1:]:
        least = accountant.smaller(least, each)
    return least


def told(line: Line) -> tuple[Budget, Loss, Loss]:
    """Budget, spent and remaining of the first account of a line."""
    state = line[0][1]
    return state.budget, state.spent, least_left(line)


def checked_name(what: str, name: object) -> str:
    """A name that people can read back to each other."""
    if (
        isinstance(name, str)
        and name.strip() == name
        and name.isprintable()
        and 0 < len(name) < 200
    ):
        return name
    raise ArgumentError(
        f"{what} must be a printable text of 1 to 199 characters, got {shown(name)}."
    )


def file_of(where: str | os.PathLike[str]) -> Path:
    """The path of a file that can be one: a text or a path, which the system can spell."""
    try:
        place = Path(where).resolve()
        place.exists()
        if str(place).isprintable():
            return place
    except (OSError, TypeError, ValueError):
        pass
    raise ArgumentError(
        f"ledger must lie in a file with an ordinary name, got {shown(where)}. Choose another."
    )
