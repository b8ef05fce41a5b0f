"""A table's keys, read in its order: whose rows they are, and whether they are told apart."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from heldout.data import sql
from heldout.data.duckdb_engine import BATCH
from heldout.data.reading import as_numpy, taken
from heldout.data.sql import FITTING_TYPES, MIXING, Columns

__all__ = ["HELD_ROWS", "KeyedRows", "Local", "mixed_numbers", "sortable"]

HELD_ROWS: Final = 2**25
"""Keys, label and score of so many rows are held while they are looked at: 25 bytes each."""
HELD_BYTES: Final = 2**30
_BLOCK: Final = 2**14  # rows, of which a dozen arrays stay near the processor
_PERSON, _KEY = "heldout_person", "heldout_key"


class Local(Protocol):
    """An engine in this process, which hands rows over in the order of the table."""

    source: str
    columns: dict[str, str]

    def batches(self, statement: str, rows: int = ...) -> Iterator[Any]: ...


def sortable(types: Mapping[str, str], *names: str | None) -> bool:
    """Whether all of these keys are integers of at most 64 bits, which are sorted here."""
    return all(name is None or types[name] in FITTING_TYPES for name in names)


class KeyedRows:
    """A table's keys in its order, some rows at a time, with the columns that questions ask for.

    They are read once where `hold` says so, and else once for each time that they are looked at.
    """

    def __init__(
        self,
        engine: Local,
        *,
        unit: str | None,
        row_key: str | None,
        columns: Mapping[str, str],
        hold: bool,
    ) -> None:
        names = {_PERSON: unit, _KEY: row_key}
        self._engine, self._columns, self.has_key = engine, columns, row_key is not None
        self._keys = {
            ours: sql.key_number(name, engine.columns[name])
            for ours, name in names.items()
            if name is not None
        }
        self._held: list[Any] | None = [] if hold else None
        self.rows, self._rising = 0, True
        self._spans: dict[str, tuple[int, int]] = {}

    def look(self, take: Callable[[Columns], bool] | None = None) -> bool:
        """Read all once: False as soon as a key is missing or `take` refuses its columns."""
        last = None
        wanted = self._statement({**self._columns, **self._keys})
        size = BATCH if self._held is None else 8 * BATCH
        for batch in self._engine.batches(wanted, size):
            if any(batch[name].null_count for name in self._keys):
                return False
            if take is not None and not take(
                {name: as_numpy(batch[name]) for name in self._columns}
            ):
                return False
            for name in self._keys:
                found = as_numpy(batch[name])
                least, most = self._spans.get(name, (2**63, -(2**63)))
                self._spans[name] = min(least, int(found.min())), max(most, int(found.max()))
            if self.has_key and self._rising:
                self._rising = (last is None or found[0] > last) and bool(
                    (found[1:] > found[:-1]).all()
                )
                last = found[-1]
            self.rows += len(batch)
            if self._held is not None:
                self._held.append(batch)
        return True

    def people(self) -> tuple[int, int]:
        """The least and the largest number of a person."""
        return self._spans[_PERSON]

    def repeats(self) -> bool:
        """Whether two rows have the same key."""
        import numpy as np

        if self._rising:
            return False
        least, most = self._spans[_KEY]
        if most - least < min(8 * self.rows, HELD_BYTES):
            seen = np.zeros(most - least + 1, dtype=bool)
            for *_, key in self.blocks():
                seen[key - least] = True
            return int(np.count_nonzero(seen)) < self.rows
        many, secret = -(-8 * self.rows // HELD_BYTES), np.int64(secrets.randbits(62))
        for part in range(many):
            parts = [
                key if many == 1 else key[mixed_numbers(key ^ secret) % many == part]
                for *_, key in self.blocks()
            ]
            found = np.sort(np.concatenate(parts))
            if (found[1:] == found[:-1]).any():
                return True
        return False

    def blocks(self) -> Iterator[list[Any]]:
        """Whose rows they are, and their keys where there are some."""
        batches: Any = self._held
        if batches is None:
            batches = self._engine.batches(self._statement(self._keys))
        for batch in batches:
            keys = [as_numpy(batch[name]) for name in self._keys]
            for start in range(0, len(batch), _BLOCK):
                yield [each[start : start + _BLOCK] for each in keys]

    def at(self, places: Any) -> list[Any]:
        """What `blocks` gives of these rows alone; places rise."""
        import numpy as np

        parts, start = [], 0
        for block in self.blocks():
            end = start + len(block[0])
            here = places[slice(*np.searchsorted(places, (start, end)))] - start
            parts.append([each[here] for each in block])
            start = end
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def chosen(self, counts: Any) -> Any:
        """The columns of the rows that count, as an Arrow table; None where they are not held."""
        import numpy as np
        import pyarrow

        if self._held is None or not self._columns:
            return None
        parts, start = [], 0
        for batch in self._held:
            here = np.flatnonzero(counts[start : start + len(batch)])
            parts.append({name: taken(batch[name], here) for name in self._columns})
            start += len(batch)
        return pyarrow.table(
            {name: pyarrow.chunked_array([each[name] for each in parts]) for name in self._columns}
        )

    def _statement(self, columns: Mapping[str, str]) -> str:
        listed = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
        return f"SELECT {listed} FROM {self._engine.source} AS held"


def mixed_numbers(numbers: Any, which: int = 0) -> Any:
    """What `sql.mixed` makes of 64-bit integers: its remainders have the dividend's sign.

    >>> import numpy as np
    >>> mixed_numbers(np.array([1, -1])).tolist()
    [964980372, 733522764]
    """
    import numpy as np

    first, steps = MIXING[which]
    found = np.fmod(numbers, first) + first
    for factor, prime in steps:
        found = found * factor
        found -= found // prime * prime
    return found
