"""Made-up neighbouring tables for the replay, and the entrances through which they come in.

Rows are drawn at random and adversarially: ties, cells at the edges of bins, missing cells, people
with more rows than count, other people's rows between theirs, and the same values in other
encodings (1, 1.0, True, Decimal("1.0"), "1").
"""

import csv
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

__all__ = [
    "ADD_REMOVE",
    "ENTRANCES",
    "REPLACE_ONE",
    "Column",
    "Entrance",
    "Neighbourhood",
    "Row",
    "entrances",
    "neighbours",
]

REPLACE_ONE, ADD_REMOVE = "replace-one", "add-remove"
WHO, KEY = "who", "row"
"""The columns that say whose row it is, and which."""
LARGE: Final = 2**53
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True)
class Column:
    """One column: cells that are worth a try, others, and the type that a storage declares."""

    special: tuple[Any, ...]
    other: Callable[[Random], Any] | None = None
    kind: str = "double"
    """"double", "bigint", "text" or "decimal"."""

    def cell(self, random: Random) -> Any:
        if self.other is None or random.random() < 0.6:
            return random.choice(self.special)
        return self.other(random)


@dataclass(frozen=True)
class Row:
    """A row's cells, and the form that each takes where a table is untyped."""

    cells: Mapping[str, Any]
    forms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Neighbourhood:
    """A table and several neighbours of it, and what is declared of all of them."""

    rows: list[Row]
    others: list[list[Row]]
    columns: Mapping[str, Column]
    custody: Mapping[str, Any]


# --- neighbours ----------------------------------------------------------------------------------

FORMS: Final = ("plain", "float", "decimal", "longer decimal", "text", "bool", "whole")
STYLES: Final[Mapping[str, Callable[[int], Any]]] = {
    "whole": lambda person: person,
    "large": lambda person: LARGE + person,
    "text": lambda person: f"0{person}",
    "decimal": lambda person: Decimal(f"{100 + person}.1"),
}
KINDS: Final = {"text": "text", "decimal": "decimal"}
"""The type of a person's name, by its style; the others are whole numbers."""
STRANGERS: Final = (17.5, Decimal("9999.10"), Decimal("1e30"), LARGE + 51, -1, "x", "1.0", "Ab")
"""Names of a person who is not like the others."""


def neighbours(
    columns: Mapping[str, Column],
    random: Random,
    *,
    relation: str,
    rows_per_unit: int | None,
    count: int,
    mixed: bool,
    keyed: bool,
) -> Neighbourhood:
    """A table and `count` neighbours; `mixed` gives one person's cells other encodings than the
    others'. Where rows have no key, a person's rows are told apart by their order."""
    custody: dict[str, Any] = {"neighbours": relation}
    if rows_per_unit is None:
        rows, others = _by_row(columns, random, relation, count, mixed)
    else:
        style = random.choice(list(STYLES) if mixed else ["whole", "large", "text"])
        rows, others = _by_person(
            columns, random, relation, count, mixed, most=rows_per_unit, named=STYLES[style]
        )
        columns = {**columns, WHO: Column((), kind=KINDS.get(style, "bigint"))}
        custody |= {"unit": WHO, "rows_per_unit": rows_per_unit}
    if keyed:
        columns = {**columns, KEY: Column((), kind="bigint")}
        custody["row_key"] = KEY
    return Neighbourhood(rows, others, columns, custody)


def _row(columns: Mapping[str, Column], random: Random, mixed: bool, **keys: Any) -> Row:
    cells = {name: column.cell(random) for name, column in columns.items()} | keys
    forms = {name: random.choice(FORMS) for name in cells} if mixed else {}
    return Row(cells, forms)


def _by_row(
    columns: Mapping[str, Column], random: Random, relation: str, count: int, mixed: bool
) -> tuple[list[Row], list[list[Row]]]:
    """One row more or less, or another in its place."""
    rows = [_row(columns, random, False, **{KEY: at}) for at in range(random.randint(6, 20))]
    if random.random() < 0.5:  # ties: whole rows come several times
        rows += [Row({**random.choice(rows).cells, KEY: 100 + i}) for i in range(6)]
    others = []
    for _ in range(count):
        at, other = random.randrange(len(rows)), list(rows)
        come = _row(columns, random, mixed, **{KEY: random.choice([777, LARGE + 3])})
        if relation == REPLACE_ONE:
            other[at] = come
        elif random.random() < 0.7:
            other.insert(at, come)
        else:
            del other[at]
        others.append(other)
    return rows, others


