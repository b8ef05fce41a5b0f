"""Predictions by row key, from an analyst: read without trust, joined without a word on matches.

An analyst who may not hand in a model hands in scores for each key: one, or one for each class.
Whether a key is in the private table stays secret: neither a count, an error nor the time that
the join takes shows it.
"""

import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from heldout.arguments import as_number, as_whole, is_one_of, pair, shown
from heldout.data import sql
from heldout.data.duckdb import SETTINGS, open_local
from heldout.data.engine import check_names, check_new, or_raise
from heldout.data.scores import FURTHEST
from heldout.data.validation import NESTED, check_columns
from heldout.errors import ArgumentError, HeldoutError, UnreadableTable, UnusableModel
from heldout.models.isolate import Lost, check_sandbox, heard, started
from heldout.models.model import words
from heldout.models.reader import (
    BATCH,
    LONGEST_KEY,
    MOST_SCORES,
    Inherited,
    Reading,
    read,
    read_cells,
)
from heldout.models.score import BLOCK, ScoredRows, Writer, at_tick, check_tick, local_engine

MEMORY, SECONDS = 2**29, 300
MOST_TEXT = 2**29  # bytes of all keys


@dataclass(frozen=True)
class Predictions:
    """Describes a file of predictions by itself: it was never compared with a row."""

    path: Path
    rows: int
    digest: str
    names: tuple[str, ...] = ("score",)
    """What the columns of scores are called in the file: the classes, where there are several."""

    def as_dict(self) -> dict[str, Any]:
        content = {"kind": "predictions", "rows": self.rows, "sha256": self.digest}
        return content | ({"classes": list(self.names)} if len(self.names) > 1 else {})


def read_predictions(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    most_rows: int = 10_000_000,
    isolation: str = "sandbox",
) -> Predictions:
    """Read a Parquet or CSV file of keys and scores, in a process without files or network.

    Parameters
    ----------
    path
        The untrusted file: the columns `key` and `score`, or two columns; or `key` and a column
        of scores for each class, named after it.
    out
        A new Parquet file, for its owner alone: `key` (text, each once) and `score` (double), or
        `score_0`, `score_1`, ... of several classes.
    most_rows
        How many rows a file may hold.
    isolation
        "sandbox", or "none" for a file that you trust on a machine without one.
    """
    if not is_one_of(isolation, ("sandbox", "none")):
        raise ArgumentError(f"isolation must be 'sandbox' or 'none', got {shown(isolation)}.")
    most = as_whole(most_rows)
    if most is None or most < 1:
        raise ArgumentError(f"most_rows must be a whole number above 0, got {shown(most_rows)}.")
    with _open_file(path) as (descriptor, digest):
        task = Reading(Inherited(descriptor), most, check_sandbox(isolation), MEMORY, SECONDS)
        writer = Writer(out)
        try:
            rows, batches = 0, _batches(task)
            names = next(batches, ())
            columns = _columns(len(names))
            for batch, scores in batches:
                rows += batch.num_rows
                writer.add(batch, dict(zip(columns, scores.T, strict=True)))
            if rows == 0:
                raise _unusable("it has no rows")
            writer.finish(row_key="key", scores=tuple(columns))
            _refuse_duplicates(Path(out))
        except BaseException:
            writer.discard()
            raise
    return Predictions(Path(out), rows, digest, names)


def read_copy(path: str | os.PathLike[str], *, most_cells: int) -> dict[str, list[str]]:
    """Read a CSV file in a process without files or network; return its cells by column, as text.

    What is wrong with the file is said in words for whoever sent it.
    """
    with _open_file(path) as (descriptor, _), ExitStack() as closing:
        sandboxed = check_sandbox("sandbox")
        task = Reading(Inherited(descriptor), most_cells, sandboxed, MEMORY, SECONDS)
        try:
            _, _, answers = closing.enter_context(started(read_cells, task, None))
            names, cells = _answered_cells(answers, most_cells)
        except Lost:
            raise _unread_copy() from None
    columns = {name: cells[place :: len(names)] for place, name in enumerate(names)}
    if len(cells) < 2 * len(names):
        raise ArgumentError("A copy must have two rows at least.")
    return columns


def _unread_copy() -> ArgumentError:
    return ArgumentError("A copy must be a CSV file: its reader failed.")


def _answered_cells(answers: Any, most_cells: int) -> tuple[list[str], list[str]]:
    """Return what a reader of a copy says, as far as it has the form that a reader gives it."""
    until, names, cells = time.monotonic() + SECONDS, None, list[str]()
    while True:
        message = heard(answers, max(until - time.monotonic(), 0.0)) or b""
        kind, content = message[:1], message[1:]
        if kind == b"E" and names and len(cells) % len(names) == 0:
            return names, cells
        if kind == b"R":
            raise ArgumentError(words(content.decode("utf-8", "replace")))
        if kind == b"N" and names is None:
            names = or_raise(partial(_texts_of, content), _unread_copy)
            if not names or len(set(names)) < len(names):
                raise Lost
        elif kind == b"B" and names is not None:
            cells += or_raise(partial(_texts_of, content), _unread_copy)
        else:
            raise Lost
        if len(cells) > most_cells:
            raise Lost


