"""Rows in a PostgreSQL database: read where they are, through one snapshot that does not change."""

import contextlib
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from heldout.data.engine import HOUR, Elsewhere, check_names, checked_timeout, or_raise
from heldout.data.sql import Array, Columns, identifier, transpile
from heldout.errors import ArgumentError, HeldoutError, MissingDependency, UnreadableTable

if TYPE_CHECKING:
    import psycopg

ADDRESS = re.compile(r"(?i)^postgres(ql)?(\+psycopg)?://")
QUERY, HELD = "heldout_query", "heldout_held"

# No word of ours may mean what another user of the database makes of it: an operator of theirs that
# fits a statement better than PostgreSQL's own would see the keys.
PATH = "pg_catalog, pg_temp"
STORED = ("r", "p", "m")  # tables, partitioned ones and materialised views: a snapshot holds them
VIEWS = ("v", "f")

# What the policies of a table call may draw at random, and a part of it may lie elsewhere.
PLACES = """
WITH RECURSIVE below(top, oid) AS (
  SELECT c.oid, c.oid FROM pg_catalog.pg_class AS c WHERE c.relname = %s
  UNION
  SELECT b.top, i.inhrelid FROM below AS b JOIN pg_catalog.pg_inherits AS i ON i.inhparent = b.oid
)
SELECT n.nspname, t.relkind::text,
  pg_catalog.bool_or(c.relkind = 'f' OR c.oid = t.oid AND pg_catalog.row_security_active(c.oid))
FROM below AS b
JOIN pg_catalog.pg_class AS c ON c.oid = b.oid
JOIN pg_catalog.pg_class AS t ON t.oid = b.top
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
GROUP BY 1, 2
"""

SETTINGS = {
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "synchronize_seqscans": "off",  # a scan begins at the beginning
    "work_mem": "12MB",  # counts by score cell stay in memory, and near the processor
    "idle_in_transaction_session_timeout": "0",  # the snapshot is held between questions
}

# By the number of the type in every PostgreSQL; anything else is read through its text.
TYPES = {
    16: "BOOLEAN",
    19: "VARCHAR",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    25: "VARCHAR",
    700: "FLOAT",
    701: "DOUBLE",
    1042: "VARCHAR",
    1043: "VARCHAR",
    1082: "DATE",
    1114: "TIMESTAMP",
    1184: "TIMESTAMP WITH TIME ZONE",
    1700: "DECIMAL",
    2950: "UUID",
}

WHY = {
    "42P01": "there is no such table. Its name is taken as it is spelt, as if in quotes; in a "
    "query write schema.name",
    "3F000": "there is no such schema. Its name is taken as it is spelt, as if in quotes",
    "42703": "a column that the query names is not there",
    "42883": "a function or operator that the query names is not PostgreSQL's own. Write its "
    "schema, as in public.cleaned(x)",
    "42704": "a type that the query names is not PostgreSQL's own. Write its schema, as in "
    "public.sex",
    "42601": "the query is not a statement that PostgreSQL understands",
    "42501": "this user may not read it. Grant SELECT on the table",
    "57014": "the statement took longer than the time-out. Raise timeout=, or ask for less",
}

NO_ROOM = ("53000", "53100", "53200", "53400")  # on the server's disk, or in its memory

T = TypeVar("T")


class _NotKept(HeldoutError):
    """Rows cannot be kept on this server."""


