"""Files, frames and arrays, read by the embedded DuckDB."""

import contextlib
import csv
import datetime
import functools
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from heldout.arguments import shown
from heldout.data import folder
from heldout.data.engine import MOST_COLUMNS, Unshown, as_numpy, check_names, or_raise
from heldout.data.sql import COUNTED, KEPT, Array, Columns, counted, text
from heldout.errors import ArgumentError, DataError, EmptyTable, UnreadableTable

if TYPE_CHECKING:
    import duckdb
    import pandas
    import pyarrow

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,  # nothing is fetched, whatever a file asks for
    "autoload_known_extensions": False,
    "temp_directory": "",  # private rows are never spilled to disk
    # What a file's footer says of its cells is not taken for true: a NULL that it denies would
    # pass as sound, and a label that it denies would be counted in another cell.
    "disabled_optimizers": "statistics_propagation",
    "preserve_insertion_order": True,  # which rows of a person count is kept by their place
}

MOST_KEPT = 2**26  # rows of people whose label and score are kept in memory: 0.6 GB

BATCH = 2**15  # rows, which are counted while they are near the processor

FEW_ROWS: Final = 1_000_000
"""Of more, a second copy in the engine would be felt."""

TYPES: Final = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}

T = TypeVar("T")


class DuckDBEngine:
    """A file scanned in place, or a frame copied into memory."""

    dialect = "duckdb"
    remote = False
    steady = True

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        source: str,
        *,
        file: Path | None = None,
        stamp: Callable[[], object] | None = None,
        dataset: Any = None,
        names_may_be_cells: bool = False,
    ) -> None:
        self._connection = connection
        self.source = source
        # Of Arrow, read in place.
        self._tables = {} if dataset is None else {source: Unshown(dataset)}
        self.ordered = dataset is None
        self.names_may_be_cells = names_may_be_cells
        self._file = file
        self._look = stamp or (lambda: None if file is None else _stamp(file))
        self._stamp = _or_unreadable(self._look, file)
        self.columns: dict[str, str] = {}
        described = self.fetch(f"SELECT * FROM (DESCRIBE SELECT * FROM {source})")
        self.columns = dict(zip(described["column_name"], described["column_type"], strict=True))

    def fetch(self, statement: str) -> Columns:
        wordy: list[str] = []

        def run() -> Columns:
            try:
                columns: Columns = self._cursor().execute(statement).fetchnumpy()
            except Exception as failure:  # the name of a declared column, and nothing else of it
                wordy.extend(set(_NO_NUMBER.findall(str(failure))) & set(self.columns))
                raise
            return columns

        return or_raise(run, lambda: _unreadable(self._file, *wordy))

    def _connect(self) -> "duckdb.DuckDBPyConnection":
        return self._connection

    def _cursor(self) -> "duckdb.DuckDBPyConnection":
        """Return a connection of its own: threads do not share one."""
        cursor = self._connect().cursor()
        for name, table in self._tables.items():
            cursor.register(name, table.open())
        return cursor

    def scan(self, statement: str, take: Callable[[Columns], None]) -> None:
        """Run one statement and hand over its columns, a batch of rows at a time."""

        def run() -> None:
            for batch in self.batches(statement):
                take({name: as_numpy(batch[name]) for name in batch.schema.names})

        _or_unreadable(run, self._file)

    def batches(self, statement: str, rows: int = BATCH) -> Iterator["pyarrow.RecordBatch"]:
        """Yield the answer in Arrow batches of at most so many rows, in the order of the table."""
        cursor = self._cursor()
        reader = _or_unreadable(lambda: cursor.sql(statement).to_arrow_reader(rows), self._file)
        while True:
            batch = _or_unreadable(lambda: next(reader, None), self._file)
            if batch is None:
                return
            yield batch

    def mark(self, counts: Array, columns: Mapping[str, str]) -> dict[str, str]:
        """Keep which rows count, and these columns of them unless they are too many; which."""
        import pyarrow

        self._tables[COUNTED] = Unshown(pyarrow.table({"counts": _arrow_numbers(counts)}))
        if not columns or int(counts.sum()) > MOST_KEPT:
            return {}
        self._copy(counted(source=self.source, columns=columns))
        return dict(columns)

    def hold(self, statement: str, *, rows: int) -> str | None:
        """Copy into memory, unless there are too many: of an Arrow data set, which has no order."""
        if rows > MOST_KEPT:
            return None
        self._copy(statement)
        return KEPT

    def _copy(self, statement: str) -> None:
        read = _or_unreadable(lambda: self._cursor().sql(statement).to_arrow_table(), self._file)
        self._tables[KEPT] = Unshown(read)

    def has_changed(self) -> bool:
        return _or_unreadable(self._look, self._file) != self._stamp


