"""Public arguments, whatever they are: read, or refused in one line that quotes no row."""

import contextlib
import inspect
import json
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from heldout.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "as_array",
    "as_edges",
    "as_number",
    "as_numbers",
    "as_whole",
    "check_columns",
    "guess",
    "is_one_of",
    "no_such",
    "pair",
    "shown",
    "visible",
]

_LONGEST = 60
_NOT_NUMBERS = "cmMV"  # complex, durations, times, records: NumPy would make doubles of most
_OF_ROWS = ("__array__", "__dataframe__", "__arrow_c_array__", "__arrow_c_stream__")
"""Arrays, columns and tables of any library have one of these methods."""
_LONGEST_LIST = 20


def shown(value: object) -> str:
    """Return a value for a message: on one line, brief, and without failing itself.

    Rows that were given in place of something else are private: of arrays, columns, tables and long
    lists only the type is shown.

    >>> shown("a\\nb"), shown(0.5), shown(10**5000), shown(Fraction(1, 3))
    ("'a\\\\nb'", '0.5', 'a long int', '1/3')
    >>> shown([71.5] * 50), shown({"y": [71.5] * 50}), shown(["a", "b"])
    ('a value of type list', 'a value of type dict', "['a', 'b']")
    """
    try:
        if _may_be_rows(value):
            return f"a value of type {type(value).__name__}"
        text = str(value) if isinstance(value, Fraction | Decimal) else repr(value)
    except Exception:
        return f"a long {type(value).__name__}"
    text = visible(" ".join(text.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _may_be_rows(value: object) -> bool:
    if isinstance(value, str | bytes) or not hasattr(type(value), "__len__"):
        return False
    if any(hasattr(type(value), name) for name in _OF_ROWS):
        return True
    if not isinstance(value, Collection) or len(value) > _LONGEST_LIST:
        return isinstance(value, Collection)
    return any(map(_may_be_rows, value.values() if isinstance(value, Mapping) else value))


def visible(text: str, *, allowed: str = "") -> str:
    """Return a text whose control characters and marks of direction are written as escapes.

    A column may be called anything, and its name is shown to people: on a terminal, which such
    characters would steer, and in pages and pictures, which some of them break.

    >>> print(visible("risk\u202e\x1b[2J"))
    risk\\u202e\\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in allowed
        else character.encode("unicode_escape").decode()
        for character in text
    )


def as_number(value: Any) -> float:
    """Return the value as a double; NaN where it is not a number.

    >>> as_number("0.5"), as_number(10**400), as_number([1])
    (0.5, nan, nan)
    """
    try:
        return float(value)
    except Exception:
        return math.nan


def as_whole(value: Any, *, most: int = 2**63 - 1) -> int | None:
    """Return the value as an int from -most to most, or None; True and 1.0 are not whole numbers.

    >>> as_whole(3), as_whole(True), as_whole(2.0), as_whole(10**30)
    (3, None, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        number = operator.index(value)
    except Exception:
        return None
    return number if abs(number) <= most else None


def pair(value: Any) -> tuple[Any, Any] | None:
    """Return the two values of a pair, or None if it is not a pair.

    >>> pair((0, 1)), pair("ab"), pair(7)
    ((0, 1), None, None)
    """
    try:
        first, second = value
    except Exception:
        return None
    return None if isinstance(value, str | bytes | dict | set) else (first, second)


def is_one_of(value: object, names: Collection[str]) -> bool:
    """Return whether it is one of the names; never raises.

    >>> is_one_of("a", ("a", "b")), is_one_of(["a"], {"a": 1})
    (True, False)
    """
    return isinstance(value, str) and value in names


def as_array(values: object, *, name: str) -> "Array":
    """Return an array of the values, or an error that quotes none of them."""
    import numpy as np

    try:
        return np.asarray(values)
    except Exception:
        pass  # raised outside, so that not even its context holds NumPy's message
    raise ArgumentError(f"{name} must be a list of values. Pass one per row.")


def as_numbers(values: object, *, name: str) -> "Floats":
    """Return an array of doubles, or an error that quotes none of the values.

    >>> as_numbers([1, "0.5"], name="recall").tolist()
    [1.0, 0.5]
    """
    import numpy as np

    array = as_array(values, name=name)
    if array.dtype.kind not in _NOT_NUMBERS:
        with contextlib.suppress(Exception):
            return np.asarray(array, dtype=np.float64)
    raise ArgumentError(f"{name} must be numbers. Pass a list of numbers.")


def check_columns(columns: Mapping[str, "Array"], *, show_lengths: bool) -> None:
    """Refuse columns of a table that are not one-dimensional and equally long.

    Lengths are shown only where the number of rows is public.
    """
    for name, column in columns.items():
        if column.ndim == 2 and column.shape[1] == 2:
            raise ArgumentError(f"{name} has 2 columns. Pass the positive class: {name}[:, 1].")
        if column.ndim != 1:
            raise ArgumentError(
                f"{name} must be one-dimensional, got {column.ndim} dimensions. Pass one value "
                f"per row, such as {name}.ravel()."
            )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown_lengths = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        got = f", got {shown_lengths}" if show_lengths else ""
        raise ArgumentError(f"{' and '.join(lengths)} must have the same length{got}.")


def as_edges(values: object, *, name: str) -> "Floats":
    """Return an array of doubles, each more than the one before: where cells begin and end."""
    import numpy as np

    edges = as_numbers(values, name=name)
    finite = edges.ndim == 1 and edges.size > 1 and np.isfinite(edges).all()
    if not finite or not (np.diff(edges) > 0).all():
        raise ArgumentError(f"{name} must be two or more finite numbers that rise. Sort them.")
    return edges


def no_such(what: str, name: object, names: Sequence[str], *, most: int = 20) -> str:
    """Say that a name is not there, which one may be meant, and which there are.

    >>> no_such("column", "lable", ["label", "score"])
    "No column 'lable'. Did you mean 'label'? Columns: 'label', 'score'."
    """
    listed = ", ".join(shown(name) for name in names[:most])
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    listed = f" {what.capitalize()}s: {listed}{more}." if names else ""
    return f"No {what} {shown(name)}.{guess(name, names)}{listed}"


def guess(given: object, names: Iterable[str]) -> str:
    """Return which of the names may be meant, as a sentence for the end of a message, or nothing.

    >>> guess("acuracy", ["accuracy", "brier"]), guess("acc", ["auc", "accuracy"])
    (" Did you mean 'accuracy'?", " Did you mean 'accuracy'?")
    >>> guess("lable", ["table", "label"])
    " Did you mean 'label'?"
    """
    if not isinstance(given, str):
        return ""
    spelt = {name.lower(): name for name in names}
    short = given.strip().lower()
    begun = [name for name in spelt if len(short) > 2 and name.startswith(short)]
    near = begun or get_close_matches(short, spelt)
    near = [name for name in near if sorted(name) == sorted(short)] or near  # letters swapped
    return f" Did you mean {shown(spelt[near[0]])}?" if near else ""


def no_attribute(place: str, name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module or an object does not have.

    >>> print(no_attribute("module 'heldout.regression'", "fti", ["fit", "metrics"]))
    module 'heldout.regression' has no attribute 'fti'. Did you mean 'fit'?
    """
    meant = "" if name.startswith("_") else guess(name, names)
    return AttributeError(f"{place} has no attribute {name!r}{'.' if meant else ''}{meant}")


def refuse_unknown(kind: type, given: Collection[str], advice: str = "") -> None:
    """Refuse a named argument that no constructor of a class takes."""
    makers = [
        inspect.signature(vars(base)["__init__"])
        for base in kind.__mro__[:-1]
        if "__init__" in vars(base)
    ]
    known = {
        name: 0
        for maker in makers
        for name, one in list(maker.parameters.items())[1:]
        if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)
    }
    for name in given:
        if name not in known:
            raise ArgumentError(f"{no_such('argument', name, list(known))} {advice}".strip())


# Rules of public arguments: a rule reads a value or refuses it by name.
#
# A rule also knows its JSON schema, and how to read what somebody typed, so that the command line,
# the API and the pages need no list of their own.
MOST_ROWS = 2**53  # so many are still exact as doubles
_NARROWEST, _WIDEST = 1e-150, 1e150
_YES, _NO = {"yes", "true", "1", "on"}, {"no", "false", "0", "off"}
Schema = dict[str, Any]


class Rule(ABC):
    """Reads one argument, or refuses it by name."""

    takes_several: ClassVar[bool] = False
    """Whether more than one word may be typed for it."""
    option: ClassVar[str | None] = None
    """Its spelling on the command line, where the field's own name would mislead."""
    takes_file: ClassVar[bool] = False
    """True if a file is sent for it, which `from_cells` reads, instead of typing it into a page."""

    @abstractmethod
    def __call__(self, value: Any, name: str) -> object:
        """Return the value as it is stored; raise ArgumentError where it is not allowed."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON schema of what may be sent."""

    def from_words(self, words: Sequence[str], name: str) -> object:
        """Read what somebody typed: one word, or several where `takes_several`."""
        if self.takes_several:
            return self(list(words), name)
        if len(words) != 1:
            raise ArgumentError(f"{name} takes one value, got {len(words)}.")
        return self(words[0], name)

    def from_cells(self, cells: Mapping[str, Sequence[str]], about: Any, name: str) -> object:
        """Read the columns of a file, as the public facts of the rows say what they hold."""
        raise ArgumentError(f"{name} takes no file.")

    def from_command(self, words: Sequence[str], name: str) -> object:
        """Read words of a command line, whose files may be opened; a server calls `from_words`."""
        return self.from_words(words, name)


@dataclass(frozen=True)
class Whole(Rule):
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

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def from_words(self, words: Sequence[str], name: str) -> int:
        typed = words[0].replace(",", "") if len(words) == 1 else ""
        short = len(typed) <= len(str(self.most))  # Python refuses to read thousands of digits
        return self(int(typed) if typed.isdecimal() and short else " ".join(words), name)


@dataclass(frozen=True)
class Number(Rule):
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

    def schema(self) -> Schema:
        limits = {"minimum": self.least, "maximum": self.most}
        finite = {name: limit for name, limit in limits.items() if math.isfinite(limit)}
        return {"type": "number", **finite}


@dataclass(frozen=True)
class Numbers(Rule):
    """Finite numbers, one or more, from the least to the largest.

    >>> Numbers()([0.5, 0.2, 0.5], "thresholds")
    (0.2, 0.5)
    """

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> tuple[float, ...]:
        several = value if isinstance(value, list | tuple) else [value]
        if not several:
            raise ArgumentError(f"{name} must have a number. Or leave it out.")
        return tuple(sorted({Number()(number, name) for number in several}))

    def schema(self) -> Schema:
        return {"type": "array", "items": {"type": "number"}, "minItems": 1}


@dataclass(frozen=True)
class Wholes(Rule):
    """Whole numbers, in the order given.

    >>> Wholes()([3, 1, 3], "columns")
    (3, 1, 3)
    """

    least: int = 0
    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> tuple[int, ...]:
        several = value if isinstance(value, list | tuple) else [value]
        return tuple(Whole(self.least, 2**20)(number, name) for number in several)

    def schema(self) -> Schema:
        return {"type": "array", "items": Whole(self.least, 2**20).schema()}

    def from_words(self, words: Sequence[str], name: str) -> tuple[int, ...]:
        typed = [part for word in words for part in word.replace(",", " ").split()]
        return tuple(Whole(self.least, 2**20).from_words([part], name) for part in typed)


@dataclass(frozen=True)
class Share(Rule):
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

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


@dataclass(frozen=True)
class OneOf(Rule):
    """One of these words."""

    words: Collection[str]
    advice: str = ""

    def __call__(self, value: Any, name: str) -> str:
        if not is_one_of(value, self.words):
            known, meant = ", ".join(self.words), guess(value, self.words)
            raise ArgumentError(
                f"{name} must be one of {known}, got {shown(value)}.{meant} {self.advice}".strip()
            )
        return str(value)

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Choices(Rule):
    """Some of these words, at least one, in the order of the words."""

    words: tuple[str, ...]

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> tuple[str, ...]:
        listed = isinstance(value, list | tuple | set | frozenset)
        given = [value] if isinstance(value, str) else list(value) if listed else []
        if not given or not all(is_one_of(word, self.words) for word in given):
            wrong = next((word for word in given if not is_one_of(word, self.words)), None)
            raise ArgumentError(
                f"{name} must be some of {', '.join(self.words)}, got {shown(value)}."
                f"{guess(wrong, self.words)}"
            )
        return tuple(word for word in self.words if word in given)

    def schema(self) -> Schema:
        items = {"type": "string", "enum": list(self.words)}
        return {"type": "array", "items": items, "minItems": 1}


@dataclass(frozen=True)
class Text(Rule):
    """A text, such as the name of a column."""

    what: str = "a text"

    def __call__(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{name} must be {self.what}, got a {type(value).__name__}.")
        return value

    def schema(self) -> Schema:
        return {"type": "string"}


@dataclass(frozen=True)
class Columns(Rule):
    """The name of a column, or of several."""

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> str | tuple[str, ...]:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ArgumentError(f"{name} must be a column or a list of them, got {shown(value)}.")
        if not names:
            raise ArgumentError(f"{name} must name a column. Or leave it out.")
        return names[0] if len(names) == 1 else tuple(names)

    def schema(self) -> Schema:
        several = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        return {"anyOf": [{"type": "string"}, several]}


@dataclass(frozen=True)
class Intervals(Rule):
    """Publicly known intervals by name; of a residual one number will do, alike on both sides."""

    names: tuple[str, str]

    takes_several: ClassVar[bool] = True

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
        return {
            key: _interval(interval, key) for key, interval in value.items() if interval is not None
        }

    def schema(self) -> Schema:
        ends = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
        one = {"anyOf": [ends, {"type": "number"}, {"type": "null"}]}
        properties = dict.fromkeys(self.names, one)
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def from_words(self, words: Sequence[str], name: str) -> object:
        """Read `residual=20` or `predicted=0,100`."""
        typed: dict[str, Any] = {}
        for key, ends in _by_name(words, name, "residual=20"):
            numbers = ends.split(",")
            typed[key] = numbers[0] if len(numbers) == 1 else tuple(numbers)
        return self(typed, name)


def _by_name(words: Sequence[str], name: str, like: str) -> Iterator[tuple[str, str]]:
    """Yield what was typed as name=value."""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ArgumentError(f"{name} must look like {like}, got {shown(word)}.")
        yield key, value


def _interval(value: Any, name: str) -> tuple[float, float]:
    if name == "residual" and not isinstance(value, tuple | list):
        value = (-as_number(value), as_number(value))
    pair = isinstance(value, tuple | list) and len(value) == 2
    low, high = (as_number(end) for end in value) if pair else (math.nan, math.nan)
    width = high - low
    if not (_NARROWEST <= width <= _WIDEST) or max(abs(low), abs(high)) > 1e9 * width:
        raise ArgumentError(
            f"bounds of {name} must be two finite numbers, the lower first, got {shown(value)}."
        )
    return (low, high)


@dataclass(frozen=True)
class Ends(Rule):
    """Two numbers, the lower first, between which something lies.

    >>> Ends()([0, 1], "bounds")
    (0.0, 1.0)
    """

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> tuple[float, float]:
        return _interval(value, name)

    def schema(self) -> Schema:
        return {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


_MOST_WORDS = 50


@dataclass(frozen=True)
class Values(Rule):
    """Columns of numbers with the bounds of each, or of words with the number that each stands for.

    >>> Values()({"dice": (0, 1), "winner": {"A": 0, "tie": 0.5, "B": 1}}, "values")["winner"]
    {'A': 0.0, 'tie': 0.5, 'B': 1.0}
    >>> Values().from_words(["dice=0,1", "winner=A:0,tie:0.5,B:1"], "values")["dice"]
    (0.0, 1.0)
    """

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> dict[str, tuple[float, float] | dict[str, float]]:
        named = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
        if not named or not value:
            raise ArgumentError(
                f"{name} must be bounds by column, such as {{'dice': (0, 1)}}, got {shown(value)}."
            )
        return {key: _value(item, f"{name}[{key!r}]") for key, item in value.items()}

    def schema(self) -> Schema:
        words = {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 2}
        one = {"anyOf": [Ends().schema(), words]}
        return {"type": "object", "additionalProperties": one, "minProperties": 1}

    def from_words(self, words: Sequence[str], name: str) -> object:
        """Read `dice=0,1`, or `winner=A:0,tie:0.5,B:1`."""
        typed: dict[str, Any] = {}
        for word in words:
            key, equals, content = word.partition("=")
            parts = content.split(",")
            pairs = [part.rpartition(":") for part in parts]
            mapped = any(colon for _, colon, _ in pairs)
            are_words = not mapped and any(math.isnan(as_number(part)) for part in parts)
            if not equals or are_words:
                coded = [f"{part}:{place}" for place, part in enumerate(parts)]
                coded = coded if equals and all(parts) else ["single:0", "married:1"]
                column = key if equals and are_words else "marital"
                raise ArgumentError(
                    f"{name} must have two bounds for a column of numbers, such as age=0,120, or "
                    f"a number for each word of a column of words, such as "
                    f"{visible(column)}={visible(','.join(coded))}, got {shown(word)}."
                )
            typed[key] = {cell: number for cell, _, number in pairs} if mapped else tuple(parts)
        return self(typed, name)


def _value(value: Any, name: str) -> tuple[float, float] | dict[str, float]:
    if not isinstance(value, Mapping):
        return _interval(value, name)
    numbers = {str(word): as_number(number) for word, number in value.items()}
    if len(numbers) < len(value) or not 2 <= len(numbers) <= _MOST_WORDS:
        raise ArgumentError(
            f"{name} must have 2 to {_MOST_WORDS} different words, with a number for each."
        )
    _interval((min(numbers.values()), max(numbers.values())), name)
    return numbers


@dataclass(frozen=True)
class Grid(Rule):
    """Cells of the residual and of the predicted value; one number stands for both."""

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> tuple[int, int]:
        pair = (value, value) if as_whole(value) is not None else value
        if isinstance(pair, tuple | list) and len(pair) == 2:
            down, across = (as_whole(count, most=256) for count in pair)
            if down is not None and across is not None and min(down, across) >= 1:
                return down, across
        raise ArgumentError(
            f"{name} must be whole numbers of cells from 1 to 256, got {shown(value)}."
        )

    def schema(self) -> Schema:
        cells = {"type": "integer", "minimum": 1, "maximum": 256}
        pair = {"type": "array", "items": cells, "minItems": 2, "maxItems": 2}
        return {"anyOf": [cells, pair]}

    def from_words(self, words: Sequence[str], name: str) -> object:
        return self(words[0] if len(words) == 1 else list(words), name)


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def __call__(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} must be True or False, got {shown(value)}.")
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def from_words(self, words: Sequence[str], name: str) -> bool:
        """Read yes or no; the name alone means yes."""
        word = words[0].lower() if words else "yes"
        if len(words) > 1 or word not in _YES | _NO:
            raise ArgumentError(f"{name} must be yes or no, got {shown(' '.join(words))}.")
        return word in _YES


@dataclass(frozen=True)
class Plain(Rule):
    """Values by name that go to JSON and back: texts, numbers, lists of them."""

    takes_several: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise ArgumentError(f"{name} must be values by name, got {shown(value)}.")
        return {key: _plain(entry) for key, entry in value.items() if entry is not None}

    def schema(self) -> Schema:
        return {"type": "object"}

    def from_words(self, words: Sequence[str], name: str) -> object:
        """Read `name=value`; a value is JSON where it can be, and else a text."""
        typed: dict[str, Any] = {}
        for key, value in _by_name(words, name, "name=value"):
            try:
                typed[key] = json.loads(value)
            except (ValueError, RecursionError):
                typed[key] = value
        return self(typed, name)


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        return tuple(_plain(entry) for entry in value)
    whole = as_whole(value)
    return value if whole is None else whole


# --- fields of a form: a name, a rule and a help text, from which shells build what people fill in


@dataclass(frozen=True)
class FormField:
    """A field of a question or of a declaration, as a form, a command or a schema needs it."""

    name: str
    rule: Rule
    help: str
    default: Any
    required: bool

    @property
    def option(self) -> str:
        """Return its spelling on the command line."""
        return self.rule.option or "--" + self.name.replace("_", "-")

    @property
    def in_sight(self) -> bool:
        """Return whether a form shows it at once: it must be given, or its default is a number.

        What else may be chosen is folded away.
        """
        return self.required or type(self.default) in (int, float)

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with its help and its default."""
        content = self.rule.schema() | {"description": self.help}
        if self.default is None and not self.required:
            inner = {name: content.pop(name) for name in list(content) if name != "description"}
            return {"anyOf": [inner, {"type": "null"}], **content}
        default = list(self.default) if isinstance(self.default, tuple) else self.default
        return content if self.required else content | {"default": default}
