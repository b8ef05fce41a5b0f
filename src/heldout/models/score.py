"""Scores private rows with a model from outside: each row alone, in isolation."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.arguments import as_number, as_whole, is_one_of, shown
from heldout.data import sql
from heldout.data.classes import class_columns
from heldout.data.duckdb import DuckDBEngine
from heldout.data.engine import Engine, check_names, check_new, open_table, or_raise
from heldout.data.scores import FURTHEST
from heldout.data.validation import check_columns
from heldout.errors import ArgumentError, EmptyTable, ScoringFailed, UnreadableTable, UnusableModel
from heldout.models.calls import Array
from heldout.models.isolate import START, Lost, Scorer, check_sandbox
from heldout.models.keeper import TEXT, Field, Task, keep
from heldout.models.model import MEMORY, LinearModel, Model

if TYPE_CHECKING:
    import pyarrow

BLOCK = 2**16
FORK = 0.1  # seconds for a process of its own
ROW_GROUP = 2**17  # rows that a file's writer holds


def declared_seconds(*, rows: int, seconds_per_row: float, one_process_per_row: bool) -> float:
    """Return the longest that scoring may take, from public facts alone.

    A job that is not finished by then fails as a whole.

    >>> declared_seconds(rows=100, seconds_per_row=0.5, one_process_per_row=True)
    120.0
    """
    return START + rows * (seconds_per_row + FORK * one_process_per_row)


def score(
    model: Model,
    rows: Any,
    /,
    *,
    features: Any = None,
    row_key: str | None = None,
    default: float = 0.0,
    into: str = "score",
    column: int | Mapping[str, int] | None = None,
    seconds_per_row: float = 1.0,
    memory: int = MEMORY,
    allow_unproven: bool = False,
    isolation: str = "sandbox",
    tick: float | None = None,
    out: str | os.PathLike[str] | None = None,
    schema: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "ScoredRows":
    """Score every row alone; a private table with the scores beside the rows' own columns.

    `heldout.Dataset`, `heldout.regression.RegressionTable` and, through another column of the
    same table, `session.compare` take the result.

    Parameters
    ----------
    model
        What `heldout.models.load` gave.
    rows
        A file, a frame or a database, as in `heldout.Dataset`.
    features
        The columns in the order of the model's one input, or {input: columns}. Left out: every
        input has the name of its column.
    row_key
        A column that tells rows apart, by which their budget is found whatever their scores.
    default
        The score of a row that fails, lacks a cell that the model needs, or is scored as NaN or
        infinite.
    into
        The name of the score's column; one per class, `into_class`, for three classes or more.
    column
        Which number of the output is the score. Left out: the second of two (the probability of
        the positive class), and all of three or more. {name: number} says which columns there
        are, in the place of `into`.
    seconds_per_row
        The declared time is so many seconds per row. If scoring takes longer, `ScoringFailed` is
        raised and every score is discarded. A model that takes longer for a made-up row is refused
        before a row is read. A row of a model that is not proven gets `default` after so much
        processor time of its own.
    memory
        Bytes that the model may use beside the runtime.
    allow_unproven
        Run a model that is not proven row-wise after all, in one process per row.
    isolation
        "sandbox", or "none" for a model that you trust on a machine without one.
    tick
        Hand the result over at a multiple of this many seconds after the start, so that the time
        tells nothing of the rows. For a model that is not proven it is the declared time.
    out
        Write the table to this new Parquet file, so that memory does not grow with the rows.
    schema
        Types of the columns of a CSV file.
    progress
        Called with the rows done and their number; for the custodian's eyes.
    """
    began = time.monotonic()
    if not isinstance(model, Model):
        raise ArgumentError("model must be one that heldout.models.load returned.")
    _check_numbers(default=default, seconds_per_row=seconds_per_row, memory=memory, tick=tick)
    if not is_one_of(isolation, ("sandbox", "none")):
        raise ArgumentError(f"isolation must be 'sandbox' or 'none', got {shown(isolation)}.")
    if not isinstance(into, str) or not into:
        raise ArgumentError(f"into must be the name of a new column, got {shown(into)}.")
    one_each = not model.row_wise
    if one_each and not allow_unproven:
        raise UnusableModel(
            f"The model is not proven to look at one row at a time. {model.problems[0]} "
            "Change the model, or pass allow_unproven=True to run it in one process per row."
        )
    names = _score_columns(model, into, column)
    engine = local_engine(rows, schema=schema)
    engine.fetch("SET threads = 1")  # the worker has the other core, and less is read ahead
    plan = matched(model, engine, features)
    check_columns(engine, [] if row_key is None else [row_key])
    for name, _ in names:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"column must name new columns, got {shown(name)}.")
        check_new(name, list(engine.columns))
    check_names([*engine.columns, *(name for name, _ in names)], "the scored table")
    count = int(engine.fetch(f"SELECT count(*) AS n FROM {engine.source}")["n"][0])
    limit = declared_seconds(
        rows=count, seconds_per_row=seconds_per_row, one_process_per_row=one_each
    )
    task = Task(
        content=model.content,
        output=model.output,
        sandboxed=model.linear is None and check_sandbox(isolation),
        memory=memory,
        seconds=math.ceil(limit) + 60,
        row_seconds=seconds_per_row,
        one_process_per_row=one_each,
        rows=1 if one_each else BLOCK,
        fields=model.inputs,
        width=model.width,
    )
    writer, done = Writer(out), 0
    try:
        with _scoring(model, task, until=began + limit) as scorer:
            for batch in engine.batches(plan.statement, rows=BLOCK):
                block, unfit = plan.block(batch)
                scores = _scores(scorer, block, batch.num_rows, size=task.rows)
                _settle(scores, unfit, default)
                own = batch.select(plan.own_columns(batch.schema.names))
                writer.add(own, {name: scores[:, place] for name, place in names})
                done += batch.num_rows
                if progress is not None:
                    progress(done, count)
        if engine.has_changed():
            raise UnreadableTable("The table changed while it was scored. Score it again.")
    except BaseException:
        writer.discard()
        raise
    if tick is None and one_each:
        tick = limit
    at_tick(began, tick)
    scored = writer.finish(row_key=row_key, scores=tuple(name for name, _ in names))
    scored.inputs = tuple(name for names in plan.columns.values() for name in names)
    return scored


@contextmanager
def _scoring(model: Model, task: Task, *, until: float) -> Iterator[Scorer | LinearModel]:
    """Return what scores a block: a linear model itself, or a keeper that has come up."""
    if model.linear is not None:
        yield model.linear
        return
    try:
        scorer = Scorer(task, until=until, main=keep)  # before the first row is read
    except Lost:
        raise UnusableModel(
            f"The model does not start within {task.memory // 2**20} MB and {START:g} seconds. "
            "Raise memory=, or make the model smaller."
        ) from None
    try:
        if not task.one_process_per_row:
            _check_speed(scorer, task)
        yield scorer
    except Lost:
        raise ScoringFailed(
            "The machine could not score all rows in the time that was declared. All scores are "
            "discarded. Score again on a machine that is less busy, or raise seconds_per_row."
        ) from None
    finally:
        scorer.close()


def _check_speed(scorer: Scorer, task: Task) -> None:
    """Refuse a model that is too slow for its declared time, by a row that nobody has."""
    import numpy as np

    row = {field.name: np.zeros(field.width, field.dtype) for field in task.fields}
    for _ in range(3):
        began = time.monotonic()
        scorer.score(row, 1)
        if time.monotonic() - began <= task.row_seconds:
            return
    raise UnusableModel(
        f"The model takes more than {task.row_seconds:g} seconds per row on this machine. Raise "
        "seconds_per_row, or make the model smaller."
    )


def _scores(
    scorer: Scorer | LinearModel, block: Mapping[str, Array], rows: int, *, size: int
) -> Array:
    """The scores of a batch, `size` rows at a time."""
    import numpy as np

    parts = [
        scorer.score({name: cells[at : at + size] for name, cells in block.items()}, n)
        for at, n in ((at, min(size, rows - at)) for at in range(0, rows, size))
    ]
    return np.concatenate(parts)


def _settle(scores: Array, unfit: Array, default: float) -> None:
    """Every row has finite scores; one that lacks one of them has the default for all."""
    import numpy as np

    failed = ~np.isfinite(scores).all(axis=1) | unfit.astype(bool)
    scores[failed] = default
    np.clip(scores, -FURTHEST, FURTHEST, out=scores)


def local_engine(rows: Any, *, schema: Mapping[str, str] | None) -> DuckDBEngine:
    """Rows of a database or a cluster are copied here: the model cannot go to them."""
    engine = open_table(rows, schema=schema)
    if isinstance(engine, DuckDBEngine):
        return engine
    import pyarrow

    columns = engine.fetch(f"SELECT * FROM {engine.source} AS held")
    table = or_raise(
        lambda: pyarrow.table(dict(columns)),
        lambda: UnreadableTable("The rows cannot be copied out of their database. Cast columns."),
    )
    copied = open_table(table)
    assert isinstance(copied, DuckDBEngine)
    return copied


def _score_columns(model: Model, into: str, column: Any) -> list[tuple[str, int]]:
    """The names of the scores' columns, and which number of the output each is."""
    if isinstance(column, Mapping):
        return [(name, _score_columns(model, name, place)[0][1]) for name, place in column.items()]
    if column is not None:
        place = as_whole(column)
        if place is None or not 0 <= place < model.width:
            raise ArgumentError(
                f"column must be a whole number below {model.width}, got {shown(column)}."
            )
        return [(into, place)]
    if model.width <= 2:
        return [(into, model.width - 1)]
    names = class_columns(into, model.classes, model.width)
    return [(name, place) for place, name in enumerate(names)]


