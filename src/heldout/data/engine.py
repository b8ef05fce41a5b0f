"""Opens a table where it is: files and frames here, a database or a cluster elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from heldout.data.sql import Columns
from heldout.errors import ArgumentError


class Engine(Protocol):
    """Where private rows live. One statement in, a few columns out."""

    dialect: str
    remote: bool  # elsewhere than in this process: rows have no order, and are known by their keys
    source: str
    columns: dict[str, str]  # the custodian's names, and the types as DuckDB calls them
    steady: bool  # known to give the same rows each time; else it is read twice and compared
    ordered: bool  # rows have an order, the same each time
    copied: bool  # into memory: every cell was read, so none can fail later
    names_may_be_cells: bool  # a CSV file without a header has a row where the names should be

    def fetch(self, statement: str) -> Columns:
        """Run one statement, given in DuckDB's dialect; its columns as NumPy arrays."""

    def has_changed(self) -> bool:
        """Whether the table is no longer the one that was validated."""


class Elsewhere(ABC):
    """What a caller passes for a table that is not a file or a frame: it opens itself."""

    @abstractmethod
    def open(self) -> Engine:
        """Connect, and make sure that every statement will read the same rows."""


def open_table(source: Any, *, schema: Mapping[str, str] | None = None) -> Engine:
    """The engine for a file, a frame (of Spark too), or whatever is `Elsewhere`."""
    from heldout.data.postgres import is_address

    if _is_spark(source):
        from heldout.data.spark import SparkTable

        source = SparkTable(source)
    if isinstance(source, Elsewhere):
        if schema is not None:
            raise ArgumentError("schema= is for CSV files only. Leave it out.")
        return source.open()
    if isinstance(source, str) and is_address(source):
        raise ArgumentError("Say which rows of the database: pass table= or query=.")
    from heldout.data.arrays import ArraysEngine, arrays_of
    from heldout.data.duckdb_engine import open_local

    arrays = arrays_of(source) if schema is None else None
    return open_local(source, schema=schema) if arrays is None else ArraysEngine(arrays)


def name_of(source: Any) -> str:
    """What to call rows that were given no name; never anything of a database's address."""
    import os

    from heldout.data.postgres import PostgresTable, is_address

    if isinstance(source, PostgresTable):
        return source.table or "query"
    if isinstance(source, str | os.PathLike) and not is_address(os.fspath(source)):
        return os.path.basename(os.fspath(source))  # noqa: PTH119
    return "data"


def _is_spark(source: Any) -> bool:
    return type(source).__module__.split(".")[0] == "pyspark"
