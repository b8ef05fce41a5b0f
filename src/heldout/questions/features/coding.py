"""0/1 features that describe columns, read as the few entries of a regression."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.errors import ArgumentError
from heldout.questions.features.statistics import SparseRows

RESOLUTION: Final = 64
"""Steps of an entry from 0 to 1."""
MOST_DEGREE: Final = 2


@dataclass(frozen=True)
class Coding:
    """Reads consecutive features as columns, of which a row sets one feature each.

    A column in order (bins of a number) becomes its place from -1 to 1 and, with degree 2, the
    bend 2 z^2 - 1 of that place: one entry each, however many bins there are. So does a column of
    one or two features. A column of more kinds keeps an entry of 0 or 1 for each of them. Of
    several features of a column that a row sets, the first counts.

    >>> from scipy.sparse import csr_array
    >>> coding = Coding(sizes=(3, 1, 3), ordered=(0,), degree=1)
    >>> coding.groups, (coding.coded(csr_array([[0, 0, 1, 1, 0, 1, 0]])) / RESOLUTION).tolist()
    ((1, 1, 3), [[1.0, 1.0, 0.0, 1.0, 0.0]])
    """

    sizes: tuple[int, ...]
    """How many features describe each column."""
    ordered: tuple[int, ...]
    """Which columns are in order, by place."""
    degree: int

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= MOST_DEGREE or min(self.sizes, default=0) < 1:
            raise ArgumentError("A coding needs columns of one feature or more, and degree 1 or 2.")
        if any(not 0 <= place < len(self.sizes) for place in self.ordered):
            raise ArgumentError(f"ordered must name places from 0 to {len(self.sizes) - 1}.")

    @property
    def features(self) -> int:
        return sum(self.sizes)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Return the entries of each group: a row's entries of one group sum to 1 at most."""
        groups: list[int] = []
        for place, size in enumerate(self.sizes):
            if size > 2 and place not in self.ordered:
                groups.append(size)
            else:
                groups += [1] * (self.degree if size > 2 else 1)
        return tuple(groups)

    @property
    def entries(self) -> int:
        return sum(self.groups)

    @cached_property
    def table(self) -> Ints:
        """Return what each feature stands for: a row for each feature, in steps of an entry."""
        table = np.zeros((self.features, self.entries), dtype=np.int64)
        feature = entry = 0
        for place, size in enumerate(self.sizes):
            own = table[feature : feature + size]
            if size > 2 and place not in self.ordered:
                own[:, entry : entry + size] = RESOLUTION * np.eye(size, dtype=np.int64)
                entry += size
            else:
                at = np.linspace(-1, 1, size) if size > 1 else np.ones(1)
                own[:, entry] = np.rint(RESOLUTION * at)
                entry += 1
                if size > 2 and self.degree == 2:
                    own[:, entry] = np.rint(RESOLUTION * (2 * at**2 - 1))
                    entry += 1
            feature += size
        return table

    @cached_property
    def _lonely(self) -> Ints:
        """Return which features are the one of their column, 0 or 1 for each."""
        return np.repeat(np.array(self.sizes) == 1, self.sizes).astype(np.int64)

    @cached_property
    def absent(self) -> Ints:
        """Return the entries of a row without features: -1 for columns of one feature."""
        entries: Ints = -(self._lonely @ self.table)
        return entries

    @cached_property
    def moves(self) -> Ints:
        """Return how far setting a feature moves the entries from those of `absent`."""
        moved: Ints = self.table * (1 + self._lonely)[:, None]
        return moved

    def coded(self, matrix: SparseRows) -> Ints:
        """Return the entries of rows, -RESOLUTION to RESOLUTION, each from its own row alone."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        order = np.lexsort((matrix.indices, rows))
        rows, features = rows[order], matrix.indices[order]
        seen = np.stack([rows, column[features]])
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (seen[:, 1:] != seen[:, :-1]).any(axis=0)
        rows, features = rows[first], features[first]
        entries = np.tile(self.absent, (matrix.shape[0], 1))
        np.add.at(entries, rows, self.moves[features])
        return entries

    def spread(self, coefficients: Floats) -> tuple[Floats, float]:
        """Return the weight of each feature, and what a row without any has."""
        weights: Floats = self.moves @ coefficients / RESOLUTION
        return weights, float(self.absent @ coefficients) / RESOLUTION
