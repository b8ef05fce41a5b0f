"""One node as a rule sees it: what is known of its values, typed attributes, refusals in words."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
else:
    Array = Any  # NumPy is imported by the process that reads a model

T = TypeVar("T")
D = TypeVar("D")

TYPES = {1: "float32", 6: "int32", 7: "int64", 8: "string", 9: "bool", 11: "float64"}
"""The element types that a proven graph may use, by ONNX's number."""

MOST_NUMBERS = 2**20
"""Numbers that one row may have in any one value: memory is bounded before anything runs."""


class NotRowWise(Exception):
    """Why a node is refused, in words, and what the model's author can do about it."""

    def __init__(self, why: str, mend: str = "") -> None:
        super().__init__(why)
        self.why, self.mend = why, mend


@dataclass(frozen=True)
class Problem:
    """Why a model is not proven: which node, in words, and how to mend it."""

    node: str
    why: str
    mend: str

    def __str__(self) -> str:
        return f"{self.node}: {self.why}.{' ' + self.mend if self.mend else ''}"


@dataclass(frozen=True)
class RowWise:
    """One entry per row: axis 0 is the rows, and `shape` is what each of them holds.

    The claim that every rule keeps: entry i is a function of row i alone.
    """

    kind: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.shape):
            raise NotRowWise("a row of it holds nothing: one of its dimensions is 0")
        if self.size > MOST_NUMBERS:
            raise NotRowWise(f"a row of it holds {self.size:,} numbers, more than {MOST_NUMBERS:,}")

    @property
    def rank(self) -> int:
        """The number of axes, that of the rows included."""
        return 1 + len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Dims:
    """A vector of dimensions that `Shape` gave; None stands for the number of rows.

    The number of rows is the same for every row, so nothing of a row is in it; but arithmetic on
    it is not understood here, and refused.
    """

    extents: tuple[int | None, ...]
    scalar: bool = False


Value: TypeAlias = RowWise | Dims | Array
"""What is known of a value: one entry per row, dimensions, or a constant."""


def kind_of(constant: Array) -> str:
    """The element type of a constant, by the names of `TYPES`."""
    return "string" if constant.dtype.kind in "OUS" else str(constant.dtype)


FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int32", "int64")
MIXES = "it mixes rows"

Rule = Callable[["Call"], Sequence[Value]]
RULES: dict[str, Rule] = {}
"""The allow-list: an operator that is not here is refused."""


UNEVEN: dict[str, int] = {}
"""Nanoseconds by which the time for one number depends on what the number is.

Measured with onnxruntime 1.31 over 0, 1, denormal, huge, infinite, NaN, sorted and random numbers;
an operator with 0 differed by less than the measurement does, or only moves numbers.
Doubles take `DOUBLES`
times as long, and a text takes `TEXTS`, for its length and its copy.
"""
DOUBLES, TEXTS = 8, 150


INPUTS: dict[str, int | None] = {}
"""How many inputs an operator may have at most; None where its rule looks at every one."""


