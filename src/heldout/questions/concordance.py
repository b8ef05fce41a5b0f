"""Concordance: does the row whose event comes first have the higher risk?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from heldout.arrays import Ints
from heldout.data.description import Description, SurvivalRows
from heldout.errors import ArgumentError
from heldout.intervals.areas import (
    Belief,
    Look,
    Scatter,
    believe_size,
    concordance_variance,
    noise_interval,
    noise_reach,
    population_interval,
    two_sided_p_value,
)
from heldout.intervals.groups import ByGroup
from heldout.intervals.measure import Measure
from heldout.intervals.release import Release
from heldout.kernel.door import Drawn, Request
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.ranking.concordance import PULL_STEPS, Concordance, ConcordanceMechanism
from heldout.kernel.ranking.laws import NoiseLaw
from heldout.questions.groups import Divisible
from heldout.questions.quote import Guess
from heldout.questions.survival import survival_pair, survival_table
from heldout.questions.worst_cases import PERSON, REMOVE, Pair, WorstCase

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

LEAST_EPSILON: Final = Fraction(1, 5000)
MOST_EPSILON: Final = 100
USUAL_SCATTER: Final = (0.2, 0.8)
"""The sampling variance as a share of the largest, and the deviation of that share's logarithm,
before the pull is seen. Since 2026-11-18; measured by benchmarks/measures.py."""


@dataclass(frozen=True)
class _Value:
    """The value as drawn."""

    unclamped: float
    law: NoiseLaw
    metric: str = "concordance"

    @property
    def value(self) -> float:
        return min(1.0, max(0.0, self.unclamped))


class ConcordanceRelease(Release):
    """A noisy concordance index."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, ConcordanceMechanism)
        self._mechanism = mechanism
        self._size, self._units, self._pull = (int(number) for number in drawn.values)
        self._draw = _Value(float(self._units * LATTICE), mechanism.law)

    @cached_property
    def _known(self) -> Belief:
        look = Look((float(self._size),), float(self._mechanism.size_look.scale))
        rows = self._drawn.about.rows
        per_unit = self._mechanism.protection.rows_per_unit
        most = None if rows is None else rows // 2
        known = believe_size(look, rows_per_unit=per_unit, most=most)
        size = 1 / known.per_positive
        # The pull over the size squared is the sampling variance; here in parts of the largest.
        centre = min(max(self._draw.value, 0.01), 0.99)
        whole = concordance_variance(centre, size, size) * size**2 * PULL_STEPS
        scale = float(self._mechanism.pull_look(self._units).scale)
        usual = Scatter.around(USUAL_SCATTER[0], spread=USUAL_SCATTER[1])
        scatter = Scatter.seen(self._pull / whole, scale=scale / whole, prior=usual)
        return replace(known, scatter=scatter)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        draw, known = self._draw, self._known
        return {
            self.name: Measure(
                draw.value,
                name=self.name,
                terms=self.terms,
                noise_interval=lambda level: noise_interval(draw, level=level, known=known),
                interval=lambda level: population_interval(draw, level=level, known=known),
                share=float,
                reach=lambda level: noise_reach(draw, level=level, known=known),
            )
        }

    def surprise(self, name: str, value: float) -> float:
        return two_sided_p_value(self._draw, null=value, known=self._known)


@dataclass(frozen=True, kw_only=True)
class ConcordanceIndex(Divisible[ConcordanceRelease, ByGroup[ConcordanceRelease]]):
    """Harrell's C: the share of comparable pairs in which the earlier event has the higher score.

    A tied score counts one half. Two events at one time are not compared; an event and a censoring
    at one time are, and the censored row lives on: as in lifelines.
    """

    kind: ClassVar[str] = "concordance"
    title: ClassVar[str] = "concordance"
    asks: ClassVar[str] = "Does a higher risk mean an earlier event?"
    tells: ClassVar[str] = (
        "Harrell's C: of two rows of which it is known whose event came first, how often it has "
        "the higher score."
    )
    of: ClassVar[tuple[type, ...]] = (SurvivalRows,)
    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"by": "g"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_EPSILON <= self.price <= MOST_EPSILON:
            raise ArgumentError(
                f"epsilon must lie between {LEAST_EPSILON} and {MOST_EPSILON} for the "
                f"{self.title}, got {self.price}."
            )

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and isinstance(about, SurvivalRows) and about.score is None:
            why = "no column has the risk that a model gives: name it with score="
        return why

    def check_by_group(self, about: SurvivalRows) -> None:
        moved = about.protection.rows_moved
        if self.price / moved < LEAST_EPSILON:
            raise ArgumentError(
                f"epsilon must be at least {moved * LEAST_EPSILON} by group, got {self.price}."
            )

    def request(self, about: SurvivalRows) -> Request:
        mechanism = ConcordanceMechanism(
            epsilon=self.price, protection=about.protection, rows=about.rows
        )
        parameters = {"time": about.time, "event": about.event, "score": about.score}
        return Request(self.title, Concordance(), mechanism, parameters)

    def read(self, drawn: Drawn) -> ConcordanceRelease:
        return ConcordanceRelease(drawn)

    def typical(self, about: SurvivalRows, guess: Guess) -> Ints:
        # As many comparable pairs as half of the rows having the event would give.
        size = max(sum(guess.counts) // 3, 1)
        value = guess.auc
        pull = USUAL_SCATTER[0] * 2 * value * (1 - value) * size * PULL_STEPS
        return np.array([size, round(Fraction(value) / LATTICE), round(pull)], dtype=np.int64)

    @classmethod
    def pool(cls, sites: "Sequence[Site]") -> "Pooled":
        from heldout.pooling.answer import PooledArea

        return PooledArea(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (*concordance_pairs(),)
        return (
            WorstCase(pairs=pairs, make=survival_table, why="parts are for the interval"),
            WorstCase(name="by-group", pairs=pairs, fields={"by": "g"}, make=survival_table),
        )


def concordance_pairs() -> tuple[Pair, ...]:
    """Return neighbours where a row turns all its pairs around."""
    best, worst = (0.1, 1, 1.0), (0.1, 1, 0.0)
    return (
        survival_pair("the first event falls from the top to the bottom", [best], [worst]),
        survival_pair("the first event leaves", [best], [], **REMOVE),
        survival_pair("a person's two events fall", [best] * 2, [worst] * 2, **PERSON),
    )
