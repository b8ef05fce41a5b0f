"""The ledger's tables, and every statement that reads or writes them.

Each statement is written once and runs on SQLite and on PostgreSQL alike.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from heldout.kernel.ledger.records import (
    DEEPEST,
    OPENINGS,
    AccountRow,
    Entry,
    Identity,
    LostRace,
    Tie,
    canonical,
    first_hash,
    tampered,
)

SCHEMA_VERSION: Final = 2
_PAGE: Final = 1000  # entries that are in memory at once while a ledger is walked

_LEDGER: Final = """
CREATE TABLE heldout_ledger (
    "row" INTEGER NOT NULL, schema_version INTEGER NOT NULL, ledger TEXT NOT NULL,
    key_check TEXT NOT NULL, closed BIGINT NOT NULL, sequence BIGINT NOT NULL,
    head TEXT NOT NULL, PRIMARY KEY ("row"))
"""
_ACCOUNTS: Final = """
CREATE TABLE heldout_accounts (
    id TEXT NOT NULL, kind TEXT NOT NULL, name TEXT, parent TEXT, state TEXT NOT NULL,
    sequence BIGINT NOT NULL, head TEXT NOT NULL, PRIMARY KEY (id));
CREATE INDEX ix_heldout_accounts_name ON heldout_accounts (name);
CREATE INDEX ix_heldout_accounts_parent ON heldout_accounts (parent)
"""
_TIES: Final = """
CREATE TABLE heldout_ties (
    mac TEXT NOT NULL, account TEXT NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (mac));
CREATE INDEX ix_heldout_ties_account ON heldout_ties (account)
"""
_SKETCHES: Final = """
CREATE TABLE heldout_sketches (
    account TEXT NOT NULL, sketch TEXT NOT NULL, PRIMARY KEY (account))
"""
_ENTRIES: Final = """
CREATE TABLE heldout_entries (
    sequence BIGINT NOT NULL, account TEXT NOT NULL, previous TEXT NOT NULL,
    hash TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (sequence), UNIQUE (hash));
CREATE INDEX ix_heldout_entries_account ON heldout_entries (account)
"""
_REFERENCES: Final = """
CREATE TABLE heldout_references (
    reference TEXT NOT NULL, sequence BIGINT NOT NULL, PRIMARY KEY (reference))
"""
_SCHEMA: Final = {
    "heldout_ledger": _LEDGER,
    "heldout_accounts": _ACCOUNTS,
    "heldout_ties": _TIES,
    "heldout_sketches": _SKETCHES,
    "heldout_entries": _ENTRIES,
    "heldout_references": _REFERENCES,
}
NAMES: Final = tuple(_SCHEMA)
ADDED_LATER: Final = ("heldout_sketches", "heldout_references")
"""Tables that the first ledgers lack."""

_ACCOUNT: Final = "a.id, a.kind, a.name, a.parent, a.state, a.sequence, a.head"
_ENTRY: Final = "e.sequence, e.account, e.previous, e.hash, e.body"


class Cursor(Protocol):
    """The rows that a statement selected, or the number of rows that it changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchall(self) -> Sequence[Any]: ...


class Connection(Protocol):
    """An open transaction of either database."""

    def execute(self, statement: str, values: Mapping[str, object], /) -> Cursor: ...


