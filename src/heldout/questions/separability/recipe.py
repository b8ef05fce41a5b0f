"""How a row becomes a vector of length at most 1, learnt of the public, privatized rows alone."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.data.two_tables import Table

MOST_CATEGORIES = 200
OTHER, MISSING = "other", "missing"
FARTHEST = 3.0  # standard deviations
INSIDE = 1 - 2.0**-30  # so that rounding cannot put a vector outside the ball


@dataclass(frozen=True, eq=False)
class Number:
    """How a numeric column is centred, scaled and filled."""

    centre: float
    scale: float
    fill: float

    @classmethod
    def of(cls, values: Any) -> "Number":
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(0.0, 0.0, 0.0)
        # Divided by the largest first: the square of 1e300 is no number.
        largest = float(np.abs(known).max()) or 1.0
        shrunk = known / largest
        deviation = float(shrunk.std()) * largest
        return cls(float(shrunk.mean()) * largest, deviation, float(np.median(known)))

    def __call__(self, values: Any) -> Any:
        filled = np.where(np.isnan(values), self.fill, values)
        return (filled / self.scale) - self.centre / self.scale


@dataclass(frozen=True, eq=False)
class Recipe:
    """A function of one row alone: numbers scaled and held to 3 deviations, categories, a one.

    Categories that the privatized data does not have are a feature of their own, and so are
    missing numbers: one for each column where privatized numbers are missing, and one for all
    other columns together. Vectors longer than the median privatized one are cut to its length.
    """

    numbers: dict[str, Number]
    gaps: frozenset[str]
    """Columns of numbers some of which are missing in the privatized data."""
    levels: dict[str, tuple[str, ...]]
    radius: float

    @classmethod
    def of(cls, privatized: Table) -> "Recipe":
        numbers = {name: _scaled(Number.of(each)) for name, each in privatized.numbers.items()}
        levels = {name: frequent(each, MOST_CATEGORIES) for name, each in privatized.texts.items()}
        gaps = frozenset(name for name, each in privatized.numbers.items() if np.isnan(each).any())
        plain = cls(numbers, gaps, levels, radius=1.0)._raw(privatized)
        return cls(numbers, gaps, levels, radius=float(np.median(_lengths(plain))))

    @property
    def features(self) -> tuple[str, ...]:
        """What each entry of the vector stands for; the last is the constant."""
        names = list(self.numbers)
        names += [f"{name} = {MISSING}" for name in self.numbers if name in self.gaps]
        names += ["a number is missing elsewhere"] if len(self.gaps) < len(self.numbers) else []
        names += [
            f"{name} = {level}"
            for name, levels in self.levels.items()
            for level in (*levels, MISSING, OTHER)
        ]
        return (*names, "constant")

    def vectors(self, table: Table, keys: Any = None) -> tuple[Any, Any]:
        """One row each, of Euclidean length at most 1; and which rows are held out.

        Operations on single numbers only, each rounded as IEEE 754 says: a row's vector and half
        follow from that row to the last bit, wherever in the table it stands.
        """
        raw = self._raw(table)
        shrunk = INSIDE / np.maximum(_lengths(raw), self.radius)
        return raw * shrunk[:, None], held_out([None] * table.rows if keys is None else keys, raw)

    def _raw(self, table: Table) -> Any:
        columns: list[Any] = []
        gaps = {name: np.isnan(values) for name, values in table.numbers.items()}
        for name, number in self.numbers.items():
            values, missing = table.numbers[name], gaps[name]
            with np.errstate(over="ignore", invalid="ignore"):
                away = number(np.where(missing, number.centre, values))
            columns.append(np.clip(np.nan_to_num(away), -FARTHEST, FARTHEST))
        columns += [gaps[name] for name in self.numbers if name in self.gaps]
        elsewhere = [gaps[name] for name in self.numbers if name not in self.gaps]
        columns += [np.any(elsewhere, axis=0)] if elsewhere else []
        for name, levels in self.levels.items():
            values = table.texts[name]
            columns += [values == level for level in levels]
            columns.append(np.array([value is None for value in values], dtype=bool))
            known = {None, *levels}
            columns.append(np.array([value not in known for value in values], dtype=bool))
        columns.append(np.ones(table.rows))
        return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)


def held_out(keys: Any, raw: Any) -> Any:
    """Half of the rows, by a hash of each row's key; without keys, of its content and copy.

    The n-th row of the same content has the content and n for a key. When one of c such rows
    leaves, copies 1 to c - 1 stay where they were, and only copy c is gone from its half.
    """
    seen: dict[bytes, int] = {}
    chosen = np.zeros(len(raw), dtype=bool)
    for index in range(len(raw)):
        if keys[index] is not None:
            text = str(keys[index]).encode()
        else:
            content = raw[index].tobytes()
            seen[content] = seen.get(content, 0) + 1
            text = content + str(seen[content]).encode()
        chosen[index] = hashlib.md5(text, usedforsecurity=False).digest()[0] % 2 == 1
    return chosen


def frequent(values: Any, most: int) -> tuple[str, ...]:
    """The categories that occur most, in the order of their names."""
    names, counts = np.unique([value for value in values if value is not None], return_counts=True)
    if len(names) <= most:
        return tuple(str(name) for name in names)
    kept = np.argsort(-counts, kind="stable")[:most]
    # A category that occurs once in both tables together can only be learnt by heart.
    return tuple(sorted(str(names[index]) for index in kept if counts[index] > 1))


def _lengths(raw: Any) -> Any:
    return np.sqrt(row_products(raw, raw))


def row_products(rows: Any, other: Any) -> Any:
    """Each row's inner product, summed from left to right whatever the other rows are."""
    total = np.zeros(len(rows))
    for index in range(rows.shape[1]):
        total += rows[:, index] * other[..., index]
    return total


def _scaled(number: Number) -> Number:
    """A privatized column that is the same everywhere has the scale 1."""
    fine = np.isfinite(number.scale) and number.scale > 1e-150
    return number if fine else Number(number.centre, 1.0, number.fill)
