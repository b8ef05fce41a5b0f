"""Rows of a feature matrix beside the score that a released model gives each of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from heldout.data.dataset import Dataset
from heldout.data.feature_matrix import FeatureMatrix

__all__ = ["ScoredFeatures"]


class ScoredFeatures(Dataset):
    """The rows of a feature matrix, scored: same people, same protection, same budget.

    `score` gives each row of a sparse 0/1 matrix a number from 0 to 1, of that row alone and of
    released numbers. So neighbours stay neighbours, and what is proved of a `Dataset` holds. The
    ledger finds these rows by the digests of the matrix: what was spent on training is spent here.

    >>> private = FeatureMatrix([[1, 0], [0, 1]], [1, 0])
    >>> ScoredFeatures(private, lambda matrix: np.full(matrix.shape[0], 0.5))
    Dataset(label='label', score='score', score_range=(0, 1), replace-one neighbours, 2 rows)
    """

    def __init__(self, private: FeatureMatrix, score: Callable[[Any], Any]) -> None:
        columns, matrix = private._whole()
        keys = {name: columns[name] for name in ("unit", "row_key") if name in columns}
        protection = private.protection
        self._digests_of = private._fingerprints
        super().__init__(
            {"label": columns["label"], "score": np.clip(score(matrix), 0, 1), **keys},
            label="label",
            score="score",
            unit="unit" if protection.unit else None,
            rows_per_unit=protection.rows_per_unit,
            row_key="row_key" if "row_key" in keys else None,
            neighbours=protection.neighbours,
            name=private.name,
        )
        self._ledger = private._ledger

    @property
    def _fingerprints(self) -> tuple[bytes, ...]:
        return self._digests_of
