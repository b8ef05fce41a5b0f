"""Declarations of a custodian: where rows are, what columns mean, what may be spent."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from heldout.arguments import Values, as_number, guess, shown
from heldout.data.classes import ClassifiedRows, class_columns, declared_classes
from heldout.data.description import Description, ScoredRows, declared_groups
from heldout.data.feature_matrix import FeatureRows
from heldout.data.measured import FittedRows
from heldout.data.scores import FURTHEST, declared_values
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.kernel import Budget
from heldout.kernel.ledger.records import checked_name
from heldout.kernel.neighbours import Neighbours
from heldout.server.parts import PARTS, Part
from heldout.server.settings import PREFIX, Settings
from heldout.server.storage import Json

OWN_VARIABLES: Final = PREFIX
"""Prefix of the variables that hold the server's own settings, its database among them."""
SPARK_TABLE: Final = re.compile(
    r"(?i)(?!(?:avro|binaryfile|csv|delta|iceberg|image|json|libsvm|orc|parquet|text|xml)[.])"
    r"[^\W\d]\w*(?:[.][^\W\d]\w*){0,2}"
)
"""To Spark parquet.`/some/file` is a table as well, wherever the file is."""
T = TypeVar("T")
SCORE: Final = "score"
"""Name of the column with a model's scores."""
ROW_NUMBER: Final = "row_number"
"""Name of the column that numbers rows if no column names them."""


# --- rules of single fields ----------------------------------------------------------------------


def _rule(words: str, is_valid: Callable[[Any], bool]) -> BeforeValidator:
    """Refuse a value in words, unless it is what they say."""

    def check(value: object, info: ValidationInfo) -> object:
        if not is_valid(value):
            raise ArgumentError(f"{info.field_name} must be {words}, got {shown(value)}.")
        return value

    return BeforeValidator(check)


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_share(value: object) -> bool:
    return bool(0 < as_number(value) < 1)


def _is_range(value: Any) -> bool:
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        return False
    return bool(-FURTHEST <= low < high <= FURTHEST)


def _are_numbers(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, list | tuple) and all(
        isinstance(number, int | float) and not isinstance(number, bool) for number in value
    )


def _are_types(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())


def _features(value: object) -> object:
    """Return the columns of models; the range or texts of a column are for the twin alone."""
    if isinstance(value, Mapping):
        if not all(item is None or isinstance(item, list) for item in value.values()):
            raise ArgumentError("features must have a range or a list of texts each, or null.")
        value = list(value)
    listed = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    if not listed and value is not None:
        raise ArgumentError("features must be a list of columns, or {column: [low, high]}.")
    return value


def _groups(value: Any) -> object:
    declared_groups(value)
    return value


def _classes(value: object) -> object:
    if value is None:
        return ()
    return declared_classes(value, score=None, scores=None, prediction=SCORE)[0]


def _from_models(value: object) -> object:
    """Return the numbers that models give, each with its bounds."""
    if value is None:
        return {}
    bounds = Values()(value, "from_models")
    if any(isinstance(ends, Mapping) for ends in bounds.values()):
        raise ArgumentError('from_models must have two bounds each, such as {"risk": [0, 1]}.')
    return bounds


def _people(value: object) -> object:
    return None if value is None else checked_name("people", value)


Name = Annotated[str, _rule("the name of a column", lambda value: isinstance(value, str) and value)]
Count = Annotated[int, _rule("a whole number above 0", _is_positive)]
Label = Annotated[
    Any,
    _rule("a label: a text or a number", lambda value: isinstance(value, str | int | float | None)),
]
RELATIONS: Final = tuple(str(relation) for relation in Neighbours)
WEIGHTS: Final = ("weight", "largest_weight")
OF_CLASSES: Final = ("positive", "negative", "prevalence")
"""Fields that describe an outcome of yes or no."""
SERVED: Final = (ScoredRows, ClassifiedRows, FittedRows, *(part.of for part in PARTS.values()))
"""The kinds of rows that a data set may have: those that a model is judged on, and parts."""


