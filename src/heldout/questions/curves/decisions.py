"""Decisions by curves: net benefit, costs, gains, thresholds. All of it is free."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments import as_number, shown
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.intervals.readings import CELLS, ConfusionReadings, Curve, Metric, range_of_costs
from heldout.kernel.curves.heldout import NamedCounts
from heldout.kernel.noise.tables import NoisyTable, laplace_deviation
from heldout.questions.curves.bands import Rectangles, Region, interval_of
from heldout.questions.curves.posterior import Posterior
from heldout.questions.curves.readings import CalibrationCurve, check_probabilities

__all__ = [
    "BetweenEdges",
    "CostCurve",
    "CurveConfusion",
    "DecisionCurve",
    "FromDraws",
    "Gain",
    "Named",
    "ReadDecisions",
    "ends_of",
]


# The confusion matrix at any threshold, read off a released table.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CurveConfusion(ConfusionReadings):
    """Counts and ratios where rows with score >= threshold are called positive. Free."""

    threshold: float
    terms: str
    rows: int | None
    """Where their number is public."""

    @property
    @abstractmethod
    def cells(self) -> Floats:
        """Estimates of the four counts, in the order of `CELLS`."""

    @abstractmethod
    def _seen(self) -> list[tuple[Floats, Floats]]:
        """Cells that may be the true ones but for noise, each with the noise's covariance."""

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        top = np.array(metric.numerator, dtype=float)
        rest = np.array(metric.denominator, dtype=float) - top
        bounds = []
        for cells, covariance in self._seen():
            filled = np.maximum(cells, 0) + np.sqrt(np.diag(covariance))
            bounds.append(
                ratio_bounds(
                    float(top @ cells),
                    float(rest @ cells),
                    top_variance=float(top @ covariance @ top),
                    rest_variance=float(rest @ covariance @ rest),
                    covariance=float(top @ covariance @ rest),
                    rows=0.0 if noise_only else _trials(top, rest, filled),
                    quantile=single_quantile(level),
                )
            )
        return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))

    def measure(self, metric: Metric) -> Measure:
        """A ratio of the counts."""
        cells = self.cells
        top, whole = float(metric.numerator @ cells), float(metric.denominator @ cells)
        return Measure.read(
            top / whole if whole > 0 else 0.5,
            lambda level, noise: self._ratio_interval(metric, level, noise_only=noise),
            name=metric.name,
            terms=self.terms,
            share=float,
        )

    def _count(self, index: int) -> Measure:
        most = math.inf if self.rows is None else float(self.rows)

        # A count speaks of these rows alone, so both intervals are that of the noise.
        return Measure.read(
            float(np.clip(round(self.cells[index]), 0, most)),
            lambda level, _: self._count_interval(index, level),
            name=CELLS[index],
            terms=self.terms,
            whole=True,
        )

    def _count_interval(self, index: int, level: float) -> Interval:
        most = math.inf if self.rows is None else float(self.rows)
        ends: list[float] = []
        for cells, covariance in self._seen():
            half = single_quantile(level) * math.sqrt(covariance[index, index]) + 0.5
            ends += [cells[index] - half, cells[index] + half]
        return float(np.clip(min(ends), 0, most)), float(np.clip(max(ends), 0, most))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        measures = {name: measure.as_dict(level) for name, measure in self.measures.items()}
        return {"threshold": self.threshold, "measures": measures}


def _trials(top: Floats, rest: Floats, cells: Floats) -> float:
    """Of how many rows a share would have the sampling variance of top/(top + rest).

    All of the denominator's where rows count for 0 or 1; fewer where most count for a part, as in
    a net benefit.
    """
    whole = float((top + rest) @ cells)
    share = float(top @ cells) / max(whole, 1e-300)
    if not 0 < share < 1:
        return whole * float(max(top.max(), rest.max()))
    spread = float(cells @ (top - share * (top + rest)) ** 2)
    return spread / (share * (1 - share))


def _cells_at(curve: Curve, at: float) -> Floats:
    false, true = curve.at(at)
    n, m = curve.positives, curve.negatives
    return np.array([n * true, m * false, n * (1 - true), m * (1 - false)])


