"""The score table is read once and serves every ranking."""

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
import heldout.questions.ranking.questions
from heldout.data.duckdb import DuckDBEngine
from heldout.data.scores import CELLS, GridTally, KeptColumns, grid_body
from heldout.errors import (
    ArgumentError,
    DataError,
    InfiniteScore,
    MissingLabel,
    MissingScore,
    MissingUnit,
    ScoreOutOfRange,
    UnknownLabel,
    UnreadableTable,
)
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import Statistic, compute
from heldout.questions.counts import ThresholdCounts

MANY = 200


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heldout.questions.ranking.questions, "LARGEST_EXACT", MANY)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that the engine was asked, with those that read all rows marked."""
    statements: list[str] = []
    fetch, scan = DuckDBEngine.fetch, DuckDBEngine.scan

    def noted(self: DuckDBEngine, statement: str) -> Any:
        statements.append(statement)
        return fetch(self, statement)

    def scanned(self: DuckDBEngine, statement: str, take: Any) -> None:
        statements.append(f"scan: {statement}")
        scan(self, statement, take)

    monkeypatch.setattr(DuckDBEngine, "fetch", noted)
    monkeypatch.setattr(DuckDBEngine, "scan", scanned)
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
    marks = ("scan: ", "GROUP BY", "fingerprint")
    return sum(any(mark in each for mark in marks) for each in statements)


def test_one_scan_serves_all_that_is_ranked(tmp_path: Path, asked: list[str]) -> None:
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
    path = on_disk(columns, tmp_path)
    late = ho.Dataset(path, label="y", score="p")
    early = ho.Dataset(path, label="y", score="p", positive=0)
    taken = early._fingerprints
    ho.Session(early, budget=ho.Budget(epsilon=1)).confusion(epsilon=1)
    swapped = ho.Dataset({"p": columns["p"], "y": columns["y"]}, label="y", score="p", positive=0)
    assert late._digests is None, "a session without a ledger needs none"
    assert late._fingerprints == early._fingerprints == swapped._fingerprints == taken


def test_a_registered_account_takes_no_digest(tmp_path: Path, monkeypatch: Any) -> None:
    columns = table() | {"id": np.arange(3 * MANY)}
    path = on_disk(columns, tmp_path)
    ledger = ho.Ledger.open(tmp_path / "ledger.sqlite")
    ledger.register("stays", budget=ho.Budget(epsilon=1), unit="id")
    monkeypatch.delattr(heldout.data.validation, "fingerprint_columns")
    for rows, more in ((path, {"rivals": ()}), (columns, {})):
        dataset = ho.Dataset(rows, label="y", score="p", unit="id", row_key="id", **more)
        session = ho.Session(dataset, ledger=ledger, account="stays")
        session.confusion(epsilon="1/2")
    assert session.remaining == ho.Loss.pure(0)


def test_two_sessions_on_one_ledger_share_a_budget_that_one_without_does_not_touch(
    tmp_path: Path,
) -> None:
    path = on_disk(table(), tmp_path)
    ledger = tmp_path / "ledger.sqlite"
    first, second, third = (ho.Dataset(path, label="y", score="p", name=name) for name in "abc")
    ho.Session(first, budget=ho.Budget(epsilon=2), ledger=ledger).auc(epsilon=1)
    assert str(ho.Session(second, ledger=ledger).remaining) == "epsilon 1"
    assert str(ho.Session(third, budget=ho.Budget(epsilon=2)).remaining) == "epsilon 2"


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
    assert "array" not in repr(vars(rows)["_cached"])


def test_an_unsound_row_is_counted_nowhere_and_said_to_be_there() -> None:
    good = {"label": np.array([0, 1]), "score": np.array([0.0, 1.0])}
    spoilt: list[dict[str, Any]] = [
        {"label": np.array([0, 2])},
        {"label": np.array([-1, 1])},
        {"score": np.array([0.0, math.nan])},
        {"score": np.array([0.0, math.inf])},
        {"score": np.array([0.0, np.nextafter(1, 2)])},
        {"score": np.ma.masked_array(np.array([0.0, 1.0]), mask=[False, True])},
        {"label": np.ma.masked_array(np.array([0, 1]), mask=[True, False])},
    ]
    tally = GridTally((0.0, 1.0))
    tally.add(good)
    assert tally.sound
    assert tally.columns()["point"].tolist() == [0, CELLS]
    for times, each in enumerate(spoilt, start=1):
        tally.add(good | each)
        assert not tally.sound
        assert (tally.rows, tally.columns()["n"].sum()) == (2 + 2 * times, 2 + times)


@pytest.mark.parametrize(
    "score_range", [(0.0, 1.0), (-1.0, 3.0), (0.1, 0.7), (-3e-9, 1e-9)], ids=str
)
def test_the_points_are_those_of_the_statement(score_range: tuple[float, float]) -> None:
    low, high = score_range
    generator = np.random.default_rng(11)
    drawn = low + (high - low) * generator.random(20_000)
    halves = low + (high - low) / CELLS * (generator.integers(0, CELLS, 20_000) + 0.5)
    scores = np.clip(np.concatenate([[low, high], drawn, halves]), low, high)
    labels = generator.integers(0, 2, scores.size)
    rows = ho.Dataset({"y": labels, "p": scores}, label="y", score="p", score_range=score_range)
    statement = rows._engine.fetch(rows.statement(grid_body(score_range)))
    tally = GridTally(score_range)
    tally.add({"label": labels, "score": scores})
    table = ScoreTable(score_range=score_range)
    assert tally.sound
    assert np.array_equal(table.read(tally.columns()), table.read(statement))


# --- a footer that lies --------------------------------------------------------------------------


def forged(path: Path, *lies: tuple[bytes, bytes]) -> Path:
    """The file with other bytes in its footer; its pages stay as they are."""
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    footer = whole[start:-8]
    for truth, lie in lies:
        assert len(lie) == len(truth)
        assert truth in footer
        footer = footer.replace(truth, lie)
    path.write_bytes(whole[:start] + footer + whole[-8:])
    return path


def with_label(folder: Path, bad: list[int | None], *, rows: int = 1000) -> Path:
    labels = [*bad, *(i % 2 for i in range(rows - len(bad)))]
    columns = {"y": pa.array(labels, pa.int32()), "p": np.linspace(0, 1, rows)}
    return on_disk(columns, folder)


@pytest.mark.parametrize("rows", [1000, MANY // 2], ids=["many", "few"])
def test_a_null_that_the_footer_denies_is_found(tmp_path: Path, rows: int) -> None:
    path = with_label(tmp_path, [None] * 70, rows=rows)
    # The number of NULLs as Thrift writes it: 70, doubled, in two bytes; then a zero in two.
    forged(path, (b"\x16\x8c\x01(", b"\x16\x80\x00("))
    claimed = pyarrow.parquet.read_metadata(path).row_group(0).column(0).statistics
    assert claimed.null_count == 0
    with pytest.raises(MissingLabel):
        ho.Dataset(path, label="y", score="p")


@pytest.mark.parametrize(
    ("declared", "error"),
    [
        ({"unit": "u"}, MissingUnit),
        ({"row_key": "u"}, MissingUnit),
        ({"rivals": ["u"]}, MissingScore),
    ],
    ids=str,
)
def test_a_null_among_the_keys_and_rivals_that_the_footer_denies_is_found(
    tmp_path: Path, declared: dict[str, Any], error: type[DataError]
) -> None:
    spoilt = pa.array([None] * 70 + list(range(930)), pa.int32())
    columns = {"y": np.arange(1000) % 2, "p": np.linspace(0, 1, 1000), "u": spoilt}
    path = forged(on_disk(columns, tmp_path), (b"\x16\x8c\x01(", b"\x16\x80\x00("))
    with pytest.raises(error):
        ho.Dataset(path, label="y", score="p", **declared)


@pytest.mark.parametrize("label", [2, 65537, -65536], ids=str)
@pytest.mark.parametrize("rows", [1000, MANY // 2], ids=["many", "few"])
def test_a_label_that_the_footer_denies_is_found(tmp_path: Path, label: int, rows: int) -> None:
    path = with_label(tmp_path, [label], rows=rows)
    truth, lie = (int.to_bytes(each, 4, "little", signed=True) for each in (label, int(label > 0)))
    forged(path, (b"\x04" + truth, b"\x04" + lie))
    with pytest.raises(UnknownLabel):
        ho.Dataset(path, label="y", score="p")


def test_no_false_bound_of_the_footer_moves_a_count(tmp_path: Path) -> None:
    honest = with_label(tmp_path, [])
    rows = ho.Dataset(honest, label="y", score="p")
    statistics: list[Statistic] = [
        ScoreTable(score_range=(0, 1)),
        ThresholdCounts(thresholds=(0.5,)),
    ]
    expected = [unseal(compute(each, rows)).tolist() for each in statistics]
    one, zero = (int.to_bytes(each, 4, "little") for each in (1, 0))
    top, low = (np.float64(each).tobytes() for each in (1.0, 0.25))
    forged(honest, (b"\x04" + one, b"\x04" + zero), (b"\x08" + top, b"\x08" + low))
    claimed = pyarrow.parquet.read_metadata(honest).row_group(0)
    assert [claimed.column(each).statistics.max for each in (0, 1)] == [0, 0.25]
    lying = ho.Dataset(honest, label="y", score="p")
    assert [unseal(compute(each, lying)).tolist() for each in statistics] == expected


@pytest.mark.parametrize(
    "statistic",
    [ScoreTable(score_range=(0, 1), cells=4), ThresholdCounts(thresholds=(0.5,))],
    ids=str,
)
def test_a_row_that_should_not_be_there_moves_no_other_rows_cell(statistic: Statistic) -> None:
    place = "point" if isinstance(statistic, ScoreTable) else "interval_number"
    sound = {"label": np.array([0, 1]), place: np.array([1, 1]), "n": np.array([7, 5])}
    found = statistic.read(sound)
    assert found.sum() == 12
    bad = np.ma.masked_array(np.array([0, 1, 0]), mask=[False, False, True])
    unsound = {"label": bad, place: np.array([1, 1, 1]), "n": np.array([7, 5, 35_000])}
    assert statistic.read(unsound).tolist() == found.tolist()
    beyond = unsound | {"label": np.array([0, 1, 65537])}
    assert statistic.read(beyond).tolist() == found.tolist()


# --- rivals --------------------------------------------------------------------------------------


def with_notes(folder: Path, *, rows: int, broken: bool) -> Path:
    """A file whose column `notes` has, or has not, a text that no reader takes."""
    path = on_disk(table(rows) | {"notes": ["0.5"] * (rows - 1) + ["canary"]}, folder)
    if broken:
        whole = path.read_bytes()
        assert b"canary" in whole
        path.write_bytes(whole.replace(b"canary", b"can\xff\xfey"))
    return path


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_cell_that_was_never_read_decides_between_an_answer_and_a_failure(
    tmp_path: Path, neighbours: str
) -> None:
    for rows in (MANY // 2, 3 * MANY):
        outcomes = []
        for broken in (False, True):
            path = with_notes(tmp_path, rows=rows, broken=broken)
            try:
                dataset = ho.Dataset(path, label="y", score="p", neighbours=neighbours)
            except UnreadableTable:
                assert broken
                continue  # on the custodian's side, before an analyst is there
            session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
            try:
                session.compare(score="notes", epsilon=1)
            except ArgumentError as error:
                outcomes.append(str(error))
                assert str(session.remaining) == "epsilon 1"
            else:
                outcomes.append("answered")
        assert len(set(outcomes)) == 1, (rows, neighbours)


def test_a_declared_rival_of_a_large_file_is_validated_and_compared(tmp_path: Path) -> None:
    columns = table() | {"q": np.linspace(0, 1, 3 * MANY)}
    path = on_disk(columns, tmp_path)
    with pytest.raises(ArgumentError, match="rivals="):
        ho.Dataset(path, label="y", score="p").with_rival("q")
    rows = ho.Dataset(path, label="y", score="p", rivals=["q"])
    answer = ho.Session(rows, budget=ho.Budget(epsilon=1)).compare(score="q", epsilon=1)
    assert -1 <= answer.value <= 1
    on_disk(columns | {"q": np.full(3 * MANY, math.nan)}, tmp_path)
    with pytest.raises(MissingScore, match="'q'"):
        ho.Dataset(path, label="y", score="p", rivals=["q"])
