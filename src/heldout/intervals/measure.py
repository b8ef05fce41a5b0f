"""A number that people read: its value, what noise did to it, and what it says about others."""

import copy
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self

from heldout.arguments import Share, no_attribute, visible
from heldout.drawing.words import (
    around,
    between,
    by_width,
    number,
    show_held_end,
    show_probability,
)
from heldout.errors import ArgumentError, MissingDependency
from heldout.kernel import Loss, Protection, Receipt, price
from heldout.kernel.door import Drawn

Interval = tuple[float, float]
MOST_NOISE = 0.5  # of a measure's range; a number that noise spreads over more says nothing
NORMAL: Final = NormalDist().inv_cdf(0.975)
NO_INFORMATION = "no information at this price"


class Measure(float):
    """A released number with its two intervals. It is a float, and prints as a sentence.

    `noise_interval` covers the number that these very rows would have given without noise;
    `interval` covers the number in the population that the rows were drawn from, so it holds
    sampling error and noise both. `share` says which part of the measure's range lies below a
    value; where noise alone fills most of the range the number is not `informative`, and is not
    printed as if it were. A number that is held to `least` prints as that "or less" there.

    >>> half = Measure(0.5, name="accuracy", terms="epsilon 1, replace-one neighbours",
    ...                noise_interval=lambda level: (0.49, 0.51),
    ...                interval=lambda level: (0.46, 0.54))
    >>> print(half)
    accuracy 0.500, 95% interval 0.460 to 0.540 (privacy noise alone: ±0.010), epsilon 1,
    replace-one neighbours
    >>> half + 1
    1.5
    """

    name: str
    terms: str
    whole: bool
    is_probability: bool
    """True if it prints as a probability: near certainty as "above 0.999"."""
    least: float | None
    _share: Callable[[float], float] | None
    reach: Callable[[float], float] | None
    """How far noise goes at a level, in parts of the range, if that does not hang on the value."""
    _noise_interval: Callable[[float], Interval]
    _interval: Callable[[float], Interval]
    _known: dict[tuple[str, float], Interval]

    def __new__(
        cls,
        value: float,
        *,
        name: str,
        terms: str,
        noise_interval: Callable[[float], Interval],
        interval: Callable[[float], Interval],
        whole: bool = False,
        is_probability: bool = False,
        share: Callable[[float], float] | None = None,
        reach: Callable[[float], float] | None = None,
        least: float | None = None,
    ) -> "Measure":
        self = super().__new__(cls, value)
        self.least = least
        self.name, self.terms, self.whole = name, terms, whole
        self.is_probability = is_probability
        self._noise_interval, self._interval, self._share = noise_interval, interval, share
        self.reach = reach
        self._known = {}
        return self

    @classmethod
    def of(cls, reading: Any, to: Callable[[float], float] = float, **more: Any) -> "Measure":
        """Return something with a value and two intervals as a measure.

        `to`, a function that rises, gives what is shown of the value and of all ends.
        """

        def ends(interval: Interval) -> Interval:
            return to(interval[0]), to(interval[1])

        return cls(
            to(reading.value),
            noise_interval=lambda level: ends(reading.noise_interval(level)),
            interval=lambda level: ends(reading.interval(level)),
            **more,
        )

    @classmethod
    def read(
        cls, value: float, interval: Callable[[float, bool], Interval], **more: Any
    ) -> "Measure":
        """Return a number with two intervals that one function of (level, noise alone) gives."""
        return cls(
            value,
            noise_interval=lambda level: interval(level, True),
            interval=lambda level: interval(level, False),
            **more,
        )

    @property
    def value(self) -> float:
        return float(self)

    def interval(self, level: float = 0.95) -> Interval:
        """Covers the population's number: sampling error and privacy noise."""
        return self._lookup("interval", self._interval, level)

    def noise_interval(self, level: float = 0.95) -> Interval:
        """Covers these rows' own number: privacy noise alone."""
        return self._lookup("noise", self._noise_interval, level)

    @property
    def informative(self) -> bool:
        """Return whether anything can be read: the 95% noise interval fills half the range at most.

        Where the noise's own reach is known, an interval that is held to the range counts as wide
        as it would be: or else, of numbers that noise hides, only the few far off would be shown.
        A number without a range, such as a count, is unless its interval has no ends.
        """
        if self.reach is not None:
            return 2 * self.reach(0.95) <= MOST_NOISE
        low, high = self.noise_interval(0.95)
        if not (math.isfinite(low) and math.isfinite(high)):
            return False
        return self.share(high) - self.share(low) <= MOST_NOISE

    def share(self, value: float) -> float:
        """Return which part of the measure's range lies below a value; 0 where it has no range."""
        return 0.0 if self._share is None else self._share(value)

    def surprise(self, value: float) -> float:
        """Return how often so far a number would be released, by the 95% interval.

        Noise has a Laplace law and sampling nearly a normal one: of the two that are as wide, the
        one that finds the number more likely. A side that ends at the number itself, as where it
        is held to a range, counts as half of the interval.
        """
        low, high = self.interval()
        side = high - self.value if value > self.value else self.value - low
        off = abs(value - self.value) / max(side, (high - low) / 2, 1e-300)
        return max(math.erfc(off * NORMAL / math.sqrt(2)), math.exp(math.log(0.05) * off))

    def _lookup(self, kind: str, make: Callable[[float], Interval], level: float) -> Interval:
        level = checked_level(level)
        if (kind, level) not in self._known:
            low, high = make(level)
            value = float(self)
            self._known[kind, level] = (min(low, value), max(high, value))
        return self._known[kind, level]

    def sentence(self, level: float = 0.95) -> str:
        low, high = self.interval(level)
        noise = self.noise_interval(level)
        informative, value = self.informative, self.value
        digits = partial(number, places=0) if self.whole else by_width(high - low)
        show = show_probability if self.is_probability else show_held_end(self.least, digits)
        if not informative:
            alone = f"privacy noise alone allows {between(noise, show)}"
            return f"{self.name}: {NO_INFORMATION} ({alone}), {self.terms}"
        alone = around(noise, value, show)
        spread = "" if self.whole else f" (privacy noise alone: {alone})"
        return (
            f"{self.name} {show(value)}, {level * 100:g}% interval "
            f"{between((low, high), show)}{spread}, {self.terms}"
        )

    def line(self) -> str:
        """Return the sentence without its terms, for a block that states them once."""
        return self.sentence().removesuffix(f", {self.terms}")

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "value": self.value,
            "level": level,
            "interval": _ends(self.interval(level)),
            "noise_interval": _ends(self.noise_interval(level)),
            "informative": self.informative,
            **({} if self.least is None else {"least": self.least}),
        }

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return self.sentence()

    def __format__(self, specification: str) -> str:
        return format(self.value, specification) if specification else str(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Measure cannot be pickled. Keep release.as_dict() instead.")


def _ends(interval: Interval) -> list[float | None]:
    """Return an interval for JSON, which has no infinity: an end that is not there is null."""
    return [end if math.isfinite(end) else None for end in interval]


def checked_level(level: float) -> float:
    """A confidence level between 0 and 1."""
    return Share("Try 0.95.")(level, "level")


# --- Answers as other tools take them: plain JSON, and a frame -----------------------------------


class Exported:
    """Gives anything with `as_dict` and `measures` as JSON text and as a pandas frame."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(f"{type(self).__name__!r} object", name, dir(self))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON; `Release.schema()` is its JSON schema."""
        content: dict[str, Any] = self.as_dict(level)  # type: ignore[attr-defined]
        return content

    def to_json(self, level: float = 0.95, *, indent: int | None = None) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(level), allow_nan=False, indent=indent)

    def to_frame(self, level: float = 0.95) -> Any:
        """The measures as a pandas frame: value, both intervals, and whether there is a value."""
        measures = measures_of(self)
        return framed(
            measure=list(measures),
            value=[measure.value for measure in measures.values()],
            low=[measure.interval(level)[0] for measure in measures.values()],
            high=[measure.interval(level)[1] for measure in measures.values()],
            noise_low=[measure.noise_interval(level)[0] for measure in measures.values()],
            noise_high=[measure.noise_interval(level)[1] for measure in measures.values()],
            informative=[measure.informative for measure in measures.values()],
        ).set_index("measure")

    def finding(self, level: float = 0.95) -> str | None:
        """Return what it shows, in a sentence; None if its headline says it all."""
        return None

    def stored_readings(self) -> dict[str, Any] | None:
        """Return what was read off the noisy numbers, as JSON, where later versions may read more.

        A stored answer carries it, so that it is shown as it was printed. None where the noisy
        numbers decide everything.
        """
        return None

    def as_read(self, readings: Mapping[str, Any]) -> Self:
        """Return the same release with the numbers that were read off it before."""
        raise ValueError("readings")

    def called(self, names: Mapping[str, str]) -> Self:
        """Return the same answer, which calls columns by other names."""
        return self

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema (draft 2020-12) of what `to_json` and the command line's --json give."""
        return schema()


