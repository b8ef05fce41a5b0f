"""Private rows with declared values: a number each within public bounds, or a word for one."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from heldout.arguments import OneOf, Values, as_number, pair, shown
from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.description import (
    Description,
    Groups,
    MeasuredRows,
    SurvivalRows,
    ValueRange,
    declared_groups,
    kind_declared,
)
from heldout.data.postgres import PostgresTable
from heldout.data.scores import FURTHEST
from heldout.data.table import Custody, PrivateTable
from heldout.data.validation import checked_weight, other_label
from heldout.errors import ArgumentError, MissingScore


class MeasuredDataset(Dataset):
    """A `Dataset` with `values` and no label. Statements see them as `value_0`, `value_1`, ...

    A number beyond its bounds refuses the table, or counts as the nearer end with
    `out_of_range="clip"`. A word that is not declared always refuses it.

    >>> MeasuredDataset({"dice": [0.5, 0.75]}, values={"dice": (0, 1)})
    Dataset(values={'dice': (0, 1)}, replace-one neighbours, 2 rows)
    """

    required: ClassVar[bool] = True
    """Whether some value must be declared."""

    def __init__(
        self,
        rows: Any,
        /,
        *,
        values: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        weight: str | None = None,
        largest_weight: float | None = None,
        out_of_range: str = "refuse",
        table: str | None = None,
        query: str | None = None,
        **custody: Unpack[Custody],
    ) -> None:
        if table is not None or query is not None:
            rows = PostgresTable(rows, table=table, query=query)
        self.values = declared_value_ranges(values, required=self.required)
        self.groups = declared_groups(groups)
        self.weight, self.largest_weight = weight, checked_weight(weight, largest_weight)
        self.out_of_range = OneOf(("refuse", "clip"))(out_of_range, "out_of_range")
        PrivateTable.__init__(self, rows, **custody)

    _validate, _fetch = PrivateTable._validate, PrivateTable._fetch
    of_outcome: ClassVar[tuple[str, ...]] = ()

    def _outcome(self) -> tuple[str, ...]:
        return ()

    def _exposed(self) -> dict[str, str]:
        self._require(*self.values)
        self._require_plain(*self.groups)
        columns = {f"value_{place}": self._value(name) for place, name in enumerate(self.values)}
        return columns | self._weights()

    def _value(self, name: str) -> str:
        """Return a row's value, which lies within the bounds whatever the cell is."""
        declared = self.values[name]
        if declared.words:
            numbers = map(sql.double, declared.words.values())
            cases = zip(self._tests(name), numbers, strict=True)
            chosen = " ".join(f"WHEN {test} THEN {number}" for test, number in cases)
            return f"CASE {chosen} ELSE {sql.double(declared.low)} END"
        number = sql.as_double(sql.column(name), self._engine.columns[name])
        return sql.held_to(number, *declared.ends)

    def beside_copy(self) -> "MeasuredDataset":
        """The same rows with columns as a separator reads them, numbers before words, and the key
        that splits them, as of a `Truth`; words of one number are one."""
        numbers = [self._value(name) for name, value in self.values.items() if not value.words]
        texts = [self._word(name) for name, value in self.values.items() if value.words]
        names = self._keys.names
        key = sql.canonical(names[0], self._engine.columns[names[0]]) if names else None
        columns = {f"c{place}": cell for place, cell in enumerate([*numbers, *texts])}
        split = {"split_key": key or "CAST(NULL AS VARCHAR)"}
        return self._view(MeasuredDataset, columns | split)

    def _word(self, name: str) -> str:
        """Return the word that stands for a row's number."""
        named, cell = self.values[name].named, self._value(name)
        chosen = [
            f"WHEN {cell} = {sql.double(number)} THEN {sql.text(word)}"
            for number, word in named.items()
        ]
        return f"CASE {' '.join(chosen)} END"

    def _tests(self, name: str) -> list[str]:
        cell, kind = sql.column(name), self._engine.columns[name]
        words = Groups(name, tuple(self.values[name].words)).cells(kind)
        return [sql.equals(cell, kind, word) for word in words]

    def _rules(self) -> list[validation.Rule]:
        several = (self._value_rules(place, name) for place, name in enumerate(self.values))
        required = [rule for rules in several for rule in rules]
        return required + self._weight_rules() + self._group_rules()

    def _value_rules(self, place: int, name: str) -> list[validation.Rule]:
        declared, kind = self.values[name], self._engine.columns[name]
        if declared.words:
            self._require_plain(name)
            advice = "one of the declared words. Declare the others too."
            rules = validation.value_rules("value", name, self._tests(name), advice)
        elif self.out_of_range == "clip":
            rules = validation.number_rules("value", name, kind)[:1]
        else:
            bounds = "its declared bounds. out_of_range='clip' counts what lies beyond as"
            rules = validation.range_rules(
                "value", name, kind, ends=declared.ends, declared=f"{bounds} the nearer end."
            )
        words = f" It is stored as {kind}. Words need a number each: values={{{name!r}: "
        words += "{'no': 0, 'yes': 1}}."
        return [
            replace(
                rule,
                name=f"{rule.name}_{place}",
                message=rule.message + (words if rule.error is MissingScore else ""),
            )
            for rule in rules
        ]

    def _shown(self) -> dict[str, str]:
        kinds = {name: kind_declared(*value.words) for name, value in self.values.items()}
        own = {name: "number" for name in (self.weight,) if name}
        return kinds | own | PrivateTable._shown(self)

    def _described(self) -> MeasuredRows:  # type: ignore[override]
        return MeasuredRows(**self._measured_facts())

    def _measured_facts(self) -> dict[str, Any]:
        return {
            **self._public_facts(),
            "values": dict(self.values),
            "weight": self.weight,
            "largest_weight": self.largest_weight,
        }

    def __repr__(self) -> str:
        return f"Dataset(values={_shown(self.values)}, {self._about()})"


