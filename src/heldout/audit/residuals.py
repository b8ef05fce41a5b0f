"""Regression diagnostics, with the neighbours that are the worst we know for them."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from heldout.audit.doors import numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy import Budget
from heldout.privacy.loss import Loss

__all__ = ["PAIRS"]

Ask = Callable[[Any, Fraction], Any]
_PREDICTED = [0.2, 0.4, 0.6, 0.8, 0.5, 0.3, 0.7]
_RESIDUALS = [0.1, -0.1, 0.3, -0.3, 0.0, 0.2, -0.2]


def _rows(predicted: float, residual: float) -> dict[str, list[float]]:
    both = zip([*_PREDICTED, predicted], [*_RESIDUALS, residual], strict=True)
    pairs = [(p, p + r) for p, r in both]
    return {"p": [p for p, _ in pairs], "y": [y for _, y in pairs]}


def _without() -> dict[str, list[float]]:
    rows = _rows(0.5, 0.9)
    return {name: values[:-1] for name, values in rows.items()}


PAIRS = (
    Pair("a residual goes beyond every bound", _rows(0.5, 0.9), _rows(0.5, 1e300)),
    Pair("a residual goes to the other end", _rows(0.5, 0.9), _rows(0.5, -0.9)),
    Pair("a prediction goes to the other end", _rows(0.05, 0.0), _rows(0.95, 0.0)),
    Pair(
        "a row at the bound is there or not",
        _rows(0.5, 0.9),
        _without(),
        {"neighbours": "add-remove"},
    ),
)


def _session(rows: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    from heldout.regression import RegressionSession, RegressionTable

    table = RegressionTable(rows, observed="y", predicted="p", name="neighbour", **options)
    return RegressionSession(table, budget=Budget(epsilon=10**9))


def _diagnostic(name: str, ask: Ask, *, note: str, slowness: int = 50) -> None:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        session = _session(pair.side(side), pair.options)
        return stacked([numbers(ask(session, epsilon)) for _ in range(count)])

    def claim(epsilon: Fraction) -> Loss:
        loss: Loss = ask(_session(PAIRS[0].first, PAIRS[0].options), epsilon).loss
        return loss

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=PAIRS,
            claim=claim,
            draw=draw,
            epsilon="4",
            slowness=slowness,
            note=f"{note}; public door",
        )
    )


# Few cells: what a row can do is the same, and each answer has as many numbers as the others.
_diagnostic(
    "residual-plot",
    lambda session, epsilon: session.residual_plot(epsilon=epsilon, grid=(2, 2)),
    note="bounds, table and outside, jointly",
)
_diagnostic(
    "residual-plot-dawa",
    lambda session, epsilon: session.residual_plot(epsilon=epsilon, grid=2, method="dawa"),
    note="bounds, buckets and outside, jointly",
)
_diagnostic(
    "residual-plot-declared",
    lambda session, epsilon: session.residual_plot(
        epsilon=epsilon, grid=(2, 2), bounds={"residual": 1, "predicted": (0, 1)}
    ),
    note="declared bounds, so that all of epsilon is in the table",
    slowness=4,
)
_diagnostic(
    "regression-metrics",
    lambda session, epsilon: session.metrics(
        epsilon=epsilon, bounds={"residual": 1, "observed": (0, 1)}
    ),
    note="sums and the cumulative table, jointly",
)
