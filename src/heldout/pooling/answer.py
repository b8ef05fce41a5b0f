"""One answer from several sites: what people and machines read of it."""

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import visible
from heldout.drawing.chart import INK, PALETTE, Chart, Figure, Layer, Names, Numbers
from heldout.drawing.page import card, rendered, write_page
from heldout.drawing.words import digits, numbers, spread
from heldout.errors import ArgumentError
from heldout.intervals.confusion import NoisyConfusion, noisy_counts
from heldout.intervals.measure import Answer, Interval, Measure, checked_level
from heldout.intervals.noise import NoiseSum, halved
from heldout.intervals.ratio import NoisyCounts, list_sums, mean, noisy_sums, share_counts, share_of
from heldout.intervals.readings import Contrast
from heldout.kernel.statistic import BoundedSum
from heldout.pooling.site import Price, Site

# Meta-analysis of one share, such as an area, that several sites estimate with known errors.
Vector = NDArray[np.float64]
# The tuned constants of this room; benchmarks/pooling.py measures what they give.
CAUTION: Final = 0.9
"""Of the bound on the variance between sites. Since 2026-11-16."""
LEAST: Final = 0.5
"""Of the confidence distribution of the variance between sites: its larger half. 2026-11-16."""
RANKS: Final = 24
"""Of the laws that are mixed in a prediction. Since 2026-11-16."""
NEAREST: Final = 0.005
"""Of the mean to an end. Since 2026-11-16."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Shares of sites, the scales of their Laplace noises and the deviations of their samples.

    >>> two = Effects(np.array([.80, .84]), np.array([.01, .01]), np.array([.02, .02]))
    >>> round(two.fixed, 3), [round(end, 3) for end in two.fixed_interval(0.95)]
    (0.819, [0.782, 0.851])
    """

    shares: Vector
    scales: Vector
    deviations: Vector

    @cached_property
    def _variances(self) -> Vector:
        """Return what weights go by: sampling variances as they would be at one common share.

        A sample that happens to be high states too small an error. Weights by stated errors would
        follow such accidents, and pull the mean towards 0 or 1.
        """
        noise, sampling = 2 * self.scales**2, self.deviations**2
        common = _inside(np.average(self.shares, weights=1 / (noise + sampling)), NEAREST)
        own = _inside(self.shares, 4 * NEAREST)
        return np.asarray(noise + sampling * (common * (1 - common)) / (own * (1 - own)))

    @cached_property
    def _centre(self) -> float:
        return float(_inside(np.average(self.shares, weights=1 / self._variances), NEAREST))

    @cached_property
    def _slope(self) -> float:
        """Of the logistic function at the centre: shares per unit of the logit scale."""
        return self._centre * (1 - self._centre)

    @cached_property
    def _logits(self) -> Vector:
        centre = math.log(self._centre / (1 - self._centre))
        return np.asarray(centre + (self.shares - self._centre) / self._slope)

    def weights(self, between: float = 0.0) -> Vector:
        """Return those of the sites, adding up to 1, if the variance between them is this."""
        precision = self._precision(between)
        return np.asarray(precision / precision.sum())

    def _precision(self, between: ArrayLike) -> Vector:
        """Return that of the sites, in columns, at each of these variances between them."""
        return np.asarray(1 / (self._variances / self._slope**2 + np.asarray(between)[..., None]))

    @cached_property
    def q(self) -> float:
        """Cochran's Q: how far apart the sites are, in units of their errors."""
        return float(self._scatter(0.0))

    def _scatter(self, between: ArrayLike) -> Vector:
        precision = self._precision(between)
        mean = precision @ self._logits / precision.sum(axis=-1)
        return np.asarray((precision * (self._logits - mean[..., None]) ** 2).sum(axis=-1))

    @property
    def q_p_value(self) -> float:
        """Return how often sites that are all alike would be as far apart."""
        from scipy.special import chdtrc

        return float(chdtrc(len(self.shares) - 1, self.q))

    @property
    def i_squared(self) -> float:
        """The share of the scatter that lies between the sites."""
        return max(0.0, 1 - (len(self.shares) - 1) / self.q) if self.q > 0 else 0.0

    @cached_property
    def tau_squared(self) -> float:
        """The variance between the sites, on the logit scale (DerSimonian and Laird)."""
        precision = self._slope**2 / self._variances
        total = precision.sum() - (precision @ precision) / precision.sum()
        return max(0.0, (self.q - (len(self.shares) - 1)) / float(total))

    @cached_property
    def largest_tau_squared(self) -> float:
        """An upper bound on it, by Q, which falls as it grows."""
        from scipy.special import chdtri

        least = np.array([chdtri(len(self.shares) - 1, CAUTION)])
        return float(self._where_scatter_is(least)[0])

    @property
    def fixed(self) -> float:
        return _share(self._mean(0.0))

    @property
    def random_mean(self) -> float:
        return _share(self._mean(self.largest_tau_squared))

    def fixed_interval(self, level: float) -> Interval:
        """Covers the mean of these sites' populations, weighted as the sites are here."""
        deviation = float(np.linalg.norm(self.weights() * self.deviations))
        return self._around(0.0, level, deviation)

    def noise_interval(self, level: float, *, random: bool) -> Interval:
        """Covers the mean that these sites' rows would have given without noise."""
        return self._around(self.largest_tau_squared if random else 0.0, level, 0.0)

    def random_interval(self, level: float) -> Interval:
        """Covers the mean share of all sites like these."""
        from scipy.special import stdtrit

        between = self.largest_tau_squared
        half = float(stdtrit(len(self.shares) - 1, (1 + level) / 2)) * float(self._error(between))
        return _share(self._mean(between) - half), _share(self._mean(between) + half)

    def prediction_interval(self, level: float) -> Interval | None:
        """Covers the value of one more site like these; with two sites nothing can be said."""
        if len(self.shares) < 3:
            return None
        from scipy.special import chdtri, ndtri, stdtr

        freedom, ranks = len(self.shares) - 1, (np.arange(RANKS) + 0.5) / RANKS
        # What Q would be at the true variance has a known law, and gives the variance back.
        between = self._where_scatter_is(chdtri(freedom, LEAST + (1 - LEAST) * ranks))
        precision = self._precision(between)
        means = precision @ self._logits / precision.sum(axis=1)
        errors = np.maximum(self._error(between), 1e-12)
        normal = ndtri(ranks)
        another = means[:, None] + np.sqrt(between)[:, None] * (normal / normal.std())

        def above(share: float, logit: float) -> bool:
            return bool(np.mean(stdtr(freedom, (another - logit) / errors[:, None])) > share)

        middle, far = float(np.median(means)), 50.0
        low = halved(lambda place: above((1 + level) / 2, place), middle - far, middle, steps=30)[0]
        high = halved(lambda place: above((1 - level) / 2, place), middle, middle + far, steps=30)[
            1
        ]
        return _share(low), _share(high)

    def _where_scatter_is(self, scatter: Vector) -> Vector:
        """Return the variances between sites that make them scatter so much; 0 if none does."""
        # The more they scatter, the more precise they are: no root lies beyond the last of these.
        spread = float(((self._logits - self._logits.mean()) ** 2).sum())
        low, high = np.zeros_like(scatter), spread / np.minimum(scatter, self.q + 1e-300)
        for _ in range(60):
            middle = (low + high) / 2
            above = self._scatter(middle) > scatter
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(scatter < self.q, high, 0.0)

    def _error(self, between: ArrayLike) -> Vector:
        """Return the standard error of the mean (Hartung and Knapp) with these weights."""
        freedom, precision = len(self.shares) - 1, self._precision(between)
        return np.asarray(np.sqrt(self._scatter(between) / freedom / precision.sum(axis=-1)))

    def _mean(self, between: float) -> float:
        return float(self.weights(between) @ self._logits)

    def _around(self, between: float, level: float, deviation: float) -> Interval:
        weights = tuple((self.weights(between) * self.scales).tolist())
        law = NoiseSum(weights=weights, scale=1.0, deviation=deviation)
        half, mean = law.quantile(level) / self._slope, self._mean(between)
        return _share(mean - half), _share(mean + half)


