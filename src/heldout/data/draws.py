"""Which rows of people count, where keys are whole numbers: what `sql.evaluated` says, by NumPy.

Of ten million rows DuckDB's texts, MD5s and windows take 5.4 seconds of processor time. This takes
1.8, with the reading of the keys (November 2026).
"""

import functools
import math
from typing import Any, Final, TypeAlias

from heldout.data.sql import Array, Columns

_TOGETHER: Final = 2**15  # rows, so that their numbers stay near the processor

# The constants of MD5 (RFC 1321): by step what is added, by round how far is turned and which word
# of the text is read.
_ADDED: Final = [int(abs(math.sin(step + 1)) * 2**32) for step in range(64)]
_TURNS: Final = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_WORDS: Final = ((1, 0), (5, 1), (3, 5), (7, 0))
_BEGIN: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)


def in_order(columns: Columns, place: str) -> Columns:
    """The columns in the order of the table, which one of them counts."""
    import numpy as np

    places = columns[place]
    if (places[1:] > places[:-1]).all():
        return columns
    order = np.argsort(places)
    return {name: cells[order] for name, cells in columns.items()}


def first_of_each(units: Array, keys: Array | None, most: int) -> Array:
    """For each row whether it is among the `most` of its unit that are first by their draw.

    Claim:       the rows that `sql.evaluated` keeps, and no other, where unit and row key are
                 integers of 64 bits.                                     [claim: unit-bounding]
    Neighbours:  replace-one and add-remove, by unit.
    Sensitivity: as there: a row's draw is `sql.drawn` of its unit and key, or of its number among
                 the unit's rows in their order, and it is compared with its own unit's alone.
    Numerics:    exact.
    Refuses:     nothing; keys of one unit are distinct.
    Reference:   proofs/unit-bounding.md.
    Cost:        a sort by unit; an MD5 for each row of a unit that has more than `most`.

    >>> import numpy as np
    >>> first_of_each(np.array([7, 8, 7, 7, 8]), None, 2).tolist()
    [False, True, True, True, True]
    """
    import numpy as np

    counts = np.empty(len(units), dtype=bool)
    order = np.argsort(units, kind="stable")
    end = 0
    while end < len(units):  # a few whole units at a time, near the processor
        begin, last = end, units[order[min(end + _TOGETHER, len(units)) - 1]]
        end = int(np.searchsorted(units, last, side="right", sorter=order))
        rows = order[begin:end]
        counts[rows] = _first_of_sorted(units[rows], None if keys is None else keys[rows], most)
    return counts


def _first_of_sorted(units: Array, keys: Array | None, most: int) -> Array:
    """As `first_of_each`, of rows whose units ascend."""
    import numpy as np

    counts = np.ones(len(units), dtype=bool)
    begins = np.flatnonzero(np.append(True, units[1:] != units[:-1]))
    sizes = np.diff(begins, append=len(units))
    rows = np.flatnonzero(np.repeat(sizes > most, sizes))  # of others all rows count
    if not len(rows):
        return counts
    sizes = sizes[sizes > most]
    begins = np.cumsum(sizes) - sizes
    in_unit = np.arange(1, len(rows) + 1) - np.repeat(begins, sizes)
    numbers = in_unit if keys is None else keys[rows]
    draws = drawn(units[rows], numbers)
    for size in np.flatnonzero(np.bincount(sizes)):
        # Units of one size stand below each other, and each is ordered from left to right.
        places = begins[sizes == size][:, None] + np.arange(size)
        if keys is None:  # their numbers ascend already
            ranked = np.argsort(draws[places], axis=1, kind="stable")
        else:
            ranked = np.lexsort((numbers[places], draws[places]), axis=1)
        counts[rows[np.take_along_axis(places, ranked[:, most:], axis=1)]] = False
    return counts


