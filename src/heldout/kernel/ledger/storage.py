"""Where a ledger's tables live, and what a transaction is there.

Every transaction is begun and ended by name, so that what is atomic can be read off the page:
SQLite takes its one write lock at BEGIN IMMEDIATE, PostgreSQL (`postgres.py`) the ledger's one row
at SELECT ... FOR UPDATE.
"""

import contextlib
import os
import secrets
import sqlite3
import tempfile
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from heldout.arguments import shown
from heldout.errors import ArgumentError, LedgerError, MissingDependency
from heldout.kernel.ledger.records import LostRace, tampered
from heldout.kernel.ledger.tables import ADDED_LATER, SCHEMA_VERSION, Connection, Tables

BUSY_SECONDS: Final = 60
FORK_PATIENCE = 10.0  # seconds for the transaction of another thread

T = TypeVar("T")


class Storage(ABC):
    """Runs functions in transactions of one database; again, where they lost a race."""

    place: str
    file: Path | None = None
    read_only = False
    memory = False
    shared = False
    """Whether a database may hold tables of other programs beside a ledger's."""
    list_tables: ClassVar[str] = "SELECT name FROM sqlite_master WHERE type = 'table'"
    begin_read: ClassVar[str] = "BEGIN"
    begin_write: ClassVar[str] = "BEGIN IMMEDIATE"
    error: ClassVar[type[Exception]] = sqlite3.Error

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._process = os.getpid()
        _known.add(self)

    # --- transactions ----------------------------------------------------------------------------

    def read(self, work: Callable[[Tables], T]) -> T:
        """Run the work on one snapshot."""
        return self._run(lambda connection: work(Tables(connection)), self.begin_read)

    def write(self, work: Callable[[Tables], T], *, exists: bool = True) -> T:
        """Run the work as the only writer of a ledger that exists; durable once this returns."""
        if self.read_only:
            raise LedgerError(
                f"The ledger at {self.place} was opened read-only. Open it without read_only."
            )

        def alone(connection: Connection) -> T:
            self._lock_out_writers(connection, exists)
            return work(Tables(connection))

        return self._run(alone, self.begin_write)

    def _run(self, work: Callable[[Connection], T], begin: str) -> T:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            committing = False
            try:
                with self.lock, self._connected() as connection:
                    try:
                        connection.execute(begin, {})
                        result = work(connection)
                        committing = True
                        connection.execute("COMMIT", {})
                    except BaseException:
                        with contextlib.suppress(self.error):
                            connection.execute("ROLLBACK", {})
                        raise
                    return result
            except LostRace:
                pass
            except self.error as error:
                # After a COMMIT that failed the entry may be there or not: asking again could
                # take twice, so nobody asks and nothing is released.
                if committing or not self._is_passing(error):
                    self.let_go()
                    raise self._failure(error) from None
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"The ledger at {self.place} did not answer within {BUSY_SECONDS} "
                    "seconds. Look for a program that holds it, and try again."
                )
            time.sleep(0.001 + secrets.randbelow(20) / 1000)

    def create(self, *, refuse: Callable[[], None]) -> int:
        """Make the tables unless they are there; `refuse` may object to an empty ledger.

        Returns the version of the schema that is there now.
        """

        def make(tables: Tables) -> int:
            names = tables.names(self.list_tables)
            if "heldout_ledger" in names:
                if not self.read_only:
                    tables.create(name for name in ADDED_LATER if name not in names)
                version = tables.version()
                if version not in (1, SCHEMA_VERSION):
                    raise LedgerError(
                        f"The ledger must have schema version {SCHEMA_VERSION} or 1, got {version} "
                        f"in {self.place}. Use the version of heldout that made it."
                    )
                return version
            if self.read_only or (names and not self.shared):
                raise LedgerError(
                    f"The ledger must be a file of its own, got {self.place}, a database of "
                    "another program. Name another file."
                )
            refuse()
            tables.create()
            tables.begin()
            return SCHEMA_VERSION

        return self.read(make) if self.read_only else self.write(make, exists=False)

    # --- what differs between databases ----------------------------------------------------------

    @abstractmethod
    def _connected(self) -> contextlib.AbstractContextManager[Connection]:
        """Give the connection of this process."""

    @abstractmethod
    def let_go(self) -> None:
        """Close the connection; the next transaction opens one again."""

    @abstractmethod
    def wipe(self) -> None:
        """Leave no trace of what was deleted in the files."""

    def close(self) -> None:
        """Let go of the database."""
        if os.getpid() == self._process:
            with self.lock:
                self.let_go()

    @property
    def connected(self) -> bool:
        """Return whether a connection to a file is open in this process."""
        return False

    def _lock_out_writers(self, connection: Connection, exists: bool) -> None:
        """Wait for other writers; SQLite did so when the transaction began."""
        return

    def _is_passing(self, error: Exception) -> bool:
        """Return whether others have a lock that a second try may get past."""
        return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def _failure(self, error: Exception) -> LedgerError:
        """Say in one line what to do; the driver's own text may have a secret and stays out."""
        if _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            what = "no database or a damaged one. Restore a copy, or name another file"
        else:
            what = f"{type(error).__name__}. Check that the file and its directory can be written"
        return LedgerError(f"The ledger at {self.place} must be readable and writable, got {what}.")


