"""A cell's meaning depends on that cell alone, through every entrance."""

import datetime
import json
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.entrances import COLUMNS, ENTRANCES, Row, check_neighbours, facts, neighbours

import heldout as ho
from heldout.data import sql
from heldout.data.duckdb import open_local
from heldout.data.feature_matrix import FeatureMatrix, Vocabulary
from heldout.errors import ArgumentError, BudgetExceeded, DataError, UnreadableTable
from heldout.models.predictions import join_predictions, read_predictions
from heldout.questions.answers import plain

D = Decimal


def open_rows(name: str, rows: list[Row], place: Path) -> Any:
    source, declared = ENTRANCES[name](rows, place)
    return ho.Dataset(source, **COLUMNS, **declared, neighbours="add-remove")


@pytest.mark.parametrize("name", ENTRANCES)
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_one_person_changes_no_other_row(name: str, tmp_path: Path, data: Any) -> None:
    """Kept rows, keys, groups, labels and the numbers that digests are made of."""
    # Columns of Python objects hold one kind of values; files and typed frames may be of texts.
    texts = name not in ("dict", "pandas")
    drawn = data.draw(neighbours(texts=texts))
    check_neighbours(lambda rows: open_rows(name, rows, tmp_path), drawn)


def of_people(ids: list[Any], **more: Any) -> dict[str, Any]:
    """Two rows a person."""
    count = 2 * len(ids)
    own = {"person": [name for name in ids for _ in "ab"], "visit": list(range(count))}
    return {**own, "y": [0, 1] * len(ids), "p": [0.25] * count, "ward": ["01"] * count, **more}


