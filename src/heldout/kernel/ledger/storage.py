"""Where a ledger's tables live: SQLite or PostgreSQL through SQLAlchemy Core.

Imported only when a ledger is opened. Every transaction is begun and ended by name, so that what
is atomic can be read off the page: SQLite takes its one write lock at BEGIN IMMEDIATE, PostgreSQL
the ledger's one row at SELECT ... FOR UPDATE.
"""

import contextlib
import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import StaticPool

from heldout.errors import LedgerError, MissingDependency
from heldout.kernel.ledger import forks, tables
from heldout.kernel.ledger.chain import SCHEMA_VERSION, LostRace, first_hash, tampered
from heldout.kernel.ledger.memory import Memory

__all__ = ["Storage"]

BUSY_SECONDS: Final = 60
_LOCK_NAME: Final = 0x68656C646F7574  # "heldout", for PostgreSQL's advisory lock
_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_COMPILED: Final[dict[Any, Any]] = {}
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

T = TypeVar("T")


@cache
def _first_sqlite() -> sa.Engine:
    return sa.create_engine("sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT")


def _sqlite(connect: Callable[[], sqlite3.Connection]) -> sa.Engine:
    """An engine of its own that shares what was compiled, so that one answer opens one fast."""
    first = _first_sqlite()
    pool = StaticPool(connect, dialect=first.dialect)  # type: ignore[arg-type]
    engine = sa.Engine(pool, first.dialect, first.url, hide_parameters=True)
    return engine.execution_options(compiled_cache=_COMPILED)


@lru_cache(maxsize=4)
def _statements(dialect: sa.Dialect) -> tuple[str, ...]:
    """What makes the tables of a ledger, in this dialect."""
    made = []
    for table in tables.metadata.sorted_tables:
        made.append(str(sa.schema.CreateTable(table).compile(dialect=dialect)))
        made += [str(sa.schema.CreateIndex(i).compile(dialect=dialect)) for i in table.indexes]
    return tuple(made)


