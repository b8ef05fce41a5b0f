"""Describes private rows in public: a value that holds no row and leads to none.

Questions are priced from it, releases and reports carry it, and an analyst's session shows it in
the place of the rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from functools import reduce
from importlib import import_module
from itertools import product
from typing import Any, ClassVar, Final

from heldout.arguments import (
    FormField,
    Text,
    Values,
    as_number,
    as_whole,
    guess,
    is_one_of,
    no_such,
    shown,
)
from heldout.data import sql
from heldout.data.scores import FURTHEST, ScoreMap, ends_of, grid_point
from heldout.errors import ArgumentError, UndeclaredRival
from heldout.kernel.neighbours import Protection

# Groups of rows by declared values of a column; every other value is in the group "other".
OTHER: Final = "other"
MEMBER: Final = "member"
"""Name of the number of a row's group in statements."""
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

    Without any, they are numbers within bounds.

    >>> kind_declared("F", "M"), kind_declared(1, 0), kind_declared(True, False), kind_declared()
    ('text', 'number', 'boolean', 'number')
    """
    if values and all(isinstance(value, bool) for value in values):
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
                f"groups[{name!r}] must be different values, none of them {OTHER!r}, the "
                "group of all values that are not declared."
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
                f"by must be one of the declared groups ({known}), got {shown(name)}."
                f"{guess(name, declared)} Declare its values: groups={{{shown(name)}: [...]}}."
            )
    chosen = tuple(declared[name] for name in names)
    crossed = crossed_names(chosen)
    if len(set(names)) < len(names) or len(crossed) > _MOST:
        raise ArgumentError(f"by must name different columns, at most {_MOST:,} groups in all.")
    if len(set(crossed)) < len(crossed):
        raise ArgumentError("Two groups of by= would have the same name. Declare other values.")
    return chosen


@dataclass(frozen=True)
class ValueRange:
    """Where a declared value of a row lies; `words` are those of a column of words. Public."""

    low: float
    high: float
    words: Mapping[str, float] = field(default_factory=dict)
    """The number that each word stands for; none where the column holds numbers."""

    @property
    def ends(self) -> tuple[float, float]:
        return (self.low, self.high)

    @property
    def named(self) -> dict[float, str]:
        """Return a word for each number, from the least: of several the first in the alphabet."""
        words = sorted(self.words, reverse=True)
        named = {self.words[word]: word for word in words}
        return {number: named[number] for number in sorted(named)}


@dataclass(frozen=True, kw_only=True)
class Description:
    """The public facts of a private table of any kind."""

    rows_in_words: ClassVar[str] = "private rows"
    """Such rows in words, for messages."""
    declares: ClassVar[tuple[FormField, ...]] = ()
    """Arguments by which a custodian describes such rows, beside unit, groups and weights:
    arguments of `opened_by`. A command or a form is made of it."""
    opened_by: ClassVar[str] = ""
    """The private table that holds such rows, as module:class; none if shells open it by hand."""
    takes_model: ClassVar[bool] = False
    """Whether a model is judged on them: its scores or predictions are one of the columns."""
    name: str
    protection: Protection
    rows: int | None
    """Their number, where the neighbouring relation makes it public."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The declared columns, each by its kind: a key, numbers, texts, truth values."""
    remote: bool = False
    """Whether the rows are in a database or a cluster, from where only counts should travel."""
    groups: Mapping[str, Groups] = field(default_factory=dict)
    """Columns by which questions may be asked, with their declared values."""
    weight: str | None = None
    largest_weight: float = 1.0
    model: str | None = field(init=False, default=None)
    """Whose answers are judged: the column with a model's scores or predictions."""

    @classmethod
    def table_type(cls) -> Any:
        """Return the class of private tables that hold such rows, by `opened_by`."""
        module, _, name = cls.opened_by.partition(":")
        return getattr(import_module(module), name)

    def check_weight(self) -> None:
        """Refuse a weighted question of rows without weights."""
        if self.weight is None:
            raise ArgumentError(
                "These rows have no weights. Declare weight= and largest_weight= of the data set."
            )

    def group_names(self, by: str | tuple[str, ...]) -> tuple[str, ...]:
        """Return what people call the groups of a question."""
        return crossed_names(chosen_groups(self.groups, by))

    @property
    def scale(self) -> float:
        """Return how large the numbers are that answers are about: 1 for scores and shares."""
        return 1.0

    @property
    def names(self) -> tuple[str | None, ...]:
        """Of the data and of what people see of it: a page may call them otherwise."""
        own = (getattr(self, field, None) for field in ("score", "label"))
        return (self.name, *own, self.protection.unit_name)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        facts = {"data": self.name, "protection": self.protection.as_dict(), "rows": self.rows}
        declared = {name: list(groups.names) for name, groups in self.groups.items()}
        return facts | ({"groups": declared} if declared else {})


