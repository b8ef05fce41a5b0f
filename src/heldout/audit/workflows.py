"""Releases of the other workflows, which have doors of their own.

To add one: a function that asks once, two neighbours, and a line of `_workflow`.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register

Once = Callable[[Any, Fraction], Any]


def _workflow(
    name: str, once: Once, cases: Sequence[Pair], *, slowness: int, note: str = ""
) -> None:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        return stacked([numbers(once(pair.side(side), epsilon)) for _ in range(count)])

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=tuple(cases),
            claim=lambda epsilon: once(cases[0].first, epsilon).loss,
            draw=draw,
            note=note,
            slowness=slowness,
        )
    )


def _separability(truth: Any, epsilon: Fraction) -> Any:
    from heldout.separation.private import private_separability

    return private_separability(truth, _PUBLIC, epsilon=epsilon)


_PUBLIC = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]] * 3)
_TRUE = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]] * 2


def _with(row: list[float], *, last: bool) -> Any:
    return np.array([*_TRUE, row] if last else [row, *_TRUE])


_workflow(
    "separability",
    _separability,
    (
        Pair(
            "the last row to the other end",
            _with([0.0, 0.0], last=True),
            _with([1.0, 1.0], last=True),
        ),
        Pair(
            "the first row to the other end",
            _with([0.0, 0.0], last=False),
            _with([1.0, 1.0], last=False),
        ),
    ),
    slowness=50,
    note="the separator and the rows that it calls true, jointly; public door",
)
