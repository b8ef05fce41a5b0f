"""Engines: where private rows live, how they are opened, and how reading fails without a reason."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

from heldout.arguments import shown
from heldout.data.sql import Array, Columns
from heldout.errors import ArgumentError, HeldoutError, UnreadableTable

T = TypeVar("T")

HOUR = 3600.0
LONGEST = 2_000_000  # seconds; PostgreSQL counts milliseconds in 32 bits

MOST_COLUMNS = 4096
"""A CSV file of so many takes 1.3 GB and 5 seconds to open, and every further column its share."""


class Engine(Protocol):
    """Where private rows live. One statement in, a few columns out."""

    dialect: str
    remote: bool  # elsewhere than in this process: rows have no order, and are known by their keys
    source: str
    columns: dict[str, str]  # the custodian's names, and the types as DuckDB calls them
    steady: bool  # known to give the same rows each time; else it is read twice and compared
    ordered: bool  # rows have an order, the same each time
    names_may_be_cells: bool  # a CSV file without a header has a row where the names should be

    def fetch(self, statement: str) -> Columns:
        """Run one statement, given in DuckDB's dialect; its columns as NumPy arrays."""

    def has_changed(self) -> bool:
        """Return True if the table is no longer the one that was validated."""


class Elsewhere(ABC):
    """Describes a table that is not a file or a frame, for a caller to pass: it opens itself."""

    @abstractmethod
    def open(self) -> Engine:
        """Connect, and make sure that every statement will read the same rows."""


def open_table(source: Any, *, schema: Mapping[str, str] | None = None) -> Engine:
    """Return the engine for a file, a frame (of Spark too), or whatever is `Elsewhere`."""
    from heldout.data.postgres import is_address

    if type(source).__module__.split(".")[0] == "pyspark":
        from heldout.data.spark import SparkTable

        source = SparkTable(source)
    if isinstance(source, Elsewhere):
        if schema is not None:
            raise ArgumentError("schema= is for CSV files only. Leave it out.")
        return source.open()
    if isinstance(source, str) and is_address(source):
        raise ArgumentError("Say which rows of the database: pass table= or query=.")
    from heldout.data.duckdb import ArraysEngine, arrays_of, open_local

    arrays = arrays_of(source) if schema is None else None
    return open_local(source, schema=schema) if arrays is None else ArraysEngine(arrays)


def name_of(source: object) -> str:
    """Return what to call rows without a name; never anything of a database's address."""
    import os

    from heldout.data.postgres import PostgresTable, is_address

    if isinstance(source, PostgresTable):
        return source.table or "query"
    if isinstance(source, str | os.PathLike) and not is_address(os.fspath(source)):
        return os.path.basename(os.fspath(source))  # noqa: PTH119
    return "data"


class Unshown(Generic[T]):
    """Rows or counts that statements read: everything that would show them refuses.

    >>> {"rows": Unshown([("Ada", 1)])}
    {'rows': <private rows>}
    """

    __slots__ = ("_rows",)
    what: ClassVar[str] = "private rows"

    def __init__(self, rows: T) -> None:
        self._rows = rows

    def open(self) -> T:
        """Return the rows, to whoever reads rows alone."""
        return self._rows

    def __repr__(self) -> str:
        return f"<{self.what}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{self.what} must not be pickled or copied.")

    def __getstate__(self) -> NoReturn:
        raise TypeError(f"{self.what} must not be pickled or copied.")


def or_raise(action: Callable[[], T], error: Callable[[], HeldoutError]) -> T:
    """Run it; if it fails, raise our error without the library's own, which may quote a cell.

    It is raised outside the handler, so that not even its context holds the library's message.
    What Ctrl-C stopped did not fail: DuckDB tells of it by an error of its own.
    """
    stopped = False
    try:
        return action()
    except HeldoutError:
        raise
    except Exception as failure:
        stopped = "Interrupt" in type(failure).__name__ or str(failure)[:10] == "INTERRUPT "
    raise KeyboardInterrupt if stopped else error()


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns that an engine would rename or confuse, and more than it can hold."""
    if len(names) > MOST_COLUMNS:
        raise UnreadableTable(
            f"columns of {where} must be at most {MOST_COLUMNS:,}, got {len(names):,}. Keep the "
            "label, the score and the keys, and leave out what is not needed."
        )
    if not all(names) or "\0" in "".join(names):
        raise UnreadableTable(
            f"columns of {where} must have names without NUL. Rename those that do not."
        )
    if len({name.lower() for name in names}) < len(names):
        raise UnreadableTable(
            f"columns of {where} must have distinct names, whatever their case. Rename the copies."
        )


def check_new(name: str, columns: Sequence[str]) -> None:
    """Refuse to write a column of scores that is there already."""
    if name.lower() in {column.lower() for column in columns}:
        raise UnreadableTable(
            f"The table has a column {name!r} already. Give the model's scores another name "
            "with into=."
        )


def as_numpy(column: Any) -> Array:
    """Return an Arrow column as NumPy holds it, masked where it is NULL."""
    import numpy as np

    if column.null_count:
        filled = [0 if value is None else value for value in column.to_pylist()]
        masked: Array = np.ma.array(filled, mask=np.asarray(column.is_null()))
        return masked
    # Arrow's own conversion imports pandas, which takes a third of a second.
    plain = str(column.type).startswith(("int", "uint", "double"))
    if plain and hasattr(column, "__dlpack__"):
        return np.from_dlpack(column)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def checked_timeout(timeout: float) -> float:
    """Return the seconds that one statement may take, checked."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= LONGEST:
        raise ArgumentError(
            f"timeout must be a number of seconds, at most {LONGEST:,}, got {shown(timeout)}."
        )
    return float(timeout)
