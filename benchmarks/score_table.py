"""The score table of a large Parquet file against DuckDB's plain sum of the same two columns.

    python -m benchmarks.score_table [rows]

Makes its own file of random labels and scores in a temporary folder (8 bytes a row), measures the
sum and the table in turn, and the peak memory of a process that makes the table.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.figure import judge
from heldout.data import Dataset
from heldout.data.dataset import LABELS_AND_SCORES
from heldout.data.duckdb import SETTINGS
from heldout.kernel.ranking.statistic import ScoreTable


def make(path: Path, rows: int) -> None:
    duckdb.sql(
        f"COPY (SELECT CAST(random() < 0.1 AS TINYINT) AS y, random() AS p FROM range({rows})) "
        f"TO '{path}' (FORMAT parquet)"
    )


def measure(path: Path, *, repeat: int = 7) -> tuple[float, float, float]:
    """Median seconds of the plain sum and of the table, measured in turn, and their ratio.

    The third number is the ratio of processor seconds, which others on the machine blur less.
    """
    connection = duckdb.connect(":memory:", config=SETTINGS)
    dataset, table = Dataset(path, label="y", score="p"), ScoreTable(score_range=(0, 1))
    statement = dataset.statement(LABELS_AND_SCORES)
    # Past the table that the data set keeps: every turn reads the rows.
    turns = (
        lambda: connection.execute(f"SELECT sum(y), sum(p) FROM read_parquet('{path}')").fetchall(),
        lambda: table.read(dataset._tallied(statement).columns()),
    )
    wall: tuple[list[float], list[float]] = ([], [])
    processor: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for which, turn in enumerate(turns):
            start = time.perf_counter(), time.process_time()
            turn()
            wall[which].append(time.perf_counter() - start[0])
            processor[which].append(time.process_time() - start[1])
    plain, ours = (statistics.median(each) for each in wall)
    work = [statistics.median(each) for each in processor]
    return plain, ours, work[1] / work[0]


def peak_gibibytes(path: Path) -> float:
    code = (
        "import sys, resource; from benchmarks.score_table import *\n"
        "from heldout.kernel import compute\n"
        "compute(ScoreTable(score_range=(0, 1)), Dataset(sys.argv[1], label='y', score='p'))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return int(out.stdout) / 2**20


def main(rows: int = 100_000_000) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        make(large, rows)
        make(small, rows // 10)
        plain, ours, work = measure(large)
        _, tenth, _ = measure(small)
        print(f"{rows:,} rows: plain sum {plain:.2f} s, score table {ours:.2f} s")
        print(f"in processor seconds the table is {work:.2f} times the sum")
        return all(
            [
                judge("score table / plain sum of the two columns", ours / plain, 1.6),
                judge(f"{rows:,} rows / {rows // 10:,} rows", ours / tenth, 11),
                judge("peak memory of the whole process", peak_gibibytes(large), 1, unit=" GiB"),
            ]
        )


if __name__ == "__main__":
    assert resource  # used by the measured process
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000)
