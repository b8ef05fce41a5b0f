"""The same rows have one budget, whatever they are called and however they are declared."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.errors import BudgetMismatch

ROWS = {
    "person": [f"p{i // 2}" for i in range(40)],
    "visit": list(range(40)),
    "y": [0, 1] * 20,
    "a": [i / 40 for i in range(40)],
    "b": [1 - i / 40 for i in range(40)],
}
ONE = ho.Budget(epsilon=1)


def session(table: object, ledger: Path, **declared: object) -> ho.Session:
    dataset = ho.Dataset(table, **({"label": "y", "score": "a"} | declared))  # type: ignore[arg-type]
    return ho.Session(dataset, budget=ONE, ledger=ledger)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def spend_half(table: object, ledger: Path, **declared: object) -> None:
    session(table, ledger, **declared).confusion(epsilon="1/2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"score": "b"}),
        ({}, {"row_key": "visit"}),
        ({"row_key": "visit"}, {}),
        ({"row_key": "visit"}, {"row_key": "visit", "score": "b"}),
        ({"name": "first"}, {"name": "second"}),
    ],
)
def test_another_declaration_finds_the_same_budget(ledger, tmp_path, before, after) -> None:
    spend_half(ROWS, ledger, **before)
    file = tmp_path / "copy.parquet"
    pq.write_table(pa.table(ROWS), file)
    assert str(session(file, ledger, **after).remaining) == "epsilon 0.5"


def test_a_new_column_finds_the_same_budget_through_the_keys(ledger) -> None:
    spend_half(ROWS, ledger, row_key="visit")
    with_a_new_model = ROWS | {"c": [0.5] * 40}
    assert str(session(with_a_new_model, ledger, score="c", row_key="visit").remaining) == (
        "epsilon 0.5"
    )
    # and from then on without the keys as well
    assert str(session(with_a_new_model, ledger, score="c").remaining) == "epsilon 0.5"


@pytest.mark.parametrize(
    "after",
    [{"unit": "person"}, {"neighbours": "add-remove"}, {"unit": "person", "row_key": "visit"}],
)
def test_another_protection_of_the_same_rows_is_refused(ledger, after) -> None:
    spend_half(ROWS, ledger)
    with pytest.raises(BudgetMismatch, match="protects rows otherwise"):
        session(ROWS, ledger, **after)
