"""The server's own tables: people, tokens, data sets, artefacts, evaluations, jobs, the log.

No private row is in here. What was spent is in the ledger alone.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from alembic.config import Config

BUSY_SECONDS = 60
WRITERS = 0x736572766572  # "server", for PostgreSQL's advisory lock

BEGIN_WRITING = (  # in one way there and back
    f"BEGIN; SET LOCAL lock_timeout = '{BUSY_SECONDS}s'; SELECT pg_advisory_xact_lock({WRITERS})"
)
RESTED = 5.0
"""Seconds after which a connection that nobody used is tried before it is used again."""

Json = dict[str, Any]

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


TYPES: Final[dict[str, Any]] = {
    "": sa.Text(),
    "big": sa.BigInteger(),
    "flag": sa.Boolean(),
    "int": sa.Integer(),
    "json": sa.JSON(),
    "number": sa.Float(precision=53),
    "time": sa.Float(precision=53),
}


def columns_of(words: str, *, key: str) -> list[sa.Column[Any]]:
    """Return columns from words such as `owner`, `size:big`, `expires:time?` and `begun:time=0`.

    A column is text unless its type follows a colon, never NULL unless a question mark does, and
    new rows have what follows an equals sign.
    """
    made, keys = [], key.split()
    for word in words.split():
        described, _, default = word.partition("=")
        name, _, kind = described.removesuffix("?").partition(":")
        several = len(keys) > 1 and name in keys
        more: Json = {"nullable": described.endswith("?")}
        if default:
            more["default"] = int(default)
        made.append(sa.Column(name, TYPES[kind], autoincrement=not several and "auto", **more))
    return made


def _table(name: str, words: str, *, key: str, index: str = "", unique: str = "") -> sa.Table:
    """Return `server_NAME`, as `create` makes it in its migration."""
    table = sa.Table(f"server_{name}", metadata, *columns_of(words, key=key))
    table.append_constraint(sa.PrimaryKeyConstraint(*key.split()))
    if unique:
        table.append_constraint(sa.UniqueConstraint(*unique.split()))
    for together in index.split():
        sa.Index(None, *(table.c[column] for column in together.split("+")))
    return table


def create(name: str, columns: str, *, key: str, index: str = "", unique: str = "") -> sa.Table:
    """Create `server_NAME` in a migration; columns are words that `columns_of` reads.

    `index` names columns with an index each, `unique` those that are unique together.
    """
    from alembic import op

    table, together = f"server_{name}", unique.split()
    parts: list[sa.schema.SchemaItem] = [*columns_of(columns, key=key)]
    parts.append(sa.PrimaryKeyConstraint(*key.split(), name=op.f(f"pk_{table}")))
    if together:
        parts.append(sa.UniqueConstraint(*together, name=op.f(f"uq_{table}_{together[0]}")))
    made = op.create_table(table, *parts)
    for column in index.split():
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column], unique=False)
    return made


def drop(*names: str) -> None:
    """Drop tables in a migration, with their indices."""
    from alembic import op

    for name in names:
        op.drop_table(f"server_{name}")


people = _table(
    "people",
    "name role password? created:time disabled:time? subject? factor:json?",
    key="name",
    unique="subject",
)
"""`subject` is who somebody is at the institution's provider; `factor` their second factor."""
tries = _table(
    "tries", "name address failures:int retry:time time:time", key="name address", index="time"
)
"""Passwords that were tried, by name and address, whether or not anybody has the name. Names are
digests: people type passwords where names belong."""
tokens = _table(
    "tokens",
    "id person kind digest label scopes:json created:time expires:time revoked:time? parent?",
    key="id",
    index="person parent",
    unique="digest",
)
"""`kind` is api, browser or link; `parent` the token that made it."""
datasets = _table(
    "datasets",
    "name owner source:json declaration:json budget:json facts state words about:json? "
    "revision:int created:time closed:time?",
    key="name",
    index="owner",
)
"""`state` is checking, open, refused or closed."""
drafts = _table(
    "drafts",
    "id owner state words offered:json? source:json? columns:json? picks:json created:time",
    key="id",
    index="owner",
)
"""Registrations that a custodian is filling in: the choices, what was chosen, its columns with
their types, and the forms. `state` is surveying, choosing, looking or ready."""
grants = _table(
    "grants",
    "dataset analyst account expires:time? revoked:time? created:time",
    key="dataset analyst",
)
requests = _table("requests", "dataset analyst budget why created:time", key="dataset analyst")
"""Requests for a larger allowance."""
artifacts = _table(
    "artifacts",
    "id owner name kind size:big sha256 state words features:json? found:json? created:time "
    "copied:big=0",
    key="id",
    index="owner",
)
"""`state` is receiving, checking, ready, refused or deleted; `copied` are the bytes of what a
worker made of predictions."""
scorings = _table(
    "scorings",
    "artifact dataset revision:int state words visible:time size:big=0",
    key="artifact dataset revision",
)
"""`state` is waiting, ready or refused. `size` is what the scores count for: by public figures, as
a file's own size depends on rows."""
evaluations = _table(
    "evaluations",
    "id owner dataset artifact rival? revision:int questions:json key digest price:json state "
    "words statement:json? created:time visible:time?",
    key="id",
    index="dataset owner",
    unique="owner key",
)
"""`state` is waiting, booking, answered, expired, refused, lost or cancelled."""
receipts = _table("receipts", "place ledger sequence:big hash", key="place")
"""One row: the newest booking or registration that the worker made."""
boards = _table(
    "boards",
    "name dataset owner revision:int plan:json facts each:int ends:time? state words created:time",
    key="name",
    index="dataset",
)
"""`state` is opening, open, refused or lost."""
submissions = _table(
    "submissions",
    "id board owner artifact title key state words improved:flag? score:number? created:time "
    "visible:time?",
    key="id",
    index="board owner",
    unique="owner key",
)
"""`state` is waiting, booking, judged, refused or cancelled."""
jobs = _table(
    "jobs",
    "id:int kind subject after:int? state worker? lease:time=0 attempts:int=0 created:time owner "
    "seconds:time=0 begun:time=0 due:time=0",
    key="id",
    index="state owner+begun",
    unique="kind subject",
)
"""`state` is waiting, running, done or cancelled. `seconds` is what a job counts for, by public
figures; what comes after it waits until `due`."""
workers = _table("workers", "name version begun:time seen:time job?", key="name")
"""Workers that are alive, and the kind of job that each does."""
log = _table("log", "id:int time:time person? action subject status:int", key="id", index="time")


