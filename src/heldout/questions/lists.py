"""Ranked lists: how well the rows of each unit (a query's results, a user's offers) are ordered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arrays import Ints
from heldout.data.description import Description, ScoredRows
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, Release
from heldout.intervals.ratio import list_sums, mean, share_of
from heldout.kernel.door import Drawn, Request
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import laplace
from heldout.kernel.statistic import STEPS, Statistic, as_scores
from heldout.questions.base import Question, Section, Whole
from heldout.questions.quote import Guess
from heldout.questions.worst_cases import REMOVE, Pair, Rows, WorstCase, table

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["ListsRelease", "Ndcg", "PrecisionAtK", "RankedLists"]

# --- How well each unit's list of rows is ranked, summed over the units --------------------------


MEASURES: Final = ("ndcg", "precision")


@dataclass(frozen=True)
class RankedLists(Statistic[Ints]):
    """Sums over lists of a measure v of each: of v^2, of v - v^2 and of 1 - v.

    The first two add up to the sum of v, all three to the number of lists; and the first tells how
    much lists differ, so that the mean's sampling error need not be guessed.

    A list is the rows of one unit (a query, a user) that count, highest score first and negative
    rows first among equals. "precision" is the share of positive rows among the first `k`, where
    places that a short list leaves empty count as negative. "ndcg" gives a positive row at place i
    a gain of 1 / log2(i + 1), sums the gains of the first `k` and divides by what the best order
    would give; a list without a positive row has 0, as in scikit-learn.

    Claim:       L1 sensitivity STEPS a unit that leaves or arrives.       [claim: ranked-lists]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: a unit adds three whole numbers, none below 0, of its own rows alone: STEPS in
                 all, however many rows it has. Add-remove moves one unit, replace-one two.
    Numerics:    exact sums of whole numbers. A list's value is computed in doubles by operations on
                 its own rows, in the order of their ranks, then rounded and held to 0 and STEPS.
    Refuses:     a measure that it does not know, a k that is not positive, rows without units.
    Reference:   proofs/ranked-lists.md; Jarvelin and Kekalainen 2002.
    Cost:        one scan, one sort, O(rows) memory.

    >>> replaced = Protection(neighbours="replace-one", unit=True, rows_per_unit=20)
    >>> RankedLists(measure="ndcg", k=10).sensitivity(replaced) / STEPS
    2.0
    """

    measure: str
    k: int
    claim = "ranked-lists"
    shown_by = (
        "tests/conformance/test_ranked_lists.py"
        "::test_no_unit_moves_the_sums_further_than_claimed_and_some_do_as_far"
    )

    def __post_init__(self) -> None:
        if self.measure not in MEASURES or self.k < 1:
            raise ArgumentError(f"measure must be one of {', '.join(MEASURES)}, and k positive.")

    def body(self) -> str:
        return "SELECT list, label, score\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        positive = np.asarray(np.ma.filled(columns["label"], 0)) == 1
        _, member = np.unique(np.asarray(columns["list"]), return_inverse=True)
        order = np.lexsort((positive, -as_scores(columns["score"]), member))
        member, positive = member[order], positive[order]
        lists = int(member[-1]) + 1 if member.size else 0
        place = np.arange(member.size) - np.searchsorted(member, member)
        # Of places, not of rows: a row's gain does not depend on where in the table it stands.
        gains = np.full(self.k, 1 / self.k)
        if self.measure == "ndcg":
            gains = 1 / np.log2(np.arange(self.k) + 2.0)
        own = np.where(positive & (place < self.k), gains[np.minimum(place, self.k - 1)], 0.0)
        values = np.bincount(member, weights=own, minlength=lists)
        if self.measure == "ndcg":
            positives = np.minimum(np.bincount(member, weights=positive, minlength=lists), self.k)
            values = values / np.cumsum(gains)[np.maximum(positives.astype(np.int64) - 1, 0)]
        steps = np.clip(np.floor(values * STEPS + 0.5), 0, STEPS).astype(np.int64)
        squares = np.clip(np.floor(values * values * STEPS + 0.5), 0, steps).astype(np.int64)
        parts = (squares, steps - squares, STEPS - steps)
        return np.array([int(part.sum()) for part in parts], dtype=np.int64)

    @property
    def size(self) -> int:
        return 3

    def sensitivity(self, protection: Protection) -> int:
        if not protection.unit:
            raise ArgumentError(
                "Each ranked list is a unit. Declare unit=, the column that names the list."
            )
        return STEPS * (2 if protection.both_ways else 1)


# --- The mean over ranked lists of how well each is ranked ---------------------------------------


class ListsRelease(Release):
    """A noisy mean over lists."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        mechanism = drawn.request.mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        self._ratio = share_of(list_sums(drawn.values, mechanism))

    @property
    def measures(self) -> dict[str, Measure]:
        return {self.name: mean(self._ratio, 1.0, name=self.name, terms=self._drawn.terms)}

    def surprise(self, name: str, value: float) -> float:
        return self._ratio.p_value(value)