def at_tick(began: float, tick: float | None) -> None:
    """Wait for the next multiple of so many seconds, so that the time tells nothing of the rows."""
    if tick is not None:
        taken = time.monotonic() - began
        time.sleep(max(0.0, math.ceil(taken / tick) * tick - taken))


def check_tick(tick: Any) -> None:
    if tick is not None and not 0 < as_number(tick) <= 1e7:
        raise ArgumentError(f"tick must be a number of seconds above 0, got {shown(tick)}.")


def _check_numbers(*, default: Any, seconds_per_row: Any, memory: Any, tick: Any) -> None:
    if not math.isfinite(as_number(default)):
        raise ArgumentError(f"default must be a finite number, got {shown(default)}.")
    check_tick(tick)
    if not 0 < as_number(seconds_per_row) <= 3600:
        raise ArgumentError(
            f"seconds_per_row must be a number of seconds above 0, got {shown(seconds_per_row)}."
        )
    size = as_whole(memory)
    if size is None or size < 2**20:
        raise ArgumentError(f"memory must be bytes, at least {2**20:,}, got {shown(memory)}.")


# --- which columns of the table are which inputs of the model, by name and declared type ---------
# Whether they fit is decided from the declarations alone. A row whose cells do not fit after all
# gets the default score.

_OURS = "heldout input "
_UNFIT = "heldout unfit"


