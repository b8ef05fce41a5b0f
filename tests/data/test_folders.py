"""Folders, patterns, hive partitions and Arrow data sets are one table, or are refused in words."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.errors import ArgumentError, MissingDependency, UnreadableTable

GENERATOR = np.random.default_rng(2)
TABLE = pa.table(
    {
        "person": GENERATOR.integers(0, 60, 300),
        "visit": np.arange(300),
        "y": GENERATOR.integers(0, 2, 300),
        "p": GENERATOR.random(300),
        "ward": [f"w{each % 3}" for each in range(300)],
    }
)
PLAIN = TABLE.drop(["ward"])
SUMS = "SELECT sum(label) AS y, sum(score) AS p, count(*) AS n FROM evaluated"
PEOPLE: dict[str, Any] = {"unit": "person", "row_key": "visit", "rows_per_unit": 2}


def sums(rows: Any, **declared: Any) -> list[float]:
    found = ho.Dataset(rows, label="y", score="p", **declared)._fetch(SUMS)
    return [round(float(each[0]), 9) for each in found.values()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "rows"
    (place / "deeper").mkdir(parents=True)
    pq.write_table(PLAIN.slice(0, 100), place / "a.parquet")
    pq.write_table(PLAIN.slice(100, 150), place / "b.parquet", row_group_size=20)
    pq.write_table(PLAIN.slice(250, 50), place / "deeper" / "c.parquet")
    (place / "_SUCCESS").touch()
    return place


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    written = pyarrow.dataset.partitioning(pa.schema([("ward", pa.string())]), flavor="hive")
    place = tmp_path / "hive"
    pyarrow.dataset.write_dataset(TABLE, place, format="parquet", partitioning=written)
    return place


@pytest.mark.parametrize("declared", [{}, PEOPLE])
def test_a_folder_and_a_pattern_are_the_table_in_one_file(
    folder: Path, declared: dict[str, Any]
) -> None:
    expected = sums(PLAIN, **declared)
    assert sums(folder, **declared) == expected
    assert sums(str(folder / "**" / "*.parquet"), **declared) == expected
    assert sums(folder / "[ab].parquet") == sums(PLAIN.slice(0, 250))
    one, many = (ho.Dataset(each, label="y", score="p") for each in (PLAIN, folder))
    assert one._fingerprints == many._fingerprints


@pytest.mark.parametrize("declared", [{}, PEOPLE])
def test_a_hive_partition_is_a_column_of_texts(hive: Path, declared: dict[str, Any]) -> None:
    groups = {"ward": ["w0", "w1"]}
    expected = ho.Dataset(TABLE, label="y", score="p", groups=groups, **declared)
    found = ho.Dataset(hive, label="y", score="p", groups=groups, **declared)
    assert found._types["ward"] == "VARCHAR"
    body = "SELECT member, count(*) AS n, sum(label) AS y FROM evaluated GROUP BY 1 ORDER BY 1"
    counts = [each.with_groups("ward")._fetch(body) for each in (expected, found)]
    assert [each.tolist() for each in counts[0].values()] == [
        each.tolist() for each in counts[1].values()
    ]


@pytest.mark.parametrize("declared", [{}, PEOPLE])
def test_arrow_reads_an_address_and_a_data_set(
    hive: Path, folder: Path, declared: dict[str, Any]
) -> None:
    assert sums(f"file://{folder}", **declared) == sums(PLAIN, **declared)
    assert sums(f"file://{folder}/a.parquet", **declared) == sums(PLAIN.slice(0, 100), **declared)
    held = pyarrow.dataset.dataset(hive, partitioning="hive")
    assert sums(held, **declared) == sums(TABLE, **declared)
    dataset = ho.Dataset(held, label="y", score="p", groups={"ward": ["w1"]}, **declared)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=3))
    assert set(session.confusion(epsilon=1, by="ward").groups) == {"w1", "other"}
    assert 0 <= float(session.auc(epsilon=1)) <= 1


def test_rows_without_an_order_need_a_row_key(folder: Path) -> None:
    with pytest.raises(ArgumentError, match="row_key"):
        sums(f"file://{folder}", unit="person")


@pytest.mark.parametrize("kind", ["folder", "address"])
@pytest.mark.parametrize("change", ["more", "fewer", "another"])
def test_a_file_more_or_less_or_changed_is_a_change(folder: Path, kind: str, change: str) -> None:
    place = folder if kind == "folder" else f"file://{folder}"
    session = ho.Session(ho.Dataset(place, label="y", score="p"), budget=ho.Budget(epsilon=1))
    if change == "more":
        if kind == "address":
            return  # Arrow listed the files when it was opened: another one is not read
        pq.write_table(PLAIN, folder / "d.parquet")
    elif change == "fewer":
        (folder / "b.parquet").unlink()
    else:
        pq.write_table(PLAIN.slice(0, 99), folder / "a.parquet")
        os.utime(folder / "a.parquet", ns=(10**18, 10**18))
    with pytest.raises(UnreadableTable):
        session.confusion(epsilon=1)
    assert session.remaining == ho.Loss.pure(1)


@pytest.mark.parametrize("more", [PLAIN.drop(["visit"]), TABLE, PLAIN.cast(pa.schema(
    [each.with_type(pa.float32()) if each.name == "p" else each for each in PLAIN.schema]
))])  # fmt: skip
def test_files_with_other_columns_are_refused(folder: Path, more: pa.Table) -> None:
    pq.write_table(more, folder / "d.parquet")
    with pytest.raises(UnreadableTable, match="same columns"):
        sums(folder)


@pytest.mark.parametrize(
    ("inside", "word"), [("_delta_log", "Delta"), ("metadata/v1.metadata.json", "Iceberg")]
)
def test_a_table_whose_files_hold_deleted_rows_is_refused(
    folder: Path, inside: str, word: str
) -> None:
    (folder / inside).parent.mkdir(exist_ok=True)
    (folder / inside).mkdir() if "." not in inside else (folder / inside).touch()
    with pytest.raises(ArgumentError, match=f"{word} table"):
        sums(folder)


def test_what_is_no_table_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n")
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(UnreadableTable, match=r"No \.parquet file"):
            sums(place)
    with pytest.raises(ArgumentError, match="pattern"):
        sums(tmp_path / "*.csv")
    with pytest.raises(MissingDependency, match="address"):
        sums("nowhere://bucket/rows")
    with pytest.raises(ArgumentError, match="made of files"):
        sums(pyarrow.dataset.dataset(PLAIN))


def test_a_file_whose_name_looks_like_a_pattern_is_read_once(tmp_path: Path) -> None:
    """Read twice, one person's row would count for two."""
    for name in ("?.parquet", "*.parquet", "[ab].parquet"):
        pq.write_table(pa.table({"y": [0, 1], "p": [0.1, 0.2]}), tmp_path / name)
    assert ho.Dataset(tmp_path, label="y", score="p").public_rows == 6