class SqliteMemory(Storage):
    """A ledger that ends with this object."""

    place, memory = "memory", True

    def __init__(self) -> None:
        super().__init__()
        self._connection = _connect(":memory:")
        weakref.finalize(self, self._connection.close)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise LedgerError(
                "A ledger in memory cannot be used in a forked process. Open a ledger file, "
                "which processes can share."
            )
        yield self._connection

    def let_go(self) -> None:
        """Do nothing: there is no other copy of it."""

    def wipe(self) -> None:
        """Do nothing: memory leaves no file."""


class SqliteFile(Storage):
    """A ledger in a file, and this process's one connection to it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if not path.parent.is_dir():
            raise LedgerError(f"No such directory: '{path.parent}'. Create it first.")
        if path.is_dir():
            raise LedgerError(f"'{path}' is a directory. Name a file for the ledger.")
        super().__init__()
        self.place, self.file, self.read_only = f"'{path}'", path, read_only
        self._path = path
        # One connection is kept: opening one, and closing the last, costs five syncs.
        self._connection: sqlite3.Connection | None = None
        self._inodes: dict[Path, int | None] = {}
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    def create(self, *, refuse: Callable[[], None]) -> int:
        if not self.read_only:
            with contextlib.suppress(OSError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return super().create(refuse=refuse)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            if self._connection is not None:  # something forked without Python's knowledge
                _inherited.append(True)
            self._process = os.getpid()
        _refuse_inherited()
        if self._moved():
            self.let_go()
        if self._connection is None:
            self._connection = self._open_to_read() if self.read_only else self._open()
        yield self._connection

    def _moved(self) -> bool:
        """Return whether other files are where those of the open connection were."""
        inode = _inode(self._path)
        if inode is None:
            raise tampered(None, f"the file {self.place} is gone")
        if self._connection is None or self.read_only:
            return False
        log = self._path.with_name(self._path.name + "-wal")
        if self._inodes.get(log) is None:
            self._inodes[log] = _inode(log)  # the first transaction makes it
        return self._inodes != {self._path: inode, log: _inode(log)}

    def _open(self) -> sqlite3.Connection:
        """Open the file that is there now."""
        while True:
            before = _inode(self._path)
            connection = _connect_file(self._path)
            connection.execute("PRAGMA synchronous=FULL")
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            if mode != "wal":
                raise LedgerError(
                    f"The ledger must be on a local disk, got {self.place}, where SQLite "
                    "cannot keep a write-ahead log. Move it, or use PostgreSQL."
                )
            if before == _inode(self._path):
                self._inodes = {self._path: before}
                return connection
            connection.close()

    def _open_to_read(self) -> sqlite3.Connection:
        """Open the file where it is; where nothing can be written beside it, a copy."""
        try:
            connection = _connect_file(self._path)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError:
            import shutil

            self._copy = tempfile.TemporaryDirectory(prefix="heldout-")
            for path in self._path.parent.glob("*"):
                if path.name in (self._path.name, self._path.name + "-wal"):
                    shutil.copyfile(path, Path(self._copy.name) / path.name)
            return _connect_file(Path(self._copy.name) / self._path.name)

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._inodes = None, {}

    def wipe(self) -> None:
        with self.lock, self._connected() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        super().close()
        if self._copy is not None and os.getpid() == self._process:
            self._copy.cleanup()


def storage_of(where: str | os.PathLike[str] | None, *, read_only: bool) -> Storage:
    """Return the storage of a ledger in memory, in a file or at a database URL."""
    if where is None:
        return SqliteMemory()
    if isinstance(where, str) and "://" in where:
        try:
            from heldout.kernel.ledger.postgres import storage_at
        except ImportError:
            raise MissingDependency(
                "A ledger at a database URL requires SQLAlchemy. "
                "Install it with: pip install 'heldout[postgres]'"
            ) from None
        return storage_at(where, read_only=read_only)
    if isinstance(where, str | os.PathLike) and os.fspath(where):
        return SqliteFile(file_of(where), read_only=read_only)
    raise ArgumentError(
        f"ledger must be None, a file or a database URL, got {type(where).__name__}. "
        "Pass 'ledger.sqlite', say."
    )


def file_of(where: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be one: a text or a path, which the system can spell."""
    try:
        place = Path(where).resolve()
        place.exists()
        if str(place).isprintable():
            return place
    except (OSError, TypeError, ValueError):
        pass
    raise ArgumentError(
        f"ledger must be a file with an ordinary name, got {shown(where)}. Choose another name."
    )


