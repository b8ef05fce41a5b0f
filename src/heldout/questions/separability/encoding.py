"""From a table of mixed columns to a matrix that any classifier takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.data.two_tables import Table
from heldout.questions.separability.recipe import MISSING, MOST_CATEGORIES, OTHER, Number, frequent


@dataclass(frozen=True)
class Feature:
    """One column of the matrix and the column of the table that it came from."""

    column: str
    level: str | None = None
    """None for the number itself, a category, "missing", or "other"."""

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column} = {self.level}"


@dataclass(frozen=True, eq=False)
class Encoding:
    """What was learnt of both tables together, without looking at which row is whose.

    Numbers are centred and scaled, and have a column more where some are missing; a text has a
    column for each of its most frequent categories and one for all others. Columns that are the
    same in every row are left out.
    """

    features: tuple[Feature, ...]
    numbers: dict[str, Number]
    levels: dict[str, tuple[str, ...]]
    constant: tuple[str, ...]

    @classmethod
    def of(cls, *tables: Table, most_categories: int = MOST_CATEGORIES) -> "Encoding":
        numbers, levels, features, constant = {}, {}, [], []
        for name in tables[0].numbers:
            values = np.concatenate([table.numbers[name] for table in tables])
            number = Number.of(values)
            numbers[name] = number
            found = [Feature(name)] if number.scale > 0 else []
            missing = np.isnan(values)
            if missing.any() and not missing.all():
                found.append(Feature(name, MISSING))
            features += found
            constant += [] if found else [name]
        for name in tables[0].texts:
            pooled = np.concatenate([table.texts[name] for table in tables])
            levels[name] = frequent(pooled, most_categories)
            found = _text_features(name, pooled, levels[name])
            features += found
            constant += [] if found else [name]
        return cls(tuple(features), numbers, levels, tuple(constant))

    def matrix(self, table: Table) -> Any:
        """One row for each row of the table, one column for each feature."""
        found = np.empty((table.rows, len(self.features)))
        for index, feature in enumerate(self.features):
            found[:, index] = self._column(feature, table)
        return found

    def _column(self, feature: Feature, table: Table) -> Any:
        name = feature.column
        if name in self.numbers:
            values = table.numbers[name]
            return np.isnan(values) if feature.level == MISSING else self.numbers[name](values)
        values = table.texts[name]
        if feature.level == MISSING and MISSING not in self.levels[name]:
            return np.array([value is None for value in values])
        if feature.level == OTHER and OTHER not in self.levels[name]:
            known = {None, *self.levels[name]}
            return np.array([value not in known for value in values])
        return values == feature.level


def _text_features(name: str, values: Any, levels: tuple[str, ...]) -> list[Feature]:
    known = set(levels)
    missing = sum(value is None for value in values)
    other = sum(value is not None and value not in known for value in values)
    sizes = [len(levels) > 0, missing > 0, other > 0]
    if len(levels) + sum(sizes[1:]) <= 1:
        return []
    found = [Feature(name, level) for level in levels]
    found += [Feature(name, MISSING)] if missing and MISSING not in known else []
    found += [Feature(name, OTHER)] if other and OTHER not in known else []
    return found
