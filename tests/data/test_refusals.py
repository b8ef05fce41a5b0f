"""Bad data is refused when the Dataset is made: one typed line, no private value, nothing charged.

Each bad table has a canary in its rows. Whatever is raised, the canary must not be in the message,
in the errors behind it, or in the printed traceback.
"""

import math
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout import errors
from heldout.data.duckdb import DuckDBEngine

CANARY = 0.8675309
CANARIES = ("8675309", "Canaria")
NAN, INF = math.nan, math.inf


def table(**columns: Any) -> dict[str, Any]:
    return {"y": [1, 0, 1], "p": [0.5, CANARY, 0.25], "name": ["x", "Canaria", "z"]} | columns


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and all that stand behind it, shown or suppressed."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in found:
            found.append(each)
            waiting += [each.__cause__, each.__context__]
    return found


def check_is_silent(error: BaseException) -> None:
    shown = "".join(traceback.format_exception(error))
    shown += "".join(f"{each!r} {each} {each.args}" for each in chain(error))
    for canary in CANARIES:
        assert canary not in shown
    assert "\n" not in str(error), "one line"
    assert str(error).endswith(".")


BAD: dict[str, tuple[Any, dict[str, Any], type[errors.HeldoutError]]] = {
    "no such label": (table(), {"label": "z"}, errors.MissingColumn),
    "no such score": (table(), {"score": "z"}, errors.MissingColumn),
    "no such unit": (table(), {"unit": "z"}, errors.MissingColumn),
    "no such row key": (table(), {"row_key": "z"}, errors.MissingColumn),
    "case counts": (table(), {"label": "Y"}, errors.MissingColumn),
    "NULL label": (table(y=[1, None, 0]), {}, errors.MissingLabel),
    "NaN label": (pa.table(table(y=[1.0, NAN, 0.0])), {}, errors.UnknownLabel),
    "third label": (table(y=[1, 8675309, 0]), {}, errors.UnknownLabel),
    "text label": (table(y=["1", "Canaria", "0"]), {}, errors.UnknownLabel),
    "spaces are text": (
        table(y=["yes", "yes ", "no"]),
        {"positive": "yes", "negative": "no"},
        errors.UnknownLabel,
    ),
    "NULL score": (table(p=[0.5, None, CANARY]), {}, errors.MissingScore),
    "NaN score": (pa.table(table(p=[0.5, NAN, CANARY])), {}, errors.MissingScore),
    "pandas NaN": (pd.DataFrame(table(p=[0.5, NAN, CANARY])), {}, errors.MissingScore),
    "text score": (table(p=["0.5", "Canaria", "1"]), {}, errors.MissingScore),
    "list score": (table(p=[[0.5], [CANARY], [1.0]]), {}, errors.MissingScore),
    "infinite score": (table(p=[0.5, INF, CANARY]), {}, errors.InfiniteScore),
    "minus infinite score": (table(p=[0.5, -INF, CANARY]), {}, errors.InfiniteScore),
    "infinite text": (table(p=["0.5", "inf", "1"]), {}, errors.InfiniteScore),
    "score above": (table(p=[0.5, 1 + CANARY, 1]), {}, errors.ScoreOutOfRange),
    "score below": (table(p=[0.5, -CANARY, 1]), {}, errors.ScoreOutOfRange),
    "just above": (table(p=[0.5, np.nextafter(1, 2), 1]), {}, errors.ScoreOutOfRange),
    "smallest below": (table(p=[0.5, -5e-324, 1]), {}, errors.ScoreOutOfRange),
    "declared range": (table(), {"score_range": (0, 0.75)}, errors.ScoreOutOfRange),
    "no rows": ({"y": pa.array([], "int64"), "p": pa.array([], "float64")}, {}, errors.EmptyTable),
    "no columns": ({}, {}, errors.UnreadableTable),
    "NULL unit": (table(u=[1, None, 8675309]), {"unit": "u"}, errors.MissingUnit),
    "NaN unit": (table(u=[1.0, math.nan, 8675309.0]), {"unit": "u"}, errors.MissingUnit),
    "NaN row key": (table(u=[1.0, math.nan, 8675309.0]), {"row_key": "u"}, errors.MissingUnit),
    "NaN row key, short": (
        table(u=pa.array([1.0, math.nan, 2.0], pa.float32())),
        {"row_key": "u", "unit": "y"},
        errors.MissingUnit,
    ),
    "NULL row key": (table(u=[1, None, 8675309]), {"row_key": "u"}, errors.MissingUnit),
    "copied row key": (table(u=[8675309, 8675309, 2]), {"row_key": "u"}, errors.DuplicateRowKey),
    "columns of unlike length": (table(y=[1, 0]), {}, errors.UnreadableTable),
    "mixed column": (table(p=[0.5, "Canaria", {}]), {}, errors.UnreadableTable),
    "number that does not fit": (table(y=[1, 0, 8675309 * 10**40]), {}, errors.UnreadableTable),
    "no table": (8675309, {}, errors.ArgumentError),
    "one array": (np.array([CANARY]), {}, errors.ArgumentError),
    "unlike two arrays": ([[1, 0], [CANARY, 0.5]], {}, errors.ArgumentError),
}


