"""Opens a table where it is and answers statements about it, with the embedded DuckDB."""

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from heldout.data.sql import Columns, identifier, text
from heldout.errors import ArgumentError, DataError, EmptyTable, UnreadableTable

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,  # nothing is fetched, whatever a file asks for
    "autoload_known_extensions": False,
    "temp_directory": "",  # private rows are never spilled to disk
    "perfect_ht_threshold": 20,  # counts by score cell in an array, not in a hash table
}


class Engine(Protocol):
    """Where private rows live. One statement in, a few columns out."""

    dialect: str
    source: str
    columns: dict[str, str]

    def fetch(self, statement: str) -> Columns:
        """Run one statement and return its columns as NumPy arrays."""

    def has_changed(self) -> bool:
        """Whether the table is no longer the one that was validated."""


class DuckDBEngine:
    """A file scanned in place, or a frame copied into memory."""

    dialect = "duckdb"

    def __init__(self, connection: Any, source: str, *, file: Path | None = None) -> None:
        self._connection = connection
        self.source = source
        self._file = file
        self._stamp = _stamp(file)
        try:
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        except Exception:
            raise _unreadable(file) from None
        self.columns = {row[0]: row[1] for row in described}

    def fetch(self, statement: str) -> Columns:
        # A cursor is a connection of its own: threads do not share one.
        try:
            result: Columns = self._connection.cursor().execute(statement).fetchnumpy()
        except Exception:
            # The engine's own message may quote a cell of the table.
            raise _unreadable(self._file) from None
        return result

    def has_changed(self) -> bool:
        return _stamp(self._file) != self._stamp


def open_table(source: Any, *, schema: Mapping[str, str] | None = None) -> Engine:
    """The engine for a path, a pandas, Polars or Arrow table, or a DuckDB relation."""
    import duckdb

    connection = duckdb.connect(":memory:", config=SETTINGS)
    if isinstance(source, str | os.PathLike):
        return _open_file(connection, Path(source), schema)
    if schema is not None:
        raise ArgumentError("schema must be left out unless the table is a CSV file.")
    connection.register("heldout_incoming", _to_arrow(source))
    try:
        # A copy: what a caller does to a frame afterwards changes nothing that was validated.
        connection.execute("CREATE TABLE heldout_rows AS SELECT * FROM heldout_incoming")
    except Exception:
        raise _unreadable(None) from None
    connection.unregister("heldout_incoming")
    return DuckDBEngine(connection, "heldout_rows")


def _open_file(connection: Any, path: Path, schema: Mapping[str, str] | None) -> Engine:
    if not path.is_file():
        raise UnreadableTable(f"table must be a file that exists, got {path.name}. Check the path.")
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        if schema is not None:
            raise ArgumentError("schema must be left out for Parquet, which carries its own.")
        return DuckDBEngine(connection, f"read_parquet({text(str(path))})", file=path)
    if kind in (".csv", ".tsv"):
        delimiter = "," if kind == ".csv" else "\t"
        columns = dict(schema) if schema else dict.fromkeys(_header(path, delimiter), "VARCHAR")
        types = ", ".join(f"{text(name)}: {text(type_)}" for name, type_ in columns.items())
        # Every type is passed: a sniffed column of `inf` and blanks becomes a DATE.
        reader = (
            f"read_csv({text(str(path))}, columns={{{types}}}, delim={text(delimiter)}, "
            "quote='\"', escape='\"', header=true, auto_detect=false)"
        )
        return DuckDBEngine(connection, reader, file=path)
    raise ArgumentError(
        f"table must be a .parquet, .csv or .tsv file, got {path.name}. "
        "Convert it, or pass a pandas, Polars or Arrow table."
    )


def _header(path: Path, delimiter: str) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=delimiter), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        raise _unreadable(path) from None
    if not names:
        raise EmptyTable(f"table must have a row, got none in {path.name}. Check the file.")
    if len(set(names)) < len(names):
        raise UnreadableTable(
            f"columns of {path.name} must have distinct names. Rename one of the two."
        )
    return names


def _to_arrow(source: Any) -> Any:
    """An Arrow table or stream of a frame, without importing the frame's library."""
    import pyarrow

    if isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        return pyarrow.table(source) if isinstance(source, pyarrow.RecordBatch) else source
    try:
        if type(source).__module__.split(".")[0] == "pandas":
            return pyarrow.Table.from_pandas(source, preserve_index=False)
        if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
            source = source.collect()  # a lazy Polars frame
        if hasattr(source, "__arrow_c_stream__"):
            return pyarrow.table(source)
        if isinstance(source, Mapping):
            return pyarrow.table(dict(source))
    except Exception:
        raise _unreadable(None) from None
    raise ArgumentError(
        f"table must be a path, a pandas, Polars or Arrow table, or a DuckDB relation, "
        f"got {type(source).__name__}."
    )


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_size, status.st_mtime_ns, status.st_ino)


def _unreadable(file: Path | None) -> DataError:
    what = "the frame" if file is None else file.name
    return UnreadableTable(
        f"table must be readable with its declared columns, but reading {what} failed. "
        "Check that the file is whole and that each column holds one type."
    )


def quoted_columns(engine: Engine) -> dict[str, str]:
    """Each column's name, quoted, with its type."""
    return {identifier(name): type_ for name, type_ in engine.columns.items()}