def _texts_of(content: bytes) -> list[str]:
    """One message as texts; fails if it is none."""
    count = int.from_bytes(content[:4], "little")
    lengths = struct.unpack_from(f"<{count}I", content, 4)
    start, texts = 4 + 4 * count, list[str]()
    for length in lengths:
        texts.append(content[start : start + length].decode("utf-8"))
        start += length
    if start != len(content):
        raise ValueError
    return texts


def _columns(scores: int) -> list[str]:
    """Return what so many scores are called in the file that is kept."""
    return ["score"] if scores == 1 else [f"score_{place}" for place in range(scores)]


def join_predictions(
    predictions: str | os.PathLike[str],
    rows: Any,
    /,
    *,
    row_key: str,
    lowest: float | Mapping[str, float],
    score_range: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    into: str | Mapping[str, int] = "score",
    out: str | os.PathLike[str] | None = None,
    tick: float | None = None,
    schema: Mapping[str, str] | None = None,
) -> ScoredRows:
    """The private rows, each with the score that was sent for its key.

    A score is a function of its own row's key and of what was sent. A row whose key was not sent,
    or with NaN, has `lowest`; a score outside of `score_range` counts as its nearer end; a key
    that is in no row is ignored. None of this is counted or reported.

    Parameters
    ----------
    predictions
        What `read_predictions` wrote.
    rows
        A file, a frame or a database, as in `heldout.Dataset`.
    row_key
        The column of the rows that is matched, by its value: 7, 7.0 and "7" are one key.
    lowest
        The score of a row for which none was sent.
    score_range
        The declared range of scores, or None. As `lowest`, it may be given by name where several
        were sent.
    into
        The name of the score's column; or {name: number}, where several were sent for a row.
    out, tick, schema
        As in `heldout.models.score`.
    """
    began = time.monotonic()
    check_tick(tick)
    wanted = into if isinstance(into, Mapping) else {into: 0}
    for name in wanted or [None]:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"into must be the name of a new column, got {shown(name)}.")
    if not isinstance(predictions, str | os.PathLike):
        raise ArgumentError("predictions must be a file that read_predictions wrote.")
    sent = open_local(predictions)
    columns = _columns(len(sent.columns) - 1)
    if sent.columns != {"key": "VARCHAR", **dict.fromkeys(columns, "DOUBLE")}:
        raise ArgumentError("predictions must be a file that read_predictions wrote.")
    places = [as_whole(position) for position in wanted.values()]
    if any(place is None or not 0 <= place < len(columns) for place in places):
        raise ArgumentError(f"into must name numbers below {len(columns)}: so many were sent.")
    engine = local_engine(rows, schema=schema)
    engine.fetch("SET threads = 1")
    # What was sent is looked up, and the rows stream by in their order: one way, whatever matches.
    off = f"{SETTINGS['disabled_optimizers']},join_order,build_side_probe_side"
    engine.fetch(f"SET disabled_optimizers = {sql.text(off)}")
    check_columns(engine, [row_key])
    for name in wanted:
        check_new(name, list(engine.columns))
    check_names([*engine.columns, *wanted], "the scored table")
    ends = {name: _ends(name, score_range, lowest) for name in wanted}
    writer = Writer(out)
    try:
        for batch in engine.batches(
            _joined(
                sent=sent.source,
                rows=engine.source,
                row_key=row_key,
                kind=engine.columns[row_key],
                scores={name: (columns[place], ends[name]) for name, place in wanted.items()},
            ),
            rows=BLOCK,
        ):
            writer.add(batch, {})
        if engine.has_changed() or sent.has_changed():
            raise UnreadableTable("A table changed while it was joined. Join it again.")
    except BaseException:
        writer.discard()
        raise
    at_tick(began, tick)
    return writer.finish(row_key=row_key, scores=tuple(wanted))


def _ends(name: str, score_range: Any, lowest: Any) -> dict[str, float]:
    """Return where one column of scores lies, and what a row has for which none was sent."""
    chosen = score_range.get(name) if isinstance(score_range, Mapping) else score_range
    unsent = as_number(lowest.get(name) if isinstance(lowest, Mapping) else lowest)
    low, high = (-FURTHEST, FURTHEST) if chosen is None else pair(chosen) or (1.0, 0.0)
    if not -FURTHEST <= low <= unsent <= high <= FURTHEST:
        raise ArgumentError("lowest must be a finite number within score_range=(low, high).")
    return {"low": low, "high": high, "lowest": unsent}


