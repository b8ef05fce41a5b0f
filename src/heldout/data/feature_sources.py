"""Where the features of private rows come from: a matrix, a column of texts, columns of flags."""

import hashlib
import itertools
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from heldout.data import sql
from heldout.data.feature_bound import mixed
from heldout.data.reading import or_raise
from heldout.data.text import Space
from heldout.errors import ArgumentError, DataError

__all__ = ["Flags", "Rows", "Stored", "Texts", "origin_digest"]

_MOST_FEATURES = 2**24


class Rows(Protocol):
    """Where the features of a row come from."""

    @property
    def features(self) -> int: ...
    @property
    def needs(self) -> tuple[str, ...]:
        """Columns of the table that must be there."""

    @property
    def kind(self) -> str:
        """What those columns hold, for a description."""

    def names(self) -> tuple[str, ...] | None: ...
    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]: ...
    def matrix(self, columns: sql.Columns) -> Any:
        """A sparse matrix of 0 and 1, a row for each fetched row."""


class Stored:
    """A matrix in memory; the table holds a digest of each row, and its place is the row's id."""

    needs: tuple[str, ...] = ()
    kind = "number"

    def __init__(self, matrix: Any) -> None:
        self._matrix = _binary(matrix)
        self.count, self.features = self._matrix.shape

    def names(self) -> None:
        return None

    def digests(self) -> list[str]:
        """The same features have the same digest, in whatever order rows come."""
        places = self._matrix.indices.astype("<i8")
        ends = self._matrix.indptr
        return [
            "row " + hashlib.blake2b(places[a:b].tobytes(), digest_size=16).hexdigest()
            for a, b in itertools.pairwise(ends)
        ]

    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]:
        return {"row_id": "held.rowid"}

    def matrix(self, columns: sql.Columns) -> Any:
        return self._matrix[np.asarray(columns["row_id"], dtype=np.int64)]


class Texts:
    """A column of texts, and a public space of words."""

    kind = "text"

    def __init__(self, column: str, space: Space) -> None:
        self._column, self.space = column, space
        self.needs = (column,)
        self.features = space.size

    def names(self) -> tuple[str, ...] | None:
        return self.space.names()

    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]:
        # By the number alone: one missing cell, or one 2.5, would give 10 the words of 10.0. The
        # doubles of a database are so by its catalogue, which no row changes.
        kind = types[self._column]
        declared = remote and kind in sql.BINARY_TYPES
        cell = sql.as_text(self._column) if declared else sql.canonical(self._column, kind)
        return {"words": f"coalesce({cell}, '')"}

    def matrix(self, columns: sql.Columns) -> Any:
        return _binary(self.space.matrix([str(each) for each in columns["words"]]))


class Flags:
    """Columns that are features by themselves."""

    kind = "number"

    def __init__(self, names: tuple[str, ...]) -> None:
        if not names or len(set(names)) < len(names):
            raise ArgumentError("features must be one column or more, each named once.")
        self.needs = names
        self.features = len(names)

    def names(self) -> tuple[str, ...]:
        return self.needs

    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]:
        def flag(name: str) -> str:
            number = sql.as_double(sql.column(name), types[name])
            return f"CAST(coalesce({number} <> 0 AND NOT isnan({number}), FALSE) AS TINYINT)"

        return {f"f{place}": flag(name) for place, name in enumerate(self.needs)}

    def matrix(self, columns: sql.Columns) -> Any:
        cells = [np.asarray(columns[f"f{place}"]) for place in range(self.features)]
        return _binary(np.stack(cells, axis=1))


def check_places(matrix: Any) -> None:
    """Raise a ValueError where indices of a sparse matrix point beyond it.

    They would be followed into memory that is not the matrix's.
    """
    from scipy import sparse

    kinds = {"csr": sparse.csr_array, "csc": sparse.csc_array}
    if matrix.format in kinds:
        parts = (matrix.data, matrix.indices, matrix.indptr)
        kinds[matrix.format](parts, shape=matrix.shape).check_format(full_check=True)
    elif matrix.format == "coo":
        for axis, places in enumerate((matrix.row, matrix.col)):
            if len(places) and not (places.min() >= 0 and places.max() < matrix.shape[axis]):
                raise ValueError("indices beyond the matrix")


def _binary(matrix: Any) -> Any:
    """A sparse matrix of 0 and 1, features of a row in rising order."""
    from scipy.sparse import csr_array, issparse

    def read() -> Any:
        if not issparse(matrix):
            dense = np.asarray(matrix)
            return csr_array(dense) if dense.ndim == 2 and dense.dtype.kind in "biuf" else None
        check_places(matrix)
        found = csr_array(matrix, copy=True)
        return found if found.ndim == 2 and found.dtype.kind in "biuf" else None

    def refused() -> ArgumentError:
        return ArgumentError("X must be a table of numbers with two axes.")

    found = or_raise(read, refused)
    if found is None:
        raise refused()
    if found.dtype.kind == "f" and not np.isfinite(found.data).all():
        raise DataError("X must be finite, but some cells are NaN or infinite. Mend them first.")
    found.sum_duplicates()
    found.eliminate_zeros()
    found.sort_indices()
    if 0 in found.shape or found.shape[1] > _MOST_FEATURES:
        raise DataError(f"X must have a row or more and 1 to {_MOST_FEATURES:,} features.")
    found.data = np.ones(len(found.data), dtype=np.int8)
    return found


def origin_digest(matrix: Any, labels: Any) -> bytes:
    """Of rows as they came, before a threshold made them 0 and 1; their order does not matter.

    Another threshold makes another matrix of the same people: by this they find their budget.
    """
    from scipy.sparse import csr_array

    found = csr_array(matrix, dtype=np.float64, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    cells = mixed(mixed(found.indices.astype(np.uint64)) ^ found.data.view(np.uint64))
    own = np.zeros(found.shape[0], dtype=np.uint64)
    np.add.at(own, np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)), cells)
    known: dict[Any, int] = {}
    for each in (labels := np.asarray(labels).tolist()):
        if each not in known:
            text = hashlib.blake2b(_spelt(each).encode(), digest_size=8).digest()
            known[each] = int.from_bytes(text, "big")
    rows = mixed(own ^ mixed(np.array([known[each] for each in labels], dtype=np.uint64)))
    sums = int(rows.sum(dtype=np.uint64)), int(np.bitwise_xor.reduce(rows))
    return hashlib.sha256(f"matrix {found.shape[0]} {sums}".encode()).digest()


def _spelt(label: Any) -> str:
    """1, 1.0, True and "1" are one label."""
    try:
        return repr(float(label))
    except (TypeError, ValueError):
        return str(label)
