"""Which epsilon for which interval? Answered from public guesses, before anything is spent."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np

from heldout import questions as q
from heldout.arguments import as_number, guess, shown
from heldout.data.description import ScoredRows
from heldout.drawing.words import decimal, half_width
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, checked_level
from heldout.intervals.readings import Cells, Metric, registered
from heldout.kernel import Neighbours, Protection, exact
from heldout.questions.base import Flag, Whole

BRIER = "Brier score"
AREAS = ("AUC", "average precision")
ALSO_CALLED = {
    "ap": "average precision",
    "brier": BRIER,
    "f1": "F1 score",
    "npv": "negative predictive value",
    "ppv": "precision",
    "roc auc": "AUC",
    "sensitivity": "recall",
}
ENOUGH = 1 / 3  # noise of a third of the sampling error widens the whole by one part in twenty


@dataclass(frozen=True)
class Plan:
    """States what an evaluation would cost and give. Nothing was spent, and no row was read.

    Half-widths are how far the interval reaches from the value, on its longer side.
    """

    metric: str
    value: float
    rows: int
    positives: int | None
    epsilon: Fraction
    half_width: float
    """Of the noise interval: privacy alone."""
    sampling_half_width: float
    """Of the interval that the same rows would give without any noise."""
    whole_half_width: float
    """Of the interval: privacy and sampling together."""
    enough_epsilon: Fraction | None
    """Beyond this the noise is under a third of the sampling error; None if nothing reaches it."""
    level: float
    protection: Protection
    assumption: str

    def __str__(self) -> str:
        percent = f"{self.level * 100:g}%"
        first = (
            f"{self.metric} {self.value:g} on {self.rows:,} rows: epsilon {decimal(self.epsilon)} "
            f"gives a {percent} noise half-width of ±{_two_digits(self.half_width)} "
            f"({self.protection.describe()})."
        )
        second = (
            f" Sampling error alone is ±{_two_digits(self.sampling_half_width)}, both together "
            f"±{_two_digits(self.whole_half_width)}"
        )
        if self.enough_epsilon is None:
            return f"{first}{second}."
        return f"{first}{second}; more than epsilon {decimal(self.enough_epsilon)} buys little."

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON; epsilon as exact text."""
        return {
            "metric": self.metric,
            "value": self.value,
            "rows": self.rows,
            "positives": self.positives,
            "epsilon": str(self.epsilon),
            "half_width": self.half_width,
            "sampling_half_width": self.sampling_half_width,
            "whole_half_width": self.whole_half_width,
            "enough_epsilon": None if self.enough_epsilon is None else str(self.enough_epsilon),
            "level": self.level,
            "protection": self.protection.as_dict(),
            "assumption": self.assumption,
        }


def plan(
    *,
    rows: int,
    positives: int | None = None,
    metric: str | None = None,
    value: float | None = None,
    auc: float | None = None,
    average_precision: float | None = None,
    alarms: int | None = None,
    target: float | None = None,
    epsilon: str | int | float | Fraction | None = None,
    level: float = 0.95,
    neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
    unit: bool = False,
    rows_per_unit: int = 1,
) -> Plan:
    """Which epsilon gives a noise half-width of `target`, or which half-width gives `epsilon`.

    Parameters
    ----------
    rows, positives
        How many rows the test set has, and how many of them are positive. Guesses will do; do
        not read `positives` off private rows.
    metric, value
        What is to be released, and what you expect it to be; `auc=0.85` is short for
        `metric="auc", value=0.85`, and so is `average_precision`.
    alarms
        How many rows the model calls positive. Left out, the model is taken to find the same
        share of the positives as it leaves alone of the negatives.
    target, epsilon
        One of the two; the other is worked out. An epsilon that is worked out is rounded up to
        two significant digits.
    level, neighbours, unit, rows_per_unit
        As in `Dataset` and `Release.interval`; `unit=True` stands for a unit column.

    >>> answer = plan(rows=5000, positives=500, metric="recall", value=0.8, target=0.02)
    >>> print(answer)
    recall 0.8 on 5,000 rows: epsilon 0.49 gives a 95% noise half-width of ±0.020 (replace-one
    neighbours). Sampling error alone is ±0.041, both together ±0.045; more than epsilon 0.74
    buys little.
    """
    for short, wanted in {"auc": auc, "average_precision": average_precision}.items():
        if wanted is None:
            continue
        if metric is not None or value is not None:
            raise ArgumentError(f"Pass either {short}= or metric= and value=, not both.")
        metric, value = short, wanted
    name = canonical_metric(metric or "auc")
    Flag()(unit, "unit")
    protection = Protection(
        neighbours=Neighbours.parse(neighbours),
        unit=unit or (isinstance(rows_per_unit, int) and rows_per_unit > 1),
        rows_per_unit=rows_per_unit,
    )
    level = checked_level(level)
    rows = Whole()(rows, "rows")
    if positives is not None:
        positives = Whole(1, rows)(positives, "positives")
    if (target is None) == (epsilon is None):
        raise ArgumentError("Pass either target= or epsilon=; the other is worked out.")
    expected = _expected(name, value, rows=rows, positives=positives)
    guess, assumption = _guess(name, expected, rows=rows, positives=positives, alarms=alarms)
    ahead = _forecast(name, guess, protection=protection, level=level)
    if epsilon is not None:
        price = exact(epsilon, name="epsilon", minimum=0)
    else:
        price = _cheapest(ahead, _between(target, "target"), rows=rows)
    return Plan(
        metric=name,
        value=expected,
        rows=rows,
        positives=positives,
        epsilon=price,
        half_width=ahead.noise(price),
        sampling_half_width=ahead.sampling,
        whole_half_width=ahead.whole(price),
        enough_epsilon=_cheapest_or_none(ahead, ahead.sampling * ENOUGH),
        level=level,
        protection=protection,
        assumption=assumption,
    )


