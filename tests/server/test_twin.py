"""The synthetic twin: the columns, types and declared values of a data set, and no row of it."""

import csv
import inspect
import io
from typing import Any

import pytest

import heldout as ho
from heldout.server import twin
from heldout.server.twin import twin_csv

COLUMNS = {
    "id": "BIGINT",
    "patient": "VARCHAR",
    "age": "INTEGER",
    "sex": "VARCHAR",
    "ward": "VARCHAR",
    "fee": "DECIMAL(10,2)",
    "seen": "TIMESTAMP",
    "day": "DATE",
    "smokes": "BOOLEAN",
    "notes": "STRUCT(a INTEGER)",
    "risk": "DOUBLE",
    "y": "INTEGER",
}
DECLARATION = {
    "label": "y",
    "score": "risk",
    "score_range": [0, 1],
    "row_key": "id",
    "unit": "patient",
    "rows_per_unit": 2,
    "groups": {"sex": ["F", "M"]},
    "features": {"age": [0, 120], "ward": ["north", "south", "east"]},
}


def rows_of(columns: dict[str, str], declaration: dict[str, Any], rows: int = 20) -> list[Any]:
    return list(csv.DictReader(io.StringIO("".join(twin_csv(columns, declaration, rows)))))


def test_the_rows_have_the_columns_and_the_declared_values() -> None:
    rows = rows_of(COLUMNS, DECLARATION)
    assert list(rows[0]) == list(COLUMNS)
    assert [row["id"] for row in rows] == [str(n + 1) for n in range(20)]
    assert [row["patient"] for row in rows[:4]] == ["1", "1", "2", "2"]
    assert {row["sex"] for row in rows} == {"F", "M"}
    assert {row["ward"] for row in rows} == {"north", "south", "east"}
    assert {row["y"] for row in rows} == {"0", "1"}
    assert {row["smokes"] for row in rows} == {"true", "false"}
    assert all(0 <= int(row["age"]) <= 120 for row in rows)
    assert max(int(row["age"]) for row in rows) > 80, "the whole range is used"
    assert all(0 <= float(row["risk"]) <= 1 for row in rows)
    assert {row["notes"] for row in rows} == {""}


def test_a_session_on_the_twin_answers_so_that_code_can_be_tried_out(tmp_path: Any) -> None:
    path = tmp_path / "twin.csv"
    path.write_text("".join(twin_csv(COLUMNS, DECLARATION, 200)), newline="")
    data = ho.Dataset(str(path), label="y", score="risk", row_key="id", groups={"sex": ["F", "M"]})
    assert ho.Session(data, budget=ho.Budget(epsilon="9")).auc(epsilon="4", by="sex").groups["F"]


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({"positive": "yes", "negative": "no"}, {"yes", "no"}),
        ({"positive": "yes"}, {"yes", "not yes"}),
        ({"positive": True}, {"true", "false"}),
        ({"positive": 0}, {"0", "1"}),
        ({"classes": ["a", "b", "c"]}, {"a", "b", "c"}),
    ],
)
def test_labels_are_the_declared_ones(declared: dict[str, Any], wanted: set[str]) -> None:
    rows = rows_of({"y": "VARCHAR"}, {"label": "y", **declared}, 6)
    assert {row["y"] for row in rows} == wanted


def test_two_columns_of_declared_values_are_not_copies_of_each_other() -> None:
    levels = ["a", "b", "c"]
    rows = rows_of({"v": "VARCHAR", "w": "VARCHAR"}, {"groups": {"v": levels, "w": levels}}, 40)
    assert {(row["v"], row["w"]) for row in rows} > {(each, each) for each in levels}


def test_it_is_the_same_each_time_and_draws_nothing() -> None:
    assert list(twin_csv(COLUMNS, DECLARATION)) == list(twin_csv(COLUMNS, DECLARATION))
    assert not {"random", "secrets", "numpy"} & set(vars(twin))
    assert list(inspect.signature(twin_csv).parameters) == ["columns", "declaration", "rows"]


@pytest.mark.parametrize("name", ["a\nb", 'q"', "=1+1", "<b>"])
@pytest.mark.parametrize("value", ["x\r\ny", ","])
def test_awkward_names_and_values_stay_in_their_cells(name: str, value: str) -> None:
    rows = rows_of({name: "VARCHAR", "k": "BIGINT"}, {"groups": {name: [value]}, "row_key": "k"}, 3)
    text = "".join(twin_csv({name: "VARCHAR"}, {"groups": {name: [value]}}, 3))
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [[name], [value], [value], [value]]
    assert [row["k"] for row in rows] == ["1", "2", "3"]
