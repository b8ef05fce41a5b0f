"""What a frame of Spark Connect cannot be asked as a classic one can: its plan, files and jobs.

There is no JVM here to look into. The plan is read as a text, so rows are also read twice and
compared when they are opened; files are listed by Spark itself.
"""

import contextlib
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["Operations", "hushed", "is_connect", "is_steady_by_its_text", "stamp_by_listing"]

_OPERATOR: Final = re.compile(r"^[\s:|+\-]*(?:'|~)?([A-Z][A-Za-z]+)")
_AT_RANDOM: Final = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|monotonically_increasing_id|spark_partition_id|"
    r"input_file_name|now|current_timestamp|current_date|current_time|localtimestamp|"
    r"uniform|randstr)\(",
    re.IGNORECASE,
)


def is_connect(frame: Any) -> bool:
    """Whether the frame is one of Spark Connect."""
    return type(frame).__module__.startswith("pyspark.sql.connect.")


def is_steady_by_its_text(frame: Any) -> bool:
    """Whether the analysed plan, as Spark prints it, gives the same rows whenever it is run."""
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
    found = [_OPERATOR.match(line) for line in plan.splitlines()]
    names = [each[1] for each in found if each is not None]
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
