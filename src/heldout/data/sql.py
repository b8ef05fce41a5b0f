"""The statements that touch private rows, written once in DuckDB's dialect.

Every statement reads from `evaluated`, one row for each row that counts: `label` (1 for positive,
0 for negative) and `score` (a double). What a custodian names is quoted, never pasted.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from heldout.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlglot import exp

    Array: TypeAlias = NDArray[Any]
else:
    Array = Any  # NumPy is imported where rows are read
Columns = dict[str, Any]

FITTING_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
LABEL_TYPES = FITTING_TYPES | {"UBIGINT"}  # what NumPy has as integers: wider ones come as objects
INTEGER_TYPES = LABEL_TYPES | {"HUGEINT", "UHUGEINT"}
EXACT_BITS = {"FLOAT": 24, "REAL": 24, "DOUBLE": 53}
"""Of a type's whole numbers: from 2^53 on several are one double, as 2^53 + 1 is 2^53."""
BINARY_TYPES = set(EXACT_BITS)
NUMERIC_TYPES = INTEGER_TYPES | BINARY_TYPES | {"DECIMAL"}
MOMENTS = {"TIMESTAMP WITH TIME ZONE"}
KINDS = {"number", "text", "boolean", "time", "key", "other"}
"""Name of a column's values in a description."""

MOST_ROWS = 2**40
"""A table of more is refused when it is opened, so that sums over its rows have a known end."""

# Three steps each, modulo primes below 2^31, so that no product leaves a signed 64-bit integer.
MIXING = (
    (2147483647, ((314159265, 2147483629), (358979323, 2147483587), (846264338, 2147483647))),
    (2147483579, ((271828182, 2147483563), (845904523, 2147483549), (536028747, 2147483579))),
)


def identifier(name: str) -> str:
    """Quote a column or table name.

    >>> print(identifier('risk "v2"'))
    "risk ""v2\"""
    """
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


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
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def double(value: float) -> str:
    """A double that every engine reads to the last bit (a bare 0.1 is a DECIMAL in some).

    >>> double(0.1)
    "CAST('0.1' AS DOUBLE)"
    """
    return f"CAST({text(repr(float(value)))} AS DOUBLE)"


def balanced(parts: Sequence[str], sign: str) -> str:
    """Join terms or factors by a sign, no deeper than their logarithm: engines and parsers refuse
    expressions that are a thousand deep.

    >>> balanced(["a", "b", "c", "d", "e"], "+")
    '((a + b) + (c + (d + e)))'
    """
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({balanced(parts[:half], sign)} {sign} {balanced(parts[half:], sign)})"


def count_passed(column: str, edges: Sequence[float], *, sign: str = ">=") -> str:
    """Return at or above how many public edges a number lies; with sign ">", above how many.

    >>> count_passed("score", [0.5])
    "CAST(score >= CAST('0.5' AS DOUBLE) AS INTEGER)"
    """
    passed = [f"CAST({column} {sign} {double(edge)} AS INTEGER)" for edge in edges]
    return balanced(passed or ["CAST(0 AS INTEGER)"], "+")


def is_numeric(column_type: str) -> bool:
    """Return True if a DuckDB type holds numbers that compare and cast as such."""
    return column_type.split("(", maxsplit=1)[0] in NUMERIC_TYPES


def kind_of(column_type: str) -> str:
    """Return the kind of a type's values as people see it, and no more.

    >>> [kind_of(each) for each in ("DECIMAL(9,2)", "BIGINT", "ENUM('a')", "TIMESTAMP_NS", "UUID")]
    ['number', 'number', 'text', 'time', 'text']
    """
    if column_type in KINDS:
        return column_type
    base = column_type.split("(", maxsplit=1)[0].upper()
    if base in NUMERIC_TYPES:
        return "number"
    if base == "BOOLEAN":
        return "boolean"
    if base.startswith(("DATE", "TIME")):
        return "time"
    return "text" if base in ("VARCHAR", "ENUM", "UUID") else "other"


