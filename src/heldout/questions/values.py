"""Any number of a row with declared bounds: a Dice score, a word error rate, a grade, a cost.

The mean of a column, or of the difference of two; the share of rows that reach a threshold; and
rows by public bins, off which shares and quantiles are read.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic

import numpy as np

from heldout.arguments import Ends, Flag, Share, visible
from heldout.arrays import Floats, Ints
from heldout.data import Dataset, PrivateTable
from heldout.data.description import MeasuredRows
from heldout.data.sql import count_passed, double, held_to
from heldout.errors import ArgumentError
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.noise import normal_quantile
from heldout.intervals.ratio import (
    MeanRelease,
    NoisyCounts,
    Ratio,
    Squares,
    mean,
    with_public_total,
)
from heldout.kernel.door import Drawn, Request
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import laplace
from heldout.kernel.statistic import STEPS, BoundedSum, DisjointCounts, Statistic
from heldout.pooling.answer import PooledMean, SummedPool, summed
from heldout.questions.base import Number, Numbers, R_co, Text, Weighted, Whole, weight_parameters
from heldout.questions.groups import Divisible, Groups_co
from heldout.questions.quote import Guess, typical_sums, weigh_counts
from heldout.questions.worst_cases import (
    GROUP,
    GROUPS,
    PERSON,
    REMOVE,
    SCORE,
    WEIGHT,
    Pair,
    WorstCase,
    declare_rows,
)

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["Histogram", "Mean", "ShareAbove"]

MOST_BINS: Final = 1000
_WITHIN: Final = 256
"""Steps in which a bin is searched for the ends of a quantile."""

# --- Sums of a declared value, and counts by its public bins -------------------------------------


@dataclass(frozen=True)
class ValueSums(BoundedSum):
    """Sums over rows of a declared value x, of x (1 - x), and of what is left of 1.

    x is the value's place within the bounds, from 0 to 1; that of the difference of two values,
    within (low - high, high - low); or 1 where the value is `at_least` so much, and else 0. The
    sums are those of `BoundedSum`, with x for the error.

    Claim:       as BoundedSum: L1 sensitivity `resolution` a row that leaves or arrives, or is
                 replaced where the row count is public.                  [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: x is a function of the row's own values and of public numbers, rounded to a whole
                 number from 0 to `resolution`; nothing else of it enters the proof.
    Numerics:    exact integers; values are held to the bounds before they are divided, so that no
                 double is too large to be rounded.
    Refuses:     what BoundedSum refuses.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> replaced = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> ValueSums(score_range=(0, 1), with_rest=False).sensitivity(replaced)
    1048576
    """

    error: str = "value"
    score_range: tuple[float, float] = (0.0, 1.0)
    with_rest: bool = True
    place: int = 0
    minus: int | None = None
    at_least: float | None = None
    known: ClassVar[tuple[str, ...]] = ("value",)
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_values.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    @property
    def ends(self) -> tuple[float, float]:
        """Return where the numbers that are summed lie, in the unit that people read them in."""
        low, high = self.score_range
        if self.at_least is not None:
            return (0.0, 1.0)
        return (low, high) if self.minus is None else (low - high, high - low)

    @property
    def largest(self) -> float:
        low, high = self.ends
        return high - low

    def _error(self) -> str:
        value = held_to(f"value_{self.place}", *self.score_range)
        if self.at_least is not None:
            # Beyond the bounds a value counts as the nearer end; comparing needs no such care.
            reached = f"value_{self.place} >= {double(self.at_least)}"
            return f"CASE WHEN {reached} THEN {double(1)} ELSE {double(0)} END"
        low, high = self.ends
        if self.minus is not None:
            value = f"{value} - {held_to(f'value_{self.minus}', *self.score_range)}"
        return f"({value} - {double(low)}) / {double(high - low)}"

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return []


@dataclass(frozen=True)
class ValueCounts(DisjointCounts):
    """Rows by the bin between public edges that a declared value falls in.

    A value on an edge belongs to the bin above it; the first bin has everything below the first
    edge, the last everything from the last.

    Claim:       L1 sensitivity 1 per row that leaves or arrives, or the largest weight in steps.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one bin of one group.
    Numerics:    exact integers; values and edges compare as doubles.
    Refuses:     nothing; edges are checked when the question is made.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan, O(edges) memory.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> ValueCounts(edges=(0.5,)).sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE))
    2
    """

    edges: tuple[float, ...]
    place: int = 0
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_values.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def places(self) -> dict[str, tuple[str, int]]:
        bin_ = count_passed(f"value_{self.place}", self.edges)
        return {"bin": (bin_, len(self.edges) + 1)}


# --- What people read ----------------------------------------------------------------------------


class ValueMean(MeanRelease):
    """A noisy mean of a declared value, of a difference of two, or of a share."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        statistic = drawn.request.statistic
        assert isinstance(statistic, BoundedSum)
        self._low = statistic.ends[0] if isinstance(statistic, ValueSums) else 0.0

    @property
    def measures(self) -> dict[str, Measure]:
        whole = mean(self._ratio, self._largest, low=self._low, name=self.name, terms=self.terms)
        return {self.name: whole}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value((value - self._low) / self._largest)


