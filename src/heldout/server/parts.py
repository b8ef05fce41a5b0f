"""Kinds of rows that no model of an analyst goes with, each declared by a part of its own.

A data set that has such a part can be asked the questions of these rows, out of the same budget.
Rows whose description says what is declared of them (`declares`, `opened_by`) have a part by
derivation. To serve another kind of rows: a subclass of `Part`, and nothing else.
"""

import inspect
import json
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from heldout.arguments import FormField, Text, Values, guess, shown
from heldout.data.description import Description, MeasuredRows, ValueRange
from heldout.data.feature_matrix import FeatureMatrix, FeatureRows, HashedText, Space, Vocabulary
from heldout.data.table import PrivateTable
from heldout.data.two_tables import Truth, TruthRows
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions import Question
    from heldout.server.declaration import Declaration

PARTS: Final[dict[str, type["Part"]]] = {}
"""Every kind of part by its name in a declaration."""
Json = dict[str, Any]
Brought = Mapping[str, tuple[float, float]]
"""The columns that a model gives, each with its bounds."""


def _columns(value: object) -> object:
    names = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    if not names or len(set(cast("list[str]", value))) < len(cast("list[str]", value)):
        raise ArgumentError(f"columns must be a list of names, each once, got {shown(value)}.")
    return value


Columns = Annotated[tuple[str, ...], BeforeValidator(_columns)]


class Part(BaseModel):
    """One kind of rows, and what a custodian declares of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)
    part: ClassVar[str]
    """Its name in a declaration."""
    of: ClassVar[type[Description]]
    """The description of such rows: questions name it."""
    example: ClassVar[str]
    """An example of how it is declared, for messages."""
    one_at_a_time: ClassVar[bool] = True
    """Whether a question is asked by itself: it may decide which columns are looked at."""

    @classmethod
    def __pydantic_init_subclass__(cls, **words: Any) -> None:
        if "part" in vars(cls):
            PARTS[cls.part] = cls

    @classmethod
    def read(cls, content: object) -> "Part":
        """Read a part as a custodian sends it; what is wrong is said in words."""
        if not isinstance(content, Mapping):
            raise ArgumentError(f"{cls.part} must be an object, such as {cls.example}.")
        try:
            return cls.model_validate(dict(content))
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            if isinstance(cause, ArgumentError):
                raise ArgumentError(f"{cls.part}: {cause}") from None
            where = ".".join(map(str, first["loc"])) or "it"
            if first["type"] == "extra_forbidden":
                raise _no_field(cls.part, where, cls.model_fields) from None
            raise ArgumentError(
                f"{cls.part}: {where} is not valid ({first['msg'].lower()}). An example: "
                f"{cls.example}."
            ) from None

    @property
    @abstractmethod
    def columns_used(self) -> tuple[str, ...]:
        """The columns of the rows that it needs."""

    def check(self, declared: "Declaration") -> None:
        """Refuse a declaration that it does not go with."""
        return

    @abstractmethod
    def open(self, table: Any, declared: "Declaration", facts: Mapping[str, Any]) -> PrivateTable:
        """Return the rows, validated; `facts` are their name, keys and protection."""

    def seen_by(self, question: "Question[Any]", known: Description) -> Description:
        """Return what a question is priced from, where it decides which columns are looked at."""
        return known

    def with_model(self, brought: Brought) -> "Part | None":
        """Return the part where the rows have a model's numbers too; None if none go with it."""
        return None

    def known_with_model(self, known: Description, brought: Brought) -> Description:
        """Return what is public of these rows beside a model's numbers."""
        return known

    def for_question(self, question: "Question[Any]") -> "Part":
        """Return the part that a question is asked of, where it decides which columns count."""
        return self


def _no_field(part: str, name: str, names: Collection[str]) -> ArgumentError:
    meant = guess(name, names)
    return ArgumentError(f"{part} has no field {shown(name)}.{meant} Fields: {', '.join(names)}.")


def names_column(field: FormField) -> bool:
    """Return whether a field of a declaration is the name of a column."""
    return field.rule == Text("a column")


class Derived(Part):
    """Rows whose description says by itself what is declared of them, and what opens them."""

    one_at_a_time: ClassVar[bool] = False
    given: Json

    @classmethod
    def read(cls, content: object) -> "Part":
        if not isinstance(content, Mapping):
            raise ArgumentError(f"{cls.part} must be an object, such as {cls.example}.")
        named = {field.name: field for field in cls.of.declares}
        for name in content:
            if name not in named:
                raise _no_field(cls.part, name, named)
        missing = [name for name, field in named.items() if field.required and name not in content]
        if missing:
            raise ArgumentError(f"{cls.part} must have {missing[0]}, such as {cls.example}.")
        given = {name: named[name].rule(value, name) for name, value in content.items()}
        return cls(given=given)

    @property
    def columns_used(self) -> tuple[str, ...]:
        named: list[str] = []
        for field in self.of.declares:
            value = self.given.get(field.name)
            if isinstance(value, Mapping):
                named += value
            elif value is not None and names_column(field):
                named.append(value)
        return tuple(dict.fromkeys(named))

    def check(self, declared: "Declaration") -> None:
        if not self.columns_used:
            raise ArgumentError(f"{self.part} must name a column, such as {self.example}.")

    def with_model(self, brought: Brought) -> "Part | None":
        named = {field.name for field in self.of.declares}
        if "values" not in named:
            return None
        more: Json = {"values": self.given.get("values", {}) | dict(brought)}
        if "score" in named and ("score" in self.given or len(brought) == 1):
            # Of several numbers a question names the one that it judges.
            more["score"] = self.given.get("score", next(iter(brought)))
        return self.model_copy(update={"given": self.given | more})

    def known_with_model(self, known: Description, brought: Brought) -> Description:
        part = self.with_model(brought)
        assert isinstance(part, Derived)
        columns = dict(known.columns) | dict.fromkeys(brought, "number")
        values = {name: ValueRange(*ends) for name, ends in brought.items()}
        assert isinstance(known, MeasuredRows)
        more: Json = {"columns": columns, "values": {**known.values, **values}}
        if "score" in part.given:
            more["score"] = part.given["score"]
        return replace(known, **more)

    def open(self, table: Any, declared: "Declaration", facts: Mapping[str, Any]) -> PrivateTable:
        opens = self.of.table_type()
        more = {name: getattr(declared, name) for name in ("groups", "weight", "largest_weight")}
        more["out_of_range"] = "clip"
        taken = inspect.signature(opens).parameters
        more = {name: value for name, value in more.items() if name in taken}
        private = opens(table, **self.given, **more, **facts)
        assert isinstance(private, PrivateTable)
        return private


