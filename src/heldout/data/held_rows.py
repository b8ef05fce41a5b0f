"""Rows of people that an engine elsewhere keeps: who counts is found once, when they are opened."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from heldout.data import sql
from heldout.data.engine import Engine

__all__ = ["HeldRows", "Holding"]


@runtime_checkable
class Holding(Protocol):
    """An engine that can keep what a statement gives, as long as it lives itself."""

    def hold(self, statement: str, *, rows: int) -> str | None:
        """What to read it from; None where it cannot be kept, and must be asked each time.

        `rows` is the most that the statement can give.
        """


@dataclass(frozen=True)
class HeldRows:
    """The declared columns of the rows that count, where an engine keeps them.

    Cells are kept as they are. What questions make of them is computed for each question, by the
    very expressions that would read them from the table.
    """

    source: str
    names: frozenset[str]

    @staticmethod
    def of(
        engine: Engine,
        declared: Iterable[str],
        *,
        unit: str,
        row_key: str | None,
        rows_per_unit: int,
        rows: int,
    ) -> "HeldRows | None":
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
        names = sorted({*columns_read(declared, engine.columns), unit})
        cells = {f"cell_{place}": sql.column(name) for place, name in enumerate(names)}
        kept = engine.hold(
            sql.evaluated(
                source=engine.source,
                columns=cells,
                types=engine.columns,
                unit=unit,
                row_key=row_key,
                rows_per_unit=rows_per_unit,
            ),
            rows=rows,
        )
        if kept is None:
            return None
        named = ", ".join(
            f"{cell} AS {sql.identifier(name)}" for cell, name in zip(cells, names, strict=True)
        )
        return HeldRows(f"(SELECT {named} FROM {kept})", frozenset(names))

    def statement(self, columns: Mapping[str, str]) -> str:
        """The rows that count, by the names that questions know: nothing is bounded once more."""
        return sql.evaluated(
            source=self.source, columns=columns, types={}, unit=None, row_key=None, rows_per_unit=1
        )

    def has(self, expressions: Iterable[str], columns: Mapping[str, str]) -> bool:
        """Whether every column of the table that these expressions read was kept."""
        return columns_read(expressions, columns) <= self.names


def columns_read(expressions: Iterable[str], columns: Mapping[str, str]) -> set[str]:
    """The columns that expressions name, and perhaps one more that a text in them spells.

    >>> sorted(columns_read(['held."y" = 1', "abs(held.\\"p\\")"], {"y": "", "p": "", "q": ""}))
    ['p', 'y']
    """
    listed = list(expressions)
    return {name for name in columns if any(sql.column(name) in each for each in listed)}