class BinnedRows:
    """Rows by bin: the share of each bin, the share below an edge, and quantiles between edges."""

    name: str
    terms: str
    edges: tuple[float, ...]
    """Where bins meet, with both ends of the declared bounds."""
    _counts: NoisyCounts

    @property
    def bins(self) -> int:
        return len(self.edges) - 1

    def share(self, bin_: int) -> Measure:
        """Return the share of the rows in a bin, counted from 0."""
        low, high = self.edges[bin_ : bin_ + 2]
        name = f"share of {self.name} from {low:g} to {high:g}"
        own = np.zeros(self.bins)  # not a row of a matrix, all of which it would keep in memory
        own[bin_] = 1.0
        return self._share(own, name)

    def share_below(self, edge: float) -> Measure:
        """Return the share of the rows with a value below one of the edges."""
        inner = self.edges[1:-1]
        if edge not in inner:
            known = ", ".join(f"{edge:g}" for edge in inner[:20])
            raise ArgumentError(f"edge must be one of the edges between bins: {known}.")
        below = (np.arange(self.bins) <= inner.index(edge)).astype(float)
        return self._share(below, f"share of {self.name} below {edge:g}")

    def quantile(self, share: float, *, smooth: bool = False) -> Measure:
        """Return the value that this share of the rows lies below, as exactly as bins tell it.

        Within a bin rows count as evenly spread. The interval reaches to edges, since nobody can
        tell where in a bin the rows lie; `smooth` says that they do not heap up within bins, as
        measurements do not and whole numbers do. Then it ends between edges, a little wider where
        neighbouring bins differ.
        """
        share = Share("Try 0.5.")(share, "share")
        smooth = Flag()(smooth, "smooth")
        low, high = self.edges[0], self.edges[-1]
        inner = self.edges[1:-1]
        below = [self.share_below(edge) for edge in inner]

        def between(level: float, noise: bool) -> Interval:
            ends = [
                measure.noise_interval(level) if noise else measure.interval(level)
                for measure in below
            ]
            if smooth and noise:
                far = float(normal_quantile(np.array([0.5 + level / 2]))[0])
                return self._crossed(share, ends, self._stray * far)
            if smooth:
                least, most = zip(between(level, True), self._crossed(share, ends), strict=True)
                return min(least), max(most)
            first = [edge for edge, (_, last) in zip(inner, ends, strict=True) if last < share]
            after = [edge for edge, (start, _) in zip(inner, ends, strict=True) if start > share]
            return (max(first, default=low), min(after, default=high))

        counts = np.maximum(self._counts.estimate, 0.0)
        total = float(counts.sum())
        reached = np.concatenate([[0.0], np.cumsum(counts) / total]) if total > 0 else None
        value = (low + high) / 2
        if reached is not None:
            value = float(np.interp(share, reached, np.array(self.edges)))
        return Measure.read(
            value,
            between,
            name=f"{self.name}, {quantile_name(share)}",
            terms=self.terms,
            share=lambda rank: (rank - low) / (high - low),
        )

    @property
    def _stray(self) -> Floats:
        """Return how far each bin's rows stray from an even spread, as a part of all rows.

        It is the deviation of a share below the middle of the bin, times 2.
        """
        counts = np.maximum(self._counts.estimate, 0.0)
        variances = [
            self._counts.sampling_variance(own, self._counts.unit * count)
            for own, count in zip(np.eye(self.bins), counts, strict=True)
        ]
        strays: Floats = np.sqrt(variances) / max(float(self._counts.estimate.sum()), 1.0)
        return strays

    def _crossed(
        self, share: float, ends: Sequence[Interval], stray: Floats | float = 0.0
    ) -> Interval:
        """Return where the ends of shares below edges, joined within bins, cross a share.

        A share below x that bends within a bin is off its straight line by an eighth of what the
        density changes over the bin; four times that is allowed, by the noisy counts around. The
        rows' own share strays from it as a bridge from edge to edge does, by `stray` times the root
        of t (1 - t).
        """
        lows, highs = np.array([(0.0, 0.0), *ends, (1.0, 1.0)]).T
        # Shares rise, but noise may put a later one below: the wider ends hold for both.
        lows, highs = np.minimum.accumulate(lows[::-1])[::-1], np.maximum.accumulate(highs)
        counts = np.maximum(self._counts.estimate, 0.0) / max(float(self._counts.estimate.sum()), 1)
        around = np.abs(np.diff(counts))
        change = np.maximum(np.append(around, 0.0), np.insert(around, 0, 0.0))
        part = np.arange(_WITHIN + 1) / _WITHIN
        bent = 2 * change[:, None] * part * (1 - part)
        bent = bent + np.reshape(stray, (-1, 1)) * np.sqrt(part * (1 - part))
        edges = np.array(self.edges)
        places, least, most = (
            ends[:-1, None] * (1 - part) + ends[1:, None] * part for ends in (edges, lows, highs)
        )
        # Nowhere is the share below x less than below the bin, or more than below its end.
        least = np.maximum(least - bent, lows[:-1, None])
        most = np.minimum(most + bent, highs[1:, None])
        # Steps at whose start or end it may be reached, whole: a narrow interval lies inside one.
        reached = np.minimum(least[:, :-1], least[:, 1:]) <= share
        reached &= np.maximum(most[:, :-1], most[:, 1:]) >= share
        return float(places[:, :-1][reached].min()), float(places[:, 1:][reached].max())

    def _share(self, numerator: Any, name: str) -> Measure:
        ratio = Ratio(self._counts, numerator, np.ones(self.bins))
        return Measure.of(ratio, name=name, terms=self.terms, share=float)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        several = [self.quantile(0.5), *(self.share(bin_) for bin_ in range(self.bins))]
        return {measure.name: measure for measure in several}


