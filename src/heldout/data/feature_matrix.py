"""Private rows of 0/1 features with a label: what is selected from and trained on."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Unpack

import numpy as np

from heldout.arguments import Ends, Flag, Number, Whole, as_array, as_whole, shown
from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.description import Description, kind_declared
from heldout.data.engine import or_raise
from heldout.data.sql import Array
from heldout.data.table import Custody, PrivateTable
from heldout.data.validation import other_label
from heldout.errors import ArgumentError, DataError
from heldout.kernel.neighbours import Neighbours

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Where the features of private rows come from: a matrix, a column of texts, columns of flags.
#
# Features are public before anybody looks at the rows, and a row sets at most so many of them.
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
            raise ArgumentError("Pass at least one word, and each word once.")
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
        raise ArgumentError("texts and words must be lists of texts.")
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
            raise ArgumentError("Pass at least one column in features=, and each column once.")
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


Bound = tuple[float, ...] | int
"""Two ends, the edges of bins from the least to the largest, or a number of kinds 0, 1, 2, ..."""
NUMBER_BINS: Final = 32
"""Bins of a number between two ends. A slope and a bend cost the same for any number of them."""


def bin_edges(bound: Any, bins: int = NUMBER_BINS) -> Array:
    """Return the edges of a column's bins, with both ends.

    >>> bin_edges((0, 1), 2).tolist(), bin_edges(2).tolist()
    ([0.0, 0.5, 1.0], [-0.5, 0.5, 1.5])
    """
    kinds = as_whole(bound)
    if kinds is not None:
        return np.asarray(np.arange(Whole(2, 1000)(kinds, "bounds") + 1) - 0.5, dtype=float)
    if not isinstance(bound, list | tuple | np.ndarray):
        raise ArgumentError(
            f"bounds must be two ends, edges of bins or a number of kinds, got {shown(bound)}."
        )
    if len(bound) <= 2:
        low, high = Ends()(bound, "bounds")
        return np.asarray(np.linspace(low, high, bins + 1), dtype=float)
    edges = np.array([Number()(edge, "bounds") for edge in bound])
    if len(edges) > 1001 or (np.diff(edges) <= 0).any():
        raise ArgumentError("Edges of bins must increase, and there may be at most 1,001.")
    return edges


def bin_places(column: Array, edges: Array) -> Array:
    """Return the bin of each value: an edge belongs to the bin above it."""
    within = np.searchsorted(edges, column, side="right") - 1
    return np.asarray(np.clip(within, 0, len(edges) - 2).astype(np.int64))


class Numbers:
    """Columns of numbers with public bins: a feature for each bin, of which a row sets one.

    A column without bins is a feature by itself. A cell that is missing or no number counts as 0.
    """

    kind = "number"

    def __init__(self, names: tuple[str, ...], bounds: Mapping[str, Bound]) -> None:
        self.needs = Flags(names).needs
        unknown = sorted(set(bounds) - set(names))
        if unknown:
            raise ArgumentError(f"bounds name {shown(unknown[0])}, which is not in features=.")
        self.bins = {name: bin_edges(bounds[name]) for name in names if name in bounds}
        self.features = len(self.names())

    def names(self) -> tuple[str, ...]:
        names: list[str] = []
        for name in self.needs:
            edges = self.bins.get(name)
            if edges is None:
                names.append(name)
            else:
                names += [f"{name} {a:g} to {b:g}" for a, b in itertools.pairwise(edges)]
        return tuple(names)

    def exposed(self, types: Mapping[str, str], *, remote: bool) -> dict[str, str]:
        flags = Flags(self.needs).exposed(types, remote=remote)

        def number(name: str) -> str:
            cell = sql.as_double(sql.column(name), types[name])
            return f"CASE WHEN {cell} IS NULL OR isnan({cell}) THEN 0.0 ELSE {cell} END"

        return {
            short: number(name) if name in self.bins else flags[short]
            for short, name in zip(flags, self.needs, strict=True)
        }

    def matrix(self, columns: sql.Columns) -> "csr_array":
        from scipy.sparse import csr_array, hstack

        parts = []
        for place, name in enumerate(self.needs):
            cells = np.asarray(columns[f"f{place}"], dtype=float)
            edges = self.bins.get(name)
            if edges is None:
                parts.append(csr_array(cells[:, None] != 0))
            else:
                bins = bin_places(cells, edges)
                parts.append(csr_array(bins[:, None] == np.arange(len(edges) - 1)))
        return _binary(csr_array(hstack(parts, format="csr"), dtype=np.int8))


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
        raise DataError("X must be finite, but some cells are NaN or infinite. Impute them.")
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


MOST_ROWS = 2**32
"""A feature matrix of more is refused when it is opened, so sums over rows have a known end."""


@dataclass(frozen=True, kw_only=True)
class FeatureRows(Description):
    """Describes the rows of a feature matrix: all that is public about them."""

    rows_in_words: ClassVar[str] = "rows with 0/1 features and an outcome"
    features: int
    features_per_row: int
    feature_names: tuple[str, ...] | None = None
    most_rows: int | None = None
    bins: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """Each column with the edges of its bins, which are consecutive features; or none for one."""

    @property
    def row_bound(self) -> int | None:
        """The number of rows where it is public, else the declared bound, else None."""
        return self.rows if self.rows is not None else self.most_rows


class FeatureMatrix(PrivateTable):
    """Private rows, each with a label and at most `features_per_row` of the public features.

    How many features there are and what they are called is public: take them from outside the
    rows. A vocabulary that was learnt from private texts tells who wrote a rare word; use
    `heldout.features.HashedText` or a declared `Vocabulary`.

    Parameters
    ----------
    X
        An array, a frame or a SciPy sparse matrix, a row for each row. What is not 0 counts as 1.
    y
        The label of each row, one of two values: see `positive` and `negative`.
    features_per_row
        How many features one row may set. A row that sets more keeps so many of them, by a rule
        that looks at that row alone. Noise grows with this number. Left out, it is the number of
        features.
    unit, rows_per_unit
        Whose row it is, one value per row, and how many rows of one unit may count.
    row_keys
        A value that tells rows apart, one per row.
    neighbours
        "replace-one" (the number of rows is public), "add-remove", or "label": nothing but the
        labels is secret.
    feature_names
        Public names, one per feature; by default those of a frame's columns.
    most_rows
        A public bound on the number of rows, for the scores that need one where the number of
        rows itself is not public.

    >>> FeatureMatrix([[1, 0, 1], [0, 2, 0]], [1, 0], features_per_row=2)
    FeatureMatrix(3 features, at most 2 a row, replace-one neighbours, 2 rows)
    """

    MOST_ROWS = MOST_ROWS

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        features_per_row: int | None = None,
        positive: object = 1,
        negative: object = None,
        unit: Any = None,
        rows_per_unit: int = 1,
        row_keys: Any = None,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        feature_names: Sequence[str] | None = None,
        most_rows: int | None = None,
        name: str | None = None,
    ) -> None:
        rows = Stored(X)
        table: dict[str, Any] = {"label": _column(y, rows.count, "y"), "row": rows.digests()}
        if unit is not None:
            table["unit"] = _column(unit, rows.count, "unit")
        if row_keys is not None:
            table["row_key"] = _column(row_keys, rows.count, "row_keys")
        self._open(
            rows,
            table,
            label="label",
            features_per_row=features_per_row,
            values=(positive, negative),
            names=_columns_of(X) if feature_names is None else feature_names,
            most_rows=most_rows,
            unit=None if unit is None else "unit",
            rows_per_unit=rows_per_unit,
            row_key=None if row_keys is None else "row_key",
            neighbours=neighbours,
            schema=None,
            name=name,
        )
        self._known_from(X, y)

    _origins: tuple[bytes, ...] = ()

    def _known_from(self, X: Any, y: Any) -> None:
        """The rows as they came, by which they find their budget whatever was made of them."""
        self._origins = (origin_digest(X, y),)

    @property
    def _fingerprints(self) -> tuple[bytes, ...]:
        return (*super()._fingerprints, *self._origins)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        label: str,
        text: str | None = None,
        space: Space | None = None,
        features: Sequence[str] | None = None,
        bounds: Mapping[str, Bound] | None = None,
        features_per_row: int | None = None,
        positive: object = 1,
        negative: object = None,
        most_rows: int | None = None,
        **custody: Unpack[Custody],
    ) -> "FeatureMatrix":
        """Rows of a file or frame: the words of a text column, or columns that are 0 or not.

        `bounds` make columns of numbers or kinds features by bin, as `heldout.features.Bins` does:
        {"age": (18, 90), "ward": 4}. They are public: never read them off the rows.

        The rows' budget is the one that `heldout.Dataset` finds for the same table. A cell that
        is missing or not a number counts as 0, and a missing text as an empty one.

        >>> rows = {"message": ["win cash now", "see you at lunch"], "spam": [1, 0]}
        >>> from heldout.data.feature_matrix import HashedText
        >>> FeatureMatrix.from_table(rows, label="spam", text="message",
        ...                          space=HashedText(size=1024), features_per_row=10)
        FeatureMatrix(1,024 features, at most 10 a row, replace-one neighbours, 2 rows)
        """
        if (text is None) == (features is None):
            raise ArgumentError(
                "Pass either text=, a column of texts, or features=, columns of 0 and 1."
            )
        source: FeatureSource
        if text is not None:
            if bounds is not None:
                raise ArgumentError("bounds are for columns in features=, not for texts.")
            if space is None:
                raise ArgumentError(
                    "space must say which words are features, for example HashedText(). Words "
                    "that are read off private texts are not public."
                )
            source = Texts(text, space)
        else:
            if isinstance(features, str | bytes) or not isinstance(features, Sequence):
                raise ArgumentError(f"features must be names of columns, got {shown(features)}.")
            source = Numbers(tuple(features), bounds) if bounds else Flags(tuple(features))
        self = object.__new__(cls)
        self._open(
            source,
            table,
            label=label,
            features_per_row=features_per_row,
            values=(positive, negative),
            names=None,
            most_rows=most_rows,
            **custody,
        )
        return self

    def _open(
        self,
        rows: FeatureSource,
        table: Any,
        *,
        label: str,
        features_per_row: int | None,
        values: tuple[object, object],
        names: Sequence[str] | None,
        most_rows: int | None,
        **protection: Any,
    ) -> None:
        self._source, self._label = rows, label
        self._values = validation.LabelValues(values[0], other_label(*values))
        self._chosen: Any = None
        self.features = rows.features
        self.feature_names = _names(names, rows)
        self.features_per_row = _checked_bound(features_per_row, rows.features)
        self.most_rows = None if most_rows is None else Whole()(most_rows, "most_rows")
        super().__init__(table, **protection)

    @property
    def space(self) -> Space | None:
        """The public space of words, where the features are those of a text."""
        return self._source.space if isinstance(self._source, Texts) else None

    of_outcome = ("label",)

    def _outcome(self) -> tuple[str, ...]:
        return (self._label,)

    def _exposed(self) -> dict[str, str]:
        self._require(*self._source.needs)
        self._require_plain(self._label)
        types = self._types
        label = sql.as_label(
            sql.column(self._label),
            types[self._label],
            positive=self._values.positive,
            negative=self._values.negative,
        )
        return {"label": label, **self._source.exposed(types, remote=self.remote)}

    def _rules(self) -> list[validation.Rule]:
        rules = validation.label_rules(self._label, self._types[self._label], self._values)
        if self.most_rows is not None:
            message = (
                f"most_rows must bound the number of rows, got {self.most_rows}. Declare more."
            )
            rules.append(validation.most_rows_rule(self.most_rows, message))
        return rules

    def restricted(
        self, features: Sequence[int] | Any, *, features_per_row: int | None = None
    ) -> "FeatureMatrix":
        """The same private rows seen through some of the features, in the order given.

        The features must be public: named beforehand, or released. Rows are bounded after the
        others are gone, so a row keeps more of what is looked at. Same rows, same budget.
        """
        chosen = _checked_features(features, self.features)
        other = object.__new__(FeatureMatrix)
        before = np.arange(self.features) if self._chosen is None else self._chosen
        names = self.feature_names
        bound = self.features_per_row if features_per_row is None else features_per_row
        other.__dict__ |= self.__dict__ | {
            "_chosen": before[chosen],
            "features": len(chosen),
            "feature_names": None if names is None else tuple(names[place] for place in chosen),
            "features_per_row": _checked_bound(bound, len(chosen)),
        }
        return other

    @property
    def description(self) -> FeatureRows:
        """Return all that is public about these rows."""
        return self._described()

    def _shown(self) -> dict[str, str]:
        label = kind_declared(self._values.positive, self._values.negative)
        needs = dict.fromkeys(self._source.needs, self._source.kind)
        return {self._label: label} | needs | super()._shown()

    def _described(self) -> FeatureRows:
        return FeatureRows(
            **self._public_facts(),
            features=self.features,
            features_per_row=self.features_per_row,
            feature_names=self.feature_names,
            most_rows=self.most_rows,
            bins=self._bins,
        )

    @property
    def _bins(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Return columns and their edges, unless none has bins or some features were left out."""
        if not isinstance(self._source, Numbers) or self._chosen is not None:
            return ()
        bins = self._source.bins
        return tuple((name, tuple(map(float, bins.get(name, ())))) for name in self._source.needs)

    @property
    def row_bound(self) -> int | None:
        return self.description.row_bound

    def _fetch(self, body: str) -> sql.Columns:
        """The rows that count, by what each sets; see `statistics.feature_rows`."""
        columns = super()._fetch(body)
        matrix = self._source.matrix(columns)
        if self._chosen is not None:
            matrix = matrix[:, self._chosen]

        def restricted(features: Sequence[int] | Array, most: int) -> "csr_array":
            return bounded(matrix[:, _checked_features(features, self.features)], most)

        return {
            "label": np.asarray(columns["label"], dtype=np.int64),
            "matrix": bounded(matrix, self.features_per_row),
            "restricted": restricted,
        }

    def _whole(self) -> tuple[sql.Columns, Any]:
        """All rows, bounded in nothing: labels, keys by our names, and which features each sets.

        For `ScoredFeatures` alone, which is private itself and bounds the rows of people anew. So
        keys come in the form that is compared, an integer or its text: as a double, which is how a
        DECIMAL is fetched, two people beyond 2^53 would be one.
        """
        keys = {"unit": self._keys.unit, "row_key": self._keys.row_key}
        named = {
            name: sql.key(own, self._types[own]) for name, own in keys.items() if own is not None
        }
        exposed = {**self._exposed_columns, **named}
        listed = ", ".join(f"{expression} AS {name}" for name, expression in exposed.items())
        self.check_unchanged()
        columns = self._engine.fetch(f"SELECT {listed}\nFROM {self._engine.source} AS held")
        self.check_unchanged()
        matrix = self._source.matrix(columns)
        return columns, matrix if self._chosen is None else matrix[:, self._chosen]

    def __repr__(self) -> str:
        return (
            f"FeatureMatrix({self.features:,} features, at most {self.features_per_row:,} a row, "
            f"{self._about()})"
        )


