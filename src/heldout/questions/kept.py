"""Drawn numbers and public facts as plain JSON, exactly, and back.

What is no number, text, list or None is an object with one key that says what it is:
`{"fraction": "1/3"}`, `{"tuple": [...]}`, `{"map": {...}}`, `{"array": {...}}`, or the name of a
dataclass with its fields. Kinds of questions declare the dataclasses: descriptions of rows (`of`),
what is drawn for them (`stores`), and what these are made of by their annotations. Reading makes
these and nothing else, and checks every field against its annotation, so content from an untrusted
file is read or refused.
"""

import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np

from heldout.kernel.rational import show, stored
from heldout.questions.registry import registered

__all__ = ["from_plain", "plain", "stored_classes"]

_ENDLESS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TYPES: Final = {"int64": (int,), "float64": (int, float), "bool": (bool,)}


def plain(value: Any) -> Any:
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
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isfinite(value):
        return value
    return dict([_named(value)])


def _named(value: Any) -> tuple[str, Any]:
    """What a value is, and of what."""
    kind = type(value)
    if kind is float:
        return "float", str(value)
    if kind is Fraction:
        return "fraction", show(value)
    if kind is tuple:
        return "tuple", [plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return "map", {name: plain(each) for name, each in value.items()}
    if kind is np.ndarray and value.dtype.name in _TYPES:
        numbers = value.ravel().tolist()
        if value.dtype.name == "float64":
            numbers = [each if math.isfinite(each) else str(each) for each in numbers]
        return "array", {
            "type": value.dtype.name,
            "shape": list(value.shape),
            "values": numbers,
        }
    if stored_classes().get(kind.__name__) is kind:
        return kind.__name__, {name: plain(getattr(value, name)) for name in _hints(kind.__name__)}
    raise TypeError(f"A {kind.__name__} cannot be kept.")


def from_plain(content: Any) -> Any:
    """What `plain` wrote; a ValueError or another error where it is anything else."""
    if content is None or isinstance(content, bool | int | float | str):
        return content
    if isinstance(content, list):
        return [from_plain(each) for each in content]
    [(kind, inner)] = content.items()
    return _READERS[kind](inner) if kind in _READERS else _made(kind, inner)


def _made(kind: str, content: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    if not _asked(kind) <= set(content) <= set(hints):
        raise ValueError(kind)
    found = {name: from_plain(each) for name, each in content.items()}
    for name, value in found.items():
        if not _fits(value, hints[name]):
            raise ValueError(name)
    made = stored_classes()[kind](**found)
    if not _whole(made):
        raise ValueError(kind)
    return made


def _tuple(content: Any) -> tuple[Any, ...]:
    return tuple(from_plain(each) for each in _checked(content, list))


def _map(content: Any) -> dict[str, Any]:
    return {name: from_plain(each) for name, each in _checked(content, dict).items()}


def _array(content: Any) -> Any:
    kind = content["type"]
    numbers = [_ENDLESS[each] if isinstance(each, str) else each for each in content["values"]]
    if not all(type(each) in _TYPES[kind] for each in numbers):
        raise ValueError(kind)
    return np.array(numbers, dtype=kind).reshape([_checked(each, int) for each in content["shape"]])


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
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
    return _reachable(tuple(root for each in registered() for root in (*each.of, *each.stores)))


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
            inner for each in fields(kind) if each.init for inner in _named_in(hints[each.name])
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
    return {each.name: hints[each.name] for each in fields(kind) if each.init}


@cache
def _asked(name: str) -> set[str]:
    """The fields that every version has written; those with a default came later."""
    return {
        each.name
        for each in fields(stored_classes()[name])
        if each.init and each.default is MISSING
    }


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation of the kept dataclasses says."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is tuple:
        length = len(value) if isinstance(value, tuple) else -1
        hints = [inner[0]] * length if inner[-1] is ... else inner
        return len(hints) == length and all(map(_fits, value, hints))
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is not None:  # a mapping from names
        return isinstance(value, dict) and all(_fits(each, inner[1]) for each in value.values())
    if hint is Any or isinstance(value, bool):
        return hint in (Any, bool)
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, str if issubclass(hint, str) else hint)


def _whole(made: Any) -> bool:
    """Whether its parts have the sizes that its mechanism gives them."""
    from heldout.kernel.noise.tables.table import NoisyTable
    from heldout.kernel.ranking.mechanism import RankingDraw
    from heldout.questions.curves.methods.influence import Placements

    if isinstance(made, RankingDraw):
        mechanism, first = made.mechanism, made.first_counts
        looks = ((mechanism.first_look, first), (mechanism.second_look(first), made.second_counts))
        return all(len(counts) == (look.dimension if look else 0) for look, counts in looks)
    if isinstance(made, Placements):
        sizes = {np.shape(each) for each in (made.cuts, made.false, made.true)}
        return len(sizes) == 1 and bool((np.diff(made.cuts) > 0).all()) and made.smaller > 0
    if isinstance(made, NoisyTable):
        each, above = made.noise.bin_deviation, made.noise.above_deviation
        return bool(each.shape == (2, made.bins) and above.shape == (2, made.bins + 1))
    return True
