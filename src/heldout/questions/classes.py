"""Rows of several classes: matrices, areas against all others, and the ranks of the truth."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, TypeVar, cast

import numpy as np

from heldout.arguments import as_whole, guess, is_one_of, shown, visible
from heldout.arrays import Bools, Floats
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description
from heldout.data.table import PrivateTable
from heldout.drawing.words import grid
from heldout.errors import ArgumentError
from heldout.intervals.confusion import noisy_counts
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.intervals.readings import (
    CELLS,
    AsMatrix,
    ConfusionReadings,
    Contrast,
    Metric,
    attribute,
    chosen,
)
from heldout.kernel.door import Drawn, Request, Together
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import laplace
from heldout.kernel.statistic import DisjointCounts
from heldout.questions.base import Question, Rival, Section, Weighted, weight_parameters
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess, weigh_counts
from heldout.questions.ranking.paired import PairedDifference, PairedRight
from heldout.questions.ranking.questions import (
    DEFAULT,
    SMALL_CLASSES,
    Auc,
    AveragePrecision,
    Method,
    worst_areas,
    worst_persons,
)
from heldout.questions.ranking.release import RankingRelease, counts_of
from heldout.questions.worst_cases import (
    LOW,
    PERSON,
    REMOVE,
    Pair,
    WorstCase,
    class_pair,
    class_pairs,
    hundreds,
    rows,
    spread,
    table_pair,
)

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure


__all__ = [
    "CallCounts",
    "ClassAuc",
    "ClassAveragePrecision",
    "ClassCompare",
    "ClassConfusion",
    "TopK",
]

# --- Readings of a matrix of several classes that are no ratio of two sums, with their intervals -
#
# They are linearised about the released counts: their noise is a weighted sum of the counts'
# noises, of known law. A class with few rows, or one that noise hides, enters a mean with its own
# interval instead (Zou and Donner 2008): it makes the mean wide, and not wrong.


_PRIOR: Final = 2.0  # rows, spread over all cells: what no row was seen in is not known to be empty
_STEP: Final = 1e-4  # of all rows, for slopes
_CLEAR: Final = 5.0  # standard deviations of the noise
_ENOUGH: Final = 10  # rows
_STRAIGHT: Final = 0.15  # of all rows: a class may have so much noise before slopes say nothing


def recovered(
    value: float, ends: Sequence[Interval], values: Sequence[float], correlation: Any, share: float
) -> Interval:
    """The interval of a mean from its parts' own, held to [0, 1]."""
    low = np.array([value - end[0] for value, end in zip(values, ends, strict=True)])
    high = np.array([end[1] - value for value, end in zip(values, ends, strict=True)])
    below, above = (share * math.sqrt(max(x @ correlation @ x, 0.0)) for x in (low, high))
    return max(value - below, 0.0), min(value + above, 1.0)


@dataclass(frozen=True, eq=False)
class MeanRatio:
    """A mean of several ratios of the same counts; `read` are the same as measures.

    Plain, or with `weights`: each row is a combination of the counts, and its share of their sum
    is a ratio's weight. Ratios whose denominator stands well above the noise enter as drawn, not
    held to [0, 1]: holding each would move the mean.
    """

    parts: tuple[Ratio, ...]
    read: tuple[Measure, ...]
    weights: Any = None

    @property
    def _counts(self) -> NoisyCounts:
        return self.parts[0].counts

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """The weight of each ratio, and how it moves with the counts."""
        size, cells = len(self.parts), len(self._counts.estimate)
        if self.weights is None:
            return np.full(size, 1 / size), np.zeros((size, cells))
        sums = np.maximum(self.weights @ self._counts.estimate, 0.0)
        total = max(float(sums.sum()), self._counts.unit)
        shares = sums / total
        return shares, (self.weights - np.outer(shares, self.weights.sum(axis=0))) / total

    @cached_property
    def _clear(self) -> Bools:
        """Return which denominators stand well above the noise, with rows enough to be normal."""
        counts, clear = self._counts, []
        for part in self.parts:
            spread = float(np.linalg.norm(counts.spread.T @ part.denominator))
            noise = math.sqrt(2) * counts.scale * spread
            least = max(_CLEAR * noise, _ENOUGH * counts.unit * float(part.denominator.max()))
            clear.append(float(part.denominator @ counts.estimate) > least)
        return np.array(clear)

    @cached_property
    def _centres(self) -> Floats:
        cells = self._counts.estimate
        return np.array(
            [
                part.numerator @ cells / (part.denominator @ cells) if clear else part.value
                for part, clear in zip(self.parts, self._clear, strict=True)
            ]
        )

    @property
    def value(self) -> float:
        return min(max(float(self._shares[0] @ self._centres), 0.0), 1.0)

    @cached_property
    def _slopes(self) -> Floats:
        """Return the mean's derivatives by the counts: by its weights and by the clear ratios."""
        shares, moving = self._shares
        slopes = self._centres @ moving
        for part, share, centre, clear in zip(
            self.parts, shares, self._centres, self._clear, strict=True
        ):
            if clear:
                below = float(part.denominator @ self._counts.estimate)
                slopes = slopes + share * (part.numerator - centre * part.denominator) / below
        return slopes

    def _ends(self, half: float, read: Callable[[Measure], Interval]) -> Interval:
        """The linear part's half-width with the distances of those that are not clear."""
        centre, (low, high) = float(self._shares[0] @ self._centres), (half, half)
        for share, value, measure, clear in zip(
            self._shares[0], self._centres, self.read, self._clear, strict=True
        ):
            if not clear:
                end = read(measure)
                low = math.hypot(low, share * (value - end[0]))
                high = math.hypot(high, share * (end[1] - value))
        return min(max(centre - low, 0.0), 1.0), min(max(centre + high, 0.0), 1.0)

    def noise_interval(self, level: float) -> Interval:
        half = half_width(self._counts, self._slopes, 0.0, level)
        return self._ends(half, lambda measure: measure.noise_interval(level))

    def interval(self, level: float) -> Interval:
        half = half_width(self._counts, self._slopes, deviation(self._counts, self._slopes), level)
        return self._ends(half, lambda measure: measure.interval(level))