def _column(values: Any, rows: int, name: str) -> Array | list[object]:
    """One value per row. Python's own stay as they are: no array makes doubles of integers."""
    column = list(values) if isinstance(values, list | tuple) else as_array(values, name=name)
    shape = (len(column),) if isinstance(column, list) else column.shape
    if shape != (rows,):
        raise DataError(f"{name} must have one value for each row of X.")
    return column


def _columns_of(X: Any) -> list[str] | None:
    """The names of a pandas or Polars frame's columns; an array has none."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _names(names: Sequence[str] | None, rows: FeatureSource) -> tuple[str, ...] | None:
    if names is None:
        return rows.names()
    try:
        listed = () if isinstance(names, str | bytes) else tuple(str(name) for name in names)
    except Exception:
        listed = ()
    if len(listed) != rows.features:
        raise ArgumentError(f"feature_names must be {rows.features} texts, one per feature.")
    return listed


def _checked_bound(bound: int | None, features: int) -> int:
    return features if bound is None else min(Whole()(bound, "features_per_row"), features)


def _checked_features(features: Any, count: int) -> Array:
    chosen = as_array(features, name="features")
    whole = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if not whole or chosen.min() < 0 or chosen.max() >= count:
        raise ArgumentError(f"features must be one or more numbers from 0 to {count - 1}.")
    if len(np.unique(chosen)) < len(chosen):
        raise ArgumentError("Name each feature once.")
    return np.asarray(chosen, dtype=np.int64)


class ScoredFeatures(Dataset):
    """The rows of a feature matrix, scored: same people, same protection, same budget.

    `score` gives each row of a sparse 0/1 matrix a number from 0 to 1, of that row alone and of
    released numbers. So neighbours stay neighbours, and what is proved of a `Dataset` holds. The
    ledger finds these rows by the digests of the matrix, or by the account that is named: what was
    spent on training is spent here. Label and keys have the custodian's names, because an account
    knows people by the column that tells them apart.

    >>> private = FeatureMatrix([[1, 0], [0, 1]], [1, 0])
    >>> ScoredFeatures(private, lambda matrix: np.full(matrix.shape[0], 0.5))
    Dataset(label='label', score='score', score_range=(0, 1), replace-one neighbours, 2 rows)
    """

    def __init__(self, private: FeatureMatrix, score: Callable[[Any], Any]) -> None:
        columns, matrix = private._whole()
        protection, keys = private.protection, private._keys
        table = {
            own: columns[name]
            for name, own in (("unit", keys.unit), ("row_key", keys.row_key))
            if own is not None
        }
        label = _unlike(table, private._label)
        table[label] = columns["label"]
        at = _unlike(table, "score")
        table[at] = np.clip(score(matrix), 0, 1)
        self._digests_of = private._fingerprints
        super().__init__(
            table,
            label=label,
            score=at,
            unit=keys.unit,
            rows_per_unit=protection.rows_per_unit,
            row_key=keys.row_key,
            neighbours=protection.neighbours,
            name=private.name,
        )
        self._ledger = private._ledger

    @property
    def _fingerprints(self) -> tuple[bytes, ...]:
        return self._digests_of


def _unlike(table: dict[str, Any], name: str) -> str:
    """The name, or one like it that no column of the table has, whatever the case.

    >>> _unlike({"Score": [1]}, "score")
    'score_'
    """
    taken = {name.lower() for name in table}
    while name.lower() in taken:
        name += "_"
    return name
