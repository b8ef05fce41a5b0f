"""Which accounts know the same people: a keyed sketch of each, for the custodian's eyes.

A sketch is a sample of individuals, the same one in 2^level of them in every table, as HMACs under
the ledger's key, filled up with random items to a fixed size. Without the key it is random bits,
and does not even tell how many people there are; with it, a guess can be tested, as with a tie.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["Individuals", "Overlap", "drawn", "overlapping", "sketch_of"]

SIZE: Final = 4096
BYTES: Final = 8
DEEPEST: Final = 30


class Individuals(Protocol):
    """A table that can say who is in it; `heldout.data.people.People` is one."""

    def individuals(self, level: int) -> tuple[int, list[int]]:
        """How many there are, and one in 2^level of them, the same ones in every table."""


@dataclass(frozen=True)
class Overlap:
    """About how many of the people of a table are also in an account."""

    account: str
    name: str
    shared: int
    people: int

    def __str__(self) -> str:
        return (
            f"about {_round(self.shared):,} of these {_round(self.people):,} are also in account "
            f"'{self.name}'"
        )


def drawn(table: Individuals) -> tuple[int, int, list[int]]:
    """How many people there are, the level at which a sketch holds them, and the sample."""
    count, _ = table.individuals(DEEPEST)
    level = max(0, (count // (SIZE * 3 // 4)).bit_length())
    while len(sample := table.individuals(level)[1]) >= SIZE:
        level += 1
    return count, level, sample


def sketch_of(key: bytes, account: str, level: int, sample: Sequence[int]) -> str:
    """The sample as a text of fixed length."""
    items = {_item(key, person) for person in sample} | {_mark(key, account, level)}
    while len(items) < SIZE:
        items.add(secrets.token_bytes(BYTES))
    return base64.b64encode(b"".join(sorted(items))).decode("ascii")


def overlapping(key: bytes, account: str, sketch: str, table: Individuals, level: int) -> int:
    """About how many of the table's people are in the sketch of an account."""
    packed = base64.b64decode(sketch)
    items = {packed[at : at + BYTES] for at in range(0, len(packed), BYTES)}
    own = next((each for each in range(64) if _mark(key, account, each) in items), None)
    if own is None:
        return 0  # a sketch under another key
    both = max(own, level)
    sample = table.individuals(both)[1]
    shared = sum(_item(key, person) in items for person in sample)
    return shared << both


def _item(key: bytes, person: int) -> bytes:
    return hmac.new(key, b"person %d" % person, hashlib.sha256).digest()[:BYTES]


def _mark(key: bytes, account: str, level: int) -> bytes:
    return hmac.new(key, f"level {level} {account}".encode(), hashlib.sha256).digest()[:BYTES]


def _round(count: int) -> int:
    """Two digits, as an estimate deserves."""
    return count if count < 100 else int(float(f"{count:.2g}"))