def _by_person(
    columns: Mapping[str, Column],
    random: Random,
    relation: str,
    count: int,
    mixed: bool,
    *,
    most: int,
    named: Callable[[int], Any],
) -> tuple[list[Row], list[list[Row]]]:
    """Everybody has 1 to most + 2 rows; one person's are replaced, leave, or come."""
    keys = iter(random.sample(range(10_000), 2_000))

    def rows_of(who: Any, mixed: bool = False) -> list[Row]:
        own = range(random.randint(1, most + 2))
        return [_row(columns, random, mixed, **{WHO: who, KEY: next(keys)}) for _ in own]

    people = [rows_of(named(i)) for i in range(random.randint(3, 7))]
    rows, others = _merged(people, random), []
    for _ in range(count):
        left, order = list(people), rows
        leaves = relation == REPLACE_ONE or random.random() < 0.3
        arrives = not leaves or (relation == REPLACE_ONE and random.random() < 0.8)
        gone = left.pop(random.randrange(len(left))) if leaves else []
        order = [row for row in rows if row not in gone]
        if random.random() < 0.5:
            order = _merged(left, random)
        come: list[Row] = []
        if arrives:
            own = random.choice([gone[0].cells[WHO] if gone else named(99), named(98)])
            strange = mixed and random.random() < 0.6
            come = rows_of(random.choice(STRANGERS) if strange else own, mixed)
        others.append(_inserted(order, come, random))
    return rows, others


def _merged(people: Sequence[list[Row]], random: Random) -> list[Row]:
    """Everybody's rows among the others', each person's own in their order."""
    turns = [i for i, rows in enumerate(people) for _ in rows]
    random.shuffle(turns)
    streams = [iter(rows) for rows in people]
    return [next(streams[i]) for i in turns]


def _inserted(rows: list[Row], more: list[Row], random: Random) -> list[Row]:
    places = sorted(random.randint(0, len(rows)) for _ in more)
    merged = list(rows)
    for shift, (place, row) in enumerate(zip(places, more, strict=True)):
        merged.insert(place + shift, row)
    return merged


def _decimal(cell: Any) -> Decimal:
    return Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)


def _written(cell: Any) -> str:
    """A cell of a column of texts: one number has one text, or one person would be several."""
    return cell if isinstance(cell, str) else f"{_decimal(cell).normalize():f}"


def encoded(cell: Any, form: str) -> Any:
    """The same value in another form; one that has no such form stays as it is.

    >>> encoded(0.5, "longer decimal"), encoded(1, "bool"), encoded("a", "float")
    (Decimal('0.50'), True, 'a')
    """
    if cell is None or isinstance(cell, str):
        return cell
    number = _decimal(cell)
    whole, small = number == number.to_integral_value(), abs(number) <= LARGE
    longer = f"{number:f}" + ("0" if "." in f"{number:f}" else ".0")
    forms: dict[str, Callable[[], Any]] = {
        "text": lambda: _written(cell),
        "decimal": lambda: number,
        "longer decimal": lambda: Decimal(longer),
        "float": lambda: float(number) if small else cell,
        "whole": lambda: int(number) if whole else cell,
        "bool": lambda: bool(number) if number in (0, 1) else cell,
    }
    return forms[form]() if form in forms else cell


# --- entrances -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entrance:
    """One way in: `hold` turns rows into what `heldout` opens, and what is declared with it."""

    name: str
    hold: Callable[[list[Row], Mapping[str, Column], Any, int], tuple[Any, dict[str, Any]]]
    place: Any = None
    keyed: bool = False
    """Rows have no order there, so that they need a key."""
    typed: bool = True
    """The storage declares the types, which are the same for both neighbours."""


def _lists(rows: list[Row], columns: Mapping[str, Column]) -> dict[str, list[Any]]:
    return {
        name: [encoded(row.cells[name], row.forms.get(name, "plain")) for row in rows]
        for name in columns
    }


