"""Where the ledger's three tables live: SQLite or PostgreSQL through SQLAlchemy Core.

Imported only when a ledger is opened. Every transaction is begun and ended by name, so that what
is atomic can be read off the page: SQLite takes its one write lock at BEGIN IMMEDIATE, PostgreSQL
the ledger's one row at SELECT ... FOR UPDATE.
"""

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool, StaticPool

from heldout.errors import LedgerError, MissingDependency
from heldout.privacy.chain import AccountRow, Entry, Identity, Tie, first_hash, tampered

__all__ = ["LostRace", "Storage"]

SCHEMA_VERSION: Final = 1
BUSY_SECONDS: Final = 60
_LOCK_NAME: Final = 0x68656C646F7574  # "heldout", for PostgreSQL's advisory lock
_PAGE: Final = 1000
_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

_metadata = sa.MetaData()
_ledger = sa.Table(
    "heldout_ledger",
    _metadata,
    sa.Column("row", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("ledger", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)
_accounts = sa.Table(
    "heldout_accounts",
    _metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("budget", sa.Text, nullable=False),
    sa.Column("spent", sa.Text, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)
_ties = sa.Table(
    "heldout_ties",
    _metadata,
    sa.Column("mac", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, nullable=False, index=True),
    sa.Column("seal", sa.Text, nullable=False),
)
_entries = sa.Table(
    "heldout_entries",
    _metadata,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("account", sa.Text, nullable=False, index=True),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
)

# Built once: a booking runs five of these, and building them costs more than running them.
_END = sa.select(
    *(_ledger.c[name] for name in ("ledger", "key", "sequence", "head")),
    sa.select(sa.func.max(_entries.c.sequence)).scalar_subquery(),
    _entries,
).join_from(_ledger, _entries, _entries.c.sequence == _ledger.c.sequence, isouter=True)
_ENTRY = sa.select(_entries).where(_entries.c.sequence == sa.bindparam("at"))
_ACCOUNT = (
    sa.select(_accounts, _entries)
    .join_from(_accounts, _entries, _entries.c.sequence == _accounts.c.sequence, isouter=True)
    .where(_accounts.c.id == sa.bindparam("which"))
)
_TAKE = (
    _accounts.update()
    .where(_accounts.c.id == sa.bindparam("old_id"), _accounts.c.head == sa.bindparam("old_head"))
    .where(_accounts.c.spent == sa.bindparam("old_spent"))
    .where(_accounts.c.budget == sa.bindparam("old_budget"))
    .values({name: sa.bindparam(name) for name in ("spent", "sequence", "head")})
)
_ADVANCE = (
    _ledger.update()
    .where(_ledger.c.sequence == sa.bindparam("old_sequence"))
    .where(_ledger.c.head == sa.bindparam("old_head"))
    .values({name: sa.bindparam(name) for name in ("sequence", "head")})
)
_ADD = _entries.insert()

T = TypeVar("T")


class LostRace(Exception):
    """Somebody else moved the chain between our look and our swap: look again."""


class Storage:
    """One database with a ledger in it."""

    def __init__(self, engine: sa.Engine, place: str, *, file: Path | None) -> None:
        self._engine = engine
        self._process = os.getpid()
        self.place = place
        self.file = file
        self.memory = engine.dialect.name == "sqlite" and file is None

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def in_memory(cls) -> "Storage":
        engine = sa.create_engine(
            "sqlite://",
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"check_same_thread": False},
            hide_parameters=True,
        )
        return cls(engine, "memory", file=None)

    @classmethod
    def on_file(cls, path: Path) -> "Storage":
        if not path.parent.is_dir():
            raise LedgerError(
                f"The ledger must lie in a directory that exists, got '{path}'. Make it first."
            )
        if path.is_dir():
            raise LedgerError(f"The ledger must be a file, got the directory '{path}'. Name one.")
        # NullPool: a connection never outlives its transaction, so a forked child inherits none.
        engine = sa.create_engine(
            URL.create("sqlite", database=str(path)),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,
        )
        return cls(engine, f"'{path}'", file=path)

    @classmethod
    def at(cls, address: str) -> "Storage":
        try:
            url = make_url(address)
            family = url.get_backend_name()
        except (sa.exc.ArgumentError, ValueError):
            raise LedgerError(
                "The ledger must be a file or a database URL, got an address that is neither. "
                "Pass postgresql://user@host/database."
            ) from None
        if family == "sqlite":
            inside = url.database in (None, "", ":memory:")
            return cls.in_memory() if inside else cls.on_file(Path(str(url.database)).resolve())
        if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise LedgerError(
                f"The ledger must be on SQLite or PostgreSQL, got {url.drivername}. "
                "Pass a file, or postgresql://user@host/database."
            )
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingDependency(
                "A ledger on PostgreSQL must have psycopg, got none. "
                "Install it with: pip install 'heldout[postgres]'"
            ) from None
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
            pool_pre_ping=True,
            hide_parameters=True,
        )
        place = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
        return cls(engine, place.render_as_string(), file=None)

    def create(self, *, refuse: Callable[[], None]) -> None:
        """Make the tables unless they are there; `refuse` may object to an empty ledger."""

        def make(connection: sa.Connection) -> None:
            if self._postgres:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NAME)))
            names = set(sa.inspect(connection).get_table_names())
            if _ledger.name in names:
                self._check_version(connection)
                return
            if names and not self._postgres:
                raise LedgerError(
                    f"The ledger must be a file of its own, got {self.place}, a database of "
                    "another program. Name another file."
                )
            refuse()
            _metadata.create_all(connection, checkfirst=True)
            name = secrets.token_hex(16)
            connection.execute(
                _ledger.insert().values(
                    row=1,
                    schema_version=SCHEMA_VERSION,
                    ledger=name,
                    key=secrets.token_hex(32),
                    sequence=0,
                    head=first_hash(name),
                )
            )

        if self.file is not None:
            # Only the custodian may read it: with its key one can test guesses of the rows.
            with contextlib.suppress(OSError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self.write(make, lock=False)

    def _check_version(self, connection: sa.Connection) -> None:
        versions = connection.execute(sa.select(_ledger.c.schema_version)).scalars().all()
        if len(versions) != 1:
            raise tampered(None, "its own row is missing or double")
        if versions[0] != SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger must have schema version {SCHEMA_VERSION}, got {versions[0]} in "
                f"{self.place}. Use the version of heldout that made it."
            )

    # --- transactions ----------------------------------------------------------------------------

    def read(self, function: Callable[[sa.Connection], T]) -> T:
        """Run the function on one snapshot."""
        return self._run(function, _BEGIN_READ if self._postgres else "BEGIN")

    def write(self, function: Callable[[sa.Connection], T], *, lock: bool = True) -> T:
        """Run the function as the only writer; durable once this returns."""

        def alone(connection: sa.Connection) -> T:
            if self._postgres:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
                if lock:
                    connection.execute(sa.select(_ledger.c.row).with_for_update())
            return function(connection)

        return self._run(alone, _BEGIN_WRITE if self._postgres else "BEGIN IMMEDIATE")

    def _run(self, function: Callable[[sa.Connection], T], begin: str) -> T:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            committing = False
            try:
                with self._connection() as connection:
                    connection.exec_driver_sql(begin)
                    try:
                        result = function(connection)
                        committing = True
                        connection.exec_driver_sql("COMMIT")
                    except BaseException:
                        with contextlib.suppress(sa.exc.SQLAlchemyError):
                            connection.exec_driver_sql("ROLLBACK")
                        raise
                    return result
            except LostRace:
                pass
            except sa.exc.SQLAlchemyError as error:
                # After a COMMIT that failed the entry may be there or not: asking again could
                # take twice, so nobody asks and nothing is released.
                if committing or not _is_passing(error):
                    raise self._failure(error) from None
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"The ledger at {self.place} must answer within {BUSY_SECONDS} seconds, got "
                    "no turn. Look for a program that holds it, and try again."
                )
            time.sleep(0.001 + secrets.randbelow(20) / 1000)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        if os.getpid() != self._process:
            if self.memory:
                raise LedgerError(
                    "A ledger in memory must stay in the process that opened it, got a forked "
                    "child. Open a ledger file, which processes can share."
                )
            # The parent's sockets are the parent's: forget them without closing them.
            self._engine.dispose(close=False)
            self._process = os.getpid()
        if self.file is not None and not self.file.exists():
            raise tampered(None, f"the file {self.place} is gone")
        with self._engine.connect() as connection:
            if self.file is not None:
                connection.exec_driver_sql("PRAGMA synchronous=FULL")
                mode = connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one()
                if mode != "wal":
                    raise LedgerError(
                        f"The ledger must lie on a local disk, got {self.place}, where SQLite "
                        "cannot keep a write-ahead log. Move it, or use PostgreSQL."
                    )
            yield connection

    @property
    def _postgres(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    def _failure(self, error: sa.exc.SQLAlchemyError) -> LedgerError:
        """One line with what to do; the driver's own text may hold a secret, so it stays out."""
        code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            what = "no database or a damaged one. Restore a copy, or name another file"
        elif self._postgres:
            what = f"{type(error).__name__}. Check the server, the address and the rights"
        else:
            what = f"{type(error).__name__}. Check that the file and its directory can be written"
        return LedgerError(f"The ledger at {self.place} must be readable and writable, got {what}.")

    def close(self) -> None:
        """Let go of the database; a ledger in memory is gone."""
        if os.getpid() == self._process:
            self._engine.dispose()

    # --- rows ------------------------------------------------------------------------------------

    def end(self, connection: sa.Connection) -> tuple[Identity, int, Entry | None]:
        """The ledger's own row, the highest sequence, and the entry that the row points to."""
        rows = connection.execute(_END).all()
        if len(rows) != 1:
            raise tampered(None, "its own row is missing or double")
        ledger, key, sequence, head, highest, *entry = rows[0]
        try:
            identity = Identity(ledger, bytes.fromhex(key), int(sequence), head)
        except (TypeError, ValueError):
            raise tampered(None, "its own row cannot be read") from None
        return identity, highest or 0, None if entry[0] is None else Entry(*entry)

    def entry(self, connection: sa.Connection, sequence: int) -> Entry | None:
        row = connection.execute(_ENTRY, {"at": sequence}).one_or_none()
        return None if row is None else Entry(*row)

    def entries(self, connection: sa.Connection, account: str | None = None) -> Iterator[Entry]:
        query = sa.select(_entries).order_by(_entries.c.sequence)
        if account is not None:
            query = query.where(_entries.c.account == account)
        for row in connection.execute(query, execution_options={"yield_per": _PAGE}):
            yield Entry(*row)

    def opening(self, connection: sa.Connection, account: str) -> Entry | None:
        query = sa.select(_entries).where(_entries.c.account == account)
        row = connection.execute(query.order_by(_entries.c.sequence).limit(1)).one_or_none()
        return None if row is None else Entry(*row)

    def accounts(self, connection: sa.Connection) -> Iterator[AccountRow]:
        for row in connection.execute(sa.select(_accounts)):
            yield AccountRow(*row)

    def ties(self, connection: sa.Connection, macs: list[str] | None = None) -> list[Tie]:
        """The fingerprints on record, or those of `macs` that are."""
        query = sa.select(_ties)
        if macs is not None:
            query = query.where(_ties.c.mac.in_(macs))
        return [Tie(*row) for row in connection.execute(query)]

    def add_ties(self, connection: sa.Connection, ties: list[Tie]) -> None:
        connection.execute(_ties.insert(), [vars(tie) for tie in ties])

    def account(self, connection: sa.Connection, name: str) -> tuple[AccountRow, Entry] | None:
        """An account and the entry that it points to; None without an account."""
        row = connection.execute(_ACCOUNT, {"which": name}).one_or_none()
        if row is None:
            return None
        account, entry = AccountRow(*row[: len(_accounts.c)]), row[len(_accounts.c) :]
        if entry[0] is None:
            raise tampered(account.sequence, "it is missing")
        return account, Entry(*entry)

    def add_account(self, connection: sa.Connection, row: AccountRow) -> None:
        connection.execute(_accounts.insert(), vars(row))

    def swap_account(
        self, connection: sa.Connection, old: AccountRow, *, spent: str, entry: Entry
    ) -> None:
        """Take from the account if nobody took since we looked: compare and swap."""
        values = {"spent": spent, "sequence": entry.sequence, "head": entry.hash}
        compared = {f"old_{name}": value for name, value in vars(old).items()}
        if connection.execute(_TAKE, compared | values).rowcount != 1:
            raise LostRace

    def append(self, connection: sa.Connection, old: Identity, entry: Entry) -> None:
        """Move the head of the chain if nobody moved it since we looked, and add the entry."""
        compared = {"old_sequence": old.sequence, "old_head": old.head}
        values = {"sequence": entry.sequence, "head": entry.hash}
        if connection.execute(_ADVANCE, compared | values).rowcount != 1:
            raise LostRace
        connection.execute(_ADD, vars(entry))


def _is_passing(error: sa.exc.SQLAlchemyError) -> bool:
    """A lock that others hold or a lost race, which a second try may get past."""
    original = getattr(error, "orig", None)
    code = getattr(original, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in ("40001", "40P01")
