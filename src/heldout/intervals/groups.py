"""Answers by group: each group's release, how far apart the groups are, and whether by chance.

A group without information is named as such and takes no part in gaps: released numbers alone
decide that. The test asks for the one value that explains all groups best; what each group is off
by is turned into a normal score by its own law of noise and sampling, so the sum of their squares
has about the chi-square law of one degree fewer than there are groups. The best value takes a whole
degree off where laws are normal, and less where noise has its heavy tails: about 2/3 of one.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import numpy as np

from heldout.arguments import no_such, visible
from heldout.drawing.words import by_width
from heldout.errors import ArgumentError
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.measure import Interval, Measure, Release
from heldout.intervals.readings import OTHER_NAMES
from heldout.intervals.tuned import HEAVY_TAILS
from heldout.kernel.door import Drawn

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure

Part_co = TypeVar("Part_co", bound=Release, covariant=True)
Surprise = Callable[[float], float]
"""How often so far a number would be released if the population's were this one."""
_GRID: Final = 17
_FAR, _HEAVY = 2.0, 1.245  # a score, and what Laplace's law has at half of its distance; normal: 1
_LEAST: Final = 1e-300  # a p-value that is smaller has no normal score in doubles


class Gap(Measure):
    """The largest group's number minus the smallest's, or one's minus the others', with a p-value.

    The p-value holds for the number of groups.
    """

    p_value: float
    """How often groups would be seen so far apart if the population had no differences."""
    between: tuple[str, ...]
    """The groups that were compared; those without information are not among them."""

    def sentence(self, level: float = 0.95) -> str:
        if len(self.between) < 2:
            return f"{self.name}: no information at this price, {self.terms}"
        return f"{super().sentence(level)}, p-value {self.p_value:.3g}"

    @property
    def informative(self) -> bool:
        return len(self.between) > 1 and super().informative

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return super().as_dict(level) | {"p_value": self.p_value, "between": list(self.between)}