def _inside(shares: ArrayLike, margin: float) -> Vector:
    return np.asarray(np.clip(shares, margin, 1 - margin))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


ROW_HEIGHT: Final = 30


class Pooled(Answer):
    """The same question, answered by several sites, as one answer. It reads no row and is free."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = tuple(sites)
        self.name, self.kind = sites[0].question, sites[0].kind
        self.price = Price({site.name: site.loss for site in sites})
        neighbours = sites[0].content["protection"]["neighbours"]
        self._terms = f"{len(sites)} sites, {self.price}, {neighbours} neighbours"

    @cached_property
    def effects(self) -> Effects:
        """The meta-analysis of the sites' headlines, as shares of their range."""
        errors = np.array([site.errors for site in self.sites])
        return Effects(np.array([site.share for site in self.sites]), errors[:, 0], errors[:, 1])

    @property
    def range(self) -> Interval:
        """Where the headline can lie."""
        return self.sites[0].range

    def prediction_interval(self, level: float = 0.95) -> Interval | None:
        """Return where the headline of one more site like these lies; None with two sites."""
        ends = self.effects.prediction_interval(checked_level(level))
        return None if ends is None else self._ranged(ends)

    def _ranged(self, ends: Interval) -> Interval:
        low, high = self.range
        return (low + ends[0] * (high - low), low + ends[1] * (high - low))

    def heterogeneity(self) -> str:
        """Say how far the sites differ."""
        effects = self.effects
        return (
            f"Between the sites: Q {effects.q:.2f} (p {effects.q_p_value:.2g}), I² "
            f"{effects.i_squared:.0%}, tau² {effects.tau_squared:.3g} on the logit scale"
        )

    def predicted(self, level: float = 0.95) -> str:
        """Say where one more site would lie; empty with two sites."""
        ends = self.prediction_interval(level)
        if ends is None:
            return ""
        places = digits(self.headline, level)
        low, high = (f"{end:.{places}f}" for end in ends)
        return f"One more site like these, with {level * 100:g}%: {low} to {high}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return stable JSON."""
        effects, predicted = self.effects, self.prediction_interval(level)
        return {
            "kind": self.kind,
            "pooled": self.name,
            "value": self.value,
            "measures": {name: measure.as_dict(level) for name, measure in self.measures.items()},
            "heterogeneity": {
                "q": effects.q,
                "q_p_value": effects.q_p_value,
                "i_squared": effects.i_squared,
                "tau_squared": effects.tau_squared,
                "largest_tau_squared": effects.largest_tau_squared,
                "prediction_interval": None if predicted is None else list(predicted),
            },
            "sites": [
                {
                    "site": site.name,
                    "value": site.value,
                    "level": site.level,
                    "interval": list(site.interval),
                    "noise_interval": list(site.noise_interval),
                    "weight": float(weight),
                    "rows": site.rows,
                    "receipt": site.content["receipt"]["hash"],
                }
                for site, weight in zip(self.sites, self.shown_weights, strict=True)
            ],
            "parameters": dict(self.sites[0].content["parameters"]),
            "protection": dict(self.sites[0].content["protection"]),
            "price": self.price.as_dict(),
        }

    @property
    @abstractmethod
    def shown_weights(self) -> Vector:
        """The share of the pooled headline that each site has."""

    def figures(self, level: float = 0.95) -> list[Figure]:
        return [forest(self, level=level)]

    def save(self, path: str | os.PathLike[str], level: float = 0.95) -> Path:
        """Write a page with the forest plot."""
        return PooledReport({self.kind: self}).save(path, level)

    def _repr_html_(self) -> str:
        rows = [(name, *spread(measure, 0.95)) for name, measure in self.measures.items()]
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
        name, effects = self.sites[0].headline[0], self.effects
        fixed = f"{name}, fixed effect"
        return {
            name: self._measure(name, effects.random_mean, effects.random_interval, random=True),
            fixed: self._measure(fixed, effects.fixed, effects.fixed_interval, random=False),
        }

    def _measure(
        self, name: str, value: float, interval: Callable[[float], Interval], *, random: bool
    ) -> Measure:
        noise = self.effects.noise_interval
        return Measure(
            self._ranged((value, value))[0],
            name=name,
            terms=self._terms,
            interval=lambda level: self._ranged(interval(level)),
            noise_interval=lambda level: self._ranged(noise(level, random=random)),
        )

    @property
    def shown_weights(self) -> Vector:
        return self.effects.weights(self.effects.largest_tau_squared)