def ends_of(measures: Mapping[str, Measure], level: float) -> dict[str, Any]:
    """Return intervals by name, to nine digits: the last ones differ between machines."""
    return {
        name: {
            kind: [round(float(end), 9) for end in ends]
            for kind, ends in (
                ("interval", measure.interval(level)),
                ("noise_interval", measure.noise_interval(level)),
            )
        }
        for name, measure in measures.items()
    }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FromDraws(CurveConfusion):
    """At any threshold, by the draws of the rows that the release leaves possible."""

    grid_point: int
    posterior: Posterior = field(repr=False)
    bare: CurveConfusion = field(repr=False)
    """The same by the counts at the table's edges, with nothing assumed between them."""

    @cached_property
    def _rows(self) -> Floats:
        return self._drawn(noise_only=True)

    @cached_property
    def _population(self) -> Floats:
        return self._drawn(noise_only=False)

    def _drawn(self, *, noise_only: bool) -> Floats:
        """The four counts of each draw, in the order of `CELLS`."""
        draws = self.posterior.draws(noise_only=noise_only)
        (false, true), (m, n) = self.posterior.above(self.grid_point, draws), draws.sizes
        return np.stack([true, false, np.maximum(n - true, 0.0), np.maximum(m - false, 0.0)])

    @property
    def cells(self) -> Floats:
        result: Floats = self._rows.mean(axis=1)
        return result

    def _seen(self) -> list[tuple[Floats, Floats]]:
        return [(self.cells, np.cov(self._rows))]

    def _ratio_interval(self, metric: Metric, level: float, *, noise_only: bool) -> Interval:
        drawn = self._rows if noise_only else self._population
        top, whole = np.array(metric.numerator) @ drawn, np.array(metric.denominator) @ drawn
        ratios = np.divide(top, whole, out=np.full_like(whole, 0.5), where=whole > 0.5)
        return interval_of(ratios, level)

    def _count_interval(self, index: int, level: float) -> Interval:
        most = math.inf if self.rows is None else float(self.rows)
        low, high = interval_of(self._rows[index], level, high=most)
        return max(math.floor(low), 0), min(math.ceil(high), most)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        bare = ends_of(self.bare.measures, level)
        return {**super().as_dict(level), "nothing_assumed": bare}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Named(CurveConfusion):
    """At a threshold that was named beforehand: counts of their own, and the table's, joined.

    Both are unbiased with noise of a known variance and independent, so that the mean by their
    precisions has the least variance. The rows between two named thresholds are joined so, class
    by class.
    """

    named: NamedCounts = field(repr=False)
    table: NoisyTable = field(repr=False)
    edge: int

    @cached_property
    def _joined(self) -> tuple[Floats, Floats]:
        """Counts above and below the threshold by class, and their variances."""
        ends = np.searchsorted(self.table.edges, [0, *self.named.edges])
        fine = np.add.reduceat(np.stack([self.table.negatives, self.table.positives]), ends, axis=1)
        own = laplace_deviation(self.named.scale) ** 2 * (2 if self.named.tied else 1)
        sums = np.add.reduceat(self.table.noise.bin_deviation**2, ends, axis=1)
        weight = sums / (own + sums)
        counts = weight * self.named.counts + (1 - weight) * fine
        variances = np.broadcast_to(own * weight, counts.shape)
        split = int(np.searchsorted(self.named.edges, self.edge)) + 1
        parts = [(table[:, split:].sum(axis=1), table[:, :split].sum(axis=1))
                 for table in (counts, variances)]  # fmt: skip
        order = [(above[1], above[0], below[1], below[0]) for above, below in parts]
        return np.array(order[0]), np.array(order[1])

    @cached_property
    def _balanced(self) -> tuple[Floats, Floats]:
        """The same once what is missing of a public number of rows is shared among the cells."""
        cells, variances = self._joined
        covariance = np.diag(variances)
        if self.rows is not None:
            part = variances / variances.sum()
            cells = cells + part * (self.rows - cells.sum())
            covariance = covariance - np.outer(part, variances)
        return cells, covariance

    @property
    def cells(self) -> Floats:
        return np.maximum(self._balanced[0], 0.0)

    def _seen(self) -> list[tuple[Floats, Floats]]:
        return [self._balanced]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BetweenEdges(CurveConfusion):
    """By the counts at the edges around the threshold: what the papers' tables tell, and any other.

    A threshold between two edges has counts between theirs, and nothing more is known: intervals
    hold whatever the rows between the edges are.
    """

    at: float
    curve: Curve = field(repr=False)
    table: NoisyTable = field(repr=False)
    edges: tuple[int, int]
    """The table's edges at or below and at or above the threshold."""

    @property
    def cells(self) -> Floats:
        return _cells_at(self.curve, self.at)

    def _seen(self) -> list[tuple[Floats, Floats]]:
        # Every metric here rises or falls with each count, so the ends lie at the corners.
        return [self._corner(one, two) for one in set(self.edges) for two in set(self.edges)]

    def _corner(self, positive_edge: int, negative_edge: int) -> tuple[Floats, Floats]:
        """Noisy cells and their variances, with the edges that each class is cut at."""
        table, cells, variances = self.table, np.zeros(4), np.zeros(4)
        for row, edge, (above, below) in (
            (0, negative_edge, (1, 3)),
            (1, positive_edge, (0, 2)),
        ):
            counts = table.positives if row else table.negatives
            deviation = table.noise.above_deviation[row]
            cells[above], cells[below] = counts[edge:].sum(), counts[:edge].sum()
            variances[above] = deviation[edge] ** 2
            if table.noise.scale is not None:
                variances[below] = deviation[0] ** 2 - deviation[edge] ** 2
            else:
                variances[above] *= 2
                variances[below] = 2 * (deviation[0] + deviation[edge]) ** 2
        return cells, np.diag(np.maximum(variances, 0.0))


