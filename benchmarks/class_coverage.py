"""How often 95% intervals cover: several classes, log loss, weights, ranked lists, contrasts.

    python -m benchmarks.class_coverage [repetitions]

Rows and noise are simulated; the intervals are those of the releases. Each cell has two shares:
the noise interval with the number of these rows, and the interval with the population's.
"""

import sys
from fractions import Fraction
from itertools import product

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    roc_auc_score,
)

import heldout as ho
from heldout import questions as q
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.intervals import contrasts
from heldout.kernel import Protection
from heldout.kernel.door import Drawn
from heldout.kernel.statistic import STEPS
from heldout.questions.classes import class_contrasts

RANDOM = np.random.default_rng(11)
GRID = tuple(product((300, 2_000, 20_000), (0.02, 0.1, 0.33), ("1/4", "1", "4")))
SHOWN = ("balanced accuracy", "macro precision", "macro F1 score", "weighted precision",
         "weighted F1 score", "Cohen's kappa", "Matthews correlation")  # fmt: skip
POPULATION = 10**12
LOW, HIGH = 0.93, 0.985


def noise(mechanism):
    p = np.exp(-1 / mechanism.float_scale)
    draws = RANDOM.geometric(1 - p, (2, mechanism.dimension))
    return draws[0] - draws[1]


def shares(rarest, right):
    """Truth by call: the last class is rare, and is found a little less often."""
    sizes = np.array([(1 - rarest) * 0.6, (1 - rarest) * 0.4, rarest])
    matrix = np.full((3, 3), (1 - right) / 2) + np.eye(3) * (right - (1 - right) / 2)
    return (sizes[:, None] * matrix).ravel()


def classes(rows):
    return ClassifiedRows(
        name="made up",
        protection=Protection(neighbours="replace-one"),
        rows=rows,
        label="y",
        classes=("a", "b", "c"),
        scores=("p", "q", "r"),
    )


def released(question, about, exact, *, still=False):
    request = question.request(about)
    values = exact if still else exact + noise(request.mechanism)
    return question.read(Drawn(request, values, None, about, None))


def value(name, cells):
    """Of exact counts, by the definitions."""
    matrix = cells.reshape(3, 3)
    true, called, right = matrix.sum(axis=1), matrix.sum(axis=0), np.diag(matrix)
    for contrast in class_contrasts():
        if contrast.name == name:
            return float(contrast(cells))
    mean = {"balanced accuracy": true, "macro precision": called, "weighted precision": called}
    below = mean.get(name, (true + called) / 2)
    ratios = np.divide(right, below, out=np.full(3, np.nan), where=below > 0)
    return float(ratios @ true / true.sum() if "weighted" in name else ratios.mean())


def coverage(measure, own, whole):
    low, high = measure.noise_interval()
    a, b = measure.interval()
    return low - 1e-9 <= own <= high + 1e-9, a <= whole <= b


def print_matrix(runs):
    print("| rows | rarest class | epsilon |", " | ".join(SHOWN), "|")
    print("|---" * (3 + len(SHOWN)) + "|")
    outside = []
    for rows, rarest, epsilon in GRID:
        population = shares(rarest, 0.8)
        question, about = q.ClassConfusion(epsilon=Fraction(epsilon)), classes(rows)
        found = {name: [] for name in SHOWN}
        for _ in range(runs):
            exact = RANDOM.multinomial(rows, population)
            release = released(question, about, exact)
            for name in SHOWN:
                own = value(name, exact.astype(float))
                whole = value(name, population * POPULATION)
                if not np.isnan(own):  # a class without a row, or without a call
                    found[name].append(coverage(release.measures[name], own, whole))
        cells = [np.mean(each, axis=0) for each in found.values()]
        print(f"| {rows:,} | {rarest} | {epsilon} |", *(f"{a:.2f}, {b:.2f} |" for a, b in cells))
        outside += [
            (rows, rarest, epsilon, name, *pair)
            for name, pair in zip(SHOWN, cells, strict=True)
            if not all(LOW <= each <= HIGH for each in pair)
        ]
    print("\noutside", f"{LOW} to {HIGH}:", len(outside), "of", len(GRID) * len(SHOWN))


