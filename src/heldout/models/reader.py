"""The process that reads an untrusted file of predictions: shut off first, then it reads."""

import contextlib
import csv
import io
import json
import math
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from heldout.models.keeper import silence

__all__ = ["BATCH", "LONGEST_KEY", "Inherited", "Reading", "read"]

BATCH = 2048  # rows of one message
LONGEST_KEY = 256  # bytes
_FORM = "Send a column 'key' and a column 'score', or two columns: the row key, then the score."


class Inherited:
    """An open file that a spawned process inherits, whatever it may open itself."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> Any:
        return _inherited, (reduction.DupFd(self._descriptor),)


def _inherited(handed: Any) -> int:
    found: int = handed.detach()
    return found


@dataclass(frozen=True)
class Reading:
    """What a reader is told."""

    file: Any  # `Inherited`, and in the child the descriptor
    most_rows: int
    sandboxed: bool
    memory: int
    seconds: int


class Unusable(Exception):
    """What is wrong with the file, in words for whoever sent it."""


def read(task: Reading, requests: Connection, answers: Connection, shared: None) -> None:
    """The whole life of a reader: messages of rows, `B...`; then `E`, or `R` and a reason."""
    silence()
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    from heldout.errors import NoSandbox
    from heldout.models import sandbox

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # others reserve more than there is
    pyarrow.set_io_thread_count(1)
    _warm(pyarrow)
    if os.fstat(task.file).st_size == 0:
        answers.send_bytes(b"Rit is empty.")
        return
    content = mmap.mmap(task.file, 0, access=mmap.ACCESS_READ)
    try:
        confine = sandbox.confine if task.sandboxed else sandbox.limit_resources
        confine(memory=task.memory, seconds=task.seconds)
    except NoSandbox as error:
        answers.send_bytes(b"S" + str(error).encode())
        return
    try:
        is_parquet = content[:4] == b"PAR1"
        found = _parquet(pyarrow, content, task) if is_parquet else _csv(content)
        for keys, scores in found:
            answers.send_bytes(b"B" + _message(keys, scores))
        answers.send_bytes(b"E")
    except Unusable as error:
        answers.send_bytes(b"R" + str(error).encode("utf-8", "replace"))
    except (UnicodeDecodeError, csv.Error, pyarrow.ArrowException):
        answers.send_bytes(b"Rit is neither whole Parquet nor CSV in UTF-8.")


def _message(keys: Sequence[str], scores: Sequence[float]) -> bytes:
    texts = [each.encode("utf-8", "replace") for each in keys]
    if any(not 0 < len(each) <= LONGEST_KEY for each in texts):
        raise Unusable(f"every row needs a key, of at most {LONGEST_KEY} bytes.")
    lengths = [len(each) for each in texts]
    return struct.pack(f"<I{len(lengths)}I{len(scores)}d", len(lengths), *lengths, *scores) + (
        b"".join(texts)
    )


def _named(names: Sequence[str]) -> tuple[int, int]:
    """Which column is the key, and which the score."""
    plain = [each.strip().lower() for each in names]
    if len(set(plain)) < len(plain):
        raise Unusable("two of its columns have one name. " + _FORM)
    if "key" in plain and "score" in plain:
        return plain.index("key"), plain.index("score")
    if len(plain) != 2:
        raise Unusable(f"it has {len(plain)} columns. {_FORM}")
    key = 1 if plain[0] == "score" or plain[1] == "key" else 0
    return key, 1 - key


# --- CSV -----------------------------------------------------------------------------------------


def _csv(content: Any) -> Iterator[tuple[list[str], list[float]]]:
    lines = io.TextIOWrapper(io.BufferedReader(_Raw(content)), "utf-8-sig", newline="")
    first = lines.readline(2**16)
    for delimiter in ",;\t":
        names = next(csv.reader([first], delimiter=delimiter), [])
        if len(names) > 1:
            break
    key, score = _named(names)
    with contextlib.suppress(ValueError):
        float(names[score])
        raise Unusable("its first line must name the columns: key, score.")
    keys: list[str] = []
    scores: list[float] = []
    for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 2):
        if not row:
            continue
        if len(row) != len(names):
            raise Unusable(f"line {number} has {len(row)} cells, the first line {len(names)}.")
        try:
            scores.append(float(row[score]) if row[score].strip() else math.nan)
        except ValueError:
            raise Unusable(f"the score in line {number} is not a number.") from None
        keys.append(row[key])
        if len(keys) == BATCH:
            yield keys, scores
            keys, scores = [], []
    if keys:
        yield keys, scores


class _Raw(io.RawIOBase):
    """The mapped file as a stream; no system call reads it."""

    def __init__(self, content: Any) -> None:
        self._bytes, self._place = content, 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        found = self._bytes[self._place : self._place + len(into)]
        into[: len(found)] = found
        self._place += len(found)
        return len(found)


# --- Parquet -------------------------------------------------------------------------------------


def _warm(pyarrow: Any) -> None:
    """What Arrow and Python load when they are first used is there before the walls are."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"key": ["a"], "score": [1.0]}), sink)
    list(_parquet(pyarrow, sink.getvalue(), Reading(None, 1, False, 0, 0)))
    list(_csv(b"key,score\n1,2\n"))


def _parquet(pyarrow: Any, content: Any, task: Reading) -> Iterator[tuple[list[str], list[float]]]:
    source = pyarrow.BufferReader(pyarrow.py_buffer(content))
    file = pyarrow.parquet.ParquetFile(source, memory_map=False, pre_buffer=False)
    # Before any page is read: half a megabyte can hold fifty million rows.
    if file.metadata.num_rows > task.most_rows:
        raise Unusable(f"it has more than {task.most_rows:,} rows.")
    names = file.schema_arrow.names
    key, score = _named(names)
    kinds = pyarrow.types
    key_type, score_type = file.schema_arrow.types[key], file.schema_arrow.types[score]
    inner = key_type.value_type if kinds.is_dictionary(key_type) else key_type
    if not (kinds.is_integer(inner) or kinds.is_string(inner) or kinds.is_large_string(inner)):
        raise Unusable(f"its key must be texts or whole numbers, and is {_brief(inner)}.")
    if not (kinds.is_integer(score_type) or kinds.is_floating(score_type)):
        raise Unusable(f"its score must be numbers, and is {_brief(score_type)}.")
    wanted = [names[key], names[score]]
    for batch in file.iter_batches(BATCH, columns=wanted, use_threads=False):
        keys = batch.column(names[key]).cast(pyarrow.string())
        scores = batch.column(names[score]).cast(pyarrow.float64(), safe=False)
        if keys.null_count:
            raise Unusable("a row has no key.")
        yield keys.to_pylist(), scores.fill_null(math.nan).to_pylist()


def _brief(kind: Any) -> str:
    return json.dumps(str(kind)[:60])
