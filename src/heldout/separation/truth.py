"""The ground truth as private rows: a data set without a label or a score."""

from collections.abc import Mapping
from typing import Any

from heldout.data import sql, validation
from heldout.data.dataset import Dataset
from heldout.data.engine import open_table
from heldout.errors import ArgumentError, DataError, MissingColumn
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.separation.table import as_category, as_frame, as_number

MOST_TIMES = 16  # the truth has at most so many rows for each row that is publicly expected


class Truth(Dataset):
    """Private rows with the columns of a privatized table, which is public.

    Which columns are numbers and which are texts follows from the privatized table. A true cell
    that is not of that kind counts as missing, so nothing in the rows makes a release fail. The
    fingerprint is that of `Dataset`: the same rows have the same budget.
    """

    def __init__(
        self,
        table: Any,
        *,
        numbers: tuple[str, ...],
        texts: tuple[str, ...],
        expected_rows: int,
        unit: str | None = None,
        rows_per_unit: int = 1,
        row_key: str | None = None,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        schema: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        if unit is None and rows_per_unit != 1:
            raise ArgumentError(
                "rows_per_unit must go with unit=. Name the column that says whose row."
            )
        self.protection = Protection(
            neighbours=Neighbours.parse(neighbours),
            unit=unit is not None,
            rows_per_unit=rows_per_unit,
            unit_name=unit,
        )
        self.name = name or "truth"
        self._declared = validation.Declared(
            label="",
            score=None,
            positive=1,
            negative=0,
            score_range=(0.0, 1.0),
            unit=unit,
            row_key=row_key,
        )
        self._engine = open_table(as_frame(table), schema=schema)
        self._columns = self._chosen(numbers, texts)
        self._rows, self._fingerprints = self._validated(self._declared)
        if self._rows > MOST_TIMES * expected_rows:
            raise DataError(
                f"truth must have at most {MOST_TIMES} rows for each privatized one, got more. "
                "Compare tables of about the same size."
            )
        # Every cell is read once while only the custodian sees what fails.
        self._engine.fetch(
            self.statement(f"SELECT {', '.join(map(_count, self._columns))} FROM evaluated")
        )

    def _chosen(self, numbers: tuple[str, ...], texts: tuple[str, ...]) -> dict[str, str]:
        keys = [key for key in (self._declared.unit, self._declared.row_key) if key is not None]
        for name in (*numbers, *texts, *keys):
            if name not in self._engine.columns:
                raise MissingColumn(
                    f"column {name!r} must be in the truth, got none. Pass columns of the "
                    "privatized table that it lacks as ignore."
                )
        chosen = [as_number(name, self._engine) for name in numbers]
        chosen += [as_category(name, self._engine) for name in texts]
        key = f"CAST({sql.column(keys[0])} AS VARCHAR)" if keys else "CAST(NULL AS VARCHAR)"
        return {f"c{index}": each for index, each in enumerate(chosen)} | {"split_key": key}

    def _validated(self, declared: validation.Declared) -> tuple[int, tuple[bytes, ...]]:
        validation.check_hash(self._engine)
        counts = ["count(*) AS n"]
        for role, key in (("unit", declared.unit), ("key", declared.row_key)):
            if key is not None:
                counts.append(f"count(*) - count({sql.column(key)}) AS missing_{role}")
        if declared.row_key is not None:
            counts.append(f"count(*) - count(DISTINCT {sql.column(declared.row_key)}) AS duplicate")
        counts += validation.fingerprint_columns(self._engine, declared)
        asked = f"SELECT {', '.join(counts)} FROM {self._engine.source} AS held"
        found = {name: values[0] for name, values in self._engine.fetch(asked).items()}
        fingerprints = validation.fingerprints(found)
        broken = {name: int(value) for name, value in found.items()}
        validation.judge(broken, declared)
        return broken["n"], fingerprints

    def statement(self, body: str) -> str:
        rows = sql.evaluated(
            source=self._engine.source,
            columns=self._columns,
            unit=self._declared.unit,
            row_key=self._declared.row_key,
            rows_per_unit=self.protection.rows_per_unit,
        )
        return sql.assemble(rows, body)

    def __repr__(self) -> str:
        rows = "" if self.public_rows is None else f", {self.public_rows:,} rows"
        return f"Truth({len(self._columns) - 1} columns, {self.protection.describe()}{rows})"


def _count(name: str) -> str:
    return f"count({name}) AS {name}"
