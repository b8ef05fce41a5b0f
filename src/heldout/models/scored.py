"""The scored table: private rows, with a model's scores beside them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heldout.errors import ArgumentError, EmptyTable

__all__ = ["ScoredRows", "Writer"]

ROW_GROUP = 2**17  # rows that a file's writer holds


class ScoredRows:
    """A private table that `heldout.Dataset` and its kin take; it shows nothing of its rows.

    `to_arrow()` hands the rows to the custodian, whose they are. They must not reach an analyst.
    """

    def __init__(
        self, table: Any, *, row_key: str | None, scores: tuple[str, ...], path: Path | None = None
    ) -> None:
        self._table, self.path = table, path
        self.row_key, self.scores = row_key, scores
        self.columns: list[str] = list(table.schema.names)

    def to_arrow(self) -> Any:
        """The custodian's rows and the scores, as an Arrow table."""
        import pyarrow.parquet

        return self._table if self.path is None else pyarrow.parquet.read_table(self.path)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"ScoredRows(scores={list(self.scores)}, row_key={self.row_key!r})"

    def __getstate__(self) -> object:
        raise TypeError("ScoredRows holds private rows and must not be pickled.")


class ScoredFile(ScoredRows, os.PathLike[str]):
    """The same, in a Parquet file that is read in place."""

    def __fspath__(self) -> str:
        return str(self.path)


class Writer:
    """Collects scored batches, in memory or in a new file."""

    def __init__(self, out: str | os.PathLike[str] | None) -> None:
        self._batches: list[Any] = []
        self._file: Any = None
        self._path = None if out is None else Path(out)
        if self._path is None:
            return
        if self._path.suffix.lower() != ".parquet":
            raise ArgumentError("out must be a new .parquet file.")
        try:
            # The rows are private: nobody else may read the file.
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:
            raise ArgumentError("out must be a new file in a folder that exists.") from None

    def add(self, batch: Any, scores: Mapping[str, Any]) -> None:
        import pyarrow
        import pyarrow.parquet

        for name, values in scores.items():
            batch = batch.append_column(name, pyarrow.array(values, pyarrow.float64()))
        self._batches.append(batch)
        if self._path is None:
            return
        if self._file is None:
            self._file = pyarrow.parquet.ParquetWriter(self._path, batch.schema)
        if sum(each.num_rows for each in self._batches) >= ROW_GROUP:
            self._write()

    def _write(self) -> None:
        import pyarrow

        if self._batches:
            self._file.write_table(pyarrow.Table.from_batches(self._batches))
            self._batches.clear()

    def discard(self) -> None:
        """Leave nothing of a table that could not be finished."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def finish(self, *, row_key: str | None, scores: tuple[str, ...]) -> ScoredRows:
        import pyarrow

        if self._file is not None:
            self._write()
            self._file.close()
            empty = self._file.schema.empty_table()
            return ScoredFile(empty, row_key=row_key, scores=scores, path=self._path)
        if not self._batches:
            raise EmptyTable("table must have at least one row. Check the file.")
        table = pyarrow.Table.from_batches(self._batches)
        return ScoredRows(table, row_key=row_key, scores=scores)
