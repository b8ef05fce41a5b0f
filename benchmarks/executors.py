"""How a Spark cluster splits the work: the score table with two executors against one.

    python -m benchmarks.executors [rows]

Starts a standalone cluster on loopback twice (tools/with_cluster.py): one worker of one core, then
two. Rows are computed as they are read, so that processors and no disk are measured. The shortest
of three runs each; with fewer idle cores than executors there is nothing to gain.

What a run costs is also counted in processor seconds, of the executors and of all other processes
of the cluster with the driver. All of them share this machine's cores, so two executors cannot be
faster than all of it divided by the cores; an executor of one core uses more than one while it
compiles and collects garbage. That floor, and what more cores would give, are printed too.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figure import judge

ROWS = 50_000_000
RUNS = 3
CLUSTER = Path(__file__).parent.parent / "tools" / "with_cluster.py"


def work() -> dict[str, float]:
    """Processor seconds so far of all executors, and of every other Java process and this one."""
    ticks, found = os.sysconf("SC_CLK_TCK"), {"executors": 0.0, "others": time.process_time()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            times = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if b"java" in command.partition(b"\0")[0] and b"spark" in command:
            kind = "executors" if b"CoarseGrainedExecutorBackend" in command else "others"
            found[kind] += (int(times[11]) + int(times[12])) / ticks
    return found


def measured(rows: int) -> dict[str, float]:
    """Wall and processor seconds of the shortest run, in the cluster of HELDOUT_TEST_SPARK."""
    from pyspark.sql import SparkSession

    from heldout.data import Dataset
    from heldout.kernel.ranking.statistic import ScoreTable
    from heldout.kernel.statistic import compute

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
        before, start = work(), time.perf_counter()
        compute(ScoreTable(score_range=(0, 1)), dataset)
        seconds, after = time.perf_counter() - start, work()
        took.append({"seconds": seconds, **{name: after[name] - before[name] for name in after}})
    spark.stop()
    return min(took, key=lambda each: each["seconds"])


def main(rows: int = ROWS) -> bool:
    found = []
    for workers in (1, 2):
        cluster = [sys.executable, str(CLUSTER), "--workers", str(workers), "--cores", "1"]
        inner = [sys.executable, "-m", "benchmarks.executors", "--inside", str(rows)]
        done = subprocess.run(
            [*cluster, "--alone", *inner], check=True, capture_output=True, text=True
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
        told = ", ".join(f"{name} {value:.2f}" for name, value in found[-1].items())
        print(f"{workers} executors, {rows:,} rows: {told} (the last two processor s)", flush=True)
    one, two = found
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f}")
    floor = (two["executors"] + two["others"]) / cores / one["seconds"]
    print(f"  with {cores} cores it cannot be below {floor:.2f}: the work of all divided by them")
    apart = one["seconds"] - one["executors"]
    if apart > 0:  # on idle cores: what no executor does, which a second one does not shorten
        print(f"  cores enough, by Amdahl: {1 - one['executors'] / 2 / one['seconds']:.2f}")
    return judge("time with 2 executors / with 1", two["seconds"] / one["seconds"], 0.65)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        print(json.dumps(measured(int(sys.argv[-1]))))
    else:
        main(*map(int, sys.argv[1:2]))
