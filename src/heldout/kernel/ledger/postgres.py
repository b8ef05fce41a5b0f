"""Ledgers at a database URL: PostgreSQL through SQLAlchemy's pool, which takes long to import."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from heldout.errors import LedgerError, MissingDependency
from heldout.kernel.ledger.storage import BUSY_SECONDS, SqliteFile, SqliteMemory, Storage
from heldout.kernel.ledger.tables import Connection, Cursor

_CREATING: Final = 0x68656C646F7574  # "heldout", for PostgreSQL's advisory lock
_NAMED_VALUE: Final = re.compile(r":(\w+)")


@cache
def _translated(statement: str) -> str:
    """Spell named values as psycopg does."""
    return _NAMED_VALUE.sub(r"%(\1)s", statement)


class _Session:
    """A connection that takes the ledger's statements."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Mapping[str, object], /) -> Cursor:
        return self._connection.exec_driver_sql(_translated(statement), dict(values))


class Postgres(Storage):
    """A ledger in a schema of a PostgreSQL database."""

    shared = True
    list_tables: ClassVar[str] = (
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    begin_read: ClassVar[str] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_write: ClassVar[str] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    error: ClassVar[type[Exception]] = sa.exc.SQLAlchemyError

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingDependency(
                "A ledger on PostgreSQL requires psycopg. "
                "Install it with: pip install 'heldout[postgres]'"
            ) from None
        super().__init__()
        place = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
        self.place, self.read_only = place.render_as_string(), read_only
        self._engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",  # transactions are begun and ended by name
            pool_pre_ping=True,
            hide_parameters=True,
        )

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        if os.getpid() != self._process:
            # The parent's sockets are the parent's: forget them without closing them.
            self._engine.dispose(close=False)
            self._process = os.getpid()
        with self._engine.connect() as connection:
            yield _Session(connection)

    def _lock_out_writers(self, connection: Connection, exists: bool) -> None:
        connection.execute("SET LOCAL synchronous_commit = on", {})
        connection.execute(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'", {})
        if exists:
            connection.execute('SELECT "row" FROM heldout_ledger FOR UPDATE', {})
        else:
            connection.execute("SELECT pg_advisory_xact_lock(:name)", {"name": _CREATING})

    def _is_passing(self, error: Exception) -> bool:
        """Return whether a serialisation failure or a deadlock ended the transaction."""
        original = getattr(error, "orig", None)
        return getattr(original, "sqlstate", None) in ("40001", "40P01")

    def _failure(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"The ledger at {self.place} must be readable and writable, got "
            f"{type(error).__name__}. Check the server, the address and the rights."
        )

    def let_go(self) -> None:
        self._engine.dispose()

    def wipe(self) -> None:
        with self.lock, self._connected() as connection:
            connection.execute("VACUUM FULL heldout_ledger", {})


def storage_at(address: str, *, read_only: bool) -> Storage:
    """Return the storage at an SQLAlchemy URL, of SQLite or PostgreSQL."""
    try:
        url = make_url(address)
        family = url.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        raise LedgerError(
            "The ledger must be a file or a database URL, got an address that is neither. "
            "Pass postgresql://user@host/database."
        ) from None
    if family == "sqlite":
        if url.database in (None, "", ":memory:"):
            return SqliteMemory()
        return SqliteFile(Path(str(url.database)).resolve(), read_only=read_only)
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise LedgerError(
            f"The ledger must be on SQLite or PostgreSQL, got {url.drivername}. "
            "Pass a file, or postgresql://user@host/database."
        )
    return Postgres(url, read_only=read_only)
