"""Which rows of a unit count depends on the unit's keys alone."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heldout as ho
from heldout.data import sql


def kept(rows: list[dict[str, Any]], *, row_key: str | None, most: int) -> list[str]:
    """The tags of the rows that count; tags are neither keys, labels nor scores."""
    connection = KEPT_BY
    table = pa.Table.from_pylist(rows)
    connection.register("rows", table)
    statement = sql.evaluated(
        source="rows",
        columns={"label": sql.column("label"), "score": sql.column("score"), "tag": "held.tag"},
        types={"unit": "VARCHAR", "key": TYPES[type(rows[0]["key"])]},
        unit="unit",
        row_key=row_key,
        rows_per_unit=most,
    )
    return sorted(tag for _, _, tag in connection.execute(statement).fetchall())


def _connection() -> Any:
    import duckdb

    return duckdb.connect()


KEPT_BY = _connection()
TYPES = {str: "VARCHAR", int: "BIGINT"}
tables = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "", "a/1"]), st.integers(0, 1), st.floats(0, 1)),
    min_size=1,
    max_size=14,
)
each_key = pytest.mark.parametrize("row_key", [None, "key"])


def as_rows(table: list[tuple[str, int, float]]) -> list[dict[str, Any]]:
    return [
        {"unit": unit, "label": label, "score": score, "tag": f"t{place}", "key": 31 * place % 97}
        for place, (unit, label, score) in enumerate(table)
    ]


@each_key
@given(table=tables, most=st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_each_unit_keeps_all_its_rows_up_to_the_most(
    row_key: str | None, table: list[tuple[str, int, float]], most: int
) -> None:
    rows = as_rows(table)
    owner = {row["tag"]: row["unit"] for row in rows}
    counts: dict[str, int] = {}
    for tag in kept(rows, row_key=row_key, most=most):
        counts[owner[tag]] = counts.get(owner[tag], 0) + 1
    for unit in owner.values():
        assert counts[unit] == min(most, list(owner.values()).count(unit))


@each_key
@given(table=tables, other=tables, most=st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_scores_and_labels_do_not_choose_the_rows(
    row_key: str | None,
    table: list[tuple[str, int, float]],
    other: list[tuple[str, int, float]],
    most: int,
) -> None:
    rows = as_rows(table)
    changed = [
        row | {"label": other[i % len(other)][1], "score": other[i % len(other)][2]}
        for i, row in enumerate(rows)
    ]
    assert kept(rows, row_key=row_key, most=most) == kept(changed, row_key=row_key, most=most)


@each_key
@given(table=tables, most=st.integers(1, 3), arrivals=st.lists(st.integers(0, 14), max_size=6))
@settings(deadline=None, max_examples=40)
def test_another_unit_that_comes_or_goes_moves_nothing(
    row_key: str | None, table: list[tuple[str, int, float]], most: int, arrivals: list[int]
) -> None:
    rows = as_rows(table)
    before = kept(rows, row_key=row_key, most=most)
    crowded = list(rows)
    for number, place in enumerate(arrivals):
        new = {"unit": "new", "label": 1, "score": 0.5, "tag": f"n{number}", "key": 1000 + number}
        crowded.insert(min(place, len(crowded)), new)
    after = kept(crowded, row_key=row_key, most=most)
    assert [tag for tag in after if not tag.startswith("n")] == before
    gone = {row["tag"] for row in rows if row["unit"] == "a"}
    if len(gone) < len(rows):
        left = kept([row for row in rows if row["unit"] != "a"], row_key=row_key, most=most)
        assert left == [tag for tag in before if tag not in gone]


@given(table=tables, most=st.integers(1, 3), order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_with_a_row_key_the_order_of_the_file_does_not_matter(
    table: list[tuple[str, int, float]], most: int, order: Any
) -> None:
    rows = as_rows(table)
    shuffled = list(rows)
    order.shuffle(shuffled)
    assert kept(rows, row_key="key", most=most) == kept(shuffled, row_key="key", most=most)


def test_keys_of_two_units_do_not_run_together() -> None:
    """Units that begin alike, with keys that do."""
    rows = [
        {"unit": "a", "key": "1/2", "label": 0, "score": 0.0, "tag": "first"},
        {"unit": "a/1", "key": "2", "label": 0, "score": 0.0, "tag": "second"},
    ]
    assert kept(rows, row_key="key", most=1) == ["first", "second"]


def test_the_first_rows_of_the_file_are_not_preferred() -> None:
    """A rule that keeps the first row would pick the healthiest visit of a sorted file."""
    rows = as_rows([(f"u{place // 5}", 0, 0.0) for place in range(400)])
    places = [int(tag[1:]) % 5 for tag in kept(rows, row_key=None, most=1)]
    assert min(np.bincount(places, minlength=5)) >= 4, "80 units, 16 expected at each place"


def test_a_large_file_keeps_the_same_rows_each_time_and_as_a_frame(tmp_path: Any) -> None:
    """Without a row key the order counts, and many threads read many row groups."""
    rows = 300_000
    generator = np.random.default_rng(5)
    table = pa.table(
        {
            "unit": generator.integers(0, 60_000, rows),
            "y": generator.integers(0, 2, rows),
            "p": generator.random(rows),
        }
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=2_000)
    seen = []
    for source in (path, path, table):
        dataset = ho.Dataset(source, label="y", score="p", unit="unit", rows_per_unit=2)
        body = "SELECT sum(label) AS a, sum(hash(score) >> 20) AS b, count(*) AS n FROM evaluated"
        for _ in range(2):
            columns = dataset._fetch(body)
            seen.append(tuple(str(columns[name][0]) for name in ("a", "b", "n")))
    assert len(set(seen)) == 1


@pytest.mark.parametrize("rows_per_unit", [0, -1, 1.5, True, "2", None])
def test_a_number_of_rows_that_is_none_is_refused(rows_per_unit: Any) -> None:
    table = {"u": [1], "y": [1], "p": [0.5]}
    with pytest.raises(ho.errors.ArgumentError, match="rows_per_unit"):
        ho.Dataset(table, label="y", score="p", unit="u", rows_per_unit=rows_per_unit)
    with pytest.raises(ho.errors.ArgumentError, match="rows_per_unit"):
        ho.Dataset(table, label="y", score="p", rows_per_unit=2)


def test_with_a_unit_the_number_of_rows_is_nobodys_business() -> None:
    table = {"u": [1, 1, 2], "y": [1, 0, 1], "p": [0.5, 0.25, 1]}
    dataset = ho.Dataset(table, label="y", score="p", unit="u", rows_per_unit=2)
    assert dataset.public_rows is None
    assert "3" not in repr(dataset)
    release = ho.Session(dataset, budget=ho.Budget(epsilon=1)).confusion(epsilon=1)
    assert release.as_dict()["rows"] is None