class ByGroup(Release, Generic[Part_co]):
    """One release for each group: `.groups["F"]`, `.gap`, `.worst`. Its headline is the gap."""

    def __init__(
        self, drawn: Drawn, parts: Iterable[Part_co], *, lower_is_better: bool = False
    ) -> None:
        super().__init__(drawn)
        names = drawn.request.parameters["groups"]
        self.groups: Mapping[str, Part_co] = dict(zip(names, parts, strict=True))
        self._lower_is_better = lower_is_better
        self._is_read = False

    def stored_readings(self) -> dict[str, Any] | None:
        groups = {name: part.stored_readings() for name, part in self.groups.items()}
        return groups if any(read is not None for read in groups.values()) else None

    def as_read(self, readings: Mapping[str, Any]) -> Self:
        if set(readings) != set(self.groups):
            raise ValueError("readings")
        other = copy.copy(self)
        other.__dict__.pop("_gaps", None)
        other.groups = {
            name: part if readings[name] is None else part.as_read(readings[name])
            for name, part in self.groups.items()
        }
        return other

    @property
    def metric(self) -> str:
        """The measure that the headline compares."""
        return next(iter(next(iter(self.groups.values())).measures))

    @property
    def not_informative(self) -> tuple[str, ...]:
        """Groups without information at this price: noise hides their number."""
        return tuple(name for name in self.groups if name not in self._readable(self.metric))

    @property
    def drowned(self) -> tuple[str, ...]:
        """`not_informative`, by its name in version 0.1 and in JSON."""
        return self.not_informative

    @property
    def worst(self) -> str:
        """The name of the group that the headline's measure is worst for, of those readable."""
        readable = self._readable(self.metric) or self._every(self.metric)
        return (max if self._lower_is_better else min)(readable, key=lambda name: readable[name])

    @property
    def gap(self) -> Gap:
        return self.gap_in(self.metric)

    @property
    def p_value(self) -> float:
        return self.gap.p_value

    def gap_in(self, metric: str) -> Gap:
        """Return how far apart the groups are in a measure, at no further cost.

        `"false_positive_rate"` is understood as `"false positive rate"`.
        """
        metric = self._named(metric)
        if metric not in self._gaps:
            self._gaps[metric] = self._gap(metric)
        return self._gaps[metric]

    @cached_property
    def _gaps(self) -> dict[str, Gap]:
        return {}

    def _gap(self, metric: str) -> Gap:
        sides = self._readable(metric)
        surprises = [partial(self.groups[name].surprise, metric) for name in sides]
        return self._between(metric, sides, surprises)

    def _between(
        self, metric: str, sides: Mapping[str, Measure], surprises: Sequence[Surprise]
    ) -> Gap:
        """The gap between measures by group, and what each has to say of a value for all."""
        values = list(sides.values())
        least = min(values, default=None)
        gap = Gap(
            max(values) - min(values) if values else 0.0,
            name=f"gap in {metric}",
            terms=self.terms,
            noise_interval=lambda level: _apart(values, level, Measure.noise_interval),
            interval=lambda level: _apart(values, level, Measure.interval),
            share=None if least is None else lambda gap: least.share(least.value + gap),
        )
        gap.between = tuple(sides)
        gap.p_value = _p_value(values, surprises)
        return gap

    def against_rest(self, metric: str | None = None) -> dict[str, Gap]:
        """Each readable group's number minus the mean of the other groups', by name. Free.

        P-values are of a normal law as wide as the interval, times the number of groups.
        """
        metric = self._named(metric or self.metric)
        sides = self._readable(metric)
        gaps = {}
        for name, own in sides.items():
            others = [measure for other, measure in sides.items() if other != name]
            if others:
                title = f"{metric}, {name} minus the others"
                gaps[name] = _difference(own, others, title, self.terms)
                gaps[name].between = tuple(sides)
                gaps[name].p_value = min(1.0, len(sides) * gaps[name].surprise(0.0))
        return gaps

    def _named(self, metric: str) -> str:
        """Return a measure's name, which may be spelt as an attribute is."""
        names = next(iter(self.groups.values())).measures
        spelt = {_as_attribute(name): name for name in names}
        word = _as_attribute(str(metric))
        return metric if metric in names else spelt.get(OTHER_NAMES.get(word, word), metric)

    def _every(self, metric: str) -> dict[str, Measure]:
        first = next(iter(self.groups.values()))
        if not self._is_read:
            self._is_read = True
            first.read_together(list(self.groups.values()))
        known = first.measures
        if metric not in known:
            raise ArgumentError(no_such("measure", metric, list(known)))
        return {name: group.measures[metric] for name, group in self.groups.items()}

    def _readable(self, metric: str) -> dict[str, Measure]:
        every = self._every(metric)
        return {name: measure for name, measure in every.items() if measure.informative}

    @property
    def compared(self) -> tuple[str, ...]:
        """The measures that are shown for every group, the headline's first."""
        return (self.metric,)

    @property
    def measures(self) -> dict[str, Measure]:
        measures: dict[str, Measure] = {}
        for metric in self.compared:
            measures[f"gap in {metric}"] = self.gap_in(metric)
            measures |= {
                f"{metric}, {name}": measure for name, measure in self._every(metric).items()
            }
        return measures

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        groups = {
            name: {metric: measure.as_dict(level) for metric, measure in release.measures.items()}
            for name, release in self.groups.items()
        }
        tests = {
            "p_value": self.p_value,
            "worst": self.worst,
            "drowned": list(self.not_informative),
        }
        return {**super().as_dict(level), "groups": groups, **tests}

    @property
    def division(self) -> str:
        """The column that the groups are of, or several."""
        by = self._drawn.request.parameters["by"]
        return by if isinstance(by, str) else ", ".join(by)

    def _largest(self, level: float) -> tuple[str, tuple[float, float]] | None:
        """Return the measure with the gap that is surely the largest, or may be, and its ends.

        The ends hold for all measures together: the largest was not known beforehand. None where
        fewer than two groups can be read.
        """
        readable = [metric for metric in self.compared if len(self._readable(metric)) > 1]
        if not readable:
            return None
        together = 1 - (1 - level) / len(readable)
        ends = {metric: self.gap_in(metric).interval(together) for metric in readable}
        metric = max(ends, key=lambda metric: ends[metric])
        if ends[metric][0] <= 0:
            metric = max(ends, key=lambda metric: ends[metric][1])
        return metric, ends[metric]

    def largest_gap(self, level: float = 0.95) -> Gap:
        """Return the gap that `finding` is about: the largest shown, or the widest possible one."""
        largest = self._largest(level)
        return self.gap if largest is None else self.gap_in(largest[0])

    def finding(self, level: float = 0.95) -> str:
        """Return the gap that is surely the largest of all that are shown, or say that none is.

        Its interval holds for all of them together: the largest was not known beforehand.
        """
        largest, groups = self._largest(level), f"the groups of {visible(self.division)}"
        if largest is None:
            return f"Noise leaves fewer than two of {groups} to compare. Pay more to compare them."
        metric, (low, high) = largest
        sure, show = f"with {level * 100:g}% confidence", by_width(high - low)
        if low <= 0:
            return (
                f"No gap between {groups} is shown {sure}; the widest that may be there is one of "
                f"{show(high)} in {metric}."
            )
        sides = self._readable(metric)
        least, most = (pick(sides, key=lambda name: sides[name]) for pick in (min, max))
        return (
            f"The largest gap between {groups} is in {metric}: {show(sides[least].value)} for "
            f"{visible(least)} and {show(sides[most].value)} for {visible(most)}; {sure} it is "
            f"{show(low)} to {show(high)}."
        )

    def plotted(self) -> dict[str, Measure]:
        """Return nothing: the groups have a picture of their own."""
        return {}

    def _noisy(self) -> object:
        return {name: release._noisy() for name, release in self.groups.items()}

    def __str__(self) -> str:
        largest = self._largest(0.95) if len(self.compared) > 1 else None
        metric = self.metric if largest is None or largest[1][0] <= 0 else largest[0]
        first = str(self.gap)
        if largest is not None:
            first = f"{self.finding()} {self.terms[:1].upper()}{self.terms[1:]}."
        lines = [  # the terms are in the first line: they are said once
            f"  {name}: {measure.line()}" for name, measure in self._every(metric).items()
        ]
        return "\n".join([first, *lines])

    def _lead(self) -> str:
        return self.finding() if len(self.compared) > 1 else super()._lead()

    def figures(self, level: float = 0.95) -> list["Figure"]:
        """The groups with their intervals; those without information are grey."""
        return self._pictured((self.metric,), level)

    def _pictured(self, metrics: Sequence[str], level: float) -> list["Figure"]:
        from heldout.drawing.page import interval_plot

        shown = {metric: self._every(metric) for metric in metrics if self._readable(metric)}
        drawn = [
            interval_plot(
                {f"{self.division}: {name}": measure for name, measure in groups.items()},
                level=level,
                title=metric,
            )
            for metric, groups in shown.items()
        ]
        # What dots and bars are is said once.
        return [*drawn[:1], *(replace(figure, caption="") for figure in drawn[1:])]


