"""A question: frozen data that needs no rows, knows its price and reads its own answer.

A kind of question says everything about itself here, once. Command line, API, pages, client,
reports, pooling, audit and documentation walk `heldout.questions.registered()`.
"""

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Self,
    TypeVar,
    get_type_hints,
)

from heldout.arguments import (
    Choices,
    Columns,
    Flag,
    FormField,
    Grid,
    Intervals,
    Number,
    Numbers,
    OneOf,
    Plain,
    Rule,
    Text,
    Whole,
    Wholes,
    guess,
    shown,
)
from heldout.data.description import Description
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.kernel.door import Drawn, Priced
from heldout.kernel.loss import Loss, Rational, exact

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site
    from heldout.questions.quote import Guess, HalfWidths
    from heldout.questions.worst_cases import WorstCase

__all__ = [
    "Choice",
    "Choices",
    "Exact",
    "Flag",
    "FormField",
    "Grid",
    "GroupColumns",
    "Intervals",
    "Number",
    "Numbers",
    "OneOf",
    "Plain",
    "Price",
    "Question",
    "Rival",
    "Rule",
    "Section",
    "Text",
    "Weighted",
    "Whole",
    "Wholes",
    "shared",
    "weight_parameters",
]

# --- What a field of a question may be: the rules of any argument, and two of a question's own ---


@dataclass(frozen=True)
class Exact(Rule):
    """An exact number above `minimum`, and where `ends` says so from 10^-ends to 10^ends.

    >>> Exact(ends=12)("1e380", "epsilon")
    Traceback (most recent call last):
    heldout.errors.ArgumentError: epsilon must lie between 1e-12 and 1e12, got '1e380'. ...
    """

    minimum: int = 0
    ends: int | None = None

    def __call__(self, value: Any, name: str) -> Fraction:
        number = exact(value, name=name, minimum=self.minimum)
        if self.ends is not None and not 1 <= number * 10**self.ends <= 100**self.ends:
            raise ArgumentError(
                f"{name} must lie between 1e-{self.ends} and 1e{self.ends}, got {shown(value)}. "
                "Less buys noise alone, and more protects nobody."
            )
        return number

    def schema(self) -> dict[str, Any]:
        limit = {"type": "number", "exclusiveMinimum": self.minimum}
        return {"anyOf": [{"type": "string", "examples": ["1/2", "0.5"]}, limit]}


@dataclass(frozen=True)
class Rival(Text):
    """The declared column with another model's score.

    A server has no such column: it takes a second model, whose scores it calls `elsewhere`.
    """

    option: ClassVar[str | None] = "--rival"
    elsewhere: ClassVar[str] = "rival"
    what: str = "the name of a column"


BY_HELP: Final = "Ask by group: a declared column, or several to cross."
GroupColumns = Annotated[Any, Columns(), BY_HELP]
"""The declared groups that an answer is given for, one by one; crossed if there are several."""

Weighted = Annotated[bool, Flag(), "Count rows by their declared weights."]


def weight_parameters(weighted: bool, about: Description) -> dict[str, Any]:
    """Return what is booked of the weights, if they are used."""
    if not weighted:
        return {}
    about.check_weight()
    return {"weight": about.weight, "largest_weight": about.largest_weight}


Price = Annotated[Rational, Exact(ends=12), "The price, such as 1, 0.5 or 1/3."]
"""Epsilon as people write it: text, int, Fraction, Decimal or float; an exact number once read."""


