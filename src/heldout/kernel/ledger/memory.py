"""A ledger for one session: the steps of `storage.Storage` on plain lists, without a database.

SQLAlchemy takes a quarter of a second to import, which is a quarter of what a command takes. A
write works on a copy that takes the place of the old lists when all of it is done.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from heldout.errors import LedgerError
from heldout.kernel.ledger.chain import (
    DEEPEST,
    OPENINGS,
    SCHEMA_VERSION,
    AccountRow,
    Entry,
    Identity,
    LostRace,
    Tie,
    first_hash,
    tampered,
)

__all__ = ["Memory"]

T = TypeVar("T")


@dataclass
class Lists:
    """What a database would have in its tables."""

    identity: Identity
    accounts: dict[str, AccountRow] = field(default_factory=dict)
    ties: dict[str, Tie] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    references: dict[str, int] = field(default_factory=dict)
    sketches: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "Lists":
        return Lists(self.identity, *(vars(self)[name].copy() for name in list(vars(self))[1:]))


class Memory:
    """What `Storage` and `Tables` do, for as long as this object lives."""

    file, read_only, memory, place = None, False, True, "memory"

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._process = os.getpid()
        name = secrets.token_hex(16)
        self._lists = Lists(Identity(name, "", 0, 0, first_hash(name)))

    def create(self, *, refuse: Callable[[], None]) -> int:
        return SCHEMA_VERSION

    def close(self) -> None:
        """It is gone with this object."""

    # --- transactions ----------------------------------------------------------------------------

    def read(self, function: Callable[[Any], T]) -> T:
        """Run the function on the lists as they are."""
        self._refuse_child()
        with self.lock:
            return function(self._lists)

    def write(self, function: Callable[[Any], T], *, lock: bool = True) -> T:
        """Run the function as the only writer; all of it, or nothing, is kept."""
        self._refuse_child()
        with self.lock:
            while True:
                lists = self._lists.copy()
                try:
                    result = function(lists)
                except LostRace:
                    continue
                self._lists = lists
                return result

    def _refuse_child(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "A ledger in memory cannot be used in a forked process. Open a ledger file, "
                "which processes can share."
            )

    # --- what `Tables` asks of a database --------------------------------------------------------

    def end(self, lists: Lists) -> tuple[Identity, int, Entry | None]:
        return lists.identity, len(lists.entries), self.entry_at(lists, lists.identity.sequence)

    def entry_at(self, lists: Lists, sequence: int) -> Entry | None:
        return lists.entries[sequence - 1] if 1 <= sequence <= len(lists.entries) else None

    def all_entries(
        self, lists: Lists, only: Sequence[str] | None = None, *, since: int = 0
    ) -> Iterator[Entry]:
        return (each for each in lists.entries[since:] if only is None or each.account in only)

    def opening(self, lists: Lists, account: str) -> Entry:
        found = next(self.all_entries(lists, [account]), None)
        if found is None or found.check()["kind"] not in OPENINGS:
            raise tampered(None, "the opening of an account is missing")
        return found

    def all_accounts(self, lists: Lists) -> list[AccountRow]:
        return list(lists.accounts.values())

    def named(self, lists: Lists, name: str, parent: str | None = None) -> list[AccountRow]:
        alike = [each for each in lists.accounts.values() if each.name == name]
        if parent is None:
            return [each for each in alike if each.kind != "analyst"]
        return [each for each in alike if each.kind == "analyst" and each.parent == parent]

    def subtree(self, lists: Lists, account: str) -> list[str]:
        found = [account]
        for above in found:  # which grows meanwhile
            found += [each.id for each in lists.accounts.values() if each.parent == above]
        return found

    def path(self, lists: Lists, account: str) -> list[tuple[AccountRow, Entry]]:
        found: list[tuple[AccountRow, Entry]] = []
        above: str | None = account
        while above in lists.accounts and len(found) <= DEEPEST:
            row = lists.accounts[above]
            entry = self.entry_at(lists, row.sequence)
            if entry is None:
                raise tampered(row.sequence, "it is missing")
            found.append((row, entry))
            above = row.parent
        if found and above is not None:
            raise tampered(None, "an account above another is missing")
        return found

    def tied(self, lists: Lists, macs: list[str] | None = None) -> list[Tie]:
        return [tie for tie in lists.ties.values() if macs is None or tie.mac in macs]

    def add_ties(self, lists: Lists, new: list[Tie]) -> None:
        lists.ties |= {tie.mac: tie for tie in new}

    def add_account(self, lists: Lists, row: AccountRow) -> None:
        lists.accounts[row.id] = row

    def swap(
        self, lists: Lists, old: Sequence[AccountRow], states: Sequence[str], entry: Entry
    ) -> None:
        for row, state in zip(old, states, strict=True):
            if lists.accounts.get(row.id) != row:
                raise LostRace
            moved = replace(row, state=state, sequence=entry.sequence, head=entry.hash)
            lists.accounts[row.id] = moved

    def append(self, lists: Lists, old: Identity, new: Sequence[Entry]) -> None:
        now = lists.identity
        if (now.sequence, now.head) != (old.sequence, old.head):
            raise LostRace
        lists.identity = replace(now, sequence=new[-1].sequence, head=new[-1].hash)
        lists.entries += new

    def refer(self, lists: Lists, reference: str, sequence: int) -> None:
        lists.references[reference] = sequence

    def referred(self, lists: Lists, reference: str) -> Entry | None:
        return self.entry_at(lists, lists.references.get(reference, 0))

    def put_sketch(self, lists: Lists, account: str, sketch: str) -> None:
        lists.sketches[account] = sketch

    def all_sketches(self, lists: Lists) -> list[tuple[str, str]]:
        return list(lists.sketches.items())

    def set_identity(self, lists: Lists, **values: Any) -> None:
        lists.identity = replace(lists.identity, **values)

    def forget_rows(self, lists: Lists) -> None:
        lists.ties.clear()
        lists.sketches.clear()
