"""Pooled ROC curves at equal protection: ours, and FedCurve's quantile trees.

    python -m benchmarks.pooled_curves [runs] [folder with FedCurve's own code]

Sites have 200 to 2,000 rows, 30% positive, and every person loses epsilon 1. FedCurve adds the
sites' trees of counts under a secure sum, so that its noise is that of one tree of all rows. Ours
is pooled without a secure sum; on one table of all rows it shows what one would give. The error is
the mean distance of the curve from that of all rows.

FedCurve's code counts rows that come or go. A row that is replaced leaves one tree and enters
another, so it gets half the epsilon under replace-one. Its three numbers of quantiles (8 is its
default) are all printed.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import heldout as ho

SITES = (2, 5, 20)
PLACES = np.linspace(0, 1, 401)
RANDOM = np.random.default_rng(22)
TREE = {"method": "hierarchical-quantile"}
QUANTILES = (8, 32, 128)
SHARE = {"replace-one": 0.5, "add-remove": 1.0}
Table = dict[str, np.ndarray]


def smooth(labels: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(1 - RANDOM.normal(1.5 * labels))))


def piled(labels: np.ndarray) -> np.ndarray:
    """Scores of a sure model: most lie close to 0 or to 1."""
    return np.asarray(1 / (1 + np.exp(-RANDOM.normal(8 * labels - 4, 4))))


LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"smooth": smooth, "piled": piled}


def rows(count: int, law: str) -> Table:
    labels = (RANDOM.random(count) < 0.3).astype(np.int64)
    return {"y": labels, "p": LAWS[law](labels)}


def exact(table: Table) -> np.ndarray:
    negatives, positives = (np.sort(table["p"][table["y"] == which])[::-1] for which in (0, 1))
    at = np.quantile(-negatives, PLACES)
    return np.searchsorted(-positives, at, side="right") / len(positives)


def released(table: Table, neighbours: str, **words: str) -> Any:
    dataset = ho.Dataset(table, label="y", score="p", neighbours=neighbours)
    return ho.Session(dataset, budget=ho.Budget(epsilon=1)).curves(epsilon="1", **words)


def error(roc: Any, truth: np.ndarray) -> float:
    return float(np.abs(np.interp(PLACES, roc[0], roc[1]) - truth).mean())


def of(found: Any) -> tuple[Any, Any]:
    return found.roc.fpr, found.roc.tpr


def fedcurve(tables: list[Table], *, epsilon: float, quantiles: int) -> tuple[Any, Any]:
    """The ROC curve of FedCurve's own code: trees, sum, quantiles, interpolation."""
    hist, approx = (importlib.import_module(f"fedcurve.{each}") for each in ("hist", "approx"))
    height = int(np.ceil(np.log2(quantiles))) + 2
    # One generator for all sites: its own script hands each the same whole number, from which
    # every site and every level draw the same noise.
    random = np.random.RandomState(RANDOM.integers(2**32))
    found = []
    for which in (0, 1):
        trees = [
            hist.fedhist_client(
                each["p"][each["y"] == which],
                height,
                2,
                "DDP",
                epsilon,
                len(tables),
                "discrete",
                rng=random,
            )
            for each in tables
        ]
        tree = hist.HierarchicalHistogram(hist.fedhist_server(trees, height, 2, "DDP"))
        found.append(tree.n_quantile(np.linspace(0, 1, quantiles)))
    fpr, tpr = approx.roc_curve_approx(*found, quantiles, "pchip")
    scores = np.linspace(1, 0, 10_000)
    return fpr(scores), tpr(scores)


def run(sites: int, law: str, neighbours: str, *, theirs: bool) -> Iterator[float]:
    sizes = np.exp(RANDOM.uniform(np.log(200), np.log(2000), sites)).astype(int)
    tables = [rows(size, law) for size in sizes]
    whole = {name: np.concatenate([each[name] for each in tables]) for name in ("y", "p")}
    truth = exact(whole)
    yield error(of(ho.pool([released(each, neighbours) for each in tables])), truth)
    yield error(of(released(whole, neighbours)), truth)
    yield error(of(released(whole, neighbours, **TREE)), truth)
    for quantiles in QUANTILES if theirs else ():
        yield error(fedcurve(tables, epsilon=SHARE[neighbours], quantiles=quantiles), truth)


def main(runs: int = 20, folder: str = "") -> None:
    columns = ["law", "relation", "sites", "ours, pooled", "ours, one table", "our tree, one table"]
    if folder:
        sys.path.insert(0, folder)
        columns += [f"FedCurve, {each} quantiles" for each in QUANTILES]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for law in LAWS:
        for neighbours in SHARE:
            for sites in SITES:
                asked = (run(sites, law, neighbours, theirs=bool(folder)) for _ in range(runs))
                found = [list(each) for each in asked]
                errors, spread = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(runs)
                shown = (f"{a:.4f} ({b:.4f})" for a, b in zip(errors, spread, strict=True))
                print(f"| {law} | {neighbours} | {sites} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
