"""Checks a table against what its custodian declared, in one pass, on the custodian's side.

Errors raised here may depend on the rows: only the custodian sees them. They name the rule that
is broken and never a value. After this, nothing in the rows can make a release fail.
"""

import contextlib
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heldout.arguments import as_number, guess, shown
from heldout.data.engine import Engine
from heldout.data.scores import NARROWEST, WIDEST
from heldout.data.sql import (
    BINARY_TYPES,
    EXACT_BITS,
    FITTING_TYPES,
    as_double,
    as_text,
    column,
    double,
    equals,
    is_numeric,
    key,
    key_number,
    key_number_before,
    mixed,
    number_of,
    rounds_once,
)
from heldout.errors import (
    ArgumentError,
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
    UnreadableTable,
)

PORTABLE_KEYS = FITTING_TYPES | {"VARCHAR", "UUID", "DATE", "BOOLEAN"}
NESTED = re.compile(r"(STRUCT|MAP|UNION|VARIANT)\b|.*\]$", re.DOTALL)  # written by all rows' fields

_WIDTH = 32  # terms of one sum
MOST_NAMED = 12  # columns that a message lists
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name
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
class Rule:
    """Counts the rows that break what must hold of them, and knows what to say if any do."""

    name: str
    broken: str  # an aggregate over the table `held`, in DuckDB's dialect; zero if all keep it
    error: type[DataError]
    message: str


@dataclass(frozen=True)
class Keys:
    """The columns that say whose a row is, and which row."""

    unit: str | None
    row_key: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.unit, self.row_key) if name is not None)

    def check(self, engine: Engine) -> None:
        """Rows elsewhere have no order, and no digest but that of keys which read alike there."""
        check_plain(engine, self.names)
        if not engine.remote:
            if self.unit is not None and self.row_key is None and not engine.ordered:
                raise ArgumentError(
                    "row_key must be given with unit for an Arrow data set: its rows have no "
                    "order, and row_key decides which rows of a unit count."
                )
            return
        if self.row_key is None:
            raise ArgumentError(
                "row_key must be given for rows in a database or a cluster: it tells rows "
                "apart and finds their budget again. Name a column, such as an admission "
                "number."
            )
        for name in self.names:
            kind = engine.columns[name]
            if kind not in PORTABLE_KEYS and not kind.startswith("DECIMAL"):
                raise ArgumentError(
                    f"key {name!r} must be an integer, a decimal, a text, a date or a UUID, got "
                    f"{kind}, which engines write in different ways. Cast it to a text in a query."
                )

    def rules(self, types: Mapping[str, str]) -> list[Rule]:
        rules = []
        if self.unit is not None:
            message = f"unit {self.unit!r} must not be NULL or NaN. Say whose row it is."
            missing = _missing_key(self.unit, types[self.unit])
            rules.append(Rule("missing_unit", missing, MissingUnit, message))
        if self.row_key is not None:
            message = (
                f"row_key {self.row_key!r} must not be NULL or NaN. Name a column that tells rows "
                "apart."
            )
            missing = _missing_key(self.row_key, types[self.row_key])
            rules.append(Rule("missing_key", missing, MissingUnit, message))
        rules += [
            Rule(
                f"rounded_{place}",
                unsound(f"abs({column(name)}) < {double(2 ** EXACT_BITS[types[name]])}"),
                DataError,
                f"key {name!r} must be integers or texts, but some are floats at or beyond "
                f"2^{EXACT_BITS[types[name]]}, where two keys may have become one. Read the column "
                "as integers.",
            )
            for place, name in enumerate(self.names)
            if types[name] in BINARY_TYPES
        ]
        return rules

    def distinct(self, types: Mapping[str, str]) -> list[Rule]:
        """A row key tells rows apart."""
        if self.row_key is None:
            return []
        return [
            Rule(
                "duplicate",
                f"count(*) - count(DISTINCT {key(self.row_key, types[self.row_key])})",
                DuplicateRowKey,
                f"row_key {self.row_key!r} must differ from row to row. Remove the copies, or name "
                "the column that tells rows apart.",
            )
        ]


@dataclass(frozen=True)
class LabelValues:
    """The two values that a custodian declares for the label."""

    positive: object
    negative: object


def most_rows_rule(most: int, message: str) -> Rule:
    """A table has at most so many rows."""
    return Rule("rows", f"CASE WHEN count(*) > {most} THEN 1 ELSE 0 END", DataError, message)


def value_rules(role: str, name: str, tests: Sequence[str], advice: str) -> list[Rule]:
    """A label or a prediction is there, and is one of the values that tests look for."""
    missing = f"{role} {name!r} must not be NULL. Drop or mend those rows first."
    unknown = f"{role} {name!r} must be {advice}"
    return [
        Rule(f"missing_{role}", _missing(name), MissingLabel, missing),
        Rule(f"unknown_{role}", unsound(" OR ".join(tests)), UnknownLabel, unknown),
    ]