SHIFT = {0.02: -5.0, 0.1: -2.83, 0.5: 0.0}
"""Of normal log odds with a deviation of 1.5, so that this share of the rows is positive."""


def scored(rows, prevalence):
    """Labels, calibrated scores, and weights that are heavier for positives: up to 4, as shares."""
    scores = 1 / (1 + np.exp(-RANDOM.normal(SHIFT[prevalence], 1.5, rows)))
    labels = RANDOM.random(rows) < scores
    weights = np.minimum(RANDOM.exponential(1.0 + labels, rows), 4.0) / 4
    return labels, scores, weights


def errors(labels, scores, weights, plain=None):
    """The numbers of print_means, by their definitions; `plain` is how often a row stands here."""
    given = np.maximum(np.where(labels, scores, 1 - scores), 0.01)
    called = scores >= CUT
    return {
        "log loss": float(np.average(-np.log(given), weights=plain)),
        "Brier": float(np.average((scores - labels) ** 2, weights=plain)),
        "weighted log loss": float(weights @ -np.log(given) / weights.sum()),
        "weighted accuracy": float(weights @ (called == labels) / weights.sum()),
        "weighted recall": float(weights @ (called & labels) / max(weights @ labels, 1e-9)),
    }


def population(prevalence):
    """Labels and scores of all of them, how much of it each stands for, and the weights' share.

    By quadrature: two million draws are off by a tenth of the sampling error of 20,000 rows, the
    same tenth in every run.
    """
    place = np.linspace(-8, 8, 200_001)
    scores = 1 / (1 + np.exp(-SHIFT[prevalence] - 1.5 * place))
    density = np.exp(-(place**2) / 2)
    labels = np.repeat([False, True], place.size)
    plain = np.concatenate([density * (1 - scores), density * scores]) / density.sum()
    mean = 1.0 + labels
    heavy = plain * mean * (1 - np.exp(-4 / mean))  # of an exponential law that is cut at 4
    return labels, np.tile(scores, 2), heavy, plain


CUT = 0.2


def steps(numbers):
    return np.round(numbers * STEPS).astype(np.int64)