@pytest.mark.parametrize("pattern", ["**/**/*.parquet", "**/deeper/**/*.parquet", "**/*.parquet"])
def test_a_file_that_a_pattern_finds_in_several_ways_is_read_once(
    folder: Path, pattern: str
) -> None:
    rows = 50 if "deeper" in pattern else 300
    assert ho.Dataset(folder / pattern, label="y", score="p").public_rows == rows


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_file_with_two_names_is_refused(folder: Path, link: str) -> None:
    getattr(folder / "deeper" / "again.parquet", link)(folder / "a.parquet")
    for place in (folder, folder / "**" / "*.parquet"):
        with pytest.raises(UnreadableTable, match="rows would count twice"):
            ho.Dataset(place, label="y", score="p")


@pytest.mark.parametrize("pattern", ["", "*/*.parquet", "ward=[ab]/1.parquet", "**/*.parquet"])
def test_a_folder_that_cannot_be_listed_is_refused_and_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """Its files are rows too: without them somebody would be missing without a word."""
    for ward in "ab":
        place = tmp_path / f"ward={ward}"
        place.mkdir()
        pq.write_table(pa.table({"y": [0, 1], "p": [0.25, 0.75]}), place / "1.parquet")
    assert ho.Dataset(tmp_path / pattern, label="y", score="p").description.rows == 4
    scandir = os.scandir

    def forbidden(place: Any) -> Any:
        if Path(place).name == "ward=b":
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", forbidden)
    if "[" in pattern:  # which names one file in each folder, and lists none
        assert ho.Dataset(tmp_path / pattern, label="y", score="p").description.rows == 4
    else:
        with pytest.raises(UnreadableTable):
            ho.Dataset(tmp_path / pattern, label="y", score="p")
