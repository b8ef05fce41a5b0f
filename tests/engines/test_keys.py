"""Keys: which rows of a unit count, and which budget the rows have, is the same everywhere."""

import datetime
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.entrances import CATALOGUES, COLUMNS, Row, check_neighbours, neighbours

import heldout as ho
from heldout.errors import ArgumentError, BudgetExceeded, BudgetMismatch

ROWS = 120
TEXTS = [
    *("", " ", "a", "A", "a ", "\u00e9", "e\u0301", "\u00df", "ss", "\U0001f642", "\U00020000"),
    *("7", "07", "7.0", "-7", "+7", "7e0", "0x7", "7\u00a0", "\uff17", "999999999999999999"),
    *(
        "1000000000000000000",
        "99999999999999999999",
        "a/1",
        "a'b",
        'a"b',
        "a\\b",
        "%",
        "_",
        "\u0130",
    ),
    *("\n", "7\n", "\t7", "NULL", "NaN", "true", "\u202ea", "z" * 300),
]
KEYS: dict[str, pa.Array] = {
    "integer": pa.array([31 * i - 500 for i in range(ROWS)], pa.int64()),
    "short": pa.array([3 * i - 100 for i in range(ROWS)], pa.int16()),
    "big": pa.array([(-1) ** i * (2**63 - 1 - i * 10**15) for i in range(ROWS)], pa.int64()),
    "text": pa.array(
        [f"{TEXTS[i % len(TEXTS)]}{'' if i < len(TEXTS) else i}" for i in range(ROWS)]
    ),
    "number in a text": pa.array([str(i * 1009) for i in range(ROWS)]),
    "date": pa.array([datetime.date(1999, 1, 1) + datetime.timedelta(i) for i in range(ROWS)]),
    "decimal": pa.array([Decimal(i * 10**15) for i in range(ROWS)], pa.decimal128(30, 0)),
    "scale": pa.array([Decimal(i * 10 - 500) / 8 for i in range(ROWS)], pa.decimal128(30, 6)),
    "zeros in a text": pa.array([f"{i}.{'50' if i % 2 else '00'}" for i in range(ROWS)]),
}
UNITS: dict[str, pa.Array] = {
    "integer": pa.array([i * i % 29 - 10 for i in range(ROWS)], pa.int32()),
    "text": pa.array([TEXTS[i * i % len(TEXTS)] for i in range(ROWS)]),
    "boolean": pa.array([i % 7 == 0 for i in range(ROWS)]),
    "decimal": pa.array([Decimal(i * i % 29) / 4 for i in range(ROWS)], pa.decimal128(20, 3)),
}


def table(key: str, unit: str = "integer") -> pa.Table:
    """Each row has a score of its own, so that scores say which rows stay."""
    order = np.random.default_rng(3).permutation(ROWS)
    columns = {
        "visit": KEYS[key],
        "patient": UNITS[unit],
        "y": pa.array([i % 2 for i in range(ROWS)], pa.int32()),
        "p": pa.array([i / ROWS for i in range(ROWS)], pa.float64()),
    }
    return pa.table(columns).take(pa.array(order))


def opened(source: Any, **declared: Any) -> ho.Dataset:
    return ho.Dataset(source, **({"label": "y", "score": "p", "row_key": "visit"} | declared))


def kept(dataset: ho.Dataset) -> list[float]:
    return sorted(float(each) for each in dataset._fetch("SELECT score FROM evaluated")["score"])


@pytest.mark.parametrize(
    ("key", "unit"), [*((key, "integer") for key in KEYS), ("text", "text"), ("big", "boolean")]
)
def test_the_same_rows_of_a_unit_are_kept(engine: Any, key: str, unit: str) -> None:
    rows = table(key, unit)
    there = engine.hold(rows)
    for most in (1, 3):
        declared = {"unit": "patient", "rows_per_unit": most}
        here = kept(opened(rows, **declared))
        assert kept(opened(there, **declared)) == here
        assert 0 < len(here) < ROWS


