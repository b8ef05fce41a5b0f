"""What a public argument may be, said once: each rule reads a value or refuses it by name."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from heldout.arguments import as_number, as_whole, is_one_of, shown
from heldout.errors import ArgumentError
from heldout.privacy.rational import Rational, exact

__all__ = [
    "Choices",
    "Exact",
    "Flag",
    "Number",
    "Numbers",
    "OneOf",
    "Plain",
    "Price",
    "Text",
    "Whole",
]

MOST_ROWS = 2**53  # so many are still exact as doubles


@dataclass(frozen=True)
class Exact:
    """An exact number above `minimum`."""

    minimum: int = 0

    def __call__(self, value: Any, name: str) -> Fraction:
        return exact(value, name=name, minimum=self.minimum)


@dataclass(frozen=True)
class Whole:
    """A whole number within limits.

    >>> Whole(1, 10)(3, "k")
    3
    """

    least: int = 1
    most: int = MOST_ROWS
    advice: str = ""

    def __call__(self, value: Any, name: str) -> int:
        number = as_whole(value, most=self.most)
        if number is None or number < self.least:
            rule = f"a whole number from {self.least}"
            if self.most < MOST_ROWS:
                rule += f" to {self.most:,}"
            raise ArgumentError(f"{name} must be {rule}, got {shown(value)}. {self.advice}".strip())
        return number


@dataclass(frozen=True)
class Number:
    """A finite number within limits, the limits included."""

    least: float = -math.inf
    most: float = math.inf
    advice: str = ""

    def __call__(self, value: Any, name: str) -> float:
        number = as_number(value)
        if not (math.isfinite(number) and self.least <= number <= self.most):
            rule = "a positive number" if self.least > 0 else "a finite number"
            if math.isfinite(self.least) and math.isfinite(self.most):
                rule += f", {self.least:g} to {self.most:g}"
            raise ArgumentError(f"{name} must be {rule}, got {shown(value)}. {self.advice}".strip())
        return number


@dataclass(frozen=True)
class Numbers:
    """Finite numbers, one or more, from the least to the largest.

    >>> Numbers()([0.5, 0.2, 0.5], "thresholds")
    (0.2, 0.5)
    """

    def __call__(self, value: Any, name: str) -> tuple[float, ...]:
        several = value if isinstance(value, list | tuple) else [value]
        if not several:
            raise ArgumentError(f"{name} must have a number. Or leave it out.")
        return tuple(sorted({Number()(each, name) for each in several}))


@dataclass(frozen=True)
class OneOf:
    """One of these words."""

    words: Collection[str]
    advice: str = ""

    def __call__(self, value: Any, name: str) -> str:
        if not is_one_of(value, self.words):
            known = ", ".join(self.words)
            raise ArgumentError(
                f"{name} must be one of {known}, got {shown(value)}. {self.advice}".strip()
            )
        return str(value)


@dataclass(frozen=True)
class Choices:
    """Some of these words, at least one, in the order of the words."""

    words: tuple[str, ...]

    def __call__(self, value: Any, name: str) -> tuple[str, ...]:
        listed = isinstance(value, list | tuple | set | frozenset)
        given = [value] if isinstance(value, str) else list(value) if listed else []
        if not given or not all(is_one_of(each, self.words) for each in given):
            raise ArgumentError(
                f"{name} must be some of {', '.join(self.words)}, got {shown(value)}."
            )
        return tuple(word for word in self.words if word in given)


@dataclass(frozen=True)
class Text:
    """A text, such as the name of a column."""

    what: str = "a text"

    def __call__(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{name} must be {self.what}, got a {type(value).__name__}.")
        return value


@dataclass(frozen=True)
class Columns:
    """The name of a column, or of several."""

    def __call__(self, value: Any, name: str) -> str | tuple[str, ...]:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ArgumentError(f"{name} must be a column or a list of them, got {shown(value)}.")
        if not names:
            raise ArgumentError(f"{name} must name a column. Or leave it out.")
        return names[0] if len(names) == 1 else tuple(names)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def __call__(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} must be True or False, got {shown(value)}.")
        return value


@dataclass(frozen=True)
class Plain:
    """Values by name that go to JSON and back: texts, numbers, lists of them."""

    def __call__(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise ArgumentError(f"{name} must be values by name, got {shown(value)}.")
        return {key: _plain(each) for key, each in value.items() if each is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        return tuple(_plain(each) for each in value)
    whole = as_whole(value)
    return value if whole is None else whole


By = Annotated[Any, Columns()]
"""The declared groups that an answer is given for, one by one; crossed if there are several."""

Price = Annotated[Rational, Exact()]
"""Epsilon as people write it: text, int, Fraction, Decimal or float; an exact number once read."""
