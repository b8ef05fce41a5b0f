"""Columns of Python's own values: no cell changes what another one is.

A library that makes a typed column of them looks at all cells first: one 17.0 makes doubles of all
integers, one day among times cuts the others' hours off. Here a number keeps its value whatever
the others are, and values of two kinds are refused, to the custodian, who opens the table.
"""

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from heldout.errors import UnreadableTable

if TYPE_CHECKING:
    import pyarrow

DIGITS: Final = 38
"""Of a decimal number, in DuckDB and in Arrow."""
_EXACT: Final = 2**53
_KINDS: Final = (
    (bool, "truth values"),
    ((int, float, Decimal), "numbers"),
    (str, "texts"),
    (datetime.datetime, "times"),
    (datetime.date, "days"),
)


def is_of_objects(values: Any) -> bool:
    """Return whether a column has no type of its own: Python objects, in whatever holds them.

    >>> is_of_objects([1, 17.0]), is_of_objects(range(3))
    (True, True)
    """
    kind = getattr(values, "dtype", None)
    if kind is None:  # a list or the like; Arrow's columns have a type
        return isinstance(values, Iterable) and not hasattr(values, "type")
    categories = getattr(kind, "categories", None)
    return str(getattr(categories, "dtype", kind)) == "object"


def arrow_column(values: Iterable[Any], name: str) -> "pyarrow.Array":
    """An Arrow column of Python values, each of which keeps its own value.

    >>> arrow_column([1, 2.5], "x").type, arrow_column([2**53 + 1, 2.5], "x").to_pylist()
    (DataType(double), [Decimal('9007199254740993.0'), Decimal('2.5')])
    >>> arrow_column([1, "a"], "x")
    Traceback (most recent call last):
    heldout.errors.UnreadableTable: column 'x' must hold values of one kind, ...
    """
    import pyarrow

    cells = list(values)
    types = set(map(type, cells)) - {type(None)}
    if types not in ({str}, {bool}):
        cells = [_plain(cell) for cell in cells]
        types = set(map(type, cells)) - {type(None)}
    kinds = {_kind(kind) for kind in types}
    if "times" in kinds and len({_has_zone(cell) for cell in cells if cell is not None}) > 1:
        kinds.add("times with a zone")  # Arrow would give all of them one, or none
    if len(kinds) > 1:
        raise UnreadableTable(
            f"column {name!r} must hold values of one kind, but some are numbers and some texts, "
            "or the like. Make all of them texts, or all numbers."
        )
    return pyarrow.array(_numbers(cells, name) if kinds == {"numbers"} else cells)


def _plain(value: Any) -> object:
    """A scalar of NumPy or pandas as Python's own; None for what is missing."""
    kind = type(value)
    if kind is int or kind is str:
        return value
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float | Decimal):
        return None if math.isnan(value) else value
    return None if kind.__name__ in ("NAType", "NaTType") else value


def _kind(own: type) -> str:
    return next((kind for kinds, kind in _KINDS if issubclass(own, kinds)), own.__name__)


def _has_zone(cell: Any) -> bool:
    return getattr(cell, "tzinfo", None) is not None


def _numbers(cells: Sequence[Any], name: str) -> Sequence[Any]:
    """The numbers as they are where a type holds them all; else as decimals, which are exact."""
    numbers = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, int) and -(2**63) <= cell < 2**63 for cell in numbers):
        return cells
    if all(isinstance(cell, float) or _is_exact(cell) for cell in numbers):
        return [None if cell is None else float(cell) for cell in cells]
    decimals = [None if cell is None else _decimal(cell) for cell in cells]
    known = [cell for cell in decimals if cell is not None]
    finite = all(cell.is_finite() for cell in known)
    scale = max((-int(cell.as_tuple().exponent) for cell in known if finite), default=0)
    whole = max((cell.adjusted() + 1 for cell in known if finite), default=1)
    if not finite or max(scale, 0) + max(whole, 1) > DIGITS:
        raise UnreadableTable(
            f"column {name!r} must hold numbers of at most {DIGITS} digits where some are decimals "
            "or beyond 64 bits. Round them, or make them texts."
        )
    return decimals


def _is_exact(cell: Any) -> bool:
    return isinstance(cell, int) and abs(cell) < _EXACT


def _decimal(cell: Any) -> Decimal:
    """The digits that `heldout.data.sql.canonical` writes of a double: all, if it is whole."""
    return Decimal(repr(cell) if isinstance(cell, float) and not cell.is_integer() else cell)
