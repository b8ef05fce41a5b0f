"""Where the features of private rows come from: a matrix, a column of texts, columns of flags.

Features are public before anybody looks at the rows, and a row sets at most so many of them.
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from heldout.arguments import as_whole, shown
from heldout.arguments.rules import Flag, Whole
from heldout.data import sql
from heldout.data.engine import or_raise
from heldout.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_WORD = r"(?u)\b\w\w+\b|[£$€]|\d+"


class Space(Protocol):
    """A public set of features, and how a text sets some of them. Row by row."""

    @property
    def size(self) -> int: ...
    def names(self) -> tuple[str, ...] | None:
        """Return the features' names, where they are known."""

    def matrix(self, texts: Sequence[str]) -> "csr_array":
        """A sparse row of 0 and 1 for each text; it depends on that text alone."""


@dataclass(frozen=True)
class HashedText:
    """Words, or runs of up to `longest` words, by their place in a table of public size.

    Nothing is learnt: the hash of a word says where it goes, so any text has features, and no
    feature tells that somebody used a certain word. Two words may share a place; a larger table
    makes that rarer, and lets more places in by chance. `stop_words` leaves out the commonest
    English words, which say more than one would think: keep them unless you know better.

    >>> HashedText(size=1024).matrix(["cash prize tomorrow"]).nnz
    3
    """

    size: int = 2**12
    longest: int = 1
    stop_words: bool = False

    def __post_init__(self) -> None:
        Whole(2, 2**24)(self.size, "size")
        if as_whole(self.longest) not in (1, 2, 3):
            raise ArgumentError(f"longest must be 1, 2 or 3 words, got {shown(self.longest)}.")
        Flag()(self.stop_words, "stop_words")

    def names(self) -> None:
        return None

    def matrix(self, texts: Sequence[str]) -> "csr_array":
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(
            n_features=self.size,
            ngram_range=(1, self.longest),
            stop_words="english" if self.stop_words else None,
            token_pattern=_WORD,
            binary=True,
            norm=None,
            alternate_sign=False,
        )
        return vectorizer.transform(_texts(texts))

    def places(self, words: Iterable[str]) -> dict[str, int]:
        """Where public words go: what a selected feature may stand for.

        >>> sorted(HashedText(size=64).places(["cash", "lunch"]))
        ['cash', 'lunch']
        """
        known = _texts(words)
        rows = self.matrix([*known, ""])
        starts, sizes = rows.indptr[:-1], rows.indptr[1:] - rows.indptr[:-1]
        return {
            word: int(rows.indices[start])
            for word, start, size in zip(known, starts, sizes, strict=False)
            if size == 1
        }