_GRID: Final = np.linspace(0.0, 1.0, 513)
_ODDS: Final = 7.0  # scores beyond these log odds count as these
_STEPS: Final = 30
_NEAR: Final = 1e-12  # steps of a fit that are done with
_FURTHEST: Final = 100.0  # of a slope's or intercept's interval: beyond that it says nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class DecisionCurve:
    """Net benefit by threshold probability, beside treating everybody; treating nobody has 0."""

    thresholds: Floats
    net_benefit: tuple[Measure, ...]
    treat_all: tuple[Measure, ...]

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "thresholds": self.thresholds.tolist(),
            "net_benefit": [measure.as_dict(level) for measure in self.net_benefit],
            "treat_all": [measure.as_dict(level) for measure in self.treat_all],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CostCurve:
    """The least expected cost by the share of it that missed positives stand for.

    `weight` is prevalence times the cost of a miss, over that plus the same of a false alarm; costs
    are shares of the most that can be lost (Drummond and Holte 2006).
    """

    weight: Floats
    cost: Floats
    low: Floats
    high: Floats
    thresholds: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Gain:
    """The share of all positives that is found among the share of rows that is called."""

    called: Floats
    recall: Floats
    thresholds: Floats


class ReadDecisions:
    """Readings of a released curve; `CurvesRelease` has them."""

    score_range: tuple[float, float]

    @property
    @abstractmethod
    def _curve(self) -> Curve: ...

    @property
    @abstractmethod
    def _posterior(self) -> Posterior | None: ...

    @property
    @abstractmethod
    def auc(self) -> Measure:
        """The area under the curve."""

    @property
    @abstractmethod
    def calibration(self) -> CalibrationCurve:
        """The reliability diagram."""

    @abstractmethod
    def confusion(self, threshold: float = 0.5) -> CurveConfusion:
        """The confusion matrix at a threshold."""

    @abstractmethod
    def _region(self, level: float, noise_only: bool) -> Region | Rectangles: ...

    @abstractmethod
    def _measure(
        self,
        name: str,
        value: float,
        interval: Callable[[float, bool], Interval],
        share: Callable[[float], float] = float,
    ) -> Measure: ...

    @abstractmethod
    def _as_printed(self, name: str, read: Callable[[], Measure]) -> Measure: ...

    @abstractmethod
    def _scores(self, images: Floats) -> Floats: ...

    @property
    @abstractmethod
    def _grid_step(self) -> float: ...

    def surprise(self, name: str, value: float) -> float:
        """Return how often so far a number would be released, by its interval."""
        measure: Measure = self.measures[name]  # type: ignore[attr-defined]
        return measure.surprise(value)

    def threshold_for(
        self,
        *,
        recall: float | None = None,
        precision: float | None = None,
        specificity: float | None = None,
        fpr: float | None = None,
    ) -> float:
        """The threshold at which this curve reaches a recall, a precision, a specificity or an FPR.

        The highest with this recall; the lowest with this specificity or precision. What it is
        worth says `confusion(threshold)`, with intervals.
        """
        asked = {"recall": recall, "precision": precision, "specificity": specificity, "fpr": fpr}
        given = {name: value for name, value in asked.items() if value is not None}
        if len(given) != 1:
            raise ArgumentError(
                "Pass one of recall=, precision=, specificity= and fpr=, such as recall=0.9."
            )
        ((name, value),) = given.items()
        if not 0 <= value <= 1:
            raise ArgumentError(f"{name} must lie in [0, 1], got {value!r}.")
        if name == "fpr":
            name, value = "specificity", 1 - value
        curve, (low, high) = self._curve, self.score_range
        # Rows of a heap are called all or none: there is nothing between the ends of its step.
        heap = np.append(-np.diff(curve.thresholds) < 0.5 * self._grid_step, False)
        if name == "recall":
            place = float(np.interp(value, curve.tpr, np.arange(len(curve.tpr))))
            if heap[int(place)] and place > int(place):
                place = float(int(place) + 2)  # below its cell
        elif name == "specificity":
            last = int(np.searchsorted(curve.fpr, 1 - value, side="right")) - 1
            step = curve.fpr[min(last + 1, len(curve.fpr) - 1)] - curve.fpr[last]
            part = min((1 - value - curve.fpr[last]) / step, 1.0) if step > 0 else 0.0
            part = 0.0 if heap[last] and part < 1 else part
            place = last + float(part)
        else:
            # Where nothing is called positive there is no alarm to be right.
            alarms = curve.positives * curve.tpr + curve.negatives * curve.fpr >= 0.5
            right = curve.precision()
            reached = np.flatnonzero(alarms & (right >= value))
            if not len(reached):
                best = float(right[alarms].max()) if alarms.any() else 0.0
                raise ArgumentError(
                    f"precision must be at most {math.floor(best * 1e4) / 1e4:g} here, got "
                    f"{value:g}: no threshold of this curve reaches it. Ask for less."
                )
            place = float(reached[-1])
        threshold = np.interp(place, np.arange(len(curve.thresholds)), curve.thresholds)
        inside = float(min(max(threshold, low), high))
        return float(self._scores(np.array([inside]))[0])

    @property
    def gini(self) -> Measure:
        """The Gini coefficient, 2 AUC - 1."""
        return _moved(self.auc, "Gini coefficient", lambda value: 2 * value - 1)

    @property
    def gain(self) -> Gain:
        """Recall by the share of rows that is called positive."""
        curve = self._curve
        called = curve.prevalence * curve.tpr + (1 - curve.prevalence) * curve.fpr
        return Gain(called=called, recall=curve.tpr, thresholds=self._scores(curve.thresholds))

    def partial_auc(self, *, fpr: tuple[float, float]) -> Measure:
        """The mean true positive rate over a range of false positive rates: area over its width."""
        low, high = (as_number(end) for end in fpr) if len(fpr) == 2 else (1.0, 0.0)
        if not 0 <= low < high <= 1:
            raise ArgumentError(f"fpr must be two rates, the lower first, got {shown(fpr)}.")
        places = np.unique(np.concatenate([_GRID[(low < _GRID) & (high > _GRID)], [low, high]]))
        rates = np.interp(places, self._curve.fpr, self._curve.tpr)

        def mean(heights: Floats) -> float:
            return float(np.trapezoid(heights, places) / (high - low))

        def interval(level: float, noise_only: bool) -> Interval:
            if self._posterior is not None:
                return interval_of(
                    self._posterior.partial_area(places, noise_only=noise_only), level
                )
            band = self._region(level, noise_only).roc(places, rates)
            # A curve rises, so at each step it lies between the bounds of the step's two ends.
            steps = np.diff(places) / (high - low)
            return float(band.low[:-1] @ steps), float(band.high[1:] @ steps)

        name = f"mean true positive rate at false positive rates {low:g} to {high:g}"
        return self._measure(name, mean(rates), interval)

    # --- decisions at a threshold ----------------------------------------------------------------

    def net_benefit(self, threshold: float) -> Measure:
        """True positives less false ones at the odds of the threshold, a row (Vickers 2006).

        The threshold is the probability at which a decision is a toss-up.
        """
        at = self._probability(threshold)
        metric = Metric("net benefit", (1, 0, at, at), (1, 1, 1, 1), "", "")
        return _benefit(self.confusion(at).measure(metric), f"net benefit at {at:g}", at)

    def treat_all(self, threshold: float) -> Measure:
        """The net benefit of calling everybody positive."""
        at = self._probability(threshold)
        metric = Metric("treat all", (1, 0, 1, 0), (1, 1, 1, 1), "", "")
        return _benefit(self.confusion(at).measure(metric), f"treating all at {at:g}", at)

    def decision_curve(self, thresholds: Sequence[float] | None = None) -> DecisionCurve:
        """Net benefit with intervals at several thresholds; scores must be probabilities."""
        check_probabilities(self.score_range)
        low, high = self.score_range
        usual = [
            threshold
            for threshold in np.linspace(0.05, 0.95, 19).tolist()
            if low < threshold < high
        ]
        chosen = (
            usual
            if thresholds is None
            else [self._probability(threshold) for threshold in thresholds]
        )
        return DecisionCurve(
            thresholds=np.array(chosen),
            net_benefit=tuple(self.net_benefit(threshold) for threshold in chosen),
            treat_all=tuple(self.treat_all(threshold) for threshold in chosen),
        )

    def _probability(self, threshold: float) -> float:
        check_probabilities(self.score_range)
        number = as_number(threshold)
        if not (0 < number < 1 and self.score_range[0] <= number <= self.score_range[1]):
            raise ArgumentError(
                f"threshold must be a probability within the scores' range, got {shown(threshold)}."
            )
        return number

    def cost(
        self, threshold: float, *, false_positive: float = 1, false_negative: float = 1
    ) -> Measure:
        """Return what wrong calls cost per row on average, each kind at its own price."""
        prices = _prices(false_positive, false_negative)
        dearest = max(prices)
        shares = (0, prices[0] / dearest, prices[1] / dearest, 0)
        metric = Metric("mean cost", shares, (1, 1, 1, 1), "", "")
        measure = self.confusion(threshold).measure(metric)
        most = range_of_costs(*prices)
        return _moved(
            measure,
            "mean cost",
            lambda value: dearest * value,
            lambda value: min(value / most, 1.0),
        )

    def cost_curve(self, *, level: float = 0.95) -> CostCurve:
        """The least expected cost of this model for every weight of misses, with its band."""
        curve, weight = self._curve, np.linspace(0, 1, 101)
        band = self._region(level, False).roc(_GRID, np.interp(_GRID, curve.fpr, curve.tpr))

        def least(fpr: Floats, tpr: Floats) -> tuple[Ints, Floats]:
            costs = np.outer(weight, 1 - tpr) + np.outer(1 - weight, fpr)
            last = costs.shape[1] - 1 - costs[:, ::-1].argmin(axis=1)
            return last, costs.min(axis=1)

        which, cost = least(curve.fpr, curve.tpr)
        # Within a step the false positive rate may be that of its beginning, at the end's height.
        low = least(np.concatenate([[0.0], _GRID[:-1]]), band.high)[1]
        high = np.minimum(least(_GRID, band.low)[1], np.minimum(weight, 1 - weight))
        thresholds = self._scores(curve.thresholds)[which]
        return CostCurve(
            weight=weight,
            cost=cost,
            low=np.minimum(low, cost),
            high=np.maximum(high, cost),
            thresholds=thresholds,
        )

    def best_threshold(
        self, *, f_score: float | None = None, cost: tuple[float, float] | None = None
    ) -> float:
        """The threshold with the highest F score (of this beta) or the least mean cost.

        `cost` is that of a false positive and of a false negative. What the threshold is worth says
        `confusion(threshold)`, with intervals; it was chosen by this curve, so a little less.
        """
        if (f_score is None) == (cost is None):
            raise ArgumentError("Pass best_threshold either f_score=1 or cost=(1, 5), not both.")
        curve = self._curve
        true, false = curve.tpr * curve.positives, curve.fpr * curve.negatives
        missed = curve.positives - true
        if f_score is not None:
            beta = as_number(f_score)
            if not 0 < beta < 1e6:
                raise ArgumentError(f"f_score must be a positive beta, got {shown(f_score)}.")
            top = (1 + beta**2) * true
            merit = top / np.maximum(top + beta**2 * missed + false, 1e-9)
        else:
            pair = cost if cost is not None and len(cost) == 2 else (-1.0, -1.0)
            prices = _prices(*pair)
            merit = -(prices[0] * false + prices[1] * missed)
        low, high = self._scores(np.array(self.score_range))
        best = len(merit) - 1 - int(np.argmax(merit[::-1]))
        return float(np.clip(self._scores(curve.thresholds)[best], low, high))

    # --- calibration -----------------------------------------------------------------------------

    @cached_property
    def calibration_slope(self) -> Measure:
        """Return how much log odds rise per unit of the model's; below 1 it is overconfident."""
        name = "calibration slope"
        return self._as_printed(name, lambda: self._logistic(name, 1))

    @cached_property
    def calibration_intercept(self) -> Measure:
        """By how much all log odds are too low, the slope taken as 1 (calibration in the large)."""
        name = "calibration intercept"
        return self._as_printed(name, lambda: self._logistic(name, 0))

    def _logistic(self, name: str, which: int) -> Measure:
        """A logistic fit of the bins' counts on the log odds of their mean scores.

        Where there are draws of rows, of the mean count in each of their parts; a draw's own fit is
        then that of one step from it.
        """
        posterior = self._posterior
        positives, negatives, variance = self.calibration._counts
        scores = [self.calibration.predicted]
        if posterior is not None:
            drawn = posterior.rows_drawn
            positives, negatives = drawn.positives.mean(axis=0), drawn.negatives.mean(axis=0)
            # Nobody knows where in its part a row lies.
            scores = [posterior.part_scores(share) for share in (0.5, 0.25, 0.75)]
        seen = np.maximum(positives, 0.0), np.maximum(negatives, 0.0)
        fits = [_logistic_fit(positives, negatives, at, slope=which == 1) for at in scores]
        fitted, chance, design, bread = fits[0]
        others = [float(fit[0][which] - fitted[which]) for fit in fits]

        def interval(level: float, noise_only: bool) -> Interval:
            if posterior is not None:
                drawn = posterior.draws(noise_only=noise_only)
                off = drawn.positives * (1 - chance) - drawn.negatives * chance
                steps = fitted[which] + off @ design @ bread[which]
                low, high = interval_of(steps, level, low=-_FURTHEST, high=_FURTHEST)
                return low + min(others), high + max(others)
            meat = variance * (chance**2 + (1 - chance) ** 2)
            if not noise_only:
                # As far as rows are off, not as the fit has it: it need not hold (Huber 1967).
                off = seen[0] * (1 - chance) ** 2 + seen[1] * chance**2
                meat = meat + np.maximum(off, (seen[0] + seen[1]) * chance * (1 - chance))
            spread = bread @ (design.T @ (design * meat[:, None])) @ bread
            half = single_quantile(level) * math.sqrt(max(float(spread[which, which]), 0.0))
            half = min(half, _FURTHEST)
            return float(fitted[which]) - half, float(fitted[which]) + half

        # A range without ends has its half where nothing is wrong: below a slope of 1, and below an
        # intercept of 0, by what that makes of a probability of one half.
        share = (lambda x: max(x, 0.0) / (1 + max(x, 0.0))) if which else _logistic_law
        return self._measure(name, float(fitted[which]), interval, share)


