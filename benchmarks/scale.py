"""A whole evaluation of a large file, people, a ledger, and each engine, against the plain scan.

    python -m benchmarks.scale [rows] [--keep FOLDER]  a quarter of an hour at most on idle cores
    python -m benchmarks.scale --full                  people to 300 million rows, PostgreSQL at 50
    python -m benchmarks.scale --costs                 the table of docs/engines.md
    python -m benchmarks.scale --people 300000000      people alone: opening, questions, memory
    bash tools/with_postgres.sh python -m benchmarks.scale

Makes Parquet files of random labels (int8) and scores (float64), 8 bytes a row, one of five
columns, and one of people with three rows each, and measures in turn, so that what else the machine
does falls on all alike: DuckDB's plain sum of the two columns, the command on a small file (its
start-up), and the command on the large one. Ratios of files are of processor time, of one run. The
command on half of the rows tells apart what grows with them and what does not. PostgreSQL and Spark
are measured where there is a server or a JVM, on fewer rows: both sides of their ratio read the
same ones.
"""

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from benchmarks.command import Cost, compiled_in, evaluate, not_compiled, run
from benchmarks.engine_people import postgres_people, spark_people
from benchmarks.engines import POSTGRES_MANY, POSTGRES_ROWS, postgres_ratio, spark_ratio
from benchmarks.figure import judge
from benchmarks.score_table import make
from heldout.data import Dataset
from heldout.data.dataset import LABELS_AND_SCORES
from heldout.data.duckdb import SETTINGS
from heldout.data.scores import MANY_ROWS

RANKED = ("--sections", "auc", "average_precision", "curves")
ROUNDS = 3


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
    run(sys.executable, "-c", "import sklearn.metrics, pyarrow.parquet")  # compiles
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
    """Processor seconds to open, of a score table, of a GROUP BY, and of questions; memory."""
    import resource

    declared = {"label": "y", "score": "p", "neighbours": "add-remove", "rivals": ()}
    Dataset({"y": [0, 1], "p": [0.0, 1.0]}, label="y", score="p")  # what is imported once
    bounded: list[Dataset] = []

    def opened() -> None:
        bounded[:] = [Dataset(path, unit="person", rows_per_unit=2, row_key="visit", **declared)]

    found = {"first opening": work_of(opened)}
    people = Questions(bounded[0])
    # Before anything else is read: the largest memory of people alone.
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    free = Dataset(path, **declared)
    found |= in_turn({" of people": people, "": Questions(free)})
    connection = duckdb.connect(":memory:", config=SETTINGS)
    grouped = (
        f"SELECT y, CAST(p * 65536 AS INTEGER), count(*) FROM read_parquet('{path}') GROUP BY ALL"
    )
    sides: dict[str, Callable[[], object]] = {
        "opening": opened,
        "table": lambda: free._tallied(free.statement(LABELS_AND_SCORES)),
        "group by": lambda: connection.execute(grouped).fetchnumpy(),
    }
    took: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(3):
        for name, side in sides.items():
            took[name].append(work_of(side))
    return found | {name: statistics.median(each) for name, each in took.items()}


def work_of(side: Callable[[], object]) -> float:
    start = time.process_time()
    side()
    return time.process_time() - start


class Questions:
    """A session in which one question of each kind was asked."""

    kinds = ("confusion", "brier", "curves")

    def __init__(self, dataset: Dataset) -> None:
        import heldout as ho

        self._session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
        for kind in self.kinds:
            self.ask(kind)

    def ask(self, kind: str) -> None:
        getattr(self._session, kind)(epsilon=1)


def in_turn(sides: dict[str, Questions]) -> dict[str, float]:
    """The second question of each kind and those after it, of both sides in turn.

    One side after the other told more of what the process had done before, as curves are drawn in
    less than a tenth of a second.
    """
    found = {}
    for kind in Questions.kinds:
        took: dict[str, list[float]] = {word: [] for word in sides}
        for _ in range(9):
            for word, side in sides.items():
                took[word].append(work_of(functools.partial(side.ask, kind)))
        found |= {kind + word: statistics.median(each) for word, each in took.items()}
    return found


