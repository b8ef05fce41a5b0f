"""What a field of a question may be: the rules of any argument, and two of a question's own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from heldout.arguments.rules import (
    Choices,
    Columns,
    Flag,
    Grid,
    Intervals,
    Number,
    Numbers,
    OneOf,
    Plain,
    Text,
    Whole,
)
from heldout.privacy.rational import Rational, exact

__all__ = [
    "By",
    "Choices",
    "Exact",
    "Flag",
    "Grid",
    "Intervals",
    "Number",
    "Numbers",
    "OneOf",
    "Plain",
    "Price",
    "Text",
    "Whole",
]


@dataclass(frozen=True)
class Exact:
    """An exact number above `minimum`."""

    minimum: int = 0

    def __call__(self, value: Any, name: str) -> Fraction:
        return exact(value, name=name, minimum=self.minimum)


By = Annotated[Any, Columns()]
"""The declared groups that an answer is given for, one by one; crossed if there are several."""

Price = Annotated[Rational, Exact()]
"""Epsilon as people write it: text, int, Fraction, Decimal or float; an exact number once read."""
