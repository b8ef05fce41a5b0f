"""Made-up neighbouring tables for the replay, and the entrances through which they come in.

Rows are drawn at random and adversarially: ties, cells at the edges of bins, missing cells, people
with more rows than count, other people's rows between theirs, and the same values in other
encodings (1, 1.0, True, Decimal("1.0"), "1").
"""

import atexit
import csv
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from heldout.data import sql
from heldout.kernel.neighbours import Neighbours
from heldout.questions.worst_cases import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

REPLACE_ONE, ADD_REMOVE, LABEL = (str(relation) for relation in Neighbours)
WHO, KEY = "who", "row"
"""The columns that say whose row it is, and which."""
LARGE: Final = 2**53
_COUNTER: Final = itertools.count()
Columns = Mapping[str, Column]


@dataclass(frozen=True)
class Row:
    """A row's cells, and the form that a cell takes where a table is untyped."""

    cells: Mapping[str, Any]
    forms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Neighbourhood:
    """Tables of which many pairs are neighbours, and what is declared of all of them.

    Tables that differ in one and the same row are all neighbours of each other. A table where each
    of several rows is present or absent has a neighbour for each of them.
    """

    tables: list[list[Row]]
    pairs: list[tuple[int, int]]
    """Places of tables that are neighbours; the later one is never before the first."""
    columns: Columns
    custody: Mapping[str, Any]


# --- neighbours ----------------------------------------------------------------------------------

FORMS: Final = ("plain", "float", "decimal", "longer decimal", "text", "bool", "whole")
STYLES: Final[Mapping[str, Callable[[int], Any]]] = {
    "whole": lambda person: person,
    "large": lambda person: LARGE + person,
    # From the fifth person on, two are one double: 2^53 and 2^53 + 1.
    "edge": lambda person: LARGE - 3 + person,
    "text": lambda person: f"0{person}",
    "decimal": lambda person: Decimal(f"{100 + person}.1"),
}
TYPES: Final = {"text": "text", "decimal": "decimal"}
"""The type of a person's name, by its style; the others are whole numbers."""
STRANGERS: Final = (17.5, Decimal("9999.10"), Decimal("1e30"), LARGE + 51, -1, "x", "9.0", "Ab")
"""Names of a person who is not like the others."""


def draw_neighbours(
    columns: Columns,
    random: Random,
    *,
    relation: str,
    rows_per_unit: int | None,
    count: int,
    mixed: bool,
    keyed: bool,
    typed: bool = False,
    outcome: tuple[str, ...] = (),
) -> Neighbourhood:
    """Return tables with `count` pairs of neighbours; `mixed` gives new cells other encodings.

    Where the storage is `typed`, only the digits of decimals differ. Where rows have no key, a
    person's rows are distinguished by their order. Label neighbours differ in `outcome` alone.
    """
    pairs = _cube(count) if relation == ADD_REMOVE else _clique(count)
    several = 1 + max(after for _, after in pairs)
    custody: dict[str, Any] = {"neighbours": relation}
    if rows_per_unit is None:
        tables = _by_row(columns, random, relation, several, mixed and not typed, outcome=outcome)
    else:
        styles = ["decimal"] if mixed and typed else [*STYLES] if mixed else [*STYLES][:-1]
        style = random.choice(styles)
        tables = _by_person(
            columns,
            random,
            relation,
            several,
            mixed,
            typed=typed,
            most=rows_per_unit,
            name=STYLES[style],
            outcome=outcome,
        )
        columns = {**columns, WHO: Column((), type=TYPES.get(style, "bigint"))}
        custody |= {"unit": WHO, "rows_per_unit": rows_per_unit}
    if keyed:
        columns = {**columns, KEY: Column((), type="bigint")}
        custody["row_key"] = KEY
    return Neighbourhood(tables, pairs, columns, custody)


def _clique(count: int) -> list[tuple[int, int]]:
    """Return the first pairs of tables that all differ in one row.

    >>> _clique(4)
    [(0, 1), (0, 2), (1, 2), (0, 3)]
    """
    every = ((before, after) for after in itertools.count(1) for before in range(after))
    return list(itertools.islice(every, count))