def deviation(counts: NoisyCounts, slopes: Any) -> float:
    """Of the sampling error of a reading with these slopes, by the counts as drawn."""
    squares = slopes**2
    most = counts.unit * max(float(counts.estimate @ squares), 0.0)
    unseen = counts.unit**2 * _PRIOR / len(squares) * float(squares.sum())
    return math.sqrt(counts.sampling_variance(slopes, most) + unseen)


def half_width(counts: NoisyCounts, slopes: Any, deviation: float, level: float) -> float:
    """Of the noise and a normal error together, and half a step of the count that weighs most.

    Many whole-numbered noises add up to one that is nearly continuous.
    """
    law = counts.noise(slopes, deviation=deviation)
    return law.quantile(level) + float(np.abs(counts.spread.T @ slopes).max()) / 2


@dataclass(frozen=True, eq=False)
class Linearised:
    """A smooth function of noisy counts near what was released; all of its range if not near."""

    counts: NoisyCounts
    contrast: Contrast

    @property
    def value(self) -> float:
        return float(np.clip(self._unbounded, self.contrast.low, self.contrast.high))

    @cached_property
    def _unbounded(self) -> float:
        """Return the function beyond its range too, where noise has made counts negative."""
        value = float(self._at(self.counts.estimate))
        return self.contrast.neutral if math.isnan(value) else value

    @cached_property
    def _slopes(self) -> Floats:
        cells = self.counts.estimate
        step = _STEP * max(float(cells.sum()), 1.0)
        moved = self._at(cells + step * np.eye(cells.size))
        return np.nan_to_num((moved - self._unbounded) / step)

    def _at(self, cells: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            result: Floats = self.contrast.of(*np.moveaxis(cells, -1, 0))
            return result

    @cached_property
    def _near(self) -> bool:
        """Return whether noise leaves the counts where the function is nearly straight."""
        cells, size = self.counts.estimate, math.isqrt(self.counts.estimate.size)
        noise = np.linalg.norm(self.counts.spread.T @ (np.arange(cells.size) < size))
        return bool(math.sqrt(2) * self.counts.scale * noise < _STRAIGHT * float(cells.sum()))

    def noise_interval(self, level: float) -> Interval:
        return self._around(level, sampled=False)

    def interval(self, level: float) -> Interval:
        return self._around(level, sampled=True)

    def _around(self, level: float, *, sampled: bool) -> Interval:
        low, high = self.contrast.low, self.contrast.high
        if not self._near:  # and the slopes need not be finite
            return low, high
        error = deviation(self.counts, self._slopes) if sampled else 0.0
        half = half_width(self.counts, self._slopes, error, level)
        return max(self.value - half, low), min(self.value + half, high)


# --- the functions -------------------------------------------------------------------------------


def _matrix(cells: Sequence[Any]) -> Floats:
    """Truth by call, then whatever axes there are beside; as shares, whose powers stay finite."""
    shares = np.array(cells, dtype=float)
    shares = shares / max(float(np.abs(shares).max()), 1e-280)
    size = math.isqrt(len(shares))
    return shares.reshape(size, size, *shares.shape[1:])


def _kappa(*cells: Floats) -> Floats:
    matrix = _matrix(cells)
    total, right = matrix.sum(axis=(0, 1)), np.einsum("kk...->...", matrix)
    chance = (matrix.sum(axis=0) * matrix.sum(axis=1)).sum(axis=0) / total
    result: Floats = (right - chance) / (total - chance)
    return result


def _matthews(*cells: Floats) -> Floats:
    matrix = _matrix(cells)
    called, true = matrix.sum(axis=0), matrix.sum(axis=1)
    total, right = matrix.sum(axis=(0, 1)), np.einsum("kk...->...", matrix)
    sides = (total**2 - (called**2).sum(axis=0)) * (total**2 - (true**2).sum(axis=0))
    result: Floats = (right * total - (called * true).sum(axis=0)) / np.sqrt(sides)
    return result


def class_contrasts() -> tuple[Contrast, ...]:
    """Return what is read off a whole matrix, beside ratios and their means."""
    # fmt: off
    return (
        Contrast("Cohen's kappa", _kappa, -1, 1, 0.0, "(accuracy - chance) / (1 - chance)",
                 "Agreement of call and truth, or of two annotators, beyond chance",
                 "cohen_kappa_score"),
        Contrast("Matthews correlation", _matthews, -1, 1, 0.0,
                 "covariance of calls and truth over the root of their variances' product",
                 "Correlation of call and truth", "matthews_corrcoef"),
    )
    # fmt: on


# --- The confusion matrix of several classes as released, and all that people read off it --------


_EACH = ("precision", "recall", "F1 score")


def _counts(drawn: Drawn) -> NoisyCounts:
    mechanism = drawn.request.mechanism
    assert isinstance(mechanism, DiscreteLaplace)
    largest = drawn.request.parameters.get("largest_weight")
    return noisy_counts(
        np.asarray(drawn.values), mechanism, rows=drawn.about.rows, largest_weight=largest
    )


def _count(counts: NoisyCounts, which: Any, name: str, terms: str) -> Measure:
    """A sum of released cells. It speaks of these rows, so both intervals are of the noise."""
    total = float(which @ counts.estimate)
    most = np.inf if counts.rows is None else float(counts.rows)

    def interval(level: float, _: bool) -> Interval:
        half = counts.noise(which).quantile(level) + counts.granularity(which)
        return float(np.clip(total - half, 0, most)), float(np.clip(total + half, 0, most))

    value = float(np.clip(np.round(total), 0, most))
    return Measure.read(value, interval, name=name, terms=terms, whole=True)


def _share(name: str, reading: Any, terms: str, share: Any = float) -> Measure:
    return Measure.of(reading, name=name, terms=terms, share=share)


class OneClass(ConfusionReadings):
    """One class against all others: `.precision`, `.recall`, `.f_score(beta)` and more. Free."""

    def __init__(
        self, counts: NoisyCounts, place: int, size: int, *, name: str, terms: str
    ) -> None:
        self._counts, self._name, self.terms = counts, name, terms
        true, called = (np.zeros((size, size), dtype=bool) for _ in range(2))
        true[place], called[:, place] = True, True
        cells = (true & called, ~true & called, true & ~called, ~true & ~called)
        self._cells = np.array([cell.ravel() for cell in cells], dtype=float)

    def _count(self, index: int) -> Measure:
        name = f"{CELLS[index]}, {self._name}"
        return _count(self._counts, self._cells[index], name, self.terms)

    def ratio(self, metric: Metric) -> Ratio:
        """The counts that the metric is a ratio of."""
        top, below = (
            np.array(side, dtype=float) @ self._cells
            for side in (metric.numerator, metric.denominator)
        )
        return Ratio(counts=self._counts, numerator=top, denominator=below)

    def measure(self, metric: Metric) -> Measure:
        return _share(f"{metric.name}, {self._name}", self.ratio(metric), self.terms)


_MOST_PRINTED = 12  # classes whose matrix fits beside each other in a terminal


class ClassConfusionRelease(Release, AsMatrix):
    """Noisy counts of rows by true and called class; every reading of them is free.

    `.matrix()`, `.classes["a"].recall`, `.accuracy`, `.balanced_accuracy`, `.macro_f1_score`,
    `.cohens_kappa` and more; see `.measures`.
    """

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self.names: tuple[str, ...] = tuple(drawn.request.parameters["classes"])
        self._counts = _counts(drawn)
        size, terms = len(self.names), drawn.terms
        self.classes = {
            name: OneClass(self._counts, place, size, name=name, terms=terms)
            for place, name in enumerate(self.names)
        }

    def matrix(self) -> list[list[float]]:
        """As scikit-learn lays it out: rows are the truth, columns the call. None is below 0."""
        size = len(self.names)
        counts = np.maximum(np.round(self._counts.estimate), 0.0)
        rows: list[list[float]] = counts.reshape(size, size).tolist()
        return rows

    def plotted(self) -> dict[str, Measure]:
        """Return the measures of all classes together."""
        return {name: measure for name, measure in self.measures.items() if ", " not in name}

    def count(self, truth: str, called: str) -> Measure:
        """Return how many rows of one class were called another."""
        for name in (truth, called):
            if not is_one_of(name, self.names):
                known = ", ".join(map(repr, self.names))
                raise ArgumentError(f"truth and called must be among {known}, got {shown(name)}.")
        size = len(self.names)
        place = self.names.index(truth) * size + self.names.index(called)
        return _count(
            self._counts, np.eye(size * size)[place], f"{truth} called {called}", self._drawn.terms
        )

    @cached_property
    def _accuracy(self) -> Ratio:
        size = len(self.names)
        right, every = np.eye(size).ravel(), np.ones(size * size)
        return Ratio(counts=self._counts, numerator=right, denominator=every)

    def _mean(self, metric: str, weights: Any = None) -> MeanRatio:
        every = self.classes.values()
        ratios = tuple(readings.ratio(chosen(metric)) for readings in every)
        return MeanRatio(ratios, tuple(readings._ratios[metric] for readings in every), weights)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        terms, size = self._drawn.terms, len(self.names)
        true = np.kron(np.eye(size), np.ones(size))  # the rows of each class
        measures: dict[str, Any] = {
            "accuracy": self._accuracy,
            "balanced accuracy": self._mean("recall"),
            "macro precision": self._mean("precision"),
            "macro F1 score": self._mean("F1 score"),
            "weighted precision": self._mean("precision", true),
            "weighted F1 score": self._mean("F1 score", true),
        }
        measures = {name: _share(name, reading, terms) for name, reading in measures.items()}
        for contrast in class_contrasts():
            linear = Linearised(self._counts, contrast)
            measures[contrast.name] = _share(contrast.name, linear, terms, contrast.share)
        for metric in _EACH:
            for name, one in self.classes.items():
                measures[f"{metric}, {name}"] = one._ratios[metric]
        return measures

    def __getattr__(self, name: str) -> Measure:
        meant = ""
        if not name.startswith("_"):
            known = {attribute(own): own for own in self.measures if ", " not in own}
            known |= {"macro_recall": "balanced accuracy", "micro_f1_score": "accuracy"}
            if name.lower() in known:
                return self.measures[known[name.lower()]]
            meant = "." + guess(name, [*known, "matrix", "classes", "count"])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{meant}")

    def __str__(self) -> str:
        if len(self.names) > _MOST_PRINTED:
            return f"{self.accuracy}; .matrix() has all {len(self.names)} classes"
        names = [visible(name) for name in self.names]
        cells = [[f"{count:,.0f}" for count in row] for row in self.matrix()]
        counts = grid([f"{name} (true)" for name in names], names, cells)
        noise = f"Noise per count: at most ±{self._half_width(0.95):,.0f} (95%)"
        return f"{self.accuracy}\n{counts}\nColumns are the calls. {noise}"

    def _half_width(self, level: float) -> float:
        cell = np.eye(len(self.names) ** 2)[0]
        return self._counts.noise(cell).quantile(level) + self._counts.granularity(cell)

    def surprise(self, name: str, value: float) -> float:
        metric, _, which = name.partition(", ")
        if name == "accuracy":
            return self._accuracy.p_value(value)
        if which in self.classes:
            return self.classes[which].ratio(chosen(metric)).p_value(value)
        return super().surprise(name, value)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {**super().as_dict(level), "classes": list(self.names), "matrix": self.matrix()}

    def figures(self, level: float = 0.95) -> list["Figure"]:
        from heldout.drawing.page import class_chart, class_matrix

        half = self._half_width(level)
        return [class_matrix(class_chart(self.names, self.matrix()), half, level=level)]

    def plot(self, ax: Any = None) -> Any:
        """The heat map, on matplotlib's axes where it is installed, else an Altair chart."""
        from heldout.drawing.page import class_chart

        return class_chart(self.names, self.matrix()).plot(ax)


class RankRelease(Release):
    """Noisy counts of rows by the rank of the true class among the scores; any top k is free."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self._counts = _counts(drawn)

    def top(self, k: int) -> Measure:
        """Return how often the true class is among the k of the highest scores."""
        most = self._counts.estimate.size - 1
        place = as_whole(k, most=most)
        if place is None or place < 1:
            raise ArgumentError(f"k must be a whole number from 1 to {most}, got {shown(k)}.")
        return _share(f"top-{place} accuracy", self._ratio(place), self._drawn.terms)

    def _ratio(self, k: int) -> Ratio:
        size = self._counts.estimate.size
        first = (np.arange(size) < k).astype(float)
        return Ratio(counts=self._counts, numerator=first, denominator=np.ones(size))

    @cached_property
    def measures(self) -> dict[str, Measure]:
        measures = (self.top(k) for k in range(1, self._counts.estimate.size))
        return {measure.name: measure for measure in measures}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio(int(name.removeprefix("top-").split()[0])).p_value(value)


# --- Areas or average precisions of each class against all others, and their mean ----------------


class ClassAreas(Release):
    """One ranking metric for each class, `.classes["a"]`, and its macro average, the plain mean.

    The noise of different classes is independent. Their sampling errors are not: the same rows are
    positive for one class and negative for the others. The mean's interval takes the largest
    correlation that classes of these sizes allow; with two classes it is 1, as it must be.
    """

    def __init__(self, drawn: Drawn, kind_of_release: type[RankingRelease], *, kind: str) -> None:
        super().__init__(drawn)
        names = drawn.request.parameters["classes"]
        self.classes = {
            name: kind_of_release(replace(drawn.part(name), kind=kind)) for name in names
        }

    @cached_property
    def _sampling_correlation(self) -> Floats:
        """A bound from the classes' sizes, as the noisy counts beside the areas tell them."""
        sizes = np.array([counts_of(release._draw)[1] for release in self.classes.values()])
        total = max(float(sizes.sum()), float(self._drawn.about.rows or 0), 2.0)
        sizes = np.clip(sizes, 1.0, total - 1)
        others = total - sizes
        both = 1 / others[:, None] + 1 / others[None, :]
        rest = np.maximum(total - sizes[:, None] - sizes[None, :], 0.0)
        covariance = both + rest / np.outer(others, others)
        deviation = np.sqrt(1 / sizes + 1 / others)
        correlation = np.minimum(covariance / np.outer(deviation, deviation), 1.0)
        np.fill_diagonal(correlation, 1.0)
        result: Floats = correlation
        return result

    def _mean(self) -> Measure:
        areas = [release.headline for release in self.classes.values()]
        values, size = [area.value for area in areas], len(areas)
        mean = math.fsum(values) / size

        def noise(level: float) -> Interval:
            ends = [area.noise_interval(level) for area in areas]
            return recovered(mean, ends, values, np.eye(size), 1 / size)

        def whole(level: float) -> Interval:
            noisy = [area.noise_interval(level) for area in areas]
            ends = [area.interval(level) for area in areas]
            sampled = [
                (value - _apart(value - low, value - a), value + _apart(high - value, b - value))
                for value, (low, high), (a, b) in zip(values, ends, noisy, strict=True)
            ]
            drawn = recovered(mean, sampled, values, self._sampling_correlation, 1 / size)
            low, high = recovered(mean, noisy, values, np.eye(size), 1 / size)
            below = math.hypot(mean - low, mean - drawn[0])
            above = math.hypot(high - mean, drawn[1] - mean)
            return max(mean - below, 0.0), min(mean + above, 1.0)

        return Measure(
            mean,
            name=f"macro {areas[0].name}",
            terms=self._drawn.terms,
            noise_interval=noise,
            interval=whole,
            share=float,
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        mean = self._mean()
        measures = {mean.name: mean}
        for name, release in self.classes.items():
            one = release.headline
            called = f"{one.name}, {name}"
            measures[called] = Measure.of(
                one, name=called, terms=self._drawn.terms, share=float, reach=one.reach
            )
        return measures

    def _noisy(self) -> object:
        return {name: release._noisy() for name, release in self.classes.items()}


def _apart(whole: float, part: float) -> float:
    """Return what is left of a distance, squared, without a part of it."""
    return math.sqrt(max(whole * whole - part * part, 0.0))


# --- Counts of rows by their class, the class that a model calls them, and the true one's rank ---


AXES: Final = ("truth", "called", "rank")


@dataclass(frozen=True)
class CallCounts(DisjointCounts):
    """Rows by true and called class, or by the rank that the true class has among the scores.

    The vector has one entry for each combination of the `axes`, the last fastest; each axis has as
    many places as there are classes. By scores a row is called the first class that no other
    exceeds, and the true class's rank is the number of classes before it: those with a higher
    score, and those of the same score that were declared earlier.

    Claim:       L1 sensitivity 1 per row that leaves or arrives, or the largest weight in steps.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row has one truth, one call, one rank and one group, all of its own cells, so it
                 is counted in one entry: k rows under add-remove, 2k under replace-one. A weight
                 adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers; scores compare as doubles.
    Refuses:     axes that it does not know.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan with a comparison a class, O(entries) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> counts = CallCounts(classes=3)
    >>> counts.size, counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    (9, 2)
    """

    classes: int
    axes: tuple[str, ...] = ("truth", "called")
    by_scores: bool = True
    """Whether the highest score is the call; else `called` is a column."""
    shown_by = (
        "tests/conformance/test_classes.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def __post_init__(self) -> None:
        if not self.axes or not set(self.axes) <= set(AXES):
            raise ArgumentError(f"axes must be some of {', '.join(AXES)}, got {self.axes}.")

    def places(self) -> dict[str, tuple[str, int]]:
        return {axis: (self._place(axis), self.classes) for axis in self.axes}

    def _place(self, axis: str) -> str:
        every = range(self.classes)
        if axis == "called" and self.by_scores:
            whens = " ".join(f"WHEN score_{place} >= top THEN {place}" for place in every)
            return f"CASE {whens} END"
        if axis == "rank":
            before = "CAST(score_{0} > own OR (score_{0} >= own AND truth > {0}) AS INTEGER)"
            return " + ".join(before.format(place) for place in every)
        return axis


Counted_co = TypeVar("Counted_co", bound=Release, covariant=True)
CLASSES_APART: Final = "answers of several classes are not pooled yet"


@dataclass(frozen=True, kw_only=True)
class _CallCounts(Divisible[Counted_co, ByGroup[Counted_co]], Generic[Counted_co]):
    """Counts of rows of several classes."""

    of = (ClassifiedRows,)
    replayed = ({}, {"by": "g"}, {"weighted": True})
    cannot_pool = CLASSES_APART
    axes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    reading: ClassVar[type[Release]]
    weighted: Weighted = False

    def request(self, about: ClassifiedRows) -> Request:
        statistic = CallCounts(
            classes=len(about.classes),
            axes=self.axes,
            by_scores=about.called_by_scores,
            weighted=self.weighted,
        )
        mechanism = laplace(statistic, self.price, about.protection)
        parameters = {"label": about.label, "model": about.model, "classes": list(about.classes)}
        parameters |= weight_parameters(self.weighted, about)
        return Request(self.title, statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> Counted_co:
        return cast(type[Counted_co], self.reading)(drawn)

    def typical(self, about: ClassifiedRows, guess: Guess) -> object:
        size = len(about.classes)
        right = NormalDist().cdf(guess.separation / 2)
        return weigh_counts(self._typical(size, right) * sum(guess.counts), self.weighted, guess)

    @abstractmethod
    def _typical(self, size: int, right: float) -> Floats:
        """Shares of all rows, if classes are alike and the model is right so often."""


@dataclass(frozen=True, kw_only=True)
class ClassConfusion(_CallCounts[ClassConfusionRelease]):
    """The confusion matrix of several classes: rows by true class and by the model's call."""

    kind = "class-confusion"
    asks = "How often is it right, class by class?"
    tells = (
        "The matrix of true and predicted classes, accuracy, and the precision and recall of "
        "each class."
    )
    headline = "accuracy"
    axes: ClassVar[tuple[str, ...]] = ("truth", "called")
    title = "confusion of classes"
    reading: ClassVar[type[Release]] = ClassConfusionRelease
    section = Section(
        title="Decisions by class",
        meaning="How often each class is called each other one, and what follows from it; macro "
        "means that all classes count alike, weighted that they count as often as they are true.",
        weight=40,
        place=5,
        cards=("accuracy", "balanced accuracy", "macro F1 score"),
        asked_as="confusion",
        old_name="confusion_of_classes",
    )
    section_by_group = Section(
        title="Decisions by group",
        meaning="How often the called class is the true one in each declared group, how far apart "
        "the groups are, and how often chance would put them so far apart. Groups that noise "
        "makes unreadable are not compared.",
        weight=40,
        place=200,
        old_name="groups_of_classes",
    )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        note = "all cells of three classes jointly"
        return (WorstCase(pairs=class_pairs(), note=note, formerly="confusion-of-classes"),)

    def _typical(self, size: int, right: float) -> Floats:
        wrong = (1 - right) / (size - 1)
        return (np.full((size, size), wrong) + np.eye(size) * (right - wrong)).ravel() / size


@dataclass(frozen=True, kw_only=True)
class TopK(_CallCounts[RankRelease]):
    """The share of rows whose true class is among the k highest scores, for every k."""

    kind = "top-k"
    asks = "Is the true class among its top k?"
    tells = "How often the true class is among the k with the highest scores, for every k."
    axes: ClassVar[tuple[str, ...]] = ("rank",)
    title = "top-k accuracy"
    reading: ClassVar[type[Release]] = RankRelease
    section = Section(
        title="Top-k accuracy",
        meaning="How often the true class is among the k of the highest scores.",
        weight=10,
        place=25,
    )

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        return about.no_scores if isinstance(about, ClassifiedRows) else super().why_not(about)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return (WorstCase(pairs=class_pairs()),)

    def _typical(self, size: int, right: float) -> Floats:
        rest = 0.5 ** np.arange(1, size)
        return np.concatenate([[right], (1 - right) * rest / rest.sum()])


@dataclass(frozen=True, kw_only=True)
class ClassCompare(Question[PairedDifference]):
    """Is another model right more often on the same rows? The difference of the two accuracies.

    Each row is in one of four counts: both models say its class, the first alone, the second alone,
    or neither. The difference is B minus A.
    """

    kind = "class-compare"
    title = "difference in accuracy of classes"
    asks = "Is it right more often than another model?"
    tells = (
        "The difference in accuracy of two models of several classes, on the same rows, with a "
        "p-value."
    )
    of = (ClassifiedRows,)
    cannot_pool = CLASSES_APART
    score: Annotated[str, Rival(), "The other model: a declared column with the class it says."]
    example: ClassVar[Mapping[str, Any]] = {"score": "b"}

    def request(self, about: ClassifiedRows) -> Request:
        about.check_rival(self.score)
        rival, statistic = self.score, PairedRight()
        mechanism = laplace(statistic, self.price, about.protection)
        named: dict[str, Any] = {"score": about.score, "rival": rival, "measure": "accuracy"}
        named |= {"label": about.label, "classes": list(about.classes)}
        return Request(
            "difference in accuracy",
            statistic,
            mechanism,
            named,
            view=lambda rows: rows.with_rival(rival),
        )

    def read(self, drawn: Drawn) -> PairedDifference:
        return PairedDifference(drawn)

    def typical(self, about: ClassifiedRows, guess: Guess) -> object:
        """Return rows of which one in ten is right with one model alone."""
        right = NormalDist().cdf(guess.separation / 2)
        shares = np.array([1 - right - 0.05, 0.05, 0.05, right - 0.05]).clip(0)
        return np.round(shares * sum(guess.counts)).astype(np.int64)

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        return (-1.0, 1.0)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        others = [(place % 3, place % 5 % 3) for place in range(12)]
        pairs = (
            class_pair(("a row that one model has right", [(0, 0)], [(0, 2)]), others),
            class_pair(("a row leaves", [(2, 2)], []), others, **REMOVE),
            class_pair(
                ("a person's two rows", [(2, 2), (0, 0)], [(2, 1), (0, 1)]), others, **PERSON
            ),
        )
        return (WorstCase(pairs=tuple(map(_with_rival, pairs))),)


def _with_rival(pair: Pair) -> Pair:
    """Return the same rows with a second model that says 2 of every row."""

    def of(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "b": [2] * len(content["y"])}

    return Pair(pair.name, of(pair.first), of(pair.second), {**pair.options, "rivals": ["b"]})


@dataclass(frozen=True, kw_only=True)
class _ClassAreas(Question[ClassAreas]):
    """A ranking metric of each class against all others, at equal shares of epsilon."""

    of = (ClassifiedRows,)
    cannot_pool = CLASSES_APART
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]]
    rules = Auc.rules
    known_rules = Auc.known_rules
    reported_since = Auc.reported_since
    method: Method = DEFAULT

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        return about.no_scores if isinstance(about, ClassifiedRows) else super().why_not(about)

    def _questions(self, about: ClassifiedRows) -> dict[str, Auc | AveragePrecision]:
        share = self.price / len(about.classes)
        one = self.of_one_class(epsilon=share, method=self.method).under(self.rules)
        object.__setattr__(one, "adapts", False)
        return dict.fromkeys(about.classes, one)

    def request(self, about: ClassifiedRows) -> Together:
        parts: dict[str, Any] = {}
        for place, (name, question) in enumerate(self._questions(about).items()):
            asked = question.request(about.versus(place))
            parts[name] = replace(asked, view=_Versus(place))
        title = f"{self.of_one_class.kind.replace('-', ' ')} of classes"
        return Together(title, parts, {"classes": list(about.classes)})

    def read(self, drawn: Drawn) -> ClassAreas:
        return ClassAreas(drawn, self.of_one_class.reading, kind=self.of_one_class.kind)

    def typical(self, about: ClassifiedRows, guess: Guess) -> object:
        positives = max(1, sum(guess.counts) // len(about.classes))
        alike = replace(guess, positives=positives)
        return {
            name: question.typical(about.versus(place), alike)
            for place, (name, question) in enumerate(self._questions(about).items())
        }


@dataclass(frozen=True, kw_only=True)
class ClassAuc(_ClassAreas):
    """The area of each class against all others, at equal shares of epsilon, and their mean."""

    kind = "class-auc"
    replayed = ({}, {"method": "polynomial-tail"})
    title = "AUC of each class"
    asks = "How well does it rank each class?"
    tells = "The AUC of each class against all others, and their mean."
    formerly = ("auc of classes",)
    section = Section(
        title="Ranking: each class against the others",
        meaning="How often a row of the class has a higher score for it than a row of another "
        "class; 0.5 is chance. The macro AUC is the plain mean.",
        weight=80,
        place=10,
        asked_as="auc",
        old_name="auc_of_classes",
    )
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]] = Auc

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        above, below = hundreds()
        bottom = rows([LOW, *above], below)
        pairs = (
            _two_classes("one of hundreds falls among two classes", worst_areas()[-1]),
            _two_classes(
                "the last of hundreds leaves one of two classes",
                table_pair("", bottom, bottom[1:], **REMOVE),
            ),
            _two_classes(
                "a person's two rows of hundreds fall among two classes", worst_persons()[0]
            ),
            _last_of_a_class(),
        )
        case = WorstCase(pairs=pairs, epsilon="4", why=SMALL_CLASSES, formerly="auc-of-classes")
        return (case,)


@dataclass(frozen=True, kw_only=True)
class ClassAveragePrecision(_ClassAreas):
    """The average precision of each class against all others, and their mean.

    It moves by ln(n)/n with one of a class's n rows, where an area moves by 1/n: expect more noise.
    """

    kind = "class-average-precision"
    title = "average precision of each class"
    asks = "How good are its highest scores, class by class?"
    tells = "The average precision of each class against all others, and their mean."
    formerly = ("average precision of classes",)
    section = Section(
        title="Ranking: average precision of each class",
        meaning="The precision at the ranks of the class's rows by its score, on average. Chance "
        "gives the share of the class; the macro average precision is the plain mean.",
        weight=160,
        place=60,
        always=False,
    )
    of_one_class: ClassVar[type[Auc] | type[AveragePrecision]] = AveragePrecision

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            _on_top("a row on top of two rankings changes its class", "1", "0"),
            _on_top("a row on top of two rankings leaves", "1", "", **REMOVE),
            _on_top("a person's two rows on top change their class", "11", "00", **PERSON),
            _last_of_a_class(),
        )
        former = "average-precision-of-classes"
        return (WorstCase(pairs=pairs, epsilon="4", why=SMALL_CLASSES, formerly=former),)


