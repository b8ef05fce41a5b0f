"""The public score grid: what is behind every ranking, and a quick look with it.

A table of a hundred million rows is read in about a second, so what counts is how often. Here the
rows are counted by label and score cell once, when the table is validated; the same pass looks at
every cell, so it also shows that the rows keep their rules, and everything that is ranked on the
grid is then computed from it.
"""

from typing import Any, Final

from heldout.data.sql import Columns, double
from heldout.data.unshown import Unshown

__all__ = ["CELLS", "MANY_ROWS", "NEAR", "GridTally", "KeptColumns", "grid_body", "sound"]

CELLS: Final = 2**16
NEAR: Final = 2**15
"""Rows that are worked on together: arrays of them are taken from memory that the process has."""
MANY_ROWS: Final = 5_000_000
"""Beyond so many rows, where their number is public, scores are ranked on the grid."""


def grid_body(score_range: tuple[float, float], cells: int = CELLS) -> str:
    """Rows by label and nearest grid point.

    The cast rounds to the nearest integer, half to even, on DuckDB and PostgreSQL; for Spark,
    whose cast cuts off, `heldout.data.dialects` writes RINT into it, which is the same function.
    """
    low, high = score_range
    offset = f"(score - {double(low)})" if low else "score"
    point = f"CAST({offset} * {double(cells / (high - low))} AS INTEGER)"
    return f"SELECT label, {point} AS point, count(*) AS n\nFROM evaluated\nGROUP BY 1, 2"


class GridTally:
    """The columns of `grid_body`, counted here from batches of labels and scores.

    The same two double operations and the same rounding give the same points. A row is counted
    only if its label is 0 or 1 and its score lies within the range; `sound` says that all were.

    >>> import numpy as np
    >>> tally = GridTally((0.0, 1.0), cells=4)
    >>> tally.add({"label": np.array([0, 1, 1]), "score": np.array([0.2, 0.5, 0.6])})
    >>> {name: each.tolist() for name, each in tally.columns().items()}
    {'label': [0, 1], 'point': [1, 2], 'n': [1, 2]}
    >>> tally.add({"label": np.array([1]), "score": np.array([np.nan])})
    >>> tally.rows, tally.sound
    (4, False)
    """

    def __init__(self, score_range: tuple[float, float], cells: int = CELLS) -> None:
        import numpy as np

        self._range, self._points = score_range, cells + 1
        self._factor = cells / (score_range[1] - score_range[0])
        self._counts = np.zeros(2 * self._points, dtype=np.int64)
        self._cells, self._waiting, self.rows = np.empty(8 * NEAR, dtype=np.int64), 0, 0
        self._place = np.empty(NEAR)
        # One rounding may carry the top of an odd range past the last point. No score within the
        # range gets further than its top does: products and roundings keep the order.
        top = np.rint((score_range[1] - score_range[0]) * self._factor)
        self._passes = not top <= cells

    def add(self, columns: Columns) -> None:
        """Count a batch of rows, so many at a time that no step of it needs new memory."""
        label, score = columns["label"], columns["score"]
        self.rows += len(score)
        for start in range(0, len(score), NEAR):
            self._count(label[start : start + NEAR], score[start : start + NEAR])

    def _count(self, label: Any, score: Any) -> None:
        import numpy as np

        low, high = self._range
        if not sound({"label": label, "score": score}, self._range):
            known = ~(np.ma.getmaskarray(label) | np.ma.getmaskarray(score))
            label, score = np.ma.getdata(label), np.ma.getdata(score)
            known &= ((label == 0) | (label == 1)) & (score >= low) & (score <= high)
            label, score = label[known], score[known]
        point = self._place[: len(score)]
        np.multiply(score - low if low else score, self._factor, out=point)
        np.rint(point, out=point)
        if self._passes:
            np.minimum(point, self._points - 1, out=point)
        point += label * float(self._points)
        if self._waiting + len(point) > len(self._cells):
            self._counted()
        self._cells[self._waiting : self._waiting + len(point)] = point
        self._waiting += len(point)

    def _counted(self) -> Any:
        """The counts of all that was added."""
        import numpy as np

        cells, self._waiting = self._cells[: self._waiting], 0
        self._counts += np.bincount(cells, minlength=self._counts.size)
        return self._counts

    @property
    def sound(self) -> bool:
        """Whether every row had a label and a score that keep the rules."""
        return int(self._counted().sum()) == self.rows

    def columns(self) -> Columns:
        (found,) = self._counted().nonzero()
        return {
            "label": found // self._points,
            "point": found % self._points,
            "n": self._counts[found],
        }


def sound(columns: Columns, score_range: tuple[float, float]) -> bool:
    """Whether all labels are 0 or 1, and all scores within the range."""
    return _all_within(columns["label"], 0, 1) and _all_within(columns["score"], *score_range)


def _all_within(values: Any, low: float, high: float) -> bool:
    """Whether all are; NULL and NaN are not."""
    import numpy as np

    if not len(values):
        return True
    return not np.ma.isMaskedArray(values) and bool(values.min() >= low and values.max() <= high)


class KeptColumns(Unshown[Columns]):
    """Un-noised counts between two releases, for `_fetch` alone."""

    __slots__ = ()
    what = "un-noised counts"
