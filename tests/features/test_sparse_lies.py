"""A sparse matrix whose indices lie is refused; followed, they corrupt the process's memory."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from heldout.errors import ArgumentError
from heldout.features import FeatureMatrix


def lying(indices: list[int], pointers: list[int], data: Any = (1.0, 1.0)) -> csr_array:
    found = csr_array((4, 2))
    found.data, found.indices = np.array(data), np.array(indices, dtype=np.int32)
    found.indptr = np.array(pointers, dtype=np.int32)
    return found


@pytest.mark.parametrize(
    ("indices", "pointers"),
    [
        ([7, 0], [0, 1, 2, 2, 2]),
        ([-1, 0], [0, 1, 2, 2, 2]),
        ([0, 1], [0, 9, 9, 9, 9]),
        ([0, 1], [0, 2, 0, 1, 2]),
        ([0, 1], [0, 2]),
    ],
)
def test_indices_that_lie_are_refused(indices: list[int], pointers: list[int]) -> None:
    with pytest.raises(ArgumentError, match="X must be a table of numbers"):
        FeatureMatrix(lying(indices, pointers), [1, 0, 1, 0])


def test_unsorted_indices_duplicates_and_explicit_zeros_are_read() -> None:
    matrix = lying([1, 1, 0, 0], [0, 2, 4, 4, 4], (1.0, -1.0, 3.0, 0.0))
    assert FeatureMatrix(matrix, [1, 0, 1, 0]).features == 2
    assert matrix.nnz == 4, "the caller's matrix stays as it was"