@dataclass(frozen=True, kw_only=True)
class ScoredRows(Description):
    """Rows with a label and a score."""

    rows_in_words: ClassVar[str] = "rows with a label of two values and a score"
    takes_model: ClassVar[bool] = True
    label: str
    score: str
    score_range: tuple[float, float] = (0.0, 1.0)
    score_map: ScoreMap | None = None
    out_of_range: str = "refuse"
    rivals: tuple[str, ...] = ()
    """Columns that another model's scores may be read from: those that were declared."""
    rival_scales: Mapping[str, tuple[float, float] | ScoreMap] | None = None
    """The scales of rivals that have another one than the first model, by column."""
    score_values: tuple[float, ...] = ()
    """All values that a score can take, where the custodian declared them; they rise."""
    scale_parameters: dict[str, Any] = field(init=False, default_factory=dict)
    """Declarations about the scores beside a range: public, and booked with each release."""
    declared_points: tuple[int, ...] = field(init=False)
    """Where the public grid counts the declared values."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.score)
        object.__setattr__(self, "declared_points", self.grid_points(self.score_values))
        if self.score_map is not None:
            self.scale_parameters["score_map"] = [self.score_map.centre, self.score_map.scale]
        if self.out_of_range == "clip":
            self.scale_parameters["out_of_range"] = "clip"
        if self.score_values:
            self.scale_parameters["score_values"] = list(self.score_values)

    @property
    def middle(self) -> float:
        """The middle of the range, or the map's centre, in the scores' own unit."""
        low, high = self.score_range
        return low + (high - low) / 2 if self.score_map is None else self.score_map.centre

    @property
    def are_probabilities(self) -> bool:
        """Return whether scores lie between 0 and 1, as probabilities do."""
        return self.score_range == (0.0, 1.0) and self.score_map is None

    def threshold(self, given: Any) -> float:
        """A threshold in the scores' own unit, checked: within the range, or any finite number."""
        low, high = (-FURTHEST, FURTHEST) if self.score_map else self.score_range
        number = as_number(given)
        if not low <= number <= high:
            range_name = "the map's reach" if self.score_map else "score_range"
            raise ArgumentError(
                f"threshold must lie within {range_name} ({low:g}, {high:g}), got {shown(given)}."
            )
        return number

    def check_rival(self, score: str) -> None:
        """Refuse a column that was not declared, and so never validated."""
        if not is_one_of(score, (self.score, *self.rivals)):
            raise UndeclaredRival(
                f"score must be one of the data set's declared rivals, got {shown(score)}, "
                f"which was never validated. Declare rivals=[{shown(score)}], and if its scale "
                f"differs, its range too: score_range={{{shown(score)}: (1, 10)}}."
            )

    def rival_range(self, score: str) -> tuple[float, float]:
        """Return the range of what a rival's scores count as."""
        return ends_of((self.rival_scales or {}).get(score, self.score_range))

    def rival_parameters(self, score: str) -> dict[str, Any]:
        """Return what is declared of a rival: public, and booked with a comparison."""
        scale = (self.rival_scales or {}).get(score)
        if scale is None:
            return {"rival": score}
        if isinstance(scale, ScoreMap):
            return {"rival": score, "rival_map": [scale.centre, scale.scale]}
        return {"rival": score, "rival_range": list(scale)}

    def counted_threshold(self, threshold: float) -> float:
        """Return what scores are compared with once they are mapped."""
        return threshold if self.score_map is None else self.score_map.image(threshold)

    def grid_points(self, scores: Iterable[float]) -> tuple[int, ...]:
        """Return where the public grid counts these scores, each point once; thresholds too."""
        places = (grid_point(score, score_range=self.score_range) for score in scores)
        return tuple(sorted(set(places)))

    def scores_in_words(self) -> str:
        """Say in words what a score may be, and what became of the others."""
        low, high = self.score_range
        if self.score_map is None:
            rest = ", scores beyond it set to the nearer end" if self.out_of_range == "clip" else ""
            return f"from {low:g} to {high:g}{rest}"
        rest = ", infinite ones set to the nearer end" if self.out_of_range == "clip" else ""
        return f"of any size{rest}, ranked by {self.score_map.describe()}"

    def as_dict(self) -> dict[str, Any]:
        mapped = self.scale_parameters.get("score_map")
        return super().as_dict() | {
            "label": self.label,
            "score": self.score,
            "score_range": list(self.score_range),
            "score_map": mapped,
            "out_of_range": self.out_of_range,
            **({"score_values": list(self.score_values)} if self.score_values else {}),
        }


