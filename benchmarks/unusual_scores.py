"""Curves of scores that no model of the field should give, and some do.

    python -m benchmarks.unusual_scores [--runs 8]

A model that ranks the wrong way; positives at both ends, or negatives; half of the positives
without a score; one class at a single score. For each the mean and the largest error of the ROC
curve, the mean error of its area, and how often the area's noise interval of 95% holds it.
"""

import argparse
from typing import Any

import numpy as np

import heldout as ho
from heldout.kernel.ranking.values import area

RELATIONS = ("replace-one", "add-remove")
CELLS = ((200, "1"), (2_000, "1"), (2_000, "10"), (20_000, "1"))
PLACES = np.linspace(0, 1, 401)


def upside_down(random: Any, labels: Any) -> Any:
    return 1 - labels * 1.0


def nearly_upside_down(random: Any, labels: Any) -> Any:
    return 1 / (1 + np.exp(2 * labels + random.normal(size=len(labels))))


def positives_at_both_ends(random: Any, labels: Any) -> Any:
    return np.where(labels == 1, _ends(random, labels), _middle(random, labels))


def negatives_at_both_ends(random: Any, labels: Any) -> Any:
    return np.where(labels == 0, _ends(random, labels), _middle(random, labels))


def half_without_a_score(random: Any, labels: Any) -> Any:
    lost = (labels == 1) & (random.random(len(labels)) < 0.5)
    return np.where(lost, 0.0, (random.random(len(labels)) + labels) / 2)


def positives_at_one(random: Any, labels: Any) -> Any:
    return np.where(labels == 1, 0.5, random.random(len(labels)))


def negatives_at_one(random: Any, labels: Any) -> Any:
    return np.where(labels == 0, 0.5, random.random(len(labels)))


SHAPES = (
    upside_down, nearly_upside_down, positives_at_both_ends, negatives_at_both_ends,
    half_without_a_score, positives_at_one, negatives_at_one,
)  # fmt: skip


def _ends(random: Any, labels: Any) -> Any:
    far = random.random(len(labels)) / 10
    return np.where(random.random(len(labels)) < 0.5, far, 1 - far)


def _middle(random: Any, labels: Any) -> Any:
    return 0.4 + random.random(len(labels)) / 5


def curve(labels: Any, scores: Any) -> Any:
    """The true positive rate at each place."""
    cuts = np.append(np.inf, np.unique(scores)[::-1])
    false, true = (
        (len(each) - np.searchsorted(np.sort(each), cuts)) / max(len(each), 1)
        for each in (scores[labels == 0], scores[labels == 1])
    )
    return np.interp(PLACES, false, true)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    runs = parser.parse_args().runs
    random = np.random.default_rng(31)
    print("shape, relation, rows, epsilon: ROC error (largest), area error, held")
    for shape in SHAPES:
        for relation in RELATIONS:
            for rows, epsilon in CELLS:
                errors, off, held = [], [], 0
                for _ in range(runs):
                    labels = (random.random(rows) < 0.3).astype(np.int64)
                    scores = shape(random, labels)
                    one = ho.roc_curve(labels, scores, epsilon=epsilon, neighbours=relation)
                    found = np.interp(PLACES, one.roc.fpr, one.roc.tpr)
                    errors.append(np.abs(found - curve(labels, scores)).mean())
                    truth = float(area(scores[labels == 1], scores[labels == 0]))
                    low, high = one.auc.noise_interval(0.95)
                    off.append(abs(float(one.auc.value) - truth))
                    held += low <= truth <= high
                print(
                    f"{shape.__name__}, {relation}, {rows}, {epsilon}: {np.mean(errors):.3f} "
                    f"({np.max(errors):.3f}), {np.mean(off):.4f}, {held / runs:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
