"""Curves: how often intervals hold, how wide they are, and errors beside a plain histogram's.

    python -m benchmarks.curves [--runs 16] [--rows 1000 5000] [--epsilon 1] [--neighbours ...]
                                [--families smooth tied sharp lost] [--data DIR] [--held-back]
                                [--quotes] [--sets] [--named 0.2 0.5] [--groups]

Families of made-up scores: `smooth`; `tied` (deciles, votes, leaves, heaps); `sharp` (a class ends
at a point, or is wholly at one); `lost` (some positives score like negatives). With `--data` models
of adult, CPS, diabetes, Reuters, SMS and Twitter join. `--held-back` takes other shapes, which no
setting was chosen on: look at them when all is chosen; with `--families scikit-learn` that
package's own sets with five kinds of models. Every run draws new rows (those of real sets are drawn
without replacement) and new noise, as in production.

Shares are of 95% intervals. A standard error follows each figure; that of a share counts a run's
readings as one. `--named` buys counts at thresholds; `--groups` asks for the curves of two groups,
a third and two thirds of the rows, and measures either. The histogram has 8, 16, 32 or 64 even
bins with Laplace noise for all of epsilon, and of each set the best number in hindsight.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho

RANDOM = np.random.default_rng(33)
RATES = np.linspace(0, 1, 201)
RECALLS = np.linspace(0.01, 1, 100)
THRESHOLDS = np.linspace(0.1, 0.9, 9)
BINS = (8, 16, 32, 64)
POPULATION = 200_000
Shape = Callable[[Any], Any]


def _logistic(latent: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(latent, -700, 700)))


def _normal(labels: Any, apart: float = 1.5, shift: float = -1.0) -> Any:
    return RANDOM.normal(apart * labels + shift)


def _steps(scores: Any, steps: int) -> Any:
    return np.round(np.clip(scores, 0, 1) * steps) / steps


def _even(labels: Any) -> Any:
    return RANDOM.random(len(labels))


def _votes(labels: Any, trees: int) -> Any:
    """The share of voters for the positive class, each as sure as the row is clear."""
    return RANDOM.binomial(trees, _logistic(1.5 * _normal(labels))) / trees


def _leaves(labels: Any, leaves: int) -> Any:
    """The score of a leaf: a few values at no simple fractions."""
    values = np.sort(np.random.default_rng(5).beta(0.7, 1.2, leaves))
    edges = np.linspace(-2.5, 2.5, leaves - 1)
    return values[np.searchsorted(edges, _normal(labels))]


def _some(labels: Any, share: float, then: Any, otherwise: Any) -> Any:
    return np.where(RANDOM.random(len(labels)) < share, then, otherwise)


MADE_UP: dict[str, dict[str, tuple[float, Shape]]] = {
    "smooth": {
        "binormal": (0.3, lambda y: _logistic(_normal(y))),
        "weak": (0.3, lambda y: _logistic(_normal(y, 0.6))),
        "strong": (0.3, lambda y: _logistic(2 * _normal(y, 3.0, -1.5))),
        "rare, skewed": (0.1, lambda y: RANDOM.beta(np.where(y, 1.2, 0.5), 12.0)),
        "t": (0.25, lambda y: _logistic(RANDOM.standard_t(2.5, len(y)) + 1.8 * y - 1)),
        "8% lost": (0.22, lambda y: _logistic(_normal(y * (_even(y) >= 0.08), 2.3))),
    },
    "tied": {
        "deciles": (0.45, lambda y: _steps(_logistic(0.9 * _normal(y, 1.0, -0.5)), 9)),
        "tenths": (0.3, lambda y: _steps(_logistic(_normal(y)), 10)),
        "10 neighbours": (0.3, lambda y: _votes(y, 10)),
        "leaves": (0.3, lambda y: _leaves(y, 12)),
        "50 trees": (0.3, lambda y: _votes(y, 50)),
        "90% at 0": (0.1, lambda y: np.where(_even(y) < 0.97 - 0.7 * y, 0, _logistic(_normal(y)))),
    },
    "sharp": {
        "perfect": (0.3, lambda y: 1.0 * _apart(y)),
        "half at 0": (0.3, lambda y: np.where(y * _even(y) > 0.5, 0, _apart(y))),
        "one score": (0.3, lambda y: np.where(y == 1, 0.53, _even(y))),
        "offset": (0.3, lambda y: (_even(y) + 0.6 * y) / 1.63),
        "negatives end": (0.3, lambda y: np.where(y == 1, _even(y), 0.58 * _even(y))),
        "both ends": (0.3, lambda y: np.where(y == 1, _ends(y), 0.41 + 0.17 * _even(y))),
    },
    "lost": {
        "2%": (0.3, lambda y: _logistic(_normal(_less(y, 0.02), 2.5))),
        "4%": (0.3, lambda y: _logistic(_normal(_less(y, 0.04), 3.5, -1.4))),
        "4%, far apart": (0.2, lambda y: _logistic(_normal(_less(y, 0.04), 5.0, -2.0))),
        "3%, else perfect": (0.3, lambda y: 1.0 * _apart(_less(y, 0.03))),
        "6%, rare": (0.1, lambda y: _logistic(_normal(_less(y, 0.06), 3.0, -1.2))),
        "5%, t": (
            0.25,
            lambda y: _logistic(RANDOM.standard_t(3.0, len(y)) + 3 * _less(y, 0.05) - 1),
        ),
    },
}
HELD_BACK: dict[str, dict[str, tuple[float, Shape]]] = {
    "smooth": {
        "gamma": (0.2, lambda y: np.exp(-RANDOM.gamma(np.where(y, 1.0, 3.0)) / 3)),
        "two humps": (0.35, lambda y: _logistic(_normal(y, 1.2) + 3.0 * (_even(y) < 0.4))),
        "powers": (0.25, lambda y: _even(y) ** np.where(y, 0.5, 1.6)),
        "unequal spread": (0.3, lambda y: _logistic((1 + y) * _normal(y, 1.0, -0.5))),
    },
    "tied": {
        "sevenths": (0.3, lambda y: _steps(RANDOM.beta(np.where(y, 3.0, 1.5), 2.5), 7)),
        "hundredths": (0.25, lambda y: _steps(_logistic(_normal(y, 1.8)), 100)),
        "15 neighbours": (0.2, lambda y: _votes(y, 15)),
        "half at 0.3": (0.3, lambda y: _some(y, 0.5, 0.3, _logistic(_normal(y, 1.5)))),
    },
    "sharp": {
        "a gap": (0.3, lambda y: np.where(y == 1, 0.61 + 0.39 * _even(y), 0.37 * _even(y))),
        "negatives' island": (0.4, lambda y: np.where(
            y == 1, _even(y), _some(y, 0.7, 0.24, 0.72) + 0.08 * _even(y))),
        "top begins": (0.2, lambda y: np.where(y == 1, 0.33 + 0.67 * _even(y), _even(y) ** 2)),
        "triangles": (0.3, lambda y: np.where(
            y == 1, 0.9 - 0.6 * _even(y) * _even(y), 0.65 * _even(y) ** 0.7)),
    },
    "lost": {
        "7%, beta": (0.3, lambda y: _beta(_less(y, 0.07))),
        "3% of negatives": (0.3, lambda y: _logistic(
            _normal(1 - _less(1 - y, 0.03), 3.0, -1.5))),
        "3% of either": (0.2, lambda y: 1.0 * _apart(
            np.where(y == 1, _less(y, 0.03), 1 - _less(1 - y, 0.03)))),
        "10%, tenths": (0.25, lambda y: _steps(_logistic(_normal(_less(y, 0.1), 4.0, -2.0)), 10)),
    },
}  # fmt: skip


def _less(labels: Any, share: float) -> Any:
    """Labels of which this share of the positives is lost among the negatives."""
    return labels * (RANDOM.random(len(labels)) >= share)


def _beta(labels: Any) -> Any:
    return RANDOM.beta(1 + 5 * labels, 6 - 5 * labels)


def _apart(labels: Any) -> Any:
    """Perfectly ranked; the classes meet at no edge of an even histogram."""
    return np.where(labels == 1, 0.47 + 0.53 * _even(labels), 0.47 * _even(labels))


def _ends(labels: Any) -> Any:
    far = 0.093 * _even(labels)
    return np.where(_even(labels) < 0.5, far, 1 - far)


@dataclass(frozen=True)
class Set:
    """Rows to draw from: made up anew each time, or some of those that there are."""

    name: str
    draw: Callable[[int], tuple[Any, Any]]
    most: int | None = None
    """How many rows there are; None: any number, and a population to hold intervals against."""


def made_up(shapes: dict[str, tuple[float, Shape]]) -> Iterator[Set]:
    def drawn(share: float, shape: Shape) -> Callable[[int], tuple[Any, Any]]:
        def draw(rows: int) -> tuple[Any, Any]:
            labels = (RANDOM.random(rows) < share).astype(np.int64)
            return labels, np.asarray(shape(labels), dtype=np.float64)

        return draw

    for name, (share, shape) in shapes.items():
        yield Set(name, drawn(share, shape))


def scored(name: str, labels: Any, scores: Any) -> Set:
    def draw(rows: int) -> tuple[Any, Any]:
        chosen = RANDOM.permutation(len(labels))[:rows]
        return labels[chosen], scores[chosen]

    return Set(name, draw, len(labels))


def from_data(data: Path) -> Iterator[Set]:
    from benchmarks.populations import from_data as populations
    from heldout_papers.scored_sets import sms, twitter

    for each in populations(data):
        yield scored(f"{each.name}, logistic", each.labels, each.own)
        yield scored(f"{each.name}, naive Bayes", each.labels, each.rival)
        yield scored(f"{each.name}, tenths", each.labels, np.round(each.own, 1))
    for small in (sms(data), twitter(data)):
        yield scored(small.name, small.labels, small.scores)


def from_scikit_learn() -> Iterator[Set]:
    """Scores of rows that a model did not see, fold by fold."""
    from sklearn import datasets
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    digits, iris = datasets.load_digits(), datasets.load_wine()
    cancer, diabetes = datasets.load_breast_cancer(), datasets.load_diabetes()
    rows = {
        "breast cancer": (cancer.data, cancer.target),
        "digits, even": (digits.data, digits.target % 2),
        "digits, eight": (digits.data, (digits.target == 8).astype(int)),
        "wine": (iris.data, (iris.target == 1).astype(int)),
        "diabetes": (diabetes.data, (diabetes.target > 150).astype(int)),
    }
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "neighbours": KNeighborsClassifier(10),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=1),
        "forest": RandomForestClassifier(50, random_state=1),
        "boosting": HistGradientBoostingClassifier(max_iter=50),
    }
    for name, (features, labels) in rows.items():
        for which, model in models.items():
            scores = cross_val_predict(model, features, labels, cv=4, method="predict_proba")[:, 1]
            # Small sets stand for larger ones: each row three times.
            scores = np.clip(np.tile(scores, 3), 0, 1)
            yield scored(f"{name}, {which}", np.tile(labels, 3), scores)


# --- truths --------------------------------------------------------------------------------------


def rates_of(labels: Any, scores: Any) -> tuple[Any, Any]:
    """False and true positive rates from the highest threshold down."""
    cuts = np.append(np.inf, np.unique(scores)[::-1])
    false, true = (
        (len(each) - np.searchsorted(np.sort(each), cuts)) / max(len(each), 1)
        for each in (scores[labels == 0], scores[labels == 1])
    )
    return false, true


def precision_at(false: Any, true: Any, share: float) -> Any:
    """Precision at each recall, between points as Davis and Goadrich (2006) have it."""
    wrong = (1 - share) * np.interp(RECALLS, true, false)
    right = share * RECALLS
    return right / np.maximum(right + wrong, 1e-12)


@dataclass(frozen=True)
class Truth:
    labels: Any
    scores: Any

    def __post_init__(self) -> None:
        false, true = rates_of(self.labels, self.scores)
        n, m = self.labels.sum(), (1 - self.labels).sum()
        share = n / (n + m)
        right = n * true / np.maximum(n * true + m * false, 1e-9)
        values = {
            "false": false, "true": true, "share": share,
            "roc": np.interp(RATES, false, true),
            "pr": precision_at(false, true, share),
            "AUC": float(np.trapezoid(true, false)),
            "AP": float(np.diff(true) @ right[1:]),
            "KS": float((true - false).max()),
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def at(self, threshold: float) -> tuple[float, float]:
        """Recall and precision."""
        called = self.scores >= threshold
        right = (called & (self.labels == 1)).sum()
        return right / max(self.labels.sum(), 1), right / max(called.sum(), 1)


def histogram(truth: Any, bins: int, epsilon: float, moved: int) -> tuple[Any, Any, float]:
    """What a competent person would do: even bins, noise, nothing below 0."""
    counts = []
    for label in (0, 1):
        exact, _ = np.histogram(truth.scores[truth.labels == label], bins, (0, 1))
        counts.append(np.maximum(exact + RANDOM.laplace(0, moved / epsilon, bins), 0)[::-1])
    false, true = (np.append(0, np.cumsum(each)) / max(each.sum(), 1e-9) for each in counts)
    return false, true, counts[1].sum() / max(counts[0].sum() + counts[1].sum(), 1e-9)


# --- one run -------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What the runs of one set measured, by name."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.values.setdefault(name, []).append(float(value))

    def mean(self, name: str) -> float:
        return float(np.mean(self.values[name])) if name in self.values else np.nan


def holds(interval: tuple[float, float], value: float) -> bool:
    return bool(interval[0] - 1e-9 <= value <= interval[1] + 1e-9)


def by_group(labels: Any, scores: Any, *, epsilon: str, neighbours: str) -> Iterator[Any]:
    """Curves of each group with its rows."""
    group = np.where(RANDOM.random(len(labels)) < 1 / 3, "a", "b")
    columns = {"y": labels, "p": scores, "g": group}
    data = ho.Dataset(
        columns, label="y", score="p", groups={"g": ["a", "b"]}, neighbours=neighbours
    )
    session: Any = ho.Session(data, budget=ho.Budget(epsilon=epsilon))
    groups = session.curves(epsilon=epsilon, by="g").groups
    for name in ("a", "b"):
        yield groups[name], labels[group == name], scores[group == name]


def run(
    one: Set, rows: int, found: Figures, *, groups: bool, population: Any, **asked: Any
) -> None:
    labels, scores = one.draw(rows)
    if not 2 <= labels.sum() <= len(labels) - 2:
        return
    if groups:
        for curves, some, theirs in by_group(labels, scores, **asked):
            measure_one(curves, some, theirs, found, population=population, **asked)
        return
    start = time.process_time()
    curves = ho.roc_curve(labels, scores, **asked)
    took = time.process_time() - start
    measure_one(curves, labels, scores, found, population=population, took=took, **asked)


def measure_one(
    curves: Any, labels: Any, scores: Any, found: Figures, *, epsilon: str, neighbours: str,
    population: Any, took: float = 0.0, thresholds: Any = (),
) -> None:  # fmt: skip
    truth: Any = Truth(labels, scores)
    start = time.process_time() - took
    measures = {"AUC": curves.auc, "AP": curves.average_precision, "KS": curves.ks}
    ends = {name: each.noise_interval() for name, each in measures.items()}
    curves.auc.interval()
    band = curves.roc.band(noise_only=True, at=RATES)
    found.add("ms", 1e3 * (time.process_time() - start))
    for name, measure, value in decided(curves, truth):
        found.add(name, holds(measure.noise_interval(), value))
    places = np.unique([np.quantile(scores, share) for share in THRESHOLDS])
    places = places if len(thresholds) == 0 else np.asarray(thresholds)
    held, error = [], []
    for place in places:
        at = curves.confusion(float(place))
        for measure, value in zip((at.recall, at.precision), truth.at(place), strict=True):
            held.append(holds(measure.noise_interval(), value))
            error.append(abs(measure.value - value))
    found.add("readings", np.mean(held))
    found.add("readings error", np.mean(error))
    for name, measure in measures.items():
        found.add(name, holds(ends[name], getattr(truth, name)))
        found.add(f"{name} half-width", (ends[name][1] - ends[name][0]) / 2)
        found.add(f"{name} error", abs(measure.value - getattr(truth, name)))
    # The true curve is a staircase: off by one row it is the same.
    slack = 1 / max(min(labels.sum(), (1 - labels).sum()), 1)
    inside = (band.low <= truth.roc + slack) & (truth.roc - slack <= band.high)
    found.add("noise band", inside.all())
    if population is not None:
        wide = curves.roc.band(at=RATES)
        inside = (wide.low <= population.roc + 1e-6) & (population.roc - 1e-6 <= wide.high)
        found.add("population band", inside.all())
        for name, measure in measures.items():
            found.add(f"{name} of population", holds(measure.interval(), getattr(population, name)))
    curve = curves.roc
    _compare(found, "ours", truth, (curve.fpr, curve.tpr, curves.precision_recall.prevalence))
    moved = 2 if neighbours == "replace-one" else 1
    for bins in BINS:
        _compare(found, f"{bins} bins", truth, histogram(truth, bins, float(epsilon), moved))
    alone = ho.roc_auc_score(labels, scores, epsilon=epsilon, neighbours=neighbours)
    found.add("session.auc error", abs(float(alone.value) - truth.AUC))


def decided(curves: Any, truth: Any) -> Iterator[tuple[str, Any, float]]:
    """What else is read off curves, with its value for these rows."""
    labels, scores, share = truth.labels, truth.scores, truth.share
    at = 0.2
    called = scores >= at
    true, false = (called & (labels == 1)).mean(), (called & (labels == 0)).mean()
    yield "net benefit", curves.net_benefit(at), true - at / (1 - at) * false
    yield "cost", curves.cost(at, false_negative=5), false + 5 * (share - true)
    rates = np.linspace(0, 0.2, 101)
    heights = np.interp(rates, truth.false, truth.true)
    yield "partial AUC", curves.partial_auc(fpr=(0, 0.2)), np.trapezoid(heights, rates) / 0.2
    odds = np.clip(np.log(np.maximum(scores, 1e-9) / np.maximum(1 - scores, 1e-9)), -7, 7)
    yield "slope", curves.calibration_slope, _slope(labels, odds)
    bins = np.digitize(scores, curves.calibration.edges[1:-1])
    off = [abs((labels[bins == one] - scores[bins == one]).sum()) for one in np.unique(bins)]
    yield "ECE", curves.expected_calibration_error, sum(off) / len(labels)


def _slope(labels: Any, odds: Any) -> float:
    """That of a logistic fit of labels on the log odds of scores."""
    design, fitted = np.stack([np.ones_like(odds), odds], axis=1), np.array([0.0, 1.0])
    for _ in range(30):
        chance = _logistic(design @ fitted)
        weight = design * (chance * (1 - chance))[:, None]
        step = np.linalg.solve(weight.T @ design + 1e-6 * np.eye(2), design.T @ (labels - chance))
        fitted = fitted + np.clip(step, -1, 1)
    return float(fitted[1])


def _compare(found: Figures, name: str, truth: Any, curve: tuple[Any, Any, float]) -> None:
    false, true, share = curve
    found.add(f"ROC {name}", np.abs(np.interp(RATES, false, true) - truth.roc).mean())
    found.add(f"PR {name}", np.abs(precision_at(false, true, share) - truth.pr).mean())


# --- tables --------------------------------------------------------------------------------------

SHARES = (
    "readings", "AUC", "AP", "KS", "noise band", "population band", "AUC of population",
    "net benefit", "cost", "partial AUC", "slope", "ECE",
)  # fmt: skip


def ratios(found: Figures, kind: str) -> float:
    best = min(found.mean(f"{kind} {bins} bins") for bins in BINS)
    return found.mean(f"{kind} ours") / max(best, 1e-12)


def show(title: str, sets: dict[str, Figures], *, every: bool) -> None:
    """One line a set if asked for, and one for all."""
    heads = (*SHARES, "ROC", "PR", "AUC / session.auc", "AUC ±", "AP ±", "KS ±", "ms")
    print(f"\n{title}\n| set |", " | ".join(heads), "|")
    print("|---" * (1 + len(heads)) + "|")
    lines = {name: _line([each]) for name, each in sets.items()} if every else {}
    lines["**all**"] = _line(list(sets.values()))
    for name, cells in lines.items():
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def _line(sets: list[Figures]) -> list[str]:
    cells = []
    for name in SHARES:
        runs = np.concatenate([np.asarray(each.values.get(name, [])) for each in sets])
        error = runs.std() / np.sqrt(max(len(runs), 1)) if len(runs) else np.nan
        cells.append(f"{runs.mean():.3f} ({error:.3f})" if len(runs) else "-")
    for kind in ("ROC", "PR"):
        logs = [np.log(ratios(each, kind)) for each in sets]
        cells.append(f"{np.exp(np.mean(logs)):.2f} ({_ratio_error(sets, kind):.2f})")
    own, alone = (
        sum(each.mean(name) for each in sets) for name in ("AUC error", "session.auc error")
    )
    cells.append(f"{own / max(alone, 1e-9):.2f}")
    cells += [
        f"{np.mean([each.mean(f'{name} half-width') for each in sets]):.4f}"
        for name in ("AUC", "AP", "KS")
    ]
    cells.append(f"{np.mean([each.mean('ms') for each in sets]):.0f}")
    return cells


def _ratio_error(sets: list[Figures], kind: str) -> float:
    """Of the geometric mean of ratios, by the scatter of runs around each set's mean."""
    logs = []
    for each in sets:
        best = min(BINS, key=lambda bins: each.mean(f"{kind} {bins} bins"))
        parts = [np.asarray(each.values[f"{kind} {name}"]) for name in ("ours", f"{best} bins")]
        logs.append(sum((p.std() / max(p.mean(), 1e-12)) ** 2 / len(p) for p in parts))
    return float(np.sqrt(sum(logs)) / len(logs))


