"""Which rows count where a person may have several: found once, when the rows are opened.

There is one rule and one statement, `sql.evaluated`, which every engine runs over its own rows.
Rows of files and frames have an order, so the places of those that count are marked. Elsewhere the
engine copies the declared columns of those that count; one that cannot is asked for each question.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from heldout.data import sql
from heldout.data.duckdb import DuckDBEngine
from heldout.data.engine import Engine, as_numpy

PASS_BYTES: Final = 2**30
"""What is sorted or told apart of so many bytes, 64 a row, is in memory at a time."""
_PLACE: Final = "heldout_place"


@dataclass(frozen=True)
class Limit:
    """At most `rows_per_unit` rows of a unit."""

    unit: str
    row_key: str | None
    rows_per_unit: int

    def statement(self, source: str, columns: Mapping[str, str], types: Mapping[str, str]) -> str:
        """Return the statement that finds these columns of the rows that count."""
        return sql.evaluated(
            source=source,
            columns=columns,
            types=types,
            unit=self.unit,
            row_key=self.row_key,
            rows_per_unit=self.rows_per_unit,
        )


class BoundedRows(Protocol):
    """The rows that count, found once."""

    def statement(self, columns: Mapping[str, str]) -> str | None:
        """Return what reads these columns of them; None where they must be found again."""


@dataclass(frozen=True)
class MarkedRows:
    """The places of the rows that count in a table with an order, and some of their columns."""

    source: str
    columns: Mapping[str, str]

    @staticmethod
    def of(
        engine: DuckDBEngine, limit: Limit, columns: Mapping[str, str], *, rows: int
    ) -> "MarkedRows":
        """Find the rows that count, and keep these columns of them unless they are too many."""
        copied = engine.mark(counted_rows(engine, limit, rows=rows), columns)
        return MarkedRows(engine.source, copied)

    def statement(self, columns: Mapping[str, str]) -> str:
        if columns.items() <= self.columns.items():
            return f"SELECT {', '.join(columns)}\n  FROM {sql.KEPT}"
        return sql.counted(source=self.source, columns=columns)


def counted_rows(engine: DuckDBEngine, limit: Limit, *, rows: int) -> sql.Array:
    """For each row of the table, in its order, whether it counts.

    Claim:       the rows that `sql.evaluated` keeps, and no other.       [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: as there. The secret by which people are split decides in which part a unit is
                 looked at, all its rows together, and nothing else.
    Numerics:    exact.
    Refuses:     nothing; NULL and repeated keys were refused before.
    Reference:   proofs/unit-bounding.md.
    Cost:        a window over keys and places, and a reading of the keys, for every 17 million
                 rows; a byte a row after that.
    """
    import numpy as np

    counts = np.zeros(rows, dtype=bool)
    place = _PLACE
    while place in {name.lower() for name in engine.columns}:
        place += "_"
    numbered = f"SELECT *, row_number() OVER () - 1 AS {place} FROM {engine.source}"
    number = sql.key_number(limit.unit, engine.columns[limit.unit])
    for part in parts(number, rows):
        source = f"(SELECT * FROM ({numbered}) AS held WHERE {part})"
        chosen = limit.statement(source, {_PLACE: f"held.{place}"}, engine.columns)
        for batch in engine.batches(chosen):
            counts[as_numpy(batch[_PLACE])] = True
    return counts


def parts(number: str, rows: int) -> list[str]:
    """Return conditions that split rows by a key's number into parts that fit into memory.

    By a secret, so that nobody who chooses keys can put them all into one part.

    >>> parts("n", 1000)
    ['TRUE']
    """
    many = -(-64 * rows // PASS_BYTES)
    if many <= 1:
        return ["TRUE"]
    drawn = f"hash(xor({number}, {secrets.randbits(62)})) % {many}"
    return [f"{drawn} = {part}" for part in range(many)]


@runtime_checkable
class Holding(Protocol):
    """An engine that can keep what a statement gives, as long as it lives itself."""

    def hold(self, statement: str, *, rows: int) -> str | None:
        """Return what to read it from; None where it cannot be kept.

        `rows` is the most that the statement can give.
        """


@dataclass(frozen=True)
class CopiedRows:
    """The declared columns of the rows that count, where an engine keeps them.

    Cells are kept as they are. What questions make of them is computed for each question, by the
    very expressions that would read them from the table.
    """

    source: str
    types: Mapping[str, str]
    names: frozenset[str]

    @staticmethod
    def of(
        engine: Engine, limit: Limit, declared: Iterable[str], *, rows: int
    ) -> "CopiedRows | None":
        """Keep the columns that these expressions read, of the rows that count.

        Claim:       the rows that `sql.evaluated` keeps, and no other.       [claim: unit-bounding]
        Neighbours:  replace-one and add-remove, by unit.
        Sensitivity: as there: it is the same statement over the same rows.
        Numerics:    exact; no cell is changed.
        Refuses:     nothing.
        Reference:   proofs/unit-bounding.md.
        Cost:        the window of one question; after that questions read these rows alone.
        """
        if not isinstance(engine, Holding):
            return None
        names = sorted({*columns_read(declared, engine.columns), limit.unit})
        cells = {f"cell_{place}": sql.column(name) for place, name in enumerate(names)}
        copy = engine.hold(limit.statement(engine.source, cells, engine.columns), rows=rows)
        if copy is None:
            return None
        named = ", ".join(
            f"{cell} AS {sql.identifier(name)}" for cell, name in zip(cells, names, strict=True)
        )
        return CopiedRows(f"(SELECT {named} FROM {copy})", engine.columns, frozenset(names))

    def statement(self, columns: Mapping[str, str]) -> str | None:
        if not columns_read(columns.values(), self.types) <= self.names:
            return None
        return sql.all_rows(source=self.source, columns=columns)


def columns_read(expressions: Iterable[str], columns: Mapping[str, str]) -> set[str]:
    """Return the columns that expressions name, and perhaps one more that a text in them spells.

    >>> sorted(columns_read(['held."y" = 1', "abs(held.\\"p\\")"], {"y": "", "p": "", "q": ""}))
    ['p', 'y']
    """
    listed = list(expressions)
    return {name for name in columns if any(sql.column(name) in read for read in listed)}
