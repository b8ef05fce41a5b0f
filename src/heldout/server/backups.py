"""Copies of a whole server, and how one is put back without forgetting what was spent.

A copy is a folder: the server's tables and the ledger as two SQLite files, whatever database they
came from, the server's files, and a list of all of them with digests. The tables are read before
the ledger, and files after both: a copied ledger may know more than the tables, never less.

People, models and answers may go back in time. The ledger may not, because what was booked after
the copy was made has been answered: its price must stay counted. So a ledger that is still there is
never replaced, and a copy's own ledger is taken only if somebody says so; the log keeps it.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import sqlalchemy as sa

import heldout
from heldout.arguments import shown
from heldout.errors import ArgumentError, HeldoutError, LedgerError, LedgerTampered
from heldout.kernel import Ledger
from heldout.kernel.ledger.tables import NAMES
from heldout.kernel.ledger.witness import Witness
from heldout.server.service import Service, print_line
from heldout.server.storage import Store, artifacts, metadata, now, revision_of, tokens, workers

FORMAT: Final = 1
LIST: Final = "backup.json"
TABLES, LEDGER = "server.sqlite", "ledger.sqlite"
OWN: Final = ("web.key", "factor.key", "signing.pub")
FOLDERS: Final = ("artifacts", "private")
UNFINISHED: Final = (".partial", ".scored.parquet")
UPLOADED: Final = {"artifacts": "rows-", "private": "upload-"}
"""How files of rows begin that a custodian sent and a worker has not read. They are removed then,
and would live on in a copy, in the clear."""
PAGE: Final = 1000
GONE: Final = "Its file was removed while the backup was made. Submit it again."


class UnusableBackup(HeldoutError):
    """A copy that is not whole, or that this version cannot read."""


@dataclass(frozen=True)
class Backup:
    """A copy of a server, as its list describes it."""

    folder: Path
    made: str
    version: str
    ledger: Witness
    files: dict[str, str]

    @classmethod
    def at(cls, folder: Path) -> "Backup":
        """Read the list of a copy, and compare every file with it."""
        try:
            content = json.loads((folder / LIST).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise UnusableBackup(
                    f"{shown(folder.name)} was made by heldout {shown(content['heldout'])}, in a "
                    "form that this version does not know. Restore it with that version."
                )
            listed = {str(name): str(digest) for name, digest in content["files"].items()}
            backup = cls(
                folder, content["made"], content["heldout"], Witness(**content["ledger"]), listed
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise UnusableBackup(
                f"There is no backup at {shown(str(folder))}: its {LIST} is missing or damaged."
            ) from None
        for name, digest in listed.items():
            path = folder / name
            inside = path.resolve().is_relative_to(folder.resolve())
            if not inside or not path.is_file() or _digest(path) != digest:
                raise UnusableBackup(f"{shown(name)} of the backup is missing or damaged.")
        return backup


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- making one ----------------------------------------------------------------------------------


def make_backup(service: Service, to: Path) -> Backup:
    """Copy a server that may be running; the copy appears whole or not at all."""
    check_there(service)
    if to.exists():
        raise ArgumentError(f"{shown(str(to))} exists already. Name a folder that does not.")
    partial = to.with_name(f"{to.name}.{os.getpid()}.partial")
    partial.mkdir(mode=0o700, parents=True)
    try:
        tables = Store.on_file(partial / TABLES)
        copy_tables(service.store, tables)
        tables.close()
        head = copy_ledger(_ledger_store(service), partial / LEDGER)
        for name in _files(service.settings.folder):
            (partial / name).parent.mkdir(mode=0o700, exist_ok=True)
            try:
                shutil.copy2(service.settings.folder / name, partial / name)
            except FileNotFoundError:  # somebody deleted it meanwhile
                continue
        files = sorted(path for path in partial.rglob("*") if path.is_file())
        listed = {str(path.relative_to(partial)): _digest(path) for path in files}
        content = {
            "format": FORMAT,
            "heldout": heldout.__version__,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "ledger": vars(head),
            "files": listed,
        }
        (partial / LIST).write_text(json.dumps(content, indent=1), encoding="utf-8")
        for path in partial.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        partial.rename(to)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    service.note(None, "backup", f"the ledger ended with entry {head.sequence} ({head.hash})")
    return Backup.at(to)


def save_ledger(service: Service, to: Path) -> Witness:
    """Copy the ledger alone to one file, over an older copy of the same ledger."""
    check_there(service)
    partial = to.with_name(f"{to.name}.{os.getpid()}.partial")
    try:
        head = copy_ledger(_ledger_store(service), partial)
        if to.exists():
            old = Ledger.open(to, witness=None, read_only=True)
            try:
                seen = old.head()
            finally:
                old.close()
            _check_continues(partial, seen, "The ledger is another or an older one than its copy")
        partial.replace(to)
    finally:
        _remove(partial)
    return head


def check_there(service: Service) -> None:
    """Refuse a folder or a database in which no server of this version is."""
    if not is_server(service):
        raise ArgumentError(
            f"There is no server in {shown(str(service.settings.folder))}. Name its folder, and "
            "its database with --database."
        )
    service.store.check_current()


def is_server(service: Service) -> bool:
    """Return whether there is a server in a folder or a database; nothing is made."""
    if service.settings.database is None:
        return (service.settings.folder / TABLES).exists()
    return revision_of(service.store) is not None


def _ledger_store(service: Service) -> Store:
    if service.settings.database is not None:
        return service.store
    return Store(f"sqlite:///{service.settings.folder / LEDGER}")


def _files(folder: Path) -> Iterator[str]:
    """Yield the server's files beside its tables, by their names within its folder."""
    yield from (name for name in OWN if (folder / name).exists())
    for part in FOLDERS:
        for path in sorted((folder / part).iterdir()):
            left_out = path.name.endswith(UNFINISHED) or path.name.startswith(UPLOADED[part])
            if path.is_file() and not left_out:
                yield f"{part}/{path.name}"


