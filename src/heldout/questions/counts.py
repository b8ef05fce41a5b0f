"""Questions that a few noisy counts or sums answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from heldout.arrays import Ints
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description, ScoredRows
from heldout.data.sql import count_passed
from heldout.errors import ArgumentError
from heldout.intervals.confusion import ConfusionRelease
from heldout.intervals.groups import ByGroup, DecisionsByGroup
from heldout.intervals.ratio import MeanRelease
from heldout.kernel.door import Drawn, Request
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.tied import count_noise, sum_noise
from heldout.kernel.statistic import CLIP, BoundedSum, DisjointCounts, Statistic
from heldout.questions.base import Number, Section, Weighted, weight_parameters
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess, assumed_calibration, typical_sums, weigh_counts
from heldout.questions.worst_cases import (
    HIGH,
    LOW,
    REMOVE,
    REST,
    Pair,
    WorstCase,
    class_pairs,
    grouped_pairs,
    label_pairs,
    mapped_pairs,
    table_pair,
    unit_pair,
    weighted_pair,
)

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["Brier", "Confusion", "LogLoss", "MeanAbsoluteError", "MeanSquaredError"]

# --- Counts of rows by label and public score thresholds -----------------------------------------


@dataclass(frozen=True)
class ThresholdCounts(DisjointCounts):
    """Rows by label and by the interval between public thresholds that their score falls in.

    The vector has one entry for each label and interval, negatives first, intervals upwards; a
    score on a threshold belongs to the interval above it. The confusion matrix at any of the
    thresholds is a sum of entries.

    Claim:       L1 sensitivity 1 per row that leaves or arrives, or the largest weight in steps.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: groups and intervals are disjoint, so a row is counted in one cell, however many
                 of them there are, whomever it belongs to: k rows under add-remove, 2k under
                 replace-one. A weight adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers; scores and thresholds compare as doubles.
    Refuses:     thresholds that are not finite, increasing numbers.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 4, without its halving.
    Cost:        one scan, O(thresholds) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> ThresholdCounts(thresholds=(0.5,)).sensitivity(
    ...     Protection(neighbours=Neighbours.REPLACE_ONE))
    2
    """

    thresholds: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(math.isfinite(threshold) for threshold in self.thresholds)
        rising = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if not (finite and rising):
            raise ArgumentError(
                f"thresholds must be finite and increasing, got {self.thresholds}. Sort them."
            )

    @property
    def intervals(self) -> int:
        return len(self.thresholds) + 1

    def places(self) -> dict[str, tuple[str, int]]:
        number = count_passed("score", self.thresholds)
        return {"label": ("label", 2), "interval_number": (number, self.intervals)}

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [cls(thresholds=(0.5,)), cls(thresholds=(0.25, 0.5, 0.75))]


# --- Questions that a few noisy counts or sums answer --------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Confusion(Divisible[ConfusionRelease, DecisionsByGroup]):
    """The confusion matrix where rows with score >= threshold are called positive."""

    kind = "confusion"
    title = "confusion matrix"
    asks = "How often is it right?"
    tells = "Accuracy, precision, recall and the four counts at one threshold."
    headline = "accuracy"
    counts_positives = True
    grouped = DecisionsByGroup
    tied = True
    section = Section(
        title="Decisions at the threshold",
        meaning="How often the model is right when it calls a row positive at the threshold.",
        weight=40,
        weight_with_curves=42,
        place=30,
        cards=("accuracy", "recall", "precision"),
    )
    section_by_group = Section(
        title="Decisions by group, threshold",
        meaning="The same decisions for each declared group, how far apart the groups are, and "
        "how often chance would put them so far apart. Groups that noise makes unreadable are "
        "not compared.",
        weight=40,
        place=200,
        cards=("gap in recall", "gap in selection rate", "gap in accuracy"),
        old_name="groups",
    )
    of = (ScoredRows,)
    replayed = (
        {},
        {"by": "g"},
        {"weighted": True},
        {"threshold": 0.25},
    )
    threshold: Annotated[float, Number(), "Rows with at least this score are called positive."] = (
        0.5
    )
    weighted: Weighted = False

    @classmethod
    def positives_in(cls, release: Any) -> int | None:
        if not isinstance(release, ConfusionRelease):
            return None
        return max(1, round(release.true_positives.value + release.false_negatives.value))

    def request(self, about: ScoredRows) -> Request:
        at = about.threshold(self.threshold)
        statistic = ThresholdCounts(
            thresholds=(about.counted_threshold(at),),
            weighted=self.weighted,
        )
        mechanism = count_noise(
            self.price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=statistic.size,
            cells=statistic.intervals,
            protection=about.protection,
        )
        parameters = {"threshold": at, **about.scale_parameters}
        parameters |= weight_parameters(self.weighted, about)
        return Request("confusion", statistic, mechanism, parameters)

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.answer import PooledConfusion

        return PooledConfusion(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            table_pair("a row changes its cell", [*REST, (0, LOW)], [*REST, (1, HIGH)]),
            table_pair("a label changes", [*REST, (0, HIGH)], [*REST, (1, HIGH)]),
            table_pair("a row leaves", [*REST, (1, HIGH)], REST, **REMOVE),
            unit_pair(
                "a person's two rows change",
                [(0, LOW), (0, LOW), *REST],
                [(1, HIGH), (1, HIGH), *REST],
            ),
        )
        grouped = grouped_pairs(pairs[0], pairs[2], pairs[3])
        return (
            WorstCase(pairs=pairs, note="all cells jointly", both_doors=True),
            WorstCase(
                name="by-group",
                pairs=grouped,
                fields={"by": "g"},
                note="all cells of all groups jointly; a person's rows are in several",
            ),
            WorstCase(
                name="labels",
                pairs=label_pairs(HIGH),
                note="only outcomes are secret: positives have noise, negatives follow",
            ),
            WorstCase(
                name="weighted",
                pairs=tuple(map(weighted_pair, pairs)),
                fields={"weighted": True},
                note="sums of weights, those that change with the largest",
            ),
            WorstCase(
                name="mapped", pairs=mapped_pairs(), note="scores without a range, by score_map"
            ),
            WorstCase(
                name="postgres",
                pairs=(pairs[0], pairs[2]),
                note="counted by the database",
                on="postgres",
            ),
        )

    def read(self, drawn: Drawn) -> ConfusionRelease:
        return ConfusionRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Ints:
        threshold = self.threshold if about.are_probabilities else None
        hits, false_alarms, missed, left_alone = guess.confusion(threshold)
        counts = np.array([left_alone, false_alarms, missed, hits])
        return weigh_counts(counts, self.weighted, guess)

    def assumes(self, about: ScoredRows, guess: Guess) -> str:
        if guess.cells is not None:
            return ""
        return assumed_calibration(about, guess, "more or fewer rows lie above the threshold")


@dataclass(frozen=True, kw_only=True)
class _MeanError(Divisible[MeanRelease, ByGroup[MeanRelease]]):
    """The mean of a bounded error; weighted, if that is asked."""

    lower_is_better = True
    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"by": "g"}, {"weighted": True})
    title: ClassVar[str]
    error: ClassVar[str]
    weighted: Weighted = False

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and isinstance(about, ScoredRows) and about.score_map is not None:
            why = "its unit is the scores' own: declare score_range instead of score_map"
        return why

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.answer import PooledMean

        return PooledMean(sites)

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        """Return from 0 to the largest error that the declared range of scores allows."""
        low, high = parameters.get("score_range", (0.0, 1.0))
        more: dict[str, Any] = {"clip": float(parameters["clip"])} if "clip" in parameters else {}
        ends = (float(low), float(high))
        most = BoundedSum(error=cls.error, score_range=ends, with_rest=True, **more).largest
        return (0.0, most)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        return (WorstCase(pairs=_worst_errors(), note="with the sum of squares, which is free"),)

    def request(self, about: Any) -> Request:
        rest = about.rows is None or self.weighted
        statistic = BoundedSum(
            error=self.error,
            score_range=about.score_range,
            with_rest=rest,
            weighted=self.weighted,
            by_outcome=about.protection.only_labels and isinstance(about, ScoredRows) and not rest,
            **self._more(about),
        )
        mechanism = sum_noise(self.price, statistic, about.protection)
        parameters = {
            "error": self.error,
            "score_range": list(about.score_range),
            **self._more(about),
            **(about.scale_parameters if isinstance(about, ScoredRows) else {}),
            **weight_parameters(self.weighted, about),
        }
        return Request(self.title, statistic, mechanism, parameters)

    def _more(self, about: Any) -> dict[str, Any]:
        """Return what else the error depends on."""
        return {}

    def read(self, drawn: Drawn) -> MeanRelease:
        return MeanRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Ints:
        statistic = self.request(about).statistic
        assert isinstance(statistic, BoundedSum)
        return typical_sums(statistic, guess)

    def assumes(self, about: Any, guess: Guess) -> str:
        if guess.mean_error is not None:
            return ""
        return assumed_calibration(about, guess, "the interval can be more than twice as wide")


@dataclass(frozen=True, kw_only=True)
class _OfProbabilities(_MeanError):
    """A mean error of probabilities, of two classes or of more."""

    of = (ScoredRows, ClassifiedRows)

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        if isinstance(about, ClassifiedRows) and not about.scores:
            return about.no_scores
        if not isinstance(about, ScoredRows | ClassifiedRows) or about.score_range == (0.0, 1.0):
            return super().why_not(about)
        low, high = about.score_range
        if isinstance(about, ScoredRows) and about.score_map is not None:
            return (
                "it judges probabilities, and the scores have no range: declare score_range=(0, 1) "
                "instead of score_map if they are probabilities"
            )
        if (low, high) == (0.0, 100.0):
            return "it judges probabilities, and these are percentages: divide them by 100"
        return (
            f"it judges probabilities, and score_range is {low:g} to {high:g}; the mean squared "
            "error takes any range"
        )

    def _more(self, about: Any) -> dict[str, Any]:
        return {"classes": len(about.classes)} if isinstance(about, ClassifiedRows) else {}


@dataclass(frozen=True, kw_only=True)
class Brier(_OfProbabilities):
    """The Brier score: the mean squared distance of the score from the outcome, 0 or 1.

    Of several classes: the sum of these over all of them, at most 2 for probabilities.
    """

    kind = "brier"
    asks = "Are its probabilities right?"
    tells = "The Brier score: the mean squared distance between score and outcome."
    title = "Brier score"
    error: ClassVar[str] = "squared"
    section = Section(
        title="Brier score",
        meaning="How far the predicted probability lies from the outcome, squared, on average; "
        "0 is perfect.",
        weight=20,
        place=40,
        lower_is_better=True,
    )

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = _worst_errors()
        grouped = grouped_pairs(pairs[0], pairs[1], pairs[3])
        return (
            *super().worst_cases(),
            WorstCase(
                name="by-group",
                pairs=grouped,
                fields={"by": "g"},
                note="all sums of all groups jointly; a person's rows are in several",
            ),
            WorstCase(name="of-classes", pairs=class_pairs()),
            WorstCase(
                name="labels",
                pairs=label_pairs(1.0),
                note="only outcomes are secret: noise by the scores that there are",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class LogLoss(_OfProbabilities):
    """The mean of -ln of the probability that the model gave to what was true.

    One below `clip` counts as `clip`, so that no row counts for more than -ln(clip). A smaller
    clip forgives less and has more noise.
    """

    kind = "log-loss"
    replayed = (
        *_OfProbabilities.replayed,
        {"clip": 0.25},
    )
    asks = "How much probability did it give to the truth?"
    tells = "The log loss: the mean of -ln of the probability that the model gave to what was true."
    title = "log loss"
    error: ClassVar[str] = "log"
    section = Section(
        title="Log loss",
        meaning="The mean of -ln of the probability that the model gave to what was true, none "
        "below 0.01; a coin has 0.69.",
        weight=20,
        place=70,
        always=False,
        lower_is_better=True,
    )
    clip: Annotated[
        float, Number(1e-15, 0.5), "Probabilities below this value count as this value."
    ] = CLIP

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = tuple(map(weighted_pair, _worst_errors()))
        weighted = WorstCase(name="weighted", pairs=pairs, fields={"weighted": True})
        return (*super().worst_cases(), weighted)

    def _more(self, about: Any) -> dict[str, Any]:
        return {**super()._more(about), "clip": self.clip}


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteError(_MeanError):
    """The mean distance of the score from the end of its range that the label stands for."""

    kind = "mean-absolute-error"
    asks = "How far are its scores from the outcome?"
    tells = "The mean distance between a score and the end of its range that the label stands for."
    title = "mean absolute error"
    error: ClassVar[str] = "absolute"


@dataclass(frozen=True, kw_only=True)
class MeanSquaredError(_MeanError):
    """The mean squared distance of the score from its label's end of the range."""

    kind = "mean-squared-error"
    asks = "How far are its scores from the outcome, squared?"
    tells = "The mean squared distance between a score and its label's end of the range."
    title = "mean squared error"
    error: ClassVar[str] = "squared"

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        far: dict[str, Any] = {"out_of_range": "clip"}
        pairs = (
            table_pair(
                "an error from none to all, far out",
                [*REST, (1, 1e300)],
                [*REST, (1, -1e300)],
                **far,
            ),
            table_pair("a row far out leaves", [*REST, (1, -1e300)], REST, **far, **REMOVE),
        )
        note = 'scores beyond the range, out_of_range="clip"'
        return (*super().worst_cases(), WorstCase(name="clipped", pairs=pairs, note=note))


def _worst_errors() -> tuple[Pair, ...]:
    """Return pairs where an error moves from none to the largest."""
    return (
        table_pair("an error from none to all", [*REST, (1, 1.0)], [*REST, (1, 0.0)]),
        table_pair("the worst row leaves", [*REST, (1, 0.0)], REST, **REMOVE),
        table_pair("the best row leaves", [*REST, (1, 1.0)], REST, **REMOVE),
        unit_pair(
            "a person's two errors from none to all",
            [(1, 1.0), (1, 1.0), *REST],
            [(1, 0.0), (1, 0.0), *REST],
        ),
    )
