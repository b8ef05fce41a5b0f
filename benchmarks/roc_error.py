"""Area between the true and the private ROC and PR curve: every method, in one run.

    python -m benchmarks.roc_error [--data DIR] [--runs 40] [--cells adult] [--epsilons 0.1 1]
                                   [--neighbours add-remove]

DIR holds adult, sms_spam and sentiment140_20k as Parquet; without it the scores are simulated
(binormal, and skewed to one end). All methods draw under one relation. DAWA takes ten times as long
as the others and gets a quarter of the runs, six at least: the error of a mean cannot be told from
one; ours gets three times as many. The default method
joins when it is registered; it is read through `Session.curves`, as an analyst reads it.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figure import Rows, judge
from heldout.kernel.curves.registry import METHODS
from heldout_papers.roc_study import OURS, Job, run
from heldout_papers.scored_sets import ScoredSet, adult, sms, twitter

EPSILONS = ("0.1", "0.25", "0.5", "1")
DAWA_RUNS = 6
QUANTILES = (4, 8, 16, 32, 64, 128)
PAPERS: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("laplace", {}),
    "fixed/wavelet": ("fixed-space", {"counts": "wavelet"}),
    "fixed/hierarchical": ("fixed-space", {"counts": "hierarchical"}),
    "fixed/dawa": ("fixed-space", {"counts": "dawa"}),
    "medians/wavelet": ("recursive-medians", {"counts": "wavelet"}),
    "medians/hierarchical": ("recursive-medians", {"counts": "hierarchical"}),
    "medians/dawa": ("recursive-medians", {"counts": "dawa"}),
}
TREES: dict[str, tuple[str, dict[str, Any]]] = {
    f"quantiles {q}": ("hierarchical-quantile", {"quantiles": q}) for q in QUANTILES
}


def simulated() -> Iterator[ScoredSet]:
    random = np.random.default_rng(7)
    for rows in (600, 2_000, 10_000):
        labels = (random.random(rows) < 0.3).astype(np.int64)
        yield ScoredSet(
            f"binormal {rows:,}", labels, 1 / (1 + np.exp(1 - random.normal(1.5 * labels)))
        )
        labels = (random.random(rows) < 0.1).astype(np.int64)
        yield ScoredSet(f"skewed {rows:,}", labels, random.beta(np.where(labels, 1.2, 0.5), 12.0))


def cells(data: Path | None) -> Iterator[ScoredSet]:
    if data is None:
        print("no --data: simulated scores")
        yield from simulated()
        return
    for rows in (600, 2_000, 10_000):
        yield adult(data, rows=rows)
    yield sms(data)
    yield twitter(data)


def run_cell(
    cell: ScoredSet, epsilon: str, runs: int, neighbours: str
) -> dict[str, dict[str, float]]:
    """Mean errors of every method, and the seconds of a draw."""
    found = {}
    asked = {**PAPERS, **TREES, **({OURS: (OURS, {})} if OURS in METHODS else {})}
    for label, (name, options) in asked.items():
        few = max(DAWA_RUNS, runs // 4) if options.get("counts") == "dawa" else runs
        few = 3 * runs if label == OURS else few
        start = time.perf_counter()
        result = run(Job(cell, label, name, options, epsilon, neighbours, few))
        found[label] = {
            "roc": float(np.mean(result.roc)),
            "pr": float(np.mean(result.precision_recall)),
            "roc se": _relative_error(result.roc),
            "pr se": _relative_error(result.precision_recall),
            "auc": float(np.mean(result.auc)),
            "seconds": (time.perf_counter() - start) / few,
        }
    return found


def _relative_error(errors: Any) -> float:
    """The standard error of a mean, over the mean."""
    return float(np.std(errors) / np.sqrt(len(errors)) / np.mean(errors))


def show(kind: str, results: dict[tuple[str, str], dict[str, dict[str, float]]]) -> None:
    """One line a method, one column a cell."""
    keys = list(results)
    print(f"\nmean {kind} error")
    for start in range(0, len(keys), 8):
        part = keys[start : start + 8]
        print(" " * 22 + " ".join(f"{name:>13}" for name, _ in part))
        print(f"{'epsilon':<22}" + " ".join(f"{epsilon:>13}" for _, epsilon in part))
        for label in results[keys[0]]:
            row = " ".join(f"{results[key][label][kind]:13.4f}" for key in part)
            print(f"{label:<22}{row}")


def judge_all(results: dict[tuple[str, str], dict[str, dict[str, float]]]) -> bool:
    """Ours against the best of each family, cell by cell."""
    if OURS not in METHODS:
        print("\nthe default method is not registered: nothing to judge")
        return True
    met = []
    for kind in ("roc", "pr"):
        limits = {"papers' methods": (PAPERS, 0.25, 0.6), "quantile trees": (TREES, 0.4, 0.9)}
        for family, (labels, middle, worst) in limits.items():
            ratios, clear, _ = ratios_of(results, kind, list(labels))
            what = f"{kind.upper()} error, ours / best of the {family}"
            met.append(judge(f"{what}, median cell", float(np.median(ratios)), middle))
            print(f"      worst cell {max(ratios):.2f}; less two standard errors:")
            met.append(judge(f"{what}, worst cell", max(clear), worst))
    slowest = max(found[OURS]["seconds"] for found in results.values())
    met.append(judge("one release, slowest cell", slowest * 1e3, 100, unit=" ms"))
    return all(met)


def compared(data: Path | None, runs: int, neighbours: str, out: Rows) -> None:
    """Medians and clearly worst cells, on simulated sets and, where they are present, real ones."""
    sets = [each for each in simulated() if "10,000" not in each.name]
    if data is not None:
        sets += [adult(data, rows=2_000), sms(data), twitter(data)]
    found = {}
    for each in sets:
        for epsilon in ("0.1", "1"):
            found[each.name, epsilon] = run_cell(each, epsilon, runs, neighbours)
            tell(each.name, epsilon, found[each.name, epsilon])
    limits = {"papers' methods": (PAPERS, 0.25, 0.6), "quantile trees": (TREES, 0.4, 0.9)}
    for kind in ("roc", "pr"):
        for family, (labels, middle, worst) in limits.items():
            ratios, clear, errors = ratios_of(found, kind, list(labels))
            what = f"{kind.upper()} error / best of the {family}, {neighbours}"
            error = 1.25 * float(np.median(errors)) / np.sqrt(len(errors))
            out.add(f"{what}: median cell", float(np.median(ratios)), error, high=middle)
            out.add(f"{what}: worst cell minus two errors", max(clear), 0.0, high=worst)


def tell(name: str, epsilon: str, found: dict[str, dict[str, float]]) -> None:
    """One cell: ours over the best of each family, and which that is."""
    said = []
    for kind in ("roc", "pr"):
        for labels in (PAPERS, TREES):
            (ratio,), _, (error,) = ratios_of({(name, epsilon): found}, kind, list(labels))
            best = min(labels, key=lambda label: found[label][kind])
            said.append(f"{ratio:.2f} ±{error:.2f} of {best}")
    ours = found[OURS]
    print(
        f"    {name:16s} {epsilon:4s} ROC {ours['roc']:.4f}: {said[0]}, {said[1]}; "
        f"PR {ours['pr']:.4f}: {said[2]}, {said[3]}",
        flush=True,
    )


def ratios_of(
    results: dict[tuple[str, str], dict[str, dict[str, float]]], kind: str, labels: list[str]
) -> tuple[list[float], list[float], list[float]]:
    """Ours over the best of these, cell by cell; the same less two standard errors; the errors."""
    ratios, clear, errors = [], [], []
    for found in results.values():
        best = min(labels, key=lambda label: found[label][kind])
        ratio = found[OURS][kind] / found[best][kind]
        error = ratio * float(np.hypot(found[OURS][f"{kind} se"], found[best][f"{kind} se"]))
        ratios.append(ratio)
        clear.append(ratio - 2 * error)
        errors.append(error)
    return ratios, clear, errors


def main(arguments: list[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--cells", default="", help="only cells whose name holds this")
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    parser.add_argument(
        "--neighbours", default="replace-one", choices=("replace-one", "add-remove")
    )
    asked = parser.parse_args([] if arguments is None else arguments)
    start = time.perf_counter()
    results = {}
    for cell in cells(asked.data):
        if asked.cells in cell.name:
            for epsilon in asked.epsilons:
                results[cell.name, epsilon] = run_cell(cell, epsilon, asked.runs, asked.neighbours)
    for kind in ("roc", "pr", "auc"):
        show(kind, results)
    print(f"\n{asked.runs} runs, {time.perf_counter() - start:.0f} s")
    return judge_all(results)


if __name__ == "__main__":
    import sys

    raise SystemExit(0 if main(sys.argv[1:]) else 1)
