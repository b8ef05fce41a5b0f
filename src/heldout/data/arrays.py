"""A few NumPy arrays: what is plain about them needs no engine."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from heldout.data.duckdb_engine import BATCH, DuckDBEngine, open_local
from heldout.data.sql import Columns
from heldout.data.unshown import Unshown

__all__ = ["ArraysEngine", "arrays_of"]

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


class ArraysEngine:
    """Copies of the arrays. DuckDB, which opens more slowly than it answers, is opened when asked.

    Whoever reads `arrays` instead must give the very integers and refusals that statements give.
    """

    dialect = "duckdb"
    remote = False
    ordered = True
    steady = True
    copied = True
    names_may_be_cells = False
    source = "heldout_rows"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        copies = {name: each.copy() for name, each in arrays.items()}
        for each in copies.values():
            each.flags.writeable = False
        self._arrays = Unshown(copies)
        self.columns = {name: TYPES[each.dtype.name] for name, each in arrays.items()}
        self._lock = threading.Lock()
        self._opened: DuckDBEngine | None = None

    @property
    def arrays(self) -> Mapping[str, Any]:
        return self._arrays.open()

    def fetch(self, statement: str) -> Columns:
        return self._engine().fetch(statement)

    def scan(self, statement: str, take: Callable[[Columns], None]) -> None:
        self._engine().scan(statement, take)

    def batches(self, statement: str, rows: int = BATCH) -> Iterator[Any]:
        return self._engine().batches(statement, rows)

    def keep(self, counts: Any, columns: Mapping[str, str], held: Any = None) -> dict[str, str]:
        return self._engine().keep(counts, columns, held)

    def has_changed(self) -> bool:
        return False

    def _engine(self) -> DuckDBEngine:
        with self._lock:
            if self._opened is None:
                self._opened = open_local(self.arrays)
            return self._opened


def arrays_of(source: Any) -> dict[str, Any] | None:
    """The columns, if they are a dict of few NumPy arrays of numbers with nothing to refuse."""
    import numpy as np

    if type(source) is not dict or not source:
        return None
    for name, each in source.items():
        plain = type(each) is np.ndarray and each.ndim == 1 and each.dtype.isnative
        if not plain or each.dtype.name not in TYPES or not isinstance(name, str) or not name:
            return None
    lengths = {len(each) for each in source.values()}
    names = {name.lower() for name in source}
    few = len(lengths) == 1 and 0 < max(lengths) <= FEW_ROWS and len(names) == len(source) < 64
    return source if few and "\0" not in "".join(source) else None
