"""A sparse matrix whose indices lie is refused; followed, they corrupt the process's memory."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from heldout.errors import ArgumentError, HeldoutError
from heldout.features import FeatureMatrix, PrivateNaiveBayes


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


@pytest.mark.parametrize("at", ["fit", "predict"])
def test_an_estimator_refuses_indices_that_lie(at: str) -> None:
    good = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    model = PrivateNaiveBayes(epsilon="1").fit(good, [1, 0, 1, 0])
    wrong = lying([7, 0], [0, 1, 2, 2, 2])
    with pytest.raises(HeldoutError):
        model.fit(wrong, [1, 0, 1, 0]) if at == "fit" else model.predict(wrong)


def test_coordinates_beyond_the_matrix_are_refused() -> None:
    matrix = coo_array(([1.0], ([0], [0])), shape=(4, 2))
    matrix.col[0] = 9
    with pytest.raises(ArgumentError, match="X must be a table of numbers"):
        FeatureMatrix(matrix, [1, 0, 1, 0])


@pytest.mark.parametrize(
    "rows", [[["Canaria", 1]] * 4, [[1j, 0]] * 4, "Canaria", [[object()] * 2] * 4]
)
def test_what_an_estimator_refuses_is_typed_and_quotes_no_cell(rows: Any) -> None:
    with pytest.raises(HeldoutError) as caught:
        PrivateNaiveBayes(epsilon="1").fit(rows, [1, 0, 1, 0])
    assert "\n" not in str(caught.value)
    assert "Canaria" not in f"{caught.value} {caught.value.__context__!r}"
