"""The server's own tables: people, tokens, data sets, artefacts, evaluations, jobs, the log.

No private row is in here. What was spent is in the ledger alone.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

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


def _table(name: str, *columns: sa.Column[Any], **more: Any) -> sa.Table:
    return sa.Table(f"server_{name}", metadata, *columns, *more.get("also", ()))


def _text(name: str, **more: Any) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, **{"nullable": False} | more)


def _when(name: str, **more: Any) -> "sa.Column[float]":
    return sa.Column(name, sa.Float(53), **{"nullable": False} | more)


people = _table(
    "people",
    _text("name", primary_key=True),
    _text("role"),
    _text("password", nullable=True),
    _when("created"),
    _when("disabled", nullable=True),
    _text("subject", nullable=True, unique=True),
    sa.Column("factor", sa.JSON, nullable=True),
)
"""`subject` is who somebody is at the institution's provider; `factor` their second factor."""
tries = _table(
    "tries",
    _text("name", primary_key=True),  # a digest: people type passwords where names belong
    _text("address", primary_key=True),
    sa.Column("failures", sa.Integer, nullable=False),
    _when("retry"),
    _when("time", index=True),
)
"""Passwords that were tried, by name and address, whether or not anybody has the name."""
tokens = _table(
    "tokens",
    _text("id", primary_key=True),
    _text("person", index=True),
    _text("kind"),  # "api", "browser" or "link"
    _text("digest", unique=True),
    _text("label"),
    sa.Column("scopes", sa.JSON, nullable=False),
    _when("created"),
    _when("expires"),
    _when("revoked", nullable=True),
    _text("parent", nullable=True, index=True),  # the token that made it
)
datasets = _table(
    "datasets",
    _text("name", primary_key=True),
    _text("owner", index=True),
    sa.Column("source", sa.JSON, nullable=False),
    sa.Column("declaration", sa.JSON, nullable=False),
    sa.Column("budget", sa.JSON, nullable=False),
    _text("facts"),
    _text("state"),  # "checking", "open", "refused", "closed"
    _text("words"),
    sa.Column("about", sa.JSON, nullable=True),
    sa.Column("revision", sa.Integer, nullable=False, default=1),
    _when("created"),
    _when("closed", nullable=True),
)
drafts = _table(
    "drafts",  # registrations that a custodian is filling in
    _text("id", primary_key=True),
    _text("owner", index=True),
    _text("state"),  # "surveying", "choosing", "looking", "ready"
    _text("words"),
    sa.Column("offered", sa.JSON, nullable=True),
    sa.Column("source", sa.JSON, nullable=True),
    sa.Column("columns", sa.JSON, nullable=True),
    sa.Column("picks", sa.JSON, nullable=False),
    _when("created"),
)
"""The choices, what was chosen, its columns with their types, and the forms."""
grants = _table(
    "grants",
    _text("dataset", primary_key=True),
    _text("analyst", primary_key=True),
    _text("account"),
    _when("expires", nullable=True),
    _when("revoked", nullable=True),
    _when("created"),
)
requests = _table(
    "requests",  # for a larger allowance
    _text("dataset", primary_key=True),
    _text("analyst", primary_key=True),
    _text("budget"),
    _text("why"),
    _when("created"),
)
artifacts = _table(
    "artifacts",
    _text("id", primary_key=True),
    _text("owner", index=True),
    _text("name"),
    _text("kind"),  # "model" or "predictions"
    sa.Column("size", sa.BigInteger, nullable=False),
    _text("sha256"),
    _text("state"),  # "receiving", "checking", "ready", "refused", "deleted"
    _text("words"),
    sa.Column("features", sa.JSON, nullable=True),
    sa.Column("found", sa.JSON, nullable=True),
    _when("created"),
    sa.Column("copied", sa.BigInteger, nullable=False, default=0, server_default="0"),
)
"""`copied` are the bytes of what a worker made of predictions."""
scorings = _table(
    "scorings",
    _text("artifact", primary_key=True),
    _text("dataset", primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    _text("state"),  # "waiting", "ready", "refused"
    _text("words"),
    _when("visible"),
    sa.Column("size", sa.BigInteger, nullable=False, default=0, server_default="0"),
)
"""`size` is what the scores count for: by public figures, as a file's own size depends on rows."""
evaluations = _table(
    "evaluations",
    _text("id", primary_key=True),
    _text("owner", index=True),
    _text("dataset", index=True),
    _text("artifact"),
    _text("rival", nullable=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("questions", sa.JSON, nullable=False),
    _text("key"),
    _text("digest"),
    sa.Column("price", sa.JSON, nullable=False),
    _text("state"),  # "waiting", "booking", "answered", "expired", "refused", "lost", ...
    _text("words"),
    sa.Column("statement", sa.JSON, nullable=True),
    _when("created"),
    _when("visible", nullable=True),
    also=[sa.UniqueConstraint("owner", "key")],
)
receipts = _table(
    "receipts",  # one row: the newest booking or registration that the worker made
    _text("place", primary_key=True),
    _text("ledger"),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    _text("hash"),
)
boards = _table(
    "boards",
    _text("name", primary_key=True),
    _text("dataset", index=True),
    _text("owner"),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("plan", sa.JSON, nullable=False),
    _text("facts"),
    sa.Column("each", sa.Integer, nullable=False),
    _when("ends", nullable=True),
    _text("state"),  # "opening", "open", "refused", "lost"
    _text("words"),
    _when("created"),
)
submissions = _table(
    "submissions",
    _text("id", primary_key=True),
    _text("board", index=True),
    _text("owner", index=True),
    _text("artifact"),
    _text("title"),
    _text("key"),
    _text("state"),  # "waiting", "booking", "judged", "refused", "cancelled"
    _text("words"),
    sa.Column("improved", sa.Boolean, nullable=True),
    sa.Column("score", sa.Float(53), nullable=True),
    _when("created"),
    _when("visible", nullable=True),
    also=[sa.UniqueConstraint("owner", "key")],
)
jobs = _table(
    "jobs",
    sa.Column("id", sa.Integer, primary_key=True),
    _text("kind"),
    _text("subject"),
    sa.Column("after", sa.Integer, nullable=True),
    _text("state", index=True),  # "waiting", "running", "done", "cancelled"
    _text("worker", nullable=True),
    _when("lease", default=0.0),
    sa.Column("attempts", sa.Integer, nullable=False, default=0),
    _when("created"),
    _text("owner", default="", server_default=""),
    _when("seconds", default=0.0, server_default="0"),
    _when("begun", default=0.0, server_default="0"),
    _when("due", default=0.0, server_default="0"),
    also=[sa.UniqueConstraint("kind", "subject"), sa.Index(None, "owner", "begun")],
)
"""`seconds` is what a job counts for, by public figures; what comes after it waits until `due`."""
workers = _table(
    "workers",
    _text("name", primary_key=True),
    _text("version"),
    _when("begun"),
    _when("seen"),
    _text("job", nullable=True),  # the kind of what it does
)
log = _table(
    "log",
    sa.Column("id", sa.Integer, primary_key=True),
    _when("time", index=True),
    _text("person", nullable=True),
    _text("action"),
    _text("subject"),
    sa.Column("status", sa.Integer, nullable=False),
)


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

    def first(self, statement: sa.Select[Any], **values: object) -> Any:
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
        from alembic import command

        configuration = alembic_configuration(self.url.render_as_string(hide_password=False))
        if back or revision == "base":
            command.downgrade(configuration, revision)
        else:
            command.upgrade(configuration, revision)

    def check_current(self) -> None:
        """Refuse tables of another version than this one's."""
        from alembic.script import ScriptDirectory

        newest = ScriptDirectory.from_config(alembic_configuration("")).get_current_head()
        if revision_of(self) != newest:
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