def label_rules(name: str, column_type: str, values: LabelValues) -> list[Rule]:
    """A label is there, and is one of the declared two."""
    label = column(name)
    positive, negative = (
        equals(label, column_type, value) for value in (values.positive, values.negative)
    )
    advice = (
        f"{values.positive!r} or {values.negative!r}. Declare "
        "positive= and negative=, or drop the other rows."
    )
    return value_rules("label", name, (positive, negative), advice)


def number_rules(role: str, name: str, column_type: str) -> list[Rule]:
    """A number is there, and is finite; `role` is what the custodian calls the column."""
    return finite_rules(
        role,
        as_double(column(name), column_type),
        missing=f"{role} {name!r} must be a number in every row, but some are NULL, NaN, text or "
        "dates. Fill them in, or drop such rows by a rule that does not look at the label.",
        infinite=f"{role} {name!r} must be finite. Map it to a bounded range first.",
    )


def finite_rules(role: str, number: str, *, missing: str, infinite: str) -> list[Rule]:
    """An expression gives a finite number of every row."""
    ends = f"({number}) >= {double(-LARGEST)} AND ({number}) <= {double(LARGEST)}"
    return [
        Rule(f"missing_{role}", unsound(known(number)), MissingScore, missing),
        Rule(f"infinite_{role}", unsound(ends), InfiniteScore, infinite),
    ]


def score_rules(name: str, column_type: str, score_range: tuple[float, float]) -> list[Rule]:
    """A score is a finite number within the declared range."""
    declared = (
        "score_range. Declare the range that the model can give, not the one that the data "
        "happens to have: (0, 100) for percentages. Another model's scale is declared with "
        "score_range={'decile': (1, 10)}. out_of_range='clip' counts scores beyond it as its ends. "
        "Logits and other scores without a range need a map: score_map=(0, 1)."
    )
    rules = range_rules("score", name, column_type, ends=score_range, declared=declared)
    return [*rules[:-1], replace(rules[-1], name="outside")]


def range_rules(
    role: str, name: str, column_type: str, *, ends: tuple[float, float], declared: str
) -> list[Rule]:
    """A finite number within a declared range; `declared` is its name, and what to do about it."""
    number = as_double(column(name), column_type)
    low, high = (double(bound) for bound in ends)
    what, _, advice = declared.partition(". ")
    message = f"{role} {name!r} must lie within {what} ({ends[0]:g}, {ends[1]:g}). {advice}"
    sound = unsound(f"{number} >= {low} AND {number} <= {high}")
    outside = Rule(f"outside_{role}", sound, ScoreOutOfRange, message.strip())
    return [*number_rules(role, name, column_type), outside]


def _missing(name: str) -> str:
    return f"count(*) - count({column(name)})"


def _missing_key(name: str, column_type: str) -> str:
    """NaN says whose a row is no more than NULL does, into which pandas turns it."""
    if column_type in BINARY_TYPES:
        return unsound(known(column(name)))
    if column_type.startswith("DECIMAL"):  # PostgreSQL's have a NaN, which a double could overflow
        return unsound(f"{as_text(name)} <> 'NaN'")
    return _missing(name)


def known(number: str) -> str:
    """Neither NULL nor NaN; to Spark, NULL is not NaN, so it is said twice."""
    return f"({number}) IS NOT NULL AND NOT isnan({number})"


def unsound(sound: str) -> str:
    """The rows that are not seen to be sound; a NULL is among them, whatever its column claims."""
    return f"count(*) - count(*) FILTER (WHERE {sound})"


def check_columns(engine: Engine, names: Sequence[str]) -> None:
    """Every declared column is there."""
    for name in names:
        if not isinstance(name, str) or name not in engine.columns:
            # A first line with a declared name in it holds names; without one it may be a row.
            headed = any(isinstance(own, str) and own in engine.columns for own in names)
            if engine.names_may_be_cells and not headed:
                hint = (
                    "Check its spelling. The first line of the file must hold the columns' names, "
                    "with commas between them (tabs in a .tsv file)."
                )
            else:
                own = [known for known in engine.columns if not INDEX.fullmatch(known)]
                hint = f"{_similar(name, own)}Columns: {', '.join(map(repr, own[:MOST_NAMED]))}"
                hint += f", ... ({len(own)} in all)." if len(own) > MOST_NAMED else "."
                if len(own) < len(engine.columns):
                    index = next(known for known in engine.columns if known not in own)
                    hint += f" {index!r} is the index that pandas wrote; it can be a row_key."
            raise MissingColumn(f"No column {shown(name)}. {hint}")


