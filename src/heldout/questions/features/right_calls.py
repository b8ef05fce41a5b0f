"""How often each cut of a released score is right about the rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heldout.data.sql import Columns
from heldout.questions.features.feature_rows import FeatureStatistic, seen_through
from heldout.questions.features.joint_counts import UNIT, row_units, size_cells

__all__ = ["RegressionScores", "RightCalls", "RowScores", "SummedScores"]

RowScores = Callable[[Any], Any]
"""A sparse 0/1 matrix -> each row's score in whole lattice steps, of that row alone."""


@dataclass(frozen=True, eq=False)
class SummedScores:
    """The sum of the weights of a row's features, and the weight of its size."""

    weights: Any
    size_weights: Any

    def __call__(self, matrix: Any) -> Any:
        own = np.asarray(matrix.astype(np.int64) @ self.weights).ravel()
        return own + self.size_weights[size_cells(np.diff(matrix.indptr))]


@dataclass(frozen=True, eq=False)
class RegressionScores:
    """A regression's score of each row, from coefficients in whole lattice steps, the last one the
    constant's; without a `weight` rows are not weighed."""

    coefficients: Any
    weight: int | None

    def __call__(self, matrix: Any) -> Any:
        own = np.asarray(matrix.astype(np.int64) @ self.coefficients[:-1]).ravel()
        if self.weight is not None:
            own = own * row_units(matrix, self.weight) // UNIT
        return own + self.coefficients[-1]


@dataclass(frozen=True, eq=False)
class RightCalls(FeatureStatistic):
    """How many rows each cut of a public score calls rightly, from "all positive" to "none".

    Claim:       one row adds 1 to some of the counts and nothing to the others.
                                                                           [claim: right-calls]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: each count moves by at most k under both relations: under replace-one k rows leave
                 and k arrive, and the moves have opposite signs. Under add-remove all move one way.
    Numerics:    exact integers: scores and cuts are whole numbers.
    Refuses:     nothing.
    Reference:   proofs/right-calls.md.
    Cost:        one pass over the entries.
    """

    scores: RowScores
    """Of released numbers alone."""
    cuts: tuple[int, ...]
    chosen: tuple[int, ...] | None = None
    claim: ClassVar[str] = "right-calls"
    shown_by: ClassVar[str] = (
        "tests/questions/features/test_naive_bayes.py::test_one_row_adds_0_or_1_to_every_cut"
    )

    def read(self, columns: Columns) -> Any:
        label, matrix = columns["label"], seen_through(columns, self.chosen)
        reached: Any = np.searchsorted(self.cuts, self.scores(matrix), side="right")
        cells = len(self.cuts) + 1
        negatives = np.bincount(reached[label == 0], minlength=cells)
        positives = np.bincount(reached[label == 1], minlength=cells)
        below = np.concatenate([[0], np.cumsum(negatives)])
        above = int(positives.sum()) - np.concatenate([[0], np.cumsum(positives)])
        return (below + above).astype(np.int64)
