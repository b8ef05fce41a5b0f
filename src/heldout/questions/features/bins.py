"""Numeric columns as 0/1 features, by public bounds: nothing is learnt from the rows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin

from heldout.arguments import as_numbers, shown
from heldout.arguments.rules import Ends, Whole
from heldout.errors import ArgumentError


class Bins(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Say of each numeric column in which of some equal bins between its bounds a value lies.

    A private classifier learns from 0/1 features. A column becomes `bins` of them, of which a row
    sets one; a value beyond the bounds is in the nearer bin. Declare the bounds: never read them
    off the rows. A column with the bounds (0, 1) that holds 0 and 1 sets its first or its last bin.

    >>> Bins(bounds=[(0, 10), (0, 1)], bins=2).transform([[3, 1], [99, 0]]).toarray().tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0]]
    """

    def __init__(self, *, bounds: Sequence[tuple[float, float]], bins: int = 8) -> None:
        self.bounds = bounds
        self.bins = bins

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def transform(self, X: Any) -> Any:
        """Return a sparse matrix with `bins` columns for each column of X."""
        bins, numbers = Whole(2, 1000)(self.bins, "bins"), as_numbers(X, name="X")
        ends = [Ends()(pair, "bounds") for pair in self.bounds]
        if numbers.ndim != 2 or numbers.shape[1] != len(ends):
            raise ArgumentError(f"bounds must have a pair for each column of X, got {len(ends)}.")
        if np.isnan(numbers).any():
            raise ArgumentError("X must have a number in every cell. Fill in what is missing.")
        low, high = np.array(ends).T
        shares = np.clip((numbers - low) / (high - low), 0.0, 1.0)
        place = np.minimum((shares * bins).astype(np.int64), bins - 1)
        columns = (place + np.arange(len(ends)) * bins).ravel()
        rows = np.repeat(np.arange(len(numbers)), len(ends))
        shape = (len(numbers), len(ends) * bins)
        return csr_array((np.ones(len(columns), dtype=np.int8), (rows, columns)), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what the bins are called: the column and the ends of the bin."""
        names = input_features or [f"x{place}" for place in range(len(self.bounds))]
        if len(names) != len(self.bounds):
            wanted = f"input_features must be {len(self.bounds)} names"
            raise ArgumentError(f"{wanted}, got {shown(names)}.")
        called = []
        for name, (low, high) in zip(names, self.bounds, strict=True):
            edges = np.linspace(low, high, self.bins + 1)
            called += [f"{name} {a:g} to {b:g}" for a, b in pairwise(edges)]
        return np.array(called, dtype=object)
