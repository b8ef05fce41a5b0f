"""Pooled ROC curves at equal protection: ours, and the quantile trees of FedCurve.

    python -m benchmarks.pooled_curves [runs]

Sites have 200 to 2,000 rows of binormal scores, 30% positive, and every person loses epsilon 1.
FedCurve adds the sites' quantile trees under a secure sum, so that its noise is that of one tree of
all rows: `hierarchical-quantile` on them. Ours is pooled without a secure sum; on one table of all
rows it shows what one would give. The error is the area between the curve and that of all rows.
"""

import sys

import numpy as np

import heldout as ho

SITES = (2, 5, 20)
PLACES = np.linspace(0, 1, 401)
RANDOM = np.random.default_rng(22)
TREE = {"method": "hierarchical-quantile"}


def rows(count: int) -> dict[str, np.ndarray]:
    labels = (RANDOM.random(count) < 0.3).astype(np.int64)
    return {"y": labels, "p": 1 / (1 + np.exp(1 - RANDOM.normal(1.5 * labels)))}


def exact(table: dict[str, np.ndarray]) -> np.ndarray:
    negatives, positives = (np.sort(table["p"][table["y"] == which])[::-1] for which in (0, 1))
    at = np.quantile(-negatives, PLACES)
    return np.searchsorted(-positives, at, side="right") / len(positives)


def released(table: dict[str, np.ndarray], **words: str) -> object:
    session = ho.Session(ho.Dataset(table, label="y", score="p"), budget=ho.Budget(epsilon=1))
    return session.curves(epsilon="1", **words)


def error(found: object, truth: np.ndarray) -> float:
    roc = found.roc  # type: ignore[attr-defined]
    return float(np.abs(np.interp(PLACES, roc.fpr, roc.tpr) - truth).mean())


def run(sites: int) -> list[float]:
    sizes = np.exp(RANDOM.uniform(np.log(200), np.log(2000), sites)).astype(int)
    tables = [rows(size) for size in sizes]
    whole = {name: np.concatenate([each[name] for each in tables]) for name in ("y", "p")}
    truth = exact(whole)
    found = []
    for words in ({}, TREE):
        found.append(error(ho.pool([released(each, **words) for each in tables]), truth))
        found.append(error(released(whole, **words), truth))
    return found


def main(runs: int = 20) -> None:
    print("| sites | ours, pooled | ours, one table | trees, pooled | FedCurve: one tree |")
    print("|---|---|---|---|---|")
    for sites in SITES:
        errors = np.mean([run(sites) for _ in range(runs)], axis=0)
        print(f"| {sites} | " + " | ".join(f"{each:.4f}" for each in errors) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
