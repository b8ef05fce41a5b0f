"""The question that one noisy score table answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.description import ScoredRows
from heldout.mechanisms.curves.registry import METHODS
from heldout.mechanisms.curves.registry import method as curve_method
from heldout.mechanisms.each_group import EachGroup
from heldout.metrics.curves.by_group import CurvesByGroup
from heldout.metrics.curves.curve import grid_point
from heldout.metrics.curves.release import CurvesRelease
from heldout.metrics.groups import ByGroup
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.questions.base import Question
from heldout.questions.groups import divided, how_many, named, part, shared
from heldout.questions.guess import Guess
from heldout.questions.rules import By, Numbers, OneOf, Plain
from heldout.release import Drawn, Request
from heldout.statistics import ScoreTable
from heldout.statistics.score_table import ScoreTables
from heldout.statistics.sealed import Sealed

__all__ = ["Curves"]


@dataclass(frozen=True, kw_only=True)
class Curves(Question):
    """One score table with noise; ROC, precision-recall, calibration and more are then free.

    `method` may name one of the papers' instead: "laplace", "fixed-space", "recursive-medians" or
    "hierarchical-quantile", with its own options. `thresholds` are those whose confusion matrix
    matters: two thirds of epsilon count the rows between them once more, and the rest is for the
    curves. `by` gives curves for each declared group: a row is in one, so the price is the same.
    """

    kind: ClassVar[str] = "curves"
    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    draws: ClassVar[int] = 9
    method: Annotated[str, OneOf(METHODS)] = "heldout"
    thresholds: Annotated[Any, Numbers()] = None
    by: By = None
    options: Annotated[Mapping[str, Any], Plain()] = field(default_factory=dict)

    def request(self, about: ScoredRows) -> Request:
        statistic: Any = ScoreTable(score_range=about.score_range)
        mechanism: Any = self._mechanism(about, statistic.points)
        if self.by is not None:
            groups, moved = how_many(self.by, about), about.protection.rows_moved
            # A row that leaves or arrives changes one group's table: each is asked for a row alone.
            row = replace(about, protection=Protection(neighbours=Neighbours.ADD_REMOVE), rows=None)
            one = replace(self, epsilon=self.price / moved)._mechanism(row, statistic.points)
            statistic = ScoreTables(statistic, groups)
            mechanism = EachGroup(self.price, moved, groups, one)
        chosen = {name: str(value) for name, value in self.options.items()}
        if self.thresholds is not None:
            chosen["thresholds"] = ", ".join(f"{each:g}" for each in self.thresholds)
        parameters = {"method": self.method, **chosen, **about.scale_parameters}
        parameters |= named(self.by, about)
        name = "curves" if self.by is None else "curves by group"
        return Request(name, statistic, mechanism, parameters, view=divided(self.by))

    def _mechanism(self, about: ScoredRows, points: int) -> Any:
        return curve_method(
            self.method,
            epsilon=self.price,
            protection=about.protection,
            points=points,
            rows=about.rows,
            named=self._named(about, points),
            **self.options,
        )

    def _named(self, about: ScoredRows, points: int) -> tuple[int, ...]:
        """The grid points of the named thresholds."""
        given = [about.threshold(each) for each in self.thresholds or ()]
        if about.score_map is not None:
            given = [about.score_map.image(each) for each in given]
        places = [grid_point(at, points=points, score_range=about.score_range) for at in given]
        return tuple(sorted(set(places)))

    def read(self, drawn: Drawn) -> CurvesRelease | ByGroup:
        if self.by is None:
            return CurvesRelease(drawn)
        asked = drawn.request
        table, one = asked.statistic.table, asked.mechanism.one
        parts = (CurvesRelease(part(drawn, table, one, each)) for each in drawn.values)
        return CurvesByGroup(drawn, parts)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        """The noise of made-up tables, which is no secret."""
        request, groups = self.request(about), how_many(self.by, about)
        positives, negatives = guess.counts if self.by is None else shared(guess, groups).counts
        shares = guess.scores(ScoreTable(score_range=about.score_range).points)
        counts = [
            np.diff(np.round(np.append(0, np.cumsum(share)) * size)).astype(np.int64)
            for share, size in zip(shares, (negatives, positives), strict=True)
        ]
        table = np.concatenate(counts)
        return request.mechanism.sample(Sealed(table if self.by is None else [table] * groups))
