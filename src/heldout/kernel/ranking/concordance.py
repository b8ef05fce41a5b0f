"""Harrell's concordance: how often the row with the earlier event has the higher risk."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from heldout.arrays import Bools, Floats, Ints
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.ranking.ladder import PiecewiseLaplace
from heldout.kernel.ranking.mechanism import choose
from heldout.kernel.ranking.sensitivity import AreaSensitivity
from heldout.kernel.ranking.tuned import PULL_SHARE, SIZE_SHARE
from heldout.kernel.statistic import OfEachGroup, Sealed, Statistic, as_scores

# --- The pairs that can be compared, and how each row fares in its own ---------------------------


@dataclass(frozen=True, repr=False)
class Pulls:
    """Sums over rows of what they have to do with concordance, as whole numbers.

    Of a row, q is how many pairs of its own can be compared and s twice how many of them are
    concordant, ties counted once. `won` is the sum of s, `pairs` that of q; each pair is in both
    its rows.
    """

    rows: int
    won: int
    pairs: int
    won_squared: int
    won_times_pairs: int
    pairs_squared: int

    @property
    def value(self) -> Fraction:
        """Return the share of comparable pairs that are concordant; 1/2 if there are none."""
        return Fraction(self.won, 2 * self.pairs) if self.pairs else Fraction(1, 2)

    @property
    def size(self) -> int:
        """Return how many comparable pairs there are for each row but one, rounded down."""
        return self.pairs // (2 * (self.rows - 1)) if self.rows > 1 else 0

    def pull(self, centre: Fraction) -> Fraction:
        """Return the sum over rows of ((s/2 - centre q) / (rows - 1))^2."""
        if self.rows < 2:
            return Fraction(0)
        squares = (
            Fraction(self.won_squared, 4)
            - centre * self.won_times_pairs
            + centre**2 * self.pairs_squared
        )
        return squares / (self.rows - 1) ** 2


def pulls(time: Any, event: Any, score: Any) -> Pulls:
    """Compare all pairs of rows of which it is known whose event came first.

    A pair can be compared if the earlier time is that of an event; at one time, if one row has an
    event and the other is censored, which lives on. It is concordant if the row with the event has
    the higher score; a tie counts one half, as in lifelines.

    >>> compared = pulls([1, 2, 3], [1, 0, 1], [0.9, 0.2, 0.9])
    >>> compared.value, compared.size
    (Fraction(3, 4), 1)
    """
    times, scores, came = np.asarray(time), np.asarray(score), np.asarray(event) == 1
    if not times.size:
        return Pulls(0, 0, 0, 0, 0, 0)
    # At one time events come before censorings; two events of one time have one place.
    place = 2 * np.unique(times, return_inverse=True)[1].ravel() + ~came
    rank = np.unique(scores, return_inverse=True)[1].ravel()
    every = np.ones(times.size, dtype=bool)
    later = np.where(came, times.size - _count(place, place, side="right"), 0)
    earlier = _count(np.sort(place[came]), place, side="left")
    lower = np.where(came, _after_and_below(place, rank, came, every), 0)
    higher = _after_and_below(-place, rank.max() - rank, every, came)
    both = rank * (int(place.max()) + 1) + place
    above = np.searchsorted(np.sort(rank), rank, side="right")
    tied_later = np.where(came, above - _count(np.sort(both), both, side="right"), 0)
    first = np.searchsorted(np.sort(rank[came]), rank, side="left")
    tied_earlier = _count(np.sort(both[came]), both, side="left") - first
    pairs = later + earlier
    won = 2 * (lower + higher) + tied_later + tied_earlier
    return Pulls(
        rows=int(times.size),
        won=int(won.sum()),
        pairs=int(pairs.sum()),
        won_squared=_dot(won, won),
        won_times_pairs=_dot(won, pairs),
        pairs_squared=_dot(pairs, pairs),
    )


def _count(ordered: Ints, wanted: Ints, *, side: Any) -> Ints:
    counts: Ints = np.searchsorted(np.sort(ordered), wanted, side=side)
    return counts


def _after_and_below(place: Ints, rank: Ints, of: Bools, among: Bools) -> Ints:
    """For each row `of`, count the rows `among` with a later place and a lower rank.

    Rows are ordered by place, those of one place by rank, so that none of them counts. Then
    neighbouring blocks are compared, of one row each, of two, of four and so on.
    """
    order = np.lexsort((rank, place))
    position = np.empty(place.size, dtype=np.int64)
    position[order] = np.arange(place.size)
    by_rank = np.argsort(rank, kind="stable")
    position, of, among, rank = position[by_rank], of[by_rank], among[by_rank], rank[by_rank]
    counts = np.zeros(place.size, dtype=np.int64)
    width = 1
    while width < place.size:
        block = position // (2 * width)
        left = (position // width) % 2 == 0
        within = np.argsort(block, kind="stable")  # by block, then by rank
        right = np.cumsum((among & ~left)[within])
        starts = np.searchsorted(block[within], block[within], side="left")
        before = np.where(starts > 0, right[np.maximum(starts, 1) - 1], 0)
        # Of equal ranks none counts: go back to the first of them in the block.
        pair = block[within] * (int(rank[-1]) + 1) + rank[within]
        first = np.searchsorted(pair, pair, side="left")
        below = np.where(first > 0, right[np.maximum(first, 1) - 1], 0)
        counts[within] += np.where((of & left)[within], below - before, 0)
        width *= 2
    by_row = np.empty_like(counts)
    by_row[by_rank] = counts
    return by_row


def _dot(first: Ints, second: Ints) -> int:
    """Return the exact sum of products, each of which may have 60 bits."""
    low, high = second % 2**20, second // 2**20
    return sum(
        int(part.sum()) << shift
        for factor, up in ((low, 0), (high, 20))
        for part, shift in (
            ((first % 2**20) * factor, up),
            ((first // 2**20) * factor, up + 20),
        )
    )


# --- The statistics ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Concordance(Statistic[Pulls]):
    """Harrell's concordance of a score with times to an event, and how rows pull at it.

    Claim:       by rung r = (pairs / (rows - 1)) // k, one person moves the value by at most
                 min(1, 1/r), the rung by one and the pull, about a fixed centre, by at most
                 k (m^2 + 2 m), m = max(centre, 1 - centre).              [claim: concordance]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a pair's term lies in [0, 1], and it and whether it can be compared depend on its
                 two rows alone; a row is in rows - 1 pairs. proofs/concordance.md.
    Numerics:    exact: times and scores are only compared, all sums are integers.
    Refuses:     nothing. Without a comparable pair the value is 1/2.
    Reference:   proofs/concordance.md; Harrell, Califf, Pryor, Lee and Rosati 1982.
    Cost:        O(N log^2 N) time, O(N) memory.
    """

    column: str = "score"
    """Of `evaluated`: which number of a row is its score."""
    claim: ClassVar[str] = "concordance"
    shown_by: ClassVar[str] = (
        "tests/kernel/ranking/test_concordance.py"
        "::test_no_small_neighbours_are_further_apart_than_claimed"
    )

    def body(self) -> str:
        return f"SELECT time, event, {_named(self.column)}\nFROM evaluated"

    def read(self, columns: Columns) -> Pulls:
        event = np.asarray(np.ma.filled(columns["event"], 0))
        return pulls(_times(columns["time"]), event, as_scores(columns["score"]))

    def of_groups(self, groups: int) -> OfEachGroup[Pulls]:
        return OfEachGroup(self, groups)


def _named(column: str) -> str:
    """Return a column of `evaluated` as the score."""
    return column if column == "score" else f"{column} AS score"


def _times(column: Any) -> Floats:
    """Return times as doubles; NULL and NaN, which validation refuses, would count as 0."""
    times = np.asarray(np.ma.filled(np.ma.asarray(column, dtype=np.float64), 0.0))
    return np.where(np.isnan(times), 0.0, times)


# --- The mechanism -------------------------------------------------------------------------------

PULL_STEPS: Final = 2**20
"""A pull of 1 is so many steps of the lattice."""


@dataclass(frozen=True, kw_only=True)
class ConcordanceMechanism:
    """Noise for the comparable pairs per row, for the value, then for the pull about that value.

    The first and the last are for intervals: how large the noise is, and how much the rows differ.

    Claim:       pure DP, epsilon.                                        [claim: concordance]
    Neighbours:  the protection's.
    Sensitivity: the size by at most k; the value by its rung; the pull by `pull_sensitivity`,
                 which depends on the released value and not on the rows.
    Numerics:    exact; the pull is rounded down to a step, and its bound up.
    Refuses:     an epsilon for which the ladder has no value.
    Reference:   adaptive composition of three pure mechanisms; proofs/concordance.md.
    Cost:        about 1 ms, after 20 to 60 ms once for each new epsilon.

    >>> from heldout.kernel import price
    >>> mechanism = ConcordanceMechanism(
    ...     epsilon=Fraction(1), protection=Protection(neighbours="replace-one"), rows=2000)
    >>> print(price(mechanism.event()))
    epsilon 1
    """

    epsilon: Fraction
    protection: Protection
    rows: int | None = None

    def __post_init__(self) -> None:
        _ = self.law  # refuses what it must before booking

    @cached_property
    def local(self) -> AreaSensitivity:
        return AreaSensitivity(protection=self.protection)

    @cached_property
    def law(self) -> PiecewiseLaplace:
        """Return the noise of the value."""
        share = 1 - SIZE_SHARE - PULL_SHARE
        law = choose(
            "piecewise-laplace", epsilon=self.epsilon * share, local=self.local, rows=self.rows
        )
        if not isinstance(law, PiecewiseLaplace):
            raise ArgumentError("Internal error: another noise was chosen.")
        return law

    @property
    def size_look(self) -> DiscreteLaplace:
        """Return the noise of the comparable pairs per row."""
        return DiscreteLaplace.for_epsilon(
            self.epsilon * SIZE_SHARE,
            l1_sensitivity=self.protection.rows_per_unit,
            dimension=1,
        )

    def pull_look(self, units: int) -> DiscreteLaplace:
        """Return the noise of the pull, once the value was drawn."""
        return DiscreteLaplace.for_epsilon(
            self.epsilon * PULL_SHARE,
            l1_sensitivity=self.pull_sensitivity(self.centre(units)),
            dimension=1,
        )

    def pull_sensitivity(self, centre: Fraction) -> int:
        """Return how many steps one person moves the pull about this centre at most."""
        most = max(centre, 1 - centre)
        return math.ceil(self.protection.rows_per_unit * (most**2 + 2 * most) * PULL_STEPS)

    @staticmethod
    def centre(units: int) -> Fraction:
        """Return the released value, held to 0 and 1."""
        return min(max(units * LATTICE, Fraction(0)), Fraction(1))

    def event(self) -> Event:
        return Event.composed([self.size_look.event(), self.law.event(), self.pull_look(0).event()])

    def sample(self, sealed: Sealed[Pulls]) -> Ints:
        """Draw the size, the value in units of the lattice, and the pull in steps."""
        statistic = unseal(sealed)
        size = statistic.size
        [noisy_size] = self.size_look.sample(Sealed([size]))
        rung = self.local.rung(positives=size, negatives=size)
        units = self.law.sample(statistic.value, rung=rung)
        pull = math.floor(statistic.pull(self.centre(units)) * PULL_STEPS)
        [noisy_pull] = self.pull_look(units).sample(Sealed([pull]))
        return np.array([noisy_size, units, noisy_pull], dtype=np.int64)

    def describe(self) -> dict[str, object]:
        return {"metric": "concordance", **self.law.describe(), "size": self.size_look.describe()}
