"""How often each feature goes with each label, with one and the same weight for every row."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.feature_bound import mixed
from heldout.data.sql import Columns
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Protection
from heldout.questions.features.feature_rows import MOST_ROWS, FeatureStatistic, seen_through

__all__ = ["SIZES", "UNIT", "JointCounts", "place_of", "row_units", "size_cells"]

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


def place_of(features: int, places: int | None) -> Any:
    """Which of so many places each feature shares with others, by a public hash of its number.

    >>> place_of(3, None).tolist(), len(set(place_of(1000, 8).tolist()))
    ([0, 1, 2], 8)
    """
    numbers = np.arange(features, dtype=np.uint64)
    return (numbers if places is None else mixed(numbers) % np.uint64(places)).astype(np.int64)


@dataclass(frozen=True)
class JointCounts(FeatureStatistic):
    """Row sizes by label and features by label; a row's whole weight is the same public number.

    A row with at most `weight` features adds 1 to each of them in its label's half; one with more
    adds weight/size to each, so nothing is drawn by lot and nothing is thrown away. Beside that it
    adds `size_units` to the cell of its label and size. With `places` the features that share a
    place are summed: of many words hardly any is frequent, and fewer sums hold less noise.

    Claim:       L1 sensitivity (weight * UNIT + size_units) a row that leaves or arrives.
                                                                          [claim: joint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row with m features adds floor(weight * UNIT / max(m, weight)) to m cells, which
                 is weight * UNIT at most in all, summed or not, and size_units to one cell.
    Numerics:    exact integers.
    Refuses:     numbers that are not positive; weights whose sums over `MOST_ROWS` rows would
                 pass 64 bits, where they would wrap and move by 2^64.
    Reference:   Vaidya et al. 2013 (noisy counts); proofs/joint-counts.md.
    Cost:        one pass over the entries.

    >>> from heldout.kernel.neighbours import Neighbours
    >>> counts = JointCounts(features=1000, weight=5, size_units=UNIT)
    >>> counts.sensitivity(Protection(neighbours=Neighbours.REPLACE_ONE)) / UNIT
    12.0
    """

    features: int
    weight: int
    size_units: int
    chosen: tuple[int, ...] | None = None
    places: int | None = None
    claim: ClassVar[str] = "joint-counts"
    shown_by: ClassVar[str] = (
        "tests/questions/features/test_naive_bayes.py"
        "::test_no_small_neighbours_move_the_counts_further_than_claimed"
    )

    def __post_init__(self) -> None:
        if min(self.features, self.weight, self.size_units, self.sums) < 1:
            raise ArgumentError("features, weight, size_units and places must be positive.")
        if MOST_ROWS * max(self.weight * UNIT, self.size_units) >= 2**63:
            raise ArgumentError(
                f"weight must be smaller, got {self.weight:,}: the sums of its counts would not "
                "fit 64 bits. Try 5."
            )

    @property
    def sums(self) -> int:
        """How many sums of features there are for each label."""
        return self.features if self.places is None else self.places

    @property
    def dimension(self) -> int:
        return 2 * (self.sums + len(SIZES) + 1)

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
        summed = np.zeros((2, self.sums), dtype=np.int64)
        for own, half in zip(summed, halves, strict=True):
            by_feature = np.asarray(across @ (units * half)).ravel()
            np.add.at(own, place_of(self.features, self.places), by_feature)
        return np.concatenate([*by_size, *summed]).astype(np.int64)

    def sensitivity(self, protection: Protection) -> int:
        own = min(self.weight, self.features) * UNIT + self.size_units
        return protection.rows_moved * own
