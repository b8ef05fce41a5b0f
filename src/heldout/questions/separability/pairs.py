"""A separator that sees which columns go together: products of signs, as a statistic of the truth.

Shuffle every column of a table by itself and each column is as it was; what is lost is which values
go together. Here every column is cut in two by the public copy, which makes a row a list of signs,
and a row's features are the products of two signs each. How much more often two signs agree in the
truth than in the copy says which rows look true.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heldout.arrays import Bools, Floats, Ints
from heldout.data.sql import Columns
from heldout.data.two_tables import Table, number_array, text_array
from heldout.kernel.neighbours import Protection
from heldout.kernel.statistic import Statistic
from heldout.questions.separability.separator import held_out, row_products

MOST_COLUMNS: Final = 16
LOUDEST: Final = 0.25
"""The noise of a mean product of signs, which is 1 at most, has at most this deviation; so many
columns are taken. Chosen 2026-11-18 on adult, diabetes130 and acs2018_gov_census (all of 8, 12, 16,
24 columns); measured by benchmarks/accuracy.py."""
CUT: Final = 0.65
"""The share of privatized training rows that is called privatized. Of .5, .65 and .8 it told most
on the same sets."""


@dataclass(frozen=True, eq=False)
class Signs:
    """A function of one row alone: for each column of some, on which side of a public cut it is.

    Numbers above the privatized median are +1, and so are the privatized data's most frequent
    categories, as many as come nearest to half of its rows; everything else is -1.
    """

    above: dict[str, float]
    """By column of numbers: what exceeds it is +1."""
    levels: dict[str, frozenset[str]]
    """By column of texts: the categories that are +1."""

    @classmethod
    def of(cls, privatized: Table, *, most: int) -> "Signs":
        """Cut the columns that the privatized data divides most evenly, at most so many."""
        above = {name: _cut_number(values) for name, values in privatized.numbers.items()}
        levels = {name: _cut_text(values) for name, values in privatized.texts.items()}
        whole = cls(above, levels)
        uneven = np.abs(whole.vectors(privatized).mean(axis=0))
        order = np.argsort(uneven, kind="stable")[:most]
        chosen = {whole.columns[index] for index in order if uneven[index] < 1}
        return cls(
            {name: cut for name, cut in above.items() if name in chosen},
            {name: cut for name, cut in levels.items() if name in chosen},
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.above, *self.levels)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of columns, two by two."""
        size = len(self.columns)
        return tuple((i, j) for i in range(size) for j in range(i + 1, size))

    def vectors(self, table: Table) -> Ints:
        """Return the signs of each row, from the cells of that row alone."""
        signs = [table.numbers[name] > cut for name, cut in self.above.items()]
        for name, levels in self.levels.items():
            signs.append(np.array([value in levels for value in table.texts[name]], dtype=bool))
        columns = np.array(signs, dtype=bool).reshape(len(self.columns), table.rows)
        result: Ints = np.where(columns.T, 1, -1).astype(np.int64)
        return result

    def products(self, vectors: Ints) -> Ints:
        """Return the product of each pair of signs, by row."""
        first, second = (np.array([pair[i] for pair in self.pairs], dtype=int) for i in (0, 1))
        result: Ints = vectors[:, first] * vectors[:, second]
        return result


