"""Pairs of neighbouring tables where an answer moves most: what the audit of a question looks at.

Families build theirs from these parts and declare them in `Question.worst_cases`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import numpy as np

from heldout.data import Dataset, PrivateTable
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description, ScoredRows
from heldout.intervals.measure import Release

LOW, HIGH = 0.05, 0.95
REMOVE: Final[Mapping[str, Any]] = {"neighbours": "add-remove"}
LABELS: Final[Mapping[str, Any]] = {"neighbours": "label"}
PERSON: Final[Mapping[str, Any]] = {"unit": "u", "rows_per_unit": 2, "row_key": "k"}
Rows = list[tuple[int, float]]
REST: Final[Rows] = [(1, 0.8), (1, 0.6), (1, 0.3), (0, 0.7), (0, 0.4), (0, 0.2)]


@dataclass(frozen=True)
class Pair:
    """Two neighbours, and why they are the worst that we know.

    `first` and `second` are tables and `options` what is declared of them.
    """

    name: str
    first: Any
    second: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def side(self, index: int) -> Any:
        return self.second if index else self.first


def numbers(answer: Any) -> list[float]:
    """Return every number of a release or of a report as drawn, before any arithmetic for people.

    >>> numbers({"a": [1, 2], "b": {"c": 0.5, "d": "text"}, "e": True})
    [1.0, 2.0, 0.5, 1.0]
    """
    releases = getattr(answer, "releases", None)
    return list(_leaves(releases if isinstance(releases, Mapping) else answer))


def _leaves(content: Any) -> Iterator[float]:
    if isinstance(content, Release):
        yield from _leaves(content._noisy())
    elif isinstance(content, Mapping):
        for inner in content.values():
            yield from _leaves(inner)
    elif isinstance(content, list | tuple | np.ndarray):
        for inner in content:
            yield from _leaves(inner)
    elif isinstance(content, int | float | np.number):
        yield float(content)


def scored_table(content: Any, options: Mapping[str, Any]) -> PrivateTable:
    """Return private rows with label y and score p."""
    return Dataset(content, **{"label": "y", "score": "p", "name": "neighbour", **options})


def all_numbers(pair: Pair, answer: Any) -> list[float]:
    return numbers(answer)


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A way to ask a question that is audited, with the neighbours that are the worst for it."""

    pairs: tuple[Pair, ...]
    name: str = ""
    """What it is called behind the kind; empty for the question as it is usually asked."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of the question, beside epsilon and the class's example."""
    make: Callable[[Any, Mapping[str, Any]], PrivateTable] = scored_table
    """Makes private rows of a pair's side and its options."""
    read: Callable[[Pair, Any], list[float]] = all_numbers
    """Reads what an attacker sees of an answer: by default all that was drawn."""
    note: str = ""
    why: str = ""
    """Why a bound stays well below the claim, where it does."""
    epsilon: str = "1"
    """What it is audited at: where a fault would show soonest."""
    answers_each: int = 2000
    """How many answers one budget pays; deltas add up to less than 1."""
    on: str = "memory"
    """Where the rows are: "memory" or "postgres"."""
    formerly: str = ""
    """What the subject was called before subjects went by kinds."""
    in_rho: bool = False
    """Whether it is priced in rho, for a budget of rho."""
    both_doors: bool = False
    """Whether the long audit also draws it with the statistic computed once."""


def rows(positives: Sequence[float], negatives: Sequence[float]) -> Rows:
    """Return rows of (label, score)."""
    return [(1, score) for score in positives] + [(0, score) for score in negatives]


def spread(count: int, low: float = 0.3, high: float = 0.7) -> list[float]:
    """Return scores between the extremes, all different and never on a round number."""
    return [low + (high - low) * (i + 0.5) / count for i in range(count)]


def hundreds() -> tuple[list[float], list[float]]:
    """Return scores of many positives and of many negatives."""
    return spread(600, 0.8, 0.9), spread(600)


def table(content: Rows, **columns: Any) -> dict[str, Any]:
    """Return columns y and p, and these."""
    return {"y": [y for y, _ in content], "p": [p for _, p in content], **columns}


def table_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Return two tables with label y and score p; under replace-one of one length."""
    if options.get("neighbours", "replace-one") == "replace-one" and "unit" not in options:
        assert len(first) == len(second), "replace-one neighbours have as many rows"
    return Pair(name, table(first), table(second), options)


def unit_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Return tables whose first two rows belong to one unit, which has others in the second."""

    def of(content: Rows) -> dict[str, Any]:
        return table(content, u=[0, 0, *range(1, len(content) - 1)], k=list(range(len(content))))

    return Pair(name, of(first), of(second), {**PERSON, **options})


