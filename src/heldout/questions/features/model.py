"""A trained model as a release: what it cost, what it weighs, and how it was made."""

from typing import Any

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn

MOST_SHOWN = 1000


def count_selected(count: int, *, terms: str) -> dict[str, Measure]:
    """Return the number of selected features as a measure whose interval is that number."""
    number, name = float(count), "features selected"

    def exactly(level: float) -> Interval:
        return number, number

    measure = Measure(
        number, name=name, terms=terms, noise_interval=exactly, interval=exactly, whole=True
    )
    return {name: measure}


class ModelRelease(Release):
    """A private model's numbers with their price. Predictions from it are free."""

    def __init__(
        self,
        drawn: Drawn,
        *,
        weights: Floats,
        selected: Ints,
        split: dict[str, str],
        names: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(drawn)
        self.weights = np.asarray(weights, dtype=float)
        """One log-odds weight a feature; 0 where nothing was seen."""
        self.selected = np.asarray(selected)
        """The features that were selected, by number."""
        self.split = split
        """What each part of the training cost, in epsilon."""
        self._names = names

    @property
    def measures(self) -> dict[str, Measure]:
        """Return how many features were selected: a fact about the answer, so without a doubt."""
        return count_selected(len(self.selected), terms=self.terms)

    def strongest(self, count: int = 10) -> list[tuple[str | int, float]]:
        """Return the features that weigh most, by name where they have one."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:count]
        return [
            (int(place) if self._names is None else self._names[place], float(self.weights[place]))
            for place in order
            if self.weights[place]
        ]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {cost}" for name, cost in self.split.items())
        return (
            f"{self.name} with {len(self.selected):,} of {len(self.weights):,} features selected, "
            f"{self.terms} ({parts})"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        used = np.flatnonzero(self.weights)
        content = super().as_dict(level) | {
            "split": dict(self.split),
            "selected": [int(place) for place in self.selected],
            "weights": {str(place): float(self.weights[place]) for place in used},
        }
        if sum(map(len, content["noisy"])) > MOST_SHOWN:
            content["noisy"] = None  # the weights are the reading of thousands of noisy counts
        return content

    def _noisy(self) -> list[list[int]]:
        """Return what was drawn, step by step, in lattice steps."""
        return [[int(number) for number in answer] for answer in self._drawn.values.values()]
