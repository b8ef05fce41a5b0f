"""Named pairs of neighbouring tables: where a metric moves most, or where a proof is tight."""

from collections.abc import Sequence
from math import inf
from typing import Any

from heldout.audit.subjects import Pair

__all__ = ["rows", "table_pair"]

LOW, HIGH = 0.05, 0.95
Rows = list[tuple[int, float]]


def rows(positives: Sequence[float], negatives: Sequence[float]) -> Rows:
    """Rows of (label, score)."""
    return [(1, score) for score in positives] + [(0, score) for score in negatives]


def spread(count: int, low: float = 0.3, high: float = 0.7) -> list[float]:
    """Scores between the extremes, all different and never on a round number."""
    return [low + (high - low) * (i + 0.5) / count for i in range(count)]


def table(content: Rows, **columns: Any) -> dict[str, Any]:
    return {"y": [y for y, _ in content], "p": [p for _, p in content], **columns}


def table_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Two tables with label y and score p; under replace-one they must have one length."""
    if options.get("neighbours", "replace-one") == "replace-one" and "unit" not in options:
        assert len(first) == len(second), "replace-one neighbours have as many rows"
    return Pair(name, table(first), table(second), options)


def unit_pair(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """The first two rows belong to one unit, which the second table has with other rows."""

    def of(content: Rows) -> dict[str, Any]:
        return table(content, u=[0, 0, *range(1, len(content) - 1)], k=list(range(len(content))))

    options = {"unit": "u", "rows_per_unit": 2, "row_key": "k", **options}
    return Pair(name, of(first), of(second), options)


REMOVE: dict[str, Any] = {"neighbours": "add-remove"}
_rest = rows([0.8, 0.6, 0.3], [0.7, 0.4, 0.2])


def gone_and_come(pair: Pair) -> tuple[Rows, Rows]:
    """What an attacker does not know: the rows that differ. And what he knows: the others."""
    left = list(zip(pair.second["y"], pair.second["p"], strict=True))
    gone: Rows = []
    others: Rows = []
    for row in zip(pair.first["y"], pair.first["p"], strict=True):
        (others if row in left else gone).append(row)
        if row in left:
            left.remove(row)
    return gone + left, others


CONFUSION = (
    table_pair("a row changes its cell", [*_rest, (0, LOW)], [*_rest, (1, HIGH)]),
    table_pair("a label changes", [*_rest, (0, HIGH)], [*_rest, (1, HIGH)]),
    table_pair("a row leaves", [*_rest, (1, HIGH)], _rest, **REMOVE),
    unit_pair(
        "a person's two rows change", [(0, LOW), (0, LOW), *_rest], [(1, HIGH), (1, HIGH), *_rest]
    ),
)


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

MEANS = (
    table_pair("an error from none to all", [*_rest, (1, 1.0)], [*_rest, (1, 0.0)]),
    table_pair("the worst row leaves", [*_rest, (1, 0.0)], _rest, **REMOVE),
    table_pair("the best row leaves", [*_rest, (1, 1.0)], _rest, **REMOVE),
    unit_pair(
        "a person's two errors from none to all",
        [(1, 1.0), (1, 1.0), *_rest],
        [(1, 0.0), (1, 0.0), *_rest],
    ),
)

_eight, _twenty = spread(8), spread(20)
_hundreds = spread(600, 0.8, 0.9), spread(600)

AREAS = (
    table_pair(
        "one of two positives falls",
        rows([HIGH, 0.9], _eight),
        rows([HIGH, LOW], _eight),
    ),
    table_pair("the only positive falls", rows([HIGH], _eight), rows([LOW], _eight)),
    table_pair("the last positive is replaced", rows([HIGH], _eight), rows([], [*_eight, HIGH])),
    table_pair(
        "the second positive is replaced",
        rows([HIGH, LOW], _eight),
        rows([LOW], [*_eight, HIGH]),
    ),
    table_pair(
        "one of twenty positives falls",
        rows([0.8 + 0.005 * i for i in range(19)] + [HIGH], _twenty),
        rows([0.8 + 0.005 * i for i in range(19)] + [LOW], _twenty),
    ),
    table_pair("the last positive leaves", rows([HIGH], _eight), rows([], _eight), **REMOVE),
    table_pair(
        "the second positive leaves", rows([HIGH, LOW], _eight), rows([LOW], _eight), **REMOVE
    ),
    # Where classes are large hardly anything is spent on their counts: the value shows most.
    table_pair(
        "one of hundreds of positives falls",
        rows([*_hundreds[0], HIGH], _hundreds[1]),
        rows([*_hundreds[0], LOW], _hundreds[1]),
    ),
)
PERSONS = (
    unit_pair(
        "a person's two positives of hundreds fall",
        rows([HIGH, HIGH, *_hundreds[0]], _hundreds[1]),
        rows([LOW, LOW, *_hundreds[0]], _hundreds[1]),
    ),
    unit_pair(
        "a person's two rows are all positives",
        rows([HIGH, HIGH], _eight),
        rows([LOW, LOW], _eight),
    ),
)

# All that a report has moves as far as it can: AUC, average precision, two cells, the Brier score.
REPORTS = (
    table_pair(
        "one of hundreds changes its label at the top",
        rows([*_hundreds[0], 1.0], _hundreds[1]),
        rows(_hundreds[0], [*_hundreds[1], 1.0]),
    ),
    table_pair(
        "the best of hundreds leaves",
        rows([*_hundreds[0], 1.0], _hundreds[1]),
        rows(_hundreds[0], _hundreds[1]),
        **REMOVE,
    ),
    table_pair("the last positive is replaced", rows([HIGH], _eight), rows([], [*_eight, HIGH])),
)

TIES = (
    table_pair(
        "the only positive leaves the cell of all", rows([0.5], [0.5] * 8), rows([HIGH], [0.5] * 8)
    ),
    table_pair(
        "the second positive is replaced",
        rows([0.5, LOW], [0.5] * 8),
        rows([LOW], [*[0.5] * 8, HIGH]),
    ),
    table_pair(
        "one of hundreds of positives leaves the cell of all",
        rows([0.5] * 601, [0.5] * 600),
        rows([0.5] * 600 + [HIGH], [0.5] * 600),
    ),
    table_pair("the last positive leaves", rows([0.5], [0.5] * 8), rows([], [0.5] * 8), **REMOVE),
)

_top = [0.9 + 0.01 * i for i in range(4)]
_many = spread(60)

PRECISIONS = (
    table_pair("a negative is put on top", rows(_top, [*_eight, LOW]), rows(_top, [*_eight, 0.99])),
    table_pair(
        "a positive becomes a negative on top",
        rows(_top, _eight),
        rows(_top[:-1], [*_eight, 0.99]),
    ),
    table_pair("one of two positives falls", rows([0.9, HIGH], _many), rows([0.9, LOW], _many)),
    table_pair("the only positive falls", rows([HIGH], _many), rows([LOW], _many)),
    table_pair("the last positive is replaced", rows([HIGH], _eight), rows([], [*_eight, LOW])),
    table_pair(
        "a negative arrives on top",
        rows(_top[:3], _eight),
        rows(_top[:3], [*_eight, 0.99]),
        **REMOVE,
    ),
    table_pair("the last positive leaves", rows([HIGH], _eight), rows([], _eight), **REMOVE),
    table_pair(
        "one of hundreds of positives becomes a negative on top",
        rows([*_hundreds[0], HIGH], _eight),
        rows(_hundreds[0], [*_eight, 0.99]),
    ),
)

CURVES = (
    table_pair("a row across one threshold", [*_rest, (1, 0.49)], [*_rest, (1, 0.51)]),
    table_pair("a row across all thresholds", [*_rest, (1, 0.0)], [*_rest, (1, 1.0)]),
    table_pair("a label changes on the edge", [*_rest, (0, 0.5)], [*_rest, (1, 0.5)]),
    table_pair("a label changes at the top", [*_rest, (0, 1.0)], [*_rest, (1, 1.0)]),
    AREAS[3],
    table_pair("a row leaves", [*_rest, (1, 1.0)], _rest, **REMOVE),
    table_pair(
        "one of dozens changes its label at the top",
        rows([*spread(60, 0.8, 0.9), 1.0], spread(60)),
        rows(spread(60, 0.8, 0.9), [*spread(60), 1.0]),
    ),
)

# Scores far beyond the declared range count as its ends.
CLIPPED = (
    table_pair(
        "an error from none to all, far out",
        [*_rest, (1, 1e300)],
        [*_rest, (1, -1e300)],
        out_of_range="clip",
    ),
    table_pair("a row far out leaves", [*_rest, (1, -1e300)], _rest, out_of_range="clip", **REMOVE),
)
_MAP: dict[str, Any] = {"score_map": (0.5, 0.01), "out_of_range": "clip"}
MAPPED = (
    table_pair(
        "a row from one infinity to the other", [*_rest, (1, -inf)], [*_rest, (1, inf)], **_MAP
    ),
    table_pair("a row far out leaves", [*_rest, (1, 1e300)], _rest, **_MAP, **REMOVE),
    table_pair(
        "one of hundreds of positives falls",
        rows([*_hundreds[0], inf], _hundreds[1]),
        rows([*_hundreds[0], -inf], _hundreds[1]),
        **_MAP,
    ),
)

MEDIANS = (
    table_pair(
        "a median on the edge",
        rows([0.0] * 4 + [1.0] * 4, [0.0]),
        rows([0.0] * 4 + [1.0] * 4, [1.0]),
    ),
    table_pair(
        "a row across all medians",
        rows([0.25] * 3 + [0.75] * 3, [0.25, 0.75, 0.0]),
        rows([0.25] * 3 + [0.75] * 3, [0.25, 0.75, 1.0]),
    ),
)


def two_models(name: str, first: Rows, second: Rows, **options: Any) -> Pair:
    """Model A has the score p, model B one minus p: a row that falls for A rises for B."""

    def of(content: Rows) -> dict[str, Any]:
        return table(content, q=[1 - p for _, p in content])

    return Pair(name, of(first), of(second), options)


COMPARISONS = (
    two_models("one of two positives falls", rows([HIGH, 0.9], _eight), rows([HIGH, LOW], _eight)),
    two_models("the only positive falls", rows([HIGH], _eight), rows([LOW], _eight)),
    two_models("the last positive leaves", rows([HIGH], _eight), rows([], _eight), **REMOVE),
    two_models(
        "one of hundreds of positives falls",
        rows([*_hundreds[0], HIGH], _hundreds[1]),
        rows([*_hundreds[0], LOW], _hundreds[1]),
    ),
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


AREA_GROUPS = (*crossings(rows(*_hundreds)), grouped_pair(AREAS[3], "a", "b"))
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


_bottom = rows([LOW, *_hundreds[0]], _hundreds[1])
CLASS_AREAS = (
    two_classes("one of hundreds falls among two classes", AREAS[-1]),
    two_classes(
        "the last of hundreds leaves one of two classes",
        table_pair("", _bottom, _bottom[1:], **REMOVE),
    ),
    two_classes("a person's two rows of hundreds fall among two classes", PERSONS[0]),
    class_pair(("the last of a class is replaced", [(0, 0)], [(2, 2)]), [(1, 1), (2, 2)] * 6),
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