def quotes(epsilon: str, runs: int) -> None:
    """Forecast over realised half-widths of calibrated binormal rows, and what a forecast takes."""
    from heldout.questions import Curves

    print("\n| rows | quote / realised: AUC | AP | KS | ms |\n|---|---|---|---|---|")
    # Calibrated, as forecasts assume.
    one = next(made_up({"binormal": (0.25, lambda y: _logistic(1.5 * _normal(y, 1.5, -0.48)))}))
    for rows in (1_000, 5_000, 20_000):
        widths: dict[str, list[float]] = {}
        for _ in range(runs):
            labels, scores = one.draw(rows)
            got: Any = ho.roc_curve(labels, scores, epsilon=epsilon)
            for name, each in got.measures.items():
                low, high = each.noise_interval()
                widths.setdefault(name, []).append(max(high - each.value, each.value - low))
        data = ho.Dataset({"y": labels, "p": scores}, label="y", score="p")
        session: Any = ho.Session(data, budget=ho.Budget(epsilon=9))
        said, took = [], []
        for _ in range(runs):
            start = time.process_time()
            said.append(session.quote(Curves(epsilon=epsilon), auc=0.856).half_widths[0])
            took.append(time.process_time() - start)
        cells = []
        for name in list(widths)[:3]:
            each = np.array([quote[name].noise for quote in said]) / np.mean(widths[name])
            cells.append(f"{each.mean():.2f} (of quotes {each.min():.2f} to {each.max():.2f})")
        print(f"| {rows:,} |", " | ".join(cells), f"| {1e3 * np.mean(took):.0f} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 5_000])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--neighbours", default="replace-one")
    parser.add_argument("--families", nargs="*", default=["smooth", "tied", "sharp", "lost"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument("--quotes", action="store_true")
    parser.add_argument("--sets", action="store_true", help="a line for each set")
    parser.add_argument("--named", type=float, nargs="*", default=[])
    parser.add_argument("--groups", action="store_true")
    asked = parser.parse_args([] if arguments is None else arguments)
    shapes = HELD_BACK if asked.held_back else MADE_UP
    families = {name: list(made_up(shapes[name])) for name in asked.families if name in shapes}
    if asked.data is not None:
        families["data"] = list(from_data(asked.data))
    if "scikit-learn" in asked.families:
        families["scikit-learn"] = list(from_scikit_learn())
    for family, sets in families.items():
        for rows in asked.rows:
            figures = {}
            for one in sets:
                if one.most is not None and rows > max(one.most, min(asked.rows)):
                    continue
                whole = Truth(*one.draw(POPULATION)) if one.most is None else None
                found = figures[one.name] = Figures()
                for _ in range(asked.runs):
                    asks = {"epsilon": asked.epsilon, "neighbours": asked.neighbours}
                    asks |= {"thresholds": asked.named} if asked.named else {}
                    run(one, rows, found, groups=asked.groups, population=whole, **asks)
            if figures:
                title = f"{family}, {rows:,} rows, epsilon {asked.epsilon}, {asked.neighbours}"
                show(f"{title}, {asked.runs} runs a set", figures, every=asked.sets)
    if asked.quotes:
        quotes(asked.epsilon, asked.runs)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