def declared_value_ranges(
    values: Mapping[str, Any] | None, *, required: bool
) -> dict[str, ValueRange]:
    """Return the declared values with their bounds, checked."""
    if values is None and not required:
        return {}
    declared = Values()(values, "values")
    return {
        name: ValueRange(min(value.values()), max(value.values()), value)
        if isinstance(value, dict)
        else ValueRange(*value)
        for name, value in declared.items()
    }


def _shown(values: Mapping[str, ValueRange]) -> str:
    parts = (
        f"{name!r}: {sorted(value.words) if value.words else f'({value.low:g}, {value.high:g})'}"
        for name, value in values.items()
    )
    return "{" + ", ".join(parts) + "}"


# Private rows with an observed and a predicted number.
INTERCEPT = "intercept"


@dataclass(frozen=True, kw_only=True)
class FittedRows(Description):
    """Describes the rows of a regression: all that is public about them."""

    rows_in_words: ClassVar[str] = "rows with an observed and a predicted number"
    takes_model: ClassVar[bool] = True
    observed: str
    predicted: str
    bounds: tuple[float, float] | None = None
    """Between which the outcome and the predictions lie, if that is declared."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.predicted)

    @property
    def scale(self) -> float:
        """A twentieth of the declared bounds' distance, in round figures; 1 without bounds."""
        if self.bounds is None:
            return 1.0
        low, high = self.bounds
        return float(f"{high / 20 - low / 20:.0e}")

    @property
    def names(self) -> tuple[str | None, ...]:
        unit = self.protection.unit_name
        return (self.name, self.observed, self.predicted, *self.groups, unit)