def quantile_name(share: float) -> str:
    """Return what people call a quantile.

    >>> quantile_name(0.5), quantile_name(0.975)
    ('median', '97.5% quantile')
    """
    return "median" if share == 0.5 else f"{share * 100:g}% quantile"


def bin_counts(
    noisy: Any, mechanism: DiscreteLaplace, *, rows: int | None, weighted: bool
) -> NoisyCounts:
    """Return counts by bin with the law of their noise."""
    values, scale = np.asarray(noisy), mechanism.float_scale
    if weighted:
        half = values.size // 2
        squares = Squares(values * float(STEPS), np.eye(values.size) * STEPS, _weight_squares)
        return NoisyCounts(
            estimate=values[:half].astype(float),
            spread=np.eye(half, values.size),
            scale=scale,
            unit=float(STEPS),
            squares=squares,
        )
    if rows is not None:
        return with_public_total(values, scale=scale, rows=rows)
    return NoisyCounts(
        estimate=values.astype(float), spread=np.eye(values.size), scale=scale, rows=None
    )


def _weight_squares(combination: Any) -> Floats:
    """Of a combination of weights by bin, by the sums of w and of w (1 - w)."""
    own = np.asarray(combination) ** 2
    return np.concatenate([own, -own])


class HistogramRelease(BinnedRows, Release):
    """A noisy histogram of a declared value."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism, statistic = drawn.request.mechanism, drawn.request.statistic
        assert isinstance(mechanism, DiscreteLaplace)
        assert isinstance(statistic, ValueCounts)
        low, high = drawn.request.parameters["bounds"]
        self.edges = (low, *statistic.edges, high)
        rows = drawn.about.rows
        self._counts = bin_counts(drawn.values, mechanism, rows=rows, weighted=statistic.weighted)

    def plotted(self) -> dict[str, Measure]:
        return {}

    def surprise(self, name: str, value: float) -> float:
        return self.measures[name].surprise(value)


class PooledHistogram(BinnedRows, SummedPool):
    """The histogram of all rows of all sites."""

    def __init__(self, sites: "Sequence[Site]") -> None:
        SummedPool.__init__(self, sites)
        parameters = sites[0].content["parameters"]
        low, high = parameters["bounds"]
        self.edges, self.terms = (low, *parameters["edges"], high), self._terms
        self._counts = summed(self._noisy_counts)

    def _noisy(self, site: "Site") -> NoisyCounts:
        return bin_counts(site.noisy, site.mechanism, rows=site.rows, weighted=False)


# --- The questions -------------------------------------------------------------------------------

BOUNDS_HELP: Final = (
    "Bounds of the column, the lower first; a value outside counts as the nearer end. "
    "Default: the declared bounds."
)


@dataclass(frozen=True, kw_only=True)
class OfColumns(Divisible[R_co, Groups_co], Generic[R_co, Groups_co]):
    """A question about declared columns of numbers."""

    of = (MeasuredRows,)
    needs_columns = (
        1,
        "no column has declared bounds: declare values={'dice': (0, 1)}",
    )
    weighted: Weighted = False

    def parameters(self, about: MeasuredRows) -> dict[str, Any]:
        """Return what is booked of the columns, their bounds and the weights."""
        return weight_parameters(self.weighted, about)


@dataclass(frozen=True, kw_only=True)
class OfColumn(OfColumns[R_co, Groups_co], Generic[R_co, Groups_co]):
    """A question about one declared column, within bounds that it may name."""

    column_field = "column"
    column: Annotated[str, Text("a column"), "The declared column with the numbers."]
    bounds: Annotated[Any, Ends(), BOUNDS_HELP] = None

    @property
    def columns_asked(self) -> tuple[str, ...]:
        """Return the declared columns that it reads."""
        return (self.column,)

    @property
    def values_asked(self) -> Mapping[str, tuple[float, float]]:
        return {} if self.bounds is None else dict.fromkeys(self.columns_asked, self.bounds)

    def ends(self, about: MeasuredRows) -> tuple[float, float]:
        """Return the bounds of its columns: its own, or the widest of the declared ones."""
        declared = [
            list(about.values.values())[about.place(column)] for column in self.columns_asked
        ]
        if self.bounds is not None:
            low, high = self.bounds
            return (low, high)
        return (min(value.low for value in declared), max(value.high for value in declared))

    def parameters(self, about: MeasuredRows) -> dict[str, Any]:
        own = {"column": self.column, "bounds": list(self.ends(about))}
        return own | super().parameters(about)


@dataclass(frozen=True, kw_only=True)
class OfSums(OfColumns[ValueMean, ByGroup[ValueMean]]):
    """A question that sums of one number of each row answer."""

    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"by": "g"}, {"weighted": True})

    @abstractmethod
    def statistic(self, about: MeasuredRows) -> BoundedSum:
        """Return the sums that answer it."""

    @abstractmethod
    def words(self) -> str:
        """Return what people call its answer."""

    def request(self, about: MeasuredRows) -> Request:
        statistic = self.statistic(about)
        mechanism = laplace(statistic, self.price, about.protection)
        return Request(self.words(), statistic, mechanism, self.parameters(about))

    def read(self, drawn: Drawn) -> ValueMean:
        return ValueMean(drawn)

    def typical(self, about: MeasuredRows, guess: Guess) -> Ints:
        return typical_sums(self.statistic(about), guess)

    def with_rest(self, about: MeasuredRows) -> dict[str, Any]:
        """Return how the rows are summed: with what is left of 1 where their number is private."""
        return {"with_rest": about.rows is None or self.weighted, "weighted": self.weighted}

    @classmethod
    def pool(cls, sites: "Sequence[Site]") -> "Pooled":
        return PooledMean(sites)


@dataclass(frozen=True, kw_only=True)
class Mean(OfColumn[ValueMean, ByGroup[ValueMean]], OfSums):
    """The mean of a declared column, or of its difference from another one of the same rows."""

    kind = "mean"
    title = "mean"
    asks = "How large is a column on average?"
    tells = "The mean of a column within its bounds, or of its difference from another column."
    example: ClassVar[Mapping[str, Any]] = {"column": "a"}
    replayed = (
        *OfSums.replayed,
        {"minus": "b"},
        {"bounds": [0.25, 0.75]},
    )
    minus: Annotated[
        str | None,
        Text("a column"),
        "Another declared column of the same rows: the mean of the column minus this one.",
    ] = None

    @property
    def columns_asked(self) -> tuple[str, ...]:
        return (self.column,) if self.minus is None else (self.column, self.minus)

    def statistic(self, about: MeasuredRows) -> ValueSums:
        return ValueSums(
            score_range=self.ends(about),
            place=about.place(self.column),
            minus=None if self.minus is None else about.place(self.minus),
            **self.with_rest(about),
        )

    def words(self) -> str:
        return f"mean of {' minus '.join(map(visible, self.columns_asked))}"

    def parameters(self, about: MeasuredRows) -> dict[str, Any]:
        minus = {} if self.minus is None else {"minus": self.minus}
        return {**super().parameters(about), **minus}

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        low, high = (float(end) for end in parameters["bounds"])
        return (low - high, high - low) if "minus" in parameters else (low, high)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        apart = (
            value_pair("a difference from end to end", [(1.0, 0.0)], [(0.0, 1.0)]),
            value_pair("the largest difference leaves", [(1.0, 0.0)], [], **REMOVE),
        )
        return (
            *value_cases(note="with the sum of squares, which is free"),
            WorstCase(name="difference", pairs=apart, fields={"minus": "b"}, make=value_table),
        )


@dataclass(frozen=True, kw_only=True)
class ShareAbove(OfColumn[ValueMean, ByGroup[ValueMean]], OfSums):
    """The share of rows whose declared column has at least a threshold."""

    kind = "share-above"
    title = "share"
    asks = "How many rows reach a threshold?"
    tells = "The share of rows with a number of at least the threshold."
    example: ClassVar[Mapping[str, Any]] = {"column": "a", "at_least": 0.5}
    at_least: Annotated[float, Number(), "Rows with at least this number count."]

    def statistic(self, about: MeasuredRows) -> ValueSums:
        low, high = self.ends(about)
        if not low < self.at_least <= high:
            raise ArgumentError(
                f"at_least must lie above {low:g} and at most at {high:g}, the bounds of "
                f"{visible(self.column)!r}, got {self.at_least:g}."
            )
        return ValueSums(
            score_range=(low, high),
            place=about.place(self.column),
            at_least=self.at_least,
            **self.with_rest(about),
        )

    def words(self) -> str:
        return f"share of {visible(self.column)} at least {self.at_least:g}"

    def parameters(self, about: MeasuredRows) -> dict[str, Any]:
        return {**super().parameters(about), "at_least": self.at_least}

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return value_cases(note="a row is above or below")


@dataclass(frozen=True, kw_only=True)
class Histogram(OfColumn[HistogramRelease, ByGroup[HistogramRelease]]):
    """Rows by bins of a declared column; shares below edges and quantiles are read off it."""

    kind = "histogram"
    title = "histogram"
    asks = "How are the numbers of a column spread?"
    tells = "The share of rows in each bin, and the median and other quantiles."
    example: ClassVar[Mapping[str, Any]] = {"column": "a"}
    replayed = (
        {},
        {"by": "g"},
        {"weighted": True},
        {"edges": [0.25, 0.5]},
    )
    bins: Annotated[int, Whole(2, MOST_BINS), "The number of bins, all equally wide."] = 10
    edges: Annotated[
        Any,
        Numbers(),
        "Edges between bins, instead of equally wide bins. The first bin holds everything "
        "below, the last everything above.",
    ] = None

    def inner_edges(self, about: MeasuredRows) -> tuple[float, ...]:
        """Return where bins meet, within the bounds."""
        low, high = self.ends(about)
        if self.edges is None:
            return tuple(low + (high - low) * place / self.bins for place in range(1, self.bins))
        inside = tuple(edge for edge in self.edges if low < edge < high)
        if len(inside) < len(self.edges) or len(inside) >= MOST_BINS:
            raise ArgumentError(
                f"edges must lie strictly between the bounds {low:g} and {high:g}, and be fewer "
                f"than {MOST_BINS:,}."
            )
        return inside

    def request(self, about: MeasuredRows) -> Request:
        statistic = ValueCounts(
            edges=self.inner_edges(about),
            place=about.place(self.column),
            weighted=self.weighted,
        )
        parameters = self.parameters(about) | {"edges": list(statistic.edges)}
        mechanism = laplace(statistic, self.price, about.protection)
        return Request(visible(self.column), statistic, mechanism, parameters)

    def read(self, drawn: Drawn) -> HistogramRelease:
        return HistogramRelease(drawn)

    def typical(self, about: MeasuredRows, guess: Guess) -> Ints:
        bins = len(self.inner_edges(about)) + 1
        middles = (np.arange(bins) + 0.5) / bins - 0.5
        shares = np.exp(-((middles * 4) ** 2))
        counts = shares / shares.sum() * sum(guess.counts)
        return weigh_counts(counts, self.weighted, guess)

    @classmethod
    def pool(cls, sites: "Sequence[Site]") -> "Pooled":
        return PooledHistogram(sites)

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        low, high = (float(end) for end in parameters["bounds"])
        return (low, high)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return value_cases(note="all bins jointly", bins=2)


# --- audited -------------------------------------------------------------------------------------

OwnRows = list[tuple[float, float]]
_OTHERS: Final[OwnRows] = [(0.8, 0.6), (0.6, 0.6), (0.3, 0.9), (0.7, 0.1), (0.4, 0.4), (0.2, 0.5)]


def value_table(content: Any, options: Mapping[str, Any]) -> PrivateTable:
    """Return private rows with the values a and b, both from 0 to 1."""
    values = {"a": (0, 1), "b": (0, 1)}
    return Dataset(content, **{"values": values, "name": "neighbour", **options})


def value_pair(
    name: str, first: OwnRows, second: OwnRows, others: OwnRows = _OTHERS, **options: Any
) -> Pair:
    """Return one person's rows of a and b on either side, beside those of others."""

    def of(own: OwnRows) -> dict[str, Any]:
        content = [*own, *others]
        people = [*[0] * len(own), *range(1, len(others) + 1)]
        return {
            "a": [a for a, _ in content],
            "b": [b for _, b in content],
            "u": people,
            "k": list(range(len(content))),
        }

    return Pair(name, of(first), of(second), options)