FRAMES = {
    "dict": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_the_scale_of_one_decimal_moves_nobody_elses_key(frame: Any) -> None:
    ids = [D("101.1") + number for number in range(40)]
    before, after = (
        facts(ho.Dataset(frame(of_people(own)), **(COLUMNS | {"row_key": None})))
        for own in (ids, [*ids, D("9999.10")])
    )
    assert not before - after
    assert "101.1" in {cell for row in before for cell in row}


def test_one_double_among_integers_merges_no_people() -> None:
    ids = [2**53 + number for number in range(8)]
    for more in (17.0, 17.5, D("17.25")):
        table = of_people([*ids, more])
        dataset = ho.Dataset(table, **(COLUMNS | {"row_key": None}))
        assert facts(dataset).total() == 9
        matrix = FeatureMatrix(
            [[1]] * 18, table["y"], unit=table["person"], neighbours="add-remove"
        )
        assert len(matrix._fetch("SELECT * FROM evaluated")["label"]) == 9


@pytest.mark.parametrize(("kind", "first"), [("float32", 2**24), ("float64", 2**53)])
def test_keys_that_a_float_column_may_have_merged_are_refused(kind: str, first: int) -> None:
    """The next whole number is the same float: whose rows count would depend on two people."""
    for last, merged in ((first - 1, False), (first, True), (-first - 1, True)):
        people = np.array([last, 5], dtype=np.int64).astype(kind)
        table = {"y": [0, 1], "p": [0.1, 0.2], "person": people}
        declared: dict[str, Any] = {"label": "y", "score": "p", "unit": "person"}
        if merged:
            with pytest.raises(DataError, match="become one"):
                ho.Dataset(table, **declared)
        else:
            assert ho.Dataset(table, **declared)


def test_a_missing_cell_changes_no_other_group() -> None:
    """pandas makes doubles of integers beside a missing cell."""
    table = of_people([1, 2, 3], ward=[1, 1, 2, 2, 3, 3])
    frames = pd.DataFrame(table), pd.DataFrame(table | {"ward": [1, 1, 2, 2, 3, None]})
    for groups in ([1, 2], ["1", "2"]):
        declared = COLUMNS | {"groups": {"ward": groups}}
        found = [
            ho.Dataset(frame, **declared)
            .with_groups("ward")
            ._fetch("SELECT member, count(*) AS n FROM evaluated GROUP BY 1 ORDER BY 1")
            for frame in frames
        ]
        assert [each["n"].tolist() for each in found] == [[1, 1, 1]] * 2


def test_another_cell_changes_no_group_however_large_the_declared_value() -> None:
    cells, other = [D("1.5"), D(1)], D("0." + "1" * 37)  # no DECIMAL(38,37) is 100
    for own in (cells, [*cells, other]):
        table = of_people([*range(len(own))], ward=[cell for cell in own for _ in "ab"])
        dataset = ho.Dataset(table, **(COLUMNS | {"groups": {"ward": [100]}}))
        found = dataset.with_groups("ward")._fetch("SELECT member FROM evaluated")
        assert set(found["member"].tolist()) == {1}


def test_a_text_cell_of_somebody_else_changes_no_group_of_a_large_number() -> None:
    """One text makes texts of all: as a double, the text of 2^53 + 1 would be 2^53."""
    people, groups = of_people([1, 2, 3]), {"ward": [2**53, 2**53 + 1]}
    for cells in ([2**53 + 1] * 4 + [7] * 2, [str(2**53 + 1)] * 4 + ["x"] * 2):
        dataset = ho.Dataset(people | {"ward": cells}, **(COLUMNS | {"groups": groups}))
        found = dataset.with_groups("ward")._fetch("SELECT member FROM evaluated")
        assert sorted(found["member"].tolist()) == [1, 1, 2]


@pytest.mark.parametrize(("kind", "first"), [("float32", 2**24), ("float64", 2**53)])
def test_a_declared_value_that_floats_may_have_merged_with_another_is_refused(
    kind: str, first: int
) -> None:
    """A missing cell makes floats of all: people of the next whole number would change group."""
    for value, merged in ((first - 1, False), (first, True), (-first - 2, True)):
        cells = np.array([value, 5], dtype=np.int64)
        declared: list[dict[str, Any]] = [
            {"label": "y", "score": "p", "groups": {"ward": [value]}},
            {"label": "y", "score": "p", "groups": {"ward": [str(value)]}},
            {"label": "ward", "score": "p", "positive": value, "negative": 5},
            {"label": "ward", "classes": [value, 5, 6], "prediction": "ward"},
            {"values": {"ward": {str(value): 0, "5": 1}}},
        ]
        for terms in declared:
            table = {"y": [0, 1], "p": [0.1, 0.2], "ward": cells}
            assert ho.Dataset(table, **terms), "integers are what they are"
            if merged:
                with pytest.raises(DataError, match="several whole numbers as one"):
                    ho.Dataset(table | {"ward": cells.astype(kind)}, **terms)
            else:
                assert ho.Dataset(table | {"ward": cells.astype(kind)}, **terms)


def test_a_whole_double_has_its_own_digits_among_wide_integers() -> None:
    texts = []
    for own in ([1e23, 2.5], [1e23, 2**53 + 1]):
        engine = open_local({"x": own})
        text = sql.canonical("x", engine.columns["x"])
        found = engine.fetch(f"SELECT {text} AS text FROM {engine.source} AS held")["text"]
        texts.append(found[0])
    assert texts == [str(int(1e23))] * 2


@pytest.mark.parametrize(
    "cells",
    [
        [1, "Canaria"],
        [True, 1],
        ["a", b"a"],
        [datetime.date(2025, 1, 1), datetime.datetime(2025, 1, 1, 12)],
        [D(1), D(10) ** 40],
    ],
)
@pytest.mark.parametrize("frame", [dict, pd.DataFrame])
def test_values_of_two_kinds_are_refused_without_a_value(frame: Any, cells: list[Any]) -> None:
    with pytest.raises(UnreadableTable, match=r"column 'ward' must hold") as refused:
        open_local(frame({"ward": cells}))
    assert str(cells[1]) not in str(refused.value)


def test_doubles_that_may_be_two_keys_are_refused() -> None:
    table = of_people([1.0, 2.0**53 + 2])
    with pytest.raises(DataError, match="beyond 2\\^53"):
        ho.Dataset(pd.DataFrame(table), **(COLUMNS | {"row_key": None}))


def test_lists_and_records_are_no_keys_groups_or_labels() -> None:
    table = of_people([1, 2], ward=[{"a": 1}] * 4, person=[["a"]] * 4, y=[{"b": 0}] * 4)
    plainly = of_people([1, 2])
    for name in ("ward", "person", "y"):
        with pytest.raises(ArgumentError, match=f"{name!r} must hold numbers, texts"):
            ho.Dataset({**plainly, name: table[name]}, **COLUMNS)


def test_keys_that_draw_alike_are_ordered_alike_in_every_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One more row of another type must not turn the order of integers into that of texts."""
    monkeypatch.setattr(sql, "drawn", lambda unit, number: "0")
    alike = [9, 10]
    table = {"person": [1, 1], "y": [0, 1], "p": [0.5, 0.5], "ward": ["01"] * 2}
    kept = {
        str(next(iter(facts(ho.Dataset({**table, "visit": keys}, **COLUMNS)))))
        for keys in (alike, list(map(str, alike)), [D(key) for key in alike])
    }
    assert len(kept) == 1


def hive(place: Path, *wards: str, tables: tuple[pa.Table, ...] = ()) -> Path:
    for number, ward in enumerate(wards):
        (place / f"ward={ward}").mkdir(parents=True)
        own = {"person": [number], "visit": [number], "y": [1], "p": [0.5]}
        table = tables[number] if tables else pa.table(own)
        pq.write_table(table, place / f"ward={ward}" / "a.parquet")
    return place


def test_one_folder_decides_the_type_of_no_partition(tmp_path: Path) -> None:
    numbers, mixed = hive(tmp_path / "a", "01", "02"), hive(tmp_path / "b", "01", "02", "x")
    for groups in (["01", "02"], [1, 2]):
        declared = COLUMNS | {"groups": {"ward": groups}}
        for place in (numbers, mixed):
            for source in (place, place.as_uri()):
                counts = (
                    ho.Dataset(source, **declared)
                    .with_groups("ward")
                    ._fetch("SELECT count(*) FILTER (member < 2) AS n FROM evaluated")
                )
                assert counts["n"][0] == 2
    guessed = pyarrow.dataset.dataset(numbers, partitioning="hive")
    with pytest.raises(ArgumentError, match="partition 'ward' must be a text"):
        ho.Dataset(guessed, **COLUMNS)


def test_the_files_at_an_address_must_have_the_same_columns(tmp_path: Path) -> None:
    first = pa.table({"person": [1], "visit": [1], "y": [1], "p": [0.5]})
    second = first.set_column(0, "person", pa.array([1.0]))
    place = hive(tmp_path / "a", "01", "02", tables=(first, second))
    declared = pyarrow.dataset.partitioning(pa.schema([("ward", pa.string())]), flavor="hive")
    for source in (place, place.as_uri(), pyarrow.dataset.dataset(place, partitioning=declared)):
        with pytest.raises(UnreadableTable, match="same columns, of the same types"):
            ho.Dataset(source, **COLUMNS)
    (place / "a.parquet").write_bytes((place / "ward=01" / "a.parquet").read_bytes())
    for source in (place, place.as_uri()):
        with pytest.raises(UnreadableTable, match="same"):
            ho.Dataset(source, **COLUMNS)


def test_a_description_shows_declared_columns_and_nothing_that_a_row_can_change() -> None:
    table = of_people([1, 2])
    secret = {"note": [{"Canaria": 1}] * 4, "income": [D("1"), D("1234567.89")] * 2}
    shown = set()
    for more in ({}, secret, {"income": [1, None, 2, 3]}):
        for ids in ([1, 1, 2, 2], [1, 1, 2.5, 2.5], [D("1.25")] * 2 + [D(2)] * 2):
            about = ho.Dataset({**table, **more, "person": ids}, **COLUMNS).description
            shown.add(json.dumps([dict(about.columns), about.as_dict()]))
            assert "STRUCT" not in json.dumps(plain(about))
    assert len(shown) == 1
    assert json.loads(shown.pop())[0] == {
        "y": "number", "p": "number", "person": "key", "visit": "key", "ward": "text",
    }  # fmt: skip
    numbers = ho.regression.RegressionTable(table, observed="p", predicted="y").description
    assert dict(numbers.columns) == {"p": "number", "y": "number"}


BEFORE = {
    "5efbbac2f353bfa478741bb562a10a145ee71140b1447fb364a8ba3395dda416": (
        [D("101.1"), D("9999.10"), D("7")]
    ),
    "1c3547e19b6e7f6d9dceeba9a2eed588c165ae79362f6e657fb57ae5de869978": ["101.10", "7.0", "a"],
    "e6a747a649afd2592bc7abb595d7842447bbdf1a251878fa0ea2d02b398d588e": [101.1, 1e-7, 7.0],
}
"""Digests that were written into ledgers when the scale of a key counted."""


@pytest.mark.parametrize(("digest", "keys"), BEFORE.items(), ids=["decimals", "texts", "doubles"])
def test_an_account_of_an_earlier_version_is_still_that_of_its_rows(
    digest: str, keys: list[Any], tmp_path: Path
) -> None:
    table = {"y": [1, 0, 1], "p": [0.5, 0.25, 0.75], "id": keys}
    dataset = ho.Dataset(table, label="y", score="p", row_key="id")
    budget = ho.Budget(epsilon=1)
    with ho.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        old = ledger.account(
            bytes.fromhex(digest), budget=budget, protection=dataset.protection, name="data"
        )
        unspent = ledger.standing(old)[1]
        ho.Session(dataset, budget=budget, ledger=ledger).confusion(epsilon=1)
        assert ledger.standing(old)[1] != unspent
        # By now the new digest leads there too: of the same rows stored in another way.
        other = [str(key) if isinstance(key, D) else key for key in keys]
        again = ho.Dataset({**table, "id": other}, label="y", score="p", row_key="id")
        with pytest.raises(BudgetExceeded):
            ho.Session(again, budget=budget, ledger=ledger).confusion(epsilon="0.001")


def test_rows_stored_with_another_scale_have_one_digest() -> None:
    keys = [D("101.1"), D("9999.1"), D("7")]
    table = {"y": [1, 0, 1], "p": [0.5, 0.25, 0.75]}
    ways = (
        pa.array(keys, pa.decimal128(9, 1)),
        pa.array(keys, pa.decimal128(30, 6)),
        pa.array([101.1, 9999.1, 7.0]),
        pa.array(["101.1", "9999.10", "7.000"]),
        keys,
    )
    digests = {
        ho.Dataset({**table, "id": way}, label="y", score="p", row_key="id")._fingerprint
        for way in ways
    }
    assert len(digests) == 1


def test_predictions_find_their_rows_whatever_the_scale_of_another_key(tmp_path: Path) -> None:
    (tmp_path / "sent.csv").write_text("key,score\n101.1,0.9\n7,0.8\n0.0000001,0.7\n")
    sent = read_predictions(tmp_path / "sent.csv", out=tmp_path / "sent.parquet", isolation="none")
    keys = [D("101.1"), D("7"), D("0.0000001")]
    for own in (keys, [*keys, D("9999.1000000000")], [101.1, 7.0, 1e-7]):
        joined = join_predictions(sent.path, {"id": own}, row_key="id", lowest=0.0)
        assert joined.to_arrow()["score"].to_pylist()[:3] == [0.9, 0.8, 0.7]


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=60)
def test_a_double_is_written_as_the_decimal_that_it_is(number: float) -> None:
    engine = open_local({"x": np.array([number])})
    expression = sql.canonical("x", "DOUBLE")
    found = engine.fetch(f"SELECT {expression} AS text FROM {engine.source} AS held")["text"][0]
    assert float(found) == number
    if abs(number) < 1e38:
        whole = number == int(number)
        assert found == (str(int(number)) if whole else f"{D(repr(number)).normalize():f}")


# --- what one more cell must not change ----------------------------------------------------------

ZONED = datetime.datetime(2020, 1, 1, 5, tzinfo=datetime.UTC)


def _by_objects(cells: list[Any]) -> Any:
    categories = pd.Index(cells, dtype=object)
    return pd.Categorical.from_codes(range(len(cells)), categories=categories)


@pytest.mark.parametrize("holder", [list, deque, _by_objects])
@pytest.mark.parametrize(
    ("cells", "other"),
    [
        (
            [datetime.datetime(2020, 1, 1, 5), datetime.datetime(2020, 1, 1, 6)],
            datetime.date(2020, 1, 1),
        ),
        ([datetime.datetime(2020, 1, 1, 5), datetime.datetime(2020, 1, 1, 6)], ZONED),
        (["a", "b"], b"c"),
    ],
)
def test_a_cell_of_another_kind_is_refused_in_whatever_holds_the_cells(
    holder: Any, cells: list[Any], other: Any
) -> None:
    rows: dict[str, Any] = {"y": [0, 1], "p": [0.5, 0.5], "key": holder(cells)}
    ho.Dataset(rows, label="y", score="p", row_key="key")
    for several in ([other, *cells], [*cells, other]):
        more: dict[str, Any] = {"y": [0, 1, 1], "p": [0.5] * 3, "key": holder(several)}
        for table in (more, pd.DataFrame(more)):
            with pytest.raises(UnreadableTable):
                ho.Dataset(table, label="y", score="p", row_key="key")


def test_a_double_is_no_declared_integer_that_doubles_cannot_hold() -> None:
    for one_more in (1, 0.5, D("0.5")):
        rows = {"y": [0, 1], "p": [0.5, 0.5], "g": [2**53, one_more]}
        dataset = ho.Dataset(rows, label="y", score="p", groups={"g": [str(2**53 + 1), str(2**60)]})
        member = dataset.with_groups("g")._fetch("SELECT member FROM evaluated")["member"]
        assert member.tolist() == [2, 2]


def test_a_whole_double_keeps_its_digits_beside_a_decimal() -> None:
    texts = set()
    for cells in ([1e23, 2.5], [1e23, D("2.5")]):
        dataset = ho.Dataset({"y": [0, 1], "p": [0.5] * 2, "x": cells}, label="y", score="p")
        text = sql.canonical("x", dataset._types["x"])
        asked = f"SELECT {text} AS x FROM {dataset._engine.source} AS held"
        texts.add(dataset._engine.fetch(asked)["x"][0])
    assert texts == {str(int(1e23))}


@pytest.mark.parametrize("one_more", [12, 2.5, None, D("2.5")])
def test_the_words_of_a_number_do_not_depend_on_other_rows(one_more: Any) -> None:
    column = [10, 11, one_more]
    for cells in (column, pd.Series(column)):
        rows = pd.DataFrame({"y": [0, 1, 0], "text": cells})
        matrix = FeatureMatrix.from_table(
            rows, label="y", text="text", space=Vocabulary(["10", "11", "0"]), features_per_row=3
        )
        expression = matrix._exposed_columns["words"]
        asked = f"SELECT {expression} AS words FROM {matrix._engine.source} AS held"
        words = matrix._engine.fetch(asked)["words"]
        assert words.tolist()[:2] == ["10", "11"]
