"""How a Spark cluster splits the work: the score table with two executors against one.

    python -m benchmarks.executors [rows]

Starts a standalone cluster on loopback twice (tools/with_cluster.py): one worker of one core, then
two. Rows are computed as they are read, so that processors and no disk are measured. The shortest
of three runs each; with fewer idle cores than executors there is nothing to gain.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figure import judge

ROWS = 50_000_000
RUNS = 3
CLUSTER = Path(__file__).parent.parent / "tools" / "with_cluster.py"


def measured(rows: int) -> float:
    """Seconds of the shortest run, in the cluster that HELDOUT_TEST_SPARK names."""
    from pyspark.sql import SparkSession

    from heldout.data import Dataset
    from heldout.statistics import ScoreTable, compute

    builder = SparkSession.builder.master(os.environ["HELDOUT_TEST_SPARK"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.range(0, rows, 1, 16).selectExpr(
        "id AS visit", "CAST(id % 10 = 0 AS INT) AS y", "abs(sin(id * 0.7D) * cos(id * 1.3D)) AS p"
    )
    dataset = Dataset(frame, label="y", score="p", row_key="visit")
    took = []
    for _ in range(RUNS):
        dataset._kept.clear()  # the table would be read from the rows only once
        start = time.perf_counter()
        compute(ScoreTable(score_range=(0, 1)), dataset)
        took.append(time.perf_counter() - start)
    spark.stop()
    return min(took)


def main(rows: int = ROWS) -> bool:
    found = []
    for workers in (1, 2):
        cluster = [sys.executable, str(CLUSTER), "--workers", str(workers), "--cores", "1"]
        inner = [sys.executable, "-m", "benchmarks.executors", "--inside", str(rows)]
        done = subprocess.run(
            [*cluster, "--alone", *inner], check=True, capture_output=True, text=True
        )
        found.append(float(done.stdout.splitlines()[-1]))
        print(f"{workers} executors, {rows:,} rows: {found[-1]:.2f} s", flush=True)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    return judge("time with 2 executors / with 1", found[1] / found[0], 0.65)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        print(measured(int(sys.argv[-1])))
    else:
        main(*map(int, sys.argv[1:2]))
