"""Questions about ranked lists: each unit's rows (a query's results, a user's offers) are one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from heldout.data.description import Description, ScoredRows
from heldout.intervals.lists import ListsRelease
from heldout.kernel.door import Drawn, Request
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.weights import STEPS
from heldout.questions.base import Question, Section
from heldout.questions.guess import Guess
from heldout.questions.lists.statistic import RankedLists
from heldout.questions.rules import Whole
from heldout.questions.worst_cases import REMOVE, Pair, Rows, WorstCase, table

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["Ndcg", "PrecisionAtK"]


@dataclass(frozen=True, kw_only=True)
class _RankedLists(Question[ListsRelease]):
    """The mean over units of how well the rows of each are ranked, by the first k of them.

    Rows beyond `rows_per_unit` do not count, so declare at least the length of a list there.
    """

    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = ({"k": 10}, {"k": 1})
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
        mechanism = DiscreteLaplace.for_epsilon(
            self.price, l1_sensitivity=statistic.sensitivity(about.protection), dimension=3
        )
        parameters = {"score": about.score, "k": self.k, **about.scale_parameters}
        name = self.title.format(k=self.k)
        return Request(name, statistic, mechanism, parameters, view=lambda rows: rows.with_lists())

    def read(self, drawn: Drawn) -> ListsRelease:
        return ListsRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Any:
        lists = max(1, sum(guess.counts) // about.protection.rows_per_unit)
        found = guess.precision()
        square = found**2 + found * (1 - found) / 4  # lists that differ half as much as they may
        parts = np.array([square, found - square, 1 - found])
        return np.round(parts * lists * STEPS).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Ndcg(_RankedLists):
    """The mean normalised discounted cumulative gain of the first k rows of each unit."""

    kind: ClassVar[str] = "ndcg"
    asks: ClassVar[str] = "Are the best rows of each list near its top?"
    tells: ClassVar[str] = (
        "NDCG: how near the order of each list comes to the best one, on average over lists."
    )
    section: ClassVar[Section | None] = Section(
        title="Ranked lists: NDCG",
        meaning="How near the order of each list comes to the best one, first places counting "
        "most; the mean over lists. 1 is perfect, and a list without a positive row has 0.",
        weight=20,
        place=80,
        always=False,
    )
    measure: ClassVar[str] = "ndcg"
    title: ClassVar[str] = "NDCG at {k}"


@dataclass(frozen=True, kw_only=True)
class PrecisionAtK(_RankedLists):
    """The mean share of positive rows among the first k rows of each unit."""

    kind: ClassVar[str] = "precision-at-k"
    asks: ClassVar[str] = "How many of the first k rows of each list are positive?"
    tells: ClassVar[str] = (
        "The share of positive rows among the first k of each list, on average over lists."
    )
    section: ClassVar[Section | None] = Section(
        title="Ranked lists: precision at k",
        meaning="The share of positive rows among the first k of each list; the mean over lists.",
        weight=20,
        place=90,
        always=False,
    )
    example: ClassVar[Mapping[str, Any]] = {"k": 1}
    measure: ClassVar[str] = "precision"
    title: ClassVar[str] = "precision at {k}"


def _list_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Return a query's list, of up to three rows, beside those of six others."""

    others = [row for place in range(6) for row in ((place % 2, 0.3), (1, 0.6), (0, 0.4))]

    def of(own: Rows) -> dict[str, Any]:
        queries = [0] * len(own) + [1 + place // 3 for place in range(len(others))]
        return table([*own, *others], u=queries)

    return Pair(name, of(first), of(second), {"unit": "u", "rows_per_unit": 3, **options})
