"""Public arguments, whatever they are: read, or refused in one line that quotes no row."""

import contextlib
import math
import operator
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

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
    "is_one_of",
    "no_such",
    "pair",
    "shown",
    "visible",
]

_LONGEST = 60
_NOT_NUMBERS = "cmMV"  # complex, durations, times, records: NumPy would make doubles of most


def shown(value: object) -> str:
    """Return a value for a message: on one line, brief, and without failing itself.

    >>> shown("a\\nb"), shown(0.5), shown(10**5000), shown(Fraction(1, 3))
    ("'a\\\\nb'", '0.5', 'a long int', '1/3')
    """
    try:
        text = str(value) if isinstance(value, Fraction | Decimal) else repr(value)
    except Exception:
        return f"a long {type(value).__name__}"
    text = visible(" ".join(text.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


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
        raise ArgumentError(f"{' and '.join(lengths)} must be equally long{got}.")


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
    near = get_close_matches(name, names, n=1) if isinstance(name, str) else []
    meant = f" Did you mean {shown(near[0])}?" if near else ""
    listed = ", ".join(shown(name) for name in names[:most])
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return f"No {what} {shown(name)}.{meant} {what.capitalize()}s: {listed}{more}."
