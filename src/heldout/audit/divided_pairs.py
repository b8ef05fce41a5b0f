"""Named pairs of neighbours whose rows are divided: by group, class, weight or list."""

from typing import Any

from heldout.audit.pairs import (
    AREAS,
    CONFUSION,
    CURVES,
    HUNDREDS,
    LOW,
    MEANS,
    PERSONS,
    REMOVE,
    Rows,
    rows,
    spread,
    table,
    table_pair,
)
from heldout.audit.subjects import Pair

__all__ = ["class_pair", "crossing", "grouped_pair", "list_pair", "weighted_pair"]


def grouped_pair(pair: Pair, first: str, second: str) -> Pair:
    """The same tables with a group for each row; what differs is in these groups, by turns."""

    def of(content: dict[str, Any], other: dict[str, Any], groups: str) -> dict[str, Any]:
        theirs = list(zip(other["y"], other["p"], strict=True))
        found, turn = [], 0
        for row in zip(content["y"], content["p"], strict=True):
            if row in theirs:
                theirs.remove(row)
                found.append("a")
            else:
                found.append(groups[turn % len(groups)])
                turn += 1
        return {**content, "g": found}

    tables = of(pair.first, pair.second, first), of(pair.second, pair.first, second)
    return Pair(f"{pair.name}, by group", *tables, {**pair.options, "groups": {"g": ["a", "b"]}})


CONFUSION_GROUPS = (
    grouped_pair(CONFUSION[0], "a", "b"),
    grouped_pair(CONFUSION[2], "b", "b"),
    grouped_pair(CONFUSION[3], "ab", "bc"),
)


def crossing(name: str, count: int, others: Rows, *, leaves: bool = False, **options: Any) -> Pair:
    """So many positives at the bottom go over to the other group, or leave; rows of one person.

    They take from one group's area, and add to the other's, all that a row can.
    """

    def of(gone: int, group: str) -> dict[str, Any]:
        content = [*[(1, LOW)] * gone, *others, *others]
        groups = [*group * gone, *"a" * len(others), *"b" * len(others)]
        people = [*[0] * gone, *range(1, 2 * len(others) + 1)]
        return table(content, g=groups, u=people, k=list(range(len(content))))

    second = of(0, "") if leaves else of(count, "b")
    return Pair(name, of(count, "a"), second, {"groups": {"g": ["a", "b"]}, **options})


_PERSON: dict[str, Any] = {"unit": "u", "rows_per_unit": 2, "row_key": "k"}


def crossings(others: Rows) -> tuple[Pair, ...]:
    return (
        crossing("one of many goes over to another group", 1, others),
        crossing("one of many leaves its group", 1, others, leaves=True, **REMOVE),
        crossing("a person's two rows go over to another group", 2, others, **_PERSON),
    )


AREA_GROUPS = (*crossings(rows(*HUNDREDS)), grouped_pair(AREAS[3], "a", "b"))
CURVE_GROUPS = (
    *crossings(rows(spread(60, 0.8, 0.9), spread(60))),
    grouped_pair(CURVES[1], "a", "b"),
)
MEAN_GROUPS = (
    grouped_pair(MEANS[0], "a", "b"),
    grouped_pair(MEANS[1], "b", "b"),
    grouped_pair(MEANS[3], "ab", "bc"),
)

_CLASSES: dict[str, Any] = {"score": None, "classes": [0, 1, 2], "scores": ["p", "q", "r"]}
_CALLS = ((0.9, 0.05, 0.05), (0.1, 0.8, 0.1), (0.0, 0.0, 1.0))
_flowers = [(each % 3, each % 5 % 3) for each in range(12)]
Flowers = list[tuple[int, int]]


def class_pair(pair: tuple[str, Flowers, Flowers], others: Flowers, **options: Any) -> Pair:
    """Rows of a true class and a called one; those that differ come first."""
    name, *both = pair

    def of(own: Flowers) -> dict[str, Any]:
        content = [*own, *others]
        scores = zip(*(_CALLS[called] for _, called in content), strict=True)
        columns = dict(zip("pqr", map(list, scores), strict=True))
        people = {"u": [0, 0, *range(1, len(content) - 1)], "k": list(range(len(content)))}
        return {"y": [truth for truth, _ in content], **columns, **people}

    return Pair(name, of(both[0]), of(both[1]), {**_CLASSES, **options})


