"""One released score table, and everything that can be read off it."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from heldout.arguments import OneOf
from heldout.arrays import Floats
from heldout.data.scores import ScoreMap, grid_point
from heldout.drawing.chart import PALETTE, Chart, Field, Figure, Layer, Numbers, records
from heldout.errors import ArgumentError
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.readings import Curve, grid_scores, plain_curve
from heldout.kernel.curves.heldout import NamedCounts, TableWithArea
from heldout.kernel.door import Drawn
from heldout.kernel.noise.tables import NoisyTable
from heldout.kernel.ranking.mechanism import RankSumDraw
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.questions.curves.bands import (
    Band,
    Rectangles,
    Region,
    area_half_width,
    interval_of,
    rectangles,
)
from heldout.questions.curves.decisions import (
    BetweenEdges,
    CurveConfusion,
    FromDraws,
    Named,
    ReadDecisions,
    ends_of,
)
from heldout.questions.curves.known_rows import KnownRows
from heldout.questions.curves.pictures import TITLES
from heldout.questions.curves.posterior import Posterior, draw_together
from heldout.questions.curves.readings import (
    READ_AT,
    CalibrationCurve,
    Lift,
    PrecisionRecallCurve,
    Readings,
    RocCurve,
    calibration_curve,
    check_probabilities,
    stored_measure,
)
from heldout.questions.ranking.release import AucRelease, RankingRelease, TieBound, bin_ties

__all__ = ["CurvesByGroup", "CurvesRelease", "NamedCurve"]

_GRID: Final = np.linspace(0.0, 1.0, 513)
NORMALISED: Final = "normalised area under the precision-recall curve"
MEASURES: Final = frozenset(
    {"AUC of the curve", "average precision of the curve", "KS", "prevalence of the table"}
    | {NORMALISED}
)
OF_PROBABILITIES: Final = frozenset(
    {"expected calibration error", "calibration slope", "calibration intercept"}
)
"""What a stored answer carries, of all scores and of probabilities."""


class CurvesRelease(ReadDecisions, Release):
    """Curves, areas and decisions at any threshold, from one release."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        table, statistic = drawn.values, drawn.request.statistic
        assert isinstance(table, NoisyTable)
        assert isinstance(statistic, ScoreTable)
        self.table = table
        self._area: RankingRelease | None = None  # released beside the table
        self._bare = False  # nothing is assumed
        self.effort: Mapping[str, int] = {}  # of the draws; less for a forecast
        self._before: Readings | None = None  # what was printed, of a stored answer
        self.score_range = statistic.score_range
        mapped = drawn.request.parameters.get("score_map")
        self.score_map = None if mapped is None else ScoreMap.parse(mapped)

    @property
    def mechanism(self) -> dict[str, object]:
        """Describe how it was drawn; before there were crowded cells, what the table shows."""
        if isinstance(self.table, TableWithArea) and self.table.cuts is None:
            return {"name": "heldout", "thresholds": "median cuts", "bins": self.table.bins}
        return super().mechanism

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.ties}" if self.ties else super().__str__()

    def plotted(self) -> dict[str, Measure]:
        """Return the measures that are better when they are higher."""
        return dict(list(self.measures.items())[:3])

    def informed(self, beside: Mapping[str, Release]) -> Self:
        """Return the same release, read with what was released beside it of the same rows. Free.

        Only what this table lacks: an area if it has none, counts at a threshold that is an edge.
        """
        area = next(
            (release for release in beside.values() if isinstance(release, AucRelease)), None
        )
        area = None if area is None else area.informed(beside)
        decided = (release for release in beside.values() if isinstance(release, ConfusionRelease))
        return self._with(area=area, confusion=next(decided, None))

    def _with(self, *, area: RankingRelease | None, confusion: ConfusionRelease | None) -> Self:
        table = self.table
        if not isinstance(table, TableWithArea):
            return self
        beside = None
        if table.area is None and area is not None:
            assert not isinstance(area.draw, RankSumDraw), "no difference of two areas"
            table, beside = replace(table, area=area.draw), area
        if table.named is None and confusion is not None:
            at = self._image(confusion.threshold)
            edge = grid_point(at, points=table.points, score_range=self.score_range)
            if edge in table.edges[1:-1]:
                counts, scale = confusion.by_class, confusion.noise_scale
                tied = table.tied_scales is not None
                named = NamedCounts(edges=(edge,), counts=counts, scale=scale, tied=tied)
                table = replace(table, named=named)
        informed = type(self)(self._drawn)
        informed.table = table
        informed._area = beside
        return informed

    def _image(self, threshold: float) -> float:
        return threshold if self.score_map is None else self.score_map.image(threshold)

    def _scores(self, images: Floats) -> Floats:
        """Thresholds in the scores' own unit."""
        if self.score_map is None:
            return images
        return np.array([self.score_map.score(float(image)) for image in images])

    @cached_property
    def _rows(self) -> Posterior | None:
        """The rows as the table leaves them possible; None for the papers' methods."""
        if isinstance(self.table, TableWithArea):
            read = Posterior if self.table.tied_scales is None else KnownRows
            return read(self.table, score_range=self.score_range, **self.effort)
        return None

    @classmethod
    def read_together(cls, releases: Sequence[Self]) -> None:
        """Draw the rows behind all tables that were not read before."""
        unread = [one._posterior for one in releases if one._before is None]
        draw_together(rows for rows in unread if rows is not None)

    @property
    def _posterior(self) -> Posterior | None:
        """The same where the table says enough to believe in it, unless nothing is assumed."""
        if self._bare or self._rows is None or not self._rows.seen:
            return None
        return self._rows

    @cached_property
    def nothing_assumed(self) -> Self:
        """Return the same release, read by counts at edges alone, and that rows rise. Free.

        Its intervals are wider, and hold whatever the scores between the edges are.
        """
        bare = copy.copy(self)
        for name in list(bare.__dict__):
            if name != "_rows" and isinstance(getattr(type(self), name, None), cached_property):
                del bare.__dict__[name]
        bare._bare = True
        return bare

    @property
    def heaps(self) -> tuple[float, ...]:
        """Scores that many rows share, of which the release shows that they do."""
        if self._rows is None or not self._rows.seen or not isinstance(self.table, TableWithArea):
            return ()
        cells = self._rows.low[self._rows.tied]
        images = grid_scores(cells, points=self.table.points, score_range=self.score_range)
        return tuple(float(score) for score in self._scores(images))

    @property
    def ties(self) -> str:
        """Say whether rows pile up at few scores; empty where none is seen to."""
        if not self.heaps:
            return ""
        words = f"{len(self.heaps)} heap{'' if len(self.heaps) == 1 else 's'} found"
        many = self._rows is not None and self._rows.tied_share > 0.5
        return f"scores take few values: {words}" if many else f"some scores are tied: {words}"

    @property
    def _grid_step(self) -> float:
        return (self.score_range[1] - self.score_range[0]) / max(self.table.points - 1, 1)

    @cached_property
    def _curve(self) -> Curve:
        if self._before is not None:
            return self._before.curve
        if self._rows is not None:
            return self._rows.curve
        return plain_curve(self.table, score_range=self.score_range)

    def stored_readings(self) -> dict[str, Any] | None:
        """Return curves, bands and measures as they are printed: all that the draws decide."""
        if self._rows is None:
            return None
        if self._before is not None:
            return dict(self._before.content)
        curve, level = self._curve, READ_AT
        bands = {
            self.roc.kind: self.roc.band(level),
            self.precision_recall.kind: self.precision_recall.band(level),
        }
        if self.judges_probabilities:
            bands[self.calibration.kind] = self.calibration.band(level)
        return {
            "level": level,
            "curve": {
                "fpr": curve.fpr.tolist(),
                "tpr": curve.tpr.tolist(),
                "thresholds": curve.thresholds.tolist(),
                "positives": curve.positives,
                "negatives": curve.negatives,
            },
            "bands": {
                kind: {"low": band.low.tolist(), "high": band.high.tolist()}
                for kind, band in bands.items()
            },
            "measures": {
                measure.name: stored_measure(measure)
                for measure in (*self.measures.values(), self.precision_recall.normalised_auc)
            },
        }

    def as_read(self, readings: Mapping[str, Any]) -> Self:
        before = Readings(readings)
        names = MEASURES | (OF_PROBABILITIES if self.judges_probabilities else frozenset())
        if set(before.measures) != names or self._rows is None:
            raise ValueError("readings")
        other = copy.copy(self)
        for name in list(other.__dict__):
            if name != "_rows" and isinstance(getattr(type(self), name, None), cached_property):
                del other.__dict__[name]
        other._before = before
        return other

    def _measure(
        self,
        name: str,
        value: float,
        interval: Callable[[float, bool], Interval],
        share: Callable[[float], float] = float,
        reach: Callable[[float], float] | None = None,
    ) -> Measure:
        """`interval(level, noise_only)` gives both intervals."""
        return Measure.read(value, interval, name=name, terms=self.terms, share=share, reach=reach)

    def _as_printed(self, name: str, read: Callable[[], Measure]) -> Measure:
        """Return a measure as it was printed where the answer was stored, else as it is read."""
        if self._before is None or self._bare:
            return read()
        return self._before.measure(name, self.terms, read)

    @property
    def _printed(self) -> Readings | None:
        return None if self._bare else self._before

    def _region(self, level: float, noise_only: bool) -> Region | Rectangles:
        words: Any = {"level": level, "simultaneous": True, "noise_only": noise_only}
        if self._posterior is not None:
            return self._posterior.region(**words)
        return rectangles(self.table, **words)

    def _drawn_measure(
        self,
        name: str,
        read: Callable[[bool], Floats],
        value: float,
        interval: Callable[[float, bool], Interval],
    ) -> Measure:
        """By `read(noise_only)` of all draws; without any, `value` and `interval` at the edges."""

        def ends(level: float, noise_only: bool) -> Interval:
            if self._posterior is None:
                return interval(level, noise_only)
            return interval_of(read(noise_only), level)

        mean = value if self._posterior is None else float(np.mean(read(True)))
        return self._measure(name, mean, ends)

    def _areas(self, which: int) -> Callable[[bool], Floats]:
        def read(noise_only: bool) -> Floats:
            assert self._posterior is not None
            return self._posterior.areas(noise_only=noise_only)[which]

        return read

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
            _posterior=self._posterior,
            _printed=self._printed,
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
            normalised_auc=self._as_printed(NORMALISED, self._normalised_auc),
            _table=self.table,
            _posterior=self._posterior,
            _printed=self._printed,
        )

    @cached_property
    def calibration(self) -> CalibrationCurve:
        """The reliability diagram; scores must be probabilities."""
        check_probabilities(self.score_range)
        read = calibration_curve(self.table, self._curve, score_range=self.score_range)
        return replace(read, _posterior=self._posterior, _printed=self._printed)

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
        return self._as_printed("AUC of the curve", self._read_auc)

    def _read_auc(self) -> Measure:
        value = self._curve.area if self._posterior is None else float(self._areas(0)(True).mean())

        def interval(level: float, noise_only: bool) -> Interval:
            if self._area is not None:
                beside = self._area.headline
                low, high = beside.noise_interval(level) if noise_only else beside.interval(level)
                return min(low, value), max(high, value)
            if self._posterior is not None:
                return interval_of(self._areas(0)(noise_only), level)
            if self._rows is None and not self._bare:
                half = area_half_width(self.table, self._curve, level, noise_only=noise_only)
                return max(value - half, 0.0), min(value + half, 1.0)
            band = self._region(level, noise_only).roc(_GRID, np.interp(_GRID, *self._xy))
            return _area_of_steps(band)

        def reach(level: float) -> float:
            if self._area is not None and self._area.headline.reach is not None:
                return self._area.headline.reach(level)
            if self._rows is None and not self._bare:
                return area_half_width(self.table, self._curve, level, noise_only=True)
            low, high = interval(level, True)  # of which one side may be cut
            return max(high - value, value - low)

        return self._measure("AUC of the curve", value, interval, reach=reach)

    @property
    def _xy(self) -> tuple[Floats, Floats]:
        return self._curve.fpr, self._curve.tpr

    @cached_property
    def average_precision(self) -> Measure:
        """The area under this precision-recall curve, without a bonus for its first point."""
        return self._as_printed("average precision of the curve", self._read_average_precision)

    def _read_average_precision(self) -> Measure:
        curve = self._curve

        def interval(level: float, noise_only: bool) -> Interval:
            if self._rows is None and not self._bare:
                # An integral strays no further than its heights, each by itself, do on average.
                words: Any = {"level": level, "simultaneous": False, "noise_only": noise_only}
                return self._precision_area(rectangles(self.table, **words))
            return self._precision_area(self._region(level, noise_only))

        value = _area_under(curve.tpr, curve.precision())
        return self._drawn_measure(
            "average precision of the curve", self._areas(1), value, interval
        )

    def _precision_area(self, region: Region | Rectangles) -> Interval:
        precision = np.interp(_GRID, self._curve.tpr, self._curve.precision())
        band = region.precision(_GRID, precision)
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
            if self._posterior is not None:
                areas = self._posterior.areas(noise_only=noise_only)[1]
                shares = self._posterior.prevalence(noise_only=noise_only)
                both = zip(areas.tolist(), shares.tolist(), strict=True)
                return interval_of(np.array([normalised(*pair) for pair in both]), level)
            half = level if noise_only else (1 + level) / 2
            region = self._region(half, True)
            low, high = self._precision_area(region)
            if not noise_only:
                # The rest of the error is for sampling, at each end of what the noise leaves.
                n = max(self._curve.positives, 1.0)
                low = sampled(low, positives=n, method="logit", confidence=half).low
                high = sampled(high, positives=n, method="logit", confidence=half).high
            least, most = region.prevalence
            return normalised(low, most), normalised(high, least)

        value = normalised(self.average_precision.value, self._curve.prevalence)
        return self._measure(NORMALISED, value, interval)

    @cached_property
    def ks(self) -> Measure:
        """The Kolmogorov-Smirnov distance: the largest gap of true over false positive rate."""
        return self._as_printed("KS", self._read_ks)

    def _read_ks(self) -> Measure:

        def interval(level: float, noise_only: bool) -> Interval:
            region = self._region(level, noise_only)
            assert isinstance(region, Rectangles)
            # The band jumps at the rectangles' sides, so the largest gaps are there.
            places = np.unique(np.concatenate([_GRID, region.low[0], region.high[0]]))
            band = region.roc(places, np.interp(places, *self._xy))
            return float(np.max(band.low - places)), float(np.max(band.high - places))

        value = float(np.max(self._curve.tpr - self._curve.fpr))
        return self._drawn_measure("KS", self._areas(2), value, interval)

    @cached_property
    def prevalence(self) -> Measure:
        """The share of positives."""
        name = "prevalence of the table"

        def read() -> Measure:
            return self._measure(
                name,
                self._curve.prevalence,
                lambda level, noise_only: self._region(level, noise_only).prevalence,
            )

        return self._as_printed(name, read)

    @cached_property
    def expected_calibration_error(self) -> Measure:
        """The mean distance of the observed share from the predicted one, over the table's bins."""
        name = "expected calibration error"

        def read() -> Measure:
            return self._measure(name, self.calibration.error, self._error_interval)

        return self._as_printed(name, read)

    def _error_interval(self, level: float, noise_only: bool) -> Interval:
        """Return what the bins' bands leave possible and no draw exceeds: either is too wide."""
        low, high = self.calibration.error_interval(level, noise_only=noise_only)
        if self._posterior is None or not isinstance(self.table, TableWithArea):
            return low, high
        edges = self.calibration._grid_edges
        assert edges is not None
        drawn = self._posterior.calibration_error(edges, noise_only=noise_only)
        return low, max(low, min(high, interval_of(drawn, level)[1]))

    @property
    def measures(self) -> dict[str, Measure]:
        listed = [self.auc, self.average_precision, self.ks, self.prevalence]
        if self.judges_probabilities:
            listed.append(self.expected_calibration_error)
            listed += [self.calibration_slope, self.calibration_intercept]
        return {measure.name: measure for measure in listed}

    # --- decisions -------------------------------------------------------------------------------

    def confusion(self, threshold: float = 0.5, *, assume: str | None = None) -> CurveConfusion:
        """The confusion matrix where rows with score >= threshold are called positive.

        With assume="nothing" its intervals go by the counts at the edges around the threshold
        alone: they are wider, and hold whatever the scores between the edges are.
        """
        low, high = self.score_range
        at = self._image(threshold)
        if not low <= at <= high:
            raise ArgumentError(
                f"threshold must lie within score_range ({low:g}, {high:g}), got {threshold!r}."
            )
        if assume not in (None, "nothing"):
            raise ArgumentError(f'assume must be left out or "nothing", got {assume!r}.')
        words: Any = {
            "threshold": float(threshold), "terms": self.terms, "rows": self.table.rows,
        }  # fmt: skip
        place = grid_point(at, points=self.table.points, score_range=(low, high))
        named = self.table.named if isinstance(self.table, TableWithArea) else None
        if named is not None and place in named.edges:
            return Named(named=named, table=self.table, edge=place, **words)
        scores = grid_scores(self.table.edges, points=self.table.points, score_range=(low, high))
        near = 1e-9 * (high - low)
        below = int(np.searchsorted(scores, at + near, side="right")) - 1
        above = int(np.searchsorted(scores, at - near, side="left"))
        if isinstance(self.table, TableWithArea):  # rows are counted at the nearest grid point
            below = int(np.searchsorted(self.table.edges, place, side="right")) - 1
            above = int(np.searchsorted(self.table.edges, place, side="left"))
        bare = BetweenEdges(
            at=float(at), curve=self._curve, table=self.table, edges=(below, above), **words
        )
        if self._posterior is None or assume == "nothing":
            return bare
        return FromDraws(grid_point=place, posterior=self._posterior, bare=bare, **words)

    def tie_bound(self, level: float = 0.95) -> TieBound:
        """Return how far the order of rows within cells of the grid can move the metrics. Free."""
        region = rectangles(self.table, level=level, simultaneous=True, noise_only=True)
        low, high = self.nothing_assumed.average_precision.noise_interval(level)
        return TieBound(bin_ties(region.low, region.high) / 2, high - low, level, "the curves")

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
        reading: RocCurve | PrecisionRecallCurve | CalibrationCurve = getattr(self, names[kind])
        return reading

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        content = {**super().as_dict(level), "curves": self.curves_as_dict(level)}
        if self._posterior is None:
            return content
        bare = ends_of(self.nothing_assumed.measures, level)
        ties = {"heaps": list(self.heaps), "says": self.ties}
        return {**content, "ties": ties, "nothing_assumed": bare}

    def curves_as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """The curves alone."""
        curves = {
            "roc": self.roc.as_dict(level),
            "precision_recall": self.precision_recall.as_dict(level),
        }
        if self.judges_probabilities:
            curves["calibration"] = self.calibration.as_dict(level)
        return curves


