"""Forecast the price of questions and the widths of their answers before anything is read."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist, median
from typing import Annotated, Any, get_type_hints

import numpy as np

from heldout.arguments import Number, Whole
from heldout.arrays import Floats, Ints
from heldout.drawing.words import half_width
from heldout.errors import ArgumentError
from heldout.intervals.measure import NO_INFORMATION, Measure, checked_level
from heldout.kernel import Event, Loss, price
from heldout.kernel.door import Priced, Together
from heldout.kernel.statistic import STEPS, BoundedSum
from heldout.questions.base import Question

# --- Public guesses of rows that nobody looked at, and how wide answers from them would be -------


SHARE_OF_POSITIVES = 4  # one row in so many, if nobody guesses
LEAST_APART = 0.1  # deviations: classes nearer than that have no probabilities to speak of
CALIBRATED: Mapping[str, Callable[[Floats, float], Floats]] = {
    "squared": lambda away, most: away**2,
    "absolute": lambda away, most: away,
    "log": lambda away, most: -np.log(np.maximum(1 - away, 1e-300)) / most,
}
"""The error of a row whose probability is so far from its label, as a share of the largest."""


@dataclass(frozen=True)
class HalfWidths:
    """Gives how far intervals reach from the value, on the longer side."""

    noise: float
    """Privacy noise alone."""
    whole: float
    """Noise and sampling error together."""
    value: float
    """The value that was guessed for it."""
    informative: bool = True
    """Whether noise alone leaves anything to read; see `Measure.informative`."""

    @classmethod
    def of(cls, measure: Measure, level: float) -> "HalfWidths":
        value = measure.value
        return cls(
            noise=(noise := half_width(measure.noise_interval(level), value)),
            whole=max(half_width(measure.interval(level), value), noise),
            value=value,
            informative=measure.informative,
        )

    @classmethod
    def median(cls, several: Sequence["HalfWidths"]) -> "HalfWidths":
        return cls(
            noise=median(widths.noise for widths in several),
            whole=median(widths.whole for widths in several),
            value=median(widths.value for widths in several),
            informative=2 * sum(widths.informative for widths in several) >= len(several),
        )

    def as_dict(self) -> dict[str, Any]:
        widths = {"noise": self.noise, "whole": self.whole, "value": self.value}
        return {**widths, "informative": self.informative}


@dataclass(frozen=True, kw_only=True)
class Guess:
    """Guesses what the rows are like. A wrong guess makes a wrong forecast, and costs no privacy.

    `rows` is needed where their number is not public. Left out, a quarter of the rows is positive,
    and the model ranks a positive row above a negative one with probability `auc`. Its scores are
    taken for calibrated probabilities of two normal classes: that says how many rows lie above a
    threshold, and how large errors are. `calibration_slope` says otherwise.
    """

    rows: Annotated[int | None, Whole()] = None
    positives: Annotated[int | None, Whole()] = None
    auc: Annotated[float, Number(0, 1)] = 0.8
    average_precision: Annotated[float | None, Number(0, 1)] = None
    mean_error: Annotated[float | None, Number(0, 1)] = None
    """The mean error, as a share of the largest; None: that of calibrated scores."""
    error_spread: Annotated[float | None, Number(0, 1)] = None
    """The errors' standard deviation, as a share of the largest that their mean allows."""
    calibration_slope: Annotated[float, Number(0.01, 100)] = 1.0
    """What the scores' log odds must be multiplied with to be right: below 1 if the scores are too
    extreme, above 1 if they are too cautious."""
    mean_weight: Annotated[float, Number(0, 1)] = 0.5
    """Where rows have weights: the mean weight, as a share of the largest."""
    cells: tuple[float, ...] | None = None
    """True positives, false positives, false negatives, true negatives at the threshold."""
    spread: Annotated[float, Number(0, math.inf)] = 1.0
    """Of a regression: the standard deviation of the residuals, in units of `scale`."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            for rule in getattr(hint, "__metadata__", ()):
                if getattr(self, name) is not None:
                    object.__setattr__(self, name, rule(getattr(self, name), name))

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """Return the names of what may be guessed as one number."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(name for name, hint in hints.items() if hasattr(hint, "__metadata__"))

    def about(self, rows: int | None) -> "Guess":
        """The same guess with the public number of rows, where there is one."""
        known = rows if rows is not None else self.rows
        if known is None:
            raise ArgumentError(
                "The number of rows is not public here. Pass a guess of it: quote(..., rows=5000)."
            )
        positives = self.positives
        if positives is None:
            positives = max(1, known // SHARE_OF_POSITIVES)
        if positives > known:
            raise ArgumentError(f"positives must be at most the {known:,} rows, got {positives:,}.")
        return replace(self, rows=known, positives=positives)

    @property
    def counts(self) -> tuple[int, int]:
        """Positive and negative rows."""
        assert self.rows is not None
        assert self.positives is not None
        return self.positives, self.rows - self.positives

    @property
    def separation(self) -> float:
        """Return how far apart the classes' scores lie, in standard deviations of each."""
        return math.sqrt(2) * NormalDist().inv_cdf(min(max(self.auc, 1e-6), 1 - 1e-6))

    def confusion(self, threshold: float | None = None) -> tuple[float, ...]:
        """True positives, false positives, false negatives, true negatives.

        At a threshold of probabilities; None: where the model finds the same share of the positives
        as it leaves alone of the negatives.
        """
        if self.cells is not None:
            return self.cells
        positives, negatives = self.counts
        normal, apart = NormalDist(), self.separation
        cut = apart / 2
        if threshold is not None and 0 < threshold < 1 and apart > LEAST_APART and negatives > 0:
            right = self.calibration_slope * math.log(threshold / (1 - threshold))
            cut += (math.log(negatives / max(positives, 1)) + right) / apart
        hits, alarms = 1 - normal.cdf(cut - apart), 1 - normal.cdf(cut)
        return (
            hits * positives,
            alarms * negatives,
            (1 - hits) * positives,
            (1 - alarms) * negatives,
        )

    def error(self, kind: str, most: float = 1.0) -> tuple[float, float]:
        """The mean and the standard deviation of errors, as shares of the largest.

        Where nobody guessed, those of scores with the guessed calibration: "squared", "absolute" or
        "log" errors, the last with logarithms of at most `most`.
        """
        mean, spread = self.mean_error, self.error_spread
        if mean is None and kind in CALIBRATED and self.rows:
            values, weights = self._errors(kind, most)
            mean = float(weights @ values)
            if spread is None:
                return mean, math.sqrt(max(float(weights @ values**2) - mean**2, 0.0))
        mean = 0.15 if mean is None else mean
        return mean, (0.5 if spread is None else spread) * math.sqrt(mean * (1 - mean))

    def _errors(self, kind: str, most: float) -> tuple[Floats, Floats]:
        positives, negatives = self.counts
        share, apart = positives / max(positives + negatives, 1), abs(self.separation)
        place = np.linspace(-6, 6, 241)
        density = np.exp(-(place**2) / 2)
        density /= density.sum()
        values, weights = [], []
        for label, weight in ((1, share), (0, 1 - share)):
            score = place + apart * label
            odds = apart * score - apart**2 / 2 + math.log(max(share, 1e-9) / max(1 - share, 1e-9))
            odds /= self.calibration_slope
            away = 1 / (1 + np.exp(np.clip(odds if label else -odds, -700, 700)))
            made = CALIBRATED[kind](away, most)
            values.append(np.clip(made, 0, 1))
            weights.append(weight * density)
        return np.concatenate(values), np.concatenate(weights)

    def precision(self) -> float:
        """A guess of the average precision."""
        if self.average_precision is not None:
            return self.average_precision
        positives, negatives = self.counts
        share = positives / max(positives + negatives, 1)
        return float(share + (1 - share) * max(2 * self.auc - 1, 0.0) ** 1.5)

    def scores(self, cells: int, *, probabilities: bool = False) -> Floats:
        """Shares of each class (negative, positive) by score cell, lowest first.

        Cells are even in the score that is normal in either class, or in the probability that the
        model gives to such a score.
        """
        from heldout.intervals.noise import normal_share

        edges, apart = np.linspace(-4, 4 + self.separation, cells + 1), self.separation
        positives, negatives = self.counts
        if probabilities and apart > LEAST_APART and min(positives, negatives) > 0:
            # A score x has the odds of the classes times exp(apart x - apart^2 / 2).
            chance = np.linspace(0.0, 1.0, cells + 1)[1:-1]
            odds = self.calibration_slope * np.log(chance / (1 - chance))
            edges[1:-1] = (odds - math.log(positives / negatives)) / apart + apart / 2
        edges[0], edges[-1] = -np.inf, np.inf
        return np.diff(normal_share(np.stack([edges, edges - self.separation])), axis=1)


def assumed_calibration(about: Any, guess: Guess, otherwise: str) -> str:
    """Return what a forecast takes the scores for, and what happens if they are not that."""
    if not getattr(about, "are_probabilities", False):
        return ""
    if guess.calibration_slope != 1:
        return f"Assumes scores with a calibration slope of {guess.calibration_slope:g}."
    return (
        f"Assumes calibrated scores; for others, {otherwise}. Guess calibration_slope: below 1 if "
        "scores are too extreme, above 1 if they are too cautious."
    )


def weigh_counts(counts: Floats, weighted: bool, guess: Guess) -> Ints:
    """Return typical counts; of rows with weights, as if each had the mean one."""
    if weighted:
        sums = counts * STEPS * guess.mean_weight
        counts = np.concatenate([sums, sums * (1 - guess.mean_weight)])
    return np.round(counts).astype(np.int64)


def typical_sums(statistic: BoundedSum, guess: Guess) -> Ints:
    """Return typical sums of a bounded number of each row, by its guessed mean and spread."""
    weight = guess.mean_weight if statistic.weighted else 1.0
    error, deviation = guess.error(getattr(statistic, "error", ""), float(statistic.largest))
    product = weight * max(error * (1 - error) - deviation**2, 0.0)
    lacking = np.array([error, 1 - error]) * (1 - weight)
    parts = weight * np.array([error, product, 1 - error - product, *lacking])
    total = statistic.resolution * sum(guess.counts)
    sums = np.round(parts * total).astype(np.int64)[: statistic.size]
    # Scores of most models come close to 0 or 1, where another label is all that a row can add.
    reaches = [statistic.resolution] * statistic.size if statistic.by_outcome else []
    return np.append(sums, reaches).astype(np.int64)


def check_questions(questions: Sequence[object]) -> None:
    """Refuse what is no question, before its price is looked at."""
    if not questions or not all(isinstance(question, Question) for question in questions):
        listed = len(questions) == 1 and isinstance(questions[0], list | tuple)
        raise ArgumentError(
            "Pass one question or more, such as heldout.questions.Auc(epsilon=0.5)"
            + (", one after the other and not in a list." if listed else ".")
        )


def booked_together(questions: Sequence[Question[Any]], about: Any) -> Priced:
    """The one request that several questions make; that of a question alone is its own."""
    check_questions(questions)
    for question in questions:
        question.check(about)
    requests = [question.request(about) for question in questions]
    if len(requests) == 1:
        return requests[0]
    names = ", ".join(request.name for request in requests)
    return Together(names, {str(at): request for at, request in enumerate(requests)}, {})


@dataclass(frozen=True)
class Quote:
    """The exact price of some questions, and the half-widths to expect. Nothing was charged."""

    questions: tuple[Question[Any], ...]
    about: Any
    guess: Guess
    level: float = 0.95

    def __post_init__(self) -> None:
        checked_level(self.level)
        _ = self.event  # what cannot be asked is refused here

    @cached_property
    def event(self) -> Event:
        """Return what the ledger would book."""
        return booked_together(self.questions, self.about).event()

    @property
    def loss(self) -> Loss:
        """The price, exactly."""
        return price(self.event)

    @cached_property
    def half_widths(self) -> tuple[dict[str, HalfWidths], ...]:
        """For each question: how far its measures' intervals will reach, if the guess is right."""
        guess = self.guess.about(self.about.rows)
        return tuple(
            question.expected(self.about, guess, self.level) for question in self.questions
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """For each question: what its half-widths take for granted beside the guess; or nothing."""
        return tuple(question.assumes(self.about, self.guess) for question in self.questions)

    def __str__(self) -> str:
        lines = [f"{self.loss}, {self.about.protection.describe()}"]
        for question, widths in zip(self.questions, self.half_widths, strict=True):
            lines += [
                f"  {name}: ±{width.noise:.3g} from noise alone, ±{width.whole:.3g} in all"
                + ("" if width.informative else f" ({NO_INFORMATION})")
                for name, width in widths.items()
            ] or [f"  {question.kind}: half-widths depend on the rows"]
        lines += [f"  {note}" for note in dict.fromkeys(self.assumptions) if note]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "questions": [question.as_dict() for question in self.questions],
            "loss": self.loss.as_dict(),
            "level": self.level,
            "half_widths": [
                {name: width.as_dict() for name, width in widths.items()}
                for widths in self.half_widths
            ],
            "assumes": list(self.assumptions),
        }
