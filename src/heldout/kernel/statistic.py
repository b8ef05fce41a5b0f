"""Exact statistics: one statement over the rows, sealed, and how far one neighbour moves it."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeVar

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import Columns, double
from heldout.errors import SealedError
from heldout.kernel.neighbours import Protection

if TYPE_CHECKING:
    from heldout.data import PrivateTable

Content = TypeVar("Content")


class Sealed(Generic[Content]):
    """Holds an exact statistic between the rows and the noise.

    Python cannot hide a value from code that runs in the same process; this keeps it out of
    prints, logs, tracebacks, JSON, pickles and comparisons, where values escape by accident. Only
    `heldout.kernel.noise` has the key, `unseal`; a test reads the source to be sure.

    >>> secret = Sealed(42)
    >>> secret
    <Sealed statistic>
    >>> float(secret)
    Traceback (most recent call last):
    heldout.errors.SealedError: an un-noised statistic must not be shown. Release it through ...
    """

    __slots__ = ("_content",)

    def __init__(self, content: Content) -> None:
        self._content = content

    def __repr__(self) -> str:
        return "<Sealed statistic>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SealedError(
            "an un-noised statistic must not be shown. Release it through a Session."
        ) from None

    __str__ = __format__ = __float__ = __int__ = __index__ = __complex__ = __bool__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __array__ = __copy__ = __deepcopy__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse


S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")


@dataclass(frozen=True)
class Statistic(ABC, Generic[S_co]):
    """An exact statistic of the rows, of type `S`. Its parameters are public.

    A class is registered by being defined. It gives `examples()`, whose sensitivity the
    conformance suite brute-forces on all small neighbouring data sets, or it names in `shown_by`
    the test that does so in its stead; a class that does neither fails the suite.
    """

    claim: ClassVar[str]
    shown_by: ClassVar[str | None] = None
    """`tests/<file>.py::<test>`, for a statistic that is not a plain vector of label and score."""
    _defined: ClassVar[list[type["Statistic[Any]"]]] = []

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        Statistic._defined.append(cls)

    @abstractmethod
    def body(self) -> str:
        """The SELECT over `evaluated`, in DuckDB's dialect."""

    @abstractmethod
    def read(self, columns: Columns) -> S_co:
        """Return what the statement's columns mean, in integers and rationals."""

    def sensitivity(self, protection: Protection) -> int:
        """The largest L1 distance between the vectors of neighbouring data sets."""
        raise TypeError(f"{type(self).__name__} has no one sensitivity: see its contract.")

    def of_groups(self, groups: int) -> "Statistic[Any]":
        """Return the same statistic of each of several groups of rows, by the column `member`."""
        raise TypeError(f"{type(self).__name__} cannot be computed by group.")

    @classmethod
    def examples(cls, protection: Protection) -> list["Statistic[Any]"]:
        """Small instances for the conformance suite, read off `evaluated(label, score)`."""
        return []


def compute(statistic: Statistic[S], dataset: "PrivateTable") -> Sealed[S]:
    """Read the rows once and seal what comes out."""
    return Sealed(statistic.read(dataset._fetch(statistic.body())))


def registered() -> list[type[Statistic[Any]]]:
    """Return every statistic of this package whose module is loaded: nothing lists them."""
    ours = [kind for kind in Statistic._defined if kind.__module__.startswith("heldout.")]
    return [kind for kind in ours if not inspect.isabstract(kind)]


def tally(rows: Any, *places: tuple[Any, int]) -> Ints:
    """Rows by cell, the last place fastest, then the rows that have none.

    A place is a column of whole numbers and how many it may take, from 0. It is total: a place
    that is NULL or out of reach leads its rows to the last entry and never to another's cell, so
    a row moves one entry even where it should not have passed validation.

    >>> label, point = np.ma.array([0, 1, 1], mask=[0, 0, 1]), np.array([2, 7, 0])
    >>> tally([5, 3, 4], (label, 2), (point, 3)).tolist()
    [0, 0, 5, 0, 0, 0, 7]
    """
    cell, size = np.zeros(len(rows), dtype=np.int64), 1
    known = np.ones(len(rows), dtype=bool)
    for column, most in places:
        place = np.asarray(np.ma.filled(column, -1), dtype=np.int64)
        known &= (place >= 0) & (place < most) & ~np.ma.getmaskarray(column)
        cell, size = cell * most + place, size * most
    counts = np.zeros(size + 1, dtype=np.int64)
    np.add.at(counts, np.where(known, cell, size), np.asarray(rows, dtype=np.int64))
    return counts


def tallied(
    columns: Columns, places: Sequence[tuple[Any, int]], *, groups: int, weighted: bool
) -> Ints:
    """Each group's counts by place, and what its weights lack to be squares after them."""
    member = [(columns["member"], groups)] if groups > 1 else []
    sums = ("n", "lacking") if weighted else ("n",)
    tables = [tally(columns[name], *member, *places)[:-1].reshape(groups, -1) for name in sums]
    return np.concatenate(tables, axis=1).ravel()


def as_scores(column: Any) -> Floats:
    """Scores as doubles; NULL and NaN, which validation refuses, would count as the lowest.

    >>> as_scores(np.ma.array([0.5, 9.0], mask=[0, 1])).tolist()
    [0.5, -inf]
    """
    scores = np.asarray(np.ma.filled(np.ma.asarray(column, dtype=np.float64), -np.inf))
    return np.where(np.isnan(scores), -np.inf, scores)


STEPS: Final = 2**20
"""Of the largest weight; sums over 2^40 rows fit 64 bits."""


def held_steps(number: str) -> str:
    """A number in whole steps, held to 0 and 1 first, so that none can be too large to cast."""
    clipped = f"greatest({double(0)}, least({double(1)}, {number}))"
    return f"CAST(floor({clipped} * {double(STEPS)} + 0.5) AS BIGINT)"


def part_of(number: str, share: str, steps: int = STEPS) -> str:
    """So many steps of a number of them, rounded down: two whole numbers from 0 to `steps`.

    The product is below 2^44, so it is exact in a double, and its quotient is on the right side of
    every whole number.
    """
    return f"CAST(floor(({number}) * ({share}) / {double(steps)}) AS BIGINT)"


def summed(number: str, name: str) -> str:
    return f"CAST(sum({number}) AS BIGINT) AS {name}"


def counted(weighted: bool) -> str:
    """The rows of a group as n; or their weights in steps, and what these lack to be squares."""
    if not weighted:
        return "count(*) AS n"
    weight = held_steps("weight")
    return f"{summed(weight, 'n')}, {summed(part_of(weight, f'{STEPS} - {weight}'), 'lacking')}"
