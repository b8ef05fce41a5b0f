"""Realised over quoted half-widths of every measure, by a guess that is true.

    python -m benchmarks.quotes [--runs 25] [--kinds auc curves]

Rows are those that a guess speaks of: calibrated probabilities of two normal classes, 25% positive,
an AUC of 0.8. Each kind of the registry that such rows can be asked is quoted once and asked so
many times; what is printed is the median realised half-width over the quoted one, of the whole
interval and of noise alone. Wanted: 0.9 to 1.1.
"""

import argparse
import math
from statistics import NormalDist, median
from typing import Any

import numpy as np

import heldout as ho
from heldout import questions as q
from heldout.questions.quote import HalfWidths

APART = math.sqrt(2) * NormalDist().inv_cdf(0.8)
KINDS = ("auc", "average-precision", "compare", "confusion", "brier", "log-loss", "mean-error")
SIZES = ((1_000, "1"), (5_000, "1"))


def table(rows: int, random: Any) -> dict[str, Any]:
    """Return labels, calibrated scores and a second model's that agrees as most do."""
    labels = (np.arange(rows) < rows // 4).astype(np.int64)
    noise = random.normal(size=(2, rows))
    noise[1] = 0.766 * noise[0] + math.sqrt(1 - 0.766**2) * noise[1]
    odds = APART * (noise + APART * labels) - APART**2 / 2 + math.log(1 / 3)
    own, rival = 1 / (1 + np.exp(-odds))
    return {"y": labels, "p": own, "q": rival}


def asked(kind: str, epsilon: str) -> q.Question[Any]:
    """Return the kind's question as it is usually asked."""
    known = {question.kind: question for question in q.registered()}[kind]
    return known(epsilon=epsilon, **known.example)


def kinds() -> list[str]:
    """Return the kinds that can be asked of scored rows."""
    from heldout.data.description import ScoredRows

    return [question.kind for question in q.registered() if ScoredRows in question.of]


def measure(kind: str, rows: int, epsilon: str, runs: int, random: Any) -> list[tuple[Any, ...]]:
    """Return name, quoted, and the two ratios, of each measure of the kind."""
    content = table(rows, random)
    words: dict[str, Any] = {"label": "y", "score": "p", "rivals": ["q"]}
    budget = ho.Budget(epsilon=10**6)
    question = asked(kind, epsilon)
    session = ho.Session(ho.Dataset(content, **words), budget=budget)
    guess: dict[str, Any] = {"positives": rows // 4, "auc": 0.8}
    [quoted] = session.quote(question, **guess).half_widths
    seen: dict[str, list[HalfWidths]] = {}
    for _ in range(runs):
        own = ho.Session(ho.Dataset(table(rows, random), **words), budget=budget)
        release = own.ask(question)
        for name, one in release.measures.items():
            seen.setdefault(name, []).append(HalfWidths.of(one, 0.95))
    lines = []
    names = dict(zip(quoted, seen, strict=False))  # a comparison is named by its models
    for name, width in quoted.items():
        several = seen.get(name) or seen[names[name]]
        whole, noise = (
            median(getattr(one, part) for one in several) / max(getattr(width, part), 1e-12)
            for part in ("whole", "noise")
        )
        lines.append((name, width.whole, whole, noise, width.informative))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--kinds", nargs="*", default=None)
    words = parser.parse_args()
    random = np.random.default_rng(8)
    for rows, epsilon in SIZES:
        for kind in words.kinds or kinds():
            try:
                lines = measure(kind, rows, epsilon, words.runs, random)
            except Exception as error:  # a kind that needs other columns
                print(f"{kind}: {type(error).__name__}: {str(error)[:90]}", flush=True)
                continue
            for name, width, whole, noise, informative in lines:
                mark = "" if 0.9 <= whole <= 1.1 or not informative else "  <--"
                shown = "" if informative else " (no information)"
                print(
                    f"{kind:18s} {rows:>6,} {epsilon:>3s} {name[:44]:44s} quoted {width:.4f}, "
                    f"realised / quoted {whole:.2f}, noise {noise:.2f}{shown}{mark}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
