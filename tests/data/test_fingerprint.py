"""One data set has one budget, however it is named, ordered, declared or stored."""

import datetime
import functools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.data import validation
from heldout.errors import BudgetExceeded, BudgetMismatch, MissingDependency

TABLE: dict[str, Any] = {
    "visit": [11, 12, 13, 14, 15, 16],
    "patient": ["a", "a", "b", "c", "c", "c"],
    "y": [1, 0, 1, 1, 0, 0],
    "died": [0, 0, 0, 1, 0, 1],
    "p": [0.9, 0.2, 0.4, 0.6, 0.6, 0.125],
    "q": [0.1, 0.3, 0.5, 0.7, 0.2, 0.5],
    "note": ["x", None, "3", "true", "", "é"],
}


def fingerprint(table: dict[str, Any], **options: Any) -> bytes:
    return ho.Dataset(table, **({"label": "y", "score": "p"} | options))._fingerprint


@functools.cache
def of_table(**keys: str) -> bytes:
    return fingerprint(TABLE, **keys)


def with_cell(column: str, row: int, value: object) -> dict[str, Any]:
    return TABLE | {column: [*TABLE[column][:row], value, *TABLE[column][row + 1 :]]}


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows in another order": ({name: column[::-1] for name, column in TABLE.items()}, {}),
    "columns in another order": (dict(reversed(TABLE.items())), {}),
    "columns with other names": (
        {f"{name}_renamed": column for name, column in TABLE.items()},
        {"label": "y_renamed", "score": "p_renamed"},
    ),
    "the other class called positive": (TABLE, {"positive": 0}),
    "another score": (TABLE, {"score": "q"}),
    "another outcome": (TABLE, {"label": "died"}),
    "another name": (TABLE, {"name": "not the same at all"}),
    "another range": (TABLE, {"score_range": (-1, 2)}),
    "labels as bools": (TABLE | {"y": [bool(each) for each in TABLE["y"]]}, {"positive": True}),
    "labels as doubles": (TABLE | {"y": [float(each) for each in TABLE["y"]]}, {}),
    "labels as text": (TABLE | {"y": [str(each) for each in TABLE["y"]]}, {}),
    "small integers": (TABLE | {"y": np.array(TABLE["y"], dtype=np.int8)}, {}),
}


@pytest.mark.parametrize("keys", [{}, {"row_key": "visit"}, {"unit": "patient"}], ids=str)
@pytest.mark.parametrize(("table", "options"), SAME.values(), ids=SAME)
def test_the_same_rows_have_the_same_fingerprint(
    table: dict[str, Any], options: dict[str, Any], keys: dict[str, str]
) -> None:
    renamed = {role: name if name in table else f"{name}_renamed" for role, name in keys.items()}
    assert fingerprint(table, **options, **renamed) == of_table(**keys)


@pytest.mark.parametrize("column", TABLE)
def test_one_changed_cell_is_other_data(column: str) -> None:
    for row in range(6):
        old = TABLE[column][row]
        if column in ("y", "died"):
            new: object = 1 - old
        elif isinstance(old, str) or old is None:
            new = "something else"
        else:
            new = old + 2 if column == "visit" else old / 2
        assert fingerprint(with_cell(column, row, new)) != of_table()


def test_an_empty_cell_is_not_another_empty_cell() -> None:
    assert fingerprint(with_cell("note", 0, None)) != of_table()
    assert fingerprint(with_cell("note", 1, "")) != of_table()


def test_a_copied_row_is_other_data() -> None:
    """Two copies cancel in an exclusive or: the sum beside it counts them."""
    doubled = {name: [*column, column[0], column[0]] for name, column in TABLE.items()}
    fourfold = {name: [*column, *[column[0]] * 4] for name, column in TABLE.items()}
    seen = {fingerprint(each) for each in (TABLE, doubled, fourfold)}
    assert len(seen) == 3


@pytest.mark.parametrize("keys", [{"row_key": "visit"}, {"unit": "patient"}], ids=str)
def test_with_keys_scores_and_labels_do_not_matter(keys: dict[str, str]) -> None:
    for column, value in (("p", 0.33), ("y", 0), ("q", 0.77), ("note", "new")):
        assert fingerprint(with_cell(column, 0, value), **keys) == of_table(**keys)
    assert fingerprint(TABLE | {"model_c": [0.5] * 6}, **keys) == of_table(**keys)


def test_with_keys_another_key_is_other_data() -> None:
    assert fingerprint(with_cell("visit", 0, 99), row_key="visit") != fingerprint(
        TABLE, row_key="visit"
    )
    assert fingerprint(with_cell("patient", 0, "z"), unit="patient") != fingerprint(
        TABLE, unit="patient"
    )


def test_what_is_missing_and_what_is_not_a_number_are_the_same_cell() -> None:
    numbers = pa.array([0.5, None, 2.0, None, 1.0, 3.0])
    as_nan = numbers.fill_null(float("nan"))
    as_text = pa.array(["0.5", "nan", "2.0", None, "1.0", "3"])
    seen = {fingerprint(TABLE | {"extra": each}) for each in (numbers, as_nan, as_text)}
    assert len(seen) == 1


