"""A whole evaluation of a large file, people, a ledger, and each engine, against the plain scan.

    python -m benchmarks.scale [rows] [--keep FOLDER]
    python -m benchmarks.scale --costs                 the table of docs/engines-cost.md
    python -m benchmarks.scale --people 300000000      people alone: opening, questions, memory
    bash tools/with_postgres.sh python -m benchmarks.scale

Makes Parquet files of random labels (int8) and scores (float64), 8 bytes a row, one of five
columns, and one of people with three rows each, and measures in turn, so that what else the machine
does falls on all alike: DuckDB's plain sum of the two columns, the command on a small file (its
start-up), and the command on the large one. PostgreSQL and Spark are measured where there is a
server or a JVM, on fewer rows: both sides of their ratio read the same ones.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.engines import postgres_ratio, spark_ratio
from benchmarks.figure import judge
from benchmarks.score_table import make
from heldout.data import Dataset
from heldout.data.dataset import LABELS_AND_SCORES
from heldout.data.duckdb_engine import SETTINGS
from heldout.data.grid import MANY_ROWS

HELDOUT = str(Path(sys.executable).with_name("heldout"))
RANKED = ("--sections", "auc", "average_precision", "curves")
ROUNDS = 3


@dataclass(frozen=True)
class Cost:
    """Wall seconds, processor seconds and peak memory (GiB)."""

    seconds: float
    work: float
    memory: float = 0.0


def run(*command: str) -> Cost:
    """One process, from start to end."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:2]} failed")
    seconds = time.perf_counter() - start
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def evaluate(path: Path, *options: str) -> Cost:
    asked = ("--label", "y", "--score", "p", "--epsilon", "1", *options)
    return run(HELDOUT, "evaluate", str(path), *asked)


def plain_scan(path: Path) -> Cost:
    connection = duckdb.connect(":memory:", config=SETTINGS)
    start = time.perf_counter(), time.process_time()
    connection.execute(f"SELECT sum(y), sum(p) FROM read_parquet('{path}')").fetchall()
    return Cost(time.perf_counter() - start[0], time.process_time() - start[1])


def median(costs: list[Cost]) -> Cost:
    """Each of its own, but the largest memory."""
    return Cost(
        statistics.median(each.seconds for each in costs),
        statistics.median(each.work for each in costs),
        max(each.memory for each in costs),
    )


def scikit_learn(path: Path) -> Cost:
    code = (
        "import sys, pyarrow.parquet; from sklearn.metrics import roc_auc_score\n"
        "rows = pyarrow.parquet.read_table(sys.argv[1])\n"
        "roc_auc_score(rows['y'].to_numpy(), rows['p'].to_numpy())"
    )
    return run(sys.executable, "-c", code, str(path))


def people(folder: Path, rows: int) -> list[bool]:
    """Opening with at most 2 rows of a person, and what later questions cost then."""
    path = folder / f"people-{rows}.parquet"
    if not path.exists():
        duckdb.sql(
            "COPY (SELECT CAST(random() < 0.1 AS TINYINT) AS y, random() AS p, i AS visit, "
            f"CAST(floor(random() * {rows // 3}) AS BIGINT) AS person FROM range({rows}) AS t(i)) "
            f"TO '{path}' (FORMAT parquet)"
        )
    code = (
        "import json, sys\n"
        "from benchmarks.scale import person_costs\n"
        "print(json.dumps(person_costs(sys.argv[1])))"
    )
    # A process of its own, whose largest memory is that of people alone.
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    print(f"{rows:,} rows of {rows // 3:,} people: {told}")
    figures = [
        judge(
            "opening with persons / streamed score table, processor time",
            found["opening"] / found["table"],
            7,
        ),
        judge(
            "opening with persons / GROUP BY, processor time",
            found["opening"] / found["group by"],
            7,
        ),
        judge(
            "streamed score table / GROUP BY, processor time",
            found["table"] / found["group by"],
            0.6,
        ),
        judge("peak memory with persons", found["memory"], 2, unit=" GiB"),
    ]
    for name in ("confusion", "brier", "curves"):
        ratio = found[f"{name} of people"] / found[name]
        figures.append(judge(f"second {name} with persons / without", ratio, 1.2))
    return figures