def now() -> float:
    return time.time()


def wait_until(moment: float) -> None:
    """Sleep until a moment has come."""
    while (left := moment - now()) > 0:
        time.sleep(left)


def new_id() -> str:
    """Return a random name that nobody can guess."""
    return secrets.token_hex(10)


class Store:
    """One database, and every transaction begun and ended by name."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.get_backend_name() != "sqlite":
            raise ArgumentError("The server's database must be SQLite or PostgreSQL.")
        self.url = parsed
        self.postgres = parsed.get_backend_name() == "postgresql"
        self._compiled: dict[sa.Select[Any], Any] = {}
        self.engine = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", hide_parameters=True)
        if self.postgres:
            sa.event.listen(self.engine, "checkin", _rests)
            sa.event.listen(self.engine, "checkout", _check_alive)
        else:
            sa.event.listen(self.engine, "connect", _settle)

    @classmethod
    def on_file(cls, path: Path) -> "Store":
        path.touch(mode=0o600)  # it holds digests of passwords
        return cls(f"sqlite:///{path}")

    @contextmanager
    def look(self) -> Iterator[sa.Connection]:
        """Run one statement that reads; for several that must fit together use `read`."""
        with self.engine.connect() as connection:
            yield connection

    def first(self, statement: sa.Select[Any], **values: object) -> sa.Row[Any] | None:
        """Return the first row of a statement that is asked again and again, or None.

        It is compiled once and handed to the driver as text, so that a look costs a third. Its
        columns must be numbers and texts: nothing converts them.
        """
        if statement not in self._compiled:
            self._compiled[statement] = statement.compile(dialect=self.engine.dialect)
        compiled = self._compiled[statement]
        given = compiled.construct_params(values)
        names = compiled.positiontup
        sent = given if names is None else tuple(given[name] for name in names)
        with self.engine.connect() as connection:
            return connection.exec_driver_sql(str(compiled), sent).first()

    def rows(self, query: sa.Select[Any], **values: object) -> list[Any]:
        """Return what one statement finds."""
        with self.look() as connection:
            return list(connection.execute(query, values))

    def row(self, query: sa.Select[Any], **values: object) -> sa.Row[Any] | None:
        """Return the first that one statement finds, or None."""
        with self.look() as connection:
            return connection.execute(query, values).first()

    def change(self, statement: sa.Update | sa.Delete) -> int:
        """Run one statement that writes, by itself; returns how many rows it changed."""
        with self.write() as connection:
            return connection.execute(statement).rowcount

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One snapshot."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.postgres else "BEGIN"
        with self._run(begin) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """As the only writer, so that what is read here still holds at its end; all or nothing.

        Counted tries, submissions and keys that are used once rest on it. SQLite locks at BEGIN
        IMMEDIATE; PostgreSQL's readers would otherwise all read the same count, and add one.
        """
        with self._run(BEGIN_WRITING if self.postgres else "BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _run(self, begin: str) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            try:
                connection.exec_driver_sql(begin)
                yield connection
            except BaseException:
                if self.postgres or connection.connection.in_transaction:
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def migrate(self, revision: str = "head", *, back: bool = False) -> None:
        """Bring the tables to a revision, forward or `back`; "base" is always a way back."""
        if revision == "head" and not back and revision_of(self) == newest_revision():
            return
        from alembic import command

        configuration = alembic_configuration(self.url.render_as_string(hide_password=False))
        if back or revision == "base":
            command.downgrade(configuration, revision)
        else:
            command.upgrade(configuration, revision)

    def check_current(self) -> None:
        """Refuse tables of another version than this one's."""
        if revision_of(self) != newest_revision():
            raise ArgumentError(
                "The server's tables are of another version of heldout. Use the version that runs "
                "the server, or start this one once: it brings them up to date."
            )

    def close(self) -> None:
        self.engine.dispose()


def revision_of(store: Store) -> str | None:
    """Return which revision the tables are of; None if there are none."""
    with store.read() as connection:
        if not sa.inspect(connection).has_table("server_version"):
            return None
        revision = connection.exec_driver_sql("SELECT version_num FROM server_version").scalar()
    return None if revision is None else str(revision)


@cache
def newest_revision() -> str | None:
    """Return the revision that this version's tables are of."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(alembic_configuration("")).get_current_head()


def revisions() -> list[str]:
    """Return every revision of the tables, oldest first."""
    from alembic.script import ScriptDirectory

    steps = ScriptDirectory.from_config(alembic_configuration("")).walk_revisions()
    return [step.revision for step in steps][::-1]


def alembic_configuration(url: str) -> "Config":
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    configuration.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return configuration


def _rests(_: object, record: Any) -> None:
    record.info["used"] = monotonic()


def _check_alive(connection: Any, record: Any, _: object) -> None:
    """Let go of a connection that the database ended while it rested."""
    used = record.info.get("used")
    if used is not None and monotonic() - used > RESTED:
        try:
            connection.execute("SELECT 1")
        except Exception:
            raise sa.exc.DisconnectionError from None


def _settle(connection: "Connection", _: object) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
