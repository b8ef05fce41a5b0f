"""What people read off four counts, whatever release they came from."""

import math
from abc import ABC, abstractmethod
from functools import cached_property

from heldout.errors import ArgumentError
from heldout.measure import Measure
from heldout.metrics.ratios.f_score import f_score
from heldout.metrics.registry import Metric, registered

CELLS = ("true positives", "false positives", "false negatives", "true negatives")


class ConfusionReadings(ABC):
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
    def measures(self) -> dict[str, Measure]:
        return {**self._ratios, **{name: self._count(i) for i, name in enumerate(CELLS)}}

    @property
    def true_positives(self) -> Measure:
        return self._count(0)

    @property
    def false_positives(self) -> Measure:
        return self._count(1)

    @property
    def false_negatives(self) -> Measure:
        return self._count(2)

    @property
    def true_negatives(self) -> Measure:
        return self._count(3)

    @property
    def accuracy(self) -> Measure:
        return self._ratios["accuracy"]

    @property
    def recall(self) -> Measure:
        return self._ratios["recall"]

    @property
    def precision(self) -> Measure:
        return self._ratios["precision"]

    @property
    def specificity(self) -> Measure:
        return self._ratios["specificity"]

    @property
    def negative_predictive_value(self) -> Measure:
        return self._ratios["negative predictive value"]

    @property
    def npv(self) -> Measure:
        """Short for `negative_predictive_value`, as `plan` takes it."""
        return self.negative_predictive_value

    @property
    def prevalence(self) -> Measure:
        return self._ratios["prevalence"]

    def f_score(self, beta: float = 1) -> Measure:
        """The F score; `beta` says how much more recall counts than precision."""
        if isinstance(beta, bool) or not (math.isfinite(beta) and beta > 0):
            raise ArgumentError(f"beta must be a positive number, got {beta!r}.")
        return self.measure(f_score(float(beta)))

    def matrix(self) -> list[list[float]]:
        """As scikit-learn lays it out: rows are the truth, columns the prediction, 0 first."""
        tp, fp, fn, tn = (self._count(i).value for i in range(4))
        return [[tn, fp], [fn, tp]]