class ArraysEngine(DuckDBEngine):
    """Copies of a few NumPy arrays; DuckDB is opened when a statement is asked, if one is.

    A second way to validate rows, `heldout.Dataset._check_arrays`, reads `arrays` instead. It must
    give the very integers and refusals that statements give. What it is for: starting DuckDB takes
    9 ms, so `heldout.roc_auc_score` of 1,000 rows takes 2.2 ms with it and 19.7 ms without, and a
    simulation asks thousands of times (median of 20, November 2026, two cores).
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        copies = {name: array.copy() for name, array in arrays.items()}
        for array in copies.values():
            array.flags.writeable = False
        self._arrays = Unshown(copies)
        self.columns = {name: TYPES[array.dtype.name] for name, array in arrays.items()}
        self.source, self.ordered, self.names_may_be_cells = "heldout_rows", True, False
        self._tables, self._file = {}, None
        self._lock = threading.Lock()
        self._local: duckdb.DuckDBPyConnection | None = None

    @property
    def arrays(self) -> Mapping[str, Array]:
        return self._arrays.open()

    def has_changed(self) -> bool:
        return False

    def _connect(self) -> "duckdb.DuckDBPyConnection":
        with self._lock:
            if self._local is None:
                self._local = open_local(self.arrays)._connect()
            return self._local


def arrays_of(source: object) -> dict[str, Array] | None:
    """Return the columns of a dict of few NumPy arrays of numbers with nothing to refuse."""
    import numpy as np

    if type(source) is not dict or not source:
        return None
    for name, array in source.items():
        plain = type(array) is np.ndarray and array.ndim == 1 and array.dtype.isnative
        if not plain or array.dtype.name not in TYPES or not isinstance(name, str) or not name:
            return None
    lengths = {len(array) for array in source.values()}
    names = {name.lower() for name in source}
    few = len(lengths) == 1 and 0 < max(lengths) <= FEW_ROWS and len(names) == len(source) < 64
    return source if few and "\0" not in "".join(source) else None


def new_connection() -> "duckdb.DuckDBPyConnection":
    """Return a connection to an empty database in memory, which nobody else has."""
    import duckdb

    connection = duckdb.connect(":memory:", config=SETTINGS)
    # A moment is printed, and a text read as one, in the same way on every machine.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Cursors take this over. An interactive session would have a bar drawn over it; a notebook
    # without ipywidgets has none, and DuckDB refuses to turn it off there.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    return connection


def open_local(source: Any, *, schema: Mapping[str, str] | None = None) -> DuckDBEngine:
    """The engine for a path, a pandas, Polars or Arrow table, or a DuckDB relation."""
    connection = new_connection()
    if isinstance(source, str | os.PathLike):
        if folder.is_remote(os.fspath(source)):
            source = folder.arrow_dataset(os.fspath(source))
        else:
            return _open_file(connection, Path(source), schema)
    if folder.is_arrow_dataset(source) and schema is None:
        return _open_dataset(connection, source)
    if schema is not None:
        raise ArgumentError("schema= is for CSV files only. Leave it out.")
    # Before it is converted, which takes minutes and gigabytes for a million columns.
    named = () if _is_lazy(source) else getattr(source, "columns", ())
    columns = source if isinstance(source, Mapping) else named
    if _or_unreadable(lambda: len(columns) > MOST_COLUMNS, None):
        check_names([str(name) for name in columns], "the frame")
    incoming = _to_arrow(source)
    check_names(incoming.schema.names, "the frame")
    _or_unreadable(lambda: connection.register("heldout_incoming", incoming), None)
    # A copy: what a caller does to a frame afterwards changes nothing that was validated.
    copy = "CREATE TABLE heldout_rows AS SELECT * FROM heldout_incoming"
    _or_unreadable(lambda: connection.execute(copy), None)
    connection.unregister("heldout_incoming")
    return DuckDBEngine(connection, "heldout_rows")


def _open_dataset(connection: "duckdb.DuckDBPyConnection", dataset: Any) -> DuckDBEngine:
    """An Arrow data set, scanned where its files are; Arrow promises no order of their rows."""
    check_names(dataset.schema.names, "the data set")
    folder.check_dataset(dataset)
    stamp = functools.partial(folder.arrow_stamp, dataset)
    return DuckDBEngine(connection, "heldout_rows", stamp=stamp, dataset=dataset)


def _open_file(
    connection: "duckdb.DuckDBPyConnection", path: Path, schema: Mapping[str, str] | None
) -> DuckDBEngine:
    if not _is_file(path):
        files = _or_unreadable(lambda: folder.files_of(path), path)
        if files is not None:
            if schema is not None:
                raise ArgumentError("schema= is for CSV files only. Leave it out for Parquet.")
            check_names(_parquet_names(connection, files[0]), _named(path))
            root = path if path.is_dir() else Path(re.split(r"[*?\[]", str(path))[0]).parent
            reader = folder.reader(connection, files, root)
            return DuckDBEngine(
                connection,
                reader,
                file=path,
                stamp=lambda: [(file, _stamp(file)) for file in folder.files_of(path) or ()],
            )
        raise UnreadableTable(f"No such file or folder: {_named(path)}. Check the path.")
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        if schema is not None:
            raise ArgumentError("schema= is for CSV files only. Leave it out for Parquet.")
        check_names(_parquet_names(connection, path), _named(path))
        # A directory called year=2024 must not add a column.
        reader = f"read_parquet({folder.literally(path)}, hive_partitioning=false)"
        return DuckDBEngine(connection, reader, file=path)
    if kind in (".csv", ".tsv"):
        delimiter = "," if kind == ".csv" else "\t"
        names = _header(path, delimiter)
        if schema is not None and set(schema) != set(names):
            raise UnreadableTable(
                f"schema must name every column in the first line of {_named(path)} and no other."
            )
        # DuckDB takes the types by position, so they follow the file and not the schema.
        types = ", ".join(
            f"{text(name)}: {text(schema[name] if schema else 'VARCHAR')}" for name in names
        )
        # Every type is passed: a sniffed column of `inf` and blanks becomes a DATE.
        reader = (
            f"read_csv({folder.literally(path)}, columns={{{types}}}, delim={text(delimiter)}, "
            "quote='\"', escape='\"', header=true, auto_detect=false, hive_partitioning=false)"
        )
        engine = DuckDBEngine(connection, reader, file=path, names_may_be_cells=schema is None)
        if schema is not None:  # a cell of whatever column breaks it while the file is opened
            engine.fetch(f"SELECT count(COLUMNS(*)) FROM {reader}")
        return engine
    raise ArgumentError(
        f"table must be a .parquet, .csv or .tsv file, got {_named(path)}. "
        "Convert it, or pass a pandas, Polars or Arrow table."
    )


def _is_file(path: Path) -> bool:
    """Return True if there is such a file; False for a name that the system cannot spell."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _named(path: Path) -> str:
    return path.name if path.name.isprintable() and len(path.name) <= 60 else shown(path.name)


