"""The confusion matrix of several classes as released, and all that people read off it."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from heldout.arguments import as_whole, is_one_of, shown
from heldout.errors import ArgumentError
from heldout.intervals.confusion import noisy_counts
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import NoisyCounts, Ratio
from heldout.intervals.readings import CELLS, AsMatrix, ConfusionReadings
from heldout.intervals.registry import Metric, attribute, chosen
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions.classes.averages import Linearised, MeanRatio, class_contrasts

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure

__all__ = ["ClassConfusionRelease", "OneClass", "RankRelease"]

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

    def interval(level: float) -> Interval:
        half = counts.noise(which).quantile(level) + counts.granularity(which)
        return float(np.clip(total - half, 0, most)), float(np.clip(total + half, 0, most))

    value = float(np.clip(np.round(total), 0, most))
    return Measure(
        value, name=name, terms=terms, noise_interval=interval, interval=interval, whole=True
    )


def _share(name: str, found: Any, terms: str, share: Any = float) -> Measure:
    return Measure(
        found.value,
        name=name,
        terms=terms,
        noise_interval=found.noise_interval,
        interval=found.interval,
        share=share,
    )


class OneClass(ConfusionReadings):
    """One class against all others: `.precision`, `.recall`, `.f_score(beta)` and more. Free."""

    def __init__(
        self, counts: NoisyCounts, place: int, size: int, *, name: str, terms: str
    ) -> None:
        self._counts, self._name, self.terms = counts, name, terms
        true, called = (np.zeros((size, size), dtype=bool) for _ in range(2))
        true[place], called[:, place] = True, True
        cells = (true & called, ~true & called, true & ~called, ~true & ~called)
        self._cells = np.array([each.ravel() for each in cells], dtype=float)

    def _count(self, index: int) -> Measure:
        name = f"{CELLS[index]}, {self._name}"
        return _count(self._counts, self._cells[index], name, self.terms)

    def ratio(self, metric: Metric) -> Ratio:
        """The counts that the metric is a ratio of."""
        top, below = (
            np.array(each, dtype=float) @ self._cells
            for each in (metric.numerator, metric.denominator)
        )
        return Ratio(counts=self._counts, numerator=top, denominator=below)

    def measure(self, metric: Metric) -> Measure:
        return _share(f"{metric.name}, {self._name}", self.ratio(metric), self.terms)


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
        held = np.maximum(np.round(self._counts.estimate), 0.0)
        found: list[list[float]] = held.reshape(size, size).tolist()
        return found

    def plotted(self) -> dict[str, Measure]:
        """Return the measures of all classes together."""
        return {name: measure for name, measure in self.measures.items() if ", " not in name}

    def count(self, truth: str, called: str) -> Measure:
        """How many rows of one class were called another."""
        for each in (truth, called):
            if not is_one_of(each, self.names):
                known = ", ".join(map(repr, self.names))
                raise ArgumentError(f"truth and called must be among {known}, got {shown(each)}.")
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
        ratios = tuple(each.ratio(chosen(metric)) for each in every)
        return MeanRatio(ratios, tuple(each._ratios[metric] for each in every), weights)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        terms, size = self._drawn.terms, len(self.names)
        true = np.kron(np.eye(size), np.ones(size))  # the rows of each class
        found: dict[str, Any] = {
            "accuracy": self._accuracy,
            "balanced accuracy": self._mean("recall"),
            "macro precision": self._mean("precision"),
            "macro F1 score": self._mean("F1 score"),
            "weighted precision": self._mean("precision", true),
            "weighted F1 score": self._mean("F1 score", true),
        }
        found = {name: _share(name, each, terms) for name, each in found.items()}
        for each in class_contrasts():
            linear = Linearised(self._counts, each)
            found[each.name] = _share(each.name, linear, terms, each.share)
        for metric in _EACH:
            for name, one in self.classes.items():
                found[f"{metric}, {name}"] = one._ratios[metric]
        return found

    def __getattr__(self, name: str) -> Measure:
        if not name.startswith("_"):
            known = {attribute(each): each for each in self.measures if ", " not in each}
            known |= {"macro_recall": "balanced accuracy", "micro_f1_score": "accuracy"}
            if name.lower() in known:
                return self.measures[known[name.lower()]]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        from heldout.drawing.pictures import class_chart, class_matrix

        cell = np.eye(len(self.names) ** 2)[0]
        half = self._counts.noise(cell).quantile(level) + self._counts.granularity(cell)
        return [class_matrix(class_chart(self.names, self.matrix()), half, level=level)]

    def plot(self, ax: Any = None) -> Any:
        """The heat map, on matplotlib's axes where it is installed, else an Altair chart."""
        from heldout.drawing.pictures import class_chart

        return class_chart(self.names, self.matrix()).plot(ax)


class RankRelease(Release):
    """Noisy counts of rows by the rank of the true class among the scores; any top k is free."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self._counts = _counts(drawn)

    def top(self, k: int) -> Measure:
        """How often the true class is among the k of the highest scores."""
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
        found = (self.top(k) for k in range(1, self._counts.estimate.size))
        return {each.name: each for each in found}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio(int(name.removeprefix("top-").split()[0])).p_value(value)
