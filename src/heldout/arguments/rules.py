"""What a public argument may be, said once: each rule reads a value or refuses it by name."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.arguments import as_number, as_whole, is_one_of, shown
from heldout.errors import ArgumentError

__all__ = [
    "Choices",
    "Columns",
    "Flag",
    "Grid",
    "Intervals",
    "Number",
    "Numbers",
    "OneOf",
    "Plain",
    "Share",
    "Text",
    "Whole",
]

MOST_ROWS = 2**53  # so many are still exact as doubles
_NARROWEST, _WIDEST = 1e-150, 1e150


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
class Share:
    """A number between 0 and 1, both left out.

    >>> Share("Try 0.95.")("0.9", "level")
    0.9
    """

    advice: str = ""

    def __call__(self, value: Any, name: str) -> float:
        number = as_number(value)
        if not 0 < number < 1:
            raise ArgumentError(
                f"{name} must lie between 0 and 1, got {shown(value)}. {self.advice}".strip()
            )
        return number


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
class Intervals:
    """Publicly known intervals by name; of a residual one number will do, alike on both sides."""

    names: tuple[str, str]

    def __call__(self, value: Any, name: str) -> dict[str, tuple[float, float]]:
        if not isinstance(value, Mapping):
            raise ArgumentError(
                f"{name} must be intervals by name, got {shown(value)}. Pass {{'residual': 20}}."
            )
        if not set(value) <= set(self.names):
            first, second = self.names
            raise ArgumentError(
                f"{name} must name {first!r}, {second!r} or both. Pass {{'residual': 20}}."
            )
        return {key: _interval(each, key) for key, each in value.items() if each is not None}


def _interval(value: Any, name: str) -> tuple[float, float]:
    if name == "residual" and not isinstance(value, tuple | list):
        value = (-as_number(value), as_number(value))
    pair = isinstance(value, tuple | list) and len(value) == 2
    low, high = (as_number(each) for each in value) if pair else (math.nan, math.nan)
    width = high - low
    if not (_NARROWEST <= width <= _WIDEST) or max(abs(low), abs(high)) > 1e9 * width:
        raise ArgumentError(
            f"bounds of {name} must be two finite numbers, the lower first, got {shown(value)}."
        )
    return (low, high)


@dataclass(frozen=True)
class Grid:
    """Cells of the residual and of the predicted value; one number stands for both."""

    def __call__(self, value: Any, name: str) -> tuple[int, int]:
        pair = (value, value) if as_whole(value) is not None else value
        if isinstance(pair, tuple | list) and len(pair) == 2:
            down, across = (as_whole(each, most=256) for each in pair)
            if down is not None and across is not None and min(down, across) >= 1:
                return down, across
        raise ArgumentError(
            f"{name} must be whole numbers of cells from 1 to 256, got {shown(value)}."
        )


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
