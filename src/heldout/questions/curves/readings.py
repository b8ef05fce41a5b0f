"""The curves that people read: ROC, precision-recall, reliability and lift. All of it is free."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import ArrayLike

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval, Measure, checked_level, framed
from heldout.intervals.ratio import ratio_bounds, single_quantile
from heldout.intervals.readings import Curve, grid_scores
from heldout.kernel.noise.tables import NoisyTable
from heldout.questions.curves.bands import Band, Rectangles, Region, intervals_of, rectangles
from heldout.questions.curves.posterior import Posterior

__all__ = [
    "CalibrationCurve",
    "Lift",
    "PrecisionRecallCurve",
    "RocCurve",
    "calibration_curve",
    "check_probabilities",
]


# The numbers that were read off a curve when its answer was stored: shown as they were printed.
READ_AT: Final = 0.95
"""The level of stored bands and intervals; others are read anew."""
FIELDS: Final = {"level", "curve", "bands", "measures"}
RATES: Final = ("fpr", "tpr", "thresholds")


class Readings:
    """A curve with its bands and measures, as `CurvesRelease.stored_readings` gave them.

    What does not look like that is refused with a ValueError.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        if set(content) != FIELDS or content["level"] != READ_AT:
            raise ValueError("readings")
        self.content = content
        curve = content["curve"]
        fpr, tpr, thresholds = (_numbers(curve[name]) for name in RATES)
        if not (len(fpr) == len(tpr) == len(thresholds) > 1):
            raise ValueError("curve")
        for rate in (fpr, tpr):
            if (np.diff(rate) < 0).any() or rate[0] != 0 or rate[-1] != 1:
                raise ValueError("curve")
        sizes = {name: _number(curve[name]) for name in ("positives", "negatives")}
        self.curve = Curve(fpr=fpr, tpr=tpr, thresholds=thresholds, **sizes)
        self._bands = {
            kind: (_numbers(band["low"]), _numbers(band["high"]))
            for kind, band in content["bands"].items()
        }
        self._measures = {
            name: StoredMeasure(measure) for name, measure in content["measures"].items()
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(self._measures)

    def band(self, kind: str, places: Floats) -> Band:
        """Return the stored band of a curve at its own points."""
        low, high = self._bands[kind]
        if not len(low) == len(high) == len(places):
            raise ValueError("bands")
        return Band(places, low, high)

    def measure(self, name: str, terms: str, read_anew: Callable[[], Measure]) -> Measure:
        """Return a stored measure; at other levels its intervals are read anew."""
        return self._measures[name].shown(name, terms, read_anew)


class StoredMeasure:
    """A measure at one level, as `stored_measure` gave it; what looks otherwise is a ValueError."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._value = _number(content["value"])
        self._interval = _interval(content["interval"])
        self._noise_interval = _interval(content["noise_interval"])
        self._informative = bool(content["informative"])

    def shown(self, name: str, terms: str, read_anew: Callable[[], Measure]) -> Measure:
        """Return it as it was printed; at other levels its intervals are read anew."""
        anew = cache(read_anew)
        return Measure(
            self._value,
            name=name,
            terms=terms,
            noise_interval=lambda level: (
                self._noise_interval if level == READ_AT else anew().noise_interval(level)
            ),
            interval=lambda level: self._interval if level == READ_AT else anew().interval(level),
            share=lambda value: anew().share(value),
            reach=lambda level: 0.0 if self._informative else 1.0,
        )


def stored_measure(measure: Measure) -> dict[str, Any]:
    """Return what is stored of a measure, so that it is shown as it was printed."""
    return {
        "value": measure.value,
        "interval": list(measure.interval(READ_AT)),
        "noise_interval": list(measure.noise_interval(READ_AT)),
        "informative": measure.informative,
    }


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError("number")
    return float(value)


def _numbers(values: object) -> Floats:
    if not isinstance(values, list):
        raise ValueError("numbers")
    return np.array([_number(value) for value in values], dtype=np.float64)


def _interval(ends: object) -> Interval:
    low, high = _numbers(ends)
    if low > high:
        raise ValueError("interval")
    return float(low), float(high)


_MOST_BINS: Final = 32
_FEWER: Final = 12


def calibration_curve(
    table: NoisyTable, curve: Curve, *, score_range: tuple[float, float]
) -> "CalibrationCurve":
    """The table's own bins, or a dozen joined ones if it has very many."""
    chosen = _diagram_edges(table, curve, score_range)
    edges = table.edges[chosen]
    scores = grid_scores(edges, points=table.points, score_range=score_range)
    both = [np.array(curve.at(float(score))) for score in scores]
    false, true = np.array(both).T
    positives = np.maximum(-np.diff(true), 0.0) * curve.positives
    negatives = np.maximum(-np.diff(false), 0.0) * curve.negatives
    rows = positives + negatives
    middles = (scores[:-1] + np.minimum(scores[1:], score_range[1])) / 2
    observed = np.divide(positives, rows, out=np.full_like(rows, 0.5), where=rows > 0)
    noisy = [np.add.reduceat(counts, chosen[:-1]) for counts in (table.positives, table.negatives)]
    variance = np.maximum(
        *(np.add.reduceat(deviation**2, chosen[:-1]) for deviation in _deviations(table))
    )
    if table.noise.scale is None:
        # Noise of one method's bins may hang together; the joined one is bounded by their sum.
        variance = np.maximum(
            *(np.add.reduceat(deviation, chosen[:-1]) ** 2 for deviation in _deviations(table))
        )
    return CalibrationCurve(
        _table=table,
        predicted=_mean_scores(curve, scores, middles),
        observed=observed,
        share=rows / rows.sum() if rows.sum() > 0 else np.full_like(rows, 1 / len(rows)),
        edges=np.minimum(scores, score_range[1]),
        _counts=(noisy[0], noisy[1], variance),
        _grid_edges=edges,
    )


def _deviations(table: NoisyTable) -> tuple[Floats, Floats]:
    negatives, positives = table.noise.bin_deviation
    return positives, negatives


def _diagram_edges(table: NoisyTable, curve: Curve, score_range: tuple[float, float]) -> Ints:
    """Indices of the edges that bound a bin of the diagram."""
    cuts = getattr(table, "cuts", None)
    if cuts is not None:
        return np.asarray(np.searchsorted(table.edges, cuts))
    if table.bins <= _MOST_BINS:
        return np.arange(table.bins + 1)
    scores = grid_scores(table.edges, points=table.points, score_range=score_range)
    false, true = np.array([curve.at(float(score)) for score in scores]).T
    above = false * curve.negatives + true * curve.positives
    wanted = np.linspace(0.0, float(above.max()), _FEWER + 1)[1:-1]
    inner = np.searchsorted(-above, -wanted[::-1])
    return np.unique(np.concatenate([[0], np.clip(inner, 1, table.bins - 1), [table.bins]]))


def _mean_scores(curve: Curve, edges: Floats, middles: Floats) -> Floats:
    """The mean score of the rows between edges, along the curve; the middle where none are."""
    called = curve.fpr * curve.negatives + curve.tpr * curve.positives
    rising, above = curve.thresholds[::-1], called[::-1]
    means = []
    for low, high, middle in zip(edges[:-1], edges[1:], middles, strict=True):
        inside = rising[(rising > low) & (rising < high)]
        places = np.concatenate([[low], inside, [high]])
        mass = np.interp(places, rising, above)
        total = mass[0] - mass[-1]
        centres = (places[1:] + places[:-1]) / 2
        mean = float((-np.diff(mass) * centres).sum() / total) if total > 0 else float(middle)
        means.append(min(max(mean, float(low)), float(high)))
    result: Floats = np.minimum(np.array(means), edges[-1])
    return result


def check_probabilities(score_range: tuple[float, float]) -> None:
    """Refuse scores that are declared to reach beyond 0 and 1."""
    low, high = score_range
    if low < 0 or high > 1:
        raise ArgumentError(
            f"score_range must lie within (0, 1) for a reliability diagram, got ({low:g}, "
            f"{high:g}). It judges probabilities."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reading:
    """A curve with its band; `kind` names its picture."""

    kind: ClassVar[str]
    _table: NoisyTable = field(repr=False)
    _posterior: Posterior | None = field(repr=False, default=None)
    _printed: Readings | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        shown = {name: value for name, value in columns.items() if not name.startswith("_")}
        arrays = {name: len(value) for name, value in shown.items() if np.ndim(value) == 1}
        names = ", ".join(arrays)
        return (
            f"{type(self).__name__} of {max(arrays.values())} points: {names}; also band(), plot() "
            "and to_frame()"
        )

    @property
    def is_fitted(self) -> bool:
        """Return True if the band goes by draws of rows, which assume how they lie between edges.

        Otherwise it goes by the edges of the table, and assumes only that the curve rises: where
        noise hides a class, where that is asked for, and for the papers' methods.
        """
        return self._posterior is not None

    def _is_printed(self, level: float, usual: bool, noise_only: bool) -> bool:
        """Return whether such a band was stored with the answer."""
        return self._printed is not None and usual and not noise_only and level == READ_AT

    def _region(self, level: float, simultaneous: bool, noise_only: bool) -> Region | Rectangles:
        words: Any = {"level": checked_level(level), "simultaneous": simultaneous}
        if self._posterior is not None:
            return self._posterior.region(noise_only=noise_only, **words)
        return rectangles(self._table, noise_only=noise_only, **words)

    def _band(
        self, axis: str, x: Floats, y: Floats, at: ArrayLike | None, asked: tuple[float, bool, bool]
    ) -> Band:
        """Return where y lies at each x of this curve, or at those given."""
        if at is None and self._printed is not None and self._is_printed(*asked):
            return self._printed.band(self.kind, x)
        places = x if at is None else np.asarray(at, dtype=np.float64)
        values = y if at is None else np.interp(places, x, y)
        band: Band = getattr(self._region(*asked), axis)(places, values)
        return band

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """The curve and its simultaneous band, on matplotlib's axes where it is installed.

        Without matplotlib it is an Altair chart, as `chart()` gives it.
        """
        from heldout.questions.curves.pictures import chart

        return chart(cast(Any, self), level=level).plot(ax)

    def chart(self, *, level: float = 0.95) -> Any:
        """The same as an Altair chart."""
        from heldout.questions.curves.pictures import chart

        return chart(cast(Any, self), level=level).altair()

    def to_frame(self, level: float = 0.95) -> Any:
        """The points as a pandas frame, with the ends of the band."""
        band = self.band(level)  # type: ignore[attr-defined]
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        points = {
            name: values for name, values in columns.items() if np.shape(values) == band.low.shape
        }
        return framed(**points, low=band.low, high=band.high)

    def svg(self, *, level: float = 0.95) -> str:
        """The chart as an SVG picture in the house style."""
        from heldout.questions.curves.pictures import svg

        return svg(cast(Any, self), level=level)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RocCurve(_Reading):
    """Rates that rise from (0, 0) to (1, 1) while the threshold falls.

    A row is called positive if its score is at least the threshold; the first threshold lies
    above all scores.
    """

    kind = "roc"
    fpr: Floats
    tpr: Floats
    thresholds: Floats

    def __iter__(self) -> Iterator[Floats]:
        """fpr, tpr and thresholds, as scikit-learn's `roc_curve` gives them."""
        return iter((self.fpr, self.tpr, self.thresholds))

    def band(
        self,
        level: float = 0.95,
        *,
        simultaneous: bool = True,
        noise_only: bool = False,
        at: ArrayLike | None = None,
    ) -> Band:
        """Where the true curve lies, at each fpr of this one or at those given.

        With `noise_only` it is the curve of these very rows, else that of the population that
        they were drawn from. `simultaneous` bands are for the whole curve at once. Where
        `is_fitted`, they assume how rows lie between the edges of the table; otherwise only that
        the curve rises.
        """
        return self._band("roc", self.fpr, self.tpr, at, (level, simultaneous, noise_only))

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "fpr": self.fpr.tolist(),
            "tpr": self.tpr.tolist(),
            "thresholds": self.thresholds.tolist(),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrecisionRecallCurve(_Reading):
    """Precision against recall, from (0, 1), where nothing is called positive."""

    kind = "precision-recall"
    recall: Floats
    precision: Floats
    thresholds: Floats
    prevalence: float
    average_precision: Measure
    normalised_auc: Measure
    """AUCNPR: the area rescaled so that the worst ranking at this prevalence has 0."""

    def __iter__(self) -> Iterator[Floats]:
        """precision, recall and thresholds, as scikit-learn's function gives them: recall falls.

        The last point, where nothing is called positive, has no threshold.
        """
        return iter((self.precision[::-1], self.recall[::-1], self.thresholds[:0:-1]))

    def band(
        self,
        level: float = 0.95,
        *,
        simultaneous: bool = True,
        noise_only: bool = False,
        at: ArrayLike | None = None,
    ) -> Band:
        """Where the precision of the true curve lies, at each recall of this one or those given."""
        asked = (level, simultaneous, noise_only)
        return self._band("precision", self.recall, self.precision, at, asked)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "thresholds": self.thresholds.tolist(),
            "prevalence": self.prevalence,
            "normalised_auc": self.normalised_auc.as_dict(level),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrationCurve(_Reading):
    """The share of positives in each bin of the scores, lowest first, against the mean score.

    Rows' own scores are not released: the mean score of a bin assumes that rows are spread
    smoothly over it.
    """

    kind = "calibration"
    predicted: Floats
    observed: Floats
    share: Floats
    """Of all rows."""
    edges: Floats
    """Scores where the bins begin and end."""
    _counts: tuple[Floats, Floats, Floats] = field(repr=False)
    """Noisy positives and negatives of each bin, and the variance of their noise."""
    _grid_edges: Ints | None = field(repr=False, default=None)

    def __iter__(self) -> Iterator[Floats]:
        """prob_true and prob_pred, as scikit-learn's `calibration_curve` gives them."""
        return iter((self.observed, self.predicted))

    def band(
        self, level: float = 0.95, *, simultaneous: bool = False, noise_only: bool = False
    ) -> Band:
        """Where the true share of positives of each bin lies."""
        if self._is_printed(level, not simultaneous, noise_only):
            assert self._printed is not None
            return self._printed.band(self.kind, self.predicted)
        bins = len(self.observed) if simultaneous else 1
        if self._posterior is not None:
            first, last = intervals_of(
                self._drawn_shares[noise_only], 1 - (1 - checked_level(level)) / bins
            )
            return Band(
                self.predicted,
                np.minimum(first, self.observed),
                np.maximum(last, self.observed),
            )
        positives, negatives, variance = self._counts
        rows = np.maximum(positives + negatives, 0.0) + np.sqrt(2 * variance)
        low, high = ratio_bounds(
            positives,
            negatives,
            top_variance=variance,
            rest_variance=variance,
            rows=0.0 if noise_only else rows,
            quantile=single_quantile(checked_level(level), of=bins),
        )
        observed = self.observed
        return Band(self.predicted, np.minimum(low, observed), np.maximum(high, observed))

    @cached_property
    def _drawn_shares(self) -> tuple[Floats, Floats]:
        """Of each draw of the population, and of these very rows: the share of each bin."""
        assert self._posterior is not None
        assert self._grid_edges is not None
        population, rows = (
            self._posterior.bin_shares(self._grid_edges, noise_only=noise_only)
            for noise_only in (False, True)
        )
        return population, rows

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of observed from predicted, by rows."""
        return float(np.sum(self.share * np.abs(self.observed - self.predicted)))

    @property
    def expected_calibration_error(self) -> float:
        """The same by its full name; the release's has an interval."""
        return self.error

    def error_interval(self, level: float, *, noise_only: bool) -> tuple[float, float]:
        """Return what the bins' own bands leave possible, all at once."""
        band = self.band(level, simultaneous=True, noise_only=noise_only)
        outside = np.maximum(np.maximum(band.low - self.predicted, self.predicted - band.high), 0)
        furthest = np.maximum(np.abs(band.low - self.predicted), np.abs(band.high - self.predicted))
        return (
            float(np.sum(self.share * outside)),
            min(1.0, float(np.sum(self.share * furthest))),
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        band = self.band(level)
        return {
            "predicted": self.predicted.tolist(),
            "observed": self.observed.tolist(),
            "share": self.share.tolist(),
            "edges": self.edges.tolist(),
            "band": {"level": level, "low": band.low.tolist(), "high": band.high.tolist()},
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Lift:
    """Counts how many times more positives than chance are among the share that is called."""

    called: Floats
    lift: Floats
    thresholds: Floats