VALUES: Final = FormField(
    "values",
    Values(),
    "Columns with a number for each row and its bounds, such as dice=0,1; or with words, such as "
    "winner=A:0,tie:0.5,B:1. Public; never read off the data.",
    None,
    required=False,
)


@dataclass(frozen=True, kw_only=True)
class MeasuredRows(Description):
    """Rows with a number or more each, within declared bounds: a Dice score, a grade, a cost."""

    rows_in_words: ClassVar[str] = "rows with declared values"
    declares: ClassVar[tuple[FormField, ...]] = (VALUES,)
    opened_by: ClassVar[str] = "heldout.data.measured:MeasuredDataset"
    values: Mapping[str, ValueRange] = field(default_factory=dict)
    """The declared columns, each with its bounds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", ", ".join(self.values) or None)

    def place(self, column: str) -> int:
        """Return which of the declared values a question names, or refuse it."""
        if column not in self.values:
            raise ArgumentError(no_such("declared column", column, list(self.values)))
        return list(self.values).index(column)

    @property
    def names(self) -> tuple[str | None, ...]:
        return (self.name, *self.values, *self.groups, self.protection.unit_name)

    def as_dict(self) -> dict[str, Any]:
        declared = {
            name: dict(value.words) or list(value.ends) for name, value in self.values.items()
        }
        return super().as_dict() | ({"values": declared} if declared else {})


@dataclass(frozen=True, kw_only=True)
class SurvivalRows(MeasuredRows):
    """Rows with a time and whether an event came then; perhaps with a risk, and declared values."""

    rows_in_words: ClassVar[str] = "rows with a time to an event"
    declares: ClassVar[tuple[FormField, ...]] = (
        FormField("time", Text("a column"), "Column with the time, from 0.", None, required=True),
        FormField(
            "event",
            Text("a column"),
            "Column that says whether the event came at that time (1), or the row was last seen "
            "then without it (0).",
            None,
            required=True,
        ),
        FormField(
            "score",
            Text("a column"),
            "Column with the risk that a model gives; a higher one means an earlier event.",
            None,
            required=False,
        ),
        VALUES,
    )
    opened_by: ClassVar[str] = "heldout.data.measured:SurvivalDataset"
    time: str
    event: str
    score: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "model", self.score or self.model)

    @property
    def names(self) -> tuple[str | None, ...]:
        return (*super().names, self.time, self.event, self.score)

    def as_dict(self) -> dict[str, Any]:
        own = {"time": self.time, "event": self.event, "score": self.score}
        return super().as_dict() | own