def mean_sums(errors, weights=None):
    """The entries of BoundedSum, where the row count is public or with weights."""
    e = steps(errors if weights is None else errors * weights)
    if weights is None:
        return np.array([each.sum() for each in (e, e * (STEPS - e) // STEPS)])
    w = steps(weights)
    f, product = w - e, e * (w - e) // STEPS
    lacking = e * (STEPS - w) // STEPS, f * (STEPS - w) // STEPS
    return np.array([each.sum() for each in (e, product, f - product, *lacking)])


def print_weighted(runs):
    """What is no ratio, of rows with weights; the number of rows is private then."""
    row = Protection(neighbours="replace-one")
    public = {"name": "m", "protection": row, "label": "y", "score": "p"}
    found_of = {name: contrasts()[name] for name in ("Cohen's kappa", "Matthews correlation")}
    print("\n| rows | positive | epsilon |", " | ".join(found_of), "|")
    print("|---" * (3 + len(found_of)) + "|")
    for prevalence in SHIFT:
        labels, scores, weights, _ = population(prevalence)
        whole = np.bincount(2 * labels + (scores >= CUT), weights, 4)[[3, 1, 2, 0]]
        for rows, epsilon in product((300, 2_000, 20_000), ("1/4", "1", "4")):
            heavy = ScoredRows(rows=rows, weight="w", largest_weight=4.0, **public)
            asked = q.Confusion(epsilon=epsilon, weighted=True, threshold=CUT)
            found = {name: [] for name in found_of}
            for _ in range(runs):
                labels, scores, weights = scored(rows, prevalence)
                w, cell = steps(weights), 2 * labels + (scores >= CUT)
                exact = [np.bincount(cell, each, 4) for each in (w, w * (STEPS - w) // STEPS)]
                matrix = released(asked, heavy, np.concatenate(exact).astype(np.int64))
                for name, contrast in found_of.items():
                    own = float(contrast(exact[0][[3, 1, 2, 0]]))
                    if not np.isnan(own):
                        measure = matrix.contrast(contrast)
                        found[name].append(coverage(measure, own, float(contrast(whole))))
            cells = [np.mean(each, axis=0) for each in found.values()]
            shown = (f"{a:.3f}, {b:.3f} |" for a, b in cells)
            print(f"| {rows:,} | {prevalence} | {epsilon} |", *shown, flush=True)


def print_means(runs):
    """Mean errors and weighted rows: coverage and the mean width of the population's interval."""
    row = Protection(neighbours="replace-one")
    public = {"name": "m", "protection": row, "label": "y", "score": "p"}
    names = list(errors(*scored(10, 0.5)))
    print("\n| rows | positive | epsilon |", " | ".join(names), "|")
    print("|---" * (3 + len(names)) + "|")
    for prevalence in SHIFT:
        whole = errors(*population(prevalence))
        for rows, epsilon in product((300, 2_000, 20_000), ("1/4", "1", "4")):
            about = ScoredRows(rows=rows, **public)
            heavy = ScoredRows(rows=rows, weight="w", largest_weight=4.0, **public)
            found = {name: [] for name in names}
            for _ in range(runs):
                labels, scores, weights = scored(rows, prevalence)
                own = errors(labels, scores, weights)
                given = np.maximum(np.where(labels, scores, 1 - scores), 0.01)
                loss, square = np.log(given) / np.log(0.01), (scores - labels) ** 2
                w, cell = steps(weights), 2 * labels + (scores >= CUT)
                cells = [np.bincount(cell, each, 4) for each in (w, w * (STEPS - w) // STEPS)]
                asked = q.Confusion(epsilon=epsilon, weighted=True, threshold=CUT)
                matrix = released(asked, heavy, np.concatenate(cells).astype(np.int64))
                weighed = q.LogLoss(epsilon=epsilon, weighted=True)
                answers = (
                    released(q.LogLoss(epsilon=epsilon), about, mean_sums(loss)).headline,
                    released(q.Brier(epsilon=epsilon), about, mean_sums(square)).headline,
                    released(weighed, heavy, mean_sums(loss, weights)).headline,
                    matrix.accuracy,
                    matrix.recall,
                )
                for name, measure in zip(names, answers, strict=True):
                    if name.startswith("weighted ") and not (labels.any() and own[name]):
                        continue  # these rows have no positive, or no call
                    low, high = measure.interval()
                    found[name].append((*coverage(measure, own[name], whole[name]), high - low))
            cells = [np.mean(each, axis=0) for each in found.values()]
            shown = (f"{a:.2f}, {b:.2f} ({width:.3f}) |" for a, b, width in cells)
            print(f"| {rows:,} | {prevalence} | {epsilon} |", *shown, flush=True)


def print_contrasts(runs):
    """Metrics of two classes that are no ratio, of the same rows at the same threshold."""
    public = {"name": "m", "protection": Protection(neighbours="replace-one"), "label": "y"}
    found_of = contrasts()
    del found_of["informedness"]  # twice balanced accuracy less one
    print("\n| rows | positive | epsilon |", " | ".join(found_of), "|")
    print("|---" * (3 + len(found_of)) + "|")
    outside = []
    for prevalence in SHIFT:
        labels, scores, _, plain = population(prevalence)
        shares = np.bincount(2 * labels + (scores >= CUT), plain, 4)
        whole = shares[[3, 1, 2, 0]]
        for rows, epsilon in product((300, 2_000, 20_000), ("1/4", "1", "4")):
            about = ScoredRows(rows=rows, score="p", **public)
            asked = q.Confusion(epsilon=epsilon, threshold=CUT)
            found = {name: [] for name in found_of}
            for _ in range(runs):
                exact = RANDOM.multinomial(rows, shares / shares.sum())
                matrix = released(asked, about, exact)
                for name, contrast in found_of.items():
                    own = float(contrast(exact[[3, 1, 2, 0]]))
                    if not np.isnan(own):
                        measure = matrix.contrast(contrast)
                        found[name].append(coverage(measure, own, float(contrast(whole))))
            cells = [np.mean(each, axis=0) for each in found.values()]
            shown = (f"{a:.2f}, {b:.2f} |" for a, b in cells)
            print(f"| {rows:,} | {prevalence} | {epsilon} |", *shown, flush=True)
            outside += [
                f"{rows:,}, {prevalence}, {epsilon}, {name}, {kind} {share:.3f}"
                for name, pair in zip(found_of, cells, strict=True)
                for kind, share in zip(("noise", "population"), pair, strict=True)
                if not LOW <= share <= HIGH
            ]
    print(f"\noutside {LOW} to {HIGH}: {len(outside)}:", *outside, sep="\n")


def print_lists(runs):
    """NDCG at 10, of lists whose values are Beta(3, 2)."""
    print("\n| lists | epsilon | NDCG at 10 |")
    print("|---|---|---|")
    query = Protection(neighbours="add-remove", unit=True, rows_per_unit=20)
    lists = ScoredRows(name="m", protection=query, rows=None, label="y", score="p")
    for rows, epsilon in product((300, 2_000, 20_000), ("1/4", "1", "4")):
        found = []
        for _ in range(runs):
            values = RANDOM.beta(3, 2, rows)
            parts = (values**2, values - values**2, 1 - values)
            sums = np.array([round(float(each.sum()) * STEPS) for each in parts])
            answer = released(q.Ndcg(epsilon=epsilon), lists, sums)
            found.append(coverage(answer.headline, float(values.mean()), 0.6))
        a, b = np.mean(found, axis=0)
        print(f"| {rows:,} | {epsilon} | {a:.2f}, {b:.2f} |")


SPREAD = 1.2


def made_up(rows):
    """Three classes whose scores are noisy softmaxes, and two with calibrated ones."""
    truth = RANDOM.choice(3, rows, p=(0.5, 0.3, 0.2))
    logits = RANDOM.normal(0, SPREAD, (rows, 3)) + 1.5 * np.eye(3)[truth]
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return truth, scores


def print_areas(runs):
    """The macro AUC and average precision, by whole sessions."""
    whole = _macros(*made_up(10**6))
    print("\n| rows | epsilon | macro AUC | macro average precision |")
    print("|---|---|---|---|")
    for rows, epsilon in product((500, 5_000), ("1", "4")):
        found = []
        for _ in range(runs):
            truth, scores = made_up(rows)
            table = {"y": truth, "p": scores[:, 0], "q": scores[:, 1], "r": scores[:, 2]}
            data = ho.Dataset(table, label="y", classes=[0, 1, 2], scores=["p", "q", "r"])
            session = ho.Session(data, budget=ho.Budget(epsilon=9))
            answers = session.auc(epsilon=epsilon), session.average_precision(epsilon=epsilon)
            each = zip(answers, _macros(truth, scores), whole, strict=True)
            found.append([coverage(release.headline, *numbers) for release, *numbers in each])
        cells = np.mean(found, axis=0)
        print(f"| {rows:,} | {epsilon} |", *(f"{a:.2f}, {b:.2f} |" for a, b in cells), flush=True)


def _macros(truth, scores):
    hot = np.eye(3)[truth]
    return roc_auc_score(hot, scores), average_precision_score(hot, scores)


def main(runs=None):
    runs = int(sys.argv[1]) if runs is None and len(sys.argv) > 1 else runs or 40
    print_matrix(runs)
    print_means(runs)
    print_weighted(runs)
    print_contrasts(runs)
    print_lists(runs)
    print_areas(runs)


if __name__ == "__main__":
    main()