def measures_of(answer: Any) -> dict[str, Measure]:
    """Return the measures of a release, or of a report, which works them out section by section."""
    own = answer.measures
    measures: dict[str, Measure] = own() if callable(own) else own
    return measures


def framed(**columns: Any) -> Any:
    """Columns as a pandas frame."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingDependency("A frame requires pandas: pip install pandas.") from None
    return DataFrame(columns)


def schema() -> dict[str, Any]:
    from importlib.resources import files

    text = files("heldout.intervals").joinpath("release.schema.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


# One answer, as people and machines read it.
if TYPE_CHECKING:
    from heldout.drawing.chart import Figure
    from heldout.kernel.noise.additive import Look


class Answer(Exported, ABC):
    """Measures, the first of which is the headline.

    It is what `float()`, `value`, `interval()` and `noise_interval()` speak of.
    """

    @property
    @abstractmethod
    def measures(self) -> dict[str, Measure]:
        """Return what can be read off this answer, by name, the headline first."""

    def surprise(self, name: str, value: float) -> float:
        """Return how often so far a number would be released if the population's were `value`.

        Two-sided, of the measure of this name, with sampling error and noise together.
        """
        raise ArgumentError(f"{name} has no test. Compare its intervals.")

    @property
    def headline(self) -> Measure:
        return next(iter(self.measures.values()))

    @property
    def value(self) -> float:
        return self.headline.value

    def __float__(self) -> float:
        return self.headline.value

    def interval(self, level: float = 0.95) -> Interval:
        return self.headline.interval(level)

    def noise_interval(self, level: float = 0.95) -> Interval:
        return self.headline.noise_interval(level)

    # In sums and comparisons, as in scikit-learn's scorers, an answer is its number.

    def __mul__(self, other: float) -> float:
        return self.value * other

    def __add__(self, other: float) -> float:
        return self.value + other

    def __sub__(self, other: float) -> float:
        return self.value - float(other)

    def __rsub__(self, other: float) -> float:
        return other - self.value

    __rmul__, __radd__ = __mul__, __add__

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification) if specification else str(self)

    def __str__(self) -> str:
        return str(self.headline)

    def __repr__(self) -> str:
        return str(self)


class Release(Answer):
    """One answer, for people and for machines. Everything here is already paid for.

    A subclass turns what was drawn into measures.
    """

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn

    @classmethod
    def read_together(cls, releases: Sequence[Self]) -> None:
        """Do at once what reading each of these releases would do by itself, where that is less."""

    @property
    def name(self) -> str:
        return str(self._drawn.request.name)

    @property
    def kind(self) -> str:
        """The identifier of the question that it answers, the same everywhere."""
        return self._drawn.kind

    @property
    def loss(self) -> Loss:
        return price(self._drawn.request.event())

    @property
    def terms(self) -> str:
        """The price and who is protected, as the end of a sentence."""
        return self._drawn.terms

    @property
    def receipt(self) -> Receipt:
        assert self._drawn.receipt is not None
        return self._drawn.receipt

    @property
    def protection(self) -> Protection:
        protection: Protection = self._drawn.about.protection
        return protection

    @property
    def neighbours(self) -> str:
        return str(self.protection.neighbours)

    @property
    def mechanism(self) -> dict[str, object]:
        return dict(self._drawn.request.describe())

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what was asked for, as it was booked."""
        return dict(self._drawn.request.parameters)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON: everything that an analyst may see of this release."""
        drawn = self._drawn
        return {
            "kind": self.kind,
            "release": self.name,
            "value": self.value,
            "measures": {name: measure.as_dict(level) for name, measure in self.measures.items()},
            "noisy": self._noisy(),
            "loss": self.loss.as_dict(),
            "protection": self.protection.as_dict(),
            "rows": drawn.about.rows,
            "parameters": self.parameters,
            "mechanism": self.mechanism,
            "claim": drawn.request.claim,
            "receipt": {"sequence": self.receipt.sequence, "hash": self.receipt.hash},
        }

    def _noisy(self) -> object:
        """The noisy numbers as drawn, on the public lattice."""
        return self._drawn.values.tolist()

    def plotted(self) -> dict[str, Measure]:
        """Return the measures that a report draws side by side: from 0 to 1, higher is better."""
        return self.measures

    def class_counts(self) -> tuple["Look", ...]:
        """Return noisy numbers of positive and negative rows that others may use."""
        return ()

    def informed(self, beside: Mapping[str, "Release"]) -> "Release":
        """Return the same release, read with what was released beside it of the same rows. Free."""
        return self

    def figures(self, level: float = 0.95) -> list["Figure"]:
        """Pictures of its own, each with a caption."""
        return []

    def _lead(self) -> str:
        """Return what its card says first."""
        from heldout.drawing.words import spread

        value, interval, _ = spread(self.headline, 0.95)
        return f"{self.headline.name} {value} ({interval})"

    def _repr_html_(self) -> str:
        from heldout.drawing.page import measures_card

        return measures_card(
            self._lead(),
            self.measures,
            drawn=self.figures(),
            note=f"Paid: {self.terms}. Receipt {self.receipt.hash}.",
        )


class Difference(Release):
    """The second model's number minus the first one's, on the same rows."""

    pays_more: ClassVar[str] = "Pay more."
    note: ClassVar[str] = "Upright line: no difference."
    sides: ClassVar[tuple[str, str]] = ("score", "rival")
    """The parameters that name the models."""
    _names: Mapping[str, str] = MappingProxyType({})

    @property
    @abstractmethod
    def compared(self) -> str:
        """Return what the models are compared by, in words."""

    @property
    @abstractmethod
    def p_value(self) -> float:
        """Return how often so large a difference would be released if the models were equal."""

    @property
    def phrases(self) -> tuple[str, str, str]:
        """Return what is said of the better model: that it is, to be it, than the other."""
        by = self.compared
        return f"has the better {by}", f"have the better {by}", f"has a better {by} than"

    @property
    def more_is_better(self) -> bool:
        return False

    def called(self, names: Mapping[str, str]) -> Self:
        other = copy.copy(self)
        other._names = names
        return other

    @property
    def score(self) -> str:
        """The first model, A: its column, or what it is called."""
        column = str(self.parameters[self.sides[0]])
        return self._names.get(column, column)

    @property
    def rival(self) -> str:
        """The second model, B."""
        column = str(self.parameters[self.sides[1]])
        return self._names.get(column, column)

    def finding(self, level: float = 0.95) -> str:
        """Return which model is better, as far as the interval tells."""
        low, high = self.interval(level)
        first, second = visible(self.score), visible(self.rival)
        is_better, be_better, better_than = self.phrases
        sure = f"with {level * 100:g}% confidence"
        if not self.headline.informative:
            return f"Noise hides which of {first} and {second} {is_better}. {self.pays_more}"
        if low <= 0 <= high:
            return f"Neither {first} nor {second} is shown to {be_better}, {sure}."
        better, worse = (second, first) if (low > 0) == self.more_is_better else (first, second)
        return f"{better} {better_than} {worse}, {sure}."

    def figures(self, level: float = 0.95) -> list["Figure"]:
        """The difference with its intervals, and a line where the models are equal."""
        from heldout.drawing.page import interval_plot

        name = visible(f"{self.rival} minus {self.score}")
        title = f"Difference in {self.compared}"
        drawn = interval_plot({name: self.headline}, level=level, title=title, mark=0)
        return [replace(drawn, caption=f"{self.note} {drawn.caption}")]

    def _lead(self) -> str:
        return f"{super()._lead()}, p-value {self.p_value:.3g}"

    def __str__(self) -> str:
        return f"{self.headline}, p-value {self.p_value:.3g}"

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        more = {"p_value": self.p_value, "finding": self.finding(level)}
        return {**super().as_dict(level), **more}