def copy_tables(source: Store, target: Store) -> None:
    """Copy every row of the server's tables, of one moment, into tables that are empty."""
    target.migrate()
    with source.read() as reading, target.write() as writing:
        for table in metadata.sorted_tables:
            _copy_rows(table, reading, writing)
        if target.postgres:
            for table in metadata.sorted_tables:
                if (counted := table.autoincrement_column) is not None:
                    _continue_numbers(writing, table.name, counted.name)


def copy_ledger(source: Store, to: "Path | Store") -> Witness:
    """Copy a ledger as it is, hashes and all, into an empty place; returns where it ends."""
    target = Store.on_file(to) if isinstance(to, Path) else to
    where = to if isinstance(to, Path) else target.url.render_as_string(hide_password=False)
    Ledger.open(where, witness=None).close()  # makes the tables
    with source.read() as reading, target.write() as writing:
        theirs = sa.MetaData()
        theirs.reflect(reading, only=lambda name, _: name in NAMES)
        for name in NAMES:
            table = theirs.tables[name]
            writing.execute(table.delete())
            _copy_rows(table, reading, writing)
        own = theirs.tables["heldout_ledger"]
        row = reading.execute(sa.select(own)).one()
    if isinstance(to, Path):
        target.close()
    return Witness(row.ledger, row.sequence, row.head)


def _copy_rows(table: sa.Table, reading: sa.Connection, writing: sa.Connection) -> None:
    """Copy a table a page at a time, in the order of its key."""
    query = sa.select(table).order_by(*table.primary_key.columns)
    for page in reading.execute(query).mappings().partitions(PAGE):
        writing.execute(table.insert(), [dict(row) for row in page])


def _continue_numbers(connection: sa.Connection, table: str, column: str) -> None:
    """Let a sequence of PostgreSQL go on after the numbers that were copied."""
    connection.execute(
        sa.text(
            f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
            f"coalesce((SELECT max({column}) FROM {table}), 0) + 1, false)"
        )
    )


# --- putting one back ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Restored:
    """Says what a server was put back with."""

    backup: Backup
    end: Witness
    line: str
    """Which ledger it has now, as the log keeps it."""


def restore(
    backup: Backup,
    service: Service,
    *,
    newest: Path | None = None,
    accept_ledger: bool = False,
    keep_tokens: bool = False,
) -> Restored:
    """Put a copy back into a folder (and a database) where no server is.

    What was interrupted is begun again: the tables, by which a server is known, come last.
    """
    settings = service.settings
    if is_server(service):
        raise ArgumentError(
            f"There is a server in {shown(str(settings.folder))} already. Restore into another "
            "folder (and database), or move that one away. Its ledger may stay."
        )
    with_tables = _upgraded(backup, settings.folder)
    try:
        line = _choose_ledger(backup, service, newest, accept_ledger)  # it may refuse
        for name in backup.files:
            if name not in (TABLES, LEDGER):
                shutil.copy2(backup.folder / name, settings.folder / name)
        source = Store.on_file(with_tables)
        _mend(source, settings.folder, keep_tokens=keep_tokens)
        if settings.database is None:
            source.close()
            with_tables.rename(settings.folder / TABLES)
            service.store.migrate()
        else:
            copy_tables(source, service.store)
            source.close()
    finally:
        _remove(with_tables)
    service.note(None, "restore", f"backup of {backup.made}; {line}")
    print_line("restore", made=backup.made, ledger=line)
    return Restored(backup, service.ledger.head(), line)


