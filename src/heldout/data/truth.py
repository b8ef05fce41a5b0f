"""The ground truth as private rows: a table without a label or a score."""

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from heldout.data import sql, validation
from heldout.data.description import Description
from heldout.data.table import Custody, PrivateTable
from heldout.data.two_tables import as_category, as_frame, as_number
from heldout.errors import DataError, MissingColumn

MOST_TIMES = 16  # the truth has at most so many rows for each row that is publicly expected


@dataclass(frozen=True, kw_only=True)
class TruthRows(Description):
    """What is public about the ground truth: which columns of the privatized table it has."""

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
                    f"No column {name!r} in the truth. Pass columns of the "
                    "privatized table that it lacks as ignore."
                )
        chosen = [as_number(name, self._engine) for name in self._numbers]
        chosen += [as_category(name, self._engine) for name in self._texts]
        keys = self._keys.names
        types = self._engine.columns
        key = sql.canonical(keys[0], types[keys[0]]) if keys else "CAST(NULL AS VARCHAR)"
        return {f"c{index}": each for index, each in enumerate(chosen)} | {"split_key": key}

    def _rules(self) -> list[validation.Rule]:
        return [
            validation.Rule(
                "rows",
                f"CASE WHEN count(*) > {self._most_rows} THEN 1 ELSE 0 END",
                DataError,
                f"truth must have at most {MOST_TIMES} rows for each privatized one. Compare "
                "tables of about the same size.",
            )
        ]

    def __repr__(self) -> str:
        return f"Truth({len(self._exposed_columns) - 1} columns, {self._about()})"