def equals(column: str, column_type: str, value: object) -> str:
    """A test of a cell against a declared value that never fails, whatever the column holds.

    It is one of the cell's own value: the type of a number, and its scale, decide nothing. A
    declared text equals a number if it is that number's canonical text, so "1" does and "01" and
    "1.0" do not, which are other texts. A whole number that several cells may have become is
    refused, when the table is opened: a missing cell of one row makes doubles of all others.

    >>> equals("x", "DECIMAL(9,2)", "1"), equals("x", "DOUBLE", "01")
    ('x = 1', 'FALSE')
    >>> equals("x", "DOUBLE", 2**53)
    Traceback (most recent call last):
    heldout.errors.DataError: 9007199254740992 is at or beyond 2^53, where a column of floats ...
    """
    if isinstance(value, str):
        if not is_numeric(column_type):
            return f"CAST({column} AS VARCHAR) = {text(value)}"
        called = number_called(value)
        return "FALSE" if called is None else equals(column, column_type, called)
    if isinstance(value, bool | int):
        bits = EXACT_BITS.get(column_type)
        if bits is not None and abs(value) >= 2**bits:
            raise DataError(
                f"{int(value)} is at or beyond 2^{bits}, where a column of floats holds several "
                "whole numbers as one. Read the column as integers or texts."
            )
        number, exact = repr(int(value)), abs(value) < 2**53
        if not _can_hold(column_type, int(value)):
            return "FALSE"
    else:
        number, exact = double(value), True  # type: ignore[arg-type]
    if is_numeric(column_type):
        return f"{column} = {number}"
    if column_type == "BOOLEAN":
        return f"CAST({column} AS INTEGER) = {number}"
    cell = f"CAST({column} AS VARCHAR)"
    # A double would be the same for several such integers.
    return f"{number_of(cell)} = {number}" if exact else f"{cell} = {text(number)}"


def _can_hold(column_type: str, number: int) -> bool:
    """Return True if a cell can be the integer: else an engine rounds it to the type, or fails.

    >>> _can_hold("DECIMAL(38,37)", 100), _can_hold("DECIMAL(38,2)", 100), _can_hold("DOUBLE", 100)
    (False, True, True)
    """
    digits = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", column_type)
    if digits is not None:
        beyond: int = 10 ** (int(digits[1]) - int(digits[2]))
        return abs(number) < beyond
    return True


def number_called(value: str) -> int | float | None:
    """The number whose canonical text it is; None where it is no number's.

    >>> number_called("-7"), number_called("0.5"), number_called("07"), number_called("1.50")
    (-7, 0.5, None, None)
    """
    if re.fullmatch(r"0|-?[1-9][0-9]{0,37}", value, re.ASCII):
        return int(value)
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,37})[.][0-9]{0,37}[1-9]", value, re.ASCII):
        return float(value)
    return None


def number_of(text: str) -> str:
    """The number that a text holds, true and false as 1 and 0; NULL where it holds none."""
    return (
        f"CASE lower({text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0"
        f" ELSE TRY_CAST({text} AS DOUBLE) END"
    )


def as_label(column: str, column_type: str, *, positive: object, negative: object) -> str:
    """1 for a positive row, 0 for a negative one; a column that is so already stays as it is."""
    if column_type in LABEL_TYPES and (positive, negative) == (1, 0):
        return column
    return f"CASE WHEN {equals(column, column_type, positive)} THEN 1 ELSE 0 END"


def as_double(column: str, column_type: str) -> str:
    """A column as a double; what is not a number becomes NULL, which validation refuses."""
    if column_type == "DOUBLE":
        return column
    if column_type == "BOOLEAN":
        return f"CAST(CAST({column} AS INTEGER) AS DOUBLE)"
    if is_numeric(column_type) and rounds_once(column_type):
        return f"CAST({column} AS DOUBLE)"
    return f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"


def rounds_once(column_type: str) -> bool:
    """Return True if every engine casts the type to the nearest double, as all do from a text.

    >>> rounds_once("DECIMAL(10,2)"), rounds_once("DECIMAL(38,20)"), rounds_once("BIGINT")
    (True, False, True)
    """
    if column_type.startswith("DECIMAL"):
        digits = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", column_type)
        return digits is not None and int(digits[1]) <= 15 and int(digits[2]) <= 15
    return column_type not in ("HUGEINT", "UHUGEINT")


def held_to(number: str, low: float, high: float) -> str:
    """A number within the range whatever the cell holds: NULL and NaN count as the lowest."""
    known = f"CASE WHEN isnan({number}) THEN {double(low)} ELSE {number} END"
    return f"least(greatest(coalesce({known}, {double(low)}), {double(low)}), {double(high)})"


