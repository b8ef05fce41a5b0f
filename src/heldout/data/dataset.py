"""A table of private rows, with everything about it that is public."""

import math
import os
from collections.abc import Mapping
from typing import Any

from heldout.data import sql, validation
from heldout.data.engine import Engine, open_table
from heldout.errors import ArgumentError, UnreadableTable
from heldout.privacy.neighbours import Neighbours, Protection

NARROWEST, WIDEST = 1e-150, 1e150  # the squared width, and cells over it, stay ordinary doubles


class Dataset:
    """Private rows, validated on the custodian's side when the object is made.

    Parameters
    ----------
    table
        A path (.parquet, .csv, .tsv), a pandas, Polars or Arrow table, or a DuckDB relation.
        Frames are copied; a file must not change afterwards. A CSV file is never sniffed: give
        `schema={"column": "TYPE", ...}` for all of its columns, or each is read as text and the
        declared ones are cast.
    label, score
        Columns with the truth and the model's score; a higher score means more likely positive.
    positive, negative
        The two values of the label. `negative` may be left out if `positive` is 0, 1 or a bool.
    score_range
        The range that the model can give. Public, and never read off the data.
    unit, rows_per_unit, row_key
        Whose row it is (for person-level privacy), how many rows of one unit may count, and a
        column that tells rows apart. Which rows stay depends on these keys alone. So does the
        budget: tables with the same keys share one, whatever their scores and labels are. Name
        keys that mean something outside the table (an admission number, not 0, 1, 2, ...).
        Without keys the budget goes with the whole table, and a column more is another table.
    neighbours
        "replace-one" (the number of rows is public) or "add-remove".
    name
        What to call the data in reports. The budget goes with the rows, whatever they are called.

    >>> rows = {"readmitted": [1, 0, 0, 1], "risk": [0.9, 0.2, 0.4, 0.6]}
    >>> Dataset(rows, label="readmitted", score="risk")
    Dataset(label='readmitted', score='risk', score_range=(0, 1), replace-one neighbours, 4 rows)
    """

    def __init__(
        self,
        table: Any,
        *,
        label: str,
        score: str,
        positive: object = 1,
        negative: object = None,
        unit: str | None = None,
        rows_per_unit: int = 1,
        row_key: str | None = None,
        score_range: tuple[float, float] = (0, 1),
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        schema: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        self.label, self.score = label, score
        self._rival: str | None = None
        self.score_range = _checked_range(score_range)
        self.protection = Protection(
            neighbours=Neighbours.parse(neighbours),
            unit=unit is not None,
            rows_per_unit=_checked_rows_per_unit(unit, rows_per_unit),
            unit_name=unit,
        )
        self.name = name or _name_of(table)
        self._declared = validation.Declared(
            label=label,
            score=score,
            positive=positive,
            negative=_other_label(positive, negative),
            score_range=self.score_range,
            unit=unit,
            row_key=row_key,
        )
        self._engine = open_table(table, schema=schema)
        self._rows, self._fingerprints = self._validated(self._declared)

    def _validated(self, declared: validation.Declared) -> tuple[int, tuple[bytes, ...]]:
        validation.check_columns(self._engine, declared)
        validation.check_hash(self._engine)
        columns = self._engine.fetch(validation.statement(self._engine, declared))
        found = {name: values[0] for name, values in columns.items()}
        fingerprints = validation.fingerprints(found)
        counts = {name: int(value) for name, value in found.items()}
        validation.judge(counts, declared)
        return counts["n"], fingerprints

    @property
    def _fingerprint(self) -> bytes:
        return self._fingerprints[0]

    @property
    def public_rows(self) -> int | None:
        """The number of rows where the neighbouring relation makes it public, else None."""
        return self._rows if self.protection.row_count_is_public else None

    @property
    def dialect(self) -> str:
        return self._engine.dialect

    def has_changed(self) -> bool:
        """Whether the file under this data set was written to since it was validated."""
        return self._engine.has_changed()

    def with_rival(self, score: str) -> "Dataset":
        """The same rows with a second model's score beside the first, as `rival`.

        An analyst names it, so no row may make it fail: what is missing or not a number counts as
        the lowest score, and what is out of range as the nearest end. Only the schema is looked at.
        """
        if score not in self._engine.columns:
            raise ArgumentError(f"score must be a column of the table, got {score!r}.")
        other = object.__new__(Dataset)
        other.__dict__.update(self.__dict__)
        other._rival = sql.held_to(
            sql.as_double(sql.column(score), self._engine.columns[score]), *self.score_range
        )
        return other

    def statement(self, body: str) -> str:
        """The whole statement, in the engine's dialect, that asks `body` of the rows that count."""
        declared, engine = self._declared, self._engine
        label = sql.as_label(
            sql.column(declared.label),
            engine.columns[declared.label],
            positive=declared.positive,
            negative=declared.negative,
        )
        score = sql.as_double(sql.column(self.score), engine.columns[self.score])
        columns = {"label": label, "score": score}
        if self._rival is not None:
            columns["rival"] = self._rival
        rows = sql.evaluated(
            source=engine.source,
            columns=columns,
            unit=declared.unit,
            row_key=declared.row_key,
            rows_per_unit=self.protection.rows_per_unit,
        )
        statement = sql.assemble(rows, body)
        return (
            statement
            if engine.dialect == "duckdb"
            else sql.transpile(statement, dialect=engine.dialect)
        )

    def _fetch(self, body: str) -> sql.Columns:
        """Un-noised columns: for `heldout.statistics` alone, which seals what it makes of them."""
        # Looked at before and after: what is read in between was one and the same file.
        self.check_unchanged()
        columns = self._engine.fetch(self.statement(body))
        self.check_unchanged()
        return columns

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was validated."""
        if self.has_changed():
            raise UnreadableTable(
                "table must not change after it was validated. Make the Dataset anew."
            )

    def __repr__(self) -> str:
        low, high = self.score_range
        rows = "" if self.public_rows is None else f", {self.public_rows:,} rows"
        return (
            f"Dataset(label={self.label!r}, score={self.score!r}, score_range=({low:g}, {high:g}), "
            f"{self.protection.describe()}{rows})"
        )

    def __getstate__(self) -> object:
        raise TypeError("a Dataset holds private rows and must not be pickled.")


def _name_of(table: Any) -> str:
    return os.path.basename(os.fspath(table)) if isinstance(table, str | os.PathLike) else "data"  # noqa: PTH119


def _checked_range(score_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in score_range)
    except (TypeError, ValueError):
        raise ArgumentError(
            "score_range must be two numbers (lowest, highest). Declare what the model can give."
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(
            f"score_range must be two finite numbers, the lower first, got ({low}, {high})."
        )
    if not NARROWEST <= high - low <= WIDEST:
        raise ArgumentError(
            f"score_range must be {NARROWEST:g} to {WIDEST:g} wide, got ({low:g}, {high:g}). "
            "Rescale the scores."
        )
    return low, high


def _checked_rows_per_unit(unit: str | None, rows_per_unit: int) -> int:
    if isinstance(rows_per_unit, bool) or not isinstance(rows_per_unit, int) or rows_per_unit < 1:
        raise ArgumentError(f"rows_per_unit must be a whole number from 1, got {rows_per_unit!r}.")
    if unit is None and rows_per_unit != 1:
        raise ArgumentError(
            "rows_per_unit must go with unit=. Name the column that says whose row."
        )
    return rows_per_unit


def _other_label(positive: object, negative: object) -> object:
    for name, value in (("positive", positive), ("negative", negative)):
        allowed = isinstance(value, str | bool | int | float) or (
            name == "negative" and value is None
        )
        if not allowed or (isinstance(value, float) and not math.isfinite(value)):
            raise ArgumentError(f"{name} must be a text, a number or a bool, got {value!r}.")
    if negative is None:
        if isinstance(positive, str) or positive not in (0, 1):
            raise ArgumentError(
                f"negative must be declared when positive is {positive!r}. Say which two values "
                "the label has, for example positive='yes', negative='no'."
            )
        negative = type(positive)(1 - positive)
    if negative == positive:
        raise ArgumentError(f"negative must differ from positive, got {positive!r} for both.")
    return negative


__all__ = ["Dataset", "Engine"]