class Storage(tables.Tables):
    """One database with a ledger in it, and this process's one connection to a file."""

    memory = False

    def __init__(
        self,
        engine: sa.Engine | None,
        place: str,
        *,
        file: Path | None = None,
        read_only: bool = False,
    ) -> None:
        self.place, self.file, self.read_only = place, file, read_only
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._inodes: dict[Path, int | None] = {}
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        if engine is None:
            # One connection is kept: opening one, and closing the last, costs five syncs.
            engine = _sqlite(self._connect)
        self._engine = engine
        forks.watch(self)

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def on_file(cls, path: Path, *, read_only: bool = False) -> "Storage":
        if not path.parent.is_dir():
            raise LedgerError(f"No such directory: '{path.parent}'. Make it before the ledger.")
        if path.is_dir():
            raise LedgerError(f"'{path}' is a directory. Name a file for the ledger.")
        return cls(None, f"'{path}'", file=path, read_only=read_only)

    @classmethod
    def at(cls, address: str, *, read_only: bool = False) -> "Storage":
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
                return cast("Storage", Memory())
            return cls.on_file(Path(str(url.database)).resolve(), read_only=read_only)
        if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise LedgerError(
                f"The ledger must be on SQLite or PostgreSQL, got {url.drivername}. "
                "Pass a file, or postgresql://user@host/database."
            )
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingDependency(
                "A ledger on PostgreSQL requires psycopg. "
                "Install it with: pip install 'heldout[postgres]'"
            ) from None
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
            pool_pre_ping=True,
            hide_parameters=True,
        )
        place = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
        return cls(engine, place.render_as_string(), read_only=read_only)

    def create(self, *, refuse: Callable[[], None]) -> int:
        """Make the tables unless they are there; `refuse` may object to an empty ledger.

        Returns the version of the schema that is there now.
        """

        def make(connection: sa.Connection) -> int:
            if self.postgres and not self.read_only:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NAME)))
            names = set(sa.inspect(connection).get_table_names())
            if tables.ledger.name in names:
                if tables.references.name not in names and not self.read_only:
                    connection.execute(sa.schema.CreateTable(tables.references))
                return self._version(connection)
            if (names and not self.postgres) or self.read_only:
                raise LedgerError(
                    f"The ledger must be a file of its own, got {self.place}, a database of "
                    "another program. Name another file."
                )
            refuse()
            for statement in _statements(connection.dialect):
                connection.exec_driver_sql(statement)
            name = secrets.token_hex(16)
            own = {"row": 1, "schema_version": SCHEMA_VERSION, "ledger": name, "key_check": ""}
            end = {"closed": 0, "sequence": 0, "head": first_hash(name)}
            connection.execute(tables.ledger.insert(), own | end)
            return SCHEMA_VERSION

        if self.read_only:
            return self.read(make)
        if self.file is not None:
            with contextlib.suppress(OSError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return self.write(make, lock=False)

    def _version(self, connection: sa.Connection) -> int:
        versions = connection.execute(sa.select(tables.ledger.c.schema_version)).scalars().all()
        if len(versions) != 1:
            raise tampered(None, "its own row is missing or double")
        if versions[0] not in (1, SCHEMA_VERSION):
            raise LedgerError(
                f"The ledger must have schema version {SCHEMA_VERSION} or 1, got {versions[0]} in "
                f"{self.place}. Use the version of heldout that made it."
            )
        return int(versions[0])

    # --- transactions ----------------------------------------------------------------------------

    def read(self, function: Callable[[sa.Connection], T]) -> T:
        """Run the function on one snapshot."""
        return self._run(function, _BEGIN_READ if self.postgres else "BEGIN")

    def write(self, function: Callable[[sa.Connection], T], *, lock: bool = True) -> T:
        """Run the function as the only writer; durable once this returns."""

        def alone(connection: sa.Connection) -> T:
            if self.postgres:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
                if lock:
                    connection.execute(sa.select(tables.ledger.c.row).with_for_update())
            return function(connection)

        return self._run(alone, _BEGIN_WRITE if self.postgres else "BEGIN IMMEDIATE")

    def _run(self, function: Callable[[sa.Connection], T], begin: str) -> T:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            committing = False
            try:
                with self.lock, self._connection() as connection:
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
                    self._let_go()
                    raise self._failure(error) from None
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"The ledger at {self.place} did not answer within {BUSY_SECONDS} "
                    "seconds. Look for a program that holds it, and try again."
                )
            time.sleep(0.001 + secrets.randbelow(20) / 1000)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        if os.getpid() != self._process:
            # The parent's sockets are the parent's: forget them without closing them.
            self._engine.dispose(close=False)
            self._process = os.getpid()
        if self.file is not None:
            forks.refuse_inherited()
            if self._moved():
                self._let_go()
        with self._engine.connect() as connection:
            yield connection

    def _moved(self) -> bool:
        """Whether other files are where those of the kept connection were."""
        assert self.file is not None
        for path in (self.file, self.file.with_name(self.file.name + "-wal")):
            inode = _inode(path)
            if inode is None and path == self.file:
                raise tampered(None, f"the file {self.place} is gone")
            if self._inodes.get(path) is None and self._inodes:
                self._inodes[path] = inode  # the log is made by the first transaction
            elif self._inodes and inode != self._inodes[path] and not self.read_only:
                return True
        return False

    def _connect(self) -> sqlite3.Connection:
        """A connection to the file that is there now."""
        assert self.file is not None
        if self.read_only:
            self._inodes = {self.file: _inode(self.file)}
            return self._connect_to_read()
        while True:
            before = _inode(self.file)
            raw = _opened(self.file)
            raw.execute("PRAGMA synchronous=FULL")
            mode = raw.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            if mode != "wal":
                raise LedgerError(
                    f"The ledger must lie on a local disk, got {self.place}, where SQLite "
                    "cannot keep a write-ahead log. Move it, or use PostgreSQL."
                )
            if before == _inode(self.file):
                self._inodes = {self.file: before}
                return raw
            raw.close()

    def _connect_to_read(self) -> sqlite3.Connection:
        """Read the file where it is; where nothing can be written beside it, read a copy."""
        assert self.file is not None
        try:
            raw = _opened(self.file)
            raw.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return raw
        except sqlite3.OperationalError:
            import shutil

            self._copy = tempfile.TemporaryDirectory(prefix="heldout-")
            for path in self.file.parent.glob("*"):
                if path.name in (self.file.name, self.file.name + "-wal"):
                    shutil.copyfile(path, Path(self._copy.name) / path.name)
            return _opened(Path(self._copy.name) / self.file.name)

    @property
    def postgres(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    def _failure(self, error: sa.exc.SQLAlchemyError) -> LedgerError:
        """One line with what to do; the driver's own text may hold a secret, so it stays out."""
        code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            what = "no database or a damaged one. Restore a copy, or name another file"
        elif self.postgres:
            what = f"{type(error).__name__}. Check the server, the address and the rights"
        else:
            what = f"{type(error).__name__}. Check that the file and its directory can be written"
        return LedgerError(f"The ledger at {self.place} must be readable and writable, got {what}.")

    @property
    def connected(self) -> bool:
        """Whether a connection to a file is open in this process."""
        return self.file is not None and bool(self._inodes)

    def _let_go(self) -> None:
        self._engine.dispose()
        self._inodes = {}

    def wipe(self) -> None:
        """Leave no trace of what was deleted in the files."""
        with self.lock, self._connection() as connection:
            connection.exec_driver_sql("VACUUM" if self.file else "VACUUM FULL heldout_ledger")
            if self.file:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of the database."""
        if os.getpid() == self._process:
            with self.lock:
                self._engine.dispose()
                self._inodes = {}
                if self._copy is not None:
                    self._copy.cleanup()


def _opened(path: Path) -> sqlite3.Connection:
    """As a URI, so that no character of the path means anything to SQLite."""
    place = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(place, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _is_passing(error: sa.exc.SQLAlchemyError) -> bool:
    """A lock that others hold or a lost race, which a second try may get past."""
    original = getattr(error, "orig", None)
    code = getattr(original, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in ("40001", "40P01")
