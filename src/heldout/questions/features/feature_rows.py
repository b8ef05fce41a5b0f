"""What the statistics of private rows of 0/1 features have in common."""

from typing import Any

from heldout.data.feature_matrix import MOST_ROWS
from heldout.data.sql import Columns
from heldout.kernel.statistic import Statistic

__all__ = ["MOST_ROWS", "WHOLE_ROWS", "FeatureStatistic", "seen_through"]

WHOLE_ROWS = "SELECT * FROM evaluated"
"""The body of every statistic of a feature matrix.

The matrix answers it with `label`, `matrix` (0/1, each row within its bound) and
`restricted(features, most)`, which gives the rows seen through public features, each within that
bound.
"""


class FeatureStatistic(Statistic):
    """A statistic of all rows of a feature matrix."""

    def body(self) -> str:
        return WHOLE_ROWS


def seen_through(columns: Columns, chosen: tuple[int, ...] | None) -> Any:
    """The private rows, all features or the public `chosen` ones, as a sparse 0/1 matrix."""
    if chosen is None:
        return columns["matrix"]
    restricted: Any = columns["restricted"]
    return restricted(chosen, len(chosen))
