"""The score table of a large Parquet file against DuckDB's plain sum of the same two columns.

    python -m benchmarks.score_table [rows]

Makes its own file of random labels and scores in a temporary folder (8 bytes a row), measures the
sum and the table in turn, and the peak memory of a process that makes the table.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.figure import judge
from heldout.data import Dataset
from heldout.data.engine import SETTINGS
from heldout.statistics import ScoreTable, compute


def make(path: Path, rows: int) -> None:
    duckdb.sql(
        f"COPY (SELECT CAST(random() < 0.1 AS TINYINT) AS y, random() AS p FROM range({rows})) "
        f"TO '{path}' (FORMAT parquet)"
    )


def measure(path: Path, *, repeat: int = 7) -> tuple[float, float]:
    """Median seconds of the plain sum and of the table, measured in turn."""
    connection = duckdb.connect(":memory:", config=SETTINGS)
    dataset, table = Dataset(path, label="y", score="p"), ScoreTable(score_range=(0, 1))
    plain, ours = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        connection.execute(f"SELECT sum(y), sum(p) FROM read_parquet('{path}')").fetchall()
        middle = time.perf_counter()
        compute(table, dataset)
        plain.append(middle - start)
        ours.append(time.perf_counter() - middle)
    return sorted(plain)[repeat // 2], sorted(ours)[repeat // 2]


def peak_gibibytes(path: Path) -> float:
    code = (
        "import sys, resource; from benchmarks.score_table import *\n"
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
        plain, ours = measure(large)
        _, tenth = measure(small)
        print(f"{rows:,} rows: plain sum {plain:.2f} s, score table {ours:.2f} s")
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
