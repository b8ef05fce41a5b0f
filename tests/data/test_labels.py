"""Label neighbours: nothing but the outcome may differ in what statements see."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.audit.tables import LABEL, draw_neighbours, store_list
from heldout.errors import ArgumentError, BudgetMismatch, DataError
from heldout.kernel import Budget, Protection
from heldout.kernel.ledger.ledger import Ledger
from heldout.questions.worst_cases import MADE_UP

ROWS: dict[str, list[Any]] = {
    "y": [0, 1, 1, 0],
    "p": [0.1, 0.9, 0.5, 0.5],
    "q": [0.3, 0.2, 0.9, 0.1],
    "who": [1, 1, 2, 2],
    "w": [1.0, 0.5, 0.0, 1.0],
    "t": [1.0, 2.0, 0.5, 4.0],
}


def seen(private: Any) -> dict[str, list[Any]]:
    """What statements see of the rows, in their order."""
    names = ", ".join(private._exposed_columns)
    columns = private._engine.fetch(private.statement(f"SELECT {names}\nFROM evaluated"))
    return {
        name: np.ma.filled(np.ma.asarray(column), None).tolist() for name, column in columns.items()
    }


@pytest.mark.parametrize("rows", [kind for kind in MADE_UP if MADE_UP[kind].outcome])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_label_neighbours_differ_in_the_outcome_of_at_most_k_rows(rows: Any, most: Any) -> None:
    random, made_up, compared, moved = Random(len(rows.__name__)), MADE_UP[rows], 0, 0
    for turn in range(12):
        around = draw_neighbours(
            made_up.columns,
            random,
            relation=LABEL,
            rows_per_unit=most,
            count=2,
            mixed=bool(turn % 2),
            keyed=bool(turn % 3),
            outcome=made_up.outcome,
        )
        tables = []
        for content in around.tables:
            try:
                table, _ = store_list(content, around.columns, None, turn)
                tables.append(made_up.open(table, **around.custody))
            except DataError:
                continue
        for other in tables[1:]:
            first, second = seen(tables[0]), seen(other)
            changed: set[int] = set()
            for name in first:
                apart = [
                    i
                    for i, pair in enumerate(zip(first[name], second[name], strict=True))
                    if pair[0] != pair[1]
                ]
                assert not apart or name in other.of_outcome, name
                changed |= set(apart)
            assert len(changed) <= (most or 1)
            assert tables[0].public_rows == other.public_rows == len(next(iter(first.values())))
            compared, moved = compared + 1, moved + bool(changed)
    assert compared > 8
    assert moved > 2


@pytest.mark.parametrize(
    "declared",
    [
        {"label": "y", "score": "y"},
        {"label": "y", "score": "p", "rivals": ["y"]},
        {"label": "y", "score": "p", "unit": "y"},
        {"label": "y", "score": "p", "row_key": "y"},
        {"label": "y", "score": "p", "groups": {"y": [1]}},
        {"label": "y", "score": "p", "weight": "y", "largest_weight": 1},
        {"label": "y", "classes": [0, 1], "prediction": "y"},
        {"time": "t", "event": "y", "score": "t"},
        {"time": "t", "event": "y", "values": {"t": (0, 9)}},
    ],
)
def test_an_outcome_that_is_also_something_public_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="is the only secret"):
        ho.Dataset(ROWS, neighbours="label", **declared)


def test_rows_without_an_outcome_are_refused() -> None:
    with pytest.raises(ArgumentError, match="they declare none"):
        ho.Dataset(ROWS, values={"p": (0, 1)}, neighbours="label")
    with pytest.raises(ArgumentError, match="only secret"):
        ho.regression.RegressionTable(
            ROWS, observed="p", coefficients={"p": 1.0}, neighbours="label"
        )


def test_a_model_that_reads_the_outcome_is_refused() -> None:
    class Scored(dict[str, Any]):
        inputs = ("q", "Y")  # engines may take names for one that differ in case alone

    with pytest.raises(ArgumentError, match="only secret"):
        ho.Dataset(Scored(ROWS), label="y", score="p", neighbours="label")
    ho.Dataset(Scored(ROWS), label="y", score="p")


def test_an_account_has_one_outcome_and_no_people_account(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    with pytest.raises(ArgumentError, match="outcome must name the column"):
        ledger.register("a", budget=Budget(epsilon=1), neighbours="label")
    with pytest.raises(ArgumentError, match="people must be left out"):
        ledger.register("a", budget=Budget(epsilon=1), neighbours="label", outcome="y", people="b")
    with pytest.raises(ArgumentError, match="outcome must go with"):
        ledger.register("a", budget=Budget(epsilon=1), outcome="y")
    ledger.register("a", budget=Budget(epsilon=9), neighbours="label", outcome="y", unit="who")
    declared: dict[str, Any] = {"unit": "who", "neighbours": "label"}
    first = ho.Dataset(ROWS, label="y", score="p", **declared)
    ho.Session(first, ledger=ledger, account="a").confusion(epsilon=1)
    numbers = {**ROWS, "p": [0, 1, 1, 0]}
    for other in (
        ho.Dataset(numbers, label="p", score="q", **declared),  # would have y as a public column
        ho.Dataset(ROWS, label="y", score="p", unit="who"),
        ho.Dataset(ROWS, label="y", score="p", unit="who", neighbours="add-remove"),
    ):
        with pytest.raises(BudgetMismatch, match="with the same outcome"):
            ho.Session(other, ledger=ledger, account="a")
    fewer = {name: [*cells[:2]] for name, cells in ROWS.items()}
    with pytest.raises(BudgetMismatch, match="rows"):
        ho.Session(ho.Dataset(fewer, label="y", score="p", **declared), ledger=ledger, account="a")


def test_a_release_states_that_outcomes_alone_are_protected() -> None:
    rows = ho.Dataset(ROWS, label="y", score="p", unit="who", rows_per_unit=2, neighbours="label")
    assert rows.public_rows == 4
    release = ho.Session(rows, budget=Budget(epsilon=2)).confusion(epsilon=1)
    assert "label neighbours, protecting outcomes alone, of each who with at most 2 rows" in str(
        release
    )
    about = release.as_dict()["protection"]
    assert about["neighbours"] == "label"
    assert about["outcome"] == "y"
    assert rows.protection == Protection(
        neighbours="label",  # type: ignore[arg-type]
        unit=True,
        rows_per_unit=2,
        unit_name="who",
        outcome=("y",),
    )
