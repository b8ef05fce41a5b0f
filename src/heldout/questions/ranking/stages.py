"""A ranking metric and what its sampling error is made of: several answers, one price.

First the value with its noise; then a coarse score table (of either model); then the second moment
of the rows' influences, whose cut points the tables gave. Shares of epsilon are public and were
chosen by trials on adult, diabetes130, sentiment140 and made-up scores; `benchmarks.accuracy`
reports on others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.data.table import PrivateTable
from heldout.intervals.areas import (
    Influence,
    Scatter,
    area_variance,
    belief,
    cell_shares,
    difference_variance,
    influence_on_area,
    influence_on_difference,
    influence_on_precision,
    precision_variance,
)
from heldout.intervals.curve import Curve
from heldout.kernel.door import Answers, Booked, Request, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.ranking.mechanism import METHODS, RankingDraw, RankingMechanism
from heldout.kernel.ranking.statistic import METRICS, InfluenceMoments, RankingMetric, ScoreTable
from heldout.kernel.statistic import Statistic
from heldout.questions.curves.methods.heldout import HeldoutCurves
from heldout.questions.ranking.fitted_curve import fitted_curve

__all__ = ["RankingStages"]

LEAST_EPSILON: Final = Fraction(1, 20)
INFLUENCES: Final[Mapping[str, Callable[..., Influence]]] = {
    "auc": influence_on_area,
    "average-precision": influence_on_precision,
    "auc-difference": influence_on_difference,
}
USUAL_AREA, USUAL_AGREEMENT = 0.8, 0.25
"""What a forecast takes for two models: their areas, and the variance of the difference over that
of two areas of other rows; placements then correlate by about 3/4."""
_LEVELS: Final = 3
_EDGES_SHARE = Fraction(3, 10)
_ROOTS: Final = np.linspace(0.05, 1.4, 24)
"""Deviations of a difference over that of two areas of other rows, beforehand: with heavy tails it
may be more than Hanley and McNeil's formula gives those."""
_SPREAD: Final = 0.5
"""Of the logarithm of an area's sampling variance over Hanley and McNeil's, beforehand."""
_FITTED_SPREAD: Final = 0.25
"""Of that of average precision over what the table says."""
_SMALLEST: Final = InfluenceMoments(cuts=(), negatives=(0,), positives=(0,))


