"""The custodian learns at registration which accounts know the same people; nobody else does."""

import sqlite3

import pytest

from heldout.data.table import People
from heldout.errors import ArgumentError, BudgetMismatch
from heldout.kernel import Budget, Ledger

ONE = Budget(epsilon=1)


def people(first, last, **declared):
    return People({"id": list(range(first, last))}, **(declared or {"unit": "id"}))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.mark.parametrize("size", [200, 10_000, 60_000])
@pytest.mark.parametrize("share", [0.97, 0.3, 0.02])
def test_the_estimate_of_people_in_common_is_near(path, size, share):
    with Ledger.open(path) as ledger:
        ledger.register("old", budget=ONE, unit="id", table=people(0, size))
        both = int(size * share)
        (found,) = ledger.overlaps(people(size - both, 2 * size - both))
        assert (found.name, found.people) == ("old", size)
        deviation = (both * max(1, size / 1500)) ** 0.5 if size > 3000 else 0
        assert abs(found.shared - both) <= 5 * deviation
        assert ledger.overlaps(people(5 * size, 6 * size)) == []


def test_a_large_table_and_a_small_one_are_compared_both_ways(path):
    with Ledger.open(path) as ledger:
        ledger.register("large", budget=ONE, unit="id", table=people(0, 50_000))
        ledger.register("small", budget=ONE, unit="id", table=people(0, 2_000), people="large")
        found = {each.name: each.shared for each in ledger.overlaps(people(1_000, 3_000))}
        assert found["small"] == 1_000
        assert 1_000 < found["large"] < 3_000


def test_registering_the_same_people_again_offers_to_share_their_account(path):
    with Ledger.open(path) as ledger:
        ledger.register("2025", budget=ONE, unit="id", table=people(0, 1000))
        again = {"budget": ONE, "unit": "id", "table": people(30, 1030)}
        with pytest.raises(BudgetMismatch, match=r"About 970 of these 1,000 .*'2025'.*people= and"):
            ledger.register("2026", **again)
        assert len(ledger.history()) == 1
        ledger.register("2026", people="2025", **again)
        ledger.register("again", new=True, **again)
        assert ledger.verify().accounts == 3


def test_the_sketch_tells_nothing_without_the_key(path):
    """It has one size, and no two ledgers have an item in common."""
    seen = []
    for number, size in enumerate((3, 1000, 20_000)):
        place = path.with_name(f"{number}.sqlite")
        with Ledger.open(place) as ledger:
            ledger.register("a", budget=ONE, unit="id", table=people(0, size))
        with sqlite3.connect(place) as connection:
            (sketch,) = connection.execute("SELECT sketch FROM heldout_sketches").fetchone()
        connection.close()
        seen.append(sketch)
    assert len({len(each) for each in seen}) == 1
    import base64

    items = [{base64.b64decode(each)[at : at + 8] for at in range(0, 8 * 4096, 8)} for each in seen]
    assert all(len(each) == 4096 for each in items)
    assert not items[0] & items[1]
    assert not items[1] & items[2]


def test_rows_are_told_apart_by_their_key_where_there_is_no_unit(path):
    with Ledger.open(path) as ledger:
        ledger.register("a", budget=ONE, table=people(0, 100, row_key="id"))
        assert ledger.overlaps(people(50, 150))[0].shared == 50
    with pytest.raises(ArgumentError, match="unit= or row_key="):
        People({"id": [1]})
