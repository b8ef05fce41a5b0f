"""Read metrics off four counts, whatever release they came from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import OneOf, guess
from heldout.arrays import Floats
from heldout.drawing.words import grid, half_width
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure
from heldout.kernel.noise.tables import NoisyTable

# --- Metrics of the confusion counts, where all else finds them: ratios, and what is no ratio ----


Cells = tuple[float, float, float, float]
"""Weights on (true positives, false positives, false negatives, true negatives)."""


@dataclass(frozen=True)
class Metric:
    """numerator @ cells / denominator @ cells, in [0, 1]."""

    name: str
    numerator: Cells
    denominator: Cells
    meaning: str
    scikit_learn: str


def attribute(name: str) -> str:
    """A metric's name as an attribute of a release.

    >>> attribute("Cohen's kappa"), attribute("Fowlkes-Mallows index")
    ('cohens_kappa', 'fowlkes_mallows_index')
    """
    return name.lower().replace("'", "").replace("-", "_").replace(" ", "_")


def f_score(beta: float) -> Metric:
    """The F score that weighs recall `beta` times as much as precision."""
    weights = (1 + beta * beta, 1.0, beta * beta, 0.0)
    meaning = "Harmonic mean of precision and recall"
    return Metric(f"F{beta:g} score", (weights[0], 0, 0, 0), weights, meaning, "fbeta_score")


# fmt: off
METRICS = (
    #       name           tp fp fn tn  of  tp fp fn tn  meaning, and scikit-learn's function
    Metric("accuracy",    (1, 0, 0, 1),    (1, 1, 1, 1),
           "Share of rows that the model gets right", "accuracy_score"),
    f_score(1),
    Metric("false discovery rate", (0, 1, 0, 0), (1, 1, 0, 0),
           "Share of the model's alarms that are wrong", "1 - precision_score"),
    Metric("false negative rate", (0, 0, 1, 0), (1, 0, 1, 0),
           "Share of positives that the model misses", "1 - recall_score"),
    Metric("false positive rate", (0, 1, 0, 0), (0, 1, 0, 1),
           "Share of negatives that the model raises an alarm for",
           "1 - recall_score(pos_label=0)"),
    Metric("Jaccard index", (1, 0, 0, 0), (1, 1, 1, 0),
           "Share of all positives and alarms that are both", "jaccard_score"),
    Metric("negative predictive value", (0, 0, 0, 1), (0, 0, 1, 1),
           "Share of the rows left alone that are negative", "precision_score(pos_label=0)"),
    Metric("precision",   (1, 0, 0, 0),    (1, 1, 0, 0),
           "Share of the model's alarms that are right", "precision_score"),
    Metric("prevalence",  (1, 0, 1, 0),    (1, 1, 1, 1),
           "Share of rows that are positive", "mean of the labels"),
    Metric("recall",      (1, 0, 0, 0),    (1, 0, 1, 0),
           "Share of positives that the model finds", "recall_score"),
    Metric("selection rate", (1, 1, 0, 0), (1, 1, 1, 1),
           "Share of rows that the model calls positive", "mean of the predictions"),
    Metric("specificity", (0, 0, 0, 1),    (0, 1, 0, 1),
           "Share of negatives that the model leaves alone", "recall_score(pos_label=0)"),
)
# fmt: on


def registered() -> dict[str, Metric]:
    """Every ratio by its name, in the table's order."""
    return {metric.name: metric for metric in METRICS}


def chosen(name: str) -> Metric:
    """A ratio by its name, or a refusal."""
    return registered()[OneOf(registered())(name, "metric")]


# --- what is no ratio of two sums ----------------------------------------------------------------

Scaled = TypeVar("Scaled", float, Floats)
LARGEST_RATIO = 1000.0  # a likelihood ratio of so much stands for all that are larger


