"""Private rows of 0/1 features with a label: what is selected from and trained on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from heldout.arguments import as_array, shown
from heldout.arguments.rules import Whole
from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.description import Description
from heldout.data.feature_sources import (
    FeatureSource,
    Flags,
    Space,
    Stored,
    Texts,
    bounded,
    origin_digest,
)
from heldout.data.groups import kind_declared
from heldout.data.sql import Array
from heldout.data.table import Custody, PrivateTable
from heldout.data.validation import other_label
from heldout.errors import ArgumentError, DataError
from heldout.kernel.neighbours import Neighbours

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
        Whose row it is, one value a row, and how many rows of one unit may count.
    row_keys
        A value that tells rows apart, one a row.
    neighbours
        "replace-one" (the number of rows is public), "add-remove", or "label": nothing but the
        labels is secret.
    feature_names
        Public names, one a feature; those of a frame's columns unless told.
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
        features_per_row: int | None = None,
        positive: object = 1,
        negative: object = None,
        most_rows: int | None = None,
        **custody: Unpack[Custody],
    ) -> "FeatureMatrix":
        """Rows of a file or frame: the words of a text column, or columns that are 0 or not.

        The rows' budget is the one that `heldout.Dataset` finds for the same table. A cell that
        is missing or not a number counts as 0, and a missing text as an empty one.

        >>> rows = {"message": ["win cash now", "see you at lunch"], "spam": [1, 0]}
        >>> from heldout.data.feature_sources import HashedText
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
            if space is None:
                raise ArgumentError(
                    "space must say which words are features, for example HashedText(). Words "
                    "that are read off private texts are not public."
                )
            source = Texts(text, space)
        else:
            if isinstance(features, str | bytes) or not isinstance(features, Sequence):
                raise ArgumentError(f"features must be names of columns, got {shown(features)}.")
            source = Flags(tuple(features))
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
        )

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
        keys come as they are told apart, an integer or its text: as a double, which is how a
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
    """One value a row. Python's own stay as they are: no array makes doubles of integers."""
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
        raise ArgumentError(f"feature_names must be {rows.features} texts, one a feature.")
    return listed


def _checked_bound(bound: int | None, features: int) -> int:
    return features if bound is None else min(Whole()(bound, "features_per_row"), features)


def _checked_features(features: Any, count: int) -> Array:
    chosen = as_array(features, name="features")
    whole = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if not whole or chosen.min() < 0 or chosen.max() >= count:
        raise ArgumentError(f"features must be one or more numbers from 0 to {count - 1}.")
    if len(np.unique(chosen)) < len(chosen):
        raise ArgumentError("features must be named once each.")
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
