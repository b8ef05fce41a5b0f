"""What every engine must do while it reads private rows: fail without saying why."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from heldout.arguments import shown
from heldout.errors import ArgumentError, HeldoutError, UnreadableTable

T = TypeVar("T")

HOUR = 3600.0
LONGEST = 2_000_000  # seconds; PostgreSQL counts milliseconds in 32 bits

MOST_COLUMNS = 4096
"""A CSV file of so many takes 1.3 GB and 5 seconds to open, and every further column its share."""


def or_raise(action: Callable[[], T], error: Callable[[], HeldoutError]) -> T:
    """Run it; if it fails, raise our error without the library's own, which may quote a cell.

    It is raised outside the handler, so that not even its context holds the library's message.
    What Ctrl-C stopped did not fail: DuckDB tells of it by an error of its own.
    """
    stopped = False
    try:
        return action()
    except HeldoutError:
        raise
    except Exception as failure:
        stopped = "Interrupt" in type(failure).__name__ or str(failure)[:10] == "INTERRUPT "
    raise KeyboardInterrupt if stopped else error()


def check_names(names: Sequence[str], where: str) -> None:
    """Columns that an engine would rename or confuse are refused, and more than it can hold."""
    if len(names) > MOST_COLUMNS:
        raise UnreadableTable(
            f"columns of {where} must be at most {MOST_COLUMNS:,}, got {len(names):,}. Keep the "
            "label, the score and the keys, and leave out what is not needed."
        )
    if not all(names) or "\0" in "".join(names):
        raise UnreadableTable(
            f"columns of {where} must have names, and no NUL in them. Rename those that have not."
        )
    if len({name.lower() for name in names}) < len(names):
        raise UnreadableTable(
            f"columns of {where} must have distinct names, whatever their case. Rename the copies."
        )


def check_new(name: str, columns: Sequence[str]) -> None:
    """A column of scores that is to be written must not be there already."""
    if name.lower() in {each.lower() for each in columns}:
        raise UnreadableTable(
            f"The table has a column {name!r} already. Give the model's scores another name: "
            "into=, on the command line --score NAME."
        )


def as_numpy(column: Any) -> Any:
    """An Arrow column as NumPy holds it, masked where it is NULL."""
    import numpy as np

    if column.null_count:
        filled = [0 if value is None else value for value in column.to_pylist()]
        return np.ma.array(filled, mask=np.asarray(column.is_null()))
    # Arrow's own conversion imports pandas, which takes a third of a second.
    return np.from_dlpack(column) if _plain(column) else column.to_numpy(zero_copy_only=False)


def _plain(column: Any) -> bool:
    numbers = str(column.type).startswith(("int", "uint", "double"))
    return numbers and not column.null_count and hasattr(column, "__dlpack__")


def taken(column: Any, places: Any) -> Any:
    """The cells of an Arrow column at these places; NumPy takes numbers in a third of the time."""
    import pyarrow

    if _plain(column):
        return pyarrow.array(as_numpy(column)[places])
    return column.take(pyarrow.array(places))


def checked_timeout(timeout: float) -> float:
    """Seconds that one statement may take."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= LONGEST:
        raise ArgumentError(
            f"timeout must be a number of seconds, at most {LONGEST:,}, got {shown(timeout)}."
        )
    return float(timeout)
