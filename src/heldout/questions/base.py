"""What a question is: frozen data that needs no rows, knows its price and reads its own answer."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Self, get_type_hints

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.privacy.loss import Loss
from heldout.questions.guess import Guess, HalfWidths
from heldout.questions.rules import Price
from heldout.release import Drawn, Priced

__all__ = ["Question"]

VERSION = 1
KINDS: dict[str, type["Question"]] = {}
OF_ROWS = {
    "ScoredRows": "rows with a label of two values and a score",
    "ClassifiedRows": "rows of several classes, of which ask 'class-confusion', 'class-auc', "
    "'class-average-precision', 'top-k', 'brier', 'log-loss' or 'report'",
    "FittedRows": "observed and predicted values",
    "FeatureRows": "a table of features",
    "TruthRows": "rows to tell from made-up ones",
}
"""What rows are, in words, by the name of their description."""


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """One question to private rows, at one exact price.

    A kind of question is a frozen dataclass. Each field says in its annotation what it may be
    (`questions.rules`), which is checked when the question is made; what depends on the rows'
    public description is checked by `request`, still before anything is booked.

    To add one: a subclass with `kind`, `of`, `request` and `read`, and its line in
    `heldout.questions.PLACES`. The command line, quotes, reports, audits and the server speak it.
    """

    kind: ClassVar[str]
    of: ClassVar[tuple[type, ...]]
    """What kinds of rows it is asked of, by their description."""
    draws: ClassVar[int] = 1
    """How many typical answers a forecast takes the median of; 1 where they have no noise."""
    rules: ClassVar[int] = 1
    """By which rules public facts become its request, and its answer a release. A kind that changes
    them knows the old ones still: an answer is read by the rules that it was drawn by."""
    known_rules: ClassVar[tuple[int, ...]] = (1,)
    epsilon: Price
    price: Fraction = field(init=False, repr=False, compare=False)
    """Epsilon, exactly."""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        rules = _rules(type(self))
        for each in _given(type(self)):
            value = getattr(self, each.name)
            if each.name in rules and not (value is None and each.default is None):
                object.__setattr__(self, each.name, rules[each.name](value, each.name))
        object.__setattr__(self, "price", self.epsilon)

    def check(self, about: Any) -> None:
        """Refuse rows of another kind, before anything is booked."""
        if type(about) not in self.of:
            kind = OF_ROWS.get(type(about).__name__, type(about).__name__)
            raise ArgumentError(
                f"A question of kind {self.kind!r} cannot be asked of these rows: they are {kind}."
            )

    @abstractmethod
    def request(self, about: Any) -> Priced:
        """What the door books and draws, from the public description of the rows."""

    @abstractmethod
    def read(self, drawn: Drawn) -> Any:
        """The release: what people read of the numbers that were drawn."""

    def loss(self, about: Any) -> Loss:
        """What it costs, exactly."""
        from heldout.privacy import price

        return price(self.request(about).event())

    def typical(self, about: Any, guess: Guess) -> Any:
        """What `request(about).draw` gives on rows like the guessed ones, with no row read.

        None: nothing can be said of its half-widths beforehand.
        """
        return None

    def typical_release(self, about: Any, guess: Guess) -> Any:
        """The release that `typical` makes, by the very arithmetic of a paid one."""
        values = self.typical(about, guess)
        if values is None:
            return None
        return self.read(Drawn(self.request(about), values, None, about, None))

    def expected(self, about: Any, guess: Guess, level: float = 0.95) -> dict[str, HalfWidths]:
        """How far the intervals of each measure will reach, if the guess is right."""
        found: dict[str, list[HalfWidths]] = {}
        for _ in range(self.draws):
            release = self.typical_release(about, guess)
            for name, measure in ({} if release is None else release.measures).items():
                found.setdefault(name, []).append(HalfWidths.of(measure, level))
        return {name: HalfWidths.median(several) for name, several in found.items()}

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

    # --- as data ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, exact numbers as text; what is left at its default is left out."""
        content = {
            each.name: _plain(getattr(self, each.name))
            for each in _given(type(self))
            if getattr(self, each.name) != each.default
        }
        return {"question": self.kind, "version": VERSION, **content}

    def booked(self) -> dict[str, Any]:
        """What the ledger keeps of the question."""
        return self.as_dict()

    @classmethod
    def of_fields(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote, without `question` and `version`."""
        known = {each.name: each for each in _given(cls)}
        strange = sorted(set(content) - set(known))
        if strange:
            raise ArgumentError(
                f"A question of kind {cls.kind!r} has no field {shown(strange[0])}. Fields: "
                f"{', '.join(known)}."
            )
        for name, each in known.items():
            if each.default is MISSING and each.default_factory is MISSING and name not in content:
                raise ArgumentError(f"A question of kind {cls.kind!r} needs the field {name!r}.")
        return cls(**content)


@cache
def _given(kind: type[Question]) -> list[Field[Any]]:
    """The fields that whoever asks gives."""
    return [each for each in fields(kind) if each.init]


@cache
def _rules(kind: type) -> dict[str, Any]:
    """The rule of each field, from its annotation."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            found[name] = each
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
