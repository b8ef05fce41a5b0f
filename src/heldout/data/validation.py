"""Checks a table against what its custodian declared, in one pass, on the custodian's side.

Errors raised here may depend on the rows: only the custodian sees them. They name the rule that
is broken and never a value. After this, nothing in the rows can make a release fail.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from heldout.data.engine import Engine
from heldout.data.sql import (
    as_double,
    as_text,
    column,
    double,
    equals,
    is_numeric,
    number_of,
)
from heldout.errors import (
    DataError,
    DuplicateRowKey,
    EmptyTable,
    InfiniteScore,
    MissingColumn,
    MissingDependency,
    MissingLabel,
    MissingScore,
    MissingUnit,
    ScoreOutOfRange,
    UnknownLabel,
)

LARGEST = 1.7976931348623157e308  # the finiteness test that all engines agree on

# DuckDB does not promise that hash() stays the same. If it changed, rows that a ledger knows would
# look new and get a second budget.
HASH_PROBE = (
    "SELECT hash(CAST(1.5 AS DOUBLE)) AS of_double, hash('heldout') AS of_short_text, "
    "hash('a longer text than twelve bytes') AS of_long_text, hash(7::UBIGINT) AS of_sum"
)
HASHES_KNOWN = (
    1706605666616485939,
    7066505026747370783,
    3708714104219217767,
    8736873150706563146,
)


@dataclass(frozen=True)
class Declared:
    """What the custodian says of the table; all of it public."""

    label: str
    score: str | None
    positive: object
    negative: object
    score_range: tuple[float, float]
    unit: str | None
    row_key: str | None


def check_columns(engine: Engine, declared: Declared) -> None:
    """Every declared column is there."""
    keys = [name for name in (declared.unit, declared.row_key) if name is not None]
    scores = [] if declared.score is None else [declared.score]
    for name in (declared.label, *scores, *keys):
        if name not in engine.columns:
            if engine.names_may_be_cells:
                hint = "Check that the first line of the file holds the columns' names."
            else:
                hint = f"It has: {', '.join(map(repr, list(engine.columns)[:12]))}."
            raise MissingColumn(f"column {name!r} must be in the table, got none. {hint}")


def check_hash(engine: Engine) -> None:
    """The engine hashes as it did when the ledgers were written."""
    if tuple(int(each[0]) for each in engine.fetch(HASH_PROBE).values()) != HASHES_KNOWN:
        raise MissingDependency(
            "duckdb must be a version whose hash() is that of 2.0, got another: budgets would not "
            "find their rows again. Install 'duckdb>=2.0,<2.1'."
        )


def statement(engine: Engine, declared: Declared) -> str:
    """One aggregate over the whole table: how many rows break each rule."""
    label = column(declared.label)
    label_type = engine.columns[declared.label]
    positive = equals(label, label_type, declared.positive)
    negative = equals(label, label_type, declared.negative)
    low, high = (double(bound) for bound in declared.score_range)
    counts = ["count(*) AS n", f"count(*) - count({label}) AS missing_label"]
    counts.append(
        f"count(*) FILTER (WHERE {label} IS NOT NULL AND NOT"
        f" coalesce({positive} OR {negative}, FALSE)) AS unknown_label"
    )
    if declared.score is not None:
        score = as_double(column(declared.score), engine.columns[declared.score])
        finite = f"{score} >= {double(-LARGEST)} AND {score} <= {double(LARGEST)}"
        counts += [
            f"count(*) FILTER (WHERE {score} IS NULL OR isnan({score})) AS missing_score",
            f"count(*) FILTER (WHERE NOT ({finite}) AND NOT isnan({score})) AS infinite",
            f"count(*) FILTER (WHERE ({finite}) AND NOT ({score} >= {low} AND {score} <= {high}))"
            f" AS outside",
        ]
    for role, key in (("unit", declared.unit), ("key", declared.row_key)):
        if key is not None:
            counts.append(f"count(*) - count({column(key)}) AS missing_{role}")
    if declared.row_key is not None:
        counts.append(f"count(*) - count(DISTINCT {column(declared.row_key)}) AS duplicate")
    counts += fingerprint_columns(engine, declared)
    return "SELECT\n  " + ",\n  ".join(counts) + f"\nFROM {engine.source} AS held"


def fingerprint_columns(engine: Engine, declared: Declared) -> list[str]:
    """Two sums over row hashes: the same rows have the same, in any order, from any file.

    `fingerprint_all` covers every cell of the table, whichever columns are called label and
    score. With a row key or a unit `fingerprint_keys` covers these keys alone: another model's
    scores, or another outcome, of the same people are the same data. Either leads to the rows'
    one budget. Data that is told apart too little shares a budget, which is safe; data that is
    told apart too much would get two.
    """
    keys = [name for name in (declared.unit, declared.row_key) if name is not None]
    sums = _row_sums(engine, list(engine.columns), "all")
    return sums + _row_sums(engine, keys, "keys") if keys else sums


def _row_sums(engine: Engine, names: list[str], what: str) -> list[str]:
    # A sum over the row's cells: neither the columns' names nor their order enter. Shifted, so
    # that 65,536 columns do not overflow.
    row = " + ".join(f"({_hash(name, engine.columns[name])} >> 16)" for name in names)
    both = (
        f"CAST(bit_xor(hash({row})) AS VARCHAR) || '/' || CAST(sum(hash({row}) >> 24) AS VARCHAR)"
    )
    return [f"{both} AS fingerprint_{what}"]


def fingerprints(found: dict[str, Any]) -> tuple[bytes, ...]:
    """The digests by which a ledger finds the rows again, by keys first; takes them out."""
    sums = [found.pop(name) for name in ("fingerprint_keys", "fingerprint_all") if name in found]
    return tuple(hashlib.sha256(f"{found['n']}/{each}".encode()).digest() for each in sums)


def _hash(name: str, column_type: str) -> str:
    """The same cell hashes alike, whether an engine calls it INTEGER, DOUBLE, BOOLEAN or text."""
    if is_numeric(column_type) or column_type == "BOOLEAN":
        return f"hash(CAST({column(name)} AS DOUBLE))"
    text = as_text(name)
    number = number_of(text)
    return f"(CASE WHEN ({number}) IS NULL THEN hash({text}) ELSE hash({number}) END)"


def judge(counts: dict[str, int], declared: Declared) -> None:
    """Raise for the first broken rule; which rule, and what to do, but no value of any row."""
    low, high = declared.score_range
    two = f"{declared.positive!r} or {declared.negative!r}"
    rules: list[tuple[str, type[DataError], str]] = [
        (
            "missing_label",
            MissingLabel,
            f"label {declared.label!r} must not be NULL. Drop or mend those rows first.",
        ),
        (
            "unknown_label",
            UnknownLabel,
            f"label {declared.label!r} must be {two}. Declare positive= and negative=, "
            "or drop the other rows.",
        ),
    ]
    if declared.score is not None:
        name = declared.score
        rules += [
            (
                "missing_score",
                MissingScore,
                f"score {name!r} must be a number, but some are NULL, NaN or text. Give every "
                "row a score, or drop it by a rule that does not look at the label.",
            ),
            (
                "infinite",
                InfiniteScore,
                f"score {name!r} must be finite. Map it to a bounded range first.",
            ),
            (
                "outside",
                ScoreOutOfRange,
                f"score {name!r} must lie within score_range ({low:g}, {high:g}). Declare the "
                "range that the model can give, not the one that the data happens to have.",
            ),
        ]
    rules += [
        (
            "missing_unit",
            MissingUnit,
            f"unit {declared.unit!r} must not be NULL. Say whose row it is.",
        ),
        ("missing_key", MissingUnit, f"row_key {declared.row_key!r} must not be NULL."),
        (
            "duplicate",
            DuplicateRowKey,
            f"row_key {declared.row_key!r} must differ from row to row. Remove the copies, or "
            "name the column that tells rows apart.",
        ),
    ]
    if counts["n"] == 0:
        raise EmptyTable("table must have at least one row, got none. Check the file.")
    for name, error, message in rules:
        if counts.get(name, 0):
            raise error(message)