# --- A question's place in a report, and what whoever asks for a report may choose for all of it -


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question's place in a report.

    Shares of a report's price go by weight among the sections that apply, so they are public and
    add up to the whole price exactly.
    """

    title: str
    """Its heading."""
    meaning: str
    """One or two sentences that say what a reader learns from it."""
    weight: int
    place: int = 100
    """Where it stands in the report: lower is earlier."""
    always: bool = True
    """Whether a report has it unless others are named; if not, it is there only if it is named."""
    weight_with_curves: int | None = None
    """Its weight in a report with curves, where an area and the curves inform one another."""
    joined_by: str | None = None
    """The kind beside which `weight_with_curves` holds for all."""
    cards: tuple[str, ...] = ()
    """The measures that are shown large; the headline if there are none."""
    lower_is_better: bool = False
    leads: bool = False
    """Whether a report's headline is its headline, if nothing before it leads."""
    secondary: bool = False
    """Whether it only qualifies another section, such as ties on the grid."""
    asked_as: str | None = None
    """A second name to ask for it by, such as "auc" where rows have several classes."""
    old_name: str | None = None
    """Its name in reports before they went by kinds; None if it was the kind with underscores."""


@dataclass(frozen=True)
class Choice:
    """Holds what may be chosen for all sections of a report. Public."""

    threshold: float
    scores: str | None = None
    """Whether "exact" scores or cells of the "grid" are ranked; None leaves it to the rows."""
    by: str | tuple[str, ...] | None = None
    """The declared groups, for a section by group."""
    inside: bool = True
    """Whether the threshold lies above the lowest score."""
    beside: frozenset[str] = frozenset()
    """The sections of the same report."""
    weighted: bool = False
    k: int = 10
    curves: bool = False


def shared(total: Fraction, weights: Mapping[str, int]) -> dict[str, Fraction]:
    """Divide a price by weight, exactly.

    >>> shared(Fraction(1), {"confusion": 2, "brier": 1})
    {'confusion': Fraction(2, 3), 'brier': Fraction(1, 3)}
    """
    whole = sum(weights.values())
    return {name: total * weight / whole for name, weight in weights.items()}