def _header(path: Path, delimiter: str) -> list[str]:
    def first_line() -> list[str]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return next(csv.reader(file, delimiter=delimiter), [])

    names = _or_unreadable(first_line, path)
    if not names:
        raise EmptyTable(f"No rows in {_named(path)}. Check the file.")
    # The index that pandas writes has no name, and DuckDB wants one.
    names = [name or f"unnamed_{position}" for position, name in enumerate(names)]
    check_names(names, _named(path))
    return names


def _parquet_names(connection: "duckdb.DuckDBPyConnection", path: Path) -> list[str]:
    """The columns as the file spells them; DuckDB renames those that clash."""
    query = f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({folder.literally(path)})"
    tree = iter(_or_unreadable(lambda: connection.execute(query).fetchall(), path))

    def skip(children: int) -> None:
        for _ in range(children):
            skip(next(tree)[1])

    names = []
    for _ in range(next(tree)[1]):
        name, children = next(tree)
        names.append(name)
        skip(children)
    return names


def _to_arrow(source: Any) -> "pyarrow.Table":
    """Return an Arrow table or stream of a frame, without importing the frame's library."""
    import pyarrow

    def table() -> "pyarrow.Table | None":
        if isinstance(source, pyarrow.Table):
            return source
        if type(source).__module__.split(".")[0] == "pandas":
            return pyarrow.Table.from_pandas(_without_objects(source), preserve_index=False)
        frame = source.collect() if _is_lazy(source) else source
        if isinstance(frame, pyarrow.RecordBatch) or hasattr(frame, "__arrow_c_stream__"):
            return pyarrow.table(frame)
        if not isinstance(frame, Mapping):
            return None
        return pyarrow.table(
            {
                name: arrow_column(values, str(name))
                if is_of_objects(values)
                else _arrow_numbers(values)
                for name, values in frame.items()
            }
        )

    if isinstance(source, Mapping):
        _check_as_long(_or_unreadable(lambda: _lengths(source), None))
    arrow = _or_unreadable(table, None)
    if arrow is not None:
        return arrow
    raise ArgumentError(
        "table must be a path, a pandas, Polars or Arrow table, a dict of columns or a DuckDB "
        f"relation, got {type(source).__name__}."
    )


