"""The question how well private rows can be told from public, privatized ones."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from heldout.data.truth import TruthRows
from heldout.data.two_tables import Table, number_array
from heldout.errors import ArgumentError
from heldout.mechanisms.disjoint import Disjoint
from heldout.questions import Question
from heldout.release import Drawn, Request
from heldout.separability.release import SeparabilityRelease
from heldout.statistics.recipe import Recipe
from heldout.statistics.separator import Separator, called_true, power_of_two

__all__ = ["Separability", "as_columns"]

FLATTEST, STEEPEST = Fraction(1, 2**12), Fraction(1)
PARTS = ("numbers", "texts")


def as_columns(table: Table) -> dict[str, Any]:
    """A public table as plain data: what the question holds of it."""
    return {"numbers": table.numbers, "texts": table.texts}


@dataclass(frozen=True)
class Columns:
    """Public columns of one length by name, `numbers` and `texts` apart; None where missing."""

    def __call__(self, value: Any, name: str) -> dict[str, dict[str, tuple[Any, ...]]]:
        plain = isinstance(value, Mapping) and set(value) <= set(PARTS)
        if not plain or not all(isinstance(each, Mapping) for each in value.values()):
            raise ArgumentError(
                f"{name} must be {{'numbers': {{...}}, 'texts': {{...}}}}: columns by name."
            )
        try:
            found = {
                part: {str(key): _cells(cells, part) for key, cells in value.get(part, {}).items()}
                for part in PARTS
            }
        except (TypeError, ValueError):
            raise ArgumentError(f"{name} must hold numbers and texts in lists.") from None
        lengths = {len(cells) for columns in found.values() for cells in columns.values()}
        if len(lengths) != 1 or min(lengths) < 2:
            raise ArgumentError(f"{name} must have columns of one length, of two rows at least.")
        return found


def _cells(cells: Any, part: str) -> tuple[Any, ...]:
    if part == "texts":
        return tuple(None if cell is None else str(cell) for cell in cells)
    numbers = (None if cell is None else float(cell) for cell in cells)
    return tuple(None if cell is None or not math.isfinite(cell) else cell for cell in numbers)


@dataclass(frozen=True, kw_only=True)
class Separability(Question):
    """How well does a separator tell the private truth from the public, privatized rows?

    `privatized` is the public table, as columns.
    """

    kind: ClassVar[str] = "separability"
    of: ClassVar[tuple[type, ...]] = (TruthRows,)
    privatized: Annotated[Mapping[str, Any], Columns()]

    @cached_property
    def table(self) -> Table:
        numbers = {
            name: number_array([math.nan if cell is None else cell for cell in cells])
            for name, cells in self.privatized["numbers"].items()
        }
        texts = {
            name: np.array(cells, dtype=object) for name, cells in self.privatized["texts"].items()
        }
        rows = len(next(iter([*numbers.values(), *texts.values()])))
        return Table(numbers, texts, {}, rows=rows)

    def booked(self) -> dict[str, Any]:
        """The ledger keeps the size of the public table and its digest, not the table."""
        content = self.as_dict()
        text = json.dumps(content.pop("privatized"), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return content | {"privatized_rows": self.table.rows, "privatized_sha256": digest}

    @cached_property
    def _recipe(self) -> tuple[Recipe, Any, Any]:
        recipe = Recipe.of(self.table)
        return recipe, *recipe.vectors(self.table)

    def request(self, about: TruthRows) -> Request:
        if (about.numbers, about.texts) != (tuple(self.table.numbers), tuple(self.table.texts)):
            raise ArgumentError(
                "privatized must have the columns that the truth was opened with, in their order."
            )
        recipe, vectors, out = self._recipe
        rows = self.table.rows if about.rows is None else about.rows
        expected, moved = max(1, rows // 2), about.protection.rows_moved
        statistic = Separator(
            recipe=recipe,
            numbers=tuple(self.table.numbers),
            texts=tuple(self.table.texts),
            public=vectors[~out],
            expected=expected,
            ridge=ridge_for(self.price, moved=moved, expected=expected, dimension=vectors.shape[1]),
        )
        step = float(statistic.step)

        def count(answer: Any, held: Any) -> Any:
            return called_true(answer * step, held)

        mechanism = Disjoint(
            epsilon=self.price,
            moved=moved,
            first_row=statistic.row,
            first_slack=statistic.slack,
            dimensions=(statistic.dimension, 2),
            then=count,
        )
        parameters = {
            "ridge": str(statistic.ridge),
            "features": statistic.dimension,
            "privatized_rows": self.table.rows,
        }
        return Request("separability", statistic, mechanism, parameters, reading=vectors[out])

    def read(self, drawn: Drawn) -> SeparabilityRelease:
        return SeparabilityRelease(drawn, public=drawn.request.reading)


def ridge_for(price: Fraction, *, moved: int, expected: int, dimension: int) -> Fraction:
    """So strong that noise moves a row's margin by about a half. Of public numbers alone."""
    wanted = Fraction(math.sqrt(2 * dimension)) * moved / (expected * price)
    return min(max(power_of_two(wanted), FLATTEST), STEEPEST)
