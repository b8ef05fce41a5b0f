"""Readings of a released ranking: AUC, average precision, the better of two models."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from heldout.arguments import visible
from heldout.arrays import Floats
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.intervals.areas import (
    Belief,
    Counted,
    Influence,
    Scatter,
    area_variance,
    belief,
    beliefs,
    cell_shares,
    difference_variance,
    influence_on_area,
    influence_on_difference,
    influence_on_precision,
    noise_interval,
    noise_reach,
    noisy_area,
    precision_variance,
    two_sided_p_value,
)
from heldout.intervals.measure import (
    Difference,
    Interval,
    Measure,
    Release,
    checked_level,
)
from heldout.intervals.readings import Curve
from heldout.intervals.tuned import (
    AREA_SPREAD,
    DIFFERENCE_DEVIATION,
    FURTHEST,
    MISPLACED,
    PRECISION_SPREAD,
    USUAL_AGREEMENT,
    USUAL_AREA,
)
from heldout.kernel.curves.heldout import HeldoutCurves, TableWithArea
from heldout.kernel.door import Answers, Booked, Drawn, Request, Staged, Step
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import Look
from heldout.kernel.noise.tables import NoisyTable, independent_noise
from heldout.kernel.ranking.mechanism import METHODS, RankingMechanism, RankSums
from heldout.kernel.ranking.statistic import (
    METRICS,
    InfluenceMoments,
    RankDifferences,
    RankingMetric,
    ScoreTable,
    ranking_metric,
)
from heldout.kernel.ranking.tuned import (
    EDGES_SHARE,
    LEAST_EPSILON,
    LEAST_PRECISION,
    LEVELS,
    SLOWLY,
)
from heldout.kernel.ranking.value_or_counts import ValueOrCounts, ValueOrTable
from heldout.kernel.statistic import Statistic
from heldout.questions.ranking.fitted_curve import fitted_curve

if TYPE_CHECKING:
    from heldout.questions.curves.release import CurvesRelease

# --- The symmetric binormal ROC curve of an AUC: one number becomes a curve ----------------------


_NORMAL: Final = NormalDist()
_EDGE: Final = 1e-12


def binormal_roc(auc: float, fpr: Any) -> Floats:
    """The true positive rate at each false positive rate: Phi(a + Phi^-1(fpr)).

    Both classes' scores are taken as normal with one variance, a = sqrt(2) Phi^-1(auc). Section 5
    of Boyd, Lantz and Page 2015. Arithmetic on a released number: free.

    >>> [round(float(rate), 3) for rate in binormal_roc(0.85, [0, 0.1, 0.5, 1])]
    [0.0, 0.573, 0.929, 1.0]
    """
    if not 0 <= auc <= 1:
        raise ArgumentError(f"auc must lie in [0, 1], got {auc}. Pass the clamped value.")
    rates = np.asarray(fpr, dtype=float)
    if np.any((rates < 0) | (rates > 1)):
        raise ArgumentError("fpr must lie in [0, 1], got a rate outside. Pass rates.")
    separation = 2**0.5 * _NORMAL.inv_cdf(min(max(auc, _EDGE), 1 - _EDGE))

    def rate(x: float) -> float:
        return x if x in (0, 1) else _NORMAL.cdf(separation + _NORMAL.inv_cdf(x))

    return np.array([rate(float(x)) for x in rates.ravel()]).reshape(rates.shape)


@dataclass(frozen=True)
class BinormalCurve:
    """A curve with its band; the band holds only as far as the binormal form does."""

    fpr: Any
    tpr: Any
    low: Any
    high: Any

    def svg(self) -> str:
        """Return the picture as SVG."""
        from heldout.drawing.chart import MUTED, Chart, Layer, Numbers, records

        band = records(x=self.fpr, low=self.low, high=self.high)
        chance = Layer("line", records(x=[0.0, 1.0], y=[0.0, 1.0]), color=MUTED)
        layers = [
            chance,
            Layer("area", band, y="low", y2="high", opacity=0.18),
            Layer("line", records(x=self.fpr, y=self.tpr)),
        ]
        chart = Chart(
            layers,
            x=Numbers("False positive rate"),
            y=Numbers("True positive rate"),
            title="Binormal ROC curve of the AUC",
        )
        return chart.svg(
            says="True positive rate against false positive rate if the scores of both classes "
            "were normal with one variance, with the band of the AUC's interval."
        )


def binormal_curve(
    auc: float, *, interval: tuple[float, float], points: int = 101
) -> BinormalCurve:
    """The curve of a released AUC, and the curves of its interval's two ends.

    The family is ordered: a larger area lies above everywhere, so the ends' curves bound the
    curves of all areas in between.

    >>> curve = binormal_curve(0.85, interval=(0.8, 0.9), points=3)
    >>> [round(float(rate), 2) for rate in (curve.low[1], curve.tpr[1], curve.high[1])]
    [0.88, 0.93, 0.97]
    """
    fpr = np.linspace(0.0, 1.0, points)
    low, high = interval
    return BinormalCurve(
        fpr, binormal_roc(auc, fpr), binormal_roc(low, fpr), binormal_roc(high, fpr)
    )


# --- How far the order of rows within a cell of the public grid can move a ranking metric --------
#
# On the grid rows of one cell are tied. `E` is the area of the exact scores, `A` that of the grid,
# `T` the share of pairs of a positive and a negative row that share a cell. A tied pair counts one
# half in `A` and 0, 1/2 or 1 in `E`, so `|E - A| <= T/2`. `T` is private. What is known of it:
#
# - from the released area alone: the pairs won are `A - T/2 >= 0` and those lost `1 - A - T/2 >=
#   0`, so `T/2 <= min(A, 1 - A)`;
# - from released curves: their bins are unions of cells, so `T` is at most the share of pairs that
#   share a bin;
# - from a release of `T` itself, `Session.grid_ties`, at a small price: nearly all there is to
#   know.
#
# Average precision stays within the band of the released curves, whatever the order within the
# cells: their width bounds how far the exact scores' can lie from the grid's.


NAME = "pairs that share a cell"


@dataclass(frozen=True)
class TieBound:
    """The exact scores' area, and average precision, are at most so far from the grid's."""

    auc: float
    average_precision: float | None
    level: float
    source: str

    def sentence(self) -> str:
        """For people, with what it was computed from.

        >>> print(TieBound(auc=0.0001, average_precision=None, level=0.95, source="the area"
        ... ).sentence())
        Scores were ranked on the public grid. The order of rows within a cell can move the AUC by
        at most 0.0001 (from the area, 95% confidence).
        """
        precision = self.average_precision
        more = "" if precision is None else f", average precision by at most {precision:.2g}"
        return (
            "Scores were ranked on the public grid. The order of rows within a cell can move the "
            f"AUC by at most {self.auc:.2g} (from {self.source}, {self.level * 100:g}% "
            f"confidence){more}."
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "auc": self.auc,
            "average_precision": self.average_precision,
            "level": self.level,
            "source": self.source,
        }


def largest_ties(area: Interval) -> float:
    """The largest T/2 that an area within these limits allows.

    >>> largest_ties((0.8, 0.9)), largest_ties((0.4, 0.7))
    (0.19999999999999996, 0.5)
    """
    low, high = area
    return 0.5 if low <= 0.5 <= high else max(min(low, 1 - low), min(high, 1 - high))


def bin_ties(
    low: Floats | Sequence[Sequence[float]], high: Floats | Sequence[Sequence[float]]
) -> float:
    """The largest share of pairs within a bin, from limits of the rates at the bins' inner edges.

    Row 0 of each is the false, row 1 the true positive rate, thresholds falling; the outer edges
    have the rates 0 and 1. The share of a class between two edges is at most the upper limit at
    the one minus the lower limit at the other.

    >>> bin_ties([[0.25], [0.75]], [[0.25], [0.75]])  # 1/4 * 3/4 + 3/4 * 1/4
    0.375
    """
    shares = []
    for least, most in zip(low, high, strict=True):
        ends = np.append(np.asarray(most, dtype=float), 1.0)
        shares.append(np.clip(ends - np.append(0.0, np.asarray(least, dtype=float)), 0.0, 1.0))
    return min(float(shares[0] @ shares[1]), 1.0)


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)


class RankingRelease(Release):
    """A noisy ranking metric, with the noisy class counts that its intervals need.

    Where a class is small it is read off noisy counts by score.
    """

    _others: tuple[Look, ...] = ()
    _before: Mapping[str, Any] | None = None
    """The measure as it was printed, if a stored answer was read off counts by score."""

    def __init__(self, drawn: Drawn) -> None:
        stages, values = drawn.request.reading, drawn.values
        answers: dict[str, Any] = dict(values) if isinstance(values, Mapping) else {"value": values}
        first = answers["value"]
        self._as_drawn: Counted | ValueOrTable = first
        self.draw: Counted | None
        """The value as drawn, with the law of its noise; None if counts by score were drawn."""
        if isinstance(first, ValueOrTable):
            self.draw, self._others = first.value, first.unchosen
            answers["value"] = first.value
        else:
            assert isinstance(first, Counted)
            self.draw = first
        self._stages, self._answers = stages, answers
        super().__init__(drawn)

    @property
    def _draw(self) -> Counted:
        assert self.draw is not None, "counts by score were drawn"
        return self.draw

    @property
    def is_counted(self) -> bool:
        """Return whether it was read off counts by score, because a class seemed small."""
        return self.draw is None

    @cached_property
    def _table(self) -> "CurvesRelease":
        """The noisy counts by score, as curves are read off them."""
        from heldout.questions.curves.release import CurvesRelease

        drawn = self._as_drawn
        assert isinstance(drawn, ValueOrTable)
        mechanism = drawn.mechanism.counted(drawn.first_counts, drawn.second_counts)
        statistic = ScoreTable(score_range=drawn.mechanism.score_range)
        asked = Request("curves", statistic, mechanism, {})
        return CurvesRelease(replace(self._drawn, request=asked, values=self._counts))

    @property
    def _counts(self) -> TableWithArea:
        drawn = self._as_drawn
        assert isinstance(drawn, ValueOrTable)
        assert drawn.table is not None
        return drawn.table

    @classmethod
    def read_together(cls, releases: Sequence[Self]) -> None:
        """Draw the rows behind all that are read off counts by score."""
        from heldout.questions.curves.release import CurvesRelease

        CurvesRelease.read_together(
            [one._table for one in releases if one.is_counted and one._before is None]
        )

    def _counted(self, name: str) -> Measure:
        """Return the mean of two readings of the same counts, which err in opposite ways.

        One is that of curves, or where a class hardly shows, that of the counts as they are, none
        below zero: both lean to one half. The other is a binormal curve, bent where the counts say
        so: it leans to what most models are like, and says nothing of the average precision of a
        class that hardly shows. Intervals are those of the curve, and hold the mean: the further
        the two lie apart, the more is belief, and the wider they are. An average precision that
        would hardly ever stand out of the noise is never shown: public facts decide that, not luck.
        """
        table, metric = self._table, self._as_drawn.mechanism.metric
        read = table.auc if metric == "auc" else table.average_precision
        seen = table.roc.is_fitted
        value = read.value if seen else self._of_counts()
        between = self._counts.values is None and self._counts.tied_scales is None
        if between and (seen or metric == "auc"):
            value = (value + self._of_binormal()) / 2

        def ends(level: float, noise: bool) -> Interval:
            several = [(value, value), read.noise_interval(level)]
            if not noise:
                several.append(read.interval(level))
            return min(low for low, _ in several), max(high for _, high in several)

        def reach(level: float) -> float:
            if metric != "auc" and self._visible < LEAST_PRECISION:
                return 1.0
            low, high = ends(level, True)
            return max(high - value, value - low)

        return Measure.read(
            value, ends, name=name, terms=self.terms, share=float, reach=cache(reach)
        )

    @property
    def _visible(self) -> float:
        """Return how many rows stand out of the counts' noise, as so many do at epsilon 1 under
        replace-one; of rows whose number is private, by the noisy counts."""
        mechanism, noisy = self._as_drawn.mechanism, self._counts
        rows: float | None = noisy.rows
        if rows is None:
            rows = max(float(noisy.negatives.sum() + noisy.positives.sum()), 0.0)
        return 2 * rows * float(mechanism.epsilon) / mechanism.protection.rows_moved

    @cached_property
    def _between_cuts(self) -> NoisyTable:
        """Return the counts between the cuts, each with the crowded cell that is in it."""
        fine = self._counts
        edges = fine.edges if fine.cuts is None else fine.cuts
        first = np.searchsorted(fine.edges, edges[:-1])
        most = int(np.diff(np.append(first, fine.bins)).max())
        scale = Fraction(float(fine.noise.scales.max()) * math.sqrt(most)).limit_denominator(1000)
        return NoisyTable(
            negatives=np.add.reduceat(fine.negatives, first),
            positives=np.add.reduceat(fine.positives, first),
            noise=independent_noise(scale, bins=len(edges) - 1),
            edges=edges,
            rows=fine.rows,
        )

    def _of_binormal(self) -> float:
        """Return what a bent binormal curve makes of the counts."""
        curve = fitted_curve(self._between_cuts, score_range=self._table.score_range)
        if self._as_drawn.mechanism.metric == "auc":
            return curve.area
        heights = curve.precision()
        heights[0] = heights[1]  # where nothing is called positive yet
        return float(np.trapezoid(heights, curve.tpr))

    def _of_counts(self) -> float:
        coarse = self._between_cuts
        negatives, positives = (
            np.maximum(np.asarray(counts, dtype=float), 0.0)
            for counts in (coarse.negatives, coarse.positives)
        )
        n, m = float(positives.sum()), float(negatives.sum())
        if n == 0 or m == 0:
            return 0.5
        if self._as_drawn.mechanism.metric == "auc":
            return float(positives @ (np.cumsum(negatives) - negatives / 2)) / (n * m)
        hits, alarms = np.cumsum(positives[::-1]), np.cumsum(negatives[::-1])
        return float(positives[::-1] @ (hits / np.maximum(hits + alarms, 1e-9))) / n

    def stored_readings(self) -> dict[str, Any] | None:
        """Return the value and its intervals where they were read off counts by score."""
        from heldout.questions.curves.readings import stored_measure

        return stored_measure(self.headline) if self.is_counted else None

    def as_read(self, readings: Mapping[str, Any]) -> Self:
        from heldout.questions.curves.readings import StoredMeasure

        if not self.is_counted:
            raise ValueError("readings")
        _ = StoredMeasure(readings)
        other = copy.copy(self)
        other.__dict__.pop("measures", None)
        other._before = readings
        return other

    def informed(self, beside: Mapping[str, Release]) -> Self:
        """Return the same release, with intervals that use class counts released beside it."""
        counts = [look for release in beside.values() for look in release.class_counts()]
        if self.is_counted:
            return self
        informed = copy.copy(self)
        informed._others = (*self._others, *counts)
        for name in ("_beliefs", "measures"):  # without the counts
            informed.__dict__.pop(name, None)
        return informed

    @cached_property
    def measures(self) -> dict[str, Measure]:
        name = ranking_metric(self._as_drawn.mechanism.metric).words
        if self._before is not None:
            from heldout.questions.curves.readings import StoredMeasure

            stored = StoredMeasure(self._before)
            return {name: stored.shown(name, self.terms, lambda: self._counted(name))}
        if self.is_counted:
            return {name: self._counted(name)}
        before, given = self._beliefs
        return {
            name: noisy_area(self._draw, name=name, terms=self.terms, known=given, shown=before)
        }

    @cached_property
    def _beliefs(self) -> tuple[Belief | None, Belief | None]:
        """Return what is believed of the classes, and the same given that the number is shown."""
        draw, read = self._draw, self._stages
        scatter = Scatter.assumed() if read is None else read.scatter(self._answers)
        return beliefs(draw, self._others, scatter=scatter)

    def surprise(self, name: str, value: float) -> float:
        if self.is_counted:
            return self.measures[name].surprise(value)
        return two_sided_p_value(self._draw, null=value, known=self._beliefs[1])

    def _noisy(self) -> dict[str, Any]:
        beside = {n: answer.tolist() for n, answer in self._answers.items() if n != "value"}
        return {**self._as_drawn.as_dict(), **beside}

    @property
    def on_grid(self) -> bool:
        """Return whether scores were rounded to the public grid before they were ranked."""
        return bool(self._drawn.request.parameters.get("scores") == "grid")


class AucRelease(RankingRelease):
    """A private area under the ROC curve."""

    def tie_bound(self, level: float = 0.95) -> "TieBound | None":
        """Return how far the order of rows within a cell can move the area, at most. Free.

        From the area alone: pairs cannot be tied that are won or lost. `Session.grid_ties` says
        far more for a small price. None where the exact scores were ranked.
        """

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


class CompareRelease(Difference, RankingRelease):
    """The second model's AUC or average precision minus the first one's, on the same rows."""

    pays_more: ClassVar[str] = "Pay more to see it."
    note: ClassVar[str] = (
        "Upright line: no difference; to its right the model named first ranks better."
    )

    @property
    def compared(self) -> str:
        return ranking_metric(str(self._drawn.request.parameters.get("measure", "auc"))).words

    @property
    def phrases(self) -> tuple[str, str, str]:
        return "ranks better", "rank better", "ranks better than"

    @property
    def more_is_better(self) -> bool:
        return True

    @property
    def measures(self) -> dict[str, Measure]:
        half, word = super().measures["difference"], self.compared
        name = visible(f"{word} of {self.rival} minus {word} of {self.score}")
        return {
            name: Measure.of(
                half,
                lambda value: 2 * value - 1,
                name=name,
                terms=self.terms,
                share=lambda value: (1 + value) / 2,
                reach=half.reach,
            )
        }

    @property
    def p_value(self) -> float:
        """Return how often so large a difference would be released if the models were equal.

        Two-sided, for the population, from the released numbers alone: free. It takes sampling
        error and noise together.
        """
        return two_sided_p_value(self._draw, null=0.5, known=self._beliefs[1])


class TiesRelease(RankingRelease):
    """The noisy share of pairs that share a cell of the public grid."""

    @property
    def measures(self) -> dict[str, Measure]:
        draw = self._draw

        def ends(level: float, noise: bool) -> Interval:
            if noise:
                return noise_interval(draw, level=level)
            # Half of the error for the noise, half for the sample, whose variance is at most
            # that of one term times 1/n + 1/m.
            half = (1 + level) / 2
            known = belief(draw)
            if known is None:
                return 0.0, 1.0
            low, high = noise_interval(draw, level=half)
            reach = _normal_quantile(half)
            rows = known.per_positive + known.per_negative
            spread = [reach * math.sqrt(max(end * (1 - end), 0.0) * rows) for end in (low, high)]
            return max(0.0, low - spread[0]), min(1.0, high + spread[1])

        def reach(level: float) -> float:
            return noise_reach(draw, level=level, known=self._beliefs[0])

        return {
            NAME: Measure.read(
                draw.value, ends, name=NAME, terms=self.terms, share=float, reach=cache(reach)
            )
        }

    def plotted(self) -> dict[str, Measure]:
        return {}

    def tie_bound(self, level: float = 0.95) -> TieBound:
        """One-sided, so with all of the error on the upper side. Free."""
        level = checked_level(level)
        two_sided = 2 * level - 1 if level > 0.5 else level
        upper = self.noise_interval(two_sided)[1]
        return TieBound(upper / 2, None, level, "a release of the tied pairs")


INFLUENCES: Final[Mapping[str, Callable[..., Influence]]] = {
    "auc": influence_on_area,
    "average-precision": influence_on_precision,
    "auc-difference": influence_on_difference,
}
_ROOTS: Final = np.linspace(*DIFFERENCE_DEVIATION, 24)
_SMALLEST: Final = InfluenceMoments(cuts=(), negatives=(0,), positives=(0,))


@dataclass(frozen=True, kw_only=True)
class RankingStages:
    """Plans how a ranking metric, its tables and moments are bought for one epsilon. All public.

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
    counts: tuple[int, ...] | None = None
    """Grid points of declared scores, if counts by score may be drawn where a class is small; None:
    the value is drawn whatever the classes are."""
    outright: bool = True
    """Whether few public rows are counted without a look at the classes; by older rules not."""
    grows: bool = True
    """Whether what is spent beside the value grows from nothing. By older rules it began at once,
    so that more rows or more epsilon could make the value's noise larger."""
    compared_grows: bool = True
    """The same where two models are compared."""
    compared_slowly: bool = True
    """Whether it grows slowly at first there, as few rows say little of how far models agree."""

    @cached_property
    def worthwhile(self) -> bool:
        """Return whether there are enough rows to see their influences; by public facts alone."""
        if self.alone or self.method != METHODS[0] or self.delta is not None:
            return False
        return self.epsilon > LEAST_EPSILON and self.visible > self.kind.least_visible

    @property
    def visible(self) -> Fraction:
        """Rows times epsilon, halved with each row more that neighbours differ in."""
        return self.expected_rows * self.epsilon * 2 / self.protection.rows_moved

    @cached_property
    def grown(self) -> Fraction:
        """Return which part of their shares the tables and the moments have, up to 1.

        From where they are first worth it the value keeps the epsilon that it had there and at
        least a fifth of what is more, and they get the rest: so its noise never grows with rows or
        epsilon. (The fifth is for average precision, which moves by ln(n)/n and not by 1/n.) In
        comparisons they get less than the rest at first.
        """
        if not (self.compared_grows if self.kind.compares else self.grows):
            return Fraction(1)
        begun = max(self.kind.least_visible / self.visible, LEAST_EPSILON / self.epsilon)
        power = SLOWLY if self.kind.compares and self.compared_slowly else 1
        more = Fraction(4, 5) * (1 - Fraction(begun)) ** power
        return min(Fraction(1), more / self._whole_share)

    @property
    def _whole_share(self) -> Fraction:
        table, moments = self.kind.shares
        return table * len(self.models) + moments

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """Of epsilon, for each table and for the moments."""
        table, moments = self.kind.shares
        return table * self.grown, moments * self.grown

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
    def value(self) -> RankingMechanism | ValueOrCounts | RankSums:
        """The noise of the value, with what tables and moments leave of epsilon."""
        spent = self._whole_share * self.grown if self.worthwhile else Fraction(0)
        if isinstance(self.statistic, RankDifferences):
            assert self.rows is not None
            return RankSums(
                epsilon=self.epsilon * (1 - spent), protection=self.protection, rows=self.rows
            )
        if self.counts is not None:
            return ValueOrCounts(
                metric=self.metric,
                epsilon=self.epsilon * (1 - spent),
                protection=self.protection,
                points=ScoreTable(score_range=self.score_range).points,
                rows=self.rows,
                smaller_class=self.smaller_class,
                score_range=self.score_range,
                values=self.counts,
                outright=self.outright,
            )
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
            epsilon=self.epsilon * self.shares[0],
            protection=self.protection,
            points=ScoreTable(score_range=self.score_range).points,
            rows=self.rows,
            expected_rows=self.expected_rows,
            levels=LEVELS,
            area_share=Fraction(0),
            edges_share=EDGES_SHARE,
        )

    @cached_property
    def moments(self) -> DiscreteLaplace | None:
        share = self.shares[1]
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

    def _usual_scale(self, n: float, m: float) -> float:
        """Return the scale of the noise of a variance, where two models rank as most do."""
        assert self.moments is not None
        area = USUAL_AREA
        spreads = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        bound = FURTHEST * max(
            math.sqrt(2 * spread) / count for spread, count in zip(spreads, (n, m), strict=True)
        )
        usual = Influence(cuts=(), negatives=(), positives=(), counts=(m, n), bound=bound)
        return usual.variance((0, 0, 0), scale=float(self.moments.scale))[1]

    # --- what the answers say ------------------------------------------------------------------

    def curves(self, answers: Answers) -> list[Curve]:
        return [
            fitted_curve(answers[f"table of {model}"], score_range=self.ends(model))
            for model in self.models
        ]

    def influence(self, answers: Answers, curves: list[Curve] | None = None) -> Influence:
        """Each row's part in the sampling error, by the tables or the curves fitted to them."""
        fitted = self.curves(answers) if curves is None else curves
        return INFLUENCES[self.metric](*fitted, counts=counts_of(answers["value"]))

    def scatter(self, answers: Answers) -> Scatter:
        """Return what the answers say of the sampling variance, in units of the assumed one.

        The value alone, which a forecast has, stands for what is usual: formulas that hold on
        most scores, and models that agree as most do.
        """
        if len(answers) == 1:
            m, n = counts_of(answers["value"])
            if not self.kind.compares:
                return Scatter.around(1.0, spread=0)
            apart = 2 * area_variance(USUAL_AREA, n, m)
            return self._compared(USUAL_AGREEMENT * apart, self._usual_scale(n, m), apart, n, m)
        # Tables that had little epsilon place rows badly: what they say counts for less.
        grown = float(self.grown)
        curves = self.curves(answers)
        scatters = self.influence(answers, curves)
        m, n = scatters.counts
        value = min(max(answers["value"].value, 0.01), 0.99)
        if self.moments is None:
            typical = scatters.typical_variance(cell_shares(curves[0], scatters.cuts))
            ratio = typical / precision_variance(value, n, m)
            return Scatter.around(min(max(ratio, 0.2), 5.0) ** grown, spread=PRECISION_SPREAD)
        variance, scale = scatters.variance(answers["moments"], scale=float(self.moments.scale))
        if not self.kind.compares:
            assumed = area_variance(value, n, m)
            prior = Scatter.around(1.0, spread=AREA_SPREAD * math.sqrt(grown))
            more = MISPLACED * (1 / grown - 1)
            return Scatter.seen(variance / assumed, scale=scale / assumed + more, prior=prior)
        apart = sum(area_variance(curve.area, n, m) for curve in curves)
        return self._compared(variance, scale, apart, n, m)

    def _compared(self, variance: float, scale: float, apart: float, n: float, m: float) -> Scatter:
        """Return what a noisy variance of the difference says, beside that of areas `apart`."""
        prior = Scatter(_ROOTS**2, np.full(_ROOTS.size, 1 / _ROOTS.size))
        more = MISPLACED * (1 / float(self.grown) - 1)
        seen = Scatter.seen(variance / apart, scale=scale / apart + more, prior=prior)
        # What is assumed is the variance of half the difference.
        return Scatter(seen.ratios * apart / 4 / difference_variance(0.5, n, m), seen.weights)


def counts_of(draw: Counted | ValueOrTable) -> tuple[float, float]:
    """About how many negatives and positives there are, by the counts beside the value."""
    if isinstance(draw, ValueOrTable):
        if draw.value is not None:
            return counts_of(draw.value)
        assert draw.table is not None
        sums = (float(np.sum(part)) for part in (draw.table.negatives, draw.table.positives))
        m, n = (max(total, 1.0) for total in sums)
        return m, n
    known = belief(draw)
    assert known is not None, "the default method looks at the counts"
    return 1 / known.per_negative, 1 / known.per_positive