def _as_attribute(name: str) -> str:
    """Return a measure's name as an attribute is spelt.

    >>> _as_attribute("Cohen's kappa"), _as_attribute("F1 score")
    ('cohens_kappa', 'f1_score')
    """
    return name.lower().replace("'", "").replace(" ", "_").replace("-", "_")


class DecisionsByGroup(ByGroup[ConfusionRelease]):
    """Confusion matrices by group, and what fairness auditors read off them."""

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.metric, "recall", "false positive rate", "selection rate", "precision")

    @property
    def threshold(self) -> float:
        return float(self._drawn.request.parameters["threshold"])

    def figures(self, level: float = 0.95) -> list["Figure"]:
        return self._pictured(self.compared[:4], level)

    @property
    def equal_opportunity(self) -> Gap:
        """Return how far apart the groups are in recall: the share of positives that is found."""
        return self.gap_in("recall")

    @property
    def demographic_parity(self) -> Gap:
        """Return how far apart the groups are in the share of rows that are called positive."""
        return self.gap_in("selection rate")

    @property
    def predictive_parity(self) -> Gap:
        """Return how far apart the groups are in precision: what an alarm is worth."""
        return self.gap_in("precision")

    @property
    def equalised_odds(self) -> Gap:
        """The larger of the gaps in recall and in false positive rate, tested as two."""
        both = [self.gap_in("recall"), self.gap_in("false positive rate")]

        def larger(read: Callable[[Measure, float], Interval]) -> Callable[[float], Interval]:
            def ends(level: float) -> Interval:
                intervals = [read(gap, 1 - (1 - level) / 2) for gap in both]
                return max(low for low, _ in intervals), max(high for _, high in intervals)

            return ends

        worse = Gap(
            max(both),
            name="gap in odds",
            terms=self.terms,
            noise_interval=larger(Measure.noise_interval),
            interval=larger(Measure.interval),
            share=float,
        )
        worse.between = tuple(n for n in both[0].between if n in both[1].between)
        worse.p_value = min(1.0, 2 * min(gap.p_value for gap in both))
        return worse

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        names = ("equal_opportunity", "equalised_odds", "demographic_parity", "predictive_parity")
        fairness = {name: getattr(self, name).as_dict(level) for name in names}
        return {**super().as_dict(level), "fairness": fairness}


