"""Questions about ranked lists: each unit's rows (a query's results, a user's offers) are one."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.mechanisms import DiscreteLaplace
from heldout.metrics.lists import ListsRelease
from heldout.questions.base import Question
from heldout.questions.guess import Guess
from heldout.questions.rules import Whole
from heldout.release import Drawn, Request
from heldout.statistics.ranked_lists import RankedLists
from heldout.statistics.weights import STEPS

__all__ = ["Ndcg", "PrecisionAtK"]


@dataclass(frozen=True, kw_only=True)
class _RankedLists(Question):
    """The mean over units of how well the rows of each are ranked, by the first k of them.

    Rows beyond `rows_per_unit` do not count, so declare at least the length of a list there.
    """

    of: ClassVar[tuple[type, ...]] = (ScoredRows,)
    measure: ClassVar[str]
    title: ClassVar[str]
    k: Annotated[int, Whole(1, 10**6)] = 10

    def request(self, about: ScoredRows) -> Request:
        if about.remote:
            raise ArgumentError("Ranked lists must fit into memory. Copy the rows.")
        statistic = RankedLists(self.measure, self.k)
        mechanism = DiscreteLaplace.for_epsilon(
            self.price, l1_sensitivity=statistic.sensitivity(about.protection), dimension=3
        )
        parameters = {"score": about.score, "k": self.k, **about.scale_parameters}
        name = self.title.format(self.k)
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
    measure: ClassVar[str] = "ndcg"
    title: ClassVar[str] = "NDCG at {}"


@dataclass(frozen=True, kw_only=True)
class PrecisionAtK(_RankedLists):
    """The mean share of positive rows among the first k rows of each unit."""

    kind: ClassVar[str] = "precision-at-k"
    measure: ClassVar[str] = "precision"
    title: ClassVar[str] = "precision at {}"
