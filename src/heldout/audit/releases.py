"""Our releases, each with the neighbours that are the worst we know for it.

To add one: a line of `_release`. A method of `Session` that is not there yet is listed as missing.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit import divided_pairs, pairs
from heldout.audit.doors import (
    claimed,
    no_postgres,
    numbers,
    postgres_session_on,
    session_on,
)
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.questions.session import Session

GRID = np.array([0.25, 0.5, 0.75])


def _release(
    name: str,
    asks: str,
    cases: Sequence[Pair],
    *,
    read: Callable[[Pair, Any], list[float]] = lambda _, answer: numbers(answer),
    note: str = "",
    epsilon: str = "1",
    why: str = "",
    missing: Callable[[], str | None] | None = None,
    on: Callable[[Pair, int, str], Session] = session_on,
    answers_each: int = 2000,
    **options: Any,
) -> None:
    """A method of `Session` with its options. `answers_each`: that one session gives; deltas add
    up to less than 1."""

    def ask(session: Session, epsilon: Fraction) -> Any:
        return getattr(session, asks)(epsilon=epsilon, **options)

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        found = []
        for start in range(0, count, answers_each):
            session = on(pair, side, door)
            asked = min(answers_each, count - start)
            found += [read(pair, ask(session, epsilon)) for _ in range(asked)]
        return stacked(found)

    def not_there() -> str | None:
        if not hasattr(Session, asks):
            return f"Session.{asks} is not there yet"
        return None if missing is None else missing()

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=tuple(cases),
            claim=lambda epsilon: claimed(ask, on(cases[0], 0, "public"), epsilon),
            draw=draw,
            missing=not_there,
            note=note,
            epsilon=epsilon,
            why=why,
        )
    )


_CLASSES = "a part is for the classes, and where they are small the noise is wider"
_MAPPED = "scores without a range, by score_map"
_release("confusion", "confusion", pairs.CONFUSION, note="all cells jointly")
_release("brier", "brier", pairs.MEANS)
_release("mean-absolute-error", "mean_absolute_error", pairs.MEANS)
_release("mean-squared-error", "mean_squared_error", pairs.MEANS)
_release("auc", "auc", pairs.AREAS, why=_CLASSES)
_release(
    "confusion-by-group",
    "confusion",
    divided_pairs.CONFUSION_GROUPS,
    by="g",
    note="all cells of all groups jointly; a person's rows are in several",
)
_release(
    "auc-by-group",
    "auc",
    divided_pairs.AREA_GROUPS,
    by="g",
    note="a person's rows are in several groups",
)
_release(
    "confusion-of-classes",
    "confusion",
    divided_pairs.CLASSES,
    note="all cells of three classes jointly",
)
_release("top-k", "top_k", divided_pairs.CLASSES)
_release("brier-of-classes", "brier", divided_pairs.CLASSES)
_release("auc-of-classes", "auc", divided_pairs.CLASS_AREAS, epsilon="4", why=_CLASSES)
_release(
    "average-precision-of-classes",
    "average_precision",
    divided_pairs.CLASS_PRECISIONS,
    epsilon="4",
    why=_CLASSES,
)
_release("log-loss", "log_loss", pairs.MEANS, note="with the sum of squares, which is free")
_release(
    "brier-by-group",
    "brier",
    divided_pairs.MEAN_GROUPS,
    by="g",
    note="all sums of all groups jointly; a person's rows are in several",
)
_release("log-loss-weighted", "log_loss", divided_pairs.WEIGHTED_MEANS, weighted=True)
_release(
    "confusion-weighted",
    "confusion",
    divided_pairs.WEIGHTED,
    weighted=True,
    note="sums of weights, those that change with the largest",
)
_release("ndcg", "ndcg", divided_pairs.LISTS)
_release("precision-at-k", "precision_at_k", divided_pairs.LISTS, k=1)
_release("auc-of-persons", "auc", pairs.PERSONS, why=_CLASSES, note="two rows of one person")
_release("auc-mapped", "auc", pairs.MAPPED, why=_CLASSES, note=_MAPPED)
_release("confusion-mapped", "confusion", pairs.MAPPED, note=_MAPPED)
_release(
    "confusion-postgres",
    "confusion",
    (pairs.CONFUSION[0], pairs.CONFUSION[2]),
    note="counted by the database",
    missing=no_postgres,
    on=postgres_session_on,
)
_release(
    "mean-squared-error-clipped",
    "mean_squared_error",
    pairs.CLIPPED,
    note='scores beyond the range, out_of_range="clip"',
)
_release("average-precision", "average_precision", pairs.PRECISIONS, why=_CLASSES)
_release("grid-ties", "grid_ties", pairs.TIES, why=_CLASSES)
_release("compare", "compare", pairs.COMPARISONS, score="q", why=_CLASSES)
# The noise of Cauchy laws is so wide that little shows at epsilon 1, whatever the event.
for _law, _price in (("polynomial-tail", "1"), ("cauchy", "4"), ("boyd-2015-cauchy", "6")):
    _release(
        f"auc-{_law}",
        "auc",
        (*pairs.AREAS[1:4], pairs.AREAS[-1]),
        method=_law,
        epsilon=_price,
        why="tails wider than privacy needs",
    )
_release(
    "auc-boyd-2015-laplace",
    "auc",
    (*pairs.AREAS[1:4], pairs.AREAS[-1]),
    method="boyd-2015-laplace",
    delta="1/100",
    epsilon="3",
    note="the one release with a delta, 0.01",
    why="half is for the change of scale, and delta is taken off",
    answers_each=90,
)
_release(
    "report",
    "report",
    pairs.REPORTS,
    epsilon="4",
    why="spread over a dozen numbers",
    note="everything that a report prints, jointly",
)


_TABLE = ("edges", "negatives", "positives", "rows")


def _table_numbers(noisy: Mapping[str, Any]) -> list[float]:
    """A curve as few numbers, whatever its bins: edges, counts above points and at the ends."""
    edges = np.asarray(noisy["edges"], dtype=float) / noisy["edges"][-1]
    found = [float(len(edges)), *np.quantile(edges, GRID).tolist()]
    for counts in (np.asarray(noisy[name], dtype=float) for name in ("negatives", "positives")):
        above = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
        found += [float(above[0]), *np.interp(GRID, edges, above).tolist()]
        ends = np.append(counts[:2], counts[-2:]) if len(counts) > 4 else counts
        found += [*ends.tolist(), *[0.0] * (4 - len(ends))]
    beside = (numbers(each) for name, each in noisy.items() if name not in _TABLE)
    return found + [x for each in beside for x in each or [0.0]]  # an area may not be bought


def _curve_numbers(pair: Pair, release: Any) -> list[float]:
    """And what an attacker looks at who knows the other rows: the cells of those that differ."""
    noisy = release._noisy()
    edges = np.asarray(noisy["edges"], dtype=float) / noisy["edges"][-1]
    by_class = [np.asarray(noisy[name], dtype=float) for name in ("negatives", "positives")]
    differ, others = pairs.gone_and_come(pair)

    def cell(score: float) -> int:
        place = int(np.searchsorted(edges, score * (1 - 1e-6), side="right")) - 1
        return min(max(place, 0), len(edges) - 2)

    found = []
    for label, score in differ:
        own = cell(score)
        known = sum(y == label and cell(p) == own for y, p in others)
        found.append(float(by_class[label][own]) - known)
    return found + _table_numbers(noisy)


_release(
    "curves",
    "curves",
    pairs.CURVES,
    read=_curve_numbers,
    note="the whole noisy table jointly",
    epsilon="4",
    why="a twentieth is for the bins",
)
_release(
    "curves-with-area",
    "curves",
    pairs.CURVES,
    read=_curve_numbers,
    note="the noisy tables and the sum of influences jointly",
    epsilon="4",
    why="a tenth is for the first table, and a row uses up its part where it moves the area most",
    area_share="1/2",
    levels=1,
)
_release(
    "curves-by-group",
    "curves",
    divided_pairs.CURVE_GROUPS,
    by="g",
    read=lambda _, release: [x for each in release._noisy().values() for x in _table_numbers(each)],
    epsilon="4",
    why="a part is for the edges",
)
# Very few thresholds: what a row can do is the same, but it is not spread over many numbers, where
# no event could show it.
_SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "laplace": ("laplace", {"thresholds": 1}),
    "fixed-space": ("fixed-space", {"thresholds": 2}),
    "recursive-medians": ("recursive-medians", {"levels": 1}),
    "hierarchical-quantile": ("hierarchical-quantile", {"quantiles": 2}),
    **{
        f"{counts}-counts": ("fixed-space", {"thresholds": 2, "counts": counts, "split": "joint"})
        for counts in ("flat", "wavelet", "hierarchical", "dawa")
    },
    # The papers' own, with their constants.
    "stoddard-2014-laplace": ("stoddard-2014-laplace", {"thresholds": 1}),
    "stoddard-2014-priroc": ("stoddard-2014-priroc", {"levels": 1}),
    "chen-2016-priroc": ("chen-2016-priroc", {"levels": 1}),
    "chen-2016-priroc-fix": ("chen-2016-priroc-fix", {"thresholds": 2}),
}
_WHY = dict.fromkeys(
    (
        "fixed-space",
        "recursive-medians",
        "hierarchical-quantile",
        "stoddard-2014-priroc",
        "chen-2016-priroc",
        "chen-2016-priroc-fix",
    ),
    "charges each class, and a row is in one: half is spent on nothing",
)
_MEDIANS = ("recursive-medians", "stoddard-2014-priroc", "chen-2016-priroc")
for _name, (_method, _options) in _SMALL.items():
    _release(
        f"curves-{_name}",
        "curves",
        (*pairs.MEDIANS, *pairs.CURVES[1:]) if _method in _MEDIANS else pairs.CURVES[1:],
        read=_curve_numbers,
        why=_WHY.get(_name, "spread over several numbers"),
        epsilon="4",
        method=_method,
        **_options,
    )