def _apart(
    sides: list[Measure], level: float, read: Callable[[Measure, float], Interval]
) -> Interval:
    """Bounds of the largest difference, from those of each pair at a level that holds for all.

    A pair's bounds are recovered from its members' own (Zou and Donner 2008).
    """
    if len(sides) < 2:
        return (0.0, 1.0)
    pairs = len(sides) * (len(sides) - 1) / 2
    ends = np.array([(side.value, *read(side, 1 - (1 - level) / pairs)) for side in sides])
    value, below, above = ends[:, 0], ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]
    apart = value[:, None] - value  # of each from itself by nothing, which no interval is beyond
    low = (apart - np.hypot(below[:, None], above)).max()
    high = (apart + np.hypot(above[:, None], below))[~np.eye(len(ends), dtype=bool)].max()
    return max(float(low), 0.0), max(float(high), 0.0)


def _difference(own: Measure, others: list[Measure], name: str, terms: str) -> Gap:
    """A number minus the mean of others."""
    mean = math.fsum(others) / len(others)

    def interval(read: Callable[[Measure, float], Interval]) -> Callable[[float], Interval]:
        def ends(level: float) -> Interval:
            low, high = read(own, level)
            theirs = [(other.value, *read(other, level)) for other in others]
            below = math.hypot(*(value - end for value, end, _ in theirs)) / len(others)
            above = math.hypot(*(end - value for value, _, end in theirs)) / len(others)
            apart = own.value - mean
            return (
                apart - math.hypot(own.value - low, above),
                apart + math.hypot(high - own.value, below),
            )

        return ends

    return Gap(
        own.value - mean,
        name=name,
        terms=terms,
        noise_interval=interval(Measure.noise_interval),
        interval=interval(Measure.interval),
    )


def _score(p_value: float) -> float:
    """Return how many standard deviations a normal number with this two-sided p-value lies out."""
    return -NormalDist().inv_cdf(min(max(p_value, _LEAST), 1.0) / 2)


def _p_value(values: Sequence[Measure], surprises: Sequence[Surprise]) -> float:
    """Return how often groups are seen so far apart where the population has one value for all."""
    if len(values) < 2:
        return 1.0
    from scipy.special import gammaincc

    def off(value: float) -> float:
        return math.fsum(_score(surprise(value)) ** 2 for surprise in surprises)

    size = len(values)
    heavy = math.fsum(map(_heaviness, values, surprises)) / size
    most, more = HEAVY_TAILS
    degrees = size - 1 + heavy * (most + more * math.log(size / 2))
    # Beyond the outermost values every group is further off.
    return float(gammaincc(degrees / 2, _lowest(off, min(values), max(values)) / 2))


def _heaviness(measure: Measure, surprise: Surprise) -> float:
    """Return how far a law is Laplace's and not normal, by its scores at a distance and at half."""
    low, high = measure.noise_interval()
    distance = max(high - low, 1e-300) / 2
    side = 1 if measure.share(measure.value) < 0.5 else -1  # where the range goes on for longer

    def score(away: float) -> float:
        return _score(surprise(measure.value + side * away))

    for _ in range(5):
        distance *= min(max(_FAR / max(score(distance), 0.05), 0.1), 10.0)
    return min(max((score(distance / 2) - 1) / (_HEAVY - 1), 0.0), 1.0)


def _lowest(function: Callable[[float], float], first: float, last: float) -> float:
    """The least value from `first` to `last`: on a grid, then around its best point."""
    grid = np.linspace(first, last, _GRID)
    values = [function(float(place)) for place in grid]
    best = int(np.argmin(values))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
    for _ in range(16):
        a, b = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, b) if function(a) <= function(b) else (a, high)
    return min(values[best], function((low + high) / 2))
