"""Questions with at most 2 rows of a person against the same without, on PostgreSQL and Spark.

    bash tools/with_postgres.sh python -m benchmarks.engine_people

Three rows a person. Each kind of question is asked once before it is timed, of both, and then in
turn, so that what else the machine does falls on both alike. Wall time: the server's and the JVM's
work is not this process's.
"""

import statistics
import tempfile
import time
from typing import Any

import duckdb

from benchmarks.engines import local_spark, postgres_rows
from benchmarks.figure import judge
from heldout.data import Dataset

POSTGRES_ROWS, SPARK_ROWS = 1_000_000, 4_000_000
ROUNDS = 5
PERSON = {"unit": "person", "rows_per_unit": 2, "row_key": "id"}
PLAIN = {"label": "y", "score": "p", "neighbours": "add-remove"}


def postgres_people(rows: int = POSTGRES_ROWS) -> list[bool]:
    person = f", floor(random() * {rows // 3})::bigint AS person"
    with postgres_rows(rows, person) as there:
        return [] if there is None else asked("PostgreSQL", rows, there[1])


def spark_people(rows: int = SPARK_ROWS) -> list[bool]:
    """Nothing where pyspark or a JVM is missing."""
    if (spark := local_spark()) is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/scored.parquet"
        duckdb.sql(
            "COPY (SELECT i AS id, CAST(random() < 0.1 AS INTEGER) AS y, random() AS p, "
            f"CAST(floor(random() * {rows // 3}) AS BIGINT) AS person FROM range({rows}) AS t(i)) "
            f"TO '{path}' (FORMAT parquet)"
        )
        found = asked("Spark", rows, spark.read.parquet(path))
    spark.stop()
    return found


def asked(name: str, rows: int, table: Any) -> list[bool]:
    import heldout as ho

    start = time.perf_counter()
    bounded = Dataset(table, **PLAIN, **PERSON)
    opened = time.perf_counter() - start
    free = Dataset(table, **PLAIN, row_key="id")
    sessions = [ho.Session(each, budget=ho.Budget(epsilon=100)) for each in (bounded, free)]
    figures, told = [], [f"opened with persons in {opened:.2f} s"]
    for kind in ("confusion", "brier", "curves"):
        took: list[list[float]] = [[], []]
        for round_ in range(ROUNDS + 1):
            for session, times in zip(sessions, took, strict=True):
                start = time.perf_counter()
                getattr(session, kind)(epsilon=1)
                if round_:  # the first may bound people, and reads what is kept after that
                    times.append(time.perf_counter() - start)
        of_people, without = map(statistics.median, took)
        told.append(f"{kind} {of_people:.2f} and {without:.2f} s")
        what = f"second {kind} with persons / without, {name}"
        figures.append(judge(what, of_people / without, 1.2))
    print(f"{name}, {rows:,} rows: {', '.join(told)}")
    return figures


def main() -> bool:
    return all(postgres_people() + spark_people())


if __name__ == "__main__":
    main()
