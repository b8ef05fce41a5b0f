"""Turns a statement, written once in DuckDB's dialect, into PostgreSQL's and Spark's.

sqlglot knows the grammars. What is here are the places where the engines give another answer, or
fail, on words that they share:

- PostgreSQL has no TRY_CAST and no ISNAN, compares texts by the column's collation, and *fails*
  where a product or quotient of doubles underflows. A failure would tell of a row, so nothing
  that a row holds may cause one.
- Spark cuts off what DuckDB and PostgreSQL round to the nearest integer, and takes '1d' and '1f'
  for numbers.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

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
