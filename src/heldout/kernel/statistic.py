"""Exact statistics: one statement over the rows, sealed, and how far one neighbour moves it."""

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, Self, TypeVar

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.sql import MOST_ROWS, Columns, double
from heldout.errors import ArgumentError, SealedError
from heldout.kernel.neighbours import Neighbours, Protection

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


@dataclass(frozen=True)
class DisjointCounts(Statistic[Ints]):
    """Rows by the one cell that each is in: a combination of places, all of the row's own values.

    The vector has one entry for each combination, the last place fastest. With more than one group
    there is such a vector for each, one after the other, and a row is in that of its own `member`.
    Rows that are `weighted` count for their weights, in whole steps of the largest one; then come
    as many entries with the sums of w (1 - w), w a share of the largest, which tell the sums of
    w^2.

    Claim:       L1 sensitivity 1 per row that leaves or arrives, or the largest weight in steps.
                                                                       [claim: disjoint-counts]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row has one number for each place, so it is counted in one cell, however many of
                 them there are, whomever it belongs to: k rows under add-remove, 2k under
                 replace-one. A weight adds w + w (1 - w), which is at most 1.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   proofs/disjoint-counts.md.
    Cost:        one scan, O(cells) memory.
    """

    groups: int = field(default=1, kw_only=True)
    weighted: bool = field(default=False, kw_only=True)
    claim: ClassVar[str] = "disjoint-counts"

    @abstractmethod
    def places(self) -> dict[str, tuple[str, int]]:
        """Return of each place its name, what it is in SQL, and how many there are, from 0."""

    @property
    def size(self) -> int:
        """Return how many entries the vector has."""
        cells = math.prod(most for _, most in self.places().values())
        return cells * self.groups * (1 + self.weighted)

    def body(self) -> str:
        chosen = [
            number if number == name else f"{number} AS {name}"
            for name, (number, _) in self.places().items()
        ]
        if self.groups > 1:
            chosen.insert(0, "member")
        keys = ", ".join(str(place + 1) for place in range(len(chosen)))
        listed = ", ".join([*chosen, counted(self.weighted)])
        return f"SELECT {listed}\nFROM evaluated\nGROUP BY {keys}"

    def read(self, columns: Columns) -> Ints:
        places = [(columns[name], most) for name, (_, most) in self.places().items()]
        return tallied(columns, places, groups=self.groups, weighted=self.weighted)

    def of_groups(self, groups: int) -> Self:
        return replace(self, groups=groups)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved * (STEPS if self.weighted else 1)


@dataclass(frozen=True)
class OfEachGroup(Statistic[list[S]], Generic[S]):
    """A statistic of each group of rows; the list is as long as there are groups.

    Claim:       a row that leaves or arrives changes what is read of one group, by that row; no
                 other group's.                                           [claim: each-group]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: of one group, as of `whole` for one row more or less.
    Numerics:    exact.
    Refuses:     what `whole` refuses.
    Reference:   proofs/each-group.md.
    Cost:        one scan, and what `whole` costs for each group.
    """

    whole: Statistic[S]
    groups: int
    claim: ClassVar[str] = "each-group"
    shown_by: ClassVar[str | None] = (
        "tests/conformance/test_groups.py::test_a_row_moves_its_own_group_alone_and_by_a_row"
    )

    def body(self) -> str:
        statement, grouped, keys = self.whole.body().rpartition("GROUP BY ")
        whole = statement + grouped + (f"{keys}, {keys.count(',') + 2}" if grouped else keys)
        return whole.replace("SELECT ", "SELECT member, ", 1)

    def read(self, columns: Columns) -> list[S]:
        member = np.asarray(np.ma.filled(columns["member"], -1))
        own = {name: np.ma.asarray(columns[name]) for name in columns if name != "member"}
        return [
            self.whole.read({name: column[member == group] for name, column in own.items()})
            for group in range(self.groups)
        ]


# Sums of a bounded error over the rows, on an integer lattice.
ERRORS = {
    "squared": "({distance}) * ({distance})",
    "absolute": "abs({distance})",
    "log": "-ln(greatest({own}, {clip})) / {largest}",
}
CLIP = 0.01
_LABEL: Final = re.compile(r"\blabel\b")