class PostgresTable(Elsewhere):
    """A table or a query of a PostgreSQL database, for any argument that takes a table.

    Parameters
    ----------
    address
        postgresql://user@host/database. Leave the password to ~/.pgpass or the environment; if it
        is in the address it is used and never shown.
    table
        The table's name, or schema.table, as it is spelt; a name with a dot in it in quotes.
    query
        Instead of `table`, one SELECT. It must give the same rows each time: it is read twice, and
        refused if they differ. Functions and types of your own need their schema's name.
    timeout
        Seconds that one statement may take.

    >>> PostgresTable("postgresql://me:secret@db.example/clinic", table="public.visits")
    PostgresTable(table='public.visits')
    """

    def __init__(
        self,
        address: str,
        *,
        table: str | None = None,
        query: str | None = None,
        timeout: float = HOUR,
    ) -> None:
        if not isinstance(address, str) or not is_address(address):
            raise ArgumentError("address must begin with postgresql://.")
        if (table is None) == (query is None):
            raise ArgumentError("Say which rows: pass either table= or query=.")
        self._address = ADDRESS.sub("postgresql://", address)
        self.table, self.timeout = table, checked_timeout(timeout)
        self._query = None if query is None else checked_query(query)
        self._parts = () if table is None else parts_of(table)

    def __repr__(self) -> str:
        which = "query=..." if self.table is None else f"table={self.table!r}"
        return f"PostgresTable({which})"

    def __getstate__(self) -> object:
        raise TypeError("a PostgresTable may hold a password and must not be pickled.")

    def open(self) -> "PostgresEngine":
        """Connect, and take the snapshot that every statement will read."""
        try:
            import psycopg
        except ImportError:
            raise MissingDependency(
                "Reading PostgreSQL requires psycopg. "
                "Install it with: pip install 'heldout[postgres]'"
            ) from None

        def connect() -> "psycopg.Connection[Any]":
            # Nothing is left prepared on the server of a pool. In another encoding than the
            # database's the server fails where a cell holds a character that it lacks.
            settings: Any = {"application_name": "heldout", "prepare_threshold": None,
                             "client_encoding": "UTF8"}  # fmt: skip
            return psycopg.connect(self._address, **settings)

        connection = _quietly(connect, _unreachable)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return PostgresEngine(connection, self._parts, query=self._query, timeout=self.timeout)