def _joined(*, sent: str, rows: str, row_key: str, kind: str, scores: Mapping[str, Any]) -> str:
    """Every private row once: a key that is sent twice after all counts once, at its highest."""
    highest = ", ".join(f"max({column}) AS {column}" for column, _ in scores.values())
    once = f"SELECT {sql.folded('key')} AS key, {highest} FROM {sent} GROUP BY 1"
    # What a list or a record says depends on other rows' fields: it matches nothing.
    own = "NULL" if NESTED.match(kind) else sql.folded(sql.canonical(row_key, kind))
    chosen = ", ".join(
        f"{_score(column, **ends)} AS {sql.identifier(name)}"
        for name, (column, ends) in scores.items()
    )
    return (
        f"SELECT held.*, {chosen}\n"
        f"FROM {rows} AS held\n"
        f"LEFT JOIN ({once}) AS ours ON ours.key = {own}"
    )


def _score(column: str, *, low: float, high: float, lowest: float) -> str:
    clipped = sql.held_to(f"ours.{column}", low, high)
    return f"CASE WHEN NOT isnan(ours.{column}) THEN {clipped} ELSE {sql.double(lowest)} END"


def _refuse_duplicates(path: Path) -> None:
    table = open_local(path)
    counted = table.fetch(
        f"SELECT count(*) AS n, count(DISTINCT {sql.folded('key')}) AS d FROM {table.source}"
    )
    twice = int(counted["n"][0]) - int(counted["d"][0])
    if twice:
        raise _unusable(f"{twice:,} of its keys are there more than once. Send each key once")


@contextmanager
def _open_file(path: Any) -> Iterator[tuple[int, str]]:
    """The file's descriptor, for reading alone, and its digest."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, TypeError, ValueError):
        raise ArgumentError(f"No readable file {shown(path)}. Check the path.") from None
    try:
        digest = or_raise(
            lambda: _digest(descriptor), lambda: ArgumentError(f"No readable file {shown(path)}.")
        )
        yield descriptor, digest
    finally:
        os.close(descriptor)


def _digest(descriptor: int) -> str:
    with open(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _batches(task: Reading) -> Iterator[Any]:
    """Return what the reader says, as far as it has the form that a reader gives it.

    First the names of the scores, then batches of keys with an array of scores.
    """
    until, rows, room = time.monotonic() + SECONDS, 0, MOST_TEXT
    names: tuple[str, ...] = ()
    with ExitStack() as closing:
        try:
            _, _, answers = closing.enter_context(started(read, task, None))
        except Lost:
            raise _unread() from None
        while True:
            message = heard(answers, max(until - time.monotonic(), 0.0)) or b""
            kind, content = message[:1], message[1:]
            if kind == b"E":
                return
            if kind == b"R":
                raise _unusable(content.decode("utf-8", "replace").rstrip("."))
            if kind == b"N" and not names:
                names = or_raise(partial(_names, content), _unread)
                yield names
                continue
            if kind != b"B" or not names:
                raise _unread()
            batch = or_raise(partial(_checked, content, len(names)), _unread)
            rows, room = rows + batch[0].num_rows, room - batch[0].nbytes
            if rows > task.most_rows:
                raise _unusable(f"it has more than {task.most_rows:,} rows")
            if room < 0:
                raise _unusable(f"its keys take more than {MOST_TEXT // 2**20} MB")
            yield batch


def _names(content: bytes) -> tuple[str, ...]:
    """Return what the columns of scores are called; fails if they are no such names."""
    names = tuple(json.loads(content))
    texts = all(isinstance(name, str) and name.isprintable() for name in names)
    short = texts and all(0 < len(name) <= LONGEST_KEY for name in names)
    if not short or not 0 < len(names) <= MOST_SCORES or len(set(names)) < len(names):
        raise ValueError
    return names


def _checked(content: bytes, width: int) -> tuple[Any, Any]:
    """One message as a batch of keys and an array of scores; fails if it is none."""
    import numpy as np
    import pyarrow

    count = int.from_bytes(content[:4], "little")
    text = content[4 + (4 + 8 * width) * count :]
    lengths = np.frombuffer(content, "<u4", count, 4).astype(np.int64)
    scores = np.frombuffer(content, "<f8", count * width, 4 + 4 * count).reshape(count, width)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    sound = 0 < count <= BATCH and lengths.min() > 0 and lengths.max() <= LONGEST_KEY
    if not sound or ends[-1] != len(text):
        raise ValueError
    keys = pyarrow.StringArray.from_buffers(
        count, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(text)
    )
    keys.validate(full=True)
    return pyarrow.record_batch({"key": keys}), scores


def _unread() -> HeldoutError:
    return _unusable(
        f"its reader failed, or took more than {SECONDS} seconds or {MEMORY // 2**20} MB"
    )


def _unusable(why: str) -> UnusableModel:
    return UnusableModel(f"The predictions cannot be read: {words(why)}.")
