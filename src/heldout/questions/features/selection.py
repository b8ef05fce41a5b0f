"""What a selection of features gives: for people, for machines, and for the next step."""

from collections.abc import Iterator
from typing import Any

from heldout.arguments import as_array
from heldout.data.feature_matrix import FeatureMatrix
from heldout.drawing.page import card
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, checked_level
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.questions.features.selection_methods import Chosen

__all__ = ["NotPrivateSelection", "Selection"]

_SHOWN = 8


class _Features:
    """Selected features, by number and by name, best first."""

    _chosen: Chosen
    _names: tuple[str, ...] | None
    _count: int

    @property
    def indices(self) -> Any:
        """The selected features' numbers, as an array."""
        return self._chosen.indices

    @property
    def features(self) -> tuple[Any, ...]:
        """The selected features: their names where they have public ones, else their numbers."""
        numbers = [int(each) for each in self.indices]
        return tuple(numbers if self._names is None else (self._names[each] for each in numbers))

    @property
    def scores(self) -> Any:
        """The noisy scores of the selected features, or None if the method shows none."""
        return self._chosen.scores

    def transform(self, X: Any) -> Any:
        """The selected columns of a matrix with the same features."""
        rows = X.tocsr() if hasattr(X, "tocsr") else as_array(X, name="X")
        if rows.ndim != 2 or rows.shape[1] != self._count:
            raise ArgumentError(f"X must have {self._count} features, as the rows had.")
        return rows[:, self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.features)

    def __contains__(self, feature: object) -> bool:
        return feature in self.features

    def _listed(self) -> str:
        features = self.features
        if not features:
            return "none"
        shown = ", ".join(str(each) for each in features[:_SHOWN])
        more = len(features) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown

    def _plain_scores(self) -> list[float] | None:
        return None if self.scores is None else [float(each) for each in self.scores]


class Selection(_Features, Release):
    """Features of private rows, selected and paid for.

    `float()` is how many there are; `features`, `indices` and `scores` hold them, best first.
    """

    private = True

    def __init__(self, drawn: Drawn, private: FeatureMatrix, chosen: Chosen) -> None:
        super().__init__(drawn)
        self._chosen, self._names, self._count = chosen, private.feature_names, private.features

    @property
    def measures(self) -> dict[str, Measure]:
        """How many features were selected: a fact about the answer, so without a doubt."""
        number = float(len(self))
        exactly = lambda level: (number, number)  # noqa: E731
        count = Measure(
            number,
            name="features selected",
            terms=self.terms,
            noise_interval=exactly,
            interval=exactly,
            whole=True,
        )
        return {"features selected": count}

    @property
    def method(self) -> str:
        return str(self._drawn.request.parameters["method"])

    def score_interval(self, level: float = 0.95) -> tuple[Any, Any] | None:
        """Intervals of the selected features' scores, privacy noise alone; None without scores.

        They hold for a feature that was named beforehand; that it was selected for a high noisy
        score makes the true one lower more often than not.
        """
        level = checked_level(level)
        if self.scores is None or self._chosen.half_width is None:
            return None
        half = self._chosen.half_width(level)
        return self.scores - half, self.scores + half

    def __str__(self) -> str:
        words = self._drawn.request.parameters
        return (
            f"{len(self):,} of {self._count:,} features by {words['score']} "
            f"({self.method}): {self._listed()}; {self.terms}"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {
            "private": True,
            "features": list(self.features),
            "indices": [int(each) for each in self.indices],
            "scores": self._plain_scores(),
        }

    def _noisy(self) -> Any:
        """What was drawn for the selected features; that of the others was used and let go."""
        return self._plain_scores()

    def _repr_html_(self) -> str:
        scores = self._plain_scores()
        shown = [""] * len(self) if scores is None else [f"{each:.4g}" for each in scores]
        rows = zip(self.features, shown, strict=True)
        return card(str(self), head=("Feature", "Noisy score"), rows=rows)


class NotPrivateSelection(_Features):
    """What a published selection that is not private gives. Nothing was charged or is safe."""

    private = False
    loss = None

    def __init__(
        self,
        private: FeatureMatrix,
        chosen: Chosen,
        *,
        method: str,
        why: str,
        words: dict[str, Any],
    ) -> None:
        self._chosen, self._names, self._count = chosen, private.feature_names, private.features
        self.method, self._why, self._words = method, why, words

    def __str__(self) -> str:
        return (
            f"NOT PRIVATE: {len(self):,} of {self._count:,} features by {self._words['score']} "
            f"({self.method}: {self._why}): {self._listed()}; no privacy at any epsilon"
        )

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        return {
            "release": "selection",
            "private": False,
            "warning": f"NOT PRIVATE: {self._why}",
            "loss": None,
            "parameters": dict(self._words),
            "features": list(self.features),
            "indices": [int(each) for each in self.indices],
            "scores": None,
        }