def test_a_long_integer_key_is_the_same_in_any_type() -> None:
    longest = [2**63 - 1, -(2**63), 1234567890123456789, 10**18, -(10**18), 7]
    keys = pa.array(longest, pa.int64())
    seen = {
        fingerprint(TABLE | {"visit": each}, row_key="visit")
        for each in (keys, keys.cast(pa.string()), keys.cast(pa.decimal128(19, 0)))
    }
    assert len(seen) == 1
    beyond = [2**63, 2**64 - 1, 10**19, 5, 6, 7]
    first, second = pa.array(beyond, pa.uint64()), pa.array([str(each) for each in beyond])
    assert fingerprint(TABLE | {"visit": first}, row_key="visit") == fingerprint(
        TABLE | {"visit": second}, row_key="visit"
    )


def test_no_way_to_declare_the_same_rows_gets_a_second_budget(tmp_path: Any) -> None:
    ledger = tmp_path / "ledger.sqlite"
    budget = ho.Budget(epsilon=1)
    first = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=budget, ledger=ledger)
    first.confusion(epsilon=1)
    for table, options in SAME.values():
        dataset = ho.Dataset(table, **({"label": "y", "score": "p"} | options))
        again = ho.Session(dataset, budget=budget, ledger=ledger)
        with pytest.raises(BudgetExceeded):
            again.confusion(epsilon="0.001")
    with pytest.raises(BudgetMismatch):
        ho.Session(
            ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=2), ledger=ledger
        )
    other = ho.Dataset(TABLE, label="y", score="p", neighbours="add-remove")
    with pytest.raises(BudgetMismatch):
        ho.Session(other, budget=budget, ledger=ledger)


def test_an_engine_that_hashes_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB may change hash(): known rows would look new and get a second budget."""
    fingerprint(TABLE)
    monkeypatch.setattr(validation, "HASHES_KNOWN", (1, 2, 3, 4))
    with pytest.raises(MissingDependency, match="duckdb"):
        fingerprint(TABLE)


def test_the_fingerprint_stays_what_it_was_when_ledgers_were_written() -> None:
    """If this fails, every ledger in use forgets its rows: keep the old function instead."""
    assert fingerprint(TABLE).hex()[:16] == "4d09c92b36c4ad2a"
    assert fingerprint(TABLE, row_key="visit").hex()[:16] == "5b9729900c22c210"
    assert fingerprint(TABLE, unit="patient").hex()[:16] == "834ad86318544830"


def test_each_key_has_a_digest_of_its_own() -> None:
    """Rows that were known by their unit are known when a row key is named as well."""
    both = ho.Dataset(TABLE, label="y", score="p", unit="patient", row_key="visit")._fingerprints
    assert both[:2] == (of_table(row_key="visit"), of_table(unit="patient"))
    assert both[2] == of_table()


@pytest.mark.parametrize(
    "visits",
    [
        [float(each) for each in TABLE["visit"]],
        [str(each) for each in TABLE["visit"]],
        [f"{each}.0" for each in TABLE["visit"]],
        [f"0{each}" for each in TABLE["visit"]],
        np.array(TABLE["visit"], dtype=np.uint64),
        np.array(TABLE["visit"], dtype=np.int16),
    ],
    ids=["double", "text", "text of a double", "with a zero in front", "unsigned", "short"],
)
def test_a_key_is_the_same_whatever_its_type(visits: Any) -> None:
    assert fingerprint(TABLE | {"visit": visits}, row_key="visit") == of_table(row_key="visit")


def test_naming_a_key_later_finds_the_budget_again_and_then_new_scores_find_it_too(
    tmp_path: Any,
) -> None:
    budget, ledger = ho.Budget(epsilon=1), tmp_path / "ledger.sqlite"
    first = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=budget, ledger=ledger)
    first.confusion(epsilon=1)
    for table in (TABLE, TABLE | {"p": [0.5] * 6}, TABLE | {"model_c": [0.5] * 6}):
        keyed = ho.Dataset(table, label="y", score="p", row_key="visit")
        with pytest.raises(BudgetExceeded):
            ho.Session(keyed, budget=budget, ledger=ledger).confusion(epsilon="0.001")


MOMENTS = [datetime.datetime(2025, 11, 2, 5, 30 * half, tzinfo=datetime.UTC) for half in (0, 1)]
MOMENTS += [moment + datetime.timedelta(hours=hour) for hour in (1, 2) for moment in MOMENTS]


def test_a_moment_is_the_same_key_with_and_without_its_zone() -> None:
    """Engines print +00, or the time in the zone of the session, or no zone at all."""
    aware = pa.array(MOMENTS, pa.timestamp("us", "America/New_York"))
    naive = [moment.replace(tzinfo=None) for moment in MOMENTS]
    texts = [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in MOMENTS]
    for key in ("row_key", "unit"):
        seen = {fingerprint(TABLE | {"t": each}, **{key: "t"}) for each in (aware, naive, texts)}
        assert len(seen) == 1


def test_the_zone_of_the_machine_gives_no_second_budget(tmp_path: Any) -> None:
    """A column of moments, of whatever use, was printed in the machine's own zone."""
    pq.write_table(pa.table(TABLE | {"seen": MOMENTS}), tmp_path / "rows.parquet")
    program = (
        "import sys, heldout as ho\n"
        "rows = ho.Dataset(sys.argv[1], label='y', score='p', row_key='seen')\n"
        "print(*(each.hex() for each in rows._fingerprints))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "rows.parquet")],
            env=os.environ | {"TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for zone in ("UTC", "America/New_York")
    }
    assert len(seen) == 1
