"""How often each feature goes with each label, with one and the same weight for every row."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.privacy.neighbours import Protection
from heldout.statistics.feature_rows import MOST_ROWS, FeatureStatistic, seen_through

__all__ = ["SIZES", "UNIT", "JointCounts", "row_units", "size_cells"]

UNIT = 2**16  # steps of the lattice that make the weight 1
SIZES = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512)
"""Where the cells of row sizes begin: half octaves. The first cell is the empty rows."""


def size_cells(sizes: Any) -> Any:
    """Which cell of row sizes each row is in, 0 to len(SIZES).

    >>> size_cells([0, 1, 5, 10_000]).tolist()
    [0, 1, 4, 18]
    """
    return np.searchsorted(SIZES, np.asarray(sizes), side="right")


def row_units(matrix: Any, weight: int) -> Any:
    """What each feature of a row counts, in units: 1, or weight/size for rows of more features."""
    sizes = np.diff(matrix.indptr).astype(np.int64)
    return weight * UNIT // np.maximum(sizes, weight)


@dataclass(frozen=True)
class JointCounts(FeatureStatistic):
    """Row sizes by label and features by label; a row's whole weight is the same public number.

    A row with at most `weight` features adds 1 to each of them in its label's half; one with more
    adds weight/size to each, so nothing is drawn by lot and nothing is thrown away. Beside that it
    adds `size_units` to the cell of its label and size.

    Claim:       L1 sensitivity (weight * UNIT + size_units) a row that leaves or arrives.
                                                                          [claim: joint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row with m features adds floor(weight * UNIT / max(m, weight)) to m cells, which
                 is weight * UNIT at most in all, and size_units to one cell.
    Numerics:    exact integers.
    Refuses:     numbers that are not positive; weights whose sums over `MOST_ROWS` rows would
                 pass 64 bits, where they would wrap and move by 2^64.
    Reference:   Vaidya et al. 2013 (noisy counts); proofs/joint-counts.md.
    Cost:        one pass over the entries.

    >>> from heldout.privacy.neighbours import Neighbours
    >>> counts = JointCounts(features=1000, weight=5, size_units=UNIT)
    >>> counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE)) / UNIT
    12.0
    """

    features: int
    weight: int
    size_units: int
    chosen: tuple[int, ...] | None = None
    claim: ClassVar[str] = "joint-counts"
    shown_by: ClassVar[str] = (
        "tests/features/test_naive_bayes.py"
        "::test_no_small_neighbours_move_the_counts_further_than_claimed"
    )

    def __post_init__(self) -> None:
        if min(self.features, self.weight, self.size_units) < 1:
            raise ArgumentError("features, weight and size_units must be positive.")
        if MOST_ROWS * max(UNIT, self.size_units) >= 2**63 or self.weight >= 2**40:
            raise ArgumentError(
                f"weight must be smaller, got {self.weight:,}: the sums of its counts would not "
                "fit 64 bits. Try 5."
            )

    @property
    def dimension(self) -> int:
        return 2 * (self.features + len(SIZES) + 1)

    def read(self, columns: Columns) -> Any:
        label, matrix = columns["label"], seen_through(columns, self.chosen)
        cells = size_cells(np.diff(matrix.indptr))
        units = row_units(matrix, self.weight)
        across = matrix.T.astype(np.int64)
        halves = [np.asarray(label == each, dtype=np.int64) for each in (0, 1)]
        by_size = [
            np.bincount(cells[half == 1], minlength=len(SIZES) + 1) * self.size_units
            for half in halves
        ]
        by_feature = [np.asarray(across @ (units * half)).ravel() for half in halves]
        return np.concatenate([*by_size, *by_feature]).astype(np.int64)

    def sensitivity(self, protection: Protection) -> int:
        own = min(self.weight, self.features) * UNIT + self.size_units
        return protection.rows_moved * own
