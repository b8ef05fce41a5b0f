"""Which rows of a unit count depends on the unit's keys alone."""

import datetime
import hashlib
from collections import Counter
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import heldout as ho
from heldout.data import draws, duckdb, sql
from heldout.data import table as bounding
from heldout.data.duckdb import open_local


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


@pytest.mark.parametrize("row_key", [None, "visit"])
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("texts", [True, False])
def test_people_who_are_looked_at_in_parts_keep_the_same_rows(
    row_key: str | None, most: int, wide: bool, texts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(most)
    people = generator.integers(-30, 30, 600)
    if wide:  # some are crowded, negative, next to each other or at the ends of 64 bits
        people *= np.array([1, 2**53, 2**57 + 1])[np.arange(600) % 3]
        people[:2] = 2**63 - 1, -(2**63)
    cells = [f"p{person}" for person in people] if texts else people
    engine = open_local({"person": cells, "visit": generator.permutation(600) - 300})
    limit = bounding.Limit("person", row_key, most)
    at_once = bounding.counted_rows(engine, limit, rows=600)
    monkeypatch.setattr(bounding, "PASS_BYTES", 64 * 600 // 7)
    assert len(bounding.parts("n", 600)) == 8
    assert bounding.counted_rows(engine, limit, rows=600).tolist() == at_once.tolist()
    counts = np.unique(people, return_counts=True)[1]
    assert at_once.sum() == np.minimum(counts, most).sum() < 600


@pytest.mark.parametrize("alike", [1, 3])
@pytest.mark.parametrize("texts", [True, False])
def test_rows_that_draw_alike_are_told_apart_by_their_keys(
    alike: int, texts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All draw one number, or one of three."""
    people, visits = np.arange(600) % 30, np.random.default_rng(1).permutation(600)
    monkeypatch.setattr(sql, "drawn", lambda unit, number: f"{number} % {alike}")
    monkeypatch.setattr(draws, "drawn", lambda units, numbers: numbers % alike)
    persons = people.astype(str).tolist() if texts else people
    engine = open_local({"person": persons, "visit": visits})
    counts = bounding.counted_rows(engine, bounding.Limit("person", "visit", 2), rows=600)
    expected = set()
    for person in range(30):
        own = np.flatnonzero(people == person).tolist()
        expected |= set(sorted(own, key=lambda row: (visits[row] % alike, visits[row]))[:2])
    assert set(np.flatnonzero(counts).tolist()) == expected


WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
NUMPY_OF = {
    f"{u}{name}": getattr(pa, f"{u.lower()}int{bits}")()
    for name, bits in WHOLE.items()
    for u in ("", "U")
}


@pytest.mark.parametrize("row_key", [None, "visit"])
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("kind", sorted(sql.FITTING_TYPES))
def test_whole_numbers_are_chosen_here_as_the_statement_chooses_them(
    kind: str, most: int, row_key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all sizes and signs, in blocks of a few rows, in parts, and in any order of the places."""
    generator = np.random.default_rng(most)
    bits = WHOLE[kind.removeprefix("U")]
    low, high = (0, 2**bits) if kind.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    ends = [low, high - 1, 0, 9, 10, 99, 100, *(number for number in (-1, -10) if number >= low)]
    ids = np.array([*ends, *generator.integers(low, high, 20).tolist()])
    people = generator.choice(ids, 900)
    visits = generator.permutation(900) if most == 1 else generator.integers(-(2**63), 2**63, 900)
    table = pa.table(
        {
            "person": pa.array(people.tolist(), NUMPY_OF[kind]),
            "visit": visits,
            "nth": np.arange(900),
        }
    )
    engine = open_local(table)
    assert engine.columns["person"] == kind
    limit = bounding.Limit("person", row_key, most)
    window = limit.statement(engine.source, {"nth": sql.column("nth")}, engine.columns)
    expected = sorted(engine.fetch(window)["nth"].tolist())
    assert len(expected) == np.minimum(np.unique(people, return_counts=True)[1], most).sum()
    monkeypatch.setattr(draws, "_TOGETHER", 7)
    monkeypatch.setattr(engine, "batches", None)  # no window is asked
    for size in (bounding.PASS_BYTES, 64 * 900 // 7):
        monkeypatch.setattr(bounding, "PASS_BYTES", size)
        counts = bounding.counted_rows(engine, limit, rows=900)
        assert np.flatnonzero(counts).tolist() == expected
    # An engine that gave the rows in another order would change nothing.
    fetch = engine.fetch
    order = generator.permutation(900)
    monkeypatch.setattr(bounding, "PASS_BYTES", 2**30)
    monkeypatch.setattr(
        engine, "fetch", lambda asked: {name: own[order] for name, own in fetch(asked).items()}
    )
    counts = bounding.counted_rows(engine, limit, rows=900)
    assert np.flatnonzero(counts).tolist() == expected


def test_a_row_draws_the_same_number_here_as_in_a_statement() -> None:
    generator = np.random.default_rng(2)
    ends = [
        -(2**63),
        2**63 - 1,
        0,
        -1,
        *(sign * 10**digits for digits in range(19) for sign in (1, -1)),
    ]
    numbers = np.array([*ends, *(end - 1 for end in ends[2:]), *generator.integers(-999, 999, 500)])
    numbers = np.append(numbers, generator.integers(-(2**63), 2**63, 500))
    units = generator.permutation(numbers)
    KEPT_BY.register("pairs", pa.table({"u": units, "n": numbers}))
    expected = KEPT_BY.execute(f"SELECT {sql.drawn('u', 'n')} AS draw FROM pairs").fetchnumpy()
    found = draws.drawn(units, numbers)
    assert found.tolist() == expected["draw"].tolist()
    digests = [
        hashlib.md5(f"{u}/{n}".encode()).hexdigest() for u, n in zip(units, numbers, strict=True)
    ]
    assert found.tolist() == [int(digest[:15], 16) for digest in digests]


@pytest.mark.parametrize("wide", [1, 2**40])
def test_a_repeated_row_key_is_seen_in_whatever_part_it_is(
    wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounding, "PASS_BYTES", 160)
    keys = np.random.default_rng(1).permutation(100) * wide
    table = {"y": np.arange(100) % 2, "p": np.arange(100) / 100, "visit": keys}
    ho.Dataset(table, label="y", score="p", row_key="visit")
    keys[7] = keys[93]
    with pytest.raises(ho.errors.DuplicateRowKey):
        ho.Dataset(table, label="y", score="p", row_key="visit")


# --- a fair sample -------------------------------------------------------------------------------

PEOPLE = 4000
NUMBERED = np.arange(PEOPLE)
PERSONS: dict[str, Any] = {
    "consecutive": NUMBERED,
    "far apart": NUMBERED * 1_000_003 - 2**40,
    "large": 2**62 + NUMBERED * 2**31,
    "texts": [f"p{number}" for number in NUMBERED],
    "numbers in texts": [str(number) for number in NUMBERED],
    "decimals": [Decimal(int(number)) / 8 for number in NUMBERED],
    "days": [datetime.date(1950, 1, 1) + datetime.timedelta(int(each)) for each in NUMBERED],
}
VISITS: dict[str, Any] = {
    "none": None,
    "consecutive": lambda person, nth, size: person * size + nth,
    "by place": lambda person, nth, size: nth * PEOPLE + person,
    "shifted": lambda person, nth, size: (person * size + nth) * 2**31 - 2**62,
    "negative": lambda person, nth, size: -(person * size + nth),
    "texts": lambda person, nth, size: f"{person}/{nth}",
    "decimals": lambda person, nth, size: Decimal(person * size + nth) / 4,
}


@pytest.mark.parametrize(("size", "most"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3)])
@pytest.mark.parametrize(
    ("persons", "visits"),
    [*((each, "none") for each in PERSONS), *(("consecutive", each) for each in VISITS)],
)
@pytest.mark.slow
def test_every_set_of_a_persons_rows_is_as_likely_as_any_other(
    persons: str, visits: str, size: int, most: int
) -> None:
    """By position in the table and whatever the keys are: a person's visits have an order."""
    person, nth = np.repeat(NUMBERED, size), np.tile(np.arange(size), PEOPLE)
    ids = PERSONS[persons]
    table: dict[str, Any] = {"person": [ids[each] for each in person]}
    key = VISITS[visits]
    if key is not None:
        table["visit"] = [key(int(a), int(b), size) for a, b in zip(person, nth, strict=True)]
    limit = bounding.Limit("person", None if key is None else "visit", most)
    counts = bounding.counted_rows(open_local(table), limit, rows=len(person))
    sets = Counter(tuple(np.flatnonzero(row)) for row in counts.reshape(PEOPLE, size))
    possible = list(combinations(range(size), most))
    observed = [sets[each] for each in possible]
    assert sum(observed) == PEOPLE, "every person keeps as many as may be"
    # Nothing here is drawn anew: a rule that is fair fails it once in 1,000,000 choices of keys.
    assert chisquare(observed).pvalue > 1e-6, observed
    alone = [sum(sets[each] for each in possible if place in each) for place in range(size)]
    spread = 5 * np.sqrt(PEOPLE * most / size * (1 - most / size))
    assert np.abs(np.array(alone) - PEOPLE * most / size).max() < spread


@pytest.mark.parametrize("fault", [None, "label", "score", "person", "visit"])
def test_many_rows_of_people_are_judged_as_few_are(
    fault: str | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at in parts; what is broken is named by the rules, as always."""
    rows = 3000
    columns: dict[str, Any] = {
        "y": np.arange(rows) % 2,
        "p": np.arange(rows) / rows,
        "person": np.arange(rows) // 3,
        "visit": np.arange(rows),
    }
    expected: dict[str | None, Any] = {
        "label": (ho.errors.UnknownLabel, "y", 2),
        "score": (ho.errors.ScoreOutOfRange, "p", 1.5),
        "person": (ho.errors.MissingUnit, "person", None),
        "visit": (ho.errors.DuplicateRowKey, "visit", 5),
    }
    declared: dict[str, Any] = {"label": "y", "score": "p", "unit": "person", "row_key": "visit"}
    if fault is not None:
        error, name, value = expected[fault]
        cells = columns[name].tolist()
        columns[name] = pa.array([*cells[:1700], value, *cells[1701:]])
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")

    def answer() -> Any:
        dataset = ho.Dataset(tmp_path / "rows.parquet", rivals=(), rows_per_unit=2, **declared)
        body = "SELECT sum(label) AS a, sum(hash(score) >> 20) AS b, count(*) AS n FROM evaluated"
        return {name: int(each[0]) for name, each in dataset._fetch(body).items()}

    if fault is None:
        few = answer()
    monkeypatch.setattr(bounding, "PASS_BYTES", 64 * 100)
    if fault is not None:
        with pytest.raises(error):
            answer()
        return
    assert answer() == few
    monkeypatch.setattr(duckdb, "MOST_KEPT", 100)  # too many to hold: read again
    assert answer() == few


@pytest.mark.parametrize("kept_in_memory", [True, False])
def test_every_view_of_people_reads_the_rows_that_count(
    kept_in_memory: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of a file of many row groups, whichever columns a question asks for."""
    if not kept_in_memory:
        monkeypatch.setattr(duckdb, "MOST_KEPT", 0)
    generator = np.random.default_rng(3)
    rows = 20_000
    table = pa.table(
        {
            "unit": generator.integers(0, 6_000, rows),
            "visit": generator.permutation(rows),
            "y": generator.integers(0, 2, rows),
            "p": np.arange(rows) / rows,
            "q": np.arange(rows)[::-1] / rows,
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=500)
    dataset = ho.Dataset(
        tmp_path / "rows.parquet",
        label="y",
        score="p",
        rivals=["q"],
        groups={"y": [0]},
        unit="unit",
        rows_per_unit=2,
        row_key="visit",
    )
    KEPT_BY.register("rows", table)
    expected = sql.assemble(dataset._bounded_by_window(), "SELECT score FROM evaluated ORDER BY 1")
    expected = KEPT_BY.execute(expected.replace(dataset._engine.source, "rows")).fetchnumpy()
    for view, more in ((dataset, "0 AS x"), (dataset.with_rival("q"), "rival AS x")):
        found = view._fetch(f"SELECT score, {more} FROM evaluated ORDER BY 1")
        assert found["score"].tolist() == expected["score"].tolist()
    assert np.allclose(found["x"], (rows - 1) / rows - found["score"])
    labels = dataset.with_groups("y")._fetch("SELECT label, member, score FROM evaluated")
    assert (labels["label"] == labels["member"]).all()
    assert len(labels["score"]) == len(expected["score"])


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
