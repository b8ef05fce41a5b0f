"""What a custodian declares: where the rows are, what their columns mean, what may be spent."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from heldout.arguments import as_number, is_one_of, shown
from heldout.data.classes import class_columns, declared_classes
from heldout.data.dataset import Dataset
from heldout.data.groups import declared_groups
from heldout.data.score_map import FURTHEST
from heldout.errors import ArgumentError
from heldout.kernel import Budget
from heldout.kernel.ledger.records import checked_name
from heldout.server.service import Settings

__all__ = ["SCORE", "Declared", "budget_of", "check_place", "checked_facts", "checked_source"]

OWN_VARIABLES: Final = "HELDOUT_SERVER_"
"""How the variables begin that hold the server's own settings, its database among them."""
SPARK_TABLE: Final = re.compile(
    r"(?i)(?!(?:avro|binaryfile|csv|delta|iceberg|image|json|libsvm|orc|parquet|text|xml)[.])"
    r"[^\W\d]\w*(?:[.][^\W\d]\w*){0,2}"
)
"""To Spark parquet.`/some/file` is a table as well, wherever the file is."""

SCORE: Final = "score"
"""What a model's scores are called beside the rows."""
FIELDS: Final = {
    "label": None,
    "row_key": None,
    "features": None,
    "positive": 1,
    "negative": None,
    "classes": None,
    "unit": None,
    "rows_per_unit": 1,
    "neighbours": "replace-one",
    "groups": None,
    "score_range": (0, 1),
    "default": None,
    "expected_rows": None,
    "prevalence": None,
    "schema": None,
    "people": None,
    "new": False,
}
"""What a custodian declares of the rows, with what holds if it is left out."""


class Declared:
    """A declaration, as a custodian sends it; names and forms are checked, rows later."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        if not isinstance(content, Mapping):
            raise ArgumentError("declaration must be an object with label and row_key.")
        strange = [each for each in content if each not in FIELDS]
        if strange:
            raise ArgumentError(
                f"declaration has no field {shown(strange[0])}. Fields: {', '.join(FIELDS)}."
            )
        told: dict[str, Any] = FIELDS | dict(checked_json("declaration", content))
        for name in ("label", "row_key"):
            if not isinstance(told[name], str) or not told[name]:
                raise ArgumentError(f"declaration must name the column {name}.")
        self.content = {name: told[name] for name in FIELDS if told[name] != FIELDS[name]}
        self.label, self.row_key, self.unit = told["label"], told["row_key"], told["unit"]
        self.default = told["default"]
        self.schema = told["schema"]
        listed = told["features"]
        if isinstance(listed, Mapping):
            if not all(each is None or isinstance(each, list) for each in listed.values()):
                raise ArgumentError("features must have a range or a list of texts each, or null.")
            listed = list(listed)
        if listed is not None and not (
            isinstance(listed, list) and listed and all(isinstance(each, str) for each in listed)
        ):
            raise ArgumentError("features must be a list of columns, or {column: [low, high]}.")
        self.features: list[str] | None = listed
        self.expected_rows = _positive_whole("expected_rows", told["expected_rows"])
        self.prevalence = _share("prevalence", told["prevalence"])
        _check_forms(told)
        own = ("unit", "rows_per_unit", "neighbours", "groups")
        self.of_dataset: dict[str, Any] = {name: told[name] for name in own}
        self.classes, self.scores = _classes(told)
        named = ("classes",) if self.classes else ("positive", "negative")
        self.of_dataset |= {name: told[name] for name in named}
        self._family = {"people": told["people"], "new": bool(told["new"])}
        low, high = _range(told["score_range"])
        self.of_dataset["score_range"] = (low, high)
        self.lowest = low
        if self.default is None:
            self.default = low
        if not isinstance(self.default, int | float) or not low <= self.default <= high:
            raise ArgumentError("default must be a score within score_range.")

    def outputs(self, *, width: int, labels: Sequence[str]) -> dict[str, int]:
        """Which number of what a model gives for a row is which class's score.

        By the classes' names, or in the declared order where the model has none or calls them 0, 1,
        2, ...; refuses a model that does not fit. All of this is public.
        """
        names, said = list(map(str, self.classes)), list(labels)
        if width != len(names):
            raise ArgumentError(
                f"It gives {width} score{'s' if width > 1 else ''} for a row, and the data set has "
                f"{len(names)} classes: {_listed(names)}. Bring one that gives a score for each."
            )
        if not said or said == [str(each) for each in range(width)]:
            return {name: place for place, name in enumerate(self.scores)}
        if sorted(said) != sorted(names):
            raise ArgumentError(
                f"Its classes are {_listed(said)}, and those of the data set {_listed(names)}. "
                "Name them alike."
            )
        return {name: said.index(each) for name, each in zip(self.scores, names, strict=True)}

    def check_found(self, found: Mapping[str, Any]) -> None:
        """Refuse a model or predictions with other scores than these rows need, once it is read."""
        width, labels = found.get("scores", 1), found.get("classes", ())
        if self.classes:
            self.outputs(width=width, labels=labels)
        elif width > 1 and found.get("kind") == "predictions":
            raise ArgumentError(
                f"It has {width} scores for a row: {_listed(labels)}. This data set has one "
                "outcome that is there or not, so send one."
            )

    @property
    def own_columns(self) -> list[str]:
        """The columns that are no features: who, what, which group."""
        groups = self.of_dataset["groups"] or {}
        named = [self.row_key, self.unit, self.label, *groups]
        return list(dict.fromkeys(each for each in named if each is not None))

    def described(self, table: Dataset) -> Any:
        """What analysts see: the declared columns, and of what kind those for models are."""
        about = table.description
        columns = {
            name: about.columns.get(name, kind)
            for name, kind in table.kinds().items()
            if self.features is None or name in self.features or name in about.columns
        }
        return replace(about, columns=columns)

    @property
    def of_account(self) -> dict[str, Any]:
        """What the ledger wants to know of the rows."""
        own = ("unit", "rows_per_unit", "neighbours")
        return {name: self.of_dataset[name] for name in own} | self._family


def _classes(told: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The declared classes, none for an outcome of two values, and the names of the scores."""
    if told["classes"] is None:
        return (), (SCORE,)
    for name in ("positive", "negative", "prevalence"):
        if told[name] != FIELDS[name]:
            raise ArgumentError(f"{name} must be left out where classes are declared.")
    found, _ = declared_classes(told["classes"], score=None, scores=None, prediction=SCORE)
    columns = class_columns(SCORE, [str(each) for each in found], len(found))
    return found, tuple(columns)