def value_cases(note: str, **fields: Any) -> tuple[WorstCase, ...]:
    """Return the worst neighbours of a question about the value a: plain, by group, weighted."""
    low, high = (0.0, 0.0), (1.0, 1.0)
    pairs = (
        value_pair("a value from end to end", [low], [high]),
        value_pair("the largest value leaves", [high], [], **REMOVE),
        value_pair("the smallest value leaves", [low], [], **REMOVE),
        value_pair("a person's two values from end to end", [low, low], [high, high], **PERSON),
    )

    def grouped(pair: Pair, first: str, second: str) -> Pair:
        def of(content: dict[str, Any], own: str) -> dict[str, Any]:
            count = len(content["a"]) - len(_OTHERS)
            return {**content, "g": [*own[:count], *"aababb"]}

        sides = of(pair.first, first), of(pair.second, second)
        return Pair(f"{pair.name}, by group", *sides, {**pair.options, "groups": {"g": ["a", "b"]}})

    def weighted(pair: Pair) -> Pair:
        def of(content: dict[str, Any]) -> dict[str, Any]:
            count = len(content["a"]) - len(_OTHERS)
            return {**content, "w": [*[5.0] * count, 0.0, 1.25, 2.5, 3.75, 0.0, 1.25]}

        options = {**pair.options, "weight": "w", "largest_weight": 5}
        return Pair(f"{pair.name}, weighted", of(pair.first), of(pair.second), options)

    by_group = (
        grouped(pairs[0], "a", "b"),
        grouped(pairs[1], "b", ""),
        grouped(pairs[3], "ab", "bc"),
    )
    return (
        WorstCase(pairs=pairs, note=note, fields=fields, make=value_table),
        WorstCase(name="by-group", pairs=by_group, fields={**fields, "by": "g"}, make=value_table),
        WorstCase(
            name="weighted",
            pairs=tuple(map(weighted, pairs)),
            fields={**fields, "weighted": True},
            make=value_table,
        ),
    )


def _open_values(content: Any, **options: Any) -> Dataset:
    declared: dict[str, Any] = {"values": {"a": (0, 1), "b": (0, 1)}, "groups": GROUPS}
    return Dataset(content, **declared, weight="w", largest_weight=1.0, name="made up", **options)


declare_rows(MeasuredRows, {"a": SCORE, "b": SCORE, "g": GROUP, "w": WEIGHT}, _open_values)
