"""What people read of a released ranking: AUC, average precision, the better of two models."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from heldout.arguments import visible
from heldout.errors import ArgumentError
from heldout.intervals.auc_interval import (
    Belief,
    Look,
    belief,
    noise_interval,
    noise_reach,
    population_interval,
    two_sided_p_value,
)
from heldout.intervals.influence import Scatter
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.kernel.ranking.metric import ranking_metric
from heldout.questions.ranking.binormal import BinormalCurve, binormal_curve

if TYPE_CHECKING:
    from heldout.questions.ranking.ties import TieBound


class RankingRelease(Release):
    """A noisy ranking metric, with the noisy class counts that its intervals need."""

    _others: tuple[Look, ...] = ()

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        stages, values = drawn.request.reading, drawn.values
        answers: dict[str, Any] = {"value": values} if isinstance(values, RankingDraw) else values
        assert isinstance(answers["value"], RankingDraw)
        self._draw = answers["value"]
        self._stages, self._answers = stages, answers

    @property
    def draw(self) -> RankingDraw:
        """The value as drawn, with the law of its noise; for readings beside this one."""
        return self._draw

    def informed(self, beside: Mapping[str, Release]) -> Self:
        """Return the same release, with intervals that use class counts released beside it."""
        counts = [look for release in beside.values() for look in release.class_counts()]
        informed = copy.copy(self)
        informed._others = (*self._others, *counts)
        for found in ("_known", "measures"):  # without the counts
            informed.__dict__.pop(found, None)
        return informed

    @cached_property
    def measures(self) -> dict[str, Measure]:
        draw = self._draw
        name = ranking_metric(draw.mechanism.metric).words
        known = self._known

        def noise(level: float) -> Interval:
            return noise_interval(draw, level=level, known=known)

        def population(level: float) -> Interval:
            return population_interval(draw, level=level, known=known)

        return {name: self._measure(name, draw.value, noise, population, float)}

    @cached_property
    def _scatter(self) -> Scatter:
        return Scatter.assumed() if self._stages is None else self._stages.scatter(self._answers)

    @cached_property
    def _known(self) -> Belief | None:
        found = belief(self._draw, self._others)
        return None if found is None else replace(found, scatter=self._scatter)

    def surprise(self, name: str, value: float) -> float:
        return two_sided_p_value(self._draw, null=value, known=self._known)

    def _measure(self, name: str, value: float, noise: Any, population: Any, share: Any) -> Measure:
        return Measure(
            value,
            name=name,
            terms=self.terms,
            noise_interval=noise,
            interval=population,
            share=share,
            reach=lambda level: noise_reach(self._draw, level=level, known=self._known),
        )

    def _noisy(self) -> Any:
        beside = {n: each.tolist() for n, each in self._answers.items() if n != "value"}
        return {**self._draw.as_dict(), **beside}

    @property
    def on_grid(self) -> bool:
        """Whether scores were rounded to the public grid before they were ranked."""
        return bool(self._drawn.request.parameters.get("scores") == "grid")


class AucRelease(RankingRelease):
    """A private area under the ROC curve."""

    def tie_bound(self, level: float = 0.95) -> "TieBound | None":
        """How far the order of rows within a cell of the grid can move the area, at most. Free.

        From the area alone: pairs cannot be tied that are won or lost. `Session.grid_ties` says
        far more for a small price. None where the exact scores were ranked.
        """
        from heldout.questions.ranking.ties import TieBound, largest_ties

        if not self.on_grid:
            return None
        return TieBound(largest_ties(self.noise_interval(level)), None, level, "the area alone")

    def binormal_roc(self, *, level: float = 0.95, points: int = 101) -> BinormalCurve:
        """The symmetric binormal ROC curve of this area, with its band. Free.

        The band holds as far as the binormal form does; that of `session.curves` may bend.
        """
        if points < 2:
            raise ArgumentError(f"points must be at least 2, got {points}.")
        return binormal_curve(self.value, interval=self.interval(level), points=points)


class CompareRelease(RankingRelease):
    """The second model's AUC less the first one's, on the same rows."""

    @property
    def measures(self) -> dict[str, Measure]:
        half = super().measures["difference"]

        def doubled(interval: Interval) -> Interval:
            low, high = interval
            return (2 * low - 1, 2 * high - 1)

        name = visible(f"AUC of {self.rival} less AUC of {self.score}")
        return {
            name: self._measure(
                name,
                2 * half.value - 1,
                lambda level: doubled(half.noise_interval(level)),
                lambda level: doubled(half.interval(level)),
                lambda value: (1 + value) / 2,
            )
        }

    @property
    def score(self) -> str:
        return str(self._drawn.request.parameters["score"])

    @property
    def rival(self) -> str:
        return str(self._drawn.request.parameters["rival"])

    @property
    def p_value(self) -> float:
        """How often a difference at least as large would be released if the models were equal.

        Two-sided, for the population, from the released numbers alone: free. It takes sampling
        error and noise together.
        """
        return two_sided_p_value(self._draw, null=0.5, known=self._known)

    def __str__(self) -> str:
        return f"{self.headline}, p-value {self.p_value:.3g}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {**super().as_dict(level), "p_value": self.p_value}
