"""The public score grid: the one statement behind every ranking, and a quick look with it.

A table of a hundred million rows is read in about a second, so what counts is how often. Here the
rows are counted by label and score cell once, when the table is validated; that count also shows
that the rows keep their rules, and everything that is ranked on the grid is then computed from it.
"""

from typing import Any, Final

from heldout.data.sql import Columns, double

__all__ = ["CELLS", "MANY_ROWS", "KeptColumns", "counts_keep_the_rules", "grid_body"]

CELLS: Final = 2**16
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


def counts_keep_the_rules(columns: Columns, *, rows: int, cells: int = CELLS) -> bool:
    """Whether every row was counted, with a label 0 or 1 and at a point of the grid.

    A score that is NaN or infinite has no point: the statement fails on it. NULL is masked.
    """
    import numpy as np

    if any(np.ma.getmaskarray(each).any() for each in columns.values()):
        return False
    label, point, n = (np.asarray(columns[name]) for name in ("label", "point", "n"))
    inside = ((label == 0) | (label == 1)) & (point >= 0) & (point <= cells)
    return bool(inside.all()) and int(n.sum()) == rows


class KeptColumns:
    """Un-noised counts between two releases: everything that would show them refuses."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def open(self) -> Columns:
        """For `_fetch` alone."""
        return self._columns

    def __repr__(self) -> str:
        return "<un-noised counts>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("un-noised counts must not be pickled or copied.")
