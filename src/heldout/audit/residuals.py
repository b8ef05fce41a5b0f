"""Regression diagnostics, with the neighbours that are the worst we know for them."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import EVERYTHING, numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy.loss import Loss

__all__ = ["PAIRS"]

Ask = Callable[[Any, Fraction], Any]
_PREDICTED = [0.2, 0.4, 0.6, 0.8, 0.5, 0.3, 0.7]
_RESIDUALS = [0.1, -0.1, 0.3, -0.3, 0.0, 0.2, -0.2]


def _rows(*more: tuple[float, float]) -> dict[str, list[float]]:
    both = [*zip(_PREDICTED, _RESIDUALS, strict=True), *more]
    return {"p": [p for p, _ in both], "y": [p + r for p, r in both]}


def _pair(name: str, first: tuple[float, float], *second: tuple[float, float]) -> Pair:
    """A row (predicted, residual) that becomes another, or that is there or not."""
    options = {} if second else {"neighbours": "add-remove"}
    return Pair(name, _rows(first), _rows(*second), options)


PAIRS = (
    _pair("a residual goes beyond every bound", (0.5, 0.9), (0.5, 1e300)),
    _pair("a residual goes to the other end", (0.5, 0.9), (0.5, -0.9)),
    _pair("a prediction goes to the other end", (0.05, 0.0), (0.95, 0.0)),
    _pair("a row at the bound is there or not", (0.0, 1.0)),
)


def _grouped(name: str, *sides: tuple[tuple[float, str], ...], **options: Any) -> Pair:
    """A person's rows (residual, group) on either side, beside the rows of others."""
    tables = []
    for own in sides:
        rows = _rows(*((0.5, residual) for residual, _ in own))
        people = [str(each) for each in range(len(_PREDICTED))] + ["own"] * len(own)
        groups = [*"abcabca"[: len(_PREDICTED)], *(group for _, group in own)]
        tables.append({**rows, "g": groups, "who": people})
    first, second = tables
    return Pair(name, first, second, {"groups": {"g": ["a", "b"]}, **options})


GROUPED = (
    _grouped("a row goes to another group", ((0.9, "a"),), ((-0.9, "b"),)),
    _grouped("a row is there or not", ((1.0, "a"),), (), neighbours="add-remove"),
    _grouped(
        "a person has rows in two groups, or in two others",
        ((0.9, "a"), (0.9, "b")),
        ((-0.9, "b"), (-0.9, "c")),
        unit="who",
        rows_per_unit=2,
    ),
)


def _session(rows: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    from heldout.regression import RegressionSession, RegressionTable

    table = RegressionTable(rows, observed="y", predicted="p", name="neighbour", **options)
    return RegressionSession(table, budget=EVERYTHING)


def _cell(release: Any, predicted: float, residual: float) -> tuple[int, int] | None:
    """Where a row is in the released table; None is outside."""
    places = []
    for value, edges in ((residual, release.residual_edges), (predicted, release.predicted_edges)):
        if not edges[0] <= value <= edges[-1]:
            return None
        places.append(min(int(np.searchsorted(edges, value, side="right")) - 1, len(edges) - 2))
    return places[0], places[1]


def _own_cells(pair: Pair, release: Any) -> list[float]:
    """All numbers; and for an attacker who knows the other rows, the cells of those that differ."""
    found = numbers(release)
    table = release.table
    for rows in (pair.first, pair.second):
        if len(rows["p"]) == len(_PREDICTED):
            continue
        own = _cell(release, rows["p"][-1], rows["y"][-1] - rows["p"][-1])
        known = sum(
            _cell(release, p, r) == own for p, r in zip(_PREDICTED, _RESIDUALS, strict=True)
        )
        seen = table.outside if own is None else table.noisy[own]
        found.append(float(seen) - known)
    return found


def _diagnostic(
    name: str,
    ask: Ask,
    *,
    note: str,
    why: str,
    cases: tuple[Pair, ...] = (PAIRS[0], PAIRS[3]),
    read: Callable[[Pair, Any], list[float]] = _own_cells,
) -> None:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        session = _session(pair.side(side), pair.options)
        return stacked([read(pair, ask(session, epsilon)) for _ in range(count)])

    def claim(epsilon: Fraction) -> Loss:
        loss: Loss = ask(_session(cases[0].first, cases[0].options), epsilon).loss
        return loss

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=cases,
            claim=claim,
            draw=draw,
            epsilon="4",
            note=f"{note}; public door",
            why=why,
        )
    )


# Few cells: what a row can do is the same, and each answer has as many numbers as the others. Where
# the number of rows is private it is guessed, publicly and too high: most is in the table then.
_diagnostic(
    "residual-plot",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=(2, 2), expected_rows=10**6
    ),
    note="bounds, table and outside, jointly",
    why="a tenth is for the bounds and the number of rows",
)
_diagnostic(
    "residual-plot-dawa",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=2, method="dawa", expected_rows=10**6
    ),
    note="bounds, buckets and outside, jointly",
    why="a part is for the buckets, in which cells are averaged",
)
_diagnostic(
    "residual-plot-chen-2016-prirp",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=2, method="chen-2016-prirp"
    ),
    note="the paper's own constants; bounds, buckets and outside, jointly",
    why="a third is for the bounds, a part for the buckets, in which cells are averaged",
    cases=PAIRS[:3],
)
_diagnostic(
    "residual-plot-declared",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=(2, 2), bounds={"residual": 1, "predicted": (0, 1)}
    ),
    note="declared bounds, so that all of epsilon is in the table",
    why="",
    cases=PAIRS,
)
_diagnostic(
    "regression-metrics",
    lambda session, epsilon: session.metrics(
        epsilon=epsilon, bounds={"residual": 1, "observed": (0, 1)}, expected_rows=10**6
    ),
    note="sums and the cumulative table, jointly",
    why="spread over sums of three powers and a tree",
    read=lambda _, release: numbers(release),
)
_diagnostic(
    "residual-plot-by-group",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=(2, 1), bounds={"residual": 1, "predicted": (0, 1)}, by="g"
    ),
    note="a table for each group, declared bounds; persons with rows in several groups",
    why="a twentieth is for the sizes of groups",
    cases=GROUPED,
    read=lambda _, release: numbers(release),
)
_diagnostic(
    "regression-metrics-by-group",
    lambda session, epsilon: session.metrics(
        epsilon=epsilon,
        bounds={"residual": 1, "observed": (0, 1)},
        expected_rows=10**6,
        by="g",
    ),
    note="sizes, sums and a tree for each group; persons with rows in several groups",
    why="spread over sizes, sums of three powers and trees",
    cases=GROUPED,
    read=lambda _, release: numbers(release),
)