def _logistic_fit(
    positives: Floats, negatives: Floats, scores: Floats, *, slope: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Intercept and slope (taken as 1 if not asked for), chances, design, inverse curvature."""
    shares = np.clip(scores, 1e-9, 1 - 1e-9)
    odds = np.clip(np.log(shares / (1 - shares)), -_ODDS, _ODDS)
    design = np.stack([np.ones_like(odds), odds], axis=1)[:, : 1 + slope]
    offset = np.zeros_like(odds) if slope else odds
    fitted = np.array([0.0, 1.0])[: 1 + slope]
    rows = np.maximum(positives + negatives, 0.0)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(offset + design @ fitted, -30, 30)))
        weight = rows * chance * (1 - chance)
        curvature = design.T @ (design * weight[:, None])
        # Where noise is so large that one bin has all rows, these can be very many.
        ridge = max(1e-6, 1e-12 * float(np.trace(curvature)))
        bread = np.linalg.inv(curvature + ridge * np.eye(1 + slope))
        step = bread @ (design.T @ (positives - (positives + negatives) * chance))
        fitted = fitted + np.clip(step, -1, 1)
        if np.abs(step).max() < _NEAR:
            break
    return fitted, chance, design, bread


def _logistic_law(odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(odds, -700.0), 700.0)))


def _prices(false_positive: float, false_negative: float) -> list[float]:
    prices = [as_number(price) for price in (false_positive, false_negative)]
    if not (all(0 <= price < 1e12 for price in prices) and any(prices)):
        raise ArgumentError("Costs must be at least 0, and not both 0.")
    return prices


def _benefit(share: Measure, name: str, at: float) -> Measure:
    return _moved(share, name, lambda value: (value - at) / (1 - at))


def _moved(
    measure: Measure,
    name: str,
    to: Callable[[float], float],
    share: Callable[[float], float] | None = None,
) -> Measure:
    """A rising linear function of a measure."""
    zero, one = to(0.0), to(1.0)
    own = share or (lambda value: measure.share((value - zero) / (one - zero)))
    return Measure.of(measure, to, name=name, terms=measure.terms, share=own)
