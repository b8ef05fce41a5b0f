"""Which rows count where a person may have several: found once, when the rows are opened.

People are split by a keyed hash, so that a part of them fits into memory whatever the rows are.
Where keys are integers each part is sorted here, in a tenth of the time of a window.
"""

import secrets
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from heldout.data import sql
from heldout.data.keyed_rows import HELD_ROWS, KeyedRows, Local, mixed_numbers
from heldout.data.reading import as_numpy

__all__ = ["counted_by_window", "counted_rows"]

PASS_BYTES: Final = 2**30
"""What is sorted of so many bytes is held at a time: 8 a row, or 16 where ids are far apart."""
_NEAR: Final = 2**14  # rows that are sorted together
_MOST_PIECES: Final = 11  # bits
_FEW_PIECES: Final = 8  # bits, where there are few rows: what is split by a byte is sorted once
_DIGIT: Final = 16  # bits that are sorted by at a time: NumPy counts them, and compares nothing
_FEW, _MANY = 2**16, 2**22
"""Rows that are split into pieces at a time: few, while they are near the processor, in arrays that
do not go back to the system each time. Where there are many more, arrays of 32 MiB do go back when
they go; smaller ones would leave holes in memory that only smaller ones fill."""
_POSITION: Final = "heldout_position"
_ODD: Final = 0x9E3779B97F4A7C15


def counted_rows(keyed: KeyedRows, *, rows_per_unit: int) -> Any:
    """For each row of the table, in its order, whether it counts: the rule of `sql.evaluated`.

    Claim:       the rows that `sql.evaluated` keeps, and no other.       [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: as there: which rows of a unit stay depends on the unit's own keys alone. The
                 secret by which people are split decides in which part a unit is looked at, all
                 its rows together, and nothing else.
    Numerics:    exact; rows that draw the same number are told apart by their keys.
    Refuses:     nothing; NULL and repeated keys were refused before.
    Reference:   proofs/unit-bounding.md.
    Cost:        a reading of the keys for every 134 million rows, and three sorts by 16 bits; a
                 byte a row after that.
    """
    import numpy as np

    split = Split.of(keyed.people(), keyed.rows)
    found, doubtful = np.zeros(keyed.rows, dtype=bool), [np.empty(0, dtype=np.int64)]
    for number in range(2**split.passes):
        pieces = _pieces(keyed, split, number)
        while pieces:
            piece = len(pieces) - 1 + (number << split.pieces)
            columns = [np.concatenate(each) for each in zip(*pieces.pop(), strict=True)]
            if keyed.has_key:
                kept, doubt = _first_drawn(split.sorted(columns), split, rows_per_unit)
                doubtful.append(doubt)
            else:
                person = split.person(split.owner_of(columns), piece)
                kept = split.place_of(columns)[_first(person, most=rows_per_unit)]
            found[kept] = True
    places = np.sort(np.concatenate(doubtful))
    if len(places):
        found[places[_first(*keyed.at(places), most=rows_per_unit)]] = True
    return found


