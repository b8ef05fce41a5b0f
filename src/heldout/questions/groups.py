"""Questions by group: `By(Auc(epsilon=1), "sex")` asks one question of every declared group.

A row is in one group, so all groups together have the price of one. Of a group the question is
asked as if a single row were protected, at epsilon over the rows that a neighbour may move;
`kernel.noise.each_group` puts the groups together, and each group's part of the answer is read as
the question reads an answer of all rows.
"""

from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast

import numpy as np

from heldout.arguments import Columns
from heldout.data.description import Description
from heldout.data.table import PrivateTable
from heldout.errors import ArgumentError
from heldout.intervals.groups import ByGroup
from heldout.kernel import Event
from heldout.kernel.door import Drawn, Priced, Request, Staged
from heldout.kernel.loss import Rational
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.noise.disjoint import each_group, split_groups
from heldout.questions.base import BY_HELP, FormField, Question, R_co
from heldout.questions.quote import Guess

if TYPE_CHECKING:
    from heldout.intervals.measure import Release

Groups_co = TypeVar("Groups_co", bound="ByGroup[Release]", covariant=True)
AboutRows = TypeVar("AboutRows", bound=Description)
_BY: Final = FormField("by", Columns(), BY_HELP, None, required=False)
_OF_ITS_QUESTION: Final = ("kind", "title", "asks", "tells", "of", "headline", "draws")
"""Attributes that a question by group takes from its question."""


class _ByAsKeyword(ABCMeta):
    """Reads `Auc(epsilon=1, by="sex")`, as JSON and commands have it: `By(Auc(epsilon=1), "sex")`.

    Type checkers know the second form, which says what the answer is.
    """

    def __call__(cls, *args: Any, by: Any = None, **fields: Any) -> Any:
        question = super().__call__(*args, **fields)
        return question if by is None else By(question, by)


@dataclass(frozen=True, kw_only=True)
class Divisible(Question[R_co], Generic[R_co, Groups_co], metaclass=_ByAsKeyword):
    """A question that may be asked by group; `Groups` is then its release.

    The statistic must know itself by group (`Statistic.of_groups`), and its noise must be private
    by itself (`Request`, not `Staged`). A family that divides its rows otherwise overrides
    `request_by_group`, `read_by_group` and `typical_by_group`.
    """

    grouped: ClassVar[type[ByGroup[Any]]] = ByGroup
    """The class that holds the groups' releases."""
    lower_is_better: ClassVar[bool] = False
    tied: ClassVar[bool] = False
    """Whether a group is asked under label neighbours as all rows are, by changes of one outcome;
    if not, each is taken for a row that leaves and one that arrives."""

    @classmethod
    def form(cls) -> tuple[FormField, ...]:
        return (*super().form(), _BY)

    def in_group(self, epsilon: Fraction) -> Self:
        """Return the question as one group is asked: at this price, with nothing beside it."""
        return self.at(epsilon)

    def check_by_group(self, about: Any) -> None:
        """Refuse rows of which it cannot be asked by group, before anything is booked."""

    def request_by_group(self, about: Any, by: str | tuple[str, ...]) -> Request | Staged:
        """Return the request for all groups, from that of one."""
        self.check_by_group(about)
        groups, (row, moved) = len(about.group_names(by)), self._one_row(about)
        one = self.in_group(self.price / moved).request(row)
        if not isinstance(one, Request) or one.view is not None:
            raise ArgumentError(f"{self.kind} cannot be asked by group.")
        return Request(
            one.name,
            one.statistic.of_groups(groups),
            each_group(one.mechanism, epsilon=self.price, moved=moved, groups=groups),
            {**one.parameters, **parameters_by_group(by, about)},
            view=group_columns(by),
            reading=one,
        )

    def _one_row(self, about: AboutRows) -> tuple[AboutRows, int]:
        """Return the description of rows of which one may change, and how many do at most."""
        protection = about.protection
        if self.tied and protection.only_labels:
            one, moved = Protection(neighbours=Neighbours.LABEL), protection.rows_per_unit
        else:  # one that leaves or arrives, and nothing else
            one, moved = Protection(neighbours=Neighbours.ADD_REMOVE), protection.rows_moved
        return replace(about, protection=one, rows=None), moved

    def read_by_group(self, drawn: Drawn) -> Groups_co:
        """Return each group's release, as the question reads it, side by side."""
        asked = drawn.request
        groups = len(asked.parameters["groups"])
        mechanism, parts = split_groups(asked.mechanism, drawn.values, groups)
        one = replace(asked.reading, mechanism=mechanism)
        return self.combine(drawn, (_group_part(drawn, one, part) for part in parts))

    def combine(self, drawn: Drawn, parts: Iterable[Drawn]) -> Groups_co:
        """Return the release of all groups from each group's part of what was drawn."""
        releases = (cast("Release", self.read(part)) for part in parts)
        combined = self.grouped(drawn, releases, lower_is_better=self.lower_is_better)
        return cast(Groups_co, combined)

    def typical_by_group(self, about: Any, by: str | tuple[str, ...], guess: Guess) -> object:
        """Return what `request_by_group` draws, if all groups are alike."""
        groups, (row, moved) = len(about.group_names(by)), self._one_row(about)
        one = self.in_group(self.price / moved)
        several = [one.typical(row, share_guess(guess, groups)) for _ in range(groups)]
        vectors = [values for values in several if isinstance(values, np.ndarray)]
        return np.concatenate(vectors) if vectors else several