def _cube(count: int) -> list[tuple[int, int]]:
    """Return the first pairs of numbers that differ in one bit: of a row that is there or not.

    >>> _cube(4)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    every = (
        (after ^ (1 << bit), after)
        for after in itertools.count(1)
        for bit in reversed(range(after.bit_length()))
        if after & (1 << bit)
    )
    return list(itertools.islice(every, count))


def _draw(column: Column, random: Random) -> object:
    """Return a cell."""
    if not column.other or random.random() < 0.6:
        return random.choice(column.special)
    return random.random() if column.other == "uniform" else random.gauss(0, 3)


def _row(columns: Columns, random: Random, mixed: bool, typed: bool, **keys: Any) -> Row:
    cells = {name: _draw(column, random) for name, column in columns.items()} | keys
    names = [WHO] if typed else cells
    forms = {name: random.choice(FORMS[2:4] if typed else FORMS) for name in names if mixed}
    return Row(cells, forms)


def _by_row(
    columns: Columns,
    random: Random,
    relation: str,
    several: int,
    mixed: bool,
    *,
    outcome: tuple[str, ...],
) -> list[list[Row]]:
    """Return a table and others with another row in one place; or with rows more or less."""
    rows = [_row(columns, random, False, False, **{KEY: at}) for at in range(random.randint(6, 20))]
    if random.random() < 0.5:  # ties: whole rows come several times
        rows += [Row({**random.choice(rows).cells, KEY: 100 + i}) for i in range(6)]
    if relation == ADD_REMOVE:
        places = random.sample(range(len(rows)), (several - 1).bit_length())
        # A row in front of the place, or none: then the row at the place leaves.
        new = [
            _row(columns, random, mixed, False, **{KEY: random.choice([777, LARGE + 3]) + bit})
            if random.random() < 0.7
            else None
            for bit in range(len(places))
        ]

        def turn(bits: int) -> list[Row]:
            turned = {at: new[bit] for bit, at in enumerate(places) if bits >> bit & 1}
            both = (
                [row] if at not in turned else [] if turned[at] is None else [turned[at], row]
                for at, row in enumerate(rows)
            )
            return [row for own in both for row in own if row is not None]

        return [turn(bits) for bits in range(several)]
    at, tables = random.randrange(len(rows)), [rows]
    for _ in range(several - 1):
        other = list(rows)
        if relation == LABEL:
            other[at] = _with_outcome(rows[at], columns, random, mixed, outcome)
        else:
            keys = {KEY: random.choice([777, LARGE + 3])}
            other[at] = _row(columns, random, mixed, False, **keys)
        tables.append(other)
    return tables


def _by_person(
    columns: Columns,
    random: Random,
    relation: str,
    several: int,
    mixed: bool,
    *,
    typed: bool,
    most: int,
    name: Callable[[int], Any],
    outcome: tuple[str, ...],
) -> list[list[Row]]:
    """Return tables where everybody has 1 to most + 2 rows; one person's differ in the others, or
    some people's are there or not.
    """
    keys = iter(random.sample(range(10_000), 2_000))

    def rows_of(who: Any, mixed: bool = False) -> list[Row]:
        own = range(random.randint(1, most + 2))
        return [_row(columns, random, mixed, typed, **{WHO: who, KEY: next(keys)}) for _ in own]

    people = [rows_of(name(i)) for i in range(random.randint(3, 7))]
    tables = [_merge(people, random)]
    own = random.choice(people)
    strangers = random.sample(STRANGERS, len(STRANGERS))

    def newcomer(names: Sequence[Any], mixed: bool) -> list[Row]:
        strange = mixed and not typed and random.random() < 0.6
        return rows_of(strangers.pop() if strange else random.choice(names), mixed)

    if relation == ADD_REMOVE:
        bits = (several - 1).bit_length()
        leave = random.sample(people, min(sum(random.random() < 0.3 for _ in range(bits)), 2))
        # Cells of one of them alone have other forms: tables with several would be refused.
        come = [newcomer([name(99 - bit)], mixed and not bit) for bit in range(bits - len(leave))]
        turns = random.sample([*leave, *come], bits)
        for turned in range(1, several):
            now = {id(one) for bit, one in enumerate(turns) if turned >> bit & 1}
            left = [one for one in people if id(one) not in now]
            order = _merge(left, random) if random.random() < 0.5 else _of(tables[0], left)
            for one in come:
                order = _insert(order, one if id(one) in now else [], random)
            tables.append(order)
        return tables
    for _ in range(several - 1):
        if relation == LABEL:
            forms = mixed and not typed
            changed = [row for row in own if random.random() < 0.8] or own
            tables.append(
                [
                    _with_outcome(row, columns, random, forms, outcome)
                    if any(row is one for one in changed)
                    else row
                    for row in tables[0]
                ]
            )
            continue
        left = [one for one in people if one is not own]
        order = _merge(left, random) if random.random() < 0.5 else _of(tables[0], left)
        arrives = random.random() < 0.8
        strangers = random.sample(STRANGERS, len(STRANGERS))
        names = [own[0].cells[WHO], name(98)]
        tables.append(_insert(order, newcomer(names, mixed) if arrives else [], random))
    return tables


def _of(rows: list[Row], people: Sequence[list[Row]]) -> list[Row]:
    """Return the rows of these people, in the order of the table."""
    there = {id(row) for one in people for row in one}
    return [row for row in rows if id(row) in there]


def _with_outcome(
    row: Row, columns: Columns, random: Random, mixed: bool, outcome: tuple[str, ...]
) -> Row:
    """Return the row with another outcome, and nothing else changed."""
    cells = {name: _draw(columns[name], random) for name in outcome}
    forms = {name: random.choice(FORMS) for name in outcome if mixed}
    return Row({**row.cells, **cells}, {**row.forms, **forms})


def _merge(people: Sequence[list[Row]], random: Random) -> list[Row]:
    """Return everybody's rows among the others', a person's own in their order."""
    turns = [i for i, rows in enumerate(people) for _ in rows]
    random.shuffle(turns)
    streams = [iter(rows) for rows in people]
    return [next(streams[i]) for i in turns]


