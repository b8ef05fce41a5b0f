"""What is gained where only outcomes are secret: the same questions under both relations.

    python -m benchmarks.labels [--runs 16] [--only-differences]

Three made-up shapes that nothing was chosen on. For each measure: the mean error against the rows'
own value, the median half-width of the noise interval, and how often that interval holds the rows'
value and the whole interval the population's (a sample of a million).
"""

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score, roc_curve

import heldout as ho

CELLS = ((1_000, "1/4"), (1_000, "1"), (5_000, "1"), (20_000, "1"))
SHAPES = ("beta", "deciles", "mixed")
MEASURES = (
    "AUC", "average precision", "recall", "precision", "accuracy", "Brier score",
    "AUC of the curve", "average precision of the curve", "KS", "expected calibration error",
)  # fmt: skip
DIFFERENCES = ("auc", "brier", "log-loss", "accuracy", "recall")


def draw(shape: str, rows: int, generator: Any) -> tuple[Any, Any]:
    """Return outcomes and scores."""
    if shape == "beta":
        scores = generator.beta(1.2, 4, rows)
        return (generator.random(rows) < scores).astype(int), scores
    if shape == "deciles":
        scores = generator.integers(0, 10, rows) / 9
        return (generator.random(rows) < 0.05 + 0.3 * scores**2).astype(int), scores
    outcome = (generator.random(rows) < 0.4).astype(int)
    peak = np.where(generator.random(rows) < 0.3, 0.5, 0.25 + 0.4 * outcome)
    return outcome, np.clip(peak + 0.12 * generator.standard_normal(rows), 0, 1)


def rival(outcome: Any, scores: Any, generator: Any) -> Any:
    """Return the scores of a second model, which errs otherwise and knows a little more."""
    noise = 0.08 * generator.standard_normal(scores.size)
    return np.clip(scores + noise + 0.03 * (outcome - scores), 0, 1)


def differences(outcome: Any, scores: Any, other: Any) -> dict[str, float]:
    """Return by how much the second model's number is larger, without noise."""

    def numbers(score: Any) -> dict[str, float]:
        given = np.maximum(np.where(outcome == 1, score, 1 - score), 0.01)
        called = score >= 0.5
        return {
            "auc": float(roc_auc_score(outcome, score)),
            "brier": float(((outcome - score) ** 2).mean()),
            "log-loss": float(-np.log(given).mean()),
            "accuracy": float((called == outcome).mean()),
            "recall": float(called[outcome == 1].mean()),
        }

    first, second = numbers(scores), numbers(other)
    return {f"difference in {name}": second[name] - first[name] for name in DIFFERENCES}


def truth(outcome: Any, scores: Any) -> dict[str, float]:
    """Return what each measure is without noise."""
    false, true, _ = roc_curve(outcome, scores)
    called = scores >= 0.5
    (_, fp), (fn, tp) = confusion_matrix(outcome, called)
    area = float(roc_auc_score(outcome, scores))
    average = float(average_precision_score(outcome, scores))
    return {
        "AUC": area,
        "average precision": average,
        "recall": tp / (tp + fn),
        "precision": tp / (tp + fp),
        "accuracy": float((called == outcome).mean()),
        "Brier score": float(((outcome - scores) ** 2).mean()),
        "AUC of the curve": area,
        "average precision of the curve": average,
        "KS": float((true - false).max()),
    }


def ask(session: Any, epsilon: str, *, only_differences: bool) -> dict[str, Any]:
    """Return every measure, each question at this price."""
    compared = {
        f"difference in {name}": session.compare(score="q", measure=name, epsilon=epsilon)
        for name in DIFFERENCES
    }
    if only_differences:
        return compared
    decided, curves = session.confusion(epsilon=epsilon), session.curves(epsilon=epsilon)
    return {
        "AUC": session.auc(epsilon=epsilon),
        "average precision": session.average_precision(epsilon=epsilon),
        "Brier score": session.brier(epsilon=epsilon),
        **{name: decided.measures[name] for name in ("recall", "precision", "accuracy")},
        **{name: curves.measures[name] for name in MEASURES[6:] if name in curves.measures},
        **compared,
    }


def run(runs: int, *, only_differences: bool = False) -> None:
    print(
        "| measure | rows | epsilon | error: rows, outcomes | half-width | ratio | "
        "noise interval holds | interval holds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for rows, epsilon in CELLS:
        seen: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
        for place, shape in enumerate(SHAPES):
            generator = np.random.default_rng([2026, place, rows])
            whole_shape = draw(shape, 1_000_000, generator)
            population = truth(*whole_shape)
            population |= differences(*whole_shape, rival(*whole_shape, generator))
            for _ in range(runs):
                outcome, scores = draw(shape, rows, generator)
                other = rival(outcome, scores, generator)
                own = truth(outcome, scores) | differences(outcome, scores, other)
                for relation in ("replace-one", "label"):
                    table = ho.Dataset(
                        {"y": outcome, "p": scores, "q": other},
                        label="y", score="p", rivals=["q"], neighbours=relation,
                    )  # fmt: skip
                    session = ho.Session(table, budget=ho.Budget(epsilon=1000))
                    asked = ask(session, epsilon, only_differences=only_differences)
                    for name, measure in asked.items():
                        low, high = measure.noise_interval(0.95)
                        least, most = measure.interval(0.95)
                        value = own.get(name, np.nan)
                        holds = low - 1e-9 <= value <= high + 1e-9
                        whole = least <= population.get(name, np.nan) <= most
                        error = abs(float(measure.value) - value)
                        seen[name, relation].append([error, (high - low) / 2, holds, whole])
        for name in dict.fromkeys(name for name, _ in seen):
            cells = {}
            for relation in ("replace-one", "label"):
                found = np.array(seen[name, relation], dtype=float)
                half = float(np.median(found[:, 1]))
                cells[relation] = (*found.mean(axis=0)[[0, 2, 3]], half)
            (error, held, whole, half), (less, kept, both, narrow) = cells.values()
            known = not np.isnan(error)
            print(
                f"| {name} | {rows:,} | {epsilon} | "
                + (f"{error:.4f}, {less:.4f}" if known else "")
                + f" | {half:.4f}, {narrow:.4f} | {half / max(narrow, 1e-12):.2f} | "
                + (f"{held:.2f}, {kept:.2f} | {whole:.2f}, {both:.2f} |" if known else " | |"),
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--only-differences", action="store_true")
    chosen = parser.parse_args()
    run(chosen.runs, only_differences=chosen.only_differences)
