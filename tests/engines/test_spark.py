"""Spark: the caller's session stays as it is, and rows that may change are refused."""

import gc
import logging
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engines.test_postgres import DECLARED, ROWS, counts

import heldout as ho
from heldout.errors import ArgumentError, MissingDependency, UnreadableTable


def test_every_release_works_on_a_frame_and_on_a_table(spark_session: Any) -> None:
    frame = spark_session.createDataFrame(ROWS).selectExpr("*", "visit div 4 AS person")
    frame.createOrReplaceTempView("visits")
    for source in (spark_session.table("visits"), spark_session.sql("TABLE visits")):
        dataset = ho.Dataset(source, **DECLARED)
        assert (dataset.public_rows, dataset.remote, dataset.name) == (60, True, "data")
    dataset = ho.Dataset(frame, **DECLARED, rivals=["q"], unit="person", rows_per_unit=2)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=20))
    assert -1 <= session.compare(score="q", epsilon=2).value <= 1
    assert "remaining" in session.report(epsilon=2, curves=True).as_dict()


def test_the_other_workflows_read_a_frame(spark: Any) -> None:
    frame = spark.hold(ROWS)
    plot = ho.regression.residual_plot(
        frame, observed="y", predicted="p", row_key="visit", epsilon="1"
    )
    assert str(plot.loss) == "epsilon 1"
    public = {name: ROWS[name].to_pylist() for name in ROWS.column_names}
    found = ho.private_separability(frame, public, epsilon="1", row_key="visit")
    assert -1 <= found.value <= 1


def test_the_callers_session_is_left_as_it_was(spark_session: Any, spark: Any) -> None:
    before = dict(spark_session.conf.getAll)
    dataset = ho.Dataset(spark.hold(ROWS), **DECLARED)
    assert counts(dataset) == [40, 20]
    assert dict(spark_session.conf.getAll) == before
    assert [each.name for each in spark_session.catalog.listTables("global_temp")] != []
    del dataset
    gc.collect()
    left = [each.name for each in spark_session.catalog.listTables("global_temp")]
    assert not any(name.startswith("heldout_rows") for name in left)


def test_a_plan_that_draws_at_random_is_refused(spark: Any) -> None:
    frame = spark.hold(ROWS)
    assert ho.Dataset(frame.orderBy("visit").limit(30), **DECLARED).public_rows == 30
    for drawn in (frame.selectExpr("*", "rand() AS r"), frame.sample(0.5), frame.limit(30)):
        with pytest.raises(ArgumentError, match="same rows each time"):
            ho.Dataset(drawn, **DECLARED)


def test_a_stream_and_other_frames_are_refused(spark_session: Any) -> None:
    stream = spark_session.readStream.format("rate").load()
    with pytest.raises(ArgumentError, match="stream"):
        ho.Dataset(stream, label="value", score="value", row_key="value")
    with pytest.raises(ArgumentError, match="Spark DataFrame"):
        ho.Dataset(spark_session, **DECLARED)
    with pytest.raises(ArgumentError, match="schema= is for CSV files only"):
        ho.Dataset(stream, schema={"value": "BIGINT"}, **DECLARED)


