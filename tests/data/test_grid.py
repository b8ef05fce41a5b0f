"""Large tables are read once: the score table validates them and serves every ranking."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import heldout as ho
import heldout.data.dataset
import heldout.ranking_request
from heldout.data.duckdb_engine import DuckDBEngine
from heldout.data.grid import KeptColumns, counts_keep_the_rules
from heldout.errors import (
    DataError,
    InfiniteScore,
    MissingLabel,
    MissingScore,
    ScoreOutOfRange,
    UnknownLabel,
    UnreadableTable,
)
from heldout.mechanisms.discrete_laplace import unseal
from heldout.statistics import ScoreTable, compute

MANY = 200


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heldout.data.dataset, "MANY_ROWS", MANY)
    monkeypatch.setattr(heldout.ranking_request, "LARGEST_EXACT", MANY)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the engine was asked, with those that read all rows marked."""
    statements: list[str] = []
    fetch = DuckDBEngine.fetch

    def noted(self: DuckDBEngine, statement: str) -> Any:
        statements.append(statement)
        return fetch(self, statement)

    monkeypatch.setattr(DuckDBEngine, "fetch", noted)
    return statements


def table(count: int = 3 * MANY, **cells: Any) -> dict[str, Any]:
    generator = np.random.default_rng(9)
    labels = generator.integers(0, 2, count).astype(np.int8)
    scores = np.round(generator.random(count), 4)
    if "p" in cells:
        scores[7] = cells["p"]
    columns: dict[str, Any] = {"y": labels, "p": scores}
    if "y" in cells:
        columns["y"] = [cells["y"], *labels[1:].tolist()]
    return columns


def on_disk(columns: dict[str, Any], folder: Path) -> Path:
    # Written by Arrow, whose statistics leave NaN out.
    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def scans(statements: list[str]) -> int:
    return sum("GROUP BY" in each or "fingerprint" in each for each in statements)


def test_one_scan_serves_validation_and_all_that_is_ranked(
    tmp_path: Path, asked: list[str]
) -> None:
    rows = ho.Dataset(on_disk(table(), tmp_path), label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=100))
    session.report(epsilon=10, sections=("auc", "average_precision", "curves"))
    session.grid_ties(epsilon=1)
    assert scans(asked) == 1


def test_the_kept_table_is_the_one_that_the_rows_give(tmp_path: Path) -> None:
    columns = table()
    kept = ho.Dataset(on_disk(columns, tmp_path), label="y", score="p")
    few = {name: each[:MANY] for name, each in columns.items()}
    rest = {name: each[MANY:] for name, each in columns.items()}
    statistic = ScoreTable(score_range=(0, 1))
    parts = [
        unseal(compute(statistic, ho.Dataset(each, label="y", score="p", neighbours="add-remove")))
        for each in (few, {name: part[:MANY] for name, part in rest.items()})
    ]
    last = {name: part[MANY:] for name, part in rest.items()}
    parts.append(unseal(compute(statistic, ho.Dataset(last, label="y", score="p"))))
    assert np.array_equal(unseal(compute(statistic, kept)), sum(parts))


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        ({"p": math.nan}, MissingScore),
        ({"p": math.inf}, InfiniteScore),
        ({"p": -math.inf}, InfiniteScore),
        ({"p": np.nextafter(1, 2)}, ScoreOutOfRange),
        ({"p": -5e-324}, ScoreOutOfRange),
        ({"y": 2}, UnknownLabel),
        ({"y": -1}, UnknownLabel),
        ({"y": None}, MissingLabel),
    ],
    ids=str,
)
def test_a_broken_rule_is_found_among_many_rows_as_among_few(
    tmp_path: Path, cells: dict[str, Any], error: type[DataError]
) -> None:
    path = on_disk(table(**cells), tmp_path)
    with pytest.raises(error):
        ho.Dataset(path, label="y", score="p")
    with pytest.raises(error):
        ho.Dataset(table(**cells), label="y", score="p")


@pytest.mark.parametrize(
    "declared",
    [
        {"score_map": (0, 1)},
        {"out_of_range": "clip"},
        {"positive": 0},
        {"score_range": (-1, 3)},
        {"neighbours": "add-remove"},
        {"row_key": "id"},
        {"unit": "id"},
    ],
    ids=str,
)
def test_whatever_is_declared_the_same_rows_are_valid(declared: dict[str, Any]) -> None:
    columns = table() | {"id": np.arange(3 * MANY)}
    rows = ho.Dataset(columns, label="y", score="p", **declared)
    counts = unseal(compute(ScoreTable(score_range=rows.score_range), rows))
    assert counts.sum() == 3 * MANY


def test_the_rows_have_the_same_digest_whether_it_is_taken_early_or_late(tmp_path: Path) -> None:
    columns = table()
    late = ho.Dataset(on_disk(columns, tmp_path), label="y", score="p")
    swapped = ho.Dataset({"p": columns["p"], "y": columns["y"]}, label="y", score="p", positive=0)
    assert late._digests is None
    assert swapped._digests is not None
    assert late._fingerprints == swapped._fingerprints


def test_two_sessions_on_one_ledger_share_a_budget_that_one_without_does_not_touch(
    tmp_path: Path,
) -> None:
    path = on_disk(table(), tmp_path)
    ledger = tmp_path / "ledger.sqlite"
    first, second = (ho.Dataset(path, label="y", score="p", name=name) for name in "ab")
    ho.Session(first, budget=ho.Budget(epsilon=2), ledger=ledger).auc(epsilon=1)
    assert str(ho.Session(second, ledger=ledger).remaining) == "epsilon 1"
    assert str(ho.Session(second, budget=ho.Budget(epsilon=2)).remaining) == "epsilon 2"


def test_a_file_that_changed_is_refused_although_its_table_is_kept(tmp_path: Path) -> None:
    path = on_disk(table(), tmp_path)
    rows = ho.Dataset(path, label="y", score="p")
    session = ho.Session(rows, budget=ho.Budget(epsilon=10))
    session.auc(epsilon=1)
    on_disk(table(2 * MANY), tmp_path)
    with pytest.raises(UnreadableTable):
        session.auc(epsilon=1)
    with pytest.raises(UnreadableTable):
        _ = rows._fingerprints
    assert str(session.remaining) == "epsilon 9"


def test_kept_counts_show_themselves_to_nobody() -> None:
    kept = KeptColumns({"n": np.array([42])})
    assert "42" not in repr(kept)
    with pytest.raises(TypeError):
        pickle.dumps(kept)
    rows = ho.Dataset(table(), label="y", score="p")
    assert "array" not in repr(vars(rows)["_kept"])


def test_counts_that_miss_a_row_or_a_point_prove_nothing() -> None:
    good = {"label": np.array([0, 1]), "point": np.array([0, 4]), "n": np.array([2, 3])}
    assert counts_keep_the_rules(good, rows=5, cells=4)
    assert not counts_keep_the_rules(good, rows=6, cells=4)
    assert not counts_keep_the_rules(good | {"point": np.array([0, 5])}, rows=5, cells=4)
    assert not counts_keep_the_rules(good | {"point": np.array([-1, 4])}, rows=5, cells=4)
    assert not counts_keep_the_rules(good | {"label": np.array([0, 2])}, rows=5, cells=4)
    hidden = np.ma.masked_array(np.array([0, 4]), mask=[False, True])
    assert not counts_keep_the_rules(good | {"point": hidden}, rows=5, cells=4)
