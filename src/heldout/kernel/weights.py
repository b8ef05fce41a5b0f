"""What a row counts for: one, or its weight in whole steps of the largest."""

from typing import Final

from heldout.data.sql import double

__all__ = ["STEPS", "counted", "held_steps", "part_of", "summed"]

STEPS: Final = 2**20
"""Of the largest weight; sums over 2^40 rows fit 64 bits."""


def held_steps(number: str) -> str:
    """A number in whole steps, held to 0 and 1 first, so that none can be too large to cast."""
    held = f"greatest({double(0)}, least({double(1)}, {number}))"
    return f"CAST(floor({held} * {double(STEPS)} + 0.5) AS BIGINT)"


def part_of(number: str, share: str, steps: int = STEPS) -> str:
    """So many steps of a number of them, rounded down: two whole numbers from 0 to `steps`.

    The product is below 2^44, so it is exact in a double, and its quotient is on the right side of
    every whole number.
    """
    return f"CAST(floor(({number}) * ({share}) / {double(steps)}) AS BIGINT)"


def summed(number: str, name: str) -> str:
    return f"CAST(sum({number}) AS BIGINT) AS {name}"


def counted(weighted: bool) -> str:
    """The rows of a group as n; or their weights in steps, and what these lack to be squares."""
    if not weighted:
        return "count(*) AS n"
    weight = held_steps("weight")
    return f"{summed(weight, 'n')}, {summed(part_of(weight, f'{STEPS} - {weight}'), 'lacking')}"