def grouped_pair(pair: Pair, first: str, second: str) -> Pair:
    """Return the same tables with a group per row; what differs is in these groups, by turns."""

    def of(content: dict[str, Any], other: dict[str, Any], groups: str) -> dict[str, Any]:
        theirs = list(zip(other["y"], other["p"], strict=True))
        members, turn = [], 0
        for row in zip(content["y"], content["p"], strict=True):
            if row in theirs:
                theirs.remove(row)
                members.append("a")
            else:
                members.append(groups[turn % len(groups)])
                turn += 1
        return {**content, "g": members}

    tables = of(pair.first, pair.second, first), of(pair.second, pair.first, second)
    return Pair(f"{pair.name}, by group", *tables, {**pair.options, "groups": {"g": ["a", "b"]}})


def grouped_pairs(row: Pair, leaves: Pair, person: Pair) -> tuple[Pair, ...]:
    """Return a row, one that leaves and a person's two, each going from one group to another."""
    return (
        grouped_pair(row, "a", "b"),
        grouped_pair(leaves, "b", "b"),
        grouped_pair(person, "ab", "bc"),
    )


def label_pairs(score: float) -> tuple[Pair, ...]:
    """Return label neighbours: the outcome of a row with this score changes, or of a person's."""
    before, after = (0, score), (1, score)
    return (
        table_pair("an outcome changes", [*REST, before], [*REST, after], **LABELS),
        unit_pair(
            "outcomes of a person's two rows change",
            [before, before, *REST],
            [after, after, *REST],
            **LABELS,
        ),
    )


def crossing(name: str, count: int, others: Rows, *, leaves: bool = False, **options: Any) -> Pair:
    """Return so many positives at the bottom that change their group, or leave; of one person.

    They take from one group's area, and add to the other's, all that a row can.
    """

    def of(gone: int, group: str) -> dict[str, Any]:
        content = [*[(1, LOW)] * gone, *others, *others]
        groups = [*group * gone, *"a" * len(others), *"b" * len(others)]
        people = [*[0] * gone, *range(1, 2 * len(others) + 1)]
        return table(content, g=groups, u=people, k=list(range(len(content))))

    second = of(0, "") if leaves else of(count, "b")
    return Pair(name, of(count, "a"), second, {"groups": {"g": ["a", "b"]}, **options})


def crossings(others: Rows) -> tuple[Pair, ...]:
    """Return pairs where rows among these change their group."""
    return (
        crossing("one of many goes over to another group", 1, others),
        crossing("one of many leaves its group", 1, others, leaves=True, **REMOVE),
        crossing("a person's two rows go over to another group", 2, others, **PERSON),
    )


def weighted_pair(pair: Pair) -> Pair:
    """Return the same rows with weights: the largest for what differs, all sizes for the rest."""
    most = max(len(pair.first["y"]), len(pair.second["y"]))
    differ = (0, 1) if "unit" in pair.options else (most - 1,)

    def of(content: dict[str, Any]) -> dict[str, Any]:
        places = range(len(content["y"]))
        return {**content, "w": [5.0 if place in differ else place % 4 * 1.25 for place in places]}

    options = {**pair.options, "weight": "w", "largest_weight": 5}
    return Pair(f"{pair.name}, weighted", of(pair.first), of(pair.second), options)


CLASSES: Final[Mapping[str, Any]] = {"score": None, "classes": [0, 1, 2], "scores": ["p", "q", "r"]}
_CALLS: Final = ((0.9, 0.05, 0.05), (0.1, 0.8, 0.1), (0.0, 0.0, 1.0))
_FLOWERS: Final = [(place % 3, place % 5 % 3) for place in range(12)]
Flowers = list[tuple[int, int]]


def class_pair(pair: tuple[str, Flowers, Flowers], others: Flowers, **options: Any) -> Pair:
    """Return rows of a true class and a called one; those that differ come first."""
    name, *both = pair

    def of(own: Flowers) -> dict[str, Any]:
        content = [*own, *others]
        scores = zip(*(_CALLS[called] for _, called in content), strict=True)
        columns = dict(zip("pqr", map(list, scores), strict=True))
        people = {"u": [0, 0, *range(1, len(content) - 1)], "k": list(range(len(content)))}
        return {"y": [truth for truth, _ in content], **columns, **people}

    return Pair(name, of(both[0]), of(both[1]), {**CLASSES, **options})