def canonical(name: str, column_type: str) -> str:
    """The text of a cell by its own value alone: 101.1 in whatever type and scale it is stored.

    Equal numbers have equal texts, plain decimals without zeros that say nothing; a text stays as
    it is. Nothing of the type enters but how its values are read, so a type that other rows chose
    changes no cell's text.

    A moment, which engines print each in their own way, is its time of day in UTC.

    >>> canonical("id", "VARCHAR")
    'CAST(held."id" AS VARCHAR)'
    """
    cell = as_text(name)
    if column_type in MOMENTS:
        return f"CAST(CAST({column(name)} AS TIMESTAMP) AS VARCHAR)"
    if column_type in BINARY_TYPES:
        return _of_double(f"CAST({column(name)} AS DOUBLE)")
    return _trimmed(cell) if column_type.startswith("DECIMAL") else cell


def folded(cell: str) -> str:
    """A text as keys of several tables are compared: "7", "7.0" and "7.00" become one.

    Text files have no types: what one library wrote as 101.1 another wrote as 101.10.
    """
    return (
        f"CASE WHEN regexp_matches({cell}, '^-?[0-9]+[.][0-9]+$') THEN {_cut(cell)} ELSE {cell} END"
    )


def _trimmed(cell: str) -> str:
    return f"CASE WHEN {cell} LIKE '%.%' THEN {_cut(cell)} ELSE {cell} END"


def _cut(cell: str) -> str:
    return f"rtrim(rtrim({cell}, '0'), '.')"


def _of_double(number: str) -> str:
    """Whole numbers by all of their digits, small ones without an exponent; in DuckDB alone."""
    cell = f"CAST({number} AS VARCHAR)"
    digits = f"replace(ltrim(split_part({cell}, 'e', 1), '-'), '.', '')"
    zeros = f"repeat('0', TRY_CAST(split_part({cell}, 'e-', 2) AS INTEGER) - 1)"
    sign = f"CASE WHEN {number} < 0 THEN '-' ELSE '' END"
    return (
        f"CASE WHEN {number} = trunc({number}) AND abs({number}) < 1e38"
        f" THEN CAST(TRY_CAST({number} AS HUGEINT) AS VARCHAR)"
        f" WHEN {cell} LIKE '%e-%' THEN {sign} || '0.' || {zeros} || {digits} ELSE {cell} END"
    )


def key(name: str, column_type: str) -> str:
    """A unit or row key in the form that is compared: an integer, or its canonical text."""
    return column(name) if column_type in FITTING_TYPES else canonical(name, column_type)


def key_number(name: str, column_type: str) -> str:
    """A 64-bit integer of a key, the same on every engine and whether 7 is a number or a text.

    Integers of 64 bits stay themselves. Of any other text it is the first 60 bits of the MD5.
    """
    if column_type in FITTING_TYPES:
        return f"CAST({column(name)} AS BIGINT)"
    if column_type == "BOOLEAN":
        return f"CAST(CAST({column(name)} AS INTEGER) AS BIGINT)"
    cell = canonical(name, column_type)
    cell = cell if is_numeric(column_type) else folded(cell)
    return (
        f"coalesce(CASE WHEN regexp_matches({cell}, '^-?[0-9]{{1,19}}$')"
        f" THEN TRY_CAST({cell} AS BIGINT) END,"
        f" CAST('0x' || substr(md5({cell}), 1, 15) AS BIGINT))"
    )


def key_number_before(name: str, column_type: str) -> str | None:
    """Return what `key_number` was when a scale counted, or a zone; None where it is the same.

    By it rows find an account that a ledger opened then.
    """
    scaled = column_type.startswith("DECIMAL") and not column_type.endswith(",0)")
    if not scaled and column_type not in BINARY_TYPES | MOMENTS | {"VARCHAR"}:
        return None
    cell = as_text(name)
    return (
        f"coalesce(CASE WHEN regexp_matches({cell}, '^-?[0-9]{{1,19}}([.]0+)?$')"
        f" THEN TRY_CAST(split_part({cell}, '.', 1) AS BIGINT) END,"
        f" CAST('0x' || substr(md5({cell}), 1, 15) AS BIGINT))"
    )


def mixed(number: str, which: int = 0) -> str:
    """A number below 2^31, of a 64-bit integer, for the sums by which ledgers know rows again.

    Plain arithmetic, because no hash function is the same on every engine but MD5, which takes
    ten times as long. Consecutive numbers are a constant apart here: for a fair draw take `drawn`.

    >>> print(mixed("x"))
    (((x % 2147483647 + 2147483647) * 314159265 % 2147483629) * 358979323 % 2147483587) * 846264338 % 2147483647
    """  # noqa: E501
    first, steps = MIXING[which]
    expression = f"{number} % {first} + {first}"
    for factor, prime in steps:
        expression = f"({expression}) * {factor} % {prime}"
    return expression