def _insert(rows: list[Row], more: list[Row], random: Random) -> list[Row]:
    places = sorted(random.randint(0, len(rows)) for _ in more)
    merged = list(rows)
    for shift, (place, row) in enumerate(zip(places, more, strict=True)):
        merged.insert(place + shift, row)
    return merged


def _decimal(cell: Any) -> Decimal:
    return Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)


def _write(cell: Any) -> str:
    """Return a cell of a column of texts: one number has one text, or one person would be two."""
    return cell if isinstance(cell, str) else f"{_decimal(cell).normalize():f}"


def encode(cell: Any, form: str) -> Any:
    """Return the same value in another form; one that has no such form stays as it is.

    >>> encode(0.5, "longer decimal"), encode(1, "bool"), encode("a", "float")
    (Decimal('0.50'), True, 'a')
    """
    if cell is None or isinstance(cell, str):
        return cell
    number = _decimal(cell)
    whole, small = number == number.to_integral_value(), abs(number) <= LARGE
    longer = f"{number:f}" + ("0" if "." in f"{number:f}" else ".0")
    forms: dict[str, Callable[[], Any]] = {
        "text": lambda: _write(cell),
        "decimal": lambda: number,
        "longer decimal": lambda: Decimal(longer),
        "float": lambda: float(number) if small else cell,
        "whole": lambda: int(number) if whole else cell,
        "bool": lambda: bool(number) if number in (0, 1) else cell,
    }
    return forms[form]() if form in forms else cell


# --- entrances -----------------------------------------------------------------------------------

Table = tuple[object, dict[str, Any]]
"""What `heldout` opens, and what is declared with it."""


@dataclass(frozen=True)
class Entrance:
    """One way in: `store` puts rows where `heldout` finds them."""

    name: str
    store: Callable[[list[Row], Columns, Any, int], Table]
    place: Any = None
    keyed: bool = False
    """Rows have no order there, so that they need a key."""
    typed: bool = False
    """The storage declares the types, which are the same for both neighbours."""


def _cells(rows: list[Row], columns: Columns) -> dict[str, list[Any]]:
    return {
        name: [encode(row.cells[name], row.forms.get(name, "plain")) for row in rows]
        for name in columns
    }