CLASSES = (
    class_pair(("a row changes its cell", [(0, 0)], [(0, 2)]), _flowers),
    class_pair(("a row leaves", [(2, 2)], []), _flowers, **REMOVE),
    class_pair(
        ("a person's two rows change", [(2, 2), (0, 0)], [(0, 2), (1, 2)]), _flowers, **_PERSON
    ),
)


def two_classes(name: str, pair: Pair) -> Pair:
    """Scores p and 1 - p: what a row does to the area of its own class it does to the other's."""

    def of(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "q": [1 - p for p in content["p"]]}

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(pair.first), of(pair.second), {**pair.options, **declared})


_bottom = rows([LOW, *HUNDREDS[0]], HUNDREDS[1])
CLASS_AREAS = (
    two_classes("one of hundreds falls among two classes", AREAS[-1]),
    two_classes(
        "the last of hundreds leaves one of two classes",
        table_pair("", _bottom, _bottom[1:], **REMOVE),
    ),
    two_classes("a person's two rows of hundreds fall among two classes", PERSONS[0]),
    class_pair(("the last of a class is replaced", [(0, 0)], [(2, 2)]), [(1, 1), (2, 2)] * 6),
)


def on_top(name: str, first: str, second: str, **options: Any) -> Pair:
    """Two classes of hundreds, ranked perfectly, and rows on top of both rankings.

    Such a row of the one class is a negative above all positives of the other: when it changes its
    class, both average precisions move by all that a row can. `first` and `second` are the rows'
    classes, one letter each, and the same person's.
    """
    low, high = spread(300, 0.1, 0.5), spread(300, 0.8, 0.9)

    def of(own: str) -> dict[str, Any]:
        labels = [*map(int, own), *[1] * 300, *[0] * 300]
        people = [*[0] * len(own), *range(1, 601)]
        return {
            "y": labels,
            "p": [*[0.99] * len(own), *high, *low],
            "q": [*[0.99] * len(own), *low, *high],
            "u": people,
            "k": list(range(len(labels))),
        }

    declared = {"score": None, "classes": [0, 1], "scores": ["q", "p"]}
    return Pair(name, of(first), of(second), {**options, **declared})


CLASS_PRECISIONS = (
    on_top("a row on top of two rankings changes its class", "1", "0"),
    on_top("a row on top of two rankings leaves", "1", "", **REMOVE),
    on_top("a person's two rows on top change their class", "11", "00", **_PERSON),
    CLASS_AREAS[-1],
)


def weighted_pair(pair: Pair) -> Pair:
    """What differs has the largest weight; the others have weights of all sizes."""
    most = max(len(pair.first["y"]), len(pair.second["y"]))
    differ = (0, 1) if "unit" in pair.options else (most - 1,)

    def of(content: dict[str, Any]) -> dict[str, Any]:
        places = range(len(content["y"]))
        return {**content, "w": [5.0 if each in differ else each % 4 * 1.25 for each in places]}

    options = {**pair.options, "weight": "w", "largest_weight": 5}
    return Pair(f"{pair.name}, weighted", of(pair.first), of(pair.second), options)


WEIGHTED = tuple(weighted_pair(each) for each in CONFUSION)
WEIGHTED_MEANS = tuple(weighted_pair(each) for each in MEANS)

_others = [row for each in range(6) for row in ((each % 2, 0.3), (1, 0.6), (0, 0.4))]


def list_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """A query's list, of up to three rows, beside those of six others."""

    def of(own: Rows) -> dict[str, Any]:
        queries = [0] * len(own) + [1 + each // 3 for each in range(len(_others))]
        return table([*own, *_others], u=queries)

    return Pair(name, of(first), of(second), {"unit": "u", "rows_per_unit": 3, **options})


LISTS = (
    list_pair("a list from best to worst", [(1, 0.9), (0, 0.1)], [(0, 0.9), (0, 0.8), (0, 0.7)]),
    list_pair("the best list leaves", [(1, 0.9), (0, 0.1)], [], **REMOVE),
    list_pair("the worst list leaves", [(0, 0.9), (0, 0.1)], [], **REMOVE),
)
