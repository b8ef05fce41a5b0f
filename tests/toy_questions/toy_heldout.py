"""Rows that a model calls negative with confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from heldout.arrays import Ints
from heldout.data.description import ScoredRows
from heldout.data.sql import Columns, double
from heldout.intervals.measure import Measure, Release
from heldout.intervals.ratio import mean, share_counts, share_of
from heldout.kernel.door import Drawn, Request
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.statistic import Statistic
from heldout.pooling.answer import Pooled, PooledShare
from heldout.pooling.site import Site
from heldout.questions.base import Number, Question, Section
from heldout.questions.quote import Guess
from heldout.questions.worst_cases import REMOVE, REST, WorstCase, table_pair

__all__ = ["ConfidentNegatives"]


@dataclass(frozen=True)
class RowsBelow(Statistic[Ints]):
    """Rows with a score below `limit`, and all others.

    Claim:       L1 sensitivity 1 per row that leaves or arrives.    [claim: confident-negatives]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one of two cells.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   proofs/confident-negatives.md.
    Cost:        one scan, O(1) memory.

    >>> RowsBelow(limit=0.5).sensitivity(Protection(neighbours="replace-one"))
    2
    """

    limit: float
    claim = "confident-negatives"

    def body(self) -> str:
        below = f"count(*) FILTER (WHERE score < {double(self.limit)})"
        return f"SELECT {below} AS below, count(*) AS n\nFROM evaluated"

    def read(self, columns: Columns) -> Ints:
        below, rows = int(columns["below"][0]), int(columns["n"][0])
        return np.array([below, rows - below], dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        return [cls(limit=0.5)]


class ShareRelease(Release):
    """A noisy share of the rows."""

    @property
    def measures(self) -> dict[str, Measure]:
        counts = share_counts(self._drawn.values, self._drawn.request.mechanism)
        return {self.name: mean(share_of(counts), 1.0, name=self.name, terms=self.terms)}


@dataclass(frozen=True, kw_only=True)
class ConfidentNegatives(Question[ShareRelease]):
    """The share of rows with a score below `limit`."""

    kind = "confident-negatives"
    title = "confident negatives"
    asks = "How many rows does it leave alone with confidence?"
    tells = "The share of rows with a score below a limit."
    of = (ScoredRows,)
    section = Section(
        title="Confident negatives",
        meaning="The share of rows that the model leaves alone with confidence.",
        weight=10,
    )
    limit: Annotated[float, Number(0, 1), "Scores below this one are confident."] = 0.1

    def request(self, about: ScoredRows) -> Request:
        statistic = RowsBelow(limit=self.limit)
        mechanism = DiscreteLaplace.for_epsilon(
            self.price, l1_sensitivity=statistic.sensitivity(about.protection), dimension=2
        )
        return Request(self.title, statistic, mechanism, {"limit": self.limit})

    def read(self, drawn: Drawn) -> ShareRelease:
        return ShareRelease(drawn)

    def typical(self, about: ScoredRows, guess: Guess) -> Ints:
        rows = sum(guess.counts)
        return np.array([rows // 4, rows - rows // 4])

    @classmethod
    def pool(cls, sites: Sequence[Site]) -> Pooled:
        return PooledShare(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs = (
            table_pair("a score crosses the limit", [*REST, (0, 0.0)], [*REST, (0, 1.0)]),
            table_pair("a row below it leaves", [*REST, (0, 0.0)], REST, **REMOVE),
        )
        return (WorstCase(pairs=pairs),)