class RegressionTable(PrivateTable):
    """Rows of a regression, validated on the custodian's side when the object is made.

    Statements see `observed`, `predicted` and `residual`, which is observed - predicted as doubles.

    Parameters
    ----------
    table
        A path (.parquet, .csv, .tsv), a pandas, Polars or Arrow table, a dict of columns, or a
        DuckDB relation; see `heldout.Dataset`.
    observed
        The column with the outcome.
    predicted
        The column with the predictions, or an array of them, one per row in the frame's order. An
        array is a column more, and without keys a table with another column has another budget:
        name a `unit` or a `row_key` where several models are judged on the same rows.
    coefficients
        Instead of `predicted`: a public linear model, {"intercept": 2.0, "age": 0.5, ...} over
        columns of the table.
    groups
        Columns by which questions may be asked, and the values that are declared for each:
        {"sex": ["F", "M"]}. Every other value is in the group "other".
    bounds
        The public lower and upper bound of the outcome. An outcome or a
        prediction beyond them counts as the nearer end.
    unit, rows_per_unit, row_key, neighbours, schema, name
        As in `heldout.Dataset`.

    >>> rows = {"y": [1.0, 2.0, 4.0], "x": [1.0, 2.0, 3.0]}
    >>> RegressionTable(rows, observed="y", coefficients={"x": 1.2})
    RegressionTable(observed='y', a linear model of 'x', replace-one neighbours, 3 rows)
    """

    def __init__(
        self,
        table: Any,
        *,
        observed: str,
        predicted: Any = None,
        coefficients: Mapping[str, float] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        bounds: tuple[float, float] | None = None,
        **custody: Unpack[Custody],
    ) -> None:
        if (predicted is None) == (coefficients is None):
            raise ArgumentError(
                "Pass either predicted=, the column with the predictions, or coefficients=, the "
                "numbers of a linear model."
            )
        self.observed = observed
        self.groups = declared_groups(groups)
        self.bounds = None if bounds is None else _checked_bounds(bounds)
        self.coefficients = None if coefficients is None else _checked(coefficients)
        if predicted is not None and not isinstance(predicted, str):
            table, predicted = _beside(table, predicted)
        self.predicted: str | None = predicted
        super().__init__(table, **custody)

    of_outcome: ClassVar[tuple[str, ...]] = ("observed", "residual")

    def _outcome(self) -> tuple[str, ...]:
        return (self.observed,)

    def _exposed(self) -> dict[str, str]:
        observed, predicted = self._number(self.observed), self._prediction()
        if self.bounds is not None:
            observed, predicted = (sql.held_to(x, *self.bounds) for x in (observed, predicted))
        self._require_plain(*self.groups)
        return {
            "observed": observed,
            "predicted": predicted,
            "residual": f"({observed} - ({predicted}))",
        }

    def _number(self, name: str) -> str:
        self._require(name)
        return sql.as_double(sql.column(name), self._types[name])

    def _prediction(self) -> str:
        if self.coefficients is None:
            assert self.predicted is not None
            return self._number(self.predicted)
        terms = [
            f"{sql.double(weight)} * {self._number(name)}"
            for name, weight in self.coefficients.items()
            if name != INTERCEPT
        ]
        return " + ".join([sql.double(self.coefficients.get(INTERCEPT, 0.0)), *terms])

    def _rules(self) -> list[validation.Rule]:
        exposed = self._exposed()
        types = self._types
        of_rows = "Give every row one, or drop it by a rule that does not look at the outcome."
        rules = validation.number_rules("observed", self.observed, types[self.observed])
        for what, number in (("predicted", self._prediction()), ("residual", exposed["residual"])):
            missing, infinite = validation.finite_rules(
                what,
                number,
                missing=f"{what} values must be numbers, but some are NULL, NaN or text. {of_rows}",
                infinite=f"{what} values must be finite. Rescale them, or drop the rows.",
            )
            # Within bounds every number is finite, however far off a model is.
            rules += [missing, infinite] if self.bounds is None else [missing]
        return rules + self._group_rules()

    def _shown(self) -> dict[str, str]:
        linear = [name for name in self.coefficients or () if name != INTERCEPT]
        numbers = (self.observed, self.predicted, *linear)
        return {name: "number" for name in numbers if name} | super()._shown()

    def _described(self) -> FittedRows:
        return FittedRows(
            **self._public_facts(),
            observed=self.observed,
            predicted=self.predicted or "a linear model",
            bounds=self.bounds,
        )

    def __repr__(self) -> str:
        if self.coefficients is None:
            model = f"predicted={self.predicted!r}"
        else:
            names = ", ".join(repr(name) for name in self.coefficients if name != INTERCEPT)
            model = f"a linear model of {names}"
        return f"RegressionTable(observed={self.observed!r}, {model}, {self._about()})"


class MadeUpRegression(RegressionTable):
    """Rows of which nobody is: what was computed of them is remembered, for the next forecast."""

    MOST_REMEMBERED: ClassVar = 64

    def _fetch(self, body: str) -> sql.Columns:
        remembered: dict[str, sql.Columns] = self.__dict__.setdefault("_remembered", {})
        if body not in remembered:
            if len(remembered) >= self.MOST_REMEMBERED:
                remembered.clear()
            remembered[body] = super()._fetch(body)
        return remembered[body]


def _checked_bounds(bounds: object) -> tuple[float, float]:
    low, high = pair(bounds) or (1.0, 0.0)
    if not -FURTHEST <= low < high <= FURTHEST:
        raise ArgumentError(
            f"bounds must be two finite numbers, the lower first, got {shown(bounds)}. Pass (0, "
            "100), or leave them out."
        )
    return low, high


