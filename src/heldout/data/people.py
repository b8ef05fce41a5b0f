"""Who is in a table, for the custodian's eyes: keys alone, no label and no score."""

from typing import Any

from heldout.data import sql, validation
from heldout.data.description import Description
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours

__all__ = ["People"]


class People(PrivateTable):
    """The individuals of a table: its units, or its rows by their key.

    A ledger compares them with those of its accounts when a data set is registered. What it finds
    is for the custodian and no release.
    """

    def __init__(
        self,
        table: Any,
        *,
        unit: str | None = None,
        row_key: str | None = None,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        **more: Any,
    ) -> None:
        if unit is None and row_key is None:
            raise ArgumentError("Name unit= or row_key=, which tells who is in the table.")
        super().__init__(table, unit=unit, row_key=row_key, neighbours=neighbours, **more)

    def _exposed(self) -> dict[str, str]:
        return {}

    def _rules(self) -> list[validation.Rule]:
        return []

    @property
    def description(self) -> Description:
        return Description(**self._public_facts())

    def individuals(self, level: int) -> tuple[int, list[int]]:
        """How many there are, and one in 2^level of them, the same ones in every table."""
        name = self._keys.unit or self._keys.row_key
        assert name is not None
        number = sql.key_number(name, self._engine.columns[name])
        each = f"(SELECT DISTINCT {number} AS person FROM {self._engine.source} AS held) AS people"
        self.check_unchanged()
        count = self._engine.fetch(f"SELECT count(*) AS n FROM {each}")["n"][0]
        drawn = self._engine.fetch(
            f"SELECT person FROM {each} WHERE {sql.mixed('person')} % {2**level} = 0"
        )
        self.check_unchanged()
        return int(count), [int(person) for person in drawn["person"]]
