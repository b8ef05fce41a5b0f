"""Rows of a Spark DataFrame or table: read where they are, by Spark SQL."""

import contextlib
import logging
import re
import secrets
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

from heldout.data.engine import HOUR, Elsewhere, as_numpy, check_names, checked_timeout, or_raise
from heldout.data.sql import Columns, identifier, transpile
from heldout.errors import ArgumentError, HeldoutError, MissingDependency, UnreadableTable

# Of a session of our own, so that those of the caller stay as they are.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # overflow is an error and not another number
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # ${env:PASSWORD} in a label is a text
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}

TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


class SparkTable(Elsewhere):
    """A Spark DataFrame with a time-out, for any argument that takes a table.

    Parameters
    ----------
    frame
        A DataFrame, such as spark.table("clinic.stays"), of a classic session or of Spark Connect.
        Passed without this class it has the time-out of an hour.
    timeout
        Seconds that one statement may take.
    """

    def __init__(self, frame: Any, *, timeout: float = HOUR) -> None:
        self._frame = frame
        self.timeout = checked_timeout(timeout)

    def __repr__(self) -> str:
        return f"SparkTable(timeout={self.timeout:g})"

    def __getstate__(self) -> object:
        raise TypeError("a SparkTable leads to private rows and must not be pickled.")

    def open(self) -> "SparkEngine":
        """Check that the frame gives the same rows each time, and make a view of it."""
        frame = self._frame
        try:
            from pyspark.sql import DataFrame
        except ImportError:
            raise MissingDependency(
                "Reading Spark requires PySpark 4. Install it with: pip install 'heldout[spark]'"
            ) from None
        if not isinstance(frame, DataFrame):
            raise ArgumentError(
                f"table must be a Spark DataFrame, got {type(frame).__name__}. Pass "
                "spark.table('name') or a frame's to_spark()."
            )
        steady = is_steady_by_its_text if is_connect(frame) else _is_steady
        with hushed():  # Spark computes constants, and short frames whole, when it plans
            if or_raise(lambda: frame.isStreaming, _unreadable):
                raise ArgumentError(
                    "table must not be a stream, whose rows never end. Store it first."
                )
            if not or_raise(lambda: steady(frame), _unreadable):
                raise ArgumentError(
                    "table must give the same rows each time, but its plan draws a sample, takes "
                    "the first rows of no order, or reads a clock. Store it first."
                )
            return or_raise(lambda: SparkEngine(frame, timeout=self.timeout), _unreadable)


class SparkEngine:
    """A view of the caller's DataFrame, asked through a session of its own.

    The files under the frame are looked at before and after each question, like a file that
    DuckDB reads. For rows that come from elsewhere (a stream is refused) that they stay as they
    were is the custodian's promise.
    """

    dialect = "spark"
    remote = True
    ordered = False
    copied = False
    names_may_be_cells = False

    def __init__(self, frame: Any, *, timeout: float) -> None:
        self._frame = frame
        self._timeout = timeout
        self._connect = is_connect(frame)
        # As far as its plan says, which was looked at; a plan's text alone is not believed.
        self.steady = not self._connect
        self._session = frame.sparkSession.newSession()
        for name, value in SETTINGS.items():
            if self._session.conf.get(name, None) != value:
                self._session.conf.set(name, value)
        self.source = self._view(frame, "heldout_rows")
        check_names(frame.columns, "the frame")
        self.columns = {name: _type_of(kind) for name, kind in frame.dtypes}
        self._stamp = self._look()

    def _view(self, frame: Any, name: str) -> str:
        view = f"{name}_{secrets.token_hex(8)}"
        frame.createGlobalTempView(view)
        weakref.finalize(self, _drop, self._session, view)
        space = self._session.conf.get("spark.sql.globalTempDatabase", "global_temp")
        return f"{identifier(space)}.{identifier(view)}"

    def hold(self, statement: str, *, rows: int) -> str | None:
        """In the executors' memory, or on their disks, when the first question reads it.

        What an executor loses is computed again from the frame, whose files are looked at before
        and after each question: the same rows count, by their keys alone.
        """
        text = transpile(statement, dialect=self.dialect)
        # Spark knows what it keeps by its plan: two data sets over one frame keep their own, so
        # that neither lets go of the other's.
        own = secrets.token_hex(8)

        def keep() -> str:
            whole = f"SELECT * FROM (\n{text}\n) AS held WHERE '{own}' <> ''"
            frame = self._session.sql(whole).persist()
            weakref.finalize(self, _let_go, frame)
            return self._view(frame, "heldout_held")

        with hushed():
            return or_raise(keep, _unreadable)

    def _look(self) -> tuple[Any, ...]:
        return stamp_by_listing(self._frame) if self._connect else _stamp(self._frame)

    def fetch(self, statement: str) -> Columns:
        text = transpile(statement, dialect=self.dialect)

        def run() -> Columns:
            jobs = Operations(self._session) if self._connect else self._session.sparkContext
            with hushed(), _cancelled_after(self._timeout, jobs) as late:
                table = or_raise(
                    lambda: self._session.sql(text).toArrow(),
                    lambda: _too_slow() if late.is_set() else _unreadable(),
                )
            return {name: as_numpy(table[name]) for name in table.column_names}

        return or_raise(run, _unreadable)

    def has_changed(self) -> bool:
        with hushed():
            return or_raise(self._look, _unreadable) != self._stamp