def derive(of: type[Description]) -> type[Part]:
    """Return the part of a declaration that such rows have, by what their description says."""
    name = of.__name__.removesuffix("Rows").lower()
    fields = {field.name: _EXAMPLES.get(type(field.rule), "...") for field in of.declares}
    needed = {field.name for field in of.declares if field.required} or set(fields)
    shown_as = json.dumps({key: value for key, value in fields.items() if key in needed})
    content = {"part": name, "of": of, "example": f'"{name}": {shown_as}', "__module__": __name__}
    return cast("type[Part]", type(name.capitalize(), (Derived,), content))


_EXAMPLES: Final[Mapping[type, object]] = {Text: "COLUMN", Values: {"dice": [0, 1]}}


class Flags(Part):
    """0/1 features and a label: what is selected from and trained on."""

    part: ClassVar[str] = "flags"
    of: ClassVar[type[Description]] = FeatureRows
    example: ClassVar[str] = '"flags": {"columns": ["diabetic", "smoker"], "features_per_row": 2}'
    columns: Columns = ()
    """Columns that are features by themselves: what is not 0 counts as 1."""
    text: str | None = None
    """A column of texts, whose words are the features."""
    words: Columns = ()
    """The public words that count; without them, words go to `hash_size` places."""
    hash_size: int = 4096
    longest: int = 1
    features_per_row: int | None = None
    most_rows: int | None = None

    @property
    def columns_used(self) -> tuple[str, ...]:
        return self.columns if self.text is None else (self.text,)

    def check(self, declared: "Declaration") -> None:
        if bool(self.columns) == (self.text is not None):
            raise ArgumentError("flags must have either columns, or text: a column of texts.")
        if declared.label is None or declared.classes:
            raise ArgumentError("flags must go with a label of two values.")
        self._space()

    def open(self, table: Any, declared: "Declaration", facts: Mapping[str, Any]) -> PrivateTable:
        assert declared.label is not None
        return FeatureMatrix.from_table(
            table,
            label=declared.label,
            positive=declared.positive,
            negative=declared.negative,
            text=self.text,
            space=self._space(),
            features=list(self.columns) or None,
            features_per_row=self.features_per_row or 10,
            most_rows=self.most_rows,
            **cast("Any", facts),
        )

    def _space(self) -> Space | None:
        if self.text is None:
            return None
        if self.words:
            return Vocabulary(self.words)
        return HashedText(size=self.hash_size, longest=self.longest)


class Compared(Part):
    """True rows, for comparison with a public copy that an analyst brings."""

    part: ClassVar[str] = "compared"
    of: ClassVar[type[Description]] = TruthRows
    example: ClassVar[str] = '"compared": {"numbers": ["age"], "texts": ["ward"], "rows": 5000}'
    numbers: Columns = ()
    texts: Columns = ()
    rows: int
    """About how many rows there are, a public guess: at most 16 times as many are taken."""

    @property
    def columns_used(self) -> tuple[str, ...]:
        return (*self.numbers, *self.texts)

    def check(self, declared: "Declaration") -> None:
        if not self.columns_used or set(self.numbers) & set(self.texts):
            raise ArgumentError("compared must have numbers or texts, each column once.")
        if self.rows < 1:
            raise ArgumentError("compared: rows must be a whole number above 0.")

    def open(self, table: Any, declared: "Declaration", facts: Mapping[str, Any]) -> PrivateTable:
        return Truth(
            table,
            numbers=self.numbers,
            texts=self.texts,
            expected_rows=self.rows,
            **cast("Any", facts),
        )

    def seen_by(self, question: "Question[Any]", known: Description) -> Description:
        assert isinstance(known, TruthRows)
        chosen = self.for_question(question)
        assert isinstance(chosen, Compared)
        return replace(known, numbers=chosen.numbers, texts=chosen.texts)

    def for_question(self, question: "Question[Any]") -> Part:
        """The columns of the copy, in its order; all of them must be declared, of their kind."""
        table = question.table  # type: ignore[attr-defined]
        for kind in ("numbers", "texts"):
            for name in getattr(table, kind):
                if name not in getattr(self, kind):
                    raise ArgumentError(
                        f"The copy has a column {shown(name)} of {kind}, and the data set has "
                        f"none to compare it with. Its {kind}: "
                        f"{', '.join(map(shown, getattr(self, kind))) or 'none'}."
                    )
        chosen = {"numbers": tuple(table.numbers), "texts": tuple(table.texts)}
        return self.model_copy(update=chosen)


def _derive_all() -> None:
    """Give every kind of rows that a registered question is about its part."""
    from heldout import questions

    for question in questions.registered():
        for of in question.of:
            if of.opened_by and of not in {part.of for part in PARTS.values()}:
                derive(of)


_derive_all()
