"""What the verifier knows of a value in a graph: one entry a row, a constant, or a shape."""

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["MOST_NUMBERS", "TYPES", "Dims", "NotRowWise", "Problem", "Rows", "Value", "kind_of"]

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
class Rows:
    """One entry a row: axis 0 is the rows, and `shape` is what each of them holds.

    The claim that every rule keeps: entry i is a function of row i alone.
    """

    kind: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        size = 1
        for extent in self.shape:
            if extent < 1:
                raise NotRowWise("a row of it holds nothing: one of its dimensions is 0")
            size *= extent
        if size > MOST_NUMBERS:
            raise NotRowWise(f"a row of it holds {size:,} numbers, more than {MOST_NUMBERS:,}")

    @property
    def rank(self) -> int:
        """The number of axes, that of the rows included."""
        return 1 + len(self.shape)

    @property
    def size(self) -> int:
        found = 1
        for extent in self.shape:
            found *= extent
        return found


@dataclass(frozen=True)
class Dims:
    """A vector of dimensions that `Shape` gave; None stands for the number of rows.

    The number of rows is the same for every row, so nothing of a row is in it; but arithmetic on
    it is not understood here, and refused.
    """

    extents: tuple[int | None, ...]
    scalar: bool = False


Value: TypeAlias = Any
"""`Rows`, `Dims`, or a NumPy array, which is a constant."""


def kind_of(constant: Any) -> str:
    """The element type of a constant, by the names of `TYPES`."""
    return "string" if constant.dtype.kind in "OUS" else str(constant.dtype)
