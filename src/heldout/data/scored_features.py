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
    ledger finds these rows by the digests of the matrix, or by the account that is named: what was
    spent on training is spent here. Label and keys have the custodian's names, because an account
    knows people by the column that tells them apart.

    >>> private = FeatureMatrix([[1, 0], [0, 1]], [1, 0])
    >>> ScoredFeatures(private, lambda matrix: np.full(matrix.shape[0], 0.5))
    Dataset(label='label', score='score', score_range=(0, 1), replace-one neighbours, 2 rows)
    """

    def __init__(self, private: FeatureMatrix, score: Callable[[Any], Any]) -> None:
        columns, matrix = private._whole()
        protection, keys = private.protection, private._keys
        table = {
            own: columns[name]
            for name, own in (("unit", keys.unit), ("row_key", keys.row_key))
            if own is not None
        }
        label = _unlike(table, private._label)
        table[label] = columns["label"]
        at = _unlike(table, "score")
        table[at] = np.clip(score(matrix), 0, 1)
        self._digests_of = private._fingerprints
        super().__init__(
            table,
            label=label,
            score=at,
            unit=keys.unit,
            rows_per_unit=protection.rows_per_unit,
            row_key=keys.row_key,
            neighbours=protection.neighbours,
            name=private.name,
        )
        self._ledger = private._ledger

    @property
    def _fingerprints(self) -> tuple[bytes, ...]:
        return self._digests_of


def _unlike(table: dict[str, Any], name: str) -> str:
    """The name, or one like it that no column of the table has, whatever the case.

    >>> _unlike({"Score": [1]}, "score")
    'score_'
    """
    taken = {each.lower() for each in table}
    while name.lower() in taken:
        name += "_"
    return name