def _lengths(columns: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}


def _check_as_long(lengths: Mapping[str, int]) -> None:
    """Refuse a dict whose columns differ in length, by name: the lengths may be private."""
    first, *others = lengths or ("",)
    for name in others:
        if lengths[name] != lengths[first]:
            raise UnreadableTable(
                f"The columns {first!r} and {name!r} differ in length. Pass one value per row in "
                "every column."
            )


def _arrow_numbers(values: Any) -> Any:
    """Return an array of numbers or booleans as Arrow's, and all else as it is.

    Arrow would import pandas first, to ask whether the array is one of its own.
    """
    import numpy as np
    import pyarrow

    plain = type(values) is np.ndarray and values.ndim == 1 and values.dtype.isnative
    if plain and values.dtype == bool:
        bits = pyarrow.py_buffer(np.packbits(values, bitorder="little"))
        return pyarrow.Array.from_buffers(pyarrow.bool_(), len(values), [None, bits])
    if not plain or values.dtype.name not in _NUMBERS:
        return values
    cells = pyarrow.py_buffer(np.ascontiguousarray(values))
    kind = pyarrow.type_for_alias(values.dtype.name)
    return pyarrow.Array.from_buffers(kind, len(values), [None, cells])


def _without_objects(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """The frame of pandas with its columns of Python objects as Arrow's."""
    import pandas

    places = [place for place in range(frame.shape[1]) if is_of_objects(frame.iloc[:, place])]
    if not places:
        return frame
    copy = frame.copy(deep=False)
    for place in places:
        cells = arrow_column(frame.iloc[:, place].tolist(), str(frame.columns[place]))
        copy.isetitem(place, pandas.arrays.ArrowExtensionArray(cells))
    return copy


def _is_lazy(source: Any) -> bool:
    """Return True for a lazy Polars frame, whose rows and columns are yet to be worked out."""
    return hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__")


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except OSError:
        return ()
    # The time of change as well: whoever sets the time of modification back moves that one.
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _or_unreadable(action: Callable[[], T], file: Path | None) -> T:
    return or_raise(action, lambda: _unreadable(file))


_NO_NUMBER: Final = re.compile(r'Error when converting column "([^"\n]+)"\.')


def _unreadable(file: Path | None, wordy: str = "", *_: str) -> DataError:
    what = "the frame" if file is None else _named(file)
    if wordy:
        return UnreadableTable(
            f"Column {shown(wordy)} must hold numbers, because it is declared so, but {what} has "
            "text there. Name another column. Words need a number each: "
            f"values={{{shown(wordy)}: {{'no': 0, 'yes': 1}}}}."
        )
    return UnreadableTable(
        f"table must be readable with its declared columns, but reading {what} failed. Check that "
        + ("all columns are equally long" if file is None else "the file is whole")
        + ", that each column holds one type, and that those that must be numbers, such as the "
        "score, hold no text."
    )


# --- columns of Python's own values: no cell changes what another one is -------------------------
#
# A library that makes a typed column of them looks at all cells first: one 17.0 makes doubles of
# all integers, one day among times cuts the others' hours off. Here a number keeps its value
# whatever the others are, and values of two kinds are refused, to the custodian, who opens the
# table.


DIGITS: Final = 38
_NUMBERS: Final = frozenset(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float32", "float64"]
)
"""Types that NumPy and Arrow lay out alike, and call alike."""
"""Of a decimal number, in DuckDB and in Arrow."""
_EXACT: Final = 2**53
_KINDS: Final = (
    (bool, "truth values"),
    ((int, float, Decimal), "numbers"),
    (str, "texts"),
    (datetime.datetime, "times"),
    (datetime.date, "days"),
)


def is_of_objects(values: Any) -> bool:
    """Return whether a column has no type of its own: Python objects, in whatever holds them.

    >>> is_of_objects([1, 17.0]), is_of_objects(range(3))
    (True, True)
    """
    kind = getattr(values, "dtype", None)
    if kind is None:  # a list or the like; Arrow's columns have a type
        return isinstance(values, Iterable) and not hasattr(values, "type")
    categories = getattr(kind, "categories", None)
    return str(getattr(categories, "dtype", kind)) == "object"


def arrow_column(values: Iterable[Any], name: str) -> "pyarrow.Array":
    """An Arrow column of Python values, each of which keeps its own value.

    >>> arrow_column([1, 2.5], "x").type, arrow_column([2**53 + 1, 2.5], "x").to_pylist()
    (DataType(double), [Decimal('9007199254740993.0'), Decimal('2.5')])
    >>> arrow_column([1, "a"], "x")
    Traceback (most recent call last):
    heldout.errors.UnreadableTable: column 'x' must hold values of one kind, ...
    """
    import pyarrow

    cells = list(values)
    types = set(map(type, cells)) - {type(None)}
    if types not in ({str}, {bool}):
        cells = [_plain(cell) for cell in cells]
        types = set(map(type, cells)) - {type(None)}
    kinds = {_kind(kind) for kind in types}
    if "times" in kinds and len({_has_zone(cell) for cell in cells if cell is not None}) > 1:
        kinds.add("times with a zone")  # Arrow would give all of them one, or none
    if len(kinds) > 1:
        raise UnreadableTable(
            f"column {name!r} must hold values of one kind, but some are numbers and some texts, "
            "or the like. Make all of them texts, or all numbers."
        )
    return pyarrow.array(_numbers(cells, name) if kinds == {"numbers"} else cells)


def _plain(value: Any) -> object:
    """A scalar of NumPy or pandas as Python's own; None for what is missing."""
    kind = type(value)
    if kind is int or kind is str:
        return value
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float | Decimal):
        return None if math.isnan(value) else value
    return None if kind.__name__ in ("NAType", "NaTType") else value