@pytest.mark.parametrize(("rows", "options", "error"), BAD.values(), ids=BAD)
def test_a_bad_table_is_refused_with_its_own_error_and_no_private_value(
    rows: Any, options: dict[str, Any], error: type[errors.HeldoutError]
) -> None:
    with pytest.raises(errors.HeldoutError) as caught:
        ho.Dataset(rows, **({"label": "y", "score": "p"} | options))
    assert type(caught.value) is error
    check_is_silent(caught.value)


def truncated(path: Path) -> None:
    pq.write_table(pa.table(table()), path)
    path.write_bytes(path.read_bytes()[:-40])


def spoilt(path: Path) -> None:
    """A footer that is whole and pages that are not."""
    rows = {"y": [1, 0] * 5000, "p": np.random.default_rng(1).random(10_000)}
    pq.write_table(pa.table(rows), path, compression="snappy", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[2000:60_000] = bytes(58_000)
    path.write_bytes(content)


def written(text: str | bytes) -> Callable[[Path], None]:
    content = text if isinstance(text, bytes) else text.encode()
    return lambda path: path.write_bytes(content) and None


BAD_FILES: dict[str, tuple[str, Callable[[Path], None], type[errors.HeldoutError]]] = {
    "truncated": ("a.parquet", truncated, errors.UnreadableTable),
    "spoilt": ("a.parquet", spoilt, errors.UnreadableTable),
    "not Parquet": ("a.parquet", written(f"y,p\n1,{CANARY}\n"), errors.UnreadableTable),
    "empty Parquet": ("a.parquet", written(""), errors.UnreadableTable),
    "empty CSV": ("a.csv", written(""), errors.EmptyTable),
    "header alone": ("a.csv", written("y,p\n"), errors.EmptyTable),
    "ragged, short": ("a.csv", written(f"y,p\n1,0.5\n0\n1,{CANARY}\n"), errors.UnreadableTable),
    "ragged, long": ("a.csv", written(f"y,p\n1,0.5\n0,1,{CANARY}\n"), errors.UnreadableTable),
    "ragged at the end": (
        "a.csv",
        written("y,p,name\n" + "1,0.5,a\n" * 5000 + "0,0.5,Canaria,1\n"),
        errors.UnreadableTable,
    ),
    "open quote": ("a.csv", written('y,p\n1,"0.5\n0,0.8675309\n'), errors.UnreadableTable),
    "copied name": ("a.csv", written(f"y,p,p\n1,0.5,{CANARY}\n"), errors.UnreadableTable),
    "no header": ("a.csv", written(f"1,{CANARY}\n0,Canaria\n"), errors.MissingColumn),
    "Latin letters": ("a.csv", written(b"y,p\n1,0.5\n0,\xe9Canaria\n"), errors.UnreadableTable),
    "Latin header": ("a.csv", written(b"y,p,\xe9Canaria\n1,0.5,2\n"), errors.UnreadableTable),
    "zeros": ("a.csv", written(b"\0" * 100), errors.UnreadableTable),
    "blank score": ("a.csv", written(f"y,p\n1,{CANARY}\n0,\n"), errors.MissingScore),
    "blank label": ("a.csv", written(f"y,p\n1,{CANARY}\n,0.5\n"), errors.MissingLabel),
    "other ending": ("a.xlsx", written("Canaria"), errors.ArgumentError),
    "no ending": ("a", written("Canaria"), errors.ArgumentError),
    "tabs in a CSV": ("a.csv", written(f"y\tp\n1\t{CANARY}\n"), errors.MissingColumn),
}


@pytest.mark.parametrize(("name", "write", "error"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_with_its_own_error_and_no_private_value(
    name: str, write: Callable[[Path], None], error: type[errors.HeldoutError], tmp_path: Path
) -> None:
    write(tmp_path / name)
    with pytest.raises(errors.HeldoutError) as caught:
        ho.Dataset(tmp_path / name, label="y", score="p")
    assert type(caught.value) is error
    check_is_silent(caught.value)
    assert str(tmp_path) not in str(caught.value), "the file's name, not where it lies"


def test_a_file_that_breaks_its_schema_is_refused_without_the_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p,name\n1,0.5,3\n0,0.25,Canaria\n")
    schema = {"y": "BIGINT", "p": "DOUBLE", "name": "BIGINT"}
    with pytest.raises(errors.UnreadableTable) as caught:
        ho.Dataset(path, label="y", score="p", schema=schema)
    check_is_silent(caught.value)


@pytest.mark.parametrize("path", ["nowhere.parquet", "nowhere.csv", "."])
def test_a_file_that_is_not_there_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(errors.UnreadableTable):
        ho.Dataset(tmp_path / path, label="y", score="p")


@pytest.mark.parametrize("scores", [[0.5, 0.75], [0.5, None], [0.5, NAN], [0.5, INF], [0.5, 1.5]])
def test_no_row_decides_whether_an_analyst_may_name_a_rival(scores: list[Any]) -> None:
    dataset = ho.Dataset({"y": [1, 0], "p": [0.5, 0.25], "q": scores}, label="y", score="p")
    for name in ("q", "r"):
        with pytest.raises(errors.UndeclaredRival):
            dataset.with_rival(name)


@pytest.mark.parametrize(
    "options",
    [
        {"score_range": (1, 0)},
        {"score_range": (0, 0)},
        {"score_range": (0, NAN)},
        {"score_range": (0, INF)},
        {"score_range": (-1e308, 1e308)},
        {"score_range": (0, 1e-200)},
        {"score_range": (0, 1e200)},
        {"score_range": (0,)},
        {"score_range": 1},
        {"score_range": ("a", "b")},
        {"positive": None},
        {"positive": NAN},
        {"positive": [1]},
        {"positive": "yes"},
        {"positive": 2},
        {"positive": 1, "negative": 1},
        {"positive": 1, "negative": True},
        {"positive": "a", "negative": "a"},
        {"neighbours": "add-one"},
        {"neighbours": None},
        {"rows_per_unit": 2},
    ],
    ids=str,
)
def test_a_bad_declaration_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError) as caught:
        ho.Dataset(table(), label="y", score="p", **options)
    check_is_silent(caught.value)


def test_one_class_alone_is_not_an_error() -> None:
    """The neighbouring data set had two, and the refusal would tell them apart."""
    for label in (0, 1):
        dataset = ho.Dataset({"y": [label] * 3, "p": [0.5, 0.25, 1]}, label="y", score="p")
        session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
        assert 0 <= session.confusion(epsilon="1/2").recall <= 1


@pytest.mark.parametrize("keys", [("u", "id"), ("u", None), (None, None)], ids=str)
@pytest.mark.parametrize("kind", ["arrays", "table", "frame", "files"])
def test_nothing_that_an_engine_holds_prints_a_row(
    kind: str, keys: tuple[Any, Any], tmp_path: Path
) -> None:
    unit, row_key = keys
    table = {"u": np.arange(4), "id": np.arange(4), "y": np.arange(4) % 2, "p": np.full(4, CANARY)}
    made: Any = {"arrays": dict, "table": pa.table, "frame": pd.DataFrame}.get(kind, pa.table)(
        table
    )
    if kind == "files":
        row_key = "id"  # rows of an Arrow data set have no order, so people need one
        pq.write_table(made, tmp_path / "rows.parquet")
        made = ds.dataset(tmp_path)
    rows = ho.Dataset(made, label="y", score="p", unit=unit, row_key=row_key)
    rows._fetch("SELECT label, score FROM evaluated")
    seen: list[Any] = [rows, rows._engine]
    for each in seen:
        shown = repr(vars(each))
        assert CANARIES[0] not in shown
        assert "bool" not in shown  # whether each row counts
        seen += [value for value in vars(each).values() if type(value) is DuckDBEngine]


def test_a_data_set_is_not_pickled_and_shows_no_private_count() -> None:
    import copy
    import pickle

    dataset = ho.Dataset(table(), label="y", score="p", neighbours="add-remove")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(dataset)
    assert "3" not in f"{dataset!r}{dataset}"
    assert dataset.public_rows is None


def test_a_table_of_more_rows_than_sums_can_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {"y": [0, 1, 1], "p": [0.1, 0.2, 0.3]}
    monkeypatch.setattr(ho.Dataset, "MOST_ROWS", 3)
    assert ho.Dataset(rows, label="y", score="p").public_rows == 3
    monkeypatch.setattr(ho.Dataset, "MOST_ROWS", 2)
    with pytest.raises(errors.UnreadableTable, match="at most 2 rows"):
        ho.Dataset(rows, label="y", score="p")


def test_columns_of_unequal_length_are_said_to_be_the_cause() -> None:
    with pytest.raises(errors.UnreadableTable, match="columns 'y' and 'p' differ in length"):
        ho.Dataset({"y": [0, 1], "p": [0.1, 0.2, 0.3]}, label="y", score="p")


def test_a_column_without_a_length_is_unreadable() -> None:
    with pytest.raises(errors.UnreadableTable):
        ho.Dataset({"y": [0, 1], "p": np.array(0.5)}, label="y", score="p")