def class_pairs() -> tuple[Pair, ...]:
    """Return pairs of three classes where counts move most."""
    return (
        class_pair(("a row changes its cell", [(0, 0)], [(0, 2)]), _FLOWERS),
        class_pair(("a row leaves", [(2, 2)], []), _FLOWERS, **REMOVE),
        class_pair(
            ("a person's two rows change", [(2, 2), (0, 0)], [(0, 2), (1, 2)]), _FLOWERS, **PERSON
        ),
    )


def mapped_pairs() -> tuple[Pair, ...]:
    """Return pairs of scores of any size, which a declared map brings into a range."""
    above, below = hundreds()
    mapped: dict[str, Any] = {"score_map": (0.5, 0.01), "out_of_range": "clip"}
    return (
        table_pair(
            "a row from one infinity to the other",
            [*REST, (1, -inf)],
            [*REST, (1, inf)],
            **mapped,
        ),
        table_pair("a row far out leaves", [*REST, (1, 1e300)], REST, **mapped, **REMOVE),
        table_pair(
            "one of hundreds of positives falls",
            rows([*above, inf], below),
            rows([*above, -inf], below),
            **mapped,
        ),
    )


# --- rows that are drawn at random ---------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of made-up rows: cells worth a try, others, and the type that a storage declares."""

    special: tuple[Any, ...]
    other: str = ""
    """"uniform" (from 0 to 1), "normal" (of deviation 3), or none."""
    type: str = "double"
    """"double", "bigint", "text" or "decimal"."""


@dataclass(frozen=True)
class MadeUpRows:
    """Rows of one kind, of which the replay asks questions: their columns, and how to open them."""

    columns: Mapping[str, Column]
    open: Callable[..., PrivateTable]
    """Opens a table, with what is declared of neighbours, unit and schema."""
    outcome: tuple[str, ...] = ()
    """The columns that label neighbours differ in; none if such rows have no outcome."""


MADE_UP: dict[type[Description], MadeUpRows] = {}


def declare_rows(
    described_by: type[Description],
    columns: Mapping[str, Column],
    open_: Callable[..., Any],
    *,
    outcome: tuple[str, ...] = (),
) -> None:
    """Declare made-up rows for all questions that are asked of rows with this description."""
    MADE_UP[described_by] = MadeUpRows(columns, open_, outcome)


SCORES: Final = (0.0, 1.0, 0.5, 0.25, 0.75, 0.49999999999999994, 1 / 65536, 0.5 + 1 / 131072, 0.01)
"""At thresholds, at edges of the grid and beside them, and often tied."""
SCORE: Final = Column(SCORES, "uniform")
FLAG: Final = Column((0, 1), type="bigint")
GROUP: Final = Column(("a", "b", "01", "x", None), type="text")
GROUPS: Final = {"g": ["a", "b", "01"]}
WEIGHT: Final = Column((0.0, 1.0, 0.5, 0.3), "uniform")


def _open_scored(content: Any, **options: Any) -> Dataset:
    columns: dict[str, Any] = {"label": "y", "score": "p", "rivals": ["q"], "groups": GROUPS}
    return Dataset(content, **columns, weight="w", largest_weight=1.0, name="made up", **options)


def _open_classified(content: Any, **options: Any) -> Dataset:
    columns: dict[str, Any] = {"label": "c", "scores": ["pa", "pb", "pc"], "groups": GROUPS}
    columns["rivals"] = ["b"]
    classes = ["a", "b", "01"]
    return Dataset(
        content,
        **columns,
        classes=classes,
        weight="w",
        largest_weight=1.0,
        name="made up",
        **options,
    )


declare_rows(
    ScoredRows,
    {"y": FLAG, "p": SCORE, "q": SCORE, "g": GROUP, "w": WEIGHT},
    _open_scored,
    outcome=("y",),
)
declare_rows(
    ClassifiedRows,
    {
        "c": Column(("a", "b", "01"), type="text"),
        "b": Column(("a", "b", "01"), type="text"),
        **dict.fromkeys(("pa", "pb", "pc"), SCORE),
        "g": GROUP,
        "w": WEIGHT,
    },
    _open_classified,
    outcome=("c",),
)
