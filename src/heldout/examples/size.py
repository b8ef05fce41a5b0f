"""How many made-up rows one may ask for."""

from typing import Any, Final

from heldout.arguments import as_whole, shown
from heldout.errors import ArgumentError

MOST: Final = 10_000_000


def checked_rows(rows: Any, *, least: int = 1) -> int:
    """A whole number that fits in memory."""
    found = as_whole(rows)
    if found is None or not least <= found <= MOST:
        raise ArgumentError(
            f"rows must be a whole number from {least} to {MOST:,}, got {shown(rows)}."
        )
    return found
