"""Values that are typed as text and mean something else."""

import contextlib
import math
from pathlib import Path

from heldout.arguments import shown
from heldout.errors import ArgumentError


def label_value(text: str) -> object:
    """A label as it is typed: a whole number, a number, true or false, or else text.

    >>> [label_value(each) for each in ("1", "0", "true", "1.5", "yes", "'1'")]
    [1, 0, True, 1.5, 'yes', '1']
    """
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "'\"":
        return plain[1:-1]
    for kind in (int, float):
        try:
            found = kind(plain)
        except ValueError:
            continue
        if math.isfinite(found):
            return found
    return text


def existing_ledger(place: str) -> str:
    """A ledger that is there already: looking at one must not make one."""
    with contextlib.suppress(OSError, ValueError):  # a name that the system cannot spell
        if "://" in place or Path(place).exists() or Path(place + ".witness").exists():
            return place
    raise ArgumentError(f"ledger must be a file that exists, got {shown(place)}. Check the path.")
