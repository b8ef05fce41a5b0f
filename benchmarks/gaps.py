"""How often groups that do not differ are said to differ at 5%, and how often a real gap is seen.

    python -m benchmarks.gaps [repetitions]

Rows are made up and asked of whole sessions; 2, 5, 10 and 20 groups. A share of more than 6% that
so many runs tell from 6% is a missed figure, and so is a power more than .1 below the plain test's.
"""

import math
import sys

import numpy as np

import heldout as ho

RANDOM = np.random.default_rng(18)
GROUPS = ((2, 2_500, "1"), (5, 1_000, "1"), (10, 1_000, "2"), (20, 500, "4"))
MOST = 0.06


def table(groups, rows, *, classes=False):
    """Groups of one population: a fifth positive and calibrated scores, or three classes."""
    size = groups * rows
    member = np.repeat(np.arange(groups), rows)
    if classes:
        truth = RANDOM.choice(3, size, p=(0.5, 0.3, 0.2))
        logits = RANDOM.normal(0, 1.2, (size, 3)) + 1.5 * np.eye(3)[truth]
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return {"y": truth, "g": member, **dict(zip("pqr", scores.T, strict=True))}
    odds = RANDOM.normal(-1.8, 1.5, size)
    scores = 1 / (1 + np.exp(-odds))
    return {"y": (RANDOM.random(size) < scores).astype(int), "p": scores, "g": member}


def session(rows, groups, *, classes=False):
    words = {"classes": [0, 1, 2], "scores": ["p", "q", "r"]} if classes else {"score": "p"}
    data = ho.Dataset(rows, label="y", groups={"g": list(range(groups))}, **words)
    return ho.Session(data, budget=ho.Budget(epsilon=99))


def seen(release, *metrics):
    """Which gaps were said to be there, by name of the measure."""
    return {each: release.gap_in(each).p_value < 0.05 for each in metrics}


def asked(rows, groups, epsilon):
    """Every gap of two classes that there is a test for."""
    of = session(rows, groups)
    cells = of.confusion(epsilon=epsilon, by="g", threshold=0.3)
    curves = of.curves(epsilon=epsilon, by="g")
    found = {
        **seen(cells, "accuracy", "recall", "precision", "selection rate"),
        "odds": cells.equalised_odds.p_value < 0.05,
        **seen(of.brier(epsilon=epsilon, by="g"), "Brier score"),
        **seen(of.log_loss(epsilon=epsilon, by="g"), "log loss"),
        **seen(of.average_precision(epsilon=epsilon, by="g"), "average precision"),
        **seen(of.auc(epsilon=epsilon, by="g"), "AUC"),
    }
    found |= {f"curves: {each}": said for each, said in seen(curves, *curves.compared).items()}
    return found


def asked_of_classes(rows, groups, epsilon):
    of = session(rows, groups, classes=True)
    cells = of.confusion(epsilon=epsilon, by="g")
    return {
        **seen(cells, "accuracy", "recall, 2", "precision, 0"),
        **seen(of.top_k(epsilon=epsilon, by="g"), "top-2 accuracy"),
        **seen(of.brier(epsilon=epsilon, by="g"), "Brier score"),
        **seen(of.log_loss(epsilon=epsilon, by="g"), "log loss"),
    }


def print_alarms(title, ask, runs, *, classes):
    held, lines = True, {}
    for groups, rows, epsilon in GROUPS:
        every = [ask(table(groups, rows, classes=classes), groups, epsilon) for _ in range(runs)]
        for name in every[0]:
            share = float(np.mean([each[name] for each in every]))
            held &= share <= MOST + 2 * math.sqrt(0.05 * 0.95 / runs)
            lines.setdefault(name, []).append(share)
        said = ", ".join(f"{name} {shares[-1]:.3f}" for name, shares in lines.items())
        print(f"{title}, {groups} groups: {said}", file=sys.stderr, flush=True)
    print(f"\n| {title} |", " | ".join(f"{n} x {r:,}, epsilon {e}" for n, r, e in GROUPS), "|")
    print("|---" * (1 + len(GROUPS)) + "|")
    for name, shares in lines.items():
        print(f"| {name} |", " | ".join(f"{each:.3f}" for each in shares), "|")
    return held


def power(runs, gap=0.1):
    """Return how often a gap in recall is seen, with privacy and without.

    Two groups, 5,000 rows in all, epsilon 1.
    """
    private, plain = [], []
    for _ in range(runs):
        labels = (RANDOM.random(5_000) < 0.2).astype(int)
        member = np.repeat([0, 1], 2_500)
        called = RANDOM.random(5_000) < np.where(labels == 1, 0.65 + gap * member, 0.125)
        rows = {"y": labels, "p": called.astype(float), "g": member}
        answer = session(rows, 2).confusion(epsilon="1", by="g")
        private.append(answer.equal_opportunity.p_value < 0.05)
        found, positives = (
            np.array([np.sum(which & (member == g)) for g in (0, 1)])
            for which in (called & (labels == 1), labels == 1)
        )
        pooled = found.sum() / positives.sum()
        deviation = math.sqrt(pooled * (1 - pooled) * float((1 / positives).sum()))
        plain.append(abs(np.subtract(*(found / positives))) / deviation > 1.96)
    return float(np.mean(private)), float(np.mean(plain))


def print_power(runs):
    private, plain = power(runs)
    print(f"\nA gap of .1 in recall: seen in {private:.3f}, plainly {plain:.3f}")
    return private >= plain - 0.1


def main(runs=None):
    runs = int(sys.argv[1]) if runs is None and len(sys.argv) > 1 else runs or 20
    held = print_alarms("gap in", asked, runs, classes=False)
    held &= print_alarms("gap in, three classes", asked_of_classes, runs, classes=True)
    return print_power(runs) and held


if __name__ == "__main__":
    main()
