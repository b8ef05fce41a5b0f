"""Where rows come from: files, tables and uploads, as a worker sees them.

The web may have no way to the rows, so a worker lists what there is, and reads the columns of what
a custodian chooses.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from heldout.data.engine import open_table, or_raise
from heldout.data.folder import files_of
from heldout.errors import ArgumentError, HeldoutError, UnreadableTable
from heldout.server.declaration import OWN_VARIABLES, check_place
from heldout.server.settings import Settings
from heldout.server.storage import Json

ENDINGS: Final = (".parquet", ".csv")
MOST_LISTED: Final = 500
"""Files, and tables of one database, that are offered."""
MOST_COLUMNS: Final = 1000
"""Columns that pages can ask about."""
SECONDS: Final = 5
"""Seconds within which a database must be reached."""
ROLE: Final = {"host": "host", "port": "port", "database": "dbname", "username": "user"}
"""Parts of a database's address that name the role: before the ? and after it."""
DEFAULTS: Final = {"port": "5432"}


def source_of(source: Mapping[str, Any], settings: Settings) -> object:
    """Return what a registered source stands for on this machine.

    Where a pattern, a folder or a link leads is seen here alone: the web may have no way to the
    rows. So every file is looked at once more.
    """
    if "upload" in source:
        return str(uploaded(source["upload"], settings))
    if "file" in source:
        for file in or_raise(lambda: _followed(Path(source["file"])), _unreadable):
            check_place(file, settings)
        return source["file"]
    if "spark" in source:
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate().table(source["spark"])
    from heldout.data.postgres import PostgresTable

    address = _address(source["database"], settings)
    return PostgresTable(address, table=source.get("table"), query=source.get("query"))


def _address(variable: str, settings: Settings) -> str:
    """Return the address of a database that rows may be taken from."""
    address = os.environ.get(variable)
    if address is None:
        raise UnreadableTable(
            f"The worker has no variable {variable} with the address of the database."
        )
    if settings.database is not None and _same_role(address, settings.database):
        raise ArgumentError(
            f"{variable} is the address of the server's own tables, under their owner's "
            "name. Give the rows a role of their own, which can read nothing else."
        )
    return address


def _followed(place: Path) -> list[Path]:
    """Return the files that a path stands for, wherever links lead."""
    files = [place] if place.is_file() else files_of(place) or [place]
    return [file.resolve() for file in files]


def _unreadable() -> UnreadableTable:
    return UnreadableTable("The rows cannot be read where they are. Check the path.")


def _same_role(address: str, own: str) -> bool:
    """Return whether two addresses are of one database, and of one user there."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError as NoAddress

    try:
        first, second = (make_url(url) for url in (address, own))
    except (NoAddress, ValueError):
        return False
    return all(_part_of(first, part) == _part_of(second, part) for part in ROLE)


def _part_of(url: Any, what: str) -> str:
    """Return a part of an address, wherever it stands there."""
    return str(url.query.get(ROLE[what]) or getattr(url, what) or DEFAULTS.get(what, ""))


# --- what there is -------------------------------------------------------------------------------


def offered(settings: Settings) -> Json:
    """Return the files and tables that a custodian may choose from: names, and nothing in them."""
    databases = {}
    for variable, address in sorted(os.environ.items()):
        own = variable.upper().startswith(OWN_VARIABLES)
        if not own and address.startswith(("postgresql://", "postgres://")):
            databases[variable] = _tables(variable, settings)
    return {"files": _files(settings), "databases": databases}


def _files(settings: Settings) -> list[str]:
    """Return the files in the folder of rows; folders of Parquet files as one."""
    root = (settings.rows or settings.folder / "rows").resolve()
    names: list[str] = []
    for folder, inner, files in os.walk(root):
        inner.sort()
        place = Path(folder)
        chosen = sorted(file for file in files if file.lower().endswith(ENDINGS))
        if place != root and len(chosen) > 1 and all(file.endswith(".parquet") for file in chosen):
            names.append(f"{place.relative_to(root)}/")
            inner.clear()
        else:
            names += [str((place / file).relative_to(root)) for file in chosen]
        if len(names) >= MOST_LISTED:
            break
    return names[:MOST_LISTED]


def _tables(variable: str, settings: Settings) -> list[str]:
    """Return the tables that the workers' role may read; none where it cannot be reached."""
    import psycopg

    query = (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema "
        "NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2 LIMIT %s"
    )
    try:
        address = _address(variable, settings)
        with psycopg.connect(address, connect_timeout=SECONDS) as connection:
            rows = connection.execute(query, [MOST_LISTED]).fetchall()
    except (HeldoutError, psycopg.Error):
        return []
    return [f"{schema}.{table}" for schema, table in rows]


def columns_of(source: Mapping[str, Any], settings: Settings) -> dict[str, str]:
    """Return the columns of a source with the types of its own schema. No row is read.

    Of a CSV file, which has no schema, every column is text until the custodian says otherwise.
    """
    columns = dict(open_table(source_of(source, settings), schema=None).columns)
    if len(columns) > MOST_COLUMNS:
        raise ArgumentError(
            f"It has {len(columns):,} columns, and the pages ask about {MOST_COLUMNS:,} at most. "
            "Register it by the API, or leave columns out."
        )
    return columns


# --- uploads -------------------------------------------------------------------------------------


def arrived(identity: str, ending: str, settings: Settings) -> Path:
    """Return where the web puts a file of rows until a worker takes it."""
    return settings.artifacts / f"rows-{identity}{ending}"


def uploaded(identity: str, settings: Settings) -> Path:
    """Return an uploaded file, in the folder that workers alone read."""
    for ending in ENDINGS:
        came, own = arrived(identity, ending, settings), _own(identity, ending, settings)
        if came.exists():
            _move(came, own)
        if own.exists():
            return own
    raise UnreadableTable("The uploaded rows are gone: they are removed once they were read.")


def _own(identity: str, ending: str, settings: Settings) -> Path:
    return settings.private / f"upload-{identity}{ending}"


def _move(came: Path, own: Path) -> None:
    """Move a file, whole, perhaps to another volume; nobody else may read it there."""
    import shutil

    partial = own.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with came.open("rb") as file:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(file, copy, 2**20)
    partial.replace(own)
    came.unlink(missing_ok=True)


def forget_upload(identity: str, settings: Settings) -> None:
    """Remove an uploaded file, wherever it is by now; the web removes what it put down alone."""
    for ending in ENDINGS:
        arrived(identity, ending, settings).unlink(missing_ok=True)
        _own(identity, ending, settings).unlink(missing_ok=True)