@dataclass(frozen=True)
class Split:
    """How people are split, and what 64-bit numbers are sorted.

    A person's number, counted from the least, has `width` bits. `owner` gives it another of as
    many bits, one to one. The first of them choose the pass and the piece of it; the others stand
    before what the row draws and its place in the table, in one number if they fit, else in two.
    """

    least: int
    width: int
    passes: int  # bits, like all that follow
    pieces: int
    places: int
    packed: bool
    secret: int

    @staticmethod
    def of(span: tuple[int, int], rows: int) -> "Split":
        most = _FEW_PIECES if rows <= HELD_ROWS else _MOST_PIECES
        pieces = min(max(1, (rows // _NEAR).bit_length()), most)
        places, width = rows.bit_length(), (span[1] - span[0]).bit_length()
        packed = width - pieces + _DIGIT + places <= 64
        passes = (-(-rows * (8 if packed else 16) // PASS_BYTES) - 1).bit_length()
        width = max(width, passes + pieces + 1)
        return Split(span[0], width, passes, pieces, places, packed, secrets.randbits(width))

    @property
    def inner(self) -> int:
        """Bits of an owner's number that tell it apart from others in its piece."""
        return self.width - self.passes - self.pieces

    def owner(self, person: Any) -> Any:
        """Another number for each person, whose first bits look drawn at random."""
        import numpy as np

        mask, half = np.uint64(2**self.width - 1), np.uint64((self.width + 1) // 2)
        found = person.view(np.uint64) - np.uint64(self.least % 2**64)
        found ^= np.uint64(self.secret)
        found *= np.uint64(_ODD)
        found &= mask
        found ^= found >> half
        found *= np.uint64(_ODD)
        found &= mask
        return found

    def person(self, owner: Any, piece: int) -> Any:
        """Whose number it is: every step of `owner` can be undone.

        >>> import numpy as np
        >>> split = Split.of((-7, 7), 4)
        >>> numbers = split.owner(np.array([7, -7]))
        >>> [split.person(each[None], 0).item() for each in numbers]
        [7, -7]
        """
        import numpy as np

        mask, half = np.uint64(2**self.width - 1), np.uint64((self.width + 1) // 2)
        back = np.uint64(pow(_ODD, -1, 2**64))
        found = (owner | np.uint64(piece << self.inner)) * back & mask
        found ^= found >> half
        found = (found * back & mask) ^ np.uint64(self.secret)
        return (found + np.uint64(self.least % 2**64)).view(np.int64)

    def columns(self, owner: Any, drawn: Any, places: Any) -> list[Any]:
        """What is sorted: the first bits of what a row draws, before its place; in their memory."""
        import numpy as np

        drawn <<= np.uint64(self.places)
        places |= drawn
        owner &= np.uint64(2**self.inner - 1)
        if not self.packed:
            return [places, owner]
        owner <<= np.uint64(self.places + _DIGIT)
        owner |= places
        return [owner]

    def owner_of(self, columns: list[Any]) -> Any:
        import numpy as np

        return columns[0] >> np.uint64(self.places + _DIGIT) if self.packed else columns[1]

    def place_of(self, columns: list[Any]) -> Any:
        import numpy as np

        return (columns[0] & np.uint64(2**self.places - 1)).view(np.int64)

    def sorted(self, columns: list[Any]) -> list[Any]:
        """By owner, then by what is drawn.

        Packed numbers are sorted as they are; of two, the last digits first, each sort keeping the
        order of the one before.
        """
        import numpy as np

        if self.packed:
            return [np.sort(columns[0])]
        for which, end in enumerate((_DIGIT, self.inner)):
            start = 0 if which else self.places
            for shift in range(start, start + end, _DIGIT):
                digits = (columns[which] >> np.uint64(shift)).astype(np.uint16)
                order = np.argsort(digits, kind="stable")
                columns = [each[order] for each in columns]
        return columns


def _pieces(keyed: KeyedRows, split: Split, number: int) -> list[list[list[Any]]]:
    """The people of one pass, split once more into pieces that are sorted in near memory."""
    import numpy as np

    pieces: list[list[list[Any]]] = [[] for _ in range(2**split.pieces)]
    waiting: list[list[Any]] = []
    start = held = 0
    for block in keyed.blocks():
        owner, key = split.owner(block[0]), block[1:]
        places = np.arange(start, start + len(owner), dtype=np.uint64)
        start += len(owner)
        if split.passes:
            here = np.flatnonzero(owner >> np.uint64(split.inner + split.pieces) == number)
            owner, places, *key = (each[here] for each in (owner, places, *key))
            owner &= np.uint64(2 ** (split.inner + split.pieces) - 1)
        kind = np.uint8 if split.pieces <= 8 else np.uint16
        which = (owner >> np.uint64(split.inner)).astype(kind)
        drawn = np.zeros_like(owner)
        if keyed.has_key:
            drawn = mixed_numbers(*key).view(np.uint64)
            drawn >>= np.uint64(31 - _DIGIT)
        waiting.append([which, *split.columns(owner, drawn, places)])
        held += len(owner)
        if held >= (_FEW if keyed.rows <= HELD_ROWS else _MANY) or start == keyed.rows:
            _place(waiting, pieces)
            held = 0
    return pieces


def _place(waiting: list[list[Any]], pieces: list[list[list[Any]]]) -> None:
    import numpy as np

    which, *columns = (np.concatenate(each) for each in zip(*waiting, strict=True))
    waiting.clear()
    order = np.argsort(which, kind="stable")
    columns = [each[order] for each in columns]
    ends = np.bincount(which, minlength=len(pieces)).cumsum().tolist()
    for piece, (begin, end) in zip(pieces, pairwise((0, *ends)), strict=True):
        piece.append([each[begin:end] for each in columns])


def _first_drawn(columns: list[Any], split: Split, most: int) -> tuple[Any, ...]:
    """Places of the rows that are surely among the first `most` of their owner; doubtful ones.

    Columns are sorted. A row is too many if the row `most` places before it is the owner's too.
    The last that is not and the next one may begin alike in what they draw: then all rows of
    their owner are in doubt, and none is kept here.
    """
    import numpy as np

    owner = split.owner_of(columns)
    crowded = np.zeros(len(owner), dtype=bool)
    crowded[most:] = owner[most:] == owner[:-most]
    next_one = np.flatnonzero(crowded[most:] & ~crowded[most - 1 : -1])
    drawn = columns[0] >> np.uint64(split.places)
    tied = next_one[drawn[next_one + most] == drawn[next_one + most - 1]]
    doubt = np.isin(owner, owner[tied]) if len(tied) else np.zeros_like(crowded)
    return tuple(split.place_of([columns[0][which]]) for which in (~(crowded | doubt), doubt))


def counted_by_window(
    engine: Local, *, unit: str, row_key: str | None, rows_per_unit: int, rows: int
) -> Any:
    """As `counted_rows`: texts are told apart by the engine, with the statement that others run."""
    import numpy as np

    found, secret = np.zeros(rows, dtype=bool), secrets.randbits(62)
    many = -(-32 * rows // PASS_BYTES)
    position = _POSITION
    while position in {name.lower() for name in engine.columns}:
        position += "_"
    numbered = f"SELECT *, row_number() OVER () - 1 AS {position} FROM {engine.source}"
    number = sql.key_number(unit, engine.columns[unit])
    for part in range(many):
        chosen = f"hash(xor({number}, {secret})) % {many} = {part}" if many > 1 else "true"
        kept = sql.evaluated(
            source=f"(SELECT * FROM ({numbered}) AS held WHERE {chosen})",
            columns={_POSITION: f"held.{position}"},
            types=engine.columns,
            unit=unit,
            row_key=row_key,
            rows_per_unit=rows_per_unit,
        )
        for batch in engine.batches(kept):
            found[as_numpy(batch[_POSITION])] = True
    return found


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