@dataclass(frozen=True)
class Matched:
    """For each input of the model the columns that fill it, and the statement that reads them."""

    columns: Mapping[str, tuple[str, ...]]
    fields: tuple[Field, ...]
    statement: str

    def block(self, batch: "pyarrow.RecordBatch") -> tuple[dict[str, Array], Array]:
        """The inputs of a batch as arrays, and which of its rows do not fit them."""
        import numpy as np

        names, place, arrays = batch.schema.names, 0, {}
        for field in self.fields:
            parts = []
            for _ in range(field.width):
                cells = batch.column(names.index(f"{_OURS}{place}"))
                place += 1
                if field.kind == "string":
                    texts = [(text or "").encode()[:TEXT] for text in cells.to_pylist()]
                    parts.append(np.array(texts, dtype=field.dtype))
                else:
                    with np.errstate(all="ignore"):
                        parts.append(cells.to_numpy(zero_copy_only=False).astype(field.dtype))
            arrays[field.name] = parts[0] if field.rank == 1 else np.column_stack(parts)
        return arrays, batch.column(names.index(_UNFIT)).to_numpy(zero_copy_only=False)

    def own_columns(self, names: Sequence[str]) -> list[str]:
        """The custodian's own columns."""
        return [name for name in names if not name.startswith(_OURS) and name != _UNFIT]