def _as_lists(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    return _lists(rows, columns), {}


def _as_pandas(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    import pandas as pd

    return pd.DataFrame(_lists(rows, columns)), {}


def _as_polars(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    import polars as pl

    return pl.from_arrow(_arrow(rows, columns)), {}


def _arrow(rows: list[Row], columns: Mapping[str, Column]) -> Any:
    """The declared types; of mixed forms those that a library guesses by looking at all cells."""
    import pyarrow as pa

    types = {
        "double": pa.float64(),
        "bigint": pa.int64(),
        "text": pa.string(),
        "decimal": pa.decimal128(18, 1),
    }
    if any(row.forms for row in rows):
        return pa.table({name: _guessed(cells) for name, cells in _lists(rows, columns).items()})
    schema = pa.schema([(name, types[column.kind]) for name, column in columns.items()])
    return pa.table({name: [row.cells[name] for row in rows] for name in columns}, schema=schema)


def _guessed(cells: list[Any]) -> Any:
    """A text if any cell is one, else a decimal, a double, an integer."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells} - {type(None)}
    if str in kinds:
        return pa.array([None if cell is None else _written(cell) for cell in cells], pa.string())
    if Decimal in kinds:
        numbers = [None if cell is None else _decimal(cell) for cell in cells]
        scales = [-int(number.as_tuple().exponent) for number in numbers if number is not None]
        return pa.array(numbers, pa.decimal128(38, max(0, *scales)))
    if float in kinds:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array([cell if cell is None else int(cell) for cell in cells])


def _as_arrow(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    return _arrow(rows, columns), {}


def _as_parquet(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    import pyarrow.parquet as pq

    path = Path(place) / "rows.parquet"
    pq.write_table(_arrow(rows, columns), path)
    return path, {}


def _as_csv(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    """With and without a schema, in turns."""
    path = Path(place) / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(list(columns))
        cells = _lists(rows, columns)
        for name in (name for name, column in columns.items() if column.kind == "text"):
            cells[name] = [cell if cell is None else _written(cell) for cell in cells[name]]
        writer.writerows(zip(*cells.values(), strict=True))
    types = {"double": "DOUBLE", "bigint": "BIGINT", "text": "VARCHAR", "decimal": "DECIMAL(18, 4)"}
    if turn % 2 and KEY not in columns and WHO not in columns:
        return path, {}
    return path, {"schema": {name: types[column.kind] for name, column in columns.items()}}


def _as_postgres(
    rows: list[Row], columns: Any, place: Any, turn: int
) -> tuple[Any, dict[str, Any]]:
    import heldout as ho

    connection, address, schema = place
    types = {"double": "DOUBLE PRECISION", "bigint": "BIGINT", "text": "TEXT"}
    listed = ", ".join(f'"{name}" {types[column.kind]}' for name, column in columns.items())
    table = f"{schema}.t{next(_NUMBERS)}"
    connection.execute(f"CREATE TABLE {table} ({listed})")
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copied:
        for row in rows:
            copied.write_row([row.cells[name] for name in columns])
    return ho.PostgresTable(address, table=table), {}


def _as_spark(rows: list[Row], columns: Any, place: Any, turn: int) -> tuple[Any, dict[str, Any]]:
    from pyspark.sql.pandas.types import from_arrow_schema

    table = _arrow(rows, columns)
    return place.createDataFrame(table, schema=from_arrow_schema(table.schema)), {}


ENTRANCES: Final = ("list", "pandas", "Polars", "Arrow", "Parquet", "CSV", "PostgreSQL", "Spark")
_HERE: Final[Mapping[str, Any]] = {
    "list": (_as_lists, False),
    "pandas": (_as_pandas, False),
    "Polars": (_as_polars, False),
    "Arrow": (_as_arrow, False),
    "Parquet": (_as_parquet, False),
    "CSV": (_as_csv, False),
}


@contextmanager
def entrances(names: Sequence[str] = ENTRANCES) -> Iterator[list[Entrance]]:
    """Those that there are: PostgreSQL where HELDOUT_TEST_POSTGRES is set, Spark likewise."""
    with TemporaryDirectory() as folder:
        opened = [
            Entrance(name, hold, folder, typed=typed)
            for name, (hold, typed) in _HERE.items()
            if name in names
        ]
        with _postgres() as connected, _spark() as session:
            if "PostgreSQL" in names and connected is not None:
                opened.append(Entrance("PostgreSQL", _as_postgres, connected, keyed=True))
            if "Spark" in names and session is not None:
                opened.append(Entrance("Spark", _as_spark, session, keyed=True))
            yield opened


@contextmanager
def _postgres() -> Iterator[Any]:
    address = os.environ.get("HELDOUT_TEST_POSTGRES")
    if not address:
        yield None
        return
    import psycopg

    plain = address.replace("postgresql+psycopg:", "postgresql:")
    schema = f"replay_{os.getpid()}_{time.time_ns()}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield connection, plain, schema
        connection.execute("SET lock_timeout = '2s'")
        with suppress(psycopg.Error):
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@contextmanager
def _spark() -> Iterator[Any]:
    if not os.environ.get("HELDOUT_TEST_SPARK"):
        yield None
        return
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[1]").appName("heldout")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