# --- Questions about ranked lists: each unit's rows (a query's results, a user's offers) are one -


@dataclass(frozen=True, kw_only=True)
class _RankedLists(Question[ListsRelease]):
    """The mean over units of how well the rows of each are ranked, by the first k of them.

    Rows beyond `rows_per_unit` do not count, so declare at least the length of a list there.
    """

    of = (ScoredRows,)
    replayed = ({"k": 10}, {"k": 1})
    measure: ClassVar[str]
    title: ClassVar[str]
    k: Annotated[int, Whole(1, 10**6), "How many rows of each list count, from the top."] = 10

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        if why is None and not about.protection.unit:
            why = "a list is the rows of one unit (a query, a user): declare its column with unit="
        if why is None and about.remote:
            why = "lists are ranked in memory: copy the rows out of their database"
        return why

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.answer import PooledLists

        return PooledLists(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        best, worst = [(1, 0.9), (0, 0.1)], [(0, 0.9), (0, 0.8), (0, 0.7)]
        pairs = (
            _list_pair("a list from best to worst", best, worst),
            _list_pair("the best list leaves", best, [], **REMOVE),
            _list_pair("the worst list leaves", [(0, 0.9), (0, 0.1)], [], **REMOVE),
        )
        return (WorstCase(pairs=pairs),)

    def request(self, about: ScoredRows) -> Request:
        statistic = RankedLists(self.measure, self.k)
        mechanism = laplace(statistic, self.price, about.protection)
        parameters = {"score": about.score, "k": self.k, **about.scale_parameters}
        name = self.title.format(k=self.k)
        return Request(name, statistic, mechanism, parameters, view=lambda rows: rows.with_lists())

    def read(self, drawn: Drawn) -> ListsRelease:
        return ListsRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Ints:
        lists = max(1, sum(guess.counts) // about.protection.rows_per_unit)
        precision = guess.precision()
        square = (
            precision**2 + precision * (1 - precision) / 4
        )  # lists that differ half as much as they may
        parts = np.array([square, precision - square, 1 - precision])
        return np.round(parts * lists * STEPS).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Ndcg(_RankedLists):
    """The mean normalised discounted cumulative gain of the first k rows of each unit."""

    kind = "ndcg"
    asks = "Are the best rows of each list near its top?"
    tells = "NDCG: how near the order of each list comes to the best one, on average over lists."
    section = Section(
        title="Ranked lists: NDCG",
        meaning="How near the order of each list comes to the best one, first places counting "
        "most; the mean over lists. 1 is perfect, and a list without a positive row has 0.",
        weight=20,
        place=80,
        always=False,
    )
    measure: ClassVar[str] = "ndcg"
    title = "NDCG at {k}"


@dataclass(frozen=True, kw_only=True)
class PrecisionAtK(_RankedLists):
    """The mean share of positive rows among the first k rows of each unit."""

    kind = "precision-at-k"
    asks = "How many of the first k rows of each list are positive?"
    tells = "The share of positive rows among the first k of each list, on average over lists."
    section = Section(
        title="Ranked lists: precision at k",
        meaning="The share of positive rows among the first k of each list; the mean over lists.",
        weight=20,
        place=90,
        always=False,
    )
    example: ClassVar[Mapping[str, Any]] = {"k": 1}
    measure: ClassVar[str] = "precision"
    title = "precision at {k}"


def _list_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Return a query's list, of up to three rows, beside those of six others."""

    others = [row for place in range(6) for row in ((place % 2, 0.3), (1, 0.6), (0, 0.4))]

    def of(own: Rows) -> dict[str, Any]:
        queries = [0] * len(own) + [1 + place // 3 for place in range(len(others))]
        return table([*own, *others], u=queries)

    return Pair(name, of(first), of(second), {"unit": "u", "rows_per_unit": 3, **options})
