"""Every way into heldout for the same rows, and rows in mixed encodings of the same values.

A row is a dict of Python cells; what a cell means does not depend on how it is written: 7, 7.0,
Decimal("7.00") and "7" are one person. `ENTRANCES` turns rows into what `heldout.Dataset` takes, in
the way that people usually do it, so a library may choose a column's type by looking at all cells.
`neighbours` draws two tables that differ in one person, and nothing that was drawn for the others.

    source, declared = ENTRANCES["pandas"](rows, tmp_path)
    ho.Dataset(source, **COLUMNS, **declared)
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from heldout.data import sql

Row = dict[str, Any]
Entrance = Callable[[Sequence[Row], Path], tuple[Any, dict[str, Any]]]

WARDS = ("01", "02")
COLUMNS: dict[str, Any] = {
    "label": "y",
    "score": "p",
    "unit": "person",
    "row_key": "visit",
    "groups": {"ward": list(WARDS)},
}
"""How the columns of drawn rows are declared."""

PEOPLE = (
    *(str(number) for number in (1, 7, 17, 20, 100)),
    *(str(2**53 + more) for more in (0, 1, 2)),
    *("101.1", "0.5", "-3.25"),
    *("p7", "007", "Ann"),
)
"""People as texts; each has rows with the keys `person number * 10 + place`."""


def plain(text: str) -> bool:
    """Whether it is a number as people write one, and not a code."""
    try:
        Decimal(text)
    except ArithmeticError:
        return False
    return text == "0" or not text.lstrip("-").startswith("0") or text.startswith("0.")


@st.composite
def cells(draw: st.DrawFn, value: str, *, texts: bool = True) -> Any:
    """One of the ways to write a value: a text, and of a number several others."""
    if not plain(value):
        return value
    number = Decimal(value)
    ways: list[Any] = [number, *(number.quantize(Decimal(10) ** -scale) for scale in (2, 4))]
    if Decimal(repr(float(number))) == number and abs(number) < 2**53:
        ways.append(float(number))
    if number == number.to_integral_value():
        ways += [int(number)] * 2
    return draw(st.sampled_from([*ways, value] if texts else ways))


@st.composite
def persons(draw: st.DrawFn, name: str, *, texts: bool = True) -> list[Row]:
    """All rows of one person: up to three, with keys that no other person has."""
    first, found = 10 * PEOPLE.index(name), []
    for place in range(draw(st.integers(1, 3))):
        ward = draw(st.sampled_from([*WARDS, "x", "1"]))
        found.append(
            {
                "person": draw(cells(name, texts=texts)),
                "visit": draw(cells(str(first + place), texts=texts)),
                "y": draw(st.sampled_from([0, 1, 0.0, 1.0, Decimal("1.0")])),
                "p": draw(st.sampled_from([0, 1, 0.25, 0.75, Decimal("0.50"), Decimal("0.125")])),
                "ward": ward,
            }
        )
    return found


@st.composite
def neighbours(draw: st.DrawFn, *, texts: bool = True) -> tuple[list[Row], list[Row], list[Row]]:
    """The rows of everybody else, of one person, and of who comes in their place (perhaps nobody).

    With `texts=False` people are numbers alone: what a column of a numeric type can hold.
    """
    known = [name for name in PEOPLE if texts or plain(name)]
    chosen = draw(st.permutations(known))[: draw(st.integers(4, 6))]
    others = [row for name in chosen[2:] for row in draw(persons(name, texts=texts))]
    one, instead = (draw(persons(name, texts=texts)) for name in chosen[:2])
    return others, one, draw(st.sampled_from([[], instead]))


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _written(cell: Any) -> str:
    """A number's text without zeros that say nothing: in a column of texts there is no scale."""
    if isinstance(cell, str):
        return cell
    number = Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)
    return f"{number.normalize():f}"


def arrow_table(rows: Sequence[Row]) -> pa.Table:
    """What a library infers: integers, doubles, decimals of the largest scale, or texts."""
    found = {}
    for name, values in _columns(rows).items():
        kinds = {type(cell) for cell in values}
        if str in kinds:
            found[name] = pa.array([_written(cell) for cell in values])
        elif Decimal in kinds:
            numbers = [Decimal(_written(cell)) for cell in values]
            scale = max((-int(cell.as_tuple().exponent) for cell in values
                         if isinstance(cell, Decimal)), default=0)  # fmt: skip
            found[name] = pa.array(numbers, pa.decimal128(30, max(scale, 4 if name == "p" else 0)))
        elif float in kinds and all(abs(cell) < 2**53 for cell in values):
            found[name] = pa.array([float(cell) for cell in values])
        else:
            found[name] = pa.array([int(cell) for cell in values] if kinds != {bool} else values)
    return pa.table(found)