@dataclass(frozen=True)
class Contrast:
    """Any function of the four cells whose values lie between two public numbers.

    `of` takes true positives, false positives, false negatives and true negatives, as arrays, and
    gives NaN where it has no meaning; `neutral` is what a model that knows nothing would get.
    """

    name: str
    of: Callable[[Any, Any, Any, Any], Any]
    low: float
    high: float
    neutral: float
    formula: str
    meaning: str
    scikit_learn: str

    def scaled(self, values: Scaled) -> Scaled:
        """On a bounded scale; half of a likelihood ratio's lies above 1."""
        return values / (1 + values) if self.high == LARGEST_RATIO else values

    def share(self, value: float) -> float:
        """The part of the range that lies below a value."""
        low, high = self.scaled(self.low), self.scaled(self.high)
        return float((self.scaled(value) - low) / (high - low))

    def __call__(self, cells: Floats) -> Floats:
        """Its values for cells in the last axis, held to the range."""
        columns = np.moveaxis(np.asarray(cells, dtype=float), -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            result: Floats = np.clip(self.of(*columns), self.low, self.high)
            return result


def _informedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fn) - fp / (fp + tn)


def _markedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fp) - fn / (fn + tn)


def _matthews(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    sides = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    result: Floats = (tp * tn - fp * fn) / sides
    return result


def _kappa(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    chance = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
    return 2 * (tp * tn - fp * fn) / chance


# fmt: off
CONTRASTS = (
    Contrast("balanced accuracy", lambda *cells: (1 + _informedness(*cells)) / 2, 0, 1, 0.5,
             "(recall + specificity) / 2",
             "Mean of the shares that the model gets right in each class",
             "balanced_accuracy_score"),
    Contrast("Cohen's kappa", _kappa, -1, 1, 0.0, "(accuracy - chance) / (1 - chance)",
             "Agreement of model and truth beyond chance", "cohen_kappa_score"),
    Contrast("Fowlkes-Mallows index",
             lambda tp, fp, fn, tn: tp / (np.sqrt(tp + fp) * np.sqrt(tp + fn)), 0, 1, 0.5,
             "sqrt(precision * recall)", "Geometric mean of precision and recall", ""),
    Contrast("informedness", _informedness, -1, 1, 0.0, "recall + specificity - 1",
             "How much better than chance the calls are in both classes (Youden's J)",
             "balanced_accuracy_score(adjusted=True)"),
    Contrast("markedness", _markedness, -1, 1, 0.0, "precision + negative predictive value - 1",
             "How much a call says about the truth", ""),
    Contrast("Matthews correlation", _matthews, -1, 1, 0.0,
             "(TP TN - FP FN) / sqrt of the product of the four margins",
             "Correlation of call and truth", "matthews_corrcoef"),
    Contrast("negative likelihood ratio",
             lambda tp, fp, fn, tn: fn / (tp + fn) / (tn / (fp + tn)), 0, LARGEST_RATIO, 1.0,
             "FNR / specificity",
             "How many times likelier a positive is left alone than a negative",
             "class_likelihood_ratios"),
    Contrast("positive likelihood ratio",
             lambda tp, fp, fn, tn: tp / (tp + fn) / (fp / (fp + tn)), 0, LARGEST_RATIO, 1.0,
             "recall / FPR", "How many times likelier a positive raises an alarm than a negative",
             "class_likelihood_ratios"),
)
# fmt: on


def contrasts() -> dict[str, Contrast]:
    """Every contrast by its name, in the table's order."""
    return {contrast.name: contrast for contrast in CONTRASTS}


def mean_cost(false_positive: float, false_negative: float) -> Contrast:
    """Return what wrong calls cost per row on average, each kind at its own price."""
    dearest = max(false_positive, false_negative)
    return Contrast(
        name="mean cost",
        of=lambda tp, fp, fn, tn: (false_positive * fp + false_negative * fn) / (tp + fp + fn + tn),
        low=0.0,
        high=dearest,
        neutral=dearest / 2,
        formula=f"({false_positive:g} FP + {false_negative:g} FN) / all",
        meaning="What wrong calls cost per row on average",
        scikit_learn="",
    )


def range_of_costs(false_positive: float, false_negative: float) -> float:
    """Twice what calls at random cost that are as dear whatever share of the rows is positive.

    A mean cost that noise spreads over most of it does not tell a model from such calls. Where one
    kind of wrong call is free there are none, and it is what the other kind costs.

    >>> range_of_costs(1, 1), range_of_costs(1, 4), range_of_costs(0, 4)
    (1.0, 1.6, 4.0)
    """
    if not (false_positive and false_negative):
        return float(max(false_positive, false_negative))
    return 2 / (1 / false_positive + 1 / false_negative)


OTHER_NAMES = {
    **{"sensitivity": "recall", "tpr": "recall", "true_positive_rate": "recall"},
    **{"ppv": "precision", "positive_predictive_value": "precision", "tnr": "specificity"},
    **{"true_negative_rate": "specificity", "fpr": "false_positive_rate", "f1": "f1_score"},
    **{"fnr": "false_negative_rate", "tp": "true_positives", "fp": "false_positives"},
    **{"fn": "false_negatives", "tn": "true_negatives"},
}
CELLS = ("true positives", "false positives", "false negatives", "true negatives")


class AsMatrix(ABC):
    """Converts to an array: `np.asarray(release)` is scikit-learn's `confusion_matrix`."""

    @abstractmethod
    def matrix(self) -> list[list[float]]:
        """Rows are the truth, columns the prediction."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """`matrix()`, in whole numbers where it has no others."""
        import numpy as np

        matrix = np.array(self.matrix())
        whole = bool((matrix == np.round(matrix)).all())
        return matrix.astype(dtype or (np.int64 if whole else np.float64))


class ConfusionReadings(AsMatrix):
    """The counts of a confusion matrix and the registered ratios of them, by name."""

    @abstractmethod
    def _count(self, index: int) -> Measure:
        """One of the four counts, in the order of `CELLS`."""

    @abstractmethod
    def measure(self, metric: Metric) -> Measure:
        """A ratio of the counts, at no further cost."""

    @cached_property
    def _ratios(self) -> dict[str, Measure]:
        return {name: self.measure(metric) for name, metric in registered().items()}

    @property
    def _named_counts(self) -> dict[str, Measure]:
        return {name: self._count(i) for i, name in enumerate(CELLS)}

    @cached_property
    def measures(self) -> dict[str, Measure]:
        return {**self._ratios, **self._named_counts}

    def __getattr__(self, name: str) -> Measure:
        """Each measure by its name: `.accuracy`, `.true_positives`, and `.npv` for short."""
        known = {attribute(measure): measure for measure in (*CELLS, *registered())}
        wanted = known.get("negative_predictive_value" if name == "npv" else name.lower())
        if wanted is None:
            mean = OTHER_NAMES.get(name.lower())
            mean = f" Use .{mean}." if mean else guess(name, () if name.startswith("_") else known)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}.{mean}")
        return self._count(CELLS.index(wanted)) if wanted in CELLS else self._ratios[wanted]

    def __dir__(self) -> list[str]:
        names = (attribute(measure) for measure in (*CELLS, *registered()))
        return sorted({*super().__dir__(), *names, "npv"})

    def f_score(self, beta: float = 1) -> Measure:
        """The F score; `beta` says how much more recall counts than precision."""
        if isinstance(beta, bool) or not (math.isfinite(beta) and beta > 0):
            raise ArgumentError(f"beta must be a positive number, got {beta!r}.")
        return self.measure(f_score(float(beta)))

    def __str__(self) -> str:
        matrix = [[f"{count:,.0f}" for count in row] for row in self.matrix()]
        called = ("called negative", "called positive")
        noise = max(
            half_width(count.noise_interval(), float(count))
            for count in self._named_counts.values()
        )
        return (
            f"{self.accuracy}\n{grid(('negatives', 'positives'), called, matrix)}\n"
            f"Noise per count: at most ±{noise:,.0f} (95%)"
        )

    def __repr__(self) -> str:
        return str(self)

    def matrix(self) -> list[list[float]]:
        """As scikit-learn lays it out: rows are the truth, columns the prediction, 0 first."""
        tp, fp, fn, tn = (self._count(i).value for i in range(4))
        return [[tn, fp], [fn, tp]]


# A pair of rates at falling thresholds: what every reading of a score table starts from.
# --- Curves from a noisy table, as the papers make them: cumulate, make monotone, divide ---------
#
# Points run from the highest threshold down, so that rates rise. A threshold is an index t into the
# public grid: what scores at grid point t or above is called positive.


def isotonic(values: ArrayLike) -> Floats:
    """The nearest rising sequence in least squares, by pooling adjacent violators.

    >>> isotonic([1.0, 3.0, 2.0, 4.0]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    values = np.asarray(values, dtype=np.float64)
    if (np.diff(values) >= 0).all():
        return values
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            total = sizes[-1] + size
            mean = (means.pop() * sizes.pop() + mean * size) / total
            size = total
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def cumulative_counts(counts: Any) -> Floats:
    """Rising counts of what lies at or above each edge, from 0 at the top edge downwards."""
    noisy = np.cumsum(np.asarray(counts, dtype=np.float64)[::-1])
    return np.append(0.0, np.maximum(isotonic(noisy), 0.0))


def rates(cumulative: Floats) -> Floats:
    """Shares of the last count; a straight line when there is nothing to share."""
    total = float(cumulative[-1])
    if total <= 0:
        return np.linspace(0.0, 1.0, len(cumulative))
    return np.minimum(cumulative / total, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Rates that rise from (0, 0) to (1, 1) as the threshold falls, and the two class counts.

    >>> curve = Curve(fpr=np.array([0, 0.5, 1.0]), tpr=np.array([0, 0.8, 1.0]),
    ...               thresholds=np.array([1.25, 0.5, 0.0]), positives=10.0, negatives=30.0)
    >>> curve.area, curve.at(0.5)
    (0.65, (0.5, 0.8))
    """

    fpr: Any
    tpr: Any
    thresholds: Any
    positives: float
    negatives: float

    @property
    def prevalence(self) -> float:
        total = self.positives + self.negatives
        return self.positives / total if total > 0 else 0.5

    @property
    def area(self) -> float:
        return round(float(np.trapezoid(self.tpr, self.fpr)), 15)

    def at(self, threshold: float) -> tuple[float, float]:
        """False and true positive rate of a threshold, by straight lines between points."""
        rising = self.thresholds[::-1]
        return (
            float(np.interp(threshold, rising, self.fpr[::-1])),
            float(np.interp(threshold, rising, self.tpr[::-1])),
        )

    def precision(self) -> Floats:
        """Share of positives among what is called positive; 1 where nothing is."""
        true, false = self.tpr * self.positives, self.fpr * self.negatives
        called = true + false
        result: Floats = np.divide(true, called, out=np.ones_like(called), where=called > 0)
        return result


def grid_scores(edges: Any, *, points: int, score_range: tuple[float, float]) -> Floats:
    """Scores of grid points; one step beyond the range for the edge above the last point."""
    low, high = score_range
    return low + np.asarray(edges, dtype=np.float64) * ((high - low) / max(points - 1, 1))


def plain_curve(table: NoisyTable, *, score_range: tuple[float, float]) -> Curve:
    """As the papers read a table: cumulate, make monotone, divide."""
    false, true = (cumulative_counts(counts) for counts in (table.negatives, table.positives))
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)
    return Curve(
        fpr=rates(false),
        tpr=rates(true),
        thresholds=scores[::-1],
        positives=float(true[-1]),
        negatives=float(false[-1]),
    )