class PostgresEngine:
    """One transaction over one snapshot, for as long as the data set lives.

    What others write to the table meanwhile is not seen, so the rows that are asked are exactly
    the rows that were validated. A lost connection loses the snapshot: the data set is then
    refused like a file that changed. Whatever runs the custodian's query or reads rows may only
    read; nothing but an empty temporary table is ever created, by `hold`.
    """

    dialect = "postgres"
    remote = True
    ordered = False
    copied = False
    names_may_be_cells = False

    def __init__(
        self, connection: Any, parts: tuple[str, ...], *, query: str | None, timeout: float
    ) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._process = os.getpid()
        weakref.finalize(self, _close, connection, self._process)
        self._schemas = self._begin(timeout)
        self._query = None if query is None else self._qualified(query)
        self.source, self.steady = QUERY, False
        if query is None:
            schema, self.steady = self._place(*parts)
            self.source = f"{identifier(schema)}.{identifier(parts[-1])}"
        self.columns = self._described()

    def _begin(self, timeout: float) -> list[str]:
        """Set what statements mean; the schemas that this user's bare names were looked up in."""
        settings = {"search_path": PATH, **SETTINGS}
        settings["statement_timeout"] = str(max(1, round(1000 * timeout)))
        schemas: list[str] = []

        def begin() -> str:
            row = self._connection.execute("SELECT pg_catalog.current_schemas(true)").fetchone()
            schemas.extend(row[0])
            setting = "SELECT pg_catalog.set_config(%s, %s, true)"
            for name, value in settings.items():
                self._connection.execute(setting, (name, value))
            return str(self._connection.execute("SHOW server_encoding").fetchone()[0])

        encoding = _quietly(begin, _unreadable)
        if encoding.upper() not in ("UTF8", "UTF-8"):
            raise UnreadableTable(
                f"the database must be encoded in UTF8, got {encoding}: its keys would hash "
                "differently than elsewhere. Read a copy in UTF8."
            )
        return schemas

    def _place(self, *parts: str) -> tuple[str, bool]:
        """The schema of a table, and whether a snapshot holds all of its rows.

        Without a schema, the first that has the name.
        """
        schemas = list(parts[:-1]) or self._schemas

        def look() -> dict[str, tuple[str, bool]]:
            with self._reading():
                rows = self._connection.execute(PLACES, (parts[-1],)).fetchall()
                return {schema: (kind, moves) for schema, kind, moves in rows}

        places = _quietly(look, _unreadable)
        for schema in schemas:
            kind, moves = places.get(schema, ("", False))
            if kind in (*STORED, *VIEWS):
                return schema, kind in STORED and not moves
        raise _unreadable("42P01")

    def _qualified(self, query: str) -> str:
        """The query with a schema before each table that it names without one."""
        for start, name in reversed(bare_tables(query)):
            query = f"{query[:start]}{identifier(self._place(name)[0])}.{query[start:]}"
        return query

    def _described(self) -> dict[str, str]:
        def describe() -> list[Any]:
            with self._reading(), self._cursor() as cursor:
                cursor.execute(self._whole(f"SELECT * FROM {self.source} AS held LIMIT 0"))
                return list(cursor.description or ())

        columns = _quietly(describe, _unreadable)
        check_names([column.name for column in columns], "the table")
        return {column.name: _type_of(column) for column in columns}

    def fetch(self, statement: str) -> Columns:
        whole = self._whole(transpile(statement, dialect=self.dialect))

        def run() -> Columns:
            with self._reading(), self._cursor() as cursor:
                cursor.execute(whole)
                names = [column.name for column in cursor.description or ()]
                rows = cursor.fetchall()
            values = list(zip(*rows, strict=True)) or [()] * len(names)
            return {name: _array(column) for name, column in zip(names, values, strict=True)}

        self._check_snapshot()
        return _quietly(run, _unreadable)

    def hold(self, statement: str, *, rows: int) -> str | None:
        """In a temporary table, which ends with the transaction; None if this role may make none.

        The table is made empty, without running the statement: whatever it calls may write nowhere
        but there.
        """
        whole = self._whole(transpile(statement, dialect=self.dialect))

        def make() -> None:
            with self._lock, self._connection.transaction():
                self._connection.execute(
                    f"CREATE TEMPORARY TABLE {HELD} ON COMMIT DROP AS\n{whole}\nWITH NO DATA"
                )

        def fill() -> None:
            with self._reading():
                self._connection.execute(f"INSERT INTO pg_temp.{HELD}\n{whole}")

        self._check_snapshot()
        try:
            # A replica, a role without the right to temporary tables, a type that tables lack.
            _quietly(make, lambda _: _NotKept())
            _quietly(fill, lambda code: _NotKept() if code in NO_ROOM else _unreadable(code))
        except _NotKept:
            return None
        return f"pg_temp.{HELD}"

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """A savepoint in which nothing can be written but to temporary tables.

        What fails, by a time-out say, does not end the snapshot.
        """
        with self._lock, self._connection.transaction():
            self._connection.execute("SET TRANSACTION READ ONLY")
            yield

    def has_changed(self) -> bool:
        """Return True if the snapshot is gone; as long as it is there, the rows are the same."""
        if not self._holds_snapshot():
            return True
        try:
            with self._reading():
                self._connection.execute("SELECT 1")
        except Exception:
            return True
        return False

    def _holds_snapshot(self) -> bool:
        """Return True within the transaction; outside it each statement has its own."""
        if self._process != os.getpid():
            return False
        with self._lock:
            return self._connection.info.transaction_status.name == "INTRANS"  # type: ignore[no-any-return]

    def _cursor(self) -> "psycopg.Cursor[Any]":
        # Binary: doubles arrive to the last bit, and the server takes one statement at a time.
        cursor: psycopg.Cursor[Any] = self._connection.cursor(binary=True)
        return cursor

    def _whole(self, statement: str) -> str:
        if self._query is None:
            return statement
        named = f"WITH {QUERY} AS NOT MATERIALIZED (\n{self._query}\n)"
        if statement.startswith("WITH "):
            return f"{named},\n{statement.removeprefix('WITH ')}"
        return f"{named}\n{statement}"

    def _check_snapshot(self) -> None:
        if not self._holds_snapshot():
            raise UnreadableTable(
                "rows in PostgreSQL must be read by the process and in the transaction that "
                "opened them. Make the data set again."
            )


