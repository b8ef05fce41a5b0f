"""One custodian's answer as its JSON states it, and whether several of them fit together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from heldout.arguments import as_number, shown, visible
from heldout.errors import ArgumentError
from heldout.intervals.measure import Interval
from heldout.intervals.noise import NoiseSum, halved
from heldout.kernel import Loss
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.tied import TiedLaplace

PLAINLY: Final = {
    "threshold": "thresholds",
    "score": "score columns",
    "rival": "rival score columns",
    "rival_range": "ranges of rival scores",
    "rival_map": "maps of rival scores",
    "scores": "kinds of scores (exact, or on the grid)",
    "score_range": "score ranges",
    "score_map": "score maps",
    "out_of_range": "rules for scores out of range",
    "error": "errors",
    "ties": "rules of ties",
}
HOW: Final = ("method",)  # how a site answered, not what it was asked


@dataclass(frozen=True, eq=False)
class Site:
    """A release's JSON; `range` is where its headline can lie."""

    name: str
    content: Mapping[str, Any]
    range: Interval = (0.0, 1.0)
    kind: str = ""
    """Of the question, however old its JSON is."""

    @property
    def question(self) -> str:
        return str(self.content["release"])

    @cached_property
    def headline(self) -> tuple[str, Mapping[str, Any]]:
        headline: tuple[str, Mapping[str, Any]] = next(iter(self.content["measures"].items()))
        return headline

    @cached_property
    def value(self) -> float:
        return self._number(self.headline[1]["value"])

    @cached_property
    def interval(self) -> Interval:
        return self._ends("interval")

    @cached_property
    def noise_interval(self) -> Interval:
        return self._ends("noise_interval")

    @property
    def informative(self) -> bool:
        """Return whether this site's noise leaves anything to read; older releases do not say."""
        return self.headline[1].get("informative") is not False

    @cached_property
    def level(self) -> float:
        return self._number(self.headline[1]["level"])

    @cached_property
    def loss(self) -> Loss:
        return Loss.from_dict(self.content["loss"])

    @property
    def rows(self) -> int | None:
        rows = self.content["rows"]
        return None if rows is None else int(self._number(rows))

    @cached_property
    def noisy(self) -> list[float]:
        drawn = self._drawn
        return drawn[: len(drawn) // 2] if self._by_reach else drawn

    @property
    def _drawn(self) -> list[float]:
        return [self._number(number) for number in self.content["noisy"]]

    @property
    def _by_reach(self) -> bool:
        """Return whether only outcomes are secret, and public reaches come after the sums."""
        return "rows_per_unit" in self.content["mechanism"]

    @property
    def mechanism(self) -> DiscreteLaplace:
        """Return the noise that the site says it added; its price does not matter here."""
        if self._by_reach:
            moved = self.content["mechanism"]["rows_per_unit"] * int(self._drawn[-1])
            scale = moved / Fraction(self.content["mechanism"]["epsilon"])
        else:
            scale = Fraction(self.content["mechanism"]["scale"])
        if self.content["mechanism"].get("tied") is True:
            half = len(self.noisy) // 2
            return TiedLaplace(scale=scale, l1_sensitivity=1, dimension=half, cells=half)
        return DiscreteLaplace(scale=scale, l1_sensitivity=1, dimension=len(self.noisy))

    @cached_property
    def share(self) -> float:
        """The headline as a share of its range, as it was drawn: noise may take it out of [0, 1].

        What is not held to the range is free of the bias that holding it there brings.
        """
        noisy = self.content["noisy"]
        if isinstance(noisy, Mapping) and "unclamped" in noisy:
            return self._number(noisy["unclamped"])
        low, high = self.range
        return (self.value - low) / (high - low)

    @cached_property
    def errors(self) -> tuple[float, float]:
        """The scale of the Laplace noise and the deviation of the sample, as shares of the range.

        They are those of the law, a Laplace noise and a normal error, whose intervals at the
        stated level are as wide as the stated ones.
        """
        noise, both = self._half(self.noise_interval), self._half(self.interval)
        scale = noise / -math.log1p(-self.level)

        def narrow(deviation: float) -> bool:
            law = NoiseSum(weights=(1.0,), scale=scale, deviation=deviation)
            return 2 * law.survival(both) < 1 - self.level

        return scale, halved(narrow, 0.0, both, steps=40)[1] if narrow(0.0) else 0.0

    def _half(self, ends: Interval) -> float:
        """Half the width as a share of the range; the longer side where an end was cut off."""
        least, most = self.range
        low, high = ((end - least) / (most - least) for end in ends)
        half = (high - low) / 2
        if low <= 0 or high >= 1:
            half = max(high - self.share, self.share - low)
        return max(half, 1e-9)

    def _ends(self, which: str) -> Interval:
        low, high = (self._number(end) for end in self.headline[1][which])
        if not low <= high:
            raise ValueError
        return low, high

    def _number(self, value: Any) -> float:
        number = as_number(value)
        if isinstance(value, bool) or not math.isfinite(number):
            raise ValueError
        return number

    def check(self) -> None:
        """Everything that is read later is there and a number."""
        try:
            _ = self.question, self.rows, self.loss, self.content["receipt"]["hash"]
            right = 0 < self.level < 1 and isinstance(self.content["parameters"], Mapping)
            if not (right and isinstance(self.content["protection"], Mapping)):
                raise ValueError
            _ = self.value, self.interval, self.noise_interval, self.share
        except Exception:
            raise ArgumentError(
                f"{visible(self.name)} is not a release that can be read. Pass a Release, what "
                "its as_dict() gives, or the JSON of the command line."
            ) from None


def checked_sites(sites: Sequence[Site]) -> None:
    """Refuse, in words, what does not answer one question in one way."""
    first = sites[0]
    for site in sites:
        site.check()
        if {"by", "weight", "classes"} & set(site.content["parameters"]):
            raise ArgumentError(
                "Answers by group, weighted or of several classes cannot be pooled yet. Ask "
                "without by= and weighted=."
            )
    for site in sites[1:]:
        _same("questions", first, site, first.kind, site.kind)
        _same("questions", first, site, first.question, site.question)
        ours, theirs = first.content["parameters"], site.content["parameters"]
        for name in sorted({*ours, *theirs} - {*HOW}):
            words = PLAINLY.get(name, f"values of {name}")
            _same(words, first, site, ours.get(name), theirs.get(name))
        ours, theirs = first.content["protection"], site.content["protection"]
        for name, words in (
            ("neighbours", "neighbours"),
            ("unit", "units of privacy"),
            ("rows_per_unit", "numbers of rows a unit may keep"),
        ):
            units = [_unit(of) if name == "unit" else of.get(name) for of in (ours, theirs)]
            _same(words, first, site, *units)
        _same("headlines", first, site, first.headline[0], site.headline[0])
    receipts = [str(site.content["receipt"]["hash"]) for site in sites]
    if len(set(receipts)) < len(receipts):
        raise ArgumentError("Two of the releases have the same receipt. Pass each site once.")


def _unit(protection: Mapping[str, Any]) -> str:
    return "units of several rows" if protection.get("unit") else "rows"


def _same(words: str, one: Site, other: Site, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise ArgumentError(
            f"{visible(one.name)} and {visible(other.name)} have different {words}: "
            f"{shown(ours)} and {shown(theirs)}. Only answers to the same question under the "
            "same protection can be pooled."
        )


ASSUMES = "no person is in two sites"


@dataclass(frozen=True)
class Price:
    """The losses that the sites booked. Pooling reads no row and adds nothing to them."""

    losses: Mapping[str, Loss]

    @property
    def one_site(self) -> Loss | None:
        """For people who are in one site each: the largest loss (parallel composition)."""
        return self._together(max)

    @property
    def every_site(self) -> Loss | None:
        """For somebody who is in every site: the sum of the losses."""
        return self._together(sum)

    def _together(self, fold: Any) -> Loss | None:
        """None where one site speaks of epsilon and another of rho."""
        losses = list(self.losses.values())
        epsilons = [loss.epsilon for loss in losses]
        rhos = [loss.rho for loss in losses]
        delta = min(fold([loss.delta for loss in losses]), Fraction(1))
        if None not in epsilons:
            return Loss(fold(epsilons), None, delta)
        return Loss(None, fold(rhos), delta) if None not in rhos else None

    def __add__(self, other: "Price") -> "Price":
        """Both were paid."""
        both = {
            name: Price({"a": self.losses[name], "b": other.losses[name]}) for name in self.losses
        }
        return Price({name: price.every_site or self.losses[name] for name, price in both.items()})

    def __str__(self) -> str:
        if self.one_site is None or self.every_site is None:
            return "each site's own loss: " + "; ".join(map(str, self.losses.values()))
        return f"{self.one_site} if {ASSUMES}, {self.every_site} for somebody who is in all of them"

    def as_dict(self) -> dict[str, Any]:
        one, every = self.one_site, self.every_site
        return {
            "sites": {name: loss.as_dict() for name, loss in self.losses.items()},
            "one_site": None if one is None else one.as_dict(),
            "one_site_assumes": ASSUMES,
            "every_site": None if every is None else every.as_dict(),
        }