@pytest.mark.parametrize("name", ["rows", "a b%20c"])
def test_files_that_changed_are_refused_and_nothing_is_charged(
    spark_session: Any, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.mkdir()
    pq.write_table(ROWS, path / "part-0.parquet")
    dataset = ho.Dataset(spark_session.read.parquet(str(path)), **DECLARED)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    assert not dataset.has_changed()
    session.confusion(epsilon="1/4")
    pq.write_table(ROWS.slice(0, 50), path / "part-0.parquet")
    with pytest.raises(UnreadableTable, match="must not change"):
        session.confusion(epsilon="1/4")
    (path / "part-0.parquet").unlink()
    with pytest.raises(UnreadableTable, match="must not change"):
        session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4")


CELL = "concat('x86', CAST(visit - 7 + 75309 AS STRING))"
"""x8675309 in the row of visit 7, and nowhere in the plan."""
FAILING = [
    "CAST(t AS DOUBLE)",
    "CAST(raise_error(t) AS DOUBLE)",
    "CAST(to_timestamp(t) AS DOUBLE)",
    "CAST(to_number(t, '999') AS DOUBLE)",
    "CAST(unix_date(date(t)) AS DOUBLE)",
    "element_at(array(p), CAST(substr(t, 2) AS INT))",
    "CAST(CAST(substr(t, 2) AS BIGINT) * 9223372036854775807 AS DOUBLE)",
    "CAST(CAST(substr(t, 2) AS DECIMAL(9, 0)) AS DECIMAL(3, 0)) + p",
    "CAST(from_json(concat('{', t), 'a INT', map('mode', 'FAILFAST')).a AS DOUBLE)",
    "CAST(assert_true(t IS NULL, t) AS DOUBLE)",
]


@pytest.mark.parametrize("expression", FAILING)
def test_a_frame_of_spark_that_fails_says_nothing_of_its_rows(
    spark_session: Any,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    expression: str,
) -> None:
    """Nor do the loggers of PySpark and of Py4J, at their loudest."""
    text = _strict(spark_session).createDataFrame(ROWS).selectExpr("*", f"{CELL} AS t")
    failing = text.selectExpr("visit", "y", f"IF(visit = 7, {expression}, p) AS p")
    caplog.set_level(logging.DEBUG)
    for name in ("py4j", "py4j.clientserver", "py4j.java_gateway"):
        caplog.set_level(logging.DEBUG, logger=name)
    with pytest.raises(UnreadableTable) as caught:
        ho.Dataset(failing, **DECLARED)
    assert "8675309" not in str(caught.value)
    assert caught.value.__context__ is None
    assert "8675309" not in caplog.text
    assert "8675309" not in "".join(capfd.readouterr())


def test_a_function_of_python_that_fails_on_a_row_of_spark_says_nothing_of_it(
    spark_session: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql.functions import udf

    def scored(visit: int) -> float:
        return float(f"x86{visit - 7 + 75309}") if visit == 7 else 0.5

    frame = spark_session.createDataFrame(ROWS)
    failing = frame.select("visit", "y", udf(scored, "double")("visit").alias("p"))
    caplog.set_level(logging.DEBUG)
    with pytest.raises(UnreadableTable) as caught:
        ho.Dataset(failing, **DECLARED)
    assert caught.value.__context__ is None
    assert "8675309" not in str(caught.value) + caplog.text + "".join(capfd.readouterr())


def _strict(session: Any) -> Any:
    """Casts that fail do so when a row is read, whatever the session of the others says."""
    strict = session.newSession()
    strict.conf.set("spark.sql.ansi.enabled", "true")
    return strict


def test_a_statement_that_takes_too_long_is_cancelled_and_later_ones_are_not(
    spark_session: Any,
) -> None:
    frame = spark_session.createDataFrame(ROWS)
    inner = "aggregate(sequence(1, 1000), 0D, (sum, z) -> sum + z * id)"
    long = f"least(aggregate(sequence(1, 1000), 0D, (sum, z) -> sum + {inner}), 0.5D)"
    slow = spark_session.range(1000).selectExpr("id AS visit", "id % 2 AS y", f"{long} AS p")
    before = spark_session.sparkContext.getJobTags()
    assert counts(ho.Dataset(ho.SparkTable(frame, timeout=60), **DECLARED)) == [40, 20]
    start = time.monotonic()
    with pytest.raises(UnreadableTable, match="longer than the time-out"):
        ho.Dataset(ho.SparkTable(slow, timeout=0.5), **DECLARED)
    assert time.monotonic() - start < 60  # all rows would take minutes
    assert spark_session.sparkContext.getJobTags() == before
    assert counts(ho.Dataset(frame, **DECLARED)) == [40, 20]


def test_a_time_out_is_a_number_of_seconds() -> None:
    assert repr(ho.SparkTable(None)) == "SparkTable(timeout=3600)"
    for timeout in (0, -1, "1", True, None, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="timeout"):
            ho.SparkTable(None, timeout=timeout)  # type: ignore[arg-type]


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has a Spark frame has some PySpark, but perhaps none that can be imported."""
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingDependency, match=r"heldout\[spark\]"):
        ho.Dataset(frame, **DECLARED)


@pytest.mark.parametrize("age", [39, 40])
def test_no_private_value_decides_between_an_answer_and_a_failure(
    spark_session: Any, tmp_path: Path, age: int
) -> None:
    """The rival 1 / (age - 40) fails on a patient of forty, and on no other."""
    strict = spark_session.newSession()
    strict.conf.set("spark.sql.ansi.enabled", "true")
    rival = f"1.0D / (CASE WHEN visit = 7 THEN {age} ELSE 20 END - 40) AS r"
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    frame = strict.read.parquet(str(tmp_path / "rows.parquet")).selectExpr("*", rival)
    session = ho.Session(ho.Dataset(frame, **DECLARED), budget=ho.Budget(epsilon=1))
    with pytest.raises(ArgumentError, match="declared rivals"):
        session.compare(score="r", epsilon=1)
    assert str(session.remaining) == "epsilon 1"
    declared = DECLARED | {"rivals": ["r"], "out_of_range": "clip"}
    if age == 40:
        with pytest.raises(UnreadableTable):
            ho.Dataset(frame, **declared)
    else:
        rows = ho.Dataset(frame, **declared)
        answer = ho.Session(rows, budget=ho.Budget(epsilon=1)).compare(score="r", epsilon=1)
        assert -1 <= answer.value <= 1
