"""Two models on the same rows, row by row: differences in errors, accuracy and recall."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from heldout.arguments import visible
from heldout.data.description import ScoredRows
from heldout.data.sql import double
from heldout.errors import ArgumentError
from heldout.intervals.measure import Difference, Measure
from heldout.intervals.ratio import (
    NoisyCounts,
    Ratio,
    Squares,
    noisy_sums,
    share_of,
    with_public_total,
)
from heldout.kernel.door import Request
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.tied import (
    OutcomeLaplace,
    TiedLaplace,
    count_noise,
    drawn_sums,
    sum_noise,
)
from heldout.kernel.statistic import CLIP, ERRORS, BoundedSum, DisjointCounts, Statistic

if TYPE_CHECKING:
    from fractions import Fraction


OF_ERRORS: Final = {"brier": "squared", "log-loss": "log"}
OF_CALLS: Final = {
    # Weights of a row that B alone has right, by label: the rows that the measure is about.
    "accuracy": (1.0, 1.0),
    "recall": (0.0, 1.0),
    "specificity": (1.0, 0.0),
}
PAIRED: Final = (*OF_ERRORS, *OF_CALLS)
TITLES: Final = {"brier": "Brier score", "log-loss": "log loss"}


@dataclass(frozen=True)
class PairedErrors(BoundedSum):
    """Sums over rows of the second model's error minus the first one's, as `BoundedSum` sums one.

    Claim:       as BoundedSum: L1 sensitivity `resolution` a row that leaves or arrives, or is
                 replaced where the row count is public.                  [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: half of the difference, plus one half, is a number from 0 to 1 of the row's own
                 label and scores; nothing else of it enters the proof.
    Numerics:    exact integers, as BoundedSum.
    Refuses:     what BoundedSum refuses.
    Reference:   proofs/bounded-sum.md.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> replaced = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> PairedErrors(error="brier", score_range=(0, 1), with_rest=False).sensitivity(replaced)
    1048576
    """

    known: ClassVar[tuple[str, ...]] = tuple(OF_ERRORS)
    shown_by: ClassVar[str | None] = (
        "tests/questions/ranking/test_paired.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    @property
    def largest(self) -> float:
        """The width of the range of differences."""
        return 2 * (-math.log(self.clip) if self.error == "log-loss" else 1.0)

    def _error(self) -> str:
        first, second = (
            ERRORS[OF_ERRORS[self.error]].format(
                distance=f"{score} - label",
                own=f"CASE WHEN label = 1 THEN {score} ELSE 1 - {score} END",
                clip=double(self.clip),
                largest=double(-math.log(self.clip)),
            )
            for score in ("score", "rival")
        )
        return f"(({second}) - ({first}) + 1) / 2"

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return []


@dataclass(frozen=True)
class PairedCalls(DisjointCounts):
    """Rows by label, by what the first model calls them and by what the second one does.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one of eight cells.
    Numerics:    exact integers; scores and thresholds compare as doubles.
    Refuses:     nothing; thresholds are checked when the question is made.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan, O(1) memory.

    >>> PairedCalls(0.5, 0.5).sensitivity(Protection(neighbours="replace-one"))
    2
    """

    threshold: float
    rival_threshold: float
    shown_by: ClassVar[str | None] = PairedErrors.shown_by

    def places(self) -> dict[str, tuple[str, int]]:
        first = f"CAST(score >= {double(self.threshold)} AS INTEGER)"
        second = f"CAST(rival >= {double(self.rival_threshold)} AS INTEGER)"
        return {"label": ("label", 2), "first": (first, 2), "second": (second, 2)}


@dataclass(frozen=True)
class PairedRight(DisjointCounts):
    """Rows of several classes by whether the first model is right and whether the second one is.

    A model is right where the class that it says is the true one.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.      [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one of four cells, by its own truth and both models' calls.
    Numerics:    exact integers; scores compare as doubles.
    Refuses:     nothing.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan, O(1) memory.

    >>> PairedRight().sensitivity(Protection(neighbours="replace-one"))
    2
    """

    shown_by: ClassVar[str | None] = (
        "tests/conformance/test_classes.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed_and_some_are_that_far"
    )

    def places(self) -> dict[str, tuple[str, int]]:
        first, second = (f"CAST({call} = truth AS INTEGER)" for call in ("called", "rival"))
        return {"first": (first, 2), "second": (second, 2)}


def paired_request(
    measure: str,
    about: ScoredRows,
    price: "Fraction",
    *,
    rival: str,
    threshold: float,
    rival_threshold: float | None,
) -> Request:
    """Return what is asked of the rows for a difference in one of `PAIRED`."""
    about.check_rival(rival)
    named: dict[str, Any] = {"score": about.score, "measure": measure}
    statistic: PairedErrors | PairedCalls
    mechanism: DiscreteLaplace | OutcomeLaplace
    if measure in OF_ERRORS:
        ranges = {about.score_range, about.rival_range(rival)}
        if ranges != {(0.0, 1.0)} or about.score_map is not None:
            raise ArgumentError(
                f"measure {measure!r} compares probabilities: both scores must have the range (0, "
                "1). Use the AUC, or accuracy or recall at a threshold."
            )
        statistic = PairedErrors(
            error=measure,
            score_range=(0.0, 1.0),
            with_rest=about.rows is None,
            clip=CLIP,
            by_outcome=about.protection.only_labels,
        )
        mechanism = sum_noise(price, statistic, about.protection)
        named |= {"clip": CLIP} if measure == "log-loss" else {}
    else:
        second = about.rival_range(rival)
        other = threshold if rival_threshold is None else rival_threshold
        if not second[0] <= other <= second[1]:
            raise ArgumentError(
                f"rival_threshold must lie within {second[0]:g} and {second[1]:g}, the range of "
                f"{visible(rival)!r}, got {other:g}."
            )
        statistic = PairedCalls(about.counted_threshold(about.threshold(threshold)), other)
        mechanism = count_noise(
            price,
            l1_sensitivity=statistic.sensitivity(about.protection),
            dimension=8,
            cells=4,
            protection=about.protection,
        )
        named |= {"threshold": threshold, "rival_threshold": other}
    return Request(
        f"difference in {TITLES.get(measure, measure)}",
        statistic,
        mechanism,
        named | about.rival_parameters(rival) | about.scale_parameters,
        view=lambda rows: rows.with_rival(rival),
    )


class PairedDifference(Difference):
    """The second model's number minus the first one's, on the same rows."""

    @cached_property
    def _ratio(self) -> Ratio:
        """Return the difference's place in its range, from 0 to 1."""
        drawn = self._drawn
        statistic, mechanism = drawn.request.statistic, drawn.request.mechanism
        if isinstance(statistic, PairedErrors):
            rows = None if statistic.with_rest else drawn.about.rows
            sums, noise = drawn_sums(mechanism, drawn.values)
            return share_of(noisy_sums(sums, noise, unit=float(statistic.resolution), rows=rows))
        scale, noisy = mechanism.float_scale, np.asarray(drawn.values)
        spread = np.eye(len(noisy))
        counts = NoisyCounts(estimate=noisy.astype(float), spread=spread, scale=scale, rows=None)
        if isinstance(
            mechanism, TiedLaplace
        ):  # the negatives of a cell are what its positives leave
            tied = np.vstack([-np.eye(4), np.eye(4)])
            counts = replace(counts, spread=tied, rows=drawn.about.rows)
        elif drawn.about.rows is not None:
            counts = with_public_total(noisy, scale=scale, rows=drawn.about.rows)
        # Rows that both models have alike add nothing to how much a difference varies.
        counts = replace(counts, squares=Squares(counts.estimate, counts.spread, np.square))
        weights = OF_CALLS[str(self.parameters["measure"])]
        # What cells hold: a truth that matters or not, and whether each model says it. Of several
        # classes the truth is 1, "right", in all of the four.
        top, whole = [], []
        for label in (1,) if isinstance(statistic, PairedRight) else (0, 1):
            for first in (0, 1):
                for second in (0, 1):
                    # B right and A wrong counts 1, A right and B wrong 0, and both alike a half.
                    gained = (second == label) - (first == label)
                    top.append(weights[label] * (1 + gained) / 2)
                    whole.append(weights[label])
        return Ratio(counts, np.array(top), np.array(whole))

    @property
    def _reach(self) -> float:
        """Return the largest difference."""
        statistic = self._drawn.request.statistic
        return statistic.largest / 2 if isinstance(statistic, PairedErrors) else 1.0

    @property
    def measures(self) -> dict[str, Measure]:
        reach = self._reach

        title = self.compared
        name = visible(f"{title} of {self.rival} minus {title} of {self.score}")
        return {
            name: Measure.of(
                self._ratio,
                lambda place: reach * (2 * place - 1),
                name=name,
                terms=self.terms,
                share=lambda value: (value / reach + 1) / 2,
            )
        }

    @property
    def compared(self) -> str:
        measure = str(self.parameters["measure"])
        return TITLES.get(measure, measure)

    @property
    def more_is_better(self) -> bool:
        return self.parameters["measure"] in OF_CALLS

    @property
    def p_value(self) -> float:
        return self._ratio.p_value(0.5)

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value((value / self._reach + 1) / 2)

    def plotted(self) -> dict[str, Measure]:
        return {}
