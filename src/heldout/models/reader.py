"""The process that reads an untrusted file, of predictions or a copy: shut off first."""

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

from heldout.models.keeper import shut_off, silence

BATCH = 2048  # scores of one message
LONGEST_KEY = 256  # bytes
MOST_SCORES = 50  # columns of scores, one for each class
MOST_NAMES = 1000  # columns of a copy
LONGEST_CELL = 2**14  # bytes
MOST_CHARACTERS = 2**17  # of one message of cells, and a cell more
_FORM = (
    "Send a column 'key' and a column 'score', or two columns: the row key, then the score. For "
    f"several classes, at most {MOST_SCORES}, send a column 'key' and one named after each class."
)


class Inherited:
    """An open file that a spawned process inherits, whatever it may open itself."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[object, ...]:
        return _inherited, (reduction.DupFd(self._descriptor),)


def _inherited(handed: Any) -> int:
    descriptor: int = handed.detach()
    return descriptor


@dataclass(frozen=True)
class Reading:
    """Tells a reader its work."""

    file: Any  # `Inherited`, and in the child the descriptor
    most_rows: int
    sandboxed: bool
    memory: int
    seconds: int


class Unusable(Exception):
    """Says what is wrong with the file, in words for whoever sent it."""


def read(task: Reading, requests: Connection, answers: Connection, shared: None) -> None:
    """The whole life of a reader: `N` and the scores' names, messages of rows, `B...`; then `E`.

    Or `R` and a reason, at any time.
    """
    silence()
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # others reserve more than there is
    pyarrow.set_io_thread_count(1)
    _warm(pyarrow)
    content = _shut_off_with_content(task, requests, answers)
    if content is None:
        return
    if not content:
        answers.send_bytes(b"Rit is empty.")
        return
    try:
        is_parquet = content[:4] == b"PAR1"
        batches = _parquet(pyarrow, content, task) if is_parquet else _csv(content)
        answers.send_bytes(b"N" + json.dumps(next(batches)).encode())
        for keys, scores in batches:
            answers.send_bytes(b"B" + _message(keys, scores))
        answers.send_bytes(b"E")
    except Unusable as error:
        answers.send_bytes(b"R" + str(error).encode("utf-8", "replace"))
    except (UnicodeDecodeError, csv.Error, pyarrow.ArrowException):
        answers.send_bytes(b"Rit is neither whole Parquet nor CSV in UTF-8.")


def read_cells(task: Reading, requests: Connection, answers: Connection, shared: None) -> None:
    """The whole life of a reader of a copy: `N` and the names, messages of cells; then `E`.

    A copy is a CSV file whose cells are sent as they stand. Or `R` and a reason, at any time.
    `most_rows` of its task counts cells.
    """
    silence()
    list(_cells(b"a,b\n1,2\n", 2))  # whatever Python loads at first use
    content = _shut_off_with_content(task, requests, answers)
    if content is None:
        return
    try:
        batches = _cells(content, task.most_rows)
        answers.send_bytes(b"N" + _texts(next(batches)))
        for batch in batches:
            answers.send_bytes(b"B" + _texts(batch))
        answers.send_bytes(b"E")
    except Unusable as error:
        answers.send_bytes(b"R" + str(error).encode("utf-8", "replace"))
    except (UnicodeDecodeError, csv.Error):
        answers.send_bytes(b"RA copy must be a CSV file in UTF-8.")


def _shut_off_with_content(
    task: Reading, requests: Connection, answers: Connection
) -> bytes | mmap.mmap | None:
    """Return the content of the file once nothing else can be reached; None if this is the end."""
    from heldout.models import sandbox

    empty = os.fstat(task.file).st_size == 0
    content = b"" if empty else mmap.mmap(task.file, 0, access=mmap.ACCESS_READ)
    if not shut_off(task, requests, answers):
        return None
    if task.sandboxed:
        sandbox.forbid_fork()
    return content


def _texts(cells: Sequence[str]) -> bytes:
    texts = [cell.encode("utf-8", "replace") for cell in cells]
    if any(len(text) > LONGEST_CELL for text in texts):
        raise Unusable(f"A cell of a copy must have at most {LONGEST_CELL:,} bytes.")
    return struct.pack(f"<I{len(texts)}I", len(texts), *map(len, texts)) + b"".join(texts)


def _cells(content: Any, most: int) -> Iterator[list[str]]:
    """The names of the columns, then batches of cells, row after row."""
    lines = io.TextIOWrapper(io.BufferedReader(_Raw(content)), "utf-8-sig", newline="")
    reader = csv.reader(lines)
    names = [name.strip() for name in next(reader, [])]
    if len(set(names)) < len(names) or not all(names) or not names or len(names) > MOST_NAMES:
        raise Unusable("The first line of a copy must name its columns, each once.")
    yield names
    cells: list[str] = []
    size = count = 0
    for row in reader:
        if row and len(row) != len(names):
            raise Unusable(
                f"Line {reader.line_num} of the copy has {len(row)} cells, and its first line "
                f"{len(names)}."
            )
        count += len(row)
        if count > most:
            raise Unusable(f"A copy must have at most {most:,} cells. Send some of its rows.")
        for cell in row:
            cells.append(cell)
            size += len(cell)
            if len(cells) >= BATCH or size >= MOST_CHARACTERS:
                yield cells
                cells, size = [], 0
    if cells:
        yield cells


def _message(keys: Sequence[str], scores: Sequence[float]) -> bytes:
    texts = [key.encode("utf-8", "replace") for key in keys]
    if any(not 0 < len(text) <= LONGEST_KEY for text in texts):
        raise Unusable(f"every row needs a key, of at most {LONGEST_KEY} bytes.")
    lengths = [len(text) for text in texts]
    return struct.pack(f"<I{len(lengths)}I{len(scores)}d", len(lengths), *lengths, *scores) + (
        b"".join(texts)
    )


def _called(names: Sequence[str], places: Sequence[int]) -> list[str]:
    """Return what the scores are called: the classes, where there are several."""
    titles = [names[place].strip() for place in places] if len(places) > 1 else ["score"]
    if not all(title.isprintable() and 0 < len(title) <= LONGEST_KEY for title in titles):
        raise Unusable("a name of its columns is empty, too long, or cannot be shown. " + _FORM)
    return titles


def _named(names: Sequence[str]) -> tuple[int, list[int]]:
    """Which column is the key, and which are the scores."""
    plain = [name.strip().lower() for name in names]
    if len(set(plain)) < len(plain):
        raise Unusable("two of its columns have one name. " + _FORM)
    if "key" in plain and "score" in plain:
        return plain.index("key"), [plain.index("score")]
    if len(plain) == 2:
        key = 1 if plain[0] == "score" or plain[1] == "key" else 0
        return key, [1 - key]
    if "key" not in plain or not 2 < len(plain) <= MOST_SCORES + 1:
        raise Unusable(f"it has {len(plain)} columns. {_FORM}")
    return plain.index("key"), [place for place, name in enumerate(plain) if name != "key"]


# --- CSV -----------------------------------------------------------------------------------------


def _csv(content: Any) -> Iterator[Any]:
    """The names of the scores, then batches of keys and of scores, row after row."""
    lines = io.TextIOWrapper(io.BufferedReader(_Raw(content)), "utf-8-sig", newline="")
    first = lines.readline(2**16)
    for delimiter in ",;\t":
        names = next(csv.reader([first], delimiter=delimiter), [])
        if len(names) > 1:
            break
    key, places = _named(names)
    if len(places) == 1:
        with contextlib.suppress(ValueError):
            float(names[places[0]])
            raise Unusable("its first line must name the columns: key, score.")
    yield _called(names, places)
    keys: list[str] = []
    scores: list[float] = []
    for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 2):
        if not row:
            continue
        if len(row) != len(names):
            raise Unusable(f"line {number} has {len(row)} cells, the first line {len(names)}.")
        try:
            cells = [row[place] for place in places]
            scores += [float(cell) if cell.strip() else math.nan for cell in cells]
        except ValueError:
            raise Unusable(f"the score in line {number} is not a number.") from None
        keys.append(row[key])
        if len(scores) >= BATCH:
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
        chunk = self._bytes[self._place : self._place + len(into)]
        into[: len(chunk)] = chunk
        self._place += len(chunk)
        return len(chunk)


# --- Parquet -------------------------------------------------------------------------------------


def _warm(pyarrow: Any) -> None:
    """Load what Arrow and Python would load at first use, before the walls are up."""
    sink = io.BytesIO()
    table = pyarrow.table({"key": ["a"], "a": [1.0], "b": [1.0]})
    pyarrow.parquet.write_table(table, sink)
    list(_parquet(pyarrow, sink.getvalue(), Reading(None, 1, False, 0, 0)))
    list(_csv(b"key,score\n1,2\n"))


def _parquet(pyarrow: Any, content: Any, task: Reading) -> Iterator[Any]:
    source = pyarrow.BufferReader(pyarrow.py_buffer(content))
    file = pyarrow.parquet.ParquetFile(source, memory_map=False, pre_buffer=False)
    # Before any page is read: half a megabyte can hold fifty million rows.
    if file.metadata.num_rows > task.most_rows:
        raise Unusable(f"it has more than {task.most_rows:,} rows.")
    names = file.schema_arrow.names
    key, places = _named(names)
    kinds, key_type = pyarrow.types, file.schema_arrow.types[key]
    inner = key_type.value_type if kinds.is_dictionary(key_type) else key_type
    if not (kinds.is_integer(inner) or kinds.is_string(inner) or kinds.is_large_string(inner)):
        raise Unusable(f"its key must be texts or whole numbers, and is {_brief(inner)}.")
    for kind in (file.schema_arrow.types[place] for place in places):
        if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise Unusable(f"its score must be numbers, and is {_brief(kind)}.")
    wanted = [names[place] for place in places]
    yield _called(names, places)
    size, chosen = max(BATCH // len(wanted), 1), [names[key], *wanted]
    for batch in file.iter_batches(size, columns=chosen, use_threads=False):
        keys = batch.column(names[key]).cast(pyarrow.string())
        if keys.null_count:
            raise Unusable("a row has no key.")
        scores = [batch.column(column).cast(pyarrow.float64(), safe=False) for column in wanted]
        columns = [score.fill_null(math.nan).to_pylist() for score in scores]
        yield keys.to_pylist(), [cell for row in zip(*columns, strict=True) for cell in row]


def _brief(kind: Any) -> str:
    return json.dumps(str(kind)[:60])
