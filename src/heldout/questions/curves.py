"""The question that one noisy score table answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.description import ScoredRows
from heldout.mechanisms.curves.registry import METHODS
from heldout.mechanisms.curves.registry import method as curve_method
from heldout.metrics.curves.curve import grid_point
from heldout.metrics.curves.release import CurvesRelease
from heldout.questions.base import Question
from heldout.questions.guess import Guess
from heldout.questions.rules import Numbers, OneOf, Plain
from heldout.release import Drawn, Request
from heldout.statistics import ScoreTable
from heldout.statistics.sealed import Sealed

__all__ = ["Curves"]


@dataclass(frozen=True, kw_only=True)
class Curves(Question):
    """One score table with noise; ROC, precision-recall, calibration and more are then free.

    `method` may name one of the papers' instead: "laplace", "fixed-space", "recursive-medians" or
    "hierarchical-quantile", with its own options. `thresholds` are those whose confusion matrix
    matters: two thirds of epsilon count the rows between them once more, and the rest is for the
    curves.
    """

    kind: ClassVar[str] = "curves"
    of: ClassVar[type] = ScoredRows
    draws: ClassVar[int] = 9
    method: Annotated[str, OneOf(METHODS)] = "heldout"
    thresholds: Annotated[Any, Numbers()] = None
    options: Annotated[Mapping[str, Any], Plain()] = field(default_factory=dict)

    def request(self, about: ScoredRows) -> Request:
        statistic = ScoreTable(score_range=about.score_range)
        mechanism = curve_method(
            self.method,
            epsilon=self.price,
            protection=about.protection,
            points=statistic.points,
            rows=about.rows,
            named=self._named(about, statistic.points),
            **self.options,
        )
        chosen = {name: str(value) for name, value in self.options.items()}
        if self.thresholds is not None:
            chosen["thresholds"] = ", ".join(f"{each:g}" for each in self.thresholds)
        parameters = {"method": self.method, **chosen, **about.scale_parameters}
        return Request("curves", statistic, mechanism, parameters)

    def _named(self, about: ScoredRows, points: int) -> tuple[int, ...]:
        """The grid points of the named thresholds."""
        given = [about.threshold(each) for each in self.thresholds or ()]
        if about.score_map is not None:
            given = [about.score_map.image(each) for each in given]
        places = [grid_point(at, points=points, score_range=about.score_range) for at in given]
        return tuple(sorted(set(places)))

    def read(self, drawn: Drawn) -> CurvesRelease:
        return CurvesRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        """The noise of a made-up table, which is no secret."""
        request = self.request(about)
        assert isinstance(request.statistic, ScoreTable)
        positives, negatives = guess.counts
        shares = guess.scores(request.statistic.points)
        counts = [
            np.diff(np.round(np.append(0, np.cumsum(share)) * size)).astype(np.int64)
            for share, size in zip(shares, (negatives, positives), strict=True)
        ]
        return request.mechanism.sample(Sealed(np.concatenate(counts)))