def is_address(text: str) -> bool:
    """Return True for the address of a PostgreSQL database, False for a path."""
    return ADDRESS.match(text) is not None


def _type_of(described: Any) -> str:
    known = TYPES.get(described.type_code)
    if known == "DECIMAL" and described.precision is not None:
        return f"DECIMAL({described.precision},{described.scale})"
    return known or str(described.type_display).upper()


def _array(values: tuple[object, ...]) -> Array:
    """The column as NumPy holds it, masked where it is NULL."""
    import numpy as np

    array = np.array(values)
    if array.dtype != object or None not in values:
        return array
    missing = [value is None for value in values]
    filler = next((value for value in values if value is not None), 0)
    filled = np.array([filler if value is None else value for value in values])
    return np.ma.array(filled, mask=missing)


def _close(connection: Any, process: int) -> None:
    # A forked child that lets go must not hang up for its parent.
    if process == os.getpid():
        connection.close()


def _quietly(action: Callable[[], T], error: Callable[[str], HeldoutError]) -> T:
    """Run it; if it fails, keep the code of the failure alone.

    The library's message may quote a cell or the address, so ours is raised after it is gone.
    """
    try:
        return action()
    except Exception as failure:
        code = str(getattr(failure, "sqlstate", None) or "")
    raise error(code)


def _unreachable(code: str) -> HeldoutError:
    return UnreadableTable(
        "the database must be reachable at its address, but connecting failed. Check host, port, "
        "database, user and password."
    )


def _unreadable(code: str) -> HeldoutError:
    why = WHY.get(code, "reading it failed. Check that the server is up and the table is whole")
    return UnreadableTable(f"table must be readable in the database, but {why}.")


NOT_REPEATABLE = {
    *("random", "random_normal", "rand", "uuid", "uuid_generate_v4", "clock_timestamp"),
    *("gen_random_uuid", "timeofday", "statement_timestamp", "nextval", "setseed"),
}


def parts_of(table: str) -> tuple[str, ...]:
    """The names in schema.table.

    >>> parts_of('clinic."visits.2024"')
    ('clinic', 'visits.2024')
    """
    bare, quoted = r'[^".\0]+', r'"(?:[^"\0]|"")+"'
    if not isinstance(table, str) or not re.fullmatch(
        rf"(?:{bare}|{quoted})(?:\.(?:{bare}|{quoted}))?", table
    ):
        raise ArgumentError(
            "table must be a name or schema.name. Put a name that holds a dot or a quote in "
            'quotes, as in "visits.2024".'
        )
    parts = re.findall(rf"{quoted}|{bare}", table)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)


def checked_query(query: str) -> str:
    from sqlglot import exp, parse

    def statements() -> list[Any]:
        return list(parse(query, read="postgres"))

    def refuse() -> HeldoutError:
        return ArgumentError("query must be one SELECT. Write one.")

    parsed = or_raise(statements, refuse) if isinstance(query, str) else []
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query) or "\0" in query:
        raise refuse()
    called = {function.sql_name().lower() for function in parsed[0].find_all(exp.Func)}
    called |= {str(function.this).lower() for function in parsed[0].find_all(exp.Anonymous)}
    if called & NOT_REPEATABLE or parsed[0].find(exp.TableSample):
        raise ArgumentError(
            "query must give the same rows each time, so it must not draw at random or read a "
            "clock. Store what it gives in a table."
        )
    return query.strip().rstrip(";")


def bare_tables(query: str) -> list[tuple[int, str]]:
    """Where a query names a table without a schema, and which; its own WITH names are none.

    >>> bare_tables('WITH x AS (SELECT * FROM Stays) SELECT * FROM x JOIN public.t ON TRUE')
    [(25, 'stays')]
    """
    from sqlglot import exp, parse_one

    tree = parse_one(query, read="postgres")
    own = {common.alias.lower() for common in tree.find_all(exp.CTE)}
    places = [
        (table.this.meta["start"], table.name if table.this.quoted else table.name.lower())
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() not in own
    ]
    return sorted(places)