def _kind(own: type) -> str:
    return next((kind for kinds, kind in _KINDS if issubclass(own, kinds)), own.__name__)


def _has_zone(cell: Any) -> bool:
    return getattr(cell, "tzinfo", None) is not None


def _numbers(cells: Sequence[Any], name: str) -> Sequence[Any]:
    """The numbers as they are where a type holds them all; else as decimals, which are exact."""
    numbers = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, int) and -(2**63) <= cell < 2**63 for cell in numbers):
        return cells
    if all(isinstance(cell, float) or _is_exact(cell) for cell in numbers):
        return [None if cell is None else float(cell) for cell in cells]
    decimals = [None if cell is None else _decimal(cell) for cell in cells]
    known = [cell for cell in decimals if cell is not None]
    finite = all(cell.is_finite() for cell in known)
    scale = max((-int(cell.as_tuple().exponent) for cell in known if finite), default=0)
    whole = max((cell.adjusted() + 1 for cell in known if finite), default=1)
    if not finite or max(scale, 0) + max(whole, 1) > DIGITS:
        raise UnreadableTable(
            f"column {name!r} must hold numbers of at most {DIGITS} digits where some are decimals "
            "or beyond 64 bits. Round them, or make them texts."
        )
    return decimals


def _is_exact(cell: Any) -> bool:
    return isinstance(cell, int) and abs(cell) < _EXACT


def _decimal(cell: Any) -> Decimal:
    """The digits that `heldout.data.sql.canonical` writes of a double: all, if it is whole."""
    return Decimal(repr(cell) if isinstance(cell, float) and not cell.is_integer() else cell)