def _checked(coefficients: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(coefficients, Mapping):
        raise ArgumentError(
            f"coefficients must be numbers by column, got a {type(coefficients).__name__}. Pass "
            "{'intercept': 1.5, 'age': 0.2}."
        )
    numbers = {}
    for name, weight in coefficients.items():
        number = as_number(weight)
        if not math.isfinite(number) or not isinstance(name, str):
            raise ArgumentError(
                f"coefficients must be finite numbers by column; that of {shown(name)} is not. "
                "Pass {'intercept': 1.5, 'age': 0.2}."
            )
        numbers[name] = number
    if not numbers:
        raise ArgumentError("coefficients must hold at least one number.")
    return numbers


def _beside(table: Any, predictions: Any) -> tuple[Any, str]:
    """The frame with the predictions as one column more, and that column's name."""
    column = _as_column(predictions)
    if column is None:
        raise ArgumentError("predicted must be a column's name, or one number for each row.")
    with contextlib.suppress(Exception):
        if isinstance(table, Mapping):
            lengths, names = {len(values) for values in table.values()}, list(table)
        else:
            lengths, names = {len(table)}, list(_names(table))
        if lengths == {len(column)}:
            name = "predicted"
            while name.lower() in {taken.lower() for taken in names}:
                name += "_"
            return _with_column(table, name, column), name
    raise ArgumentError(
        "predicted must be the name of a column, or one number for each row of a dict, pandas, "
        "Polars or Arrow table. Read a file into a frame to pass an array."
    )


def _names(table: Any) -> Sequence[str]:
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def _with_column(table: Any, name: str, column: sql.Array) -> object:
    if isinstance(table, Mapping):
        return {**table, name: column}
    if hasattr(table, "append_column"):  # Arrow
        import pyarrow

        return table.append_column(name, pyarrow.array(column))
    if hasattr(table, "assign"):  # pandas
        return table.assign(**{name: column})
    import polars

    return table.with_columns(polars.Series(name, column))


def _as_column(predictions: object) -> sql.Array | None:
    """Doubles, or None; whatever fails must not quote a value."""
    import numpy as np

    with contextlib.suppress(Exception):
        column = np.asarray(predictions, dtype=np.float64)
        return column.ravel() if column.size == max(column.shape) else None
    return None


# Private rows with a time and whether an event came then: time to event, censored or not.
class SurvivalDataset(MeasuredDataset):
    """A `Dataset` with `time` and `event`. Statements see `time`, `event` and, if named, `score`.

    A time is a finite number from 0, in any unit. `event` has two values: `positive` where the
    event came at that time, `negative` where the row was last seen then without it.

    >>> rows = {"days": [3.0, 9.0], "died": [1, 0]}
    >>> SurvivalDataset(rows, time="days", event="died")
    Dataset(time='days', event='died', replace-one neighbours, 2 rows)
    """

    required: ClassVar[bool] = False

    def __init__(
        self,
        rows: Any,
        /,
        *,
        time: str,
        event: str,
        score: str | None = None,
        positive: object = 1,
        negative: object = None,
        values: Any = None,
        groups: Any = None,
        weight: str | None = None,
        largest_weight: float | None = None,
        out_of_range: str = "refuse",
        table: str | None = None,
        query: str | None = None,
        **custody: Unpack[Custody],
    ) -> None:
        self.time, self.event, self.score = time, event, score or ""
        self._values = validation.LabelValues(positive, other_label(positive, negative))
        super().__init__(
            rows,
            values=values,
            groups=groups,
            weight=weight,
            largest_weight=largest_weight,
            out_of_range=out_of_range,
            table=table,
            query=query,
            **custody,
        )

    of_outcome: ClassVar[tuple[str, ...]] = ("time", "event")

    def _outcome(self) -> tuple[str, ...]:
        # Values, such as a predicted share of survivors, are public then.
        return (self.time, self.event)

    @property
    def _own(self) -> list[str]:
        return [self.time, self.event, *([self.score] if self.score else [])]

    def _exposed(self) -> dict[str, str]:
        self._require(*self._own)
        self._require_plain(self.event)
        types, values = self._engine.columns, self._values
        event = sql.as_label(
            sql.column(self.event),
            types[self.event],
            positive=values.positive,
            negative=values.negative,
        )
        own = {"time": self._number(self.time, 0.0), "event": event}
        if self.score:
            own["score"] = self._number(self.score, -FURTHEST)
        return own | super()._exposed()

    def _number(self, name: str, low: float) -> str:
        number = sql.as_double(sql.column(name), self._engine.columns[name])
        return sql.held_to(number, low, FURTHEST)

    def _rules(self) -> list[validation.Rule]:
        types, ends = self._engine.columns, (0.0, FURTHEST)
        declared = "what times can be"
        rules = validation.range_rules(
            "time", self.time, types[self.time], ends=ends, declared=declared
        )
        rules += validation.label_rules(self.event, types[self.event], self._values)
        if self.score:
            rules += validation.number_rules("score", self.score, types[self.score])
        return rules + super()._rules()

    def _shown(self) -> dict[str, str]:
        kind = kind_declared(self._values.positive, self._values.negative)
        numbers = [self.time, *([self.score] if self.score else [])]
        return {self.event: kind} | dict.fromkeys(numbers, "number") | super()._shown()

    def _described(self) -> SurvivalRows:  # type: ignore[override]
        return SurvivalRows(
            **self._measured_facts(), time=self.time, event=self.event, score=self.score or None
        )

    def __repr__(self) -> str:
        score = f", score={self.score!r}" if self.score else ""
        return f"Dataset(time={self.time!r}, event={self.event!r}{score}, {self._about()})"