@dataclass(frozen=True)
class _Versus:
    """The view of the rows that tells whether each is of a class, and that class's score."""

    place: int

    def __call__(self, rows: Any) -> PrivateTable:
        view: PrivateTable = rows.versus(self.place)
        return view


def _last_of_a_class() -> Pair:
    others = [(1, 1), (2, 2)] * 6
    return class_pair(("the last of a class is replaced", [(0, 0)], [(2, 2)]), others)


def _two_classes(name: str, pair: Pair) -> Pair:
    """Return rows with scores p and 1 - p: both classes' areas move by what a row does."""

    def of(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "q": [1 - p for p in content["p"]]}

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(pair.first), of(pair.second), {**pair.options, **declared})


def _on_top(name: str, first: str, second: str, **options: Any) -> Pair:
    """Return two classes of hundreds, ranked perfectly, with rows on top of both rankings.

    Such a row of the one class is a negative above all positives of the other: when it changes its
    class, both average precisions move by all that a row can. `first` and `second` are the rows'
    classes, one letter each, and the same person's.
    """
    low, high = spread(300, 0.1, 0.5), spread(300, 0.8, 0.9)

    def of(own: str) -> dict[str, Any]:
        labels = [*map(int, own), *[1] * 300, *[0] * 300]
        people = [*[0] * len(own), *range(1, 601)]
        return {
            "y": labels,
            "p": [*[0.99] * len(own), *high, *low],
            "q": [*[0.99] * len(own), *low, *high],
            "u": people,
            "k": list(range(len(labels))),
        }

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(first), of(second), {**options, **declared})
