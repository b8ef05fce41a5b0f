"""Where users wait: processor milliseconds of what people do most, beside an older checkout.

    python -m benchmarks.waits                     this checkout alone, five rounds
    python -m benchmarks.waits --beside FOLDER     another checkout by turns with it
    python -m benchmarks.waits --rows 10000000     a large file too, beside scikit-learn
    python -m benchmarks.waits --growth            ten times as many rows, groups ... each time

Each round is a process of its own for each line and checkout, one after the other, so that what
else the machine does falls on all alike. Numbers are medians of processor time (user and system, of
all threads). Only public names are used, so older checkouts can be measured.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
ROUNDS = 5
Line = Callable[[Path], float]


def made_up(rows: int) -> dict[str, Any]:
    """Labels, a model's scores, a rival's, a person for every three rows."""
    random = np.random.default_rng(1)
    y = (random.random(rows) < 0.3).astype(np.int8)
    signal = 2 * (y - 0.5)
    p, b = (1 / (1 + np.exp(-(pull * signal + random.normal(size=rows)))) for pull in (1, 0.8))
    return {"y": y, "p": p, "b": b, "who": np.arange(rows) // 3}


def session(columns: Any = None, **options: Any) -> Any:
    import heldout as ho

    columns = made_up(5000) if columns is None else columns
    try:
        declared = ho.Dataset(columns, label="y", score="p", rivals=["b"], **options)
    except TypeError:  # before 0.2 a rival was not declared
        declared = ho.Dataset(columns, label="y", score="p", **options)
    return ho.Session(declared, budget=ho.Budget(epsilon="10000"))


def spent(run: Callable[[], object]) -> float:
    """Processor milliseconds of a call in this process."""
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


def command(*words: str) -> float:
    """Processor milliseconds of the command as a process of its own."""
    entry = "import sys; from heldout.cli import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", entry, *words], stdout=subprocess.DEVNULL
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{words[0]} failed")
    return 1000 * (usage.ru_utime + usage.ru_stime)


# --- What is measured: a new epsilon each time, as a user's is ------------------------------------


def quote(rows: int) -> Line:
    def line(_: Path) -> float:
        from heldout import questions as q

        door = session(made_up(rows))
        str(door.quote(q.Curves(epsilon="1")))
        return spent(lambda: str(door.quote(q.Curves(epsilon="1.01"))))

    return line


def printed(kind: str) -> Line:
    def line(_: Path) -> float:
        ask = asked(session(), kind)
        str(ask("1"))
        release = ask("1.01")
        return spent(lambda: str(release))

    return line


def drawn(kind: str) -> Line:
    def line(_: Path) -> float:
        ask = asked(session(), kind)
        str(ask("1"))
        return spent(lambda: ask("1.01"))

    return line


def asked(door: Any, kind: str) -> Callable[[str], Any]:
    if kind == "compare":
        return lambda epsilon: door.compare(score="b", epsilon=epsilon)
    return lambda epsilon: getattr(door, kind)(epsilon=epsilon)


def first_question(_: Path) -> float:
    import heldout as ho

    columns = made_up(5000)

    def ask() -> None:
        door = ho.Session(
            ho.Dataset({"y": columns["y"], "p": columns["p"]}, label="y", score="p"),
            budget=ho.Budget(epsilon="1"),
        )
        door.auc(epsilon="1")

    return spent(ask)


def report_page(folder: Path) -> float:
    import heldout as ho

    columns = made_up(5000)
    door = ho.Session(
        ho.Dataset({"y": columns["y"], "p": columns["p"]}, label="y", score="p"),
        budget=ho.Budget(epsilon="100"),
    )
    names = ("auc", "curves")
    door.report(epsilon="3", sections=names).save(str(folder / "first.html"))
    report = door.report(epsilon="3.01", sections=names)
    return spent(lambda: report.save(str(folder / "page.html")))


def small_file(folder: Path) -> float:
    import pyarrow.parquet

    columns = made_up(5000)
    place = folder / "small.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"y": columns["y"], "p": columns["p"]}), place)
    options = ("--ledger", str(folder / "ledger.sqlite"), "--budget", "3", "--yes")
    return command(
        "evaluate", str(place), "--label", "y", "--score", "p", "--epsilon", "1", *options
    )


def hundred_groups(_: Path) -> float:
    by_equal_groups(2)()
    return spent(by_equal_groups(100))


LINES: dict[str, Line] = {
    "quote of curves, 5,000 rows": quote(5000),
    "quote of curves, 300,000 rows": quote(300_000),
    "printing an AUC": printed("auc"),
    "printing an average precision": printed("average_precision"),
    "printing a comparison": printed("compare"),
    "an AUC at a new epsilon": drawn("auc"),
    "a comparison at a new epsilon": drawn("compare"),
    "curves": drawn("curves"),
    "the first question on a dict of arrays": first_question,
    "the page of a report with curves": report_page,
    "heldout evaluate --ledger, a small file": small_file,
    "an AUC by group, 100 groups of 200 rows": hundred_groups,
}


# --- A large file --------------------------------------------------------------------------------


def large_lines(place: Path) -> dict[str, Callable[[], float]]:
    """Lines of a large file, and what they stand beside."""
    import duckdb
    import pyarrow.parquet
    from sklearn.metrics import average_precision_score, roc_auc_score

    asked = (str(place), "--label", "y", "--score", "p", "--epsilon", "1", "--yes")
    ranked = ("--sections", "auc", "average_precision", "curves")

    def learnt() -> None:
        columns = pyarrow.parquet.read_table(place, columns=["y", "p"])
        y, p = (columns[name].to_numpy() for name in ("y", "p"))
        roc_auc_score(y, p), average_precision_score(y, p)

    def scanned() -> None:
        duckdb.sql(f"SELECT sum(y), sum(p) FROM read_parquet('{place}')").fetchall()

    return {
        "plain scan of two columns": lambda: spent(scanned),
        "scikit-learn: AUC and AP, without privacy": lambda: spent(learnt),
        "heldout evaluate: AUC, AP and curves": lambda: command("evaluate", *asked, *ranked),
        "the same by person, 2 of 3 rows": lambda: command(
            "evaluate", *asked, *ranked, "--unit", "who", "--rows-per-unit", "2"
        ),
    }


def large(rows: int) -> None:
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "large.parquet"
        pyarrow.parquet.write_table(pyarrow.table(made_up(rows)), place)
        lines = large_lines(place)
        seen: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(3):
            for name, line in lines.items():
                seen[name].append(line())
        print(f"\n| {rows:,} rows | processor ms | of the scan |\n|---|---|---|")
        scan = statistics.median(seen["plain scan of two columns"])
        for name, times in seen.items():
            middle = statistics.median(times)
            print(f"| {name} | {middle:,.0f} | {middle / scan:.1f} |")


# --- Growth: ten times as much of something should take at most about ten times as long ---------


def by_rows(size: int) -> Callable[[], object]:
    columns = made_up(size)

    def run() -> None:
        door = session(columns)
        door.auc(epsilon="1"), door.curves(epsilon="1")

    return run


def by_bookings(size: int) -> Callable[[], object]:
    from fractions import Fraction

    import heldout as ho
    from benchmarks.ledger_booking import fill
    from heldout.kernel.noise import DiscreteLaplace

    ledger = ho.Ledger.open(None)
    account = ledger.register("rows", budget=ho.Budget(epsilon="1000000"))
    one = DiscreteLaplace.for_epsilon(Fraction(1), l1_sensitivity=2, dimension=4)
    fill(ledger, account, one.event(), size)
    columns = {"y": [0, 1] * 50, "p": [0.2, 0.7] * 50}
    door = ho.Session(ho.Dataset(columns, label="y", score="p"), ledger=ledger, account="rows")
    return lambda: [door.confusion(epsilon="1", threshold=0.5) for _ in range(10)]


def by_groups(size: int, *, rows: int = 20_000) -> Callable[[], object]:
    import heldout as ho

    columns = made_up(rows)
    names = [f"g{place}" for place in range(size)]
    columns["group"] = np.array(names)[np.arange(rows) % size]
    asked = {name: columns[name] for name in ("y", "p", "group")}
    declared = ho.Dataset(asked, label="y", score="p", groups={"group": names})
    door = ho.Session(declared, budget=ho.Budget(epsilon="1000"))
    return lambda: str(door.auc(epsilon="1", by="group"))


def by_equal_groups(size: int) -> Callable[[], object]:
    return by_groups(size, rows=200 * size)


def by_classes(size: int) -> Callable[[], object]:
    import heldout as ho

    random = np.random.default_rng(2)
    names = [f"c{place}" for place in range(size)]
    scores = random.dirichlet(np.ones(size), 5000)
    columns: dict[str, Any] = {f"p{place}": scores[:, place] for place in range(size)}
    columns["y"] = np.array(names)[random.integers(0, size, 5000)]
    declared = ho.Dataset(columns, label="y", classes=names, scores=[f"p{i}" for i in range(size)])
    door = ho.Session(declared, budget=ho.Budget(epsilon="1000"))
    return lambda: str(door.auc(epsilon="1"))


GROWTH: dict[str, tuple[Callable[[int], Callable[[], object]], tuple[int, ...]]] = {
    "rows": (by_rows, (10**3, 10**4, 10**5, 10**6, 10**7)),
    "bookings in the ledger": (by_bookings, (10, 100, 1000, 10_000, 100_000)),
    "groups of 20,000 rows": (by_groups, (1, 10, 100)),
    "groups of 200 rows each": (by_equal_groups, (1, 10, 100)),
    "classes": (by_classes, (2, 10, 50)),
}


def growth() -> None:
    print("| what grows | from, to | processor ms | times as long for ten times as much, at most |")
    print("|---|---|---|---|")
    for name, (make, sizes) in GROWTH.items():
        times = []
        for size in sizes:
            run = make(size)
            run()
            times.append(statistics.median(spent(run) for _ in range(3)))
        pairs = zip(times, times[1:], sizes, sizes[1:], strict=False)
        steep = max(np.log(b / a) / np.log(n / m) for a, b, m, n in pairs)
        shown = ", ".join(f"{each:,.0f}" for each in times)
        print(
            f"| {name} | {', '.join(f'{size:,}' for size in sizes)} | {shown} | {10**steep:.1f} |"
        )


# --- One line in one checkout, and all of them by turns -----------------------------------------


def one(name: str) -> None:
    """Measure a line in this process, and print it."""
    import heldout  # noqa: F401  its import is everybody's and has a budget of its own

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(LINES[name](Path(folder))))


def measured(checkout: Path, name: str, compiled: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = compiled  # as pip leaves an installation
    run = [sys.executable, str(HERE), "--one", name]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else float("nan")


def main() -> bool | None:
    words = sys.argv[1:]
    if words[:1] == ["--one"]:
        return one(words[1])
    if "--growth" in words:
        return growth()
    checkouts = {"now": HERE.parent.parent}
    if "--beside" in words:
        before = Path(words[words.index("--beside") + 1]).resolve()
        checkouts = {"before": before, **checkouts}
    seen: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as compiled:
        for _ in range(ROUNDS):
            for name in LINES:
                for which, checkout in checkouts.items():
                    seen.setdefault((name, which), []).append(measured(checkout, name, compiled))
    print(f"| processor ms | {' | '.join(checkouts)} |\n|---|{'---|' * len(checkouts)}")
    for name in LINES:
        middles = [statistics.median(seen[name, which]) for which in checkouts]
        print(f"| {name} | {' | '.join(f'{middle:,.0f}' for middle in middles)} |")
    if "--rows" in words:
        large(int(words[words.index("--rows") + 1]))
    return None


if __name__ == "__main__":
    main()