def matched(model: Model, engine: Engine, features: Any) -> Matched:
    """Match every input to columns, or say to whoever declares them what does not fit."""
    columns = dict(_named(model, features))
    check_columns(engine, [name for names in columns.values() for name in names])
    chosen: list[str] = []
    unfit: list[str] = []
    for field in model.inputs:
        for name in columns[field.name]:
            kind = engine.columns[name]
            number, doubt = _cell(field, name, kind, text_file=engine.names_may_be_cells)
            chosen.append(f"{number} AS {sql.identifier(f'{_OURS}{len(chosen)}')}")
            unfit += doubt
    unfit_rows = " OR ".join(f"({condition})" for condition in unfit) or "FALSE"
    listed = ",\n  ".join(
        ["held.*", *chosen, f"coalesce({unfit_rows}, TRUE) AS {sql.identifier(_UNFIT)}"]
    )
    return Matched(columns, model.inputs, f"SELECT\n  {listed}\nFROM {engine.source} AS held")


def _named(model: Model, features: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    inputs, given = model.inputs, {}
    if isinstance(features, Mapping):
        unknown = [
            feature for feature in features if feature not in {field.name for field in inputs}
        ]
        if unknown:
            raise ArgumentError(f"The model has no input {shown(unknown[0])}. {_asked(model)}")
        given = {name: _columns(names) for name, names in features.items()}
    elif features is not None:
        listed = _columns(features)
        if isinstance(features, str):
            raise ArgumentError("features must be a list of columns, not a text.")
        if len(inputs) == 1:
            given = {inputs[0].name: listed}
        for field in inputs if len(inputs) > 1 else ():
            if field.name not in listed:
                raise ArgumentError(
                    f"The model needs column {shown(field.name)}, which features= does not list. "
                    f"{_asked(model)}"
                )
    for field in inputs:
        names = given.get(field.name, (field.name,))
        if len(names) != field.width or not isinstance(field.name, str):
            raise ArgumentError(
                f"The model's input {shown(field.name)} takes {field.width} columns, got "
                f"{len(names)}. List them in order in features=[...]."
            )
        yield field.name, names


def _columns(names: Any) -> tuple[str, ...]:
    """One column, or several in order."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"features must be a list of columns, got {shown(names)}.")
    return tuple(names)


def _asked(model: Model) -> str:
    listed = ", ".join(f"{shown(field.name)} ({field.kind})" for field in model.inputs[:12])
    return f"Its inputs: {listed}."


def _cell(field: Field, name: str, kind: str, *, text_file: bool) -> tuple[str, list[str]]:
    """A cell as the model takes it, whatever it holds; and when a row then does not fit."""
    column, values = sql.column(name), sql.kind_of(kind)
    number = values in ("number", "boolean") or text_file
    if field.kind.startswith("float") and number:
        return f"coalesce({sql.as_double(column, kind)}, {sql.double(float('nan'))})", []
    if field.kind in ("int32", "int64", "bool") and number:
        wanted = {"int32": "INTEGER", "int64": "BIGINT", "bool": "BOOLEAN"}[field.kind]
        cell = f"TRY_CAST({column} AS {wanted})"
        whole = f"{column} = trunc({column})" if _has_fractions(kind) else "TRUE"
        return f"coalesce({cell}, CAST(0 AS {wanted}))", [f"{cell} IS NULL", f"NOT ({whole})"]
    if field.kind == "string" and values == "text":
        cell = sql.as_text(name)
        return cell, [f"{cell} IS NULL", f"strlen({cell}) > {TEXT}"]
    raise ArgumentError(
        f"Column {shown(name)} is of kind {values}, and the model's input {shown(field.name)} "
        f"takes {field.kind}. Name another column, or cast it."
    )


def _has_fractions(kind: str) -> bool:
    return sql.is_numeric(kind) and kind not in sql.INTEGER_TYPES


# --- the scored table: private rows, with a model's scores beside them --------------------------


class ScoredRows:
    """A private table that `heldout.Dataset` and its kin take; it shows nothing of its rows.

    `to_arrow()` hands the rows to the custodian, whose they are. They must not reach an analyst.
    """

    def __init__(
        self,
        table: "pyarrow.Table",
        *,
        row_key: str | None,
        scores: tuple[str, ...],
        path: Path | None = None,
    ) -> None:
        self._table, self.path = table, path
        self.row_key, self.scores = row_key, scores
        self.columns: list[str] = list(table.schema.names)
        self.inputs: tuple[str, ...] = ()
        """The columns that the scores are made of."""

    def to_arrow(self) -> "pyarrow.Table":
        """The custodian's rows and the scores, as an Arrow table."""
        import pyarrow.parquet

        return self._table if self.path is None else pyarrow.parquet.read_table(self.path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"ScoredRows(scores={list(self.scores)}, row_key={self.row_key!r})"

    def __getstate__(self) -> object:
        raise TypeError("ScoredRows holds private rows and must not be pickled.")


class ScoredFile(ScoredRows, os.PathLike[str]):
    """The same, in a Parquet file that is read in place."""

    def __fspath__(self) -> str:
        return str(self.path)


class Writer:
    """Collects scored batches, in memory or in a new file."""

    def __init__(self, out: str | os.PathLike[str] | None) -> None:
        self._batches: list[Any] = []
        self._file: Any = None
        self._path = None if out is None else Path(out)
        if self._path is None:
            return
        if self._path.suffix.lower() != ".parquet":
            raise ArgumentError("out must be a new .parquet file.")
        try:
            # The rows are private: nobody else may read the file.
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError:
            raise ArgumentError("out must be a new file in a folder that exists.") from None

    def add(self, batch: "pyarrow.RecordBatch", scores: Mapping[str, Array]) -> None:
        import pyarrow
        import pyarrow.parquet

        for name, values in scores.items():
            batch = batch.append_column(name, pyarrow.array(values, pyarrow.float64()))
        self._batches.append(batch)
        if self._path is None:
            return
        if self._file is None:
            self._file = pyarrow.parquet.ParquetWriter(self._path, batch.schema)
        if sum(batch.num_rows for batch in self._batches) >= ROW_GROUP:
            self._write()

    def _write(self) -> None:
        import pyarrow

        if self._batches:
            self._file.write_table(pyarrow.Table.from_batches(self._batches))
            self._batches.clear()

    def discard(self) -> None:
        """Leave nothing of a table that could not be finished."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def finish(self, *, row_key: str | None, scores: tuple[str, ...]) -> ScoredRows:
        import pyarrow

        if self._file is not None:
            self._write()
            self._file.close()
            empty = self._file.schema.empty_table()
            return ScoredFile(empty, row_key=row_key, scores=scores, path=self._path)
        if not self._batches:
            raise EmptyTable("The table has no rows. Check the file or the filter.")
        table = pyarrow.Table.from_batches(self._batches)
        return ScoredRows(table, row_key=row_key, scores=scores)
