"""The same rows are the same data, whatever holds them."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.errors import AnswerLost, ArgumentError, UnreadableTable
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import BoundedSum, compute
from heldout.questions.counts import ThresholdCounts

ROWS = 40
GENERATOR = np.random.default_rng(11)
COLUMNS: dict[str, Any] = {
    "visit": np.arange(ROWS) * 7 + 3,
    "patient": np.repeat([f"p{each}" for each in range(8)], 5),
    "readmitted": GENERATOR.integers(0, 2, ROWS),
    "risk": GENERATOR.random(ROWS),
    "risk_b": GENERATOR.random(ROWS),
    "weekend": np.arange(ROWS) % 3 == 0,
}
TYPES = {
    "visit": "BIGINT",
    "patient": "VARCHAR",
    "readmitted": "BIGINT",
    "risk": "DOUBLE",
    "risk_b": "DOUBLE",
    "weekend": "BOOLEAN",
}


def csv_file(where: Path, delimiter: str = ",", ending: str = "\n") -> Path:
    suffix = ".csv" if delimiter == "," else ".tsv"
    lines = [delimiter.join(COLUMNS)]
    lines += [
        delimiter.join(
            str(cell).lower() if isinstance(cell, bool | np.bool_) else str(cell) for cell in row
        )
        for row in zip(*(column.tolist() for column in COLUMNS.values()), strict=True)
    ]
    path = where / f"rows{suffix}"
    path.write_bytes((ending.join(lines) + ending).encode())
    return path


def parquet_file(where: Path) -> Path:
    path = where / "rows.parquet"
    pq.write_table(pa.table(COLUMNS), path, row_group_size=7)
    return path


SOURCES: dict[str, Callable[[Path], tuple[Any, dict[str, Any]]]] = {
    "parquet": lambda where: (parquet_file(where), {}),
    "parquet as text": lambda where: (str(parquet_file(where)), {}),
    "csv": lambda where: (csv_file(where), {}),
    "csv with schema": lambda where: (csv_file(where), {"schema": TYPES}),
    "csv with schema in another order": lambda where: (
        csv_file(where),
        {"schema": dict(reversed(TYPES.items()))},
    ),
    "csv of Windows": lambda where: (csv_file(where, ending="\r\n"), {}),
    "tsv": lambda where: (csv_file(where, delimiter="\t"), {}),
    "pandas": lambda where: (pd.DataFrame(COLUMNS), {}),
    "pandas with an index": lambda where: (
        pd.DataFrame(COLUMNS).set_index(pd.Index(range(100, 100 + ROWS))),
        {},
    ),
    "Polars": lambda where: (pl.DataFrame(COLUMNS), {}),
    "lazy Polars": lambda where: (pl.DataFrame(COLUMNS).lazy(), {}),
    "Arrow": lambda where: (pa.table(COLUMNS), {}),
    "Arrow batch": lambda where: (pa.table(COLUMNS).to_batches()[0], {}),
    "DuckDB relation": lambda where: (duckdb.connect().from_arrow(pa.table(COLUMNS)), {}),
    "arrays": lambda where: (COLUMNS, {}),
    "lists": lambda where: ({name: column.tolist() for name, column in COLUMNS.items()}, {}),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)

UNITS = [{}, {"unit": "patient", "rows_per_unit": 2}, {"unit": "patient", "row_key": "visit"}]


def statistics(dataset: ho.Dataset) -> list[list[int]]:
    asked = [
        ThresholdCounts(thresholds=()),
        ThresholdCounts(thresholds=(0.1, 0.5, 0.9)),
        BoundedSum(error="squared", score_range=(0, 1), with_rest=True),
        ScoreTable(score_range=(0, 1), cells=64),
    ]
    return [unseal(compute(each, dataset)).tolist() for each in asked]


@functools.cache
def of_arrays(**unit: Any) -> tuple[list[list[int]], bytes]:
    dataset = ho.Dataset(COLUMNS, label="readmitted", score="risk", **unit)
    return statistics(dataset), dataset._fingerprint


@each_source
def test_every_source_gives_the_same_statistics_and_fingerprint(
    source: Callable[[Path], tuple[Any, dict[str, Any]]], tmp_path: Path
) -> None:
    for unit in UNITS:
        table, options = source(tmp_path)
        found = ho.Dataset(table, label="readmitted", score="risk", **options, **unit)
        assert (statistics(found), found._fingerprint) == of_arrays(**unit)


def test_statistics_are_those_of_the_rows() -> None:
    """Not only alike: right, against plain NumPy."""
    labels, scores = COLUMNS["readmitted"], COLUMNS["risk"]
    counts, thresholds, sums, table = statistics(
        ho.Dataset(COLUMNS, label="readmitted", score="risk")
    )
    assert counts == [(labels == 0).sum(), (labels == 1).sum()]
    interval = np.digitize(scores, [0.1, 0.5, 0.9])
    assert thresholds == np.bincount(labels * 4 + interval, minlength=8).tolist()
    steps = np.floor((scores - labels) ** 2 * 2**20 + 0.5).astype(int)
    apart = steps * (2**20 - steps) // 2**20
    assert sums == [steps.sum(), apart.sum(), (2**20 - steps - apart).sum()]
    assert np.array(table).reshape(2, -1).sum(axis=1).tolist() == counts


# --- what is read is what was named --------------------------------------------------------------


@pytest.mark.parametrize("name", ["a[1].parquet", "b*.parquet", "c?.parquet", "it's.parquet"])
def test_a_file_name_is_never_a_pattern(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": [1, 0], "p": [0.1, 0.2]}), tmp_path / name)
    for other in ("a1.parquet", "b1.parquet", "c1.parquet"):
        pq.write_table(pa.table({"y": [1] * 9, "p": [0.5] * 9}), tmp_path / other)
    assert ho.Dataset(tmp_path / name, label="y", score="p").public_rows == 2


@pytest.mark.parametrize("directory", ["year=2024", "y=1", "p=0.5"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_directory_adds_no_column(directory: str, suffix: str, tmp_path: Path) -> None:
    """Else the same rows would get a second budget by moving the file."""
    (tmp_path / directory).mkdir()
    frame = pd.DataFrame({"y": [1, 0], "p": [0.25, 0.75]})
    path = tmp_path / directory / f"rows{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    found = ho.Dataset(path, label="y", score="p")
    expected = ho.Dataset(frame, label="y", score="p")
    assert found._fingerprint == expected._fingerprint
    assert statistics(found) == statistics(expected)


def test_a_csv_file_with_the_index_of_pandas_is_read(tmp_path: Path) -> None:
    pd.DataFrame({"y": [1, 0], "p": [0.25, 0.75]}).to_csv(tmp_path / "rows.csv")
    assert ho.Dataset(tmp_path / "rows.csv", label="y", score="p").public_rows == 2


def test_a_schema_follows_the_names_and_not_the_places(tmp_path: Path) -> None:
    """Both columns would cast either way: only the names tell them apart."""
    (tmp_path / "rows.csv").write_text("y,p\n1,0\n1,0\n0,0\n")
    schema = {"p": "DOUBLE", "y": "DOUBLE"}
    dataset = ho.Dataset(tmp_path / "rows.csv", label="y", score="p", schema=schema)
    assert statistics(dataset)[0] == [1, 2]


@pytest.mark.parametrize(
    "schema", [{"y": "BIGINT"}, {"y": "BIGINT", "q": "DOUBLE"}, {"y": "A", "p": "B"}]
)
def test_a_schema_that_is_not_the_files_is_refused(schema: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,p\n1,0.5\n")
    with pytest.raises(UnreadableTable):
        ho.Dataset(tmp_path / "rows.csv", label="y", score="p", schema=schema)


def test_a_schema_without_a_csv_file_is_refused(tmp_path: Path) -> None:
    for table in (parquet_file(tmp_path), pd.DataFrame(COLUMNS)):
        with pytest.raises(ArgumentError, match="schema"):
            ho.Dataset(table, label="readmitted", score="risk", schema=TYPES)


def test_quoted_cells_may_hold_delimiters_and_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('y,p,note\n1,0.5,"a, ""b""\nc"\n0,0.25,\n')
    assert ho.Dataset(tmp_path / "rows.csv", label="y", score="p").public_rows == 2


# --- afterwards ----------------------------------------------------------------------------------


@pytest.mark.parametrize("holder", [dict, pd.DataFrame])
def test_a_frame_that_is_changed_afterwards_changes_nothing(holder: Any) -> None:
    labels, scores = np.array([1, 0, 0, 1]), np.array([0.9, 0.2, 0.4, 0.6])
    frame = holder({"y": labels, "p": scores})
    dataset = ho.Dataset(frame, label="y", score="p")
    before = statistics(dataset)
    labels[:], scores[:] = 1, 0.5
    frame["p"] = scores
    frame["y"] = labels
    assert statistics(dataset) == before


def rewritten(path: Path) -> None:
    path.write_bytes(path.read_bytes())


def set_back(path: Path) -> None:
    """Other content of the same size, with the old time of modification."""
    status = path.stat()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0.25", b"0.75"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize("change", [rewritten, set_back, replaced, Path.unlink])
def test_a_file_that_changed_is_refused_and_nothing_is_charged(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n1,0.25\n0,0.5\n")
    session = ho.Session(ho.Dataset(path, label="y", score="p"), budget=ho.Budget(epsilon=1))
    session.confusion(epsilon="1/4")
    change(path)
    with pytest.raises(UnreadableTable, match="must not change"):
        session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4")


def test_a_file_that_changes_while_it_is_read_gives_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n1,0.25\n0,0.5\n")
    session = ho.Session(ho.Dataset(path, label="y", score="p"), budget=ho.Budget(epsilon=1))
    engine = session._table._engine
    fetch = type(engine).fetch

    def interrupted(self: Any, statement: str) -> Any:
        columns = fetch(self, statement)
        path.write_text("y,p\n1,0.25\n0,0.75\n")
        return columns

    monkeypatch.setattr(type(engine), "fetch", interrupted)
    with pytest.raises(AnswerLost, match="must not change"):
        session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4"), "booked before the rows were read, and kept"


def test_a_long_statement_draws_no_bar_over_an_interactive_session() -> None:
    from heldout.data.duckdb import open_local

    shown = open_local(pa.table({"x": [1]})).fetch(
        "SELECT current_setting('enable_progress_bar') AS bar"
    )
    assert shown["bar"].tolist() == [False]
