"""One release of a ranking metric: noisy class counts and the noisy value, for one epsilon.

The size of the noise depends on a class count, so an honest interval needs to know that count. A
small share of epsilon buys it: first the counts get discrete Laplace noise, then the value gets
its own noise with the rest. Both together are one composed event that costs epsilon exactly.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from heldout.errors import ArgumentError
from heldout.mechanisms.discrete_laplace import DiscreteLaplace
from heldout.mechanisms.smooth.choose import METHODS, choose, guessed_rung, sensitivity_for
from heldout.mechanisms.smooth.exact import LATTICE, Randomness
from heldout.mechanisms.smooth.law import NoiseLaw
from heldout.privacy.events import Event
from heldout.privacy.loss import Loss
from heldout.privacy.neighbours import Protection
from heldout.statistics.base import rows_moved
from heldout.statistics.ranking.sensitivity import RungSensitivity
from heldout.statistics.sealed import Sealed, unseal

__all__ = ["RankingDraw", "RankingMechanism", "RankingStatistic", "count_share"]

_SMALLEST_SHARE: Final = Fraction(1, 20)
_LARGEST_SHARE: Final = Fraction(1, 4)


@dataclass(frozen=True)
class RankingStatistic:
    """The exact value in [0, 1] and the class counts: what a `Sealed` holds for this mechanism."""

    value: Fraction
    positives: int
    negatives: int


@dataclass(frozen=True)
class RankingDraw:
    """What came out: everything here was paid for."""

    mechanism: "RankingMechanism"
    units: int
    noisy_counts: tuple[int, ...]

    @property
    def unclamped(self) -> float:
        """The noisy value as drawn, which may lie outside [0, 1]: what intervals are made of."""
        return float(self.units * LATTICE)

    @property
    def value(self) -> float:
        """The noisy value, clamped to [0, 1]."""
        return min(1.0, max(0.0, self.unclamped))

    def as_dict(self) -> dict[str, object]:
        """The released numbers as drawn."""
        names = ("positives", "negatives")[: len(self.noisy_counts)]
        counts = dict(zip(names, self.noisy_counts, strict=True))
        return {"unclamped": self.unclamped, "lattice": str(LATTICE), "noisy_counts": counts}


@dataclass(frozen=True, kw_only=True)
class RankingMechanism:
    """Noisy class counts and a noisy ranking metric. Everything in it is public.

    Claim:       the loss of the counts and of the noise law add up to epsilon exactly (and to
                 delta for the one method that has it).                [claim: piecewise-laplace]
    Neighbours:  the protection's.
    Sensitivity: counts: one row with a public row count, else as many as may leave and arrive;
                 value: the noise law's own.
    Numerics:    exact.
    Refuses:     an unknown metric or method; a share outside [0, 1).
    Reference:   sequential composition.
    Cost:        under 1 ms, after 20 to 60 ms once for an epsilon.

    >>> from heldout.privacy.neighbours import Protection
    >>> mechanism = RankingMechanism(
    ...     metric="auc", epsilon=Fraction(1, 2), rows=2000,
    ...     protection=Protection(neighbours="replace-one"))
    >>> print(mechanism.privacy_map())
    epsilon 1/2
    """

    metric: str
    epsilon: Fraction
    protection: Protection
    rows: int | None = None
    smaller_class: int | None = None
    method: str = "piecewise-laplace"
    delta: Fraction | None = None
    share: Fraction | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ArgumentError(
                f"method must be one of {', '.join(METHODS)}, got {self.method!r}. "
                "Leave it out for the most accurate."
            )
        if self.protection.row_count_is_public and self.rows is None:
            raise ArgumentError(
                "rows must be given with replace-one neighbours, got None. The row count is public."
            )
        if self.share is not None and not 0 <= self.share < 1:
            raise ArgumentError(
                f"share must be at least 0 and below 1, got {self.share}. Leave it out."
            )
        _ = self.law  # a wrong argument is refused here, before anything is booked

    @cached_property
    def local(self) -> RungSensitivity:
        return sensitivity_for(self.metric, protection=self.protection, method=self.method)

    @cached_property
    def spent_on_counts(self) -> Fraction:
        """The part of epsilon that goes to the class counts; none with the published methods."""
        if self.share is not None:
            return self.epsilon * self.share
        if self.method.startswith("boyd-2015"):
            return Fraction(0)
        return self.epsilon * count_share(
            self.epsilon, self.local, rows=self.rows, smaller_class=self.smaller_class
        )

    @cached_property
    def counts(self) -> DiscreteLaplace | None:
        """With a public row count the positives alone are noised: the negatives are the rest."""
        if self.spent_on_counts == 0:
            return None
        public = self.protection.row_count_is_public
        return DiscreteLaplace.for_epsilon(
            self.spent_on_counts,
            l1_sensitivity=1 if public else rows_moved(self.protection),
            dimension=1 if public else 2,
        )

    @cached_property
    def law(self) -> NoiseLaw:
        return choose(
            self.method,
            epsilon=self.epsilon - self.spent_on_counts,
            local=self.local,
            rows=self.rows,
            smaller_class=self.smaller_class,
            delta=self.delta,
        )

    def event(self) -> Event:
        if self.counts is None:
            return self.law.event()
        return Event.composed([self.counts.event(), self.law.event()])

    def privacy_map(self) -> Loss:
        if self.delta is not None:
            return Loss.approximate(self.epsilon, self.delta)
        return Loss.pure(self.epsilon)

    def describe(self) -> dict[str, object]:
        described = {"metric": self.metric, **self.law.describe()}
        if self.counts is not None:
            described["counts"] = self.counts.describe()
        return described

    def sample(
        self, sealed: Sealed[RankingStatistic], *, randomness: Randomness | None = None
    ) -> RankingDraw:
        statistic = unseal(sealed)
        noisy: tuple[int, ...] = ()
        if self.counts is not None:
            both = [statistic.positives, statistic.negatives]
            drawn: Any = self.counts.sample(Sealed(both[: self.counts.dimension]))
            noisy = tuple(int(count) for count in drawn)
        rung = self.local.rung(positives=statistic.positives, negatives=statistic.negatives)
        units = self.law.sample(statistic.value, rung=rung, randomness=randomness)
        return RankingDraw(self, units, noisy)


def count_share(
    epsilon: Fraction, local: RungSensitivity, *, rows: int | None, smaller_class: int | None
) -> Fraction:
    """The share of epsilon for the counts: enough to know the guessed class to about a tenth.

    At least 1/20, so that a class much smaller than guessed is still seen, and at most 1/4.
    """
    rungs = guessed_rung(local, rows=rows, smaller_class=smaller_class)
    moved = 1 if local.protection.row_count_is_public else rows_moved(local.protection)
    moved_rungs = Fraction(moved, local.rows_per_unit)
    share = Fraction(13, 2) * moved_rungs / (rungs * epsilon)
    rounded = Fraction(round(share * 1000), 1000)
    return min(_LARGEST_SHARE, max(_SMALLEST_SHARE, rounded))