def five_columns(folder: Path, rows: int, small: Path) -> list[bool]:
    """AUC, AP and curves of a table of five columns, without a ledger and from an account."""
    import heldout as ho

    paths = [folder / f"five-{count}.parquet" for count in (rows // 2, rows)]
    for path, count in zip(paths, (rows // 2, rows), strict=True):
        if not path.exists():
            duckdb.sql(
                "COPY (SELECT CAST(random() < 0.1 AS TINYINT) AS y, random() AS p, random() AS a, "
                f"random() AS b, i AS visit FROM range({count}) AS t(i)) TO '{path}' "
                "(FORMAT parquet)"
            )
    with tempfile.TemporaryDirectory() as temporary:
        ledger = str(Path(temporary) / "ledger.sqlite")
        with_ledger = ho.Ledger.open(ledger)
        with_ledger.register("rows", budget=ho.Budget(epsilon=100))
        with_ledger.close()
        named = ("--ledger", ledger, "--account", "rows")
        half_scan, scan, start, half, ours, paid = turns(
            [
                lambda: plain_scan(paths[0]),
                lambda: plain_scan(paths[1]),
                lambda: evaluate(small, *RANKED, "--scores", "grid"),
                lambda: evaluate(paths[0], *RANKED),
                lambda: evaluate(paths[1], *RANKED),
                lambda: evaluate(paths[1], *RANKED, *named),
            ]
        )
    print(
        f"five columns, processor s: scan {scan:.2f}, start-up {start:.2f}, "
        f"{rows // 2:,} rows {half:.2f}, {rows:,} rows {ours:.2f}, from an account {paid:.2f}"
    )
    slope = (ours - half) / (scan - half_scan)
    print(
        f"  what grows with the rows is {slope:.2f} scans; what does not, beside start-up, "
        f"{ours - slope * scan - start:.2f} s"
    )
    return [
        judge("(evaluation - start-up) / plain scan", (ours - start) / scan, 4),
        judge("growth of the evaluation / growth of the plain scan", slope, 4),
        judge("evaluation from a registered account / without", paid / ours, 1.15),
    ]


def turns(sides: list[Callable[[], Cost]]) -> list[float]:
    """The median processor time of each, taken in turn."""
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for which, side in enumerate(sides):
            found[which].append(side().work)
    return [statistics.median(each) for each in found]


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


def by_work(cost: Cost) -> float:
    return cost.work


def start_up(small: Path) -> list[bool]:
    """The command on a thousand rows: the shortest of nine runs, as other work only adds to it."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        kept = ("--ledger", str(Path(folder) / "ledger.sqlite"), "--budget", "100")
        for words, options in (("", ()), (", with curves", ("--curves",)), (", a ledger", kept)):
            evaluate(small, *options)  # compiles
            runs = [evaluate(small, *options) for _ in range(9)]
            wall, work = min(each.seconds for each in runs), min(each.work for each in runs)
            bare = min(
                (not_compiled(small, *options) for _ in range(3)), key=lambda each: each.work
            )
            print(
                f"start-up{words}: {work:.2f} processor s; where nothing is compiled, "
                f"{bare.work:.2f} and {bare.seconds:.2f} s"
            )
            figures.append(judge(f"start-up of the command line{words}", wall, 1, unit=" s"))
    return figures


def main(rows: int = 100_000_000, *, folder: Path | None = None, full: bool = False) -> bool:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        large, small = place / "large.parquet", place / "small.parquet"
        for path, count in ((large, rows), (small, 1000)):
            if not path.exists():
                make(path, count)
        print(f"{rows:,} rows, {large.stat().st_size / 1e9:.2f} GB", end="; ")
        print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
        compiled_in(str(Path(temporary) / "compiled"))
        figures = start_up(small)
        figures += whole_evaluation(large, small)
        figures += five_columns(place, rows, small)
        for count in (10_000_000, 100_000_000, 300_000_000) if full else (10_000_000,):
            figures += people(place, count if full else min(count, rows))
    there = {"PostgreSQL": postgres_ratio(POSTGRES_MANY if full else POSTGRES_ROWS)}
    for name, ratio in {**there, "Spark": spark_ratio()}.items():
        if ratio is not None:
            figures.append(judge(f"score table / plain GROUP BY, {name}", ratio, 1.3))
    figures += postgres_people() + spark_people()
    print(f"{sum(figures)} of {len(figures)} figures met, {time.perf_counter() - began:.0f} s")
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
        counts = [each for each in arguments if each != "--full"]
        rows = int(counts[0]) if counts else 100_000_000
        main(rows, folder=kept, full="--full" in arguments)
