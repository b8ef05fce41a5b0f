"""One released score table, and everything that can be read off it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from heldout.arguments.rules import OneOf
from heldout.data.scores import ScoreMap
from heldout.drawing.chart import Figure
from heldout.errors import ArgumentError
from heldout.intervals.areas import noise_reach
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.curve import Curve, grid_point, grid_scores, plain_curve
from heldout.intervals.measure import Interval, Measure
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn
from heldout.kernel.noise.tables.table import NoisyTable
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.questions.curves.area import area_intervals, class_belief
from heldout.questions.curves.bands import Rectangles, rectangles
from heldout.questions.curves.calibration import calibration_curve, check_probabilities
from heldout.questions.curves.corridor import Corridor, area_interval, region
from heldout.questions.curves.decisions import ReadDecisions
from heldout.questions.curves.fit import Fitted, fitted
from heldout.questions.curves.methods.heldout import NamedCounts, TableWithArea
from heldout.questions.curves.readings import CalibrationCurve, Lift, PrecisionRecallCurve, RocCurve
from heldout.questions.curves.threshold import BetweenEdges, CurveConfusion, FromFit, Named
from heldout.questions.ranking.release import AucRelease, RankingRelease, TieBound, bin_ties

__all__ = ["CurvesRelease"]

_GRID: Final = np.linspace(0.0, 1.0, 513)


class CurvesRelease(ReadDecisions, Release):
    """Curves, areas and decisions at any threshold, from one release."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        table, statistic = drawn.values, drawn.request.statistic
        assert isinstance(table, NoisyTable)
        assert isinstance(statistic, ScoreTable)
        self.table = table
        self._area: RankingRelease | None = None  # released beside the table
        self.score_range = statistic.score_range
        mapped = drawn.request.parameters.get("score_map")
        self.score_map = None if mapped is None else ScoreMap.parse(mapped)

    def plotted(self) -> dict[str, Measure]:
        """Return the measures that are better when they are higher."""
        return dict(list(self.measures.items())[:3])

    def informed(self, beside: Mapping[str, Release]) -> Self:
        """Return the same release, read with what was released beside it of the same rows. Free.

        Only what this table lacks: an area if it has none, counts at a threshold that is an edge.
        """
        area = next((each for each in beside.values() if isinstance(each, AucRelease)), None)
        area = None if area is None else area.informed(beside)
        decided = (each for each in beside.values() if isinstance(each, ConfusionRelease))
        return self._with(area=area, confusion=next(decided, None))

    def _with(self, *, area: RankingRelease | None, confusion: ConfusionRelease | None) -> Self:
        table = self.table
        if not isinstance(table, TableWithArea):
            return self
        beside = None
        if table.area is None and area is not None:
            table, beside = replace(table, area=area.draw), area
        if table.named is None and confusion is not None:
            at = self._image(confusion.threshold)
            edge = grid_point(at, points=table.points, score_range=self.score_range)
            if edge in table.edges[1:-1]:
                counts, scale = confusion.by_class, confusion.noise_scale
                named = NamedCounts(edges=(edge,), counts=counts, scale=scale)
                table = replace(table, named=named)
        informed = type(self)(self._drawn)
        informed.table = table
        informed._area = beside
        return informed

    def _image(self, threshold: float) -> float:
        return threshold if self.score_map is None else self.score_map.image(threshold)

    def _scores(self, images: Any) -> Any:
        """Thresholds in the scores' own unit."""
        if self.score_map is None:
            return images
        return np.array([self.score_map.score(float(each)) for each in images])

    @cached_property
    def _fit(self) -> Fitted | None:
        """The fitted law; None for the papers' methods, whose tables are read as they are."""
        if isinstance(self.table, TableWithArea):
            return fitted(self.table, score_range=self.score_range)
        return None

    @property
    def _law(self) -> Fitted | None:
        """The fitted law where the table says enough to believe in it."""
        return self._fit if self._fit is not None and self._fit.seen else None

    @cached_property
    def _curve(self) -> Curve:
        if self._fit is not None:
            return self._fit.curve
        return plain_curve(self.table, score_range=self.score_range)

    def _measure(
        self, name: str, value: float, interval: Any, share: Any = float, reach: Any = None
    ) -> Measure:
        """`interval(level, noise_only)` gives both intervals."""
        return Measure(
            value,
            name=name,
            terms=self.terms,
            noise_interval=lambda level: interval(level, True),
            interval=lambda level: interval(level, False),
            share=share,
            reach=reach,
        )

    def _region(self, level: float, noise_only: bool) -> Corridor | Rectangles:
        return region(self.table, self._law, level=level, simultaneous=True, noise_only=noise_only)

    # --- curves ----------------------------------------------------------------------------------

    @cached_property
    def roc(self) -> RocCurve:
        """The ROC curve."""
        curve = self._curve
        return RocCurve(
            fpr=curve.fpr,
            tpr=curve.tpr,
            thresholds=self._scores(curve.thresholds),
            _table=self.table,
            _law=self._law,
        )

    @cached_property
    def precision_recall(self) -> PrecisionRecallCurve:
        """The precision-recall curve."""
        curve = self._curve
        return PrecisionRecallCurve(
            recall=curve.tpr,
            precision=curve.precision(),
            thresholds=self._scores(curve.thresholds),
            prevalence=curve.prevalence,
            average_precision=self.average_precision,
            normalised_auc=self._normalised_auc(),
            _table=self.table,
            _law=self._law,
        )

    @cached_property
    def calibration(self) -> CalibrationCurve:
        """The reliability diagram; scores must be probabilities."""
        check_probabilities(self.score_range)
        return calibration_curve(self.table, self._curve, score_range=self.score_range)

    @property
    def judges_probabilities(self) -> bool:
        return self.score_range[0] >= 0 and self.score_range[1] <= 1

    @cached_property
    def lift(self) -> Lift:
        """Precision over prevalence, by the share of rows that is called positive."""
        curve = self._curve
        share = curve.prevalence
        called = share * curve.tpr + (1 - share) * curve.fpr
        gained = np.divide(curve.tpr, called, out=np.ones_like(called), where=called > 0)
        if len(gained) > 1:
            gained[0] = gained[1]
        return Lift(called=called, lift=gained, thresholds=self._scores(curve.thresholds))

    # --- numbers ---------------------------------------------------------------------------------

    @cached_property
    def auc(self) -> Measure:
        """The area under this ROC curve."""

        def interval(level: float, noise_only: bool) -> Interval:
            if self._area is not None:
                beside, value = self._area.headline, self._curve.area
                low, high = beside.noise_interval(level) if noise_only else beside.interval(level)
                return min(low, value), max(high, value)
            if isinstance(self.table, TableWithArea) and isinstance(self.table.area, RankingDraw):
                return area_intervals(self.table, self.table.area, level, noise_only=noise_only)
            if self._law is not None:
                return area_interval(self._law, level=level, noise_only=noise_only)
            band = self._region(level, noise_only).roc(_GRID, np.interp(_GRID, *self._xy))
            return _area_of_steps(band)

        def reach(level: float) -> float:
            if self._area is not None and self._area.headline.reach is not None:
                return self._area.headline.reach(level)
            if isinstance(self.table, TableWithArea) and isinstance(self.table.area, RankingDraw):
                known = class_belief(self.table, self.table.area)
                return noise_reach(self.table.area, level=level, known=known)
            low, high = interval(level, True)  # of which one side may be cut
            return max(high - self._curve.area, self._curve.area - low)

        return self._measure("AUC of the curve", self._curve.area, interval, reach=reach)

    @property
    def _xy(self) -> tuple[Any, Any]:
        return self._curve.fpr, self._curve.tpr

    @cached_property
    def average_precision(self) -> Measure:
        """The area under this precision-recall curve, without a bonus for its first point."""
        curve = self._curve

        def interval(level: float, noise_only: bool) -> Interval:
            return self._precision_area(self._region(level, noise_only))

        value = _area_under(curve.tpr, curve.precision())
        return self._measure("average precision of the curve", value, interval)

    def _precision_area(self, found: Corridor | Rectangles) -> Interval:
        precision = np.interp(_GRID, self._curve.tpr, self._curve.precision())
        band = found.precision(_GRID, precision)
        # Precision at the far end of a step bounds it from below, as recall rises within.
        low = float(np.minimum(band.low[1:], band.low[:-1]) @ np.diff(_GRID))
        high = float(np.maximum(band.high[1:], band.high[:-1]) @ np.diff(_GRID))
        return max(low, 0.0), min(high, 1.0)

    def _normalised_auc(self) -> Measure:
        from heldout.precision_recall import interval as sampled
        from heldout.precision_recall import minimum_auc

        def normalised(area: float, prevalence: float) -> float:
            least = minimum_auc(prevalence=min(max(prevalence, 0.0), 1.0))
            return min(1.0, max(0.0, (area - least) / (1 - least))) if least < 1 else 1.0

        def interval(level: float, noise_only: bool) -> Interval:
            half = level if noise_only else (1 + level) / 2
            found = self._region(half, True)
            low, high = self._precision_area(found)
            if not noise_only:
                # The rest of the error is for sampling, at each end of what the noise leaves.
                n = max(self._curve.positives, 1.0)
                low = sampled(low, positives=n, method="logit", confidence=half).low
                high = sampled(high, positives=n, method="logit", confidence=half).high
            least, most = found.prevalence
            return normalised(low, most), normalised(high, least)

        value = normalised(self.average_precision.value, self._curve.prevalence)
        return self._measure("normalised area under the precision-recall curve", value, interval)

    @cached_property
    def ks(self) -> Measure:
        """The Kolmogorov-Smirnov distance: the largest gap of true over false positive rate."""

        def interval(level: float, noise_only: bool) -> Interval:
            found = self._region(level, noise_only)
            # The band jumps at the rectangles' sides, so the largest gaps are there.
            places = np.unique(np.concatenate([_GRID, found.low[0], found.high[0]]))
            band = found.roc(places, np.interp(places, *self._xy))
            return float(np.max(band.low - places)), float(np.max(band.high - places))

        return self._measure("KS", float(np.max(self._curve.tpr - self._curve.fpr)), interval)

    @cached_property
    def prevalence(self) -> Measure:
        """The share of positives."""
        return self._measure(
            "prevalence of the table",
            self._curve.prevalence,
            lambda level, noise_only: self._region(level, noise_only).prevalence,
        )

    @cached_property
    def expected_calibration_error(self) -> Measure:
        """The mean distance of the observed share from the predicted one, over the table's bins."""
        return self._measure(
            "expected calibration error",
            self.calibration.error,
            lambda level, noise_only: self.calibration.error_interval(level, noise_only=noise_only),
        )

    @property
    def measures(self) -> dict[str, Measure]:
        found = [self.auc, self.average_precision, self.ks, self.prevalence]
        if self.judges_probabilities:
            found.append(self.expected_calibration_error)
            found += [self.calibration_slope, self.calibration_intercept]
        return {each.name: each for each in found}

    # --- decisions -------------------------------------------------------------------------------

    def confusion(self, threshold: float = 0.5) -> CurveConfusion:
        """The confusion matrix where rows with score >= threshold are called positive."""
        low, high = self.score_range
        at = self._image(threshold)
        if not low <= at <= high:
            raise ArgumentError(
                f"threshold must lie within score_range ({low:g}, {high:g}), got {threshold!r}."
            )
        told: Any = {
            "threshold": float(threshold), "terms": self.terms, "rows": self.table.rows,
        }  # fmt: skip
        if isinstance(self.table, TableWithArea) and self.table.named is not None:
            edge = grid_point(at, points=self.table.points, score_range=(low, high))
            if edge in self.table.named.edges:
                return Named(named=self.table.named, table=self.table, edge=edge, **told)
        if self._law is not None:
            return FromFit(at=float(at), fit=self._law, **told)
        scores = grid_scores(self.table.edges, points=self.table.points, score_range=(low, high))
        near = 1e-9 * (high - low)
        below = int(np.searchsorted(scores, at + near, side="right")) - 1
        above = int(np.searchsorted(scores, at - near, side="left"))
        return BetweenEdges(
            at=float(at), curve=self._curve, table=self.table, edges=(below, above), **told
        )

    def tie_bound(self, level: float = 0.95) -> TieBound:
        """How far the order of rows within the cells of the grid can move the metrics. Free."""
        found = rectangles(self.table, level=level, simultaneous=True, noise_only=True)
        low, high = self.average_precision.noise_interval(level)
        return TieBound(bin_ties(found.low, found.high) / 2, high - low, level, "the curves")

    # --- for people and machines -----------------------------------------------------------------

    def plot(self, kind: str = "roc", *, ax: Any = None, level: float = 0.95) -> Any:
        """A picture of "roc", "precision-recall" or "calibration"; see `RocCurve.plot`."""
        return self._reading(kind).plot(ax, level=level)

    def svg(self, kind: str = "roc", *, level: float = 0.95) -> str:
        """The chart as an SVG picture."""
        return self._reading(kind).svg(level=level)

    def figures(self, level: float = 0.95) -> list[Figure]:
        """ROC, precision-recall, and the reliability diagram if the scores are probabilities.

        None where noise leaves nothing to read: a line would look like an answer.
        """
        from heldout.questions.curves.pictures import figures

        if not self.auc.informative:
            return []
        probabilities = [self.calibration] if self.judges_probabilities else []
        return figures([self.roc, self.precision_recall, *probabilities], level=level)

    def _reading(self, kind: str) -> RocCurve | PrecisionRecallCurve | CalibrationCurve:
        names = {"roc": "roc", "precision-recall": "precision_recall", "calibration": "calibration"}
        OneOf(names)(kind, "kind")
        found: RocCurve | PrecisionRecallCurve | CalibrationCurve = getattr(self, names[kind])
        return found

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {**super().as_dict(level), "curves": self.curves_as_dict(level)}

    def curves_as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """The curves alone."""
        curves = {
            "roc": self.roc.as_dict(level),
            "precision_recall": self.precision_recall.as_dict(level),
        }
        if self.judges_probabilities:
            curves["calibration"] = self.calibration.as_dict(level)
        return curves


def _area_under(x: Any, y: Any) -> float:
    """By trapezoids, but the first point of the curve counts like the second."""
    heights = np.array(y, dtype=np.float64)
    if len(heights) > 1:
        heights[0] = heights[1]
    return float(np.clip(np.trapezoid(heights, x), 0.0, 1.0))


def _area_of_steps(band: Any) -> Interval:
    steps = np.diff(band.at)
    return float(band.low[:-1] @ steps), min(1.0, float(band.high[1:] @ steps))
