"""What a field of a question may be: the rules of any argument, and two of a question's own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

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
    Rule,
    Text,
    Whole,
)
from heldout.kernel.rational import Rational, exact

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
    "Rival",
    "Rule",
    "Text",
    "Weighted",
    "Whole",
]


@dataclass(frozen=True)
class Exact(Rule):
    """An exact number above `minimum`."""

    minimum: int = 0

    def __call__(self, value: Any, name: str) -> Fraction:
        return exact(value, name=name, minimum=self.minimum)

    def schema(self) -> dict[str, Any]:
        limit = {"type": "number", "exclusiveMinimum": self.minimum}
        return {"anyOf": [{"type": "string", "examples": ["1/2", "0.5"]}, limit]}


@dataclass(frozen=True)
class Rival(Text):
    """The declared column with another model's score.

    A server has no such column: it takes a second model, whose scores it calls `elsewhere`.
    """

    option: ClassVar[str | None] = "--rival"
    elsewhere: ClassVar[str] = "rival"
    what: str = "the name of a column"


By = Annotated[Any, Columns(), "Ask by group: a declared column, or several to cross."]
"""The declared groups that an answer is given for, one by one; crossed if there are several."""

Weighted = Annotated[bool, Flag(), "Count rows by their declared weights."]

Price = Annotated[Rational, Exact(), "The price, such as 1, 0.5 or 1/3."]
"""Epsilon as people write it: text, int, Fraction, Decimal or float; an exact number once read."""
