"""Private rows with a label and a score, and everything about them that is public."""

import math
from collections.abc import Mapping
from typing import Any

from heldout.data import sql, validation
from heldout.data.engine import Engine
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Neighbours

NARROWEST, WIDEST = 1e-150, 1e150  # the squared width, and cells over it, stay ordinary doubles


class Dataset(PrivateTable):
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
        self.score_range = _checked_range(score_range)
        self._values = validation.LabelValues(positive, _other_label(positive, negative))
        super().__init__(
            table,
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_key=row_key,
            neighbours=neighbours,
            schema=schema,
            name=name,
        )

    def _exposed(self) -> dict[str, str]:
        self._require(self.label, self.score)
        types = self._engine.columns
        return {
            "label": sql.as_label(
                sql.column(self.label),
                types[self.label],
                positive=self._values.positive,
                negative=self._values.negative,
            ),
            "score": sql.as_double(sql.column(self.score), types[self.score]),
        }

    def _rules(self) -> list[validation.Rule]:
        types = self._engine.columns
        return [
            *validation.label_rules(self.label, types[self.label], self._values),
            *validation.score_rules(self.score, types[self.score], self.score_range),
        ]

    def with_rival(self, score: str) -> "Dataset":
        """The same rows with a second model's score beside the first, as `rival`.

        An analyst names it, so no row may make it fail: what is missing or not a number counts as
        the lowest score, and what is out of range as the nearest end. Only the schema is looked at.
        """
        if score not in self._engine.columns:
            raise ArgumentError(f"score must be a column of the table, got {score!r}.")
        other = object.__new__(Dataset)
        other.__dict__.update(self.__dict__)
        rival = sql.held_to(
            sql.as_double(sql.column(score), self._engine.columns[score]), *self.score_range
        )
        other._exposed_columns = {**self._exposed_columns, "rival": rival}
        return other

    def __repr__(self) -> str:
        low, high = self.score_range
        return (
            f"Dataset(label={self.label!r}, score={self.score!r}, score_range=({low:g}, {high:g}), "
            f"{self._about()})"
        )


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
