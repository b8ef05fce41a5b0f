"""Private rows of any kind: where they are, whose they are, and what is public about them."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, Self, TypedDict, TypeVar, runtime_checkable

from heldout.arguments import refuse_unknown, shown
from heldout.data import draws, sql, validation
from heldout.data.description import (
    MEMBER,
    Description,
    Groups,
    chosen_groups,
    crossed_member,
    kind_declared,
)
from heldout.data.duckdb import DuckDBEngine
from heldout.data.engine import Engine, as_numpy, name_of, open_table
from heldout.errors import ArgumentError, BudgetMismatch, DataError, UnreadableTable
from heldout.kernel.neighbours import Neighbours, Protection

# Which rows count where a person may have several: found once, when the rows are opened.
#
# There is one rule and one statement, `sql.evaluated`, which every engine runs over its own rows.
# Rows of files and frames have an order, so the places of those that count are marked. Elsewhere
# the engine copies the declared columns of those that count; one that cannot is asked for each
# question.

PASS_BYTES: Final = 2**30
"""So many bytes of rows, 64 per row, are sorted or compared in memory at a time."""
_PLACE: Final = "heldout_place"
OF_QUESTIONS: Final = "A threshold or a horizon goes with a question, not with the rows."
"""Advice for somebody who declares what is not declared."""


@dataclass(frozen=True)
class Limit:
    """At most `rows_per_unit` rows of a unit."""

    unit: str
    row_key: str | None
    rows_per_unit: int

    def statement(self, source: str, columns: Mapping[str, str], types: Mapping[str, str]) -> str:
        """Return the statement that finds these columns of the rows that count."""
        return sql.evaluated(
            source=source,
            columns=columns,
            types=types,
            unit=self.unit,
            row_key=self.row_key,
            rows_per_unit=self.rows_per_unit,
        )


class BoundedRows(Protocol):
    """The rows that count, found once."""

    def statement(self, columns: Mapping[str, str]) -> str | None:
        """Return what reads these columns of them; None where they must be found again."""


@dataclass(frozen=True)
class MarkedRows:
    """The places of the rows that count in a table with an order, and some of their columns."""

    source: str
    columns: Mapping[str, str]

    @staticmethod
    def of(
        engine: DuckDBEngine, limit: Limit, columns: Mapping[str, str], *, rows: int
    ) -> "MarkedRows":
        """Find the rows that count, and keep these columns of them unless they are too many."""
        copied = engine.mark(counted_rows(engine, limit, rows=rows), columns)
        return MarkedRows(engine.source, copied)

    def statement(self, columns: Mapping[str, str]) -> str:
        if columns.items() <= self.columns.items():
            return f"SELECT {', '.join(columns)}\n  FROM {sql.KEPT}"
        return sql.counted(source=self.source, columns=columns)


def counted_rows(engine: DuckDBEngine, limit: Limit, *, rows: int) -> sql.Array:
    """For each row of the table, in its order, whether it counts.

    Claim:       the rows that `sql.evaluated` keeps, and no other.       [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: as there. The secret by which people are split decides in which part a unit is
                 looked at, all its rows together, and nothing else.
    Numerics:    exact.
    Refuses:     nothing; NULL and repeated keys were refused before.
    Reference:   proofs/unit-bounding.md.
    Cost:        a sort of keys and places (a window in the engine where a key is no integer), and a
                 reading of the keys, for every 17 million rows; a byte per row after that.
    """
    import numpy as np

    counts = np.zeros(rows, dtype=bool)
    place = _PLACE
    while place in {name.lower() for name in engine.columns}:
        place += "_"
    numbered = f"SELECT *, row_number() OVER () - 1 AS {place} FROM {engine.source}"
    names = {"unit": limit.unit} | ({} if limit.row_key is None else {"row_key": limit.row_key})
    keys = {role: sql.key_number(name, engine.columns[name]) for role, name in names.items()}
    whole = all(engine.columns[name] in sql.FITTING_TYPES for name in names.values())
    for part in parts(keys["unit"], rows):
        source = f"(SELECT * FROM ({numbered}) AS held WHERE {part})"
        if whole:
            numbers = engine.fetch(
                sql.all_rows(source=source, columns={_PLACE: f"held.{place}", **keys})
            )
            numbers = draws.in_order(numbers, _PLACE)
            counts[numbers[_PLACE]] = draws.first_of_each(
                numbers["unit"], numbers.get("row_key"), limit.rows_per_unit
            )
            continue
        chosen = limit.statement(source, {_PLACE: f"held.{place}"}, engine.columns)
        for batch in engine.batches(chosen):
            counts[as_numpy(batch[_PLACE])] = True
    return counts


def parts(number: str, rows: int) -> list[str]:
    """Return conditions that split rows by a key's number into parts that fit into memory.

    By a secret, so that nobody who chooses keys can put them all into one part.

    >>> parts("n", 1000)
    ['TRUE']
    """
    many = -(-64 * rows // PASS_BYTES)
    if many <= 1:
        return ["TRUE"]
    drawn = f"hash(xor({number}, {secrets.randbits(62)})) % {many}"
    return [f"{drawn} = {part}" for part in range(many)]


@runtime_checkable
class Holding(Protocol):
    """An engine that can keep what a statement gives, as long as it lives itself."""

    def hold(self, statement: str, *, rows: int) -> str | None:
        """Return what to read it from; None where it cannot be kept.

        `rows` is the most that the statement can give.
        """


@dataclass(frozen=True)
class CopiedRows:
    """The declared columns of the rows that count, where an engine keeps them.

    Cells are kept as they are. What questions make of them is computed for each question, by the
    very expressions that would read them from the table.
    """

    source: str
    types: Mapping[str, str]
    names: frozenset[str]

    @staticmethod
    def of(
        engine: Engine, limit: Limit, declared: Iterable[str], *, rows: int
    ) -> "CopiedRows | None":
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
        names = sorted({*columns_read(declared, engine.columns), limit.unit})
        cells = {f"cell_{place}": sql.column(name) for place, name in enumerate(names)}
        copy = engine.hold(limit.statement(engine.source, cells, engine.columns), rows=rows)
        if copy is None:
            return None
        named = ", ".join(
            f"{cell} AS {sql.identifier(name)}" for cell, name in zip(cells, names, strict=True)
        )
        return CopiedRows(f"(SELECT {named} FROM {copy})", engine.columns, frozenset(names))

    def statement(self, columns: Mapping[str, str]) -> str | None:
        if not columns_read(columns.values(), self.types) <= self.names:
            return None
        return sql.all_rows(source=self.source, columns=columns)


def columns_read(expressions: Iterable[str], columns: Mapping[str, str]) -> set[str]:
    """Return the columns that expressions name, and perhaps one more that a text in them spells.

    >>> sorted(columns_read(['held."y" = 1', "abs(held.\\"p\\")"], {"y": "", "p": "", "q": ""}))
    ['p', 'y']
    """
    listed = list(expressions)
    return {name for name in columns if any(sql.column(name) in read for read in listed)}


Table = TypeVar("Table", bound="PrivateTable")


class Custody(TypedDict, total=False):
    """Lists what every kind of private rows takes beside its columns; see `PrivateTable`."""

    unit: str | None
    rows_per_unit: int
    row_key: str | None
    neighbours: str | Neighbours
    schema: Mapping[str, str] | None
    name: str | None


class PrivateTable(ABC):
    """Rows that leave through `heldout.kernel.door` alone, validated when the object is made.

    A kind of rows says which columns a statement may see (`_exposed`) and what must hold of them
    (`_rules`); `heldout.Dataset`, with a label and a score, is one. The table is opened, its keys
    are checked and the rules looked at in one pass, on the custodian's side. After that nothing in
    the rows can make a release fail.

    Parameters
    ----------
    table, schema
        Where the rows are; see `heldout.Dataset`.
    unit, rows_per_unit, row_key
        Whose row it is, how many rows of one unit may count, and a column that tells rows apart.
    neighbours
        "replace-one" (the number of rows is public), "add-remove", or "label": nothing but the
        outcome is secret.
    name
        What to call the data in reports.
    """

    MOST_ROWS: ClassVar[int] = sql.MOST_ROWS

    groups: Mapping[str, Groups] = MappingProxyType({})
    """Columns by which questions may be asked, of the kinds of rows that declare some."""
    _ledger: str | None = None
    _digests: tuple[bytes, ...] | None = None
    _bounded: BoundedRows | None = None
    """The rows of people that count, where the engine has kept what it found."""

    def __new__(cls, *_: Any, **declared: Any) -> Self:
        refuse_unknown(cls, declared, OF_QUESTIONS)
        return object.__new__(cls)

    def __init__(
        self,
        table: Any,
        *,
        unit: str | None = None,
        rows_per_unit: int = 1,
        row_key: str | None = None,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        schema: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        relation = Neighbours.parse(neighbours)
        self.protection = Protection(
            neighbours=relation,
            unit=unit is not None,
            rows_per_unit=rows_per_unit,
            unit_name=unit,
            outcome=self._outcome() if relation is Neighbours.LABEL else (),
        )
        if name is not None and not (isinstance(name, str) and name.isprintable()):
            raise ArgumentError(f"name must be printable text, got {shown(name)}.")
        self.name = name or name_of(table)
        known = getattr(table, "row_key", None)  # a table that a model scored knows its own
        if row_key is None and isinstance(known, str):
            row_key = known
        inputs = getattr(table, "inputs", ())
        self._inputs = inputs if isinstance(inputs, tuple) else ()  # of the model that scored it
        self._keys = validation.Keys(unit=unit, row_key=row_key)
        self._engine = open_table(table, schema=schema)
        self._require_plain(*self._keys.names)
        self._keys.check(self._engine)
        self._exposed_columns = self._exposed()
        if self.protection.only_labels:
            self._check_outcome()
        rows = self._validate()
        if self._limit is not None and self._exposed_columns:
            self._bound(self._limit, rows)
            if self.protection.row_count_is_public:  # which rows count depends on keys alone
                counted = self._engine.fetch(self.statement("SELECT count(*) AS n\nFROM evaluated"))
                rows = int(counted["n"][0])
        # Where the number of rows is private not even this object keeps it.
        self.public_rows = rows if self.protection.row_count_is_public else None

    @property
    def description(self) -> Description:
        """Return all that is public about these rows."""
        return self._described()

    def _described(self) -> Description:
        return Description(**self._public_facts())

    def _public_facts(self) -> dict[str, Any]:
        """Return what every kind of rows has in its description."""
        return {
            "name": self.name,
            "protection": self.protection,
            "rows": self.public_rows,
            "columns": self._shown(),
            "remote": self.remote,
            "groups": dict(self.groups),
        }

    def _shown(self) -> dict[str, str]:
        """The declared columns, each by what it is declared to be: no row can change it."""
        groups = {name: kind_declared(*group.values) for name, group in self.groups.items()}
        return dict.fromkeys(self._keys.names, "key") | groups

    def kinds(self) -> dict[str, str]:
        """All columns with the kind of values that the storage's own schema says they hold.

        For the custodian, who may show them; see `heldout.data.sql.kind_of`.
        """
        return {name: sql.kind_of(kind) for name, kind in self._types.items()}

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change a declaration: noise is made for it, and a budget kept under it."""
        if name in self.__dict__ and not name.startswith("_"):
            raise AttributeError(f"{name} is read-only. Declare the data set again.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} is read-only. Declare the data set again.")
        super().__delattr__(name)

    def bind_ledger(
        self, ledger: str | None, *, by_content: bool
    ) -> tuple[Description, tuple[bytes, ...]]:
        """Bind the rows to a ledger; return their description and the digests it finds them by.

        The ledger that has the rows' budget is remembered, and another one, or none, refused. One
        that a session has for itself, None, never meets other rows: it needs no digest. Rows that
        changed since they were validated are refused, here and before each booking.
        """
        self.check_unchanged()
        if self._ledger not in (None, ledger):
            raise BudgetMismatch(
                "Another ledger keeps the budget of these rows. Open the session with that ledger."
            )
        self._ledger = ledger
        digests: tuple[bytes, ...] = ()
        if by_content:
            digests = (bytes(32),) if ledger is None else self._fingerprints
        return self.description, digests  # in this order: the digests read every cell

    @abstractmethod
    def _exposed(self) -> dict[str, str]:
        """Return `evaluated`'s columns: our names, with expressions over the custodian's row."""

    @abstractmethod
    def _rules(self) -> list[validation.Rule]:
        """Return what must hold of the rows; whoever breaks a rule hears which, and no value."""

    def _outcome(self) -> tuple[str, ...]:
        """Return the custodian's columns with the outcome: under label neighbours all secrets."""
        return ()

    of_outcome: ClassVar[tuple[str, ...]] = ()
    """The columns of `evaluated` that are made of the outcome. No other one is."""
    rival_columns: tuple[str, ...] = ()
    """The columns that other models' scores or calls are read from."""

    def _check_outcome(self) -> None:
        """Refuse rows without an outcome, and an outcome that is also something public.

        Claim:       under label neighbours `evaluated` has the same rows in all columns but
                     `of_outcome`, and in these but for the rows whose outcome differs.
                                                                    [claim: label-neighbours]
        """
        if not self.protection.outcome:
            raise ArgumentError(
                "neighbours must be 'replace-one' or 'add-remove' for these rows: with 'label' "
                "only an outcome is secret, and they declare none."
            )
        public = [
            cell for name, cell in self._exposed_columns.items() if name not in self.of_outcome
        ]
        named = {*columns_read(public, self._types), *self._keys.names, *self.groups}
        named |= {*self._inputs, *self.rival_columns}
        secret = {name.lower() for name in self.protection.outcome}
        for name in sorted(named):
            if name.lower() in secret:  # engines may take names for one that differ in case alone
                raise ArgumentError(
                    f"With neighbours='label' {name!r} is the only secret, so it cannot be a "
                    "score, feature, group, weight or key too. Name another column, or use "
                    "'replace-one'."
                )

    def _require(self, *names: str) -> None:
        """Refuse a table that lacks one of these columns."""
        validation.check_columns(self._engine, names)

    def _require_plain(self, *names: str) -> None:
        """Refuse a table without these columns, or with lists or records in them."""
        self._require(*names)
        validation.check_plain(self._engine, names)

    def _validate(self) -> int:
        """Check the rules, and that keys tell rows apart; return the number of rows."""
        engine, keys = self._engine, self._keys
        rules = [*self._rules(), *keys.rules(engine.columns)]
        if self.remote:
            rules += keys.distinct(engine.columns)
        counts = validation.count_broken(engine, rules)
        if not engine.steady:
            self._check_steady()
        validation.check_counts(counts, rules, most_rows=self.MOST_ROWS)
        if keys.row_key is not None and not self.remote:
            distinct = keys.distinct(engine.columns)
            number = sql.key_number(keys.row_key, engine.columns[keys.row_key])
            for part in parts(number, counts["n"]):
                repeated = validation.count_broken(engine, distinct, of=part)
                repeated["n"] = counts["n"]
                validation.check_counts(repeated, distinct, most_rows=self.MOST_ROWS)
        return counts["n"]

    @property
    def _limit(self) -> Limit | None:
        unit, row_key = self._keys.unit, self._keys.row_key
        return None if unit is None else Limit(unit, row_key, self.protection.rows_per_unit)

    def _bound(self, limit: Limit, rows: int) -> None:
        """Find out once which rows count; every question then reads those alone."""
        engine = self._engine
        if engine.ordered:
            assert isinstance(engine, DuckDBEngine)
            self._bounded = MarkedRows.of(engine, limit, self._exposed_columns, rows=rows)
        else:
            # Every declared column is looked at by a rule, so questions read no other.
            read = [*self._exposed_columns.values(), *(rule.broken for rule in self._rules())]
            self._bounded = CopiedRows.of(engine, limit, read, rows=rows)
        self.check_unchanged()

    def _check_steady(self) -> None:
        """Refuse a query or a view that gives other rows when it is read again."""
        keys = [sql.as_text(name) for name in self._keys.names]
        cells = [*keys, *(f"CAST({cell} AS VARCHAR)" for cell in self._exposed_columns.values())]
        reading = validation.reading(self._engine, cells)
        first, second = (self._engine.fetch(reading)["cells"][0] for _ in range(2))
        if first != second:
            raise ArgumentError(
                "query must give the same rows each time, but a second reading gave others. Store "
                "what it gives in a table."
            )

    @property
    def _fingerprints(self) -> tuple[bytes, ...]:
        """The digests by which a ledger finds the rows again; taken now if they were not yet."""
        if self._digests is None:
            self.check_unchanged()
            self._digests = validation.fingerprints(self._engine, self._keys)
            self.check_unchanged()
        return self._digests

    @property
    def _types(self) -> Mapping[str, str]:
        """The columns and their types, as the engine calls them."""
        return self._engine.columns

    @property
    def _fingerprint(self) -> bytes:
        return self._fingerprints[0]

    @property
    def dialect(self) -> str:
        return self._engine.dialect

    @property
    def remote(self) -> bool:
        """Return True for rows in a database or a cluster, from where only counts should travel."""
        return self._engine.remote

    def statement(self, body: str) -> str:
        """The whole statement, in DuckDB's dialect, that asks `body` of the rows that count.

        The engine puts it into its own; `heldout.data.sql.transpile` shows it.
        """
        columns = self._exposed_columns
        rows = None if self._bounded is None else self._bounded.statement(columns)
        return sql.assemble(self._bounded_by_window() if rows is None else rows, body)

    def _bounded_by_window(self) -> str:
        """The rows that count, as an engine that keeps none finds them for each question."""
        source, columns = self._engine.source, self._exposed_columns
        if self._limit is None:
            return sql.all_rows(source=source, columns=columns)
        return self._limit.statement(source, columns, self._engine.columns)

    def _fetch(self, body: str) -> sql.Columns:
        """Un-noised columns: for statistics alone, which are sealed as soon as they are made."""
        # Looked at before and after: what is read in between was one and the same file.
        self.check_unchanged()
        columns = self._engine.fetch(self.statement(body))
        self.check_unchanged()
        return columns

    def _group_rules(self) -> list[validation.Rule]:
        types = self._engine.columns
        # No value breaks it: every cell is read once while only the custodian sees what fails.
        return [
            validation.Rule(
                f"group_{place}",
                f"CASE WHEN sum({groups.member(types[name])}) < 0 THEN 1 ELSE 0 END",
                DataError,
                f"groups[{name!r}] must be readable.",
            )
            for place, (name, groups) in enumerate(self.groups.items())
        ]

    def with_groups(self, by: str | Sequence[str]) -> Self:
        """The same rows with the number of each row's group beside it, as `member`.

        It is added to the rows that count, so a person's rows are bounded before they are divided.
        """
        chosen = chosen_groups(self.groups, by)
        return self._view(type(self), {MEMBER: crossed_member(chosen, self._engine.columns)})

    def _view(self, kind: "type[Table]", columns: Mapping[str, str]) -> "Table":
        """Return the same rows, with these columns beside those that statements see."""
        other = object.__new__(kind)
        other.__dict__.update(self.__dict__)
        other._exposed_columns = {**self._exposed_columns, **columns}
        return other

    def is_view_of(self, other: "PrivateTable") -> bool:
        """Return True if both read the very same rows."""
        return self._engine is other._engine

    def has_changed(self) -> bool:
        """Return True if these rows were written to, or lost, since they were validated."""
        return self._engine.has_changed()

    def check_unchanged(self) -> None:
        """Refuse rows that were written to, or lost, since they were validated."""
        if self.has_changed():
            lost = ", and its connection must last" if self._engine.remote else ""
            raise UnreadableTable(
                f"table must not change after it was validated{lost}. Make the "
                f"{type(self).__name__} anew."
            )

    def _about(self) -> str:
        """The public facts in a few words, for `repr`."""
        rows = "" if self.public_rows is None else f", {self.public_rows:,} rows"
        return f"{self.protection.describe()}{rows}"

    def __getstate__(self) -> object:
        raise TypeError(f"a {type(self).__name__} holds private rows and must not be pickled.")


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
            raise ArgumentError("Pass unit= or row_key=, the column that says who is in the table.")
        super().__init__(table, unit=unit, row_key=row_key, neighbours=neighbours, **more)

    def _exposed(self) -> dict[str, str]:
        return {}

    def _rules(self) -> list[validation.Rule]:
        return []

    def _check_outcome(self) -> None:
        """Look at nothing: who is in a table is public under label neighbours."""

    def are_numbered(self) -> bool:
        """Return whether they are merely numbered: whole numbers that fill their span.

        Such numbers say nothing of who somebody is: the rows of every table can be numbered. A
        span of at most twice the count is taken for numbering. For the custodian alone.
        """
        name = self._keys.unit or self._keys.row_key
        assert name is not None
        number = sql.key_number(name, self._engine.columns[name])
        people = f"(SELECT {number} AS person FROM {self._engine.source} AS held) AS people"
        seen = self._engine.fetch(
            "SELECT count(DISTINCT person) AS n, min(person) AS low, max(person) AS high "
            f"FROM {people}"
        )
        count, low, high = (int(seen[part][0] or 0) for part in ("n", "low", "high"))
        return high - low < 2 * count

    def individuals(self, level: int) -> tuple[int, list[int]]:
        """Count them, and list one in 2^level of them, the same ones in every table."""
        name = self._keys.unit or self._keys.row_key
        assert name is not None
        number = sql.key_number(name, self._engine.columns[name])
        people = (
            f"(SELECT DISTINCT {number} AS person FROM {self._engine.source} AS held) AS people"
        )
        self.check_unchanged()
        count = self._engine.fetch(f"SELECT count(*) AS n FROM {people}")["n"][0]
        drawn = self._engine.fetch(
            f"SELECT person FROM {people} WHERE {sql.mixed('person')} % {2**level} = 0"
        )
        self.check_unchanged()
        return int(count), [int(person) for person in drawn["person"]]
