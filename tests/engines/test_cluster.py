"""Spark Connect like classic Spark: tools/with_cluster.py starts both."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.engines.test_held_rows import check_that_changed_files_are_refused
from tests.engines.test_postgres import DECLARED, ROWS
from tests.engines.test_spark import CELL, FAILING

import heldout as ho
from heldout.errors import ArgumentError, UnreadableTable


def test_every_release_works_on_a_frame_of_connect(connect_session: Any) -> None:
    frame = connect_session.createDataFrame(ROWS).selectExpr("*", "visit div 4 AS person")
    dataset = ho.Dataset(frame, **DECLARED, rivals=["q"], unit="person", rows_per_unit=2)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=20))
    assert -1 <= session.compare(score="q", epsilon=2).value <= 1
    assert "remaining" in session.report(epsilon=2, curves=True).as_dict()
    before = connect_session.conf.get("spark.sql.session.timeZone")
    assert before == connect_session.conf.get("spark.sql.session.timeZone")


def test_connect_plans_that_draw_at_random_are_refused(connect_session: Any) -> None:
    frame = connect_session.createDataFrame(ROWS)
    assert ho.Dataset(frame.orderBy("visit").limit(30), **DECLARED).public_rows == 30
    for drawn in (frame.selectExpr("*", "rand() AS r"), frame.sample(0.5), frame.limit(30)):
        with pytest.raises(ArgumentError, match="same rows each time"):
            ho.Dataset(drawn, **DECLARED)
    stream = connect_session.readStream.format("rate").load()
    with pytest.raises(ArgumentError, match="stream"):
        ho.Dataset(stream, label="value", score="value", row_key="value")


def test_connect_files_that_changed_are_refused(connect_session: Any, tmp_path: Path) -> None:
    check_that_changed_files_are_refused(connect_session, tmp_path)


@pytest.mark.parametrize("loud", [False, True])
@pytest.mark.parametrize("expression", FAILING)
def test_a_connect_frame_that_fails_says_nothing_of_its_rows(
    connect_session: Any, capfd: pytest.CaptureFixture[str], expression: str, loud: bool
) -> None:
    """Not even where Connect's own log is on, as SPARK_CONNECT_LOG_LEVEL=DEBUG turns it on."""
    log = logging.getLogger("pyspark.sql.connect.logging")
    before = log.disabled, log.level
    log.disabled, log.level = not loud, logging.DEBUG
    try:
        text = connect_session.createDataFrame(ROWS).selectExpr("*", f"{CELL} AS t")
        failing = text.selectExpr("visit", "y", f"IF(visit = 7, {expression}, p) AS p")
        with pytest.raises(UnreadableTable) as caught:
            ho.Dataset(failing, **DECLARED)
    finally:
        log.disabled, log.level = before
    assert "8675309" not in str(caught.value)
    assert caught.value.__context__ is None
    assert "8675309" not in "".join(capfd.readouterr())
