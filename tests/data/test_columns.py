"""Columns may be called anything and labels may be of any type."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.data.dataset import LABELS_AND_SCORES
from heldout.data.scores import grid_body
from heldout.data.sql import INTEGER_TYPES
from heldout.errors import UnreadableTable
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.statistic import RankedRows
from heldout.kernel.statistic import BoundedSum, compute
from heldout.questions.counts import ThresholdCounts

OURS = [
    *("label", "score", "rival", "n", "cell", "point", "total", "interval_number", "count"),
    *("evaluated", "held", "named", "keyed", "placed", "place", "nth", "unit_key", "row_key"),
    *("heldout_key", "heldout_position", "heldout_rows", "heldout_incoming", "missing_label"),
    *("unknown_label", "missing_score_0", "infinite_0", "outside_0", "missing_unit", "duplicate"),
    *("fingerprint_xor", "fingerprint_sum", "missing_key", "negatives", "positives"),
]
HOSTILE = [
    'a"b; DROP TABLE x--',
    "a'b",
    "SELECT",
    "group",
    " ",
    "\t",
    "-",
    "1",
    "?",
    "%s",
    "{name}",
    "a.b",
    "*",
    "ß größe",
    "年龄",
    "عمر",
    "\u202eevil",
    "🙂",
    "a" * 300,
    "a\nb",
]
VALUES = {"y": [1, 0, 0, 1, 1], "p": [0.9, 0.2, 0.5, 0.6, 0.1], "u": list("aabbb")}


def answers(dataset: ho.Dataset) -> list[list[int]]:
    asked = [
        ThresholdCounts(thresholds=(0.5,)),
        BoundedSum(error="squared", score_range=(0, 1), with_rest=True),
    ]
    return [unseal(compute(each, dataset)).tolist() for each in asked]


def ask(names: dict[str, str], decoys: list[str], **options: Any) -> list[list[int]]:
    """With columns called so, among decoys that hold other things."""
    table: dict[str, Any] = {each: [7.5] * 5 for each in decoys}
    table |= {names[role]: VALUES[role] for role in names}
    if "u" in names:
        options["unit"] = names["u"]
    return answers(ho.Dataset(table, label=names["y"], score=names["p"], **options))


PLAIN = {"y": "y", "p": "p"}
WITH_UNIT = {"y": "y", "p": "p", "u": "u"}
EXPECTED = ask(PLAIN, [])
EXPECTED_WITH_UNIT = ask(WITH_UNIT, [], rows_per_unit=2)


@pytest.mark.parametrize("first", range(len(OURS)))
def test_a_column_may_be_called_like_one_of_ours(first: int) -> None:
    """Three names that follow each other, so that each is tried in each role."""
    names = [OURS[(first + place) % len(OURS)] for place in range(len(WITH_UNIT))]
    asked = dict(zip(WITH_UNIT, names, strict=True))
    assert ask(asked, [], rows_per_unit=2) == EXPECTED_WITH_UNIT


@pytest.mark.parametrize("name", HOSTILE)
def test_a_column_may_have_any_name(name: str) -> None:
    names = {"y": name, "p": f"{name}.", "u": f"{name}_"}
    assert ask(names, [], rows_per_unit=2) == EXPECTED_WITH_UNIT


@pytest.mark.parametrize("names", [("label", "score", "unit_key"), ("score", "label", "nth")])
def test_our_own_names_may_mean_other_things_among_many_decoys(names: tuple[str, str, str]) -> None:
    roles = dict(zip(("y", "p", "u"), names, strict=True))
    decoys = [each for each in [*OURS, *HOSTILE] if each not in names]
    assert ask({"y": names[0], "p": names[1]}, decoys) == EXPECTED
    assert ask(roles, decoys, rows_per_unit=2) == EXPECTED_WITH_UNIT


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_column_of_a_file_may_have_any_name(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    frame = pd.DataFrame({"y": VALUES["y"], name: VALUES["p"]})
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    assert answers(ho.Dataset(path, label="y", score=name)) == EXPECTED


@pytest.mark.parametrize("names", [["y", "p", "p"], ["y", "p", "P"], ["y", "p", "score", "Score"]])
@pytest.mark.parametrize("holder", ["arrow", "parquet", "csv"])
def test_columns_that_an_engine_would_rename_are_refused(
    names: list[str], holder: str, tmp_path: Path
) -> None:
    """DuckDB turns a second `p` into `p_1`, which may be what another column is called."""
    arrays = [pa.array([1, 0]), *[pa.array([0.5, 0.25])] * (len(names) - 1)]
    table: Any = pa.table(arrays, names=names)
    if holder == "parquet":
        pq.write_table(table, tmp_path / "rows.parquet")
        table = tmp_path / "rows.parquet"
    elif holder == "csv":
        (tmp_path / "rows.csv").write_text(",".join(names) + "\n" + ",".join("1" * len(names)))
        table = tmp_path / "rows.csv"
    with pytest.raises(UnreadableTable, match="distinct"):
        ho.Dataset(table, label="y", score="p")


# --- labels --------------------------------------------------------------------------------------

LABELS: dict[str, tuple[list[Any], Any, Any]] = {
    "int": ([1, 0, 0, 1, 1], 1, None),
    "the other way round": ([0, 1, 1, 0, 0], 0, None),
    "bool": ([True, False, False, True, True], True, None),
    "bool declared as int": ([True, False, False, True, True], 1, None),
    "float": ([1.0, 0.0, 0.0, 1.0, 1.0], 1, None),
    "float declared as float": ([0.5, -0.5, -0.5, 0.5, 0.5], 0.5, -0.5),
    "text": (["yes", "no", "no", "yes", "yes"], "yes", "no"),
    "hostile text": (["it's", 'a"b', 'a"b', "it's", "it's"], "it's", 'a"b'),
    "text digits": (["1", "0", "0", "1", "1"], "1", "0"),
    "text digits declared as int": (["1", "0", "0", "1", "1"], 1, None),
    "decimal": ([Decimal("1.00"), *[Decimal("0.00")] * 2, *[Decimal("1.00")] * 2], 1, None),
    "minus one": ([1, -1, -1, 1, 1], 1, -1),
    "text of bools": (["True", "False", "False", "true", "TRUE"], True, None),
    "large": ([2**40, 2**41, 2**41, 2**40, 2**40], 2**40, 2**41),
}


def in_csv(frame: dict[str, Any], path: Path) -> Any:
    pd.DataFrame(frame).to_csv(path / "rows.csv", index=False)
    return path / "rows.csv"


def in_parquet(frame: dict[str, Any], path: Path) -> Any:
    pq.write_table(pa.table(frame), path / "rows.parquet")
    return path / "rows.parquet"


def in_memory(frame: dict[str, Any], path: Path) -> Any:
    return frame


@pytest.mark.parametrize("held", [in_memory, in_parquet, in_csv])
@pytest.mark.parametrize(("values", "positive", "negative"), LABELS.values(), ids=LABELS)
def test_labels_of_any_type_mean_the_same(
    values: list[Any],
    positive: Any,
    negative: Any,
    held: Callable[[dict[str, Any], Path], Any],
    tmp_path: Path,
) -> None:
    table = held({"y": values, "p": VALUES["p"]}, tmp_path)
    dataset = ho.Dataset(table, label="y", score="p", positive=positive, negative=negative)
    assert answers(dataset) == EXPECTED


@pytest.mark.parametrize("type_", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_numbers_of_any_width_mean_the_same(type_: str) -> None:
    table = pa.table({"y": pa.array(VALUES["y"], type_), "p": VALUES["p"]})
    assert answers(ho.Dataset(table, label="y", score="p")) == EXPECTED
    coarse = pa.table({"y": VALUES["y"], "p": pa.array([1, 0, 1, 1, 0], type_)})
    expected = answers(ho.Dataset({"y": VALUES["y"], "p": [1, 0, 1, 1, 0]}, label="y", score="p"))
    assert answers(ho.Dataset(coarse, label="y", score="p")) == expected


def test_a_column_of_categories_is_a_label() -> None:
    frame = pd.DataFrame({"y": pd.Categorical(["yes", "no", "no", "yes", "yes"]), "p": VALUES["p"]})
    dataset = ho.Dataset(frame, label="y", score="p", positive="yes", negative="no")
    assert answers(dataset) == EXPECTED


@pytest.mark.parametrize("kind", sorted(INTEGER_TYPES))
@pytest.mark.parametrize("people", [{}, {"unit": "id", "row_key": "id"}], ids=["rows", "people"])
def test_labels_of_every_integer_type_are_counted_as_the_same_numbers(kind, people, tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{each},{each % 2},{each % 7 / 8},{each % 5 / 8}" for each in range(40)]
    path.write_text("\n".join(["id,y,p,q", *rows]))
    types = {"id": "BIGINT", "y": kind, "p": "DOUBLE", "q": "DOUBLE"}
    private = ho.Dataset(path, label="y", score="p", schema=types, rivals=["q"], **people)
    for body in (LABELS_AND_SCORES, grid_body(private.score_range)):
        assert np.asarray(private._fetch(body)["label"]).dtype.kind in "iu"
    session = ho.Session(private, budget=ho.Budget(epsilon="5"))
    session.curves(epsilon="1")
    session.auc(epsilon="1", scores="grid")
    session.average_precision(epsilon="1")
    session.compare(score="q", epsilon="1")
    session.confusion(epsilon="1")


def test_many_scores_are_sorted_once_and_rank_as_before(monkeypatch, tmp_path) -> None:
    random = np.random.default_rng(3)
    labels, scores = random.integers(0, 2, 500), random.integers(0, 90, 500) / 90
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"y": labels, "p": scores, "id": np.arange(500) // 3}), path)
    people = {"unit": "id", "rows_per_unit": 2}

    def ranked() -> tuple[Any, Any]:
        rows = ho.Dataset(path, label="y", score="p", **people)
        statistics = [RankedRows("auc"), RankedRows("average-precision")]
        values = [one.read(rows._fetch(one.body())) for one in statistics]
        return values, rows._fetch(LABELS_AND_SCORES)

    as_they_lie, columns = ranked()
    monkeypatch.setattr("heldout.data.dataset.FEW_ROWS", 100)
    as_sorted, by_class = ranked()
    assert as_sorted == as_they_lie
    pairs = [sorted(zip(*each.values(), strict=True)) for each in (columns, by_class)]
    assert pairs[0] == pairs[1] == list(zip(*by_class.values(), strict=True))
