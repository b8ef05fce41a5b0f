"""Counts by cell of what a statement gave, whatever it gave."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns

__all__ = ["as_scores", "tallied", "tally"]


def tally(rows: Any, *places: tuple[Any, int]) -> Ints:
    """Rows by cell, the last place fastest, then the rows that have none.

    A place is a column of whole numbers and how many it may take, from 0. It is total: a place
    that is NULL or out of reach leads its rows to the last entry and never to another's cell, so
    a row moves one entry even where it should not have passed validation.

    >>> label, point = np.ma.array([0, 1, 1], mask=[0, 0, 1]), np.array([2, 7, 0])
    >>> tally([5, 3, 4], (label, 2), (point, 3)).tolist()
    [0, 0, 5, 0, 0, 0, 7]
    """
    cell, size = np.zeros(len(rows), dtype=np.int64), 1
    known = np.ones(len(rows), dtype=bool)
    for column, most in places:
        place = np.asarray(np.ma.filled(column, -1), dtype=np.int64)
        known &= (place >= 0) & (place < most) & ~np.ma.getmaskarray(column)
        cell, size = cell * most + place, size * most
    counts = np.zeros(size + 1, dtype=np.int64)
    np.add.at(counts, np.where(known, cell, size), np.asarray(rows, dtype=np.int64))
    return counts


def tallied(
    columns: Columns, places: Sequence[tuple[Any, int]], *, groups: int, weighted: bool
) -> Ints:
    """Each group's counts by place, and what its weights lack to be squares after them."""
    member = [(columns["member"], groups)] if groups > 1 else []
    sums = ("n", "lacking") if weighted else ("n",)
    each = [tally(columns[name], *member, *places)[:-1].reshape(groups, -1) for name in sums]
    return np.concatenate(each, axis=1).ravel()


def as_scores(column: Any) -> Floats:
    """Scores as doubles; NULL and NaN, which validation refuses, would count as the lowest.

    >>> as_scores(np.ma.array([0.5, 9.0], mask=[0, 1])).tolist()
    [0.5, -inf]
    """
    scores = np.asarray(np.ma.filled(np.ma.asarray(column, dtype=np.float64), -np.inf))
    return np.where(np.isnan(scores), -np.inf, scores)