def _dict(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    return _columns(rows), {}


def _pandas(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    import pandas as pd

    return pd.DataFrame(list(rows)), {}


def _polars(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    import polars as pl

    return pl.from_arrow(arrow_table(rows)), {}


def _arrow(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    return arrow_table(rows), {}


def _csv(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    path = _new(place, "rows.csv")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows(
            [_written(cell) if name in ("person", "visit") else cell for name, cell in row.items()]
            for row in rows
        )
    return path, {}


def _parquet(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    path = _new(place, "rows.parquet")
    pq.write_table(arrow_table(rows), path)
    return path, {}


def _folder(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    table, folder = arrow_table(rows), _new(place, "rows")
    folder.mkdir()
    half = len(rows) // 2
    pq.write_table(table.slice(0, half), folder / "a.parquet")
    pq.write_table(table.slice(half), folder / "b.parquet")
    return folder, {}


def _hive(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    """A folder for each ward, called ward=01, ward=x."""
    table, folder = arrow_table(rows), _new(place, "rows")
    wards = table["ward"].to_pylist()
    for ward in sorted(set(wards)):
        part = folder / f"ward={ward}"
        part.mkdir(parents=True)
        mine = table.filter(pa.array([cell == ward for cell in wards]))
        pq.write_table(mine.drop(["ward"]), part / "rows.parquet")
    return folder, {}


def _address(rows: Sequence[Row], place: Path) -> tuple[Any, dict[str, Any]]:
    folder, declared = _hive(rows, place)
    return folder.as_uri(), declared


def _new(place: Path, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(dir=place))
    return folder / name


ENTRANCES: dict[str, Entrance] = {
    "dict": _dict,
    "pandas": _pandas,
    "polars": _polars,
    "arrow": _arrow,
    "csv": _csv,
    "parquet": _parquet,
    "folder": _folder,
    "hive": _hive,
    "address": _address,
}
"""Those in this process; `CATALOGUES` are for PostgreSQL and Spark."""


def _catalogue(rows: Sequence[Row], kind: pa.DataType) -> pa.Table:
    """The rows as a database holds them: the types are the catalogue's, whatever the cells are."""
    columns = _columns(rows)
    keys = {name: [_written(cell) for cell in columns[name]] for name in ("person", "visit")}
    decimals = pa.types.is_decimal(kind)
    return pa.table(
        {
            **{
                name: pa.array([Decimal(cell) if decimals else cell for cell in cells], kind)
                for name, cells in keys.items()
            },
            "y": pa.array([int(float(cell)) for cell in columns["y"]], pa.int32()),
            "p": pa.array([float(cell) for cell in columns["p"]]),
            "ward": pa.array([str(cell) for cell in columns["ward"]]),
        }
    )


CATALOGUES: dict[str, Callable[[Sequence[Row]], pa.Table]] = {
    "texts": partial(_catalogue, kind=pa.string()),
    "decimals": partial(_catalogue, kind=pa.decimal128(30, 6)),
}
"""Tables for the engines of `tests/engines`, whose fixtures `hold` them. Decimals need people who
are numbers: `neighbours(texts=False)`."""


def facts(dataset: Any) -> Counter[tuple[Any, ...]]:
    """Each row that counts: person and key as they are told apart, label, score and group."""
    types = dataset._engine.columns
    other = dataset.with_groups("ward")
    keys = {name: sql.key(name, types[name]) for name in ("person", "visit")}
    numbers = {f"{name}_number": sql.key_number(name, types[name]) for name in keys}
    texts = {name: f"CAST({expression} AS VARCHAR)" for name, expression in keys.items()}
    other._exposed_columns = {**other._exposed_columns, **texts, **numbers}
    found = other._fetch("SELECT * FROM evaluated")
    return Counter(zip(*(np.asarray(found[name]).tolist() for name in sorted(found)), strict=True))


def check_neighbours(open_rows: Callable[[list[Row]], Any], drawn: tuple[list[Row], ...]) -> None:
    """Nobody else's row changes when one person comes, goes or becomes another."""
    others, one, instead = drawn
    alone, with_one, replaced = (facts(open_rows([*others, *more])) for more in ([], one, instead))
    assert not alone - with_one
    assert not alone - replaced
    assert (with_one - alone).total() == 1
    assert (replaced - alone).total() == bool(instead)