class Declaration(BaseModel):
    """Declares a custodian's rows; names and forms are checked here, rows later."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    label: Name | None = None
    """The outcome, where it is one of two values or of several classes."""
    outcome: Name | None = None
    """The outcome, where it is a number: models predict it, and `bounds` says where it lies."""
    bounds: (
        Annotated[tuple[float, float], _rule("two numbers, the lower first", _is_range)] | None
    ) = None
    """The public lower and upper bound of an outcome that is a number. A number beyond them counts
    as the nearer end, in the rows and in predictions."""
    row_key: Name | None = None
    """A column that names each row once. Without one the server numbers the rows as it copies them;
    if they name no person either, other rows are then another registration."""
    features: Annotated[list[str] | None, BeforeValidator(_features)] = None
    positive: Label = 1
    negative: Label = None
    classes: Annotated[tuple[Any, ...], BeforeValidator(_classes)] = ()
    unit: Name | None = None
    rows_per_unit: Count = 1
    neighbours: Annotated[
        str,
        _rule("'replace-one', 'add-remove' or 'label'", lambda value: value in list(RELATIONS)),
    ] = "replace-one"
    groups: Annotated[dict[str, Any] | None, BeforeValidator(_groups)] = None
    score_range: Annotated[
        tuple[float, float], _rule("two numbers, the lower first", _is_range)
    ] = (0.0, 1.0)
    score_values: Annotated[tuple[float, ...] | None, _rule("a list of numbers", _are_numbers)] = (
        None
    )
    """All scores that models of these rows can give. They are public; curves are counted at
    these."""
    default: Annotated[
        float | None, _rule("a score", lambda value: isinstance(value, int | float | None))
    ] = None
    """The score of a row that a model fails on. If it is left out, the lowest; of an outcome that
    is a number, the middle of its bounds."""
    expected_rows: Count | None = None
    prevalence: Annotated[float, _rule("a number between 0 and 1", _is_share)] | None = None
    types: (
        Annotated[dict[str, str], _rule('types by column, such as {"age": "INTEGER"}', _are_types)]
        | None
    ) = Field(None, alias="schema")
    people: Annotated[str | None, BeforeValidator(_people)] = None
    weight: Name | None = None
    """A column with what each row counts for, in questions that are asked weighted."""
    largest_weight: (
        Annotated[float, _rule("a number above 0", lambda value: as_number(value) > 0)] | None
    ) = None
    parts: dict[str, Part] = Field(default_factory=dict)
    """Other kinds of rows that the same rows can be asked as; see `heldout.server.parts`."""
    from_models: Annotated[dict[str, tuple[float, float]], BeforeValidator(_from_models)] = Field(
        default_factory=dict
    )
    """The numbers that models give, with their bounds, where no label or outcome is declared: a
    predicted risk of a time to an event, a Dice score. They are columns of the rows then."""
    new: Annotated[bool, _rule("true or false", lambda value: isinstance(value, bool))] = False
    _declared: Json = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, content: object) -> "Declaration":
        """Read a declaration as a custodian sends it; what is wrong is said in words."""
        if not isinstance(content, Mapping):
            raise ArgumentError("declaration must be an object with label and row_key.")
        given = dict(checked_json("declaration", content))
        parts = {
            name: part.read(given[name])
            for name, part in PARTS.items()
            if given.get(name) is not None
        }
        plain = {name: value for name, value in given.items() if name not in PARTS}
        if "parts" in plain:
            raise _no_field("parts")
        try:
            declaration = cls.model_validate(plain | {"parts": parts})
        except ValidationError as error:
            raise _in_words(error) from None
        declaration._declared.update(_beyond_defaults(given))
        return declaration

    @model_validator(mode="after")
    def _fits_together(self) -> "Declaration":
        if self.label is None and self.outcome is None and not self.parts:
            raise ArgumentError(
                "declaration must name the column label, or outcome where it is a number."
            )
        if (self.weight is None) != (self.largest_weight is None):
            raise ArgumentError("weight and largest_weight must be declared together.")
        if self.outcome is not None:
            names = ("label", "classes", "score_range", "score_values", "weight", *OF_CLASSES)
            self._check_left_out("outcome is", *names)
        elif self.classes:
            self._check_left_out("classes are", "score_values", *OF_CLASSES)
        if (self.outcome is None) != (self.bounds is None):
            raise ArgumentError(
                "outcome and bounds must be declared together: a column of numbers, and its public "
                "lower and upper bound."
            )
        if self.from_models:
            self._check_brought()
        declared_values(self.score_values, self.score_range)
        low, high = self.range
        if self.default is not None and not low <= self.default <= high:
            within = "score_range" if self.bounds is None else "bounds"
            raise ArgumentError(f"default must be a score within {within}.")
        for part in self.parts.values():
            part.check(self)
        if self.neighbours == Neighbours.LABEL:
            self._check_labels()
        return self

    def _check_labels(self) -> None:
        """Refuse an outcome that a model or another kind of rows would see as something public."""
        if self.people is not None:
            raise ArgumentError("people must be left out with neighbours='label'.")
        if self.target is None or any(part.of is not FeatureRows for part in self.parts.values()):
            raise ArgumentError(
                "With neighbours='label' only the outcome of models is secret: declare label or "
                "outcome, and other kinds of rows under 'replace-one'."
            )
        named = [self.row_key, self.unit, self.weight, *(self.groups or ()), *(self.features or ())]
        named += [name for part in self.parts.values() for name in part.columns_used]
        if self.target.lower() in {name.lower() for name in named if name is not None}:
            raise ArgumentError(
                f"With neighbours='label' {self.target!r} is the only secret, so it cannot be a "
                "feature, group, weight or key too."
            )

    def _check_brought(self) -> None:
        """Refuse numbers of models that nothing can be asked of, or that are columns already."""
        if self.target is not None:
            raise ArgumentError(
                "from_models must be left out where label or outcome is declared: models are "
                "judged by it."
            )
        parts = [part for part in self.parts.values() if part.with_model(self.from_models)]
        if not parts:
            raise ArgumentError(
                "from_models must go with rows that have values, such as "
                '"survival": {"time": "days", "event": "died"}.'
            )
        used = {name for part in parts for name in part.columns_used}
        for name in self.from_models:
            if name in used or name in self.own_columns:
                raise ArgumentError(
                    f"from_models names {shown(name)}, which is a column of the rows already."
                )

    def _check_left_out(self, declared: str, *names: str) -> None:
        """Refuse what does not go with something that is declared."""
        for name in names:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ArgumentError(f"{name} must be left out where {declared} declared.")

    @property
    def content(self) -> Json:
        """Return what was declared, as JSON, without what holds anyway."""
        return self._declared

    @property
    def key_column(self) -> str:
        """The column by which scores are put beside rows: the declared key, or their number."""
        return self.row_key or ROW_NUMBER

    @property
    def may_be_refreshed(self) -> bool:
        """Return whether a key or a unit tells that other rows are about the same people."""
        return self.row_key is not None or self.unit is not None

    @property
    def target(self) -> str | None:
        """The column that models predict; None where no model is judged on these rows."""
        return self.label if self.outcome is None else self.outcome

    def part_of(self, kind: type[Description]) -> Part | None:
        """Return the part that declares such rows; None for those that models are judged on."""
        return next((part for part in self.parts.values() if part.of is kind), None)

    @property
    def range(self) -> tuple[float, float]:
        """Where the scores of a model lie: what is beyond counts as the nearer end."""
        if self.from_models:
            lows, highs = zip(*self.from_models.values(), strict=True)
            return min(lows), max(highs)
        return self.score_range if self.bounds is None else self.bounds

    @property
    def default_score(self) -> float:
        """The score of a row that a model fails on."""
        if self.default is not None:
            return float(self.default)
        if self.from_models:
            return self.range[0]
        return self.score_range[0] if self.bounds is None else sum(self.bounds) / 2

    @property
    def unsent_score(self) -> float:
        """The score of a row for whose key none was sent."""
        return self.range[0] if self.bounds is None else self.default_score

    @cached_property
    def scores(self) -> tuple[str, ...]:
        """The names of the columns of scores beside the rows."""
        if self.target is None:
            return tuple(self.from_models)
        if not self.classes:
            return (SCORE,)
        names = [str(value) for value in self.classes]
        return tuple(class_columns(SCORE, names, len(names)))

    @property
    def of_rows(self) -> Json:
        """Return what `Dataset` or `RegressionTable` wants to know."""
        named: tuple[str, ...] = ("score_range", "score_values", "positive", "negative", *WEIGHTS)
        if self.classes:
            named = ("score_range", "classes", *WEIGHTS)
        elif self.outcome is not None:
            named = ("bounds",)
        names = ("unit", "rows_per_unit", "neighbours", "groups", *named)
        return {name: getattr(self, name) for name in names}

    @property
    def of_account(self) -> Json:
        """Return what the ledger wants to know of the rows."""
        names = ("unit", "rows_per_unit", "neighbours", "people", "new")
        outcome = {"outcome": self.target} if self.neighbours == Neighbours.LABEL else {}
        return {name: getattr(self, name) for name in names} | outcome

    @property
    def own_columns(self) -> list[str]:
        """The columns that are no features: who, what, which group."""
        named = [self.key_column, self.unit, self.target, self.weight, *(self.groups or {})]
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def unseen_columns(self) -> set[str]:
        """The columns that no model sees unless they are named as features."""
        of_parts = (part.columns_used for part in self.parts.values() if self.from_models)
        return {*self.own_columns, *self.scores}.union(*of_parts)

    def outputs(self, *, width: int, labels: Sequence[str]) -> dict[str, int]:
        """Return which number of what a model gives for a row is which class's score.

        By the classes' names, or in the declared order where the model has none or calls them 0, 1,
        2, ...; refuses a model that does not fit. All of this is public.
        """
        names, given = list(map(str, self.classes or self.from_models)), list(labels)
        what = "classes" if self.classes else "numbers of models"
        if width != len(names):
            raise ArgumentError(
                f"It gives {width} score{'s' if width > 1 else ''} for a row, and the data set has "
                f"{len(names)} {what}: {_listed(names)}. Bring one that gives a score for each."
            )
        if not given or given == [str(place) for place in range(width)]:
            return {name: place for place, name in enumerate(self.scores)}
        if sorted(given) != sorted(names):
            raise ArgumentError(
                f"Its {what} are {_listed(given)}, and those of the data set {_listed(names)}. "
                "Use the same names."
            )
        return {column: given.index(name) for column, name in zip(self.scores, names, strict=True)}

    def check_model(self, described: Mapping[str, Any]) -> None:
        """Refuse a model or predictions with other scores than these rows need, once it is read."""
        width, labels = described.get("scores", 1), described.get("classes", ())
        if len(self.scores) > 1:
            self.outputs(width=width, labels=labels)
        elif width > 1 and self.outcome is not None:
            raise ArgumentError(
                f"It gives {width} numbers for a row, and the outcome of this data set is one "
                "number. Bring a model that predicts it, or predictions in one column."
            )
        elif width > 1 and described.get("kind") == "predictions":
            raise ArgumentError(
                f"It has {width} scores for a row: {_listed(labels)}. This data set takes one, so "
                "send one."
            )

    def describe(self, table: PrivateTable) -> Description:
        """Return what analysts see: the declared columns, and of what kind those for models are."""
        description = table.description
        if not self.scores:
            return description
        columns = {
            name: description.columns.get(name, kind)
            for name, kind in table.kinds().items()
            if self.features is None or name in self.features or name in description.columns
        }
        return replace(description, columns=columns)


FIELDS: Final = {
    field.alias or name: {"classes": (), "from_models": None}.get(name, field.default)
    for name, field in Declaration.model_fields.items()
    if name != "parts"
} | dict.fromkeys(PARTS)
"""Fields that a custodian declares about the rows, with their defaults."""


def _beyond_defaults(given: Json) -> Json:
    usual = FIELDS | {"score_range": (0, 1), "classes": None}
    return {name: given[name] for name in usual if name in given and given[name] != usual[name]}


def _in_words(error: ValidationError) -> ArgumentError:
    """Return the first of pydantic's errors as one of ours."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ArgumentError):
        return cause
    name = str(first["loc"][0]) if first["loc"] else "declaration"
    if first["type"] == "extra_forbidden":
        return _no_field(name)
    if first["type"] == "missing":
        return ArgumentError(f"declaration must name the column {name}.")
    return ArgumentError(f"{name} is not valid: {first['msg']}.")


