"""The ledger's tables, and every statement that reads or writes them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from heldout.kernel.ledger.chain import (
    DEEPEST,
    OPENINGS,
    AccountRow,
    Entry,
    Identity,
    LostRace,
    Tie,
    tampered,
)

__all__ = ["Tables"]

_PAGE: Final = 1000

metadata = sa.MetaData()
ledger = sa.Table(
    "heldout_ledger",
    metadata,
    sa.Column("row", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("ledger", sa.Text, nullable=False),
    sa.Column("key_check", sa.Text, nullable=False),
    sa.Column("closed", sa.BigInteger, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)
accounts = sa.Table(
    "heldout_accounts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, index=True),
    sa.Column("parent", sa.Text, index=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)
ties = sa.Table(
    "heldout_ties",
    metadata,
    sa.Column("mac", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, nullable=False, index=True),
    sa.Column("seal", sa.Text, nullable=False),
)
sketches = sa.Table(
    "heldout_sketches",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("sketch", sa.Text, nullable=False),
)
entries = sa.Table(
    "heldout_entries",
    metadata,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("account", sa.Text, nullable=False, index=True),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
)
references = sa.Table(
    "heldout_references",
    metadata,
    sa.Column("reference", sa.Text, primary_key=True),
    sa.Column("sequence", sa.BigInteger, nullable=False),
)
"""What callers named their bookings; each name is booked once."""

# Built once: a booking runs five of these, and building them costs more than running them.
_END = sa.select(
    *(ledger.c[name] for name in ("ledger", "key_check", "closed", "sequence", "head")),
    sa.select(sa.func.max(entries.c.sequence)).scalar_subquery(),
    entries,
).join_from(ledger, entries, entries.c.sequence == ledger.c.sequence, isouter=True)
_ENTRY = sa.select(entries).where(entries.c.sequence == bindparam("at"))
_start = sa.select(accounts.c.id, accounts.c.parent, sa.literal(1).label("depth"))
_path = _start.where(accounts.c.id == bindparam("which")).cte("path", recursive=True)
_path = _path.union_all(
    sa.select(accounts.c.id, accounts.c.parent, _path.c.depth + 1)
    .join_from(accounts, _path, accounts.c.id == _path.c.parent)
    .where(_path.c.depth <= DEEPEST)
)
_PATH = (
    sa.select(accounts, entries)
    .join_from(_path, accounts, accounts.c.id == _path.c.id)
    .join(entries, entries.c.sequence == accounts.c.sequence, isouter=True)
    .order_by(_path.c.depth)
)
_TAKE = (
    accounts.update()
    .where(accounts.c.id == bindparam("old_id"), accounts.c.head == bindparam("old_head"))
    .where(accounts.c.state == bindparam("old_state"))
    .values({name: bindparam(name) for name in ("state", "sequence", "head")})
)
_ADVANCE = (
    ledger.update()
    .where(ledger.c.sequence == bindparam("old_sequence"))
    .where(ledger.c.head == bindparam("old_head"))
    .values({name: bindparam(name) for name in ("sequence", "head")})
)
_ADD = entries.insert()


class Tables:
    """Every statement on the ledger's tables."""

    def end(self, connection: sa.Connection) -> tuple[Identity, int, Entry | None]:
        """The ledger's own row, the highest sequence, and the entry that the row points to."""
        rows = connection.execute(_END).all()
        if len(rows) != 1:
            raise tampered(None, "its own row is missing or double")
        name, key_check, closed, sequence, head, highest, *entry = rows[0]
        try:
            identity = Identity(name, key_check, int(closed), int(sequence), head)
        except (TypeError, ValueError):
            raise tampered(None, "its own row cannot be read") from None
        return identity, highest or 0, None if entry[0] is None else Entry(*entry)

    def entry_at(self, connection: sa.Connection, sequence: int) -> Entry | None:
        row = connection.execute(_ENTRY, {"at": sequence}).one_or_none()
        return None if row is None else Entry(*row)

    def all_entries(
        self, connection: sa.Connection, only: Sequence[str] | None = None, *, since: int = 0
    ) -> Iterator[Entry]:
        """Every entry in order, or those of some accounts."""
        query = sa.select(entries).order_by(entries.c.sequence).where(entries.c.sequence > since)
        if only is not None:
            query = query.where(entries.c.account.in_(only))
        for row in connection.execute(query, execution_options={"yield_per": _PAGE}):
            yield Entry(*row)

    def opening(self, connection: sa.Connection, account: str) -> Entry:
        """The first entry of an account: what never changes about it."""
        query = sa.select(entries).where(entries.c.account == account)
        row = connection.execute(query.order_by(entries.c.sequence).limit(1)).one_or_none()
        if row is None or (found := Entry(*row)).check()["kind"] not in OPENINGS:
            raise tampered(None, "the opening of an account is missing")
        return found

    def all_accounts(self, connection: sa.Connection) -> list[AccountRow]:
        return [AccountRow(*row) for row in connection.execute(sa.select(accounts))]

    def named(
        self, connection: sa.Connection, name: str, parent: str | None = None
    ) -> list[AccountRow]:
        """The accounts of a name: an analyst's under a parent, the others anywhere."""
        query = sa.select(accounts).where(accounts.c.name == name)
        if parent is None:
            query = query.where(accounts.c.kind != "analyst")
        else:
            query = query.where(accounts.c.kind == "analyst", accounts.c.parent == parent)
        return [AccountRow(*row) for row in connection.execute(query)]

    def subtree(self, connection: sa.Connection, account: str) -> list[str]:
        """An account and all below it."""
        found, level = [account], [account]
        while level:
            query = sa.select(accounts.c.id).where(accounts.c.parent.in_(level))
            level = [each for each in connection.execute(query).scalars() if each not in found]
            found += level
        return found

    def path(self, connection: sa.Connection, account: str) -> list[tuple[AccountRow, Entry]]:
        """An account and those above it, each with its last entry; empty without an account."""
        width, found = len(accounts.c), []
        for row in connection.execute(_PATH, {"which": account}):
            each = AccountRow(*row[:width])
            if row[width] is None:
                raise tampered(each.sequence, "it is missing")
            found.append((each, Entry(*row[width:])))
        if len(found) > DEEPEST or (found and found[-1][0].parent is not None):
            raise tampered(None, "an account above another is missing")
        return found

    def tied(self, connection: sa.Connection, macs: list[str] | None = None) -> list[Tie]:
        """The fingerprints on record, or those of `macs` that are."""
        query = sa.select(ties) if macs is None else sa.select(ties).where(ties.c.mac.in_(macs))
        return [Tie(*row) for row in connection.execute(query)]

    def add_ties(self, connection: sa.Connection, new: list[Tie]) -> None:
        connection.execute(ties.insert(), [vars(tie) for tie in new])

    def add_account(self, connection: sa.Connection, row: AccountRow) -> None:
        connection.execute(accounts.insert(), vars(row))

    def swap(
        self,
        connection: sa.Connection,
        old: Sequence[AccountRow],
        states: Sequence[str],
        entry: Entry,
    ) -> None:
        """Move the accounts of a path to their new states, if nobody moved one since we looked."""
        moves = [
            {f"old_{name}": vars(row)[name] for name in ("id", "head", "state")}
            | {"state": state, "sequence": entry.sequence, "head": entry.hash}
            for row, state in zip(old, states, strict=True)
        ]
        if moves and connection.execute(_TAKE, moves).rowcount != len(moves):
            raise LostRace

    def append(self, connection: sa.Connection, old: Identity, new: Sequence[Entry]) -> None:
        """Move the head of the chain if nobody moved it since we looked, and add the entries."""
        compared = {"old_sequence": old.sequence, "old_head": old.head}
        values = {"sequence": new[-1].sequence, "head": new[-1].hash}
        if connection.execute(_ADVANCE, compared | values).rowcount != 1:
            raise LostRace
        connection.execute(_ADD, [vars(entry) for entry in new])

    def refer(self, connection: sa.Connection, reference: str, sequence: int) -> None:
        connection.execute(references.insert(), {"reference": reference, "sequence": sequence})

    def referred(self, connection: sa.Connection, reference: str) -> Entry | None:
        """The booking of this name, if there is one."""
        query = sa.select(entries).join_from(
            references, entries, references.c.sequence == entries.c.sequence
        )
        row = connection.execute(query.where(references.c.reference == reference)).one_or_none()
        return None if row is None else Entry(*row)

    def put_sketch(self, connection: sa.Connection, account: str, sketch: str) -> None:
        connection.execute(sketches.delete().where(sketches.c.account == account))
        connection.execute(sketches.insert(), {"account": account, "sketch": sketch})

    def all_sketches(self, connection: sa.Connection) -> list[tuple[str, str]]:
        return [(account, sketch) for account, sketch in connection.execute(sa.select(sketches))]

    def set_identity(self, connection: sa.Connection, **values: Any) -> None:
        connection.execute(ledger.update().values(values))

    def forget_rows(self, connection: sa.Connection) -> None:
        """Drop what only the old key could read."""
        connection.execute(ties.delete())
        connection.execute(sketches.delete())
