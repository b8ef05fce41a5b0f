"""Two models on the same rows: how often intervals hold the population's difference.

    python -m benchmarks.comparing [--runs 100] [--sizes 1000 5000] [--epsilon 1]

Rows are made up, and nothing was tuned on them: two noisy classifiers of one hidden score, alike
or not, and two regressions with heavy-tailed errors. The truth is that of a million rows; of
regressions, with errors held to 40,000 as was declared. `half width` is the median of half the
interval.
"""

import argparse
import math
import time
from typing import Any

import numpy as np

import heldout as ho
from heldout.questions.ranking.paired import PAIRED
from heldout.questions.ranking.questions import RANKED

MANY = 1_000_000
OF_ERRORS = ("mean-absolute-error", "root-mean-squared-error")


def classified(random: Any, rows: int, alike: bool) -> dict[str, Any]:
    y = (random.random(rows) < 0.3).astype(int)
    hidden = random.normal(size=rows) + 1.5 * y - 1.2
    spread = 0.55 if alike else 1.2
    first = 1 / (1 + np.exp(-(hidden + 0.5 * random.normal(size=rows))))
    second = 1 / (1 + np.exp(-(hidden + spread * random.normal(size=rows))))
    return {"y": y, "a": first, "b": second}


def predicted(random: Any, rows: int, alike: bool) -> dict[str, Any]:
    pay = random.gamma(4, 9_000, rows)
    first = pay + 6_000 * random.standard_t(4, rows)
    second = pay + (6_200 if alike else 9_000) * random.standard_t(4, rows)
    return {
        name: np.clip(own, 0, 120_000)
        for name, own in zip("yab", (pay, first, second), strict=True)
    }


def truth(measure: str, rows: dict[str, Any]) -> float:
    from sklearn.metrics import average_precision_score, roc_auc_score

    y = rows["y"]

    def of(score: Any) -> float:
        called = score >= 0.5
        match measure:
            case "auc":
                number = roc_auc_score(y, score)
            case "average-precision":
                number = average_precision_score(y, score)
            case "brier":
                number = ((score - y) ** 2).mean()
            case "log-loss":
                number = -np.log(np.maximum(np.where(y == 1, score, 1 - score), 0.01)).mean()
            case "accuracy":
                number = (called == y).mean()
            case "recall":
                number = called[y == 1].mean()
            case "specificity":
                number = 1 - called[y == 0].mean()
            case "mean-absolute-error":
                number = np.abs(score - y).mean()
            case _:
                number = math.sqrt(((score - y) ** 2).mean())
        return float(number)

    return of(rows["b"]) - of(rows["a"])


def answer(measure: str, rows: dict[str, Any], epsilon: str) -> Any:
    budget = ho.Budget(epsilon=epsilon)
    if measure in (*RANKED, *PAIRED):
        table = ho.Dataset(rows, label="y", score="a", rivals=["b"], score_range=(0, 1))
        return ho.Session(table, budget=budget).compare(score="b", measure=measure, epsilon=epsilon)
    table = ho.Dataset(rows, values=dict.fromkeys("yab", (0, 120_000)))
    return ho.Session(table, budget=budget).compare_errors(
        observed="y", first="a", second="b", measure=measure, largest_error=40_000, epsilon=epsilon
    )


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--runs", type=int, default=100)
    reader.add_argument("--sizes", nargs="*", type=int, default=[1_000, 5_000])
    reader.add_argument("--epsilon", default="1")
    reader.add_argument("--measures", nargs="*", default=[*RANKED, *PAIRED, *OF_ERRORS])
    chosen = reader.parse_args()
    random, start = np.random.default_rng(35), time.process_time()
    print("| measure | models | rows | truth | coverage | of the sample, by noise alone |", end="")
    print(" half width |\n|---|---|---|---|---|---|---|")
    for measure in chosen.measures:
        draw = predicted if measure in OF_ERRORS else classified
        for alike in (True, False):
            true = truth(measure, _held(draw(random, MANY, alike), measure))
            for size in chosen.sizes:
                covered, by_noise, widths = [], [], []
                for _ in range(chosen.runs):
                    rows = draw(random, size, alike)
                    found = answer(measure, rows, chosen.epsilon)
                    low, high = found.interval(0.95)
                    covered.append(low <= true <= high)
                    widths.append((high - low) / 2)
                    low, high = found.noise_interval(0.95)
                    by_noise.append(low <= truth(measure, _held(rows, measure)) <= high)
                cells = [measure, "alike" if alike else "apart", f"{size:,}", f"{true:.4g}"]
                cells += [f"{np.mean(covered):.3f}", f"{np.mean(by_noise):.3f}"]
                print("| " + " | ".join([*cells, f"{np.median(widths):.3g}"]) + " |", flush=True)
    print(f"\n{time.process_time() - start:.0f} s of processor time, {chosen.runs} runs a cell")


def _held(rows: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return rows with errors held to what was declared, which is what a difference is about."""
    if not measure.endswith("-error"):
        return rows
    y = rows["y"]
    return {"y": y} | {name: y + np.clip(rows[name] - y, -40_000, 40_000) for name in "ab"}


if __name__ == "__main__":
    main()
