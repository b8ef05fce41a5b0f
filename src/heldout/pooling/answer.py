"""One answer from several sites: what people and machines read of it."""

import math
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heldout.arguments import visible
from heldout.drawing.chart import Figure
from heldout.drawing.page import card, rendered
from heldout.drawing.place import write_page
from heldout.drawing.words import digits, spread
from heldout.errors import ArgumentError
from heldout.intervals.bounded_mean import list_sums, mean, noisy_sums, share_counts, share_of
from heldout.intervals.confusion import NoisyConfusion, noisy_counts
from heldout.intervals.measure import Interval, Measure, checked_level
from heldout.intervals.ratio import NoisyCounts
from heldout.intervals.readings import Contrast
from heldout.intervals.release import Answer
from heldout.kernel.bounded_sum import BoundedSum
from heldout.kernel.noise import DiscreteLaplace
from heldout.pooling.effects import Effects
from heldout.pooling.picture import forest
from heldout.pooling.price import Price
from heldout.pooling.site import Site

__all__ = [
    "Pooled",
    "PooledArea",
    "PooledConfusion",
    "PooledLists",
    "PooledMean",
    "PooledReport",
    "PooledShare",
]


class Pooled(Answer):
    """The same question, answered by several sites, as one answer. No row is read, nothing paid."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = tuple(sites)
        self.name, self.kind = sites[0].question, sites[0].kind
        self.price = Price({each.name: each.loss for each in sites})
        neighbours = sites[0].content["protection"]["neighbours"]
        self._terms = f"{len(sites)} sites, {self.price}, {neighbours} neighbours"

    @cached_property
    def effects(self) -> Effects:
        """The meta-analysis of the sites' headlines, as shares of their range."""
        errors = np.array([each.errors for each in self.sites])
        return Effects(np.array([each.share for each in self.sites]), errors[:, 0], errors[:, 1])

    @property
    def range(self) -> Interval:
        """Where the headline can lie."""
        return self.sites[0].range

    def prediction_interval(self, level: float = 0.95) -> Interval | None:
        """Where the headline of one more site like these lies; None with two sites."""
        found = self.effects.prediction_interval(checked_level(level))
        return None if found is None else self._ranged(found)

    def _ranged(self, ends: Interval) -> Interval:
        low, high = self.range
        return (low + ends[0] * (high - low), low + ends[1] * (high - low))

    def heterogeneity(self) -> str:
        """How far the sites differ, in a sentence."""
        found = self.effects
        return (
            f"Between the sites: Q {found.q:.2f} (p {found.q_p_value:.2g}), I² "
            f"{found.i_squared:.0%}, tau² {found.tau_squared:.3g} on the logit scale"
        )

    def predicted(self, level: float = 0.95) -> str:
        """Where one more site would lie, in a sentence; empty with two sites."""
        ends = self.prediction_interval(level)
        if ends is None:
            return ""
        places = digits(self.headline, level)
        low, high = (f"{end:.{places}f}" for end in ends)
        return f"One more site like these, with {level * 100:g}%: {low} to {high}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON."""
        found, predicted = self.effects, self.prediction_interval(level)
        return {
            "kind": self.kind,
            "pooled": self.name,
            "value": self.value,
            "measures": {name: each.as_dict(level) for name, each in self.measures.items()},
            "heterogeneity": {
                "q": found.q,
                "q_p_value": found.q_p_value,
                "i_squared": found.i_squared,
                "tau_squared": found.tau_squared,
                "largest_tau_squared": found.largest_tau_squared,
                "prediction_interval": None if predicted is None else list(predicted),
            },
            "sites": [
                {
                    "site": each.name,
                    "value": each.value,
                    "level": each.level,
                    "interval": list(each.interval),
                    "noise_interval": list(each.noise_interval),
                    "weight": float(weight),
                    "rows": each.rows,
                    "receipt": each.content["receipt"]["hash"],
                }
                for each, weight in zip(self.sites, self.shown_weights, strict=True)
            ],
            "parameters": dict(self.sites[0].content["parameters"]),
            "protection": dict(self.sites[0].content["protection"]),
            "price": self.price.as_dict(),
        }

    @property
    @abstractmethod
    def shown_weights(self) -> Any:
        """What share of the pooled headline each site has."""

    def figures(self, level: float = 0.95) -> list[Figure]:
        return [forest(self, level=level)]

    def save(self, path: str | os.PathLike[str], level: float = 0.95) -> Path:
        """Write a page with the forest plot."""
        return PooledReport({self.kind: self}).save(path, level)

    def _repr_html_(self) -> str:
        rows = [(name, *spread(each, 0.95)) for name, each in self.measures.items()]
        head = ("Measure", "Value", "95% interval", "Noise alone")
        note = f"{self.heterogeneity()}. Price: {self.price}."
        return card(str(self), drawn=self.figures(), head=head, rows=rows, note=note)


class PooledArea(Pooled):
    """Areas, or differences of areas, by meta-analysis on the logit scale.

    The headline is the random-effects mean: the area at sites like these. The fixed-effect mean
    speaks of these sites alone.
    """

    @property
    def measures(self) -> dict[str, Measure]:
        name, found = self.sites[0].headline[0], self.effects
        return {
            name: self._measure(name, found.random_mean, found.random_interval, random=True),
            f"{name}, fixed effect": self._measure(
                f"{name}, fixed effect", found.fixed, found.fixed_interval, random=False
            ),
        }

    def _measure(self, name: str, value: float, interval: Any, *, random: bool) -> Measure:
        noise = self.effects.noise_interval
        return Measure(
            self._ranged((value, value))[0],
            name=name,
            terms=self._terms,
            interval=lambda level: self._ranged(interval(level)),
            noise_interval=lambda level: self._ranged(noise(level, random=random)),
        )

    @property
    def shown_weights(self) -> Any:
        return self.effects.weights(self.effects.largest_tau_squared)