def person_costs(path: str) -> dict[str, float]:
    """Processor seconds to open, of a score table, and of a GROUP BY; seconds of questions."""
    import resource

    import heldout as ho

    declared = {"label": "y", "score": "p", "neighbours": "add-remove", "rivals": ()}
    Dataset({"y": [0, 1], "p": [0.0, 1.0]}, label="y", score="p")  # what is imported once
    start = time.process_time()
    bounded = Dataset(path, unit="person", rows_per_unit=2, row_key="visit", **declared)
    found = {"opening": time.process_time() - start}
    free = Dataset(path, **declared)
    connection = duckdb.connect(":memory:", config=SETTINGS)
    grouped = (
        f"SELECT y, CAST(p * 65536 AS INTEGER), count(*) FROM read_parquet('{path}') GROUP BY ALL"
    )
    sides = {
        "table": lambda: free._tallied(free.statement(LABELS_AND_SCORES)),
        "group by": lambda: connection.execute(grouped).fetchnumpy(),
    }
    for name, side in sides.items():
        took = []
        for _ in range(3):
            start = time.process_time()
            side()
            took.append(time.process_time() - start)
        found[name] = statistics.median(took)
    sessions = {"": free, " of people": bounded}
    for word, dataset in sessions.items():
        session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
        for name in ("confusion", "brier", "curves"):
            getattr(session, name)(epsilon=1)
            turns = medians([lambda s=session, n=name: getattr(s, n)(epsilon=1)], rounds=3)
            found[name + word] = turns[0]
    found["memory"] = max(
        found["memory"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    )
    return found


def five_columns(folder: Path, rows: int, start: Cost) -> list[bool]:
    """AUC, AP and curves of a table of five columns, without a ledger and from an account."""
    import heldout as ho

    path = folder / f"five-{rows}.parquet"
    if not path.exists():
        duckdb.sql(
            "COPY (SELECT CAST(random() < 0.1 AS TINYINT) AS y, random() AS p, random() AS a, "
            f"random() AS b, i AS visit FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet)"
        )
    with tempfile.TemporaryDirectory() as temporary:
        ledger = str(Path(temporary) / "ledger.sqlite")
        with_ledger = ho.Ledger.open(ledger)
        with_ledger.register("rows", budget=ho.Budget(epsilon=100))
        with_ledger.close()
        named = ("--ledger", ledger, "--account", "rows")
        scans, without, paid = [], [], []
        for _ in range(ROUNDS):
            scans.append(plain_scan(path))
            without.append(evaluate(path, *RANKED))
            paid.append(evaluate(path, *RANKED, *named))
    scan, ours, booked = median(scans), median(without), median(paid)
    print(f"five columns: scan {scan.seconds:.2f} s, {ours.seconds:.2f} s, {booked.seconds:.2f} s")
    return [
        judge(
            "(evaluation - start-up) / plain scan", (ours.seconds - start.seconds) / scan.seconds, 4
        ),
        judge(
            "evaluation from a registered account / without", booked.seconds / ours.seconds, 1.15
        ),
        judge("start-up of the command line", start.seconds, 1, unit=" s"),
    ]


def medians(turns: list[Callable[[], object]], *, rounds: int = 5) -> list[float]:
    """Median seconds of each, taken in turn."""
    times: list[list[float]] = [[] for _ in turns]
    for _ in range(rounds):
        for which, turn in enumerate(turns):
            start = time.perf_counter()
            turn()
            times[which].append(time.perf_counter() - start)
    return [statistics.median(each) for each in times]


def whole_evaluation(large: Path, small: Path) -> list[bool]:
    scans, starts, all_ours = [], [], []
    for _ in range(ROUNDS):
        scans += [plain_scan(large), plain_scan(large)]
        starts.append(evaluate(small, *RANKED, "--scores", "grid"))
        all_ours.append(evaluate(large, *RANKED))
    scan, start, ours = median(scans), median(starts), median(all_ours)
    for unit, which in (("s", "seconds"), ("processor s", "work")):
        plain, fixed, whole = (getattr(each, which) for each in (scan, start, ours))
        print(f"plain scan {plain:.2f} {unit}, start-up {fixed:.2f}, evaluation {whole:.2f}")
        print(f"  so the evaluation less its start-up is {(whole - fixed) / plain:.2f} scans")
    with tempfile.TemporaryDirectory() as folder:
        booked = ("--ledger", str(Path(folder) / "ledger.sqlite"), "--budget", "1")
        kept = evaluate(large, *RANKED, *booked)
    print(
        f"with a ledger, which needs the digest: {kept.seconds:.2f} s, {kept.work:.2f} processor s"
    )
    whole = evaluate(large, "--curves")
    print(f"all sections and curves: {whole.seconds:.2f} s, {whole.work:.2f} processor s")
    theirs = scikit_learn(large)
    print(f"scikit-learn's roc_auc_score: {theirs.seconds:.1f} s in {theirs.memory:.1f} GiB")
    # "2 times the plain scan plus start-up" can be read in two ways: both are told.
    wide, narrow = 2 * (scan.seconds + start.seconds), 2 * scan.seconds + start.seconds
    return [
        judge("evaluation / 2 (scan + start-up)", ours.seconds / wide, 1),
        judge("evaluation / (2 scans + start-up)", ours.seconds / narrow, 1),
        judge("peak memory of the evaluation", ours.memory, 1, unit=" GiB"),
        judge("evaluation / scikit-learn's roc_auc_score", ours.seconds / theirs.seconds, 1 / 15),
    ]


def main(rows: int = 100_000_000, *, folder: Path | None = None) -> bool:
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        large, small = place / "large.parquet", place / "small.parquet"
        for path, count in ((large, rows), (small, 1000)):
            if not path.exists():
                make(path, count)
        print(f"{rows:,} rows, {large.stat().st_size / 1e9:.2f} GB")
        figures = whole_evaluation(large, small)
        start = median([evaluate(small, *RANKED, "--scores", "grid") for _ in range(ROUNDS)])
        figures += five_columns(place, rows, start)
        figures += people(place, min(rows, 10_000_000))
    for name, ratio in (("PostgreSQL", postgres_ratio()), ("Spark", spark_ratio())):
        if ratio is not None:
            figures.append(judge(f"score table / plain GROUP BY, {name}", ratio, 1.3))
    return all(figures)


def costs(largest: Path | None = None) -> None:
    """Rows against seconds and memory, as a table for the documentation."""
    print("| rows | ranking | AUC, AP, curves | processor | all sections, curves | memory |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000):
            path = Path(folder) / f"{rows}.parquet"
            if largest is not None and rows == 100_000_000:
                path = largest
            if not path.exists():
                make(path, rows)
            ranked = median([evaluate(path, *RANKED) for _ in range(ROUNDS)])
            whole = evaluate(path, "--curves")
            kind = "grid" if rows > MANY_ROWS else "exact"
            print(
                f"| {rows:,} | {kind} | {ranked.seconds:.1f} s | {ranked.work:.1f} s "
                f"| {whole.seconds:.1f} s | {max(ranked.memory, whole.memory):.2f} GiB |"
            )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    kept = None
    if "--keep" in arguments:
        kept = Path(arguments.pop(arguments.index("--keep") + 1))
        arguments.remove("--keep")
    if "--people" in arguments:
        with tempfile.TemporaryDirectory() as temporary:
            count = int(arguments[arguments.index("--people") + 1])
            people(kept or Path(temporary), count)
    elif "--costs" in arguments:
        costs(None if kept is None else kept / "large.parquet")
    else:
        main(int(arguments[0]) if arguments else 100_000_000, folder=kept)
