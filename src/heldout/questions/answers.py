"""Answers that can be stored: as JSON, and back to the same releases without rows or a ledger."""

import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Final, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from heldout import questions as q
from heldout.data.description import Description
from heldout.errors import ArgumentError, HeldoutError
from heldout.kernel import Budget, Loss, Receipt, price
from heldout.kernel.door import Drawn, Standing
from heldout.kernel.loss import show, stored
from heldout.questions.base import Rival
from heldout.questions.quote import booked_together
from heldout.questions.registry import registered

# --- Drawn numbers and public facts as plain JSON, exactly, and back -----------------------------
#
# What is no number, text, list or None is an object with one key that says what it is:
# `{"fraction": "1/3"}`, `{"tuple": [...]}`, `{"map": {...}}`, `{"array": {...}}`, or the name of a
# dataclass with its fields. Kinds of questions declare the dataclasses: descriptions of rows
# (`of`), what is drawn for them (`stores`), and what these are made of by their annotations.
# Reading makes these and nothing else, and checks every field against its annotation, so content
# from an untrusted file is read or refused.


_ENDLESS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TYPES: Final = {"int64": (int,), "float64": (int, float), "bool": (bool,)}


def plain(value: Any) -> object:
    """The value as JSON; a TypeError where it is of no kind that can be kept.

    >>> plain((Fraction(1, 3), np.array([1, 2])))
    {'tuple': [{'fraction': '1/3'}, {'array': {'type': 'int64', 'shape': [2], 'values': [1, 2]}}]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and math.isfinite(value):
        return value
    return dict([_named(value)])


_IF_GIVEN: Final = frozenset({("Protection", "outcome")})
"""Fields that are left out where empty: an answer from before they came is written as it was."""


def _named(value: Any) -> tuple[str, Any]:
    """Return what a value is, and of what."""
    kind = type(value)
    if kind is float:
        return "float", str(value)
    if kind is Fraction:
        return "fraction", show(value)
    if kind is tuple:
        return "tuple", [plain(entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return "map", {name: plain(entry) for name, entry in value.items()}
    if kind is np.ndarray and value.dtype.name in _TYPES:
        numbers = value.ravel().tolist()
        if value.dtype.name == "float64":
            numbers = [number if math.isfinite(number) else str(number) for number in numbers]
        return "array", {
            "type": value.dtype.name,
            "shape": list(value.shape),
            "values": numbers,
        }
    if stored_classes().get(kind.__name__) is kind:
        given = {name: getattr(value, name) for name in _hints(kind.__name__)}
        return kind.__name__, {
            name: plain(entry)
            for name, entry in given.items()
            if (kind.__name__, name) not in _IF_GIVEN or entry != ()
        }
    raise TypeError(f"A {kind.__name__} cannot be kept.")


def from_plain(content: Any) -> object:
    """Return what `plain` wrote; a ValueError or another error where it is anything else."""
    if content is None or isinstance(content, bool | int | float | str):
        return content
    if isinstance(content, list):
        return [from_plain(entry) for entry in content]
    [(kind, inner)] = content.items()
    return _READERS[kind](inner) if kind in _READERS else _made(kind, inner)


def _made(kind: str, content: Mapping[str, Any]) -> object:
    hints = _hints(kind)
    if not _asked(kind) <= set(content) <= set(hints):
        raise ValueError(kind)
    fields = {name: from_plain(entry) for name, entry in content.items()}
    for name, value in fields.items():
        if not _fits(value, hints[name]):
            raise ValueError(name)
    made = stored_classes()[kind](**fields)
    if not _whole(made):
        raise ValueError(kind)
    return made


def _tuple(content: Any) -> tuple[Any, ...]:
    return tuple(from_plain(entry) for entry in _checked(content, list))


def _map(content: Any) -> dict[str, Any]:
    return {name: from_plain(entry) for name, entry in _checked(content, dict).items()}


def _array(content: Any) -> NDArray[Any]:
    kind = content["type"]
    numbers = [
        _ENDLESS[number] if isinstance(number, str) else number for number in content["values"]
    ]
    if not all(type(number) in _TYPES[kind] for number in numbers):
        raise ValueError(kind)
    return np.array(numbers, dtype=kind).reshape(
        [_checked(extent, int) for extent in content["shape"]]
    )


Checked = TypeVar("Checked")


def _checked(value: object, kind: type[Checked]) -> Checked:
    if type(value) is not kind or not isinstance(value, kind):
        raise ValueError(kind.__name__)
    return value


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "array": _array,
    "float": _ENDLESS.__getitem__,
    "fraction": stored,
    "map": _map,
    "tuple": _tuple,
}


def stored_classes() -> Mapping[str, type]:
    """Return the dataclasses that may be stored, by name: what kinds declare, and its parts."""
    return _reachable(
        tuple(root for question in registered() for root in (*question.of, *question.stores))
    )


@cache
def _reachable(roots: tuple[type, ...]) -> Mapping[str, type]:
    classes: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop()
        if not is_dataclass(kind) or classes.get(kind.__name__) is kind:
            continue
        if kind.__name__ in classes:
            raise TypeError(f"Two dataclasses to store are called {kind.__name__}.")
        classes[kind.__name__] = kind
        hints = get_type_hints(kind)
        waiting += [
            inner for field in fields(kind) if field.init for inner in _named_in(hints[field.name])
        ]
    return classes


def _named_in(hint: Any) -> Iterator[type]:
    """Yield the classes that an annotation names."""
    if isinstance(hint, type) and get_origin(hint) is None:
        yield hint
    for inner in get_args(hint):
        yield from _named_in(inner)


@cache
def _hints(name: str) -> dict[str, Any]:
    """The fields that are given, with their annotations; the others follow from these."""
    kind = stored_classes()[name]
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


@cache
def _asked(name: str) -> set[str]:
    """The fields that every version has written; those with a default came later."""
    return {
        field.name
        for field in fields(stored_classes()[name])
        if field.init and field.default is MISSING
    }


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is what an annotation of the kept dataclasses says."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        origin, hint = None, np.ndarray
    if origin in (Union, types.UnionType):
        return any(_fits(value, kind) for kind in inner)
    if origin is tuple:
        length = len(value) if isinstance(value, tuple) else -1
        hints = [inner[0]] * length if inner[-1] is ... else inner
        return len(hints) == length and all(map(_fits, value, hints))
    if origin is not None:  # a mapping from names
        return isinstance(value, dict) and all(_fits(entry, inner[1]) for entry in value.values())
    if hint is Any or isinstance(value, bool):
        return hint in (Any, bool)
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, str if issubclass(hint, str) else hint)


def _whole(made: Any) -> bool:
    """Return whether its parts have the sizes that its mechanism gives them."""
    from heldout.kernel.curves.heldout import Placements
    from heldout.kernel.noise.tables import NoisyTable
    from heldout.kernel.ranking.mechanism import RankingDraw
    from heldout.kernel.ranking.value_or_counts import ValueOrTable

    if isinstance(made, ValueOrTable):
        return made.is_whole
    if isinstance(made, RankingDraw):
        mechanism, first = made.mechanism, made.first_counts
        looks = ((mechanism.first_look, first), (mechanism.second_look(first), made.second_counts))
        return all(len(counts) == (look.dimension if look else 0) for look, counts in looks)
    if isinstance(made, Placements):
        sizes = {np.shape(array) for array in (made.cuts, made.false, made.true)}
        return len(sizes) == 1 and bool((np.diff(made.cuts) > 0).all()) and made.smaller > 0
    if isinstance(made, NoisyTable):
        by_bin, above = made.noise.bin_deviation, made.noise.above_deviation
        return bool(by_bin.shape == (2, made.bins) and above.shape == (2, made.bins + 1))
    return True


# --- Answers that can be kept: as JSON, and back to the same releases without rows or a ledger ---


SCHEMA = 1
FIELDS = {"schema", "questions", "about", "values", "receipt", "budget", "spent", "remaining"}
RULES = "rules"  # one number per question, left out where all are 1, as all were at first
READINGS = "readings"  # one per question, left out where the noisy numbers decide everything


@dataclass(frozen=True, eq=False)
class Answered:
    """Questions that were booked as one, and what was drawn for them. All of it is public.

    >>> import heldout as ho, json
    >>> rows = ho.Dataset({"y": [1, 0] * 500, "p": [0.8, 0.3] * 500}, label="y", score="p")
    >>> answered = ho.Session(rows, budget=ho.Budget(epsilon=1)).answer(q.Confusion(epsilon=1))
    >>> content = json.dumps(answered.as_dict())
    >>> [kept], [drawn] = Answered.from_dict(json.loads(content)).releases, answered.releases
    >>> kept.as_dict() == drawn.as_dict()
    True
    """

    questions: tuple[q.Question[Any], ...]
    drawn: Drawn
    names: Mapping[str, str] = field(default_factory=dict)
    """Names that people use for columns, where they have better ones."""
    readings: tuple[Mapping[str, Any] | None, ...] = ()
    """Readings from when it was stored, where the noisy numbers do not decide them."""

    @cached_property
    def releases(self) -> tuple[Any, ...]:
        """Return what people read, one for each question."""
        if len(self.questions) == 1:
            releases: tuple[Any, ...] = (self.questions[0].release(self.drawn),)
        else:
            releases = tuple(
                question.release(self.drawn.part(str(at)))
                for at, question in enumerate(self.questions)
            )
        if self.readings:
            releases = tuple(
                release if read is None else release.as_read(read)
                for release, read in zip(releases, self.readings, strict=True)
            )
        if not self.names:
            return releases
        return tuple(release.called(self.names) for release in releases)

    def of_models(self, *names: str) -> Self:
        """Return the same answers about models by their names: the first one, and its rival."""
        columns = (self.drawn.about.model, Rival.elsewhere)
        called = {column: name for column, name in zip(columns, names, strict=False) if column}
        return replace(self, names=called)

    @property
    def receipt(self) -> Receipt:
        assert self.drawn.receipt is not None
        return self.drawn.receipt

    @property
    def standing(self) -> Standing:
        """The account right after it paid."""
        assert self.drawn.standing is not None
        return self.drawn.standing

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, exact and complete: `from_dict` gives the same releases."""
        standing, rules = self.standing, [question.rules for question in self.questions]
        readings = [release.stored_readings() for release in self.releases]
        return {
            "schema": SCHEMA,
            "questions": [question.as_dict() for question in self.questions],
            "about": plain(self.drawn.about),
            "values": plain(self.drawn.values),
            "receipt": self.receipt.as_dict(),
            "budget": standing.budget.as_dict(),
            "spent": standing.spent.as_dict(),
            "remaining": standing.remaining.as_dict(),
            **({} if set(rules) == {1} else {RULES: rules}),
            **({READINGS: readings} if any(readings) else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote, from wherever it comes; anything else is refused."""
        if not isinstance(content, Mapping) or set(content) - {RULES, READINGS} != FIELDS:
            raise ArgumentError("An answer must be an object as Answered.as_dict() gives it.")
        if content["schema"] != SCHEMA or isinstance(content["schema"], bool):
            raise ArgumentError(
                f"The schema of an answer must be {SCHEMA}. Use a version of heldout that knows "
                "this one."
            )
        try:
            answered = cls._rebuilt(content)
            for release in answered.releases:  # reads all of the values
                measures = release.measures() if callable(release.measures) else release.measures
                _ = [float(measure.value) for measure in measures.values()]
        except HeldoutError as error:
            raise ArgumentError(f"This answer cannot be read: {error}") from None
        except Exception:
            raise ArgumentError("This answer cannot be read: its values are malformed.") from None
        return answered

    @classmethod
    def _rebuilt(cls, content: Mapping[str, Any]) -> Self:
        asked = [q.from_dict(question) for question in content["questions"]]
        rules = content.get(RULES, [1] * len(asked))
        questions = tuple(question.under(own) for question, own in zip(asked, rules, strict=True))
        about = from_plain(content["about"])
        if not isinstance(about, Description):
            raise ArgumentError("about must describe rows.")
        request = booked_together(questions, about)
        receipt = Receipt.from_dict(content["receipt"])
        if receipt.loss != price(request.event()):
            raise ArgumentError("the receipt's price is not that of the questions.")
        amounts = (content[name] for name in ("spent", "remaining"))
        standing = Standing(Budget.from_dict(content["budget"]), *map(Loss.from_dict, amounts))
        values = from_plain(content["values"])
        terms = about.protection.terms(receipt.loss)
        drawn = Drawn(request, values, receipt, about, standing, terms)
        return cls(questions, drawn, readings=tuple(content.get(READINGS, ())))