@pytest.mark.parametrize("catalogue", CATALOGUES)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_one_person_changes_no_other_row_elsewhere(engine: Any, catalogue: str, data: Any) -> None:
    """Kept rows, keys, groups and labels, as through the entrances of `tests/data`."""

    def open_rows(rows: list[Row]) -> ho.Dataset:
        there = engine.hold(CATALOGUES[catalogue](rows))
        return ho.Dataset(there, **COLUMNS, neighbours="add-remove")

    check_neighbours(open_rows, data.draw(neighbours(texts=catalogue == "texts")))


@pytest.mark.parametrize("key", ["consecutive", "text"])
@pytest.mark.parametrize(("size", "most"), [(2, 1), (3, 2)])
def test_every_set_of_a_persons_rows_is_as_likely_elsewhere(
    engine: Any, key: str, size: int, most: int
) -> None:
    """As in `tests/data/test_units.py`, and the very rows that are kept there."""
    people = 1000
    person, nth = np.repeat(np.arange(people), size), np.tile(np.arange(size), people)
    visits = person * size + nth
    rows = pa.table(
        {
            "visit": visits
            if key == "consecutive"
            else [f"{a}/{b}" for a, b in zip(person, nth, strict=True)],
            "patient": person,
            "y": pa.array(nth % 2, pa.int32()),
            "p": visits / len(visits),
        }
    )
    declared = {"unit": "patient", "rows_per_unit": most}
    found = kept(opened(engine.hold(rows), **declared))
    assert found == kept(opened(rows, **declared))
    places = np.rint(np.array(found) * len(visits)).astype(int)
    sets = Counter(tuple(each % size) for each in places.reshape(people, most))
    expected = people / math.comb(size, most)
    assert len(sets) == math.comb(size, most)
    assert max(abs(count - expected) for count in sets.values()) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("unit", [None, "text"])
def test_the_same_keys_have_the_same_digests(engine: Any, key: str, unit: str | None) -> None:
    rows = table(key, unit or "integer")
    declared = {} if unit is None else {"unit": "patient"}
    here = opened(rows, **declared)._fingerprints
    there = opened(engine.hold(rows), **declared)._fingerprints
    assert there == here[: len(there)] != here, "DuckDB's last ones cover all cells"
    # Keys with a scale have the digest of earlier versions beside the new one.
    before = key in ("scale", "zeros in a text")
    assert len(there) == (1 if unit is None else 2) + before


def test_one_budget_whichever_engine_reads_the_rows(engine: Any, tmp_path: Path) -> None:
    ledger, budget, rows = tmp_path / "ledger.sqlite", ho.Budget(epsilon=1), table("text")
    there = engine.hold(rows)
    ho.Session(opened(rows), budget=budget, ledger=ledger).confusion(epsilon="3/4")
    again = ho.Session(opened(there), budget=budget, ledger=ledger)
    assert str(again.remaining) == "epsilon 0.25"
    with pytest.raises(BudgetExceeded):
        again.confusion(epsilon="1/2")
    again.confusion(epsilon="1/4")
    with pytest.raises(BudgetExceeded):
        ho.Session(opened(rows), ledger=ledger).confusion(epsilon="1/100")
    with pytest.raises(BudgetMismatch):
        ho.Session(opened(there, unit="patient"), budget=budget, ledger=ledger)


def test_rows_elsewhere_need_a_key_that_reads_alike_everywhere(engine: Any) -> None:
    rows = table("integer").append_column("moment", pa.array([0.5 + i for i in range(ROWS)]))
    there = engine.hold(rows)
    for declared in ({"row_key": None}, {"row_key": None, "unit": "patient"}):
        with pytest.raises(ArgumentError, match="row_key must be given"):
            opened(there, **declared)
    for declared in ({"row_key": "moment"}, {"unit": "moment"}):
        with pytest.raises(ArgumentError, match="key 'moment' must be an integer, a dec"):
            opened(there, **declared)
