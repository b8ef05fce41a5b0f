"""Curves on six test sets that nothing was tuned on: errors against other methods, and coverage.

    python -m benchmarks.kept_aside --data DIR [--runs 10] [--epsilons 0.1 1]

Digits (even or not), readmission of diabetes130, Reuters (topic earn), the top fifth of incomes of
cps_march2000 by a forest, scores of a t distribution, and scores in tenths with 6% positives. They
are made anew from their description: what they were made by at first was not kept. The forest is
given the survey's own flag of high incomes, so its scores lie in two heaps.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from benchmarks.roc_error import PAPERS, TREES, ratios_of, run_cell, tell
from heldout.kernel.ranking.values import area
from heldout_papers.roc_study import true_curves
from heldout_papers.scored_sets import ScoredSet

RELATIONS = ("replace-one", "add-remove")


def sets(data: Path) -> Iterator[ScoredSet]:
    yield _digits()
    yield _diabetes(data)
    yield _reuters(data)
    yield _incomes(data)
    random = np.random.default_rng(21)
    labels = (random.random(3_000) < 0.25).astype(np.int64)
    latent = random.standard_t(2.5, 3_000) + 1.8 * labels - 1
    yield ScoredSet("t", labels, 1 / (1 + np.exp(-latent)))
    labels = (random.random(4_000) < 0.06).astype(np.int64)
    latent = random.normal(1.3 * labels - 1.5)
    yield ScoredSet("tenths", labels, np.round(1 / (1 + np.exp(-latent)), 1))


def _digits() -> ScoredSet:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    read = load_digits()
    labels = (read.target % 2 == 0).astype(np.int64)
    train, test = _split(len(labels), train=897)
    model = LogisticRegression(C=0.01, max_iter=500).fit(read.data[train], labels[train])
    return ScoredSet("digits", labels[test], model.predict_proba(read.data[test])[:, 1])


def _diabetes(data: Path) -> ScoredSet:
    from sklearn.linear_model import LogisticRegression

    table = _read(data / "diabetes130" / "diabetes130.parquet")
    numbers = [name for name, each in table.items() if each.dtype.kind in "if"]
    out = ("label", "encounter_id", "patient_nbr")
    features = np.stack([table[name] for name in numbers if name not in out], axis=1).astype(float)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    labels = table["label"].astype(np.int64)
    train, test = _split(len(labels), train=20_000, test=5_000)
    model = LogisticRegression(max_iter=300).fit(features[train], labels[train])
    return ScoredSet("diabetes", labels[test], model.predict_proba(features[test])[:, 1])


def _reuters(data: Path) -> ScoredSet:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    table = _read(data / "reuters21578" / "reuters21578.parquet")
    kept = np.flatnonzero(table["topics"] != "")
    texts = np.array([str(each) for each in table["body"][kept]], dtype=object)
    labels = table["label"][kept].astype(np.int64)
    train, test = _split(len(labels), train=1_000, test=3_000)
    words = CountVectorizer(binary=True, stop_words="english", min_df=5)
    model = LogisticRegression(C=0.01, max_iter=300)
    model.fit(words.fit_transform(texts[train]), labels[train])
    return ScoredSet(
        "Reuters", labels[test], model.predict_proba(words.transform(texts[test]))[:, 1]
    )


def _incomes(data: Path) -> ScoredSet:
    from sklearn.ensemble import RandomForestClassifier

    table = _read(data / "cps_march2000" / "cps_march2000.parquet")
    labels = (table["earn"] > np.quantile(table["earn"], 0.8)).astype(np.int64)
    names = ("age", "educ", "sex", "job", "label")
    features = np.stack([table[name] for name in names], axis=1)
    train, test = _split(len(labels), train=6_000, test=5_000)
    model = RandomForestClassifier(100, min_samples_leaf=5, random_state=1)
    model.fit(features[train], labels[train])
    return ScoredSet("CPS, forest", labels[test], model.predict_proba(features[test])[:, 1])


def _split(rows: int, *, train: int, test: int | None = None) -> tuple[Any, Any]:
    order = np.random.default_rng(20).permutation(rows)
    return order[:train], order[train : None if test is None else train + test]


def _read(path: Path) -> dict[str, Any]:
    from pyarrow.parquet import read_table

    table = read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def coverage(cell: ScoredSet, epsilon: str, neighbours: str, runs: int) -> Any:
    """Whether noise intervals hold: of the area, the whole curve; session.auc's; and the errors."""
    places = np.linspace(0.0, 1.0, 201)
    true = true_curves(cell)
    truth = float(area(cell.scores[cell.labels == 1], cell.scores[cell.labels == 0]))
    high = np.interp(places, *true.roc)
    rows = {"y": cell.labels.tolist(), "p": cell.scores.tolist()}
    dataset = ho.Dataset(rows, label="y", score="p", neighbours=neighbours)
    session: Any = ho.Session(dataset, budget=ho.Budget(epsilon=10**6))
    found = []
    for _ in range(runs):
        curves, alone = session.curves(epsilon=epsilon), session.auc(epsilon=epsilon)
        band = curves.roc.band(0.95, noise_only=True, at=places)
        inside = (band.low <= high + 2e-3) & (high - 2e-3 <= band.high)
        held = [
            low <= truth <= up for low, up in (curves.auc.noise_interval(), alone.noise_interval())
        ]
        errors = (abs(float(curves.auc) - truth), abs(float(alone) - truth))
        found.append((*held, bool(inside.all()), *errors))
    return np.array(found, dtype=float)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilons", nargs="*", default=("0.1", "1"))
    asked = parser.parse_args(arguments)
    cells = list(sets(asked.data))
    for neighbours in RELATIONS:
        print(neighbours)
        found, held = {}, []
        for cell in cells:
            for epsilon in asked.epsilons:
                key = cell.name, epsilon
                found[key] = run_cell(cell, epsilon, asked.runs, neighbours)
                held.append(coverage(cell, epsilon, neighbours, 3 * asked.runs))
                ours = held[-1].mean(axis=0)
                tell(cell.name, epsilon, found[key])
                print(
                    f"      held: area {ours[0]:.2f}, session.auc {ours[1]:.2f}, "
                    f"band {ours[2]:.2f}; area's error / session.auc {ours[3] / ours[4]:.2f}",
                    flush=True,
                )
        for kind in ("roc", "pr"):
            for name, labels in (("papers", PAPERS), ("trees", TREES)):
                ratios, clear, errors = ratios_of(found, kind, list(labels))
                error = 1.25 * float(np.median(errors)) / np.sqrt(len(errors))
                print(
                    f"{neighbours}: {kind.upper()} / {name}: median {np.median(ratios):.2f} "
                    f"±{error:.2f}, worst less two errors {max(clear):.2f}"
                )
        shares = np.concatenate(held)[:, :3].mean(axis=0)
        print(f"{neighbours}: area, session.auc, band held in {shares.round(3).tolist()}")


if __name__ == "__main__":
    main()