def check_resolution(resolution: int) -> None:
    """Refuse a resolution whose sums could wrap: one row would then move them by 2^64."""
    if resolution < 1 or resolution * MOST_ROWS >= 2**63:
        raise ArgumentError(f"resolution must be 1 to {2**22:,}, got {resolution:,}. Try 2**20.")


@dataclass(frozen=True)
class BoundedSum(Statistic[Ints]):
    """Sums over rows of the error e and of e (1 - e), and of what the error falls short of.

    A row's error lies in [0, 1] once divided by the width of the declared range; it is rounded to
    a whole number of `resolution` steps. A negative row's truth is the lower end of the range, a
    positive row's the upper end, so that on (0, 1) the squared error is the Brier score's. The
    logarithmic one is -ln of what the model gives to the truth, which counts as `clip` where it is
    less, over -ln(clip). With `classes` the squared error is half the sum over all of them, at most
    1, and the logarithmic one takes the true class's score.

    The entries are the sums of e, of e (1 - e), which tells how much errors differ, and of what is
    left of 1. The last makes the mean a ratio, with no row count needed; it is left out where the
    row count is public. With more than one group there are three sums for each, and a row is in
    those of its own `member`; how many rows a group has is never public. A row that is `weighted`
    has an error of at most its weight w, a share of the largest one: with f = w - e the entries
    are the sums of e, e f, f - e f, e (1 - w) and f (1 - w).

    Claim:       L1 sensitivity `resolution` a row that leaves or arrives, or is replaced where
                 the row count is public.                                [claim: bounded-sum]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row adds entries that are not below 0 and `resolution` together, or at most
                 w (2 - w), which is no more; where the row count is public, a replacement moves
                 e and e (1 - e) by |e - e'| (1 + |1 - e - e'|) together, at most 1. Reaches, where
                 they are read, are functions of scores alone.
    Numerics:    exact integers; each row's error is one rounded double operation on public
                 formula, in [0, resolution] whatever the rounding; products are rounded down.
    Refuses:     an error that it does not know; a resolution whose sums over 2^40 rows would pass
                 64 bits; groups or weights without the second sum; reaches with these.
    Reference:   Dwork, McSherry, Nissim and Smith 2006, section 3.2.
    Cost:        one scan, O(1) memory.

    >>> from heldout.kernel.neighbours import Neighbours, Protection
    >>> replaced = Protection(neighbours=Neighbours.REPLACE_ONE)
    >>> BoundedSum(error="squared", score_range=(0, 1), with_rest=False).sensitivity(replaced)
    1048576
    """

    error: str
    score_range: tuple[float, float]
    with_rest: bool
    resolution: int = 2**20
    groups: int = 1
    classes: int = 0
    clip: float = CLIP
    weighted: bool = False
    by_outcome: bool = False
    """Whether the reach of either sum comes after them, for `OutcomeLaplace`: the largest distance
    that another label of one of these rows, its score as it is, moves both sums together."""
    claim: ClassVar[str] = "bounded-sum"
    known: ClassVar[tuple[str, ...]] = tuple(ERRORS)
    """Errors; a family that sums other numbers of a row overrides it, `_error` and `largest`."""

    def __post_init__(self) -> None:
        if self.error not in self.known:
            raise ArgumentError(
                f"error must be one of {', '.join(self.known)}, got {self.error!r}."
            )
        check_resolution(self.resolution)
        if (self.groups > 1 or self.weighted) and not self.with_rest:
            raise ArgumentError("with_rest must be True: sizes of groups and weights are private.")
        if self.weighted and self.resolution != STEPS:
            raise ArgumentError("resolution must match the weights.")
        if not 1e-15 <= self.clip <= 0.5 or (self.classes and self.error == "absolute"):
            raise ArgumentError("clip must lie between 1e-15 and 0.5.")
        if self.by_outcome and (self.with_rest or self.classes):
            raise ArgumentError("by_outcome requires two classes and a public row count.")

    @property
    def largest(self) -> float:
        """The largest error, in the unit that people read it in."""
        if self.error == "log":
            return -math.log(self.clip)
        if self.classes:
            return 2.0
        low, high = self.score_range
        return (high - low) ** (2 if self.error == "squared" else 1)

    def _error(self) -> str:
        """A row's error, from 0 to 1."""
        low, high = self.score_range
        place = f"(score - {double(low)}) / {double(high - low)}"
        if self.error == "squared" and self.classes:
            squares = " + ".join(f"score_{place} * score_{place}" for place in range(self.classes))
            return f"({squares} - 2 * own + 1) / 2"
        return ERRORS[self.error].format(
            distance=f"{place} - label",
            own="own" if self.classes else "CASE WHEN label = 1 THEN score ELSE 1 - score END",
            clip=double(self.clip),
            largest=double(self.largest),
        )

    @property
    def size(self) -> int:
        """Return how many sums the vector has."""
        return (2 + self.with_rest + 2 * self.weighted) * self.groups

    def body(self) -> str:
        error, most, whole = self._error(), str(self.resolution), double(self.resolution)
        if self.weighted:
            most = whole = held_steps("weight")

        def hold_in_steps(error: str) -> str:
            steps = f"CAST(floor(({error}) * {whole} + 0.5) AS BIGINT)"
            return f"greatest(0, least({most}, {steps}))"

        chosen = f"{hold_in_steps(error)} AS error, {most} AS most"
        rest, lacking = "(most - error)", f"({self.resolution} - most)"
        sums = {"total": "error", "product": self._part("error", rest), "most": "most"}
        if self.weighted:
            sums |= {"lacking": self._part("error", lacking), "spare": self._part(rest, lacking)}
        listed = ", ".join(summed(number, name) for name, number in sums.items())
        if self.by_outcome:
            # The error is one of the two that the row can have, so that no rounding comes between.
            both = (
                f"{hold_in_steps(_LABEL.sub(str(label), error))} AS at_{label}" for label in (0, 1)
            )
            rows = f"(SELECT label, {', '.join(both)}, {most} AS most FROM evaluated) AS either"
            own = "CASE WHEN label = 1 THEN at_1 ELSE at_0 END AS error"
            errors = f"SELECT {own}, at_0, at_1, most\nFROM {rows}"
            products = (self._part(name, f"(most - {name})") for name in ("at_0", "at_1"))
            listed += f", max(abs(at_0 - at_1) + abs({' - '.join(products)})) AS reach"
            return f"SELECT {listed}\nFROM ({errors}) AS errors"
        if self.groups > 1:
            errors = f"(SELECT member, {chosen} FROM evaluated) AS errors"
            return f"SELECT member, {listed}\nFROM {errors}\nGROUP BY 1"
        return f"SELECT {listed}\nFROM (SELECT {chosen} FROM evaluated) AS errors"

    def _part(self, number: str, share: str) -> str:
        return part_of(number, share, self.resolution)

    def read(self, columns: Columns) -> Ints:
        filled = {name: np.ma.filled(column, 0) for name, column in columns.items()}
        member = (columns["member"], self.groups) if self.groups > 1 else None

        def sums(name: str) -> Ints:
            if member is None:
                return np.array([int(filled[name][0] or 0)], dtype=np.int64)
            return tally(filled[name], member)[:-1]

        total, product = sums("total"), sums("product")
        vectors = [total, product]
        if self.by_outcome:
            vectors += [sums("reach")] * 2
        if self.with_rest:
            vectors.append(sums("most") - total - product)
        if self.weighted:
            vectors += [sums("lacking"), sums("spare")]
        return np.stack(vectors, axis=1).ravel()

    def of_groups(self, groups: int) -> "BoundedSum":
        return replace(self, groups=groups)

    def sensitivity(self, protection: Protection) -> int:
        rows = protection.rows_per_unit
        if protection.neighbours is Neighbours.ADD_REMOVE:
            return rows * self.resolution
        # With units the two sums move apart: k rows leave and k others arrive.
        return rows * self.resolution * (2 if self.with_rest else 1)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic[Any]]:
        rest = not protection.row_count_is_public
        return [cls(error=name, score_range=(0, 1), with_rest=rest) for name in ERRORS]