@dataclass(frozen=True)
class Forecast:
    """Forecasts the widths of one measure's intervals, as functions of epsilon."""

    measure: Callable[[Fraction], Measure]
    level: float
    least: Fraction
    most: Fraction

    def noise(self, epsilon: Fraction) -> float:
        measure = self.measure(epsilon)
        return half_width(measure.noise_interval(self.level), measure.value)

    def whole(self, epsilon: Fraction) -> float:
        """Return the reach of both together, which is never less than that of either."""
        return max(self._whole(epsilon), self.noise(epsilon), self.sampling)

    def _whole(self, epsilon: Fraction) -> float:
        measure = self.measure(epsilon)
        return half_width(measure.interval(self.level), measure.value)

    @property
    def sampling(self) -> float:
        """Return what is left when noise has become nothing."""
        return self._whole(self.most)


def _forecast(name: str, guess: q.Guess, *, protection: Protection, level: float) -> Forecast:
    """The release's own arithmetic, on the guess: what `Session.quote` gives."""
    rows = guess.rows if protection.row_count_is_public else None
    about = ScoredRows(name="a plan", protection=protection, rows=rows, label="y", score="p")
    kind: Any = {"AUC": q.Auc, "average precision": q.AveragePrecision, BRIER: q.Brier}.get(
        name, q.Confusion
    )

    @lru_cache(maxsize=256)
    def measure(epsilon: Fraction) -> Measure:
        measure: Measure = kind(epsilon=epsilon).typical_release(about, guess).measures[name]
        return measure

    least, most = (Fraction(1, 1000), 50) if name in AREAS else (Fraction(1, 10**6), 1000)
    return Forecast(measure, level, least=least, most=Fraction(most))


def _guess(
    name: str, value: float, *, rows: int, positives: int | None, alarms: int | None
) -> tuple[q.Guess, str]:
    """Rows for which the measure has this value, and what was assumed to get there."""
    if name in AREAS:
        if positives is None:
            raise ArgumentError(f"{name} needs positives=. A guess will do.")
        if name == "AUC":
            return q.Guess(rows=rows, positives=positives, auc=value), "none"
        return q.Guess(rows=rows, positives=positives, average_precision=value), "none"
    if name == BRIER:
        return q.Guess(rows=rows, mean_error=value).about(rows), "none"
    cells, assumption = _cells(
        registered()[name], value, rows=rows, positives=positives, alarms=alarms
    )
    guess = q.Guess(rows=rows, positives=positives).about(rows)
    return replace(guess, cells=cells), assumption


