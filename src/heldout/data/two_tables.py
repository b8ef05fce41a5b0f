"""Two tables read side by side: which columns they share, and what each column holds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from heldout.data import sql, validation
from heldout.data.description import Description
from heldout.data.engine import Engine, open_table
from heldout.data.sql import Array, as_double, as_text, canonical, column, folded, is_numeric
from heldout.data.table import Custody, PrivateTable
from heldout.errors import ArgumentError, EmptyTable, MissingColumn

TIMES = ("DATE", "TIME", "TIMESTAMP")
CODE = "^[-+]?0[0-9]"  # 007 is a code and not the number seven
INDEX = re.compile(r"__index_level_\d+__|unnamed_0|Unnamed: 0")
"""How an index that pandas wrote is called in Parquet, in CSV, and in CSV that pandas read."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length: doubles with NaN where a number is missing, texts with None."""

    numbers: dict[str, Any]
    texts: dict[str, Any]
    groups: dict[str, Any]
    rows: int
    left_out: tuple[str, ...] = ()
    """Columns that look like an index that pandas wrote."""


def read_pair(
    truth: Any,
    privatized: Any,
    *,
    groups: Sequence[str] = (),
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> tuple[Table, Table]:
    """Both tables with the same columns. A column is numeric if it is so in both.

    Group columns name a row and are no features; `categorical` numbers are read as texts.
    """
    engines = open_table(as_frame(truth)), open_table(as_frame(privatized))
    names = shared_columns(engines, groups=groups, ignore=ignore, categorical=categorical)
    numeric = [numeric_columns(engine, names) for engine in engines]
    numbers = [name for name in names if all(name in columns for columns in numeric)]
    numbers = [name for name in numbers if name not in categorical]
    texts = [name for name in names if name not in numbers]
    first, second = (
        read_columns(engine, numbers=numbers, texts=texts, groups=groups) for engine in engines
    )
    for name, table in (("truth", first), ("privatized", second)):
        if table.rows == 0:
            raise EmptyTable(f"{name} must have at least one row. Check the file.")
    index = {name for engine in engines for name in engine.columns if INDEX.fullmatch(name)}
    left_out = tuple(sorted(index.difference(groups, ignore, categorical)))
    return replace(first, left_out=left_out), replace(second, left_out=left_out)


def as_frame(source: object) -> object:
    """A matrix becomes a table with the columns 0, 1, 2, ...; anything else stays as it is."""
    if isinstance(source, np.ndarray):
        if source.ndim != 2:
            raise ArgumentError(
                f"a table must have two dimensions, got {source.ndim}. Reshape the array."
            )
        return {str(index): source[:, index] for index in range(source.shape[1])}
    return source


def shared_columns(
    engines: tuple[Engine, Engine],
    *,
    groups: Sequence[str],
    ignore: Sequence[str],
    categorical: Sequence[str],
) -> list[str]:
    """The features, in the truth's order; a column of one side alone is refused by name."""
    truth, privatized = (list(engine.columns) for engine in engines)
    for what, wanted in (("groups", groups), ("ignore", ignore), ("categorical", categorical)):
        for name in wanted:
            if name not in truth and name not in privatized:
                raise MissingColumn(
                    f"{what} must name columns of the tables, got {name!r}. "
                    f"They have: {', '.join(truth[:12])}."
                )
    named = (*groups, *categorical)
    truth, privatized = (without_index(side, named=named) for side in (truth, privatized))
    apart = sorted((set(truth) ^ set(privatized)) - set(ignore))
    if apart:
        raise MissingColumn(
            f"truth and privatized must have the same columns, got {', '.join(apart[:8])} on "
            "one side only. Fix the table, or pass their names as ignore."
        )
    names = [name for name in truth if name not in ignore and name not in groups]
    if not names:
        raise ArgumentError("tables must have a column to compare besides groups and ignored ones.")
    return names


def without_index(columns: Iterable[str], *, named: Sequence[str] = ()) -> list[str]:
    """Return the columns but an index that pandas wrote, unless it is named.

    The numbers of the rows say nothing about a privatized copy, and often tell it apart.

    >>> without_index(["unnamed_0", "age", "__index_level_0__"])
    ['age']
    """
    return [name for name in columns if name in named or not INDEX.fullmatch(name)]


def read_columns(
    engine: Engine, *, numbers: Sequence[str], texts: Sequence[str], groups: Sequence[str]
) -> Table:
    """All columns in one statement, in the order of the rows."""
    asked = [("n", name, as_number(name, engine)) for name in numbers]
    asked += [("t", name, as_category(name, engine)) for name in texts]
    asked += [("g", name, as_category(name, engine)) for name in groups]
    chosen = ", ".join(f"{what} AS c{index}" for index, (_, _, what) in enumerate(asked))
    answers = engine.fetch(f"SELECT {chosen} FROM {engine.source} AS held")
    read: dict[str, dict[str, Any]] = {"n": {}, "t": {}, "g": {}}
    for index, (kind, name, _) in enumerate(asked):
        values = answers[f"c{index}"]
        read[kind][name] = number_array(values) if kind == "n" else text_array(values)
    return Table(read["n"], read["t"], read["g"], rows=len(answers["c0"]))


def as_number(name: str, engine: Engine) -> str:
    """The column as a double; a time as its seconds since 1970."""
    kind = engine.columns[name]
    if kind.startswith(TIMES):
        return f"epoch({column(name)})"
    return as_double(column(name), kind)


def as_category(name: str, engine: Engine) -> str:
    """The column as text; 600 and 600.0 are one category, whatever their type."""
    kind = engine.columns[name]
    return folded(canonical(name, kind) if engine.dialect == "duckdb" else as_text(name))


def number_array(values: Array | Sequence[object]) -> Array:
    """Doubles with NaN for what is missing or infinite."""
    numbers = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def text_array(values: Array) -> Array:
    """Texts with None for what is missing."""
    texts = np.array(np.ma.getdata(values), dtype=object)
    texts[np.ma.getmaskarray(values)] = None
    return texts


def numeric_columns(engine: Engine, names: Sequence[str]) -> set[str]:
    """Columns of a numeric type, and texts (of a CSV file) that are all numbers."""
    numeric = {name for name in names if _has_numeric_type(engine.columns[name])}
    unsure = [name for name in names if name not in numeric]
    if unsure:
        tests = ", ".join(f"{_all_numbers(name)} AS c{index}" for index, name in enumerate(unsure))
        answer = engine.fetch(f"SELECT {tests} FROM {engine.source} AS held")
        numeric |= {name for index, name in enumerate(unsure) if bool(answer[f"c{index}"][0])}
    return numeric


def _has_numeric_type(kind: str) -> bool:
    return is_numeric(kind) or kind == "BOOLEAN" or kind.startswith(TIMES)


def _all_numbers(name: str) -> str:
    text = f"CAST({column(name)} AS VARCHAR)"
    return (
        f"count({text}) = count(TRY_CAST({text} AS DOUBLE)) AND "
        f"count(*) FILTER (WHERE regexp_matches({text}, '{CODE}')) = 0"
    )


def names_of(given: str | Sequence[str] | None, *, name: str) -> tuple[str, ...]:
    """One name, "a,b" or a list of names.

    >>> names_of("area, month", name="groups")
    ('area', 'month')
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return tuple(part for part in re.split(r"\s*,\s*", given.strip()) if part)
    several = isinstance(given, Iterable) and not isinstance(given, Mapping | bytes)
    if not several or not all(isinstance(column, str) for column in given):
        raise ArgumentError(f"{name} must be names of columns, got {type(given).__name__}.")
    return tuple(given)


MOST_TIMES = 16  # the truth has at most so many rows for each row that is publicly expected


@dataclass(frozen=True, kw_only=True)
class TruthRows(Description):
    """Describes the ground truth in public: which columns of the privatized table it has."""

    rows_in_words: ClassVar[str] = "true rows, opened beside a privatized copy"
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    expected_rows: int | None = None
    """The public number that bounds how many rows there are: at most `MOST_TIMES` for each."""


class Truth(PrivateTable):
    """Private rows with the columns of a privatized table, which is public.

    Which columns are numbers and which are texts follows from the privatized table. A true cell
    that is not of that kind counts as missing, so nothing in the rows makes a release fail.
    """

    def __init__(
        self,
        table: Any,
        *,
        numbers: tuple[str, ...],
        texts: tuple[str, ...],
        expected_rows: int,
        **custody: Unpack[Custody],
    ) -> None:
        self._numbers, self._texts = numbers, texts
        self._expected_rows, self._most_rows = expected_rows, MOST_TIMES * expected_rows
        custody["name"] = custody.get("name") or "truth"
        super().__init__(as_frame(table), **custody)
        # Every cell is read once while only the custodian sees what fails.
        counts = ", ".join(f"count({name}) AS {name}" for name in self._exposed_columns)
        self._engine.fetch(self.statement(f"SELECT {counts} FROM evaluated"))

    def _shown(self) -> dict[str, str]:
        kinds = dict.fromkeys(self._numbers, "number") | dict.fromkeys(self._texts, "text")
        return kinds | super()._shown()

    def _described(self) -> TruthRows:
        return TruthRows(
            **self._public_facts(),
            numbers=self._numbers,
            texts=self._texts,
            expected_rows=self._expected_rows,
        )

    def _exposed(self) -> dict[str, str]:
        for name in (*self._numbers, *self._texts):
            if name not in self._engine.columns:
                raise MissingColumn(
                    f"No column {name!r} in the true table. If only the privatized table has "
                    "it, pass it as ignore."
                )
        chosen = [as_number(name, self._engine) for name in self._numbers]
        chosen += [as_category(name, self._engine) for name in self._texts]
        keys = self._keys.names
        types = self._engine.columns
        key = sql.canonical(keys[0], types[keys[0]]) if keys else "CAST(NULL AS VARCHAR)"
        return {f"c{index}": expression for index, expression in enumerate(chosen)} | {
            "split_key": key
        }

    def _rules(self) -> list[validation.Rule]:
        message = (
            f"truth must have at most {MOST_TIMES} rows for each privatized one. Compare "
            "tables of about the same size."
        )
        return [validation.most_rows_rule(self._most_rows, message)]

    def __repr__(self) -> str:
        return f"Truth({len(self._exposed_columns) - 1} columns, {self._about()})"