def _area_under(x: Floats, y: Floats) -> float:
    """By trapezoids, but the first point of the curve counts like the second."""
    heights = np.array(y, dtype=np.float64)
    if len(heights) > 1:
        heights[0] = heights[1]
    return float(np.clip(np.trapezoid(heights, x), 0.0, 1.0))


def _area_of_steps(band: Band) -> Interval:
    steps = np.diff(band.at)
    return float(band.low[:-1] @ steps), min(1.0, float(band.high[1:] @ steps))


class CurvesByGroup(ByGroup[CurvesRelease]):
    """One `CurvesRelease` for each group: `.groups["F"].calibration`, `.gap`, and so on."""

    @property
    def compared(self) -> tuple[str, ...]:
        error = "expected calibration error"
        every = next(iter(self.groups.values())).measures
        return (self.metric, "KS", *((error,) if error in every else ()))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        curves = {name: release.curves_as_dict(level) for name, release in self.groups.items()}
        return {**super().as_dict(level), "curves": curves}

    def figures(self, level: float = 0.95) -> list[Figure]:
        """The areas with their intervals, and the ROC curves of the groups that can be read."""
        drawn = super().figures(level)
        shown = [name for name in self.groups if name not in self.not_informative][: len(PALETTE)]
        if not shown:
            return drawn
        lines = []
        for name in shown:
            release = self.groups[name]
            roc = release.roc
            lines.append(records(x=roc.fpr, y=roc.tpr, group=np.full(roc.fpr.size, name)))
        chart = Chart(
            [Layer("line", points, color=Field("group")) for points in lines],
            x=Numbers("False positive rate"),
            y=Numbers("True positive rate"),
            title="ROC curves by group",
            colours=dict(zip(shown, PALETTE, strict=False)),
        )
        picture = chart.svg(says=f"ROC curves of {', '.join(shown)}.")
        return [
            *drawn,
            Figure(picture, "True against false positive rate in each group that can be read."),
        ]


_SUMMARY: Final = {
    "roc": "auc",
    "precision-recall": "average_precision",
    "calibration": "expected_calibration_error",
}


class NamedCurve(CurvesRelease):
    """Curves of which one was asked for by name: it is unpacked, printed and plotted."""

    def __init__(self, release: CurvesRelease, curve: str) -> None:
        super().__init__(release._drawn)
        self.curve = curve

    def __iter__(self) -> Iterator[Floats]:
        return iter(self._reading(self.curve))

    @property
    def headline(self) -> Measure:
        measure: Measure = getattr(self, _SUMMARY[self.curve])
        return measure

    def __str__(self) -> str:
        points = len(next(iter(self)))
        what = "bins" if self.curve == "calibration" else "points"
        return f"{TITLES[self.curve]} of {points} {what}; {self.headline}"

    def figures(self, level: float = 0.95) -> list[Figure]:
        from heldout.questions.curves.pictures import figures

        return figures([self._reading(self.curve)], level=level)

    def plot(self, kind: str | None = None, *, ax: Any = None, level: float = 0.95) -> Any:
        """This curve's picture unless another is named; see `CurvesRelease.plot`."""
        return super().plot(self.curve if kind is None else kind, ax=ax, level=level)
