"""The statements that touch private rows, written once in DuckDB's dialect.

Every statement reads from `evaluated`, one row for each row that counts: `label` (1 for positive,
0 for negative) and `score` (a double). What a custodian names is quoted by sqlglot, never pasted.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

INTEGER_TYPES = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
NUMERIC_TYPES = INTEGER_TYPES | {"FLOAT", "DOUBLE", "REAL", "DECIMAL"}


def identifier(name: str) -> str:
    """Quote a column or table name.

    >>> print(identifier('risk "v2"'))
    "risk ""v2\"""
    """
    from sqlglot import exp

    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")  # type: ignore[no-any-return]


def column(name: str) -> str:
    """A custodian's column, qualified, so that it cannot be mistaken for a name of ours.

    >>> print(column("label"))
    held."label"
    """
    return f"held.{identifier(name)}"


def text(value: str) -> str:
    """Quote a text literal.

    >>> text("it's")
    "'it''s'"
    """
    from sqlglot import exp

    return exp.Literal.string(value).sql(dialect="duckdb")  # type: ignore[no-any-return]


def double(value: float) -> str:
    """A double that every engine reads to the last bit (a bare 0.1 is a DECIMAL in some).

    >>> double(0.1)
    "CAST('0.1' AS DOUBLE)"
    """
    return f"CAST({text(repr(float(value)))} AS DOUBLE)"


def is_numeric(column_type: str) -> bool:
    """Whether a DuckDB type holds numbers that compare and cast as such."""
    return column_type.split("(", maxsplit=1)[0] in NUMERIC_TYPES


def equals(column: str, column_type: str, value: object) -> str:
    """A test of a label against a declared value that never fails, whatever the column holds."""
    if isinstance(value, str):
        return f"CAST({column} AS VARCHAR) = {text(value)}"
    number = repr(int(value)) if isinstance(value, bool | int) else double(value)  # type: ignore[arg-type]
    if is_numeric(column_type):
        return f"{column} = {number}"
    if column_type == "BOOLEAN":
        return f"CAST({column} AS INTEGER) = {number}"
    return f"{number_of(f'CAST({column} AS VARCHAR)')} = {number}"


def number_of(text: str) -> str:
    """The number that a text holds, true and false as 1 and 0; NULL where it holds none."""
    return (
        f"CASE lower({text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0"
        f" ELSE TRY_CAST({text} AS DOUBLE) END"
    )


def as_label(column: str, column_type: str, *, positive: object, negative: object) -> str:
    """1 for a positive row, 0 for a negative one; a column that is so already stays as it is."""
    if column_type in INTEGER_TYPES and (positive, negative) == (1, 0):
        return column
    return f"CASE WHEN {equals(column, column_type, positive)} THEN 1 ELSE 0 END"


def as_double(column: str, column_type: str) -> str:
    """A column as a double; what is not a number becomes NULL, which validation refuses."""
    if column_type == "DOUBLE":
        return column
    if is_numeric(column_type) or column_type == "BOOLEAN":
        return f"CAST({column} AS DOUBLE)"
    return f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"


def held_to(number: str, low: float, high: float) -> str:
    """A number within the range whatever the cell holds: NULL and NaN count as the lowest."""
    known = f"CASE WHEN isnan({number}) THEN {double(low)} ELSE {number} END"
    return f"least(greatest(coalesce({known}, {double(low)}), {double(low)}), {double(high)})"


def evaluated(
    *,
    source: str,
    columns: Mapping[str, str],
    unit: str | None,
    row_key: str | None,
    rows_per_unit: int,
) -> str:
    """The rows that count: at most `rows_per_unit` of each unit.

    The custodian's names are used in the innermost SELECT only; outside it there are ours alone.

    Claim:       tables that differ in one unit's rows become tables that differ in at most
                 `rows_per_unit` rows of that unit, and in no other.      [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: which rows of a unit stay depends on the unit's and the rows' keys alone, through
                 a hash that no score or label enters. Without a row key the n-th row of the unit
                 has key n, counted within the unit, so that another unit's arrival moves nothing.
    Numerics:    exact.
    Refuses:     nothing; NULL keys were refused when the table was validated.
    Reference:   proofs/unit-bounding.md.
    Cost:        one window over the rows, sorted within each unit.
    """
    chosen = ",\n    ".join(f"{expression} AS {name}" for name, expression in columns.items())
    if unit is None:
        return f"SELECT\n    {chosen}\n  FROM {source} AS held"
    names = ", ".join(columns)
    key = "row_number() OVER () AS nth" if row_key is None else f"{as_text(row_key)} AS row_key"
    rows = (
        f"(\n    SELECT\n    {chosen},\n    {as_text(unit)} AS unit_key,\n    {key}\n"
        f"    FROM {source} AS held\n  ) AS named"
    )
    if row_key is None:
        counted = "row_number() OVER (PARTITION BY unit_key ORDER BY nth)"
        rows = (
            f"(\n    SELECT {names}, unit_key, CAST({counted} AS VARCHAR) AS row_key\n"
            f"    FROM {rows}\n  ) AS keyed"
        )
    order = "md5(unit_key || '/' || row_key), row_key"
    place = f"row_number() OVER (PARTITION BY unit_key ORDER BY {order}) AS place"
    return (
        f"SELECT {names}\n  FROM (\n    SELECT {names}, {place}\n"
        f"    FROM {rows}\n  ) AS placed\n  WHERE place <= {rows_per_unit}"
    )


def as_text(name: str) -> str:
    """A custodian's column as text."""
    return f"CAST({column(name)} AS VARCHAR)"


@lru_cache(maxsize=256)
def transpile(statement: str, *, dialect: str) -> str:
    """The same statement for another engine, laid out for a reviewer to read."""
    import sqlglot

    return sqlglot.transpile(statement, read="duckdb", write=dialect, pretty=True)[0]  # type: ignore[no-any-return]


def assemble(evaluated_rows: str, body: str) -> str:
    """A whole statement: the rows that count, then what is asked of them."""
    return f"WITH evaluated AS (\n  {evaluated_rows}\n)\n{body}"


Columns = dict[str, Any]