def _listed(names: Sequence[str]) -> str:
    """Some of them, as an error shows them."""
    more = ", ..." if len(names) > 10 else ""
    return ", ".join(shown(each) for each in names[:10]) + more


def _check_forms(told: Mapping[str, Any]) -> None:
    """Refuse what no data set could be declared by, whatever its rows are."""
    declared_groups(told["groups"])
    if told["unit"] is not None and (not isinstance(told["unit"], str) or not told["unit"]):
        raise ArgumentError("unit must be the name of a column.")
    if told["rows_per_unit"] is None:
        raise ArgumentError("rows_per_unit must be a whole number above 0.")
    _positive_whole("rows_per_unit", told["rows_per_unit"])
    if not is_one_of(told["neighbours"], ("replace-one", "add-remove")):
        raise ArgumentError("neighbours must be 'replace-one' or 'add-remove'.")
    for name in ("positive", "negative"):
        if not isinstance(told[name], str | int | float | None):
            raise ArgumentError(f"{name} must be a label: a text or a number.")
    schema = told["schema"]
    if schema is not None and not (
        isinstance(schema, Mapping) and all(isinstance(each, str) for each in schema.values())
    ):
        raise ArgumentError('schema must be types by column, such as {"age": "INTEGER"}.')
    if told["people"] is not None:
        checked_name("people", told["people"])
    if not isinstance(told["new"], bool):
        raise ArgumentError("new must be true or false.")


def checked_json(what: str, content: Any) -> Any:
    """The content, if every database can keep it: no NUL, no half of a character, no infinity."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        text = "\\u0000"
    if "\\u0000" in text:
        raise ArgumentError(f"{what} must be plain JSON: finite numbers, and texts without NUL.")
    return content


def budget_of(told: Any) -> Budget:
    """A budget from JSON: "3", 3, {"epsilon": "3"} or {"rho": "1/8", "delta": "1e-6"}."""
    if isinstance(told, Mapping):
        strange = [each for each in told if each not in ("epsilon", "rho", "delta")]
        if strange:
            raise ArgumentError(f"budget has no field {shown(strange[0])}.")
        return Budget(**told)
    return Budget(epsilon=told)


def checked_source(source: Any, settings: Settings) -> dict[str, Any]:
    """Where a worker finds the rows: a file, a table of a database, or a table of Spark.

    A database is named by a variable of the workers' environment that holds its address, so that
    no password is kept here.
    """
    if isinstance(source, str):
        source = {"file": source}
    kinds = ({"file"}, {"database", "table"}, {"database", "query"}, {"spark"})
    texts = isinstance(source, Mapping) and all(isinstance(each, str) for each in source.values())
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
    if any(path.is_relative_to(each) for each in (settings.private, settings.artifacts)):
        raise ArgumentError("source must be a file of your own, not of the server's.")


def checked_facts(facts: Any) -> str:
    if not isinstance(facts, str) or len(facts) > 10_000:
        raise ArgumentError("facts must be a text of at most 10,000 characters.")
    checked_json("facts", facts)
    return facts


def _positive_whole(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise ArgumentError(f"{name} must be a whole number above 0, got {shown(value)}.")


def _share(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = as_number(value)
    if not 0 < number < 1:
        raise ArgumentError(f"{name} must be a number between 0 and 1, got {shown(value)}.")
    return number


def _range(told: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in told)
    except (TypeError, ValueError):
        low = high = 0.0
    if not -FURTHEST <= low < high <= FURTHEST:
        raise ArgumentError("score_range must be two numbers, the lower first.")
    return low, high
