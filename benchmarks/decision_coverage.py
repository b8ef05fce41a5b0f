"""How often 95% intervals of readings off curves cover: KS, Gini, net benefit, calibration, ...

    python -m benchmarks.decision_coverage [repetitions]

Whole sessions on made-up rows; the population's numbers are integrals. Each cell has two shares:
the noise interval with the number of these rows, and the interval with the population's; in
brackets, how many of the numbers noise left to be read.
"""

import sys

import numpy as np
from sklearn.metrics import roc_curve

import heldout as ho
from benchmarks.class_coverage import HIGH, LOW, coverage

RANDOM = np.random.default_rng(11)
SQUARE = tuple(
    (rows, prevalence, ("1/4", "1", "4")[(i + j) % 3])
    for i, rows in enumerate((300, 2_000, 20_000))
    for j, prevalence in enumerate((0.02, 0.1, 0.5))
)
"""Every size with every prevalence, each with one epsilon: a Latin square of the whole grid."""
CENTRE = {0.02: -4.35, 0.1: -2.55, 0.5: 0.0}
"""Of log odds with a deviation of 1, so that this share of the rows is positive."""
DECIDE = {0.02: 0.05, 0.1: 0.2, 0.5: 0.5}
"""The threshold of decisions there."""
PARTIAL = (0, 0.2)
MOST_KS = 60  # runs: its interval is read off bands, which take as long as all else together


def print_curves(runs, cells=SQUARE):
    """Readings of curves; the model is twice as sure as it may be."""
    names = ("KS", "Gini", "partial AUC", "net benefit", "mean cost", "ECE", "slope", "intercept")
    print("\n| rows | positive | epsilon |", " | ".join(names), "|")
    print("|---" * (3 + len(names)) + "|")
    outside = []
    for rows, prevalence, epsilon in cells:
        at, population = DECIDE[prevalence], _twice_as_sure(prevalence)
        truths = _read(*population, at)
        found = {name: [] for name in names}
        for _ in range(runs):
            odds = RANDOM.normal(CENTRE[prevalence], 1, rows)
            labels = RANDOM.random(rows) < 1 / (1 + np.exp(-odds))
            if not 0 < labels.sum() < rows:
                continue
            scores, once = _too_sure(odds, prevalence), np.ones(rows)
            data = ho.Dataset({"y": labels.astype(int), "p": scores}, label="y", score="p")
            curves = ho.Session(data, budget=ho.Budget(epsilon=9)).curves(epsilon=epsilon)
            read = {
                "KS": curves.ks,
                "Gini": curves.gini,
                "partial AUC": curves.partial_auc(fpr=PARTIAL),
                "net benefit": curves.net_benefit(at),
                "mean cost": curves.cost(at, false_negative=5),
                "ECE": curves.expected_calibration_error,
                "slope": curves.calibration_slope,
                "intercept": curves.calibration_intercept,
            }
            edges = curves.calibration.edges
            own = _read(labels, scores, once, at) | {"ECE": _error(labels, scores, once, edges)}
            truth = truths | {"ECE": _error(*population, edges)}
            for name in names:
                if name == "KS" and len(found[name]) >= MOST_KS:
                    continue
                shares = coverage(read[name], own[name], truth[name])
                found[name].append((*shares, read[name].informative))
        shares = {name: np.mean(each, axis=0) for name, each in found.items()}
        shown = (f"{a:.2f}, {b:.2f} ({c:.1f}) |" for a, b, c in shares.values())
        print(f"| {rows:,} | {prevalence} | {epsilon} |", *shown, flush=True)
        outside += [
            f"{rows:,}, {prevalence}, {epsilon}, {name}: {a:.3f}, {b:.3f}"
            for name, (a, b, _) in shares.items()
            if not (LOW <= a <= HIGH and LOW <= b <= HIGH)
        ]
    print(f"\noutside {LOW} to {HIGH}:", *outside, sep="\n")


def _too_sure(odds, prevalence):
    """Log odds are twice as far from the middle as they may be."""
    return 1 / (1 + np.exp(CENTRE[prevalence] - 2 * odds))


def _twice_as_sure(prevalence):
    """Labels and scores of the whole population, and how much of it each stands for."""
    place = np.linspace(-7, 7, 20_001)
    odds, density = CENTRE[prevalence] + place, np.exp(-(place**2) / 2)
    chance = 1 / (1 + np.exp(-odds))
    stands = np.concatenate([density * (1 - chance), density * chance]) / density.sum()
    return np.repeat([False, True], place.size), np.tile(_too_sure(odds, prevalence), 2), stands


def _read(labels, scores, stands, at):
    """What the readings are of rows that stand for so much each."""
    whole, called = stands.sum(), scores >= at
    false, true, _ = roc_curve(labels, scores, sample_weight=stands, drop_intermediate=False)
    odds = np.clip(np.log(scores / (1 - scores)), -7, 7)
    slope, shift = np.array([0.0, 1.0]), 0.0
    design = np.stack([np.ones(odds.size), odds], axis=1)
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(design @ slope, -30, 30)))
        hessian = design.T @ (design * (stands * p * (1 - p))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, design.T @ (stands * (labels - p)))
        slope = slope + np.clip(step, -1, 1)
        p = 1 / (1 + np.exp(-odds - shift))
        slack = float((stands @ (labels - p)) / (stands @ (p * (1 - p))))
        shift += min(max(slack, -1.0), 1.0)
    places = np.linspace(*PARTIAL, 2001)
    right, wrong = stands @ (called & labels) / whole, stands @ (called & ~labels) / whole
    return {
        "KS": float(np.max(true - false)),
        "Gini": float(2 * np.trapezoid(true, false) - 1),
        "partial AUC": float(np.interp(places, false, true).mean()),
        "net benefit": right - at / (1 - at) * wrong,
        "mean cost": wrong + 5 * (stands @ (~called & labels) / whole),
        "slope": float(slope[1]),
        "intercept": shift,
    }


def _error(labels, scores, stands, edges):
    """The expected calibration error in these bins."""
    bins = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, len(edges) - 2)
    off = np.bincount(bins, stands * (labels - scores), len(edges) - 1)
    return float(np.abs(off).sum() / stands.sum())


def main(runs=None):
    print_curves(int(sys.argv[1]) if runs is None and len(sys.argv) > 1 else runs or 40)


if __name__ == "__main__":
    main()
