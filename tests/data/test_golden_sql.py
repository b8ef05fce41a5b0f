"""What touches private rows is kept as SQL that a reviewer can read, for each engine.

After a deliberate change: HELDOUT_REWRITE_GOLDEN=1 python -m pytest tests/data/test_golden_sql.py
and read the difference.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.data import sql, validation
from heldout.data.sql import transpile
from heldout.kernel.ranking.statistic import RankedRows, ScoreTable
from heldout.kernel.statistic import BoundedSum, Statistic
from heldout.questions.classes import CallCounts
from heldout.questions.counts import ThresholdCounts

GOLDEN = Path(__file__).parent.parent / "golden"
DIALECTS = ("duckdb", "postgres", "spark")
STATISTICS: dict[str, Statistic] = {
    "threshold_counts": ThresholdCounts(thresholds=(0.25, 0.5)),
    "score_table": ScoreTable(score_range=(0, 1), cells=1024),
    "labels_and_scores": RankedRows("auc"),  # counted here, where the rows are
    "squared_error": BoundedSum(error="squared", score_range=(0, 1), with_rest=True),
    "absolute_error": BoundedSum(error="absolute", score_range=(-1, 3), with_rest=True),
}
OF_CLASSES: dict[str, Statistic] = {
    "called_classes": CallCounts(classes=2),
    "ranks_weighted": CallCounts(classes=2, axes=("rank",), weighted=True, groups=2),
    "log_loss_of_classes": BoundedSum(
        error="log", score_range=(0, 1), with_rest=True, classes=2, weighted=True
    ),
    "squared_error_of_classes": BoundedSum(
        error="squared", score_range=(0, 1), with_rest=True, classes=2
    ),
}
UNITS: dict[str, dict[str, Any]] = {
    "rows": {},
    "units": {"unit": "patient", "rows_per_unit": 2, "row_key": "visit"},
    "units_without_row_key": {"unit": "patient", "rows_per_unit": 2},
}
GENERATOR = np.random.default_rng(8)
ROWS: dict[str, Any] = {
    "visit": np.arange(300),
    "patient": [f"p{each}" for each in GENERATOR.integers(0, 60, 300)],
    "readmitted": GENERATOR.integers(0, 2, 300),
    "outcome": [("no", "yes")[each] for each in GENERATOR.integers(0, 2, 300)],
    "risk": np.concatenate([[0.0, 1.0, 0.25, 0.5, 5e-324], GENERATOR.random(295)]),
}


@cache
def dataset(units: str, label: str = "readmitted") -> ho.Dataset:
    values = {} if label == "readmitted" else {"positive": "yes", "negative": "no"}
    return ho.Dataset(ROWS, label=label, score="risk", **values, **UNITS[units])


@cache
def classified() -> ho.Dataset:
    declared: dict[str, Any] = {"classes": ["no", "yes"], "scores": ["calm", "risk"]}
    weighted: dict[str, Any] = {"weight": "risk", "largest_weight": 1}
    groups = {"patient": ["p1"]}
    table = ROWS | {"calm": 1 - ROWS["risk"]}
    return ho.Dataset(table, label="outcome", groups=groups, **declared, **weighted)


class Elsewhere:
    """What a remote engine says of itself, with no rows behind it."""

    remote, source, names_may_be_cells = True, "heldout_rows", False
    columns = dataset("rows")._engine.columns

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect


def validations(dialect: str) -> dict[str, str]:
    """What is asked of a table when it is opened; elsewhere a row key is asked for."""
    found = {}
    for units in UNITS:
        data = dataset(units)
        engine, keys = data._engine, data._keys
        if dialect != "duckdb":
            engine = Elsewhere(dialect)
            if units == "units_without_row_key":
                continue
            keys = validation.Keys(unit=keys.unit, row_key="visit")
        rules = [*data._rules(), *keys.rules(engine.columns), *keys.distinct(engine.columns)]
        found[f"validation_{units}"] = validation.statement(engine, rules)
        found[f"fingerprints_{units}"] = validation.fingerprint_statement(engine, keys)
    return found


def statements(dialect: str = "duckdb") -> dict[str, str]:
    found = validations(dialect)
    for units in UNITS:
        if dialect != "duckdb" and units == "units_without_row_key":
            continue
        for name, statistic in STATISTICS.items():
            if units == "rows" or name == "threshold_counts":
                rows = dataset(units)._bounded_by_window()
                found[f"{name}_{units}"] = sql.assemble(rows, statistic.body())
    if dialect == "duckdb":  # what counts was found when the rows were opened
        body, people = STATISTICS["threshold_counts"].body(), dataset("units")
        found["threshold_counts_of_people"] = people.statement(body)
        columns = people._exposed_columns
        counted = sql.counted(source=people._engine.source, columns=columns)
        found["threshold_counts_of_people_too_many_to_keep"] = sql.assemble(counted, body)
    for name, statistic in OF_CLASSES.items():
        grouped = classified().with_groups("patient") if name == "ranks_weighted" else classified()
        found[name] = grouped.statement(statistic.body())
    text = dataset("rows", "outcome")
    found["threshold_counts_text_label"] = text.statement(STATISTICS["threshold_counts"].body())
    return found


REVIEWED = [(dialect, name) for dialect in DIALECTS for name in statements(dialect)]


@pytest.mark.parametrize(("dialect", "name"), REVIEWED)
def test_the_sql_is_the_one_that_was_reviewed(name: str, dialect: str) -> None:
    path = GOLDEN / dialect / f"{name}.sql"
    found = transpile(statements(dialect)[name], dialect=dialect) + "\n"
    if os.environ.get("HELDOUT_REWRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


def test_no_reviewed_file_is_left_over() -> None:
    expected = {f"{dialect}/{name}.sql" for dialect, name in REVIEWED}
    assert {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.sql")} == expected


@pytest.mark.parametrize(
    "name", [name for name in statements() if not name.startswith(("validation", "fingerprints"))]
)
def test_the_reviewed_duckdb_text_gives_what_the_program_runs(name: str) -> None:
    """Laying a statement out for a reader must not change what it says."""
    # The same rows, and which of them count.
    engine = (classified() if name in OF_CLASSES else dataset("units"))._engine
    program = engine.fetch(statements()[name] + " ORDER BY ALL")
    reviewed = engine.fetch((GOLDEN / "duckdb" / f"{name}.sql").read_text() + " ORDER BY ALL")
    assert {key: list(each) for key, each in program.items()} == {
        key: list(each) for key, each in reviewed.items()
    }


NOT_PORTABLE = {
    "postgres": ("IS_NAN", "ISNAN", " HASH(", "TRY_CAST", "QUALIFY", "'0x'"),
    "spark": (" HASH(", "QUALIFY", "'0x'"),
}


@pytest.mark.parametrize("dialect", NOT_PORTABLE)
def test_no_statement_uses_what_an_engine_lacks(dialect: str) -> None:
    """Whether they give the same answers there is the work of tests/engines."""
    for name, statement in statements(dialect).items():
        text = transpile(statement, dialect=dialect)
        assert not any(each in text for each in NOT_PORTABLE[dialect]), name