def _similar(name: Any, columns: Sequence[str]) -> str:
    """Guess which column was meant, by how names are spelt."""
    return f"{guess(name, columns)} ".lstrip()


def check_plain(engine: Engine, names: Sequence[str]) -> None:
    """Keys, labels and groups are plain values: what nested ones say depends on other rows'."""
    for name in names:
        if NESTED.match(engine.columns[name]):
            raise ArgumentError(
                f"column {name!r} must hold numbers, texts, truth values or times, and holds lists "
                "or records. Name another column, or make it a column of texts."
            )


def check_hash(engine: Engine) -> None:
    """The engine hashes as it did when the ledgers were written."""
    if engine.dialect != "duckdb":
        return  # keys alone, by arithmetic that is the same everywhere
    if tuple(int(number[0]) for number in engine.fetch(HASH_PROBE).values()) != HASHES_KNOWN:
        raise MissingDependency(
            "This version of DuckDB hashes differently from 2.0, so a ledger would not recognise "
            "these rows. Install 'duckdb>=2.0,<2.1'."
        )


def count_broken(engine: Engine, rules: Sequence[Rule], *, of: str = "TRUE") -> dict[str, int]:
    """Return the number of rows, and how many of them break each rule, in one reading."""
    columns = engine.fetch(statement(engine, rules, of=of))
    return {name: int(values[0]) for name, values in columns.items()}


def statement(engine: Engine, rules: Sequence[Rule], *, of: str = "TRUE") -> str:
    """One aggregate over the whole table, or a part of it: how many rows break each rule."""
    counts = ["count(*) AS n", *(f"{rule.broken} AS {rule.name}" for rule in rules)]
    part = "" if of == "TRUE" else f"\nWHERE {of}"
    return "SELECT\n  " + ",\n  ".join(counts) + f"\nFROM {engine.source} AS held{part}"


def reading(engine: Engine, cells: Sequence[str]) -> str:
    """One number of all these texts, row by row, in any order: the same if they are."""
    row = " || '/' || ".join(f"coalesce({cell}, '')" for cell in cells)
    number = f"CAST('0x' || substr(md5({row}), 1, 15) AS BIGINT)"
    wide = f"CAST({number} AS DECIMAL(38, 0))"  # a sum of 64-bit integers overflows in Spark
    return f"SELECT CAST(sum({wide}) AS VARCHAR) AS cells\nFROM {engine.source} AS held"


def fingerprint_columns(engine: Engine, keys: Keys) -> list[str]:
    """Sums over row hashes: the same rows have the same, in any order, from any file or engine.

    Each key has one of its own: another model's scores, or another outcome, of the same people
    are the same data. It is plain arithmetic, the same on every engine. `fingerprint_all` covers
    every cell of the table, whichever columns are called label and score; DuckDB alone computes
    it, with a hash that no other engine has. Any of them leads to the rows' one budget. Data that
    is distinguished too little shares a budget, which is safe; data that is distinguished too much
    would get two.
    """
    sums, types = [], engine.columns
    for role, name in {"row_key": keys.row_key, "unit": keys.unit}.items():
        if name is not None:
            sums.append(_key_sums(key_number(name, types[name]), role))
            before = key_number_before(name, types[name])
            sums += [] if before is None else [_key_sums(before, f"{role}_before")]
    if engine.remote:
        return sums
    # pandas writes an index into a file and not into a frame: the rows are the same.
    own = [name for name in types if not INDEX.fullmatch(name)]
    tables = {"all": list(types)} | ({"frame": own} if 0 < len(own) < len(types) else {})
    for what, names in tables.items():
        sums.append(_row_sums([_hash(name, types[name]) for name in names], what))
        if not all(rounds_once(types[name]) for name in names):
            scaled = [_hash(name, types[name], by_scale=True) for name in names]
            sums.append(_row_sums(scaled, f"{what}_before"))
    return sums


def _key_sums(number: str, role: str) -> str:
    first, second = (f"CAST(sum({mixed(f'({number})', which)}) AS VARCHAR)" for which in (0, 1))
    return f"{first} || '/' || {second} AS fingerprint_{role}"


def _row_sums(hashes: Sequence[str], what: str) -> str:
    # A sum over the row's cells: neither the columns' names nor their order enter. Shifted, so
    # that 65,536 columns do not overflow.
    cells = [f"({cell} >> 16)" for cell in hashes]
    # Sums of sums where there are many: DuckDB refuses an expression a thousand deep.
    while len(cells) > _WIDTH:
        parts = (" + ".join(cells[i : i + _WIDTH]) for i in range(0, len(cells), _WIDTH))
        cells = [f"({part})" for part in parts]
    row = " + ".join(cells)
    return (
        f"CAST(bit_xor(hash({row})) AS VARCHAR) || '/' || CAST(sum(hash({row}) >> 24) AS VARCHAR)"
        f" AS fingerprint_{what}"
    )


