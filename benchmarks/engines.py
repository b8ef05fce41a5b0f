"""The score table on PostgreSQL and Spark against a GROUP BY as anybody would write it there."""

import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from heldout.data import Dataset
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import compute

POSTGRES_ROWS, POSTGRES_MANY = 2_000_000, 50_000_000
SPARK_ROWS = 4_000_000
PLAIN = "SELECT y, CAST({} AS INT) AS point, count(*) AS n FROM {} GROUP BY 1, 2"


@contextmanager
def postgres_rows(rows: int, more: str = "") -> Iterator[tuple[Any, Any] | None]:
    """A connection and a made-up table; None where HELDOUT_TEST_POSTGRES names no server."""
    address = os.environ.get("HELDOUT_TEST_POSTGRES")
    if not address:
        print("PostgreSQL: not measured, there is no server (see tools/with_postgres.sh)")
        yield None
        return
    import psycopg

    import heldout as ho

    schema = f"bench_{secrets.token_hex(4)}"
    address = address.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            connection.execute(
                f"CREATE TABLE {schema}.scored AS SELECT i AS id, (random() < 0.1)::int AS y, "
                f"random() AS p {more} FROM generate_series(1, {rows}) AS t(i)"
            )
            connection.execute(f"VACUUM ANALYZE {schema}.scored")
            yield connection, ho.PostgresTable(address, table=f"{schema}.scored")
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def postgres_ratio(rows: int = POSTGRES_ROWS) -> float | None:
    with postgres_rows(rows) as there:
        if there is None:
            return None
        connection, table = there
        dataset = Dataset(table, label="y", score="p", row_key="id")
        query = PLAIN.format("p * 65536", table.table)
        ratio = _ratio("PostgreSQL", rows, lambda: connection.execute(query).fetchall(), dataset)
        del dataset  # its connection would keep the table from being dropped
    return ratio


def local_spark() -> Any:
    """A session of two threads; None where pyspark or a JVM is missing."""
    try:
        from pyspark.sql import SparkSession

        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
    except Exception:
        print("Spark: not measured, pyspark or a JVM is missing")
        return None
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def spark_ratio(rows: int = SPARK_ROWS) -> float | None:
    """None where pyspark or a JVM is missing."""
    if (spark := local_spark()) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/scored.parquet"
        duckdb.sql(
            "COPY (SELECT i AS id, CAST(random() < 0.1 AS INTEGER) AS y, random() AS p FROM "
            f"range({rows}) AS t(i)) TO '{path}' (FORMAT parquet)"
        )
        frame = spark.read.parquet(path)
        frame.createOrReplaceTempView("scored")
        dataset = Dataset(frame, label="y", score="p", row_key="id")
        query = PLAIN.format("rint(p * 65536)", "scored")
        ratio = _ratio("Spark", rows, lambda: spark.sql(query).toArrow(), dataset)
    spark.stop()
    return ratio


def _ratio(name: str, rows: int, plain: Callable[[], Any], dataset: Dataset) -> float:
    table = ScoreTable(score_range=(0, 1))
    theirs, ours = [], []
    for _ in range(5):
        start = time.perf_counter()
        plain()
        middle = time.perf_counter()
        dataset._kept.clear()  # the table would be read from the rows only once
        compute(table, dataset)
        theirs.append(middle - start)
        ours.append(time.perf_counter() - middle)
    base, found = statistics.median(theirs), statistics.median(ours)
    print(f"{name}, {rows:,} rows: GROUP BY {base:.2f} s, score table {found:.2f} s")
    return found / base


def main() -> bool:
    from benchmarks.figure import judge

    found = {"PostgreSQL": postgres_ratio(), "Spark": spark_ratio()}
    figures = [
        judge(f"score table / plain GROUP BY, {name}", ratio, 1.3)
        for name, ratio in found.items()
        if ratio is not None
    ]
    return all(figures)


if __name__ == "__main__":
    main()
