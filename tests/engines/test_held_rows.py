"""People are bounded once: an engine elsewhere keeps the rows that it would find each time."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.data.measured import RegressionTable
from heldout.data.sql import transpile
from heldout.data.table import CopiedRows, Holding
from heldout.errors import UnreadableTable
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.statistic import compute
from heldout.questions.counts import ThresholdCounts

ROWS = pa.table(
    {
        "visit": range(90),
        "person": [i * i % 23 for i in range(90)],
        "y": [i % 3 % 2 for i in range(90)],
        "p": [i / 90 for i in range(90)],
        "q": [1 - i / 90 for i in range(90)],
        "w": [i % 4 + 0.5 for i in range(90)],
        "sex": ["FM"[i % 2] for i in range(90)],
        "place": [f'it\'s "{i % 5}"' for i in range(90)],
        "unused": list(range(90)),
    }
)
DECLARED: dict[str, Any] = {
    "label": "y",
    "score": "p",
    "unit": "person",
    "rows_per_unit": 2,
    "row_key": "visit",
}
MORE: dict[str, Any] = {
    "rivals": ["q"],
    "groups": {"sex": ["F", "M"], "place": ['it\'s "3"']},
    "weight": "w",
    "largest_weight": 4,
}


def counts(dataset: ho.Dataset) -> list[int]:
    return unseal(compute(ThresholdCounts(thresholds=(0.4,)), dataset)).tolist()  # type: ignore[no-any-return]


def views(dataset: ho.Dataset) -> dict[str, ho.Dataset]:
    return {
        "plain": dataset,
        "rival": dataset.with_rival("q"),
        "groups": dataset.with_groups(["sex", "place"]),
        "lists": dataset.with_lists(),
    }


def searches(view: ho.Dataset) -> bool:
    """Whether a question looks for the rows that count."""
    return "row_number" in view.statement("SELECT 1 AS n FROM evaluated")


def rows_of(view: ho.Dataset) -> list[tuple[Any, ...]]:
    names = list(view._exposed_columns)
    columns = view._fetch(f"SELECT {', '.join(names)} FROM evaluated")
    return sorted(zip(*(np.asarray(columns[name]).tolist() for name in names), strict=True))


def test_every_view_reads_the_rows_that_were_kept(engine: Any) -> None:
    here = views(ho.Dataset(ROWS, **DECLARED, **MORE))
    there = views(ho.Dataset(engine.hold(ROWS), **DECLARED, **MORE))
    for name, view in there.items():
        assert searches(view) != isinstance(view._engine, Holding), name
        assert rows_of(view) == rows_of(here[name]), name
        view._bounded = None
        assert searches(view), name
        assert rows_of(view) == rows_of(here[name]), name


def test_only_declared_columns_are_kept(engine: Any) -> None:
    dataset = ho.Dataset(engine.hold(ROWS), **DECLARED, **MORE)
    if not isinstance(dataset._engine, Holding):
        pytest.skip("this engine keeps nothing")
    assert isinstance(dataset._bounded, CopiedRows)
    assert dataset._bounded.names == {"person", "y", "p", "q", "w", "sex", "place"}
    dataset._exposed_columns = {**dataset._exposed_columns, "more": 'held."unused"'}
    assert len(rows_of(dataset)) == len(rows_of(views(dataset)["plain"])) < 90


def test_classes_and_residuals_are_asked_of_the_rows_that_were_kept(engine: Any) -> None:
    declared = {name: DECLARED[name] for name in ("unit", "rows_per_unit", "row_key")}
    both = [ROWS, engine.hold(ROWS)]
    classes = [
        ho.Dataset(rows, label="sex", classes=["F", "M"], scores=["p", "q"], **declared)
        for rows in both
    ]
    residuals = [
        RegressionTable(rows, observed="w", coefficients={"p": 2.0, "intercept": 0.5}, **declared)
        for rows in both
    ]
    for here, there in (classes, residuals, [each.versus(1) for each in classes]):
        assert searches(there) != isinstance(there._engine, Holding)
        assert rows_of(there) == rows_of(here)


def test_an_arrow_data_set_keeps_the_rows_that_count(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    here = ho.Dataset(ROWS, **DECLARED, **MORE)
    there = ho.Dataset(pa.dataset.dataset(tmp_path), **DECLARED, **MORE)
    for name, view in views(there).items():
        assert not searches(view), name
        assert rows_of(view) == rows_of(views(here)[name]), name


def test_too_many_rows_of_an_arrow_data_set_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heldout.data.duckdb.MOST_KEPT", 80)
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    there = ho.Dataset(pa.dataset.dataset(tmp_path), **DECLARED)
    assert there._bounded is None
    assert counts(there) == counts(ho.Dataset(ROWS, **DECLARED))


# --- PostgreSQL ----------------------------------------------------------------------------------


def test_a_server_that_lets_nothing_be_kept_is_asked_as_before(postgres: Any) -> None:
    """A role or a replica that only reads, and a role without the right to temporary tables."""
    place, expected = postgres.hold(ROWS).table, counts(ho.Dataset(ROWS, **DECLARED))
    reading = f"{postgres.address}?options=-cdefault_transaction_read_only%3Don"
    user = f"plain_{postgres.schema}"
    execute = postgres.connection.execute
    execute(f"CREATE ROLE {user} LOGIN")
    execute(f"GRANT USAGE ON SCHEMA {postgres.schema} TO {user}")
    execute(f"GRANT SELECT ON {place} TO {user}")
    execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
    try:
        for address in (reading, postgres.address.replace("heldout@", f"{user}@")):
            dataset = ho.Dataset(address, table=place, **DECLARED)
            assert dataset._bounded is None
            assert counts(dataset) == expected
    finally:
        del dataset
        execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")
        execute(f"DROP OWNED BY {user}")
        execute(f"DROP ROLE {user}")


def test_a_server_without_room_is_asked_as_before(postgres: Any) -> None:
    """The limit is for superusers to set, so the test sets it where the rows are kept."""
    from heldout.data.postgres import PostgresEngine

    held = postgres.hold(ROWS)
    engine = held.open()
    assert isinstance(engine, PostgresEngine)
    engine._connection.execute("SET LOCAL temp_file_limit = '64kB'")
    engine._connection.execute("SET LOCAL work_mem = '64kB'")
    thrice = ", ".join(f"{engine.source} AS {name}" for name in "abc")
    many = f"SELECT a.visit AS cell_0 FROM {thrice} ORDER BY b.visit, c.visit, a.visit"
    assert engine.hold(many, rows=90**3) is None
    assert not engine.has_changed()
    assert engine.fetch(f"SELECT count(*) AS n FROM {engine.source}")["n"][0] == 90


def test_what_others_write_is_not_seen_among_people(postgres: Any) -> None:
    held = postgres.hold(ROWS)
    dataset = ho.Dataset(held, **DECLARED)
    before = counts(dataset)
    postgres.connection.execute(f"DELETE FROM {held.table} WHERE visit < 40")
    assert counts(dataset) == before
    assert not dataset.has_changed()


def test_keeping_rows_gives_a_query_no_way_to_write(postgres: Any) -> None:
    """Its functions run while rows are kept, where they may write to no table that lasts."""
    place, name = postgres.hold(ROWS).table, f"{postgres.schema}.meddling"
    for number, body in enumerate(
        (
            f"INSERT INTO {place} (visit) VALUES (777)",
            f"SET TRANSACTION READ WRITE; INSERT INTO {place} (visit) VALUES (777)",
            f"CREATE TABLE {postgres.schema}.made (x int)",
        )
    ):
        function = f"{name}{number}"
        postgres.connection.execute(
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN"
            # Only while rows are kept: what is only validated would fail before.
            f" IF EXISTS (SELECT 1 FROM pg_class WHERE relname = 'heldout_held') THEN {body};"
            " END IF; RETURN 1; END $$"
        )
        query = f"SELECT *, {function}() AS m FROM {place}"
        with pytest.raises(UnreadableTable):
            ho.Dataset(postgres.address, query=query, **DECLARED, rivals=["m"])
    found = postgres.connection.execute(f"SELECT count(*) FROM {place}").fetchone()
    assert found[0] == 90


def test_the_kept_rows_end_with_the_data_set(postgres: Any) -> None:
    dataset = ho.Dataset(postgres.hold(ROWS), **DECLARED)
    connection = dataset._engine._connection  # type: ignore[attr-defined]
    there = (
        "SELECT count(*) FROM pg_class WHERE relname = 'heldout_held' AND pg_table_is_visible(oid)"
    )
    assert connection.execute(there).fetchone()[0] == 1
    connection.commit()
    assert dataset.has_changed()
    assert connection.execute(there).fetchone()[0] == 0


def test_a_row_that_fails_while_rows_are_kept_is_refused_before_anything_is_booked(
    postgres: Any,
) -> None:
    held = postgres.hold(ROWS)
    engine = held.open()
    failing = f"SELECT 1 // (held.visit - 7) AS cell_0 FROM {engine.source} AS held"
    with pytest.raises(UnreadableTable) as caught:
        engine.hold(failing, rows=90)
    assert caught.value.__context__ is None
    assert not engine.has_changed()


# --- Spark ---------------------------------------------------------------------------------------


def kept_by(session: Any) -> int:
    return int(session.sparkContext._jsc.getPersistentRDDs().size())


def test_spark_keeps_the_rows_of_each_data_set_and_lets_go_of_them(
    spark_session: Any, spark: Any
) -> None:
    gc.collect()
    before, frame = kept_by(spark_session), spark.hold(ROWS)
    first, second = (ho.Dataset(frame, **DECLARED) for _ in range(2))
    expected = counts(ho.Dataset(ROWS, **DECLARED))
    assert counts(first) == counts(second) == expected
    assert kept_by(spark_session) == before + 2
    del first
    gc.collect()
    assert kept_by(spark_session) == before + 1
    text = transpile(second.statement("SELECT count(*) AS n FROM evaluated"), dialect="spark")
    plan = second._engine._session.sql(text)._jdf.queryExecution()  # type: ignore[attr-defined]
    assert "InMemoryTableScan" in plan.toString()
    spark_session.catalog.clearCache()
    assert counts(second) == expected
    del second
    gc.collect()
    assert kept_by(spark_session) == 0


def check_that_changed_files_are_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "part-0.parquet")
    dataset = ho.Dataset(spark.read.parquet(str(tmp_path)), **DECLARED)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    session.confusion(epsilon="1/4")
    pq.write_table(ROWS.slice(0, 50), tmp_path / "part-0.parquet")
    with pytest.raises(UnreadableTable, match="must not change"):
        session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4")


def test_files_of_spark_that_changed_are_refused_though_their_rows_are_kept(
    spark_session: Any, tmp_path: Path
) -> None:
    check_that_changed_files_are_refused(spark_session, tmp_path)
