"""What people read off four counts, whatever release they came from."""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure
from heldout.intervals.registry import Metric, attribute, f_score, registered

CELLS = ("true positives", "false positives", "false negatives", "true negatives")


class AsMatrix(ABC):
    """What NumPy takes for an array: `np.asarray(release)` is scikit-learn's `confusion_matrix`."""

    @abstractmethod
    def matrix(self) -> list[list[float]]:
        """Rows are the truth, columns the prediction."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """`matrix()`, in whole numbers where it has no others."""
        import numpy as np

        found = np.array(self.matrix())
        whole = bool((found == np.round(found)).all())
        return found.astype(dtype or (np.int64 if whole else np.float64))


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

    @property
    def measures(self) -> dict[str, Measure]:
        return {**self._ratios, **self._named_counts}

    def __getattr__(self, name: str) -> Measure:
        """Each measure by its name: `.accuracy`, `.true_positives`, and `.npv` for short."""
        known = {attribute(each): each for each in (*CELLS, *registered())}
        wanted = known.get("negative_predictive_value" if name == "npv" else name.lower())
        if wanted is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._count(CELLS.index(wanted)) if wanted in CELLS else self._ratios[wanted]

    def __dir__(self) -> list[str]:
        names = (attribute(each) for each in (*CELLS, *registered()))
        return sorted({*super().__dir__(), *names, "npv"})

    def f_score(self, beta: float = 1) -> Measure:
        """The F score; `beta` says how much more recall counts than precision."""
        if isinstance(beta, bool) or not (math.isfinite(beta) and beta > 0):
            raise ArgumentError(f"beta must be a positive number, got {beta!r}.")
        return self.measure(f_score(float(beta)))

    def matrix(self) -> list[list[float]]:
        """As scikit-learn lays it out: rows are the truth, columns the prediction, 0 first."""
        tp, fp, fn, tn = (self._count(i).value for i in range(4))
        return [[tn, fp], [fn, tp]]
