"""Options that are counts: prices are worked out for whole numbers and nothing between them."""

from typing import Any

import numpy as np

from heldout.errors import ArgumentError

__all__ = ["whole_number"]


def whole_number(value: Any, name: str, *, least: int, most: int) -> int:
    """The number as an int, refused before anything is booked if it is not whole.

    A recursion of 2.5 levels would never come to its end at 0, and cut the rows more often than
    its price says.

    >>> whole_number(3, "levels", least=1, most=8)
    3
    >>> whole_number(2.5, "levels", least=1, most=8)
    Traceback (most recent call last):
    heldout.errors.ArgumentError: levels must be a whole number, 1 to 8, got 2.5. Try another.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ArgumentError(
            f"{name} must be a whole number, {least} to {most:,}, got {value!r}. Try another."
        )
    return int(value)