def fingerprint_statement(engine: Engine, keys: Keys) -> str:
    """One aggregate over the whole table: its number of rows and their digests."""
    sums = ["count(*) AS n", *fingerprint_columns(engine, keys)]
    return "SELECT\n  " + ",\n  ".join(sums) + f"\nFROM {engine.source} AS held"


def fingerprints(engine: Engine, keys: Keys) -> tuple[bytes, ...]:
    """Return the digests by which a ledger finds the rows again, by keys first.

    With those that earlier versions took of the same rows, where they are others.
    """
    check_hash(engine)
    columns = engine.fetch(fingerprint_statement(engine, keys))
    kinds = ("row_key", "unit"), ("all", "frame")
    names = [
        f"fingerprint_{what}{when}" for both in kinds for when in ("", "_before") for what in both
    ]
    sums = [columns[name][0] for name in names if name in columns]
    digests = [hashlib.sha256(f"{columns['n'][0]}/{total}".encode()).digest() for total in sums]
    return tuple(dict.fromkeys(digests))


def _hash(name: str, column_type: str, *, by_scale: bool = False) -> str:
    """The same cell hashes alike, whether an engine calls it INTEGER, DOUBLE, BOOLEAN or text.

    Earlier versions rounded decimals of many digits `by_scale`, to another double than their text.
    """
    if is_numeric(column_type) or column_type == "BOOLEAN":
        number = f"CAST({column(name)} AS DOUBLE)"
        if not by_scale and not rounds_once(column_type):
            number = as_double(column(name), column_type)
        return f"hash({_or_null(number, column_type)})"
    text = as_text(name)
    number = number_of(text)
    return f"(CASE WHEN ({number}) IS NULL THEN hash({text}) ELSE hash({_or_null(number)}) END)"


def _or_null(number: str, column_type: str = "DOUBLE") -> str:
    """NULL where it is NaN: what one library calls missing another calls not a number."""
    if column_type not in ("DOUBLE", "FLOAT", "REAL"):
        return number
    return f"nullif({number}, {double(math.nan)})"


def check_counts(counts: Mapping[str, int], rules: Sequence[Rule], *, most_rows: int) -> None:
    """Raise for the first broken rule; which rule, and what to do, but no value of any row."""
    if counts["n"] == 0:
        raise EmptyTable("The table has no rows. Check the file or the filter.")
    if counts["n"] > most_rows:
        raise UnreadableTable(
            f"table must have at most {most_rows:,} rows: beyond that, sums would not fit 64 bits."
        )
    for rule in rules:
        if counts[rule.name]:
            raise rule.error(rule.message)


def checked_weight(weight: Any, largest: Any) -> float:
    if (weight is None) != (largest is None):
        raise ArgumentError("weight and largest_weight must be given together.")
    if weight is None:
        return 1.0
    number = as_number(largest)
    if not isinstance(weight, str) or not NARROWEST <= number <= WIDEST:
        raise ArgumentError(
            "weight must be the name of a column and largest_weight a positive number, got "
            f"{shown(weight)} and {shown(largest)}."
        )
    return number


def checked_rivals(rivals: Any, *, by_name: bool = False) -> tuple[str, ...]:
    """Return the names of rivals: columns, or with `by_name` also those of a mapping."""
    with contextlib.suppress(Exception):
        if isinstance(rivals, Mapping) and not by_name:
            rivals = ""
        names = tuple(rivals)
        texts = all(isinstance(name, str) for name in names) and not isinstance(rivals, str)
        if texts and len(set(names)) == len(names):
            return names
    raise ArgumentError("rivals must be a list of distinct columns, such as ['risk_b'].")


def other_label(positive: object, negative: object) -> object:
    for name, value in (("positive", positive), ("negative", negative)):
        allowed = isinstance(value, str | bool | int | float) or (
            name == "negative" and value is None
        )
        number = isinstance(value, int | float)
        if not allowed or (number and not math.isfinite(as_number(value))):
            raise ArgumentError(f"{name} must be a text, a number or a bool, got {shown(value)}.")
    if negative is None:
        if isinstance(positive, str) or positive not in (0, 1):
            raise ArgumentError(
                f"negative must be declared when positive is {positive!r}. Say which two values "
                "the label has, for example positive='yes' negative='no'."
            )
        negative = type(positive)(1 - positive)
    if negative == positive:
        raise ArgumentError(f"negative must differ from positive, got {positive!r} for both.")
    return negative