def _cells(
    metric: Metric, value: float, *, rows: int, positives: int | None, alarms: int | None
) -> tuple[tuple[float, ...], str]:
    """Expected (true positives, false positives, false negatives, true negatives)."""
    if positives is None:
        if len(set(metric.denominator)) > 1:
            raise ArgumentError(
                f"{metric.name} needs positives=. A guess of the prevalence will do."
            )
        positives = rows // 2  # the split does not matter to a ratio over all rows
    negatives = rows - positives
    if metric.name == "prevalence":
        value = positives / rows
    if alarms is None:
        assumption = "the model finds the share of positives that it leaves alone of negatives"

        def at(share: float) -> tuple[float, ...]:
            return (
                share * positives,
                (1 - share) * negatives,
                (1 - share) * positives,
                share * negatives,
            )
    else:
        called = Whole(1, rows)(alarms, "alarms")
        assumption = f"the model calls {called:,} rows positive"
        least, most = max(0, called - negatives), min(positives, called)

        def at(share: float) -> tuple[float, ...]:
            right = least + share * (most - least)
            return (right, called - right, positives - right, negatives - called + right)

    def worth(share: float) -> float:
        cells = np.array(at(share))
        bottom = float(np.array(metric.denominator) @ cells)
        return float(np.array(metric.numerator) @ cells) / bottom if bottom else 0.0

    if metric.name != "prevalence" and worth(0) > worth(1):
        right = tuple(b - a for a, b in zip(metric.numerator, metric.denominator, strict=True))
        other = replace(metric, numerator=cast(Cells, right))
        return _cells(other, 1 - value, rows=rows, positives=positives, alarms=alarms)
    if metric.name != "prevalence" and not worth(0) <= value <= worth(1):
        raise ArgumentError(
            f"value must lie within {worth(0):.3g} and {worth(1):.3g} for {metric.name} with "
            f"these counts, got {value:g}."
        )
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) < value else (low, middle)
    return at(high), assumption


def metrics() -> list[str]:
    """Everything that can be planned for."""
    return [*registered(), BRIER, *AREAS]


def canonical_metric(name: str) -> str:
    """A metric's full name, from whatever people type.

    >>> canonical_metric("NPV"), canonical_metric("f1_score"), canonical_metric("auc")
    ('negative predictive value', 'F1 score', 'AUC')
    """
    plain = str(name).lower().replace("_", " ").replace("-", " ").strip()
    plain = ALSO_CALLED.get(plain, plain)
    for known in metrics():
        if known.lower() == plain.lower():
            return known
    raise ArgumentError(
        f"metric must be one of {', '.join(metrics())}, got {name!r}.{guess(name, metrics())}"
    )


# --- looking for epsilon -------------------------------------------------------------------------


def _cheapest(ahead: Forecast, target: float, *, rows: int) -> Fraction:
    epsilon = _cheapest_or_none(ahead, target)
    if epsilon is None:
        best = _two_digits(ahead.noise(ahead.most))
        raise ArgumentError(
            f"target must be more than {best} with {rows:,} rows, got {target:g}. No epsilon "
            "reaches it; use more rows or a wider target."
        )
    return epsilon


def _cheapest_or_none(ahead: Forecast, target: float) -> Fraction | None:
    """The least epsilon of two significant digits whose noise half-width is within the target."""
    if ahead.noise(ahead.most) > target:
        return None
    low, high = math.log10(ahead.least), math.log10(ahead.most)
    while high - low > 0.002:
        middle = (low + high) / 2
        wide = ahead.noise(Fraction(10**middle)) > target
        low, high = (middle, high) if wide else (low, middle)
    candidate = _rounded_up(max(Fraction(10**low), ahead.least))
    while ahead.noise(candidate) > target:
        candidate = _rounded_up(candidate * Fraction(1001, 1000))
    return candidate


def _rounded_up(number: Fraction) -> Fraction:
    """The next number of two significant digits, upwards.

    >>> _rounded_up(Fraction("0.0731")), _rounded_up(Fraction("0.07"))
    (Fraction(37, 500), Fraction(7, 100))
    """
    step = Fraction(10) ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _two_digits(number: float) -> str:
    places = 3 if number <= 0 else max(3, 1 - math.floor(math.log10(number)))
    return f"{number:.{places}f}"


def _expected(name: str, value: float | None, *, rows: int, positives: int | None) -> float:
    if name == "prevalence" and positives is not None:
        return positives / rows
    if value is None:
        raise ArgumentError(f"Pass value=: what do you expect the {name} to be?")
    return _between(value, f"the expected {name}", closed=True)


def _between(number: Any, name: str, *, closed: bool = False) -> float:
    share = as_number(number)
    if not (0 <= share <= 1 if closed else 0 < share < 1):
        raise ArgumentError(f"{name} must lie between 0 and 1, got {shown(number)}.")
    return share
