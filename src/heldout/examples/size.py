"""How many made-up rows one may ask for: they must fit in memory."""

from typing import Final

MOST: Final = 10_000_000