def _upgraded(backup: Backup, folder: Path) -> Path:
    """Return a copy of the tables, brought up to this version."""
    place = folder / f"{TABLES}.restoring"
    _remove(place)
    shutil.copy2(backup.folder / TABLES, place)
    store = Store.on_file(place)
    try:
        store.migrate()
    except Exception:
        _remove(place)
        raise UnusableBackup(
            f"The backup was made by heldout {shown(backup.version)}, whose tables this version "
            f"({heldout.__version__}) does not know. Restore it with that version or a newer one."
        ) from None
    finally:
        store.close()
    return place


def _choose_ledger(
    backup: Backup, service: Service, newest: Path | None, accept_ledger: bool
) -> str:
    """Take the newest ledger that there is; returns which one that was.

    A ledger that is in the target already is not touched, and must continue the copy's.
    """
    settings, end = service.settings, backup.ledger
    there = _has_ledger(service)
    if there and newest is not None:
        raise ArgumentError("There is a ledger where the server goes. Leave --ledger out.")
    if there or newest is not None:
        if newest is not None:
            _check_continues(newest, end, f"{shown(newest.name)} is not the newest ledger")
            _place_ledger(service, newest)
        try:
            service.ledger.expect(end)
            service.ledger.verify()
        except LedgerTampered as error:
            raise LedgerTampered(
                "The ledger that is there is not the backup's, or is older: it "
                f"lacks entry {end.sequence}. Nothing was restored. Move it away only if you know "
                "why it differs."
            ) from error
        head = service.ledger.head()
        more = head.sequence - end.sequence
        return (
            f"the newest ledger is kept: it ends with entry {head.sequence} ({head.hash}), "
            f"{more} after the backup's; what these booked stays spent"
        )
    if not accept_ledger:
        raise LedgerError(
            f"The ledger of this backup ends with entry {end.sequence}, on {backup.made}. What was "
            "booked later would be forgotten, although its answers are out. Pass the newest ledger "
            "that you have with --ledger FILE; or, if there is none, or nothing was asked since, "
            "--accept-ledger. Nothing was restored."
        )
    _place_ledger(service, backup.folder / LEDGER)
    service.ledger.verify()
    where = "" if settings.database is None else " in the database"
    return (
        f"the backup's ledger is accepted{where}: it ends with entry {end.sequence} ({end.hash}); "
        "whatever was booked after it is forgotten"
    )


def _has_ledger(service: Service) -> bool:
    if service.settings.database is None:
        return (service.settings.folder / LEDGER).exists()
    with service.store.read() as connection:
        return sa.inspect(connection).has_table("heldout_ledger")


def _place_ledger(service: Service, file: Path) -> None:
    """Copy a ledger to where the server looks for it, and begin its witness."""
    folder = service.settings.folder
    staged = folder / f"{LEDGER}.restoring"
    _remove(staged)
    for ending in ("", "-wal"):
        if (path := file.with_name(file.name + ending)).exists():
            shutil.copy2(path, staged.with_name(staged.name + ending))
    source = Store(f"sqlite:///{staged}")
    try:
        with source.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        if service.settings.database is not None:
            copy_ledger(source, service.store)
            return
        source.close()
        staged.rename(folder / LEDGER)
        key, witness = service.settings.private / "ledger.key", folder / f"{LEDGER}.witness"
        Ledger.open(folder / LEDGER, key=key, witness=witness, renew_witness=True).close()
    finally:
        source.close()
        _remove(staged)


def _remove(file: Path) -> None:
    """Remove a file of SQLite, and what lies beside it."""
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def _check_continues(ledger: Path, seen: Witness, what: str) -> None:
    """Refuse a ledger file that lacks an entry that another copy has."""
    if not ledger.is_file():
        raise ArgumentError(f"There is no ledger at {shown(str(ledger))}.")
    restored = Ledger.open(ledger, witness=None, read_only=True)
    try:
        restored.expect(seen)
    except LedgerTampered as error:
        raise LedgerTampered(f"{what}: it lacks entry {seen.sequence}.") from error
    finally:
        restored.close()


def _mend(tables: Store, folder: Path, *, keep_tokens: bool) -> None:
    """End what must not come back: sessions, links, tokens, workers, models without their file."""
    with tables.write() as connection:
        kinds = ("browser", "link") if keep_tokens else ("browser", "link", "api")
        ended = tokens.update().where(tokens.c.revoked.is_(None), tokens.c.kind.in_(kinds))
        connection.execute(ended.values(revoked=now()))
        connection.execute(workers.delete())  # those of the old server
        wanted = artifacts.c.state.in_(("checking", "ready"))
        for row in connection.execute(sa.select(artifacts.c.id).where(wanted)).all():
            if not any((folder / "artifacts").glob(f"{row.id}.*")):
                mine = artifacts.update().where(artifacts.c.id == row.id)
                connection.execute(mine.values(state="refused", words=GONE))
