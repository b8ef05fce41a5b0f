"""Our releases, each with the neighbours that are the worst we know for it.

To add one: a line of `_release`. A method of `Session` that is not there yet is listed as missing.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit import pairs
from heldout.audit.doors import Ask, claimed, numbers, session_on
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.session import Session

GRID = np.linspace(0, 1, 9)


def _release(
    name: str,
    ask: Ask,
    cases: Sequence[Pair],
    *,
    needs: str,
    read: Callable[[Any], list[float]] = numbers,
    note: str = "",
    slowness: int = 1,
) -> None:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        session = session_on(pair, side, door)
        return stacked([read(ask(session, epsilon)) for _ in range(count)])

    def missing() -> str | None:
        return None if hasattr(Session, needs) else f"Session.{needs} is not there yet"

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=tuple(cases),
            claim=lambda epsilon: claimed(ask, cases[0], epsilon),
            draw=draw,
            missing=missing,
            note=note,
            slowness=slowness,
        )
    )


_release(
    "confusion",
    lambda session, epsilon: session.confusion(threshold=0.5, epsilon=epsilon),
    pairs.CONFUSION,
    needs="confusion",
    note="all cells jointly",
)
_release(
    "brier", lambda session, epsilon: session.brier(epsilon=epsilon), pairs.MEANS, needs="brier"
)
_release(
    "mean-absolute-error",
    lambda session, epsilon: session.mean_absolute_error(epsilon=epsilon),
    pairs.MEANS,
    needs="mean_absolute_error",
)
_release(
    "mean-squared-error",
    lambda session, epsilon: session.mean_squared_error(epsilon=epsilon),
    pairs.MEANS,
    needs="mean_squared_error",
)
_release("auc", lambda session, epsilon: session.auc(epsilon=epsilon), pairs.AREAS, needs="auc")
_release(
    "average-precision",
    lambda session, epsilon: session.average_precision(epsilon=epsilon),
    pairs.PRECISIONS,
    needs="average_precision",
)
_release(
    "compare",
    lambda session, epsilon: session.compare(score="q", epsilon=epsilon),
    pairs.COMPARISONS,
    needs="compare",
)
for _law in ("polynomial-tail", "cauchy", "boyd-2015-cauchy"):
    _release(
        f"auc-{_law}",
        lambda session, epsilon, law=_law: session.auc(epsilon=epsilon, method=law),  # type: ignore[misc]
        pairs.AREAS[:4],
        needs="auc",
    )
_release(
    "auc-boyd-2015-laplace",
    lambda session, epsilon: session.auc(
        epsilon=epsilon, method="boyd-2015-laplace", delta="1/100"
    ),
    pairs.AREAS[:4],
    needs="auc",
    note="the one release with a delta, 0.01",
)
_release(
    "report",
    lambda session, epsilon: session.report(epsilon=epsilon),
    (pairs.CONFUSION[0], pairs.AREAS[2]),
    needs="report",
    slowness=10,
    note="everything that a report prints, jointly",
)


_TABLE = ("edges", "negatives", "positives", "rows")


def _curve_numbers(release: Any) -> list[float]:
    """A curve as numbers: its edges' quantiles, counts on a fixed grid, and what is beside it."""
    noisy = release._noisy()
    beside = {name: each for name, each in noisy.items() if name not in _TABLE}
    edges = np.asarray(noisy["edges"], dtype=float) / noisy["edges"][-1]
    found = [float(len(edges)), *np.quantile(edges, GRID[1:-1]).tolist()]
    for name in ("negatives", "positives"):
        counts = np.asarray(noisy[name], dtype=float)
        above = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
        found += [float(above[0]), *np.interp(GRID, edges, above).tolist()]
        if len(counts) <= 16:
            found += counts.tolist() + [0.0] * (16 - len(counts))
        else:
            found += [float(counts.min()), float(counts.max()), *counts[:7], *counts[-7:]]
    return found + numbers(beside)


_release(
    "curves",
    lambda session, epsilon: session.curves(epsilon=epsilon),
    pairs.CURVES,
    needs="curves",
    read=_curve_numbers,
    note="the whole noisy table jointly",
    slowness=2,
)
# Few thresholds: what a row can do is the same, and each answer takes less time.
_SMALL: dict[str, dict[str, Any]] = {
    "laplace": {},
    "fixed-space": {"thresholds": 16},
    "recursive-medians": {"levels": 3},
    "hierarchical-quantile": {},
}
for _method, _options in _SMALL.items():
    _release(
        f"curves-{_method}",
        lambda session, epsilon, method=_method, options=_options: session.curves(  # type: ignore[misc]
            epsilon=epsilon, method=method, **options
        ),
        (*pairs.MEDIANS, *pairs.CURVES[1:]) if _method == "recursive-medians" else pairs.CURVES,
        needs="curves",
        read=_curve_numbers,
        slowness=4,
    )
