"""Columns as 0/1 features, by public bounds: nothing is learnt from the rows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin

from heldout.arguments import as_numbers, as_whole, shown
from heldout.arguments.rules import Ends, Number, Whole
from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError

Bound = tuple[float, ...] | int
"""Two ends, the edges of bins from the least to the largest, or a number of kinds 0, 1, 2, ..."""


class Bins(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Say of each column in which of some public bins a value lies.

    A private classifier learns from 0/1 features. A column becomes one for each bin, of which a
    row sets one; a value beyond the bounds is in the nearer bin. `bounds` has an entry for each
    column: two ends, between which `bins` bins are as wide as one another; more numbers, the edges
    of the bins themselves (good where values crowd near one end); or a whole number of kinds,
    which are 0, 1, 2, .... Declare them: never read them off the rows.

    >>> Bins(bounds=[(0, 10), (0, 1)], bins=2).transform([[3, 1], [99, 0]]).toarray().tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0]]
    >>> Bins(bounds=[(0, 1, 100), 3]).transform([[3, 2]]).toarray().tolist()
    [[0, 1, 0, 0, 1]]
    """

    def __init__(self, *, bounds: Sequence[Bound], bins: int = 8) -> None:
        self.bounds = bounds
        self.bins = bins

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    @property
    def edges(self) -> list[Floats]:
        """Return the edges of each column's bins."""
        bins = Whole(2, 1000)(self.bins, "bins")
        return [_edges(bound, bins) for bound in self.bounds]

    @property
    def columns(self) -> tuple[int, ...]:
        """Return how many features each column becomes."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def ordered(self) -> tuple[int, ...]:
        """Return which columns have bins in order: those with ends or edges."""
        return tuple(place for place, bound in enumerate(self.bounds) if as_whole(bound) is None)

    def transform(self, X: Any) -> Any:
        """Return a sparse matrix with a column for each bin of each column of X."""
        edges, numbers = self.edges, as_numbers(X, name="X")
        if numbers.ndim != 2 or numbers.shape[1] != len(edges):
            raise ArgumentError(f"bounds must have an entry for each column, got {len(edges)}.")
        if np.isnan(numbers).any():
            raise ArgumentError("X must have a number in every cell. Fill in what is missing.")
        starts = np.cumsum([0, *self.columns])
        places = [
            _places(column, own) + start
            for column, own, start in zip(numbers.T, edges, starts, strict=False)
        ]
        columns = np.column_stack(places).ravel()
        rows = np.repeat(np.arange(len(numbers)), len(edges))
        shape = (len(numbers), int(starts[-1]))
        return csr_array((np.ones(len(columns), dtype=np.int8), (rows, columns)), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what the bins are called: the column and the ends of the bin, or its kind."""
        names = input_features or [f"x{place}" for place in range(len(self.bounds))]
        if len(names) != len(self.bounds):
            wanted = f"input_features must be {len(self.bounds)} names"
            raise ArgumentError(f"{wanted}, got {shown(names)}.")
        called = []
        for place, (name, edges) in enumerate(zip(names, self.edges, strict=True)):
            if place in self.ordered:
                called += [f"{name} {a:g} to {b:g}" for a, b in pairwise(edges)]
            else:
                called += [f"{name} {kind}" for kind in range(len(edges) - 1)]
        return np.array(called, dtype=object)


def _edges(bound: Any, bins: int) -> Floats:
    kinds = as_whole(bound)
    if kinds is not None:
        return np.asarray(np.arange(Whole(2, 1000)(kinds, "bounds") + 1) - 0.5, dtype=float)
    if not isinstance(bound, list | tuple | np.ndarray):
        raise ArgumentError(
            f"bounds must be two ends, edges of bins or a number of kinds, got {shown(bound)}."
        )
    if len(bound) <= 2:
        low, high = Ends()(bound, "bounds")
        return np.asarray(np.linspace(low, high, bins + 1), dtype=float)
    edges = np.array([Number()(edge, "bounds") for edge in bound])
    if len(edges) > 1001 or (np.diff(edges) <= 0).any():
        raise ArgumentError("Edges of bins must rise from one to the next, and be 1,001 at most.")
    return edges


def _places(column: Floats, edges: Floats) -> Ints:
    """Return the bin of each value: an edge belongs to the bin above it."""
    within = np.searchsorted(edges, column, side="right") - 1
    places: Ints = np.clip(within, 0, len(edges) - 2).astype(np.int64)
    return places
