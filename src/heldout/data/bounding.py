"""Which rows count where a person may have several: found once, when the rows are opened.

People are split by a keyed hash, so that a part of them fits into memory whatever the rows are.
Where keys are integers each part is sorted here, in a fifth of the time of a window.
"""

import secrets
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, Protocol

from heldout.data import sql
from heldout.data.reading import as_numpy
from heldout.data.sql import FITTING_TYPES, MIXING

__all__ = ["Local", "counted_rows", "repeats", "sortable"]

PASS_ROWS: Final = 2**25
"""Rows that are held at a time: 24 bytes each, 0.8 GB."""
_BLOCK: Final = 2**20
_NEAR: Final = 2**13  # rows that are sorted together
_DRAWN: Final = 20  # bits of what a row draws that are sorted by, as a rule
_ODD: Final = 0x9E3779B97F4A7C15
_POSITION: Final = "heldout_position"


class Local(Protocol):
    """An engine in this process, which hands rows over in the order of the table."""

    source: str
    columns: dict[str, str]

    def batches(self, statement: str, rows: int = ...) -> Iterator[Any]: ...


def sortable(types: dict[str, str], *names: str | None) -> bool:
    """Whether all of these keys are integers of at most 64 bits, which are sorted here."""
    return all(name is None or types[name] in FITTING_TYPES for name in names)


