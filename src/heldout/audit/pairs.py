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
HUNDREDS = spread(600, 0.8, 0.9), spread(600)

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
        rows([*HUNDREDS[0], HIGH], HUNDREDS[1]),
        rows([*HUNDREDS[0], LOW], HUNDREDS[1]),
    ),
)
PERSONS = (
    unit_pair(
        "a person's two positives of hundreds fall",
        rows([HIGH, HIGH, *HUNDREDS[0]], HUNDREDS[1]),
        rows([LOW, LOW, *HUNDREDS[0]], HUNDREDS[1]),
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
        rows([*HUNDREDS[0], 1.0], HUNDREDS[1]),
        rows(HUNDREDS[0], [*HUNDREDS[1], 1.0]),
    ),
    table_pair(
        "the best of hundreds leaves",
        rows([*HUNDREDS[0], 1.0], HUNDREDS[1]),
        rows(HUNDREDS[0], HUNDREDS[1]),
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
        rows([*HUNDREDS[0], HIGH], _eight),
        rows(HUNDREDS[0], [*_eight, 0.99]),
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
        rows([*HUNDREDS[0], inf], HUNDREDS[1]),
        rows([*HUNDREDS[0], -inf], HUNDREDS[1]),
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
        rows([*HUNDREDS[0], HIGH], HUNDREDS[1]),
        rows([*HUNDREDS[0], LOW], HUNDREDS[1]),
    ),
)
