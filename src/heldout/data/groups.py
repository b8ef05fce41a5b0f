"""Groups of rows by declared values of a column; every other value is in the group "other"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from functools import reduce
from itertools import product
from typing import Any, Final

from heldout.arguments import as_whole, shown, visible
from heldout.data import sql
from heldout.errors import ArgumentError

OTHER: Final = "other"
MEMBER: Final = "member"
"""What statements call the number of a row's group."""
_MOST: Final = 1000
_BETWEEN: Final = " and "


@dataclass(frozen=True)
class Groups:
    """A column and the values that are declared for it. Public; how many rows each has is not."""

    column: str
    values: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return what people call the groups, the undeclared rest last."""
        return (*map(str, self.values), OTHER)

    def member(self, column_type: str) -> str:
        """The number of a row's group: a function of its own cell that cannot fail."""
        cell = sql.column(self.column)
        tests = (sql.equals(cell, column_type, value) for value in self.cells(column_type))
        cases = " ".join(f"WHEN {test} THEN {place}" for place, test in enumerate(tests))
        return f"CASE {cases} ELSE {len(self.values)} END"

    def cells(self, column_type: str) -> tuple[Any, ...]:
        """The declared values as the column holds them, or a refusal while it is opened.

        A value that no cell of the type can equal would leave its rows in "other", paid for.
        Which cells a value that is not refused equals does not depend on the type.

        >>> Groups("b", ("True", "False")).cells("BOOLEAN")
        (True, False)
        >>> Groups("day", ("2025-01-01",)).cells("TIMESTAMP")
        ('2025-01-01 00:00:00',)
        """
        cells = tuple(_as_cell(value, column_type) for value in self.values)
        if None in cells:
            value = self.values[cells.index(None)]
            raise ArgumentError(
                f"groups[{self.column!r}] must be values of the column's type, {column_type}, got "
                f"{shown(value)}. {_advice(column_type)}"
            )
        if len(set(cells)) < len(cells):
            raise ArgumentError(
                f"groups[{self.column!r}] must be different values, but two of them are the same "
                f"to a column of type {column_type}."
            )
        return cells


def _as_cell(value: object, column_type: str) -> object:
    """A declared value that cells of the type can equal; None where none can."""
    text = value.strip() if isinstance(value, str) else None
    if column_type == "BOOLEAN":
        truth = {"true": True, "1": True, "false": False, "0": False}
        return truth.get(str(value).strip().lower())
    if sql.is_numeric(column_type):
        return value if text is None else sql.number_called(text)
    if column_type.startswith(("DATE", "TIMESTAMP")):
        return None if text is None or "ZONE" in column_type else _as_moment(text, column_type)
    return value


def _as_moment(text: str, column_type: str) -> str | None:
    """A day or a time as engines print one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    if column_type.startswith("DATE") and column_type != "DATETIME":
        return None if moment.time() != time() else f"{moment:%Y-%m-%d}"
    part = f"{moment:.%f}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{part}"


def _advice(column_type: str) -> str:
    if column_type == "BOOLEAN":
        return "Declare true and false."
    if sql.is_numeric(column_type):
        return "Declare numbers as 1 or 0.5, or make it a column of texts."
    if "ZONE" in column_type:
        return "Make it a column of texts or of days first."
    return "Declare days such as '2025-01-31', or make it a column of texts."


def kind_declared(*values: object) -> str:
    """The kind of a column's declared values, for its description.

    >>> kind_declared("F", "M"), kind_declared(1, 0), kind_declared(True, False)
    ('text', 'number', 'boolean')
    """
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    return "text" if any(isinstance(value, str) for value in values) else "number"


def crossed_names(several: Sequence[Groups]) -> tuple[str, ...]:
    """The names of groups that are crossed, in the order of `crossed_member`."""
    return tuple(_BETWEEN.join(names) for names in product(*(groups.names for groups in several)))


def crossed_member(several: Sequence[Groups], types: Mapping[str, str]) -> str:
    """The number of a row's crossed group, the last column fastest."""
    numbers = [(groups.member(types[groups.column]), len(groups.names)) for groups in several]
    return reduce(lambda a, b: (f"({a[0]}) * {b[1]} + {b[0]}", 0), numbers)[0]


def declared_groups(groups: Mapping[str, Sequence[Any]] | None) -> dict[str, Groups]:
    """Each declared column with its values, checked.

    >>> declared_groups({"sex": ["F", "M"]})["sex"].names
    ('F', 'M', 'other')
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping) or not all(isinstance(name, str) for name in groups):
        raise ArgumentError("groups must be values by column, such as {'sex': ['F', 'M']}.")
    declared = {}
    for name, values in groups.items():
        listed = tuple(values) if isinstance(values, list | tuple) else ()
        kinds = (isinstance(v, str | bool) or as_whole(v) is not None for v in listed)
        if not listed or not all(kinds):
            raise ArgumentError(
                f"groups[{name!r}] must be a list of texts, whole numbers or truth values, got "
                f"{shown(values)}."
            )
        names = [*map(str, listed), OTHER]
        if len(set(names)) < len(names):
            raise ArgumentError(
                f"groups[{name!r}] must be different values, none of them {OTHER!r}, which all "
                "that are not declared fall into."
            )
        declared[name] = Groups(name, listed)
    return declared


def chosen_groups(declared: Mapping[str, Groups], by: str | Sequence[str]) -> tuple[Groups, ...]:
    """The declared groups that a question names, or a refusal."""
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in declared:
            known = ", ".join(map(repr, declared)) or "none"
            raise ArgumentError(
                f"by must be one of the declared groups ({known}), got {shown(name)}. Declare its "
                f"values: groups={{{shown(name)}: [...]}}, or --groups {visible(name)}=... on the "
                "command line."
            )
    chosen = tuple(declared[name] for name in names)
    crossed = crossed_names(chosen)
    if len(set(names)) < len(names) or len(crossed) > _MOST:
        raise ArgumentError(f"by must name different columns, at most {_MOST:,} groups in all.")
    if len(set(crossed)) < len(crossed):
        raise ArgumentError("by must not give two groups one name. Declare other values.")
    return chosen
