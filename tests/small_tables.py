"""Every small table of rows of a few kinds, to compare claims with what neighbours really do.

All tables lie in DuckDB, and a statistic's own statement runs over all of them at once.
"""

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from heldout.data import sql
from heldout.kernel import Neighbours, Protection
from heldout.kernel.statistic import Statistic


def protections(*most: int) -> list[Protection]:
    """Return all relations, by row and by unit of at most so many rows."""
    return [
        Protection(neighbours=relation, unit=unit, rows_per_unit=rows)
        for relation in Neighbours
        for unit, rows in ((False, 1), *((True, rows) for rows in most))
    ]


class SmallTables:
    """All tables of at most `most` rows, each of one of some kinds.

    `cells` are what a statement sees of a row of each kind, by column. `public` is what label
    neighbours share of it; without it they are held to what replacements may do, which is more.
    """

    def __init__(
        self,
        kinds: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        *,
        cells: Sequence[tuple[Any, ...]] | None = None,
        public: Sequence[Any] | None = None,
        most: int = 3,
    ) -> None:
        self.kinds, self.names = kinds, ("which", *names)
        self.cells = kinds if cells is None else cells
        numbers = range(len(kinds))
        self.tables = [
            rows
            for size in range(most + 1)
            for rows in itertools.combinations_with_replacement(numbers, size)
        ]
        self.content = np.array([[rows.count(kind) for kind in numbers] for rows in self.tables])
        self.left: Any = sum(
            np.maximum(np.subtract.outer(kind, kind), 0) for kind in self.content.T
        )
        """How many rows of one table the other lacks."""
        seen = None if public is None else [sorted(public[i] for i in rows) for rows in self.tables]
        self._same = None if seen is None else np.array([[a == b for b in seen] for a in seen])

    def neighbours(self, protection: Protection) -> Any:
        """Return which pairs differ by one person's rows: the definition, written again."""
        left, arrived, most = self.left, self.left.T, protection.rows_per_unit
        if protection.only_labels and self._same is not None:
            return (arrived == left) & (left <= most) & self._same
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return (left == 0) & (arrived <= most) | (arrived == 0) & (left <= most)
        if protection.unit:
            return (left <= most) & (arrived <= most)
        return (left == arrived) & (left <= 1)

    @cached_property
    def connection(self) -> Any:
        rows = [(at, *self.cells[kind]) for at, kinds in enumerate(self.tables) for kind in kinds]
        connection = duckdb.connect()
        table = pa.table(dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True)))
        connection.register("incoming", table)
        connection.execute("CREATE TABLE every AS SELECT * FROM incoming")
        return connection

    def answers(self, statistic: Statistic) -> list[Any]:
        """Return the statistic of each table, by its own statement."""
        rows = "SELECT * EXCLUDE (which) FROM every WHERE every.which = whole.which"
        answer = self.connection.execute(
            f"SELECT whole.which AS which, answer.* FROM range({len(self.tables)}) AS whole(which),"
            f" LATERAL ({sql.assemble(rows, statistic.body())}) AS answer ORDER BY 1"
        ).fetchnumpy()
        borders = np.searchsorted(answer.pop("which"), np.arange(len(self.tables) + 1))
        return [
            statistic.read({name: column[start:end] for name, column in answer.items()})
            for start, end in itertools.pairwise(borders)
        ]

    def distances(self, statistic: Statistic) -> Any:
        """Return how far apart the statistic of each two tables is, summed over its numbers."""
        values = np.array(self.answers(statistic))
        return sum(np.abs(np.subtract.outer(column, column)) for column in values.T)