class Tables:
    """Every statement on the ledger's tables, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _run(self, statement: str, **values: object) -> Sequence[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _change(self, statement: str, **values: object) -> int:
        """Run a statement that changes rows; return how many it changed."""
        return self._connection.execute(statement, values).rowcount

    def _insert(self, table: str, **values: object) -> None:
        names = ", ".join(f'"{name}"' for name in values)
        places = ", ".join(f":{name}" for name in values)
        self._change(f"INSERT INTO {table} ({names}) VALUES ({places})", **values)

    # --- making them -----------------------------------------------------------------------------

    def names(self, statement: str) -> set[str]:
        """Return the names of all tables; how to list them is the database's own statement."""
        return {str(name) for (name,) in self._run(statement)}

    def create(self, names: Iterable[str] = NAMES) -> None:
        """Make tables that are not there yet."""
        for name in names:
            for statement in _SCHEMA[name].split(";"):
                self._change(statement)

    def begin(self) -> None:
        """Give a new ledger its random name and the beginning of its chain."""
        name = secrets.token_hex(16)
        self._insert_identity(Identity(name, "", 0, 0, first_hash(name)))

    def _insert_identity(self, identity: Identity) -> None:
        own = {"row": 1, "schema_version": SCHEMA_VERSION}
        self._insert("heldout_ledger", **own, **vars(identity))

    def version(self) -> int:
        """Return the version of the schema."""
        rows = self._run("SELECT schema_version FROM heldout_ledger")
        if len(rows) != 1:
            raise tampered(None, "its own row is missing or duplicated")
        return int(rows[0][0])

    def migrate(self, adopt_key: Callable[[str, bytes], str]) -> bool:
        """Make a ledger of the first version one of this version; False if it is one already.

        The entries stay as they were written, hashes and all. The first version had the key in the
        ledger's own row: `adopt_key` puts it in its own place, and returns what tells it from
        another one.
        """
        if self.version() != 1:
            return False  # another process was first
        own = "SELECT ledger, key, sequence, head FROM heldout_ledger"
        ((ledger, key, sequence, head),) = self._run(own)
        accounts = self._run("SELECT id, budget, spent, sequence, head FROM heldout_accounts")
        openings: dict[str, Entry] = {}
        for entry in self.entries():
            openings.setdefault(entry.account, entry)
        key_check = adopt_key(ledger, bytes.fromhex(key))
        for table in ("heldout_ledger", "heldout_accounts"):
            self._change(f"DROP TABLE {table}")
        self.create(("heldout_ledger", "heldout_accounts"))
        self._insert_identity(Identity(ledger, key_check, 0, sequence, head))
        for account, budget, spent, last, last_hash in accounts:
            state = canonical({"budget": json.loads(budget), "spent": json.loads(spent)})
            name = openings[account].content.get("name") if account in openings else None
            self.add_account(AccountRow(account, "rows", name, None, state, last, last_hash))
        return True

    # --- the chain -------------------------------------------------------------------------------

    def end(self) -> tuple[Identity, int, Entry | None]:
        """Return the ledger's own row, the highest sequence, and the entry the row points to."""
        rows = self._run(f"""
            SELECT l.ledger, l.key_check, l.closed, l.sequence, l.head,
                   (SELECT max(sequence) FROM heldout_entries), {_ENTRY}
            FROM heldout_ledger l LEFT JOIN heldout_entries e ON e.sequence = l.sequence""")
        if len(rows) != 1:
            raise tampered(None, "its own row is missing or duplicated")
        name, key_check, closed, sequence, head, highest, *entry = rows[0]
        try:
            identity = Identity(name, key_check, int(closed), int(sequence), head)
        except (TypeError, ValueError):
            raise tampered(None, "its own row cannot be read") from None
        return identity, highest or 0, None if entry[0] is None else Entry(*entry)

    def entry_at(self, sequence: int) -> Entry | None:
        statement = f"SELECT {_ENTRY} FROM heldout_entries e WHERE e.sequence = :sequence"
        return _first_entry(self._run(statement, sequence=sequence))

    def entries(self, account: str | None = None) -> Iterator[Entry]:
        """Yield every entry in order, or those of an account and of all below it."""
        everything = f"""
            SELECT {_ENTRY} FROM heldout_entries e
            WHERE e.sequence > :since ORDER BY e.sequence LIMIT {_PAGE}"""
        of_account = f"""
            WITH RECURSIVE below (id) AS (
                SELECT id FROM heldout_accounts WHERE id = :account
                UNION
                SELECT child.id FROM heldout_accounts child JOIN below ON child.parent = below.id)
            SELECT {_ENTRY} FROM heldout_entries e
            WHERE e.account IN (SELECT id FROM below) AND e.sequence > :since
            ORDER BY e.sequence LIMIT {_PAGE}"""
        statement = everything if account is None else of_account
        since = 0
        while page := self._run(statement, since=since, account=account):
            yield from (Entry(*row) for row in page)
            since = page[-1][0]

    def opening(self, account: str) -> Entry:
        """Return the first entry of an account: what never changes about it."""
        statement = f"""
            SELECT {_ENTRY} FROM heldout_entries e WHERE e.account = :account
            ORDER BY e.sequence LIMIT 1"""
        entry = _first_entry(self._run(statement, account=account))
        if entry is None or entry.check()["kind"] not in OPENINGS:
            raise tampered(None, "the opening of an account is missing")
        return entry

    def append(self, old: Identity, entry: Entry) -> None:
        """Move the head of the chain if nobody moved it since we looked, and add the entry."""
        statement = """
            UPDATE heldout_ledger SET sequence = :sequence, head = :head
            WHERE sequence = :old_sequence AND head = :old_head"""
        before = {"old_sequence": old.sequence, "old_head": old.head}
        after = {"sequence": entry.sequence, "head": entry.hash}
        if self._change(statement, **before, **after) != 1:
            raise LostRace
        self._insert("heldout_entries", **vars(entry))

    def add_reference(self, reference: str, sequence: int) -> None:
        """Remember what a caller named a booking: each name is booked once."""
        self._insert("heldout_references", reference=reference, sequence=sequence)

    def referred(self, reference: str) -> Entry | None:
        """Return the booking of this name, if there is one."""
        statement = f"""
            SELECT {_ENTRY} FROM heldout_references r
            JOIN heldout_entries e ON e.sequence = r.sequence WHERE r.reference = :reference"""
        return _first_entry(self._run(statement, reference=reference))

    def set_key_check(self, key_check: str) -> None:
        self._change("UPDATE heldout_ledger SET key_check = :key_check", key_check=key_check)

    def close_to_unregistered(self, sequence: int) -> None:
        """Note the entry from which on only registered rows are let in."""
        self._change("UPDATE heldout_ledger SET closed = :sequence", sequence=sequence)

    # --- accounts --------------------------------------------------------------------------------

    def accounts(self) -> list[AccountRow]:
        rows = self._run(f"SELECT {_ACCOUNT} FROM heldout_accounts a")
        return [AccountRow(*row) for row in rows]

    def named(self, name: str) -> list[AccountRow]:
        """Return the data sets and people accounts of a name."""
        statement = f"""
            SELECT {_ACCOUNT} FROM heldout_accounts a
            WHERE a.name = :name AND a.kind <> 'analyst'"""
        return [AccountRow(*row) for row in self._run(statement, name=name)]

    def shares(self, analyst: str, account: str) -> list[AccountRow]:
        """Return an analyst's share of an account, or nothing."""
        statement = f"""
            SELECT {_ACCOUNT} FROM heldout_accounts a
            WHERE a.name = :name AND a.kind = 'analyst' AND a.parent = :account"""
        return [AccountRow(*row) for row in self._run(statement, name=analyst, account=account)]

    def path(self, account: str) -> list[tuple[AccountRow, Entry]]:
        """Return an account and those above it, each with its last entry; empty without one."""
        statement = f"""
            WITH RECURSIVE path (id, parent, depth) AS (
                SELECT id, parent, 1 FROM heldout_accounts WHERE id = :account
                UNION ALL
                SELECT up.id, up.parent, path.depth + 1 FROM heldout_accounts up
                JOIN path ON up.id = path.parent WHERE path.depth <= {DEEPEST})
            SELECT {_ACCOUNT}, {_ENTRY} FROM path
            JOIN heldout_accounts a ON a.id = path.id
            LEFT JOIN heldout_entries e ON e.sequence = a.sequence ORDER BY path.depth"""
        path = []
        for row in self._run(statement, account=account):
            above = AccountRow(*row[:7])
            if row[7] is None:
                raise tampered(above.sequence, "it is missing")
            path.append((above, Entry(*row[7:])))
        if len(path) > DEEPEST or (path and path[-1][0].parent is not None):
            raise tampered(None, "an account above another is missing")
        return path

    def add_account(self, row: AccountRow) -> None:
        self._insert("heldout_accounts", **vars(row))

    def swap(self, row: AccountRow, state: str, entry: Entry) -> None:
        """Move an account to its new state, if nobody moved it since we looked."""
        statement = """
            UPDATE heldout_accounts SET state = :state, sequence = :sequence, head = :head
            WHERE id = :id AND head = :old_head AND state = :old_state"""
        old = {"id": row.id, "old_head": row.head, "old_state": row.state}
        new = {"state": state, "sequence": entry.sequence, "head": entry.hash}
        if self._change(statement, **old, **new) != 1:
            raise LostRace

    # --- what the key remembers of rows ----------------------------------------------------------

    def ties(self) -> list[Tie]:
        return [Tie(*row) for row in self._run("SELECT mac, account, seal FROM heldout_ties")]

    def tied(self, macs: Iterable[str]) -> list[Tie]:
        """Return those of the fingerprints that are on record."""
        statement = "SELECT mac, account, seal FROM heldout_ties WHERE mac = :mac"
        return [Tie(*row) for mac in macs for row in self._run(statement, mac=mac)]

    def add_tie(self, tie: Tie) -> None:
        self._insert("heldout_ties", **vars(tie))

    def sketches(self) -> list[tuple[str, str]]:
        """Return the accounts that have a sketch of their people, and the sketches."""
        rows = self._run("SELECT account, sketch FROM heldout_sketches")
        return [(account, sketch) for account, sketch in rows]

    def put_sketch(self, account: str, sketch: str) -> None:
        self._change("DELETE FROM heldout_sketches WHERE account = :account", account=account)
        self._insert("heldout_sketches", account=account, sketch=sketch)

    def forget_rows(self) -> None:
        """Drop what only the old key could read."""
        for name in ("heldout_ties", "heldout_sketches"):
            self._change(f"DELETE FROM {name}")


def _first_entry(rows: Sequence[Any]) -> Entry | None:
    return Entry(*rows[0]) if rows else None
