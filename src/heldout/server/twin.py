"""The synthetic twin: made-up rows of a data set's columns, from its declaration alone.

It is for trying out code: the columns, the types and the declared values are right, and nothing
else is. No row was read to make it.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from heldout.data.sql import kind_of

GOLDEN = 0.6180339887498949  # its multiples fill an interval evenly, and repeat no short pattern
_MIDNIGHT = datetime(2000, 1, 1)


def twin_csv(
    columns: Mapping[str, str], declaration: Mapping[str, Any], rows: int = 20
) -> Iterator[str]:
    """Return the lines of a CSV file: a header, then `rows` made-up rows.

    `declaration` has the words of `heldout.Dataset` (label, positive, negative, classes, groups,
    score, scores, score_range, unit, row_key, rows_per_unit, ...) and `features`, by column: a
    range of numbers such as [0, 120], or a list of texts. The same each time.

    >>> list(twin_csv({"id": "key", "sex": "text", "y": "number"},
    ...               {"row_key": "id", "label": "y", "groups": {"sex": ["F", "M"]}}, rows=2))
    ['id,sex,y\\r\\n', '1,F,0\\r\\n', '2,M,1\\r\\n']
    """
    makers = [
        _maker(place, name, kind, declaration) for place, (name, kind) in enumerate(columns.items())
    ]
    made: Iterator[list[Any]] = ([make(number) for make in makers] for number in range(rows))
    for cells in chain([list(columns)], made):
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        yield line.getvalue()


def _maker(
    place: int, name: str, kind: str, declaration: Mapping[str, Any]
) -> Callable[[int], object]:
    """Return what the n-th row has in a column."""
    values = _values(name, declaration)
    if values is not None:
        step = place if len(values) > 2 else 0  # two columns of three values are no copies
        return lambda n: _cell(values[(n + step * (n // len(values))) % len(values)])
    if name == declaration.get("row_key"):
        return lambda n: n + 1
    if name == declaration.get("unit"):
        most = max(int(declaration.get("rows_per_unit") or 1), 1)
        return lambda n: n // most + 1
    low, high = _range(name, declaration)

    def number(n: int) -> float:
        return low + ((n + 1) * GOLDEN + place * GOLDEN * GOLDEN) % 1.0 * (high - low)

    sort = kind_of(kind)
    whole = sort == "number" and high - low > 1
    cell = int if whole else _KINDS.get(sort, lambda number: "")
    return lambda n: cell(number(n))


def _share(number: float) -> float:
    """Return a number as a share of the range that a column without a declared one has."""
    return number % 100.0 / 100.0


_KINDS: Mapping[str, Callable[[float], object]] = {
    "number": lambda number: round(number, 4),
    "boolean": lambda number: _cell(_share(number) < 0.5),
    "time": lambda number: _MIDNIGHT + timedelta(hours=int(8760 * _share(number))),
    "text": lambda number: f"text {int(5 * _share(number)) + 1}",
}


def _values(name: str, declaration: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that are declared for a column, or None."""
    if name == declaration.get("label") or name == declaration.get("truth"):
        classes = declaration.get("classes")
        if classes:
            return list(classes)
        positive, negative = declaration.get("positive"), declaration.get("negative")
        positive = 1 if positive is None else positive
        return [_other(positive) if negative is None else negative, positive]
    for declared in (declaration.get("groups"), declaration.get("features")):
        values = declared.get(name) if isinstance(declared, Mapping) else None
        if values and not (declared is declaration.get("features") and _numbers(values)):
            return list(values)
    return None


def _other(positive: object) -> object:
    """Some value that is not the positive one, of its kind."""
    if isinstance(positive, bool):
        return not positive
    if isinstance(positive, str):
        return f"not {positive}"
    return 0 if positive else 1


def _range(name: str, declaration: Mapping[str, Any]) -> tuple[float, float]:
    """Return the declared range of a column; 0 to 1 for scores, 0 to 100 for other numbers."""
    features = declaration.get("features")
    declared = features.get(name) if isinstance(features, Mapping) else None
    scores = [declaration.get("score"), *(declaration.get("scores") or ())]
    if declared is None and name in scores:
        declared = declaration.get("score_range") or (0, 1)
    if declared is None and name in (declaration.get("observed"), declaration.get("predicted")):
        declared = declaration.get("bounds")
    low, high = declared if declared is not None and _numbers(declared) else (0, 100)
    return float(low), float(high)


def _numbers(declared: object) -> bool:
    """Return whether it is a range: two numbers."""
    return (
        isinstance(declared, list | tuple)
        and len(declared) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) for end in declared)
    )


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
