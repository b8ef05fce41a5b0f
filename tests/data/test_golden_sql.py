"""What touches private rows is kept as SQL that a reviewer can read, for each engine.

After a deliberate change: HELDOUT_REWRITE_GOLDEN=1 python -m pytest tests/data/test_golden_sql.py
and read the difference.

Still the work of those who connect another engine (the statements below are transpiled, not run
there): PostgreSQL has no IS_NAN and no HASH, and its CAST of text that is no number fails where
TRY_CAST gives NULL; Spark's HASH has 32 bits, its CAST to INT truncates where DuckDB's and
PostgreSQL's round to the nearest, and its ROW_NUMBER wants an ORDER BY, so that a unit without a
row key needs one. Validation and fingerprint of the rows are therefore DuckDB's alone so far.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.data import sql, validation
from heldout.mechanisms.discrete_laplace import unseal
from heldout.statistics import (
    BoundedSum,
    LabelCounts,
    ScoreTable,
    Statistic,
    ThresholdCounts,
    compute,
)

GOLDEN = Path(__file__).parent.parent / "golden"
DIALECTS = ("duckdb", "postgres", "spark")
STATISTICS: dict[str, Statistic] = {
    "label_counts": LabelCounts(),
    "threshold_counts": ThresholdCounts(thresholds=(0.25, 0.5)),
    "score_table": ScoreTable(score_range=(0, 1), cells=1024),
    "squared_error": BoundedSum(error="squared", score_range=(0, 1), with_rest=True),
    "absolute_error": BoundedSum(error="absolute", score_range=(-1, 3), with_rest=True),
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


def statements() -> dict[str, str]:
    found = {}
    for units in UNITS:
        data = dataset(units)
        found[f"validation_{units}"] = validation.statement(
            data._engine, [*data._rules(), *data._keys.rules()], data._keys
        )
        for name, statistic in STATISTICS.items():
            if units == "rows" or name == "threshold_counts":
                found[f"{name}_{units}"] = data.statement(statistic.body())
    text = dataset("rows", "outcome")
    found["threshold_counts_text_label"] = text.statement(STATISTICS["threshold_counts"].body())
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", statements())
def test_the_sql_is_the_one_that_was_reviewed(name: str, dialect: str) -> None:
    path = GOLDEN / dialect / f"{name}.sql"
    found = sql.transpile(statements()[name], dialect=dialect) + "\n"
    if os.environ.get("HELDOUT_REWRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


def test_no_reviewed_file_is_left_over() -> None:
    expected = {f"{dialect}/{name}.sql" for dialect in DIALECTS for name in statements()}
    assert {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.sql")} == expected


@pytest.mark.parametrize("name", [name for name in statements() if "validation" not in name])
def test_the_reviewed_duckdb_text_gives_what_the_program_runs(name: str) -> None:
    """Laying a statement out for a reader must not change what it says."""
    engine = dataset("rows")._engine
    program = engine.fetch(statements()[name] + " ORDER BY ALL")
    reviewed = engine.fetch((GOLDEN / "duckdb" / f"{name}.sql").read_text() + " ORDER BY ALL")
    assert {key: list(each) for key, each in program.items()} == {
        key: list(each) for key, each in reviewed.items()
    }


NOT_PORTABLE = {"postgres": ("IS_NAN", "HASH(", "TRY_CAST", "QUALIFY"), "spark": ("QUALIFY",)}


@pytest.mark.parametrize("dialect", NOT_PORTABLE)
def test_the_statements_of_statistics_use_nothing_that_an_engine_lacks(dialect: str) -> None:
    for name, statement in statements().items():
        if "validation" not in name:
            text = sql.transpile(statement, dialect=dialect)
            assert not any(each in text for each in NOT_PORTABLE[dialect]), name


@pytest.fixture(scope="module")
def postgres() -> Any:
    address = os.environ.get("HELDOUT_TEST_POSTGRES")
    if not address:
        pytest.skip("HELDOUT_TEST_POSTGRES is not set; tools/with_postgres.sh sets it")
    import sqlalchemy

    address = address.replace("postgresql://", "postgresql+psycopg://", 1)
    with sqlalchemy.create_engine(address).connect() as connection:
        connection.exec_driver_sql(
            "CREATE TEMPORARY TABLE heldout_rows (visit INT, patient TEXT, readmitted INT, "
            "outcome TEXT, risk DOUBLE PRECISION)"
        )
        rows = list(zip(*(np.asarray(column).tolist() for column in ROWS.values()), strict=True))
        connection.exec_driver_sql("INSERT INTO heldout_rows VALUES (%s, %s, %s, %s, %s)", rows)
        yield connection


@pytest.mark.parametrize("label", ["readmitted", "outcome"])
@pytest.mark.parametrize("units", ["rows", "units"])
@pytest.mark.parametrize("name", STATISTICS)
def test_postgresql_gives_the_same_integers(
    postgres: Any, name: str, units: str, label: str
) -> None:
    data, statistic = dataset(units, label), STATISTICS[name]
    statement = sql.transpile(data.statement(statistic.body()), dialect="postgres")
    result = postgres.exec_driver_sql(statement)
    names, rows = list(result.keys()), result.fetchall()
    columns = {key: np.array([row[place] for row in rows]) for place, key in enumerate(names)}
    expected = unseal(compute(statistic, data)).tolist()
    assert statistic.read(columns).tolist() == expected
