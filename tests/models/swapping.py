"""The swap test: change any other row, and a score must stay the same to the last bit."""

from collections.abc import Callable
from typing import Any

import numpy as np

AWKWARD = [0.0, 1.0, -1.0, 3.0, 1e30, -1e30, 1e-42, np.inf, -np.inf, np.nan, 2.0**63]


def rows_of(kind: str, count: int, width: int, source: np.random.Generator) -> Any:
    """Rows with ordinary and awkward cells."""
    if kind == "string":
        return source.choice(["a", "b", "", "\0", "é"], (count, width)).astype(object)
    if kind.startswith("float"):
        cells = source.normal(size=(count, width)) * 3
        odd = source.random((count, width)) < 0.2
        cells[odd] = source.choice(AWKWARD, odd.sum())
        with np.errstate(all="ignore"):
            return cells.astype(kind)
    if kind == "bool":
        return source.random((count, width)) < 0.5
    return source.integers(-3, 4, (count, width)).astype(kind)


def bits(values: Any) -> Any:
    """Bits to compare: any NaN is like any other, since each becomes the default score."""
    found = np.asarray(values)
    if found.dtype.kind == "f":
        found = np.where(np.isnan(found), np.nan, found) + 0.0
    return found.reshape(len(found), -1).view(np.uint8)


def leaks(run: Callable[[Any], Any], rows: Any, others: Any) -> bool:
    """Whether a score changes when every other row does; a failure of the whole counts as well."""
    before = _or_none(run, rows)
    for keep in range(len(rows)):
        changed = others.copy()
        changed[keep] = rows[keep]
        after = _or_none(run, changed)
        if (before is None) != (after is None):
            return True
        if before is None or after is None:
            continue
        if before.shape[:1] != (len(rows),) or after.shape[:1] != (len(rows),):
            return True
        if not np.array_equal(bits(before[keep : keep + 1]), bits(after[keep : keep + 1])):
            return True
    return False


def _or_none(run: Callable[[Any], Any], rows: Any) -> Any:
    try:
        return run(rows)
    except Exception:
        return None