class SummedPool(Pooled):
    """Sums over all rows of all sites: each row has the same weight."""

    @cached_property
    def _noisy_counts(self) -> tuple[NoisyCounts, ...]:
        return tuple(self._noisy(site) for site in self.sites)

    @abstractmethod
    def _noisy(self, site: Site) -> NoisyCounts: ...

    @property
    def shown_weights(self) -> Vector:
        rows = np.array([max(float(counts.estimate.sum()), 0.0) for counts in self._noisy_counts])
        return rows / rows.sum() if rows.sum() else np.full(len(rows), 1 / len(rows))


class SummedConfusion(NoisyConfusion):
    """A confusion matrix of several sites: its ratios and counts, and nothing by group."""

    @property
    def measures(self) -> dict[str, Measure]:
        return {**self._ratios, **self._named_counts}

    def contrast(self, contrast: Contrast) -> Measure:
        raise ArgumentError(f"{contrast.name} is not a ratio of counts, and cannot be pooled yet.")


class PooledConfusion(SummedConfusion, SummedPool):
    """The confusion matrix of all rows of all sites; every ratio of it is free."""

    def __init__(self, sites: Sequence[Site]) -> None:
        SummedPool.__init__(self, sites)
        self.terms = self._terms
        self.threshold = float(sites[0].content["parameters"]["threshold"])
        self._counts = summed(self._noisy_counts)

    def _noisy(self, site: Site) -> NoisyCounts:
        negative_below, negative_above, positive_below, positive_above = site.noisy
        noisy = np.array([positive_above, negative_above, positive_below, negative_below])
        return noisy_counts(noisy, site.mechanism, rows=site.rows)

    def figures(self, level: float = 0.95) -> list[Figure]:
        from heldout.drawing.page import confusion_matrix

        return [*super().figures(level), confusion_matrix(self, level=level)]


