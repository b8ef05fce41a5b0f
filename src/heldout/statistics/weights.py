"""What a row counts for: one, or its weight in whole steps of the largest."""

from typing import Final

from heldout.data.sql import double

__all__ = ["STEPS", "counted", "held_steps"]

STEPS: Final = 2**20
"""Of the largest weight; sums over 2^40 rows fit 64 bits."""


def held_steps(number: str) -> str:
    """A number in whole steps, held to 0 and 1 first, so that none can be too large to cast."""
    held = f"greatest({double(0)}, least({double(1)}, {number}))"
    return f"CAST(floor({held} * {double(STEPS)} + 0.5) AS BIGINT)"


def counted(weighted: bool) -> str:
    """The rows of a group, or the sum of their weights in steps."""
    return f"CAST(sum({held_steps('weight')}) AS BIGINT)" if weighted else "count(*)"