def _connect_file(path: Path) -> sqlite3.Connection:
    # As a URI, so that no character of the path means anything to SQLite.
    return _connect(f"{path.as_uri()}?mode=rw")


def _connect(address: str) -> sqlite3.Connection:
    return sqlite3.connect(
        address,
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are begun and ended by name
        check_same_thread=False,  # a storage's lock lets one thread in at a time
    )


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _code(error: Exception) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


# --- forks ---------------------------------------------------------------------------------------
# SQLite keeps its locks by process: a child that inherits an open connection believes that it
# holds locks which it does not hold. So connections are closed before every `os.fork`, once the
# booking under way is done, and opened again where they are needed.

_known: "weakref.WeakSet[Storage]" = weakref.WeakSet()
_forking = threading.Lock()  # Python does not take turns: two threads may fork at once
_quiet: "list[Storage]" = []  # those whose lock the forking thread holds
_inherited: list[bool] = []  # not empty in a child that has an open connection


def _refuse_inherited() -> None:
    """Raise in a child that was forked while a transaction would not end."""
    if _inherited:
        raise LedgerError(
            "This process was forked while another thread was using a ledger file. "
            "Start the process before you open the ledger."
        )


def _before_fork() -> None:
    _forking.acquire()
    for storage in list(_known):
        if storage.lock.acquire(timeout=FORK_PATIENCE):
            _quiet.append(storage)
            if storage.connected:
                storage.let_go()


def _after_in_parent() -> None:
    while _quiet:
        _quiet.pop().lock.release()
    _forking.release()


def _after_in_child() -> None:
    _forking._at_fork_reinit()  # type: ignore[attr-defined]
    for storage in list(_known):
        _inherited.extend([True] if storage.connected else [])
        storage.lock = threading.RLock()
    _quiet.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