def _no_field(name: str) -> ArgumentError:
    meant = guess(name, FIELDS)
    return ArgumentError(
        f"declaration has no field {shown(name)}.{meant} Fields: {', '.join(FIELDS)}."
    )


def _listed(names: Sequence[str]) -> str:
    """Return some of them, as an error shows them."""
    more = ", ..." if len(names) > 10 else ""
    return ", ".join(shown(name) for name in names[:10]) + more


def checked_json(what: str, content: T) -> T:
    """Return the content, if every database can keep it: no NUL, half a character or infinity."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        text = "\\u0000"
    if "\\u0000" in text:
        raise ArgumentError(f"{what} must be plain JSON: finite numbers, and texts without NUL.")
    return content


def budget_of(given: Any) -> Budget:
    """Return a budget from JSON: "3", 3, {"epsilon": "3"} or {"rho": "1/8", "delta": "1e-6"}."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in ("epsilon", "rho", "delta")]
        if unknown:
            raise ArgumentError(
                f"budget has no field {shown(unknown[0])}. Fields: epsilon, rho, delta."
            )
        return Budget(**given)
    return Budget(epsilon=given)


def checked_source(source: Any, settings: Settings) -> Json:
    """Return where a worker finds the rows: a file, a table of a database, or a table of Spark.

    A database is named by a variable of the workers' environment that holds its address, so that
    no password is kept here.
    """
    if isinstance(source, str):
        source = {"file": source}
    kinds = ({"file"}, {"database", "table"}, {"database", "query"}, {"spark"})
    texts = _are_types(source)
    checked_json("source", source)
    if not texts or set(source) not in kinds:
        raise ArgumentError(
            'source must be {"file": PATH}, {"database": VARIABLE, "table": NAME}, {"database": '
            'VARIABLE, "query": SELECT} or {"spark": TABLE}.'
        )
    if "database" in source and not source["database"].isidentifier():
        raise ArgumentError(
            "database must be the name of a variable of the worker's environment that holds the "
            "address, such as ROWS_URL."
        )
    if "database" in source and source["database"].upper().startswith(OWN_VARIABLES):
        # Everybody's answers, and the digests of their passwords, are tables there.
        raise ArgumentError("database must be one of your own, not the server's.")
    if "spark" in source and not SPARK_TABLE.fullmatch(source["spark"]):
        raise ArgumentError("spark must be the name of a table, such as clinic.visits.")
    if "file" in source:
        path = ((settings.rows or settings.folder / "rows") / source["file"]).resolve()
        check_place(path, settings)
        return {"file": str(path)}
    return dict(source)


def check_place(path: Path, settings: Settings) -> None:
    """Refuse a file that is not in the folder of rows, or that the server keeps itself."""
    if settings.rows is not None and not path.is_relative_to(settings.rows.resolve()):
        raise ArgumentError("source must be a file in the folder of rows.")
    # Rows and scores of others are copied there, under names that can be worked out.
    if any(path.is_relative_to(own) for own in (settings.private, settings.artifacts)):
        raise ArgumentError("source must be a file of your own, not of the server's.")


def checked_facts(facts: Any) -> str:
    if not isinstance(facts, str) or len(facts) > 10_000:
        raise ArgumentError("facts must be a text of at most 10,000 characters.")
    checked_json("facts", facts)
    return facts