@dataclass(frozen=True)
class By(Question[Groups_co]):
    """A question of each declared group: at the price of one for all rows, whatever their number.

    `column` is a declared column, or several to cross.

    >>> from heldout.questions import Auc
    >>> By(Auc(epsilon="1/2"), "sex").as_dict()
    {'question': 'auc', 'version': 1, 'epsilon': '1/2', 'by': 'sex'}
    """

    question: Divisible[object, Groups_co]
    column: str | Sequence[str]
    epsilon: Rational = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.question, Divisible):
            raise ArgumentError(f"A {type(self.question).__name__} cannot be asked by group.")
        own = {name: getattr(self.question, name) for name in (*_OF_ITS_QUESTION, "rules", "price")}
        own |= {"epsilon": self.question.price, "column": _BY.rule(self.column, "by")}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @classmethod
    def form(cls) -> tuple[FormField, ...]:
        """Return nothing: forms are those of kinds, which have the field `by`."""
        return ()

    @property
    def rivals(self) -> tuple[str, ...]:
        return self.question.rivals

    @property
    def values_asked(self) -> Mapping[str, tuple[float, float]]:
        return self.question.values_asked

    def at(self, epsilon: Rational) -> Self:
        return replace(self, question=self.question.at(epsilon))

    def under(self, rules: int) -> Self:
        return replace(self, question=self.question.under(rules))

    def check(self, about: Description) -> None:
        self.question.check(about)

    def request(self, about: Any) -> Priced:
        return self.question.request_by_group(about, self._columns)

    def read(self, drawn: Drawn) -> Groups_co:
        return self.question.read_by_group(drawn)

    def typical(self, about: Any, guess: Guess) -> object:
        return self.question.typical_by_group(about, self._columns, guess)

    def assumes(self, about: Any, guess: Guess) -> str:
        return self.question.assumes(about, guess)

    def hidden_by_noise(self, about: Any, guess: Guess) -> tuple[str, ...]:
        """Return nothing: groups that noise hides are named, beside those that can be read."""
        return ()

    @property
    def _columns(self) -> str | tuple[str, ...]:
        return self.column if isinstance(self.column, str) else tuple(self.column)

    def as_dict(self) -> dict[str, Any]:
        column = self.column if isinstance(self.column, str) else list(self.column)
        return {**self.question.as_dict(), "by": column}


@dataclass(frozen=True)
class _PartOf(Request):
    """One group's part of a request, which costs what all parts together cost."""

    whole: Priced | None = None

    def event(self) -> Event:
        assert self.whole is not None
        return self.whole.event()


def parameters_by_group(by: str | tuple[str, ...], about: Description) -> dict[str, Any]:
    """Return what is booked of the division."""
    return {"by": by if isinstance(by, str) else list(by), "groups": list(about.group_names(by))}


def group_columns(by: str | tuple[str, ...]) -> Callable[[Any], PrivateTable]:
    """Return the view of the rows that tells each row's group."""
    return lambda rows: rows.with_groups(by)


def _group_part(drawn: Drawn, one: Request, values: Any) -> Drawn:
    """Return a group's answer, as if it had been asked alone of rows whose number is private."""
    asked = drawn.request
    part = _PartOf(
        asked.name, one.statistic, one.mechanism, asked.parameters, reading=one.reading, whole=asked
    )
    return replace(drawn, request=part, values=values, about=replace(drawn.about, rows=None))


def share_guess(guess: Guess, groups: int) -> Guess:
    """Return the guess of one of several groups that are alike."""
    positives, negatives = (max(1, count // groups) for count in guess.counts)
    cells = None if guess.cells is None else tuple(cell / groups for cell in guess.cells)
    return replace(guess, rows=positives + negatives, positives=positives, cells=cells)