@dataclass(frozen=True, kw_only=True)
class RankingStages:
    """How a ranking metric, its tables and its moments are bought for one epsilon. All public.

    Claim:       pure DP, epsilon, the exact sum of the steps.                 [claim: staged]
    Neighbours:  the protection's.
    Sensitivity: the steps': `RankingMechanism`, `HeldoutCurves`, `InfluenceMoments`.
    Numerics:    exact.
    Refuses:     what the steps refuse, before the booking.
    Reference:   sequential composition.
    Cost:        one pass over the rows a step.
    """

    metric: str
    epsilon: Fraction
    protection: Protection
    rows: int | None
    score_range: tuple[float, float]
    statistic: Statistic[Any]
    rival_range: tuple[float, float] | None = None
    """Of the second model's scores, where it is not the first one's."""
    smaller_class: int | None = None
    method: str = METHODS[0]
    delta: Fraction | None = None
    alone: bool = False
    """Whether the value is bought without the others, however many rows there are."""

    @cached_property
    def worthwhile(self) -> bool:
        """Return whether there are enough rows to see their influences; by public facts alone."""
        if self.alone or self.method != METHODS[0] or self.delta is not None:
            return False
        visible = self.expected_rows * self.epsilon * 2 / self.protection.rows_moved
        return self.epsilon >= LEAST_EPSILON and visible >= self.kind.least_visible

    @property
    def expected_rows(self) -> int:
        """The public number of rows, or what a guess of the smaller class makes likely, or 0."""
        return self.rows if self.rows is not None else 4 * (self.smaller_class or 0)

    @property
    def kind(self) -> RankingMetric:
        return METRICS[self.metric]

    @property
    def models(self) -> tuple[str, ...]:
        return ("score", "rival") if self.kind.compares else ("score",)

    def ends(self, model: str) -> tuple[float, float]:
        """Return the range of a model's scores."""
        return (model == "rival" and self.rival_range) or self.score_range

    @cached_property
    def value(self) -> RankingMechanism:
        """The noise of the value, with what tables and moments leave of epsilon."""
        table, moments = self.kind.shares
        spent = (table * len(self.models) + moments) if self.worthwhile else 0
        return RankingMechanism(
            metric=self.metric,
            epsilon=self.epsilon * (1 - spent),
            protection=self.protection,
            rows=self.rows,
            smaller_class=self.smaller_class,
            method=self.method,
            delta=self.delta,
        )

    @cached_property
    def table(self) -> HeldoutCurves:
        return HeldoutCurves(
            epsilon=self.epsilon * self.kind.shares[0],
            protection=self.protection,
            points=ScoreTable(score_range=self.score_range).points,
            rows=self.rows,
            expected_rows=self.expected_rows,
            levels=_LEVELS,
            area_share=Fraction(0),
            edges_share=_EDGES_SHARE,
        )

    @cached_property
    def moments(self) -> DiscreteLaplace | None:
        share = self.kind.shares[1]
        if share == 0:
            return None
        whole = _SMALLEST.sensitivity(self.protection)
        return DiscreteLaplace.for_epsilon(self.epsilon * share, l1_sensitivity=whole, dimension=3)

    def request(
        self,
        *,
        parameters: Mapping[str, Any],
        view: Callable[[Any], PrivateTable] | None = None,
    ) -> Request | Staged:
        if not self.worthwhile:
            return Request(self.metric, self.statistic, self.value, parameters, view=view)
        steps = {"value": Booked.of(Step(self.statistic, self.value))}
        for model in self.models:
            table = ScoreTable(score_range=self.ends(model), column=model)
            steps[f"table of {model}"] = Booked.of(Step(table, self.table))
        described = {}
        if (moments := self.moments) is not None:
            described["influence_moments"] = moments.describe()
            steps["moments"] = Booked(
                moments.event(),
                lambda answers: Step(self.influence(answers).statistic(self.score_range), moments),
            )
        return Staged(
            name=self.metric,
            steps=steps,
            parameters=parameters,
            claim=self.statistic.claim,
            description={**self.value.describe(), "tables": self.table.describe(), **described},
            reading=self,
            view=view,
        )

    # --- what the answers say ------------------------------------------------------------------

    def curves(self, answers: Answers) -> list[Curve]:
        return [
            fitted_curve(answers[f"table of {model}"], score_range=self.ends(model))
            for model in self.models
        ]

    def influence(self, answers: Answers) -> Influence:
        """Each row's part in the sampling error, by the tables."""
        curves, counts = self.curves(answers), counts_of(answers["value"])
        return INFLUENCES[self.metric](*curves, counts=counts)

    def scatter(self, answers: Answers) -> Scatter:
        """Return what the answers say of the sampling variance, in units of the assumed one.

        The value alone, which a forecast has, stands for what is usual: formulas that hold on
        most scores, and models that agree as most do.
        """
        if len(answers) == 1:
            m, n = counts_of(answers["value"])
            usual = USUAL_AGREEMENT * 2 * area_variance(USUAL_AREA, n, m) / 4
            compared = usual / difference_variance(0.5, n, m) if self.kind.compares else 1.0
            return Scatter.around(compared, spread=0)
        found, curves = self.influence(answers), self.curves(answers)
        m, n = found.counts
        value = min(max(answers["value"].value, 0.01), 0.99)
        if self.moments is None:
            typical = found.typical_variance(cell_shares(curves[0], found.cuts))
            ratio = typical / precision_variance(value, n, m)
            return Scatter.around(min(max(ratio, 0.2), 5.0), spread=_FITTED_SPREAD)
        variance, scale = found.variance(answers["moments"], scale=float(self.moments.scale))
        if not self.kind.compares:
            assumed = area_variance(value, n, m)
            prior = Scatter.around(1.0, spread=_SPREAD)
            return Scatter.seen(variance / assumed, scale=scale / assumed, prior=prior)
        apart = sum(area_variance(curve.area, n, m) for curve in curves)
        prior = Scatter(_ROOTS**2, np.full(_ROOTS.size, 1 / _ROOTS.size))
        seen = Scatter.seen(variance / apart, scale=scale / apart, prior=prior)
        # What is assumed is the variance of half the difference.
        return Scatter(seen.ratios * apart / 4 / difference_variance(0.5, n, m), seen.weights)


def counts_of(draw: RankingDraw) -> tuple[float, float]:
    """About how many negatives and positives there are, by the counts beside the value."""
    found = belief(draw)
    assert found is not None, "the default method looks at the counts"
    return 1 / found.per_negative, 1 / found.per_positive