@dataclass(frozen=True)
class Vocabulary:
    """A declared list of words. It must come from outside the private texts.

    >>> Vocabulary(("cash", "prize")).matrix(["Cash now!"]).toarray().tolist()
    [[1, 0]]
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        words = tuple(word.lower() for word in _texts(self.words))
        if not words or len(set(words)) < len(words):
            raise ArgumentError("words must be one or more, each named once.")
        object.__setattr__(self, "words", words)

    @property
    def size(self) -> int:
        return len(self.words)

    def names(self) -> tuple[str, ...]:
        return self.words

    def matrix(self, texts: Sequence[str]) -> "csr_array":
        from sklearn.feature_extraction.text import CountVectorizer

        longest = max(len(word.split()) for word in self.words)
        vectorizer = CountVectorizer(
            vocabulary=self.words, ngram_range=(1, longest), token_pattern=_WORD, binary=True
        )
        return vectorizer.transform(_texts(texts))


def _texts(texts: Iterable[str]) -> list[str]:
    """Texts that have words in UTF-8; what is refused is not quoted, for it may be private."""
    try:
        listed = [] if isinstance(texts, str | bytes) else list(texts)
    except Exception:
        listed = []
    if not listed or not all(isinstance(text, str) for text in listed):
        raise ArgumentError("texts and words must be a list of texts.")
    # A lone surrogate has no place in UTF-8, and the hash of a word is that of its UTF-8.
    return [text.encode("utf-8", "replace").decode("utf-8") for text in listed]


_MOST_FEATURES = 2**24


class FeatureSource(Protocol):
    """Where the features of a row come from."""

    @property
    def features(self) -> int: ...
    @property
    def needs(self) -> tuple[str, ...]:
        """Columns of the table that must be there."""

    @property
    def kind(self) -> str:
        """Return what those columns hold, for a description."""

    def names(self) -> tuple[str, ...] | None: ...
    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]: ...
    def matrix(self, columns: sql.Columns) -> "csr_array":
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

    def matrix(self, columns: sql.Columns) -> "csr_array":
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

    def matrix(self, columns: sql.Columns) -> "csr_array":
        return _binary(self.space.matrix([str(words) for words in columns["words"]]))


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

    def matrix(self, columns: sql.Columns) -> "csr_array":
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


def _binary(matrix: Any) -> "csr_array":
    """A sparse matrix of 0 and 1, features of a row in rising order."""
    from scipy.sparse import csr_array, issparse

    def read() -> "csr_array | None":
        if not issparse(matrix):
            dense = np.asarray(matrix)
            return csr_array(dense) if dense.ndim == 2 and dense.dtype.kind in "biuf" else None
        check_places(matrix)
        binary = csr_array(matrix, copy=True)
        return binary if binary.ndim == 2 and binary.dtype.kind in "biuf" else None

    def refused() -> ArgumentError:
        return ArgumentError("X must be a table of numbers with two axes.")

    binary = or_raise(read, refused)
    if binary is None:
        raise refused()
    if binary.dtype.kind == "f" and not np.isfinite(binary.data).all():
        raise DataError("X must be finite, but some cells are NaN or infinite. Mend them first.")
    binary.sum_duplicates()
    binary.eliminate_zeros()
    binary.sort_indices()
    if 0 in binary.shape or binary.shape[1] > _MOST_FEATURES:
        raise DataError(f"X must have a row or more and 1 to {_MOST_FEATURES:,} features.")
    binary.data = np.ones(len(binary.data), dtype=np.int8)
    return binary


def origin_digest(matrix: Any, labels: Any) -> bytes:
    """Of rows as they came, before a threshold made them 0 and 1; their order does not matter.

    Another threshold makes another matrix of the same people: by this they find their budget.
    """
    from scipy.sparse import csr_array

    sparse = csr_array(matrix, dtype=np.float64, copy=True)
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    cells = mixed(mixed(sparse.indices.astype(np.uint64)) ^ sparse.data.view(np.uint64))
    own = np.zeros(sparse.shape[0], dtype=np.uint64)
    np.add.at(own, np.repeat(np.arange(sparse.shape[0]), np.diff(sparse.indptr)), cells)
    known: dict[Any, int] = {}
    for label in (labels := np.asarray(labels).tolist()):
        if label not in known:
            text = hashlib.blake2b(_spelt(label).encode(), digest_size=8).digest()
            known[label] = int.from_bytes(text, "big")
    rows = mixed(own ^ mixed(np.array([known[label] for label in labels], dtype=np.uint64)))
    sums = int(rows.sum(dtype=np.uint64)), int(np.bitwise_xor.reduce(rows))
    return hashlib.sha256(f"matrix {sparse.shape[0]} {sums}".encode()).digest()


def _spelt(label: Any) -> str:
    """1, 1.0, True and "1" are one label."""
    try:
        return repr(float(label))
    except (TypeError, ValueError):
        return str(label)


def bounded(matrix: "csr_array", most: int) -> "csr_array":
    """The same rows with at most `most` features each; which ones stay is as good as random.

    Claim:       neighbours stay neighbours: row i of the result depends on row i alone, and has
                 at most `most` entries.                              [claim: features-per-row]
    Neighbours:  replace-one and add-remove, by row or by unit.
    Sensitivity: a feature's place in the queue is a hash of the feature and of the set of features
                 of its own row; no other row, label or random number takes part.
    Numerics:    exact, modulo 2^64.
    Refuses:     nothing.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 3.2 (sampling); proofs.
    Cost:        a sort of the entries of the rows that are over the bound.

    >>> from scipy.sparse import csr_array
    >>> bounded(csr_array(np.ones((2, 5), dtype=np.int8)), 3).sum(axis=1).tolist()
    [3, 3]
    """
    from scipy.sparse import csr_array

    matrix = csr_array(matrix)
    sizes = np.diff(matrix.indptr)
    if not (sizes > most).any():
        return matrix
    row = np.repeat(np.arange(matrix.shape[0]), sizes)
    feature = mixed(matrix.indices.astype(np.uint64))
    own = np.zeros(matrix.shape[0], dtype=np.uint64)
    np.add.at(own, row, feature)
    queue = mixed(feature ^ mixed(own)[row])
    # Within a row by its queue; the feature's number decides where two hashes agree.
    order = np.lexsort((matrix.indices, queue, row))
    place = np.arange(len(order)) - matrix.indptr[:-1][row[order]]
    chosen = np.sort(order[place < most])
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return csr_array((matrix.data[chosen], matrix.indices[chosen], starts), shape=matrix.shape)


def mixed(number: sql.Array) -> sql.Array:
    """SplitMix64's last step: close numbers come out far apart."""
    with np.errstate(over="ignore"):
        number = (number + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(number ^ (number >> np.uint64(31)))