VERSION = 1
KINDS: dict[str, type["Question[Any]"]] = {}
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Question(ABC, Generic[R_co]):
    """One question to private rows, at one exact price; `R` is the release that answers it.

    A kind of question is a frozen dataclass. The annotation of a field holds its rule
    (`questions.rules`), which is checked when the question is made, and its help. Conditions on the
    rows' public description are checked by `why_not` and `request`, before anything is booked.

    To add one: a subclass with `kind`, `title`, `asks`, `tells`, `of`, `request` and `read`, in a
    module of `heldout.questions` or of a package with the entry point `heldout.questions`. Nothing
    else lists kinds. See docs/adding-a-question.md.
    """

    kind: ClassVar[str]
    """Its identifier (kebab-case) in JSON, ledgers, commands, pages, pooling and audits."""
    title: ClassVar[str]
    """The name of its answer, for people."""
    asks: ClassVar[str]
    """The question that somebody has, in one sentence."""
    tells: ClassVar[str]
    """The answer in one sentence."""
    of: ClassVar[tuple[type[Description], ...]]
    """Which rows it may be asked of, by their description."""
    needs_columns: ClassVar[tuple[int, str]] = (0, "")
    """The number of columns with bounds that rows must declare; the message if there are fewer."""
    column_field: ClassVar[str | None] = None
    """The field that names one of them; the first is suggested."""
    holds_sections: ClassVar[bool] = False
    """True if its answer holds those of other kinds, by their sections."""
    counts_positives: ClassVar[bool] = False
    """True if its answer tells how many rows are positive, also at a low price."""
    headline: ClassVar[str | None] = None
    """The measure that people read first in a forecast; the first one if there is none."""
    section: ClassVar[Section | None] = None
    """Its place in a report; None if it has none."""
    section_by_group: ClassVar[Section | None] = None
    """Its place in a report that was asked by group."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Endings of files, beside .html, that its release saves itself, such as .csv."""
    stores: ClassVar[tuple[type, ...]] = ()
    """The dataclasses that its drawn values are made of, beside numbers; see `questions.kept`."""
    cannot_pool: ClassVar[str] = "its releases hold no sums that add up across sites"
    """Why answers of several sites are not pooled, unless `pool` is overridden."""
    formerly: ClassVar[tuple[str, ...]] = ()
    """Name of its releases in JSON before they carried their kind."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Fields of one small example, beside epsilon."""
    replayed: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """Ways to ask it that the audit replays on neighbours: fields beside `example`. Where few rows
    and epsilon 1 would always lead to the same draws, another epsilon leads to others."""
    draws: ClassVar[int] = 1
    """Number of typical answers that a forecast takes the median of; 1 if they have no noise."""
    takes_long: ClassVar[bool] = False
    """Whether its statistic compares rows with each other for longer than counts of them take, by
    what they hold: a server shows its answers at ticks as far apart as for a model's scores."""
    rules: ClassVar[int] = 1
    """By which rules public facts become its request, and its answer a release. A kind that changes
    them knows the old ones still: an answer is read by the rules that it was drawn by."""
    known_rules: ClassVar[tuple[int, ...]] = (1,)
    reported_since: ClassVar[tuple[int, ...]] = (1,)
    """Since which rules of reports its own rules hold there: the first, the second and so on."""
    epsilon: Price
    price: Fraction = field(init=False, repr=False, compare=False)
    """Epsilon, exactly."""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "kind" not in vars(cls):
            return
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cls.kind):
            raise TypeError(f"kind must be small words with hyphens between, got {cls.kind!r}.")
        missing = [name for name in ("title", "asks", "tells", "of") if not hasattr(cls, name)]
        if missing:
            raise TypeError(f"The question {cls.kind!r} must declare {', '.join(missing)}.")
        known = KINDS.get(cls.kind)
        if known is not None and known.__module__ != cls.__module__:
            raise TypeError(f"There is a question {cls.kind!r} already, in {known.__module__}.")
        KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for field_ in _form(type(self)):
            value = getattr(self, field_.name)
            if field_.required or not (value is None and field_.default is None):
                object.__setattr__(self, field_.name, field_.rule(value, field_.name))
        object.__setattr__(self, "price", self.epsilon)

    @classmethod
    def form(cls) -> tuple[FormField, ...]:
        """Return the fields that whoever asks fills in, with their rules and help."""
        return _form(cls)

    def at(self, epsilon: Rational) -> Self:
        """Return the same question at another price."""
        return replace(self, epsilon=epsilon).under(self.rules)

    @classmethod
    def by_group(cls) -> bool:
        """Return whether it may be asked by group; see `questions.groups.By`."""
        return any(field_.name == "by" for field_ in cls.form())

    @classmethod
    def takes_model(cls) -> bool:
        """Return whether it is about a model, whose scores or predictions the rows have."""
        return any(rows.takes_model for rows in cls.of)

    @classmethod
    def rival_field(cls) -> FormField | None:
        """Return the field that names another model to compare with; None if it compares none."""
        return next((field_ for field_ in cls.form() if isinstance(field_.rule, Rival)), None)

    @property
    def rivals(self) -> tuple[str, ...]:
        """Return the columns with other models' scores that it compares with."""
        field_ = self.rival_field()
        return () if field_ is None else (getattr(self, field_.name),)

    @property
    def values_asked(self) -> Mapping[str, tuple[float, float]]:
        """Return the columns that it names with their bounds: a command declares them."""
        return {}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of `as_dict`."""
        properties: dict[str, Any] = {
            "question": {"const": cls.kind},
            "version": {"const": VERSION, "default": VERSION},
        }
        properties |= {field_.name: field_.schema() for field_ in cls.form()}
        return {
            "type": "object",
            "title": cls.title,
            "description": f"{cls.asks} {cls.tells}",
            "properties": properties,
            "required": ["question", *(field_.name for field_ in cls.form() if field_.required)],
            "additionalProperties": False,
        }

    @classmethod
    def positives_in(cls, release: Any) -> int | None:
        """Return how many rows are positive by one of its answers; None if it does not tell."""
        return None

    @classmethod
    def suggested(cls, about: Description) -> Mapping[str, object]:
        """Return values of its fields that the public facts of the rows suggest."""
        columns = list(getattr(about, "values", ()))
        return {cls.column_field: columns[0]} if cls.column_field and columns else {}

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        """Return why rows with this description cannot answer it, and what it would need.

        None if they can. Families add their own conditions.
        """
        if type(about) in cls.of:
            least, why = cls.needs_columns
            return why if len(getattr(about, "values", ())) < least else None
        needed = " or ".join(kind.rows_in_words for kind in cls.of)
        return f"it needs {needed}, and these are {about.rows_in_words}"

    def check(self, about: Description) -> None:
        """Refuse rows that cannot answer it, before anything is booked."""
        why = self.why_not(about)
        if why is not None:
            raise ArgumentError(f"The question {self.kind!r} cannot be asked of these rows: {why}.")

    @abstractmethod
    def request(self, about: Any) -> Priced:
        """Return what the door books and draws, from the public description of the rows."""

    @abstractmethod
    def read(self, drawn: Drawn) -> R_co:
        """Return what people read of the numbers that were drawn."""

    def release(self, drawn: Drawn) -> R_co:
        """Return the release, which carries the kind of the question."""
        return self.read(replace(drawn, kind=self.kind))

    def loss(self, about: Any) -> Loss:
        """Return the exact price."""
        from heldout.kernel import price

        return price(self.request(about).event())

    def typical(self, about: Any, guess: "Guess") -> object:
        """Return what `request(about).draw` gives on rows like the guessed ones, with no row read.

        None: nothing can be said of its half-widths beforehand.
        """
        return None

    def typical_release(self, about: Any, guess: "Guess") -> R_co | None:
        """The release that `typical` makes, by the very arithmetic of a paid one."""
        values = self.typical(about, guess)
        if values is None:
            return None
        return self.release(Drawn(self.request(about), values, None, about, None))

    def expected(self, about: Any, guess: "Guess", level: float = 0.95) -> "dict[str, HalfWidths]":
        """Return how far the intervals of each measure will reach, if the guess is right."""
        from heldout.questions.quote import HalfWidths

        widths: dict[str, list[HalfWidths]] = {}
        for _ in range(self.draws):
            release: Any = self.typical_release(about, guess)
            for name, measure in ({} if release is None else release.measures).items():
                widths.setdefault(name, []).append(HalfWidths.of(measure, level))
        return {name: HalfWidths.median(several) for name, several in widths.items()}

    def assumes(self, about: Any, guess: "Guess") -> str:
        """Return a sentence on what a forecast takes the rows for; or nothing."""
        return ""

    def hidden_by_noise(self, about: Any, guess: "Guess") -> tuple[str, ...]:
        """Return what noise would leave nothing to read of, if the guess is right.

        Empty if its headline can be read, or if nothing can be said beforehand.
        """
        if getattr(self, "by", None) is not None:
            return ()  # groups that noise hides are named as such, beside those that can be read
        release: Any = self.typical_release(about, guess)
        if release is None or release.headline.informative:
            return ()
        return (release.headline.name,)

    def under(self, rules: int) -> Self:
        """The same question by these rules, for an answer that was drawn by them."""
        if type(rules) is not int or rules not in self.known_rules:
            raise ArgumentError(
                f"A question of kind {self.kind!r} has no rules {shown(rules)}. Use a version of "
                "heldout that knows them."
            )
        other = copy.copy(self)
        object.__setattr__(other, "rules", rules)
        return other

    # --- in a report -----------------------------------------------------------------------------

    @classmethod
    def joins_report(cls, description: Any, choice: Choice) -> bool:
        """Return whether a report has it although nobody named it, beside `section.always`."""
        return False

    @classmethod
    def for_report(cls, epsilon: Fraction, choice: Choice) -> "Question[object] | None":
        """Return the question for its section; None if so small a share is not worth paying.

        Fields that a report's asker may choose for all sections are filled in by their names.
        """
        chosen = {
            field_.name: getattr(choice, field_.name)
            for field_ in cls.form()
            if field_.name in ("threshold", "scores", "weighted", "k", "by")
        }
        return cls(epsilon=epsilon, **chosen)

    # --- of several sites ------------------------------------------------------------------------

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        """Return one answer from those of several sites; see `heldout.pooling`."""
        raise ArgumentError(f"Releases of {cls.kind!r} cannot be pooled: {cls.cannot_pool}.")

    @classmethod
    def pools(cls) -> bool:
        """Return whether answers of several sites become one."""
        return cls.pool.__func__ is not Question.pool.__func__  # type: ignore[attr-defined]

    @classmethod
    def headline_range(cls, parameters: Mapping[str, Any]) -> tuple[float, float]:
        """Return where its headline can lie, from a release's public parameters."""
        return (0.0, 1.0)

    # --- audited ---------------------------------------------------------------------------------

    @classmethod
    def worst_cases(cls) -> tuple["WorstCase", ...]:
        """Return the ways to ask it that are audited, each with its worst pairs of neighbours."""
        return ()

    @classmethod
    def to_replay(cls, epsilon: Rational = 1) -> "tuple[Question[object], ...]":
        """Return the questions that the audit replays on neighbours; see `replayed`."""
        return tuple(
            cls.of_fields({**cls.example, "epsilon": epsilon, **own}) for own in cls.replayed
        )

    @classmethod
    def of_case(cls, case: "WorstCase", epsilon: Rational) -> "Question[object]":
        """Return the question as a worst case asks it."""
        return cls(epsilon=epsilon, **{**cls.example, **case.fields})

    @classmethod
    def with_rows(cls, epsilon: Rational = 1) -> "tuple[Question[object], PrivateTable]":
        """Return a small example: a question, and made-up rows that answer it."""
        case = cls.worst_cases()[0]
        pair = case.pairs[0]
        return cls.of_case(case, epsilon), case.make(pair.first, pair.options)

    # --- as data ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, exact numbers as text; what is left at its default is left out."""
        content = {
            field.name: _plain(getattr(self, field.name))
            for field in _given(type(self))
            if getattr(self, field.name) != field.default
        }
        return {"question": self.kind, "version": VERSION, **content}

    def booked(self) -> dict[str, Any]:
        """Return what the ledger keeps of the question."""
        return self.as_dict()

    @classmethod
    def of_fields(cls, content: Mapping[str, Any]) -> "Question[object]":
        """Read what `as_dict` wrote, without `question` and `version`."""
        form = {field_.name: field_ for field_ in cls.form()}
        strange = sorted(set(content) - set(form))
        if strange:
            raise ArgumentError(
                f"A question of kind {cls.kind!r} has no field {shown(strange[0])}."
                f"{guess(strange[0], form)} Fields: {', '.join(form)}."
            )
        for name, field_ in form.items():
            if field_.required and name not in content:
                raise ArgumentError(f"A question of kind {cls.kind!r} needs the field {name!r}.")
        return cls(**content)


def _plain(value: Any) -> object:
    """Return a value as JSON has it: exact numbers as texts, tuples as lists."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


@cache
def _given(kind: type[Question[Any]]) -> list[Field[Any]]:
    """Return the fields that whoever asks gives."""
    return [field for field in fields(kind) if field.init]


@cache
def _form(kind: type[Question[Any]]) -> tuple[FormField, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_form_field(given, hints[given.name]) for given in _given(kind))


def _form_field(given: Field[Any], hint: Any) -> FormField:
    """Read the rule and the help of a field off its annotation; a field without them is a fault."""
    notes = getattr(hint, "__metadata__", ())
    rules = [note for note in notes if isinstance(note, Rule)]
    helps = [note for note in notes if isinstance(note, str)]
    if not rules or not helps:
        raise TypeError(f"The field {given.name!r} must have a rule and a help text.")
    default = given.default
    if given.default_factory is not MISSING:
        default = given.default_factory()
    required = default is MISSING
    return FormField(given.name, rules[-1], helps[-1], None if required else default, required)