@contextlib.contextmanager
def _cancelled_after(seconds: float, context: Any) -> Iterator[threading.Event]:
    """Cancel the jobs of this thread that are begun inside and take too long; say whether."""
    tag = f"heldout-{secrets.token_hex(8)}"
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            late.set()
            # Again and again: a statement may begin a job after the first try.
            with contextlib.suppress(Exception):
                context.cancelJobsWithTag(tag)
            wait = 0.2

    context.addJobTag(tag)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield late
    finally:
        done.set()
        watcher.join()
        context.removeJobTag(tag)


def _is_steady(frame: Any) -> bool:
    """Return True if the plan gives the same rows whenever it is run."""
    plan = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        return False
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        children = [node.children().apply(place) for place in range(node.children().size())]
        ordered = bool(children) and children[0].nodeName() in ("Sort", "LocalLimit", "GlobalLimit")
        if node.nodeName() == "Sample" or (node.nodeName().endswith("Limit") and not ordered):
            return False
        waiting += children
    return True


def _drop(session: Any, view: str) -> None:
    # At the interpreter's end Spark may be gone already, and the view with it.
    with contextlib.suppress(Exception):
        session.catalog.dropGlobalTempView(view)


def _let_go(frame: Any) -> None:
    with contextlib.suppress(Exception):
        frame.unpersist()


def _type_of(kind: str) -> str:
    base = kind.split("(", maxsplit=1)[0]
    if base == "decimal":
        return kind.upper()
    return "VARCHAR" if base in ("string", "char", "varchar") else TYPES.get(kind, kind.upper())


def _stamp(frame: Any) -> tuple[Any, ...]:
    """Each file under the frame, its length and when it was written."""
    context = frame.sparkSession.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    files = []
    for name in sorted(frame.inputFiles()):
        path = context._jvm.org.apache.hadoop.fs.Path(context._jvm.java.net.URI(name))
        system = path.getFileSystem(configuration)
        if not system.exists(path):
            files.append((name, -1, -1))
            continue
        status = system.getFileStatus(path)
        files.append((name, status.getLen(), status.getModificationTime()))
    return tuple(files)


def _unreadable() -> HeldoutError:
    return UnreadableTable(
        "table must be readable by Spark, but reading the frame failed. Check that its files are "
        "there and that each column holds one type."
    )


def _too_slow() -> HeldoutError:
    return UnreadableTable(
        "table must be readable in time, but the statement took longer than the time-out. Raise "
        "it with heldout.SparkTable(frame, timeout=...), or ask for less."
    )


# --- Spark Connect: no JVM to look into. The plan is read as a text, so rows are also read twice
# and compared when they are opened; files are listed by Spark itself.

_OPERATOR: Final = re.compile(r"^[\s:|+\-]*(?:'|~)?([A-Z][A-Za-z]+)")
_AT_RANDOM: Final = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|monotonically_increasing_id|spark_partition_id|"
    r"input_file_name|now|current_timestamp|current_date|current_time|localtimestamp|"
    r"uniform|randstr)\(",
    re.IGNORECASE,
)


def is_connect(frame: Any) -> bool:
    """Return True for a frame of Spark Connect."""
    return type(frame).__module__.startswith("pyspark.sql.connect.")


def is_steady_by_its_text(frame: Any) -> bool:
    """Return True if the analysed plan, as printed, gives the same rows whenever it is run."""
    return steady_text(frame._explain_string(extended=True))


def steady_text(explained: str) -> bool:
    r"""The same of the text.

    >>> plan = "== Analyzed Logical Plan ==\nv: int\nGlobalLimit 3\n+- LocalLimit 3\n   +- "
    >>> steady_text(plan + "Sort [v ASC]\n"), steady_text(plan + "Range (0, 9)\n")
    (True, False)
    >>> steady_text("== Analyzed Logical Plan ==\nr: double\nProject [rand(7) AS r]\n")
    False
    """
    _, _, plan = explained.partition("== Analyzed Logical Plan ==")
    plan, _, _ = plan.partition("\n== ")
    if not plan or _AT_RANDOM.search(plan):
        return False
    operators = [_OPERATOR.match(line) for line in plan.splitlines()]
    names = [operator[1] for operator in operators if operator is not None]
    for name, child in zip(names, [*names[1:], ""], strict=True):
        ordered = child in ("Sort", "LocalLimit", "GlobalLimit")
        if name in ("Sample", "Tail") or (name.endswith("Limit") and not ordered):
            return False
    return True


def stamp_by_listing(frame: Any) -> tuple[Any, ...]:
    """Each file under the frame, its length and when it was written, as Spark lists them."""
    names = sorted(frame.inputFiles())
    if not names:
        return ()
    listed = frame.sparkSession.read.format("binaryFile").load(names)
    rows = listed.select("path", "length", "modificationTime").collect()
    return tuple(sorted((row[0], row[1], str(row[2])) for row in rows))


class Operations:
    """The jobs of a session, by the names that a classic context has for them."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.addJobTag = session.addTag
        self.removeJobTag = session.removeTag
        self.cancelJobsWithTag = session.interruptTag


_HUSHED = threading.local()


class _Hush(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_HUSHED, "on", False)


_HUSH = _Hush()


_SPEAKERS: Final = ("py4j", "pyspark", "grpc")  # the last by its answers, the first at DEBUG too


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """PySpark logs the message of a statement that fails, and it may quote a cell: not of ours.

    So do the libraries through which it speaks with Spark, where somebody has turned up their logs.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_HUSH)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] in _SPEAKERS and isinstance(logger, logging.Logger):
            logger.addFilter(_HUSH)  # each of its own: a filter does not hold for those below it
    before, _HUSHED.on = getattr(_HUSHED, "on", False), True
    try:
        yield
    finally:
        _HUSHED.on = before