def drawn(unit_number: str, number: str) -> str:
    """A number below 2^60 that a row draws: the first bits of the MD5 of its unit and its key.

    MD5 is the one hash that DuckDB, PostgreSQL and Spark share. A row's draw depends on all bits
    of both numbers, so rows with consecutive keys draw independently of each other, and every set
    of `rows_per_unit` rows of a unit is equally likely to be kept.

    >>> print(drawn("u", "n"))
    CAST('0x' || substr(md5(CAST(u AS VARCHAR) || '/' || CAST(n AS VARCHAR)), 1, 15) AS BIGINT)
    """
    material = f"CAST({unit_number} AS VARCHAR) || '/' || CAST({number} AS VARCHAR)"
    return f"CAST('0x' || substr(md5({material}), 1, 15) AS BIGINT)"


def evaluated(
    *,
    source: str,
    columns: Mapping[str, str],
    types: Mapping[str, str],
    unit: str | None,
    row_key: str | None,
    rows_per_unit: int,
) -> str:
    """The rows that count: at most `rows_per_unit` of each unit.

    The custodian's names are used in the innermost SELECT only; outside it there are ours alone.
    `types` are those of the custodian's columns.

    Claim:       tables that differ in one unit's rows become tables that differ in at most
                 `rows_per_unit` rows of that unit, and in no other.      [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: which rows of a unit stay depends on the unit and the rows' keys alone, through a
                 hash that no score or label enters. Without a row key the n-th row of the unit has
                 key n, counted within the unit, so that another unit's arrival moves nothing.
    Numerics:    exact.
    Refuses:     nothing; NULL keys were refused when the table was validated.
    Reference:   proofs/unit-bounding.md.
    Cost:        one window over the rows, sorted within each unit, and an MD5 per row.
    """
    if unit is None:
        return all_rows(source=source, columns=columns)
    chosen, names = listed(columns), ", ".join(columns)
    owner = f"{key(unit, types[unit])} AS unit_key,\n    {key_number(unit, types[unit])} AS owner"
    if row_key is None:
        keys = "row_number() OVER () AS nth"
    else:
        number = key_number(row_key, types[row_key])
        keys = f"{key(row_key, types[row_key])} AS row_key,\n    {number} AS number"
    rows = (
        f"(\n    SELECT\n    {chosen},\n    {owner},\n    {keys}\n"
        f"    FROM {source} AS held\n  ) AS named"
    )
    if row_key is None:
        counted = "row_number() OVER (PARTITION BY unit_key ORDER BY nth) AS number"
        rows = f"(\n    SELECT {names}, unit_key, owner, {counted}\n    FROM {rows}\n  ) AS keyed"
    # Of equal draws first by the number, which a key has in whatever type it is stored.
    order = f"{drawn('owner', 'number')}, number" + ("" if row_key is None else ", row_key")
    place = f"row_number() OVER (PARTITION BY unit_key ORDER BY {order}) AS place"
    return (
        f"SELECT {names}\n  FROM (\n    SELECT {names}, {place}\n"
        f"    FROM {rows}\n  ) AS placed\n  WHERE place <= {rows_per_unit}"
    )


def listed(columns: Mapping[str, str]) -> str:
    """Return expressions with our names, for a SELECT."""
    return ",\n    ".join(f"{expression} AS {name}" for name, expression in columns.items())


def all_rows(*, source: str, columns: Mapping[str, str]) -> str:
    """Return the statement that reads these columns of every row."""
    return f"SELECT\n    {listed(columns)}\n  FROM {source} AS held"


COUNTED, KEPT = "heldout_counted", "heldout_kept"
"""Whether each row of the table counts, in its order; and the columns of those that do."""


def counted(*, source: str, columns: Mapping[str, str]) -> str:
    """The rows that count, where `heldout.data.table` has found them."""
    joined = f"{source} AS held POSITIONAL JOIN {COUNTED} AS found"
    return f"SELECT\n    {listed(columns)}\n  FROM {joined}\n  WHERE found.counts"


def as_text(name: str) -> str:
    """A custodian's column as text."""
    return f"CAST({column(name)} AS VARCHAR)"