def _cut_number(values: Floats) -> float:
    """The median, or the number just below it if that divides the values more evenly."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return math.inf
    median = float(known[len(known) // 2])
    below = known[known < median]
    cuts = [median, *([float(below[-1])] if len(below) else [])]
    return min(cuts, key=lambda cut: abs(float((known > cut).mean()) - 0.5))


def _cut_text(values: NDArray[np.object_]) -> frozenset[str]:
    names, counts = np.unique([value for value in values if value is not None], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if len(order) == 0:
        return frozenset()
    taken = np.abs(np.cumsum(counts[order]) / len(values) - 0.5)
    return frozenset(str(names[index]) for index in order[: int(np.argmin(taken)) + 1])


def columns_for(epsilon: Fraction, *, moved: int, expected: int) -> int:
    """Return how many columns noise leaves something to see of; of public numbers alone.

    >>> columns_for(Fraction(1, 2), moved=2, expected=1500)
    12
    """
    pairs = LOUDEST * float(epsilon) * expected / (math.sqrt(2) * moved)
    columns = math.floor((1 + math.sqrt(1 + 8 * pairs)) / 2)
    return min(max(columns, 2), MOST_COLUMNS)


@dataclass(frozen=True, eq=False)
class SignProducts(Statistic[tuple[Ints, Floats]]):
    """Sums of the products of two signs over half of the true rows, and the other half's products.

    Claim:       a rows of the training half that leave or arrive move the sums by at most
                 a * pairs (L1); b rows of the other half move a later count by at most b.
                                                                     [claim: joint-separability]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds +1 or -1 to the sum of every pair.
    Numerics:    exact integers.
    Refuses:     nothing in the rows.
    Reference:   proofs/joint-separability.md.
    Cost:        one scan, O(rows x pairs).
    """

    signs: Signs
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    public: Ints
    """Products of the privatized training rows."""
    expected: int
    """About how many true training rows there are. Public."""
    claim = "joint-separability"
    shown_by = (
        "tests/questions/separability/test_pairs.py"
        "::test_a_row_moves_the_sums_or_the_count_and_never_more_than_claimed"
    )

    @property
    def row(self) -> int:
        """The pairs: what one training row moves."""
        return len(self.signs.pairs)

    @property
    def slack(self) -> int:
        return 0

    @property
    def features(self) -> tuple[str, ...]:
        names = self.signs.columns
        return (*(f"{names[i]} with {names[j]}" for i, j in self.signs.pairs), "constant")

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what the booking says of it."""
        return {"pairs": self.row}

    def body(self) -> str:
        columns = [f"c{index}" for index in range(len(self.numbers) + len(self.texts))]
        return f"SELECT {', '.join([*columns, 'split_key'])}\nFROM evaluated"

    def read(self, columns: Columns) -> tuple[Ints, Floats]:
        count = len(self.numbers)
        arrays = [columns[f"c{index}"] for index in range(count + len(self.texts))]
        table = Table(
            {n: number_array(a) for n, a in zip(self.numbers, arrays, strict=False)},
            {n: text_array(a) for n, a in zip(self.texts, arrays[count:], strict=True)},
            {},
            rows=len(columns["split_key"]),
        )
        products, out = self.halves(table, text_array(columns["split_key"]))
        return products[~out].sum(axis=0), with_constant(products[out])

    def halves(
        self, table: Table, keys: Sequence[object] | NDArray[Any] | None = None
    ) -> tuple[Ints, Bools]:
        """Return the products of each row, and which rows are held out."""
        vectors = self.signs.vectors(table)
        out = held_out([None] * table.rows if keys is None else keys, vectors.astype(float))
        return self.signs.products(vectors), out

    def sensitivity(self, protection: Protection) -> int:
        """Of the sums alone."""
        return protection.rows_moved * self.row

    @cached_property
    def _usual(self) -> Floats:
        """Mean products of the privatized training rows."""
        result: Floats = self.public.mean(axis=0) if len(self.public) else np.zeros(self.row)
        return result

    def coefficients(self, answer: Ints) -> Floats:
        """Return the separator of noisy sums: a weight for each product, and one for a constant."""
        weights = answer / self.expected - self._usual
        scores = row_products(self.public.astype(float), weights)
        limit = float(np.quantile(scores, CUT)) if len(scores) else 0.0
        return np.append(weights, -limit)


def with_constant(products: Ints) -> Floats:
    """Return the features of rows as `called_true` takes them."""
    return np.column_stack([products.astype(float), np.ones(len(products))])