class PooledMean(SummedPool):
    """The mean of a bounded error over all rows of all sites."""

    def _noisy(self, site: Site) -> NoisyCounts:
        if len(site.noisy) != (3 if site.rows is None else 2):
            raise ArgumentError(
                f"{visible(site.name)} was made by an older version, which did not release how "
                "much errors differ. Ask again."
            )
        unit = float(BoundedSum.resolution)
        return noisy_sums(site.noisy, site.mechanism, unit=unit, rows=site.rows)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        ratio, (low, high) = share_of(summed(self._noisy_counts)), self.range
        whole = mean(ratio, high - low, low=low, name=self.name, terms=self._terms)
        return {self.name: whole}


class PooledShare(PooledMean):
    """The share of all rows of all sites that something holds for."""

    def _noisy(self, site: Site) -> NoisyCounts:
        return share_counts(site.noisy, site.mechanism)


class PooledLists(PooledMean):
    """The mean over all lists of all sites."""

    def _noisy(self, site: Site) -> NoisyCounts:
        return list_sums(site.noisy, site.mechanism)


@dataclass(frozen=True, eq=False)
class SummedCounts(NoisyCounts):
    """Counts of several sites; noise of whole numbers stays one of whole numbers when it is added.

    So it lies beyond the continuous law no further than one site's does.
    """

    sites: tuple[NoisyCounts, ...] = ()

    def granularity(self, combination: Any) -> float:
        return max(site.granularity(combination) for site in self.sites)

    def squares_seen(self, combination: Any) -> tuple[float, float] | None:
        squares = [site.squares_seen(combination) for site in self.sites]
        known = [pair for pair in squares if pair is not None]
        if len(known) < len(squares):
            return None
        return math.fsum(seen for seen, _ in known), math.hypot(*(noise for _, noise in known))


def summed(sites: tuple[NoisyCounts, ...]) -> SummedCounts:
    """Return the sum, with all noises side by side: variances add."""
    scale = float(np.linalg.norm([site.scale for site in sites]))
    rows = [site.rows for site in sites]
    return SummedCounts(
        estimate=np.sum([site.estimate for site in sites], axis=0),
        spread=np.hstack([site.spread * (site.scale / scale) for site in sites]),
        scale=scale,
        unit=sites[0].unit,
        rows=None if None in rows else sum(count or 0 for count in rows),
        sites=sites,
    )