class _Summed(Pooled):
    """Sums over all rows of all sites: each row has the same weight."""

    @cached_property
    def _each(self) -> tuple[NoisyCounts, ...]:
        return tuple(self._noisy(each) for each in self.sites)

    @abstractmethod
    def _noisy(self, site: Site) -> NoisyCounts: ...

    @property
    def shown_weights(self) -> Any:
        rows = np.array([max(float(each.estimate.sum()), 0.0) for each in self._each])
        return rows / rows.sum() if rows.sum() else np.full(len(rows), 1 / len(rows))


class PooledConfusion(NoisyConfusion, _Summed):
    """The confusion matrix of all rows of all sites; every ratio of it is free."""

    def __init__(self, sites: Sequence[Site]) -> None:
        _Summed.__init__(self, sites)
        self.terms = self._terms
        self.threshold = float(sites[0].content["parameters"]["threshold"])
        self._counts = summed(self._each)

    @property
    def measures(self) -> dict[str, Measure]:
        return {**self._ratios, **self._named_counts}

    def contrast(self, contrast: Contrast) -> Measure:
        raise ArgumentError(f"{contrast.name} is no ratio of counts, and cannot be pooled yet.")

    def _noisy(self, site: Site) -> NoisyCounts:
        negative_below, negative_above, positive_below, positive_above = site.noisy
        noisy = np.array([positive_above, negative_above, positive_below, negative_below])
        return noisy_counts(noisy, _mechanism(site), rows=site.rows)

    def figures(self, level: float = 0.95) -> list[Figure]:
        from heldout.drawing.pictures import confusion_matrix

        return [*super().figures(level), confusion_matrix(self, level=level)]


class PooledMean(_Summed):
    """The mean of a bounded error over all rows of all sites."""

    def _noisy(self, site: Site) -> NoisyCounts:
        if len(site.noisy) != (3 if site.rows is None else 2):
            raise ArgumentError(
                f"{visible(site.name)} was made by an older version, which did not release how "
                "much errors differ. Ask again."
            )
        unit = float(BoundedSum.resolution)
        return noisy_sums(site.noisy, _mechanism(site), unit=unit, rows=site.rows)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        ratio = share_of(summed(self._each))
        return {self.name: mean(ratio, self.range[1], name=self.name, terms=self._terms)}


class PooledShare(PooledMean):
    """The share of all rows of all sites that something holds for."""

    def _noisy(self, site: Site) -> NoisyCounts:
        return share_counts(site.noisy, _mechanism(site))


class PooledLists(PooledMean):
    """The mean over all lists of all sites."""

    def _noisy(self, site: Site) -> NoisyCounts:
        return list_sums(site.noisy, _mechanism(site))


@dataclass(frozen=True, eq=False)
class SummedCounts(NoisyCounts):
    """Counts of several sites; noise of whole numbers stays one of whole numbers when it is added.

    So it lies beyond the continuous law no further than one site's does.
    """

    each: tuple[NoisyCounts, ...] = ()

    def granularity(self, combination: Any) -> float:
        return max(one.granularity(combination) for one in self.each)

    def squares_seen(self, combination: Any) -> tuple[float, float] | None:
        found = [one.squares_seen(combination) for one in self.each]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return math.fsum(seen for seen, _ in known), math.hypot(*(noise for _, noise in known))


def summed(each: tuple[NoisyCounts, ...]) -> SummedCounts:
    """The sum, with all noises side by side: variances add."""
    scale = float(np.linalg.norm([one.scale for one in each]))
    rows = [one.rows for one in each]
    return SummedCounts(
        estimate=np.sum([one.estimate for one in each], axis=0),
        spread=np.hstack([one.spread * (one.scale / scale) for one in each]),
        scale=scale,
        unit=each[0].unit,
        rows=None if None in rows else sum(one or 0 for one in rows),
        each=each,
    )


def _mechanism(site: Site) -> DiscreteLaplace:
    """The noise that a site says it added; what it charged for is beside the point here."""
    scale = Fraction(site.content["mechanism"]["scale"])
    return DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=len(site.noisy))


@dataclass(frozen=True)
class PooledReport:
    """Several questions, each pooled: what several reports become."""

    answers: Mapping[str, Pooled]
    left_out: tuple[str, ...] = ()
    """Questions of some report that a site did not ask, or whose answers cannot be pooled."""

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.answers.values())

    __repr__ = __str__

    def __getitem__(self, name: str) -> Pooled:
        return self.answers[name]

    @property
    def price(self) -> Price:
        first, *others = (each.price for each in self.answers.values())
        for each in others:
            first += each
        return first

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON."""
        answers = {name: each.as_dict(level) for name, each in self.answers.items()}
        return {
            "answers": answers,
            "left_out": list(self.left_out),
            "price": self.price.as_dict(),
        }

    def html(self, level: float = 0.95) -> str:
        """The whole page, which needs nothing from anywhere else."""
        return rendered("pooled.html", title="Pooled answers", pooled=self, level=level)

    def save(self, path: str | os.PathLike[str], level: float = 0.95) -> Path:
        return write_page(path, lambda: self.html(checked_level(level)))