def rule(*operators: str, uneven: int = 0, inputs: int | None = None) -> Callable[[Rule], Rule]:
    """Put operators on the allow-list, with the rule that decides on each use of them."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            assert operator not in RULES, operator
            RULES[operator] = function
            UNEVEN[operator], INPUTS[operator] = uneven, inputs
        return function

    return register


@dataclass
class Call:
    """A node, the values that it is given, and which of its attributes a rule has looked at.

    An attribute that its rule never asks for is refused: nothing is ignored.
    """

    operator: str
    opset: int
    attributes: dict[str, Any]
    given: list[Value | None]
    fixed_batch: bool = False  # the model is declared for one row at a time
    outputs: int = 1
    steps: int = 0  # that a row may take and another not, such as down a tree
    _seen: set[str] = field(default_factory=set)

    def uneven(self) -> int:
        """Return by how many nanoseconds its time may differ between two rows, at most."""
        values = [value for value in self.given if isinstance(value, RowWise)]
        texts = sum(value.size for value in values if value.kind == "string")
        plain = max((value.size for value in values), default=0) * UNEVEN[self.operator]
        doubles = any(value.kind == "float64" for value in values)
        return TEXTS * texts + plain * (DOUBLES if doubles else 1) + 2 * self.steps

    # --- inputs ----------------------------------------------------------------------------------

    def rows(
        self, place: int = 0, *, kinds: Sequence[str] = (), rank: int | None = None
    ) -> RowWise:
        """An input that has one entry per row, of one of these types."""
        value = self.at(place)
        if not isinstance(value, RowWise):
            raise NotRowWise(f"its input {place + 1} must come from the rows")
        if kinds and value.kind not in kinds:
            raise NotRowWise(f"its input {place + 1} is {value.kind}; allowed: {', '.join(kinds)}")
        if rank is not None and value.rank != rank:
            raise NotRowWise(f"its input {place + 1} has {value.rank} axes, and needs {rank}")
        return value

    def optional(self, place: int) -> Array | None:
        """Return a constant input; None where it is left out."""
        return self.constant(place) if self.has(place) else None

    def constant(self, place: int) -> Array:
        """Return an input that is a constant of the model."""
        value = self.at(place)
        if isinstance(value, RowWise | Dims):
            raise NotRowWise(
                f"its input {place + 1} is computed from the rows, and must be a constant",
                "Export the model with constants folded.",
            )
        return value

    def has(self, place: int) -> bool:
        return place < len(self.given) and self.given[place] is not None

    def only(self, most: int | None) -> None:
        """Refuse inputs beyond so many."""
        if most is not None and len(self.given) > most:
            raise NotRowWise(f"it has {len(self.given)} inputs, more than {most}")

    def whole_numbers(self, place: int) -> list[int]:
        """A constant input with one axis of integers."""
        value = self.constant(place)
        if value.dtype.kind != "i" or value.ndim > 1:
            raise NotRowWise(f"its input {place + 1} must be a list of integers")
        return [int(number) for number in value.reshape(-1)]

    def at(self, place: int) -> Value:
        """An input of any kind."""
        value = self.given[place] if place < len(self.given) else None
        if value is None:
            raise NotRowWise(f"its input {place + 1} is missing")
        return value

    # --- attributes ------------------------------------------------------------------------------

    def _attribute(self, name: str, kind: type[T], default: D) -> T | D:
        self._seen.add(name)
        value = self.attributes.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise NotRowWise(f"its attribute {name} has the wrong type")
        return value

    def integer(self, name: str, default: int) -> int:
        return int(self._attribute(name, int, default))

    def number(self, name: str, default: float) -> float:
        value = float(self._attribute(name, float, default))
        if not math.isfinite(value):
            raise NotRowWise(f"its attribute {name} is not finite")
        return value

    def word(self, name: str, allowed: Sequence[str], default: str) -> str:
        """A text that must be one of these."""
        word = self._attribute(name, str, default)
        if word not in allowed:
            raise NotRowWise(f"its attribute {name} must be one of {', '.join(allowed)}")
        return str(word)

    def text(self, name: str) -> str:
        return str(self._attribute(name, str, ""))

    def numbers(self, name: str) -> Array:
        """A NumPy array of doubles, from a list of floats or a tensor; empty if it is absent."""
        return self._list(name, "f", float)

    def integers(self, name: str) -> Array:
        """A NumPy array of 64-bit integers; empty if it is absent."""
        return self._list(name, "i", int)

    def _list(self, name: str, kind: str, empty: type) -> Array:
        import numpy as np

        values: Array | None = self._attribute(name, np.ndarray, None)
        if values is None:
            return np.empty(0, empty)
        if values.dtype.kind != kind or values.ndim != 1:
            raise NotRowWise(f"its attribute {name} has the wrong type")
        return values

    def array(self, name: str, default: Array | None = None) -> Array:
        """Return a tensor, of any type and shape."""
        import numpy as np

        tensor: Array | None = self._attribute(name, np.ndarray, default)
        if tensor is None:
            raise NotRowWise(f"its attribute {name} is missing")
        return tensor

    def tensor(self, name: str, default: Array) -> Array:
        """A tensor of one number."""
        number = self.array(name, default)
        if number.size != 1 or kind_of(number) not in NUMBERS:
            raise NotRowWise(f"its attribute {name} must be one number")
        return number

    def texts(self, name: str) -> list[str]:
        return list(self._attribute(name, list, []))

    def ignore(self, *names: str) -> None:
        """Attributes that change nothing of what is computed."""
        self._seen.update(names)

    def finish(self) -> None:
        unknown = sorted(set(self.attributes) - self._seen)
        if unknown:
            raise NotRowWise(f"its attribute {unknown[0]} is not one that the verifier knows")

    # --- axes ------------------------------------------------------------------------------------

    def inner(self, axis: int, rank: int) -> int:
        """An axis as an index into `Rows.shape`; the axis of the rows is refused."""
        if not -rank <= axis < rank:
            raise NotRowWise(f"its axis {axis} is not one of {rank}")
        place = axis % rank
        if place == 0:
            raise NotRowWise(
                f"{MIXES}: it works along axis 0, where the rows are",
                "Work along the features (axis 1 or later).",
            )
        return place - 1

    def axes(self, place: int) -> list[int] | None:
        """Axes given as an attribute (older opsets) or as an input; None where there are none."""
        attribute = self.integers("axes")
        if self.has(place):
            if len(attribute):
                raise NotRowWise("its axes are given twice")
            return self.whole_numbers(place)
        return [int(axis) for axis in attribute] if "axes" in self.attributes else None

    def inner_axes(self, axes: list[int] | None, rank: int) -> list[int]:
        """Distinct axes of which none is that of the rows; none at all would mean every one."""
        if not axes:
            raise NotRowWise(
                f"{MIXES}: without axes it works along all of them, the rows included",
                "Name the axes, from 1 on.",
            )
        places = [self.inner(axis, rank) for axis in axes]
        if len(set(places)) < len(places):
            raise NotRowWise("one of its axes is named twice")
        return places

    def _plain_values(self, places: Sequence[int] | None = None) -> "list[RowWise | Array]":
        """Return these inputs, or all of them: of the rows, or constants."""
        values = [self.at(place) for place in places or range(len(self.given))]
        plain = [value for value in values if not isinstance(value, Dims)]
        if len(plain) < len(values):
            raise NotRowWise("it computes with the number of rows")
        return plain

    def broadcast(self) -> tuple[int, ...]:
        """Return what one row of the result holds when its inputs are broadcast together.

        Rows meet rows at axis 0 only if all have the same number of axes; a constant must not
        reach axis 0, or be 1 wide there.
        """
        import numpy as np

        values = self._plain_values()
        ranks = [value.rank if isinstance(value, RowWise) else value.ndim for value in values]
        rank, shapes = max(ranks), []
        for value, own in zip(values, ranks, strict=True):
            if isinstance(value, RowWise):
                if own != rank:
                    raise NotRowWise(
                        f"{MIXES}: a value with {own} axes is broadcast against one with {rank}, "
                        "so that its rows meet the other's features",
                        "Keep the dimension (keepdims=1), or reshape to the same number of axes.",
                    )
                shapes.append(value.shape)
                continue
            if own == rank and value.shape[0] != 1:
                raise NotRowWise(
                    f"{MIXES}: a constant with {value.shape[0]} entries lies along the rows",
                    "Give the constant one row.",
                )
            shapes.append(value.shape[1:] if own == rank else value.shape)
        try:
            return tuple(int(extent) for extent in np.broadcast_shapes(*shapes))
        except ValueError:
            raise NotRowWise("the shapes of its inputs do not fit") from None

    def same_kind(self, kinds: Sequence[str], places: Sequence[int] | None = None) -> str:
        """The one element type that all of these inputs have."""
        values = self._plain_values(places)
        known = {value.kind if isinstance(value, RowWise) else kind_of(value) for value in values}
        kind = known.pop()
        if known or kind not in kinds:
            raise NotRowWise(f"its inputs must be of one type among {', '.join(kinds)}")
        return str(kind)