def counted_rows(
    engine: Local, *, unit: str, row_key: str | None, rows_per_unit: int, rows: int
) -> Any:
    """For each row of the table, in its order, whether it counts: the rule of `sql.evaluated`.

    Claim:       the rows that `sql.evaluated` keeps, and no other.       [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: as there: which rows of a unit stay depends on the unit's own keys alone. The
                 secret by which people are split decides in which part a unit is looked at, all
                 its rows together, and nothing else.
    Numerics:    exact; rows that draw the same number are told apart by their keys.
    Refuses:     nothing; NULL and repeated keys were refused before.
    Reference:   proofs/unit-bounding.md.
    Cost:        a scan of the keys for every 33 million rows, and a sort; a byte a row after that.
    """
    import numpy as np

    found = np.zeros(rows, dtype=bool)
    many = -(-rows // PASS_ROWS)
    secret = secrets.randbits(62)
    for number in range(many):
        mark = _mark_sorted if sortable(engine.columns, unit, row_key) else _mark_by_window
        mark(engine, (unit, row_key), rows_per_unit, (number, many, secret), found)
    return found


def repeats(engine: Local, *, row_key: str, rows: int) -> bool:
    """Whether two rows have the same key, which is `sortable`."""
    import numpy as np

    many, secret = -(-rows // (2 * PASS_ROWS)), secrets.randbits(62)
    number = sql.key_number(row_key, engine.columns[row_key])
    keys = f"(SELECT {number} AS row_key FROM {engine.source} AS held) AS keyed"
    if _rise(engine, f"SELECT row_key FROM {keys}"):
        return False
    for part in range(many):
        chosen = f"SELECT row_key FROM {keys}{_only('row_key', part, many, secret)}"
        for (found,) in _blocks(engine, chosen, ["row_key"], rows=rows):
            lowest, width = found.min(), int(found.max()) - int(found.min()) + 1
            if width <= 8 * len(found):
                seen = np.zeros(width, dtype=bool)
                seen[found - lowest] = True
                repeated = bool(np.count_nonzero(seen) < len(found))
            else:
                found.sort()
                repeated = bool((found[1:] == found[:-1]).any())
            if repeated:
                return True
    return False


def _rise(engine: Local, statement: str) -> bool:
    """Whether each key is larger than the one before it, as keys often are: then none repeats."""
    last = None
    for batch in engine.batches(statement):
        found = as_numpy(batch["row_key"])
        if (last is not None and found[0] <= last) or not (found[1:] > found[:-1]).all():
            return False
        last = found[-1]
    return True


def _blocks(engine: Local, statement: str, names: list[str], *, rows: int) -> Iterator[list[Any]]:
    """The answer's columns, at least so many rows at a time."""
    import numpy as np

    waiting: list[list[Any]] = []
    held = 0

    def block() -> list[Any]:
        found = [np.concatenate(each) for each in zip(*waiting, strict=True)]
        waiting.clear()
        return found

    for batch in engine.batches(statement, 2**18):
        waiting.append([as_numpy(batch[name]) for name in names])
        held += len(batch)
        if held >= rows:
            yield block()
            held = 0
    if held:
        yield block()


def _only(number: str, part: int, many: int, secret: int) -> str:
    return "" if many == 1 else f"\nWHERE hash(xor({number}, {secret})) % {many} = {part}"


def _mark_by_window(
    engine: Local,
    keys: tuple[str, str | None],
    rows_per_unit: int,
    part: tuple[int, int, int],
    found: Any,
) -> None:
    """Texts are told apart by the engine, with the very statement that others run."""
    unit, row_key = keys
    position = sql.identifier(_position(engine.columns))
    numbered = f"SELECT *, row_number() OVER () - 1 AS {position} FROM {engine.source}"
    number = sql.key_number(unit, engine.columns[unit])
    kept = sql.evaluated(
        source=f"(SELECT * FROM ({numbered}) AS held{_only(number, *part)})",
        columns={_POSITION: f"held.{position}"},
        types=engine.columns,
        unit=unit,
        row_key=row_key,
        rows_per_unit=rows_per_unit,
    )
    for (position,) in _blocks(engine, kept, [_POSITION], rows=_BLOCK):
        found[position] = True


def _position(columns: dict[str, str]) -> str:
    """A name that no column of the custodian's has."""
    taken = {name.lower() for name in columns}
    name = _POSITION
    while name in taken:
        name += "_"
    return name


def _mark_sorted(
    engine: Local,
    keys: tuple[str, str | None],
    rows_per_unit: int,
    part: tuple[int, int, int],
    found: Any,
) -> None:
    """People are split once more, into some thousand rows that are sorted in the nearest memory."""
    import numpy as np

    (unit, row_key), several = keys, part[1] > 1
    chosen = {"person": _key(engine, unit)}
    chosen |= {} if row_key is None else {"row_key": _key(engine, row_key)}
    chosen |= {"position": "row_number() OVER () - 1"} if several else {}
    listed = ", ".join(f"{expression} AS {name}" for name, expression in chosen.items())
    keyed = f"(SELECT {listed} FROM {engine.source} AS held) AS keyed"
    statement = f"SELECT * FROM {keyed}{_only('person', *part)}"
    bits = max(1, (min(len(found), PASS_ROWS) // _NEAR).bit_length())
    pieces: list[list[list[Any]]] = [[] for _ in range(2**bits)]
    rows = 0
    for person, *more in _blocks(engine, statement, list(chosen), rows=_BLOCK):
        owner = _owner(person, part[2])
        which = (owner >> np.uint64(64 - bits)).astype(np.uint16)
        order = np.argsort(which, kind="stable")
        columns = [each[order] for each in (owner, *more)]
        columns += [] if several else [order + rows]
        rows += len(order)
        ends = np.concatenate(([0], np.bincount(which, minlength=2**bits).cumsum())).tolist()
        for piece, (start, end) in zip(pieces, pairwise(ends), strict=True):
            piece.append([each[start:end] for each in columns])
    while pieces:
        piece = pieces.pop()
        *keyed_by, position = [np.concatenate(each) for each in zip(*piece, strict=True)]
        if row_key is None:
            kept = _first(_person(keyed_by[0], part[2]), most=rows_per_unit)
        else:
            kept = _first_packed(*keyed_by, skipped=bits, most=rows_per_unit)
            kept = _first(*keyed_by, most=rows_per_unit) if kept is None else kept
        found[position[kept]] = True


def _key(engine: Local, name: str) -> str:
    return sql.key_number(name, engine.columns[name])


def _owner(person: Any, secret: int) -> Any:
    """Another 64-bit number for each person, whose first bits look drawn at random."""
    import numpy as np

    found = (person.view(np.uint64) ^ np.uint64(secret)) * np.uint64(_ODD)
    found ^= found >> np.uint64(32)
    found *= np.uint64(_ODD)
    return found


def _person(owner: Any, secret: int) -> Any:
    """Whose number it is: every step of `_owner` can be undone.

    >>> import numpy as np
    >>> _person(_owner(np.array([7, -7]), 12345), 12345).tolist()
    [7, -7]
    """
    import numpy as np

    back = np.uint64(pow(_ODD, -1, 2**64))
    found = owner * back
    found ^= found >> np.uint64(32)
    return (found * back ^ np.uint64(secret)).view(np.int64)


def _first_packed(owner: Any, key: Any, *, skipped: int, most: int) -> Any:
    """As `_first`, by one sort of 64-bit numbers; None where they do not tell all rows apart.

    A number has the first bits of its row's owner, the first of what its key draws, and its
    place. Two owners that begin alike, and two rows of one that draw alike, are not decided here.
    """
    import numpy as np

    places = np.uint64(len(owner).bit_length())
    beginning = np.uint64(64 - _DRAWN) - places
    drawn = mixed_numbers(key).view(np.uint64) >> np.uint64(31 - _DRAWN)
    packed = owner << np.uint64(skipped) >> (np.uint64(64) - beginning) << np.uint64(_DRAWN)
    packed = (packed | drawn) << places | np.arange(len(owner), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << places) - np.uint64(1))).view(np.int64)
    owner, packed = owner[order], packed >> places
    changes = packed[1:] >> np.uint64(_DRAWN) != packed[:-1] >> np.uint64(_DRAWN)
    if (packed[1:] == packed[:-1]).any() or (changes != (owner[1:] != owner[:-1])).any():
        return None
    # The n-th row of an owner that begins at b is at b + n: it is too many if the row `most`
    # places before it is the owner's too.
    crowded = np.zeros(len(owner), dtype=bool)
    crowded[most:] = owner[most:] == owner[:-most]
    return order[~crowded]


def _first(owner: Any, key: Any = None, *, most: int) -> Any:
    """Places of the rows that are among the first `most` of their owner, by (drawn, key).

    Without keys, the n-th row of a person has key n.

    >>> import numpy as np
    >>> kept = _first(np.array([7, 8, 7, 7]), np.array([10, 11, 12, 13]), most=2)
    >>> sorted(kept.tolist()), mixed_numbers(np.array([10, 12, 13])).argsort().tolist()
    ([0, 1, 3], [2, 0, 1])
    """
    import numpy as np

    if not len(owner):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    begins = np.flatnonzero(np.concatenate(([True], owner[order[1:]] != owner[order[:-1]])))
    lengths = np.diff(begins, append=len(owner))
    nth = np.arange(len(owner)) - np.repeat(begins, lengths) + 1
    if key is None:
        sorted_key, drawn = nth, mixed_numbers(mixed_numbers(owner[order]) * 2**31 + nth)
    else:
        sorted_key = key[order]
        drawn = mixed_numbers(sorted_key)
    run = np.repeat(np.arange(len(begins)), lengths)
    # Sorted by owner first, so that each owner's places are where they were.
    return order[np.lexsort((sorted_key, drawn, run))[nth <= most]]


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