def drawn(units: Array, numbers: Array) -> Array:
    """Return `sql.drawn` of each pair of 64-bit integers.

    >>> import hashlib, numpy as np
    >>> hashlib.md5(b"12/-7").hexdigest(), f"{drawn(np.array([12]), np.array([-7]))[0]:015x}"
    ('4770e460af7b13c88bd5c2d6866e798d', '4770e460af7b13c')
    """
    import numpy as np

    draws = np.empty(len(units), dtype=np.int64)
    # Texts whose numbers have the same signs and as many digits are laid out alike.
    layouts = _layout(units) * 64 + _layout(numbers)
    for layout in np.flatnonzero(np.bincount(layouts)):
        rows = np.flatnonzero(layouts == layout)
        text = [
            *_characters(units[rows], int(layout) // 64),
            (np.uint32(ord("/")), 1),
            *_characters(numbers[rows], int(layout) % 64),
        ]
        draws[rows] = _first_bits(text, len(rows))
    return draws


def _layout(numbers: Array) -> Array:
    """Return the number of digits of each, and 32 more if it is below zero."""
    import numpy as np

    sizes = _sizes(numbers)
    least, most = (len(str(end)) for end in (sizes.min(), sizes.max()))
    layout: Array = np.full(len(numbers), least)
    for power in range(least, most):
        layout += sizes >= 10**power
    layout[numbers < 0] += 32
    return layout


def _sizes(numbers: Array) -> Array:
    import numpy as np

    return np.abs(numbers).view(np.uint64)  # that of -2^63 wraps to itself, which is 2^63 here


Piece: TypeAlias = tuple[Any, int]
"""At most four characters of each text, the first in the lowest bits, and how many they are."""


def _characters(numbers: Array, layout: int) -> list[Piece]:
    """The text of numbers of one layout."""
    import numpy as np

    pieces: list[Piece] = []
    left = _sizes(numbers)
    for digits in range(layout % 32, 0, -4):
        left = left.astype(np.uint32) if digits < 10 else left
        first = min(digits, 4)
        above = left // 10_000
        fours = _four_digits()[left - above * 10_000]
        pieces.append((fours >> 8 * (4 - first), first))
        left = above
    return [*([(np.uint32(ord("-")), 1)] if layout >= 32 else []), *reversed(pieces)]


@functools.cache
def _four_digits() -> Array:
    """The characters of 0000 to 9999."""
    import numpy as np

    return np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), dtype="<u4")


def _first_bits(text: list[Piece], count: int) -> Array:
    """The first 60 bits of the MD5 of so many texts, each shorter than a block."""
    import numpy as np

    words: list[Any] = [np.uint32(0)] * 16
    characters = 0
    for piece, size in [*text, (np.uint32(0x80), 1)]:
        word, within = divmod(characters, 4)
        words[word] = words[word] | piece << 8 * within
        if within + size > 4:
            words[word + 1] = piece >> 8 * (4 - within)
        characters += size
    words[14] = np.uint32(8 * (characters - 1))
    a, b, c, d = (np.full(count, begin, dtype=np.uint32) for begin in _BEGIN)
    mixed = np.empty_like(a)
    for step in range(64):
        turn, place = divmod(step, 16)
        if turn == 0:  # b ? c : d
            np.bitwise_xor(c, d, out=mixed)
            mixed &= b
            mixed ^= d
        elif turn == 1:  # d ? b : c
            np.bitwise_xor(b, c, out=mixed)
            mixed &= d
            mixed ^= c
        elif turn == 2:
            np.bitwise_xor(b, c, out=mixed)
            mixed ^= d
        else:
            np.bitwise_not(d, out=mixed)
            mixed |= b
            mixed ^= c
        factor, first = _WORDS[turn]
        word = (factor * place + first) % 16
        a += mixed
        if words[word].ndim:
            a += words[word]
            a += _ADDED[step]
        else:
            a += (_ADDED[step] + int(words[word])) % 2**32
        left = _TURNS[turn][step % 4]
        np.right_shift(a, 32 - left, out=mixed)
        a <<= left
        a |= mixed
        a += b
        a, b, c, d = d, a, b, c
    a += _BEGIN[0]
    b += _BEGIN[1]
    high, low = (half.byteswap().astype(np.uint64) for half in (a, b))
    return ((high << 32 | low) >> 4).astype(np.int64)