def _arrow(rows: list[Row], columns: Columns) -> "pa.Table":
    """Return declared types; of mixed forms those that a library guesses from all cells."""
    import pyarrow as pa

    types = {
        "double": pa.float64(),
        "bigint": pa.int64(),
        "text": pa.string(),
        "decimal": pa.decimal128(18, 1),
    }
    if any(row.forms for row in rows):
        return pa.table({name: _guess(cells) for name, cells in _cells(rows, columns).items()})
    schema = pa.schema([(name, types[column.type]) for name, column in columns.items()])
    return pa.table({name: [row.cells[name] for row in rows] for name in columns}, schema=schema)


def _guess(cells: list[Any]) -> "pa.Array[Any]":
    """Return texts if any cell is one, else decimals, doubles, integers."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells} - {type(None)}
    if str in kinds:
        return pa.array([None if cell is None else _write(cell) for cell in cells], pa.string())
    if Decimal in kinds:
        numbers = [None if cell is None else _decimal(cell) for cell in cells]
        scales = [-int(number.as_tuple().exponent) for number in numbers if number is not None]
        return pa.array(numbers, pa.decimal128(38, max(0, *scales)))
    if float in kinds:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array([cell if cell is None else int(cell) for cell in cells])


def store_list(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    return _cells(rows, columns), {}


def _store_pandas(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    import pandas as pd

    return pd.DataFrame(_cells(rows, columns)), {}


def _store_polars(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    import polars as pl

    return pl.from_arrow(_arrow(rows, columns)), {}


def _store_arrow(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    return _arrow(rows, columns), {}


def _store_csv(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    """Write a file, with and without a schema in turns."""
    path = _new_folder(place) / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(list(columns))
        cells = _cells(rows, columns)
        for name in (name for name, column in columns.items() if column.type == "text"):
            cells[name] = [cell if cell is None else _write(cell) for cell in cells[name]]
        writer.writerows(zip(*cells.values(), strict=True))
    types = {"double": "DOUBLE", "bigint": "BIGINT", "text": "VARCHAR", "decimal": "DECIMAL(18, 4)"}
    if turn % 2 and KEY not in columns and WHO not in columns:
        return path, {}
    return path, {"schema": {name: types[column.type] for name, column in columns.items()}}


def _store_parquet(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    import pyarrow.parquet as pq

    path = _new_folder(place) / "rows.parquet"
    pq.write_table(_arrow(rows, columns), path)
    return path, {}


def _store_folder(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    """Write two files, the first of seven rows."""
    table = _arrow(rows, columns)
    return _write_files({"1.parquet": table.slice(0, 7), "2.parquet": table.slice(7)}, place), {}


def _store_hive(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    """Write a file per value of a text column; where there is none, of a column nobody declared."""
    table = _arrow(rows, columns)
    texts = [name for name, column in columns.items() if column.type == "text" and name != WHO]
    values = [row.cells[texts[0] if texts else next(iter(columns))] for row in rows]
    name = texts[0] if texts else "ward"
    files = {}
    for value in dict.fromkeys(values):
        own = [at for at, other in enumerate(values) if other == value]
        folder = f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else value}"
        files[f"{folder}/1.parquet"] = table.take(own).drop_columns(texts[:1])
    return _write_files(files, place), {}


def _store_at_address(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    """Write a folder, with and without partitions in turns, which Arrow finds by its address."""
    store = _store_hive if turn % 2 else _store_folder
    path, declared = store(rows, columns, place, turn)
    return Path(str(path)).as_uri(), declared


def _new_folder(place: Any) -> Path:
    """Return a folder for one table: DuckDB may remember a file that was at a path before."""
    folder = Path(place) / f"{next(_COUNTER)}"
    folder.mkdir()
    return folder


def _write_files(files: Mapping[str, "pa.Table"], place: Any) -> Path:
    import pyarrow.parquet as pq

    folder = _new_folder(place)
    for name, table in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
    return folder


def _store_postgres(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    import heldout as ho

    connection, address, schema = place
    types = {"double": "DOUBLE PRECISION", "bigint": "BIGINT", "text": "TEXT", "decimal": "NUMERIC"}
    listed = ", ".join(f'"{name}" {types[column.type]}' for name, column in columns.items())
    table = f"{schema}.t{next(_COUNTER):09}"
    connection.execute(f"CREATE TABLE {table} ({listed})")
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copied:
        for cells in zip(*_cells(rows, columns).values(), strict=True):
            copied.write_row(cells)
    return ho.PostgresTable(address, table=table), {}


def _store_spark(rows: list[Row], columns: Columns, place: Any, turn: int) -> Table:
    from pyspark.sql.pandas.types import from_arrow_schema

    table = _arrow(rows, columns)
    return place.createDataFrame(table, schema=from_arrow_schema(table.schema)), {}


_LOCAL: Final = (
    Entrance("list", store_list),
    Entrance("pandas", _store_pandas),
    Entrance("Polars", _store_polars),
    Entrance("Arrow", _store_arrow),
    Entrance("CSV", _store_csv),
    Entrance("Parquet", _store_parquet),
    Entrance("folder", _store_folder),
    Entrance("hive", _store_hive),
    Entrance("address", _store_at_address, keyed=True),
)
ENTRANCES: Final = (*(entrance.name for entrance in _LOCAL), "PostgreSQL", "Spark")
ENGINES: Final = ("list", "PostgreSQL", "Spark")
"""An entrance of each engine. All others bring their rows to DuckDB, as lists do."""


def pairs_needed(entrance: str, pairs: int) -> int:
    """Return how many pairs a replay of everything takes through one entrance.

    Those of one engine differ in how rows come in, not in what is asked of them.

    >>> pairs_needed("PostgreSQL", 200), pairs_needed("hive", 200)
    (200, 50)
    """
    return pairs if entrance in ENGINES else -(-pairs // 4)


_NAMES: Final = re.compile(r"(?<=\bt)\d{9}\b|(?<=heldout_(?:rows|held)_)[0-9a-f]{16}\b")


@cache
def _put_into(statement: str, dialect: str) -> str:
    return str(sql.transpile.__wrapped__(statement, dialect=dialect))


def _put_into_once(statement: str, *, dialect: str) -> str:
    """Return a statement in an engine's dialect, translated once for all names of tables.

    >>> _put_into_once('SELECT "y" FROM "s"."t000000012"', dialect="postgres").split()[-1]
    '"s"."t000000012"'
    """
    names = set(_NAMES.findall(statement))
    if len(names) != 1:
        return _put_into(statement, dialect)
    [name] = names
    zeros = "0" * len(name)
    return _put_into(statement.replace(name, zeros), dialect).replace(zeros, name)


@contextmanager
def open_entrances(names: Sequence[str] = ENTRANCES) -> Iterator[list[Entrance]]:
    """Open those that there are: PostgreSQL where HELDOUT_TEST_POSTGRES is set, Spark likewise."""
    with ExitStack() as stack:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # to delete is quick there
        folder = stack.enter_context(TemporaryDirectory(dir=memory))
        there = [replace(entrance, place=folder) for entrance in _LOCAL if entrance.name in names]
        address = os.environ.get("HELDOUT_TEST_POSTGRES")
        if "PostgreSQL" in names and address:
            stack.enter_context(patch("heldout.data.postgres.transpile", _put_into_once))
            place = stack.enter_context(_postgres(address))
            there.append(Entrance("PostgreSQL", _store_postgres, place, keyed=True, typed=True))
        if "Spark" in names and os.environ.get("HELDOUT_TEST_SPARK"):
            stack.enter_context(patch("heldout.data.spark.transpile", _put_into_once))
            session = _spark()
            there.append(Entrance("Spark", _store_spark, session, keyed=True, typed=True))
        yield there


@contextmanager
def _postgres(address: str) -> Iterator[tuple[object, str, str]]:
    import psycopg

    plain = address.replace("postgresql+psycopg:", "postgresql:")
    schema = f"replay_{os.getpid()}_{time.time_ns()}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield connection, plain, schema
        connection.execute("SET lock_timeout = '2s'")
        with suppress(psycopg.Error):
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@cache
def _spark() -> "SparkSession":
    """Return a session that lasts as long as the process: to start one takes longer than a table.

    Tables are so short that planning takes nearly all of the time. What makes long queries quick
    (compiled code, plans that adapt) makes these slow.
    """
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[1]").appName("heldout")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session