def assemble(evaluated_rows: str, body: str) -> str:
    """A whole statement: the rows that count, then what is asked of them."""
    return f"WITH evaluated AS (\n  {evaluated_rows}\n)\n{body}"


# Turns a statement, written once in DuckDB's dialect, into PostgreSQL's and Spark's.
#
# sqlglot knows the grammars. What is here are the places where the engines give another answer, or
# fail, on words that they share:
#
# - PostgreSQL has no TRY_CAST and no ISNAN, compares texts by the column's collation, and *fails*
#   where a product or quotient of doubles underflows. A failure would tell of a row, so nothing
#   that a row holds may cause one.
# - Spark cuts off what DuckDB and PostgreSQL round to the nearest integer, and takes '1d' and '1f'
#   for numbers.

# Plain decimal numbers, at most three digits of exponent. No backslash, which Spark would unescape.
NUMBER = "^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,3})? *$"
NOT_FINITE = ("nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
LONGEST_NUMBER = 400  # characters; beyond that PostgreSQL's own types overflow

BEYOND, BELOW = "1.7976931348623158e308", "2.5e-324"  # what rounds to infinity and to zero
NOTHING = 1e-300  # a product below this is taken for zero where underflow would be an error


@lru_cache(maxsize=256)
def transpile(statement: str, *, dialect: str) -> str:
    """The same question to another engine, laid out for a reviewer to read.

    >>> print(transpile("SELECT isnan(score) AS x FROM t", dialect="postgres"))
    SELECT
      (
        score = CAST('NaN' AS DOUBLE PRECISION)
      ) AS x
    FROM t
    """
    import sqlglot

    tree = sqlglot.parse_one(statement, read="duckdb")
    # The innermost first, so that what is rewritten holds parts that are rewritten already.
    for node in reversed(list(tree.walk())):
        replaced = REWRITES[dialect](node)
        if replaced is not node:
            if node is tree:
                tree = replaced
            else:
                node.replace(replaced)
    if dialect == "postgres":
        _with_typed_texts(tree)
    return tree.sql(dialect=dialect, pretty=True)  # type: ignore[no-any-return]


def _with_typed_texts(tree: Any) -> None:
    """A literal without a type takes the one that suits some function; ours say that it is text."""
    from sqlglot import exp

    for node in list(tree.find_all(exp.Literal)):
        if node.is_string and not isinstance(node.parent, exp.Cast):
            node.replace(exp.cast(node.copy(), "text"))


def _for_duckdb(node: "exp.Expr") -> "exp.Expr":
    return node


def _for_postgres(node: "exp.Expr") -> "exp.Expr":  # noqa: PLR0911
    from sqlglot import exp

    if isinstance(node, exp.TryCast):
        return _postgres_try_cast(node)
    if isinstance(node, exp.Cast) and _is_text(node):
        return exp.Paren(
            this=exp.Collate(this=node.copy(), expression=exp.to_identifier("C", quoted=True))
        )
    if _is_hexadecimal(node):
        bits = f"CAST(CAST('x' || {_digits(node, 'postgres')} AS BIT(60)) AS BIGINT)"
        return _parse(bits, "postgres")
    if isinstance(node, exp.IsNan):
        return _parse(f"({_sql(node.this)} = CAST('NaN' AS DOUBLE PRECISION))", "postgres")
    if isinstance(node, exp.Mul | exp.Div):
        return _without_underflow(node)
    if isinstance(node, exp.Cast) and node.to.is_type("tinyint", "smallint"):
        # A truth value becomes an integer and no other number.
        return _parse(f"CAST(CAST({_sql(node.this)} AS INT) AS SMALLINT)", "postgres")
    return node


def _for_spark(node: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    if isinstance(node, exp.TryCast) and node.to.is_type("double"):
        words = ", ".join(f"'{word}'" for word in NOT_FINITE)
        what = node.this.sql(dialect="spark")
        return _parse(
            f"CASE WHEN {what} RLIKE '{NUMBER}' OR LOWER(TRIM({what})) IN ({words})"
            f" THEN TRY_CAST({what} AS DOUBLE) END",
            "spark",
        )
    if _is_hexadecimal(node):
        return _parse(f"CAST(CONV({_digits(node, 'spark')}, 16, 10) AS BIGINT)", "spark")
    if isinstance(node, exp.Cast) and node.to.is_type("int") and _is_double(node.this):
        # Half to even, as DuckDB and PostgreSQL do.
        rounded = exp.Anonymous(this="RINT", expressions=[node.this.copy()])
        return exp.Cast(this=rounded, to=node.to.copy())
    if isinstance(node, exp.RegexpLike):
        # To Java $ is also the place before a last line break.
        pattern = node.expression.this
        node.set("expression", exp.Literal.string(pattern.removesuffix("$") + "\\z"))
    if isinstance(node, exp.RegexpReplace) and node.args.get("replacement") is not None:
        written = node.args["replacement"].this.replace("\\1", "$1")
        node.set("replacement", exp.Literal.string(written))
    return node


REWRITES = {"duckdb": _for_duckdb, "postgres": _for_postgres, "spark": _for_spark}


def _postgres_try_cast(node: "exp.Expr") -> "exp.Expr":
    what = _sql(node.this)
    if node.to.is_type("double"):
        words = ", ".join(f"'{word}'" for word in NOT_FINITE)
        size = f"ABS(CAST({what} AS DECIMAL))"
        return _parse(
            f"CASE WHEN LENGTH({what}) <= {LONGEST_NUMBER} AND {what} ~ '{NUMBER}' THEN"
            f" CASE WHEN {size} >= CAST('{BEYOND}' AS DECIMAL) THEN"
            f" SIGN(CAST({what} AS DECIMAL)) * CAST('Infinity' AS DOUBLE PRECISION)"
            f" WHEN {size} < CAST('{BELOW}' AS DECIMAL) THEN CAST('0' AS DOUBLE PRECISION)"
            f" ELSE CAST({what} AS DOUBLE PRECISION) END"
            f" WHEN LOWER(TRIM({what})) IN ({words}) THEN CAST({what} AS DOUBLE PRECISION) END",
            "postgres",
        )
    if node.to.is_type("bigint"):
        return _parse(
            f"CASE WHEN {what} ~ '^-?[0-9]{{1,19}}$' THEN"
            f" CASE WHEN CAST({what} AS DECIMAL) BETWEEN {-(2**63)} AND {2**63 - 1}"
            f" THEN CAST({what} AS BIGINT) END END",
            "postgres",
        )
    raise AssertionError(f"our statements cast text to DOUBLE and BIGINT only, got {node.to}.")


def _without_underflow(node: "exp.Expr") -> "exp.Expr":
    """A product or quotient of doubles that is zero where it would underflow."""
    from sqlglot import exp

    left, right = node.this, node.expression
    if isinstance(node, exp.Mul) and _constant(left) is not None:
        left, right = right, left
    factor = _constant(right)
    if factor == 0:
        return node
    if factor is not None:
        if isinstance(node, exp.Div):
            factor = 1 / factor
        if abs(factor) >= 1:
            return node
        bound = NOTHING / abs(factor)
        small = f"ABS({_sql(left)}) < CAST('{bound!r}' AS DOUBLE PRECISION)"
    elif isinstance(node, exp.Mul) and left == right:
        small = f"ABS({_sql(left)}) < CAST('{NOTHING**0.5!r}' AS DOUBLE PRECISION)"
    else:
        return node
    zero = "CAST('0' AS DOUBLE PRECISION)"
    return _parse(f"(CASE WHEN {small} THEN {zero} ELSE {_sql(node)} END)", "postgres")


def _constant(node: Any) -> float | None:
    """The number in CAST('0.25' AS DOUBLE), which is how our statements write a double."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast) and node.to.is_type("double") and node.this.is_string:
        return float(node.this.this)
    return None


def _is_double(node: Any) -> bool:
    """Arithmetic with one of our doubles in it, and so no integer, decimal or truth value."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return any(_constant(cast) is not None for cast in node.find_all(exp.Cast))
    return False


def _is_text(node: Any) -> bool:
    return bool(node.to.is_type("varchar") or node.to.is_type("text"))


def _is_hexadecimal(node: Any) -> bool:
    """CAST('0x' || digits AS BIGINT), which only DuckDB reads."""
    from sqlglot import exp

    return (
        isinstance(node, exp.Cast)
        and isinstance(node.this, exp.DPipe)
        and node.this.this.is_string
        and node.this.this.this == "0x"
    )


def _digits(node: Any, dialect: str) -> str:
    return node.this.expression.sql(dialect=dialect)  # type: ignore[no-any-return]


def _sql(node: Any) -> str:
    return node.sql(dialect="postgres")  # type: ignore[no-any-return]


def _parse(text: str, dialect: str) -> "exp.Expr":
    import sqlglot

    return sqlglot.parse_one(text, read=dialect)