@dataclass(frozen=True)
class PooledReport:
    """Several questions, each pooled: what several reports become."""

    answers: Mapping[str, Pooled]
    left_out: tuple[str, ...] = ()
    """Questions of some report that a site did not ask, or whose answers cannot be pooled."""

    def __str__(self) -> str:
        return "\n".join(str(answer) for answer in self.answers.values())

    __repr__ = __str__

    def __getitem__(self, name: str) -> Pooled:
        return self.answers[name]

    @property
    def price(self) -> Price:
        first, *others = (answer.price for answer in self.answers.values())
        for price in others:
            first += price
        return first

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return stable JSON."""
        answers = {name: answer.as_dict(level) for name, answer in self.answers.items()}
        return {
            "answers": answers,
            "left_out": list(self.left_out),
            "price": self.price.as_dict(),
        }

    def html(self, level: float = 0.95) -> str:
        """Return the whole page, which needs nothing from anywhere else."""
        return rendered("pooled.html", title="Pooled answers", pooled=self, level=level)

    def save(self, path: str | os.PathLike[str], level: float = 0.95) -> Path:
        return write_page(path, lambda: self.html(checked_level(level)))


# --- the forest plot ---


def forest(pooled: Pooled, *, level: float) -> Figure:
    """Draw sites with their stated intervals, then the pooled measures of the same kind."""
    sites = [
        _row(site.name, site.value, site.interval, site.noise_interval, 30 + 120 * float(weight))
        for site, weight in zip(pooled.sites, pooled.shown_weights, strict=True)
    ]
    headlines = [
        measure
        for measure in pooled.measures.values()
        if measure.name.startswith(pooled.headline.name)
    ]
    together = [
        _row(
            f"pooled {measure.name}",
            measure.value,
            measure.interval(level),
            measure.noise_interval(level),
        )
        for measure in headlines
    ]
    predicted = pooled.prediction_interval(level)
    another = []
    if predicted is not None:
        middle = sum(predicted) / 2
        another = [_row("one more site", middle, predicted, predicted)]
    ends = [row[end] for row in (*sites, *together, *another) for end in ("low", "high")]
    low, high = min(ends), max(ends)
    show = numbers([low, high])
    for row in (*sites, *together):
        row["end"], row["shown"] = high, show(row["value"])
    for row, site in zip(sites, pooled.sites, strict=True):
        row["shown"] = row["shown"] if site.informative else "no information"
    dots = [row for row, site in zip(sites, pooled.sites, strict=True) if site.informative]
    thick, thin = {"strokeWidth": 9}, {"strokeWidth": 2}
    beside = {"align": "left", "dx": 10, "fontSize": 12, "fontWeight": 600}
    chart = Chart(
        [
            Layer("rule", another, "low", "name", "high", color=PALETTE[4], style=thin),
            *_lines(sites, PALETTE[5], PALETTE[0], thick, thin),
            *_lines(together, PALETTE[4], PALETTE[1], thick, thin),
            *(
                Layer("point", [row], "value", "name", color=colour, size=row["size"])
                for rows, colour in ((dots, PALETTE[0]), (together, PALETTE[1]))
                for row in rows
            ),
            Layer(
                "text", [*sites, *together], "end", "name", text="shown", color=INK, style=beside
            ),
        ],
        x=Numbers(pooled.headline.name, low, high),
        y=Names([row["name"] for row in (*sites, *together, *another)]),
        height=ROW_HEIGHT * (len(sites) + len(together) + len(another)),
    )
    described = "; ".join(f"{row['name']} {row['shown']}" for row in (*sites, *together))
    stated = f"{pooled.sites[0].level * 100:g}%"
    return Figure(
        chart.svg(says=f"Forest plot of {pooled.headline.name}. {described}"),
        f"Thin bar: interval ({stated} as the sites state it, {level * 100:g}% "
        "pooled). Thick bar: noise interval. A larger dot has more weight."
        + (" No information: noise hides this site's own value." if dots != sites else "")
        + (" One more site: where the value of another site like these lies." if another else ""),
    )


def _lines(rows: Any, thick_colour: str, thin_colour: str, thick: Any, thin: Any) -> list[Layer]:
    return [
        Layer("rule", rows, "noise_low", "name", "noise_high", color=thick_colour, style=thick),
        Layer("rule", rows, "low", "name", "high", color=thin_colour, style=thin),
    ]


def _row(name: str, value: float, ends: Any, noise: Any, size: float = 70.0) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "low": ends[0],
        "high": ends[1],
        "noise_low": noise[0],
        "noise_high": noise[1],
        "size": size,
    }
